//! The line between a call and the task that it becomes.
//!
//! The call's work, a future of a request's task, runs on as the task's when its host is no longer to
//! wait. What it asks goes to its host before that moment, and to the task from then on.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ractor::ActorRef;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use crate::actors::task::TaskMsg;
use crate::actors::upstreams::Answers;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions::{Question, Reply, can_answer, cancelled};
use crate::protocol::session::Outcome;

/// What a task runs.
pub type Work = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Belongs to one call that may become a task. Cheap to clone.
#[derive(Clone)]
pub struct Handover(Arc<Inner>);

struct Inner {
    /// Whom the call may ask as long as it is no task.
    before: Answers,
    /// When its host has waited long enough; never where there is none.
    deadline: Option<Instant>,
    /// Its server works on a task of its own, so that waiting is of no use.
    now: Notify,
    /// Questions that its host is asked while it waits: as many as there are, it goes on waiting.
    put: watch::Sender<usize>,
    /// What it said of that last.
    said: Mutex<Said>,
    /// Its id and its actor.
    task: OnceLock<(String, ActorRef<TaskMsg>)>,
    tickets: AtomicU64,
}

#[derive(Default)]
struct Said {
    id: Option<String>,
    message: Option<String>,
}

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handover(task: {})", self.is_task())
    }
}

impl Handover {
    /// For a call that may ask `before`, and becomes a task at `deadline`.
    pub fn new(before: Answers, deadline: Option<Instant>) -> Self {
        let (now, said) = (Notify::new(), Mutex::default());
        let (task, tickets) = (OnceLock::new(), AtomicU64::new(0));
        let put = watch::Sender::new(0);
        Self(Arc::new(Inner { before, deadline, now, put, said, task, tickets }))
    }

    /// Whom the call may ask as long as it is no task.
    pub fn before(&self) -> &Answers {
        &self.0.before
    }

    /// Whether the call is a task: what it asks goes to [`Self::put`].
    pub fn is_task(&self) -> bool {
        self.0.task.get().is_some()
    }

    /// Its host is asked something on its own line, until what this returns falls.
    pub(crate) fn asks_host(&self) -> HostAsked {
        self.0.put.send_modify(|open| *open += 1);
        HostAsked(Arc::clone(&self.0))
    }

    /// Resolves when the call is to become a task. Not while its host is asked something: with the
    /// answer to its request the question would fall, and whoever fills in the form with it.
    pub async fn due(&self) {
        let deadline = async {
            match self.0.deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = deadline => {}
            () = self.0.now.notified() => {}
        }
        let mut put = self.0.put.subscribe();
        // The sender is our own.
        let _ = put.wait_for(|open| *open == 0).await;
    }

    /// The id of the task that the server works on, if it has said so before the call became one.
    pub(super) fn upstream(&self) -> Option<String> {
        self.0.said.lock().unwrap_or_else(PoisonError::into_inner).id.clone()
    }

    /// The id of the task, once there is one.
    pub fn id(&self) -> Option<&str> {
        self.0.task.get().map(|(id, _)| id.as_str())
    }

    /// Whether whoever follows the task can be asked this. Of a task of the daemon before nobody knows
    /// who that is, and so it is asked.
    pub fn can_answer(&self, question: &Question) -> bool {
        self.0.before.declared().is_none_or(|declared| can_answer(declared, question))
    }

    /// What the server says of a task of its own, newest shape, on its way to whoever looks at ours. The
    /// first makes the call a task: waiting for it is of no use.
    pub fn status(&self, task: &RawJson) {
        let (id, message) = (task.member_str("taskId"), task.member_str("statusMessage"));
        let mut said = self.0.said.lock().unwrap_or_else(PoisonError::into_inner);
        *said = Said { id: id.clone(), message: message.clone() };
        if let Some((_, task)) = self.0.task.get() {
            // A task that has ended says nothing more.
            let _ = task.cast(TaskMsg::Says { id, message });
        } else {
            self.0.now.notify_one();
        }
    }

    /// Puts a question to whoever follows the task, and waits for the answer for as long as there is a
    /// task. Dropping the future withdraws the question.
    pub async fn put(&self, question: &Question) -> Reply {
        let Some((_, task)) = self.0.task.get() else { return Ok(cancelled()) };
        let ticket = self.0.tickets.fetch_add(1, Ordering::Relaxed);
        let (reply, answered) = oneshot::channel();
        let _open = Open { task: task.clone(), ticket };
        let message = TaskMsg::Asked { ticket, question: question.clone(), reply };
        if task.cast(message).is_err() {
            return Ok(cancelled());
        }
        answered.await.unwrap_or_else(|_| Ok(cancelled()))
    }

    /// The call is the task of this actor from now on.
    pub(super) fn became(&self, id: &str, actor: ActorRef<TaskMsg>) {
        let said = std::mem::take(&mut *self.0.said.lock().unwrap_or_else(PoisonError::into_inner));
        if said.id.is_some() {
            let _ = actor.cast(TaskMsg::Says { id: said.id, message: said.message });
        }
        // There is one task for each call.
        let _ = self.0.task.set((id.to_owned(), actor));
    }
}

/// See [`Handover::asks_host`].
pub(crate) struct HostAsked(Arc<Inner>);

impl fmt::Debug for HostAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostAsked")
    }
}

impl Drop for HostAsked {
    fn drop(&mut self) {
        self.0.put.send_modify(|open| *open -= 1);
    }
}

/// A question that the task has, until its answer.
struct Open {
    task: ActorRef<TaskMsg>,
    ticket: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        // Where it was answered, the task has forgotten it.
        let _ = self.task.cast(TaskMsg::Withdrawn { ticket: self.ticket });
    }
}
