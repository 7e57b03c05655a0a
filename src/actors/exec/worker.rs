//! One sandbox process, from its start to its end.
//!
//! Children: none; tasks: the start, the writer, and the keeper of its process, which outlives it. Ends
//! when its process has ended, or when whoever has the [`Sandbox`] lets go of it; the process is killed
//! with its group then, also where this actor fails. Temporary: its supervisor starts another. Knows
//! nothing of the script: frames pass it by.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{oneshot, watch};

use super::ExecMsg;
use crate::actors::instance::connect::{Connect, Connected, Process};
use crate::actors::instance::keeper::Alive;
use crate::actors::support::task::{self, TaskGuard};
use crate::script::wire::FromSandbox;
use crate::transport::link::{Link, LinkEvent, LinkReader, LinkSender, LinkWriter};
use crate::transport::stdio::child::{SpawnSpec, StopLadder};
use crate::transport::stdio::ring::{StderrDrain, StderrRing};

/// A sandbox that stands ready for one script. The process is killed when it falls.
#[derive(Debug)]
pub(crate) struct Sandbox {
    /// What it says.
    pub(crate) reader: LinkReader,
    /// What it is told.
    pub(crate) sender: LinkSender,
    /// How its process ended, once it has.
    pub(crate) ended: watch::Receiver<Option<String>>,
    /// Its stderr.
    pub(crate) stderr: StderrRing,
    pub(super) worker: ActorRef<WorkerMsg>,
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // One that has ended is as good as told.
        let _ = self.worker.cast(WorkerMsg::End);
    }
}

/// What a worker is made from.
pub(super) struct WorkerArgs {
    /// What is started.
    pub(super) spec: SpawnSpec,
    /// By whom.
    pub(super) connect: Arc<dyn Connect>,
    /// How long it may take (`exec.start_timeout`).
    pub(super) start: Duration,
    /// How it is ended: at once.
    pub(super) ladder: StopLadder,
    /// Counts processes.
    pub(super) alive: Alive,
    /// To whom it reports.
    pub(super) exec: ActorRef<ExecMsg>,
}

/// What a worker hears.
pub(crate) enum WorkerMsg {
    /// The start task: the process runs, and has said that it is ready; or why not.
    Started {
        /// The process.
        started: Result<Box<Started>, String>,
    },
    /// The keeper: the process has exited.
    Exited {
        /// How.
        why: String,
    },
    /// Whoever had the sandbox is done with it.
    End,
}

/// What the start task made.
pub(crate) struct Started {
    reader: LinkReader,
    sender: LinkSender,
    stderr: StderrRing,
    keeper: Keeper,
    writing: TaskGuard,
    ended: watch::Receiver<Option<String>>,
}

impl fmt::Debug for WorkerMsg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Started { .. } => "Started",
            Self::Exited { .. } => "Exited",
            Self::End => "End",
        })
    }
}

/// The actor.
pub(super) struct Worker;

pub(super) struct WorkerState {
    me: ActorRef<WorkerMsg>,
    exec: ActorRef<ExecMsg>,
    starting: Option<TaskGuard>,
    /// What keeps the process alive.
    running: Option<(Keeper, TaskGuard)>,
}

impl Actor for Worker {
    type Msg = WorkerMsg;
    type State = WorkerState;
    type Arguments = WorkerArgs;

    async fn pre_start(
        &self,
        me: ActorRef<WorkerMsg>,
        args: WorkerArgs,
    ) -> Result<WorkerState, ActorProcessingErr> {
        let (exec, worker) = (args.exec.clone(), me.clone());
        let starting = task::spawn_guarded(async move {
            let started = start(args, &worker).await;
            // A worker that has ended wants no process: it falls with the message.
            let _ = worker.cast(WorkerMsg::Started { started: started.map(Box::new) });
        });
        Ok(WorkerState { me, exec, starting: Some(starting), running: None })
    }

    async fn handle(
        &self,
        me: ActorRef<WorkerMsg>,
        message: WorkerMsg,
        state: &mut WorkerState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            WorkerMsg::Started { started } => state.started(started),
            WorkerMsg::Exited { why } => me.stop(Some(why)),
            WorkerMsg::End => me.stop(None),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<WorkerMsg>,
        _event: SupervisionEvent,
        _state: &mut WorkerState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children; the default would stop it.
        Ok(())
    }
}

impl WorkerState {
    fn started(&mut self, started: Result<Box<Started>, String>) {
        self.starting = None;
        match started {
            Ok(started) => {
                let Started { reader, sender, stderr, keeper, writing, ended } = *started;
                self.running = Some((keeper, writing));
                let worker = self.me.clone();
                let sandbox = Sandbox { reader, sender, ended, stderr, worker };
                // Where the supervisor has ended, the sandbox falls, and tells this actor.
                let _ = self.exec.cast(ExecMsg::Ready { sandbox: Box::new(sandbox) });
            }
            Err(why) => {
                // That it ended before it was ready is all that its supervisor needs to know.
                self.me.stop(Some(why));
            }
        }
    }
}

/// Starts the process and waits until it says that it is ready.
async fn start(args: WorkerArgs, worker: &ActorRef<WorkerMsg>) -> Result<Started, String> {
    let WorkerArgs { spec, connect, start, ladder, alive, .. } = args;
    let Connected { link, drain, process } = connect
        .connect(&spec)
        .map_err(|error| format!("a sandbox could not be started: {error}"))?;
    let Link { mut reader, sender, writer } = link;
    let stderr = process.stderr();
    let (told, mut ended) = watch::channel(None);
    let keeper = Keeper::watch(process, drain, ladder, &alive, worker.clone(), told);
    let writing = task::spawn_guarded(write(writer));
    let ready = tokio::time::timeout(start, ready(&mut reader)).await;
    let why = match ready {
        Ok(Ok(())) => return Ok(Started { reader, sender, stderr, keeper, writing, ended }),
        Ok(Err(why)) => {
            // How the process ended says more than that its output did.
            let exit = tokio::time::timeout(ladder.term, ended.wait_for(Option::is_some)).await;
            let exit = exit.ok().and_then(Result::ok).and_then(|exit| exit.clone());
            exit.unwrap_or(why)
        }
        Err(_) => format!("it was not ready within {start:?} (setting exec.start_timeout)"),
    };
    let last = stderr.tail(1).into_iter().next().map(|line| format!(": {line}"));
    Err(format!("a sandbox did not start: {why}{}", last.unwrap_or_default()))
}

async fn write(writer: LinkWriter) {
    // That it cannot be written to is seen when its output ends.
    let _ = writer.run().await;
}

async fn ready(reader: &mut LinkReader) -> Result<(), String> {
    match reader.next().await {
        LinkEvent::Frame(frame) => {
            if matches!(serde_json::from_slice(&frame), Ok(FromSandbox::Ready)) {
                return Ok(());
            }
            let said: String = String::from_utf8_lossy(&frame).chars().take(80).collect();
            Err(format!("it said `{said}` where it was to say that it is ready"))
        }
        LinkEvent::TooLarge { bytes, .. } => Err(format!("it said {bytes} bytes in one line")),
        LinkEvent::Closed { why } => Err(why),
    }
}

/// Ends the process when it falls.
#[derive(Debug)]
struct Keeper {
    _stop: oneshot::Sender<()>,
}

impl Keeper {
    /// Watches over `process` in a task of its own, so that neither the end nor a failure of the actor
    /// leaves it.
    fn watch(
        mut process: Box<dyn Process>,
        drain: Option<StderrDrain>,
        ladder: StopLadder,
        alive: &Alive,
        worker: ActorRef<WorkerMsg>,
        told: watch::Sender<Option<String>>,
    ) -> Self {
        let one = alive.one();
        let (stop, mut stopped) = oneshot::channel();
        let drain = drain.map(|drain| task::spawn(drain.run()));
        task::spawn(async move {
            tokio::select! {
                biased;
                report = process.exited() => {
                    told.send_replace(Some(report.text.clone()));
                    // What a dead worker is told is of no interest to anybody.
                    let _ = worker.cast(WorkerMsg::Exited { why: report.text });
                }
                _ = &mut stopped => {}
            }
            process.stop(ladder).await;
            drop(one);
            if let Some(drain) = drain {
                drain.abort();
            }
        });
        Self { _stop: stop }
    }
}
