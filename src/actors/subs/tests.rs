//! The table between hosts and instances that only write down what they hear.

use std::path::Path;
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef, Message};
use tokio::sync::mpsc;

use super::*;
use crate::actors::upstreams::Answers;
use crate::protocol::jsonrpc::{Code, RawJson};
use crate::protocol::revision::Era;
use crate::protocol::session::LogLevel;
use crate::protocol::session::host::HostNote;
use crate::settings::{Scope, Settings};

/// Writes down what it hears.
struct Ear<M>(std::marker::PhantomData<fn(M)>);

impl<M: Message> Actor for Ear<M> {
    type Msg = M;
    type State = mpsc::Sender<M>;
    type Arguments = mpsc::Sender<M>;

    async fn pre_start(
        &self,
        _: ActorRef<M>,
        heard: mpsc::Sender<M>,
    ) -> Result<mpsc::Sender<M>, ActorProcessingErr> {
        Ok(heard)
    }

    async fn handle(
        &self,
        _: ActorRef<M>,
        message: M,
        heard: &mut mpsc::Sender<M>,
    ) -> Result<(), ActorProcessingErr> {
        let _ = heard.try_send(message);
        Ok(())
    }
}

/// An actor that writes down what it hears, and what it has heard.
pub(in crate::actors) async fn ear<M: Message>() -> (ActorRef<M>, mpsc::Receiver<M>) {
    let (told, hears) = mpsc::channel(100);
    let (actor, _) = Actor::spawn(None, Ear(std::marker::PhantomData), told).await.unwrap();
    (actor, hears)
}

const MOST: usize = 3;

struct Stage {
    subs: Subs,
    def: Arc<ServerDef>,
}

/// A host and what it was told.
struct Listener {
    caller: Caller,
    hears: mpsc::Receiver<HostMsg>,
}

/// An instance: its place, and what it was told.
struct Teller {
    place: Option<Watching>,
    hears: mpsc::Receiver<InstanceMsg>,
}

impl Stage {
    fn new(scope: Scope) -> Self {
        let loaded = Settings::defaults(Path::new("/bin/mcpx")).unwrap();
        let demo = loaded.settings.servers.first().unwrap();
        let def = ServerDef { key: "up".into(), namespace: "ns".into(), scope, ..(**demo).clone() };
        Self { subs: Subs::default(), def: Arc::new(def) }
    }

    async fn host(&self, id: u64) -> Listener {
        let (line, hears) = ear().await;
        let (host, label) = (Some(HostId(id)), Arc::from("test"));
        let caller = Caller {
            host,
            project: None,
            label,
            era: Era::Legacy,
            answers: Answers::Nobody,
            source: crate::actors::upstreams::Source::default(),
        };
        self.subs.host_came(&caller, &id.to_string().into(), line, 2, false);
        Listener { caller, hears }
    }

    async fn instance(&self, id: u64, scope: &ScopeKey) -> Teller {
        let (actor, hears) = ear().await;
        let place = self.subs.instance_came(&self.def, scope, InstanceId(id), actor);
        Teller { place, hears }
    }

    fn subscribe(&self, host: &Listener, uri: &str, shown: &str) -> oneshot::Receiver<Said> {
        self.subs
            .subscribe(&self.def, ListenerId::of(&host.caller), &host.caller, uri, shown, MOST)
            .unwrap()
    }
}

impl Listener {
    fn id(&self) -> HostId {
        self.caller.host.unwrap()
    }

    /// The next note in words; its credit is given back.
    async fn hears(&mut self) -> String {
        match self.hears.recv().await.unwrap() {
            HostMsg::Note { note: HostNote::ResourceUpdated { uri }, .. } => uri,
            HostMsg::Note { note: HostNote::Log { params, .. }, .. } => params.as_str().to_owned(),
            HostMsg::Note { note: HostNote::Task { task }, .. } => task.as_str().to_owned(),
            other => panic!("{other:?}"),
        }
    }
}

impl Teller {
    fn place(&self) -> &Watching {
        self.place.as_ref().unwrap()
    }

    fn wanted(&self) -> String {
        self.place().wanted().into_iter().collect::<Vec<_>>().join(" ")
    }

    /// It was told once that something else is wanted; what that is.
    async fn told(&mut self) -> String {
        assert!(matches!(self.hears.recv().await.unwrap(), InstanceMsg::Watch));
        self.wanted()
    }
}

fn no() -> RpcError {
    RpcError::new(Code::InvalidParams, "no")
}

/// T-13: how a task stands is told to the host whose session owns it, and to no other.
#[tokio::test]
async fn t13_the_owner_of_a_task_is_told_of_it() {
    let stage = Stage::new(Scope::Global);
    let (mut first, mut second) = (stage.host(1).await, stage.host(2).await);
    let task = RawJson::trusted(r#"{"taskId":"t"}"#.to_owned());
    stage.subs.task_changed("t", Some("2"), &task);
    assert_eq!(second.hears().await, task.as_str());
    stage.subs.task_changed("t", None, &task);
    stage.subs.task_changed("t", Some("3"), &task);
    assert!(first.hears.try_recv().is_err() && second.hears.try_recv().is_err());
}

/// F46: the server is asked once however many listen, and told when the last one has gone; each
/// hears of it under the URI it used (R-05).
#[tokio::test]
async fn f46_the_last_one_to_leave_ends_it() {
    let stage = Stage::new(Scope::Global);
    let (mut first, mut second) = (stage.host(1).await, stage.host(2).await);
    let mut up = stage.instance(1, &ScopeKey::Global).await;
    let said = stage.subscribe(&first, "a:1", "mcpx://ns/a:1");
    assert_eq!(up.told().await, "a:1");
    let also = stage.subscribe(&second, "a:1", "a:1");
    let twice = stage.subscribe(&first, "a:1", "mcpx://ns/a:1");
    up.place().said("a:1", &Ok(()));
    for said in [said, also, twice] {
        assert_eq!(said.await.unwrap(), Ok(()));
    }
    assert_eq!(stage.subscribe(&second, "a:1", "other").await.unwrap(), Ok(()), "known already");
    up.place().updated("a:1");
    assert_eq!(first.hears().await, "mcpx://ns/a:1");
    assert_eq!([second.hears().await, second.hears().await], ["a:1", "other"]);
    for shown in ["other", "never", "a:1"] {
        stage.subs.unsubscribe(ListenerId::Host(second.id()), shown);
    }
    up.place().updated("a:1");
    assert_eq!(first.hears().await, "mcpx://ns/a:1");
    assert!(up.hears.try_recv().is_err(), "nothing has changed for the server");
    stage.subs.host_left(first.id());
    assert_eq!(up.told().await, "");
    assert!(!stage.subs.is_watched(&stage.def, &ScopeKey::Global));
    assert!(second.hears.try_recv().is_err());
}

/// What lies below a watched resource is an update of it; the nearest counts.
#[tokio::test]
async fn parts_of_a_resource() {
    let stage = Stage::new(Scope::Global);
    let mut host = stage.host(1).await;
    let up = stage.instance(1, &ScopeKey::Global).await;
    for uri in ["file:///d", "file:///d/e/"] {
        drop(stage.subscribe(&host, uri, uri));
    }
    for (uri, told) in [
        ("file:///d/x", Some("file:///d")),
        ("file:///d#part", Some("file:///d")),
        ("file:///d/e/x", Some("file:///d/e/")),
        ("file:///dd", None),
        ("file:///", None),
    ] {
        up.place().updated(uri);
        if let Some(told) = told {
            assert_eq!(host.hears().await, told, "{uri}");
        }
    }
    assert!(host.hears.try_recv().is_err());
}

/// A flood of updates is one, until the host has taken it.
#[tokio::test]
async fn floods_of_updates_are_gathered() {
    let stage = Stage::new(Scope::Global);
    let mut host = stage.host(1).await;
    let up = stage.instance(1, &ScopeKey::Global).await;
    drop(stage.subscribe(&host, "a:1", "a:1"));
    for _ in 0..1000 {
        up.place().updated("a:1");
    }
    let kept = host.hears.recv().await.unwrap();
    up.place().updated("a:1");
    tokio::task::yield_now().await;
    assert!(host.hears.try_recv().is_err());
    drop(kept);
    up.place().updated("a:1");
    assert_eq!(host.hears().await, "a:1");
}

/// A refusal takes back what waited for it, and nothing else.
#[tokio::test]
async fn refusals_and_limits() {
    let stage = Stage::new(Scope::Global);
    let host = stage.host(1).await;
    let mut up = stage.instance(1, &ScopeKey::Global).await;
    let said = stage.subscribe(&host, "a:1", "a:1");
    up.told().await;
    up.place().said("a:1", &Err(no()));
    assert_eq!(said.await.unwrap(), Err(no()));
    assert_eq!(up.told().await, "");
    for number in 0..MOST {
        drop(stage.subscribe(&host, &format!("a:{number}"), "same"));
    }
    let full = stage.subs.subscribe(
        &stage.def,
        ListenerId::of(&host.caller),
        &host.caller,
        "a:9",
        "same",
        MOST,
    );
    let limit = Limit::count("host.max_subscriptions", MOST);
    assert_eq!(full.unwrap_err(), NotSubscribed::Full(limit));
    let nobody = Caller { host: None, ..host.caller.clone() };
    let nowhere = stage.subs.subscribe(&stage.def, None, &nobody, "a:1", "a:1", MOST);
    assert_eq!(nowhere.unwrap_err(), NotSubscribed::Nowhere);
    let calls = Stage::new(Scope::Call);
    assert!(calls.instance(1, &ScopeKey::Call(7)).await.place.is_none());
}

/// P-12: the instance after the one that watched is asked for the same; what may have been missed
/// counts as an update. Of two instances one watches.
#[tokio::test]
async fn p12_subscriptions_outlive_instances() {
    let stage = Stage::new(Scope::Global);
    let mut host = stage.host(1).await;
    let mut first = stage.instance(1, &ScopeKey::Global).await;
    let mut second = stage.instance(2, &ScopeKey::Global).await;
    let said = stage.subscribe(&host, "a:1", "a:1");
    assert_eq!(first.told().await, "a:1");
    assert_eq!(second.wanted(), "");
    first.place().said("a:1", &Ok(()));
    assert_eq!(said.await.unwrap(), Ok(()));
    first.place = None;
    assert_eq!(second.told().await, "a:1");
    second.place().said("a:1", &Ok(()));
    assert_eq!(host.hears().await, "a:1");
    second.place = None;
    assert!(stage.subs.is_watched(&stage.def, &ScopeKey::Global));
    let third = stage.instance(3, &ScopeKey::Global).await;
    assert_eq!(third.wanted(), "a:1");
    // Never agreed: nothing to catch up with.
    let late = stage.subscribe(&host, "b:2", "b:2");
    third.place().said("b:2", &Ok(()));
    assert_eq!(late.await.unwrap(), Ok(()));
    third.place().said("a:1", &Ok(()));
    assert_eq!(host.hears().await, "a:1");
    assert!(host.hears.try_recv().is_err());
}

/// A server whose definition is replaced, with another scope: who listened listens on.
#[tokio::test]
async fn p12_subscriptions_outlive_generations() {
    let mut stage = Stage::new(Scope::Global);
    let (mut one, two) = (stage.host(1).await, stage.host(2).await);
    let old = stage.instance(1, &ScopeKey::Global).await;
    let said = [stage.subscribe(&one, "a:1", "a:1"), stage.subscribe(&two, "a:1", "a:1")];
    old.place().said("a:1", &Ok(()));
    for said in said {
        assert_eq!(said.await.unwrap(), Ok(()));
    }
    let waiting = stage.subscribe(&one, "b:2", "b:2");
    stage.def = Arc::new(ServerDef { scope: Scope::Session, ..(*stage.def).clone() });
    stage.subs.generation(&stage.def);
    let mut listeners: Vec<_> =
        stage.subs.listeners(&stage.def).into_iter().map(|caller| caller.host.unwrap()).collect();
    listeners.sort_unstable();
    assert_eq!(listeners, [HostId(1), HostId(2)]);
    let new = stage.instance(2, &ScopeKey::Session(HostId(1))).await;
    assert_eq!(new.wanted(), "a:1 b:2");
    drop(old);
    new.place().said("b:2", &Ok(()));
    assert_eq!(waiting.await.unwrap(), Ok(()));
    new.place().said("a:1", &Ok(()));
    assert_eq!(one.hears().await, "a:1");
    stage.subs.host_left(two.id());
    assert_eq!(stage.subs.listeners(&stage.def).len(), 1);
}

/// H-42: what is about no call goes to those who share the instance, as many as may wait.
#[tokio::test]
async fn h42_messages_stay_within_their_scope() {
    let stage = Stage::new(Scope::Session);
    let (mut mine, mut other) = (stage.host(1).await, stage.host(2).await);
    let up = stage.instance(1, &ScopeKey::Session(mine.id())).await;
    let params = RawJson::write(&serde_json::json!({ "level": "info", "data": 1 }));
    for _ in 0..10 {
        up.place().logged(&LogMessage { level: LogLevel::Info, params: params.clone() });
    }
    let told = r#"{"data":1,"level":"info","logger":"ns"}"#;
    assert_eq!([mine.hears().await, mine.hears().await], [told, told]);
    tokio::task::yield_now().await;
    assert!(mine.hears.try_recv().is_err() && other.hears.try_recv().is_err());
}

/// U-36: a server that hosts share is told what all of them declared at their handshakes; one that a
/// host has for itself, what that one did.
#[tokio::test]
async fn u36_what_the_hosts_of_a_scope_declare() {
    let raw = |text: &str| RawJson::parse(text.to_owned().into()).unwrap();
    let (full, some) = (r#"{"sampling":{"tools":{}},"roots":{}}"#, r#"{"roots":{}}"#);
    let declared = |stage: &Stage, scope| stage.subs.declared(&stage.def, &scope).write();
    let stage = Stage::new(Scope::Global);
    let (first, second, silent) = (stage.host(1).await, stage.host(2).await, stage.host(3).await);
    let any = r#"{"sampling":{"tools":{}},"roots":{}}"#;
    assert_eq!(declared(&stage, ScopeKey::Global).as_str(), any);
    stage.subs.host_opened(first.id(), Some(raw(full)));
    // Who has no handshake says for each request what it can be asked.
    stage.subs.host_opened(silent.id(), None);
    assert_eq!(declared(&stage, ScopeKey::Global).as_str(), full);
    stage.subs.host_opened(second.id(), Some(raw(some)));
    assert_eq!(declared(&stage, ScopeKey::Global).as_str(), some);
    stage.subs.host_left(second.id());
    assert_eq!(declared(&stage, ScopeKey::Global).as_str(), full);

    let own = Stage { def: Stage::new(Scope::Session).def, subs: stage.subs.clone() };
    stage.subs.host_opened(silent.id(), Some(raw(some)));
    assert_eq!(declared(&own, ScopeKey::Session(first.id())).as_str(), full);
    assert_eq!(declared(&own, ScopeKey::Session(silent.id())).as_str(), some);
    assert_eq!(declared(&own, ScopeKey::Call(1)).as_str(), any);
    // E-12: who answers for roots that nobody's call asks for: only who is alone.
    assert!(own.subs.only_host(&own.def, &ScopeKey::Session(first.id())).is_some());
    assert!(stage.subs.only_host(&stage.def, &ScopeKey::Global).is_none());
    stage.subs.host_left(first.id());
    assert!(own.subs.only_host(&own.def, &ScopeKey::Session(first.id())).is_none());
    assert!(stage.subs.only_host(&stage.def, &ScopeKey::Global).is_some());
}

/// E-12: the instances that serve a host hear once that its roots have changed, however often they do.
#[tokio::test]
async fn e12_roots_change_where_their_host_is_served() {
    let stage = Stage::new(Scope::Session);
    let (first, second) = (stage.host(1).await, stage.host(2).await);
    let mut own = stage.instance(1, &ScopeKey::Session(first.id())).await;
    let mut others = stage.instance(2, &ScopeKey::Session(second.id())).await;
    let mut all = stage.instance(3, &ScopeKey::Global).await;
    for _ in 0..100 {
        stage.subs.roots_changed(first.id());
    }
    for served in [&mut own, &mut all] {
        assert_eq!(served.told().await, "");
        assert!(served.place().roots_changed());
        assert!(!served.place().roots_changed());
        assert!(served.hears.try_recv().is_err());
    }
    assert!(others.hears.try_recv().is_err() && !others.place().roots_changed());
    stage.subs.roots_changed(first.id());
    assert_eq!(own.told().await, "");
}

/// E-02: what a person was sent to do at a url is done: hosts of the scope that have a handshake hear.
#[tokio::test]
async fn e02_completions_reach_the_hosts_of_the_scope() {
    let stage = Stage::new(Scope::Global);
    let (mut first, mut second) = (stage.host(1).await, stage.host(2).await);
    let up = stage.instance(1, &ScopeKey::Global).await;
    stage.subs.host_opened(first.id(), Some(RawJson::empty_object()));
    up.place().completed(&RawJson::write("e1"));
    let heard = first.hears.recv().await.unwrap();
    assert!(
        matches!(heard, HostMsg::Note { note: HostNote::Completed { id }, .. } if id.as_str() == "\"e1\"")
    );
    assert!(second.hears.try_recv().is_err());
}
