//! Supervisor of host connections.
//!
//! Children: a [`super::host`] for each connection (temporary: a crashed one is never restarted, its
//! shim dials again). Owns the connection limit and tells hosts when the list they see has changed.
//! Ends with the daemon, after its hosts have drained or `host.drain` has passed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr,
    SupervisionEvent,
};
use tokio::sync::watch;

use super::catalog::Listing;
use super::dispatch::{self, Context, Listed};
use super::events::Event;
use super::host::{Host, HostArgs, HostMsg, HostStatus};
use super::settings::Current;
use super::support::ask::{AskError, ask};
use super::support::slot::Slot;
use super::support::stop;
use super::support::task::{TaskGuard, spawn, spawn_guarded};
use super::upstreams::{Caller, HostId};
use crate::protocol::revision::Era;
use crate::protocol::session::host::{HostConfig, ProgressPace};
use crate::settings::{ExposeMode, ServerDef};
use crate::transport::Link;

/// A connection that wants to be a host's.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) link: Link,
    pub(crate) project: Option<Arc<Path>>,
    pub(crate) seen_view: Option<String>,
}

/// What the supervisor is told.
#[derive(Debug)]
pub(crate) enum HostsMsg {
    /// Control: a shim has connected.
    Attach { attached: Box<Attached> },
    /// Its watching task: what hosts see may have changed.
    Look,
    /// Root: the daemon stops. Answered when the last host has left.
    Drain { reply: RpcReplyPort<()> },
    /// For status pages.
    GetStatus { reply: RpcReplyPort<Vec<HostStatus>> },
}

/// How others reach the hosts. Cheap to clone; outlives the supervisor's incarnations.
#[derive(Debug, Clone, Default)]
pub struct HostsHandle {
    actor: Slot<HostsMsg>,
}

impl HostsHandle {
    /// Starts an incarnation of the supervisor as a child of `parent`.
    pub(crate) async fn start(
        &self,
        parent: ActorCell,
        context: Arc<Context>,
    ) -> Result<ActorCell, SpawnErr> {
        let args = (self.actor.clone(), context);
        let (actor, _) = Hosts::spawn_linked(None, Hosts, args, parent).await?;
        Ok(actor.get_cell())
    }

    /// Hands over a connection; it is closed where no more are admitted.
    pub(crate) fn attach(&self, attached: Attached) {
        // A supervisor that has ended drops the link, which closes it.
        self.actor.cast(HostsMsg::Attach { attached: Box::new(attached) });
    }

    /// The host connections.
    pub async fn status(&self, limit: Duration) -> Result<Vec<HostStatus>, AskError> {
        self.actor.ask(limit, |reply| HostsMsg::GetStatus { reply }).await
    }

    /// Lets every host finish and leave, for at most `limit`.
    pub(crate) async fn drain(&self, limit: Duration) -> Result<(), AskError> {
        self.actor.ask(limit, |reply| HostsMsg::Drain { reply }).await
    }
}

/// The actor.
#[derive(Debug)]
pub(crate) struct Hosts;

pub(crate) struct HostsState {
    me: ActorRef<HostsMsg>,
    context: Arc<Context>,
    /// What every host is told of mcpx, and what it sees; renewed when either changes.
    config: Arc<HostConfig>,
    view: Arc<str>,
    hosts: HashMap<ActorId, Connected>,
    /// What hosts are to see and was never listed.
    unlisted: Vec<Arc<ServerDef>>,
    last_id: u64,
    draining: Option<RpcReplyPort<()>>,
    refused: bool,
    _watch: TaskGuard,
}

/// A host connection.
struct Connected {
    id: HostId,
    actor: ActorRef<HostMsg>,
    project: Option<Arc<Path>>,
    /// It has a list from an earlier daemon.
    returns: bool,
    /// Which list it was given last by this one.
    listed: Arc<Listed>,
}

impl Connected {
    fn has_list(&self) -> bool {
        self.returns || self.listed.last().is_some()
    }
}

impl Actor for Hosts {
    type Msg = HostsMsg;
    type State = HostsState;
    type Arguments = (Slot<HostsMsg>, Arc<Context>);

    async fn pre_start(
        &self,
        me: ActorRef<HostsMsg>,
        (slot, context): (Slot<HostsMsg>, Arc<Context>),
    ) -> Result<HostsState, ActorProcessingErr> {
        slot.set(me.clone());
        Ok(HostsState::new(me, context))
    }

    async fn handle(
        &self,
        _me: ActorRef<HostsMsg>,
        message: HostsMsg,
        state: &mut HostsState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            HostsMsg::Attach { attached } => state.attach(*attached),
            HostsMsg::Look => state.look(),
            HostsMsg::Drain { reply } => state.drain(reply),
            HostsMsg::GetStatus { reply } => state.report(reply),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        me: ActorRef<HostsMsg>,
        _state: &mut HostsState,
    ) -> Result<(), ActorProcessingErr> {
        // Otherwise they would be killed, and their links cut in the middle of a frame.
        stop::children(&me.get_cell()).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<HostsMsg>,
        event: SupervisionEvent,
        state: &mut HostsState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(cell, _, _) => state.gone(cell.get_id(), None),
            SupervisionEvent::ActorFailed(cell, error) => {
                state.gone(cell.get_id(), Some(error.to_string()));
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl HostsState {
    fn new(me: ActorRef<HostsMsg>, context: Arc<Context>) -> Self {
        let (catalog, settings) = (context.catalog.watch(), context.settings.watch());
        let delay = context.settings().host.list_changed_delay;
        let watching = spawn_guarded(watch_view(me.clone(), catalog, settings, delay));
        Self {
            me,
            config: host_config(&context),
            view: dispatch::visible_digest(&context),
            unlisted: unlisted(&context),
            context,
            hosts: HashMap::new(),
            last_id: 0,
            draining: None,
            refused: false,
            _watch: watching,
        }
    }

    fn attach(&mut self, attached: Attached) {
        let most = self.context.settings().host.max_connections;
        if self.draining.is_some() || self.hosts.len() >= most {
            self.refuse(most);
            return;
        }
        self.refused = false;
        self.last_id += 1;
        let id = HostId(self.last_id);
        let (project, listed) = (attached.project, Arc::<Listed>::default());
        let returns = attached.seen_view.is_some();
        let args = HostArgs {
            id,
            link: attached.link,
            project: project.clone(),
            listed: Arc::clone(&listed),
            seen_view: attached.seen_view,
            view: Arc::clone(&self.view),
            config: Arc::clone(&self.config),
            context: Arc::clone(&self.context),
        };
        let parent = self.me.get_cell();
        match ractor::ActorRuntime::spawn_linked_instant(None, Host, args, parent) {
            Ok((actor, _)) => {
                self.hosts
                    .insert(actor.get_id(), Connected { id, actor, project, returns, listed });
            }
            Err(error) => tracing::error!(%error, "a host connection could not be started"),
        }
    }

    fn refuse(&mut self, most: usize) {
        // Said once until one is admitted again: whoever floods us must not flood the log.
        if !self.refused && self.draining.is_none() {
            self.refused = true;
            let text = format!(
                "{most} hosts are connected, more are refused (setting host.max_connections)"
            );
            self.context.events.emit(Event::new("host.warning", text));
        }
    }

    fn look(&mut self) {
        self.config = host_config(&self.context);
        self.list_what_came();
        let view = dispatch::visible_digest(&self.context);
        // Each compares with what it has seen, which may be newer than our last look.
        self.view = Arc::clone(&view);
        for host in self.hosts.values() {
            let _ = host.actor.cast(HostMsg::ViewChanged { view: Arc::clone(&view) });
        }
    }

    /// Servers that came with a change of the configuration are listed for a host that has a list
    /// already: hosts that wait to be told would never hear of them otherwise (F38). One host is
    /// enough, since what is read is shown to all.
    fn list_what_came(&mut self) {
        let unlisted = unlisted(&self.context);
        let came = unlisted.iter().any(|def| !self.unlisted.contains(def));
        self.unlisted = unlisted;
        let waiting = self.hosts.values().filter(|host| host.has_list());
        let Some(host) = waiting.min_by_key(|host| host.id).filter(|_| came) else { return };
        let (host, project) = (Some(host.id), host.project.clone());
        let caller = Caller { host, project, label: Arc::from("mcpx"), era: Era::Modern };
        let context = Arc::clone(&self.context);
        // Its own limits end it; when it has found something, the catalog wakes us.
        spawn(async move { context.upstreams.ensure_listed(&caller).await });
    }

    fn drain(&mut self, reply: RpcReplyPort<()>) {
        for host in self.hosts.values() {
            let _ = host.actor.cast(HostMsg::Drain);
        }
        self.draining = Some(reply);
        self.done_draining();
    }

    fn done_draining(&mut self) {
        if self.hosts.is_empty()
            && let Some(reply) = self.draining.take()
        {
            let _ = reply.send(());
        }
    }

    fn gone(&mut self, actor: ActorId, failure: Option<String>) {
        let Some(Connected { id, .. }) = self.hosts.remove(&actor) else { return };
        self.context.upstreams.session_ended(id);
        let event = match failure {
            None => Event::new("host.closed", "a host has left"),
            Some(why) => Event::new("host.failed", format!("a host connection failed: {why}")),
        };
        self.context.events.emit(event.of_host(format!("#{}", id.0)));
        self.done_draining();
    }

    /// Asked in a task: a supervisor never waits for its children.
    fn report(&self, reply: RpcReplyPort<Vec<HostStatus>>) {
        let hosts: Vec<_> = self.hosts.values().map(|host| host.actor.clone()).collect();
        let limit = reply.get_timeout().unwrap_or_default();
        spawn(async move {
            let mut statuses = Vec::with_capacity(hosts.len());
            for host in hosts {
                // One that has just left is not on the page.
                if let Ok(status) = ask(&host, limit, |reply| HostMsg::GetStatus { reply }).await {
                    statuses.push(status);
                }
            }
            statuses.sort_by_key(|status| status.id);
            let _ = reply.send(statuses);
        });
    }
}

/// Gathers changes for `delay`, so that fifty in a second are one to the hosts (F38).
async fn watch_view(
    me: ActorRef<HostsMsg>,
    mut catalog: watch::Receiver<Arc<super::catalog::Snapshot>>,
    mut settings: watch::Receiver<Arc<Current>>,
    delay: Duration,
) {
    loop {
        let ended = tokio::select! {
            changed = catalog.changed() => changed.is_err(),
            changed = settings.changed() => changed.is_err(),
        };
        if ended {
            return;
        }
        tokio::time::sleep(delay).await;
        catalog.mark_unchanged();
        settings.mark_unchanged();
        if me.cast(HostsMsg::Look).is_err() {
            return;
        }
    }
}

/// What pass-through mode is to show and was never listed.
fn unlisted(context: &Context) -> Vec<Arc<ServerDef>> {
    let mode = context.settings().expose.mode;
    let snapshot = context.catalog.snapshot();
    let never = snapshot.servers.iter().filter(|server| {
        server.listing == Listing::Never && server.def.expose.unwrap_or(mode) != ExposeMode::Core
    });
    never.map(|server| Arc::clone(&server.def)).collect()
}

fn host_config(context: &Context) -> Arc<HostConfig> {
    let settings = context.settings();
    let view = context.catalog.view(&settings.expose);
    let core = dispatch::shows_core(&settings, &view);
    Arc::new(HostConfig {
        info: context.identity.info.clone(),
        capabilities: context.identity.capabilities.clone(),
        instructions: dispatch::instructions(core).to_owned(),
        max_in_flight: settings.host.max_in_flight,
        progress_pace: ProgressPace {
            interval: settings.host.progress_interval,
            burst: u32::try_from(settings.host.progress_burst).unwrap_or(u32::MAX),
        },
        over_stdio: true,
    })
}
