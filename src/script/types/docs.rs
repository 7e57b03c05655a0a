//! What a schema says in words, and what a type cannot say: descriptions, limits, defaults. As lines of a
//! comment that nothing in a schema can end.

use super::json::{Json, Members};

/// Words of JSON Schema that become tags of the same name.
const TAGS: [&str; 20] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "contentEncoding",
    "contentMediaType",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "dependentRequired",
    "not",
    "default",
];

/// Bytes of one tag's value.
const VALUE: usize = 160;

/// The lines for a schema: its description, at most `room` bytes of it, and a line of tags. `name` is that
/// of the property: a title that only repeats it says nothing.
pub(super) fn lines(schema: &Members<'_>, name: &str, room: usize) -> Vec<String> {
    let description = schema.text("description").filter(|text| !text.trim().is_empty());
    let title = schema.text("title").filter(|title| !same_words(title, name));
    let mut lines = description.or(title).map(|text| text_lines(&text, room)).unwrap_or_default();
    let tags = tags(schema);
    match lines.as_mut_slice() {
        _ if tags.is_empty() => {}
        [line] => {
            line.push(' ');
            line.push_str(&tags);
        }
        _ => lines.push(tags),
    }
    lines
}

/// The lines of a text, without empty ones; at most `room` bytes of it.
pub(super) fn text_lines(text: &str, room: usize) -> Vec<String> {
    let shown = head(text.trim(), room);
    let mut lines: Vec<String> =
        shown.lines().map(clean).filter(|line| !line.trim().is_empty()).collect();
    if shown.len() < text.trim().len() {
        lines.push("…".to_owned());
    }
    lines
}

fn tags(schema: &Members<'_>) -> String {
    let mut tags: Vec<String> = Vec::new();
    if schema.text("type").is_some_and(|of| of == "integer") {
        tags.push("@integer".to_owned());
    }
    let is_tuple = schema.has("prefixItems") || schema.get("items").is_some_and(Json::is_array);
    for tag in TAGS.into_iter().filter(|tag| !(is_tuple && tag.ends_with("Items"))) {
        let Some(value) = schema.get(tag).filter(|value| says_something(tag, *value)) else {
            continue;
        };
        tags.push(match value {
            value if value.is("true") && tag == "uniqueItems" => format!("@{tag}"),
            value => format!("@{tag} {}", shown(value, tag != "default")),
        });
    }
    if let Some(example) = schema.get("examples").and_then(|list| list.elements().next()) {
        tags.push(format!("@example {}", shown(example, false)));
    }
    for (word, tag) in [("deprecated", "@deprecated"), ("readOnly", "@readonly")] {
        if schema.get(word).is_some_and(|value| value.is("true")) {
            tags.push(tag.to_owned());
        }
    }
    tags.join(" ")
}

/// Generators write limits of their number types and empty defaults everywhere.
fn says_something(tag: &str, value: Json<'_>) -> bool {
    const SAFE: [&str; 2] = ["9007199254740991", "-9007199254740991"];
    match tag {
        "minimum" | "maximum" => !SAFE.contains(&value.as_str()),
        "propertyNames" => !value.is(r#"{"type":"string"}"#),
        _ => !value.is("null") && !value.is("false") || tag == "default" && value.is("false"),
    }
}

fn shown(value: Json<'_>, unquoted: bool) -> String {
    let text = value.text().filter(|_| unquoted);
    let whole = text.as_deref().unwrap_or(value.as_str());
    let part = head(whole, VALUE);
    let more = if part.len() < whole.len() { "…" } else { "" };
    format!("{}{more}", clean(part))
}

/// One line of a comment: without what ends a comment or a line, or turns the direction of text.
pub(super) fn clean(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        match c {
            '/' if line.ends_with('*') => line.push_str("\\/"),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {}
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => line.push(' '),
            c => line.push(c),
        }
    }
    line
}

/// As many whole characters as fit.
pub(super) fn head(text: &str, room: usize) -> &str {
    text.get(..text.floor_char_boundary(room)).unwrap_or(text)
}

fn same_words(title: &str, name: &str) -> bool {
    let letters = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    letters(title) == letters(name)
}
