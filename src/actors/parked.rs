//! Calls that wait between two requests of a modern host, and the states that name them (E-06 to E-09).
//!
//! A call whose upstream asks is held open here while its host thinks; the state that the host brings
//! back opens it once. The calls stand in a table under a short lock, so that parking and fetching
//! need no message; the actor does nothing but end those whose time (`elicit.state_ttl`) is up, which
//! cancels them upstream. One that keeps others waiting for the only turn of its server has less
//! (`elicit.turn`): a watcher of its own, which sleeps until somebody waits, says so. Permanent; no children. A crash of it loses no call.
//!
//! The key of the signatures is kept in the state folder: a daemon knows the states of the one before
//! it, and can say what became of their calls.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent,
};
use tokio::sync::watch;

use super::dispatch::Conversation;
use super::events::{Event, EventsHandle};
use super::pool::directory::Load;
use super::settings::Current;
use super::support::slot::Slot;
use super::support::task::{TaskGuard, spawn_guarded};
use super::support::timer::Timer;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::mrtr::{self, Bound, Key, State, Unfit, Waits};
use crate::protocol::session::Limit;
use crate::settings::typed::ElicitSettings;
use crate::transport::clock;
use crate::transport::store::statefile;

/// How others park calls. Cheap to clone; outlives the actor's incarnations.
#[derive(Clone)]
pub struct ParkedHandle {
    shared: Arc<Shared>,
}

struct Shared {
    settings: watch::Receiver<Arc<Current>>,
    key: Key,
    /// Tells this daemon's states from those of another.
    life: u64,
    table: Mutex<Table>,
    actor: Slot<ParkedMsg>,
}

#[derive(Default)]
struct Table {
    waiting: HashMap<u128, Waiting>,
    /// What was given up for others, latest last: as many as may wait.
    gave_way: VecDeque<u128>,
}

struct Waiting {
    until: Instant,
    /// None where a call was not made yet.
    call: Option<Box<Conversation>>,
    /// Where others may wait for its turn.
    _watch: Option<TaskGuard>,
}

/// What a state led to.
pub(crate) enum Fetched {
    /// The call that waits.
    Call(Box<Conversation>),
    /// Nothing waits, but the state is good: this once.
    Nothing,
    /// It was brought before.
    Again,
    /// The daemon that gave it has ended, and with it the call.
    Gone,
    /// The call was given up for others (`elicit.turn`).
    GaveWay,
}

impl ParkedHandle {
    /// Nothing is parked. The key is read from `keys`, and made there where there is none.
    pub fn new(
        settings: watch::Receiver<Arc<Current>>,
        keys: &Path,
        events: &EventsHandle,
    ) -> Self {
        let key = key(keys).unwrap_or_else(|error| {
            let text = format!(
                "the key in {} cannot be had ({error}): what hosts are asked does not outlast this \
                 daemon",
                file(keys).display()
            );
            events.emit(Event::new("daemon.warning", text));
            Key::new(clock::random())
        });
        let shared = Shared {
            settings,
            key,
            life: u64::from_le_bytes(clock::random()),
            table: Mutex::default(),
            actor: Slot::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.shared.actor.ask(limit, |reply| ParkedMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub(crate) async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        let args = Arc::clone(&self.shared);
        let (actor, _) = Parked::spawn_linked(None, Parked, args, parent).await?;
        Ok(actor.get_cell())
    }

    /// Parks a call, or notes that one waits to be made; the state by which its host goes on. An error
    /// is the limit that as many wait already as it admits; what was to be parked has fallen.
    pub(crate) fn keep(
        &self,
        bound: Bound<'_>,
        waits: Waits,
        upstream: Option<RawJson>,
        call: Option<Box<Conversation>>,
    ) -> Result<RawJson, Limit> {
        let settings = self.shared.elicit();
        let id = u128::from_le_bytes(clock::random());
        {
            let mut table = self.shared.table();
            if table.waiting.len() >= settings.max_parked {
                return Err(Limit::count("elicit.max_parked", settings.max_parked));
            }
            let now = clock::now();
            let until = now.checked_add(settings.state_ttl).unwrap_or(now);
            let load = call.as_ref().and_then(|call| call.load());
            let watch = load.map(|load| self.watch(id, Arc::clone(load), settings.turn));
            table.waiting.insert(id, Waiting { until, call, _watch: watch });
        }
        // Where none runs at the moment, the next one looks when it starts.
        self.shared.actor.cast(ParkedMsg::Look);
        let state = State { id, life: self.shared.life, waits, upstream };
        let expires = clock::wall().saturating_add(settings.state_ttl);
        Ok(RawJson::write(&mrtr::seal(&self.shared.key, bound, expires, &state)))
    }

    /// Has the call give way once it has waited for `turn` and somebody else waits for it.
    fn watch(&self, id: u128, load: Arc<Load>, turn: Duration) -> TaskGuard {
        let now = clock::now();
        let from = now.checked_add(turn).unwrap_or(now);
        let shared = Arc::downgrade(&self.shared);
        spawn_guarded(async move {
            load.turn_wanted().await;
            tokio::time::sleep_until(from.into()).await;
            // Who waited may have gone.
            load.turn_wanted().await;
            if let Some(shared) = shared.upgrade() {
                shared.give_way(id);
            }
        })
    }

    /// Looks at a state that a host brings with the request `bound`.
    pub(crate) fn open(&self, bound: Bound<'_>, state: &str) -> Result<State, Unfit> {
        mrtr::open(&self.shared.key, bound, clock::wall(), state)
    }

    /// Fetches what waits for the host that brought `state`. Once.
    pub(crate) fn fetch(&self, state: &State) -> Fetched {
        let mut table = self.shared.table();
        match table.waiting.remove(&state.id) {
            Some(waiting) => waiting.call.map_or(Fetched::Nothing, Fetched::Call),
            None if table.gave_way.contains(&state.id) => Fetched::GaveWay,
            // What is not there any more was fetched: one whose time is up has expired before.
            None if state.life == self.shared.life => Fetched::Again,
            None => Fetched::Gone,
        }
    }

    /// How many calls and confirmations wait, for status pages.
    pub fn waiting(&self) -> usize {
        self.shared.table().waiting.len()
    }
}

impl fmt::Debug for ParkedHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParkedHandle")
    }
}

impl Shared {
    fn elicit(&self) -> ElicitSettings {
        self.settings.borrow().loaded.settings.elicit
    }

    /// Ends one for others. Its host may have come back meanwhile.
    fn give_way(&self, id: u128) {
        let most = self.elicit().max_parked;
        let ended = {
            let mut table = self.table();
            let ended = table.waiting.remove(&id);
            if ended.is_some() {
                while table.gave_way.len() >= most.max(1) {
                    table.gave_way.pop_front();
                }
                table.gave_way.push_back(id);
            }
            ended
        };
        // Outside the lock: a call that falls is cancelled.
        drop(ended);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the actor is told.
#[derive(Debug)]
pub(crate) enum ParkedMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// The handle: there is one more.
    Look,
    /// The timer: the time of one is up.
    EndDue,
}

#[derive(Debug)]
struct Parked;

struct ParkedState {
    me: ActorRef<ParkedMsg>,
    shared: Arc<Shared>,
    timer: Timer,
}

impl Actor for Parked {
    type Msg = ParkedMsg;
    type State = ParkedState;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        me: ActorRef<ParkedMsg>,
        shared: Arc<Shared>,
    ) -> Result<ParkedState, ActorProcessingErr> {
        shared.actor.set(me.clone());
        let mut state = ParkedState { me, shared, timer: Timer::new() };
        state.look(clock::now());
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<ParkedMsg>,
        message: ParkedMsg,
        state: &mut ParkedState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ParkedMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            ParkedMsg::Look => state.look(clock::now()),
            ParkedMsg::EndDue => {
                state.timer.fired();
                state.look(clock::now());
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<ParkedMsg>,
        _event: SupervisionEvent,
        _state: &mut ParkedState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children; the default would stop it.
        Ok(())
    }
}

impl ParkedState {
    /// Ends what is due, and sets the timer for the next.
    fn look(&mut self, now: Instant) {
        let (ended, next) = {
            let mut table = self.shared.table();
            let due: Vec<u128> = table
                .waiting
                .iter()
                .filter(|(_, waiting)| waiting.until <= now)
                .map(|(id, _)| *id)
                .collect();
            let ended: Vec<_> = due.iter().filter_map(|id| table.waiting.remove(id)).collect();
            (ended, table.waiting.values().map(|waiting| waiting.until).min())
        };
        // Outside the lock: a call that falls is cancelled.
        drop(ended);
        self.timer.set(&self.me, next, ParkedMsg::EndDue);
    }
}

fn file(keys: &Path) -> std::path::PathBuf {
    keys.join("request-state")
}

/// The key in the folder, made where there is none that nobody else could have read.
fn key(keys: &Path) -> io::Result<Key> {
    let path = file(keys);
    statefile::private_folder(keys)?;
    if let Some(bytes) = statefile::read(&path)?
        && !statefile::make_private(&path)?
        && let Ok(key) = URL_SAFE_NO_PAD.decode(bytes.trim_ascii())
        && let Ok(key) = key.try_into()
    {
        return Ok(Key::new(key));
    }
    let key = clock::secret::<32>()?;
    statefile::write(&path, format!("{}\n", URL_SAFE_NO_PAD.encode(key)).as_bytes())?;
    Ok(Key::new(key))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use std::time::Duration;

    use super::*;

    /// E-09: the key outlasts the daemon, is nobody else's, and one that others could read is replaced.
    #[test]
    fn e09_the_key_is_made_once_and_kept_private() {
        let top = tempfile::tempdir().unwrap();
        let keys = top.path().join("keys");
        let params = RawJson::empty_object();
        let bound = Bound { method: "tools/call", server: "s", params: &params, owner: "" };
        let state = State { id: 1, life: 2, waits: Waits::Open, upstream: None };
        let (now, later) = (Duration::from_secs(1), Duration::from_secs(2));
        let sealed = mrtr::seal(&key(&keys).unwrap(), bound, later, &state);
        let opened = || mrtr::open(&key(&keys).unwrap(), bound, now, &sealed);
        assert_eq!(opened(), Ok(state));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&keys), mode(&file(&keys))), (0o700, 0o600));
        std::fs::set_permissions(file(&keys), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(opened(), Err(Unfit::Tampered));
        assert_eq!(mode(&file(&keys)), 0o600);
        statefile::write(&file(&keys), b"short\n").unwrap();
        assert_eq!(opened(), Err(Unfit::Tampered));
    }
}
