//! Puts a daemon together, in the order of its parts, and runs it to its end.
//!
//! Build, then run: everything that can fail because of the machine or the configuration fails before
//! the first actor starts, with an error that names it.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::artifacts::ArtifactsHandle;
use super::broker::BrokerHandle;
use super::catalog::CatalogHandle;
use super::control::Identity;
use super::control::http::ControlHttp;
use super::era_cache::EraCacheHandle;
use super::events::{Event, EventsHandle};
use super::exec::ExecHandle;
use super::hosts::HostsHandle;
use super::hosts::door::{self, DoorArgs, DoorHandle};
use super::inside::Inside;
use super::inside::audit::AuditHandle;
use super::inside::chronicle::Chronicle;
use super::inside::meter::Meters;
use super::inside::metrics::MetricsHandle;
use super::inside::spans::SpansHandle;
use super::inside::trace::Traces;
use super::instance::Shop;
use super::instance::connect::Children;
use super::instance::keeper::Alive;
use super::instance::spec::Surroundings;
use super::listens::ListensHandle;
use super::parked::ParkedHandle;
use super::root::{self, End, Parts, RootHandle};
use super::scripts::ScriptsHandle;
use super::settings::{SettingsArgs, SettingsHandle};
use super::subs::Subs;
use super::support::task::{self, TaskGuard};
use super::tasks::TasksHandle;
use super::upstreams::UpstreamsHandle;
use super::watchdog::Systemd;
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::offer;
use crate::settings::layers::Sources;
use crate::settings::places::Places;
use crate::settings::{Loaded, Settings};
use crate::transport::autostart::StartLock;
use crate::transport::clock;
use crate::transport::environment::{self, Environment};
use crate::transport::http::listen::{ListenLimits, listen};
use crate::transport::http::net::{Net, NetSpec};
use crate::transport::http::serve::ServeLimits;
use crate::transport::link::LinkLimits;
use crate::transport::socket::{self, RuntimeLock, SocketError};
use crate::transport::stdio::child::StopLadder;
use crate::transport::stdio::ledger::{self, Ledger};
use crate::transport::stdio::reaper;
use crate::transport::store::{self, Store, StoreError};
use crate::transport::systemd::Activation;

/// What a daemon is made from.
#[derive(Debug)]
pub struct DaemonArgs {
    /// State and runtime folder.
    pub places: Places,
    /// The lock on the runtime folder.
    pub lock: RuntimeLock,
    /// The right to start a daemon, given back once this one can be dialled.
    pub turn: Option<StartLock>,
    /// Where the configuration is read from.
    pub sources: Sources,
    /// This program's own file.
    pub program: PathBuf,
    /// The configuration as it was read first.
    pub loaded: Loaded,
    /// What the service manager has handed over.
    pub activation: Activation,
}

/// Why a daemon did not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum DaemonFailed {
    /// The control socket cannot be had.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The state folder cannot be used.
    #[error("the state folder cannot be used: {0}")]
    State(#[source] io::Error),
    /// The store cannot be opened, and not because of what is in it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system refused signals or the care for orphans.
    #[error("the system refused a part of the daemon: {0}")]
    System(#[source] io::Error),
    /// It could not go on.
    #[error("the daemon ended: {0}")]
    Ended(String),
}

/// Runs a daemon until it is asked to end. Needs the runtime.
pub async fn run(mut args: DaemonArgs) -> Result<(), DaemonFailed> {
    let started = clock::now();
    let settings = Arc::clone(&args.loaded.settings);
    // Before the socket exists: whoever sees it may send a signal, and none may meet its default.
    let signals = Signals::hear().map_err(DaemonFailed::System)?;
    reaper::adopt_orphans().map_err(DaemonFailed::System)?;
    let children = args.places.state.join("children");
    ledger::sweep(&children, ladder(&settings)).await;
    let ledger = Ledger::open(&children).map_err(DaemonFailed::State)?;
    let reaping = task::spawn_guarded(async {
        if let Err(error) = reaper::run().await {
            tracing::warn!(%error, "orphans that end are not reaped");
        }
    });
    let opened = store::open(&args.places.state.join("mcpx.redb"))?;
    // Not before all that can fail: whoever sees the socket counts on an answer.
    let activated = args.activation.control.is_some();
    let listener = args.lock.listen(args.activation.control.take())?;
    args.turn = None;
    let manager = Systemd::new(args.activation.notify.take());
    let (parts, around, capturing) = build(&args, &opened.store, ledger.clone(), started);
    if let Some((aside, why)) = &opened.set_aside {
        let text =
            format!("the store could not be read ({why}); it was kept as {}", aside.display());
        parts.events.emit(Event::new("daemon.warning", text));
    }
    if let Some(why) = &opened.unkept {
        let text = format!(
            "the store cannot be used: {why}; sessions, tasks, questions and stored results of this \
             daemon are lost when it ends"
        );
        parts.events.emit(Event::new("daemon.warning", text));
    }
    let (stop, stopped) = watch::channel(false);
    let handed = std::mem::take(&mut args.activation.http);
    let keys = args.places.state.join("keys");
    let door = DoorArgs { context: parts.context(), around, keys, handed };
    let door = door::run(door, stopped.clone());
    let serving = serve(listener, &parts, &settings, stopped);
    // Not before the parts run: one that reads the configuration anew is needed for SIGHUP.
    let (obeyed, told) = (parts.clone(), manager.clone());
    let serving = async move {
        let _obeying = signals.obey(obeyed, told);
        let door = task::spawn(door);
        let served = serving.await;
        if served.is_ok() {
            // Asked to stop at the same time; its answers may take longer.
            let _ = door.await;
        }
        served
    };
    for warning in &args.loaded.warnings {
        parts.events.emit(Event::new("daemon.warning", warning.to_string()));
    }
    let end = root::run(parts, serving, stop, manager).await;
    ledger.close();
    if !activated {
        args.lock.remove_socket();
    }
    drop((capturing, reaping));
    match end {
        End::Asked(_) => Ok(()),
        End::Failed(why) => Err(DaemonFailed::Ended(why)),
    }
}

fn ladder(settings: &Settings) -> StopLadder {
    StopLadder { drain: settings.process.drain, term: settings.process.term }
}

/// All handles; nothing runs yet but the look into the login environment.
pub(super) fn build(
    args: &DaemonArgs,
    store: &Arc<dyn Store>,
    ledger: Ledger,
    started: Instant,
) -> (Parts, Arc<dyn Surroundings>, TaskGuard) {
    let settings = &args.loaded.settings;
    let state = &args.places.state;
    let events = EventsHandle::new(settings.daemon.events_ring);
    let (around, capture) =
        Environment::new(environment::own(), settings.process.login_env, settings.process.spawn);
    let net = Net::new(NetSpec::of(&settings.remote, around.clone()));
    let around: Arc<dyn Surroundings> = Arc::new(around);
    let capturing = task::spawn_guarded(capture);
    let eras = EraCacheHandle::new(state.join("upstream-eras.json"), events.clone());
    let catalog = CatalogHandle::new(Arc::clone(store), events.clone());
    let info = own_info();
    let connect = Arc::new(Children { ledger: Some(ledger) });
    let shop = Shop {
        connect: Arc::clone(&connect) as _,
        around: Arc::clone(&around),
        info: info.clone(),
        events: events.clone(),
        eras: eras.clone(),
        catalog: catalog.clone(),
        subs: Subs::default(),
        broker: Arc::default(),
        alive: Alive::default(),
        net,
        meters: Meters::default(),
        traces: Traces::default(),
    };
    let upstreams = UpstreamsHandle::new(Arc::clone(&args.loaded.everywhere), shop);
    let tasks = TasksHandle::new(Arc::clone(store), events.clone(), upstreams.clone());
    let settings = SettingsHandle::new(SettingsArgs {
        sources: args.sources.clone(),
        program: args.program.clone(),
        file: args.places.runtime_settings(),
        events: events.clone(),
        upstreams: upstreams.clone(),
        loaded: Arc::new(args.loaded.clone()),
    });
    let identity = Arc::new(Identity {
        version: env!("CARGO_PKG_VERSION"),
        started,
        socket: socket::path(&args.places.runtime),
        state: state.clone(),
        info,
        capabilities: offer::capabilities(),
    });
    let hosts = HostsHandle::new(Arc::clone(store), events.clone());
    let root = RootHandle::new();
    let (door, listens) = (DoorHandle::default(), ListensHandle::default());
    let broker = BrokerHandle::new(Arc::clone(store), events.clone(), settings.watch());
    upstreams.use_broker(broker.clone());
    let artifacts = ArtifactsHandle::new(
        state.join("artifacts"),
        Arc::clone(store),
        events.clone(),
        settings.watch(),
    );
    let scripts = ScriptsHandle::new(state.join("scripts"), settings.watch());
    let parked = ParkedHandle::new(settings.watch(), &state.join("keys"), &events);
    let exec = ExecHandle::new(settings.watch(), events.clone(), connect, args.program.clone());
    let inside = Inside {
        audit: AuditHandle::new(state.join("audit"), events.clone(), settings.watch()),
        spans: SpansHandle::new(
            settings.watch(),
            upstreams.net().clone(),
            events.clone(),
            env!("CARGO_PKG_VERSION"),
        ),
        metrics: MetricsHandle::default(),
        chronicle: Chronicle::default(),
    };
    let parts = Parts {
        settings,
        events,
        eras,
        catalog,
        upstreams,
        broker,
        parked,
        listens,
        tasks,
        artifacts,
        exec,
        scripts,
        hosts,
        door,
        inside,
        identity,
        root,
    };
    (parts, around, capturing)
}

/// What mcpx calls itself, newest shape (H-23).
fn own_info() -> RawJson {
    let mut info = Object::new();
    info.set("name", RawJson::write("mcpx"));
    info.set("title", RawJson::write("mcpx"));
    info.set("version", RawJson::write(env!("CARGO_PKG_VERSION")));
    info.set("description", RawJson::write(env!("CARGO_PKG_DESCRIPTION")));
    info.write()
}

/// The accept loop of the control socket.
fn serve(
    listener: UnixListener,
    parts: &Parts,
    settings: &Settings,
    stopped: watch::Receiver<bool>,
) -> impl Future<Output = io::Result<()>> + Send + 'static {
    let handler = Arc::new(ControlHttp::new(parts.context()));
    let limits = ListenLimits {
        connections: settings.daemon.control_connections,
        serve: ServeLimits {
            section: "control",
            head: None,
            body: settings.daemon.control_body,
            bodies: settings.daemon.control_bodies,
            patience: settings.daemon.control_headers,
            // Whoever pauses a pager on a stream of events finds it there again.
            write: None,
            linger: settings.daemon.close_grace,
            link: LinkLimits {
                max_frame: settings.link.max_frame,
                write_queue: settings.link.write_queue,
                write_queue_bytes: settings.link.write_queue_bytes,
            },
        },
        accept_pause: settings.daemon.accept_pause,
        close_grace: settings.daemon.close_grace,
    };
    listen(listener, handler, limits, stopped)
}

/// SIGTERM and SIGINT end the daemon, SIGHUP makes it read its configuration again.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// From here on they are kept until they are obeyed.
    fn hear() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    fn obey(mut self, parts: Parts, manager: Systemd) -> TaskGuard {
        task::spawn_guarded(async move {
            loop {
                tokio::select! {
                    _ = self.terminate.recv() => parts.root.end(End::Asked("SIGTERM")),
                    _ = self.interrupt.recv() => parts.root.end(End::Asked("SIGINT")),
                    _ = self.hangup.recv() => {
                        manager.reloading();
                        let limit = parts.settings.settings().daemon.ask;
                        // Said in an event, either way.
                        let _ = parts.settings.reload(limit).await;
                        manager.ready(&parts);
                    }
                }
            }
        })
    }
}
