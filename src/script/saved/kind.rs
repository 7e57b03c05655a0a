//! What a parameter takes, as it is written in the braces of `@param`.

use std::fmt;

use serde_json::{Value as Json, json};

use crate::protocol::jsonrpc::RawJson;

/// A type of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Anything.
    Any,
    /// `string`.
    Text,
    /// `number`.
    Number,
    /// `integer`.
    Integer,
    /// `boolean`.
    Switch,
    /// `object`, and every other type of objects.
    Object,
    /// `null`.
    Null,
    /// `undefined`: it may be left out.
    Undefined,
    /// `string[]`, `Array<string>`.
    List(Box<Self>),
    /// `"a"`, `7`: this value alone.
    Only(RawJson),
    /// `"a" | "b"`, `string | number`.
    OneOf(Vec<Self>),
}

impl Kind {
    /// Reads a type.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let text = text.trim().trim_end_matches('=').trim();
        let parts = alternatives(text);
        if parts.len() > 1 {
            return parts.into_iter().map(Self::read).collect::<Result<_, _>>().map(Self::OneOf);
        }
        if let Some(inner) = text.strip_suffix("[]") {
            return Self::read(inner).map(|inner| Self::List(Box::new(inner)));
        }
        let list = text.strip_prefix("Array<").or_else(|| text.strip_prefix("Array.<"));
        if let Some(inner) = list.and_then(|inner| inner.strip_suffix('>')) {
            return Self::read(inner).map(|inner| Self::List(Box::new(inner)));
        }
        if let Some(inner) = text.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
            return Self::read(inner);
        }
        if let Some(inner) = text.strip_prefix('?') {
            return Ok(Self::OneOf(vec![Self::read(inner)?, Self::Null, Self::Undefined]));
        }
        let only = || {
            let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
            let value = match quoted {
                Some(text) => RawJson::write(text),
                None => RawJson::parse(text.to_owned().into()).ok()?,
            };
            let first = value.as_bytes().first().copied();
            (first != Some(b'[')).then_some(Self::Only(value))
        };
        match text.to_ascii_lowercase().as_str() {
            "string" => Ok(Self::Text),
            "number" | "float" => Ok(Self::Number),
            "integer" | "int" => Ok(Self::Integer),
            "boolean" | "bool" => Ok(Self::Switch),
            "null" => Ok(Self::Null),
            "undefined" => Ok(Self::Undefined),
            "any" | "unknown" | "*" => Ok(Self::Any),
            "array" => Ok(Self::List(Box::new(Self::Any))),
            "object" => Ok(Self::Object),
            _ if text.starts_with('{') || text.starts_with("Record<") => Ok(Self::Object),
            _ => only().ok_or_else(|| {
                format!(
                    "`{text}` is no type that parameters have: string, number, integer, boolean, object, \
                     any, lists (string[]), values (\"a\" | \"b\")"
                )
            }),
        }
    }

    /// Whether `value` is one of its values.
    pub fn takes(&self, value: &RawJson) -> bool {
        let first = value.as_bytes().first().copied().unwrap_or_default();
        let is_number = first == b'-' || first.is_ascii_digit();
        match self {
            Self::Any => true,
            Self::Text => first == b'"',
            Self::Number => is_number,
            Self::Integer => is_number && is_whole(value.as_str()),
            Self::Switch => matches!(value.as_bytes(), b"true" | b"false"),
            Self::Object => first == b'{',
            Self::Null => value.is_null(),
            Self::Undefined => false,
            Self::List(of) => {
                value.elements().is_some_and(|items| items.iter().all(|item| of.takes(item)))
            }
            Self::Only(only) => match (only.text(), value.text()) {
                (Some(only), Some(value)) => only == value,
                _ => only == value,
            },
            Self::OneOf(kinds) => kinds.iter().any(|kind| kind.takes(value)),
        }
    }

    /// As a JSON schema.
    pub(super) fn schema(&self) -> RawJson {
        RawJson::write(&self.as_json())
    }

    fn as_json(&self) -> Json {
        let named = |name: &str| json!({ "type": name });
        match self {
            Self::Any | Self::Undefined => json!({}),
            Self::Text => named("string"),
            Self::Number => named("number"),
            Self::Integer => named("integer"),
            Self::Switch => named("boolean"),
            Self::Object => named("object"),
            Self::Null => named("null"),
            Self::List(of) => json!({ "type": "array", "items": of.as_json() }),
            Self::Only(value) => json!({ "const": value.read::<Json>().unwrap_or_default() }),
            Self::OneOf(kinds) => {
                let values: Option<Vec<Json>> = kinds
                    .iter()
                    .map(|kind| match kind {
                        Self::Only(value) => value.read().ok(),
                        _ => None,
                    })
                    .collect();
                match (values, kinds.as_slice()) {
                    (_, [only]) => only.as_json(),
                    (Some(values), _) => json!({ "enum": values }),
                    (None, kinds) => {
                        json!({ "anyOf": kinds.iter().map(Self::as_json).collect::<Vec<_>>() })
                    }
                }
            }
        }
    }
}

/// Whether a number has no fraction, however it is written.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit())
        || text.parse::<f64>().is_ok_and(|number| number.fract() == 0.0)
}

/// The alternatives of a union: what stands between `|` outside of quotes and brackets.
fn alternatives(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '(' | '<' | '{' | '[') => depth += 1,
            (None, ')' | '>' | '}' | ']') => depth = depth.saturating_sub(1),
            (None, '|') if depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            (Some(_) | None, _) => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default().trim());
    // A union may begin with its mark.
    parts.retain(|part| !part.is_empty() || text.is_empty());
    parts
}

/// As TypeScript writes it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Text => f.write_str("string"),
            Self::Number => f.write_str("number"),
            Self::Integer => f.write_str("integer"),
            Self::Switch => f.write_str("boolean"),
            Self::Object => f.write_str("object"),
            Self::Null => f.write_str("null"),
            Self::Undefined => f.write_str("undefined"),
            Self::List(of) if matches!(**of, Self::OneOf(_)) => write!(f, "({of})[]"),
            Self::List(of) => write!(f, "{of}[]"),
            Self::Only(value) => f.write_str(value.as_str()),
            Self::OneOf(kinds) => {
                for (at, kind) in kinds.iter().enumerate() {
                    if at > 0 {
                        f.write_str(" | ")?;
                    }
                    write!(f, "{kind}")?;
                }
                Ok(())
            }
        }
    }
}
