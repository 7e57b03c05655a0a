//! How a call ended, for those who count and look back.

use memchr::memmem;

use crate::actors::dispatch::Told;
use crate::actors::upstreams::Reason;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::{questions, tool_result};
use crate::protocol::session::Outcome;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With a result.
    Done,
    /// With a result in which the tool says that it failed.
    ToolError,
    /// With an error of the protocol.
    Error,
    /// With a question to its host, which makes the call again.
    Asked,
    /// Refused: a limit on how much goes on at once.
    Busy,
    /// A limit of time struck.
    Timeout,
    /// Nothing was sent: the server is parked, stopped, does not start, or its connection ended first.
    Unavailable,
    /// It was sent, and its connection ended before the answer.
    OutcomeUnknown,
    /// Somebody had to agree, and nobody did.
    NotConfirmed,
    /// Its caller gave it up, or left.
    Cancelled,
}

impl Ending {
    /// All of them, in the order in which they are counted and shown.
    pub const ALL: [Self; 10] = [
        Self::Done,
        Self::ToolError,
        Self::Error,
        Self::Asked,
        Self::Busy,
        Self::Timeout,
        Self::Unavailable,
        Self::OutcomeUnknown,
        Self::NotConfirmed,
        Self::Cancelled,
    ];

    /// The word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::ToolError => "tool_error",
            Self::Error => "error",
            Self::Asked => "asked",
            Self::Busy => "busy",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::NotConfirmed => "not_confirmed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it is a failure, for those who look for failures.
    pub(super) const fn is_failure(self) -> bool {
        !matches!(self, Self::Done | Self::Asked)
    }

    /// Whether its length says how long the server took.
    pub(super) const fn is_timed(self) -> bool {
        !matches!(self, Self::Asked | Self::Cancelled | Self::NotConfirmed)
    }

    /// Of what the caller is told; `may_ask` where a question may be among it.
    pub(crate) fn of(outcome: &Result<Outcome, Told>, may_ask: bool) -> Self {
        match outcome {
            Ok(outcome) => Self::of_outcome(outcome, may_ask),
            Err(told) => Self::of_reason(told.reason),
        }
    }

    /// Of what an upstream says, or mcpx in its words.
    pub(crate) fn of_outcome(outcome: &Outcome, may_ask: bool) -> Self {
        match outcome {
            Ok(result) => Self::of_result(result, may_ask),
            Err(_) => Self::Error,
        }
    }

    /// Of a call that mcpx answers itself.
    pub(crate) const fn of_reason(reason: Reason) -> Self {
        match reason {
            Reason::Busy => Self::Busy,
            Reason::Timeout => Self::Timeout,
            Reason::Unavailable => Self::Unavailable,
            Reason::OutcomeUnknown => Self::OutcomeUnknown,
            Reason::NotConfirmed => Self::NotConfirmed,
        }
    }

    /// A search for the words comes first: most results have neither, and reading their members takes
    /// longer.
    fn of_result(result: &RawJson, may_ask: bool) -> Self {
        let has = |word: &str| memmem::find(result.as_bytes(), word.as_bytes()).is_some();
        if has("\"isError\"") && tool_result::is_error(result) {
            Self::ToolError
        } else if may_ask && has("\"input_required\"") && questions::is_asking(result) {
            Self::Asked
        } else {
            Self::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::jsonrpc::{Code, RpcError};

    #[test]
    fn tool_errors_are_no_transport_errors() {
        let result = |text: &'static str| Ok(Ok(RawJson::parse(text.as_bytes().into()).unwrap()));
        for (outcome, ending) in [
            (result(r#"{"content":[]}"#), Ending::Done),
            (result(r#"{"content":[],"isError":false}"#), Ending::Done),
            (result(r#"{"content":[{"isError":true}]}"#), Ending::Done),
            (result(r#"{"content":[],"isError":true}"#), Ending::ToolError),
            (result(r#"{"resultType":"input_required"}"#), Ending::Asked),
            (Ok(Err(RpcError::new(Code::InvalidParams, "no"))), Ending::Error),
        ] {
            assert_eq!(Ending::of(&outcome, true), ending, "{outcome:?}");
        }
        for (reason, ending) in [
            (Reason::Busy, Ending::Busy),
            (Reason::Timeout, Ending::Timeout),
            (Reason::Unavailable, Ending::Unavailable),
            (Reason::OutcomeUnknown, Ending::OutcomeUnknown),
            (Reason::NotConfirmed, Ending::NotConfirmed),
        ] {
            assert_eq!(Ending::of(&Err(Told::new(reason, "x")), false), ending);
        }
    }
}
