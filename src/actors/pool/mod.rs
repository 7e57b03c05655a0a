//! One server's instances: starts them once however many ask, rests between failures, parks what
//! keeps failing, stops what is idle, and publishes nothing itself: instances enter their routes.
//!
//! Children: an [`super::instance`] for each connection, temporary. Ends when its server was replaced
//! or removed and its last instance is gone, or with its supervisor. Never on the path of a call that
//! finds a route; never waits.

pub mod caller;
pub mod directory;
mod faults;
mod lanes;
mod member;
pub mod ongoing;
mod operate;
pub mod plan;
mod report;
pub mod rounds;
mod state;
pub mod status;
pub mod upstream_task;

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};

use self::directory::{Route, RouteKey, Routes};
use self::state::PoolState;
use self::status::{PoolStatus, ProtocolStatus};
use super::instance::{End, InstanceId, Reach};
use super::support::ask::{AskError, ask};
use super::upstreams::{Caller, HostId, Refused, Shared};
use crate::protocol::session::upstream::Settled;
use crate::settings::ServerDef;
use crate::transport::clock;
use crate::transport::stdio::ring::StderrRing;

/// What a pool is made from.
#[derive(Debug)]
pub struct PoolArgs {
    /// Its server.
    pub def: Arc<ServerDef>,
    /// Where its instances admit calls.
    pub routes: Arc<Routes>,
    /// What all pools share.
    pub shared: Arc<Shared>,
}

/// The answer to [`PoolHandle::get_route`].
#[derive(Debug, Clone)]
pub enum RouteAnswer {
    /// There is a route now; look again.
    Ready,
    /// The server has been replaced; look in the directory again.
    Moved,
    /// There will be none.
    Refused(Refused),
    /// There was none within the limit.
    Late,
}

/// What others hold of a pool.
#[derive(Debug, Clone)]
pub struct PoolHandle {
    actor: ActorRef<PoolMsg>,
}

/// What a pool hears.
#[derive(Debug)]
pub enum PoolMsg {
    /// A caller found no usable route. Answered when an instance is ready, or refused.
    GetRoute {
        /// For whom.
        key: RouteKey,
        /// On whose behalf.
        caller: Caller,
        /// Where the answer goes.
        reply: RpcReplyPort<RouteAnswer>,
    },
    /// A caller found every instance of its key fully in use.
    Crowded {
        /// For whom.
        key: RouteKey,
        /// On whose behalf.
        caller: Caller,
    },
    /// From an instance: its process runs, or its client is made; again where a remote server turns
    /// out to be reached in another way.
    Spawned {
        /// Which.
        id: InstanceId,
        /// The process.
        pid: Option<u32>,
        /// Its stderr.
        stderr: StderrRing,
        /// How it is reached.
        reach: Reach,
    },
    /// From an instance: its server opened another session.
    Renewed {
        /// Which.
        id: InstanceId,
        /// What that settled.
        settled: Arc<Settled>,
    },
    /// From an instance: it admits calls.
    Ready {
        /// Which.
        id: InstanceId,
        /// What its opening settled.
        settled: Arc<Settled>,
        /// Its route.
        route: Arc<Route>,
    },
    /// From an instance: it admits no more calls.
    Leaving {
        /// Which.
        id: InstanceId,
        /// One phrase.
        why: String,
    },
    /// Somebody waits for the list of the instance that serves this key. Answered when that instance
    /// leaves.
    UntilGone {
        /// Whose.
        key: RouteKey,
        /// On whose behalf.
        caller: Caller,
        /// Where the answer goes.
        reply: RpcReplyPort<RouteAnswer>,
    },
    /// From an instance: it is over and its process is gone.
    Ended {
        /// Which.
        id: InstanceId,
        /// How.
        end: End,
    },
    /// A rest is over, or an instance has been idle for long enough.
    DeadlineDue,
    /// A host session ended.
    SessionEnded {
        /// Which.
        host: HostId,
    },
    /// A call in call scope ended.
    CallEnded {
        /// Its number.
        call: u64,
    },
    /// The server was replaced, removed, or the daemon stops: end when the last instance has.
    Drain {
        /// How long calls in flight may go on.
        limit: Duration,
    },
    /// An operator: rest until told otherwise. Answered when nothing runs any more.
    Stop {
        /// Where the answer goes.
        reply: RpcReplyPort<()>,
    },
    /// An operator: leave any rest.
    Start {
        /// Where the answer goes.
        reply: RpcReplyPort<()>,
    },
    /// An operator: end what runs and start it again.
    Restart {
        /// Where the answer goes.
        reply: RpcReplyPort<()>,
    },
    /// For status pages and tests.
    GetStatus {
        /// Where the answer goes.
        reply: RpcReplyPort<PoolStatus>,
    },
    /// For `GET /v1/protocol` (D-05).
    GetProtocol {
        /// Where the answer goes.
        reply: RpcReplyPort<ProtocolStatus>,
    },
    /// For `mcpx logs`.
    GetLogs {
        /// Where the answer goes.
        reply: RpcReplyPort<Vec<InstanceLog>>,
    },
}

/// The stderr of one instance.
#[derive(Debug, Clone)]
pub struct InstanceLog {
    /// Its number.
    pub instance: u64,
    /// Whether it is alive.
    pub alive: bool,
    /// Its last lines, and those to come.
    pub ring: StderrRing,
}

impl PoolHandle {
    /// For the supervisor, which started `actor`.
    pub(super) const fn new(actor: ActorRef<PoolMsg>) -> Self {
        Self { actor }
    }

    /// Which incarnation.
    pub(super) fn id(&self) -> ActorId {
        self.actor.get_id()
    }

    /// Waits until there is a route for `key`, or there will be none.
    pub async fn get_route(&self, key: &RouteKey, caller: &Caller, limit: Duration) -> RouteAnswer {
        let (key, caller) = (key.clone(), caller.clone());
        let asked = ask(&self.actor, limit, |reply| PoolMsg::GetRoute { key, caller, reply });
        match asked.await {
            Ok(answer) => answer,
            // It crashed, or was replaced a moment ago; its successor is in the directory.
            Err(AskError::Gone) => RouteAnswer::Moved,
            Err(AskError::Late) => RouteAnswer::Late,
        }
    }

    /// Waits until the instance that serves `key` is gone; why.
    pub async fn until_gone(
        &self,
        key: &RouteKey,
        caller: &Caller,
        limit: Duration,
    ) -> RouteAnswer {
        let (key, caller) = (key.clone(), caller.clone());
        let asked = ask(&self.actor, limit, |reply| PoolMsg::UntilGone { key, caller, reply });
        match asked.await {
            Ok(answer) => answer,
            Err(AskError::Gone) => RouteAnswer::Moved,
            Err(AskError::Late) => RouteAnswer::Late,
        }
    }

    /// All instances of `key` are in full use: start another, where `max` allows it.
    pub fn crowded(&self, key: &RouteKey, caller: &Caller) {
        self.tell(PoolMsg::Crowded { key: key.clone(), caller: caller.clone() });
    }

    /// A call in call scope is over.
    pub fn call_ended(&self, call: u64) {
        self.tell(PoolMsg::CallEnded { call });
    }

    /// A host session is over.
    pub fn session_ended(&self, host: HostId) {
        self.tell(PoolMsg::SessionEnded { host });
    }

    /// Ends all instances, and then the pool.
    pub fn drain(&self, limit: Duration) {
        self.tell(PoolMsg::Drain { limit });
    }

    /// An operator's word.
    pub async fn operate(
        &self,
        limit: Duration,
        word: impl FnOnce(RpcReplyPort<()>) -> PoolMsg,
    ) -> Result<(), AskError> {
        ask(&self.actor, limit, word).await
    }

    /// For status pages and tests.
    pub async fn status(&self, limit: Duration) -> Result<PoolStatus, AskError> {
        ask(&self.actor, limit, |reply| PoolMsg::GetStatus { reply }).await
    }

    /// How the server is spoken to.
    pub async fn protocol(&self, limit: Duration) -> Result<ProtocolStatus, AskError> {
        ask(&self.actor, limit, |reply| PoolMsg::GetProtocol { reply }).await
    }

    /// The stderr of its instances, oldest first; of those that ended, the last one's.
    pub async fn logs(&self, limit: Duration) -> Result<Vec<InstanceLog>, AskError> {
        ask(&self.actor, limit, |reply| PoolMsg::GetLogs { reply }).await
    }

    fn tell(&self, message: PoolMsg) {
        // A pool that has ended has nothing left to end.
        let _ = self.actor.cast(message);
    }
}

/// The actor.
#[derive(Debug)]
pub struct Pool;

impl Actor for Pool {
    type Msg = PoolMsg;
    type State = PoolState;
    type Arguments = PoolArgs;

    async fn pre_start(
        &self,
        me: ActorRef<PoolMsg>,
        args: PoolArgs,
    ) -> Result<PoolState, ActorProcessingErr> {
        let mut state = PoolState::new(me.clone(), args);
        state.begin();
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<PoolMsg>,
        message: PoolMsg,
        state: &mut PoolState,
    ) -> Result<(), ActorProcessingErr> {
        let now = clock::now();
        match message {
            PoolMsg::GetRoute { key, caller, reply } => state.get_route(now, key, &caller, reply),
            PoolMsg::Crowded { key, caller } => state.crowded(now, key, &caller),
            PoolMsg::Spawned { id, pid, stderr, reach } => state.spawned(id, pid, stderr, reach),
            PoolMsg::Renewed { id, settled } => state.renewed(id, settled),
            PoolMsg::Ready { id, settled, route } => state.ready(now, id, settled, route),
            PoolMsg::Leaving { id, why } => state.leaving(id, why),
            PoolMsg::UntilGone { key, caller, reply } => state.until_gone(&key, &caller, reply),
            PoolMsg::Ended { id, end } => state.ended(now, id, end),
            PoolMsg::DeadlineDue => state.deadline_due(now),
            PoolMsg::SessionEnded { host } => state.scope_ended(&session(host)),
            PoolMsg::CallEnded { call } => state.scope_ended(&directory::ScopeKey::Call(call)),
            PoolMsg::Drain { limit } => state.drain(limit),
            PoolMsg::Stop { reply } => state.stop(reply),
            PoolMsg::Start { reply } => state.start(now, reply),
            PoolMsg::Restart { reply } => state.restart(now, reply),
            PoolMsg::GetStatus { reply } => answer(reply, state.status(now)),
            PoolMsg::GetProtocol { reply } => answer(reply, state.protocol()),
            PoolMsg::GetLogs { reply } => answer(reply, state.logs()),
        }
        state.arm(now);
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<PoolMsg>,
        event: SupervisionEvent,
        state: &mut PoolState,
    ) -> Result<(), ActorProcessingErr> {
        let now = clock::now();
        match event {
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
            // It has reported its end before; if not, somebody stopped it from outside. Its state
            // falls here, and with it the calls that it may still hold.
            SupervisionEvent::ActorTerminated(who, last_state, _) => {
                drop(last_state);
                state.lost(now, &who, "it was stopped".to_owned());
            }
            // A fault of ours: counted like a death of the server.
            SupervisionEvent::ActorFailed(who, error) => {
                state.lost(now, &who, format!("mcpx itself failed: {error}"));
            }
        }
        state.arm(now);
        Ok(())
    }
}

const fn session(host: HostId) -> directory::ScopeKey {
    directory::ScopeKey::Session(host)
}

fn answer<T: Send + 'static>(reply: RpcReplyPort<T>, value: T) {
    // Whoever asked may have given up.
    let _ = reply.send(value);
}
