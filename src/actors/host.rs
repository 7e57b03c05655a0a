//! One host connection: a shim's link, or a session over HTTP.
//!
//! Owns its [`HostSession`], the tasks of its open requests, and what leads to the host: the sending
//! half of its link (`link`), or its answers and streams (`streams`). Children: none; its tasks end
//! with it. Ends when the link or the session does, or after a drain. Never restarted: the shim dials
//! again, a host over HTTP opens a new session. Never waits for a host or an upstream, and never
//! looks at what a request means.

pub(crate) mod kept;
pub(crate) mod line;
mod link;
mod listen;
mod over_http;
pub(crate) mod sessions;
pub(crate) mod streams;
mod work;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use self::kept::{Held, Record};
use self::line::{HostLine, Questions};
use self::link::LinkWire;
use self::listen::ListenGuard;
use self::over_http::Session;
use self::sessions::{Entry, SessionId, Sessions};
use self::streams::{HttpWire, PostIn};
use self::work::{Report, run, run_with_progress};
use super::dispatch::{self, Context, Listed, Repeats, TaskSide, Views};
use super::events::Event;
use super::listen::Word;
use super::support::progress::{self, CallNote, Wants};
use super::support::task::{TaskGuard, spawn, spawn_guarded};
use super::support::timer::Timer;
use super::upstreams::{Answers, Caller, HostId, Source, Via, Who};
use crate::control::attach::{DRAIN_LINE, VIEW_LINE};
use crate::protocol::http_rules::post::{Refusal, Said};
use crate::protocol::jsonrpc::{Frame, Id};
use crate::protocol::model::questions::{Question, Reply};
use crate::protocol::revision::Era;
use crate::protocol::session::host::{
    HostConfig, HostEvent, HostNote, HostOutput, HostSession, NO_REQUEST, PostId,
};
use crate::protocol::session::upstream::ListKind;
use crate::protocol::session::{CallKey, HostRequest, Outcome, Peer, TaskForm};
use crate::transport::clock;
use crate::transport::link::Link;

/// What a host connection starts with.
#[derive(Debug)]
pub(crate) struct HostArgs {
    pub(crate) id: HostId,
    pub(crate) way: Way,
    /// The project folder that the shim named.
    pub(crate) project: Option<Arc<Path>>,
    /// Which lists it was given last; none yet.
    pub(crate) listed: Arc<Listed>,
    /// The digests of the lists that it would see now.
    pub(crate) view: Views,
    pub(crate) config: Arc<HostConfig>,
    pub(crate) context: Arc<Context>,
}

/// How a host is reached.
#[derive(Debug)]
pub(crate) enum Way {
    /// Over a link.
    Link {
        link: Box<Link>,
        /// Whose shim it is, by number.
        user: Option<u32>,
        /// The digest of the tool list that this host saw before a daemon restart.
        seen_view: Option<String>,
        /// The name that its shim has given itself.
        name: Option<String>,
    },
    /// By the answers to its requests over HTTP. The session can be found by its id from its
    /// handshake on; without a handshake it ends as soon as it has answered (H-10, H-27).
    Http {
        id: SessionId,
        sessions: Sessions,
        held: Held,
        /// What it was in an earlier daemon.
        before: Option<Box<Record>>,
    },
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
    /// The endpoint: a POST of this session.
    Post { post: Box<PostIn> },
    /// The endpoint: a POST's answer takes longer than `http.stream_after`.
    BeginStream { post: PostId },
    /// The endpoint: a GET of this session, with the id of the event that was seen last.
    Listen {
        said: Said,
        last_seen: Option<String>,
        reply: oneshot::Sender<Result<mpsc::Receiver<Bytes>, Refusal>>,
    },
    /// The endpoint: a DELETE of this session.
    End { said: Said, reply: oneshot::Sender<Result<(), Refusal>> },
    /// Hosts: a session of an earlier daemon goes on, and has this place.
    Entered { entry: Entry },
    /// The subscriptions: those of this host are others; or one of a life before was asked for again.
    Subscribed { again: Option<String> },
    /// The timer: the session may have been idle for `http.session_idle`.
    IdleDue,
    /// Hosts: others wait for a session and this one was used least; it ends if nothing of it is
    /// open.
    GiveWay,
    /// A request's task: its outcome.
    Finished { key: CallKey, outcome: Outcome },
    /// A request's task: progress or a log message, with the credit that lets it send the next.
    Heard { key: CallKey, note: CallNote, credit: OwnedSemaphorePermit },
    /// A line: a question to the host during one of its requests.
    Ask { key: CallKey, ask: Id, question: Question, reply: oneshot::Sender<Reply> },
    /// An instance that serves this host alone: the line for a question about none of its requests.
    GetLine { reply: RpcReplyPort<HostLine> },
    /// A line: nobody waits for this question's reply any more, if it is open still.
    Unask { ask: Id },
    /// Hosts: the lists that hosts see are others.
    ViewChanged { view: Views },
    /// The subscriptions: something that this host did not ask for now, with the credit that lets
    /// the next of its kind come.
    Note { note: HostNote, credit: OwnedSemaphorePermit },
    /// A listen stream of this host: something to say on it, with the credit that lets it say the
    /// next.
    Streamed { key: CallKey, word: Word, credit: Option<OwnedSemaphorePermit> },
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
    /// Its actor.
    #[serde(skip)]
    pub actor: u64,
    /// `stdio` or `http`.
    #[serde(skip)]
    pub transport: &'static str,
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
    wire: Wire,
    requests: HashMap<CallKey, TaskGuard>,
    questions: Questions,
    listens: HashMap<CallKey, ListenGuard>,
    context: Arc<Context>,
    caller: Caller,
    revision: String,
    repeats: Arc<Repeats>,
    listed: Arc<Listed>,
    view: Views,
    /// By which it is the same session for a later daemon; a secret, as its tasks are its own.
    name: Arc<str>,
    /// It has lists from an earlier daemon.
    returns: bool,
    /// Those of them that were others then.
    missed: Vec<ListKind>,
    opened: bool,
    draining: bool,
    timer: Timer,
}

/// What leads to the host.
enum Wire {
    Link(LinkWire),
    Http(Box<Session>),
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
                if let Wire::Link(link) = &mut state.wire {
                    link.withhold(credit);
                }
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
            HostMsg::RoomAgain => {
                if let Wire::Link(link) = &mut state.wire {
                    link.room_again();
                }
            }
            HostMsg::Post { post } => state.post(now, *post),
            HostMsg::BeginStream { post } => {
                if let Wire::Http(http) = &mut state.wire {
                    http.wire.begin_waiting(post);
                }
            }
            HostMsg::Listen { said, last_seen, reply } => {
                // Nobody waits any more: its receiver falls, as if the reader had gone.
                let _ = reply.send(state.listen(now, &said, last_seen.as_deref()));
            }
            HostMsg::End { said, reply } => {
                let ended = state.end_session(now, &said);
                let _ = reply.send(ended);
            }
            HostMsg::Entered { entry } => state.entered(entry),
            HostMsg::Subscribed { again } => state.subscribed(again.as_deref()),
            HostMsg::IdleDue => state.idle_due(now),
            HostMsg::GiveWay => state.give_way(now),
            HostMsg::Finished { key, outcome } => {
                state.requests.remove(&key);
                state.note_view();
                state.session.finish(now, key, outcome);
            }
            HostMsg::Heard { key, note, credit } => {
                // A host that does not read has no use for it, and it would pile up.
                if state.flows() {
                    note.tell(&mut state.session, now, key);
                }
                drop(credit);
            }
            HostMsg::Ask { key, ask, question, reply } => state.ask(key, ask, &question, reply),
            HostMsg::GetLine { reply } => {
                // Nobody waits any more: no fault.
                let _ = reply.send(state.line(NO_REQUEST));
            }
            HostMsg::Unask { ask } => state.unask(&ask),
            HostMsg::ViewChanged { view } => state.view_changed(view),
            HostMsg::Note { note, credit } => state.note(now, note, credit),
            HostMsg::Streamed { key, word, credit } => state.streamed(key, word, credit),
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
        state.listens.clear();
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
        let HostArgs { id, way, project, listed, view, config, context } = args;
        let settings = context.settings();
        let (mut before, mut who) = (None, None);
        let (wire, seen_view, name) = match way {
            Way::Link { link, user, seen_view, name } => {
                who = user.map(Who::User);
                let credits = settings.link.read_credits;
                let name: Arc<str> = name.unwrap_or_else(clock::random_name).into();
                (Wire::Link(LinkWire::new(&me, *link, credits)), seen_view, name)
            }
            Way::Http { id, sessions, held, before: kept } => {
                let (wire, name) = (HttpWire::new(settings.sessions), Arc::clone(held.name()));
                before = kept;
                let lives = before.as_ref().map_or(0, |before| before.lives);
                let session = Session::new(wire, id, sessions, held, lives);
                (Wire::Http(Box::new(session)), None, name)
            }
        };
        let caller = Caller {
            host: Some(id),
            project,
            label: Arc::from("unknown"),
            era: Era::Modern,
            answers: Answers::Nobody,
            source: Source { who, ..Source::default() },
        };
        let log_queue = settings.call.log_queue;
        let keeps = matches!(wire, Wire::Http(_));
        context.upstreams.subs().host_came(&caller, &name, me.clone(), log_queue, keeps);
        let returns = seen_view.is_some() || before.is_some();
        let changed = seen_view.map(|seen| view.changed_since_text(&seen)).unwrap_or_default();
        let mut state = Self {
            me,
            id,
            session: HostSession::new(config),
            wire,
            requests: HashMap::new(),
            questions: Questions::default(),
            listens: HashMap::new(),
            caller,
            revision: String::new(),
            repeats: Arc::new(Repeats::new(settings.call.repeat_memory)),
            listed,
            context,
            view,
            name,
            returns,
            missed: changed,
            opened: false,
            draining: false,
            timer: Timer::new(),
        };
        state.tell_shim(|| Bytes::from(format!("{VIEW_LINE}{}", state.view)));
        for kind in state.missed.clone() {
            state.session.host_note(clock::now(), HostNote::Changed(kind));
        }
        if let Some(before) = before {
            state.resume(*before);
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
            spawn(async move { context.ensure_listed(&caller, ListKind::Tools).await });
        }
    }

    /// Executes what the session wants, as long as the host takes it.
    fn pump(&mut self) {
        self.execute();
        if let Wire::Http(http) = &mut self.wire {
            http.wire.flush(clock::now());
            let lost = http.wire.take_lost();
            if !lost.is_empty() {
                for post in lost {
                    self.session.stream_lost(post);
                }
                self.execute();
            }
        }
        self.timer.set(&self.me, self.session.poll_deadline(), HostMsg::DeadlineDue);
        let in_flight = self.session.in_flight();
        match &mut self.wire {
            Wire::Link(link) => link.settle(in_flight),
            Wire::Http(http) => {
                let over = self.draining || self.session.agreed().is_none();
                if over && in_flight == 0 && http.wire.is_answered() {
                    self.me.stop(None);
                }
            }
        }
    }

    fn execute(&mut self) {
        while self.has_room() {
            let Some(output) = self.session.poll_output() else { break };
            match output {
                HostOutput::Send { frame, post, .. } => self.send(post, frame),
                HostOutput::PostDone(post) => self.post_done(post),
                HostOutput::Event(event) => self.act_on(event),
                HostOutput::Notice(notice) => {
                    self.context.events.emit(Event::from_notice(notice).of_host(self.label()));
                }
            }
        }
    }

    fn has_room(&mut self) -> bool {
        match &mut self.wire {
            Wire::Link(link) => link.has_room(&self.me),
            // What a stream has no room for is its own affair.
            Wire::Http(_) => true,
        }
    }

    fn flows(&self) -> bool {
        match &self.wire {
            Wire::Link(link) => link.flows(),
            Wire::Http(_) => true,
        }
    }

    fn send(&mut self, post: Option<PostId>, frame: Frame) {
        match &mut self.wire {
            Wire::Link(link) => link.send(frame),
            Wire::Http(http) => http.wire.send(clock::now(), post, frame),
        }
    }

    /// A word to the shim; nobody else has use for it.
    fn tell_shim(&self, word: impl FnOnce() -> Bytes) {
        if let Wire::Link(link) = &self.wire {
            link.send(word());
        }
    }

    fn post_done(&mut self, post: PostId) {
        if let Wire::Http(http) = &mut self.wire {
            let session = http.untold.take();
            http.wire.done(clock::now(), post, session);
        }
    }

    fn act_on(&mut self, event: HostEvent) {
        match event {
            HostEvent::Request(request) => self.start(request),
            HostEvent::Listen(want) => self.open_stream(clock::now(), want),
            HostEvent::Cancelled { key } => {
                self.requests.remove(&key);
                self.listens.remove(&key);
            }
            HostEvent::Opened { label, revision, declared } => {
                self.context.upstreams.subs().host_opened(self.id, declared);
                self.opened(&label, revision);
            }
            HostEvent::Agreed => self.keep(),
            HostEvent::Answered(answered) => self.answered(answered),
            HostEvent::Notification { method, .. }
                if method.as_str() == "notifications/roots/list_changed" =>
            {
                self.context.upstreams.subs().roots_changed(self.id);
            }
            HostEvent::Foreign { method, params } => {
                dispatch::alone_note(&self.context, &self.caller, method, params);
            }
            HostEvent::Notification { method, .. } => {
                tracing::debug!(host = self.label(), %method, "notification without effect");
            }
        }
    }

    fn opened(&mut self, label: &str, revision: String) {
        self.caller.label = Arc::from(label);
        self.revision = revision;
        self.enter();
        if !self.opened {
            self.opened = true;
            let does = if self.returns { "goes on with its" } else { "opened a" };
            let text = format!("host {label} {does} session in revision {}", self.revision);
            self.context.events.emit(Event::new("host.opened", text).of_host(self.label()));
        }
    }

    fn start(&mut self, request: HostRequest) {
        let key = request.key;
        let answers = self.answers(key, &request.peer);
        let report = Report { me: self.me.clone(), key, outcome: None };
        let context = Arc::clone(&self.context);
        let wants = Wants::of(&request, Some(self.id), &context.settings().call);
        let (sender, receiver) = wants.map(progress::channel).unzip();
        let tasks = self.task_side(&request.peer);
        let work = dispatch::Request {
            method: request.method,
            params: request.params,
            tasks,
            caller: Caller {
                era: request.peer.revision.era(),
                answers,
                source: Source { who: self.who(), ..Source::of_request(self.via(), &request.id) },
                ..self.caller.clone()
            },
            progress: sender,
            repeats: Arc::clone(&self.repeats),
            listed: Arc::clone(&self.listed),
            headers: None,
        };
        let guard = match receiver {
            // Boxed at once: starting a task moves its future several times.
            None => spawn_guarded(Box::pin(run(context, work, report))),
            Some(notes) => spawn_guarded(Box::pin(run_with_progress(context, work, report, notes))),
        };
        self.requests.insert(key, guard);
    }

    /// How the sender of a request takes tasks. Those of the core belong to the session, which has to
    /// have been opened; a modern one's to whoever knows their ids (T-13).
    fn task_side(&self, peer: &Peer) -> TaskSide {
        let form = peer.task_form();
        let lasts = matches!(self.wire, Wire::Link(_)) || self.session.agreed().is_some();
        let owns = form == TaskForm::Core && lasts;
        TaskSide { form, session: owns.then(|| Arc::clone(&self.name)) }
    }

    /// A host that does not read is told of an update when it does; log messages it has missed, and how
    /// its tasks stood meanwhile.
    fn note(&mut self, now: Instant, note: HostNote, credit: OwnedSemaphorePermit) {
        let settings = self.context.settings();
        if let HostNote::Foreign { server, .. } = &note
            && !settings.is_alone(server)
        {
            return;
        }
        let may_be_missed =
            matches!(note, HostNote::Log { .. } | HostNote::Foreign { .. } | HostNote::Task { .. });
        if self.flows() || !may_be_missed {
            self.session.host_note(now, note);
            if let Wire::Link(link) = &mut self.wire {
                link.withhold(credit);
            }
        }
    }

    fn host_closed(&mut self, why: &str) {
        tracing::debug!(host = self.label(), why, "host closed its side");
        if let Wire::Link(link) = &mut self.wire {
            link.at_end = true;
        }
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
            self.tell_shim(|| Bytes::from(format!("{VIEW_LINE}{view}")));
            self.view = view;
            self.keep();
        }
    }

    fn view_changed(&mut self, view: Views) {
        let changed = view.changed_since(&self.view);
        if changed.is_empty() {
            return;
        }
        self.tell_shim(|| Bytes::from(format!("{VIEW_LINE}{view}")));
        for kind in changed {
            // Who never had a list misses nothing; and its own list may have been what brought the
            // change to light.
            let has_list = self.returns || self.listed.last(kind).is_some();
            if has_list && !self.listed.is(kind, view.of(kind)) {
                self.session.host_note(clock::now(), HostNote::Changed(kind));
            }
        }
        self.view = view;
        self.keep();
    }

    /// The shim ends its side when it has read the line, so that no frame is lost between the two.
    fn drain(&mut self) {
        self.draining = true;
        if let Wire::Link(_) = &self.wire {
            // The shim passes nothing on any more, answers of its host least of all.
            self.session.stop_asking();
        }
        self.tell_shim(|| Bytes::from_static(DRAIN_LINE.as_bytes()));
        self.keep();
        if let Wire::Http(http) = &mut self.wire {
            http.wire.end_own();
        }
    }

    const fn via(&self) -> Via {
        match &self.wire {
            Wire::Link(_) => Via::Stdio,
            Wire::Http(_) => Via::Http,
        }
    }

    /// Whose connection it is; over HTTP whoever has the token, if it takes one.
    fn who(&self) -> Option<Who> {
        match &self.wire {
            Wire::Link(_) => self.caller.source.who,
            Wire::Http(_) => self.context.who_over_http(),
        }
    }

    fn label(&self) -> String {
        format!("{}#{}", self.caller.label, self.id.0)
    }

    fn status(&self) -> HostStatus {
        HostStatus {
            actor: self.me.get_id().pid(),
            transport: self.via().word(),
            id: self.id.0,
            label: self.caller.label.to_string(),
            revision: self.revision.clone(),
            project: self.caller.project.as_ref().map(|path| path.display().to_string()),
            in_flight: self.session.in_flight(),
        }
    }
}
