//! The one place that spawns tasks.
//!
//! A task belongs to somebody who hears of its end: the caller keeps the handle, or the task sends a
//! message when it is through. What is spawned here and panics says its name in the log.

use tokio::task::JoinHandle;

/// Spawns a task under a name.
#[expect(clippy::disallowed_methods, reason = "the one sanctioned use")]
pub fn spawn_named<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(async move {
        let _named = Named(name);
        future.await
    })
}

/// Logs the name if the task unwinds.
struct Named(&'static str);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(task = self.0, "a task panicked");
        }
    }
}
