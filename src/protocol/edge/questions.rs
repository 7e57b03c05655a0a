//! Questions and what is said to them: elicitation, sampling and roots, each in the words of every
//! revision.
//!
//! In both roles: a question of a legacy upstream is lifted and its reply is downgraded, a question
//! to a legacy host is downgraded and its reply is lifted. What 2026-07-28 says (client/elicitation,
//! client/sampling, client/roots) is the newest shape; there a question is an entry of
//! `inputRequests` and no request of its own.

use super::methods::{Direction, Standing, standing};
use crate::protocol::jsonrpc::{Method, Object, RawJson};
use crate::protocol::model::questions::{Kind, Question};
use crate::protocol::revision::Revision;

/// A revision has no way to ask this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("protocol revision {revision} has no way to ask for {what}")]
pub struct Cannot {
    /// The revision of who would be asked.
    pub revision: Revision,
    /// What it does not have, for texts.
    pub what: &'static str,
}

/// Reads a question that an upstream of `revision` asks into newest shape. Its method is one of the
/// three of [`Question`].
pub fn lift_question(_revision: Revision, method: Method, params: Option<&RawJson>) -> Question {
    let mut object = Object::read_or_empty(params);
    // 2026-07-28 has no ids of questions (E-03), nor tasks of hosts.
    object.remove("elicitationId");
    object.remove("task");
    Question { method, params: object.write() }
}

/// Spells a question for a host of `revision`. `id_hint` makes the `elicitationId` of a url question
/// where the revision wants one: `mcpx-<id_hint>` (E-03).
pub fn downgrade_question(
    revision: Revision,
    question: &Question,
    id_hint: &str,
) -> Result<RawJson, Cannot> {
    let cannot = |what| Cannot { revision, what };
    let method = question.method.as_str();
    if standing(revision, method, Direction::ToClient) != Standing::Known {
        return Err(cannot("this"));
    }
    let mut object = Object::read_or_empty(Some(&question.params));
    match question.kind() {
        Kind::Url if revision < Revision::V2025_11_25 => return Err(cannot("a url to be opened")),
        Kind::Url => {
            object.set_default("elicitationId", RawJson::write(&format!("mcpx-{id_hint}")));
        }
        Kind::Form if revision < Revision::V2025_11_25 => {
            object.remove("mode");
        }
        Kind::Form | Kind::Sampling | Kind::Roots => {}
    }
    Ok(object.write())
}

/// Reads what a host of `revision` said to `question` into newest shape.
pub fn lift_reply(_revision: Revision, _question: &Question, result: RawJson) -> RawJson {
    result
}

/// Spells a newest-shape reply to `question` for the upstream of `revision` that asked it.
pub fn downgrade_reply(_revision: Revision, _question: &Question, result: &RawJson) -> RawJson {
    result.clone()
}
