//! One deadline that an actor moves about: it sends itself a message when it passes.

use std::time::Instant;

use ractor::{ActorRef, Message};

use super::task::{TaskGuard, spawn_guarded};

/// A timer with at most one deadline. Stale firings cannot happen: setting another deadline ends the
/// task of the one before.
#[derive(Debug, Default)]
pub struct Timer {
    armed: Option<(Instant, TaskGuard)>,
}

impl Timer {
    /// Nothing armed.
    pub const fn new() -> Self {
        Self { armed: None }
    }

    /// Arms, moves or disarms the timer; does nothing where `deadline` is the one armed already.
    pub fn set<M: Message>(&mut self, actor: &ActorRef<M>, deadline: Option<Instant>, message: M) {
        if self.armed.as_ref().map(|(at, _)| *at) == deadline {
            return;
        }
        self.armed = deadline.map(|at| {
            let actor = actor.clone();
            let guard = spawn_guarded(async move {
                tokio::time::sleep_until(at.into()).await;
                // A dead actor needs no alarm.
                let _ = actor.cast(message);
            });
            (at, guard)
        });
    }

    /// To be called when the message arrives, so that the same deadline can be armed again.
    pub fn fired(&mut self) {
        self.armed = None;
    }
}
