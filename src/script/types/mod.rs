//! TypeScript from the input and output schemas of tools. Pure.

use std::fmt::Write as _;

use crate::protocol::jsonrpc::{Object, RawJson};

/// How much of a schema is read and how much is written of it. What is beyond becomes `unknown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Levels of a schema, objects and lists in each other.
    pub depth: usize,
    /// Schemas in all, of one tool.
    pub nodes: usize,
    /// Bytes of the text.
    pub size: usize,
    /// Bytes of one description.
    pub description: usize,
}

/// One line that says how a tool is called: `name(args: { title: string; labels?: string[] }): Promise<any>`.
/// Without descriptions; at most `limits.size` bytes, beyond which `…` stands for the rest.
pub fn signature(definition: &RawJson, limits: &Limits) -> String {
    let name = definition.member_str("name").unwrap_or_default();
    let schema = Object::read_or_empty(definition.member("inputSchema").as_ref());
    let required: Vec<String> =
        schema.get("required").and_then(|list| list.read().ok()).unwrap_or_default();
    let properties = Object::read_or_empty(schema.get("properties"));
    let mut text = format!("{name}(args");
    let all_optional = !properties.iter().any(|(name, _)| required.iter().any(|it| it == name));
    text.push_str(if all_optional { "?: {" } else { ": {" });
    for (name, property) in properties.iter() {
        if text.len() > limits.size {
            text.push_str(" …");
            break;
        }
        let optional = if required.iter().any(|it| it == name) { "" } else { "?" };
        let of = property.member_str("type").unwrap_or_else(|| "unknown".to_owned());
        // Writing to a string cannot fail.
        let _ = write!(text, " {name}{optional}: {of};");
    }
    text.push_str(" }): Promise<any>");
    text
}
