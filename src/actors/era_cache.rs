//! Remembered eras, shared by all instances of a server (U-15 to U-17, P-17).
//!
//! Owns the file `upstream-eras.json`; no children. Reading needs no message: the records are in
//! memory behind the handle. Writing is a task, one at a time; what changes during it is written by
//! the next. A crash loses nothing, because the records outlive the actor; a lost file costs a probe.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent,
};

use super::events::{Event, EventsHandle};
use super::support::slot::Slot;
use super::support::task;
use crate::protocol::era_record::{
    EraRecord, EraRecords, ProcessDefinition, read_records, write_records,
};
use crate::settings::{AuthDef, ServerDef};
use crate::transport::clock;
use crate::transport::store::statefile;

/// Reads and feeds the cache; cheap to clone; outlives the actor's incarnations.
#[derive(Debug, Clone)]
pub struct EraCacheHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: PathBuf,
    events: EventsHandle,
    records: RwLock<EraRecords>,
    /// They differ from the file.
    dirty: AtomicBool,
    actor: Slot<EraCacheMsg>,
}

impl EraCacheHandle {
    /// The cache in `file`. An unreadable file is an empty cache, and written anew at the next
    /// occasion (U-16).
    pub fn new(file: PathBuf, events: EventsHandle) -> Self {
        let records = statefile::read(&file).ok().flatten();
        let records = records.map(|text| read_records(&text)).unwrap_or_default();
        let (records, dirty) = (RwLock::new(records), AtomicBool::new(false));
        Self { shared: Arc::new(Shared { file, events, records, dirty, actor: Slot::default() }) }
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.shared.actor.ask(limit, |reply| EraCacheMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        let args = self.clone();
        let (actor, _) = EraCache::spawn_linked(None, EraCache, args, parent).await?;
        Ok(actor.get_cell())
    }

    /// What is remembered of a server.
    pub fn get(&self, def: &ServerDef) -> Option<EraRecord> {
        let records = self.shared.records.read().unwrap_or_else(PoisonError::into_inner);
        records.get(&identity(def)).cloned()
    }

    /// Remembers what an opening settled.
    pub fn record(&self, def: &ServerDef, mut record: EraRecord) {
        let mut records = self.shared.records.write().unwrap_or_else(PoisonError::into_inner);
        let key = identity(def);
        let same = |old: &EraRecord| old.era == record.era && old.revision == record.revision;
        if records.get(&key).is_some_and(same) {
            return;
        }
        record.learned_at = clock::wall().as_secs();
        records.insert(key, record);
        drop(records);
        self.shared.dirty.store(true, Ordering::SeqCst);
        // Without an actor it is written by the next incarnation.
        self.shared.actor.cast(EraCacheMsg::Changed);
    }

    /// Resolves when everything is on disk, or `limit` has passed.
    pub async fn flush(&self, limit: Duration) {
        // What could not be written has been said in an event.
        let _ = self.shared.actor.ask(limit, |reply| EraCacheMsg::Flush { reply }).await;
    }
}

/// What makes a server the same server in every run: how it is started, whatever its name and
/// scope. References stand as written, so that no secret is hashed (U-15, P-10).
pub fn identity(def: &ServerDef) -> String {
    let definition = ProcessDefinition {
        command: def.command.first().cloned(),
        args: def.command.iter().skip(1).cloned().collect(),
        env: def.env.clone(),
        cwd: def.cwd.clone(),
        transport: def.transport.map(|transport| transport.as_str().to_owned()),
        url: def.url.clone(),
        headers: def.headers.clone(),
        auth: def.auth.as_ref().map(credential).unwrap_or_default(),
    };
    definition.key()
}

fn credential(auth: &AuthDef) -> BTreeMap<String, String> {
    let kind = ("type".to_owned(), auth.kind().to_owned());
    let members = auth.members().into_iter().flatten();
    let members = members.map(|(name, text, _)| (name.to_owned(), text.to_owned()));
    std::iter::once(kind).chain(members).collect()
}

/// What the cache hears.
#[derive(Debug)]
pub enum EraCacheMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// A record differs from the file.
    Changed,
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
pub struct EraCache;

/// See the module.
#[derive(Debug)]
pub struct EraCacheState {
    me: ActorRef<EraCacheMsg>,
    handle: EraCacheHandle,
    writing: bool,
    waiting: Vec<RpcReplyPort<()>>,
}

impl Actor for EraCache {
    type Msg = EraCacheMsg;
    type State = EraCacheState;
    type Arguments = EraCacheHandle;

    async fn pre_start(
        &self,
        me: ActorRef<EraCacheMsg>,
        handle: EraCacheHandle,
    ) -> Result<EraCacheState, ActorProcessingErr> {
        handle.shared.actor.set(me.clone());
        let mut state = EraCacheState { me, handle, writing: false, waiting: Vec::new() };
        // What an incarnation before this one did not write.
        state.write();
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<EraCacheMsg>,
        message: EraCacheMsg,
        state: &mut EraCacheState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            EraCacheMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            EraCacheMsg::Changed => state.write(),
            EraCacheMsg::Written { failed } => state.written(failed),
            EraCacheMsg::Flush { reply } => {
                state.waiting.push(reply);
                state.answer();
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<EraCacheMsg>,
        _event: SupervisionEvent,
        _state: &mut EraCacheState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}

impl EraCacheState {
    fn write(&mut self) {
        if self.writing || !self.handle.shared.dirty.swap(false, Ordering::SeqCst) {
            return;
        }
        self.writing = true;
        let (shared, me) = (Arc::clone(&self.handle.shared), self.me.clone());
        task::spawn(async move {
            let written = tokio::task::spawn_blocking(move || {
                let records = shared.records.read().unwrap_or_else(PoisonError::into_inner);
                let text = write_records(&records);
                drop(records);
                statefile::write(&shared.file, &text).map_err(|error| error.to_string())
            });
            let failed = match written.await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error),
                Err(error) => Some(error.to_string()),
            };
            // A dead cache is followed by one that writes everything.
            let _ = me.cast(EraCacheMsg::Written { failed });
        });
    }

    fn written(&mut self, failed: Option<String>) {
        self.writing = false;
        if let Some(why) = failed {
            let file = self.handle.shared.file.display();
            let text = format!("remembered eras could not be written to {file}: {why}");
            self.handle.shared.events.emit(Event::new("daemon.warning", text));
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
