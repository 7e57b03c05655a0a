//! The line on which a legacy host is asked questions during one of its requests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::oneshot;

use super::HostMsg;
use crate::protocol::jsonrpc::Id;
use crate::protocol::model::answers;
use crate::protocol::model::questions::{self, Kind, Question, Reply};
use crate::protocol::session::CallKey;
use crate::transport::clock;

/// Leads to one host connection, for one of its requests. Cheap to clone.
#[derive(Clone)]
pub struct HostLine {
    host: ActorRef<HostMsg>,
    key: CallKey,
    ids: Arc<AskIds>,
    /// How long a host may take (`elicit.timeout`).
    limit: Duration,
}

impl fmt::Debug for HostLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostLine({:?})", self.key)
    }
}

/// The ids of what one host connection is asked. None is an id of the host's own, of another
/// connection or of an earlier daemon: each has a tag of its own (H-29).
pub(super) struct AskIds {
    tag: String,
    next: AtomicU64,
}

impl AskIds {
    /// Of a connection that starts now.
    pub(super) fn start() -> Self {
        let tag = u64::from_le_bytes(clock::random());
        Self::new(format!("mcpx-{tag:016x}"))
    }

    pub(super) fn new(tag: String) -> Self {
        Self { tag, next: AtomicU64::new(1) }
    }

    fn take(&self) -> Id {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Id::text(&format!("{}-{number}", self.tag))
    }
}

impl HostLine {
    pub(super) fn new(
        host: ActorRef<HostMsg>,
        key: CallKey,
        ids: Arc<AskIds>,
        limit: Duration,
    ) -> Self {
        Self { host, key, ids, limit }
    }

    /// Asks the host and waits for what it says, in newest shape. A host that has gone, or that takes
    /// longer than `elicit.timeout`, has cancelled an elicitation and failed at anything else.
    /// Dropping the future withdraws the question.
    pub(crate) async fn put(&self, question: &Question) -> Reply {
        let (reply, answered) = oneshot::channel();
        let ask = self.ids.take();
        let _open = Open { host: self.host.clone(), ask: ask.clone() };
        let message = HostMsg::Ask { key: self.key, ask, question: question.clone(), reply };
        if self.host.cast(message).is_err() {
            return silent(question, "the host has gone");
        }
        match tokio::time::timeout(self.limit, answered).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => silent(question, "the host has gone"),
            Err(_) => {
                silent(question, "the host has not answered in time (setting elicit.timeout)")
            }
        }
    }
}

/// What stands for the reply of a host that gives none.
fn silent(question: &Question, why: &str) -> Reply {
    match question.kind() {
        Kind::Form | Kind::Url => Ok(questions::cancelled()),
        Kind::Sampling | Kind::Roots => Err(answers::refused("unavailable", why)),
    }
}

/// A question that the host was asked, until its reply.
struct Open {
    host: ActorRef<HostMsg>,
    ask: Id,
}

impl Drop for Open {
    fn drop(&mut self) {
        // Where it was answered, the host has forgotten it.
        let _ = self.host.cast(HostMsg::Unask { ask: self.ask.clone() });
    }
}
