//! Supervisor of host connections.
//!
//! Children: a [`super::host`] for each connection (temporary: a crashed one is never restarted, its
//! shim dials again). Owns the connection limit and tells hosts when the list they see has changed.
//! Ends with the daemon, after its hosts have drained or `host.drain` has passed.

pub mod door;
mod face;
mod gate;
mod token;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr,
    SupervisionEvent,
};
use tokio::sync::{oneshot, watch};

use self::face::Face;
use super::dispatch::{Context, Listed};
use super::events::{Event, EventsHandle};
use super::host::kept::{Kept, name_of};
use super::host::sessions::{SessionId, Sessions};
use super::host::streams::{PostIn, PostOut};
use super::host::{Host, HostArgs, HostMsg, HostStatus, Way};
use super::settings::{Current, Seat};
use super::support::ask::{AskError, ask};
use super::support::slot::Slot;
use super::support::stop;
use super::support::task::{TaskGuard, spawn, spawn_guarded};
use super::upstreams::{Answers, Caller, HostId, Source};
use crate::protocol::http_rules::post::{Refusal, id_of};
use crate::protocol::revision::Era;
use crate::protocol::session::host::HostConfig;
use crate::protocol::session::upstream::ListKind;
use crate::settings::ServerDef;
use crate::transport::Link;
use crate::transport::store::Store;

/// A connection that wants to be a host's.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) link: Link,
    pub(crate) project: Option<Arc<Path>>,
    pub(crate) seen_view: Option<String>,
    /// The name that its shim has given itself.
    pub(crate) name: Option<String>,
    /// What its host sees and may use.
    pub(crate) context: Arc<Context>,
}

/// A POST over HTTP that no session knows: an `initialize`, or a message of a host that keeps none.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The id that its session is to have.
    pub(crate) id: SessionId,
    pub(crate) post: PostIn,
    /// What its host sees and may use.
    pub(crate) context: Arc<Context>,
}

/// What became of a session that a request names.
#[derive(Debug)]
pub(crate) enum Named {
    /// It is here.
    Host(ActorRef<HostMsg>),
    /// It is over, or never was.
    Unknown,
    /// It may be here again in a moment: it is just ending, or the daemon is.
    Later,
}

/// What the supervisor is told.
#[derive(Debug)]
pub(crate) enum HostsMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// Control: a shim has connected.
    Attach { attached: Box<Attached> },
    /// The endpoint: a host over HTTP begins.
    Open { opening: Box<Opening> },
    /// The endpoint: a request names a session that does not run, but may be kept.
    Wake { id: SessionId, context: Arc<Context>, reply: oneshot::Sender<Named> },
    /// A session that was asked to give way: it cannot.
    Stays { actor: ActorId },
    /// Its watching task: what hosts see may have changed.
    Look,
    /// Root: the daemon stops. Answered when the last host has left.
    Drain { reply: RpcReplyPort<()> },
    /// For status pages.
    GetStatus { reply: RpcReplyPort<Vec<HostStatus>> },
}

/// How others reach the hosts. Cheap to clone; outlives the supervisor's incarnations.
#[derive(Debug, Clone)]
pub struct HostsHandle {
    actor: Slot<HostsMsg>,
    sessions: Sessions,
    kept: Kept,
    /// What hosts over HTTP that come in by no profile are told of mcpx, for requests that need no
    /// session.
    face: Arc<RwLock<Option<Arc<HostConfig>>>>,
}

impl HostsHandle {
    /// No host yet; sessions of an earlier daemon are read from `store`.
    pub fn new(store: Arc<dyn Store>, events: EventsHandle) -> Self {
        Self {
            actor: Slot::default(),
            sessions: Sessions::default(),
            kept: Kept::new(store, events),
            face: Arc::default(),
        }
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.actor.ask(limit, |reply| HostsMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the supervisor as a child of `parent`.
    pub(crate) async fn start(
        &self,
        parent: ActorCell,
        context: Arc<Context>,
    ) -> Result<ActorCell, SpawnErr> {
        let args = (self.clone(), context);
        let (actor, _) = Hosts::spawn_linked(None, Hosts, args, parent).await?;
        Ok(actor.get_cell())
    }

    /// Hands over a connection; it is closed where no more are admitted.
    pub(crate) fn attach(&self, attached: Attached) {
        // A supervisor that has ended drops the link, which closes it.
        self.actor.cast(HostsMsg::Attach { attached: Box::new(attached) });
    }

    /// Begins a session over HTTP with its first POST, which has its answer in any case.
    pub(crate) fn open(&self, opening: Opening) {
        self.actor.cast(HostsMsg::Open { opening: Box::new(opening) });
    }

    /// A session that was asked to give way has something open.
    pub(crate) fn stays(&self, actor: ActorId) {
        self.actor.cast(HostsMsg::Stays { actor });
    }

    /// The session over HTTP that has this id, for a host that comes in as `context` says; one that an
    /// earlier daemon had goes on from here.
    pub(crate) async fn session(&self, id: &str, context: &Arc<Context>) -> Named {
        if let Some(session) = self.sessions.find(id, context.profile()) {
            return Named::Host(session);
        }
        // Ids that nobody has cost the supervisor nothing.
        if !self.kept.knows(&name_of(id, context.profile())) {
            return Named::Unknown;
        }
        let (reply, answered) = oneshot::channel();
        let (id, context) = (SessionId::named(id), Arc::clone(context));
        self.actor.cast(HostsMsg::Wake { id, context, reply });
        answered.await.unwrap_or(Named::Later)
    }

    /// Returns once all that sessions have agreed is on disk, or after `limit`.
    pub(crate) async fn settled(&self, limit: Duration) {
        self.kept.settled(limit).await;
    }

    /// What a host over HTTP is told of mcpx; `None` before the supervisor runs.
    pub(crate) fn face(&self, context: &Context) -> Option<Arc<HostConfig>> {
        let face = self.face.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(if context.profile().is_some() { Face::new(context).http_config } else { face })
    }

    fn show(&self, face: &Arc<HostConfig>) {
        let face = Some(Arc::clone(face));
        *self.face.write().unwrap_or_else(PoisonError::into_inner) = face;
    }

    /// The host connections.
    pub async fn status(&self, limit: Duration) -> Result<Vec<HostStatus>, AskError> {
        self.actor.ask(limit, |reply| HostsMsg::GetStatus { reply }).await
    }

    /// Lets every host finish and leave, for at most `limit`.
    pub(crate) async fn drain(&self, limit: Duration) -> Result<(), AskError> {
        self.actor.ask(limit, |reply| HostsMsg::Drain { reply }).await
    }
}

/// The actor.
#[derive(Debug)]
pub(crate) struct Hosts;

pub(crate) struct HostsState {
    me: ActorRef<HostsMsg>,
    handle: HostsHandle,
    context: Arc<Context>,
    /// What hosts are told and see, by where they see it from; renewed when it changes.
    faces: HashMap<Seat, Face>,
    hosts: HashMap<ActorId, Connected>,
    /// What was never listed.
    unlisted: Vec<Arc<ServerDef>>,
    last_id: u64,
    draining: Option<RpcReplyPort<()>>,
    refused: [bool; 2],
    /// Hosts over HTTP for whom another may make room; no more than there are connections.
    waiting: VecDeque<Opening>,
    /// The session that is asked to.
    asked: Option<ActorId>,
    _watch: TaskGuard,
    _writing: TaskGuard,
}

/// A host connection.
struct Connected {
    id: HostId,
    actor: ActorRef<HostMsg>,
    over_http: bool,
    context: Arc<Context>,
    project: Option<Arc<Path>>,
    /// It has a list from an earlier daemon.
    returns: bool,
    /// Which lists it was given last by this one.
    listed: Arc<Listed>,
}

impl Connected {
    fn has_list(&self, kind: ListKind) -> bool {
        self.returns || self.listed.last(kind).is_some()
    }
}

impl Actor for Hosts {
    type Msg = HostsMsg;
    type State = HostsState;
    type Arguments = (HostsHandle, Arc<Context>);

    async fn pre_start(
        &self,
        me: ActorRef<HostsMsg>,
        (handle, context): (HostsHandle, Arc<Context>),
    ) -> Result<HostsState, ActorProcessingErr> {
        handle.actor.set(me.clone());
        Ok(HostsState::new(me, handle, context))
    }

    async fn handle(
        &self,
        _me: ActorRef<HostsMsg>,
        message: HostsMsg,
        state: &mut HostsState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            HostsMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            HostsMsg::Attach { attached } => state.attach(*attached),
            HostsMsg::Open { opening } => state.open(*opening),
            HostsMsg::Wake { id, context, reply } => {
                // Its request may have gone.
                let _ = reply.send(state.wake(id, context));
            }
            HostsMsg::Stays { actor } => {
                if state.asked == Some(actor) {
                    state.has_answered();
                }
            }
            HostsMsg::Look => state.look(),
            HostsMsg::Drain { reply } => state.drain(reply),
            HostsMsg::GetStatus { reply } => state.report(reply),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        me: ActorRef<HostsMsg>,
        _state: &mut HostsState,
    ) -> Result<(), ActorProcessingErr> {
        // Otherwise they would be killed, and their links cut in the middle of a frame.
        stop::children(&me.get_cell()).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<HostsMsg>,
        event: SupervisionEvent,
        state: &mut HostsState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(cell, _, _) => state.gone(cell.get_id(), None),
            SupervisionEvent::ActorFailed(cell, error) => {
                state.gone(cell.get_id(), Some(error.to_string()));
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl HostsState {
    fn new(me: ActorRef<HostsMsg>, handle: HostsHandle, context: Arc<Context>) -> Self {
        context.upstreams.subs().no_hosts();
        let (catalog, settings) = (context.catalog.watch(), context.settings.watch());
        let delay = context.settings().host.list_changed_delay;
        let watching = spawn_guarded(watch_view(me.clone(), catalog, settings, delay));
        let face = Face::new(&context);
        handle.show(&face.http_config);
        handle.kept.sweep(context.settings().sessions.idle);
        let writing = spawn_guarded(handle.kept.clone().write());
        Self {
            me,
            handle,
            faces: HashMap::from([(Seat::default(), face)]),
            unlisted: face::unlisted(&context),
            context,
            hosts: HashMap::new(),
            last_id: 0,
            draining: None,
            refused: [false; 2],
            waiting: VecDeque::new(),
            asked: None,
            _watch: watching,
            _writing: writing,
        }
    }

    fn attach(&mut self, attached: Attached) {
        let most = self.context.settings().host.max_connections;
        if self.admits(false, most, "host.max_connections") {
            let Attached { link, project, seen_view, name, context } = attached;
            let returns = seen_view.is_some();
            let way = Way::Link { link: Box::new(link), seen_view, name };
            self.connect(way, context, project, returns);
        }
    }

    /// Many hosts over HTTP leave without a word: where there is no room, the session that was used
    /// least makes some, unless something of it is open.
    fn open(&mut self, opening: Opening) {
        let most = self.context.settings().sessions.most;
        if self.draining.is_none() && !self.has_room(true, most) && self.ask_for_room() {
            self.waiting.push_back(opening);
        } else {
            self.admit(opening, most);
        }
    }

    /// Whether a session is being asked to give way.
    fn ask_for_room(&mut self) -> bool {
        if self.asked.is_none() {
            let least = self.handle.sessions.least_used();
            let asked = least.filter(|least| least.cast(HostMsg::GiveWay).is_ok());
            self.asked = asked.map(|least| least.get_id());
        }
        self.asked.is_some()
    }

    /// The session that was asked has given way, or stays.
    fn has_answered(&mut self) {
        self.asked = None;
        let most = self.context.settings().sessions.most;
        if let Some(first) = self.waiting.pop_front() {
            self.admit(first, most);
        }
        if !self.waiting.is_empty() && !self.ask_for_room() {
            for opening in std::mem::take(&mut self.waiting) {
                self.admit(opening, most);
            }
        }
    }

    /// H-10: what is refused is answered, and has no session.
    fn admit(&mut self, opening: Opening, most: usize) {
        let Opening { id, post, context } = opening;
        if self.admits(true, most, "http.max_sessions") {
            let held = self.handle.kept.hold(name_of(id.as_str(), context.profile()));
            let sessions = self.handle.sessions.clone();
            let project = context.settings.project();
            let way = Way::Http { id, sessions, held, before: None };
            if let Some(host) = self.connect(way, context, project, false) {
                let _ = host.cast(HostMsg::Post { post: Box::new(post) });
            }
            return;
        }
        let id = id_of(&post.incoming);
        let refusal = Refusal::too_many_sessions(post.said.or_headerless(), id, most);
        // Its host may have gone.
        let _ = post.reply.send(PostOut::refused(refusal));
    }

    /// A session goes on that an earlier daemon had, or whose actor has failed. There is room for it:
    /// those that sleep count when one more is kept.
    fn wake(&mut self, id: SessionId, context: Arc<Context>) -> Named {
        if let Some(session) = self.handle.sessions.find(id.as_str(), context.profile()) {
            return Named::Host(session);
        }
        let name = name_of(id.as_str(), context.profile());
        let idle = self.context.settings().sessions.idle;
        if self.draining.is_some() {
            return Named::Later;
        }
        let Some((record, held)) = self.handle.kept.take(&name, idle) else {
            return if self.handle.kept.knows(&name) { Named::Later } else { Named::Unknown };
        };
        let sessions = self.handle.sessions.clone();
        let before = Some(Box::new(record));
        let way = Way::Http { id: id.clone(), sessions: sessions.clone(), held, before };
        let (profile, project) = (context.profile().cloned(), context.settings.project());
        let Some(session) = self.connect(way, context, project, true) else { return Named::Later };
        // Found from now on, so that a second request wakes no second one; where the session fails to
        // start, its place falls with the message.
        let entry = sessions.enter(id, profile, session.clone());
        let _ = session.cast(HostMsg::Entered { entry });
        Named::Host(session)
    }

    fn connect(
        &mut self,
        way: Way,
        context: Arc<Context>,
        project: Option<Arc<Path>>,
        returns: bool,
    ) -> Option<ActorRef<HostMsg>> {
        self.last_id += 1;
        let (id, listed) = (HostId(self.last_id), Arc::<Listed>::default());
        let over_http = matches!(way, Way::Http { .. });
        let face = self.faces.entry(context.settings.seat());
        let face = face.or_insert_with(|| Face::new(&context));
        let config = if over_http { &face.http_config } else { &face.config };
        let args = HostArgs {
            id,
            way,
            project: project.clone(),
            listed: Arc::clone(&listed),
            view: face.view.clone(),
            config: Arc::clone(config),
            context: Arc::clone(&context),
        };
        let parent = self.me.get_cell();
        let (actor, _) = ractor::ActorRuntime::spawn_linked_instant(None, Host, args, parent)
            .inspect_err(|error| tracing::error!(%error, "a host connection could not be started"))
            .ok()?;
        let connected =
            Connected { id, actor: actor.clone(), over_http, context, project, returns, listed };
        self.hosts.insert(actor.get_id(), connected);
        Some(actor)
    }

    /// Whether one more is admitted. A refusal is said once until one is: whoever floods us must not
    /// flood the log.
    fn admits(&mut self, over_http: bool, most: usize, setting: &str) -> bool {
        let admitted = self.draining.is_none() && self.has_room(over_http, most);
        let [first, second] = &mut self.refused;
        let refused = if over_http { second } else { first };
        if !admitted && !*refused && self.draining.is_none() {
            let what =
                if over_http { "sessions over HTTP are open" } else { "hosts are connected" };
            let text = format!("{most} {what}, more are refused (setting {setting})");
            self.context.events.emit(Event::new("host.warning", text));
        }
        *refused = !admitted;
        admitted
    }

    fn has_room(&self, over_http: bool, most: usize) -> bool {
        self.hosts.values().filter(|host| host.over_http == over_http).count() < most
    }

    fn look(&mut self) {
        let contexts: HashMap<Seat, Arc<Context>> = self.contexts().collect();
        self.faces = contexts.iter().map(|(seat, of)| (seat.clone(), Face::new(of))).collect();
        if let Some(face) = self.faces.get(&Seat::default()) {
            self.handle.show(&face.http_config);
        }
        self.list_what_came(contexts);
        // Each compares with what it has seen, which may be newer than our last look.
        for host in self.hosts.values() {
            if let Some(face) = self.faces.get(&host.context.settings.seat()) {
                let _ = host.actor.cast(HostMsg::ViewChanged { view: face.view.clone() });
            }
        }
        let settings = &self.context.settings;
        self.context.upstreams.subs().lists_changed(|profile, project| {
            self.faces.get(&settings.seat_of(profile, project)).map(|face| face.view.clone())
        });
    }

    /// Of all whose view may have changed: everybody's, those of the profiles that there are, and those
    /// of hosts in a project or of a profile that is no more.
    fn contexts(&self) -> impl Iterator<Item = (Seat, Arc<Context>)> {
        let mut contexts = HashMap::from([(Seat::default(), Arc::clone(&self.context))]);
        for host in self.hosts.values() {
            contexts.insert(host.context.settings.seat(), Arc::clone(&host.context));
        }
        for profile in &self.context.settings.current().loaded.profiles {
            if let Some(of) = self.context.seen_from(Some(&profile.def.name), None) {
                contexts.entry(of.settings.seat()).or_insert_with(|| Arc::new(of));
            }
        }
        contexts.into_iter()
    }

    /// Servers that came with a change of the configuration are listed for a host that has a list
    /// already: hosts that wait to be told would never hear of them otherwise (F38). One host is
    /// enough, since what is read is shown to all of its project.
    fn list_what_came(&mut self, contexts: HashMap<Seat, Arc<Context>>) {
        let mut unlisted = Vec::new();
        let of_projects =
            |(seat, context): (Seat, _)| seat.project.map(|project| (project, context));
        let everybody = Some((None, Arc::clone(&self.context)));
        let projects = contexts.into_iter().filter_map(of_projects);
        let projects = projects.map(|(project, context)| (Some(project), context));
        for (project, context) in everybody.into_iter().chain(projects) {
            let here = face::unlisted(&context);
            let came =
                here.iter().any(|def| !self.unlisted.contains(def) && !unlisted.contains(def));
            unlisted.extend(here);
            if came {
                self.list_for_one(project.as_ref(), &context);
            }
        }
        self.unlisted = unlisted;
    }

    /// Lists what was never listed for one host that waits for it, of this project where there is one.
    fn list_for_one(&self, project: Option<&Arc<Path>>, context: &Arc<Context>) {
        for kind in ListKind::ALL {
            let there = |host: &&Connected| project.is_none() || host.project.as_ref() == project;
            let waiting = self.hosts.values().filter(there).filter(|host| host.has_list(kind));
            let caller = waiting.min_by_key(|host| host.id).map(|host| Caller {
                host: Some(host.id),
                project: host.project.clone(),
                label: Arc::from("mcpx"),
                era: Era::Modern,
                answers: Answers::Nobody,
                source: Source::default(),
            });
            // A host over HTTP of the modern era has nothing here but its streams.
            let stream = || self.context.upstreams.subs().any_stream(project);
            let Some(caller) = caller.or_else(stream) else { continue };
            let context = Arc::clone(context);
            // Its own limits end it; when it has found something, the catalog wakes us.
            spawn(async move { context.ensure_listed(&caller, kind).await });
        }
    }

    fn drain(&mut self, reply: RpcReplyPort<()>) {
        for host in self.hosts.values() {
            let _ = host.actor.cast(HostMsg::Drain);
        }
        self.draining = Some(reply);
        let most = self.context.settings().sessions.most;
        for opening in std::mem::take(&mut self.waiting) {
            self.admit(opening, most);
        }
        self.done_draining();
    }

    fn done_draining(&mut self) {
        if self.hosts.is_empty()
            && let Some(reply) = self.draining.take()
        {
            let _ = reply.send(());
        }
    }

    fn gone(&mut self, actor: ActorId, failure: Option<String>) {
        let Some(Connected { id, .. }) = self.hosts.remove(&actor) else { return };
        self.context.upstreams.session_ended(id);
        let event = match failure {
            None => Event::new("host.closed", "a host has left"),
            Some(why) => Event::new("host.failed", format!("a host connection failed: {why}")),
        };
        self.context.events.emit(event.of_host(format!("#{}", id.0)));
        if self.asked == Some(actor) {
            self.has_answered();
        }
        self.done_draining();
    }

    /// Asked in a task: a supervisor never waits for its children.
    fn report(&self, reply: RpcReplyPort<Vec<HostStatus>>) {
        let hosts: Vec<_> = self.hosts.values().map(|host| host.actor.clone()).collect();
        let limit = reply.get_timeout().unwrap_or_default();
        spawn(async move {
            let mut statuses = Vec::with_capacity(hosts.len());
            for host in hosts {
                // One that has just left is not on the page.
                if let Ok(status) = ask(&host, limit, |reply| HostMsg::GetStatus { reply }).await {
                    statuses.push(status);
                }
            }
            statuses.sort_by_key(|status| status.id);
            let _ = reply.send(statuses);
        });
    }
}

/// Gathers changes for `delay`, so that fifty in a second are one to the hosts (F38).
async fn watch_view(
    me: ActorRef<HostsMsg>,
    mut catalog: watch::Receiver<Arc<super::catalog::Snapshot>>,
    mut settings: watch::Receiver<Arc<Current>>,
    delay: Duration,
) {
    loop {
        let ended = tokio::select! {
            changed = catalog.changed() => changed.is_err(),
            changed = settings.changed() => changed.is_err(),
        };
        if ended {
            return;
        }
        tokio::time::sleep(delay).await;
        catalog.mark_unchanged();
        settings.mark_unchanged();
        if me.cast(HostsMsg::Look).is_err() {
            return;
        }
    }
}
