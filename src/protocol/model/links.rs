//! The addresses of resources inside results and definitions, so that what a host finds in a result
//! can be read by it like what it finds in a list (F46).
//!
//! Only the members that the specification, or the MCP Apps extension (`_meta.ui.resourceUri`), says
//! to be such addresses are looked at; text and structured content are the upstream's own words.

use memchr::memmem;

use crate::protocol::jsonrpc::{Object, RawJson};

/// What an address is to be instead; `None` where it stays.
pub type Renamed<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A result of `tools/call` with other addresses in its blocks and its `_meta`; `None` where nothing
/// changes.
pub fn in_tool_result(result: &RawJson, renamed: Renamed<'_>) -> Option<RawJson> {
    if !may_link(result) {
        return None;
    }
    let mut object = Object::read(result).ok()?;
    let blocks = change(&mut object, "content", |list| each(list, |item| in_block(item, renamed)));
    let ui = change(&mut object, "_meta", |meta| in_meta(meta, renamed));
    (blocks || ui).then(|| object.write())
}

/// A result of `prompts/get` with other addresses in its messages; `None` where nothing changes.
pub fn in_prompt(result: &RawJson, renamed: Renamed<'_>) -> Option<RawJson> {
    if !may_link(result) {
        return None;
    }
    within(result, "messages", |list| {
        each(list, |message| within(message, "content", |block| in_block(block, renamed)))
    })
}

/// A result of `resources/read` with other addresses on its contents; `None` where nothing changes.
pub fn in_contents(result: &RawJson, renamed: Renamed<'_>) -> Option<RawJson> {
    within(result, "contents", |list| each(list, |item| uri_of(item, renamed)))
}

/// A tool's definition with another address of its user interface; `None` where nothing changes.
pub fn in_definition(definition: &RawJson, renamed: Renamed<'_>) -> Option<RawJson> {
    if !may_link(definition) {
        return None;
    }
    within(definition, "_meta", |meta| in_meta(meta, renamed))
}

/// Every name and type that is looked for holds this word; most results do not.
fn may_link(text: &RawJson) -> bool {
    memmem::find(text.as_bytes(), b"resource").is_some()
}

fn in_block(block: &RawJson, renamed: Renamed<'_>) -> Option<RawJson> {
    match block.member_str("type")?.as_str() {
        "resource_link" => uri_of(block, renamed),
        "resource" => within(block, "resource", |resource| uri_of(resource, renamed)),
        _ => None,
    }
}

fn in_meta(meta: &RawJson, renamed: Renamed<'_>) -> Option<RawJson> {
    let mut object = Object::read(meta).ok()?;
    let nested =
        change(&mut object, "ui", |ui| within(ui, "resourceUri", |uri| another(uri, renamed)));
    // As early hosts of the extension read it.
    let flat = change(&mut object, "ui/resourceUri", |uri| another(uri, renamed));
    (nested || flat).then(|| object.write())
}

fn uri_of(object: &RawJson, renamed: Renamed<'_>) -> Option<RawJson> {
    within(object, "uri", |uri| another(uri, renamed))
}

fn another(uri: &RawJson, renamed: Renamed<'_>) -> Option<RawJson> {
    Some(RawJson::write(&renamed(&uri.text()?)?))
}

/// `object` with one member changed by `step`.
fn within(
    object: &RawJson,
    key: &'static str,
    step: impl FnOnce(&RawJson) -> Option<RawJson>,
) -> Option<RawJson> {
    let mut object = Object::read(object).ok()?;
    change(&mut object, key, step).then(|| object.write())
}

fn change(
    object: &mut Object,
    key: &'static str,
    step: impl FnOnce(&RawJson) -> Option<RawJson>,
) -> bool {
    let Some(changed) = object.get(key).and_then(step) else { return false };
    object.set(key, changed);
    true
}

/// A list with each item changed by `step`, or nothing where none is.
fn each(list: &RawJson, step: impl Fn(&RawJson) -> Option<RawJson>) -> Option<RawJson> {
    let mut items = list.elements()?;
    let mut changed = false;
    for item in &mut items {
        if let Some(other) = step(item) {
            *item = other;
            changed = true;
        }
    }
    changed.then(|| RawJson::array(&items))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(bytes::Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn renamed(uri: &str) -> Option<String> {
        uri.starts_with("a:").then(|| format!("mcpx://n/{uri}"))
    }

    /// F46: links, embedded resources and user interfaces; everything else keeps its text.
    #[test]
    fn f46_links_in_a_tool_result() {
        let result = raw(
            r#"{"content":[{"type":"text","text":"a:1 resource"},{"type":"resource_link","uri":"a:1","n":1e2},
            {"type":"resource","resource":{"uri":"a:2","text":"a:2"}},{"type":"resource_link","uri":"b:1"}],
            "structuredContent":{"uri":"a:1"},"_meta":{"ui":{"resourceUri":"a:3"},"ui/resourceUri":"a:4","uri":"a:5"}}"#,
        );
        let expected = result
            .as_str()
            .replace(r#""uri":"a:1","n""#, r#""uri":"mcpx://n/a:1","n""#)
            .replace(r#""uri":"a:2""#, r#""uri":"mcpx://n/a:2""#)
            .replace("a:3", "mcpx://n/a:3")
            .replace("a:4", "mcpx://n/a:4");
        let changed = in_tool_result(&result, &renamed).unwrap();
        let read = |raw: &RawJson| raw.read::<serde_json::Value>().unwrap();
        assert_eq!(read(&changed), read(&raw(&expected)));
        assert!(changed.as_str().contains("1e2"));
        assert_eq!(in_tool_result(&result, &|_| None), None);
        assert_eq!(in_tool_result(&raw(r#"{"content":[]}"#), &renamed), None);
    }

    #[test]
    fn f46_links_in_prompts_contents_and_definitions() {
        let prompt = raw(
            r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"a:1"}},{"role":"user","content":{"type":"text","text":"x"}}]}"#,
        );
        let expected = prompt.as_str().replace("a:1", "mcpx://n/a:1");
        assert_eq!(in_prompt(&prompt, &renamed).unwrap().as_str(), expected);
        let contents = raw(r#"{"contents":[{"uri":"a:1","text":"t"},{"uri":"b:1","blob":""}]}"#);
        let expected = contents.as_str().replace("a:1", "mcpx://n/a:1");
        assert_eq!(in_contents(&contents, &renamed).unwrap().as_str(), expected);
        let tool = raw(r#"{"name":"t","_meta":{"ui":{"resourceUri":"a:1"}}}"#);
        let expected = tool.as_str().replace("a:1", "mcpx://n/a:1");
        assert_eq!(in_definition(&tool, &renamed).unwrap().as_str(), expected);
        for odd in ["7", r#"{"messages":7}"#, r#"{"messages":[7],"resource":1}"#] {
            assert_eq!(in_prompt(&raw(odd), &renamed), None);
        }
    }
}
