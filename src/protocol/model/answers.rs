//! Errors and results that mcpx gives itself, beside those of tools.

use serde_json::json;

use super::questions::{Kind, Question};
use crate::protocol::jsonrpc::{Code, Object, RawJson, RpcError};

/// mcpx, and not an upstream, answers; `reason` is the word for programs (product.md 7).
pub fn refused(reason: &str, text: impl Into<String>) -> RpcError {
    refused_call(reason, text, None)
}

/// The same of a call that is recorded: with its id in the audit (O-03).
pub fn refused_call(reason: &str, text: impl Into<String>, audit: Option<&str>) -> RpcError {
    let mut data = Object::new();
    data.set("reason", RawJson::write(reason));
    if let Some(id) = audit {
        data.set("audit", RawJson::write(id));
    }
    RpcError::new(Code::InternalError, text).with_data(data.write())
}

/// There is no resource at this address (R-03).
pub fn no_resource(address: &str, text: impl Into<String>) -> RpcError {
    at_address(address, RpcError::new(Code::ResourceNotFound, text))
}

/// An error that is about the resource at this address, as the host spelled it.
#[must_use]
pub fn at_address(address: &str, error: RpcError) -> RpcError {
    error.with_data(RawJson::write(&json!({ "uri": address })))
}

/// A URI that more than one server may mean; it is missing at none, so that it is not said to be
/// (F46).
pub fn ambiguous(addresses: &[String], text: impl Into<String>) -> RpcError {
    let data = RawJson::write(&json!({ "candidates": addresses }));
    RpcError::new(Code::InvalidParams, text).with_data(data)
}

/// A modern host's request cannot go on without answers to these questions, which the host has not
/// declared that it can give (2026-07-28 base page, "Per-request protocol fields").
pub fn missing_capability(what: &str, questions: &[Question]) -> RpcError {
    let asks = |kind| questions.iter().any(|question| question.kind() == kind);
    let mut required = serde_json::Map::new();
    let modes = [("form", Kind::Form), ("url", Kind::Url)].into_iter();
    let modes: serde_json::Map<_, _> = modes
        .filter(|(_, kind)| asks(*kind))
        .map(|(mode, _)| (mode.to_owned(), json!({})))
        .collect();
    if !modes.is_empty() {
        required.insert("elicitation".to_owned(), modes.into());
    }
    if asks(Kind::Sampling) {
        let tools = questions.iter().any(Question::wants_tools);
        let capability = if tools { json!({ "tools": {} }) } else { json!({}) };
        required.insert("sampling".to_owned(), capability);
    }
    if asks(Kind::Roots) {
        required.insert("roots".to_owned(), json!({}));
    }
    let names = required.keys().cloned().collect::<Vec<_>>().join(", ");
    let text = format!(
        "{what} asks a question before it goes on, and the host has not declared that it can \
         answer: {names}"
    );
    let data = RawJson::write(&json!({ "requiredCapabilities": required }));
    RpcError::new(Code::MissingCapability, text).with_data(data)
}

/// A `requestState` that is refused; the text says why (2026-07-28, basic/patterns/mrtr).
pub fn bad_state(text: impl Into<String>) -> RpcError {
    let data = RawJson::write(&json!({ "reason": BAD_STATE }));
    RpcError::new(Code::InvalidParams, text).with_data(data)
}

/// Whether this is an error about the request itself that only its sender can mend, and no model: a
/// `requestState` that is refused, a capability that was not declared.
pub fn is_for_host(error: &RpcError) -> bool {
    let reason = error.data.as_ref().and_then(|data| data.member_str("reason"));
    error.code == Code::MissingCapability.number()
        || (error.code == Code::InvalidParams.number() && reason.as_deref() == Some(BAD_STATE))
}

const BAD_STATE: &str = "request_state";

/// A result of `completion/complete` that suggests nothing.
pub fn no_completion() -> RawJson {
    RawJson::write(&json!({ "completion": { "values": [] } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-03, R-04, product.md 7: each says what programs go by.
    #[test]
    fn r03_answers_carry_their_data() {
        let data = |error: RpcError| (error.code, error.data.unwrap().as_str().to_owned());
        assert_eq!(data(refused("busy", "x")), (-32603, r#"{"reason":"busy"}"#.to_owned()));
        assert_eq!(data(no_resource("a:1", "x")), (-32002, r#"{"uri":"a:1"}"#.to_owned()));
        let two = ["a:1".to_owned(), "b:1".to_owned()];
        assert_eq!(data(ambiguous(&two, "x")).1, r#"{"candidates":["a:1","b:1"]}"#);
        assert_eq!(no_completion().as_str(), r#"{"completion":{"values":[]}}"#);
    }

    /// 2026-07-28 base page: the error lists what is missing as a host would declare it.
    #[test]
    fn e04_missing_capabilities_are_listed() {
        let ask = |method: &str, params: &str| {
            Question::new(method, Some(RawJson::parse(params.to_owned().into()).unwrap())).unwrap()
        };
        let (form, url) =
            (ask("elicitation/create", "{}"), ask("elicitation/create", r#"{"mode":"url"}"#));
        let tools = ask("sampling/createMessage", r#"{"tools":[]}"#);
        let missing = |questions: &[Question]| {
            let error = missing_capability("tool `t`", questions);
            assert_eq!((error.code, error.http_status()), (-32021, 400));
            error.data.unwrap().as_str().to_owned()
        };
        assert_eq!(
            missing(std::slice::from_ref(&form)),
            r#"{"requiredCapabilities":{"elicitation":{"form":{}}}}"#
        );
        assert_eq!(
            missing(&[url, form, tools, ask("roots/list", "{}")]),
            r#"{"requiredCapabilities":{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{"tools":{}}}}"#
        );
        assert_eq!(
            missing(&[ask("sampling/createMessage", "{}")]),
            r#"{"requiredCapabilities":{"sampling":{}}}"#
        );
    }
}
