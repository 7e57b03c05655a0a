//! One task that runs: the work of a call that nobody waits for, and the questions that it asks.
//!
//! Temporary, a child of [`super::tasks`]: ends with its work, when it is cancelled, or when its time
//! is up. The work runs in a task of its own, which ends with this actor, so that the call behind it
//! is cancelled at its server. Never looks at what a call means, and never waits for anybody.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::oneshot;

use super::support::task::{TaskGuard, spawn_guarded};
use super::tasks::{Entry, Shared, Work};
use crate::protocol::jsonrpc::{Code, RpcError};
use crate::protocol::model::questions::{Question, Reply};
use crate::protocol::session::Outcome;

/// What a task starts with.
pub(crate) struct TaskArgs {
    pub(crate) entry: Arc<Entry>,
    pub(crate) work: Work,
    pub(crate) shared: Arc<Shared>,
}

/// What a task is told.
pub(crate) enum TaskMsg {
    /// Who began it: its work may begin, or go on.
    Go,
    /// The work: it asks something; `reply` takes the answer.
    Asked { ticket: u64, question: Question, reply: oneshot::Sender<Reply> },
    /// The work: it has its answer, or wants none any more.
    Withdrawn { ticket: u64 },
    /// The work: what its server says of a task of its own.
    Says { id: Option<String>, message: Option<String> },
    /// The work: its outcome.
    Ended { outcome: Outcome },
    /// A host: answers, by the keys of their questions. Answered when they are taken.
    Answer { replies: Vec<(String, Reply)>, reply: RpcReplyPort<()> },
    /// A host or a person: give it up. Answered with whether it still ran.
    Cancel { reply: RpcReplyPort<bool> },
    /// The supervisor: it is forgotten.
    Expired,
}

impl fmt::Debug for TaskMsg {
    /// Without questions, answers and results, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Go => "Go",
            Self::Asked { .. } => "Asked",
            Self::Withdrawn { .. } => "Withdrawn",
            Self::Says { .. } => "Says",
            Self::Ended { .. } => "Ended",
            Self::Answer { .. } => "Answer",
            Self::Cancel { .. } => "Cancel",
            Self::Expired => "Expired",
        })
    }
}

/// The actor.
pub(crate) struct Task;

pub(crate) struct TaskState {
    me: ActorRef<TaskMsg>,
    entry: Arc<Entry>,
    shared: Arc<Shared>,
    /// The work, before it begins.
    work: Option<Work>,
    /// The work, from then on.
    running: Option<TaskGuard>,
    /// Questions that wait, by their keys: whose they are, and where their answers go.
    open: HashMap<String, (u64, oneshot::Sender<Reply>)>,
}

impl Actor for Task {
    type Msg = TaskMsg;
    type State = TaskState;
    type Arguments = TaskArgs;

    async fn pre_start(
        &self,
        me: ActorRef<TaskMsg>,
        args: TaskArgs,
    ) -> Result<TaskState, ActorProcessingErr> {
        let TaskArgs { entry, work, shared } = args;
        Ok(TaskState { me, entry, shared, work: Some(work), running: None, open: HashMap::new() })
    }

    async fn handle(
        &self,
        me: ActorRef<TaskMsg>,
        message: TaskMsg,
        state: &mut TaskState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            TaskMsg::Go => state.go(),
            TaskMsg::Asked { ticket, question, reply } => state.asked(ticket, question, reply),
            TaskMsg::Withdrawn { ticket } => state.withdrawn(ticket),
            TaskMsg::Says { id, message } => state.says(id.as_deref(), message),
            TaskMsg::Ended { outcome } => {
                state.shared.finish(&state.entry, outcome, move || me.stop(None));
            }
            TaskMsg::Answer { replies, reply } => {
                state.answer(replies);
                // Nobody waits any more: no fault.
                let _ = reply.send(());
            }
            TaskMsg::Cancel { reply } => {
                let cancelled = state.shared.end(&state.entry, |machine, now| {
                    machine.cancelled(now, "cancelled by request")
                });
                let _ = reply.send(cancelled);
                me.stop(None);
            }
            TaskMsg::Expired => {
                // There is no record left to write.
                state.entry.change(|machine, now| machine.cancelled(now, "its time is up"));
                me.stop(None);
            }
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _me: ActorRef<TaskMsg>,
        state: &mut TaskState,
    ) -> Result<(), ActorProcessingErr> {
        state.running = None;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<TaskMsg>,
        _event: SupervisionEvent,
        _state: &mut TaskState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children; the default would stop it.
        Ok(())
    }
}

impl TaskState {
    fn go(&mut self) {
        let Some(work) = self.work.take() else { return };
        let report = Report { me: self.me.clone(), outcome: None };
        self.running = Some(spawn_guarded(run(work, report)));
    }

    fn asked(&mut self, ticket: u64, question: Question, reply: oneshot::Sender<Reply>) {
        let mut key = None;
        self.entry.change(|machine, now| {
            key = machine.asked(now, question);
            key.is_some()
        });
        // One that has ended drops the sender, and with it the question.
        let Some(key) = key else { return };
        self.open.insert(key, (ticket, reply));
        let text = format!("{:?} waits for an answer", self.entry.facts);
        self.shared.tell("task.input_required", &self.entry, text);
        self.shared.notify(&self.entry);
    }

    fn withdrawn(&mut self, ticket: u64) {
        let key = self.open.iter().find(|(_, (open, _))| *open == ticket);
        let Some(key) = key.map(|(key, _)| key.clone()) else { return };
        self.open.remove(&key);
        self.settled(&key);
    }

    fn settled(&self, key: &str) {
        if self.entry.change(|machine, now| machine.settled(now, key)) {
            self.shared.notify(&self.entry);
        }
    }

    fn answer(&mut self, replies: Vec<(String, Reply)>) {
        for (key, said) in replies {
            let Some((_, reply)) = self.open.remove(&key) else { continue };
            self.settled(&key);
            // Who asked may have ended meanwhile.
            let _ = reply.send(said);
        }
    }

    fn says(&self, id: Option<&str>, message: Option<String>) {
        if id.is_some_and(|id| self.entry.note_upstream(id)) {
            self.shared.keep(&self.entry);
        }
        if self.entry.change(|machine, now| machine.says(now, message)) {
            self.shared.notify(&self.entry);
        }
    }
}

async fn run(work: Work, mut report: Report) {
    report.outcome = Some(work.await);
}

/// Reports the outcome of the work when it falls, also where it panicked. One that was aborted reports
/// to an actor that has ended.
struct Report {
    me: ActorRef<TaskMsg>,
    outcome: Option<Outcome>,
}

impl Drop for Report {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or_else(|| {
            let text = "mcpx failed while it worked on this task; its log has more";
            Err(RpcError::new(Code::InternalError, text))
        });
        let _ = self.me.cast(TaskMsg::Ended { outcome });
    }
}
