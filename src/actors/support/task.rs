//! Tasks that belong to an actor: named, and ended with their owner.

use tokio::task::{AbortHandle, JoinHandle};

/// A running task that ends when this guard falls.
#[derive(Debug)]
pub struct TaskGuard(AbortHandle);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts `future` as a task of its own; it goes on when the handle falls.
#[expect(clippy::disallowed_methods, reason = "the one sanctioned use")]
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(future)
}

/// Starts `future` as a task that ends with the guard.
pub fn spawn_guarded(future: impl Future<Output = ()> + Send + 'static) -> TaskGuard {
    TaskGuard(spawn(future).abort_handle())
}
