//! Whom a request's upstream may ask, and how.

use crate::actors::exec::ScriptLine;
use crate::actors::host::line::HostLine;
use crate::actors::tasks::{Handover, HostAsked};
use crate::protocol::jsonrpc::RawJson;

/// Who answers what an upstream asks while it works on a request.
#[derive(Debug, Clone)]
pub enum Answers {
    /// The command line, `/v1`, mcpx itself: only those who answer at the broker.
    Nobody,
    /// A modern host, by an `input_required` result and another request (2026-07-28, mrtr page).
    Inline {
        /// What it declared on this request that can answer questions, `{}` where that is nothing.
        declared: RawJson,
    },
    /// A legacy host, by a request of our own while its request is open.
    Line {
        /// To that host, on the stream of that request.
        line: HostLine,
        /// What it declared at its handshake that can answer questions, in newest shape.
        declared: RawJson,
    },
    /// Of a call that may become a task: whom its [`Handover::before`] says, and once it is a task
    /// whoever follows that, by [`Handover::put`]. [`Answers::present`] says which.
    Task(Handover),
    /// Of a call that a script makes: whom the request of its run may ask, where that cannot be asked
    /// by the call itself.
    Script {
        /// To the run.
        line: ScriptLine,
        /// What the host of the run declared.
        declared: RawJson,
    },
    /// Who calls by hand and is told of the call's questions by the broker: any elicitation (D-08).
    Told {
        /// That.
        declared: RawJson,
    },
}

impl Answers {
    /// Whom the upstream may ask at this moment: [`Answers::Task`] only where the call is a task by now.
    /// To be asked anew for each question.
    pub fn present(&self) -> &Self {
        match self {
            Self::Task(handover) if !handover.is_task() => handover.before(),
            other => other,
        }
    }

    /// Keeps the call from becoming a task, where it may, until what this returns falls: its host is
    /// asked something meanwhile.
    pub(crate) fn asks_host(&self) -> Option<HostAsked> {
        match self {
            Self::Task(handover) if !handover.is_task() => Some(handover.asks_host()),
            _ => None,
        }
    }

    /// The host's declaration, in newest shape, as far as it is of use to an upstream.
    pub fn declared(&self) -> Option<&RawJson> {
        match self {
            Self::Nobody => None,
            Self::Inline { declared }
            | Self::Line { declared, .. }
            | Self::Script { declared, .. }
            | Self::Told { declared } => Some(declared),
            Self::Task(handover) => handover.before().declared(),
        }
    }
}
