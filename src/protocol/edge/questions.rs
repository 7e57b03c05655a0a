//! Questions and what is said to them: elicitation, sampling and roots, in the words of every
//! revision.
//!
//! In both roles: a question of a legacy upstream is lifted and its reply downgraded, a question to
//! a legacy host is downgraded and its reply lifted. What 2026-07-28 says (client/elicitation,
//! client/sampling, client/roots) is the newest shape; there a question is an entry of
//! `inputRequests` and no request of its own. Two things of a legacy upstream's question that
//! 2026-07-28 lacks are carried inside all the same and taken out on the way to a modern host alone,
//! so that a host of the upstream's own revision is not poorer for mcpx: the id of a url question
//! (E-03) and `_meta`.

mod forms;
mod sampling;
mod urls;

use super::fields::{Shape, spell, spell_open};
use super::keys::PROGRESS_TOKEN;
use super::methods::{Direction, Standing, standing};
use crate::protocol::jsonrpc::{Code, Method, Object, RawJson, RpcError};
use crate::protocol::model::questions::{Kind, Question};
use crate::protocol::model::tasks::RELATED;
use crate::protocol::revision::Revision;

pub use urls::{as_text, url_ids};

/// The id of a url question, in 2025-11-25 alone.
pub(super) const ELICITATION_ID: &str = "elicitationId";

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
/// three that [`Question`] has.
pub fn lift_question(revision: Revision, method: Method, params: Option<&RawJson>) -> Question {
    let mut object = Object::read_or_empty(params);
    if revision.is_modern() {
        return Question { method, params: object.write() };
    }
    // mcpx declares no tasks of its own to upstreams, and speaks of its own progress to nobody.
    object.remove("task");
    if let Some(Ok(mut meta)) = object.get("_meta").map(Object::read) {
        meta.retain(|key, _| key != PROGRESS_TOKEN && key != RELATED);
        if meta.is_empty() {
            object.remove("_meta");
        } else {
            object.set("_meta", meta.write());
        }
    }
    if revision < Revision::V2025_11_25 {
        forms::lift(&mut object);
    }
    Question { method, params: object.write() }
}

/// Spells a question for a host of `revision`: the parameters of a request, for a modern host those
/// of an entry of `inputRequests`. `id_hint` makes the id of a url question where the revision wants
/// one and there is none: `mcpx-<id_hint>` (E-03).
pub fn downgrade_question(
    revision: Revision,
    question: &Question,
    id_hint: &str,
) -> Result<RawJson, Cannot> {
    let cannot = |what| Cannot { revision, what };
    let kind = question.kind();
    let (shape, what) = match kind {
        Kind::Form => (Shape::ElicitParams, "a form to be filled in"),
        Kind::Url => (Shape::ElicitParams, "an address to be opened"),
        Kind::Sampling => (Shape::SamplingParams, "a message of a model"),
        Kind::Roots => (Shape::RootsParams, "the roots of a host"),
    };
    let mut object = Object::read_or_empty(Some(&question.params));
    if revision.is_modern() {
        spell_open(shape, revision, &mut object);
        return Ok(object.write());
    }
    if standing(revision, question.method.as_str(), Direction::ToClient) != Standing::Known {
        return Err(cannot(what));
    }
    match kind {
        Kind::Url if revision < Revision::V2025_11_25 => return Err(cannot(what)),
        Kind::Url => object.set_default(ELICITATION_ID, RawJson::write(&own_url_id(id_hint))),
        Kind::Form if revision < Revision::V2025_11_25 => forms::downgrade(&mut object),
        Kind::Sampling if revision < Revision::V2025_11_25 => {
            sampling::downgrade(revision, &mut object).map_err(cannot)?;
        }
        Kind::Form | Kind::Sampling | Kind::Roots => {}
    }
    spell_open(shape, revision, &mut object);
    Ok(object.write())
}

/// E-03: what a url question is called that has no name of its own.
fn own_url_id(hint: &str) -> String {
    format!("mcpx-{hint}")
}

/// Whether `result`, in newest shape, is a reply to `question` at all; the error says what is wrong,
/// for whoever asked.
pub fn check_reply(question: &Question, result: &RawJson) -> Result<(), RpcError> {
    let fault = match question.kind() {
        Kind::Form | Kind::Url => {
            let action = result.member_str("action").unwrap_or_default();
            let known = matches!(action.as_str(), "accept" | "decline" | "cancel");
            (!known).then_some("its `action` is none of accept, decline and cancel")
        }
        Kind::Sampling => {
            let whole = ["role", "content", "model"].iter().all(|key| result.member(key).is_some());
            (!whole).then_some("it lacks one of `role`, `content` and `model`")
        }
        Kind::Roots => {
            let list = result.member("roots").and_then(|roots| roots.elements());
            list.is_none().then_some("it has no list of `roots`")
        }
    };
    fault.map_or(Ok(()), |fault| {
        let method = &question.method;
        let text = format!("what the host said to {method} is no answer to it: {fault}");
        Err(RpcError::new(Code::InternalError, text))
    })
}

/// Reads what a host of `revision` said to `question` into newest shape. The fields that an accepted
/// form leaves out get their defaults (U-37).
pub fn lift_reply(revision: Revision, question: &Question, result: RawJson) -> RawJson {
    let kind = question.kind();
    let shape = match kind {
        Kind::Form | Kind::Url => Shape::ElicitReply,
        Kind::Roots => Shape::RootsReply,
        Kind::Sampling => return result,
    };
    let Ok(mut object) = Object::read(&result) else { return result };
    let mut changed = spell_open(shape, Revision::NEWEST, &mut object);
    if kind != Kind::Roots && object.get("content").is_some_and(RawJson::is_null) {
        object.remove("content");
        changed = true;
    }
    if kind == Kind::Form {
        changed |= forms::lift_reply(revision, &question.params, &mut object);
    }
    if changed { object.write() } else { result }
}

/// What a modern host brought in answer to `question`, as [`lift_reply`] reads a reply; an error where it
/// is no answer at all.
pub fn modern_reply(question: &Question, answer: RawJson) -> Result<RawJson, RpcError> {
    check_reply(question, &answer)?;
    Ok(lift_reply(Revision::NEWEST, question, answer))
}

/// Spells a newest-shape reply to `question` for the upstream of `revision` that asked it.
pub fn downgrade_reply(revision: Revision, question: &Question, result: &RawJson) -> RawJson {
    let spelled = match question.kind() {
        Kind::Form | Kind::Url => spell(Shape::ElicitReply, revision, result),
        Kind::Roots => spell(Shape::RootsReply, revision, result),
        Kind::Sampling if revision < Revision::V2025_11_25 => sampling::reply(revision, result),
        Kind::Sampling => None,
    };
    spelled.unwrap_or_else(|| result.clone())
}

/// The capabilities that a host of `revision` declared, as far as they answer questions, in newest
/// shape: what its revision does not define is not declared by it (E-04), and what its revision has
/// without saying so is.
pub fn lift_capabilities(revision: Revision, capabilities: &RawJson) -> RawJson {
    if revision.is_modern() {
        return capabilities.clone();
    }
    let spell = |revision, capabilities: RawJson| {
        spell(Shape::ClientCapabilities, revision, &capabilities).unwrap_or(capabilities)
    };
    let capabilities = spell(Revision::NEWEST, spell(revision, capabilities.clone()));
    if revision >= Revision::V2025_11_25 {
        return capabilities;
    }
    // Until 2025-06-18 any host that samples may be asked to include context.
    let Ok(mut object) = Object::read(&capabilities) else { return capabilities };
    let Some(Ok(mut sampling)) = object.get("sampling").map(Object::read) else {
        return capabilities;
    };
    sampling.set_default("context", RawJson::empty_object());
    object.set("sampling", sampling.write());
    object.write()
}

/// `inputRequests` as a modern host may be sent them (E-03, H-62); `None` where nothing changes.
pub(super) fn entries(requests: &RawJson) -> Option<RawJson> {
    let mut object = Object::read(requests).ok()?;
    let mut changes = Vec::new();
    for (key, request) in object.iter() {
        let Ok(mut entry) = Object::read(request) else { continue };
        let shape = match entry.get_str("method").as_deref() {
            Some("elicitation/create") => Shape::ElicitParams,
            Some("sampling/createMessage") => Shape::SamplingParams,
            _ => continue,
        };
        let Some(params) = entry.get("params") else { continue };
        if let Some(params) = spell(shape, Revision::NEWEST, params) {
            entry.set("params", params);
            changes.push((key.to_owned(), entry.write()));
        }
    }
    if changes.is_empty() {
        return None;
    }
    for (key, entry) in changes {
        object.set(key, entry);
    }
    Some(object.write())
}

#[cfg(test)]
mod tests;
