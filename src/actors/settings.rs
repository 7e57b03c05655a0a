//! What is in force: the loaded configuration, and what was set at run time.
//!
//! Owns the sources and the run-time values; no children; permanent. Changes are jobs of a task, one
//! at a time: read all layers, keep the run-time values, tell the upstreams, publish. A configuration
//! with mistakes leaves the present one in force and says why.

mod watching;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent,
};
use tokio::sync::watch;

use super::events::{Event, EventsHandle};
use super::support::ask::AskError;
use super::support::slot::Slot;
use super::support::task::{self, TaskGuard};
use super::upstreams::UpstreamsHandle;
use crate::settings::layers::Sources;
use crate::settings::parse::Change;
use crate::settings::projects::Trust;
use crate::settings::runtime::{self, RuntimeValues};
use crate::settings::{Loaded, Settings};
use crate::transport::store::statefile;

/// The configuration in force, and what was wrong with the last attempt to replace it.
#[derive(Debug, Clone)]
pub struct Current {
    /// In force.
    pub loaded: Arc<Loaded>,
    /// Why the configuration as it lies on disk is not in force; empty where it is.
    pub problems: Vec<String>,
}

/// What a change came to.
#[derive(Debug, Clone)]
pub struct Changed {
    /// In force before.
    pub before: Arc<Loaded>,
    /// In force now.
    pub now: Arc<Loaded>,
}

/// Why there was no change.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ChangeRefused {
    /// Every mistake, one a line.
    #[error("the configuration has mistakes; the one before stays in force:\n{}", .0.join("\n"))]
    Mistakes(Vec<String>),
    /// Nothing was changed, because it could not be kept for the next start.
    #[error("the change could not be kept: {0}")]
    NotKept(String),
    /// The keeper has ended or is late.
    #[error(transparent)]
    Asking(#[from] AskError),
}

/// What was set at run time. A file that cannot be read is put aside and said, and counts as empty: a
/// daemon must start whatever stands there, and what a person has set must not be overwritten.
fn kept(file: &Path, events: &EventsHandle) -> RuntimeValues {
    let Ok(Some(text)) = statefile::read(file) else { return RuntimeValues::new() };
    runtime::parse(&text).unwrap_or_else(|why| {
        let what = format!("settings of `mcpx settings set` cannot be read ({why})");
        let text = match statefile::set_aside(file) {
            Ok(aside) => format!("{what}; their file was kept as {}", aside.display()),
            Err(error) => format!("{what}, nor can {} be put aside: {error}", file.display()),
        };
        events.emit(Event::new("daemon.warning", text));
        RuntimeValues::new()
    })
}

/// Reads and changes what is in force; cheap to clone; outlives the actor's incarnations.
#[derive(Debug, Clone)]
pub struct SettingsHandle {
    shared: Arc<Shared>,
    /// For whom it reads.
    seat: Seat,
}

/// From where a host sees: what it is shown is the same for all of one seat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Seat {
    /// The profile that it came in by.
    pub profile: Option<Arc<str>>,
    /// Its project, where that has servers of its own.
    pub project: Option<Arc<Path>>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    sources: Sources,
    program: PathBuf,
    file: PathBuf,
    events: EventsHandle,
    upstreams: UpstreamsHandle,
    current: watch::Sender<Arc<Current>>,
    actor: Slot<SettingsMsg>,
}

/// What the keeper starts with.
#[derive(Debug)]
pub struct SettingsArgs {
    /// Where the layers are.
    pub sources: Sources,
    /// This program's own file.
    pub program: PathBuf,
    /// Where run-time values are kept.
    pub file: PathBuf,
    /// Where refusals and changes are told.
    pub events: EventsHandle,
    /// Who must know of changes.
    pub upstreams: UpstreamsHandle,
    /// What has been loaded already.
    pub loaded: Arc<Loaded>,
}

impl SettingsHandle {
    /// What `args` has loaded is in force.
    pub fn new(args: SettingsArgs) -> Self {
        let SettingsArgs { sources, program, file, events, upstreams, loaded } = args;
        // They are in `loaded` already; this is for a file that could not be read.
        kept(&file, &events);
        let current = Current { loaded, problems: Vec::new() };
        let (current, actor) = (watch::Sender::new(Arc::new(current)), Slot::default());
        let shared = Shared { sources, program, file, events, upstreams, current, actor };
        Self { shared: Arc::new(shared), seat: Seat::default() }
    }

    /// The same for hosts of a profile and in a project. `None` where there is no profile of this name;
    /// a project that has no servers of its own is like none, for as long as that is so.
    pub fn seen_from(&self, profile: Option<&str>, project: Option<Arc<Path>>) -> Option<Self> {
        let known = |name: &str| self.shared.current.borrow().loaded.profile(name).is_some();
        let known = profile.is_none_or(known);
        let seat = Seat { profile: profile.map(Arc::from), project };
        known.then(|| Self { shared: Arc::clone(&self.shared), seat })
    }

    /// The profile that it reads for.
    pub const fn profile(&self) -> Option<&Arc<str>> {
        self.seat.profile.as_ref()
    }

    /// From where it reads at present.
    pub fn seat(&self) -> Seat {
        self.seat_of(self.profile(), self.project().as_ref())
    }

    /// From where hosts of this profile in this project see at present.
    pub fn seat_of(&self, profile: Option<&Arc<str>>, project: Option<&Arc<Path>>) -> Seat {
        let current = self.shared.current.borrow();
        let project = project.filter(|folder| current.loaded.project(folder).is_some());
        Seat { profile: profile.cloned(), project: project.cloned() }
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.shared.actor.ask(limit, |reply| SettingsMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        let args = Arc::clone(&self.shared);
        let (actor, _) = SettingsKeeper::spawn_linked(None, SettingsKeeper, args, parent).await?;
        Ok(actor.get_cell())
    }

    /// The settings in force. For hosts of a profile that is no more: without any server.
    pub fn settings(&self) -> Arc<Settings> {
        let loaded = &self.shared.current.borrow().loaded;
        let folder = self.folder(loaded);
        match loaded.seen_from(folder, self.profile().map(AsRef::as_ref)) {
            Some(settings) => Arc::clone(settings),
            None => Arc::new(Settings { servers: Vec::new(), ..Settings::clone(&loaded.settings) }),
        }
    }

    /// What is in force with the servers of all projects: what may run.
    pub fn everywhere(&self) -> Arc<Settings> {
        Arc::clone(&self.shared.current.borrow().loaded.everywhere)
    }

    /// What of all that is there for whom it reads; `None` where that is everything.
    pub(crate) fn narrowing(&self) -> Option<Arc<Settings>> {
        let everybody = self.shared.current.borrow().loaded.projects.is_empty();
        // Not under the look before: two at once wait for a writer that waits for the first.
        (!everybody || self.seat.profile.is_some()).then(|| self.settings())
    }

    /// The project of those for whom it reads: a host's own, else what its profile says.
    pub fn project(&self) -> Option<Arc<Path>> {
        self.folder(&self.shared.current.borrow().loaded).map(Arc::from)
    }

    /// What somebody is told who works in this folder, where its `.mcpx.toml` is left out.
    pub async fn remark_on(&self, folder: Arc<Path>) -> Option<String> {
        let file = self.shared.sources.trusted.clone()?;
        let max = self.settings().config.max_project;
        let look = move || {
            let kept = statefile::read(&file).ok().flatten();
            let trust = kept.and_then(|text| Trust::read(&text).ok()).unwrap_or_default();
            trust.standing(&folder, max).remark(&folder)
        };
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }

    fn folder<'a>(&'a self, loaded: &'a Loaded) -> Option<&'a Path> {
        let of_profile = || loaded.profile(self.seat.profile.as_ref()?)?.def.project.as_deref();
        self.seat.project.as_deref().or_else(of_profile)
    }

    /// Everything in force.
    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.shared.current.borrow())
    }

    /// Wakes when something else is in force.
    pub fn watch(&self) -> watch::Receiver<Arc<Current>> {
        self.shared.current.subscribe()
    }

    /// Reads the configuration again.
    pub async fn reload(&self, limit: Duration) -> Result<Changed, ChangeRefused> {
        self.ask(limit, Vec::new()).await
    }

    /// Changes settings and keeps them.
    pub async fn change(
        &self,
        changes: Vec<Change>,
        limit: Duration,
    ) -> Result<Changed, ChangeRefused> {
        self.ask(limit, changes).await
    }

    async fn ask(&self, limit: Duration, changes: Vec<Change>) -> Result<Changed, ChangeRefused> {
        self.shared.actor.ask(limit, |reply| SettingsMsg::Change { changes, reply }).await?
    }
}

type Reply = RpcReplyPort<Result<Changed, ChangeRefused>>;

/// What the keeper hears.
#[derive(Debug)]
pub(crate) enum SettingsMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// Set these values, if any, and read everything again.
    Change {
        /// Empty for a plain reload.
        changes: Vec<Change>,
        /// Answered when it is in force.
        reply: Reply,
    },
    /// The job's task is through.
    Done,
}

/// The actor.
#[derive(Debug)]
pub(crate) struct SettingsKeeper;

/// See the module.
#[derive(Debug)]
pub(crate) struct SettingsState {
    me: ActorRef<SettingsMsg>,
    shared: Arc<Shared>,
    waiting: VecDeque<(Vec<Change>, Reply)>,
    busy: bool,
    _watching: TaskGuard,
}

impl Actor for SettingsKeeper {
    type Msg = SettingsMsg;
    type State = SettingsState;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        me: ActorRef<SettingsMsg>,
        shared: Arc<Shared>,
    ) -> Result<SettingsState, ActorProcessingErr> {
        shared.actor.set(me.clone());
        let watching = task::spawn_guarded(watching::watch(Arc::clone(&shared)));
        let waiting = VecDeque::new();
        Ok(SettingsState { me, shared, waiting, busy: false, _watching: watching })
    }

    async fn handle(
        &self,
        _me: ActorRef<SettingsMsg>,
        message: SettingsMsg,
        state: &mut SettingsState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SettingsMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            SettingsMsg::Change { changes, reply } => state.waiting.push_back((changes, reply)),
            SettingsMsg::Done => state.busy = false,
        }
        state.begin_next();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<SettingsMsg>,
        _event: SupervisionEvent,
        _state: &mut SettingsState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}

impl SettingsState {
    fn begin_next(&mut self) {
        if self.busy {
            return;
        }
        let Some((changes, reply)) = self.waiting.pop_front() else { return };
        self.busy = true;
        let (shared, me) = (Arc::clone(&self.shared), self.me.clone());
        task::spawn(async move {
            // A task of its own: one that panics must not leave the keeper busy for ever.
            let answer = task::spawn(change(shared, changes)).await;
            let answer =
                answer.unwrap_or_else(|error| Err(ChangeRefused::NotKept(error.to_string())));
            // Whoever asked may have given up.
            let _ = reply.send(answer);
            let _ = me.cast(SettingsMsg::Done);
        });
    }
}

/// One job, from the files to the upstreams.
async fn change(shared: Arc<Shared>, changes: Vec<Change>) -> Result<Changed, ChangeRefused> {
    let names: Vec<&str> = changes.iter().map(|(def, _)| def.key).collect();
    let reading = Arc::clone(&shared);
    let read = tokio::task::spawn_blocking(move || read(&reading, &changes)).await;
    let read = read.unwrap_or_else(|error| Err(ChangeRefused::NotKept(error.to_string())));
    let before = Arc::clone(&shared.current.borrow().loaded);
    match read {
        Ok(loaded) => {
            let now = Arc::new(loaded);
            let current = Current { loaded: Arc::clone(&now), problems: Vec::new() };
            shared.current.send_replace(Arc::new(current));
            shared.upstreams.apply(Arc::clone(&now.everywhere)).await?;
            if !names.is_empty() {
                // Names alone: a value may be secret.
                let text = format!("set at run time: {}", names.join(", "));
                shared.events.emit(Event::new("settings.changed", text));
            }
            shared.events.emit(Event::new("daemon.reloaded", "the configuration was read again"));
            Ok(Changed { before, now })
        }
        Err(refused) => {
            if let ChangeRefused::Mistakes(problems) = &refused {
                let current = Current { loaded: before, problems: problems.clone() };
                shared.current.send_replace(Arc::new(current));
            }
            shared.events.emit(Event::new("daemon.reload_failed", refused.to_string()));
            Err(refused)
        }
    }
}

/// The blocking part: the files. What is set is kept only once all of it is known to be good.
fn read(shared: &Shared, changes: &[Change]) -> Result<Loaded, ChangeRefused> {
    let mut values = kept(&shared.file, &shared.events);
    runtime::apply(&mut values, changes);
    let mut sources = shared.sources.clone();
    sources.runtime = values.clone().into_iter().collect();
    let loaded = Settings::load(&sources, &shared.program).map_err(|mistakes| {
        ChangeRefused::Mistakes(mistakes.iter().map(ToString::to_string).collect())
    })?;
    if !changes.is_empty() {
        statefile::write(&shared.file, &runtime::write(&values))
            .map_err(|error| ChangeRefused::NotKept(error.to_string()))?;
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_file_is_kept_aside_and_said() {
        for text in ["", "{", "{\"version\":99,\"settings\":{}}"] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("settings.json");
            statefile::write(&file, text.as_bytes()).unwrap();
            let events = EventsHandle::new(4);
            assert!(kept(&file, &events).is_empty());
            assert!(!file.exists());
            let aside = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
            assert_eq!(std::fs::read(&aside).unwrap(), text.as_bytes());
            let (told, _) = events.listen(0);
            let told = &told.first().unwrap().text;
            assert!(told.contains(&aside.display().to_string()), "{told}");
            // Said once: the next look finds nothing.
            kept(&file, &events);
            assert_eq!(events.listen(0).0.len(), 1);
        }
    }
}
