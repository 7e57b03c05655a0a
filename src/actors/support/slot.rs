//! Where to find an actor that may be started again: its handles outlive each incarnation.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ractor::{ActorRef, Message, RpcReplyPort};

use super::ask::{AskError, ask};

/// A place that holds the present incarnation of one actor.
#[derive(Debug)]
pub struct Slot<M>(Arc<RwLock<Option<ActorRef<M>>>>);

impl<M> Clone for Slot<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> Default for Slot<M> {
    fn default() -> Self {
        Self(Arc::new(RwLock::new(None)))
    }
}

impl<M: Message> Slot<M> {
    /// Called by each incarnation when it starts.
    pub fn set(&self, actor: ActorRef<M>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(actor);
    }

    /// The present incarnation.
    pub fn get(&self) -> Option<ActorRef<M>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells the actor; whether there is one to be told.
    pub fn cast(&self, message: M) -> bool {
        self.get().is_some_and(|actor| actor.cast(message).is_ok())
    }

    /// Asks the actor.
    pub async fn ask<R: Send + 'static>(
        &self,
        limit: Duration,
        question: impl FnOnce(RpcReplyPort<R>) -> M,
    ) -> Result<R, AskError> {
        let actor = self.get().ok_or(AskError::Gone)?;
        ask(&actor, limit, question).await
    }
}
