//! The merged view of what all upstreams offer: kept in the store, published as a snapshot.
//!
//! Owns the entries; no children. Instances report lists; hosts read the snapshot without a message
//! and are woken by it. A snapshot is published only if something in it changed, so that whoever is
//! woken finds the new lists and never wakes for nothing (F38). A crash loses nothing: the handle
//! outlives the actor, and every start of an instance reports again.

mod merge;
mod offers;
mod snapshot;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent,
};
use tokio::sync::watch;

use self::merge::Entries;
pub use self::offers::{Missing, OffersView, ShownOffer, Target};
pub use self::snapshot::{CatalogServer, Listing, Offer, Offers, Snapshot, ToolRecord};
pub use self::view::{View, ViewTool};
use super::era_cache::identity;
use super::events::{Event, EventsHandle};
use super::settings::SettingsHandle;
use super::support::ask::AskError;
use super::support::slot::Slot;
use super::support::task;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::session::upstream::{ListKind, ListRead};
use crate::settings::ServerDef;
use crate::settings::typed::ExposeSettings;
use crate::transport::store::{Change, Store};

/// Where lists are kept, by what makes a server the same server.
const TABLE: &str = "catalog";

/// How others read and feed the catalog. Cheap to clone; outlives the actor's incarnations.
#[derive(Debug, Clone)]
pub struct CatalogHandle {
    shared: Arc<Shared>,
    /// For whom it is read: what these settings do not have is not there.
    narrowed: Option<SettingsHandle>,
}

#[derive(Debug)]
struct Shared {
    snapshot: watch::Sender<Arc<Snapshot>>,
    store: Arc<dyn Store>,
    events: EventsHandle,
    actor: Slot<CatalogMsg>,
}

impl CatalogHandle {
    /// An empty catalog whose lists are kept in `store`.
    pub fn new(store: Arc<dyn Store>, events: EventsHandle) -> Self {
        let snapshot = watch::Sender::new(Arc::new(Snapshot::default()));
        let shared = Shared { snapshot, store, events, actor: Slot::default() };
        Self { shared: Arc::new(shared), narrowed: None }
    }

    /// The same as those see it for whom these settings are read.
    #[must_use]
    pub fn narrowed(&self, to: SettingsHandle) -> Self {
        Self { shared: Arc::clone(&self.shared), narrowed: Some(to) }
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.shared.actor.ask(limit, |reply| CatalogMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        let args = self.clone();
        let (actor, _) = Catalog::spawn_linked(None, Catalog, args, parent).await?;
        Ok(actor.get_cell())
    }

    /// The present snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let whole = Arc::clone(&self.shared.snapshot.borrow());
        match self.narrowed.as_ref().and_then(SettingsHandle::narrowing) {
            Some(settings) => whole.narrowed(&settings),
            None => whole,
        }
    }

    /// What a host sees now in pass-through mode.
    pub fn view(&self, expose: &ExposeSettings) -> Arc<View> {
        self.snapshot().passthrough(expose)
    }

    /// What a host sees now beside tools.
    pub fn offers(&self, expose: &ExposeSettings) -> Arc<OffersView> {
        self.snapshot().offers(expose)
    }

    /// Wakes when there is another one.
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.shared.snapshot.subscribe()
    }

    /// These are the configured servers; the snapshot shows them when this resolves.
    pub(super) async fn configure(
        &self,
        servers: Vec<Arc<ServerDef>>,
        limit: Duration,
    ) -> Result<(), AskError> {
        self.shared.actor.ask(limit, |reply| CatalogMsg::Configure { servers, reply }).await
    }

    /// A server has been reached and said who it is.
    pub(super) fn identified(
        &self,
        key: &str,
        info: Option<RawJson>,
        instructions: Option<String>,
        capabilities: RawJson,
    ) {
        let server = key.to_owned();
        let message = CatalogMsg::Identified { server, info, instructions, capabilities };
        self.shared.actor.cast(message);
    }

    /// A list of a server has been read.
    pub(super) fn listed(&self, def: &Arc<ServerDef>, kind: ListKind, list: ListRead) {
        self.shared.actor.cast(CatalogMsg::Listed { def: Arc::clone(def), kind, list });
    }

    /// A list of a server could not be read.
    pub(super) fn list_failed(&self, def: &Arc<ServerDef>, kind: ListKind, why: String) {
        self.shared.actor.cast(CatalogMsg::ListFailed { def: Arc::clone(def), kind, why });
    }

    /// How far a list of a server is known.
    pub fn listing(&self, key: &str, kind: ListKind) -> Option<Listing> {
        self.snapshot().by_key(key).map(|server| server.listing_of(kind).clone())
    }

    /// Resolves when somebody has tried to read this list of this server, or it is not configured
    /// like this any more.
    pub(super) async fn until_listed(&self, def: &ServerDef, kind: ListKind) {
        let listed = |snapshot: &Arc<Snapshot>| {
            snapshot.by_key(&def.key).is_none_or(|server| {
                *server.listing_of(kind) != Listing::Never || *server.def != *def
            })
        };
        // The sender is ours, so there is always an answer.
        let _ = self.watch().wait_for(listed).await;
    }

    /// Resolves when the snapshot shows all that was reported before.
    pub(super) async fn caught_up(&self, limit: Duration) {
        // Where it takes too long, what is known is what is shown.
        let _ = self.shared.actor.ask(limit, |reply| CatalogMsg::CatchUp { reply }).await;
    }

    /// Resolves when everything is on disk, or `limit` has passed.
    pub async fn flush(&self, limit: Duration) {
        // What could not be written has been said in an event.
        let _ = self.shared.actor.ask(limit, |reply| CatalogMsg::Flush { reply }).await;
    }
}

/// What the catalog hears.
#[derive(Debug)]
pub enum CatalogMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// From the supervisor of the pools.
    Configure {
        /// All servers.
        servers: Vec<Arc<ServerDef>>,
        /// Answered when they are in the snapshot.
        reply: RpcReplyPort<()>,
    },
    /// From an instance.
    Identified {
        /// The server's configuration key.
        server: String,
        /// Its identity as it came.
        info: Option<RawJson>,
        /// Its instructions.
        instructions: Option<String>,
        /// What it declared.
        capabilities: RawJson,
    },
    /// From an instance.
    Listed {
        /// The server as it was started.
        def: Arc<ServerDef>,
        /// Which list.
        kind: ListKind,
        /// What is in it.
        list: ListRead,
    },
    /// From an instance.
    ListFailed {
        /// The server as it was started.
        def: Arc<ServerDef>,
        /// Which list.
        kind: ListKind,
        /// Why.
        why: String,
    },
    /// Answered in turn.
    CatchUp {
        /// Where the answer goes.
        reply: RpcReplyPort<()>,
    },
    /// The writing task is through.
    Written {
        /// Why it failed, if it did.
        failed: Option<String>,
    },
    /// The daemon stops.
    Flush {
        /// Answered when everything is written.
        reply: RpcReplyPort<()>,
    },
}

/// The actor.
#[derive(Debug)]
pub struct Catalog;

/// See the module.
#[derive(Debug)]
pub struct CatalogState {
    me: ActorRef<CatalogMsg>,
    shared: Arc<Shared>,
    entries: Entries,
    /// Servers whose entry differs from what is on disk.
    unwritten: BTreeSet<String>,
    writing: bool,
    waiting: Vec<RpcReplyPort<()>>,
}

impl Actor for Catalog {
    type Msg = CatalogMsg;
    type State = CatalogState;
    type Arguments = CatalogHandle;

    async fn pre_start(
        &self,
        me: ActorRef<CatalogMsg>,
        handle: CatalogHandle,
    ) -> Result<CatalogState, ActorProcessingErr> {
        let shared = handle.shared;
        shared.actor.set(me.clone());
        // What an incarnation before this one had published is where this one goes on.
        let entries: Entries = Arc::clone(&shared.snapshot.borrow())
            .whole
            .iter()
            .map(|server| (server.def.key.clone(), Arc::clone(server)))
            .collect();
        let (unwritten, waiting) = (BTreeSet::new(), Vec::new());
        Ok(CatalogState { me, shared, entries, unwritten, writing: false, waiting })
    }

    async fn handle(
        &self,
        _me: ActorRef<CatalogMsg>,
        message: CatalogMsg,
        state: &mut CatalogState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            CatalogMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            CatalogMsg::Configure { servers, reply } => {
                state.configure(servers);
                // Whoever asked may have given up.
                let _ = reply.send(());
            }
            CatalogMsg::Identified { server, info, instructions, capabilities } => {
                let Some(old) = state.entries.get(&server) else { return Ok(()) };
                let old = (**old).clone();
                let capabilities = Some(capabilities);
                state.replace(CatalogServer { info, instructions, capabilities, ..old });
            }
            CatalogMsg::Listed { def, kind, list } => state.listed(&def, kind, list),
            CatalogMsg::ListFailed { def, kind, why } => state.list_failed(&def, kind, why),
            CatalogMsg::CatchUp { reply } => {
                // Whoever asked may have given up.
                let _ = reply.send(());
            }
            CatalogMsg::Written { failed } => state.written(failed),
            CatalogMsg::Flush { reply } => {
                state.waiting.push(reply);
                state.answer();
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<CatalogMsg>,
        _event: SupervisionEvent,
        _state: &mut CatalogState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}

impl CatalogState {
    /// Lists of servers that stay are kept; those that come are looked up on disk.
    fn configure(&mut self, servers: Vec<Arc<ServerDef>>) {
        let mut old = std::mem::take(&mut self.entries);
        for def in servers {
            let same = old.remove(&def.key).filter(|old| identity(&old.def) == identity(&def));
            let entry = same.map_or_else(
                || {
                    // A few reads from the page cache, at the start and after a change only. What
                    // cannot be read counts as never listed.
                    let kept = self.shared.store.get(TABLE, &identity(&def));
                    merge::restore(Arc::clone(&def), kept.ok().flatten().as_deref())
                },
                |old| CatalogServer { def: Arc::clone(&def), ..(*old).clone() },
            );
            self.entries.insert(def.key.clone(), Arc::new(entry));
        }
        self.publish();
    }

    /// The entry a report is about; none where the server was replaced by another one meanwhile.
    fn entry(&self, def: &ServerDef) -> Option<&Arc<CatalogServer>> {
        self.entries.get(&def.key).filter(|entry| identity(&entry.def) == identity(def))
    }

    fn listed(&mut self, def: &ServerDef, kind: ListKind, list: ListRead) {
        let Some(old) = self.entry(def) else { return };
        let (entry, notices) = merge::listed(old, kind, list);
        for notice in notices {
            let event = Event::from_notice(notice).of_server(def.key.as_str());
            self.shared.events.emit(event);
        }
        self.replace(entry);
    }

    fn list_failed(&mut self, def: &ServerDef, kind: ListKind, why: String) {
        let Some(old) = self.entry(def) else { return };
        let (key, noun) = (&def.key, kind.noun());
        let text = format!("server `{key}`: its {noun} could not be listed: {why}");
        let entry = merge::list_failed(old, kind, why);
        let event = Event::new("server.warning", text).of_server(def.key.as_str());
        self.shared.events.emit(event);
        self.replace(entry);
    }

    /// Puts an entry in place of the old one, if it differs (F38).
    fn replace(&mut self, entry: CatalogServer) {
        let key = entry.def.key.clone();
        if self.entries.get(&key).is_some_and(|old| **old == entry) {
            return;
        }
        self.entries.insert(key.clone(), Arc::new(entry));
        self.unwritten.insert(key);
        self.publish();
        self.write();
    }

    fn publish(&self) {
        let next = merge::snapshot(&self.entries);
        self.shared.snapshot.send_if_modified(|present| {
            let changed = present.servers != next.servers;
            if changed || present.whole != next.whole {
                *present = Arc::new(next);
            }
            changed
        });
    }

    fn write(&mut self) {
        if self.writing || self.unwritten.is_empty() {
            return;
        }
        let changes: Vec<_> = std::mem::take(&mut self.unwritten)
            .into_iter()
            .filter_map(|key| self.entries.get(&key))
            .filter_map(|entry| {
                let key = identity(&entry.def);
                Some(Change::Put { key, value: merge::keep(entry)? })
            })
            .collect();
        self.writing = true;
        let (me, store) = (self.me.clone(), Arc::clone(&self.shared.store));
        task::spawn(async move {
            let written = tokio::task::spawn_blocking(move || {
                store.change(TABLE, &changes).map_err(|error| error.to_string())
            });
            let failed = match written.await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error),
                Err(error) => Some(error.to_string()),
            };
            // A dead catalog is followed by one that hears of every list again.
            let _ = me.cast(CatalogMsg::Written { failed });
        });
    }

    fn written(&mut self, failed: Option<String>) {
        self.writing = false;
        if let Some(why) = failed {
            let text = format!("lists could not be kept: {why}");
            self.shared.events.emit(Event::new("daemon.warning", text));
        }
        self.write();
        self.answer();
    }

    fn answer(&mut self) {
        if !self.writing {
            for reply in self.waiting.drain(..) {
                // Whoever asked may have given up.
                let _ = reply.send(());
            }
        }
    }
}
