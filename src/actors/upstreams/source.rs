//! How a call came to mcpx: for the audit, metrics and traces. Decides nothing.

use std::sync::Arc;

use crate::protocol::jsonrpc::Id;
use crate::protocol::model::trace_context::TraceContext;

/// Which way a call came in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Via {
    /// mcpx itself wants it.
    #[default]
    Mcpx,
    /// A host over stdio.
    Stdio,
    /// A host over HTTP.
    Http,
    /// The command line, or another program at `/v1`.
    Control,
}

impl Via {
    /// The word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mcpx => "mcpx",
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Control => "control",
        }
    }
}

/// On whose behalf a connection speaks, as far as that is known for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The user of the operating system at the other end of the control socket, by number: the kernel
    /// says it.
    User(u32),
    /// Whoever has the token of hosts over HTTP.
    Bearer,
}

/// Where a call comes from. A clone costs a count.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Which way.
    pub via: Via,
    /// Whose connection it came over; `None` where anybody may speak (`http.open`), and for mcpx itself.
    pub who: Option<Who>,
    /// Whether a script made it, on behalf of who runs the script.
    pub script: bool,
    /// The name under which the host sees the tool, where that is one of its own and calls are recorded.
    pub named: Option<Arc<str>>,
    /// The host's own id of the request that led to it.
    pub request: Option<Id>,
    /// What it is a part of, where traces are sent (`otel.endpoint`).
    pub span: Option<TraceContext>,
}

impl Source {
    /// Came this way.
    pub fn new(via: Via) -> Self {
        Self { via, ..Self::default() }
    }

    /// For this request of a host.
    #[must_use]
    pub fn of_request(via: Via, id: &Id) -> Self {
        Self { via, request: Some(id.clone()), ..Self::default() }
    }
}
