//! Sampling: until 2025-06-18 a message holds one block, and a model has no tools.

use crate::protocol::edge::content;
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::revision::Revision;

/// Spells the messages for a host of `revision`, one before 2025-11-25; the error is what it cannot
/// be asked for. `tools` and `toolChoice` are taken out with the other members it lacks.
pub(super) fn downgrade(revision: Revision, params: &mut Object) -> Result<(), &'static str> {
    const TOOLS: &str = "a message of a model that uses tools";
    let tools = params.get("tools").and_then(RawJson::elements).unwrap_or_default();
    if !tools.is_empty() {
        return Err(TOOLS);
    }
    let Some(messages) = params.get("messages").and_then(RawJson::elements) else { return Ok(()) };
    let mut spelled = Vec::with_capacity(messages.len());
    for message in messages {
        let Ok(mut object) = Object::read(&message) else {
            spelled.push(message);
            continue;
        };
        let content = object.get("content").cloned();
        let blocks = content.as_ref().and_then(RawJson::elements);
        let blocks = blocks.unwrap_or_else(|| content.into_iter().collect());
        if blocks.iter().any(is_about_tools) {
            return Err(TOOLS);
        }
        // Several blocks of one speaker are several messages of that speaker, one after the other.
        for block in blocks {
            object.set("content", content::block(revision, &block).unwrap_or(block));
            spelled.push(object.write());
        }
    }
    params.set("messages", RawJson::array(&spelled));
    Ok(())
}

/// Spells what a model said for an upstream of `revision`, one before 2025-11-25, which takes one
/// block; `None` where it is one that the revision has.
pub(super) fn reply(revision: Revision, result: &RawJson) -> Option<RawJson> {
    let mut object = Object::read(result).ok()?;
    let content = object.get("content")?;
    let block = match content.elements() {
        None => content::block(revision, content)?,
        Some(blocks) => match blocks.as_slice() {
            [block] => content::block(revision, block).unwrap_or_else(|| block.clone()),
            blocks => content::text(&joined(blocks)),
        },
    };
    object.set("content", block);
    Some(object.write())
}

fn is_about_tools(block: &RawJson) -> bool {
    matches!(block.member_str("type").as_deref(), Some("tool_use" | "tool_result"))
}

/// Several blocks as one text; what is no text is named.
fn joined(blocks: &[RawJson]) -> String {
    let texts = blocks.iter().map(|block| {
        let kind = block.member_str("type").unwrap_or_else(|| "unknown".to_owned());
        block.member_str("text").filter(|_| kind == "text").unwrap_or_else(|| {
            format!(
                "[{kind}: left out, because the protocol revision of this connection has one \
                 block of content in a sampled message]"
            )
        })
    });
    texts.collect::<Vec<_>>().join("\n")
}
