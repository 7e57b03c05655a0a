//! A pool's thinking: synchronous, one method for each thing that happens.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ractor::{ActorCell, ActorRef, ActorRuntime, RpcReplyPort};

use super::directory::{Route, RouteKey, Routes, ScopeKey};
use super::member::{Member, Phase};
use super::plan::{Admission, Health, Phase as Rest, Rules};
use super::{PoolArgs, PoolMsg, RouteAnswer, answer};
use crate::actors::catalog::Listing;
use crate::actors::events::Event;
use crate::actors::instance::{End, EndKind, Instance, InstanceArgs, InstanceId};
use crate::actors::support::timer::Timer;
use crate::actors::upstreams::{Caller, Shared};
use crate::protocol::era_record::EraRecord;
use crate::protocol::session::upstream::Settled;
use crate::settings::{Scope, ServerDef, Settings};
use crate::transport::clock;
use crate::transport::stdio::ring::StderrRing;

/// Callers of one key that wait for an instance.
#[derive(Debug, Default)]
struct Waiting {
    project: Option<Arc<Path>>,
    ports: Vec<RpcReplyPort<RouteAnswer>>,
}

/// See [`super`].
#[derive(Debug)]
pub struct PoolState {
    me: ActorRef<PoolMsg>,
    pub(super) def: Arc<ServerDef>,
    pub(super) routes: Arc<Routes>,
    pub(super) shared: Arc<Shared>,
    pub(super) health: Health,
    pub(super) members: BTreeMap<InstanceId, Member>,
    waiting: HashMap<RouteKey, Waiting>,
    /// Keys that are to have an instance as soon as the rest is over; with their project folders.
    pub(super) wanted: BTreeMap<RouteKey, Option<Arc<Path>>>,
    /// How the last instance ended that did not end well.
    pub(super) trouble: Option<End>,
    /// The stderr of the instance that ended last.
    pub(super) last_words: Option<(InstanceId, StderrRing)>,
    pub(super) draining: bool,
    pub(super) stop_replies: Vec<RpcReplyPort<()>>,
    timer: Timer,
    armed: Option<Instant>,
}

impl PoolState {
    pub(super) fn new(me: ActorRef<PoolMsg>, args: PoolArgs) -> Self {
        Self {
            me,
            def: args.def,
            routes: args.routes,
            shared: args.shared,
            health: Health::default(),
            members: BTreeMap::new(),
            waiting: HashMap::new(),
            wanted: BTreeMap::new(),
            trouble: None,
            last_words: None,
            draining: false,
            stop_replies: Vec::new(),
            timer: Timer::new(),
            armed: None,
        }
    }

    fn rules(&self) -> Rules {
        Rules::from(&self.shared.settings().pool)
    }

    pub(super) fn get_route(
        &mut self,
        now: Instant,
        key: RouteKey,
        caller: &Caller,
        reply: RpcReplyPort<RouteAnswer>,
    ) {
        if self.draining {
            return answer(reply, RouteAnswer::Moved);
        }
        if self.routes.find(&key).is_some() {
            return answer(reply, RouteAnswer::Ready);
        }
        let waiting = self.waiting.entry(key.clone()).or_default();
        waiting.ports.retain(|port| !port.is_closed());
        waiting.ports.push(reply);
        waiting.project.clone_from(&caller.project);
        self.wish(now, key);
    }

    /// Callers wait for `key`: starts an instance, or says why not. Started once however many ask
    /// (F33); not before the one before it is gone, so that there is never more than one.
    fn wish(&mut self, now: Instant, key: RouteKey) {
        if self.is_starting(&key) || self.count(&key) >= self.def.max.max(1) {
            return;
        }
        let project = self.waiting.get(&key).and_then(|waiting| waiting.project.clone());
        match self.health.admit(now) {
            Admission::Start => self.start_instance(now, key, project, None),
            Admission::Wait(_) => {
                self.wanted.insert(key, project);
            }
            Admission::Refuse => self.answer_waiting(&key, &RouteAnswer::Refused(self.refusal())),
        }
    }

    pub(super) fn crowded(&mut self, now: Instant, key: RouteKey, caller: &Caller) {
        let may = self.health.phase() == Rest::Fine && !self.draining;
        if may && !self.is_starting(&key) && self.count(&key) < self.def.max {
            self.start_instance(now, key, caller.project.clone(), None);
        }
    }

    fn count(&self, key: &RouteKey) -> usize {
        self.members.values().filter(|member| member.key == *key).count()
    }

    fn is_starting(&self, key: &RouteKey) -> bool {
        self.members.values().any(|member| member.key == *key && member.is_starting())
    }

    fn start_instance(
        &mut self,
        now: Instant,
        key: RouteKey,
        project: Option<Arc<Path>>,
        remembered: Option<EraRecord>,
    ) {
        self.wanted.remove(&key);
        let id = InstanceId(self.shared.next_number());
        let without_probe = remembered.is_some();
        let args = InstanceArgs {
            id,
            def: Arc::clone(&self.def),
            key: key.clone(),
            project: project.clone(),
            remembered,
            read_tools: self.reads_tools(),
            settings: self.shared.settings(),
            routes: Arc::clone(&self.routes),
            shop: self.shared.shop().clone(),
            pool: self.me.clone(),
        };
        // Instantly: awaiting a child's start would stall every caller of this server. Its
        // `pre_start` cannot fail, so nobody needs to watch the join handle.
        let spawned = ActorRuntime::spawn_linked_instant(None, Instance, args, self.me.get_cell());
        match spawned {
            Ok((actor, _)) => {
                let member = Member {
                    key,
                    project,
                    actor,
                    started: now,
                    phase: Phase::Starting,
                    pid: None,
                    stderr: None,
                    without_probe,
                    abandoned: false,
                };
                self.members.insert(id, member);
            }
            Err(error) => {
                let text = format!("mcpx itself failed: {error}");
                let kind = EndKind::StartFailed { permanent: false };
                self.start_failed(now, &key, project, End { kind, text, stderr: Vec::new() });
            }
        }
    }

    /// Each start reads the list again and the catalog compares (F38); but with an instance for each
    /// call, only a list that nobody has read yet is worth the time.
    fn reads_tools(&self) -> bool {
        self.def.scope != Scope::Call
            || self.shared.shop().catalog.listing(&self.def.key) != Some(Listing::Whole)
    }

    pub(super) fn spawned(&mut self, id: InstanceId, pid: Option<u32>, stderr: StderrRing) {
        if let Some(member) = self.members.get_mut(&id) {
            member.pid = pid;
            member.stderr = Some(stderr);
        }
    }

    pub(super) fn ready(
        &mut self,
        now: Instant,
        id: InstanceId,
        settled: Arc<Settled>,
        route: Arc<Route>,
    ) {
        let Some(member) = self.members.get_mut(&id) else { return };
        if member.is_leaving() {
            return;
        }
        member.phase = Phase::Ready { since: now, settled, route };
        let key = member.key.clone();
        self.wanted.remove(&key);
        self.health.ready();
        self.answer_waiting(&key, &RouteAnswer::Ready);
        self.serve(now);
    }

    pub(super) fn leaving(&mut self, id: InstanceId) {
        if let Some(member) = self.members.get_mut(&id) {
            member.leave(clock::now());
        }
    }

    pub(super) fn ended(&mut self, now: Instant, id: InstanceId, end: End) {
        let Some(member) = self.members.remove(&id) else { return };
        member.actor.stop(None);
        self.routes.remove(&member.key, id);
        if let Some(ring) = &member.stderr {
            self.last_words = Some((id, ring.clone()));
        }
        let rules = self.rules();
        let uptime = member.uptime(now);
        match end.kind {
            EndKind::Wanted => {
                self.health.ended_well(&rules, uptime);
                self.emit(Some(id), "server.stopped", &format!("stopped: {}", end.text));
            }
            EndKind::RestartLegacy if !member.without_probe && !self.is_over() => {
                let record = EraRecord::ended_on_probe();
                self.start_instance(now, member.key, member.project, Some(record));
            }
            EndKind::RestartLegacy | EndKind::StartFailed { .. } => {
                self.start_failed(now, &member.key, member.project, end);
            }
            EndKind::Died { cleanly } => {
                self.health.failed(now, &rules, uptime, clock::random());
                self.emit(Some(id), "server.crashed", &format!("died: {}", end.text));
                self.trouble = Some(end);
                self.note_parked();
                // A server that leaves by itself after a good while wants to be started on demand.
                let satisfied = cleanly && uptime >= rules.sustained;
                if !(member.abandoned || satisfied) {
                    self.want_again(&member.key, member.project);
                }
            }
        }
        self.serve(now);
    }

    fn start_failed(&mut self, now: Instant, key: &RouteKey, project: Option<Arc<Path>>, end: End) {
        let rules = self.rules();
        if end.kind == (EndKind::StartFailed { permanent: true }) {
            self.health.failed_for_good(now, &rules);
        } else {
            self.health.failed(now, &rules, Duration::ZERO, clock::random());
        }
        self.emit(None, "server.failed", &format!("could not be started: {}", end.text));
        self.trouble = Some(end);
        self.note_parked();
        self.answer_waiting(key, &RouteAnswer::Refused(self.start_refusal(now)));
        self.want_again(key, project);
    }

    fn note_parked(&self) {
        if let Rest::Parked { .. } = self.health.phase() {
            self.emit_text(None, "server.parked", self.refusal().text);
        }
    }

    /// An instance that was in use comes back by itself, when the rest is over.
    pub(super) fn want_again(&mut self, key: &RouteKey, project: Option<Arc<Path>>) {
        let over = matches!(key.scope, ScopeKey::Call(_)) || self.is_over();
        if !over {
            self.wanted.insert(key.clone(), project);
        }
    }

    /// Nothing is started any more.
    fn is_over(&self) -> bool {
        self.draining || self.health.phase() == Rest::Stopped
    }

    /// An instance's actor ended without a word.
    pub(super) fn lost(&mut self, now: Instant, who: &ActorCell, text: String) {
        let found = self.members.iter().find(|(_, member)| member.actor.get_id() == who.get_id());
        let Some((id, member)) = found.map(|(id, member)| (*id, member)) else { return };
        let kind = if member.is_starting() {
            EndKind::StartFailed { permanent: false }
        } else {
            EndKind::Died { cleanly: false }
        };
        let stderr = member.stderr.as_ref().map(|ring| ring.tail(usize::MAX)).unwrap_or_default();
        self.ended(now, id, End { kind, text, stderr });
    }

    /// Starts what may be started now, and ends what is over.
    pub(super) fn serve(&mut self, now: Instant) {
        if self.members.is_empty() {
            for reply in self.stop_replies.drain(..) {
                answer(reply, ());
            }
            if self.draining {
                self.me.stop(None);
                return;
            }
        }
        while self.health.may_start(now) {
            // After a failure one start goes ahead of the others, as a trial.
            let trial = matches!(self.health.phase(), Rest::Backoff(_));
            if trial && self.members.values().any(Member::is_starting) {
                break;
            }
            let next = self
                .wanted
                .keys()
                .find(|key| !self.is_starting(key) && self.count(key) < self.def.max.max(1));
            let Some(key) = next.cloned() else { break };
            let project = self.wanted.remove(&key).flatten();
            self.start_instance(now, key, project, None);
        }
        let keys: Vec<_> = self.waiting.keys().cloned().collect();
        for key in keys {
            self.wish(now, key);
        }
    }

    fn answer_waiting(&mut self, key: &RouteKey, what: &RouteAnswer) {
        for port in self.waiting.remove(key).unwrap_or_default().ports {
            answer(port, what.clone());
        }
    }

    pub(super) fn answer_all(&mut self, what: &RouteAnswer) {
        for (_, waiting) in self.waiting.drain() {
            for port in waiting.ports {
                answer(port, what.clone());
            }
        }
    }

    pub(super) fn deadline_due(&mut self, now: Instant) {
        self.timer.fired();
        self.armed = None;
        let settings = self.shared.settings();
        let idle = self.idle_limit(&settings);
        for member in self.members.values() {
            if member.idle_due(now, idle).is_some_and(|due| due <= now) {
                member.stop_if_idle();
            }
        }
        self.serve(now);
    }

    fn idle_limit(&self, settings: &Settings) -> Duration {
        self.def.idle_timeout.unwrap_or(settings.pool.idle)
    }

    /// Arms the one timer for the end of the rest and for the first idle instance. Only ever moved
    /// forward: being early costs one look.
    pub(super) fn arm(&mut self, now: Instant) {
        let idle = self.idle_limit(&self.shared.settings());
        let due = self.members.values().filter_map(|member| member.idle_due(now, idle));
        let rest = match self.health.phase() {
            Rest::Backoff(until) if !self.wanted.is_empty() => Some(until),
            _ => None,
        };
        let Some(next) = due.chain(rest.filter(|until| *until > now)).min() else { return };
        if self.armed.is_none_or(|armed| next < armed) {
            self.armed = Some(next);
            self.timer.set(&self.me, Some(next), PoolMsg::DeadlineDue);
        }
    }

    /// Nobody will use this scope key again.
    pub(super) fn scope_ended(&mut self, scope: &ScopeKey) {
        self.wanted.retain(|key, _| key.scope != *scope);
        self.waiting.retain(|key, _| key.scope != *scope);
        let now = clock::now();
        for member in self.members.values_mut().filter(|member| member.key.scope == *scope) {
            member.abandoned = true;
            member.stop(now, "its caller is gone", Duration::ZERO);
        }
    }

    fn emit(&self, id: Option<InstanceId>, kind: &'static str, what: &str) {
        self.emit_text(id, kind, format!("server `{}` {what}", self.def.key));
    }

    fn emit_text(&self, id: Option<InstanceId>, kind: &'static str, text: String) {
        let mut event = Event::new(kind, text).of_server(self.def.key.as_str());
        if let Some(id) = id {
            event = event.of_instance(id.to_string());
        }
        self.shared.shop().events.emit(event);
    }
}
