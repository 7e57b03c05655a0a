//! The error -32042 of 2025-11-25: addresses have to be opened before a request can be made again
//! (client/elicitation, "URL Elicitation Required Error"). Other revisions ask instead, or are told.

use std::fmt::Write as _;

use super::{ELICITATION_ID, own_url_id};
use crate::protocol::jsonrpc::{Code, Object, RawJson, RpcError, URL_ELICITATION_REQUIRED};
use crate::protocol::model::questions::{self, Kind, Question};
use crate::protocol::revision::Revision;

/// The error that asks a host of `revision` to have these addresses opened and to make its request
/// again: for a host that declared url elicitation but has no stream on which a question could reach
/// it. `None` where the revision has no such error, or something else is asked, too.
pub fn require_urls(revision: Revision, questions: &[Question], id_hint: &str) -> Option<RpcError> {
    let urls = !questions.is_empty() && questions.iter().all(|one| one.kind() == Kind::Url);
    if revision != Revision::V2025_11_25 || !urls {
        return None;
    }
    let listed: Vec<_> = questions
        .iter()
        .zip(1_u32..)
        .map(|(question, number)| {
            let mut params = Object::read_or_empty(Some(&question.params));
            let id = own_url_id(&format!("{id_hint}-{number}"));
            params.set_default(ELICITATION_ID, RawJson::write(&id));
            params.write()
        })
        .collect();
    let mut data = Object::new();
    data.set("elicitations", RawJson::array(&listed));
    let text = "something has to be opened in a browser first; then make the request again";
    let mut error = RpcError::new(Code::InternalError, text).with_data(data.write());
    error.code = URL_ELICITATION_REQUIRED;
    Some(error)
}

/// A -32042 for a host that cannot take it: the addresses stand in its text.
#[must_use]
pub fn as_text(error: &RpcError) -> RpcError {
    let mut text = error.message.clone();
    for question in questions::url_required(error).unwrap_or_default() {
        let member = |key| question.params.member_str(key).unwrap_or_default();
        let _ = write!(
            text,
            "\n{}: open {}, then make the request again",
            member("message"),
            member("url")
        );
    }
    RpcError { code: Code::InternalError.number(), message: text, ..error.clone() }
}

/// The ids of the url questions that a host is told of by an error.
pub fn url_ids(error: &RpcError) -> Vec<String> {
    let questions = questions::url_required(error).unwrap_or_default();
    questions.iter().filter_map(|question| question.params.member_str(ELICITATION_ID)).collect()
}
