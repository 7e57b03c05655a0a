//! Results: newest shape to a host's revision, and an upstream's to newest shape.

use bytes::{BufMut, BytesMut};

use super::content;
use super::fields::{Shape, foreign_names, spell, spell_each};
use super::keys::{AUDIO, ICONS, LAST_MODIFIED, META, OUTPUT_SCHEMA, RESOURCE_LINK, SERVER_INFO};
use super::methods::is_cacheable;
use super::questions;
use super::tasks;
use crate::protocol::jsonrpc::skim::{has_escaped_ascii, has_member};
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::revision::Revision;

/// What a result of a method holds that revisions spell differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// `content` blocks and `structuredContent`.
    Call,
    /// `messages`, each with a content block.
    Messages,
    /// A list of items of this shape under this key.
    Items(&'static str, Shape),
    /// Nothing.
    Plain,
}

fn body(method: &str) -> Body {
    match method {
        // A 2025-11-25 host fetches the result of a task with `tasks/result`.
        "tools/call" | "tasks/result" => Body::Call,
        "prompts/get" => Body::Messages,
        "tools/list" => Body::Items("tools", Shape::Tool),
        "prompts/list" => Body::Items("prompts", Shape::Prompt),
        "resources/list" => Body::Items("resources", Shape::Resource),
        "resources/templates/list" => Body::Items("resourceTemplates", Shape::ResourceTemplate),
        "resources/read" => Body::Items("contents", Shape::Contents),
        _ => Body::Plain,
    }
}

/// See [`super::downgrade_result`]. Order: the body first, then the envelope, because the hints of
/// the envelope depend on `resultType` and on nothing in the body.
pub(super) fn downgrade(
    revision: Revision,
    method: &str,
    result: &RawJson,
    own_info: &RawJson,
) -> RawJson {
    if !result.is_object() {
        return result.clone();
    }
    if method.starts_with("tasks/")
        && let Some(spelled) = tasks::downgrade(revision, method, result)
    {
        return if revision.is_modern() {
            splice_stamp(spelled.as_bytes(), own_info)
        } else {
            spelled
        };
    }
    let text = result.as_bytes();
    let body = body(method);
    let hints = is_cacheable(method);
    let items = items_may_change(revision, body, text);
    if !items && !own_may_change(revision, body, hints, text) {
        return if revision.is_modern() { splice_stamp(text, own_info) } else { result.clone() };
    }
    let mut object = Object::read_or_empty(Some(result));
    let mut changed = items && spell_items(revision, body, &mut object);
    changed |= body == Body::Call && structured(revision, &mut object);
    if revision.is_modern() {
        stamp(&mut object, hints, own_info);
        return object.write();
    }
    // T-09, T-01: a call that became a task.
    if body == Body::Call && object.get_str("resultType").as_deref() == Some("task") {
        unstamp(&mut object, hints);
        return tasks::core_created(object);
    }
    if unstamp(&mut object, hints) || changed { object.write() } else { result.clone() }
}

/// See [`super::lift_result`].
pub(super) fn lift(revision: Revision, method: &str, result: RawJson) -> RawJson {
    if matches!(method, "tasks/get" | "tasks/cancel") && !revision.is_modern() {
        // One that is none is judged by whoever asked for it.
        return tasks::lift_task(revision, &result).map_or(result, |task| task.write());
    }
    let named = has_member(result.as_bytes(), |name, _| name == b"resultType");
    if named == revision.is_modern() {
        return result;
    }
    let Ok(mut object) = Object::read(&result) else { return result };
    if named {
        // Legacy results have no `resultType`: a member of that name is the server's own and must
        // not be taken for the real one further on.
        if object.remove("resultType").is_some() { object.write() } else { result }
    } else {
        // A result without one is complete (2026-07-28 base page); newest shape says so.
        object.set_default("resultType", RawJson::write("complete"));
        object.write()
    }
}

/// Whether a member of the result itself may have to go or change. A wrong `true` costs time only,
/// here and below.
fn own_may_change(revision: Revision, body: Body, hints: bool, text: &[u8]) -> bool {
    let modern = revision.is_modern();
    if modern && hints {
        return true;
    }
    has_member(text, |name, value| match name {
        // A newest-shape result that came from a modern upstream has one (`lift` sees to it), so
        // that for a legacy host where there is none there is no identity to take out, either.
        b"resultType" => true,
        b"_meta" | b"inputRequests" => modern,
        b"ttlMs" | b"cacheScope" => hints && !modern,
        b"structuredContent" if body == Body::Call && !modern => {
            revision < Revision::V2025_06_18 || value.first() != Some(&b'{')
        }
        _ => false,
    })
}

/// Whether a content block or an item of a list may have to change. Their names are looked for in
/// all of the text; one may hide behind escapes, and then everything is opened.
fn items_may_change(revision: Revision, body: Body, text: &[u8]) -> bool {
    match body {
        Body::Plain => false,
        Body::Call | Body::Messages if revision >= Revision::V2025_11_25 => false,
        Body::Call | Body::Messages if revision >= Revision::V2025_06_18 => {
            has_escaped_ascii(text) || (RESOURCE_LINK.is_in(text) && ICONS.is_in(text))
        }
        Body::Call | Body::Messages => {
            has_escaped_ascii(text)
                || META.is_in(text)
                || RESOURCE_LINK.is_in(text)
                || (revision < Revision::V2025_03_26 && AUDIO.is_in(text))
                || LAST_MODIFIED.is_in(text)
        }
        Body::Items(_, shape) => {
            has_escaped_ascii(text)
                || foreign_names(shape, revision)
                    .iter()
                    .any(|name| memchr::memmem::find(text, name.as_bytes()).is_some())
                || (shape == Shape::Tool && !revision.is_modern() && OUTPUT_SCHEMA.is_in(text))
        }
    }
}

/// Spells content blocks and the items of lists; says whether anything changed.
fn spell_items(revision: Revision, body: Body, object: &mut Object) -> bool {
    match body {
        Body::Plain => false,
        Body::Call => replace(object, "content", |list| {
            spell_each(list, |item| content::block(revision, item))
        }),
        Body::Messages => replace(object, "messages", |list| {
            spell_each(list, |message| {
                let mut message = Object::read(message).ok()?;
                replace(&mut message, "content", |block| content::block(revision, block))
                    .then(|| message.write())
            })
        }),
        Body::Items(key, shape) => replace(object, key, |list| {
            spell_each(list, |item| {
                let spelled = spell(shape, revision, item);
                if shape == Shape::Tool && !revision.is_modern() {
                    let tool = spelled.as_ref().unwrap_or(item);
                    return without_odd_output_schema(tool).or(spelled);
                }
                spelled
            })
        }),
    }
}

fn replace(
    object: &mut Object,
    key: &'static str,
    step: impl FnOnce(&RawJson) -> Option<RawJson>,
) -> bool {
    let Some(spelled) = object.get(key).and_then(step) else { return false };
    object.set(key, spelled);
    true
}

/// H-53, H-54, F42. Before 2025-06-18 there is no structured content: it becomes text. Until
/// 2025-11-25 it must be an object, and other values become text, too: wrapping them would need the
/// output schema wrapped with them, and references inside that schema would point at nothing.
/// `null` is a value like any other. Where a text block says the same already, none is added.
fn structured(revision: Revision, object: &mut Object) -> bool {
    let Some(value) = object.get("structuredContent") else { return false };
    let allowed = revision.is_modern() || (revision >= Revision::V2025_06_18 && value.is_object());
    if allowed {
        return false;
    }
    let Some(value) = object.remove("structuredContent") else { return false };
    let present = object.get("content").filter(|content| !content.is_null());
    let Some(mut blocks) = present.map_or_else(|| Some(Vec::new()), RawJson::elements) else {
        // `content` is no list: what the upstream meant is not ours to say, so it stays.
        return true;
    };
    if !blocks.iter().any(|block| says(block, &value)) {
        blocks.push(content::text(value.as_str()));
        object.set("content", RawJson::array(&blocks));
    }
    true
}

/// Whether `block` is a text block with the JSON text of `value`, however it is spaced.
fn says(block: &RawJson, value: &RawJson) -> bool {
    let Some(text) = block.member_str("text") else { return false };
    let parsed = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).ok();
    text == value.as_str()
        || parsed(text.as_bytes()).is_some_and(|read| Some(read) == parsed(value.as_bytes()))
}

/// H-53: an output schema whose root is no object is not allowed before 2026-07-28 and goes, as the
/// values it describes become text.
fn without_odd_output_schema(tool: &RawJson) -> Option<RawJson> {
    let mut tool = Object::read(tool).ok()?;
    let schema = tool.get("outputSchema")?;
    if schema.member_str("type").as_deref() == Some("object") {
        return None;
    }
    tool.remove("outputSchema");
    Some(tool.write())
}

/// The members that only 2026-07-28 has on results (H-17, H-18, H-21).
fn unstamp(object: &mut Object, hints: bool) -> bool {
    let mut changed = object.remove("resultType").is_some();
    if hints {
        changed |= object.remove("ttlMs").is_some();
        changed |= object.remove("cacheScope").is_some();
    }
    let Some(Ok(mut meta)) = object.get("_meta").map(Object::read) else { return changed };
    if meta.remove(SERVER_INFO).is_none() {
        return changed;
    }
    if meta.is_empty() {
        object.remove("_meta");
    } else {
        object.set("_meta", meta.write());
    }
    true
}

/// H-17, H-18, H-21: kind of result, identity, and on complete results of the methods that have
/// them the cache hints. A host of ours speaks to mcpx, so an upstream's identity gives way to ours.
fn stamp(object: &mut Object, hints: bool, own_info: &RawJson) {
    let kind = object.get_str("resultType").unwrap_or_else(|| {
        object.set("resultType", RawJson::write("complete"));
        "complete".to_owned()
    });
    // Of an `input_required` result and of a task that waits for answers.
    if let Some(requests) = object.get("inputRequests").and_then(questions::entries) {
        object.set("inputRequests", requests);
    }
    if hints && kind == "complete" {
        object.set_default("ttlMs", RawJson::write(&0));
        object.set_default("cacheScope", RawJson::write("private"));
    }
    let mut meta = Object::read_or_empty(object.get("_meta"));
    meta.set(SERVER_INFO, own_info.clone());
    object.set("_meta", meta.write());
}

/// [`stamp`] without opening: both members go before the others.
fn splice_stamp(text: &[u8], own_info: &RawJson) -> RawJson {
    let rest = text.get(1..).unwrap_or_default();
    let mut out = BytesMut::with_capacity(text.len() + own_info.len() + 96);
    out.extend_from_slice(b"{\"resultType\":\"complete\",\"_meta\":{\"");
    out.extend_from_slice(SERVER_INFO.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(own_info.as_bytes());
    out.put_u8(b'}');
    if rest.trim_ascii_start().first() != Some(&b'}') {
        out.put_u8(b',');
    }
    out.extend_from_slice(rest);
    RawJson::trusted(out.freeze())
}
