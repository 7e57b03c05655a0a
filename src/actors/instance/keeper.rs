//! Who watches over a process and ends it: a task that outlives the instance, so that stopping never
//! blocks an actor, and the death of an actor never leaves a process.

use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::{oneshot, watch};

use super::InstanceMsg;
use super::connect::Process;
use crate::actors::support::task;
use crate::transport::stdio::child::StopLadder;
use crate::transport::stdio::ring::StderrDrain;

/// Counts the processes that are not surely gone yet.
#[derive(Debug, Clone)]
pub struct Alive(Arc<watch::Sender<usize>>);

impl Default for Alive {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Alive {
    /// How many there are.
    pub fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Resolves when there is none.
    pub async fn none(&self) {
        // The sender is ours, so there is always an answer.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }

    /// One more, until it falls.
    pub(in crate::actors) fn one(&self) -> OneAlive {
        self.0.send_modify(|count| *count += 1);
        OneAlive(Arc::clone(&self.0))
    }
}

/// See [`Alive::one`].
#[derive(Debug)]
pub(in crate::actors) struct OneAlive(Arc<watch::Sender<usize>>);

impl Drop for OneAlive {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Ends the process when it falls.
#[derive(Debug)]
pub struct Keeper {
    _stop: oneshot::Sender<()>,
}

impl Keeper {
    /// Watches over `process` until the keeper falls, then walks the ladder.
    pub fn watch(
        mut process: Box<dyn Process>,
        drain: Option<StderrDrain>,
        ladder: StopLadder,
        alive: &Alive,
        instance: ActorRef<InstanceMsg>,
    ) -> Self {
        let one = alive.one();
        let (stop, mut stopped) = oneshot::channel();
        let drain = drain.map(|drain| task::spawn(drain.run()));
        task::spawn(async move {
            // What a dead instance is told is of no interest to anybody.
            tokio::select! {
                biased;
                report = process.exited() => {
                    let _ = instance.cast(InstanceMsg::LeaderExited { report });
                    // Its group may live on and hold the pipe (F30).
                    let _ = (&mut stopped).await;
                }
                _ = &mut stopped => {}
            }
            let report = process.stop(ladder).await;
            drop(one);
            if let Some(mut drain) = drain {
                // Its last words are read to the end, unless an unrelated process holds the pipe.
                if tokio::time::timeout(ladder.term, &mut drain).await.is_err() {
                    drain.abort();
                }
            }
            let _ = instance.cast(InstanceMsg::ProcessGone { report });
        });
        Self { _stop: stop }
    }
}
