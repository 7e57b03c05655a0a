//! Multi-round-trip requests, in newest shape: a server answers with questions, and the host asks again
//! with the answers (2026-07-28, basic/patterns/mrtr). What is asked and answered is never opened here.

use std::collections::BTreeMap;

use crate::protocol::jsonrpc::{Method, Object, RawJson, RpcError, scan};

/// One question in newest shape.
#[derive(Debug, Clone)]
pub struct Question {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: Method,
    /// Its parameters.
    pub params: RawJson,
}

/// What was said to a question: a result in newest shape, or an error.
pub type Reply = Result<RawJson, RpcError>;

/// The result of an elicitation that was closed without a decision.
pub fn cancelled() -> RawJson {
    RawJson::write(&BTreeMap::from([("action", "cancel")]))
}

/// A method that a server may ask, and what a host declares that can answer it.
const QUESTIONS: [(&str, &str); 3] = [
    ("elicitation/create", "elicitation"),
    ("sampling/createMessage", "sampling"),
    ("roots/list", "roots"),
];

/// The parameters of a request that is asked again.
const ANSWERS: [&str; 2] = ["inputResponses", "requestState"];

/// What a host declared that is of use to an upstream: its capabilities to answer questions, as they
/// came (U-35). What mcpx does not carry is not declared on.
pub fn declared_on(capabilities: &RawJson) -> RawJson {
    let mut object = Object::read_or_empty(Some(capabilities));
    object.retain(|key, value| {
        value.is_object() && QUESTIONS.iter().any(|(_, capability)| *capability == key)
    });
    if object.is_empty() { RawJson::empty_object() } else { object.write() }
}

/// Whether a server may answer this method with questions.
pub fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// Whether a result is no outcome yet.
pub fn is_asking(result: &RawJson) -> bool {
    scan::member(result.as_bytes(), "resultType") == Some(br#""input_required""#)
}

/// The first method asked in `result` that a host with these capabilities has not declared.
pub fn undeclared(result: &RawJson, capabilities: &RawJson) -> Option<String> {
    let asked = Object::read_or_empty(result.member("inputRequests").as_ref());
    let methods = asked.iter().map(|(_, question)| question.member_str("method"));
    methods.map(Option::unwrap_or_default).find(|method| {
        let known = QUESTIONS.iter().find(|(name, _)| name == method);
        known.is_none_or(|(_, capability)| capabilities.member(capability).is_none())
    })
}

/// Carries the answers of a request that is asked again over to the request that it stands for.
pub fn copy_answers(from: &RawJson, to: &mut Object) {
    for key in ANSWERS {
        if let Some(value) = from.member(key) {
            to.set(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn u35_only_what_answers_questions_is_declared_on() {
        let came = r#"{"elicitation":{"form":{},"x":1e2},"extensions":{"a/b":{}},"sampling":true,"roots":{"listChanged":true},"experimental":{}}"#;
        assert_eq!(
            declared_on(&raw(came)).as_str(),
            r#"{"elicitation":{"form":{},"x":1e2},"roots":{"listChanged":true}}"#
        );
        assert_eq!(declared_on(&raw("{}")).as_str(), "{}");
    }

    #[test]
    fn a_question_is_known_and_so_is_one_that_nobody_can_answer() {
        let asking = raw(
            r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{}}}}"#,
        );
        assert!(is_asking(&asking));
        assert!(!is_asking(&raw(r#"{"resultType":"complete","inputRequests":{}}"#)));
        assert!(!is_asking(&raw(r#"{"content":[{"resultType":"input_required"}]}"#)));
        let lacking = |capabilities| undeclared(&asking, &raw(capabilities));
        assert_eq!(lacking(r#"{"roots":{},"elicitation":{}}"#), None);
        assert_eq!(lacking(r#"{"roots":{}}"#).as_deref(), Some("elicitation/create"));
        // Only a state: nothing has to be declared.
        assert_eq!(undeclared(&raw(r#"{"requestState":"s"}"#), &raw("{}")), None);
        let odd = raw(r#"{"inputRequests":{"a":{"method":"ping"}}}"#);
        assert_eq!(undeclared(&odd, &raw(r#"{"roots":{}}"#)).as_deref(), Some("ping"));
    }

    #[test]
    fn answers_are_carried_as_they_came() {
        let mut to = Object::new();
        to.set("name", RawJson::write("t"));
        let from = r#"{"name":"x","requestState":"a\u0041\/=","inputResponses":{"k":{"n":1e2}}}"#;
        copy_answers(&raw(from), &mut to);
        assert_eq!(
            to.write().as_str(),
            r#"{"name":"t","inputResponses":{"k":{"n":1e2}},"requestState":"a\u0041\/="}"#
        );
        let mut none = Object::new();
        copy_answers(&raw(r#"{"name":"x"}"#), &mut none);
        assert!(none.is_empty());
    }
}
