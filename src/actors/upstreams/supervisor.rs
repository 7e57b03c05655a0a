//! The supervisor itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{
    Actor, ActorId, ActorProcessingErr, ActorRef, ActorRuntime, RpcReplyPort, SupervisionEvent,
};

use super::Shared;
use crate::actors::pool::directory::{Routes, Server};
use crate::actors::pool::{Pool, PoolArgs, PoolHandle};
use crate::actors::support::restart::Intensity;
use crate::settings::ServerDef;
use crate::transport::clock;

/// What the supervisor hears.
#[derive(Debug)]
pub(super) enum UpstreamsMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// Other settings are in force.
    Apply {
        /// Answered when new calls go to the new generations.
        reply: RpcReplyPort<()>,
    },
    /// The daemon stops.
    StopAll,
    /// Answered when the pools have ended, if the daemon stops.
    GetIdle {
        /// Where the answer goes.
        reply: RpcReplyPort<()>,
    },
}

/// The actor.
#[derive(Debug)]
pub(super) struct Upstreams;

/// See the module.
#[derive(Debug)]
pub(super) struct UpstreamsState {
    me: ActorRef<UpstreamsMsg>,
    shared: Arc<Shared>,
    /// Present generations and those that drain.
    pools: HashMap<ActorId, Arc<ServerDef>>,
    intensity: Intensity,
    stopping: bool,
    idle_replies: Vec<RpcReplyPort<()>>,
}

impl Actor for Upstreams {
    type Msg = UpstreamsMsg;
    type State = UpstreamsState;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        me: ActorRef<UpstreamsMsg>,
        shared: Arc<Shared>,
    ) -> Result<UpstreamsState, ActorProcessingErr> {
        let daemon = shared.settings().daemon;
        shared.supervisor.set(me.clone());
        // The pools of an incarnation before this one ended with it.
        for server in shared.directory.all() {
            shared.directory.remove(&server.def.key);
        }
        let mut state = UpstreamsState {
            me,
            shared,
            pools: HashMap::new(),
            intensity: Intensity::new(daemon.restart_intensity, daemon.restart_window),
            stopping: false,
            idle_replies: Vec::new(),
        };
        state.apply()?;
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<UpstreamsMsg>,
        message: UpstreamsMsg,
        state: &mut UpstreamsState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            UpstreamsMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            UpstreamsMsg::Apply { reply } => {
                state.apply()?;
                // Whoever asked may have given up.
                let _ = reply.send(());
            }
            UpstreamsMsg::StopAll => state.stop_all(),
            UpstreamsMsg::GetIdle { reply } => {
                state.idle_replies.push(reply);
                state.answer_if_idle();
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<UpstreamsMsg>,
        event: SupervisionEvent,
        state: &mut UpstreamsState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
            // Drained, unless it is still the present generation.
            SupervisionEvent::ActorTerminated(who, last_state, _) => {
                drop(last_state);
                state.pool_ended(who.get_id(), "it was stopped")?;
            }
            SupervisionEvent::ActorFailed(who, error) => {
                state.pool_ended(who.get_id(), &error.to_string())?;
            }
        }
        Ok(())
    }
}

impl UpstreamsState {
    /// Brings the pools in line with the settings in force: structural difference, so that only what
    /// changed is replaced.
    fn apply(&mut self) -> Result<(), ActorProcessingErr> {
        if self.stopping {
            return Ok(());
        }
        let settings = self.shared.settings();
        let old = self.shared.directory.all();
        for server in &old {
            let stays = settings.servers.iter().any(|def| def.key == server.def.key);
            if !stays {
                self.shared.directory.remove(&server.def.key);
                server.pool.drain(settings.host.drain);
            }
        }
        for def in &settings.servers {
            let before = old.iter().find(|server| server.def.key == def.key);
            // Which tools may be called is the catalog's affair, and no reason to start anew.
            if before.is_some_and(|server| server.def.runs_like(def)) {
                continue;
            }
            self.start_pool(Arc::clone(def))?;
            if let Some(server) = before {
                server.pool.drain(settings.host.drain);
            }
        }
        Ok(())
    }

    fn start_pool(&mut self, def: Arc<ServerDef>) -> Result<(), ActorProcessingErr> {
        let routes = Arc::new(Routes::default());
        let args = PoolArgs {
            def: Arc::clone(&def),
            routes: Arc::clone(&routes),
            shared: Arc::clone(&self.shared),
        };
        // Its `pre_start` cannot fail, so nobody needs to watch the join handle.
        let (actor, _) = ActorRuntime::spawn_linked_instant(None, Pool, args, self.me.get_cell())?;
        self.pools.insert(actor.get_id(), Arc::clone(&def));
        let pool = PoolHandle::new(actor);
        self.shared.directory.insert(Arc::new(Server { def, pool, routes }));
        Ok(())
    }

    fn pool_ended(&mut self, id: ActorId, why: &str) -> Result<(), ActorProcessingErr> {
        let Some(def) = self.pools.remove(&id) else { return Ok(()) };
        self.answer_if_idle();
        let present = self.shared.directory.get(&def.key);
        if self.stopping || present.is_none_or(|server| server.pool.id() != id) {
            return Ok(());
        }
        // A fault of ours: its instances have ended with it.
        tracing::error!(server = %def.key, why, "a pool failed and is started again");
        if !self.intensity.admit(clock::now()) {
            return Err(format!("the pool of `{}` fails again and again: {why}", def.key).into());
        }
        self.start_pool(def)
    }

    fn stop_all(&mut self) {
        self.stopping = true;
        for server in self.shared.directory.all() {
            self.shared.directory.remove(&server.def.key);
            server.pool.drain(Duration::ZERO);
        }
    }

    fn answer_if_idle(&mut self) {
        if self.pools.is_empty() {
            for reply in self.idle_replies.drain(..) {
                let _ = reply.send(());
            }
        }
    }
}
