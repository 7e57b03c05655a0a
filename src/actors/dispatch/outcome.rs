//! How a caller is told what became of a call (product.md 7).

use std::fmt;

use super::Context;
use crate::actors::inside::audit::AuditId;
use crate::actors::upstreams::{CallWant, Reason, Refused};
use crate::protocol::jsonrpc::{Code, RawJson, RpcError};
use crate::protocol::model::{answers, tool_result};
use crate::protocol::session::{Answer, Outcome};

/// Why there is no answer of the upstream's own, in words and as a reason.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// The machine-readable reason.
    pub(crate) reason: Reason,
    /// What happened, why, and what to do next.
    pub(crate) text: String,
    /// The record of the call, where there is one.
    pub(crate) audit: Option<AuditId>,
}

impl From<Refused> for Told {
    fn from(refused: Refused) -> Self {
        Self::new(refused.reason, refused.text)
    }
}

impl Told {
    /// For this reason.
    pub(crate) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into(), audit: None }
    }

    /// A tools/call result: models read it, so it is a result with `isError` and not an error.
    pub(crate) fn as_tool_result(&self) -> RawJson {
        let audit = self.audit.map(|id| id.to_string());
        tool_result::refused_call(self.reason.as_str(), &self.text, audit.as_deref())
    }

    /// The answer to any other request.
    pub(crate) fn as_error(&self) -> RpcError {
        let audit = self.audit.map(|id| id.to_string());
        answers::refused_call(self.reason.as_str(), &self.text, audit.as_deref())
    }
}

/// Asks an upstream something that it may not answer with questions; `what` names it in texts.
pub(crate) async fn ask(context: &Context, what: &str, want: CallWant) -> Result<Outcome, Told> {
    let answered = context.upstreams.call_unattended(want).await;
    answer_outcome(&what, false, answered)
}

/// Sorts an upstream's answer into its own words (a result or an error) and ours.
///
/// `what` names the call in texts, as in "tool search of server github"; `is_tool` says whether it is
/// one of a tool. What it asks where it may not reaches nobody.
pub(super) fn answer_outcome(
    what: &dyn fmt::Display,
    is_tool: bool,
    answered: Result<Answer, Refused>,
) -> Result<Outcome, Told> {
    let told = |reason, text: String| Err(Told::new(reason, text));
    match answered.map_err(Told::from)? {
        Answer::Complete(result) => Ok(Ok(result)),
        Answer::Error(error) => Ok(Err(error)),
        Answer::InputRequired(_) => told(Reason::Unavailable, may_not_ask(what)),
        Answer::Task(_) => {
            let text = format!(
                "{what} answered with a task although none was asked for; its outcome is not known"
            );
            told(Reason::OutcomeUnknown, text)
        }
        Answer::Invalid(why) => Ok(Err(RpcError::new(
            Code::InternalError,
            format!("{what} gave no valid result: {why}"),
        ))),
        Answer::Lost { written: true, why } => {
            let text = format!(
                "outcome unknown: the connection to {what} ended ({why}) after the request was \
                 sent and before it was answered; it may or may not have taken effect, check \
                 before trying again"
            );
            told(Reason::OutcomeUnknown, text)
        }
        Answer::Lost { written: false, why } => {
            let text = format!(
                "{what} was not called: its connection ended ({why}) before the request was sent; \
                 nothing has happened, it is safe to try again"
            );
            told(Reason::Unavailable, text)
        }
        Answer::TimedOut(limit) => {
            let text = format!(
                "{what} did not answer within {} (setting {}); it was told to cancel, but may \
                 have taken effect",
                limit.value, limit.setting
            );
            told(Reason::Timeout, text)
        }
        Answer::TooLarge { bytes, limit } => {
            let text = format!(
                "the answer of {what} has {bytes} bytes, more than the {limit} that mcpx accepts \
                 (setting link.max_frame); it was thrown away, though the request itself was done"
            );
            Ok(if is_tool {
                Ok(tool_result::refused_result("too_large", &text))
            } else {
                Err(answers::refused("too_large", text))
            })
        }
    }
}

fn may_not_ask(what: &dyn fmt::Display) -> String {
    format!(
        "{what} was answered with a question where the protocol has none; have the server fixed, \
         nothing was changed by mcpx"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F23: what was written is unknown; what was not is safe to repeat.
    #[test]
    fn f23_the_two_kinds_of_lost_calls_are_told_apart() {
        let lost = |written| Answer::Lost { written, why: "exited with status 1".to_owned() };
        let unknown = answer_outcome(&"tool `t`", true, Ok(lost(true))).unwrap_err();
        assert_eq!(unknown.reason, Reason::OutcomeUnknown);
        assert!(unknown.text.starts_with("outcome unknown: "), "{}", unknown.text);
        let safe = answer_outcome(&"tool `t`", true, Ok(lost(false))).unwrap_err();
        assert_eq!(safe.reason, Reason::Unavailable);
    }
}
