//! What a host is told when there is no daemon to answer (product.md 7).

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use crate::protocol::edge;
use crate::protocol::jsonrpc::{Code, Id, Method, RawJson, Response, RpcError};
use crate::protocol::model::tool_result;
use crate::protocol::revision::Revision;
use crate::protocol::session::timers::Timer;
use crate::protocol::session::{Limit, OUTCOME_UNKNOWN};

/// What a request is to the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Runs something: a model reads its result, and it is never sent twice.
    ToolCall,
    /// The handshake.
    Initialize,
    /// Answered by whoever is there.
    Ping,
    /// Only asks: sent again to the next daemon.
    Query,
    /// Asks for something for the time to come: once more is the same as once.
    Wish,
    /// A stream of news. Asking for it again under its own id goes on with it.
    Listen,
    /// Anything else; never sent twice, because what it does is not known here.
    Other,
}

impl Kind {
    pub(super) fn of(method: &[u8]) -> Self {
        match method {
            b"tools/call" => Self::ToolCall,
            b"initialize" => Self::Initialize,
            b"ping" => Self::Ping,
            b"subscriptions/listen" => Self::Listen,
            b"logging/setLevel" | b"resources/subscribe" | b"resources/unsubscribe" => Self::Wish,
            b"server/discover"
            | b"tools/list"
            | b"prompts/list"
            | b"resources/list"
            | b"resources/templates/list" => Self::Query,
            _ => Self::Other,
        }
    }

    /// Whether asking again does no harm.
    pub(super) fn is_safe(self) -> bool {
        matches!(self, Self::Initialize | Self::Ping | Self::Query | Self::Wish | Self::Listen)
    }
}

/// Why a request is answered by the shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// It was in flight when the daemon went away.
    OutcomeUnknown,
    /// It has waited for a daemon in vain.
    Unavailable { grace: Duration, how_to_start: String },
    /// No daemon can be had before somebody mends something.
    Unreachable { why: String, how_to_start: String },
    /// The answer came, but is larger than a frame may be.
    TooLarge { bytes: usize, limit: usize },
    /// There is no room to wait.
    Full { limit: Limit, how_to_start: String },
}

impl Reason {
    fn name(&self) -> &'static str {
        match self {
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Unavailable { .. } | Self::Unreachable { .. } => "unavailable",
            Self::TooLarge { .. } => "too_large",
            Self::Full { .. } => "busy",
        }
    }

    fn limit(&self) -> Option<Limit> {
        match self {
            Self::OutcomeUnknown | Self::Unreachable { .. } => None,
            Self::TooLarge { limit, .. } => Some(Limit::count("link.max_frame", *limit)),
            Self::Unavailable { grace, .. } => {
                Some(Limit::time(Timer::ShimGrace.setting(), *grace))
            }
            Self::Full { limit, .. } => Some(limit.clone()),
        }
    }

    fn text(&self) -> String {
        let limit =
            self.limit().map(|limit| format!("{} (setting {})", limit.value, limit.setting));
        let limit = limit.unwrap_or_default();
        match self {
            Self::OutcomeUnknown => OUTCOME_UNKNOWN.to_owned(),
            Self::Unavailable { how_to_start, .. } => format!(
                "the mcpx daemon did not come back within {limit}; this request was not carried \
                 out. {how_to_start}"
            ),
            Self::Unreachable { why, how_to_start } => {
                format!("{why}; this request was not carried out. {how_to_start}")
            }
            Self::TooLarge { bytes, .. } => format!(
                "the answer has {bytes} bytes, more than {limit}; it was thrown away, though the \
                 request itself was carried out"
            ),
            Self::Full { how_to_start, .. } => format!(
                "the mcpx daemon is away and no more than {limit} may wait for it; this request was \
                 not carried out. {how_to_start}"
            ),
        }
    }
}

#[derive(Serialize)]
struct Data<'a> {
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    setting: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
}

/// The whole answer, spelled for a host of `revision`.
pub(super) fn answer(
    revision: Revision,
    id: &Id,
    kind: Kind,
    reason: &Reason,
    info: &RawJson,
) -> Bytes {
    let text = reason.text();
    let outcome = if kind == Kind::ToolCall {
        let result = tool_result::refused_result(reason.name(), &text);
        Ok(edge::downgrade_result(revision, &Method::known("tools/call"), &result, info))
    } else {
        let limit = reason.limit();
        let data = RawJson::write(&Data {
            reason: reason.name(),
            setting: limit.as_ref().map(|limit| limit.setting),
            value: limit.as_ref().map(|limit| limit.value.as_str()),
        });
        Err(RpcError::new(Code::InternalError, text).with_data(data))
    };
    Response { id: Some(id.clone()), outcome }.to_frame().to_bytes()
}
