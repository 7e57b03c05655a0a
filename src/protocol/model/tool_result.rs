//! Tool results that mcpx writes itself, or adds a word to; newest shape.

use serde::Serialize;

use crate::protocol::jsonrpc::{Object, RawJson};

/// The `_meta` key that tells why mcpx, and not an upstream, answered (product.md 7).
pub const REASON_KEY: &str = "dev.mcpx/reason";

#[derive(Serialize)]
struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// A text block.
pub fn text_block(text: &str) -> RawJson {
    RawJson::write(&TextBlock { r#type: "text", text })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkBlock<'a> {
    r#type: &'static str,
    uri: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    mime_type: &'a str,
    size: u64,
}

/// A block that leads to a resource (`ResourceLink`); `size` in bytes.
pub fn link_block(
    uri: &str,
    name: &str,
    description: Option<&str>,
    mime_type: &str,
    size: u64,
) -> RawJson {
    RawJson::write(&LinkBlock { r#type: "resource_link", uri, name, description, mime_type, size })
}

/// A result with one text block.
pub fn text_result(text: &str, is_error: bool) -> RawJson {
    let mut result = Object::new();
    result.set("content", RawJson::write(&[text_block(text)]));
    if is_error {
        result.set("isError", RawJson::write(&true));
    }
    result.write()
}

/// The `_meta` key with the call's id in the audit, in errors of mcpx's own (O-03).
pub const AUDIT_KEY: &str = "dev.mcpx/audit";

/// A call that mcpx answers in the upstream's place, with the reason in `_meta`.
pub fn refused_result(reason: &str, text: &str) -> RawJson {
    refused_call(reason, text, None)
}

/// The same of a call that is recorded.
pub fn refused_call(reason: &str, text: &str, audit: Option<&str>) -> RawJson {
    let mut meta = Object::new();
    meta.set(REASON_KEY, RawJson::write(reason));
    if let Some(id) = audit {
        meta.set(AUDIT_KEY, RawJson::write(id));
    }
    let mut result = Object::read_or_empty(Some(&text_result(text, true)));
    result.set("_meta", meta.write());
    result.write()
}

/// Why mcpx itself refused or lost the call, where it did.
pub fn reason(result: &RawJson) -> Option<String> {
    result.member("_meta")?.member_str(REASON_KEY)
}

/// As much of a tool's result as says that it failed.
pub fn wrong() -> RawJson {
    let mut result = Object::new();
    result.set("isError", RawJson::write(&true));
    result.write()
}

/// Whether a result says `isError: true`.
pub fn is_error(result: &RawJson) -> bool {
    result.member("isError").is_some_and(|flag| flag.as_bytes() == b"true")
}

/// Adds a text block at the end of `content`; everything else keeps its text.
#[must_use]
pub fn append_text(result: &RawJson, text: &str) -> RawJson {
    let Ok(mut object) = Object::read(result) else { return result.clone() };
    let mut blocks: Vec<RawJson> =
        object.get("content").and_then(RawJson::elements).unwrap_or_default();
    blocks.push(text_block(text));
    object.set("content", RawJson::array(&blocks));
    object.write()
}

/// Adds a text copy of structured content where the upstream sent no content at all (H-55).
#[must_use]
pub fn with_text_copy(result: RawJson) -> RawJson {
    let Ok(mut object) = Object::read(&result) else { return result };
    let Some(structured) = object.get("structuredContent") else { return result };
    let has_content = object
        .get("content")
        .is_some_and(|content| content.elements().is_some_and(|blocks| !blocks.is_empty()));
    if has_content {
        return result;
    }
    let copy = text_block(structured.as_str());
    object.set("content", RawJson::write(&[copy]));
    object.write()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn raw(text: &'static str) -> RawJson {
        RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap()
    }

    #[test]
    fn h55_structured_content_gets_a_text_copy_only_where_there_is_none() {
        let copied = with_text_copy(raw(r#"{"structuredContent":{"n":1e2}}"#));
        assert_eq!(
            copied.as_str(),
            r#"{"structuredContent":{"n":1e2},"content":[{"type":"text","text":"{\"n\":1e2}"}]}"#
        );
        let kept = raw(r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{}}"#);
        assert_eq!(with_text_copy(kept.clone()), kept);
    }

    #[test]
    fn refusals_carry_their_reason() {
        let refused = refused_result("busy", "too many");
        assert!(is_error(&refused));
        assert_eq!(refused.member("_meta").unwrap().as_str(), r#"{"dev.mcpx/reason":"busy"}"#);
        assert_eq!(reason(&refused).as_deref(), Some("busy"));
        assert_eq!(reason(&text_result("x", true)), None);
    }

    #[test]
    fn text_is_added_behind_what_is_there() {
        let result = append_text(&raw(r#"{"content":[{"type":"x","n":1.0}],"isError":true}"#), "y");
        assert_eq!(
            result.as_str(),
            r#"{"content":[{"type":"x","n":1.0},{"type":"text","text":"y"}],"isError":true}"#
        );
    }
}
