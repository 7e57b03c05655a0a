//! Whose failures are counted together, and what is remembered of them: one project's or session's
//! fault delays and parks nobody else (P-14).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::directory::{Lane, RouteKey, ScopeKey};
use super::plan::{Admission, Health, Life, Phase, Rules};
use crate::actors::instance::{End, EndKind, Fault};

/// Who fails together: a scope key and lane. Calls in call scope, each of which has a key of its own,
/// fail with the others from their project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FaultKey(RouteKey);

impl FaultKey {
    pub(super) fn of(key: &RouteKey, project: Option<&Arc<Path>>) -> Self {
        let scope = match (&key.scope, project) {
            (ScopeKey::Call(_), Some(project)) => ScopeKey::Project(Arc::clone(project)),
            (ScopeKey::Call(_), None) => ScopeKey::NoProject,
            (other, _) => other.clone(),
        };
        Self(RouteKey { scope, lane: key.lane })
    }

    /// The same callers in another lane.
    pub(super) fn in_lane(&self, lane: Lane) -> Self {
        Self(RouteKey { scope: self.0.scope.clone(), lane })
    }

    /// ` for project /x`; empty where there is nobody else.
    pub(super) fn text(&self) -> String {
        let scope = match &self.0.scope {
            ScopeKey::Global => String::new(),
            ScopeKey::NoProject => " for callers without a project".to_owned(),
            named => format!(" for {}", named.text()),
        };
        match self.0.lane {
            Lane::Shared => scope,
            Lane::Legacy => format!("{scope} for callers of legacy revisions"),
        }
    }
}

/// Failures, and how the last of them ended.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) health: Health,
    pub(super) end: Option<End>,
}

impl Record {
    fn is_resting(&self) -> bool {
        self.health.phase() != Phase::Fine
    }
}

/// All of one server's.
#[derive(Debug, Default)]
pub(super) struct Faults {
    stopped: bool,
    restarts: u32,
    /// What is no key's own: a program that is not there, a mistake in the configuration.
    everybody: Record,
    /// Keys that have failed, and no others.
    keys: BTreeMap<FaultKey, Record>,
}

impl Faults {
    /// An operator's `stop`: nothing is started at all.
    pub(super) fn stop(&mut self) {
        self.revive();
        self.stopped = true;
    }

    /// An operator's `start` or `restart`: the way out of every rest (P-14).
    pub(super) fn revive(&mut self) {
        self.stopped = false;
        self.everybody = Record::default();
        self.keys.clear();
    }

    pub(super) const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Deaths and failed starts in this pool's life.
    pub(super) const fn restarts(&self) -> u32 {
        self.restarts
    }

    /// What keeps `key` from being started, or has kept it.
    pub(super) fn of(&self, key: &FaultKey) -> Option<&Record> {
        if self.everybody.is_resting() { Some(&self.everybody) } else { self.keys.get(key) }
    }

    /// Whether what keeps callers from an instance is no key's own.
    pub(super) fn is_everybodys(&self) -> bool {
        self.everybody.is_resting()
    }

    /// What the pool does by itself for `key`.
    pub(super) fn phase(&self, key: &FaultKey) -> Phase {
        self.of(key).map_or(Phase::Fine, |record| record.health.phase())
    }

    /// Whether a start of `other` is a trial for `key`, which is at rest: how it ends concerns both.
    pub(super) fn is_trial(&self, other: &FaultKey, key: &FaultKey) -> bool {
        self.everybody.is_resting() || (other == key && self.phase(key) != Phase::Fine)
    }

    /// A caller wants an instance.
    pub(super) fn admit(&mut self, now: Instant, key: &FaultKey) -> Admission {
        if self.stopped {
            return Admission::Refuse;
        }
        if self.everybody.is_resting() {
            return self.everybody.health.admit(now);
        }
        self.keys.get_mut(key).map_or(Admission::Start, |record| record.health.admit(now))
    }

    /// Whether what is wanted may be started without a caller's wish.
    pub(super) fn may_start(&self, now: Instant, key: &FaultKey) -> bool {
        !self.stopped && self.of(key).is_none_or(|record| record.health.may_start(now))
    }

    /// An instance is usable: what concerned everybody is mended.
    pub(super) fn ready(&mut self, key: &FaultKey) {
        self.everybody = Record::default();
        if let Some(record) = self.keys.get_mut(key) {
            record.health.ready();
        }
    }

    /// An instance ended as it was told to.
    pub(super) fn ended_well(&mut self, key: &FaultKey, rules: &Rules, uptime: Duration) {
        if let Some(record) = self.keys.get_mut(key) {
            record.health.ended_well(rules, uptime);
            if record.health.failures() == 0 {
                self.keys.remove(key);
            }
        }
    }

    /// A start failed, or an instance died.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        key: &FaultKey,
        rules: &Rules,
        life: Life,
        (end, jitter): (End, [u8; 2]),
    ) {
        self.restarts += 1;
        let record = match end.kind {
            EndKind::StartFailed { fault: Fault::Everybodys } => &mut self.everybody,
            _ => self.keys.entry(key.clone()).or_default(),
        };
        match end.kind {
            EndKind::StartFailed { fault: Fault::Everybodys | Fault::Keys } => {
                record.health.failed_for_good(now, rules, life);
            }
            _ => record.health.failed(now, rules, life, jitter),
        }
        record.end = Some(end);
    }

    /// Nobody will use this scope key again.
    pub(super) fn forget(&mut self, scope: &ScopeKey) {
        self.keys.retain(|FaultKey(key), _| key.scope != *scope);
    }

    /// The key to forget, where more than `most` are remembered: the one that failed longest ago.
    pub(super) fn surplus(&self, most: usize) -> Option<FaultKey> {
        if self.keys.len() <= most {
            return None;
        }
        let oldest = self.keys.iter().min_by_key(|(_, record)| record.health.failed_at());
        oldest.map(|(key, _)| key.clone())
    }

    pub(super) fn remove(&mut self, key: &FaultKey) {
        self.keys.remove(key);
    }

    /// Everything remembered; no key for what concerns everybody.
    pub(super) fn records(&self) -> impl Iterator<Item = (Option<&FaultKey>, &Record)> {
        let everybody = Some((None, &self.everybody)).filter(|(_, it)| it.health.failures() > 0);
        everybody.into_iter().chain(self.keys.iter().map(|(key, record)| (Some(key), record)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::session::backoff::Backoff;

    const SECOND: Duration = Duration::from_secs(1);

    fn rules() -> Rules {
        Rules {
            backoff: Backoff { step: SECOND * 2, max: SECOND * 5 },
            sustained: SECOND * 60,
            park_after: 2,
        }
    }

    fn key(project: &str) -> FaultKey {
        let project: Arc<Path> = Path::new(project).into();
        FaultKey::of(&route(ScopeKey::Project(Arc::clone(&project))), Some(&project))
    }

    fn route(scope: ScopeKey) -> RouteKey {
        RouteKey { scope, lane: Lane::Shared }
    }

    fn fail(faults: &mut Faults, now: Instant, key: &FaultKey, fault: Fault) {
        let kind = EndKind::StartFailed { fault };
        let end = End { kind, text: "no".to_owned(), stderr: Vec::new() };
        let life = Life { started: now, uptime: Duration::ZERO };
        faults.failed(now, key, &rules(), life, (end, [0, 0]));
    }

    /// P-14: what one project does to its instance parks that project; a program that is missing is
    /// missing for all; a restart clears both.
    #[test]
    fn p14_faults_are_counted_for_each_key() {
        let (mut faults, now) = (Faults::default(), crate::transport::clock::now());
        for _ in 0..2 {
            fail(&mut faults, now, &key("/bad"), Fault::Passing);
        }
        assert_eq!(faults.phase(&key("/bad")), Phase::Parked { permanent: false });
        assert_eq!(faults.admit(now, &key("/good")), Admission::Start);
        fail(&mut faults, now, &key("/gone"), Fault::Keys);
        assert_eq!(faults.admit(now, &key("/gone")), Admission::Refuse);
        assert_eq!(faults.admit(now, &key("/good")), Admission::Start);
        fail(&mut faults, now, &key("/bad"), Fault::Everybodys);
        assert_eq!(faults.admit(now, &key("/good")), Admission::Refuse);
        assert!(faults.is_trial(&key("/bad"), &key("/good")));
        faults.ready(&key("/good"));
        assert_eq!(faults.admit(now, &key("/good")), Admission::Start);
        assert_eq!(faults.records().count(), 2);
        faults.revive();
        assert_eq!((faults.records().count(), faults.restarts()), (0, 4));
        faults.stop();
        assert_eq!(faults.admit(now + SECOND * 1000, &key("/good")), Admission::Refuse);
    }

    /// What is remembered is bounded, and what has no failures is not remembered.
    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut faults, now) = (Faults::default(), crate::transport::clock::now());
        for (number, project) in (0..).zip(["/a", "/b", "/c"]) {
            fail(&mut faults, now + SECOND * number, &key(project), Fault::Passing);
        }
        assert_eq!(faults.surplus(3), None);
        assert_eq!(faults.surplus(2), Some(key("/a")));
        faults.ready(&key("/b"));
        faults.ended_well(&key("/b"), &rules(), SECOND * 60);
        assert_eq!(faults.records().count(), 2);
    }

    /// Each call of call scope has a key of its own; what fails is the same server in the same place.
    #[test]
    fn calls_fail_with_the_others_of_their_project() {
        let project: Arc<Path> = Path::new("/p").into();
        let call = |number| FaultKey::of(&route(ScopeKey::Call(number)), Some(&project));
        assert_eq!(call(1), call(2));
        assert_ne!(call(1), FaultKey::of(&route(ScopeKey::Call(1)), None));
        assert_eq!(call(1).text(), " for project /p");
    }
}
