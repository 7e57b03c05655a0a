//! What a script gets for the result of a tool (C-10, C-11, C-18). Pure.
//!
//! | result | value |
//! | --- | --- |
//! | `structuredContent`, unless that is null | that |
//! | one block of text that is the JSON of an object or of an array | what it says |
//! | one other block of text | the text |
//! | no blocks | `null` |
//! | anything else | the array of its content blocks, as they came |
//!
//! Text that reads like a number, `true` or `null` stays text: what a tool says of `007`, `1.10` or `null`
//! would otherwise change its kind from one call to the next.

use crate::protocol::jsonrpc::{Object, RawJson};

/// The value of a result that is no error.
pub fn of_result(result: &RawJson) -> RawJson {
    let result = Object::read_or_empty(Some(result));
    if let Some(structured) = result.get("structuredContent").filter(|value| !value.is_null()) {
        return structured.clone();
    }
    let Some(content) = result.get("content") else { return RawJson::null() };
    let blocks = content.elements().unwrap_or_default();
    match blocks.as_slice() {
        [] => RawJson::null(),
        [one] => match text_of(one) {
            Some(text) => parsed(&text).unwrap_or_else(|| RawJson::write(&text)),
            None => content.clone(),
        },
        _ => content.clone(),
    }
}

/// The message of a result that is an error: its blocks of text, a line each; where it has none, its structured
/// value, or what it has instead.
pub fn message(result: &RawJson) -> String {
    let content = result.member("content");
    let blocks = content.and_then(|content| content.elements()).unwrap_or_default();
    let texts: Vec<String> = blocks.iter().filter_map(words_of).collect();
    let said = texts.join("\n");
    if !said.trim().is_empty() {
        return said;
    }
    if let Some(structured) = result.member("structuredContent").filter(|value| !value.is_null()) {
        return structured.as_str().to_owned();
    }
    let kinds = blocks.iter().filter_map(|block| block.member_str("type"));
    let kinds: Vec<String> = kinds.filter(|kind| kind != "text").collect();
    if kinds.is_empty() {
        return "the tool failed and did not say why".to_owned();
    }
    format!("the tool failed without words; `content` of this error has: {}", kinds.join(", "))
}

fn text_of(block: &RawJson) -> Option<String> {
    let is_text = block.member_str("type").as_deref() == Some("text");
    is_text.then(|| block.member_str("text")).flatten()
}

/// The text of a block of an error: a resource that is one has some, too.
fn words_of(block: &RawJson) -> Option<String> {
    text_of(block).or_else(|| block.member("resource")?.member_str("text"))
}

/// Text that is plainly JSON.
fn parsed(text: &str) -> Option<RawJson> {
    let trimmed = text.trim();
    let fits = (trimmed.starts_with('{') && trimmed.ends_with('}'))
        || (trimmed.starts_with('[') && trimmed.ends_with(']'));
    if !fits {
        return None;
    }
    RawJson::parse(trimmed.to_owned().into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    fn text(text: &str) -> String {
        format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, RawJson::write(text).as_str())
    }

    /// C-10, C-18: structured content is unwrapped; text is parsed only where it is plain.
    #[test]
    fn c10_c18_values() {
        let block = r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#;
        for (result, value) in [
            (
                r#"{"content":[],"structuredContent":{"n":12345678901234567890}}"#.to_owned(),
                r#"{"n":12345678901234567890}"#.to_owned(),
            ),
            (r#"{"content":[],"structuredContent":false}"#.to_owned(), "false".to_owned()),
            (
                r#"{"content":[{"type":"text","text":"x"}],"structuredContent":null}"#.to_owned(),
                "\"x\"".to_owned(),
            ),
            (text(" {\"a\": 1.0}\n"), "{\"a\": 1.0}".to_owned()),
            (text("[1,2]"), "[1,2]".to_owned()),
            (text("[1,2"), "\"[1,2\"".to_owned()),
            (text("[see below]"), "\"[see below]\"".to_owned()),
            (text("007"), "\"007\"".to_owned()),
            (text("null"), "\"null\"".to_owned()),
            (text(""), "\"\"".to_owned()),
            (r#"{"content":[]}"#.to_owned(), "null".to_owned()),
            ("{}".to_owned(), "null".to_owned()),
            (format!(r#"{{"content":[{block}]}}"#), format!("[{block}]")),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#.to_owned(),
                r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#.to_owned(),
            ),
        ] {
            assert_eq!(of_result(&raw(&result)).as_str(), value, "{result}");
        }
    }

    /// C-11: what is thrown says what the tool said.
    #[test]
    fn c11_messages() {
        assert_eq!(message(&raw(&text("no such repo"))), "no such repo");
        assert_eq!(message(&raw(r#"{"isError":true,"structuredContent":{"e":1}}"#)), r#"{"e":1}"#);
        let silent = "the tool failed and did not say why";
        for result in
            ["{}", r#"{"structuredContent":null}"#, r#"{"content":[{"type":"text","text":" "}]}"#]
        {
            assert_eq!(message(&raw(result)), silent, "{result}");
        }
        let picture = r#"{"content":[{"type":"image","data":""},{"type":"text","text":""}]}"#;
        assert!(message(&raw(picture)).ends_with("has: image"), "{}", message(&raw(picture)));
        let resource = r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"why"}}]}"#;
        assert_eq!(message(&raw(resource)), "why");
    }
}
