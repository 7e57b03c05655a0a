//! A pool's thinking: synchronous, one method for each thing that happens.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ractor::{ActorCell, ActorRef, ActorRuntime, RpcReplyPort};

use super::directory::{Lane, Route, RouteKey, Routes, ScopeKey};
use super::faults::{FaultKey, Faults};
use super::lanes::LegacyLane;
use super::member::{Member, Phase};
use super::plan::{Admission, Life, Phase as Rest, Rules};
use super::{PoolArgs, PoolMsg, RouteAnswer, answer};
use crate::actors::catalog::Listing;
use crate::actors::events::Event;
use crate::actors::inside::meter::{Meter, Restart};
use crate::actors::instance::{End, EndKind, Fault, Instance, InstanceArgs, InstanceId, Reach};
use crate::actors::support::timer::Timer;
use crate::actors::upstreams::{Caller, Shared};
use crate::protocol::era_record::EraRecord;
use crate::protocol::session::upstream::{ListKind, Settled};
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
    pub(super) faults: Faults,
    pub(super) members: BTreeMap<InstanceId, Member>,
    waiting: HashMap<RouteKey, Waiting>,
    /// What is known of the second lane of a server that follows.
    pub(super) legacy_lane: LegacyLane,
    /// Keys that are to have an instance as soon as the rest is over; with their project folders.
    pub(super) wanted: BTreeMap<RouteKey, Option<Arc<Path>>>,
    /// The stderr of the instance that ended last.
    pub(super) last_words: Option<(InstanceId, StderrRing)>,
    pub(super) draining: bool,
    pub(super) stop_replies: Vec<RpcReplyPort<()>>,
    timer: Timer,
    armed: Option<Instant>,
    meter: Arc<Meter>,
}

impl PoolState {
    pub(super) fn new(me: ActorRef<PoolMsg>, args: PoolArgs) -> Self {
        let mut state = Self::with(me, args);
        state.begin_lanes();
        state
    }

    fn with(me: ActorRef<PoolMsg>, args: PoolArgs) -> Self {
        let meter = args.shared.shop().meters.of(&args.def.key);
        Self {
            me,
            meter,
            def: args.def,
            routes: args.routes,
            shared: args.shared,
            faults: Faults::default(),
            members: BTreeMap::new(),
            waiting: HashMap::new(),
            legacy_lane: LegacyLane::default(),
            wanted: BTreeMap::new(),
            last_words: None,
            draining: false,
            stop_replies: Vec::new(),
            timer: Timer::new(),
            armed: None,
        }
    }

    /// Another generation of this server begins: who listened to the one before listens to this one.
    pub(super) fn begin(&mut self) {
        self.shared.shop().subs.generation(&self.def);
        self.want_watched();
        if !self.wanted.is_empty() {
            // Not here: nothing may keep a supervisor from starting its next child.
            let _ = self.me.cast(PoolMsg::DeadlineDue);
        }
    }

    /// Somebody listens, and nobody else will call for an instance.
    pub(super) fn want_watched(&mut self) {
        for caller in self.shared.shop().subs.listeners(&self.def) {
            let scope = ScopeKey::of(self.def.scope, &caller, || 0);
            let key = RouteKey { scope, lane: Lane::Shared };
            if self.count(&key) == 0 {
                self.want_again(&key, caller.project);
            }
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
        if key.lane == Lane::Legacy && self.legacy_lane.is_shared() {
            return answer(reply, RouteAnswer::Moved);
        }
        let waiting = self.waiting.entry(key.clone()).or_default();
        waiting.ports.retain(|port| !port.is_closed());
        waiting.ports.push(reply);
        waiting.project.clone_from(&caller.project);
        self.wish(now, key);
    }

    /// Callers wait for `key`: starts an instance, or says why not. Started once however many ask
    /// (F33); not before the one before it is gone, so that there is never more than one; and while
    /// the one start that a rest allows is under way, its end is waited for.
    fn wish(&mut self, now: Instant, key: RouteKey) {
        if self.is_starting(&key) || self.count(&key) >= self.def.max.max(1) {
            return;
        }
        if self.waits_for_the_shared_lane(&key) {
            return;
        }
        let project = self.waiting.get(&key).and_then(|waiting| waiting.project.clone());
        let whose = FaultKey::of(&key, project.as_ref());
        if self.is_tried(&whose) {
            return;
        }
        match self.faults.admit(now, &whose) {
            Admission::Start => self.start_instance(now, key, project, None),
            Admission::Wait(_) => {
                self.wanted.insert(key, project);
            }
            Admission::Refuse => {
                let refused = RouteAnswer::Refused(self.refusal(&whose));
                self.answer_waiting(&key, &refused);
            }
        }
    }

    /// Whether `whose` is at rest and a start is under way that will say more.
    fn is_tried(&self, whose: &FaultKey) -> bool {
        let mut starting = self.members.values().filter(|member| member.is_starting());
        starting.any(|member| self.faults.is_trial(&member.whose, whose))
    }

    pub(super) fn crowded(&mut self, now: Instant, key: RouteKey, caller: &Caller) {
        let whose = FaultKey::of(&key, caller.project.as_ref());
        let may = self.faults.phase(&whose) == Rest::Fine && !self.is_over();
        if may && !self.is_starting(&key) && self.count(&key) < self.def.max {
            self.start_instance(now, key, caller.project.clone(), None);
        }
    }

    fn count(&self, key: &RouteKey) -> usize {
        self.members.values().filter(|member| member.key == *key).count()
    }

    pub(super) fn is_starting(&self, key: &RouteKey) -> bool {
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
        let whose = FaultKey::of(&key, project.as_ref());
        let id = InstanceId(self.shared.next_number());
        let without_probe = remembered.is_some();
        // What is listed is the server's own session, whoever calls (P-18).
        let read_lists = match key.lane {
            Lane::Shared => self.lists_to_read(),
            Lane::Legacy => Vec::new(),
        };
        let args = InstanceArgs {
            id,
            def: Arc::clone(&self.def),
            key: key.clone(),
            project: project.clone(),
            remembered,
            read_lists,
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
                    whose,
                    project,
                    actor,
                    started: now,
                    phase: Phase::Starting,
                    pid: None,
                    stderr: None,
                    reach: None,
                    without_probe,
                    abandoned: false,
                    list_waiters: Vec::new(),
                };
                self.members.insert(id, member);
            }
            Err(error) => {
                let text = format!("mcpx itself failed: {error}");
                let kind = EndKind::StartFailed { fault: Fault::Passing };
                let end = End { kind, text, stderr: Vec::new() };
                self.start_failed(now, &key, project, now, end);
            }
        }
    }

    /// Each start reads the lists again and the catalog compares (F38); but with an instance for each
    /// call, only lists that nobody has read yet are worth the time.
    fn lists_to_read(&self) -> Vec<ListKind> {
        let catalog = &self.shared.shop().catalog;
        let is_whole = |kind| catalog.listing(&self.def.key, kind) == Some(Listing::Whole);
        let wanted = |kind: &ListKind| self.def.scope != Scope::Call || !is_whole(*kind);
        ListKind::ALL.into_iter().filter(wanted).collect()
    }

    pub(super) fn spawned(
        &mut self,
        id: InstanceId,
        pid: Option<u32>,
        stderr: StderrRing,
        reach: Reach,
    ) {
        if let Some(member) = self.members.get_mut(&id) {
            member.pid = pid;
            member.stderr = Some(stderr);
            member.reach = Some(reach);
        }
    }

    pub(super) fn renewed(&mut self, id: InstanceId, renewed: Arc<Settled>) {
        let phase = self.members.get_mut(&id).map(|member| &mut member.phase);
        if let Some(Phase::Ready { settled, .. }) = phase {
            *settled = renewed;
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
        let era = settled.revision.era();
        member.phase = Phase::Ready { since: now, settled, route };
        self.meter.started();
        let key = member.key.clone();
        self.wanted.remove(&key);
        self.faults.ready(&member.whose);
        self.answer_waiting(&key, &RouteAnswer::Ready);
        self.lane_opened(&key, era);
        self.serve(now);
    }

    pub(super) fn leaving(&mut self, id: InstanceId, why: String) {
        if let Some(member) = self.members.get_mut(&id) {
            member.leave(clock::now(), why);
        }
        self.answer_list_waiters(id);
    }

    pub(super) fn ended(&mut self, now: Instant, id: InstanceId, end: End) {
        self.answer_list_waiters(id);
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
                self.faults.ended_well(&member.whose, &rules, uptime);
                self.emit(Some(id), "server.stopped", &format!("stopped: {}", end.text));
            }
            EndKind::RestartLegacy if !member.without_probe && !self.is_over() => {
                let record = EraRecord::ended_on_probe();
                self.meter.restarted(Restart::Reopened, &end.text);
                self.start_instance(now, member.key, member.project, Some(record));
            }
            EndKind::RestartLegacy | EndKind::StartFailed { .. } => {
                self.meter.restarted(Restart::StartFailed, &end.text);
                self.start_failed(now, &member.key, member.project, member.started, end);
            }
            EndKind::Died { cleanly } => {
                self.meter.restarted(Restart::Crashed, &end.text);
                self.emit(Some(id), "server.crashed", &format!("died: {}", end.text));
                // A session that is over has no failures any more.
                if !(member.abandoned && matches!(member.key.scope, ScopeKey::Session(_))) {
                    self.failed(now, &member.whose, Life { started: member.started, uptime }, end);
                }
                // A server that leaves by itself after a good while wants to be started on demand.
                let watched = self.shared.shop().subs.is_watched(&self.def, &member.key.scope);
                let satisfied = cleanly && uptime >= rules.sustained && !watched;
                if !(member.abandoned || satisfied) {
                    self.want_again(&member.key, member.project);
                }
            }
        }
        self.serve(now);
    }

    /// Counts a failure, and forgets what is beyond the bound: nothing is wanted for that any more.
    fn failed(&mut self, now: Instant, whose: &FaultKey, life: Life, end: End) {
        let rules = self.rules();
        self.faults.failed(now, whose, &rules, life, (end, clock::random()));
        while let Some(surplus) = self.faults.surplus(self.shared.settings().pool.fault_memory) {
            self.faults.remove(&surplus);
            self.wanted.retain(|key, project| FaultKey::of(key, project.as_ref()) != surplus);
        }
        if let Rest::Parked { .. } = self.faults.phase(whose) {
            self.emit_text(None, "server.parked", self.refusal(whose).text);
        }
    }

    fn start_failed(
        &mut self,
        now: Instant,
        key: &RouteKey,
        project: Option<Arc<Path>>,
        started: Instant,
        end: End,
    ) {
        let whose = FaultKey::of(key, project.as_ref());
        if self.lane_failed(key, &whose, &end) {
            return;
        }
        self.emit(None, "server.failed", &format!("could not be started: {}", end.text));
        self.failed(now, &whose, Life { started, uptime: Duration::ZERO }, end);
        // It was the trial of all whom its failure concerns, and is the answer of all of them.
        let concerned: Vec<RouteKey> = self
            .waiting
            .iter()
            .filter(|(other, waiting)| {
                let others = FaultKey::of(other, waiting.project.as_ref());
                *other == key || (self.faults.is_trial(&whose, &others) && !self.is_starting(other))
            })
            .map(|(other, _)| other.clone())
            .collect();
        let refused = RouteAnswer::Refused(self.start_refusal(now, &whose));
        for other in concerned {
            self.answer_waiting(&other, &refused);
        }
        self.want_again(key, project);
    }

    /// Somebody waits for the list of the instance that serves `key`, and wants to hear if it goes.
    pub(super) fn until_gone(
        &mut self,
        key: &RouteKey,
        caller: &Caller,
        reply: RpcReplyPort<RouteAnswer>,
    ) {
        let found = self.members.iter_mut().filter(|(_, member)| member.key == *key);
        let Some((id, member)) = found.max_by_key(|(id, member)| (!member.is_leaving(), **id))
        else {
            let refused = self.refusal(&FaultKey::of(key, caller.project.as_ref()));
            return answer(reply, RouteAnswer::Refused(refused));
        };
        member.list_waiters.retain(|port| !port.is_closed());
        member.list_waiters.push(reply);
        if member.is_leaving() {
            let id = *id;
            self.answer_list_waiters(id);
        }
    }

    fn answer_list_waiters(&mut self, id: InstanceId) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let ports = std::mem::take(&mut member.list_waiters);
        if ports.is_empty() {
            return;
        }
        let what = if self.draining { RouteAnswer::Moved } else { self.unlisted(id) };
        for port in ports {
            answer(port, what.clone());
        }
    }

    /// An instance that was in use comes back by itself, when the rest is over.
    pub(super) fn want_again(&mut self, key: &RouteKey, project: Option<Arc<Path>>) {
        let over = matches!(key.scope, ScopeKey::Call(_))
            || self.is_over()
            || (key.lane == Lane::Legacy && (self.legacy_lane.is_shared() || !self.follows()));
        if !over {
            self.wanted.insert(key.clone(), project);
        }
    }

    /// Its actor's number in this process.
    pub(super) fn actor_number(&self) -> u64 {
        self.me.get_id().pid()
    }

    /// An operator starts it again.
    pub(super) fn noted_operator(&self) {
        self.meter.restarted(Restart::Operator, "an operator restarts it");
    }

    /// Nothing is started any more.
    fn is_over(&self) -> bool {
        self.draining || self.faults.is_stopped()
    }

    /// An instance's actor ended without a word.
    pub(super) fn lost(&mut self, now: Instant, who: &ActorCell, text: String) {
        let found = self.members.iter().find(|(_, member)| member.actor.get_id() == who.get_id());
        let Some((id, member)) = found.map(|(id, member)| (*id, member)) else { return };
        let kind = if member.is_starting() {
            EndKind::StartFailed { fault: Fault::Passing }
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
        for (key, project) in self.wanted.clone() {
            let whose = FaultKey::of(&key, project.as_ref());
            let room = !self.is_starting(&key) && self.count(&key) < self.def.max.max(1);
            // After a failure one start goes ahead of the others, as a trial.
            if room && self.faults.may_start(now, &whose) && !self.is_tried(&whose) {
                self.start_instance(now, key, project, None);
            }
        }
        let keys: Vec<_> = self.waiting.keys().cloned().collect();
        for key in keys {
            self.wish(now, key);
        }
    }

    /// The keys of a lane that callers wait for.
    pub(super) fn waiting_keys(&self, lane: Lane) -> Vec<RouteKey> {
        self.waiting.keys().filter(|key| key.lane == lane).cloned().collect()
    }

    pub(super) fn answer_waiting(&mut self, key: &RouteKey, what: &RouteAnswer) {
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
        let rests = self.wanted.iter().filter_map(|(key, project)| {
            match self.faults.phase(&FaultKey::of(key, project.as_ref())) {
                Rest::Backoff(until) if until > now => Some(until),
                Rest::Backoff(_) | Rest::Fine | Rest::Parked { .. } => None,
            }
        });
        let Some(next) = due.chain(rests).min() else { return };
        if self.armed.is_none_or(|armed| next < armed) {
            self.armed = Some(next);
            self.timer.set(&self.me, Some(next), PoolMsg::DeadlineDue);
        }
    }

    /// Nobody will use this scope key again.
    pub(super) fn scope_ended(&mut self, scope: &ScopeKey) {
        self.wanted.retain(|key, _| key.scope != *scope);
        self.waiting.retain(|key, _| key.scope != *scope);
        self.faults.forget(scope);
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
