use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::Notify;

use super::*;
use crate::actors::instance::connect::{Connected, Exiting, Process};
use crate::actors::support::task;
use crate::settings::Sources;
use crate::transport::link::Link;
use crate::transport::stdio::child::{ExitReport, SpawnError};
use crate::transport::stdio::ring::StderrRing;

const SOON: Duration = Duration::from_secs(5);

/// What a sandbox does when it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Ready,
    /// It never says anything.
    Silent,
    /// It says something else.
    Strange,
    /// There is no such program.
    Missing,
}

/// Processes of this test, all of them in memory.
#[derive(Debug)]
struct Fakes {
    manner: Mutex<Manner>,
    started: Mutex<Vec<Arc<FakeState>>>,
}

#[derive(Debug, Default)]
struct FakeState {
    exit: Notify,
    stopped: AtomicUsize,
}

#[derive(Debug)]
struct FakeProcess {
    state: Arc<FakeState>,
    stderr: StderrRing,
}

fn report(text: &str) -> ExitReport {
    ExitReport { text: text.to_owned(), code: None, rung: None }
}

impl Process for FakeProcess {
    fn pid(&self) -> Option<u32> {
        None
    }

    fn stderr(&self) -> StderrRing {
        self.stderr.clone()
    }

    fn exited(&mut self) -> Exiting<'_> {
        Box::pin(async {
            self.state.exit.notified().await;
            report("killed by signal 9 (SIGKILL)")
        })
    }

    fn stop(self: Box<Self>, _ladder: StopLadder) -> Exiting<'static> {
        self.state.stopped.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { report("exited with status 0") })
    }
}

impl Connect for Fakes {
    fn connect(&self, spec: &SpawnSpec) -> Result<Connected, SpawnError> {
        assert!(spec.env.is_empty(), "nothing of ours is a script's business");
        assert_eq!(spec.args, ["__sandbox"]);
        let manner = *self.manner.lock().unwrap();
        if manner == Manner::Missing {
            return Err(SpawnError::NoFile { program: "/gone/mcpx".to_owned() });
        }
        let (link, far) = Link::pair(spec.link);
        let said: &[u8] = if manner == Manner::Strange { b"hello" } else { b"\"ready\"" };
        task::spawn(far.writer.run());
        let said = (manner != Manner::Silent).then(|| bytes::Bytes::copy_from_slice(said));
        task::spawn(async move {
            let mut reader = far.reader;
            if let Some(said) = said {
                far.sender.send(said).await.unwrap();
            }
            // Its input stays open for as long as it is there.
            while !matches!(reader.next().await, crate::transport::link::LinkEvent::Closed { .. }) {
            }
        });
        let state = Arc::new(FakeState::default());
        self.started.lock().unwrap().push(Arc::clone(&state));
        let process = FakeProcess { state, stderr: StderrRing::new(spec.stderr) };
        Ok(Connected { link, drain: None, process: Box::new(process) })
    }
}

/// Has the supervisor as its child.
struct Parent;

impl Actor for Parent {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

struct Stage {
    exec: ExecHandle,
    fakes: Arc<Fakes>,
    _settings: watch::Sender<Arc<Current>>,
}

impl Stage {
    async fn new(set: &[(&str, &str)]) -> Self {
        let at_once = [("exec.warm_delay", "0")];
        let runtime =
            at_once.iter().chain(set).map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        let sources = Sources { runtime: runtime.collect(), ..Sources::default() };
        let loaded = Arc::new(Settings::load(&sources, Path::new("mcpx")).unwrap());
        let settings = watch::Sender::new(Arc::new(Current { loaded, problems: Vec::new() }));
        let fakes =
            Arc::new(Fakes { manner: Mutex::new(Manner::Ready), started: Mutex::default() });
        let connect = Arc::clone(&fakes) as Arc<dyn Connect>;
        let program = PathBuf::from("/gone/mcpx");
        let exec = ExecHandle::new(settings.subscribe(), EventsHandle::new(64), connect, program);
        let (parent, _) = Actor::spawn(None, Parent, ()).await.unwrap();
        exec.start(parent.get_cell()).await.unwrap();
        Self { exec, fakes, _settings: settings }
    }

    fn becomes(&self, manner: Manner) {
        *self.fakes.manner.lock().unwrap() = manner;
    }

    fn started(&self) -> usize {
        self.fakes.started.lock().unwrap().len()
    }

    fn process(&self, at: usize) -> Arc<FakeState> {
        Arc::clone(&self.fakes.started.lock().unwrap()[at])
    }

    /// Waits, on the paused clock, for all that is under way: nothing in here takes time by itself.
    async fn settled(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    async fn has_processes(&self, count: usize) -> bool {
        self.settled().await;
        self.exec.processes() == count
    }

    async fn refused(&self) -> Refused {
        tokio::time::timeout(SOON * 10, self.exec.take()).await.unwrap().unwrap_err()
    }
}

#[tokio::test(start_paused = true)]
async fn a_stock_stands_ready_from_the_first_script_until_none_comes() {
    let stage = Stage::new(&[("exec.warm", "2"), ("exec.warm_idle", "1m")]).await;
    assert!(stage.has_processes(0).await, "idle costs nothing");
    let first = stage.exec.take().await.unwrap();
    assert!(stage.has_processes(3).await);
    let second = stage.exec.take().await.unwrap();
    stage.settled().await;
    assert_eq!(stage.started(), 4);
    drop(first);
    drop(second);
    assert!(stage.has_processes(2).await, "each is used once");
    assert_eq!(stage.process(0).stopped.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(stage.has_processes(0).await);
    assert_eq!(stage.started(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_next_sandbox_starts_when_the_script_has_begun() {
    let stage = Stage::new(&[("exec.warm_delay", "20ms")]).await;
    let _running = stage.exec.take().await.unwrap();
    stage.settled().await;
    assert_eq!(stage.started(), 1);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(stage.has_processes(2).await);
}

#[tokio::test(start_paused = true)]
async fn one_that_dies_while_it_stands_ready_is_replaced_but_not_for_ever() {
    let more = [("daemon.restart_intensity", "3"), ("exec.warm_idle", "1h")];
    let stage = Stage::new(&more).await;
    drop(stage.exec.take().await.unwrap());
    for round in 2..=4 {
        assert!(stage.has_processes(1).await);
        assert_eq!(stage.started(), round);
        stage.process(round - 1).exit.notify_one();
    }
    assert!(stage.has_processes(1).await);
    assert_eq!(stage.started(), 5);
    stage.process(4).exit.notify_one();
    assert!(stage.has_processes(0).await, "in vain");
    drop(stage.exec.take().await.unwrap());
    stage.settled().await;
    assert_eq!(stage.started(), 7, "the next script tries again");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_is_told_with_its_cause() {
    let stage = Stage::new(&[("exec.start_timeout", "2s")]).await;
    for (manner, cause) in [
        (Manner::Missing, "there is no file `/gone/mcpx`"),
        (Manner::Silent, "not ready within 2s (setting exec.start_timeout)"),
        (Manner::Strange, "it said `hello`"),
    ] {
        stage.becomes(manner);
        let refused = stage.refused().await;
        assert_eq!(refused.reason, Reason::Unavailable);
        assert!(refused.text.contains(cause), "{}", refused.text);
        assert!(refused.text.contains("nothing has happened"), "{}", refused.text);
        assert!(stage.has_processes(0).await);
        assert_eq!(stage.exec.scripts(), (0, 0));
    }
    stage.becomes(Manner::Ready);
    stage.exec.take().await.unwrap();
}

/// Product 7: what a limit refuses says which.
#[tokio::test(start_paused = true)]
async fn more_than_may_run_wait_and_more_than_may_wait_are_refused() {
    let stage = Stage::new(&[("exec.max_running", "1"), ("exec.max_waiting", "1")]).await;
    let first = stage.exec.take().await.unwrap();
    let waiting = task::spawn({
        let exec = stage.exec.clone();
        async move { exec.take().await }
    });
    stage.settled().await;
    assert_eq!(stage.exec.scripts(), (1, 1));
    let refused = stage.refused().await;
    assert_eq!(refused.reason, Reason::Busy);
    assert_eq!(refused.limit.unwrap().setting, "exec.max_waiting");
    assert!(refused.text.contains("setting exec.max_running"), "{}", refused.text);
    drop(first);
    let second = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
    assert!(second.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_process_ends_with_its_worker_and_the_run_hears_how_it_died() {
    let stage = Stage::new(&[("exec.warm", "0")]).await;
    let mut taken = stage.exec.take().await.unwrap();
    stage.process(0).exit.notify_one();
    taken.sandbox.ended.wait_for(Option::is_some).await.unwrap();
    assert_eq!(taken.sandbox.ended.borrow().as_deref(), Some("killed by signal 9 (SIGKILL)"));
    drop(taken);
    // The actor fails: no `post_stop` runs.
    let taken = stage.exec.take().await.unwrap();
    assert!(stage.has_processes(1).await);
    taken.sandbox.worker.kill();
    assert!(stage.has_processes(0).await);
    assert_eq!(stage.process(1).stopped.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_all_and_refuses_what_comes() {
    let stage = Stage::new(&[]).await;
    let _running = stage.exec.take().await.unwrap();
    assert!(stage.has_processes(2).await);
    assert_eq!(stage.exec.stop(SOON).await, 0);
    let refused = stage.refused().await;
    assert!(refused.text.contains("stopping"), "{}", refused.text);
    assert!(stage.has_processes(0).await);
    assert_eq!(stage.started(), 2);
}
