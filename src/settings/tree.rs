//! A configuration file as a tree whose every node knows where it stands, from TOML or from JSON
//! with comments.
//!
//! Order and case of keys are kept: server tables are read from this tree and not through figment,
//! which sorts maps and lowercases names that come from the environment (crates.md 7).

use std::path::{Path, PathBuf};

use jsonc_parser::common::Ranged as _;
use toml::de::{DeTable, DeValue};

use super::mistake::{Mistake, Place};

/// A value and the byte at which it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Offset into the text.
    pub at: usize,
    /// The value.
    pub raw: Raw,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key as written.
    pub key: String,
    /// Where the key stands.
    pub at: usize,
    /// Its value.
    pub node: Node,
}

/// An uninterpreted value.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// A boolean.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<Entry>),
    /// Something no setting takes, by its name: `a fraction`, `a date`, `null`.
    Other(&'static str),
}

impl Raw {
    /// What it is, as a phrase with its article.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Switch(_) => "a boolean",
            Self::Whole(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(name) => name,
        }
    }

    /// From the body of `PUT /v1/settings`.
    pub fn from_json(value: &serde_json::Value) -> Self {
        let node = |value: &serde_json::Value| Node { at: 0, raw: Self::from_json(value) };
        match value {
            serde_json::Value::Null => Self::Other("null"),
            serde_json::Value::Bool(on) => Self::Switch(*on),
            serde_json::Value::Number(number) => {
                number.as_i64().map_or(Self::Other("a fraction"), Self::Whole)
            }
            serde_json::Value::String(text) => Self::Text(text.clone()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(node).collect()),
            serde_json::Value::Object(members) => Self::Table(
                members
                    .iter()
                    .map(|(key, value)| Entry { key: key.clone(), at: 0, node: node(value) })
                    .collect(),
            ),
        }
    }
}

/// The text of a file, to find lines and columns.
#[derive(Debug, Clone)]
pub struct SourceText {
    /// The file.
    pub path: PathBuf,
    text: String,
}

impl SourceText {
    /// A file's text, without a byte order mark.
    pub fn new(path: &Path, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        Self { path: path.to_owned(), text }
    }

    /// Reads a file that must be there.
    pub fn read(path: &Path) -> Result<Self, Mistake> {
        let bytes = std::fs::read(path)
            .map_err(|error| Mistake::of_file(path, format!("cannot be read: {error}")))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Mistake::of_file(path, "is not UTF-8 text".to_owned()))?;
        Ok(Self::new(path, &text))
    }

    /// Line and column, both from 1, of a byte offset.
    pub fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at.min(self.text.len())).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        Place::File { path: self.path.clone(), line, column }
    }

    /// The top table, or every mistake of syntax.
    pub fn parse(&self) -> Result<Vec<Entry>, Vec<Mistake>> {
        let extension = self.path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("json" | "jsonc") => self.parse_json(),
            _ => self.parse_toml(),
        }
    }

    /// The text itself.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn mistake(&self, at: usize, text: impl Into<String>) -> Mistake {
        Mistake { place: self.place(at), text: text.into() }
    }

    /// As TOML, whatever the file's name.
    pub fn parse_toml(&self) -> Result<Vec<Entry>, Vec<Mistake>> {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        if errors.is_empty() {
            return Ok(toml_entries(table.get_ref()));
        }
        let at = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        Err(errors.iter().map(|error| self.mistake(at(error), error.message())).collect())
    }

    /// As JSON with comments, whatever the file's name.
    pub fn parse_json(&self) -> Result<Vec<Entry>, Vec<Mistake>> {
        let options = json_options();
        let collect = jsonc_parser::CollectOptions::default();
        let parsed = jsonc_parser::parse_to_ast(&self.text, &collect, &options)
            .map_err(|error| vec![self.mistake(error.range().start, error.kind().to_string())])?;
        let mut mistakes = Vec::new();
        let entries = match parsed.value {
            None => Vec::new(),
            Some(jsonc_parser::ast::Value::Object(object)) => {
                self.json_entries(&object, &mut mistakes)
            }
            Some(other) => {
                mistakes.push(self.mistake(other.start(), "expected an object"));
                Vec::new()
            }
        };
        if mistakes.is_empty() { Ok(entries) } else { Err(mistakes) }
    }

    fn json_entries(
        &self,
        object: &jsonc_parser::ast::Object<'_>,
        mistakes: &mut Vec<Mistake>,
    ) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for property in &object.properties {
            let key = property.name.as_str().to_owned();
            let at = property.range.start;
            if entries.iter().any(|entry| entry.key == key) {
                mistakes.push(self.mistake(at, format!("the key `{key}` stands here twice")));
            }
            let node = self.json_node(&property.value, mistakes);
            entries.push(Entry { key, at, node });
        }
        entries
    }

    fn json_node(&self, value: &jsonc_parser::ast::Value<'_>, mistakes: &mut Vec<Mistake>) -> Node {
        use jsonc_parser::ast::Value as Json;
        let raw = match value {
            Json::StringLit(text) => Raw::Text(text.value.to_string()),
            Json::NumberLit(number) => {
                number.value.parse().map_or(Raw::Other("a fraction"), Raw::Whole)
            }
            Json::BooleanLit(boolean) => Raw::Switch(boolean.value),
            Json::NullKeyword(_) => Raw::Other("null"),
            Json::Object(object) => Raw::Table(self.json_entries(object, mistakes)),
            Json::Array(array) => Raw::List(
                array.elements.iter().map(|element| self.json_node(element, mistakes)).collect(),
            ),
        };
        Node { at: value.start(), raw }
    }
}

/// JSON as people write it into configuration files: comments, and commas behind the last member.
pub(super) fn json_options() -> jsonc_parser::ParseOptions {
    jsonc_parser::ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn toml_entries(table: &DeTable<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            at: key.span().start,
            node: toml_node(value.span().start, value.get_ref()),
        })
        .collect();
    // toml's map sorts by name; the places give the order of the file back.
    entries.sort_by_key(|entry| entry.at);
    entries
}

fn toml_node(at: usize, value: &DeValue<'_>) -> Node {
    let raw = match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Raw::Other("a number beyond 64 bits"), Raw::Whole),
        DeValue::Float(_) => Raw::Other("a fraction"),
        DeValue::Boolean(on) => Raw::Switch(*on),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Array(items) => Raw::List(
            items.iter().map(|item| toml_node(item.span().start, item.get_ref())).collect(),
        ),
        DeValue::Table(table) => Raw::Table(toml_entries(table)),
    };
    Node { at, raw }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, text: &str) -> Result<Vec<Entry>, Vec<Mistake>> {
        SourceText::new(Path::new(name), text).parse()
    }

    #[test]
    fn toml_keeps_order_case_and_places() {
        let text = "[servers.zeta]\ncommand = \"z\"\n\n[servers.Alpha-one]\ncommand = [\"a\"]\n";
        let top = parse("c.toml", text).unwrap();
        let Raw::Table(servers) = &top.first().unwrap().node.raw else { panic!("no table") };
        let keys: Vec<&str> = servers.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["zeta", "Alpha-one"]);
        let source = SourceText::new(Path::new("c.toml"), text);
        let Raw::Table(alpha) = &servers.get(1).unwrap().node.raw else { panic!("no table") };
        let command = alpha.first().unwrap();
        let place = source.place(command.node.at);
        assert_eq!(place.to_string(), "c.toml:5:11");
    }

    #[test]
    fn json_with_comments_reads_like_toml() {
        let text = "{ // hosts\n  \"call\": { \"idle_timeout\": \"5m\", },\n}";
        let json = parse("c.json", text).unwrap();
        let toml = parse("c.toml", "[call]\nidle_timeout = \"5m\"\n").unwrap();
        let leaf = |top: &[Entry]| match &top.first().unwrap().node.raw {
            Raw::Table(inner) => inner.first().unwrap().node.raw.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(leaf(&json), leaf(&toml));
    }

    #[test]
    fn syntax_mistakes_are_all_reported_with_their_places() {
        let mistakes = parse("c.toml", "a = \nb = [1\n\nc = 'x'\nd = = 2\n").unwrap_err();
        assert!(mistakes.len() >= 2, "{mistakes:?}");
        assert!(mistakes.iter().all(|mistake| mistake.to_string().starts_with("c.toml:")));
        let mistakes = parse("c.json", "{\"a\": 1,\n \"a\": 2,\n \"b\": 1, \"b\": 2}").unwrap_err();
        assert_eq!(mistakes.len(), 2);
        assert!(mistakes.first().unwrap().to_string().starts_with("c.json:2:2: "), "{mistakes:?}");
    }

    #[test]
    fn a_byte_order_mark_is_no_mistake() {
        assert!(parse("c.toml", "\u{feff}[call]\n").is_ok());
        assert!(parse("c.json", "\u{feff}{}").is_ok());
        assert!(parse("c.json", "").is_ok());
    }
}
