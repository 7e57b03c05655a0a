//! What a pool tells callers and people about itself.

use std::time::Instant;

use super::directory::Lane;
use super::faults::{FaultKey, Record};
use super::member::Member;
use super::plan::Phase as Rest;
use super::state::PoolState;
use super::status::{PoolStatus, ProtocolStatus};
use super::{InstanceLog, RouteAnswer};
use crate::actors::instance::InstanceId;
use crate::actors::upstreams::Refused;
use crate::settings::servers::preference_word;

/// Lines of stderr quoted in a text for a caller: enough for a traceback's end, few enough for a
/// model's context. All kept lines are shown by `mcpx logs`.
const QUOTED: usize = 10;

impl PoolState {
    /// An operator stopped it.
    pub(super) fn stopped(&self) -> Refused {
        let name = &self.def.key;
        Refused::unavailable(format!("server `{name}` is stopped; `mcpx start {name}` starts it"))
    }

    /// Why nothing is started now.
    pub(super) fn refusal(&self, whose: &FaultKey) -> Refused {
        if self.faults.is_stopped() {
            return self.stopped();
        }
        let name = &self.def.key;
        let trouble = self.trouble(whose);
        let text = match self.faults.phase(whose) {
            Rest::Parked { permanent: true } => format!(
                "server `{name}` is parked{}: {trouble}; mend its configuration or the PATH, then \
                 run `mcpx restart {name}`",
                self.whom(whose),
            ),
            Rest::Parked { permanent: false } => format!(
                "server `{name}` is parked{} after {} failures in a row: {trouble}; `mcpx logs \
                 {name}` shows more; a later call tries again, `mcpx restart {name}` does at once",
                self.whom(whose),
                self.faults.of(whose).map_or(0, |record| record.health.failures()),
            ),
            Rest::Fine | Rest::Backoff(_) => format!(
                "server `{name}` is not running: {trouble}; `mcpx status {name}` shows its state",
            ),
        };
        Refused::unavailable(text)
    }

    /// Why a start that callers waited for failed.
    pub(super) fn start_refusal(&self, now: Instant, whose: &FaultKey) -> Refused {
        let rest = self.faults.phase(whose);
        let Rest::Backoff(until) = rest else { return self.refusal(whose) };
        let name = &self.def.key;
        Refused::unavailable(format!(
            "server `{name}` could not be started: {}; it is tried again in {} s, `mcpx logs \
             {name}` shows more",
            self.trouble(whose),
            until.saturating_duration_since(now).as_secs_f32().ceil(),
        ))
    }

    /// An instance went before its list was read.
    pub(super) fn unlisted(&self, id: InstanceId) -> RouteAnswer {
        let (why, stderr) =
            self.members.get(&id).map_or(("it ended", Vec::new()), Member::farewell);
        let name = &self.def.key;
        RouteAnswer::Refused(Refused::unavailable(format!(
            "server `{name}` was gone before its tools were listed: {}; `mcpx logs {name}` shows \
             more",
            quoted(why, &stderr),
        )))
    }

    /// For whom; nothing where it is for everybody.
    fn whom(&self, whose: &FaultKey) -> String {
        if self.faults.is_everybodys() { String::new() } else { whose.text() }
    }

    fn trouble(&self, whose: &FaultKey) -> String {
        let end = self.faults.of(whose).and_then(|record| record.end.as_ref());
        end.map_or_else(
            || "nothing is known of it".to_owned(),
            |end| quoted(&end.text, &end.stderr),
        )
    }

    pub(super) fn status(&self, now: Instant) -> PoolStatus {
        let worst = self.worst(now);
        let trouble = worst.as_ref().map(|worst| worst.word);
        let is = |test: fn(&Member) -> bool| self.members.values().any(test);
        let state = match trouble {
            _ if self.faults.is_stopped() => "stopped",
            Some(word @ ("parked" | "backoff")) => word,
            _ if is(|member| member.settled().is_some()) => "ready",
            _ if is(Member::is_starting) => "starting",
            _ => "idle",
        };
        let record = worst.as_ref().map(|worst| worst.record);
        let end = record.and_then(|record| record.end.as_ref());
        let rest = record.map_or(Rest::Fine, |record| record.health.phase());
        let retry = match rest {
            Rest::Backoff(until) if until > now => Some(until.duration_since(now).as_millis()),
            Rest::Backoff(_) | Rest::Fine | Rest::Parked { .. } => None,
        };
        let whom = worst.as_ref().and_then(|worst| worst.key).map(FaultKey::text);
        PoolStatus {
            actor: self.actor_number(),
            server: self.def.key.clone(),
            namespace: self.def.namespace.clone(),
            state,
            retry_in_ms: retry.map(|millis| u64::try_from(millis).unwrap_or(u64::MAX)),
            permanent: rest == Rest::Parked { permanent: true },
            reason: end.map(|end| match whom.as_deref().map(str::trim_start) {
                None | Some("") => end.text.clone(),
                Some(whom) => format!("{whom}: {}", end.text),
            }),
            stderr: end.map(|end| end.stderr.clone()).unwrap_or_default(),
            failures: worst.as_ref().map_or(0, |worst| worst.failures),
            restarts: self.faults.restarts(),
            waiting: self.routes.waiting(),
            instances: self.members.iter().map(|(id, member)| member.status(now, *id)).collect(),
        }
    }

    /// What keeps callers longest from an instance: a parked key before one in backoff, and both
    /// before one that runs again after its failures.
    fn worst(&self, now: Instant) -> Option<Worst<'_>> {
        let sustained = self.shared.settings().pool.sustained_uptime;
        let records = self.faults.records().map(|(key, record)| {
            let members = || {
                let all = self.members.values();
                all.filter(|member| key.is_none_or(|key| member.whose == *key))
            };
            let runs = members().any(|member| member.is_starting() || member.settled().is_some());
            let (rank, word) = match record.health.phase() {
                _ if runs => (0, "runs"),
                Rest::Parked { .. } => (2, "parked"),
                Rest::Backoff(until) if until > now => (1, "backoff"),
                Rest::Backoff(_) | Rest::Fine => (0, "idle"),
            };
            // Forgotten when the instance ends; shown as what it is before that (F29).
            let healthy = members()
                .any(|member| member.settled().is_some() && member.uptime(now) >= sustained);
            let failures = if healthy { 0 } else { record.health.failures() };
            (rank, Worst { key, record, word, failures })
        });
        records.max_by_key(|(rank, worst)| (*rank, worst.failures)).map(|(_, worst)| worst)
    }

    pub(super) fn protocol(&self) -> ProtocolStatus {
        let settings = self.shared.settings();
        let mut own = self.members.values().filter(|member| member.key.lane == Lane::Shared);
        let settled = own.find_map(Member::settled);
        ProtocolStatus {
            server: self.def.key.clone(),
            preference: preference_word(self.def.preference(settings.upstream.protocol)),
            pin: self.def.revision.map(|pin| pin.to_string()),
            era: settled.map(|settled| settled.revision.era().to_string()),
            revision: settled.map(|settled| settled.revision.to_string()),
            era_source: settled.map(|settled| settled.source),
            cached: self.shared.shop().eras.get(&self.def),
            legacy_lane: self.follows().then(|| self.legacy_lane_text()),
        }
    }

    pub(super) fn logs(&self) -> Vec<InstanceLog> {
        let dead = self.last_words.iter().map(|(id, ring)| (*id, false, ring));
        let live = self
            .members
            .iter()
            .filter_map(|(id, member)| Some((*id, true, member.stderr.as_ref()?)));
        dead.chain(live)
            .map(|(id, alive, ring)| InstanceLog { instance: id.0, alive, ring: ring.clone() })
            .collect()
    }
}

/// Of all that is remembered, what is shown.
struct Worst<'a> {
    key: Option<&'a FaultKey>,
    record: &'a Record,
    word: &'static str,
    failures: u32,
}

/// What happened, with the last lines of stderr.
fn quoted(text: &str, stderr: &[String]) -> String {
    let mut text = text.to_owned();
    if stderr.is_empty() {
        return text;
    }
    text.push_str("; its last words on stderr:");
    for line in stderr.iter().skip(stderr.len().saturating_sub(QUOTED)) {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text.push('\n');
    text
}
