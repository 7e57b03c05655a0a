//! What is gathered and dealt with together: records of the audit, spans of traces.
//!
//! What is left here waits in a bounded queue and holds nobody up. The actor is woken by the first of a
//! batch, gathers for an interval and has a task deal with the batch, one at a time. What finds the queue
//! full, and a batch that comes to nothing, are dropped and counted. Permanent; no children. While nothing is
//! left here nothing is done.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent,
};
use tokio::sync::watch;

use crate::actors::events::{Event, EventsHandle};
use crate::actors::settings::Current;
use crate::actors::support::slot::Slot;
use crate::actors::support::task::{self, TaskGuard, spawn_guarded};
use crate::actors::support::timer::Timer;
use crate::settings::Settings;
use crate::transport::clock;

/// How much is gathered, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// What may wait; beyond it the newest is dropped.
    pub(super) queue: usize,
    /// What is dealt with at once.
    pub(super) batch: usize,
    /// How long the first of a batch waits for others.
    pub(super) interval: Duration,
}

/// Who deals with batches.
pub(super) trait Sink: fmt::Debug + Send + Sync + 'static {
    /// One of a batch.
    type Item: fmt::Debug + Send + 'static;

    /// By the settings in force.
    fn limits(&self, settings: &Settings) -> Limits;

    /// Other settings are in force.
    fn changed(&self, settings: &Settings);

    /// Deals with a batch, or says why it could not. Never called twice at a time.
    fn deal(
        &self,
        batch: Vec<Self::Item>,
        settings: Arc<Settings>,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// What is said of a batch that came to nothing, once until one is dealt with again.
    fn complaint(why: &str) -> String;
}

#[derive(Debug)]
struct Shared<S: Sink> {
    sink: S,
    waiting: Mutex<Vec<S::Item>>,
    done: AtomicU64,
    dropped: AtomicU64,
    settings: watch::Receiver<Arc<Current>>,
    events: EventsHandle,
    actor: Slot<BatcherMsg>,
}

/// How others leave something and wait for it. Cheap to clone; outlives the actor's incarnations.
#[derive(Debug)]
pub(super) struct BatcherHandle<S: Sink>(Arc<Shared<S>>);

impl<S: Sink> Clone for BatcherHandle<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Sink> BatcherHandle<S> {
    pub(super) fn new(
        sink: S,
        settings: watch::Receiver<Arc<Current>>,
        events: EventsHandle,
    ) -> Self {
        sink.changed(&settings.borrow().loaded.settings);
        Self(Arc::new(Shared {
            sink,
            waiting: Mutex::default(),
            done: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            settings,
            events,
            actor: Slot::default(),
        }))
    }

    /// Who deals with it.
    pub(super) fn sink(&self) -> &S {
        &self.0.sink
    }

    /// The settings in force.
    pub(super) fn settings(&self) -> Arc<Settings> {
        self.0.settings()
    }

    /// Whether the actor answers within `limit`.
    pub(super) async fn answers(&self, limit: Duration) -> bool {
        self.0.actor.ask(limit, |reply| BatcherMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub(super) async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        let batcher = Batcher(PhantomData::<S>);
        let (actor, _) = Batcher::spawn_linked(None, batcher, Arc::clone(&self.0), parent).await?;
        Ok(actor.get_cell())
    }

    /// Leaves one more.
    pub(super) fn leave(&self, item: S::Item) {
        let most = self.0.limits().queue;
        let mut waiting = self.0.waiting();
        if waiting.len() >= most {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let first = waiting.is_empty();
        waiting.push(item);
        drop(waiting);
        if first {
            // While the actor is started anew, it looks by itself.
            self.0.actor.cast(BatcherMsg::Waiting);
        }
    }

    /// What was dealt with.
    pub(super) fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }

    /// What was dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Resolves when what waits was dealt with, or `limit` has passed.
    pub(super) async fn flush(&self, limit: Duration) {
        // A part that is started anew right now has nothing more to say.
        let _ = self.0.actor.ask(limit, |reply| BatcherMsg::Flush { reply }).await;
    }
}

impl<S: Sink> Shared<S> {
    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow().loaded.settings)
    }

    fn limits(&self) -> Limits {
        self.sink.limits(&self.settings.borrow().loaded.settings)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<S::Item>> {
        // Nothing panics inside the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the actor hears.
#[derive(Debug)]
enum BatcherMsg {
    /// Whoever leaves the first of a batch.
    Waiting,
    /// The timer: the batch is to be dealt with.
    Due,
    /// From its task: so many were dealt with, or why not.
    Dealt { outcome: Result<(), String>, count: usize },
    /// The settings are others.
    Changed,
    /// Somebody wants what waits to be dealt with.
    Flush { reply: RpcReplyPort<()> },
    /// Root: whether it answers.
    Ping { reply: RpcReplyPort<()> },
}

/// The actor.
#[derive(Debug)]
struct Batcher<S>(PhantomData<S>);

#[derive(Debug)]
struct BatcherState<S: Sink> {
    me: ActorRef<BatcherMsg>,
    shared: Arc<Shared<S>>,
    timer: Timer,
    /// A task deals with a batch.
    dealing: bool,
    /// The last batch came to nothing, which was said.
    failing: bool,
    flushes: Vec<RpcReplyPort<()>>,
    _following: TaskGuard,
}

impl<S: Sink> Actor for Batcher<S> {
    type Msg = BatcherMsg;
    type State = BatcherState<S>;
    type Arguments = Arc<Shared<S>>;

    async fn pre_start(
        &self,
        me: ActorRef<BatcherMsg>,
        shared: Arc<Shared<S>>,
    ) -> Result<BatcherState<S>, ActorProcessingErr> {
        shared.actor.set(me.clone());
        let (mut settings, told) = (shared.settings.clone(), me.clone());
        let following = spawn_guarded(async move {
            while settings.changed().await.is_ok() && told.cast(BatcherMsg::Changed).is_ok() {}
        });
        let mut state = BatcherState {
            me,
            shared,
            timer: Timer::new(),
            dealing: false,
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
        _me: ActorRef<BatcherMsg>,
        message: BatcherMsg,
        state: &mut BatcherState<S>,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            BatcherMsg::Waiting => state.gather(),
            BatcherMsg::Due => {
                state.timer.fired();
                state.deal();
            }
            BatcherMsg::Dealt { outcome, count } => state.dealt(outcome, count),
            BatcherMsg::Changed => state.shared.sink.changed(&state.shared.settings()),
            BatcherMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            BatcherMsg::Flush { reply } => {
                state.flushes.push(reply);
                state.deal();
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<BatcherMsg>,
        _event: SupervisionEvent,
        _state: &mut BatcherState<S>,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}

impl<S: Sink> BatcherState<S> {
    /// Something waits, perhaps: it is dealt with when more has had time to come.
    fn gather(&mut self) {
        if !self.dealing && !self.shared.waiting().is_empty() {
            let due = clock::now().checked_add(self.shared.limits().interval);
            self.timer.set(&self.me, due, BatcherMsg::Due);
        }
    }

    fn deal(&mut self) {
        if self.dealing {
            return;
        }
        let batch: Vec<S::Item> = {
            let most = self.shared.limits().batch;
            let mut waiting = self.shared.waiting();
            let count = waiting.len().min(most);
            waiting.drain(..count).collect()
        };
        if batch.is_empty() {
            for reply in self.flushes.drain(..) {
                // Whoever asked may have given up.
                let _ = reply.send(());
            }
            return;
        }
        self.dealing = true;
        let (shared, me) = (Arc::clone(&self.shared), self.me.clone());
        // Not guarded: what was taken is dealt with although the actor ends.
        task::spawn(async move {
            let count = batch.len();
            let outcome = shared.sink.deal(batch, shared.settings()).await;
            let _ = me.cast(BatcherMsg::Dealt { outcome, count });
        });
    }

    fn dealt(&mut self, outcome: Result<(), String>, count: usize) {
        self.dealing = false;
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        match outcome {
            Ok(()) => {
                self.failing = false;
                self.shared.done.fetch_add(count, Ordering::Relaxed);
            }
            Err(why) => {
                self.shared.dropped.fetch_add(count, Ordering::Relaxed);
                if !std::mem::replace(&mut self.failing, true) {
                    let event = Event::new("daemon.warning", S::complaint(&why));
                    self.shared.events.emit(event);
                }
            }
        }
        let more = self.shared.waiting().len();
        if !self.flushes.is_empty() || more >= self.shared.limits().batch {
            self.deal();
        } else {
            self.gather();
        }
    }
}
