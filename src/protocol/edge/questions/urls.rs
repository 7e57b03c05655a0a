//! The error -32042 of 2025-11-25: addresses have to be opened before a request can be made again
//! (client/elicitation, "URL Elicitation Required Error"). Other revisions ask instead, or are told.

use super::ELICITATION_ID;
use crate::protocol::jsonrpc::{Code, RpcError};
use crate::protocol::model::questions;

/// A -32042 for a host that cannot take it: the addresses stand in its text.
#[must_use]
pub fn as_text(error: &RpcError) -> RpcError {
    let text = questions::told_urls(error);
    RpcError { code: Code::InternalError.number(), message: text, ..error.clone() }
}

/// The ids of the url questions that a host is told of by an error.
pub fn url_ids(error: &RpcError) -> Vec<String> {
    let questions = questions::url_required(error).unwrap_or_default();
    questions.iter().filter_map(|question| question.params.member_str(ELICITATION_ID)).collect()
}
