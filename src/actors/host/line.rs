//! The line on which a legacy host is asked questions during one of its requests.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::{Semaphore, oneshot};

use super::{HostMsg, HostState};
use crate::actors::support::ask::ask;
use crate::actors::upstreams::Answers;
use crate::protocol::jsonrpc::Id;
use crate::protocol::model::answers::refused;
use crate::protocol::model::questions::{Question, Reply, unanswered};
use crate::protocol::session::host::Answered;
use crate::protocol::session::{CallKey, Limit, Peer};
use crate::transport::clock;

/// Leads to one host connection, for one of its requests. Cheap to clone.
#[derive(Clone)]
pub struct HostLine {
    host: ActorRef<HostMsg>,
    key: CallKey,
    asks: Arc<Asks>,
    /// How long a host may take (`elicit.timeout`).
    limit: Duration,
}

impl fmt::Debug for HostLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostLine({:?})", self.key)
    }
}

/// What all questions to one host connection share.
struct Asks {
    /// What the ids of its questions begin with. No id is one of the host's own, of another connection
    /// or of an earlier daemon: each connection draws its own (H-29).
    tag: String,
    last: AtomicU64,
    /// For each question that may be open at once (`elicit.max_open`).
    room: Semaphore,
    most: usize,
}

impl Asks {
    fn new(most: usize) -> Self {
        let tag = u64::from_le_bytes(clock::random());
        let room = Semaphore::new(most);
        Self { tag: format!("mcpx-{tag:016x}"), last: AtomicU64::new(0), room, most }
    }

    fn id(&self) -> Id {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        Id::text(&format!("{}-{number}", self.tag))
    }
}

impl HostLine {
    /// Asks the host and waits for what it says, in newest shape. A host that has gone, or takes
    /// longer than `elicit.timeout`, counts as one that cancelled an elicitation and could not answer
    /// anything else. Dropping the future withdraws the question.
    pub(crate) async fn put(&self, question: &Question) -> Reply {
        let Ok(_place) = self.asks.room.try_acquire() else {
            let Limit { setting, value } = Limit::count("elicit.max_open", self.asks.most);
            let text = format!(
                "the host has {value} questions open, which is the limit (setting {setting})"
            );
            return Err(refused("busy", text));
        };
        let (reply, answered) = oneshot::channel();
        let open = Open { host: self.host.clone(), ask: self.asks.id() };
        let (ask, question_put) = (open.ask.clone(), question.clone());
        let message = HostMsg::Ask { key: self.key, ask, question: question_put, reply };
        // One that has just gone drops the message, and with it the sender.
        let _ = self.host.cast(message);
        match tokio::time::timeout(self.limit, answered).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) | Err(_) => unanswered(question),
        }
    }
}

/// A question that is put to the host.
struct Open {
    host: ActorRef<HostMsg>,
    ask: Id,
}

impl Drop for Open {
    fn drop(&mut self) {
        // Where it was answered, the host has nothing to forget.
        let _ = self.host.cast(HostMsg::Unask { ask: self.ask.clone() });
    }
}

/// The questions of one host connection, from the first on.
#[derive(Default)]
pub(super) struct Questions {
    asks: Option<Arc<Asks>>,
    /// Who waits for which reply.
    waiting: HashMap<Id, oneshot::Sender<Reply>>,
}

/// The line to a host for what is about none of its requests; `None` where it cannot be had in time.
pub(crate) async fn line_of(host: &ActorRef<HostMsg>, limit: Duration) -> Option<HostLine> {
    ask(host, limit, |reply| HostMsg::GetLine { reply }).await.ok()
}

impl HostState {
    /// To the host during its request `key`, or during none.
    pub(super) fn line(&mut self, key: CallKey) -> HostLine {
        let elicit = &self.context.settings().elicit;
        let asks = self.questions.asks.get_or_insert_with(|| Arc::new(Asks::new(elicit.max_open)));
        let (host, asks) = (self.me.clone(), Arc::clone(asks));
        HostLine { host, key, asks, limit: elicit.timeout }
    }

    /// Whom the request may ask.
    pub(super) fn answers(&mut self, key: CallKey, peer: &Peer) -> Answers {
        if peer.revision.is_modern() {
            return Answers::Inline { declared: peer.declared_on() };
        }
        let Some(declared) = self.session.can_be_asked(key).cloned() else {
            return Answers::Nobody;
        };
        Answers::Line { line: self.line(key), declared }
    }

    pub(super) fn ask(
        &mut self,
        key: CallKey,
        ask: Id,
        question: &Question,
        reply: oneshot::Sender<Reply>,
    ) {
        self.questions.waiting.insert(ask.clone(), reply);
        self.session.ask(clock::now(), key, ask, question);
    }

    pub(super) fn unask(&mut self, ask: &Id) {
        if self.questions.waiting.remove(ask).is_some() {
            self.session.unask(ask);
        }
    }

    pub(super) fn answered(&mut self, Answered { ask, reply }: Answered) {
        if let Some(waiting) = self.questions.waiting.remove(&ask) {
            // Who waited may have gone.
            let _ = waiting.send(reply);
        }
    }
}
