//! Tasks without hosts: their states, their records, and what becomes of them when something fails.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcpx::actors::tasks::{Begin, Entry, Facts, Handover, NotBegun, Resume, TasksHandle, Work};
use mcpx::actors::upstreams::Answers;
use mcpx::protocol::jsonrpc::RawJson;
use mcpx::protocol::model::questions::Question;
use mcpx::protocol::session::Outcome;
use mcpx::protocol::task_fsm::Status;
use mcpx::transport::store::{self, Store};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use serde_json::json;
use tokio::sync::oneshot;

use crate::stage::Stage;

/// The parent of a supervisor under test.
struct Stem;

impl Actor for Stem {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _me: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<()>,
        _event: SupervisionEvent,
        _state: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

/// Goes on with what is called `resumed` at its server.
struct Resumes;

impl Resume for Resumes {
    fn work(&self, _facts: &Facts, upstream: &str, _handover: &Handover) -> Option<Work> {
        (upstream == "resumed").then(|| done("went on"))
    }
}

struct Table {
    tasks: TasksHandle,
    stem: ActorRef<()>,
}

impl Table {
    async fn over(stage: &Stage, store: &Arc<dyn Store>) -> Self {
        let (stem, _) = Actor::spawn(None, Stem, ()).await.unwrap();
        let (events, upstreams) = (stage.events.clone(), stage.upstreams.clone());
        let tasks = TasksHandle::new(Arc::clone(store), events, upstreams);
        tasks.start(stem.get_cell(), Arc::new(Resumes)).await.unwrap();
        Self { tasks, stem }
    }

    async fn begin(&self, ttl: Duration, work: Work) -> Result<(Arc<Entry>, Handover), NotBegun> {
        let handover = Handover::new(Answers::Nobody, None);
        let begun = self.begin_of(&handover, ttl, work).await;
        begun.map(|entry| (entry, handover))
    }

    async fn begin_of(
        &self,
        handover: &Handover,
        ttl: Duration,
        work: Work,
    ) -> Result<Arc<Entry>, NotBegun> {
        let begin = Begin {
            owner: Some("mine".to_owned()),
            tool: "t".to_owned(),
            server: "s".to_owned(),
            host: "h".to_owned(),
            ttl: Some(ttl),
            project: None,
            legacy: true,
        };
        self.tasks.begin(begin, handover, work).await.map_err(|(why, _)| why)
    }

    async fn end(self) {
        self.stem.stop_and_wait(None, None).await.unwrap();
    }
}

fn open(folder: &Path) -> Arc<dyn Store> {
    store::open(&folder.join("tasks.redb")).unwrap().store
}

fn result(text: &str) -> RawJson {
    RawJson::write(&json!({ "content": [{ "type": "text", "text": text }] }))
}

fn done(text: &'static str) -> Work {
    Box::pin(async move { Ok(result(text)) })
}

fn never() -> Work {
    Box::pin(std::future::pending())
}

fn reason_of(result: &serde_json::Value) -> &str {
    result["_meta"]["dev.mcpx/reason"].as_str().unwrap_or_default()
}

async fn ended(entry: &Entry) -> Status {
    let mut watch = entry.watch();
    watch.wait_for(|machine| machine.status().is_terminal()).await.unwrap().status()
}

const LONG: Duration = Duration::from_hours(1);
const SOON: Duration = Duration::from_secs(10);

/// T-10, T-14: what a task ended with is given out unchanged, from memory and from the store.
#[tokio::test]
async fn t14_an_outcome_is_the_same_every_time() {
    let stage = Stage::new(|_| {}).await;
    let store = open(stage.folder.path());
    let table = Table::over(&stage, &store).await;
    let (entry, _) = table.begin(LONG, done("x")).await.unwrap();
    assert_eq!(ended(&entry).await, Status::Completed);
    let first = table.tasks.outcome(&entry).await.unwrap().unwrap();
    table.tasks.flush(LONG).await;
    let second = table.tasks.outcome(&entry).await.unwrap().unwrap();
    assert_eq!((first.as_str(), second.as_str()), (result("x").as_str(), result("x").as_str()));
    assert!(stage.kinds().contains(&"task.completed"), "{:?}", stage.kinds());
    table.end().await;
    stage.end().await;
}

/// T-18: work that fails inside mcpx fails its task, with a text, and nothing else.
#[tokio::test]
async fn t18_work_that_panics_fails_its_task() {
    let stage = Stage::new(|_| {}).await;
    let table = Table::over(&stage, &open(stage.folder.path())).await;
    let (entry, _) = table.begin(LONG, Box::pin(async { panic!("on purpose") })).await.unwrap();
    assert_eq!(ended(&entry).await, Status::Failed);
    let error = table.tasks.outcome(&entry).await.unwrap().unwrap_err();
    assert!(error.message.contains("mcpx failed"), "{error:?}");
    let (other, _) = table.begin(LONG, done("on")).await.unwrap();
    assert_eq!(ended(&other).await, Status::Completed);
    table.end().await;
    stage.end().await;
}

/// T-11: a task that is given up drops its work, and with it the call behind.
#[tokio::test]
async fn t11_cancelling_drops_the_work() {
    struct Falls(Option<oneshot::Sender<()>>);
    impl Drop for Falls {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let stage = Stage::new(|_| {}).await;
    let table = Table::over(&stage, &open(stage.folder.path())).await;
    let (fell, falls) = oneshot::channel();
    let held = Falls(Some(fell));
    let work = async move {
        let _held = held;
        std::future::pending::<Outcome>().await
    };
    let (entry, _) = table.begin(LONG, Box::pin(work)).await.unwrap();
    assert!(table.tasks.cancel(&entry).await);
    falls.await.unwrap();
    assert_eq!(entry.status(), Status::Cancelled);
    assert!(!table.tasks.cancel(&entry).await, "it has ended");
    assert!(table.tasks.outcome(&entry).await.is_none());
    table.end().await;
    stage.end().await;
}

/// T-06: a question waits in its task until it is answered, and is gone with whoever asked it.
#[tokio::test]
async fn t06_questions_wait_in_their_task() {
    let stage = Stage::new(|_| {}).await;
    let table = Table::over(&stage, &open(stage.folder.path())).await;
    let (entry, handover) = table.begin(LONG, never()).await.unwrap();
    let question = Question::new("roots/list", None).unwrap();
    let mut watch = entry.watch();
    let asks = {
        let (handover, question) = (handover.clone(), question.clone());
        tokio::spawn(async move { handover.put(&question).await })
    };
    let machine = watch.wait_for(|machine| !machine.open().is_empty()).await.unwrap().clone();
    assert_eq!(machine.status(), Status::InputRequired);
    let key = machine.open()[0].key.clone();
    let answer = RawJson::write(&json!({ "roots": [] }));
    let unknown = ("nothing".to_owned(), Ok(RawJson::empty_object()));
    table.tasks.answer(&entry, vec![unknown, (key.clone(), Ok(answer.clone()))]).await;
    assert_eq!((entry.status(), entry.open_questions()), (Status::Working, 0));
    assert_eq!(asks.await.unwrap().unwrap().as_str(), answer.as_str());
    let withdrawn = tokio::time::timeout(Duration::from_millis(100), handover.put(&question));
    assert!(withdrawn.await.is_err());
    watch.wait_for(|machine| machine.open().is_empty()).await.unwrap();
    assert_eq!(entry.status(), Status::Working);
    table.end().await;
    stage.end().await;
}

/// T-13, and `tasks.max`: whose a task is, and how many there may be.
#[tokio::test]
async fn t13_owners_and_the_limit() {
    let stage = Stage::new(|settings| settings.tasks.most = 1).await;
    let table = Table::over(&stage, &open(stage.folder.path())).await;
    let (entry, _) = table.begin(LONG, never()).await.unwrap();
    let id = &entry.facts.id;
    assert_eq!(id.len(), 32);
    assert!(table.tasks.find(id, Some("mine")).is_some());
    assert!(table.tasks.find(id, Some("other")).is_none() && table.tasks.find(id, None).is_none());
    let refused = table.begin(LONG, never()).await.unwrap_err();
    assert!(refused.text().contains("tasks.max"), "{}", refused.text());
    table.end().await;
    stage.end().await;
}

/// A task is kept for its time and then forgotten, ended or not.
#[tokio::test]
async fn t01_a_task_is_kept_for_its_time() {
    let stage = Stage::new(|_| {}).await;
    let store = open(stage.folder.path());
    let table = Table::over(&stage, &store).await;
    let (entry, _) = table.begin(Duration::from_millis(200), never()).await.unwrap();
    assert_eq!(ended(&entry).await, Status::Cancelled);
    assert!(table.tasks.get(&entry.facts.id).is_none());
    assert!(stage.kinds().contains(&"task.expired"));
    table.end().await;
    stage.end().await;
}

/// After a restart: what has ended is served, what ran is unknown, and what its server still works on
/// is gone on with.
#[tokio::test]
async fn t18_tasks_of_the_daemon_before() {
    let stage = Stage::new(|_| {}).await;
    let store = open(stage.folder.path());
    let before = Table::over(&stage, &store).await;
    let (kept, _) = before.begin(LONG, done("kept")).await.unwrap();
    ended(&kept).await;
    let (lost, _) = before.begin(LONG, never()).await.unwrap();
    let (resumed, handover) = before.begin(LONG, never()).await.unwrap();
    handover.status(&RawJson::write(&json!({ "taskId": "resumed", "statusMessage": "half" })));
    let mut watch = resumed.watch();
    watch.wait_for(|machine| machine.message() == Some("half")).await.unwrap();
    before.tasks.flush(LONG).await;
    before.end().await;

    let after = Table::over(&stage, &store).await;
    let find = |entry: &Entry| after.tasks.find(&entry.facts.id, Some("mine")).unwrap();
    let outcome = after.tasks.outcome(&find(&kept)).await.unwrap().unwrap();
    assert_eq!(outcome.as_str(), result("kept").as_str());
    assert_eq!(ended(&find(&lost)).await, Status::Completed);
    let unknown = after.tasks.outcome(&find(&lost)).await.unwrap().unwrap();
    let unknown: serde_json::Value = unknown.read().unwrap();
    assert_eq!((&unknown["isError"], reason_of(&unknown)), (&json!(true), "outcome_unknown"));
    assert_eq!(ended(&find(&resumed)).await, Status::Completed);
    let went_on = after.tasks.outcome(&find(&resumed)).await.unwrap().unwrap();
    assert_eq!(went_on.as_str(), result("went on").as_str());
    after.end().await;
    stage.end().await;
}

/// T-18: which task its server works on is on record with the task itself, where that is known before,
/// and whoever waits for that to hand the task out waits for nothing more.
#[tokio::test]
async fn t18_a_task_is_on_record_with_that_of_its_server() {
    let stage = Stage::new(|_| {}).await;
    let store = open(stage.folder.path());
    let before = Table::over(&stage, &store).await;
    let handover = Handover::new(Answers::Nobody, None);
    handover.status(&RawJson::write(&json!({ "taskId": "resumed" })));
    let entry = before.begin_of(&handover, LONG, never()).await.unwrap();
    tokio::time::timeout(SOON, entry.is_noted()).await.expect("it is on record");
    // As after a kill: nothing was flushed.
    let after = Table::over(&stage, &store).await;
    let found = after.tasks.find(&entry.facts.id, Some("mine")).unwrap();
    assert_eq!(ended(&found).await, Status::Completed);
    before.end().await;
    after.end().await;
    stage.end().await;
}

/// T-18: a handle is not kept back for that once its task asks something.
#[tokio::test]
async fn t18_a_task_that_asks_is_handed_out() {
    let stage = Stage::new(|_| {}).await;
    let table = Table::over(&stage, &open(stage.folder.path())).await;
    let (entry, handover) = table.begin(LONG, never()).await.unwrap();
    let question = Question::new("roots/list", None).unwrap();
    let asks = tokio::spawn(async move { handover.put(&question).await });
    tokio::time::timeout(SOON, entry.is_noted()).await.expect("it asks");
    table.end().await;
    asks.await.unwrap().unwrap();
    stage.end().await;
}
