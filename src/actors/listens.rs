//! Supervisor of listen streams towards hosts.
//!
//! Children: a [`super::listen`] for each stream (temporary: one that fails has ended its stream, and
//! its host opens another). Owns the limit on streams. Ends with the daemon, after its streams have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, ActorStatus, RpcReplyPort, SpawnErr,
    SupervisionEvent,
};

use super::events::{Event, EventsHandle};
use super::listen::{Listen, ListenArgs, ListenMsg};
use super::support::ask::AskError;
use super::support::slot::Slot;
use super::support::stop;
use crate::protocol::jsonrpc::{Code, RpcError};
use crate::protocol::session::host::too_many;

/// How others reach the listen streams. Cheap to clone; outlives the supervisor's incarnations.
#[derive(Debug, Clone, Default)]
pub struct ListensHandle {
    actor: Slot<ListensMsg>,
    open: Arc<AtomicUsize>,
}

impl ListensHandle {
    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.actor.ask(limit, |reply| ListensMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the supervisor as a child of `parent`.
    pub(crate) async fn start(
        &self,
        parent: ActorCell,
        events: EventsHandle,
    ) -> Result<ActorCell, SpawnErr> {
        let args = (self.clone(), events);
        let (actor, _) = Listens::spawn_linked(None, Listens, args, parent).await?;
        Ok(actor.get_cell())
    }

    /// Room for one more stream, of `most` in all.
    pub(crate) fn place(&self, most: usize) -> Result<Place, RpcError> {
        // Counted first: two that come at once do not both get the last one.
        let place = Place(Arc::clone(&self.open));
        if self.open.fetch_add(1, Ordering::SeqCst) >= most {
            return Err(too_many("all hosts together have", most, "listen.max"));
        }
        Ok(place)
    }

    /// Begins a stream.
    pub(crate) fn open(
        &self,
        place: Place,
        args: ListenArgs,
    ) -> Result<ActorRef<ListenMsg>, RpcError> {
        let ending = || RpcError::new(Code::InternalError, "mcpx is about to end; try again");
        let runs = |actor: &ActorRef<ListensMsg>| {
            !matches!(actor.get_status(), ActorStatus::Stopping | ActorStatus::Stopped)
        };
        let parent = self.actor.get().filter(runs).ok_or_else(ending)?;
        let args = (args, place);
        let spawned =
            ractor::ActorRuntime::spawn_linked_instant(None, Listen, args, parent.get_cell());
        let (actor, _) = spawned.map_err(|error| {
            tracing::error!(%error, "a listen stream could not be started");
            ending()
        })?;
        Ok(actor)
    }

    /// Streams that are open, for status pages.
    pub fn count(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Ends every stream as its host has to be told, for at most `limit`.
    pub(crate) async fn drain(&self, limit: Duration) -> Result<(), AskError> {
        self.actor.ask(limit, |reply| ListensMsg::Drain { reply }).await
    }
}

/// A stream's share of the limit; given back when it falls.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the supervisor is told.
#[derive(Debug)]
pub(crate) enum ListensMsg {
    /// Root: whether it answers.
    Ping {
        /// At once.
        reply: RpcReplyPort<()>,
    },
    /// Root: the daemon stops. Answered when the last stream has ended.
    Drain { reply: RpcReplyPort<()> },
}

/// The actor.
#[derive(Debug)]
pub(crate) struct Listens;

pub(crate) struct ListensState {
    me: ActorRef<ListensMsg>,
    events: EventsHandle,
    draining: Option<RpcReplyPort<()>>,
}

impl Actor for Listens {
    type Msg = ListensMsg;
    type State = ListensState;
    type Arguments = (ListensHandle, EventsHandle);

    async fn pre_start(
        &self,
        me: ActorRef<ListensMsg>,
        (handle, events): (ListensHandle, EventsHandle),
    ) -> Result<ListensState, ActorProcessingErr> {
        handle.actor.set(me.clone());
        Ok(ListensState { me, events, draining: None })
    }

    async fn handle(
        &self,
        _me: ActorRef<ListensMsg>,
        message: ListensMsg,
        state: &mut ListensState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ListensMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            ListensMsg::Drain { reply } => state.drain(reply),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        me: ActorRef<ListensMsg>,
        _state: &mut ListensState,
    ) -> Result<(), ActorProcessingErr> {
        stop::children(&me.get_cell()).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<ListensMsg>,
        event: SupervisionEvent,
        state: &mut ListensState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(_, error) => {
                let text = format!("a listen stream failed and was ended: {error}");
                state.events.emit(Event::new("listen.failed", text));
            }
            SupervisionEvent::ActorTerminated(..)
            | SupervisionEvent::ActorStarted(_)
            | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        state.done_draining();
        Ok(())
    }
}

impl ListensState {
    fn drain(&mut self, reply: RpcReplyPort<()>) {
        for stream in self.me.get_children() {
            // All its children are streams; one that has just ended needs no telling.
            let _ = stream.send_message(ListenMsg::Drain);
        }
        self.draining = Some(reply);
        self.done_draining();
    }

    fn done_draining(&mut self) {
        if self.me.get_children().is_empty()
            && let Some(reply) = self.draining.take()
        {
            // Root may have waited long enough.
            let _ = reply.send(());
        }
    }
}

#[cfg(test)]
mod tests;
