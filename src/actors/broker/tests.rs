use std::path::Path;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::*;
use crate::protocol::jsonrpc::{Method, RawJson};
use crate::settings::{Loaded, Settings, Sources};
use crate::transport::store;

/// Has the keeper as its child.
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
    broker: BrokerHandle,
    events: EventsHandle,
    settings: watch::Sender<Arc<Current>>,
    folder: tempfile::TempDir,
}

fn loaded(set: &[(&str, &str)]) -> Loaded {
    let runtime = set.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    Settings::load(&Sources { runtime, ..Sources::default() }, Path::new("mcpx")).unwrap()
}

impl Stage {
    async fn new(set: &[(&str, &str)]) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), set).await
    }

    async fn in_folder(folder: tempfile::TempDir, set: &[(&str, &str)]) -> Self {
        let store = store::open(&folder.path().join("s.redb")).unwrap().store;
        let events = EventsHandle::new(64);
        let current = Current { loaded: Arc::new(loaded(set)), problems: Vec::new() };
        let settings = watch::Sender::new(Arc::new(current));
        let broker = BrokerHandle::new(store, events.clone(), settings.subscribe());
        let (parent, _) = Actor::spawn(None, Parent, ()).await.unwrap();
        broker.start(parent.get_cell()).await.unwrap();
        Self { broker, events, settings, folder }
    }

    /// Kinds of what happened, and their texts.
    fn told(&self) -> Vec<(&'static str, String)> {
        let (kept, _) = self.events.listen(0);
        kept.iter().map(|event| (event.kind, event.text.clone())).collect()
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.told().into_iter().map(|(kind, _)| kind).collect()
    }
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned().into()).unwrap()
}

const FORM: &str = r#"{"message":"Tea?\u001b[2J","requestedSchema":{"properties":{"answer":{"type":"string"}},"required":["answer"]}}"#;

fn held(params: &str) -> Held {
    let question = Question { method: Method::known("elicitation/create"), params: raw(params) };
    let what = "tool `ask` of server `demo`".to_owned();
    Held { server: "demo".to_owned(), what, host: None, question, task: None }
}

fn text(reply: Reply) -> String {
    reply.unwrap().as_str().to_owned()
}

fn yes(content: &str) -> Said {
    Said::Accept { content: Some(raw(content)), value: None }
}

/// E-01: kept while somebody listens, answered by id; neither event nor record shows the answer.
#[tokio::test(start_paused = true)]
async fn e01_a_listener_answers() {
    let stage = Stage::new(&[]).await;
    assert!(!stage.broker.listens());
    assert_eq!(stage.broker.hold(held(FORM)).unwrap_err(), NotHeld::Nobody);
    let mut listening = stage.broker.listen();
    assert!(stage.broker.listens());
    let answering = stage.broker.hold(held(FORM)).unwrap();
    let News::Question(view) = listening.next().await else { panic!() };
    // The end that is shown stays where it is while the time of day goes on.
    let shown = || stage.broker.questions().remove(0).expires_at;
    let end = clock::wall() + Duration::from_millis(3);
    while clock::wall() < end {
        assert_eq!(shown(), view.expires_at);
    }
    assert_eq!(stage.broker.questions(), [(*view).clone()]);
    let unfit = stage.broker.answer(&view.id, &yes(r#"{"x":1}"#)).unwrap_err();
    assert!(matches!(unfit, NotTaken::Unfit(_)), "{unfit:?}");
    let unknown = stage.broker.answer("none", &Said::Decline).unwrap_err();
    assert_eq!(unknown, NotTaken::Unknown(vec![view.id.clone()]));
    stage.broker.answer(&view.id, &yes(r#"{"answer":"a secret"}"#)).unwrap();
    assert_eq!(text(answering.await), r#"{"action":"accept","content":{"answer":"a secret"}}"#);
    assert_eq!(listening.next().await, News::Closed(view.id));
    assert_eq!(stage.broker.questions(), []);
    assert_eq!(stage.kinds(), ["question.opened", "question.answered"]);
    let told = format!("{:?}", stage.told());
    assert!(!told.contains("a secret") && !told.contains('\u{1b}'), "{told}");
    stage.broker.flush(Duration::from_secs(5)).await;
    assert_eq!(stage.broker.shared.store.all(keeper::TABLE).unwrap(), []);
}

/// E-01: nobody listens any more, nobody answers in time, too many at once: each has its outcome.
#[tokio::test(start_paused = true)]
async fn e01_every_question_has_an_outcome() {
    let stage = Stage::new(&[("elicit.max_open", "2"), ("elicit.hold", "5s")]).await;
    // Kept for a while although nobody is there.
    let asked = clock::now();
    assert_eq!(text(stage.broker.hold(held(FORM)).unwrap().await), r#"{"action":"cancel"}"#);
    assert_eq!(clock::now() - asked, Duration::from_secs(5));
    // The last listener goes: a moment longer.
    let listening = stage.broker.listen();
    let answering = stage.broker.hold(held(FORM)).unwrap();
    drop(listening);
    let left = clock::now();
    assert_eq!(text(answering.await), r#"{"action":"cancel"}"#);
    assert_eq!(clock::now() - left, stage.broker.shared.elicit().linger);
    // One that comes in time keeps it for all its time.
    let answering = stage.broker.hold(held(FORM)).unwrap();
    let _listening = stage.broker.listen();
    let asked = clock::now();
    let also = stage.broker.hold(held(FORM)).unwrap();
    let full = stage.broker.hold(held(FORM)).unwrap_err();
    assert_eq!(full, NotHeld::Full(Limit::count("elicit.max_open", 2)));
    drop(also);
    assert_eq!(text(answering.await), r#"{"action":"cancel"}"#);
    assert_eq!(clock::now() - asked, stage.broker.shared.elicit().timeout);
    assert_eq!(stage.broker.questions(), []);
    let expected = [
        ("question.opened", 4),
        ("question.expired", 3),
        ("question.withdrawn", 1),
        ("question.answered", 0),
    ];
    for (kind, times) in expected {
        assert_eq!(stage.kinds().iter().filter(|told| **told == kind).count(), times, "{kind}");
    }
}

/// D-08: a call whose own caller sees its questions; other listeners do not matter to it, and its
/// questions are not those of others.
#[tokio::test(start_paused = true)]
async fn d08_a_call_is_told_of_its_own_questions() {
    let stage = Stage::new(&[]).await;
    let (own, mut told) = stage.broker.for_call(WhoAnswers::Here);
    let (other, _) = stage.broker.for_call(WhoAnswers::Elsewhere);
    assert!(own.listens() && !stage.broker.listens());
    let asked = clock::now();
    let mut elsewhere = other.hold(held(FORM)).unwrap();
    let here = own.hold(held(FORM)).unwrap();
    let News::Question(view) = told.next().await else { panic!() };
    assert_eq!(stage.broker.questions().len(), 2);
    // A listener that goes takes nothing along that is answered here.
    drop(stage.broker.listen());
    assert_eq!(text((&mut elsewhere).await), r#"{"action":"cancel"}"#);
    assert_eq!(clock::now() - asked, stage.broker.shared.elicit().linger);
    stage.broker.answer(&view.id, &Said::Decline).unwrap();
    assert_eq!(text(here.await), r#"{"action":"decline"}"#);
    assert_eq!(told.next().await, News::Closed(view.id));
}

/// E-02: a url question is answered by its server's word that all is done.
#[tokio::test(start_paused = true)]
async fn e02_completion_answers_a_url_question() {
    let stage = Stage::new(&[]).await;
    let _listening = stage.broker.listen();
    let params = r#"{"mode":"url","message":"m","url":"https://x/y?z","elicitationId":"e1"}"#;
    let answering = stage.broker.hold(held(params)).unwrap();
    assert_eq!(stage.broker.questions().first().unwrap().url.as_deref(), Some("https://x/y?z"));
    stage.broker.completed("other", "e1");
    stage.broker.completed("demo", "e2");
    assert_eq!(stage.broker.questions().len(), 1);
    stage.broker.completed("demo", "e1");
    assert_eq!(text(answering.await), r#"{"action":"accept"}"#);
    let told = format!("{:?}", stage.told());
    assert!(!told.contains("https://x"), "an address may hold a secret: {told}");
}

/// E-01: what was open when a daemon died is known to the next one for a while, and to nobody after.
#[tokio::test(start_paused = true)]
async fn e01_the_next_daemon_knows_what_was_lost() {
    let stage = Stage::new(&[]).await;
    let _listening = stage.broker.listen();
    let answering = stage.broker.hold(held(FORM)).unwrap();
    let of_task = Held { task: Some("7f3a".to_owned()), ..held(FORM) };
    let of_task = stage.broker.hold(of_task).unwrap();
    stage.broker.flush(Duration::from_secs(5)).await;
    let asked = stage.broker.questions();
    // As after `kill -9`: nothing is closed in order.
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(stage.folder.path().join("s.redb"), copy.path().join("s.redb")).unwrap();
    let next = Stage::in_folder(copy, &[("elicit.keep_lost", "10m")]).await;
    let lost = next.broker.questions();
    assert_eq!(lost.len(), 2);
    // Both were asked in the same millisecond, or not.
    let of = |asked: &QuestionView| lost.iter().find(|lost| lost.id == asked.id).unwrap();
    let (view, task) = (of(asked.first().unwrap()), of(asked.get(1).unwrap()));
    assert_eq!(view.state, QuestionState::Lost);
    assert!(view.fate.as_ref().unwrap().contains("is not known here"), "{view:?}");
    // What became of a task can be known, and is said where tasks are shown.
    assert!(task.fate.as_ref().unwrap().contains("`mcpx tasks get 7f3a`"), "{task:?}");
    assert_eq!(next.broker.answer(&view.id, &Said::Decline), Err(NotTaken::Lost));
    assert_eq!(next.kinds(), ["question.lost", "question.lost"]);
    tokio::time::sleep(Duration::from_secs(601)).await;
    assert_eq!(next.broker.questions(), []);
    next.broker.flush(Duration::from_secs(5)).await;
    assert_eq!(next.broker.shared.store.all(keeper::TABLE).unwrap(), []);
    drop((answering, of_task));
}

/// Settings are those in force when a question is asked.
#[tokio::test(start_paused = true)]
async fn elicit_hold_is_live() {
    let stage = Stage::new(&[]).await;
    assert!(stage.broker.hold(held(FORM)).is_err());
    let set = [("elicit.hold", "1s")];
    let current = Current { loaded: Arc::new(loaded(&set)), problems: Vec::new() };
    stage.settings.send_replace(Arc::new(current));
    assert!(stage.broker.hold(held(FORM)).is_ok());
}
