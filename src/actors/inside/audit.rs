//! The record of calls: who called what, when, how long, and how it ended (O-03).
//!
//! A call that ends leaves a note in a bounded queue and goes on; the actor is woken by the first note
//! of a batch, gathers for `audit.flush` and has the batch written by a task. What finds the queue full
//! is counted, not waited for. Permanent; no children. While no call is made nothing is done.

mod journal;

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent,
};
use tokio::sync::{broadcast, watch};

use self::journal::Journal;
use super::ending::Ending;
use crate::actors::events::{Event, EventsHandle};
use crate::actors::settings::Current;
use crate::actors::support::slot::Slot;
use crate::actors::support::task::{self, TaskGuard, spawn_guarded};
use crate::actors::support::timer::Timer;
use crate::actors::upstreams::{Caller, HostId, Source};
use crate::control::types::AuditRecord;
use crate::protocol::hex::hex;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::redact;
use crate::settings::typed::AuditSettings;
use crate::transport::clock;

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
struct Note {
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
    fn record(self) -> AuditRecord {
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

#[derive(Debug)]
struct Shared {
    on: AtomicBool,
    arguments: AtomicBool,
    life: u32,
    numbers: AtomicU64,
    dropped: AtomicU64,
    waiting: Mutex<Vec<Note>>,
    folder: PathBuf,
    journal: Mutex<Journal>,
    settings: watch::Receiver<Arc<Current>>,
    events: EventsHandle,
    /// There once somebody follows.
    followers: OnceLock<broadcast::Sender<Arc<AuditRecord>>>,
    actor: Slot<AuditMsg>,
}

/// How others leave and read records. Cheap to clone; outlives the actor's incarnations.
#[derive(Debug, Clone)]
pub struct AuditHandle(Arc<Shared>);

impl AuditHandle {
    /// The record in `folder`; nothing is touched before the first call.
    pub fn new(
        folder: PathBuf,
        events: EventsHandle,
        settings: watch::Receiver<Arc<Current>>,
    ) -> Self {
        let limits = settings.borrow().loaded.settings.inside.audit;
        Self(Arc::new(Shared {
            on: AtomicBool::new(limits.enabled),
            arguments: AtomicBool::new(limits.arguments),
            life: u32::from_ne_bytes(clock::random()),
            numbers: AtomicU64::new(1),
            dropped: AtomicU64::new(0),
            waiting: Mutex::default(),
            journal: Mutex::new(Journal::new(folder.clone())),
            folder,
            settings,
            events,
            followers: OnceLock::new(),
            actor: Slot::default(),
        }))
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.0.actor.ask(limit, |reply| AuditMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub(crate) async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        let (actor, _) = Audit::spawn_linked(None, Audit, Arc::clone(&self.0), parent).await?;
        Ok(actor.get_cell())
    }

    /// A call begins; `None` where calls are not recorded.
    pub(crate) fn begin(&self, caller: &Caller, params: &RawJson) -> Option<Began> {
        if !self.0.on.load(Ordering::Relaxed) {
            return None;
        }
        let wanted = self.0.arguments.load(Ordering::Relaxed);
        let arguments = wanted.then(|| params.member("arguments")).flatten();
        Some(Began {
            id: AuditId {
                life: self.0.life,
                number: self.0.numbers.fetch_add(1, Ordering::Relaxed),
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
        let note = Note { began, over: clock::wall(), took, ending, server, kind, name };
        let most = self.0.limits().queue;
        let mut waiting = self.0.waiting();
        if waiting.len() >= most {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let first = waiting.is_empty();
        waiting.push(note);
        drop(waiting);
        if first {
            // While the actor is started anew, it looks by itself.
            self.0.actor.cast(AuditMsg::Waiting);
        }
    }

    /// Whether calls are recorded.
    pub fn is_on(&self) -> bool {
        self.0.on.load(Ordering::Relaxed)
    }

    /// Calls that were not recorded although they should have been.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Records that are written from now on, in batches; lagging behind loses the oldest.
    pub fn follow(&self) -> broadcast::Receiver<Arc<AuditRecord>> {
        let most = self.0.limits().queue;
        self.0.followers.get_or_init(|| broadcast::Sender::new(most)).subscribe()
    }

    /// The last `most` records that `wanted` takes, oldest first, those that wait included.
    pub async fn read(
        &self,
        most: usize,
        wanted: impl Fn(&AuditRecord) -> bool + Send + 'static,
    ) -> Result<Vec<AuditRecord>, String> {
        let limit = self.0.settings.borrow().loaded.settings.daemon.ask;
        self.flush(limit).await;
        let folder = self.0.folder.clone();
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
        // A part that is started anew right now has nothing more to say.
        let _ = self.0.actor.ask(limit, |reply| AuditMsg::Flush { reply }).await;
    }
}

impl Shared {
    fn limits(&self) -> AuditSettings {
        self.settings.borrow().loaded.settings.inside.audit
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Note>> {
        // Nothing panics inside the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a batch, and tells those who follow. Blocks.
    fn write(&self, batch: Vec<Note>) -> Result<(), String> {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let mut lines = Vec::new();
        let mut told = Vec::new();
        for record in batch.into_iter().map(Note::record) {
            lines.extend_from_slice(RawJson::write(&record).as_bytes());
            lines.push(b'\n');
            told.push(record);
        }
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let written = journal.write(&lines, &self.limits());
        drop(journal);
        if let Some(followers) = self.followers.get() {
            for record in told {
                // Nobody following is no fault.
                let _ = followers.send(Arc::new(record));
            }
        }
        written.map_err(|error| {
            self.dropped.fetch_add(count, Ordering::Relaxed);
            format!("{}: {error}", self.folder.display())
        })
    }
}

/// What the actor hears.
#[derive(Debug)]
enum AuditMsg {
    /// From a call: its note is the first of a batch.
    Waiting,
    /// The timer: the batch is to be written.
    Due,
    /// From its task: the batch is written, or why not.
    Written { outcome: Result<(), String> },
    /// The settings are others.
    Changed,
    /// Somebody wants what waits to be on disk.
    Flush { reply: RpcReplyPort<()> },
    /// Root: whether it answers.
    Ping { reply: RpcReplyPort<()> },
}

/// The actor.
#[derive(Debug)]
struct Audit;

#[derive(Debug)]
struct AuditState {
    me: ActorRef<AuditMsg>,
    shared: Arc<Shared>,
    timer: Timer,
    writing: bool,
    /// The last batch could not be written, which was said.
    failing: bool,
    flushes: Vec<RpcReplyPort<()>>,
    _following: TaskGuard,
}

impl Actor for Audit {
    type Msg = AuditMsg;
    type State = AuditState;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        me: ActorRef<AuditMsg>,
        shared: Arc<Shared>,
    ) -> Result<AuditState, ActorProcessingErr> {
        shared.actor.set(me.clone());
        let (mut settings, told) = (shared.settings.clone(), me.clone());
        let following = spawn_guarded(async move {
            while settings.changed().await.is_ok() && told.cast(AuditMsg::Changed).is_ok() {}
        });
        let mut state = AuditState {
            me,
            shared,
            timer: Timer::new(),
            writing: false,
            failing: false,
            flushes: Vec::new(),
            _following: following,
        };
        // An incarnation before this one may have left something.
        state.gather();
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<AuditMsg>,
        message: AuditMsg,
        state: &mut AuditState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            AuditMsg::Waiting => state.gather(),
            AuditMsg::Due => {
                state.timer.fired();
                state.write();
            }
            AuditMsg::Written { outcome } => state.written(outcome),
            AuditMsg::Changed => state.changed(),
            AuditMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            AuditMsg::Flush { reply } => {
                state.flushes.push(reply);
                state.write();
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<AuditMsg>,
        _event: SupervisionEvent,
        _state: &mut AuditState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}

impl AuditState {
    /// Something waits, perhaps: it is written when more has had time to come.
    fn gather(&mut self) {
        if !self.writing && !self.shared.waiting().is_empty() {
            let due = clock::now().checked_add(self.shared.limits().flush);
            self.timer.set(&self.me, due, AuditMsg::Due);
        }
    }

    fn write(&mut self) {
        if self.writing {
            return;
        }
        let batch = std::mem::take(&mut *self.shared.waiting());
        if batch.is_empty() {
            for reply in self.flushes.drain(..) {
                // Whoever asked may have given up.
                let _ = reply.send(());
            }
            return;
        }
        self.writing = true;
        let (shared, me) = (Arc::clone(&self.shared), self.me.clone());
        // Not guarded: what was taken is written although the actor ends.
        task::spawn(async move {
            let written = tokio::task::spawn_blocking(move || shared.write(batch)).await;
            let outcome = written.unwrap_or_else(|error| Err(error.to_string()));
            let _ = me.cast(AuditMsg::Written { outcome });
        });
    }

    fn written(&mut self, outcome: Result<(), String>) {
        self.writing = false;
        match outcome {
            Ok(()) => self.failing = false,
            Err(_) if self.failing => {}
            Err(why) => {
                self.failing = true;
                let text = format!("calls are not recorded in the audit: {why}");
                self.shared.events.emit(Event::new("daemon.warning", text));
            }
        }
        if self.flushes.is_empty() {
            self.gather();
        } else {
            self.write();
        }
    }

    fn changed(&self) {
        let limits = self.shared.limits();
        self.shared.on.store(limits.enabled, Ordering::Relaxed);
        self.shared.arguments.store(limits.arguments, Ordering::Relaxed);
    }
}
