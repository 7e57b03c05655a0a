//! Sessions over HTTP outlive the daemon: what each has agreed with its host stands in the store, and
//! the next daemon goes on with it at the first request that names it (F47).
//!
//! Written when something of it changes, which is a few times in a session's life and never for a
//! call; whoever is answered meanwhile waits until it is on disk. An id is a secret, so that only its
//! digest is kept. A record goes with its session: when the host ends it, or after
//! `http.session_idle`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, watch};

use crate::actors::events::{Event, EventsHandle};
use crate::protocol::hex::hex;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::revision::Revision;
use crate::protocol::session::LogLevel;
use crate::protocol::session::host::Agreed;
use crate::settings::typed::SessionSettings;
use crate::transport::clock;
use crate::transport::store::{Change, Store};

/// Where sessions stand in the store.
const TABLE: &str = "sessions";
/// Raised when an older mcpx could not read what this one writes.
const LAYOUT: u32 = 1;

/// What a session's id is known by where it must not be shown.
pub(crate) type Name = Arc<str>;

/// The name of the session with this id, of a host that came in by this profile: who comes in by
/// another does not know it.
pub(crate) fn name_of(id: &str, profile: Option<&Arc<str>>) -> Name {
    let mut digest = Sha256::new().chain_update(b"mcpx session\n").chain_update(id);
    if let Some(profile) = profile {
        digest.update(b"\n");
        digest.update(profile.as_bytes());
    }
    hex(&digest.finalize()).into()
}

/// One session as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    layout: u32,
    revision: String,
    capabilities: RawJson,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    info: Option<RawJson>,
    initialized: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_level: Option<String>,
    /// What it subscribed to, as its host spells it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) subscriptions: BTreeSet<String>,
    /// The digests of the lists that its host was given last.
    pub(super) views: String,
    /// In how many daemons, or connections of one, it has lived.
    pub(super) lives: u32,
    /// When it was known to be used, in seconds since 1970; up to `http.session_idle` before its
    /// last use.
    seen: u64,
}

impl Record {
    pub(super) fn new(
        agreed: Agreed,
        subscriptions: BTreeSet<String>,
        views: String,
        lives: u32,
    ) -> Self {
        Self {
            layout: LAYOUT,
            revision: agreed.revision.as_str().to_owned(),
            capabilities: agreed.capabilities,
            info: agreed.info,
            initialized: agreed.initialized,
            log_level: agreed.log_level.map(|level| level.as_str().to_owned()),
            subscriptions,
            views,
            lives,
            seen: clock::wall().as_secs(),
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(bytes).ok()?;
        (record.layout == LAYOUT).then_some(record)
    }

    /// What the handshake agreed; `None` in a revision that this mcpx does not know.
    pub(super) fn agreed(&self) -> Option<Agreed> {
        Some(Agreed {
            revision: Revision::parse(&self.revision)?,
            capabilities: self.capabilities.clone(),
            info: self.info.clone(),
            initialized: self.initialized,
            log_level: self.log_level.as_deref().and_then(LogLevel::parse),
        })
    }

    fn is_over(&self, idle: Duration) -> bool {
        let age = clock::wall().as_secs().saturating_sub(self.seen);
        // A session that is used is noted once in that time: its last use may be one later.
        age > idle.as_secs().saturating_mul(2).saturating_add(1)
    }
}

/// One session in memory.
#[derive(Debug)]
struct Place {
    record: Record,
    /// An actor runs it.
    live: bool,
}

#[derive(Debug, Default)]
struct Table {
    all: HashMap<Name, Place>,
    /// What is not on disk as it is here; none where it is to be taken out.
    changed: BTreeMap<Name, Option<Vec<u8>>>,
}

/// All sessions that are kept. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Kept(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    events: EventsHandle,
    table: Mutex<Table>,
    /// Changes so far.
    changes: AtomicU64,
    /// Those of them that were written, or could not be.
    written: watch::Sender<u64>,
    wake: Notify,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({})", self.table().all.len())
    }
}

impl Kept {
    /// The sessions of an earlier daemon, read from `store`.
    pub(crate) fn new(store: Arc<dyn Store>, events: EventsHandle) -> Self {
        let found = store.all(TABLE).unwrap_or_else(|error| {
            let text = format!(
                "sessions of the daemon before could not be read, their hosts over HTTP have to \
                 open new ones: {error}"
            );
            events.emit(Event::new("daemon.warning", text));
            Vec::new()
        });
        let mut table = Table::default();
        for (name, bytes) in found {
            let name = Name::from(name);
            if let Some(record) = Record::read(&bytes) {
                table.all.insert(name, Place { record, live: false });
            } else {
                table.changed.insert(name, None);
            }
        }
        Self(Arc::new(Inner {
            store,
            events,
            table: Mutex::new(table),
            changes: AtomicU64::new(0),
            written: watch::Sender::new(0),
            wake: Notify::new(),
        }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics inside; the table is whole all the time.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what is over.
    pub(crate) fn sweep(&self, idle: Duration) {
        let mut table = self.table();
        let over = |place: &Place| !place.live && place.record.is_over(idle);
        let gone: Vec<Name> = table
            .all
            .iter()
            .filter(|(_, place)| over(place))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            table.all.remove(&name);
            table.changed.insert(name, None);
        }
        if !table.changed.is_empty() {
            self.changed(table);
        }
    }

    /// The session of this name, which nobody runs: whoever takes it does. It has lived once more.
    pub(crate) fn take(&self, name: &Name, idle: Duration) -> Option<(Record, Held)> {
        let mut table = self.table();
        let place = table.all.get_mut(name).filter(|place| !place.live)?;
        if place.record.is_over(idle) || place.record.agreed().is_none() {
            table.all.remove(name);
            table.changed.insert(name.clone(), None);
            self.changed(table);
            return None;
        }
        place.live = true;
        place.record.lives = place.record.lives.saturating_add(1);
        let (record, bytes) = (place.record.clone(), written(&place.record));
        table.changed.insert(name.clone(), Some(bytes));
        self.changed(table);
        Some((record, self.hold(name.clone())))
    }

    /// Whether a session of this name is kept, whoever runs it.
    pub(crate) fn knows(&self, name: &Name) -> bool {
        self.table().all.contains_key(name)
    }

    /// The place of a session, which has none before it is written the first time.
    pub(crate) fn hold(&self, name: Name) -> Held {
        Held { kept: self.clone(), name, refused: false, over: false }
    }

    /// Returns once everything that was changed before is on disk, or could not be written. Costs an
    /// ordinary call two loads.
    pub(crate) async fn settled(&self, limit: Duration) {
        let changes = self.0.changes.load(Ordering::Acquire);
        if *self.0.written.borrow() >= changes {
            return;
        }
        let mut written = self.0.written.subscribe();
        let settled = written.wait_for(|written| *written >= changes);
        // A disk that takes so long keeps no host waiting; what it has not taken yet it still may.
        let _ = tokio::time::timeout(limit, settled).await.map(drop);
    }

    fn changed(&self, table: MutexGuard<'_, Table>) {
        // Counted under the lock: whoever takes the changes knows how many they are.
        self.0.changes.fetch_add(1, Ordering::Release);
        drop(table);
        self.0.wake.notify_one();
    }

    /// Writes what changes, for ever.
    pub(crate) async fn write(self) {
        loop {
            self.0.wake.notified().await;
            let (changes, count) = {
                let mut table = self.table();
                let taken = std::mem::take(&mut table.changed);
                (taken, self.0.changes.load(Ordering::Acquire))
            };
            if !changes.is_empty() {
                self.write_these(changes).await;
            }
            self.0.written.send_replace(count);
        }
    }

    async fn write_these(&self, changes: BTreeMap<Name, Option<Vec<u8>>>) {
        let change = |(name, value): (Name, Option<Vec<u8>>)| {
            let key = String::from(&*name);
            value.map_or(Change::Remove { key: key.clone() }, |value| Change::Put { key, value })
        };
        let changes: Vec<Change> = changes.into_iter().map(change).collect();
        let store = Arc::clone(&self.0.store);
        let written = tokio::task::spawn_blocking(move || store.change(TABLE, &changes)).await;
        let failed = match written {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let text = format!(
            "what sessions over HTTP have agreed could not be kept; after a restart their hosts have \
             to open new ones: {failed}"
        );
        self.0.events.emit(Event::new("daemon.warning", text));
    }
}

fn written(record: &Record) -> Vec<u8> {
    RawJson::write(record).as_bytes().to_vec()
}

/// The place of a session that an actor runs; free for another when it falls.
#[derive(Debug)]
pub(crate) struct Held {
    kept: Kept,
    name: Name,
    /// It is too large to be kept, which was said.
    refused: bool,
    over: bool,
}

impl Held {
    pub(super) const fn name(&self) -> &Name {
        &self.name
    }

    /// Keeps this; whatever it kept before is forgotten.
    pub(super) fn put(&mut self, record: Record, settings: &SessionSettings) {
        if self.over {
            return;
        }
        let bytes = written(&record);
        if bytes.len() > settings.record {
            if !std::mem::replace(&mut self.refused, true) {
                let text = format!(
                    "a session over HTTP does not survive a restart: what is to be kept of it has {} \
                     bytes, and the limit is {} (setting http.session_record)",
                    bytes.len(),
                    settings.record
                );
                self.kept.0.events.emit(Event::new("host.warning", text));
            }
            self.take_out();
            return;
        }
        let mut table = self.kept.table();
        while !table.all.contains_key(&self.name) && table.all.len() >= settings.most {
            let sleeping = table.all.iter().filter(|(_, place)| !place.live);
            let oldest = sleeping.min_by_key(|(_, place)| place.record.seen);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            table.all.remove(&oldest);
            table.changed.insert(oldest, None);
        }
        table.all.insert(self.name.clone(), Place { record, live: true });
        table.changed.insert(self.name.clone(), Some(bytes));
        self.kept.changed(table);
    }

    /// The session is over.
    pub(super) fn forget(&mut self) {
        self.over = true;
        self.take_out();
    }

    fn take_out(&self) {
        let mut table = self.kept.table();
        if table.all.remove(&self.name).is_some() {
            table.changed.insert(self.name.clone(), None);
            self.kept.changed(table);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(place) = self.kept.table().all.get_mut(&self.name) {
            place.live = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::session::resume::KeepLimits;
    use crate::transport::store;

    const IDLE: Duration = Duration::from_hours(1);

    fn settings(most: usize, record: usize) -> SessionSettings {
        let keep = KeepLimits { events: 1, bytes: 1, age: IDLE };
        let (stream_after, retry) = (IDLE, IDLE);
        let (stream_queue, max_streams) = (1, 1);
        let idle = IDLE;
        SessionSettings { most, idle, record, stream_after, stream_queue, max_streams, retry, keep }
    }

    fn record(seen_ago: u64) -> Record {
        let agreed = Agreed {
            revision: Revision::V2025_11_25,
            capabilities: RawJson::parse("{\"x\":1e2}".into()).unwrap(),
            info: None,
            initialized: true,
            log_level: Some(LogLevel::Warning),
        };
        let subscriptions = BTreeSet::from(["a://b".to_owned()]);
        let record = Record::new(agreed, subscriptions, "v".to_owned(), 0);
        Record { seen: record.seen - seen_ago, ..record }
    }

    struct Rig {
        folder: tempfile::TempDir,
    }

    impl Rig {
        /// A daemon's life: what is written in it is on disk after it.
        async fn live(&self, during: impl FnOnce(&Kept)) {
            let store = store::open(&self.folder.path().join("x.redb")).unwrap().store;
            let kept = Kept::new(store, EventsHandle::new(8));
            let writing = crate::actors::support::task::spawn_guarded(kept.clone().write());
            during(&kept);
            kept.settled(Duration::from_secs(20)).await;
            drop(writing);
            // Where it ends, and lets go of the store.
            tokio::task::yield_now().await;
        }
    }

    /// F47: what was agreed is there for the next daemon, once for whoever takes it.
    #[tokio::test]
    async fn f47_a_session_is_there_for_the_next_daemon() {
        let rig = Rig { folder: tempfile::tempdir().unwrap() };
        let name = name_of("secret", None);
        rig.live(|kept| {
            assert!(kept.take(&name, IDLE).is_none());
            let mut held = kept.hold(name.clone());
            held.put(record(0), &settings(9, 9999));
            assert!(kept.take(&name, IDLE).is_none(), "it is run already");
        })
        .await;
        rig.live(|kept| {
            let (found, held) = kept.take(&name, IDLE).unwrap();
            assert_eq!(found, Record { lives: 1, ..record(0) });
            assert_eq!(found.agreed().unwrap().capabilities.as_str(), "{\"x\":1e2}");
            assert!(kept.take(&name, IDLE).is_none(), "once");
            drop(held);
            assert_eq!(kept.take(&name, IDLE).unwrap().0.lives, 2, "its actor has failed");
        })
        .await;
        rig.live(|kept| kept.take(&name, IDLE).unwrap().1.forget()).await;
        rig.live(|kept| assert!(kept.take(&name, IDLE).is_none())).await;
        let bytes = std::fs::read(rig.folder.path().join("x.redb")).unwrap();
        assert!(!bytes.windows(6).any(|part| part == b"secret"));
    }

    /// The oldest of those that sleep make room; what is over, or cannot be read, is forgotten.
    #[tokio::test]
    async fn f47_what_is_kept_has_limits() {
        let rig = Rig { folder: tempfile::tempdir().unwrap() };
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|id| name_of(id, None));
        rig.live(|kept| {
            let few = settings(2, 9999);
            kept.hold(a.clone()).put(record(30), &few);
            kept.hold(b.clone()).put(record(20), &few);
            let mut held = kept.hold(c.clone());
            held.put(record(10), &few);
            assert!(kept.take(&a, IDLE).is_none());
            kept.hold(d.clone()).put(record(0), &settings(2, 20));
            assert!(kept.take(&d, IDLE).is_none(), "too large");
            held.put(record(0), &settings(2, 20));
            drop(held);
            assert!(kept.take(&c, IDLE).is_none(), "it has become too large");
            kept.hold(d.clone()).put(record(2 * 3600 + 2), &few);
            assert!(kept.take(&d, IDLE).is_none(), "over");
        })
        .await;
        {
            let store = store::open(&rig.folder.path().join("x.redb")).unwrap().store;
            assert_eq!(store.all(TABLE).unwrap().len(), 1);
            store.put(TABLE, "odd", b"{").unwrap();
        }
        rig.live(|kept| kept.sweep(IDLE)).await;
        let store = store::open(&rig.folder.path().join("x.redb")).unwrap().store;
        let left: Vec<_> = store.all(TABLE).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(left, [b.to_string()]);
    }
}
