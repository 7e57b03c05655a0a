//! An instance's thinking: synchronous, one method for each thing that happens.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ractor::{ActorRef, RpcReplyPort};

use super::connect::{Connected, Reached};
use super::http::Sse;
use super::keeper::Keeper;
use super::noise::NoiseGate;
use super::reader::read;
use super::remote::Remote;
use super::spec::{self, NotStarted};
use super::{End, EndKind, Fault, InstanceArgs, InstanceMsg, Reach, Sink};
use crate::actors::events::Event;
use crate::actors::inside::trace::{Tap, Way};
use crate::actors::pool::PoolMsg;
use crate::actors::pool::directory::{Lane, Load, Route};
use crate::actors::subs::Watching;
use crate::actors::support::task::{self, TaskGuard};
use crate::actors::support::timer::Timer;
use crate::protocol::Notice;
use crate::protocol::era_record::EraRecord;
use crate::protocol::jsonrpc::Frame;
use crate::protocol::session::pending::Pending;
use crate::protocol::session::probe::Preference;
use crate::protocol::session::upstream::{
    Call, ListKind, ListRead, OpenError, OpeningTimings, Settled, UpstreamConfig, UpstreamEvent,
    UpstreamOutput, UpstreamSession,
};
use crate::protocol::session::{Closed, Limit};
use crate::transport::clock;
use crate::transport::http::mask::Mask;
use crate::transport::link::{Link, LinkSender};
use crate::transport::stdio::child::{ExitReport, StopLadder};
use crate::transport::stdio::ring::StderrRing;

/// Readings of one list.
#[derive(Debug, Default)]
struct Readings {
    under_way: bool,
    /// When the last one came to its end.
    read_at: Option<Instant>,
    waiters: Vec<RpcReplyPort<()>>,
}

/// See [`super`].
#[derive(Debug)]
pub struct InstanceState {
    pub(super) args: InstanceArgs,
    pub(super) me: ActorRef<InstanceMsg>,
    load: Arc<Load>,
    pub(super) pending: Arc<Pending<Sink>>,
    pub(super) session: Option<UpstreamSession<Sink>>,
    link: Option<LinkSender>,
    /// Set where it is reached over HTTP.
    pub(super) remote: Option<Remote>,
    /// Set where it is reached over HTTP+SSE.
    pub(super) sse: Option<Sse>,
    /// Takes the server's secrets out of what is kept of its words.
    pub(super) mask: Mask,
    pub(super) tap: Tap,
    pub(super) tasks: Vec<TaskGuard>,
    keeper: Option<Keeper>,
    stderr: Option<StderrRing>,
    exit: Option<ExitReport>,
    pub(super) heard: bool,
    ready: bool,
    stopping: Option<(EndKind, &'static str)>,
    pub(super) end: Option<End>,
    reported: bool,
    lists: HashMap<ListKind, Readings>,
    pub(super) watching: Option<Watching>,
    /// Questions that belong to no call, with the tasks that have them answered.
    pub(super) unowned: HashMap<u64, TaskGuard>,
    /// Where it admits calls, once it does.
    pub(super) route: Option<Arc<Route>>,
    deadline: Option<Instant>,
    timer: Timer,
    silence: Timer,
    drain: Timer,
}

impl InstanceState {
    pub(super) fn start(me: ActorRef<InstanceMsg>, args: InstanceArgs) -> Self {
        let starting = {
            let (me, shop) = (me.clone(), args.shop.clone());
            let (def, settings) = (Arc::clone(&args.def), Arc::clone(&args.settings));
            let project = args.project.clone();
            task::spawn_guarded(async move {
                let outcome = spec::start(&shop, &def, project.as_deref(), &settings).await;
                // With a dead instance the connection falls, and its process with it.
                let _ = me.cast(InstanceMsg::Started { outcome: outcome.map(Box::new) });
            })
        };
        let trace = args.shop.traces.of(&args.def.key);
        trace.configure(args.settings.inside.trace);
        Self {
            tap: Tap { trace, instance: args.id, mask: Mask::default() },
            load: Arc::new(Load::new(me.clone())),
            me,
            args,
            pending: Arc::new(Pending::new()),
            session: None,
            link: None,
            remote: None,
            sse: None,
            mask: Mask::default(),
            tasks: vec![starting],
            keeper: None,
            stderr: None,
            exit: None,
            heard: false,
            ready: false,
            stopping: None,
            end: None,
            reported: false,
            lists: HashMap::new(),
            watching: None,
            unowned: HashMap::new(),
            route: None,
            deadline: None,
            timer: Timer::new(),
            silence: Timer::new(),
            drain: Timer::new(),
        }
    }

    pub(super) fn started(&mut self, now: Instant, outcome: Result<Box<Reached>, NotStarted>) {
        if self.end.is_some() {
            // Dropping what was started ends it.
            return;
        }
        match outcome.map(|reached| *reached) {
            Ok(Reached::Process(connected, mask)) => {
                self.mask = mask;
                self.run(now, connected);
            }
            Ok(Reached::Http(client)) => self.reached(now, client),
            Err(NotStarted { text, fault }) => self.finish(EndKind::StartFailed { fault }, text),
        }
    }

    /// The process runs.
    fn run(&mut self, now: Instant, connected: Connected) {
        let Connected { link, drain, process } = connected;
        let stderr = process.stderr();
        self.stderr = Some(stderr.clone());
        let gate = NoiseGate::new(&self.args.settings.process, stderr.clone());
        let (id, pid) = (self.args.id, process.pid());
        let reach = Reach { transport: "stdio", url: None };
        self.tell_pool(PoolMsg::Spawned { id, pid, stderr, reach });
        let plumbing = &self.args.settings.process;
        let ladder = StopLadder { drain: plumbing.drain, term: plumbing.term };
        let alive = &self.args.shop.alive;
        self.keeper = Some(Keeper::watch(process, drain, ladder, alive, self.me.clone()));
        let silent_at = now + self.args.settings.process.spawn;
        self.silence.set(&self.me, Some(silent_at), InstanceMsg::SilenceDue);
        self.attach(now, link, gate, self.config());
    }

    /// There is a link: reads it, writes it, opens a session over it.
    pub(super) fn attach(
        &mut self,
        now: Instant,
        link: Link,
        gate: NoiseGate,
        config: UpstreamConfig,
    ) {
        self.link = Some(link.sender);
        self.tap.mask = self.mask.clone();
        let reader = read(
            self.tap.clone(),
            link.reader,
            Arc::clone(&self.pending),
            self.me.clone(),
            self.args.settings.link.read_credits,
            gate,
        );
        self.tasks = vec![task::spawn_guarded(reader)];
        // Not guarded: what is queued (a cancellation, say) is still written when the instance ends.
        let (writer, me) = (link.writer, self.me.clone());
        task::spawn(async move {
            let why = writer.run().await;
            let _ = me.cast(InstanceMsg::WriterEnded { why });
        });
        let mut session = UpstreamSession::new(config, Arc::clone(&self.pending));
        session.open(now);
        self.session = Some(session);
        self.run_outputs(now);
    }

    /// What is known of the server from before.
    pub(super) fn remembered(&self) -> Option<EraRecord> {
        let InstanceArgs { def, settings, shop, remembered, .. } = &self.args;
        match remembered {
            Some(record) => Some(record.clone()),
            None if settings.upstream.era_cache => shop.eras.get(def),
            None => None,
        }
    }

    pub(super) fn config(&self) -> UpstreamConfig {
        let InstanceArgs { def, key, settings, shop, .. } = &self.args;
        let upstream = &settings.upstream;
        UpstreamConfig {
            preference: match key.lane {
                Lane::Shared => def.preference(upstream.protocol),
                // Forced: it neither heeds nor feeds the era cache (U-17, U-18).
                Lane::Legacy => Preference::ForceInitialize,
            },
            pin: def.revision,
            remembered: self.remembered(),
            info: shop.info.clone(),
            capabilities: self.declared(),
            most_questions: settings.elicit.max_open,
            timings: OpeningTimings {
                probe_patience: upstream.probe_patience,
                handshake: upstream.handshake,
                list: upstream.list,
                list_max_pages: upstream.list_max_pages,
                list_max_items: upstream.list_max_items,
                listen_reopen: upstream.listen_reopen,
                version_attempts: upstream.version_attempts,
                ping: upstream.ping,
            },
            http: None,
        }
    }

    pub(super) fn call(&mut self, now: Instant, mut call: Call<Sink>) {
        if self.end.is_some() {
            // Its sink says that it was not written; the caller looks for another instance.
            return;
        }
        call.sink.take();
        self.with_session(|session| session.start_call(now, call));
    }

    pub(super) fn with_session(&mut self, act: impl FnOnce(&mut UpstreamSession<Sink>)) {
        if let Some(session) = &mut self.session {
            act(session);
            self.run_outputs(clock::now());
        }
    }

    /// Does what the session says, and wakes it in time.
    pub(super) fn run_outputs(&mut self, now: Instant) {
        while let Some(output) = self.session.as_mut().and_then(UpstreamSession::poll_output) {
            match output {
                UpstreamOutput::Send(frame) => self.send(frame),
                UpstreamOutput::Exchange(exchange) => self.exchange(exchange),
                UpstreamOutput::Drop { tag } => self.drop_exchange(tag),
                UpstreamOutput::Event(event) => self.event(now, event),
                UpstreamOutput::Notice(notice) => self.emit(notice),
                UpstreamOutput::Close(why) => self.close(why),
            }
        }
        let Some(next) = self.session.as_ref().and_then(UpstreamSession::poll_deadline) else {
            return;
        };
        // Only ever moved forward: a deadline that has moved back costs one early look instead of a
        // new timer for each call.
        if self.end.is_none() && self.deadline.is_none_or(|armed| next < armed) {
            self.deadline = Some(next);
            self.timer.set(&self.me, Some(next), InstanceMsg::DeadlineDue);
        }
    }

    fn send(&mut self, frame: Frame) {
        let Some(link) = &self.link else { return };
        self.tap.pass(Way::To, || frame.to_bytes());
        if let Err(refused) = link.try_send(frame) {
            self.close(refused.to_string());
        }
    }

    pub(super) fn deadline_due(&mut self, now: Instant) {
        self.timer.fired();
        self.deadline = None;
        self.with_session(|session| session.handle_timeout(now));
    }

    /// Neither an answer nor a line on stderr: it hangs. One that says that it is busy (downloading
    /// itself, say) has until the end of the handshake's limit.
    pub(super) fn silence_due(&mut self) {
        self.silence.fired();
        let silent = self.stderr.as_ref().is_none_or(|ring| ring.tail(1).is_empty());
        if silent && !self.heard && !self.ready {
            let limit = Limit::time("process.spawn_timeout", self.args.settings.process.spawn);
            self.close(format!(
                "it gave no sign of life within {} of its start (setting {})",
                limit.value, limit.setting,
            ));
        }
    }

    fn event(&mut self, now: Instant, event: UpstreamEvent) {
        match event {
            UpstreamEvent::Settled(settled) => self.settled(now, settled),
            UpstreamEvent::Renewed(settled) => self.renewed(now, settled),
            UpstreamEvent::OpenFailed(error) => self.open_failed(&error),
            UpstreamEvent::Listed(kind, read) => self.list_came(now, kind, read),
            // The session reads them again by itself; the catalog compares (F38).
            UpstreamEvent::Changed(_) => {}
            UpstreamEvent::Noise(line) => {
                if let Some(ring) = &self.stderr {
                    ring.note(&format!("[stdout] {}", self.mask.text(line)));
                }
            }
            UpstreamEvent::Log(message) => {
                if let Some(watching) = &self.watching {
                    watching.logged(&message);
                }
                if let Some(ring) = &self.stderr {
                    let line = message.line(self.args.settings.process.stderr_line_bytes);
                    ring.note(&self.mask.text(line));
                }
            }
            UpstreamEvent::Watched { uri, outcome } => {
                if let Some(watching) = &self.watching {
                    watching.said(&uri, &outcome);
                }
            }
            UpstreamEvent::Updated { uri } => {
                if let Some(watching) = &self.watching {
                    watching.updated(&uri);
                }
            }
            UpstreamEvent::Foreign { method, params } => {
                if let Some(watching) = &self.watching {
                    watching.foreign(&method, params.as_ref());
                }
            }
            UpstreamEvent::Asked { number, question } => self.asked(number, question),
            UpstreamEvent::Withdrawn { number } => self.unasked(number),
            UpstreamEvent::Completed { id } => self.completed(&id),
            UpstreamEvent::Interactive => self.interactive(),
            UpstreamEvent::TaskChanged { id } => self.load.task_changed(&id),
            UpstreamEvent::Wedged(limit) => self.close(format!(
                "it did not answer a sign-of-life check within {} (setting {})",
                limit.value, limit.setting,
            )),
        }
    }

    /// The opening succeeded: calls are admitted from now on.
    fn settled(&mut self, now: Instant, settled: Settled) {
        let InstanceArgs { id, def, key, routes, shop, settings, .. } = &self.args;
        self.ready = true;
        if settled.stale {
            let text = format!("the remembered era of `{}` was wrong and is corrected", def.key);
            let event = Event::new("server.era.stale", text);
            shop.events.emit(event.of_server(def.key.as_str()).of_instance(id.to_string()));
        }
        if let Some(record) = &settled.record
            && settings.upstream.era_cache
        {
            let transport = self.transport();
            shop.eras.record(def, EraRecord { transport, ..record.clone() });
        }
        // The catalog shows the server's own session.
        if key.lane == Lane::Shared {
            shop.catalog.identified(
                &def.key,
                settled.info.clone(),
                settled.instructions.clone(),
                settled.capabilities.clone(),
            );
        }
        let permits = settings.pool.in_flight;
        let (pending, load) = (Arc::clone(&self.pending), Arc::clone(&self.load));
        let era = settled.revision.era();
        let route = Arc::new(Route::new(*id, pending, era, permits, load));
        self.route = Some(Arc::clone(&route));
        if self.stopping.is_none() {
            routes.add(key.clone(), Arc::clone(&route));
        }
        let whom = match key.lane {
            Lane::Shared => "",
            Lane::Legacy => " with callers of legacy revisions",
        };
        let text = format!("server `{}` speaks {}{whom}", def.key, settled.revision);
        let started = Event::new("server.started", text).of_server(def.key.as_str());
        shop.events.emit(started.of_instance(id.to_string()));
        let id = *id;
        self.tell_pool(PoolMsg::Ready { id, settled: Arc::new(settled), route });
        for kind in self.args.read_lists.clone() {
            self.read_list(now, kind);
        }
        let InstanceArgs { id, def, key, shop, .. } = &self.args;
        if self.stopping.is_none() {
            self.watching = shop.subs.instance_came(def, &key.scope, *id, self.me.clone());
        }
        self.watch(now);
    }

    /// Tells the session what the upstream is to tell of by itself; its outputs are still to be run.
    pub(super) fn watch(&mut self, now: Instant) {
        let Some(watching) = &self.watching else { return };
        let wanted = watching.wanted();
        // Somebody listens: it is not idle.
        self.load.hold(!wanted.is_empty());
        let roots_changed = watching.roots_changed();
        if let Some(session) = &mut self.session {
            session.watch(now, wanted);
            if roots_changed {
                session.roots_changed();
            }
        }
    }

    pub(super) fn read_list(&mut self, now: Instant, kind: ListKind) {
        if let Some(session) = &mut self.session {
            self.lists.entry(kind).or_default().under_way = true;
            session.read_list(now, kind);
        }
    }

    pub(super) fn read_again(&mut self, now: Instant, kind: ListKind, reply: RpcReplyPort<()>) {
        let interval = self.args.settings.upstream.relist_interval;
        let readings = self.lists.entry(kind).or_default();
        let fresh = readings.read_at.is_some_and(|at| now < at + interval);
        if self.end.is_some() || (fresh && !readings.under_way) {
            // Whoever asked may have given up.
            let _ = reply.send(());
            return;
        }
        readings.waiters.push(reply);
        if self.ready && !readings.under_way {
            self.read_list(now, kind);
            self.run_outputs(now);
        }
    }

    fn open_failed(&mut self, error: &OpenError) {
        let kind = match error {
            OpenError::TrySse(_) => return self.try_sse(),
            // A session that could not be opened again.
            _ if self.ready => self.unwanted(),
            OpenError::RestartLegacy => EndKind::RestartLegacy,
            OpenError::Version { .. }
            | OpenError::Pinned { .. }
            | OpenError::Refused { .. }
            | OpenError::Unusable(_)
            | OpenError::TimedOut(_)
            | OpenError::Http(_)
            | OpenError::Unreachable(_)
            | OpenError::Closed(_) => EndKind::StartFailed { fault: Fault::Passing },
        };
        self.finish(kind, self.mask.text(error.to_string()));
    }

    fn list_came(&mut self, now: Instant, kind: ListKind, read: Result<ListRead, String>) {
        let InstanceArgs { def, key, shop, .. } = &self.args;
        match read {
            // Read after a change, and not what the catalog shows (P-18).
            _ if key.lane == Lane::Legacy => {}
            Ok(list) => shop.catalog.listed(def, kind, list),
            Err(why) => shop.catalog.list_failed(def, kind, self.mask.text(why)),
        }
        let readings = self.lists.entry(kind).or_default();
        readings.under_way = false;
        readings.read_at = Some(now);
        for reply in readings.waiters.drain(..) {
            // Whoever asked may have given up.
            let _ = reply.send(());
        }
    }

    /// Another instance may watch now.
    fn unwatch(&mut self) {
        self.watching = None;
        self.load.hold(false);
    }

    /// The link is of no more use.
    fn close(&mut self, why: String) {
        let kind = self.stopping.map_or_else(|| self.unwanted(), |(kind, _)| kind);
        self.finish(kind, why);
    }

    /// What an end that nobody asked for is.
    const fn unwanted(&self) -> EndKind {
        if self.ready {
            EndKind::Died { cleanly: false }
        } else {
            EndKind::StartFailed { fault: Fault::Passing }
        }
    }

    pub(super) fn link_closed(&mut self, why: String) {
        if !self.sse_read() {
            self.over(why);
        }
    }

    /// The link is at its end.
    pub(super) fn over(&mut self, why: String) {
        if self.end.is_some() {
            return;
        }
        let why = self.exit.as_ref().map_or(why, |exit| exit.text.clone());
        if !self.ready {
            // The session says what a closed link means at this point of the opening (F25 f).
            let closed = self.closed(&why);
            self.with_session(|session| session.handle_closed(clock::now(), &closed));
        }
        self.close(why);
    }

    pub(super) fn writer_ended(&mut self, why: &str) {
        // A stream over HTTP has no other end than the one that its reader comes to.
        if self.end.is_some() || self.sse.is_some() {
            return;
        }
        // Answers may still be in the pipe: the reader comes to the end by itself where the process
        // has gone; where only its input is closed, it gets no longer than a stop would give it.
        tracing::debug!(server = %self.args.def.key, instance = %self.args.id, why, "input closed");
        let limit = self.args.settings.process.drain;
        self.stop(clock::now(), self.unwanted(), "it closed its input", limit);
    }

    pub(super) fn leader_exited(&mut self, now: Instant, report: ExitReport) {
        self.exit = Some(report);
        // A wrapper's end is not the server's while the pipe lives (F30); nor is the pipe's life the
        // server's where another process only holds it. A sign of life tells them apart.
        if self.ready && self.end.is_none() {
            self.with_session(|session| session.check_alive(now));
        }
    }

    pub(super) fn stop(&mut self, now: Instant, kind: EndKind, why: &'static str, limit: Duration) {
        if self.end.is_some() || self.stopping.is_some() {
            return;
        }
        self.stopping = Some((kind, why));
        self.unwatch();
        self.args.routes.remove(&self.args.key, self.args.id);
        self.tell_pool(PoolMsg::Leaving { id: self.args.id, why: why.to_owned() });
        if self.ready && self.load.leave() && !limit.is_zero() {
            self.drain.set(&self.me, Some(now + limit), InstanceMsg::DrainDue);
        } else {
            self.drained();
        }
    }

    pub(super) fn stop_if_idle(&mut self, now: Instant) {
        if self.load.is_free() && self.pending.is_empty() {
            // Whoever slips in between has the time that any call has.
            let limit = self.args.settings.call.total;
            self.stop(now, EndKind::Wanted, "idle", limit);
        }
    }

    pub(super) fn drained(&mut self) {
        if let Some((kind, why)) = self.stopping {
            self.finish(kind, why.to_owned());
        }
    }

    fn closed(&self, why: &str) -> Closed {
        // Over HTTP the session knows of each request by itself whether it left.
        let none = if self.remote.is_some() { u64::MAX } else { 0 };
        let begun = self.link.as_ref().map_or(none, LinkSender::frames_begun);
        Closed { why: why.to_owned(), frames_begun: begun }
    }

    /// The one way out. First nobody finds it any more, then its pool knows, then its calls are told
    /// (who tries again must not come back here), then its process goes.
    pub(super) fn finish(&mut self, kind: EndKind, text: String) {
        if self.end.is_some() {
            return;
        }
        self.args.routes.remove(&self.args.key, self.args.id);
        self.tell_pool(PoolMsg::Leaving { id: self.args.id, why: text.clone() });
        let idle = self.load.get() == 0;
        let closed = self.closed(&text);
        self.end = Some(End { kind, text, stderr: Vec::new() });
        if let Some(session) = &mut self.session {
            session.handle_closed(clock::now(), &closed);
        }
        while let Some(output) = self.session.as_mut().and_then(UpstreamSession::poll_output) {
            // Only what it has to remark is of interest now.
            if let UpstreamOutput::Notice(notice) = output {
                self.emit(notice);
            }
        }
        if let Some(End { kind: EndKind::Died { cleanly }, .. }) = &mut self.end {
            *cleanly = idle;
        }
        self.lists.clear();
        self.unowned.clear();
        self.route = None;
        self.unwatch();
        self.tasks.clear();
        self.link = None;
        self.sse = None;
        let leaving = self.leave_remote();
        if self.keeper.take().is_none() && !leaving {
            self.gone(None);
        }
    }

    /// No process is left.
    pub(super) fn gone(&mut self, report: Option<&ExitReport>) {
        let Some(mut end) = self.end.clone().filter(|_| !self.reported) else { return };
        self.reported = true;
        if let Some(report) = report {
            // It had gone before the ladder had to do more than close its input.
            let by_itself = report.rung.is_none_or(|rung| rung == "stdin");
            if by_itself && end.kind != EndKind::Wanted && !end.text.contains(&report.text) {
                end.text = match (self.stopping, self.ready) {
                    (None, _) => format!("{}: {}", end.text, report.text),
                    // That it closed its input was only the first sign of its exit.
                    (Some(_), false) => format!("{} before its handshake", report.text),
                    (Some(_), true) => report.text.clone(),
                };
            }
            if let EndKind::Died { cleanly } = &mut end.kind {
                *cleanly &= by_itself && report.code == Some(0);
            }
        }
        let lines = self.args.settings.process.stderr_lines;
        end.stderr = self.stderr.as_ref().map(|ring| ring.tail(lines)).unwrap_or_default();
        // The pool stops this actor when it has read the report: a supervision event would overtake
        // it.
        self.tell_pool(PoolMsg::Ended { id: self.args.id, end });
    }

    fn emit(&self, notice: Notice) {
        let InstanceArgs { id, def, shop, .. } = &self.args;
        let text = self.mask.text(notice.text);
        let event = Event::from_notice(Notice { text, ..notice });
        shop.events.emit(event.of_server(def.key.as_str()).of_instance(id.to_string()));
    }

    pub(super) fn tell_pool(&self, message: PoolMsg) {
        // A pool that has ended has taken its instances with it.
        let _ = self.args.pool.cast(message);
    }
}
