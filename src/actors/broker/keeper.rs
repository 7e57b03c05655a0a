//! The actor behind the broker: deadlines, and records on disk. Permanent; no children.

use std::sync::Arc;

use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent,
};

use super::{Entry, Said, Shared, named};
use crate::actors::events::Event;
use crate::actors::support::task;
use crate::actors::support::timer::Timer;
use crate::protocol::session::Limit;
use crate::transport::clock;

/// Where open questions stand in the store.
pub(super) const TABLE: &str = "questions";

/// What the keeper hears.
#[derive(Debug)]
pub(super) enum KeeperMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// The table is another one.
    Changed,
    /// Something may be due.
    Due,
    /// The writing task is through.
    Written {
        /// Why it failed, if it did.
        failed: Option<String>,
    },
    /// The daemon stops.
    Flush {
        /// Answered when everything is written.
        reply: RpcReplyPort<()>,
    },
}

pub(super) async fn start(shared: &Arc<Shared>, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
    let (actor, _) = Keeper::spawn_linked(None, Keeper, Arc::clone(shared), parent).await?;
    Ok(actor.get_cell())
}

#[derive(Debug)]
struct Keeper;

#[derive(Debug)]
struct KeeperState {
    me: ActorRef<KeeperMsg>,
    shared: Arc<Shared>,
    timer: Timer,
    writing: bool,
    waiting: Vec<RpcReplyPort<()>>,
}

impl Actor for Keeper {
    type Msg = KeeperMsg;
    type State = KeeperState;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        me: ActorRef<KeeperMsg>,
        shared: Arc<Shared>,
    ) -> Result<KeeperState, ActorProcessingErr> {
        shared.actor.set(me.clone());
        let (timer, waiting) = (Timer::new(), Vec::new());
        let mut state = KeeperState { me, shared, timer, writing: false, waiting };
        // What an incarnation before this one did not see.
        state.look();
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<KeeperMsg>,
        message: KeeperMsg,
        state: &mut KeeperState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            KeeperMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            KeeperMsg::Changed => state.look(),
            KeeperMsg::Due => {
                state.timer.fired();
                state.expire();
                state.look();
            }
            KeeperMsg::Written { failed } => state.written(failed),
            KeeperMsg::Flush { reply } => {
                state.waiting.push(reply);
                state.look();
                state.answer();
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<KeeperMsg>,
        _event: SupervisionEvent,
        _state: &mut KeeperState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}

impl KeeperState {
    fn look(&mut self) {
        let due = self.shared.table().next_due();
        self.timer.set(&self.me, due, KeeperMsg::Due);
        self.write();
    }

    fn expire(&self) {
        let now = clock::now();
        let due = self.shared.table().expire(now);
        for entry in due {
            let text = format!("{} was cancelled: {}", named(&entry.view), self.why(&entry, now));
            let reply = Said::Cancel.refusal(entry.view.kind);
            self.shared.closed(entry, reply, "question.expired", text);
        }
    }

    fn why(&self, entry: &Entry, now: std::time::Instant) -> String {
        let settings = self.shared.elicit();
        if entry.deadline <= now {
            let limit = Limit::time("elicit.timeout", settings.timeout);
            return format!(
                "nobody answered it within {} (setting {})",
                limit.value, limit.setting
            );
        }
        "nobody listens for it (`mcpx elicit watch` does; settings elicit.hold, elicit.linger)"
            .to_owned()
    }

    fn write(&mut self) {
        if self.writing {
            return;
        }
        let changes = self.shared.table().changes();
        if changes.is_empty() {
            return;
        }
        self.writing = true;
        let (me, store) = (self.me.clone(), Arc::clone(&self.shared.store));
        task::spawn(async move {
            let written = tokio::task::spawn_blocking(move || {
                store.change(TABLE, &changes).map_err(|error| error.to_string())
            });
            let failed = match written.await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error),
                Err(error) => Some(error.to_string()),
            };
            // After a dead keeper a record may stay: the next daemon calls it lost.
            let _ = me.cast(KeeperMsg::Written { failed });
        });
    }

    fn written(&mut self, failed: Option<String>) {
        self.writing = false;
        if let Some(why) = failed {
            let text = format!("open questions could not be kept: {why}");
            self.shared.events.emit(Event::new("daemon.warning", text));
        }
        self.write();
        self.answer();
    }

    fn answer(&mut self) {
        if !self.writing {
            for reply in self.waiting.drain(..) {
                // Whoever asked may have given up.
                let _ = reply.send(());
            }
        }
    }
}
