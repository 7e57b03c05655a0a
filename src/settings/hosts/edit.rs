//! Edits of hosts' files that leave everything but our entry to the letter.

use std::path::Path;

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use toml_edit::{Array, DocumentMut, InlineTable, Table, Value, value};

use super::connect::{INPUT, Ours, object, text};
use super::document::Format;
use crate::settings::mistake::Mistake;
use crate::settings::tree::{SourceText, json_options};

/// A file's text with our entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The text.
    pub text: String,
    /// How many of the tables around the entry were made for it.
    pub made: usize,
    /// Whether an input was added to VS Code's.
    pub input: bool,
}

const BOM: &str = "\u{feff}";

/// Puts our entry into a text, in the place of one under the same key.
pub fn put(path: &Path, present: &str, key: &str, ours: &Ours) -> Result<Put, Mistake> {
    match Format::of(path) {
        Format::Json => put_json(path, present, key, ours),
        Format::Toml => put_toml(path, present, key, ours),
        Format::Yaml => Err(Mistake::of_file(path, "YAML is not written".to_owned())),
    }
}

fn json_root(path: &Path, text: &str) -> Result<CstRootNode, Mistake> {
    let source = SourceText::new(path, text);
    CstRootNode::parse(text, &json_options())
        .map_err(|error| source.mistake(error.range().start, error.kind().to_string()))
}

fn put_json(path: &Path, present: &str, key: &str, ours: &Ours) -> Result<Put, Mistake> {
    let (mark, text) = match present.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => ("", present),
    };
    let begin = if text.trim().is_empty() { ours.begin } else { text };
    let root = json_root(path, begin)?;
    let wrong = |name: &str| Mistake::of_file(path, format!("`{name}` is no object there"));
    let top = root.object_value().ok_or_else(|| wrong("the whole"))?;
    let (mut at, mut made) = (top.clone(), 0);
    for name in &ours.at {
        made += usize::from(at.get(name).is_none());
        at = at.object_value_or_create(name).ok_or_else(|| wrong(name))?;
    }
    match at.get(key) {
        Some(old) => old.set_value(ours.value.clone()),
        None => {
            at.append(key, ours.value.clone());
        }
    }
    let input = ours.input && put_input(&top);
    Ok(Put { text: format!("{mark}{root}"), made, input })
}

/// Adds the question for the token, once.
fn put_input(top: &CstObject) -> bool {
    let Some(inputs) = top.array_value_or_create("inputs") else { return false };
    let there = inputs.elements().iter().any(|element| {
        let id = element.as_object().and_then(|object| object.get("id")).and_then(|id| id.value());
        id.and_then(|id| id.as_string_lit()).and_then(|id| id.decoded_value().ok()).as_deref()
            == Some(INPUT)
    });
    if !there {
        inputs.append(object(vec![
            ("type", text("promptString")),
            ("id", text(INPUT)),
            ("description", text("The token of mcpx (mcpx status --http)")),
            ("password", true.into()),
        ]));
    }
    !there
}

/// TOML is edited with the line ends that it has, or not at all.
fn toml_document(path: &Path, text: &str) -> Result<(DocumentMut, bool), Mistake> {
    let windows = text.contains("\r\n");
    let plain = text.replace("\r\n", "\n");
    let source = SourceText::new(path, &plain);
    let document: DocumentMut = plain.parse().map_err(|error: toml_edit::TomlError| {
        source.mistake(error.span().map_or(0, |span| span.start), error.message())
    })?;
    let mixed = windows && plain.replace('\n', "\r\n") != text;
    // The last line may lack its end; an edit gives it one.
    let ended = plain.is_empty() || plain.ends_with('\n');
    let whole = if ended { plain } else { plain + "\n" };
    if mixed || document.to_string() != whole {
        let text = "an edit would change more of it than our entry (are its line ends mixed?): add the \
                    entry by hand";
        return Err(Mistake::of_file(path, text.to_owned()));
    }
    Ok((document, windows))
}

fn toml_text(document: &DocumentMut, windows: bool) -> String {
    let text = document.to_string();
    if windows { text.replace('\n', "\r\n") } else { text }
}

fn put_toml(path: &Path, present: &str, key: &str, ours: &Ours) -> Result<Put, Mistake> {
    let (mut document, windows) = toml_document(path, present)?;
    let wrong = |name: &str| Mistake::of_file(path, format!("`{name}` is no table there"));
    let (mut at, mut made) = (document.as_table_mut(), 0);
    for name in &ours.at {
        made += usize::from(!at.contains_key(name));
        let item = at.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            toml_edit::Item::Table(table)
        });
        at = item.as_table_mut().ok_or_else(|| wrong(name))?;
    }
    let mut entry = Table::new();
    if let CstInputValue::Object(members) = &ours.value {
        for (name, member) in members {
            entry.insert(name, value(toml_value(member)));
        }
    }
    if !present.trim().is_empty() {
        entry.decor_mut().set_prefix("\n");
    }
    at.insert(key, toml_edit::Item::Table(entry));
    Ok(Put { text: toml_text(&document, windows), made, input: false })
}

fn toml_value(from: &CstInputValue) -> Value {
    match from {
        CstInputValue::Null => Value::from(""),
        CstInputValue::Bool(on) => Value::from(*on),
        CstInputValue::Number(text) | CstInputValue::String(text) => Value::from(text.as_str()),
        CstInputValue::Array(items) => Value::from(items.iter().map(toml_value).collect::<Array>()),
        CstInputValue::Object(members) => {
            let mut inline = InlineTable::new();
            for (name, member) in members {
                inline.insert(name, toml_value(member));
            }
            Value::from(inline)
        }
    }
}

/// What was put into a file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Where {
    /// Where entries stand.
    pub at: Vec<String>,
    /// The key.
    pub key: String,
    /// How many tables were made for it.
    pub made: usize,
    /// Whether VS Code's inputs got one.
    #[serde(default)]
    pub input: bool,
}

/// Takes our entry out of a text that was changed since, and what was made for it where that holds
/// nothing else now. `None` where the entry is gone already.
pub fn take(path: &Path, present: &str, of: &Where) -> Result<Option<String>, Mistake> {
    match Format::of(path) {
        Format::Json => take_json(path, present, of),
        Format::Toml => take_toml(path, present, of),
        Format::Yaml => Ok(None),
    }
}

fn take_json(path: &Path, present: &str, of: &Where) -> Result<Option<String>, Mistake> {
    let (mark, text) = match present.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => ("", present),
    };
    let root = json_root(path, text)?;
    let Some(top) = root.object_value() else { return Ok(None) };
    let mut tables = vec![top.clone()];
    for name in &of.at {
        let Some(inner) = tables.last().and_then(|table| table.object_value(name)) else {
            return Ok(None);
        };
        tables.push(inner);
    }
    let Some(entry) = tables.last().and_then(|table| table.get(&of.key)) else { return Ok(None) };
    entry.remove();
    for (depth, name) in of.at.iter().enumerate().rev().take(of.made) {
        let empty = tables.get(depth + 1).is_some_and(|table| table.properties().is_empty());
        if let Some(property) =
            tables.get(depth).and_then(|table| table.get(name)).filter(|_| empty)
        {
            property.remove();
        }
    }
    if of.input {
        take_input(&top);
    }
    Ok(Some(format!("{mark}{root}")))
}

fn take_input(top: &CstObject) {
    let Some(inputs) = top.array_value("inputs") else { return };
    let is_ours = |element: &jsonc_parser::cst::CstNode| {
        let id = element.as_object().and_then(|object| object.get("id")).and_then(|id| id.value());
        id.and_then(|id| id.as_string_lit()).and_then(|id| id.decoded_value().ok()).as_deref()
            == Some(INPUT)
    };
    if let Some(element) = inputs.elements().into_iter().find(is_ours) {
        element.remove();
    }
    if inputs.elements().is_empty()
        && let Some(property) = top.get("inputs")
    {
        property.remove();
    }
}

fn take_toml(path: &Path, present: &str, of: &Where) -> Result<Option<String>, Mistake> {
    let (mut document, windows) = toml_document(path, present)?;
    if !take_from(document.as_table_mut(), &of.at, &of.key, of.made) {
        return Ok(None);
    }
    Ok(Some(toml_text(&document, windows)))
}

/// Takes the entry out of the table at this path; empty tables go where `made` says that they are ours.
fn take_from(table: &mut Table, at: &[String], key: &str, made: usize) -> bool {
    let Some((name, rest)) = at.split_first() else { return table.remove(key).is_some() };
    let Some(inner) = table.get_mut(name).and_then(toml_edit::Item::as_table_mut) else {
        return false;
    };
    let taken = take_from(inner, rest, key, made);
    if taken && inner.is_empty() && at.len() <= made {
        table.remove(name);
    }
    taken
}

/// Whether nothing is left in a text but its braces.
pub fn holds_nothing(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || matches!(c, '{' | '}'))
}

/// What changes, line by line, each with its number. Only lines of ours are shown whole: of another one
/// that changed (a comma behind it), its name is.
pub fn difference(before: &str, after: &str, hidden: Option<&str>) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let rest = old.len().min(new.len()) - same;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let gone = old.get(same..old.len() - tail).unwrap_or_default();
    let come = new.get(same..new.len() - tail).unwrap_or_default();
    // A comment may stand behind the comma.
    let bare = |line: &str| line.replace(',', "");
    let shown = |line: &str, others: &[&str]| {
        let kept = others.iter().any(|other| bare(other) == bare(line));
        let text = match line.split_once(':').filter(|_| kept) {
            Some((name, rest)) => format!("{name}: …{}", if rest.contains(',') { "," } else { "" }),
            None => line.to_owned(),
        };
        match hidden.filter(|hidden| !hidden.is_empty()) {
            Some(hidden) => text.replace(hidden, "…"),
            None => text,
        }
    };
    let lines = |sign: char, all: &[&str], others: &[&str]| -> Vec<String> {
        let number = |at: usize| same + at + 1;
        all.iter()
            .enumerate()
            .map(|(at, line)| format!("{:>5} {sign} {}", number(at), shown(line, others)))
            .collect()
    };
    [lines('-', gone, come), lines('+', come, gone)].concat()
}
