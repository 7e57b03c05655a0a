//! Supervisor of tasks: calls that their hosts do not wait for.
//!
//! Children: a `super::task` for each one that runs (temporary; one that fails has failed its task,
//! and says so). Owns how many there may be, how long they are kept, and their records in the store,
//! from which the next daemon takes what has ended; what still ran then has an unknown outcome, and
//! says so. The table is shared: looking at a task and waiting for it costs no message. Permanent;
//! its children end with it, and a new incarnation finds their tasks without an actor.

mod entry;
mod handover;
mod shared;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr,
    SupervisionEvent,
};
use tokio::sync::watch;

pub use self::entry::{Entry, Facts, Turn};
use self::entry::{Record, wall_ms};
pub(crate) use self::handover::HostAsked;
pub use self::handover::{Handover, Work};
pub(crate) use self::shared::Shared;
use self::shared::TABLE;
use super::events::{Event, EventsHandle};
use super::support::slot::Slot;
use super::support::timer::Timer;
use super::support::{stop, task};
pub(crate) use super::task::TaskMsg;
use super::task::{Task, TaskArgs};
use super::upstreams::{Answers, Reason, UpstreamsHandle};
use crate::protocol::hex::hex;
use crate::protocol::model::answers;
use crate::protocol::model::questions::Reply;
use crate::protocol::model::tasks::{self, Detail};
use crate::protocol::session::{Limit, Outcome};
use crate::protocol::task_fsm::{Machine, Status};
use crate::transport::clock;
use crate::transport::store::Store;

/// Random bytes of an id: nobody guesses one.
const ID_BYTES: usize = 16;

/// How others reach tasks. Cheap to clone; outlives the supervisor's incarnations.
#[derive(Debug, Clone)]
pub struct TasksHandle {
    shared: Arc<Shared>,
}

/// A call that is to be a task.
#[derive(Debug)]
pub struct Begin {
    /// The session that alone may have it; none where the id is all it takes.
    pub owner: Option<String>,
    /// The tool, by its server's name for it.
    pub tool: String,
    /// The server, by its configuration key.
    pub server: String,
    /// The host that began it, by its label.
    pub host: String,
    /// How long its host wants it kept.
    pub ttl: Option<Duration>,
    /// The project folder of its caller.
    pub project: Option<String>,
    /// Its caller speaks a revision of the legacy era.
    pub legacy: bool,
}

/// Goes on with tasks of the daemon before.
pub trait Resume: Send + Sync + 'static {
    /// The work of a task whose server knows it as `upstream`; `None` where it cannot be asked after
    /// any more. What it asks goes to `handover`.
    fn work(&self, facts: &Facts, upstream: &str, handover: &Handover) -> Option<Work>;
}

/// Why a call did not become a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotBegun {
    /// There are as many as `tasks.max` admits.
    Full(Limit),
    /// The system has no randomness for an id, or mcpx is on its way out.
    Unable,
}

impl NotBegun {
    /// In words.
    pub fn text(&self) -> String {
        match self {
            Self::Full(limit) => format!(
                "the call did not become a task: {} are kept already, which is the limit (setting \
                 {}); wait for one to end, or cancel one (`mcpx tasks list`)",
                limit.value, limit.setting,
            ),
            Self::Unable => "the call did not become a task: the mcpx daemon is stopping, or the \
                             system had no randomness for its id; try again"
                .to_owned(),
        }
    }
}

impl TasksHandle {
    /// The tasks of an earlier daemon that are still kept, read from `store`.
    pub fn new(store: Arc<dyn Store>, events: EventsHandle, upstreams: UpstreamsHandle) -> Self {
        let kept = store.all(TABLE).unwrap_or_else(|error| {
            let text = format!("tasks of the daemon before could not be read: {error}");
            events.emit(Event::new("daemon.warning", text));
            Vec::new()
        });
        let entries = kept.iter().filter_map(|(_, bytes)| Record::read(bytes)?.entry());
        let table = entries.map(|entry| (entry.facts.id.clone(), Arc::new(entry))).collect();
        let (writing, actor) = (watch::Sender::new(0), Slot::default());
        let table = Mutex::new(table);
        Self { shared: Arc::new(Shared { store, events, upstreams, table, writing, actor }) }
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.shared.actor.ask(limit, |reply| TasksMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the supervisor as a child of `parent`. What still ran in the daemon
    /// before is gone on with as `resume` says.
    pub async fn start(
        &self,
        parent: ActorCell,
        resume: Arc<dyn Resume>,
    ) -> Result<ActorCell, SpawnErr> {
        let args = (self.clone(), resume);
        let (actor, _) = Tasks::spawn_linked(None, Tasks, args, parent).await?;
        Ok(actor.get_cell())
    }

    /// Makes a task of `work`, which has been told by `handover` that it may become one. Its record is
    /// in the store before this returns (SEP-2663: durable before it is told). Where it cannot be
    /// begun, the work is given back.
    pub async fn begin(
        &self,
        begin: Begin,
        handover: &Handover,
        work: Work,
    ) -> Result<Arc<Entry>, (NotBegun, Option<Work>)> {
        let settings = self.shared.upstreams.settings();
        let Some(id) = draw_id() else { return Err((NotBegun::Unable, Some(work))) };
        let ttl = begin.ttl.unwrap_or(settings.tasks.ttl).min(settings.tasks.max_ttl);
        let facts = Facts {
            id,
            owner: begin.owner,
            what: format!("tool `{}` of server `{}`", begin.tool, begin.server),
            tool: begin.tool,
            server: begin.server,
            host: begin.host,
            created_ms: wall_ms(),
            ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
            project: begin.project,
            legacy: begin.legacy,
        };
        let entry = Arc::new(Entry::new(facts, Machine::new(wall_ms())));
        {
            let mut table = self.shared.table();
            if table.len() >= settings.tasks.most {
                let limit = Limit::count("tasks.max", settings.tasks.most);
                return Err((NotBegun::Full(limit), Some(work)));
            }
            table.insert(entry.facts.id.clone(), Arc::clone(&entry));
        }
        if let Some(id) = handover.upstream() {
            entry.note_upstream(&id);
        }
        self.shared.write(&entry, None).await;
        entry.was_kept();
        let limit = settings.daemon.ask;
        let args = TaskArgs { entry: Arc::clone(&entry), work, shared: Arc::clone(&self.shared) };
        let started = self.shared.actor.ask(limit, |reply| TasksMsg::Begin { args, reply }).await;
        let Ok(Some(actor)) = started else {
            self.shared.forget(&entry.facts.id).await;
            return Err((NotBegun::Unable, None));
        };
        handover.became(&entry.facts.id, actor.clone());
        // Not before: what it asks from here on is the task's.
        let _ = actor.cast(TaskMsg::Go);
        let text = format!("{:?} began for host {}", entry.facts, entry.facts.host);
        self.shared.tell("task.created", &entry, text);
        Ok(entry)
    }

    /// The task of this id; none where there is none, or it belongs to somebody else than `session`
    /// (T-13).
    pub fn find(&self, id: &str, session: Option<&str>) -> Option<Arc<Entry>> {
        let entry = self.get(id)?;
        let owner = entry.facts.owner.as_deref();
        (owner.is_none() || owner == session).then_some(entry)
    }

    /// The task of this id, whoever it belongs to: for the person whose daemon this is.
    pub fn get(&self, id: &str) -> Option<Arc<Entry>> {
        self.shared.table().get(id).cloned()
    }

    /// All tasks, oldest first.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<_> = self.shared.table().values().cloned().collect();
        all.sort_by(|a, b| {
            (a.facts.created_ms, &a.facts.id).cmp(&(b.facts.created_ms, &b.facts.id))
        });
        all
    }

    /// How many run.
    pub fn running(&self) -> usize {
        self.shared.table().values().filter(|entry| !entry.status().is_terminal()).count()
    }

    /// Takes answers by the keys of their questions; unknown keys are ignored (T-06). When it returns,
    /// the task shows that they were taken.
    pub async fn answer(&self, entry: &Entry, replies: Vec<(String, Reply)>) {
        let limit = self.shared.upstreams.settings().daemon.ask;
        // A task without an actor has ended, and asks nothing any more.
        let _ = entry.actor.ask(limit, |reply| TaskMsg::Answer { replies, reply }).await;
    }

    /// Gives the call behind a task up; false where it had ended already.
    pub async fn cancel(&self, entry: &Arc<Entry>) -> bool {
        const WHY: &str = "cancelled by request";
        let limit = self.shared.upstreams.settings().daemon.ask;
        let asked = entry.actor.ask(limit, |reply| TaskMsg::Cancel { reply }).await;
        match asked {
            Ok(cancelled) => cancelled,
            Err(_) => self.shared.end(entry, |machine, now| machine.cancelled(now, WHY)),
        }
    }

    /// What a task ended with, as it was first (T-14); none where it was cancelled or goes on.
    pub async fn outcome(&self, entry: &Entry) -> Option<Outcome> {
        let has_one = matches!(entry.status(), Status::Completed | Status::Failed);
        if !has_one {
            return None;
        }
        if let Some(outcome) = entry.outcome_here() {
            return Some(outcome);
        }
        let (store, id) = (Arc::clone(&self.shared.store), entry.facts.id.clone());
        let read = tokio::task::spawn_blocking(move || store.get(TABLE, &id)).await;
        let kept = read.ok().and_then(Result::ok).flatten();
        let outcome = kept.and_then(|bytes| Record::read(&bytes)?.outcome());
        Some(outcome.unwrap_or_else(|| {
            let text = "the result of the task could not be read from the store; \
                        `mcpx events` tells why";
            Err(answers::refused(Reason::Unavailable.as_str(), text))
        }))
    }

    /// The whole task in newest shape, as `tasks/get` and notifications show it.
    pub async fn whole(&self, entry: &Entry) -> tasks::Task {
        let mut whole = entry.task(self.shared.upstreams.settings().tasks.poll);
        match self.outcome(entry).await {
            Some(Ok(result)) => whole.detail = Detail::Result(result),
            Some(Err(error)) => whole.detail = Detail::Error(error),
            None => {}
        }
        whole
    }

    /// Lets go of those that the next daemon can go on with, before their servers' connections end. To be
    /// called when no call is admitted any more.
    pub async fn suspend(&self, limit: Duration) {
        // Where it takes too long, they end with their connections, and their outcome is unknown.
        let _ = self.shared.actor.ask(limit, |reply| TasksMsg::Suspend { reply }).await;
    }

    /// Resolves when every record is on disk, or `limit` has passed.
    pub async fn flush(&self, limit: Duration) {
        let mut writing = self.shared.writing.subscribe();
        // What takes longer is cut off with the rest of the daemon.
        let _ = tokio::time::timeout(limit, writing.wait_for(|open| *open == 0)).await;
    }
}

/// An id of 128 random bits; none where the system has no randomness.
fn draw_id() -> Option<String> {
    Some(hex(&clock::secret::<ID_BYTES>().ok()?))
}

/// What the supervisor is told.
pub(crate) enum TasksMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// A request: a task begins. Answered with its actor, which waits for [`TaskMsg::Go`].
    Begin { args: TaskArgs, reply: RpcReplyPort<Option<ActorRef<TaskMsg>>> },
    /// The timer: a task has been kept for as long as it is to be.
    ExpiryDue,
    /// Root: the daemon stops.
    Suspend { reply: RpcReplyPort<()> },
}

impl fmt::Debug for TasksMsg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ping { .. } => "Ping",
            Self::Begin { .. } => "Begin",
            Self::ExpiryDue => "ExpiryDue",
            Self::Suspend { .. } => "Suspend",
        })
    }
}

/// The actor.
struct Tasks;

struct TasksState {
    me: ActorRef<TasksMsg>,
    shared: Arc<Shared>,
    running: HashMap<ActorId, Arc<Entry>>,
    expiry: Timer,
}

impl Actor for Tasks {
    type Msg = TasksMsg;
    type State = TasksState;
    type Arguments = (TasksHandle, Arc<dyn Resume>);

    async fn pre_start(
        &self,
        me: ActorRef<TasksMsg>,
        (handle, resume): (TasksHandle, Arc<dyn Resume>),
    ) -> Result<TasksState, ActorProcessingErr> {
        let shared = handle.shared;
        shared.actor.set(me.clone());
        let mut state = TasksState { me, shared, running: HashMap::new(), expiry: Timer::new() };
        // Those of the daemon before, and those of an incarnation that failed.
        let left: Vec<_> = state.shared.table().values().cloned().collect();
        for entry in left.into_iter().filter(|entry| !entry.status().is_terminal()) {
            state.resume(entry, &*resume).await;
        }
        state.arm();
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<TasksMsg>,
        message: TasksMsg,
        state: &mut TasksState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            TasksMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            TasksMsg::Begin { args, reply } => {
                // Nobody waits any more: the actor ends without having begun.
                let _ = reply.send(state.begin(args).await);
            }
            TasksMsg::ExpiryDue => {
                state.expiry.fired();
                state.expire();
            }
            TasksMsg::Suspend { reply } => {
                state.suspend();
                // Nobody waits any more: no fault.
                let _ = reply.send(());
            }
        }
        state.arm();
        Ok(())
    }

    async fn post_stop(
        &self,
        me: ActorRef<TasksMsg>,
        _state: &mut TasksState,
    ) -> Result<(), ActorProcessingErr> {
        stop::children(&me.get_cell()).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<TasksMsg>,
        event: SupervisionEvent,
        state: &mut TasksState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
            SupervisionEvent::ActorTerminated(who, ..) => state.ended(who.get_id(), "it stopped"),
            SupervisionEvent::ActorFailed(who, error) => {
                state
                    .ended(who.get_id(), &format!("the part of mcpx that ran it failed ({error})"));
            }
        }
        Ok(())
    }
}

impl TasksState {
    async fn begin(&mut self, args: TaskArgs) -> Option<ActorRef<TaskMsg>> {
        let entry = Arc::clone(&args.entry);
        let (actor, _) = Task::spawn_linked(None, Task, args, self.me.get_cell()).await.ok()?;
        entry.actor.set(actor.clone());
        self.running.insert(actor.get_id(), entry);
        Some(actor)
    }

    /// Goes on with a task that nobody runs, if its server can still be asked after it.
    async fn resume(&mut self, entry: Arc<Entry>, resume: &dyn Resume) {
        let handover = Handover::new(Answers::Nobody, None);
        let upstream = entry.upstream().map(str::to_owned);
        let work = upstream.and_then(|id| resume.work(&entry.facts, &id, &handover));
        let begun = match work {
            Some(work) => {
                let (shared, entry) = (Arc::clone(&self.shared), Arc::clone(&entry));
                self.begin(TaskArgs { entry, work, shared }).await
            }
            None => None,
        };
        match begun {
            Some(actor) => {
                handover.became(&entry.facts.id, actor.clone());
                let _ = actor.cast(TaskMsg::Go);
            }
            None => self.shared.lost(&entry, "the mcpx daemon, or a part of it, was restarted"),
        }
    }

    /// Ends the actors of tasks that the next daemon can go on with; their records say that they run.
    fn suspend(&mut self) {
        for child in self.me.get_children() {
            let goes_on = self.running.get(&child.get_id()).is_some_and(|entry| {
                entry.upstream().is_some() && self.shared.upstreams.is_remote(&entry.facts.server)
            });
            if goes_on {
                self.running.remove(&child.get_id());
                child.stop(None);
            }
        }
    }

    /// A task's actor has ended: as a rule, because the task has.
    fn ended(&mut self, id: ActorId, why: &str) {
        let Some(entry) = self.running.remove(&id) else { return };
        if !entry.status().is_terminal() {
            self.shared.lost(&entry, why);
        }
    }

    /// Forgets what has been kept long enough; a call that still runs is given up.
    fn expire(&self) {
        let now = clock::now();
        let mut over = Vec::new();
        self.shared.table().retain(|_, entry| {
            let stays = entry.expires > now;
            if !stays {
                over.push(Arc::clone(entry));
            }
            stays
        });
        for entry in &over {
            entry.actor.cast(TaskMsg::Expired);
            let text = format!("{:?} was kept for its time and is forgotten", entry.facts);
            self.shared.tell("task.expired", entry, text);
        }
        let ids: Vec<_> = over.iter().map(|entry| entry.facts.id.clone()).collect();
        if !ids.is_empty() {
            let shared = Arc::clone(&self.shared);
            task::spawn(async move { shared.erase(ids).await });
        }
    }

    fn arm(&mut self) {
        let next = self.shared.table().values().map(|entry| entry.expires).min();
        self.expiry.set(&self.me, next, TasksMsg::ExpiryDue);
    }
}
