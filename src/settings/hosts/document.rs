//! A host's file as a tree with places, whatever it is written in.

use std::path::Path;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, SpannedEventReceiver};

use crate::settings::mistake::Mistake;
use crate::settings::tree::{Entry, Node, Raw, SourceText};

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON with comments and trailing commas.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

impl Format {
    /// By the file's name; what has no telling name is JSON, as nearly all hosts' files are.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("toml") => Self::Toml,
            Some("yaml" | "yml") => Self::Yaml,
            _ => Self::Json,
        }
    }
}

/// The top table of a file, or every mistake of syntax with line and column.
pub fn parse(source: &SourceText) -> Result<Vec<Entry>, Vec<Mistake>> {
    match Format::of(&source.path) {
        Format::Json => source.parse_json(),
        Format::Toml => source.parse_toml(),
        Format::Yaml => parse_yaml(source),
    }
}

fn parse_yaml(source: &SourceText) -> Result<Vec<Entry>, Vec<Mistake>> {
    let mut tree = Growing::default();
    Parser::new_from_str(source.text()).load(&mut tree, false).map_err(|error| {
        let at = byte_of(source.text(), error.marker().index());
        vec![source.mistake(at, error.info())]
    })?;
    match tree.done.map(|node| node.raw) {
        None => Ok(Vec::new()),
        Some(Raw::Table(mut entries)) => {
            places_in_bytes(&mut entries, source.text());
            Ok(entries)
        }
        Some(other) => {
            Err(vec![source.mistake(0, format!("expected a table, found {}", other.name()))])
        }
    }
}

/// The byte at which a character stands.
fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

/// The parser counts characters; everything here counts bytes.
fn places_in_bytes(entries: &mut [Entry], text: &str) {
    if text.is_ascii() {
        return;
    }
    for entry in entries {
        entry.at = byte_of(text, entry.at);
        node_in_bytes(&mut entry.node, text);
    }
}

fn node_in_bytes(node: &mut Node, text: &str) {
    node.at = byte_of(text, node.at);
    match &mut node.raw {
        Raw::Table(entries) => places_in_bytes(entries, text),
        Raw::List(items) => items.iter_mut().for_each(|item| node_in_bytes(item, text)),
        _ => {}
    }
}

/// A tree that grows with the events of the YAML parser.
#[derive(Default)]
struct Growing {
    open: Vec<Open>,
    done: Option<Node>,
}

enum Open {
    List(usize, Vec<Node>),
    /// A table, and the key whose value comes next.
    Table(usize, Vec<Entry>, Option<(String, usize)>),
}

impl Growing {
    fn put(&mut self, node: Node) {
        match self.open.last_mut() {
            None => self.done = self.done.take().or(Some(node)),
            Some(Open::List(_, items)) => items.push(node),
            Some(Open::Table(_, entries, key)) => {
                if let Some((key, at)) = key.take() {
                    entries.push(Entry { key, at, node });
                } else {
                    let text = if let Raw::Text(text) = node.raw { text } else { String::new() };
                    *key = Some((text, node.at));
                }
            }
        }
    }

    /// A key of a table is text, whatever it looks like.
    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Table(_, _, None)))
    }
}

impl SpannedEventReceiver<'_> for Growing {
    fn on_event(&mut self, event: Event<'_>, span: Span) {
        let at = span.start.index();
        match event {
            Event::Scalar(text, style, _, _) => {
                let raw = if style == ScalarStyle::Plain && !self.expects_key() {
                    plain(&text)
                } else {
                    Raw::Text(text.into_owned())
                };
                self.put(Node { at, raw });
            }
            // What an alias stands for is not looked up: no host's file was seen to have one.
            Event::Alias(_) => self.put(Node { at, raw: Raw::Other("an alias") }),
            Event::SequenceStart(..) => self.open.push(Open::List(at, Vec::new())),
            Event::MappingStart(..) => self.open.push(Open::Table(at, Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(at, items)) => self.put(Node { at, raw: Raw::List(items) }),
                Some(Open::Table(at, entries, _)) => {
                    self.put(Node { at, raw: Raw::Table(entries) });
                }
                None => {}
            },
            _ => {}
        }
    }
}

/// A plain scalar by the core schema of YAML 1.2.
fn plain(text: &str) -> Raw {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Raw::Other("null"),
        "true" | "True" | "TRUE" => Raw::Switch(true),
        "false" | "False" | "FALSE" => Raw::Switch(false),
        _ => text.parse().map_or_else(|_| Raw::Text(text.to_owned()), Raw::Whole),
    }
}

/// The member of a table under this key.
pub fn member<'a>(entries: &'a [Entry], key: &str) -> Option<&'a Node> {
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
}

/// The table under this key.
pub fn table<'a>(entries: &'a [Entry], key: &str) -> Option<&'a [Entry]> {
    match &member(entries, key)?.raw {
        Raw::Table(inner) => Some(inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_read_with_places() {
        let text = "name: \u{e9}\nmcpServers:\n  - name: a\n    args: [1, \"2\"]\n    on: true\n";
        let source = SourceText::new(Path::new("c.yaml"), text);
        let top = parse(&source).unwrap();
        let Some(Raw::List(servers)) = member(&top, "mcpServers").map(|node| &node.raw) else {
            panic!()
        };
        let Raw::Table(server) = &servers[0].raw else { panic!() };
        assert_eq!(server[2].node.raw, Raw::Switch(true));
        assert_eq!(source.place(server[1].at).to_string(), "c.yaml:4:5");
        let broken = SourceText::new(Path::new("c.yaml"), "a: [1\nb: 2\n");
        let mistakes = parse(&broken).unwrap_err();
        assert!(mistakes[0].to_string().starts_with("c.yaml:"), "{mistakes:?}");
    }
}
