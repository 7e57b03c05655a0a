//! Streams under their supervisor: what becomes of them when one fails, the daemon stops, or a host
//! does not read.

use std::path::Path;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::actors::daemon::{self, DaemonArgs};
use crate::actors::dispatch::{Context, Views};
use crate::actors::host::HostMsg;
use crate::actors::listen::{Known, Way, Word, closing_room};
use crate::actors::subs::tests::ear;
use crate::actors::upstreams::{Answers, Caller, HostId};
use crate::protocol::jsonrpc::{RawJson, parse_noting};
use crate::protocol::revision::Era;
use crate::protocol::session::host::{
    HostConfig, HostEvent, HostOutput, HostSession, ListenNote, ListenWant, PostId, ProgressPace,
};
use crate::protocol::session::upstream::ListKind;
use crate::settings::Settings;
use crate::settings::layers::Sources;
use crate::settings::places::Places;
use crate::transport::stdio::ledger::Ledger;
use crate::transport::{clock, socket, store};

const LONG: Duration = Duration::from_mins(1);

/// A bare supervisor.
struct Stem;

impl Actor for Stem {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        _: SupervisionEvent,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

/// Listen streams, and handles of everything else, of which nothing runs.
struct Stage {
    context: Arc<Context>,
    stem: ActorRef<()>,
    _folder: tempfile::TempDir,
}

/// A stream over HTTP.
struct Stream {
    actor: ActorRef<ListenMsg>,
    events: mpsc::Receiver<Bytes>,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("mcpx-listens-").tempdir().unwrap();
        let program = Path::new("/nowhere/mcpx");
        let (state, runtime) = (folder.path().join("state"), folder.path().join("run"));
        std::fs::create_dir_all(&state).unwrap();
        let args = DaemonArgs {
            lock: socket::lock(&runtime).unwrap(),
            places: Places { state, runtime },
            turn: None,
            sources: Sources::default(),
            program: program.to_owned(),
            loaded: Settings::defaults(program).unwrap(),
            activation: crate::transport::systemd::Activation::default(),
        };
        let store = store::open(&folder.path().join("store.redb")).unwrap().store;
        let ledger = Ledger::open(&folder.path().join("children")).unwrap();
        let (parts, _, _) = daemon::build(&args, &store, ledger, clock::now());
        let (stem, _) = Actor::spawn(None, Stem, ()).await.unwrap();
        let context = parts.context();
        context.listens.start(stem.get_cell(), context.events.clone()).await.unwrap();
        Self { context, stem, _folder: folder }
    }

    fn args(&self, want: ListenWant, way: Way) -> ListenArgs {
        let known =
            Known { view: Views::made_up(["a"; 3]), listed: Arc::default(), changed: Vec::new() };
        let caller = Caller {
            host: Some(HostId(1)),
            project: None,
            label: Arc::from("test"),
            era: Era::Modern,
            answers: Answers::Nobody,
            source: crate::actors::upstreams::Source::default(),
        };
        ListenArgs { caller, want, known, way, context: Arc::clone(&self.context) }
    }

    /// A stream about lists over HTTP, with room for `queue` events; it is acknowledged.
    async fn http(&self, queue: usize) -> Stream {
        let (session, want) = asked();
        let (events, receiver) = mpsc::channel(closing_room(queue));
        let args = self.args(want, Way::Http { session: Box::new(session), events });
        let place = self.context.listens.place(100).unwrap();
        let actor = self.context.listens.open(place, args).unwrap();
        let mut stream = Stream { actor, events: receiver };
        assert_eq!(stream.next().await["method"], "notifications/subscriptions/acknowledged");
        stream
    }

    /// Hosts see other lists now.
    fn change(&self, digest: &str) {
        self.context.upstreams.subs().lists_changed(|_, _| Some(Views::made_up([digest; 3])));
    }

    fn is_empty(&self) -> bool {
        self.context.listens.count() == 0
            && self.context.upstreams.subs().any_stream(None).is_none()
    }

    async fn end(self) {
        self.stem.stop_and_wait(None, None).await.unwrap();
    }
}

/// A session that was asked for a stream.
fn asked() -> (HostSession, ListenWant) {
    let capabilities =
        json!({ "tools": { "listChanged": true }, "prompts": { "listChanged": true } });
    let mut session = HostSession::new(Arc::new(HostConfig {
        info: RawJson::write(&json!({ "name": "mcpx", "version": "1" })),
        capabilities: RawJson::write(&capabilities),
        instructions: String::new(),
        max_in_flight: 1,
        max_listens: 1,
        max_open_questions: 1,
        progress_pace: ProgressPace::FREE,
        log_rate: 1,
        over_stdio: false,
    }));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let filter = json!({ "toolsListChanged": true, "promptsListChanged": true });
    let params = json!({ "_meta": meta, "notifications": filter });
    let request =
        json!({ "jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params });
    let (incoming, _) = parse_noting(&Bytes::from(request.to_string()));
    session.handle_post(clock::now(), PostId(1), incoming.unwrap(), true);
    while let Some(output) = session.poll_output() {
        if let HostOutput::Event(HostEvent::Listen(want)) = output {
            return (session, want);
        }
    }
    panic!("no stream was asked for");
}

impl Stream {
    async fn read(&mut self) -> Option<Value> {
        let event = timeout(LONG, self.events.recv()).await.expect("in time")?;
        let text = std::str::from_utf8(&event).unwrap();
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        Some(serde_json::from_str(data).unwrap())
    }

    async fn next(&mut self) -> Value {
        self.read().await.expect("the stream is open")
    }

    async fn is_silent(&mut self) -> bool {
        timeout(LONG, self.events.recv()).await.is_err()
    }

    /// H-39: both forms, and then the end.
    async fn ends(mut self) {
        let cancelled = self.next().await;
        assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
        let result = self.next().await;
        assert_eq!(result["result"]["resultType"], "complete", "{result}");
        assert_eq!(self.read().await, None);
    }
}

/// P-15: one that fails has ended its own stream, as its host has to be told, and no other.
#[tokio::test(start_paused = true)]
async fn p15_one_that_fails_ends_alone() {
    let stage = Stage::new().await;
    let (first, mut second) = (stage.http(4).await, stage.http(4).await);
    first.actor.kill();
    first.ends().await;
    assert_eq!(stage.context.listens.count(), 1);
    stage.change("b");
    assert_eq!(second.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(second.next().await["method"], "notifications/prompts/list_changed");
    drop(second);
    tokio::time::sleep(LONG).await;
    assert!(stage.is_empty());
    stage.end().await;
}

/// The supervisor fails: its streams are ended properly, and the next incarnation has others.
#[tokio::test(start_paused = true)]
async fn p15_a_supervisor_that_fails() {
    let stage = Stage::new().await;
    let stream = stage.http(4).await;
    let (listens, events) = (&stage.context.listens, stage.context.events.clone());
    let supervisor = listens.actor.get().unwrap();
    supervisor.kill();
    stream.ends().await;
    let (_, want) = asked();
    let (host, _) = ear().await;
    let place = listens.place(100).unwrap();
    let refused = listens.open(place, stage.args(want, Way::Host(host)));
    assert!(refused.unwrap_err().message.contains("about to end"));
    assert!(stage.is_empty());
    listens.start(stage.stem.get_cell(), events).await.unwrap();
    stage.http(4).await;
    stage.end().await;
}

/// H-39: the daemon stops. Who has a shim is not told: the shim opens the stream again.
#[tokio::test(start_paused = true)]
async fn h39_a_drain_ends_streams() {
    let stage = Stage::new().await;
    let listens = &stage.context.listens;
    listens.drain(LONG).await.expect("nothing to end");
    let (first, second) = (stage.http(4).await, stage.http(4).await);
    let (host, mut hears) = ear::<HostMsg>().await;
    let (_, want) = asked();
    let place = listens.place(100).unwrap();
    listens.open(place, stage.args(want, Way::Host(host))).unwrap();
    let agreed = hears.recv().await.unwrap();
    assert!(matches!(agreed, HostMsg::Streamed { word: Word::Agreed(_), .. }), "{agreed:?}");
    listens.drain(LONG).await.unwrap();
    first.ends().await;
    second.ends().await;
    assert!(hears.try_recv().is_err());
    assert!(stage.is_empty());
    stage.end().await;
}

/// A host that does not read costs its queue; what it missed is told once when it reads again, and
/// its end always finds room.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_told_once() {
    let stage = Stage::new().await;
    let mut stream = stage.http(2).await;
    for number in 0..100 {
        stage.change(&number.to_string());
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(LONG).await;
    let queued = stream.events.len();
    assert!(queued <= 2, "{queued} wait");
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(stream.next().await["method"].as_str().unwrap().to_owned());
    }
    assert!(stream.is_silent().await, "once each, beside those that were queued: {told:?}");
    assert_eq!(told.iter().filter(|method| method.contains("prompts")).count(), 2, "{told:?}");
    // Nothing has changed.
    stage.change("99");
    assert!(stream.is_silent().await);
    for number in 0..10 {
        stage.change(&number.to_string());
        tokio::task::yield_now().await;
    }
    stream.actor.kill();
    let mut last = Vec::new();
    while let Some(message) = stream.read().await {
        last.push(message);
    }
    assert_eq!(last.last().unwrap()["result"]["resultType"], "complete", "{last:?}");
    stage.end().await;
}

/// One message of a stream waits in its host's mailbox, until the host has taken it.
#[tokio::test(start_paused = true)]
async fn a_host_that_is_slow_holds_one_message() {
    let stage = Stage::new().await;
    let (host, mut hears) = ear::<HostMsg>().await;
    let (_, want) = asked();
    let place = stage.context.listens.place(100).unwrap();
    let actor = stage.context.listens.open(place, stage.args(want, Way::Host(host))).unwrap();
    let agreed = hears.recv().await.unwrap();
    assert!(matches!(agreed, HostMsg::Streamed { word: Word::Agreed(_), .. }), "{agreed:?}");
    for number in 0..20 {
        stage.change(&number.to_string());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut lists = Vec::new();
    while let Ok(Some(heard)) = timeout(LONG, hears.recv()).await {
        let HostMsg::Streamed { word: Word::Note(ListenNote::Changed(kind)), credit, .. } = heard
        else {
            panic!("{heard:?}")
        };
        assert!(hears.try_recv().is_err(), "one at a time");
        assert!(credit.is_some());
        lists.push(kind);
    }
    lists.sort_unstable();
    assert_eq!(lists, [ListKind::Tools, ListKind::Tools, ListKind::Prompts]);
    actor.stop(None);
    let ended = hears.recv().await.unwrap();
    assert!(matches!(ended, HostMsg::Streamed { word: Word::Ended(_), .. }), "{ended:?}");
    tokio::time::sleep(LONG).await;
    assert!(stage.is_empty());
    stage.end().await;
}

/// `listen.max`, and nothing is left of streams that were closed.
#[tokio::test(start_paused = true)]
async fn places_are_given_back() {
    let stage = Stage::new().await;
    let listens = &stage.context.listens;
    for _ in 0..100 {
        drop(stage.http(1).await);
    }
    tokio::time::sleep(LONG).await;
    assert!(stage.is_empty());
    assert!(listens.actor.get().unwrap().get_children().is_empty());
    let place = listens.place(1).unwrap();
    let full = listens.place(1).unwrap_err();
    assert!(full.message.contains("listen.max"), "{}", full.message);
    drop(place);
    assert!(listens.place(1).is_ok() && stage.is_empty());
    stage.end().await;
}
