//! The record of calls: who called what, when, how long, and how it ended (O-03).
//!
//! A call that ends leaves a note and goes on; notes are gathered for `audit.flush` and written together
//! (`inside/batch.rs`).

mod journal;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ractor::{ActorCell, SpawnErr};
use tokio::sync::{broadcast, watch};

use self::journal::Journal;
use super::batch::{BatcherHandle, Limits, Sink};
use super::ending::Ending;
use crate::actors::events::EventsHandle;
use crate::actors::settings::Current;
use crate::actors::upstreams::{Caller, HostId, Source, Who};
use crate::control::types::AuditRecord;
use crate::protocol::hex::hex;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::redact;
use crate::settings::Settings;
use crate::settings::typed::AuditSettings;
use crate::transport::{clock, socket};

/// Arguments that are longer are left out of the record.
const ARGUMENTS: usize = 16 * 1024;

/// The id of one call: it is in the record, and in mcpx's own errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditId {
    /// Drawn by each daemon.
    life: u32,
    number: u64,
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.life, self.number)
    }
}

/// Who made a call, of what; kept while it goes on.
#[derive(Debug)]
pub(crate) struct Began {
    /// Its id.
    pub(crate) id: AuditId,
    label: Arc<str>,
    host: Option<HostId>,
    project: Option<Arc<Path>>,
    source: Source,
    arguments: Option<RawJson>,
}

/// A call that is over.
#[derive(Debug)]
pub(super) struct Note {
    began: Began,
    /// When it was over, since 1970.
    over: Duration,
    took: Duration,
    ending: Ending,
    server: Arc<str>,
    kind: &'static str,
    name: Box<str>,
}

impl Note {
    fn record(self, names: &mut Names) -> AuditRecord {
        let Began { id, label, host, project, source, arguments } = self.began;
        let began = self.over.saturating_sub(self.took).as_millis();
        let masked = |arguments: RawJson| {
            let text = redact::json(arguments.as_str());
            RawJson::parse(text.into()).ok()
        };
        AuditRecord {
            id: id.to_string(),
            at: u64::try_from(began).unwrap_or(u64::MAX),
            // Thousandths are enough, and short.
            ms: (self.took.as_secs_f64() * 1e6).round() / 1e3,
            outcome: self.ending.word().to_owned(),
            server: self.server.to_string(),
            kind: self.kind.to_owned(),
            name: self.name.into(),
            named: source.named.map(|name| name.to_string()),
            host: label.to_string(),
            user: source.who.map(|who| names.of(who)),
            via: source.via.word().to_owned(),
            session: host.map(|host| host.0),
            request: source
                .request
                .and_then(|id| RawJson::parse(id.as_raw().to_owned().into()).ok()),
            script: source.script,
            project: project.map(|path| path.display().to_string()),
            trace: source.span.map(|span| hex(&span.trace)),
            arguments: arguments.and_then(masked),
        }
    }
}

/// Names of users, each looked up once in a batch.
#[derive(Debug, Default)]
struct Names(BTreeMap<u32, String>);

impl Names {
    /// Blocks: the system may look it up anywhere.
    fn of(&mut self, who: Who) -> String {
        match who {
            Who::User(uid) => self.0.entry(uid).or_insert_with(|| socket::user_name(uid)).clone(),
            Who::Bearer => "bearer".to_owned(),
        }
    }
}

/// Who writes the record.
#[derive(Debug)]
struct Writer {
    on: AtomicBool,
    arguments: AtomicBool,
    life: u32,
    numbers: AtomicU64,
    folder: PathBuf,
    pen: Arc<Pen>,
}

/// What writing needs, on a thread where it may block.
#[derive(Debug)]
struct Pen {
    journal: Mutex<Journal>,
    /// There once somebody follows.
    followers: OnceLock<broadcast::Sender<Arc<AuditRecord>>>,
}

/// How others leave and read records. Cheap to clone; outlives the actor's incarnations.
#[derive(Debug, Clone)]
pub struct AuditHandle(BatcherHandle<Writer>);

impl AuditHandle {
    /// The record in `folder`; nothing is touched before the first call.
    pub fn new(
        folder: PathBuf,
        events: EventsHandle,
        settings: watch::Receiver<Arc<Current>>,
    ) -> Self {
        let pen =
            Pen { journal: Mutex::new(Journal::new(folder.clone())), followers: OnceLock::new() };
        let writer = Writer {
            on: AtomicBool::new(false),
            arguments: AtomicBool::new(false),
            life: u32::from_ne_bytes(clock::random()),
            numbers: AtomicU64::new(1),
            folder,
            pen: Arc::new(pen),
        };
        Self(BatcherHandle::new(writer, settings, events))
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.0.answers(limit).await
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub(crate) async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        self.0.start(parent).await
    }

    /// A call begins; `None` where calls are not recorded.
    pub(crate) fn begin(&self, caller: &Caller, params: &RawJson) -> Option<Began> {
        let writer = self.0.sink();
        if !writer.on.load(Ordering::Relaxed) {
            return None;
        }
        let wanted = writer.arguments.load(Ordering::Relaxed);
        let arguments = wanted.then(|| params.member("arguments")).flatten();
        Some(Began {
            id: AuditId {
                life: writer.life,
                number: writer.numbers.fetch_add(1, Ordering::Relaxed),
            },
            label: Arc::clone(&caller.label),
            host: caller.host,
            project: caller.project.clone(),
            source: caller.source.clone(),
            arguments: arguments
                .filter(|arguments| arguments.len() <= ARGUMENTS)
                .map(|arguments| arguments.detached()),
        })
    }

    /// It is over.
    pub(crate) fn end(
        &self,
        began: Began,
        server: &Arc<str>,
        (kind, name): (&'static str, &str),
        (ending, took): (Ending, Duration),
    ) {
        let (server, name) = (Arc::clone(server), name.into());
        self.0.leave(Note { began, over: clock::wall(), took, ending, server, kind, name });
    }

    /// Whether calls are recorded.
    pub fn is_on(&self) -> bool {
        self.0.sink().on.load(Ordering::Relaxed)
    }

    /// Calls that were not recorded although they should have been.
    pub fn dropped(&self) -> u64 {
        self.0.dropped()
    }

    /// Records that are written from now on, in batches; lagging behind loses the oldest.
    pub fn follow(&self) -> broadcast::Receiver<Arc<AuditRecord>> {
        let most = self.0.settings().inside.audit.queue;
        let followers = &self.0.sink().pen.followers;
        followers.get_or_init(|| broadcast::Sender::new(most)).subscribe()
    }

    /// The last `most` records that `wanted` takes, oldest first, those that wait included.
    pub async fn read(
        &self,
        most: usize,
        wanted: impl Fn(&AuditRecord) -> bool + Send + 'static,
    ) -> Result<Vec<AuditRecord>, String> {
        self.flush(self.0.settings().daemon.ask).await;
        let folder = self.0.sink().folder.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let mut found = VecDeque::new();
            let each = |line: &str| {
                // A later version may have written others; they are not ours to show.
                let Ok(record) = serde_json::from_str::<AuditRecord>(line) else { return };
                if wanted(&record) {
                    if found.len() >= most {
                        found.pop_front();
                    }
                    found.push_back(record);
                }
            };
            journal::read(&folder, each)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            Ok(found.into())
        });
        reading.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Resolves when what waits is written, or `limit` has passed.
    pub async fn flush(&self, limit: Duration) {
        self.0.flush(limit).await;
    }
}

impl Sink for Writer {
    type Item = Note;

    fn limits(&self, settings: &Settings) -> Limits {
        let AuditSettings { queue, flush, .. } = settings.inside.audit;
        Limits { queue, batch: usize::MAX, interval: flush }
    }

    fn changed(&self, settings: &Settings) {
        let audit = settings.inside.audit;
        self.on.store(audit.enabled, Ordering::Relaxed);
        self.arguments.store(audit.arguments, Ordering::Relaxed);
    }

    async fn deal(&self, batch: Vec<Note>, settings: Arc<Settings>) -> Result<(), String> {
        let pen = Arc::clone(&self.pen);
        let writing = move || pen.write(batch, &settings.inside.audit);
        let written = tokio::task::spawn_blocking(writing).await;
        let written = written.unwrap_or_else(|error| Err(error.to_string()));
        written.map_err(|error| format!("{}: {error}", self.folder.display()))
    }

    fn complaint(why: &str) -> String {
        format!("calls are not recorded in the audit: {why}")
    }
}

impl Pen {
    /// Writes a batch, and tells those who follow. Blocks.
    fn write(&self, batch: Vec<Note>, limits: &AuditSettings) -> Result<(), String> {
        let mut lines = Vec::new();
        let mut told = Vec::new();
        let mut names = Names::default();
        for record in batch.into_iter().map(|note| note.record(&mut names)) {
            lines.extend_from_slice(RawJson::write(&record).as_bytes());
            lines.push(b'\n');
            told.push(record);
        }
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let written = journal.write(&lines, limits);
        drop(journal);
        if let Some(followers) = self.followers.get() {
            for record in told {
                // Nobody following is no fault.
                let _ = followers.send(Arc::new(record));
            }
        }
        written.map_err(|error| error.to_string())
    }
}
