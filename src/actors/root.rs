//! The root of the supervision tree.
//!
//! Starts its children in order, restarts a permanent one that fails, and ends the daemon when they
//! fail too often. Stops in the reverse order, each step within its limit: no more hosts, hosts
//! drain, upstreams end by the stop ladder, files are flushed. Never on the path of a call.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::artifacts::ArtifactsHandle;
use super::broker::BrokerHandle;
use super::catalog::CatalogHandle;
use super::control::Identity;
use super::dispatch::{Context, Resumer};
use super::era_cache::EraCacheHandle;
use super::events::{Event, EventsHandle};
use super::exec::ExecHandle;
use super::hosts::HostsHandle;
use super::hosts::door::DoorHandle;
use super::inside::Inside;
use super::listens::ListensHandle;
use super::parked::ParkedHandle;
use super::scripts::ScriptsHandle;
use super::settings::SettingsHandle;
use super::support::ask::AskError;
use super::support::restart::Intensity;
use super::support::{stop, task};
use super::tasks::TasksHandle;
use super::upstreams::UpstreamsHandle;
use super::watchdog::{self, Systemd};
use crate::transport::clock;

/// Ends the daemon, from wherever it is wanted.
#[derive(Debug, Clone)]
pub struct RootHandle {
    wanted: Arc<watch::Sender<Option<End>>>,
}

/// Why the daemon ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Somebody asked for it.
    Asked(&'static str),
    /// It cannot go on.
    Failed(String),
}

impl RootHandle {
    /// Nothing wanted yet.
    pub fn new() -> Self {
        Self { wanted: Arc::new(watch::Sender::new(None)) }
    }

    /// The daemon is to end; the first reason counts.
    pub fn end(&self, end: End) {
        self.wanted.send_if_modified(|wanted| {
            let first = wanted.is_none();
            if first {
                *wanted = Some(end);
            }
            first
        });
    }

    /// Resolves when the daemon is to end.
    pub async fn ended(&self) -> End {
        let mut wanted = self.wanted.subscribe();
        let end = wanted.wait_for(Option::is_some).await;
        // The sender lives as long as this handle.
        end.ok().and_then(|end| end.clone()).unwrap_or(End::Asked("the root is gone"))
    }

    /// The same, and when the root is gone, because it takes all its children with it: what is left
    /// would answer nobody. Better that the daemon ends, and the next one is started.
    async fn ended_or_gone(&self, running: &mut JoinHandle<()>) -> End {
        tokio::select! {
            end = self.ended() => end,
            _ = running => {
                self.end(End::Failed("the root of its parts has failed".to_owned()));
                self.ended().await
            }
        }
    }

    /// Whether it is on its way out.
    pub fn is_ending(&self) -> bool {
        self.wanted.borrow().is_some()
    }
}

impl Default for RootHandle {
    fn default() -> Self {
        Self::new()
    }
}

/// The handles of everything the root supervises; they outlive the actors behind them.
#[derive(Debug, Clone)]
pub struct Parts {
    /// What is in force.
    pub settings: SettingsHandle,
    /// What happens.
    pub events: EventsHandle,
    /// Remembered eras.
    pub eras: EraCacheHandle,
    /// What upstreams offer.
    pub catalog: CatalogHandle,
    /// The pools.
    pub upstreams: UpstreamsHandle,
    /// Questions that no host can be asked.
    pub broker: BrokerHandle,
    /// Calls that wait for a host's next request.
    pub parked: ParkedHandle,
    /// Listen streams towards hosts.
    pub listens: ListensHandle,
    /// Calls that nobody waits for.
    pub tasks: TasksHandle,
    /// Results and files that are kept outside of answers.
    pub artifacts: ArtifactsHandle,
    /// Sandboxes for scripts.
    pub exec: ExecHandle,
    /// Saved scripts.
    pub scripts: ScriptsHandle,
    /// The host connections.
    pub hosts: HostsHandle,
    /// Where hosts come in over HTTP.
    pub door: DoorHandle,
    /// What goes on inside.
    pub inside: Inside,
    /// Who this daemon is.
    pub identity: Arc<Identity>,
    /// Its end.
    pub root: RootHandle,
}

impl Parts {
    /// The handles that a request may use.
    pub fn context(&self) -> Arc<Context> {
        Arc::new(Context {
            upstreams: self.upstreams.clone(),
            // What is for a project alone is nobody else's.
            catalog: self.catalog.narrowed(self.settings.clone()),
            events: self.events.clone(),
            settings: self.settings.clone(),
            broker: self.broker.clone(),
            parked: self.parked.clone(),
            identity: Arc::clone(&self.identity),
            listens: self.listens.clone(),
            tasks: self.tasks.clone(),
            artifacts: self.artifacts.clone(),
            exec: self.exec.clone(),
            scripts: self.scripts.clone(),
            hosts: self.hosts.clone(),
            door: self.door.clone(),
            inside: self.inside.clone(),
            root: self.root.clone(),
        })
    }

    /// The first permanent part that does not answer within `limit`, if there is one.
    pub(super) async fn silent(&self, limit: Duration) -> Option<&'static str> {
        // All at once. The actor of the metrics does nothing that could hang: its listener is a task.
        let inside = async {
            <[bool; 2]>::from(tokio::join!(
                self.inside.audit.answers(limit),
                self.inside.spans.answers(limit),
            ))
        };
        let others = async {
            <[bool; 11]>::from(tokio::join!(
                self.eras.answers(limit),
                self.catalog.answers(limit),
                self.upstreams.answers(limit),
                self.artifacts.answers(limit),
                self.exec.answers(limit),
                self.tasks.answers(limit),
                self.settings.answers(limit),
                self.broker.answers(limit),
                self.parked.answers(limit),
                self.listens.answers(limit),
                self.hosts.answers(limit),
            ))
        };
        let (inside, others) = Box::pin(async { tokio::join!(inside, others) }).await;
        let asked = Child::ALL.into_iter().filter(|child| *child != Child::Metrics);
        let mut all = asked.zip(inside.into_iter().chain(others));
        all.find(|(_, answers)| !answers).map(|(child, _)| child.name())
    }

    /// Starts the tree. It runs until [`Self::stop`], or until it fails and says so at the handle; the
    /// task ends with the root, also where the root itself fails and can say nothing.
    async fn start(&self) -> Result<(ActorRef<()>, JoinHandle<()>), ractor::SpawnErr> {
        Actor::spawn(None, Root, self.clone()).await
    }

    /// Stops everything in order, within `daemon.stop_timeout`.
    async fn stop(&self, root: &ActorRef<()>) {
        let settings = self.settings.settings();
        let whole = settings.daemon.stop;
        let stopping = async {
            self.events.emit(Event::new("daemon.stopping", "hosts are asked to finish"));
            // At once: nothing of a stream is waited for.
            let _ = self.listens.drain(settings.daemon.ask).await;
            if self.hosts.drain(settings.host.drain).await == Err(AskError::Late) {
                let text = "hosts had calls in flight when host.drain passed; they are told that \
                            the outcome is unknown";
                self.events.emit(Event::new("daemon.stop_timeout", text));
            }
            self.hosts.settled(settings.daemon.ask).await;
            let left = self.exec.stop(sandboxes(&settings)).await;
            if left > 0 {
                let text = format!("{left} sandboxes outlived plumbing.term_grace");
                self.events.emit(Event::new("daemon.stop_timeout", text));
            }
            self.upstreams.close();
            self.tasks.suspend(settings.daemon.ask).await;
            let left = self.upstreams.stop_all(ladder(&settings)).await;
            if left > 0 {
                let text = format!("{left} upstream processes outlived their stop ladder");
                self.events.emit(Event::new("daemon.stop_timeout", text));
            }
            self.tasks.flush(settings.daemon.ask).await;
            self.artifacts.flush(settings.daemon.ask).await;
            self.catalog.flush(settings.daemon.ask).await;
            self.eras.flush(settings.daemon.ask).await;
            self.broker.flush(settings.daemon.ask).await;
            self.inside.audit.flush(settings.daemon.ask).await;
            self.inside.spans.flush(settings.daemon.ask).await;
        };
        if tokio::time::timeout(whole, stopping).await.is_err() {
            let text = "the stop took longer than daemon.stop_timeout; the rest is cut off";
            self.events.emit(Event::new("daemon.stop_timeout", text));
        }
        // Waited for: the runtime must not end under actors that are still at it.
        if root.stop_and_wait(None, Some(settings.daemon.ask)).await.is_err() {
            let text = "some parts did not end within daemon.ask_timeout; they are cut off";
            self.events.emit(Event::new("daemon.stop_timeout", text));
        }
    }
}

/// The whole stop ladder and a moment for reaping, which has the length of its last step.
fn ladder(settings: &crate::settings::Settings) -> Duration {
    settings.process.drain + settings.process.term + settings.process.term
}

/// The two steps that end a sandbox, and a moment for reaping.
fn sandboxes(settings: &crate::settings::Settings) -> Duration {
    settings.process.term + settings.process.term
}

/// Its children, in the order of their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Child {
    EraCache,
    Catalog,
    Upstreams,
    Exec,
    Tasks,
    Artifacts,
    Settings,
    Parked,
    Listens,
    Broker,
    Audit,
    Spans,
    Metrics,
    Hosts,
}

impl Child {
    const ALL: [Self; 14] = [
        Self::Audit,
        Self::Spans,
        Self::EraCache,
        Self::Catalog,
        Self::Upstreams,
        Self::Artifacts,
        Self::Exec,
        Self::Tasks,
        Self::Settings,
        Self::Broker,
        Self::Parked,
        Self::Listens,
        Self::Metrics,
        Self::Hosts,
    ];

    /// The name of its type.
    const fn name(self) -> &'static str {
        match self {
            Self::EraCache => "EraCache",
            Self::Catalog => "Catalog",
            Self::Upstreams => "Upstreams",
            Self::Exec => "Exec",
            Self::Tasks => "Tasks",
            Self::Artifacts => "Artifacts",
            Self::Settings => "SettingsKeeper",
            Self::Parked => "Parked",
            Self::Listens => "Listens",
            Self::Broker => "Broker",
            Self::Audit => "Audit",
            Self::Spans => "Spans",
            Self::Metrics => "Metrics",
            Self::Hosts => "Hosts",
        }
    }
}

#[derive(Debug)]
struct Root;

#[derive(Debug)]
struct RootState {
    me: ActorCell,
    parts: Parts,
    children: HashMap<ActorId, Child>,
    intensity: Intensity,
}

impl Actor for Root {
    type Msg = ();
    type State = RootState;
    type Arguments = Parts;

    async fn pre_start(
        &self,
        me: ActorRef<()>,
        parts: Parts,
    ) -> Result<RootState, ActorProcessingErr> {
        let daemon = parts.settings.settings().daemon;
        let intensity = Intensity::new(daemon.restart_intensity, daemon.restart_window);
        let children = HashMap::new();
        parts.inside.chronicle.root(me.get_cell());
        let mut state = RootState { me: me.get_cell(), parts, children, intensity };
        for child in Child::ALL {
            state.start(child).await?;
        }
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<()>,
        (): (),
        _state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        // Nobody sends it anything: others use the handles in `Parts`.
        Ok(())
    }

    async fn post_stop(
        &self,
        me: ActorRef<()>,
        _state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        // Otherwise they would be killed without their own `post_stop`.
        stop::children(&me.get_cell()).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<()>,
        event: SupervisionEvent,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
            SupervisionEvent::ActorTerminated(who, _, why) => {
                let why = why.unwrap_or_else(|| "it ended".to_owned());
                state.ended(who.get_id(), &why).await;
            }
            SupervisionEvent::ActorFailed(who, error) => {
                state.ended(who.get_id(), &error.to_string()).await;
            }
        }
        Ok(())
    }
}

impl RootState {
    async fn start(&mut self, child: Child) -> Result<(), ActorProcessingErr> {
        let (parts, me) = (&self.parts, self.me.clone());
        let cell = match child {
            Child::EraCache => parts.eras.start(me).await?,
            Child::Catalog => parts.catalog.start(me).await?,
            Child::Upstreams => parts.upstreams.start(me).await?,
            Child::Exec => parts.exec.start(me).await?,
            Child::Tasks => parts.tasks.start(me, Arc::new(Resumer(parts.context()))).await?,
            Child::Artifacts => parts.artifacts.start(me).await?,
            Child::Settings => parts.settings.start(me).await?,
            Child::Parked => parts.parked.start(me).await?,
            Child::Listens => parts.listens.start(me, parts.events.clone()).await?,
            Child::Broker => parts.broker.start(me).await?,
            Child::Audit => parts.inside.audit.start(me).await?,
            Child::Spans => parts.inside.spans.start(me).await?,
            Child::Metrics => parts.inside.metrics.start(me, parts.context()).await?,
            Child::Hosts => parts.hosts.start(me, parts.context()).await?,
        };
        self.children.insert(cell.get_id(), child);
        self.parts.inside.chronicle.started(child.name(), cell);
        Ok(())
    }

    /// A permanent child is started again; too many failures end the daemon.
    async fn ended(&mut self, id: ActorId, why: &str) {
        let Some(child) = self.children.remove(&id) else { return };
        if self.parts.root.is_ending() {
            return;
        }
        self.parts.inside.chronicle.failed(child.name(), why);
        let text = format!("{child:?} failed and is started again: {why}");
        self.parts.events.emit(Event::new("daemon.part_failed", text));
        let again = self.intensity.admit(clock::now());
        let started = if again { self.start(child).await } else { Err(why.into()) };
        if let Err(error) = started {
            let text = format!("{child:?} fails again and again: {error}");
            self.parts.root.end(End::Failed(text));
        }
    }
}

/// Runs `serving` (the accept loop) beside the tree until the daemon is to end, then stops all: first
/// of all the accepting, by `stop`.
pub async fn run(
    parts: Parts,
    serving: impl Future<Output = std::io::Result<()>> + Send + 'static,
    stop: watch::Sender<bool>,
    manager: Systemd,
) -> End {
    let (root, mut running) = match parts.start().await {
        Ok(started) => started,
        Err(error) => return End::Failed(format!("the daemon's parts did not start: {error}")),
    };
    let ending = parts.root.clone();
    let accepting = task::spawn_guarded(async move {
        if let Err(error) = serving.await {
            ending.end(End::Failed(format!("the control socket failed: {error}")));
        }
    });
    parts.events.emit(Event::new("daemon.ready", "the daemon serves hosts"));
    manager.ready(&parts);
    let watchdog = watchdog::feed(manager.clone(), parts.clone());
    let end = parts.root.ended_or_gone(&mut running).await;
    manager.stopping();
    stop.send_replace(true);
    parts.stop(&root).await;
    drop(watchdog);
    drop(accepting);
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails as a root would that panics in its own handler.
    struct Panics;

    impl Actor for Panics {
        type Msg = ();
        type State = ();
        type Arguments = ();

        async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
            Ok(())
        }

        async fn handle(
            &self,
            _: ActorRef<()>,
            (): (),
            (): &mut (),
        ) -> Result<(), ActorProcessingErr> {
            panic!("on purpose")
        }
    }

    /// A full disk once made the root's log line panic: all its children were gone, and the daemon
    /// stayed without them.
    #[tokio::test]
    async fn a_root_that_fails_ends_the_daemon() {
        let handle = RootHandle::new();
        let (root, mut running) = Actor::spawn(None, Panics, ()).await.unwrap();
        root.cast(()).unwrap();
        assert!(matches!(handle.ended_or_gone(&mut running).await, End::Failed(_)));
        assert!(handle.is_ending());
    }
}
