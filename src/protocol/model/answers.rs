//! Errors and results that mcpx gives itself, beside those of tools.

use serde_json::json;

use crate::protocol::jsonrpc::{Code, RawJson, RpcError};

/// mcpx, and not an upstream, answers; `reason` is the word for programs (product.md 7).
pub fn refused(reason: &str, text: impl Into<String>) -> RpcError {
    RpcError::new(Code::InternalError, text).with_data(RawJson::write(&json!({ "reason": reason })))
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
}
