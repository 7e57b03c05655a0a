//! How many scripts run at once, and how many wait for that (`exec.max_running`, `exec.max_waiting`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::protocol::session::Limit;
use crate::settings::typed::ExecSettings;

/// Who runs and who waits. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Admission(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    running: usize,
    /// Longest wait first. Who has gone is found when its turn comes, or when somebody else comes.
    waiting: VecDeque<oneshot::Sender<Place>>,
}

/// The right to run one script, until it falls.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Option<Admission>,
}

impl Admission {
    /// Waits for a place; an error says that as many wait already as may. Dropping the future gives up.
    pub(super) async fn place(&self, limits: &ExecSettings) -> Result<Place, Limit> {
        let turn = {
            let mut table = self.table();
            if table.running < limits.max_running {
                table.running += 1;
                return Ok(self.taken());
            }
            table.waiting.retain(|waiter| !waiter.is_closed());
            if table.waiting.len() >= limits.max_waiting {
                return Err(Limit::count("exec.max_waiting", limits.max_waiting));
            }
            let (waiter, turn) = oneshot::channel();
            table.waiting.push_back(waiter);
            turn
        };
        // Waiters are told or kept; none is dropped.
        turn.await.map_err(|_| Limit::count("exec.max_waiting", limits.max_waiting))
    }

    /// How many run and how many wait.
    pub(super) fn count(&self) -> (usize, usize) {
        let table = self.table();
        let waiting = table.waiting.iter().filter(|waiter| !waiter.is_closed()).count();
        (table.running, waiting)
    }

    fn taken(&self) -> Place {
        Place { admission: Some(self.clone()) }
    }

    /// A place is free: the next one gets it.
    fn free(&self) {
        loop {
            let next = {
                let mut table = self.table();
                let Some(next) = table.waiting.pop_front() else {
                    table.running = table.running.saturating_sub(1);
                    return;
                };
                next
            };
            let Err(mut place) = next.send(self.taken()) else { return };
            // Who waited has gone: the place is still here.
            place.admission = None;
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            admission.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;
    use crate::settings::{Settings, Sources};

    fn limits(max_running: usize, max_waiting: usize) -> ExecSettings {
        let loaded = Settings::load(&Sources::default(), std::path::Path::new("mcpx")).unwrap();
        ExecSettings { max_running, max_waiting, ..loaded.settings.exec }
    }

    async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
        let mut future = pin!(future);
        poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }

    #[tokio::test]
    async fn who_comes_first_runs_first_and_who_leaves_is_forgotten() {
        let (admission, limits) = (Admission::default(), limits(1, 2));
        let first = admission.place(&limits).await.unwrap();
        let mut second = Box::pin(admission.place(&limits));
        let mut third = Box::pin(admission.place(&limits));
        assert!(is_pending(&mut second).await && is_pending(&mut third).await);
        let refused = admission.place(&limits).await.unwrap_err();
        assert_eq!(refused.setting, "exec.max_waiting");
        drop(second);
        assert_eq!(admission.count(), (1, 1));
        drop(first);
        let third = third.await.unwrap();
        assert_eq!(admission.count(), (1, 0));
        drop(third);
        assert_eq!(admission.count(), (0, 0));
    }

    /// A place that nobody takes any more goes on to the next, and is free in the end.
    #[tokio::test]
    async fn a_place_for_somebody_who_has_gone_is_not_lost() {
        let (admission, limits) = (Admission::default(), limits(1, 8));
        let first = admission.place(&limits).await.unwrap();
        let mut gone = Box::pin(admission.place(&limits));
        let mut told_and_gone = Box::pin(admission.place(&limits));
        assert!(is_pending(&mut gone).await && is_pending(&mut told_and_gone).await);
        drop(gone);
        drop(first);
        // It has the place, without having looked.
        drop(told_and_gone);
        assert_eq!(admission.count(), (0, 0));
    }
}
