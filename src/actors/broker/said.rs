//! What a person said to a question, and the reply that it makes.

use std::fmt;

use crate::control::types::QuestionKind;
use crate::protocol::jsonrpc::{Code, Object, RawJson, RpcError};
use crate::protocol::model::forms::Form;
use crate::protocol::model::questions::{self, Kind, Question, Reply};

/// What was said. An answer is a secret: not shown by `Debug`.
pub enum Said {
    /// Yes, with this.
    Accept {
        /// The fields of a form, or the whole result of another question.
        content: Option<RawJson>,
        /// One value in place of it.
        value: Option<String>,
    },
    /// No.
    Decline,
    /// Neither.
    Cancel,
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.action())
    }
}

/// What a user's refusal of a completion is answered with (client/sampling, "Error Handling").
const REJECTED: i64 = -1;

impl Said {
    /// As an elicitation's result names it.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Accept { .. } => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }

    /// The reply to `question`; an error says what does not fit.
    pub(super) fn reply(&self, kind: QuestionKind, question: &Question) -> Result<Reply, String> {
        let Self::Accept { content, value } = self else { return Ok(self.refusal(kind)) };
        match kind {
            QuestionKind::Form => {
                let form = Form::of(&question.params);
                let content = match (content, value) {
                    (Some(content), None) => form.fill(content)?,
                    (None, Some(value)) => form.fill_one(value)?,
                    (None, None) => form.fill(&RawJson::empty_object())?,
                    (Some(_), Some(_)) => return Err("give fields or one value, not both".into()),
                };
                Ok(Ok(accepted(Some(content))))
            }
            QuestionKind::Url if content.is_none() && value.is_none() => Ok(Ok(accepted(None))),
            QuestionKind::Url => {
                Err("it asks to visit its address, and nothing is sent with the answer".to_owned())
            }
            QuestionKind::Sampling => match (content, value) {
                (Some(content), None) => whole(content, &["role", "content", "model"]),
                (None, Some(text)) => Ok(Ok(written_by_a_person(text))),
                _ => Err("it asks for a completion: give its text, or the whole result".to_owned()),
            },
            QuestionKind::Roots => match (content, value) {
                (Some(content), None) => whole(content, &["roots"]),
                (None, Some(uri)) if uri.starts_with("file:///") => Ok(Ok(one_root(uri))),
                _ => {
                    Err("it asks for roots: give one as file:///…, or the whole result".to_owned())
                }
            },
        }
    }

    /// The reply of nobody, or of somebody who does not want to.
    pub(super) fn refusal(&self, kind: QuestionKind) -> Reply {
        match (kind, self) {
            (QuestionKind::Form | QuestionKind::Url, Self::Decline) => Ok(questions::declined()),
            (QuestionKind::Form | QuestionKind::Url, _) => Ok(questions::cancelled()),
            (QuestionKind::Sampling, _) => Err(RpcError {
                code: REJECTED,
                ..RpcError::new(Code::InternalError, "the user rejected it")
            }),
            (QuestionKind::Roots, _) => {
                Err(RpcError::new(Code::InternalError, "the user does not tell any roots"))
            }
        }
    }
}

/// What a question asks for, as it is shown.
pub(super) fn kind_of(question: &Question) -> QuestionKind {
    match question.kind() {
        Kind::Form => QuestionKind::Form,
        Kind::Url => QuestionKind::Url,
        Kind::Sampling => QuestionKind::Sampling,
        Kind::Roots => QuestionKind::Roots,
    }
}

fn accepted(content: Option<RawJson>) -> RawJson {
    let mut result = Object::new();
    result.set("action", RawJson::write("accept"));
    if let Some(content) = content {
        result.set("content", content);
    }
    result.write()
}

/// A result as it was given, with the members that it cannot be without.
fn whole(content: &RawJson, needed: &[&str]) -> Result<Reply, String> {
    match needed.iter().find(|key| content.member(key).is_none()) {
        Some(key) => Err(format!("the result has no `{key}`")),
        None => Ok(Ok(content.clone())),
    }
}

fn written_by_a_person(text: &str) -> RawJson {
    let mut content = Object::new();
    content.set("type", RawJson::write("text"));
    content.set("text", RawJson::write(text));
    let mut result = Object::new();
    result.set("role", RawJson::write("assistant"));
    result.set("content", content.write());
    result.set("model", RawJson::write("human"));
    result.set("stopReason", RawJson::write("endTurn"));
    result.write()
}

fn one_root(uri: &str) -> RawJson {
    let mut root = Object::new();
    root.set("uri", RawJson::write(uri));
    let mut result = Object::new();
    result.set("roots", RawJson::array([&root.write()]));
    result.write()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::jsonrpc::Method;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    fn said(
        question: &Question,
        content: Option<&str>,
        value: Option<&str>,
    ) -> Result<String, String> {
        let said = Said::Accept { content: content.map(raw), value: value.map(str::to_owned) };
        assert_eq!(format!("{said:?}"), "accept", "an answer is a secret");
        said.reply(kind_of(question), question).map(|reply| reply.unwrap().as_str().to_owned())
    }

    /// E-02: both modes, and what a person cannot mean.
    #[test]
    fn e02_replies_fit_their_questions() {
        let ask = |method, params| Question { method: Method::known(method), params: raw(params) };
        let form = ask(
            "elicitation/create",
            r#"{"requestedSchema":{"properties":{"n":{"type":"integer"}},"required":["n"]}}"#,
        );
        assert_eq!(
            said(&form, Some(r#"{"n":"4"}"#), None).unwrap(),
            r#"{"action":"accept","content":{"n":4}}"#
        );
        assert_eq!(
            said(&form, None, Some("4")).unwrap(),
            r#"{"action":"accept","content":{"n":4}}"#
        );
        assert!(said(&form, None, None).unwrap_err().contains("`n` is missing"));
        let url = ask("elicitation/create", r#"{"mode":"url","url":"https://x"}"#);
        assert_eq!(said(&url, None, None).unwrap(), r#"{"action":"accept"}"#);
        assert!(said(&url, None, Some("x")).is_err());
        let sampling = ask("sampling/createMessage", "{}");
        let text = said(&sampling, None, Some("hi")).unwrap();
        assert_eq!(raw(&text).member_str("model").as_deref(), Some("human"));
        assert!(said(&sampling, Some("{}"), None).unwrap_err().contains("`role`"));
        let roots = ask("roots/list", "{}");
        assert_eq!(
            said(&roots, None, Some("file:///a")).unwrap(),
            r#"{"roots":[{"uri":"file:///a"}]}"#
        );
        assert!(said(&roots, None, Some("/a")).is_err());
        assert_eq!(
            Said::Decline.refusal(QuestionKind::Url).unwrap().as_str(),
            r#"{"action":"decline"}"#
        );
        assert_eq!(Said::Cancel.refusal(QuestionKind::Sampling).unwrap_err().code, -1);
    }
}
