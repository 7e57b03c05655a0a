//! How a caller is told that mcpx, not the upstream, ended its request (product.md 7).

use super::content;
use super::keys::REASON;
use crate::protocol::jsonrpc::{Code, Method, Object, RawJson, RpcError};
use crate::protocol::session::{Limit, Outcome};

/// Why, as a caller may act on it. Stands in `_meta["dev.mcpx/reason"]` of a tool result and in
/// `data.reason` of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The request was written and no answer came; it may have had its effect.
    OutcomeUnknown,
    /// A queue or a number of places is full.
    Busy,
    /// A time limit struck.
    Timeout,
    /// A size limit struck.
    TooLarge,
    /// The server is parked, starting, gone or unknown.
    Unavailable,
    /// The upstream's answer was none (U-27).
    InvalidResult,
    /// The answer needs something that this host has not declared.
    MissingCapability,
    /// Filters or policy forbid it.
    Denied,
}

impl Reason {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Busy => "busy",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Unavailable => "unavailable",
            Self::InvalidResult => "invalid_result",
            Self::MissingCapability => "missing_capability",
            Self::Denied => "denied",
        }
    }
}

/// A tool result with `isError` and one text: something the model can act on (H-63).
pub fn tool_error(text: &str) -> RawJson {
    tool_error_with(text, None)
}

fn tool_error_with(text: &str, meta: Option<RawJson>) -> RawJson {
    let mut result = Object::new();
    result.set("content", RawJson::array([&content::text(text)]));
    result.set("isError", RawJson::write(&true));
    if let Some(meta) = meta {
        result.set("_meta", meta);
    }
    result.write()
}

/// The outcome of a request of `method` that mcpx itself ends: for a tool call a result that the
/// model reads, for any other method -32603.
pub fn tell(method: &Method, reason: Reason, text: &str) -> Outcome {
    tell_with(method, reason, text, None)
}

/// [`tell`] for a limit, whose setting and value are named beside the reason.
pub fn tell_limit(method: &Method, reason: Reason, text: &str, limit: &Limit) -> Outcome {
    tell_with(method, reason, text, Some(limit))
}

fn tell_with(method: &Method, reason: Reason, text: &str, limit: Option<&Limit>) -> Outcome {
    let named = limit.map(|limit| {
        let mut object = Object::new();
        object.set("setting", RawJson::write(limit.setting));
        object.set("value", RawJson::write(limit.value.as_str()));
        object.write()
    });
    let mut members = Object::new();
    if method.as_str() == "tools/call" {
        members.set(REASON, RawJson::write(reason.as_str()));
        if let Some(named) = named {
            members.set("dev.mcpx/limit", named);
        }
        return Ok(tool_error_with(text, Some(members.write())));
    }
    members.set("reason", RawJson::write(reason.as_str()));
    if let Some(named) = named {
        members.set("limit", named);
    }
    Err(RpcError::new(Code::InternalError, text).with_data(members.write()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_calls_are_told_by_a_result() {
        let limit = Limit { setting: "call.idle_timeout", value: "5m".to_owned() };
        let call = Method::known("tools/call");
        let told = tell_limit(&call, Reason::Timeout, "too \"slow\"", &limit).unwrap();
        assert_eq!(
            told.as_str(),
            r#"{"content":[{"type":"text","text":"too \"slow\""}],"isError":true,"_meta":{"dev.mcpx/reason":"timeout","dev.mcpx/limit":{"setting":"call.idle_timeout","value":"5m"}}}"#
        );
        let told = tell(&Method::known("tools/list"), Reason::OutcomeUnknown, "lost").unwrap_err();
        assert_eq!(told.code, -32603);
        assert_eq!(told.data.unwrap().as_str(), r#"{"reason":"outcome_unknown"}"#);
    }
}
