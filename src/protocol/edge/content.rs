//! Content blocks: what an older host cannot know becomes a text that says so (H-60).

use std::fmt::Write as _;

use super::fields::{Shape, spell_open};
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::revision::Revision;

/// `block` as `revision` spells it; `None` where nothing changes. A block of a kind that no
/// revision defines is carried as it is (F42).
pub(super) fn block(revision: Revision, block: &RawJson) -> Option<RawJson> {
    let mut object = Object::read(block).ok()?;
    let kind = object.get_str("type")?;
    let shape = match kind.as_str() {
        "audio" if revision < Revision::V2025_03_26 => return Some(audio_as_text(&object)),
        "text" | "image" | "audio" => Shape::Block,
        "resource" => Shape::Embedded,
        "resource_link" if revision < Revision::V2025_06_18 => return Some(link_as_text(&object)),
        "resource_link" => Shape::Link,
        _ => return None,
    };
    spell_open(shape, revision, &mut object).then(|| object.write())
}

/// A text block of ours.
pub(super) fn text(text: &str) -> RawJson {
    let mut block = Object::new();
    block.set("type", RawJson::write("text"));
    block.set("text", RawJson::write(text));
    block.write()
}

/// 2024-11-05 has no audio blocks.
fn audio_as_text(block: &Object) -> RawJson {
    let kind = block.get_str("mimeType").unwrap_or_else(|| "unknown type".to_owned());
    // Base64 holds three bytes in four characters; the two quotes are not data.
    let bytes = block.get("data").map_or(0, |data| data.len().saturating_sub(2) / 4 * 3);
    text(&format!(
        "[audio, {kind}, about {bytes} bytes: left out, because the protocol revision of this \
         connection has no audio content]"
    ))
}

/// Revisions before 2025-06-18 have no links. The edge does not hold what the link points at, so
/// the address and what is said of it become text.
fn link_as_text(block: &Object) -> RawJson {
    let member = |name: &str| block.get_str(name).filter(|text| !text.is_empty());
    let uri = member("uri").unwrap_or_default();
    let mut line = format!("[resource link] {uri}");
    if let Some(name) = member("title").or_else(|| member("name")) {
        let _ = write!(line, " ({name})");
    }
    if let Some(kind) = member("mimeType") {
        let _ = write!(line, ", {kind}");
    }
    if let Some(description) = member("description") {
        let _ = write!(line, ": {description}");
    }
    text(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(revision: Revision, text: &str) -> String {
        let raw = RawJson::parse(text.to_owned().into()).unwrap();
        block(revision, &raw).unwrap_or(raw).as_str().to_owned()
    }

    #[test]
    fn h60_audio_for_the_oldest() {
        let audio = r#"{"type":"audio","data":"AAAAAAAA","mimeType":"audio/wav"}"#;
        let text = spelled(Revision::V2024_11_05, audio);
        assert!(text.starts_with(r#"{"type":"text","text":"[audio, audio/wav, about 6 bytes"#));
        assert_eq!(spelled(Revision::V2025_03_26, audio), audio);
    }

    #[test]
    fn h60_links_before_2025_06_18() {
        let link = r#"{"type":"resource_link","uri":"mcpx://a/b","name":"b","mimeType":"text/plain","description":"d","icons":[]}"#;
        assert_eq!(
            spelled(Revision::V2025_03_26, link),
            r#"{"type":"text","text":"[resource link] mcpx://a/b (b), text/plain: d"}"#
        );
        assert!(!spelled(Revision::V2025_06_18, link).contains("icons"));
        assert_eq!(spelled(Revision::V2025_11_25, link), link);
    }

    #[test]
    fn h60_meta_and_dates_of_blocks() {
        let text = r#"{"type":"text","text":"x","annotations":{"audience":["system"],"lastModified":"2025"},"_meta":{},"x":1}"#;
        assert_eq!(
            spelled(Revision::V2025_03_26, text),
            r#"{"type":"text","text":"x","annotations":{"audience":["system"]},"x":1}"#
        );
        assert_eq!(spelled(Revision::V2025_06_18, text), text);
        let resource = r#"{"type":"resource","resource":{"uri":"u","text":"t","_meta":{}}}"#;
        assert_eq!(
            spelled(Revision::V2024_11_05, resource),
            r#"{"type":"resource","resource":{"uri":"u","text":"t"}}"#
        );
    }

    #[test]
    fn f42_unknown_blocks_are_carried() {
        for block in [r#"{"type":"hologram","_meta":{}}"#, r#"{"_meta":{}}"#, "7", "null"] {
            assert_eq!(spelled(Revision::V2024_11_05, block), block);
        }
    }
}
