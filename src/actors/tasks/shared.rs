//! What the supervisor of tasks and its children share: the table, and how an end is kept and told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Entry, TasksMsg};
use crate::actors::events::{Event, EventsHandle};
use crate::actors::support::slot::Slot;
use crate::actors::support::task;
use crate::actors::upstreams::{Reason, UpstreamsHandle};
use crate::protocol::model::tasks::Detail;
use crate::protocol::model::tool_result;
use crate::protocol::session::Outcome;
use crate::protocol::task_fsm::{Machine, Status};
use crate::transport::store::{Change, Store, StoreError};

/// The table of the store that holds tasks, by their ids.
pub(super) const TABLE: &str = "tasks";

/// What the supervisor and its children share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) events: EventsHandle,
    pub(super) upstreams: UpstreamsHandle,
    pub(super) table: Mutex<HashMap<String, Arc<Entry>>>,
    /// Records that are being written.
    pub(super) writing: watch::Sender<usize>,
    pub(super) actor: Slot<TasksMsg>,
}

impl Shared {
    pub(super) fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a task with its outcome, which is kept before anybody is told of it; `ended` is called when
    /// all of that is done.
    pub(crate) fn finish(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        outcome: Outcome,
        ended: impl FnOnce() + Send + 'static,
    ) {
        self.writing.send_modify(|open| *open += 1);
        let (shared, entry) = (Arc::clone(self), Arc::clone(entry));
        task::spawn(async move {
            let kept = shared.write(&entry, Some(&outcome)).await;
            shared.announce(&entry, |machine, now| machine.finished(now, outcome));
            if kept {
                // From here on it is read from the store.
                entry.change(|machine, _| {
                    machine.forget_outcome();
                    false
                });
            }
            shared.writing.send_modify(|open| *open -= 1);
            ended();
        });
    }

    /// Ends a task as `change` says, and has its end kept; whether there was anything to end.
    pub(crate) fn end(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        change: impl FnOnce(&mut Machine, u64) -> bool,
    ) -> bool {
        let ended = self.announce(entry, change);
        if ended {
            self.keep(entry);
        }
        ended
    }

    /// Ends a task as `change` says, and tells of it; whether there was anything to end.
    fn announce(&self, entry: &Entry, change: impl FnOnce(&mut Machine, u64) -> bool) -> bool {
        if !entry.change(change) {
            return false;
        }
        let status = entry.status();
        let kind = match status {
            Status::Completed => "task.completed",
            Status::Cancelled => "task.cancelled",
            _ => "task.failed",
        };
        self.tell(kind, entry, format!("{:?} is {}", entry.facts, status.as_str()));
        self.notify(entry);
        true
    }

    /// Has a task's record written as it stands.
    pub(crate) fn keep(self: &Arc<Self>, entry: &Arc<Entry>) {
        self.writing.send_modify(|open| *open += 1);
        let (shared, entry) = (Arc::clone(self), Arc::clone(entry));
        task::spawn(async move {
            shared.write(&entry, None).await;
            entry.was_kept();
            shared.writing.send_modify(|open| *open -= 1);
        });
    }

    /// Tells the hosts that listen to this task how it stands (Q6).
    pub(crate) fn notify(&self, entry: &Entry) {
        let mut whole = entry.task(self.upstreams.settings().tasks.poll);
        match entry.outcome_here() {
            Some(Ok(result)) => whole.detail = Detail::Result(result),
            Some(Err(error)) => whole.detail = Detail::Error(error),
            None => {}
        }
        let facts = &entry.facts;
        self.upstreams.subs().task_changed(&facts.id, facts.owner.as_deref(), &whole.write());
    }

    pub(crate) fn tell(&self, kind: &'static str, entry: &Entry, text: String) {
        self.events.emit(Event::new(kind, text).of_server(entry.facts.server.clone()));
    }

    /// Writes a task's record, as it stands or as it ends; whether it is on disk.
    pub(super) async fn write(&self, entry: &Entry, end: Option<&Outcome>) -> bool {
        let Some((_alone, value)) = entry.record(end).await else { return true };
        let (store, id) = (Arc::clone(&self.store), entry.facts.id.clone());
        let written = tokio::task::spawn_blocking(move || store.put(TABLE, &id, &value)).await;
        self.written(written)
    }

    /// Takes tasks out of the table and out of the store.
    pub(super) async fn forget(&self, id: &str) {
        self.table().remove(id);
        self.erase(vec![id.to_owned()]).await;
    }

    pub(super) async fn erase(&self, ids: Vec<String>) {
        let store = Arc::clone(&self.store);
        let erased = tokio::task::spawn_blocking(move || {
            let changes: Vec<_> = ids.into_iter().map(|key| Change::Remove { key }).collect();
            store.change(TABLE, &changes)
        });
        self.written(erased.await);
    }

    fn written(&self, done: Result<Result<(), StoreError>, tokio::task::JoinError>) -> bool {
        let why = match done {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let text = format!(
            "a task's record could not be written ({why}); the task goes on, but its result may not \
             outlive this daemon"
        );
        self.events.emit(Event::new("daemon.warning", text));
        false
    }

    /// Its actor is gone and it has not ended: what ran may have taken effect.
    pub(super) fn lost(self: &Arc<Self>, entry: &Arc<Entry>, why: &str) {
        let text = format!(
            "outcome unknown: {why} while {} ran as a task; it may or may not have taken effect, \
             check before trying again",
            entry.facts.what,
        );
        // As a call whose outcome is unknown is answered without a task (product.md 7).
        let result = tool_result::refused_result(Reason::OutcomeUnknown.as_str(), &text);
        self.end(entry, |machine, now| {
            let ended = machine.finished(now, Ok(result));
            if ended {
                // For lists, which show no results.
                machine.explain(format!("outcome unknown: {why}"));
            }
            ended
        });
    }
}
