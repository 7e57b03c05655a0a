//! One host connection.
//!
//! Owns its [`HostSession`], the sending half of its link and the tasks of its open requests.
//! Children: none; its reading, writing and request tasks end with it. Ends when the link does, or
//! after a drain. Never restarted: the shim dials again. Never waits for a host or an upstream, and
//! never looks at what a request means.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::dispatch::{self, Context, Listed, Repeats, Views};
use super::events::Event;
use super::support::progress::{self, CallNote, ProgressReceiver, Wants};
use super::support::task::{TaskGuard, spawn, spawn_guarded};
use super::support::timer::Timer;
use super::upstreams::{Caller, HostId};
use crate::control::attach::{DRAIN_LINE, VIEW_LINE};
use crate::protocol::jsonrpc::{Code, RpcError};
use crate::protocol::model::logging::LogMessage;
use crate::protocol::revision::Era;
use crate::protocol::session::host::{HostConfig, HostEvent, HostNote, HostOutput, HostSession};
use crate::protocol::session::pending::LogWant;
use crate::protocol::session::upstream::ListKind;
use crate::protocol::session::{CallKey, HostRequest, Outcome};
use crate::transport::link::{Link, LinkEvent, LinkReader, LinkSender};
use crate::transport::{LinkWriter, clock};

/// What a host connection starts with.
#[derive(Debug)]
pub(crate) struct HostArgs {
    pub(crate) id: HostId,
    pub(crate) link: Link,
    /// The project folder that the shim named.
    pub(crate) project: Option<Arc<Path>>,
    /// Which lists it was given last; none yet.
    pub(crate) listed: Arc<Listed>,
    /// The digests of the lists that this host saw before a daemon restart.
    pub(crate) seen_view: Option<String>,
    /// The digests of the lists that it would see now.
    pub(crate) view: Views,
    pub(crate) config: Arc<HostConfig>,
    pub(crate) context: Arc<Context>,
}

/// What a host connection is told.
#[derive(Debug)]
pub(crate) enum HostMsg {
    /// The reader: one frame, with the credit that lets it read on.
    Frame { frame: Bytes, credit: OwnedSemaphorePermit },
    /// The reader: a frame beyond `link.max_frame` was thrown away.
    TooLarge { bytes: usize },
    /// The reader: the host's side ended.
    Closed { why: String },
    /// The writer: it ended, because the host does not take any more or everything was written.
    WriterEnded { why: String },
    /// The waiting task: the write queue has room again.
    RoomAgain,
    /// A request's task: its outcome.
    Finished { key: CallKey, outcome: Outcome },
    /// A request's task: progress or a log message, with the credit that lets it send the next.
    Heard { key: CallKey, note: CallNote, credit: OwnedSemaphorePermit },
    /// Hosts: the lists that hosts see are others.
    ViewChanged { view: Views },
    /// The subscriptions: something that this host did not ask for now, with the credit that lets
    /// the next of its kind come.
    Note { note: HostNote, credit: OwnedSemaphorePermit },
    /// The timer: the session's deadline has come.
    DeadlineDue,
    /// Hosts: the daemon stops; finish what is open and leave.
    Drain,
    /// For status pages.
    GetStatus { reply: RpcReplyPort<HostStatus> },
}

/// A host connection on a status page.
#[derive(Debug, Clone, Serialize)]
pub struct HostStatus {
    /// Its number in this daemon's life.
    pub id: u64,
    /// What it calls itself, and its version.
    pub label: String,
    /// The revision it speaks, once it has said.
    pub revision: String,
    /// Its project folder.
    pub project: Option<String>,
    /// Its open requests.
    pub in_flight: usize,
}

/// The actor; all of it is in its state.
#[derive(Debug)]
pub(crate) struct Host;

pub(crate) struct HostState {
    me: ActorRef<HostMsg>,
    id: HostId,
    session: HostSession,
    sender: Option<LinkSender>,
    requests: HashMap<CallKey, TaskGuard>,
    context: Arc<Context>,
    caller: Caller,
    revision: String,
    repeats: Arc<Repeats>,
    listed: Arc<Listed>,
    view: Views,
    opened: bool,
    draining: bool,
    /// The host's side is at its end; leave as soon as nothing is open.
    at_end: bool,
    timer: Timer,
    waiting_for_room: Option<TaskGuard>,
    /// Credits of frames that were handled; given back while what the host gets has room.
    withheld: Vec<OwnedSemaphorePermit>,
    _reader: TaskGuard,
    _writer: TaskGuard,
}

impl Actor for Host {
    type Msg = HostMsg;
    type State = HostState;
    type Arguments = HostArgs;

    async fn pre_start(
        &self,
        me: ActorRef<HostMsg>,
        args: HostArgs,
    ) -> Result<HostState, ActorProcessingErr> {
        Ok(HostState::new(me, args))
    }

    async fn handle(
        &self,
        me: ActorRef<HostMsg>,
        message: HostMsg,
        state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        let now = clock::now();
        match message {
            HostMsg::Frame { frame, credit } => {
                state.session.handle_frame(now, &frame);
                state.withheld.push(credit);
            }
            HostMsg::TooLarge { bytes } => {
                let limit = state.context.settings().link.max_frame;
                state.session.handle_too_large(now, bytes, limit);
            }
            HostMsg::Closed { why } => state.host_closed(&why),
            HostMsg::WriterEnded { why } => {
                state.writer_ended(&why);
                me.stop(None);
                return Ok(());
            }
            HostMsg::RoomAgain => state.waiting_for_room = None,
            HostMsg::Finished { key, outcome } => {
                state.requests.remove(&key);
                state.note_view();
                state.session.finish(now, key, outcome);
            }
            HostMsg::Heard { key, note, credit } => {
                // A host that does not read has no use for it, and it would pile up.
                if state.waiting_for_room.is_none() {
                    state.heard(now, key, note);
                }
                drop(credit);
            }
            HostMsg::ViewChanged { view } => state.view_changed(view),
            HostMsg::Note { note, credit } => state.note(now, note, credit),
            HostMsg::DeadlineDue => {
                state.timer.fired();
                state.session.handle_timeout(now);
            }
            HostMsg::Drain => state.drain(),
            HostMsg::GetStatus { reply } => {
                // Nobody waits any more: no fault.
                let _ = reply.send(state.status());
            }
        }
        state.pump();
        Ok(())
    }

    async fn post_stop(
        &self,
        _me: ActorRef<HostMsg>,
        state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        state.requests.clear();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<HostMsg>,
        _event: SupervisionEvent,
        _state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children; the default would stop it.
        Ok(())
    }
}

impl HostState {
    fn new(me: ActorRef<HostMsg>, args: HostArgs) -> Self {
        let HostArgs { id, link, project, listed, seen_view, view, config, context } = args;
        let settings = context.settings();
        let Link { reader, sender, writer } = link;
        let reader = spawn_guarded(read(me.clone(), reader, settings.link.read_credits));
        let writer = spawn_guarded(write(me.clone(), writer));
        let caller =
            Caller { host: Some(id), project, label: Arc::from("unknown"), era: Era::Modern };
        context.upstreams.subs().host_came(&caller, me.clone(), settings.call.log_queue);
        let returns = seen_view.is_some();
        let changed = seen_view.map(|seen| view.changed_since_text(&seen)).unwrap_or_default();
        let mut state = Self {
            me,
            id,
            session: HostSession::new(config),
            sender: Some(sender),
            requests: HashMap::new(),
            caller,
            revision: String::new(),
            repeats: Arc::new(Repeats::new(settings.call.repeat_memory)),
            listed,
            context,
            view,
            opened: false,
            draining: false,
            at_end: false,
            timer: Timer::new(),
            waiting_for_room: None,
            withheld: Vec::new(),
            _reader: reader,
            _writer: writer,
        };
        state.send_line(Bytes::from(format!("{VIEW_LINE}{}", state.view)));
        for kind in changed {
            state.session.host_note(clock::now(), HostNote::Changed(kind));
        }
        if returns {
            state.list_what_is_new();
        }
        state
    }

    /// This host has its list from an earlier daemon and will not ask again by itself: servers that
    /// came since are listed now, so that it is told of them (F47).
    fn list_what_is_new(&self) {
        if self.context.catalog.view(&self.context.settings().expose).waits_for_lists() {
            let (context, caller) = (Arc::clone(&self.context), self.caller.clone());
            spawn(async move { context.upstreams.ensure_listed(&caller, ListKind::Tools).await });
        }
    }

    /// Executes what the session wants, as long as the host takes it.
    fn pump(&mut self) {
        while self.has_room() {
            let Some(output) = self.session.poll_output() else { break };
            match output {
                HostOutput::Send { frame, .. } => self.send_line(frame),
                // Only POSTs are done.
                HostOutput::PostDone(_) => {}
                HostOutput::Event(event) => self.act_on(event),
                HostOutput::Notice(notice) => {
                    self.context.events.emit(Event::from_notice(notice).of_host(self.label()));
                }
            }
        }
        self.timer.set(&self.me, self.session.poll_deadline(), HostMsg::DeadlineDue);
        if self.waiting_for_room.is_none() {
            self.withheld.clear();
        }
        let idle = self.session.in_flight() == 0 && self.waiting_for_room.is_none();
        if self.at_end && idle {
            // The writer writes what waits, then ends, and with it this actor.
            self.sender = None;
        }
    }

    /// Whether a frame can be queued. If not, a task waits for room: a host that does not read
    /// stops being read, and costs no more than its queue.
    fn has_room(&mut self) -> bool {
        let Some(sender) = &self.sender else { return true };
        if sender.has_room() {
            return true;
        }
        if self.waiting_for_room.is_none() {
            let (sender, me) = (sender.clone(), self.me.clone());
            self.waiting_for_room = Some(spawn_guarded(async move {
                sender.room().await;
                let _ = me.cast(HostMsg::RoomAgain);
            }));
        }
        false
    }

    fn send_line(&mut self, line: Bytes) {
        // A closed writer reports itself; a full queue was excluded by `has_room`.
        if let Some(sender) = &self.sender {
            let _ = sender.try_send(line);
        }
    }

    fn act_on(&mut self, event: HostEvent) {
        match event {
            HostEvent::Request(request) => self.start(request),
            HostEvent::Cancelled { key } => {
                self.requests.remove(&key);
            }
            HostEvent::Opened { label, revision } => self.opened(&label, revision),
            HostEvent::Notification { method, .. } => {
                tracing::debug!(host = self.label(), %method, "notification without effect");
            }
        }
    }

    fn opened(&mut self, label: &str, revision: String) {
        self.caller.label = Arc::from(label);
        self.revision = revision;
        if !self.opened {
            self.opened = true;
            let text = format!("host {label} opened a session in revision {}", self.revision);
            self.context.events.emit(Event::new("host.opened", text).of_host(self.label()));
        }
    }

    fn start(&mut self, request: HostRequest) {
        let key = request.key;
        let report = Report { me: self.me.clone(), key, outcome: None };
        let context = Arc::clone(&self.context);
        let (sender, receiver) = self.wants(&request).map(progress::channel).unzip();
        let work = dispatch::Request {
            method: request.method,
            params: request.params,
            caller: Caller { era: request.peer.revision.era(), ..self.caller.clone() },
            progress: sender,
            repeats: Arc::clone(&self.repeats),
            listed: Arc::clone(&self.listed),
        };
        let guard = match receiver {
            // Boxed at once: starting a task moves its future several times.
            None => spawn_guarded(Box::pin(run(context, work, report))),
            Some(notes) => spawn_guarded(Box::pin(run_with_progress(context, work, report, notes))),
        };
        self.requests.insert(key, guard);
    }

    /// What the host wants to hear of a request while it goes on.
    fn wants(&self, request: &HostRequest) -> Option<Wants> {
        if !request.wants_progress && request.log_level.is_none() {
            return None;
        }
        let limits = self.context.settings().call;
        Some(Wants {
            progress: request.wants_progress,
            log: request.log_level.map(|level| LogWant { level, host: self.id.0 }),
            progress_queue: limits.progress_queue,
            log_queue: limits.log_queue,
        })
    }

    /// A host that does not read is told of an update when it does; log messages it has missed.
    fn note(&mut self, now: Instant, note: HostNote, credit: OwnedSemaphorePermit) {
        if self.waiting_for_room.is_none() || !matches!(note, HostNote::Log { .. }) {
            self.session.host_note(now, note);
            self.withheld.push(credit);
        }
    }

    fn heard(&mut self, now: Instant, key: CallKey, note: CallNote) {
        match note {
            CallNote::Progress(params) => self.session.progress(now, key, &params),
            CallNote::Log(LogMessage { level, params }) => {
                let note = HostNote::Log { level, params, about: Some(key) };
                self.session.host_note(now, note);
            }
        }
    }

    fn host_closed(&mut self, why: &str) {
        tracing::debug!(host = self.label(), why, "host closed its side");
        self.at_end = true;
        if !self.draining {
            self.session.handle_closed(clock::now());
        }
    }

    fn writer_ended(&mut self, why: &str) {
        tracing::debug!(host = self.label(), why, "nothing more is written to the host");
        self.session.handle_closed(clock::now());
        self.requests.clear();
    }

    /// The shim is told which lists its host is given, before it is given them: a daemon may end
    /// between a change and the moment when hosts are told of it.
    fn note_view(&mut self) {
        if let Some(view) = self.view.as_given(&self.listed) {
            self.send_line(Bytes::from(format!("{VIEW_LINE}{view}")));
            self.view = view;
        }
    }

    fn view_changed(&mut self, view: Views) {
        let changed = view.changed_since(&self.view);
        if changed.is_empty() {
            return;
        }
        self.send_line(Bytes::from(format!("{VIEW_LINE}{view}")));
        for kind in changed {
            // Its own list may have been what brought the change to light.
            if !self.listed.is(kind, view.of(kind)) {
                self.session.host_note(clock::now(), HostNote::Changed(kind));
            }
        }
        self.view = view;
    }

    /// The shim ends its side when it has read the line, so that no frame is lost between the two.
    fn drain(&mut self) {
        self.draining = true;
        self.send_line(Bytes::from_static(DRAIN_LINE.as_bytes()));
    }

    fn label(&self) -> String {
        format!("{}#{}", self.caller.label, self.id.0)
    }

    fn status(&self) -> HostStatus {
        HostStatus {
            id: self.id.0,
            label: self.caller.label.to_string(),
            revision: self.revision.clone(),
            project: self.caller.project.as_ref().map(|path| path.display().to_string()),
            in_flight: self.session.in_flight(),
        }
    }
}

async fn read(me: ActorRef<HostMsg>, mut reader: LinkReader, credits: usize) {
    let credits = Arc::new(Semaphore::new(credits));
    loop {
        let event = reader.next().await;
        let Ok(credit) = Arc::clone(&credits).acquire_owned().await else { return };
        let (message, last) = match event {
            LinkEvent::Frame(frame) => (HostMsg::Frame { frame, credit }, false),
            LinkEvent::TooLarge { bytes, .. } => (HostMsg::TooLarge { bytes }, false),
            LinkEvent::Closed { why } => (HostMsg::Closed { why }, true),
        };
        if me.cast(message).is_err() || last {
            return;
        }
    }
}

async fn write(me: ActorRef<HostMsg>, writer: LinkWriter) {
    let why = writer.run().await;
    let _ = me.cast(HostMsg::WriterEnded { why });
}

/// Reports a request's outcome when it falls, also where its task panicked; a cancelled request's
/// report finds no open request and is ignored by the session.
struct Report {
    me: ActorRef<HostMsg>,
    key: CallKey,
    outcome: Option<Outcome>,
}

impl Drop for Report {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or_else(|| {
            let text = "mcpx failed while it worked on this request; its log has more";
            Err(RpcError::new(Code::InternalError, text))
        });
        let _ = self.me.cast(HostMsg::Finished { key: self.key, outcome });
    }
}

async fn run(context: Arc<Context>, work: dispatch::Request, mut report: Report) {
    report.outcome = Some(dispatch::answer(&context, work).await);
}

/// The same, passing progress on before the outcome, in order.
async fn run_with_progress(
    context: Arc<Context>,
    work: dispatch::Request,
    mut report: Report,
    notes: ProgressReceiver,
) {
    // One note of a call waits in the mailbox at a time.
    let credit = Arc::new(Semaphore::new(1));
    let pass_on = async |note: CallNote, report: &Report| {
        if let Ok(credit) = Arc::clone(&credit).acquire_owned().await {
            let _ = report.me.cast(HostMsg::Heard { key: report.key, note, credit });
        }
    };
    let outcome = {
        let mut answer = Box::pin(dispatch::answer(&context, work));
        loop {
            tokio::select! {
                biased;
                outcome = &mut answer => break outcome,
                note = notes.next() => pass_on(note, &report).await,
            }
        }
    };
    while let Some(note) = notes.try_next() {
        pass_on(note, &report).await;
    }
    report.outcome = Some(outcome);
}
