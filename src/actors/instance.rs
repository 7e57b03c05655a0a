//! One upstream instance: its process, its link, its session.
//!
//! Children: none; tasks: the start, the reader and the keeper of its process (which outlives it).
//! Ends with its link, by its pool's word, or by a crash of its own; its calls in flight are then
//! told at once. Temporary: whether there is another is the pool's decision. Never waits in
//! `handle`, never decides what a frame means.

pub mod connect;
pub mod keeper;
mod sink;
pub mod spec;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::connect::{Connect, Connected};
use self::keeper::{Alive, Keeper};
pub use self::sink::Sink;
use self::spec::{NotStarted, Surroundings};
use super::catalog::CatalogHandle;
use super::era_cache::EraCacheHandle;
use super::events::{Event, EventsHandle};
use super::pool::PoolMsg;
use super::pool::directory::{Load, Route, RouteKey, Routes};
use super::support::task::{self, TaskGuard};
use super::support::timer::Timer;
use crate::protocol::era_record::EraRecord;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::session::pending::{Pending, Resolved};
use crate::protocol::session::upstream::{
    Call, ListRead, OpenError, OpeningTimings, Settled, UpstreamConfig, UpstreamEvent,
    UpstreamOutput, UpstreamSession,
};
use crate::protocol::session::{Closed, Limit};
use crate::settings::{ServerDef, Settings};
use crate::transport::clock;
use crate::transport::link::{LinkEvent, LinkReader, LinkSender};
use crate::transport::stdio::child::{ExitReport, StopLadder};
use crate::transport::stdio::ring::StderrRing;

/// Which instance; numbers are given once in a daemon's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub u64);

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What every instance of the daemon shares.
#[derive(Debug, Clone)]
pub struct Shop {
    /// Makes connections.
    pub connect: Arc<dyn Connect>,
    /// Where variables, commands and folders are looked up.
    pub around: Arc<dyn Surroundings>,
    /// Our identity towards upstreams, newest shape.
    pub info: RawJson,
    /// Lifecycle events.
    pub events: EventsHandle,
    /// Remembered eras.
    pub eras: EraCacheHandle,
    /// Where lists go.
    pub catalog: CatalogHandle,
    /// Processes that are not surely gone.
    pub alive: Alive,
}

/// What an instance is made from.
#[derive(Debug)]
pub struct InstanceArgs {
    /// Its number.
    pub id: InstanceId,
    /// Its server.
    pub def: Arc<ServerDef>,
    /// Whom it serves.
    pub key: RouteKey,
    /// The project folder of the caller for whom it was started.
    pub project: Option<Arc<std::path::Path>>,
    /// What to open it with, where it is not the era cache that knows (F25 f).
    pub remembered: Option<EraRecord>,
    /// Whether to read the tools once it is open.
    pub read_tools: bool,
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// Where it admits calls.
    pub routes: Arc<Routes>,
    /// What it shares with all others.
    pub shop: Shop,
    /// To whom it reports.
    pub pool: ActorRef<PoolMsg>,
}

/// How an instance ended.
#[derive(Debug, Clone)]
pub struct End {
    /// What the pool makes of it.
    pub kind: EndKind,
    /// One sentence without a full stop.
    pub text: String,
    /// The last lines of its stderr.
    pub stderr: Vec<String>,
}

/// What the pool makes of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// It was told to.
    Wanted,
    /// It never became usable.
    StartFailed {
        /// Trying again without a change is pointless.
        permanent: bool,
    },
    /// It must be started again at once, without the probe (F25 f).
    RestartLegacy,
    /// It was usable and is no more.
    Died {
        /// It exited by itself with status 0 while nothing was asked of it.
        cleanly: bool,
    },
}

/// What an instance hears.
#[derive(Debug)]
pub enum InstanceMsg {
    /// A caller with a permit makes a call.
    Call {
        /// The call.
        call: Call<Sink>,
    },
    /// A caller gave up.
    Cancel {
        /// The call's request id.
        id: u64,
    },
    /// The start task is through.
    Started {
        /// The connection, or why there is none.
        outcome: Result<Connected, NotStarted>,
    },
    /// The reader has a frame that answers no call.
    FrameRead {
        /// It.
        frame: Bytes,
        /// The reader's credit; given back when the frame has been handled.
        credit: OwnedSemaphorePermit,
    },
    /// The reader threw a frame away.
    FrameTooLarge {
        /// Its first bytes.
        head: Bytes,
        /// Its size.
        bytes: usize,
        /// The reader's credit.
        credit: OwnedSemaphorePermit,
    },
    /// The reader is at the end.
    LinkClosed {
        /// Why.
        why: String,
    },
    /// The writer has ended.
    WriterEnded {
        /// Why.
        why: String,
    },
    /// From the keeper: the leader exited; its pipe may live on.
    LeaderExited {
        /// How.
        report: ExitReport,
    },
    /// From the keeper: no process is left.
    ProcessGone {
        /// How it ended.
        report: ExitReport,
    },
    /// The session's deadline passed.
    DeadlineDue,
    /// A new process has been silent for `process.spawn_timeout`.
    SilenceDue,
    /// From the pool: admit no more calls, and end when those in flight are through or `limit` is.
    Stop {
        /// One phrase for texts.
        why: &'static str,
        /// How long calls in flight may go on.
        limit: Duration,
    },
    /// The last caller of an instance that is leaving has gone.
    Drained,
    /// The limit of a `Stop` passed.
    DrainDue,
}

/// The actor.
#[derive(Debug)]
pub struct Instance;

/// See the module.
#[derive(Debug)]
pub struct InstanceState {
    args: InstanceArgs,
    me: ActorRef<InstanceMsg>,
    load: Arc<Load>,
    pending: Arc<Pending<Sink>>,
    session: Option<UpstreamSession<Sink>>,
    link: Option<LinkSender>,
    tasks: Vec<TaskGuard>,
    keeper: Option<Keeper>,
    stderr: Option<StderrRing>,
    exit: Option<ExitReport>,
    heard: bool,
    ready: bool,
    stopping: Option<(EndKind, &'static str)>,
    end: Option<End>,
    reported: bool,
    deadline: Option<Instant>,
    timer: Timer,
    silence: Timer,
    drain: Timer,
}

impl Actor for Instance {
    type Msg = InstanceMsg;
    type State = InstanceState;
    type Arguments = InstanceArgs;

    async fn pre_start(
        &self,
        me: ActorRef<InstanceMsg>,
        args: InstanceArgs,
    ) -> Result<InstanceState, ActorProcessingErr> {
        Ok(InstanceState::start(me, args))
    }

    async fn handle(
        &self,
        _me: ActorRef<InstanceMsg>,
        message: InstanceMsg,
        state: &mut InstanceState,
    ) -> Result<(), ActorProcessingErr> {
        let now = clock::now();
        match message {
            InstanceMsg::Call { call } => state.call(now, call),
            InstanceMsg::Cancel { id } => state.with_session(|session| {
                session.cancel(now, id, "the caller gave up");
            }),
            InstanceMsg::Started { outcome } => state.started(now, outcome),
            InstanceMsg::SilenceDue => state.silence_due(),
            InstanceMsg::FrameRead { frame, credit } => {
                state.heard = true;
                state.with_session(|session| session.handle_frame(now, &frame));
                drop(credit);
            }
            InstanceMsg::FrameTooLarge { head, bytes, credit } => {
                let limit = state.args.settings.link.max_frame;
                state.with_session(|session| session.handle_too_large(now, &head, bytes, limit));
                drop(credit);
            }
            InstanceMsg::LinkClosed { why } => state.link_closed(why),
            InstanceMsg::WriterEnded { why } => state.writer_ended(why),
            InstanceMsg::LeaderExited { report } => state.leader_exited(now, report),
            InstanceMsg::ProcessGone { report } => state.gone(Some(report)),
            InstanceMsg::DeadlineDue => state.deadline_due(now),
            InstanceMsg::Stop { why, limit } => state.stop(now, EndKind::Wanted, why, limit),
            InstanceMsg::Drained | InstanceMsg::DrainDue => state.drained(),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<InstanceMsg>,
        _event: SupervisionEvent,
        _state: &mut InstanceState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}

impl InstanceState {
    fn start(me: ActorRef<InstanceMsg>, args: InstanceArgs) -> Self {
        let starting = {
            let (me, shop) = (me.clone(), args.shop.clone());
            let (def, settings) = (Arc::clone(&args.def), Arc::clone(&args.settings));
            let project = args.project.clone();
            task::spawn_guarded(async move {
                let outcome = spec::start(&shop, &def, project.as_deref(), &settings).await;
                // With a dead instance the connection falls, and its process with it.
                let _ = me.cast(InstanceMsg::Started { outcome });
            })
        };
        Self {
            load: Arc::new(Load::new(me.clone())),
            me,
            args,
            pending: Arc::new(Pending::new()),
            session: None,
            link: None,
            tasks: vec![starting],
            keeper: None,
            stderr: None,
            exit: None,
            heard: false,
            ready: false,
            stopping: None,
            end: None,
            reported: false,
            deadline: None,
            timer: Timer::new(),
            silence: Timer::new(),
            drain: Timer::new(),
        }
    }

    fn started(&mut self, now: Instant, outcome: Result<Connected, NotStarted>) {
        if self.end.is_some() {
            // Dropping what was started ends it.
            return;
        }
        let Connected { link, drain, process } = match outcome {
            Ok(connected) => connected,
            Err(NotStarted { text, permanent }) => {
                return self.finish(EndKind::StartFailed { permanent }, text);
            }
        };
        let stderr = process.stderr();
        self.stderr = Some(stderr.clone());
        let (id, pid) = (self.args.id, process.pid());
        self.tell_pool(PoolMsg::Spawned { id, pid, stderr });
        let plumbing = &self.args.settings.process;
        let ladder = StopLadder { drain: plumbing.drain, term: plumbing.term };
        let alive = &self.args.shop.alive;
        self.keeper = Some(Keeper::watch(process, drain, ladder, alive, self.me.clone()));
        self.link = Some(link.sender);
        let reader = read(
            link.reader,
            Arc::clone(&self.pending),
            self.me.clone(),
            self.args.settings.link.read_credits,
        );
        self.tasks = vec![task::spawn_guarded(reader)];
        // Not guarded: what is queued (a cancellation, say) is still written when the instance ends.
        let (writer, me) = (link.writer, self.me.clone());
        task::spawn(async move {
            let why = writer.run().await;
            let _ = me.cast(InstanceMsg::WriterEnded { why });
        });
        let silent_at = now + self.args.settings.process.spawn;
        self.silence.set(&self.me, Some(silent_at), InstanceMsg::SilenceDue);
        let mut session = UpstreamSession::new(self.config(), Arc::clone(&self.pending));
        session.open(now);
        self.session = Some(session);
        self.run_outputs(now);
    }

    fn config(&self) -> UpstreamConfig {
        let InstanceArgs { def, settings, shop, remembered, .. } = &self.args;
        let upstream = &settings.upstream;
        let remembered = match remembered {
            Some(record) => Some(record.clone()),
            None if upstream.era_cache => shop.eras.get(def),
            None => None,
        };
        UpstreamConfig {
            preference: def.protocol.unwrap_or(upstream.protocol),
            pin: def.revision,
            remembered,
            info: shop.info.clone(),
            capabilities: RawJson::empty_object(),
            timings: OpeningTimings {
                probe_patience: upstream.probe_patience,
                handshake: upstream.handshake,
                list: upstream.list,
                list_max_pages: upstream.list_max_pages,
                list_max_items: upstream.list_max_items,
                version_attempts: upstream.version_attempts,
                ping: upstream.ping,
            },
        }
    }

    fn call(&mut self, now: Instant, mut call: Call<Sink>) {
        if self.end.is_some() {
            // Its sink says that it was not written; the caller looks for another instance.
            return;
        }
        call.sink.take();
        self.with_session(|session| session.start_call(now, call));
    }

    fn with_session(&mut self, act: impl FnOnce(&mut UpstreamSession<Sink>)) {
        if let Some(session) = &mut self.session {
            act(session);
            self.run_outputs(clock::now());
        }
    }

    /// Does what the session says, and wakes it in time.
    fn run_outputs(&mut self, now: Instant) {
        while let Some(output) = self.session.as_mut().and_then(UpstreamSession::poll_output) {
            match output {
                UpstreamOutput::Send(frame) => self.send(frame),
                UpstreamOutput::Event(event) => self.event(now, event),
                UpstreamOutput::Notice(notice) => self.emit(Event::from_notice(notice)),
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

    fn send(&mut self, frame: Bytes) {
        let Some(link) = &self.link else { return };
        if let Err(refused) = link.try_send(frame) {
            self.close(refused.to_string());
        }
    }

    fn deadline_due(&mut self, now: Instant) {
        self.timer.fired();
        self.deadline = None;
        self.with_session(|session| session.handle_timeout(now));
    }

    /// Neither an answer nor a line on stderr: it hangs. One that says that it is busy (downloading
    /// itself, say) has until the end of the handshake's limit.
    fn silence_due(&mut self) {
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
            UpstreamEvent::OpenFailed(error) => self.open_failed(&error),
            UpstreamEvent::Tools(read) => self.tools_read(read),
            // The session reads them again by itself; the catalog compares (F38).
            UpstreamEvent::ToolsChanged => {}
            UpstreamEvent::Log(_) => {
                tracing::debug!(server = %self.args.def.key, instance = %self.args.id, "logged");
            }
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
            shop.eras.record(def, record.clone());
        }
        shop.catalog.identified(&def.key, settled.info.clone(), settled.instructions.clone());
        let permits = settings.pool.in_flight;
        let (pending, load) = (Arc::clone(&self.pending), Arc::clone(&self.load));
        let route = Arc::new(Route::new(*id, pending, permits, load));
        if self.stopping.is_none() {
            routes.add(key.clone(), Arc::clone(&route));
        }
        let text = format!("server `{}` speaks {}", def.key, settled.revision);
        let started = Event::new("server.started", text).of_server(def.key.as_str());
        shop.events.emit(started.of_instance(id.to_string()));
        let id = *id;
        self.tell_pool(PoolMsg::Ready { id, settled: Arc::new(settled), route });
        if self.args.read_tools
            && let Some(session) = &mut self.session
        {
            session.read_tools(now);
        }
    }

    fn open_failed(&mut self, error: &OpenError) {
        let kind = match error {
            OpenError::RestartLegacy => EndKind::RestartLegacy,
            OpenError::Version { .. }
            | OpenError::Pinned { .. }
            | OpenError::Refused { .. }
            | OpenError::Unusable(_)
            | OpenError::TimedOut(_)
            | OpenError::Closed(_) => EndKind::StartFailed { permanent: false },
        };
        self.finish(kind, error.to_string());
    }

    fn tools_read(&mut self, read: Result<ListRead, String>) {
        let InstanceArgs { def, shop, .. } = &self.args;
        match read {
            Ok(list) => shop.catalog.listed(def, list),
            Err(why) => shop.catalog.list_failed(def, why),
        }
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
            EndKind::StartFailed { permanent: false }
        }
    }

    fn link_closed(&mut self, why: String) {
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

    fn writer_ended(&mut self, why: String) {
        if self.end.is_some() {
            return;
        }
        // Answers may still be in the pipe: the reader comes to the end by itself where the process
        // has gone; where only its input is closed, it gets no longer than a stop would give it.
        tracing::debug!(server = %self.args.def.key, instance = %self.args.id, why, "input closed");
        let limit = self.args.settings.process.drain;
        self.stop(clock::now(), self.unwanted(), "it closed its input", limit);
    }

    fn leader_exited(&mut self, now: Instant, report: ExitReport) {
        self.exit = Some(report);
        // A wrapper's end is not the server's while the pipe lives (F30); nor is the pipe's life the
        // server's where another process only holds it. A sign of life tells them apart.
        if self.ready && self.end.is_none() {
            self.with_session(|session| session.check_alive(now));
        }
    }

    fn stop(&mut self, now: Instant, kind: EndKind, why: &'static str, limit: Duration) {
        if self.end.is_some() || self.stopping.is_some() {
            return;
        }
        self.stopping = Some((kind, why));
        self.args.routes.remove(&self.args.key, self.args.id);
        self.tell_pool(PoolMsg::Leaving { id: self.args.id });
        if self.ready && self.load.leave() && !limit.is_zero() {
            self.drain.set(&self.me, Some(now + limit), InstanceMsg::DrainDue);
        } else {
            self.drained();
        }
    }

    fn drained(&mut self) {
        if let Some((kind, why)) = self.stopping {
            self.finish(kind, why.to_owned());
        }
    }

    fn closed(&self, why: &str) -> Closed {
        let begun = self.link.as_ref().map_or(0, LinkSender::frames_begun);
        Closed { why: why.to_owned(), frames_begun: begun }
    }

    /// The one way out. First nobody finds it any more, then its pool knows, then its calls are told
    /// (who tries again must not come back here), then its process goes.
    fn finish(&mut self, kind: EndKind, text: String) {
        if self.end.is_some() {
            return;
        }
        self.args.routes.remove(&self.args.key, self.args.id);
        self.tell_pool(PoolMsg::Leaving { id: self.args.id });
        let idle = self.load.get() == 0;
        let closed = self.closed(&text);
        self.end = Some(End { kind, text, stderr: Vec::new() });
        if let Some(session) = &mut self.session {
            session.handle_closed(clock::now(), &closed);
            while let Some(output) = session.poll_output() {
                // Only what it has to remark is of interest now.
                if let UpstreamOutput::Notice(notice) = output {
                    let event = Event::from_notice(notice).of_server(self.args.def.key.as_str());
                    self.args.shop.events.emit(event);
                }
            }
        }
        if let Some(End { kind: EndKind::Died { cleanly }, .. }) = &mut self.end {
            *cleanly = idle;
        }
        self.tasks.clear();
        self.link = None;
        if self.keeper.take().is_none() {
            self.gone(None);
        }
    }

    /// No process is left.
    fn gone(&mut self, report: Option<ExitReport>) {
        let Some(mut end) = self.end.clone().filter(|_| !self.reported) else { return };
        self.reported = true;
        if let Some(report) = &report {
            // It had gone before the ladder had to do more than close its input.
            let by_itself = report.rung.is_none_or(|rung| rung == "stdin");
            if by_itself && end.kind != EndKind::Wanted && !end.text.contains(&report.text) {
                end.text = format!("{}: {}", end.text, report.text);
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

    fn emit(&self, event: Event) {
        let InstanceArgs { id, def, shop, .. } = &self.args;
        shop.events.emit(event.of_server(def.key.as_str()).of_instance(id.to_string()));
    }

    fn tell_pool(&self, message: PoolMsg) {
        // A pool that has ended has taken its instances with it.
        let _ = self.args.pool.cast(message);
    }
}

/// Reads until the end: answers go straight to their callers, the rest to the instance, which gives a
/// credit back for each frame handled.
async fn read(
    mut reader: LinkReader,
    pending: Arc<Pending<Sink>>,
    me: ActorRef<InstanceMsg>,
    credits: usize,
) {
    let credits = Arc::new(Semaphore::new(credits.max(1)));
    loop {
        let event = reader.next().await;
        let other = match event {
            LinkEvent::Frame(frame) => match pending.resolve(clock::now(), frame) {
                Resolved::Taken => continue,
                Resolved::Other(frame) => LinkEvent::Frame(frame),
            },
            other => other,
        };
        // Never closed.
        let Ok(credit) = Arc::clone(&credits).acquire_owned().await else { return };
        let told = match other {
            LinkEvent::Frame(frame) => me.cast(InstanceMsg::FrameRead { frame, credit }),
            LinkEvent::TooLarge { head, bytes } => {
                me.cast(InstanceMsg::FrameTooLarge { head, bytes, credit })
            }
            LinkEvent::Closed { why } => {
                let _ = me.cast(InstanceMsg::LinkClosed { why });
                return;
            }
        };
        if told.is_err() {
            return;
        }
    }
}
