//! The upstream half without hosts: everything that `Root` would start, under a bare supervisor.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcpx::actors::catalog::CatalogHandle;
use mcpx::actors::era_cache::EraCacheHandle;
use mcpx::actors::events::EventsHandle;
use mcpx::actors::instance::Shop;
use mcpx::actors::instance::connect::{Children, Connect};
use mcpx::actors::instance::keeper::Alive;
use mcpx::actors::instance::spec::{Looking, Surroundings};
use mcpx::actors::upstreams::{
    Answers, CallWant, Caller, HostId, PoolStatus, Refused, UpstreamsHandle,
};
use mcpx::protocol::jsonrpc::{Method, RawJson};
use mcpx::protocol::revision::Era;
use mcpx::protocol::session::Answer;
use mcpx::settings::{Scope, ServerDef, Settings};
use mcpx::transport::http::net::{Net, NetSpec};
use mcpx::transport::store;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use serde_json::{Value, json};

use crate::support::fake::{Fake, MARK_KEY};
use crate::support::procs;

/// A bare supervisor.
#[derive(Debug)]
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

/// The surroundings of these tests: this process's own PATH, and one variable.
#[derive(Debug)]
struct Plain;

impl Surroundings for Plain {
    fn base(&self) -> Looking<'_, Vec<(OsString, OsString)>> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Box::pin(async { vec![("PATH".into(), path)] })
    }

    fn variable<'a>(&'a self, name: &'a str) -> Looking<'a, Option<OsString>> {
        let value = (name == "SECRET").then(|| "${NOT_AGAIN}".into());
        Box::pin(async { value })
    }

    fn command<'a>(&'a self, text: &'a str) -> Looking<'a, Result<String, String>> {
        Box::pin(async move { Err(format!("no commands here: {text}")) })
    }

    fn home(&self) -> &Path {
        Path::new("/")
    }
}

/// How many stages this process has had: each marks its processes with a number of its own.
static STAGES: AtomicU32 = AtomicU32::new(0);

/// See the module.
pub struct Stage {
    pub upstreams: UpstreamsHandle,
    pub catalog: CatalogHandle,
    pub eras: EraCacheHandle,
    pub events: EventsHandle,
    pub settings: Settings,
    pub folder: tempfile::TempDir,
    pub mark: String,
    stem: ActorRef<()>,
}

/// Short limits, so that failures do not take minutes; the numbers are the tests' own.
pub fn quick_settings() -> Settings {
    let loaded = Settings::defaults(Path::new("/nowhere/mcpx")).unwrap();
    let mut settings = Settings::clone(&loaded.settings);
    settings.servers.clear();
    settings.pool.backoff_step = Duration::from_millis(100);
    settings.pool.backoff_max = Duration::from_millis(400);
    settings.pool.queue_timeout = Duration::from_secs(20);
    settings.upstream.handshake = Duration::from_secs(10);
    settings.upstream.probe_patience = Duration::from_millis(300);
    settings.process.drain = Duration::from_millis(500);
    settings.process.term = Duration::from_millis(500);
    settings.host.drain = Duration::from_secs(5);
    settings.expose.list_wait = Duration::from_millis(300);
    settings
}

impl Stage {
    /// Starts everything with these servers, as real processes.
    pub async fn new(change: impl FnOnce(&mut Settings)) -> Self {
        Self::with(Arc::new(Children::default()), change).await
    }

    /// Starts everything, with connections by `connect`.
    pub async fn with(connect: Arc<dyn Connect>, change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::Builder::new().prefix("mcpx-actors-").tempdir().unwrap();
        Self::within(folder, connect, change).await
    }

    /// Starts everything over the state that `folder` holds.
    pub async fn within(
        folder: tempfile::TempDir,
        connect: Arc<dyn Connect>,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let mut settings = quick_settings();
        change(&mut settings);
        let (stem, _) = Actor::spawn(None, Stem, ()).await.unwrap();
        let events = EventsHandle::new(settings.daemon.events_ring);
        let eras = EraCacheHandle::new(folder.path().join("eras.json"), events.clone());
        let store = store::open(&folder.path().join("store.redb")).unwrap().store;
        let catalog = CatalogHandle::new(store, events.clone());
        eras.start(stem.get_cell()).await.unwrap();
        catalog.start(stem.get_cell()).await.unwrap();
        let shop = Shop {
            connect,
            around: Arc::new(Plain),
            info: RawJson::write(&json!({"name": "mcpx", "version": "0"})),
            events: events.clone(),
            eras: eras.clone(),
            catalog: catalog.clone(),
            subs: mcpx::actors::subs::Subs::default(),
            broker: Arc::default(),
            alive: Alive::default(),
            net: Net::new(NetSpec::default()),
            meters: mcpx::actors::inside::meter::Meters::default(),
            traces: mcpx::actors::inside::trace::Traces::default(),
        };
        let upstreams = UpstreamsHandle::new(Arc::new(settings.clone()), shop);
        upstreams.start(stem.get_cell()).await.unwrap();
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let mark = format!("actors-{}-{number}", std::process::id());
        Self { upstreams, catalog, eras, events, settings, folder, mark, stem }
    }

    /// A fake upstream that keeps its notes here.
    pub fn fake(&self, name: &str, args: &str) -> Fake {
        let exe = Path::new(env!("CARGO_BIN_EXE_fakemcp"));
        Fake::new(name, exe, self.folder.path(), &self.mark).args(args)
    }

    /// Puts these servers in force.
    pub async fn serve(&mut self, servers: Vec<ServerDef>) {
        self.settings.servers = servers.into_iter().map(Arc::new).collect();
        self.upstreams.apply(Arc::new(self.settings.clone())).await.unwrap();
    }

    /// The definition of a fake, global, at most one instance.
    pub fn def(&self, fake: &Fake) -> ServerDef {
        let mut command = vec![fake.exe.display().to_string()];
        command.extend(fake.args.iter().cloned());
        let env = [
            (MARK_KEY.to_owned(), self.mark.clone()),
            ("FAKEMCP_LOG".to_owned(), fake.log_path().display().to_string()),
            ("FAKEMCP_LEDGER".to_owned(), fake.ledger_path().display().to_string()),
        ];
        ServerDef { command, env: env.into(), ..bare(&fake.name) }
    }

    /// Calls a tool for a caller without session and project.
    pub async fn call(&self, server: &str, tool: &str, args: Value) -> Result<Answer, Refused> {
        self.upstreams.call_unattended(want(server, tool, args)).await
    }

    /// The status of one server.
    pub async fn status(&self, server: &str) -> PoolStatus {
        let all = self.upstreams.status().await;
        all.into_iter().find(|status| status.server == server).unwrap()
    }

    /// The kinds of all events so far.
    pub fn kinds(&self) -> Vec<&'static str> {
        self.events.listen(0).0.iter().map(|event| event.kind).collect()
    }

    /// Processes of this stage that are alive.
    pub fn processes(&self) -> usize {
        procs::marked(MARK_KEY, &self.mark).len()
    }

    /// Ends everything; nothing may be left.
    pub async fn end(self) {
        self.end_keeping().await;
    }

    /// The same, but the state folder is kept for another stage.
    pub async fn end_keeping(self) -> tempfile::TempDir {
        let left = self.upstreams.stop_all(Duration::from_secs(10)).await;
        assert_eq!(left, 0, "instances are left");
        assert_eq!(self.processes(), 0, "processes are left");
        self.stem.stop_and_wait(None, None).await.unwrap();
        self.folder
    }
}

/// A server without a command.
pub fn bare(name: &str) -> ServerDef {
    ServerDef {
        key: name.to_owned(),
        namespace: name.to_owned(),
        command: vec!["nothing".to_owned()],
        scope: Scope::Global,
        builtin: false,
        ..ServerDef::demo(Path::new("/nowhere/mcpx"))
    }
}

/// Somebody without session and project.
pub fn nobody() -> Caller {
    Caller {
        host: None,
        project: None,
        label: "test".into(),
        era: Era::Modern,
        answers: Answers::Nobody,
        source: mcpx::actors::upstreams::Source::default(),
    }
}

/// A host session in a project folder.
pub fn host(number: u64, project: &str) -> Caller {
    let project: Arc<Path> = Path::new(project).into();
    Caller {
        host: Some(HostId(number)),
        project: Some(project),
        label: "test".into(),
        era: Era::Modern,
        answers: Answers::Nobody,
        source: mcpx::actors::upstreams::Source::default(),
    }
}

/// A call of a tool.
pub fn want(server: &str, tool: &str, args: Value) -> CallWant {
    CallWant {
        server: server.into(),
        caller: nobody(),
        method: Method::known("tools/call"),
        params: RawJson::write(&json!({"name": tool, "arguments": args})),
        progress: None,
        repeatable: false,
        task: None,
    }
}

/// The text of a complete result's first block.
pub fn text(answer: &Answer) -> String {
    let Answer::Complete(result) = answer else { panic!("not complete: {answer:?}") };
    let result: Value = result.read().unwrap();
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}
