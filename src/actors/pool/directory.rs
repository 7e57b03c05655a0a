//! Where callers find instances, without a message: every server with its routes.
//!
//! One table of servers, and in each entry one table of routes by scope key and lane. (Not a single
//! table with all three in its key: a replaced definition is a new entry with routes of its own, so
//! that one insertion sends every new call to the new generation while the old one drains, F33.)

use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use ractor::ActorRef;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::PoolHandle;
use crate::actors::instance::{InstanceId, InstanceMsg, Sink};
use crate::actors::upstreams::{Caller, HostId};
use crate::protocol::revision::Era;
use crate::protocol::session::pending::Pending;
use crate::settings::{Scope, ServerDef};

/// Who shares an instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScopeKey {
    /// Everybody.
    Global,
    /// Everybody in this project folder.
    Project(Arc<Path>),
    /// Everybody who named no project.
    NoProject,
    /// One host session.
    Session(HostId),
    /// One call; the number is the call's own.
    Call(u64),
}

impl ScopeKey {
    /// The key of `caller` under `scope`. `call` numbers calls. Who has no session (the command line,
    /// `/v1`) is served in session scope as in call scope.
    pub fn of(scope: Scope, caller: &Caller, call: impl FnOnce() -> u64) -> Self {
        match (scope, caller.host, &caller.project) {
            (Scope::Global, _, _) => Self::Global,
            (Scope::Project, _, Some(project)) => Self::Project(Arc::clone(project)),
            (Scope::Project, _, None) => Self::NoProject,
            (Scope::Session, Some(host), _) => Self::Session(host),
            (Scope::Session, None, _) | (Scope::Call, _, _) => Self::Call(call()),
        }
    }

    /// Whether calls of several hosts may meet in an instance.
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Global | Self::Project(_) | Self::NoProject)
    }

    /// For people.
    pub fn text(&self) -> String {
        match self {
            Self::Global => "global".to_owned(),
            Self::Project(path) => format!("project {}", path.display()),
            Self::NoProject => "no project".to_owned(),
            Self::Session(HostId(host)) => format!("session {host}"),
            Self::Call(number) => format!("call {number}"),
        }
    }
}

/// The second axis under a scope key (P-02).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// The server's own session: callers of both eras together, and the only lane of a server that
    /// does not `follow`.
    Shared,
    /// A session opened with `initialize`, for callers of legacy revisions alone (U-18).
    Legacy,
}

impl Lane {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Legacy => "legacy",
        }
    }
}

/// Which instances may serve a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteKey {
    /// Who shares them.
    pub scope: ScopeKey,
    /// For which callers they were opened.
    pub lane: Lane,
}

/// All servers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Directory(Arc<DashMap<Arc<str>, Arc<Server>>>);

/// One generation of one server.
#[derive(Debug)]
pub struct Server {
    /// Its definition.
    pub def: Arc<ServerDef>,
    /// Who starts its instances.
    pub pool: PoolHandle,
    /// Those that may be used.
    pub routes: Arc<Routes>,
}

impl Directory {
    /// The present generation of `key`.
    pub fn get(&self, key: &str) -> Option<Arc<Server>> {
        self.0.get(key).map(|entry| Arc::clone(&entry))
    }

    /// Makes `server` the present generation.
    pub fn insert(&self, server: Arc<Server>) {
        self.0.insert(server.def.key.as_str().into(), server);
    }

    /// No more calls for `key`.
    pub fn remove(&self, key: &str) {
        self.0.remove(key);
    }

    /// All present generations, by key.
    pub fn all(&self) -> Vec<Arc<Server>> {
        let mut all: Vec<_> = self.0.iter().map(|entry| Arc::clone(&entry)).collect();
        all.sort_by(|a, b| a.def.key.cmp(&b.def.key));
        all
    }
}

/// The routes of one generation of a server, and the places of those who wait for one.
#[derive(Debug, Default)]
pub struct Routes {
    sets: DashMap<RouteKey, Vec<Arc<Route>>>,
    added: Notify,
    waiting: Waiting,
    /// Callers of legacy revisions use the shared lane although their server follows: it speaks
    /// legacy itself (P-04), or to nobody (P-05).
    lanes_shared: AtomicBool,
}

/// Callers that wait, lane by lane, so that those of one cannot take the places of the other's
/// (P-03).
#[derive(Debug, Default)]
struct Waiting {
    shared: AtomicUsize,
    legacy: AtomicUsize,
}

impl Waiting {
    const fn of(&self, lane: Lane) -> &AtomicUsize {
        match lane {
            Lane::Shared => &self.shared,
            Lane::Legacy => &self.legacy,
        }
    }
}

impl Routes {
    /// The least loaded route of `key`.
    pub fn find(&self, key: &RouteKey) -> Option<Arc<Route>> {
        let set = self.sets.get(key)?;
        match set.as_slice() {
            [only] => Some(Arc::clone(only)),
            routes => routes.iter().min_by_key(|route| route.load.get()).cloned(),
        }
    }

    /// Admits calls to an instance.
    pub fn add(&self, key: RouteKey, route: Arc<Route>) {
        self.sets.entry(key).or_default().push(route);
        self.added.notify_waiters();
    }

    /// Admits no more calls to an instance; who waits for its permits looks for another route.
    pub fn remove(&self, key: &RouteKey, instance: InstanceId) {
        if let Some(mut set) = self.sets.get_mut(key) {
            set.retain(|route| {
                let goes = route.instance == instance;
                if goes {
                    route.permits.close();
                }
                !goes
            });
        }
        self.sets.remove_if(key, |_, set| set.is_empty());
    }

    /// Resolves when a route was added after this call.
    pub fn added(&self) -> Notified<'_> {
        self.added.notified()
    }

    /// A place among at most `most` waiters of a lane (`pool.queue`).
    pub fn queue(&self, lane: Lane, most: usize) -> Option<Place<'_>> {
        let waiting = self.waiting.of(lane);
        let place = Place(waiting);
        // Counted first, so that two who come together cannot both take the last place.
        (waiting.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }

    /// How many callers wait.
    pub fn waiting(&self) -> usize {
        let lanes = [Lane::Shared, Lane::Legacy];
        lanes.map(|lane| self.waiting.of(lane).load(Ordering::Relaxed)).iter().sum()
    }

    /// From the pool: whether callers of legacy revisions use the shared lane.
    pub(super) fn share_lanes(&self, shared: bool) {
        self.lanes_shared.store(shared, Ordering::Relaxed);
    }

    /// The lane of a caller of `era`, where its server follows.
    pub fn lane(&self, era: Era) -> Lane {
        if era == Era::Legacy && !self.lanes_shared.load(Ordering::Relaxed) {
            Lane::Legacy
        } else {
            Lane::Shared
        }
    }
}

/// A place in the queue of a server; given back when it falls.
#[derive(Debug)]
pub struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An instance that callers may use now.
#[derive(Debug)]
pub struct Route {
    /// Which one.
    pub instance: InstanceId,
    /// Its calls in flight.
    pub pending: Arc<Pending<Sink>>,
    /// How it is spoken to.
    pub era: Era,
    permits: Arc<Semaphore>,
    most: usize,
    load: Arc<Load>,
}

impl Route {
    /// A route with `permits` calls in flight at most (`pool.in_flight`).
    pub fn new(
        instance: InstanceId,
        pending: Arc<Pending<Sink>>,
        era: Era,
        permits: usize,
        load: Arc<Load>,
    ) -> Self {
        let most = permits.max(1);
        Self { instance, pending, era, permits: Arc::new(Semaphore::new(most)), most, load }
    }

    /// From now on one call at a time; those in flight go on.
    pub fn serialise(&self) {
        if self.load.serial.swap(true, Ordering::SeqCst) {
            return;
        }
        let surplus = self.most.saturating_sub(1);
        // What is in use goes when it is given back.
        let in_use = surplus.saturating_sub(self.permits.forget_permits(surplus));
        self.load.surplus.fetch_add(in_use, Ordering::SeqCst);
        // Who waits already waits for a turn now.
        self.load.turn_wanted.notify_waiters();
    }

    /// Whether it has one call at a time.
    pub fn is_serial(&self) -> bool {
        self.load.serial.load(Ordering::SeqCst)
    }

    /// The instance.
    pub fn actor(&self) -> &ActorRef<InstanceMsg> {
        &self.load.actor
    }

    /// Whether anybody uses it or waits for it.
    pub fn is_busy(&self) -> bool {
        !self.load.is_free() || !self.pending.is_empty()
    }

    /// A permit, if one is free.
    pub fn try_lease(&self) -> Option<Lease> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(Lease::new(permit, &self.load))
    }

    /// A place among its callers without a permit, for what belongs to a call that was admitted: it
    /// keeps the instance as long, and also one that admits no more calls.
    pub fn join(&self) -> Lease {
        Lease { permit: None, counted: Counted::new(&self.load) }
    }

    /// Is told whenever its server says something of this task by itself.
    pub fn watch_task(&self, id: &str) -> Watched {
        let changed = Arc::new(Notify::new());
        let mut watched = self.load.tasks();
        watched.push((id.to_owned(), Arc::clone(&changed)));
        drop(watched);
        Watched { load: Arc::clone(&self.load), changed }
    }

    /// A permit when one becomes free; `None` where the instance leaves. Cancel-safe.
    pub async fn lease(&self) -> Option<Lease> {
        // Counted while waiting, so that waiters spread over the instances of a key.
        let waiting = Counted::new(&self.load);
        let announced = Wanting::new(&self.load);
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        drop((waiting, announced));
        Some(Lease::new(permit, &self.load))
    }
}

/// How many callers an instance has. Shared by its route, its callers and its pool.
#[derive(Debug)]
pub struct Load {
    callers: AtomicUsize,
    held: AtomicBool,
    leaving: AtomicBool,
    /// It has one call at a time, because what it asks does not say to which call it belongs.
    serial: AtomicBool,
    /// Permits in use that are not to be given back.
    surplus: AtomicUsize,
    /// How many wait for a permit.
    wanting: AtomicUsize,
    turn_wanted: Notify,
    actor: ActorRef<InstanceMsg>,
    /// The tasks of its server of which somebody wants to hear; as many as there are running.
    tasks: Mutex<Vec<WatchedTask>>,
}

/// A task's id, and who is woken.
type WatchedTask = (String, Arc<Notify>);

impl Load {
    /// Nobody yet.
    pub const fn new(actor: ActorRef<InstanceMsg>) -> Self {
        Self {
            callers: AtomicUsize::new(0),
            held: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            serial: AtomicBool::new(false),
            surplus: AtomicUsize::new(0),
            wanting: AtomicUsize::new(0),
            turn_wanted: Notify::const_new(),
            actor,
            tasks: Mutex::new(Vec::new()),
        }
    }

    /// How many there are.
    pub fn get(&self) -> usize {
        self.callers.load(Ordering::SeqCst)
    }

    /// Whether somebody listens to it, who makes no calls.
    pub fn hold(&self, held: bool) {
        self.held.store(held, Ordering::SeqCst);
    }

    /// Whether nobody calls it or listens to it.
    pub fn is_free(&self) -> bool {
        self.get() == 0 && !self.held.load(Ordering::SeqCst)
    }

    /// Resolves while somebody waits for the turn of another. Cancel-safe.
    pub async fn turn_wanted(&self) {
        loop {
            let mut told = pin!(self.turn_wanted.notified());
            // Listened to before looking, so that nobody is missed who comes in between.
            told.as_mut().enable();
            if self.serial.load(Ordering::SeqCst) && self.wanting.load(Ordering::SeqCst) > 0 {
                return;
            }
            told.await;
        }
    }

    /// Its server said something of a task.
    pub fn task_changed(&self, id: &str) {
        for (_, changed) in self.tasks().iter().filter(|(watched, _)| watched == id) {
            changed.notify_one();
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<WatchedTask>> {
        // Nothing panics inside the lock.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the last caller to go tells the instance; whether there is any.
    pub fn leave(&self) -> bool {
        self.leaving.store(true, Ordering::SeqCst);
        self.get() > 0
    }
}

/// Hears of one task as long as it is held.
#[derive(Debug)]
pub struct Watched {
    load: Arc<Load>,
    changed: Arc<Notify>,
}

impl Watched {
    /// Resolves when its server has said something since the last time. Cancel-safe.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.load.tasks().retain(|(_, changed)| !Arc::ptr_eq(changed, &self.changed));
    }
}

#[derive(Debug)]
struct Counted(Arc<Load>);

impl Counted {
    fn new(load: &Arc<Load>) -> Self {
        load.callers.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(load))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let last = self.0.callers.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.0.leaving.load(Ordering::SeqCst) {
            // A dead instance needs no telling.
            let _ = self.0.actor.cast(InstanceMsg::Drained);
        }
    }
}

/// One who waits for a permit.
struct Wanting<'a>(&'a Load);

impl<'a> Wanting<'a> {
    fn new(load: &'a Load) -> Self {
        load.wanting.fetch_add(1, Ordering::SeqCst);
        load.turn_wanted.notify_waiters();
        Self(load)
    }
}

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        self.0.wanting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The right to have one call in flight on an instance; given back when it falls.
#[derive(Debug)]
pub struct Lease {
    permit: Option<OwnedSemaphorePermit>,
    counted: Counted,
}

impl Lease {
    fn new(permit: OwnedSemaphorePermit, load: &Arc<Load>) -> Self {
        Self { permit: Some(permit), counted: Counted::new(load) }
    }

    /// The instance.
    pub fn actor(&self) -> &ActorRef<InstanceMsg> {
        &self.counted.0.actor
    }

    /// All callers of the instance.
    pub const fn load(&self) -> &Arc<Load> {
        &self.counted.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let load = &self.counted.0;
        if load.serial.load(Ordering::SeqCst)
            && let Some(permit) = self.permit.take()
        {
            let less = |surplus: usize| surplus.checked_sub(1);
            if load.surplus.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
                permit.forget();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use ractor::{Actor, ActorProcessingErr};

    use super::*;
    use crate::actors::upstreams::Answers;

    /// What it has come to now, if to anything.
    async fn poll_immediate<T>(future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|waker| match future.as_mut().poll(waker) {
            Poll::Ready(it) => Poll::Ready(Some(it)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    #[test]
    fn scope_keys_say_who_shares() {
        let project: Arc<Path> = Path::new("/p").into();
        let caller = |host, project: Option<&Arc<Path>>| Caller {
            host,
            project: project.cloned(),
            label: "test".into(),
            era: Era::Modern,
            answers: Answers::Nobody,
            source: crate::actors::upstreams::Source::default(),
        };
        let somebody = caller(Some(HostId(7)), Some(&project));
        let nobody = caller(None, None);
        let of = |scope, caller| ScopeKey::of(scope, caller, || 9);
        assert_eq!(of(Scope::Global, &somebody), ScopeKey::Global);
        assert_eq!(of(Scope::Project, &somebody), ScopeKey::Project(project));
        assert_eq!(of(Scope::Project, &nobody), ScopeKey::NoProject);
        assert_eq!(of(Scope::Session, &somebody), ScopeKey::Session(HostId(7)));
        assert_eq!(of(Scope::Session, &nobody), ScopeKey::Call(9));
        assert_eq!(of(Scope::Call, &somebody), ScopeKey::Call(9));
    }

    #[test]
    fn the_queue_is_bounded() {
        let routes = Routes::default();
        let place = routes.queue(Lane::Shared, 1);
        assert!(place.is_some());
        assert!(routes.queue(Lane::Shared, 1).is_none());
        drop(place);
        assert!(routes.queue(Lane::Shared, 1).is_some());
        assert_eq!(routes.waiting(), 0);
    }

    struct Nobody;

    impl Actor for Nobody {
        type Msg = InstanceMsg;
        type State = ();
        type Arguments = ();

        async fn pre_start(
            &self,
            _me: ActorRef<InstanceMsg>,
            (): (),
        ) -> Result<(), ActorProcessingErr> {
            Ok(())
        }
    }

    async fn route(most: usize) -> (Arc<Route>, ActorRef<InstanceMsg>) {
        let (actor, _) = Actor::spawn(None, Nobody, ()).await.unwrap();
        let load = Arc::new(Load::new(actor.clone()));
        let pending = Arc::new(Pending::new());
        (Arc::new(Route::new(InstanceId(1), pending, Era::Legacy, most, load)), actor)
    }

    /// E-13: whatever callers do meanwhile, an instance that becomes serial has one turn in the end, no
    /// more and no less: callers come, wait, give up waiting and go on several threads.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn e13_one_turn_is_left_whatever_callers_do() {
        for round in 0..200_usize {
            let (route, actor) = route(1 + round % 7).await;
            let callers: Vec<_> = (0..8_usize)
                .map(|caller| {
                    let route = Arc::clone(&route);
                    crate::actors::support::task::spawn(async move {
                        for step in 0..12 {
                            if caller == 3 && step == round % 12 {
                                route.serialise();
                            }
                            let _joined = (step % 5 == 0).then(|| route.join());
                            let lease = match (caller + step + round) % 3 {
                                0 => route.try_lease(),
                                1 => route.lease().await,
                                _ => tokio::select! {
                                    lease = route.lease() => lease,
                                    () = tokio::task::yield_now() => None,
                                },
                            };
                            for _ in 0..(caller * step) % 4 {
                                tokio::task::yield_now().await;
                            }
                            drop(lease);
                        }
                    })
                })
                .collect();
            for caller in callers {
                caller.await.unwrap();
            }
            // What was in use when it became serial goes as it is given back.
            for _ in 0..8 {
                drop(route.try_lease());
            }
            let turn = route.try_lease();
            assert!(turn.is_some(), "round {round}: no turn is left");
            assert!(route.try_lease().is_none(), "round {round}: two at a time");
            drop(turn);
            assert!(route.load.is_free());
            actor.stop(None);
        }
    }

    /// A turn is wanted while somebody waits for it, whichever came first, and only of a serial one.
    #[tokio::test]
    async fn a_turn_is_wanted_while_somebody_waits() {
        let (route, actor) = route(1).await;
        let turn = route.try_lease().unwrap();
        let load = Arc::clone(turn.load());
        let wanted = || poll_immediate(load.turn_wanted());
        let mut waiter = Box::pin(route.lease());
        assert!(poll_immediate(&mut waiter).await.is_none());
        assert!(wanted().await.is_none(), "it is not serial");
        let mut watcher = Box::pin(load.turn_wanted());
        assert!(poll_immediate(&mut watcher).await.is_none());
        route.serialise();
        assert!(poll_immediate(&mut watcher).await.is_some());
        assert!(wanted().await.is_some());
        drop(waiter);
        let mut watcher = Box::pin(load.turn_wanted());
        assert!(poll_immediate(&mut watcher).await.is_none(), "nobody waits any more");
        let mut waiter = Box::pin(route.lease());
        assert!(poll_immediate(&mut waiter).await.is_none());
        assert!(poll_immediate(&mut watcher).await.is_some());
        drop(turn);
        assert!(waiter.await.is_some());
        assert!(wanted().await.is_none());
        actor.stop(None);
    }

    /// P-03: who waits in one lane takes no place in the other.
    #[test]
    fn p03_each_lane_has_its_own_queue() {
        let routes = Routes::default();
        let stuck = routes.queue(Lane::Legacy, 1);
        assert!(routes.queue(Lane::Legacy, 1).is_none());
        assert!(routes.queue(Lane::Shared, 1).is_some());
        assert_eq!(routes.waiting(), 1);
        drop(stuck);
    }

    /// U-19, P-04, P-05: only callers of legacy revisions have a second lane, and only while it is
    /// of use.
    #[test]
    fn u19_the_lane_of_a_caller() {
        let routes = Routes::default();
        assert_eq!(routes.lane(Era::Modern), Lane::Shared);
        assert_eq!(routes.lane(Era::Legacy), Lane::Legacy);
        routes.share_lanes(true);
        assert_eq!(routes.lane(Era::Legacy), Lane::Shared);
    }
}
