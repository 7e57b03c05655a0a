//! Supervisor of sandboxes: processes in which scripts run, one script each.
//!
//! Children: a `worker` for each process (temporary; one that ends is replaced where it stood ready).
//! Owns how many scripts run at once, and how many sandboxes stand ready: `exec.warm`, from the first
//! script on until none has been run for `exec.warm_idle`, so that a daemon whose hosts run no scripts
//! has no such process. The first script waits for its sandbox to start. Permanent; its workers end with
//! it. Never on the path of a script's calls: whoever runs it has the frames.

mod admission;
mod asking;
mod worker;

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr,
    SupervisionEvent,
};
use tokio::sync::watch;

use self::admission::Admission;
pub(crate) use self::admission::Place;
pub(crate) use self::asking::{Deadline, Running, ScriptLine};
pub(crate) use self::worker::Sandbox;
use self::worker::{Worker, WorkerArgs};
use super::events::{Event, EventsHandle};
use super::instance::connect::Connect;
use super::instance::keeper::Alive;
use super::settings::Current;
use super::support::ask::AskError;
use super::support::restart::Intensity;
use super::support::slot::Slot;
use super::support::stop;
use super::support::timer::Timer;
use super::upstreams::{Reason, Refused};
use crate::settings::Settings;
use crate::transport::clock;
use crate::transport::link::LinkLimits;
use crate::transport::stdio::child::{SpawnSpec, StopLadder};
use crate::transport::stdio::ring::RingLimits;

/// The command of this program that is a sandbox.
const COMMAND: &str = "__sandbox";

/// How others come by a sandbox. Cheap to clone; outlives the supervisor's incarnations.
#[derive(Clone)]
pub struct ExecHandle {
    shared: Arc<Shared>,
}

struct Shared {
    settings: watch::Receiver<Arc<Current>>,
    events: EventsHandle,
    connect: Arc<dyn Connect>,
    /// This program's own file.
    program: PathBuf,
    admission: Admission,
    alive: Alive,
    stopping: AtomicBool,
    actor: Slot<ExecMsg>,
}

impl fmt::Debug for ExecHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExecHandle")
    }
}

/// A sandbox for one script, and the place that it takes.
#[derive(Debug)]
pub(crate) struct Taken {
    /// The process.
    pub(crate) sandbox: Sandbox,
    /// Falls with the run.
    pub(crate) _place: Place,
}

impl ExecHandle {
    /// Nothing runs before the first script. `program` is this program's own file.
    pub fn new(
        settings: watch::Receiver<Arc<Current>>,
        events: EventsHandle,
        connect: Arc<dyn Connect>,
        program: PathBuf,
    ) -> Self {
        let shared = Shared {
            settings,
            events,
            connect,
            program,
            admission: Admission::default(),
            alive: Alive::default(),
            stopping: AtomicBool::new(false),
            actor: Slot::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.shared.actor.ask(limit, |reply| ExecMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the supervisor as a child of `parent`.
    pub(crate) async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        let args = Arc::clone(&self.shared);
        let (actor, _) = Exec::spawn_linked(None, Exec, args, parent).await?;
        Ok(actor.get_cell())
    }

    /// A sandbox for one script, as soon as there is a place for it. Dropping the future gives up.
    pub(crate) async fn take(&self) -> Result<Taken, Refused> {
        let settings = self.shared.settings();
        let exec = &settings.exec;
        let place = self.shared.admission.place(exec).await.map_err(|limit| Refused {
            reason: Reason::Busy,
            text: format!(
                "the script was not run: {} scripts run (setting exec.max_running) and {} wait for them \
                 to end, which is the limit (setting {}); try again later",
                exec.max_running, limit.value, limit.setting
            ),
            limit: Some(limit),
        })?;
        if self.is_stopping() {
            return Err(stopping());
        }
        // Starting has a limit of its own, which names the cause.
        let limit = exec.start + settings.daemon.ask;
        let asked = self.shared.actor.ask(limit, |reply| ExecMsg::Take { reply }).await;
        match asked {
            Ok(Ok(sandbox)) => Ok(Taken { sandbox: *sandbox, _place: place }),
            Ok(Err(why)) => Err(Refused::unavailable(format!(
                "the script was not run: {why}; nothing has happened, it is safe to try again"
            ))),
            Err(AskError::Gone) if self.is_stopping() => Err(stopping()),
            Err(error) => {
                Err(Refused::unavailable(format!("the script was not run: no sandbox: {error}")))
            }
        }
    }

    /// Whether the daemon stops: no script is run any more, and those that run are ended.
    pub(crate) fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::SeqCst)
    }

    /// How many scripts run, and how many wait.
    pub fn scripts(&self) -> (usize, usize) {
        self.shared.admission.count()
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.shared.alive.count()
    }

    /// Ends all sandboxes for good, those of running scripts as well; how many outlived `limit`.
    pub(crate) async fn stop(&self, limit: Duration) -> usize {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.actor.cast(ExecMsg::Stop);
        // What is left is counted.
        let _ = tokio::time::timeout(limit, self.shared.alive.none()).await;
        self.shared.alive.count()
    }
}

fn stopping() -> Refused {
    Refused::unavailable(
        "the mcpx daemon is stopping, so the script was not run; nothing has happened, it is safe to try \
         again once the daemon runs again (`mcpx daemon` starts it)",
    )
}

impl Shared {
    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow().loaded.settings)
    }

    /// The process of a sandbox: this program in an empty environment, at a place that is nobody's.
    fn spec(&self, settings: &Settings) -> SpawnSpec {
        SpawnSpec {
            label: "sandbox".to_owned(),
            program: self.program.clone().into_os_string(),
            args: vec![OsString::from(COMMAND)],
            env: Vec::new(),
            cwd: PathBuf::from("/"),
            link: LinkLimits {
                max_frame: settings.link.max_frame,
                // An answer to each call that may be open, and the script itself.
                write_queue: settings.exec.concurrent_calls.saturating_add(1),
                write_queue_bytes: settings.link.write_queue_bytes,
            },
            stderr: RingLimits {
                lines: settings.process.stderr_lines,
                line_bytes: settings.process.stderr_line_bytes,
                log_rate: settings.process.stderr_log_rate,
                bytes: settings.process.stderr_bytes,
            },
            grace: settings.process.term,
        }
    }
}

type Reply = RpcReplyPort<Result<Box<Sandbox>, String>>;

/// What the supervisor hears.
pub(crate) enum ExecMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// A run with a place wants a sandbox. Answered when one is ready, or could not be started.
    Take {
        /// Where it goes.
        reply: Reply,
    },
    /// A worker: its sandbox is ready.
    Ready {
        /// It.
        sandbox: Box<Sandbox>,
    },
    /// The timer: the last script has had its start (`exec.warm_delay`).
    RefillDue,
    /// The timer: no script was run for `exec.warm_idle`.
    IdleDue,
    /// Root: the daemon stops.
    Stop,
}

impl fmt::Debug for ExecMsg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ping { .. } => "Ping",
            Self::Take { .. } => "Take",
            Self::Ready { .. } => "Ready",
            Self::RefillDue => "RefillDue",
            Self::IdleDue => "IdleDue",
            Self::Stop => "Stop",
        })
    }
}

/// The actor.
struct Exec;

struct ExecState {
    me: ActorRef<ExecMsg>,
    shared: Arc<Shared>,
    /// Those that stand ready.
    ready: VecDeque<Sandbox>,
    /// Who waits for one that starts.
    waiting: VecDeque<Reply>,
    /// All that have not ended; whether they are still starting.
    workers: HashMap<ActorId, bool>,
    /// Until when sandboxes are kept ready.
    warm_until: Option<Instant>,
    timer: Timer,
    /// Until when none is started for the stock: a script has just begun.
    hold_until: Option<Instant>,
    refill: Timer,
    /// How often one that stood ready may be replaced at once.
    intensity: Intensity,
    stopped: bool,
}

impl Actor for Exec {
    type Msg = ExecMsg;
    type State = ExecState;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        me: ActorRef<ExecMsg>,
        shared: Arc<Shared>,
    ) -> Result<ExecState, ActorProcessingErr> {
        shared.actor.set(me.clone());
        let daemon = shared.settings().daemon;
        Ok(ExecState {
            me,
            shared,
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            workers: HashMap::new(),
            warm_until: None,
            timer: Timer::new(),
            hold_until: None,
            refill: Timer::new(),
            intensity: Intensity::new(daemon.restart_intensity, daemon.restart_window),
            stopped: false,
        })
    }

    async fn handle(
        &self,
        _me: ActorRef<ExecMsg>,
        message: ExecMsg,
        state: &mut ExecState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ExecMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            ExecMsg::Take { reply } => state.take(clock::now(), reply),
            ExecMsg::Ready { sandbox } => state.is_ready(*sandbox),
            ExecMsg::RefillDue => {
                state.refill.fired();
                state.hold_until = None;
            }
            ExecMsg::IdleDue => state.idle(),
            ExecMsg::Stop => state.stop(),
        }
        state.fill(clock::now()).await;
        Ok(())
    }

    async fn post_stop(
        &self,
        me: ActorRef<ExecMsg>,
        state: &mut ExecState,
    ) -> Result<(), ActorProcessingErr> {
        state.stop();
        // Otherwise they would be killed without their own `post_stop`.
        stop::children(&me.get_cell()).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<ExecMsg>,
        event: SupervisionEvent,
        state: &mut ExecState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
            SupervisionEvent::ActorTerminated(who, _, why) => state.ended(who.get_id(), why),
            SupervisionEvent::ActorFailed(who, error) => {
                state.ended(who.get_id(), Some(error.to_string()));
            }
        }
        state.fill(clock::now()).await;
        Ok(())
    }
}

impl ExecState {
    fn take(&mut self, now: Instant, reply: Reply) {
        if self.stopped {
            return;
        }
        let exec = self.shared.settings().exec;
        self.warm_until = now.checked_add(exec.warm_idle);
        self.hold_until = now.checked_add(exec.warm_delay).filter(|until| *until > now);
        self.refill.set(&self.me, self.hold_until, ExecMsg::RefillDue);
        self.timer.set(&self.me, self.warm_until, ExecMsg::IdleDue);
        match self.ready.pop_front() {
            // Who asked may have gone: the sandbox falls then.
            Some(sandbox) => drop(reply.send(Ok(Box::new(sandbox)))),
            None => self.waiting.push_back(reply),
        }
    }

    fn is_ready(&mut self, sandbox: Sandbox) {
        // Ends overtake messages: one that has ended meanwhile is nobody's any more.
        let Some(starting) = self.workers.get_mut(&sandbox.worker.get_id()) else { return };
        *starting = false;
        if self.stopped {
            return;
        }
        while let Some(reply) = self.waiting.pop_front() {
            if !reply.is_closed() {
                drop(reply.send(Ok(Box::new(sandbox))));
                return;
            }
        }
        self.ready.push_back(sandbox);
    }

    /// The first who waits is told; where nobody does, the next script tries again.
    fn not_started(&mut self, why: &str) {
        self.shared.events.emit(Event::new("exec.not_started", why));
        match self.waiting.pop_front() {
            // Who asked may have gone.
            Some(reply) => drop(reply.send(Err(why.to_owned()))),
            None => self.warm_until = None,
        }
    }

    fn idle(&mut self) {
        self.timer.fired();
        self.warm_until = None;
    }

    fn stop(&mut self) {
        self.stopped = true;
        self.waiting.clear();
        self.ready.clear();
        for worker in self.me.get_children() {
            worker.stop(None);
        }
    }

    /// A worker has ended. One that stood ready is replaced, unless that is in vain.
    fn ended(&mut self, id: ActorId, why: Option<String>) {
        let starting = self.workers.remove(&id).unwrap_or(false);
        let before = self.ready.len();
        self.ready.retain(|sandbox| sandbox.worker.get_id() != id);
        if self.stopped {
            return;
        }
        let why = why.unwrap_or_else(|| "it ended".to_owned());
        if self.ready.len() < before {
            let text = format!("a sandbox ended before it was used: {why}");
            self.shared.events.emit(Event::new("exec.sandbox_lost", text));
            if !self.intensity.admit(clock::now()) {
                self.warm_until = None;
            }
        } else if starting {
            self.not_started(&why);
        }
    }

    fn starting(&self) -> usize {
        self.workers.values().filter(|starting| **starting).count()
    }

    /// Starts what is missing, and ends what is too much.
    async fn fill(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        self.waiting.retain(|reply| !reply.is_closed());
        let settings = self.shared.settings();
        let is_warm = self.warm_until.is_some_and(|until| now < until);
        let warm = if is_warm { settings.exec.warm } else { 0 };
        self.ready.truncate(warm);
        let held = self.hold_until.is_some();
        let wanted = self.waiting.len() + if held { 0 } else { warm };
        while self.ready.len() + self.starting() < wanted {
            let args = WorkerArgs {
                spec: self.shared.spec(&settings),
                connect: Arc::clone(&self.shared.connect),
                start: settings.exec.start,
                // It has nothing to finish.
                ladder: StopLadder { drain: Duration::ZERO, term: settings.process.term },
                alive: self.shared.alive.clone(),
                exec: self.me.clone(),
            };
            match Worker::spawn_linked(None, Worker, args, self.me.get_cell()).await {
                Ok((worker, _)) => {
                    self.workers.insert(worker.get_id(), true);
                }
                Err(error) => {
                    self.not_started(&format!("the actor of a sandbox did not start: {error}"));
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
