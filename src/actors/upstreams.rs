//! Supervisor of the pools: one for each configured server.
//!
//! Children: a [`super::pool`] for each server. A pool that crashes is started again; its instances
//! have ended with it. Applies configuration differences: only servers that changed are replaced.
//! Never on the path of a call: callers go through [`UpstreamsHandle::call`], which finds a route
//! in the directory and asks a pool only where there is none.

use std::path::Path;
use std::sync::Arc;

use super::support::progress::ProgressSender;
use crate::protocol::jsonrpc::{Method, RawJson};
use crate::protocol::session::{Answer, Limit};

/// A host connection, for scope keys, labels and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u64);

/// On whose behalf something is called; decides the scope key.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The host session; `None` for the command line, `/v1` and mcpx itself.
    pub host: Option<HostId>,
    /// The project folder; the key of project scope and the base of a relative `cwd`.
    pub project: Option<Arc<Path>>,
    /// What the host calls itself, for logs (H-16, O-03).
    pub label: Arc<str>,
}

/// One call on an upstream, in newest shape.
#[derive(Debug)]
pub struct CallWant {
    /// The server, by its configuration key.
    pub server: Arc<str>,
    /// On whose behalf.
    pub caller: Caller,
    /// What is asked.
    pub method: Method,
    /// Newest-shape parameters without envelope and progress token.
    pub params: RawJson,
    /// Where progress goes, where it is wanted.
    pub progress: Option<ProgressSender>,
    /// Marked read-only or idempotent: may be sent once more although it was written (F23, U-56).
    pub repeatable: bool,
}

/// Why a call was never made; nothing reached an upstream.
#[derive(Debug, Clone)]
pub struct Refused {
    /// Its kind, as product.md 7 names it.
    pub reason: Reason,
    /// What happened, the last stderr lines where they help, and what to run.
    pub text: String,
    /// The limit that refused, where one did.
    pub limit: Option<Limit>,
}

/// `_meta["dev.mcpx/reason"]` and `data.reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A queue or in-flight limit.
    Busy,
    /// A time limit.
    Timeout,
    /// Parked, stopped, failing to start, not configured.
    Unavailable,
    /// It may have reached the upstream and no answer came.
    OutcomeUnknown,
}

impl Reason {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }
}

/// How others reach the upstreams. Cheap to clone.
#[derive(Debug, Clone)]
pub struct UpstreamsHandle {
    _inner: Arc<()>,
}

impl UpstreamsHandle {
    /// Makes one call and waits for its one outcome. Dropping the future cancels the call: the
    /// permit is freed and the upstream told (F36).
    ///
    /// A call whose connection ended before any byte of it was written is sent again on another
    /// instance, at most `call.resend_limit` times; one that was written is not, unless `repeatable`
    /// (then once).
    pub async fn call(&self, _want: CallWant) -> Result<Answer, Refused> {
        todo!()
    }
}
