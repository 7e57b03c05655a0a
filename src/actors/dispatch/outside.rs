//! Results that are too long for an answer: stored, with their beginning, size and address in their place
//! (product.md 4).
//!
//! Only of mcpx's own tools: who sees servers' tools under names of their own did not ask for addresses
//! of mcpx, and may not be able to read them. What cannot be stored is given whole: a long answer is worse
//! than a short one, and better than none.

mod note;
mod parts;

use self::parts::{Limits, Parts};
use super::Context;
use crate::actors::artifacts::{NewArtifact, Stored};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions;
use crate::protocol::session::Outcome;

/// Whose result it is.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// What made it, as in "tool `t` of server `s`".
    pub(crate) maker: String,
    /// What its parts are called, before an ending such as `.json`.
    pub(crate) name: String,
    /// The session that it is made for (`TaskSide::session`).
    pub(crate) owner: Option<String>,
}

/// An outcome as it is to be given: [`keep_outside`] where it is a result that is too long.
pub(crate) async fn within(
    context: &Context,
    outcome: Outcome,
    origin: impl FnOnce() -> Origin,
) -> Outcome {
    let limit = context.settings().call.result_limit;
    match outcome {
        Ok(result) if limit > 0 && result.len() > limit && !questions::is_asking(&result) => {
            Ok(Box::pin(keep_outside(context, result, origin())).await)
        }
        other => other,
    }
}

/// The result as it is to be given, newest shape. For results of more than `call.result_limit` bytes,
/// where that is not 0; who calls this has looked.
pub(crate) async fn keep_outside(context: &Context, result: RawJson, origin: Origin) -> RawJson {
    let settings = context.settings();
    let limits = Limits {
        whole: settings.call.result_limit,
        head: settings.call.result_head,
        media: settings.call.media_limit,
    };
    let (whole, name) = (result.clone(), origin.name.clone());
    // Writing megabytes anew takes its time, in which calls are to go on.
    let split = tokio::task::spawn_blocking(move || parts::split(&whole, &name, limits)).await;
    let Ok(Some(Parts { mut rest, pieces, head })) = split else { return result };
    let mut stored: Vec<Stored> = Vec::new();
    for piece in pieces {
        let new = NewArtifact {
            name: piece.name,
            kind: piece.kind,
            bytes: piece.bytes,
            maker: origin.maker.clone(),
            owner: origin.owner.clone(),
        };
        match context.artifacts.write(new).await {
            Ok(kept) => stored.push(kept),
            // What was stored of it goes in its time.
            Err(_) => return result,
        }
    }
    let mut blocks = rest.get("content").and_then(RawJson::elements).unwrap_or_default();
    blocks.extend(note::blocks(&stored, head, &settings));
    rest.set("content", RawJson::array(&blocks));
    rest.write()
}
