//! Artifacts: results that are too long for an answer, and files that scripts write.
//!
//! Each is a file in the state folder under an id that nobody guesses, with a record in the store. The
//! table of records is shared, so that writing and reading cost no message; the actor forgets what has
//! been kept for its time. A file is on disk before its record, and both before anybody is told of them;
//! what a crash leaves of one without the other is found at the next start. Permanent; no children.

mod record;
mod restore;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent,
};
use tokio::sync::watch;

pub use self::record::Record;
use self::record::Table;
use super::events::{Event, EventsHandle};
use super::settings::Current;
use super::support::slot::Slot;
use super::support::task::{self, TaskGuard, spawn_guarded};
use super::support::timer::Timer;
use crate::protocol::hex::hex;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::tool_result;
use crate::protocol::session::Limit;
use crate::protocol::uri;
use crate::settings::typed::ArtifactSettings;
use crate::settings::value::{duration_text, size_text};
use crate::transport::clock;
use crate::transport::store::blobs::Blobs;
use crate::transport::store::{Change, Store, StoreError};

/// The table of the store that holds their records, by their ids.
const TABLE: &str = "artifacts";
/// Random bytes of an id.
const ID_BYTES: usize = 16;
/// Characters of a name, and of a media type, that are kept.
const NAME: usize = 200;

/// How others write and read artifacts. Cheap to clone; outlives the actor's incarnations.
#[derive(Debug, Clone)]
pub struct ArtifactsHandle {
    shared: Arc<Shared>,
}

/// What is to be kept.
#[derive(Debug, Clone)]
pub struct NewArtifact {
    /// What it is called: any words, never a path.
    pub name: String,
    /// Its media type; empty where it is not known.
    pub kind: String,
    /// What it holds.
    pub bytes: Bytes,
    /// What made it, as in "tool `t` of server `s`" or "a script".
    pub maker: String,
    /// The session that it is made for (`TaskSide::session`); none where its caller has none.
    pub owner: Option<String>,
}

/// An artifact that is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its address, `mcpx://artifacts/{id}`.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// Its media type.
    pub kind: String,
    /// Bytes.
    pub size: u64,
    /// How many lines it has, where it is text.
    pub lines: Option<u64>,
}

impl Stored {
    /// The `resource_link` block that leads to it, newest shape (C-14).
    pub fn link(&self, description: &str) -> RawJson {
        let description = (!description.is_empty()).then_some(description);
        tool_result::link_block(&self.uri, &self.name, description, &self.kind, self.size)
    }
}

/// Why something was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotStored {
    /// It is longer than `artifacts.max_size` admits.
    TooLarge {
        /// Its bytes.
        size: usize,
        /// That.
        limit: Limit,
    },
    /// The disk, the store, or the system's randomness failed.
    Failed(String),
}

impl NotStored {
    /// In words.
    pub fn text(&self) -> String {
        match self {
            Self::TooLarge { size, limit } => format!(
                "it was not kept: it has {size} bytes, and one artifact has {} at most (setting {})",
                limit.value, limit.setting
            ),
            Self::Failed(why) => format!("it was not kept: {why}"),
        }
    }
}

#[derive(Debug)]
struct Shared {
    blobs: Blobs,
    store: Arc<dyn Store>,
    events: EventsHandle,
    settings: watch::Receiver<Arc<Current>>,
    /// The same moment on both clocks: how long things are kept is counted on the monotonic one.
    began: (Instant, u64),
    table: Mutex<Table>,
    /// What is being written or taken away.
    writing: watch::Sender<usize>,
    actor: Slot<ArtifactsMsg>,
}

impl ArtifactsHandle {
    /// Those of an earlier daemon, as `folder` and `store` have them. What is in only one of the two is
    /// told of and put in order.
    pub fn new(
        folder: PathBuf,
        store: Arc<dyn Store>,
        events: EventsHandle,
        settings: watch::Receiver<Arc<Current>>,
    ) -> Self {
        let blobs = Blobs::new(folder);
        let table = Mutex::new(restore::table(&blobs, &*store, &events));
        let (writing, actor) = (watch::Sender::new(0), Slot::default());
        let wall_ms = u64::try_from(clock::wall().as_millis()).unwrap_or(u64::MAX);
        let began = (clock::now(), wall_ms);
        let shared = Shared { blobs, store, events, settings, began, table, writing, actor };
        Self { shared: Arc::new(shared) }
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.shared.actor.ask(limit, |reply| ArtifactsMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub(crate) async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        let args = Arc::clone(&self.shared);
        let (actor, _) = Artifacts::spawn_linked(None, Artifacts, args, parent).await?;
        Ok(actor.get_cell())
    }

    /// Keeps something. It is on disk when this returns; the oldest make room where that is needed.
    pub async fn write(&self, new: NewArtifact) -> Result<Stored, NotStored> {
        let limits = self.shared.limits();
        if new.bytes.len() > limits.max_size {
            let value = size_text(u64::try_from(limits.max_size).unwrap_or(u64::MAX));
            let limit = Limit { setting: "artifacts.max_size", value };
            return Err(NotStored::TooLarge { size: new.bytes.len(), limit });
        }
        let shared = Arc::clone(&self.shared);
        // A task of its own: a caller that goes away leaves no file without a record.
        let written = task::spawn(async move { shared.keep(new).await }).await;
        written.unwrap_or_else(|error| Err(NotStored::Failed(error.to_string())))
    }

    /// The artifact of this id.
    pub fn find(&self, id: &str) -> Option<Arc<Record>> {
        self.shared.table().get(id).cloned()
    }

    /// All of them, newest first.
    pub fn all(&self) -> Vec<Arc<Record>> {
        self.shared.table().all().rev().cloned().collect()
    }

    /// Opens an artifact's file. Blocks.
    pub fn open(&self, record: &Record) -> io::Result<File> {
        self.shared.blobs.open(&record.id)
    }

    /// Why there is no artifact of an id, in words.
    pub fn missing(&self) -> String {
        let limits = self.shared.limits();
        format!(
            "no artifact of this address is kept; each goes after {} (setting artifacts.keep), or when \
             newer ones need its room (artifacts.max_total, artifacts.max)",
            duration_text(limits.keep)
        )
    }

    /// Resolves when what is being written is on disk, or `limit` has passed.
    pub async fn flush(&self, limit: Duration) {
        let mut writing = self.shared.writing.subscribe();
        // What takes longer is cut off with the rest of the daemon; its caller was not told of it.
        let _ = tokio::time::timeout(limit, writing.wait_for(|open| *open == 0)).await;
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limits(&self) -> ArtifactSettings {
        self.settings.borrow().loaded.settings.artifacts
    }

    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64 {
        let (began, wall_ms) = self.began;
        let since = clock::now().saturating_duration_since(began).as_millis();
        wall_ms.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    async fn keep(self: &Arc<Self>, new: NewArtifact) -> Result<Stored, NotStored> {
        let failed = |error: &dyn std::fmt::Display| NotStored::Failed(error.to_string());
        let id = draw_id().map_err(|error| failed(&error))?;
        let (record, bytes) = describe(id, new, self.now_ms());
        let (shared, written) = (Arc::clone(self), record.clone());
        let done = self.at_work(move || shared.put(&written, &bytes)).await;
        if let Err(why) = done {
            self.events
                .emit(Event::new("daemon.warning", format!("{record:?} was not kept: {why}")));
            return Err(NotStored::Failed(why));
        }
        let stored = stored(&record);
        self.events.emit(Event::new("artifact.stored", format!("{record:?} is kept")));
        let limits = self.limits();
        let gone = {
            let mut table = self.table();
            table.insert(record);
            table.make_room(limits.most, limits.max_total)
        };
        self.forget(gone, "made room for newer ones (artifacts.max_total, artifacts.max)");
        self.actor.cast(ArtifactsMsg::Changed);
        Ok(stored)
    }

    /// Writes a file and its record. Blocks.
    fn put(&self, record: &Record, bytes: &[u8]) -> Result<(), String> {
        let told =
            |error: &dyn std::fmt::Display| format!("{}: {error}", self.blobs.path("").display());
        self.blobs.write(&record.id, bytes).map_err(|error| told(&error))?;
        let kept = self.store.put(TABLE, &record.id, RawJson::write(record).as_bytes());
        kept.map_err(|error| {
            // Where this fails, too, it is found at the next start.
            let _ = self.blobs.remove(&record.id);
            error.to_string()
        })
    }

    /// Takes away what is not in the table any more.
    fn forget(self: &Arc<Self>, gone: Vec<Arc<Record>>, why: &'static str) {
        let text = match gone.as_slice() {
            [] => return,
            [one] => format!("{one:?} {why}"),
            more => format!("{} artifacts {why}", more.len()),
        };
        self.events.emit(Event::new("artifact.dropped", text));
        let shared = Arc::clone(self);
        task::spawn(async move {
            let own = Arc::clone(&shared);
            if let Err(why) = shared.at_work(move || own.erase(&gone)).await {
                let text = format!("artifacts could not be taken away: {why}");
                shared.events.emit(Event::new("daemon.warning", text));
            }
        });
    }

    /// Takes files and records away. Blocks.
    fn erase(&self, gone: &[Arc<Record>]) -> Result<(), String> {
        for record in gone {
            self.blobs.remove(&record.id).map_err(|error| error.to_string())?;
        }
        let changes: Vec<_> =
            gone.iter().map(|record| Change::Remove { key: record.id.clone() }).collect();
        self.store.change(TABLE, &changes).map_err(|error: StoreError| error.to_string())
    }

    /// Runs what blocks, and is waited for when the daemon stops.
    async fn at_work(
        &self,
        work: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<(), String> {
        self.writing.send_modify(|open| *open += 1);
        let done = tokio::task::spawn_blocking(work).await;
        self.writing.send_modify(|open| *open -= 1);
        done.map_err(|error| error.to_string()).and_then(|done| done)
    }
}

fn draw_id() -> io::Result<String> {
    let bytes = clock::secret::<ID_BYTES>()?;
    Ok(hex(&bytes))
}

fn describe(id: String, new: NewArtifact, created_ms: u64) -> (Record, Bytes) {
    let NewArtifact { name, kind, bytes, maker, owner } = new;
    let known = shown(&kind);
    let lines = lines_of(&known, &bytes);
    let kind = match (known.is_empty(), lines) {
        (false, _) => known,
        (true, Some(_)) => "text/plain".to_owned(),
        (true, None) => "application/octet-stream".to_owned(),
    };
    let name = Some(shown(&name)).filter(|name| !name.is_empty());
    let record = Record {
        id,
        name: name.unwrap_or_else(|| "unnamed".to_owned()),
        kind,
        size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        lines,
        maker,
        owner,
        created_ms,
    };
    (record, bytes)
}

/// How many lines a text has; none where it is no text: a picture, or bytes that no text has.
fn lines_of(kind: &str, bytes: &[u8]) -> Option<u64> {
    const MEDIA: [&str; 3] = ["image/", "audio/", "video/"];
    let is_media = MEDIA.iter().any(|media| kind.starts_with(media)) && kind != "image/svg+xml";
    let text = std::str::from_utf8(bytes).ok().filter(|text| !is_media && !text.contains('\0'))?;
    u64::try_from(text.lines().count()).ok()
}

/// Words that can be shown in a line, and not too many of them.
fn shown(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(NAME).collect()
}

fn stored(record: &Record) -> Stored {
    Stored {
        uri: uri::artifact(&record.id),
        name: record.name.clone(),
        kind: record.kind.clone(),
        size: record.size,
        lines: record.lines,
    }
}

/// What the actor is told.
#[derive(Debug)]
enum ArtifactsMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// The table, or how long things are kept, is another.
    Changed,
    /// The timer.
    Due,
}

/// The actor.
#[derive(Debug)]
struct Artifacts;

#[derive(Debug)]
struct ArtifactsState {
    me: ActorRef<ArtifactsMsg>,
    shared: Arc<Shared>,
    timer: Timer,
    _following: TaskGuard,
}

impl Actor for Artifacts {
    type Msg = ArtifactsMsg;
    type State = ArtifactsState;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        me: ActorRef<ArtifactsMsg>,
        shared: Arc<Shared>,
    ) -> Result<ArtifactsState, ActorProcessingErr> {
        shared.actor.set(me.clone());
        let (mut settings, told) = (shared.settings.clone(), me.clone());
        let following = spawn_guarded(async move {
            while settings.changed().await.is_ok() && told.cast(ArtifactsMsg::Changed).is_ok() {}
        });
        let timer = Timer::new();
        let mut state = ArtifactsState { me, shared, timer, _following: following };
        state.look();
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<ArtifactsMsg>,
        message: ArtifactsMsg,
        state: &mut ArtifactsState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ArtifactsMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
                return Ok(());
            }
            ArtifactsMsg::Due => state.timer.fired(),
            ArtifactsMsg::Changed => {}
        }
        state.look();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<ArtifactsMsg>,
        _event: SupervisionEvent,
        _state: &mut ArtifactsState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}

impl ArtifactsState {
    /// Forgets what is due, and sets the timer to what is next.
    fn look(&mut self) {
        let limits = self.shared.limits();
        let now = self.shared.now_ms();
        let (over, crowded, next) = {
            let mut table = self.shared.table();
            let over = table.expire(now, limits.keep);
            let crowded = table.make_room(limits.most, limits.max_total);
            (over, crowded, table.next_end(limits.keep))
        };
        self.shared.forget(over, "were kept for their time (artifacts.keep) and are forgotten");
        self.shared
            .forget(crowded, "made room for newer ones (artifacts.max_total, artifacts.max)");
        let due = next.and_then(|next| in_ms(next.saturating_sub(now)));
        self.timer.set(&self.me, due, ArtifactsMsg::Due);
    }
}

/// The moment in so many milliseconds; none where the clock does not reach that far.
fn in_ms(ms: u64) -> Option<Instant> {
    clock::now().checked_add(Duration::from_millis(ms))
}

#[cfg(test)]
mod tests;
