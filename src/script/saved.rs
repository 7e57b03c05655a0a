//! Saved scripts: what a script says of itself in its first comment, and arguments checked against it. Pure.
//!
//! ```ts
//! /**
//!  * Issues that nobody has touched for some days.
//!  * @param {string} repo - as in "owner/name"
//!  * @param {integer} [days=30] - how many
//!  * @param {"open" | "closed"} [state] - all, where it is left out
//!  */
//! ```
//!
//! The comment stands before the first statement; arguments are members of `input`. It is `JSDoc`, which
//! people and models write right without being told, and which asks nothing of the script itself.

mod kind;

use crate::protocol::jsonrpc::{Object, RawJson};

pub use self::kind::Kind;

/// What a script says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// What it does; empty where it does not say.
    pub description: String,
    /// Its parameters, in their order; none where it names none, and then it takes any.
    pub params: Vec<Param>,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name: a member of `input`.
    pub name: String,
    /// What it takes.
    pub kind: Kind,
    /// Whether it must be given.
    pub required: bool,
    /// Its value where it is not given.
    pub default: Option<RawJson>,
    /// What it is for.
    pub doc: String,
}

/// A comment that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Wrong {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// Reads the first comment of a script.
pub fn about(source: &str) -> Result<About, Wrong> {
    let mut about = About::default();
    let mut tags: Vec<(usize, String)> = Vec::new();
    for (line, text) in comment(source) {
        match (text.starts_with('@'), tags.last_mut()) {
            (true, _) => tags.push((line, text.to_owned())),
            (false, Some((_, tag))) => push_line(tag, text),
            (false, None) => push_line(&mut about.description, text),
        }
    }
    for (line, tag) in tags {
        let wrong = |why| Wrong { line, why };
        let Some(text) = tag.strip_prefix("@param") else { continue };
        let param = param(text.trim()).map_err(wrong)?;
        if about.params.iter().any(|other| other.name == param.name) {
            return Err(wrong(format!("there are two parameters `{}`", param.name)));
        }
        about.params.push(param);
    }
    Ok(about)
}

/// Lines that belong together become one.
fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !line.is_empty() {
        text.push(' ');
    }
    text.push_str(line);
}

/// The lines of a `/** … */` before the first statement, with their numbers, without the stars before
/// them.
fn comment(source: &str) -> Vec<(usize, &str)> {
    let is_passed =
        |line: &str| line.is_empty() || line.starts_with("//") || line.starts_with("#!");
    let mut rest = source;
    while let Some((line, after)) = rest.split_once('\n')
        && is_passed(line.trim())
    {
        rest = after;
    }
    let Some(inner) = rest.trim_start().strip_prefix("/**") else { return Vec::new() };
    let Some((inner, _)) = inner.split_once("*/") else { return Vec::new() };
    let before = source.len() - rest.trim_start().len();
    let first = source.get(..before).unwrap_or_default().matches('\n').count() + 1;
    let lines = inner.lines().enumerate().map(|(at, line)| {
        let line = line.trim();
        (first + at, line.strip_prefix('*').unwrap_or(line).trim())
    });
    lines.collect()
}

/// What follows `@param`: `{kind} name - words`, `[name]` or `[name=default]` where it may be left out.
fn param(text: &str) -> Result<Param, String> {
    let (written, rest) = braced(text)?;
    let mut kind = written.map_or(Ok(Kind::Any), Kind::read)?;
    let (name, default, mut required, doc) = if let Some(inner) = rest.strip_prefix('[') {
        let end = bracket_end(inner).ok_or_else(|| format!("`[` has no `]` in {rest:?}"))?;
        let (inside, after) = inner.split_at(end);
        let (name, default) = match inside.split_once('=') {
            Some((name, default)) => (name.trim(), Some(default.trim())),
            None => (inside.trim(), None),
        };
        (name, default, false, after.get(1..).unwrap_or_default())
    } else {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (name, doc) = rest.split_at(end);
        (name, None, true, doc)
    };
    if written.is_some_and(|kind| kind.ends_with('=')) {
        required = false;
    }
    if let Kind::OneOf(kinds) = &mut kind
        && let Some(at) = kinds.iter().position(|kind| *kind == Kind::Undefined)
    {
        kinds.remove(at);
        required = false;
    }
    // As JSDoc names the members of an object.
    let name = name.strip_prefix("input.").unwrap_or(name);
    if !is_name(name) {
        return Err(format!(
            "`@param {text}` names no parameter; write it like `@param {{string}} name - what it is`"
        ));
    }
    let default = default.map(|text| value_of(&kind, text));
    if let Some(value) = default.as_ref().filter(|value| !kind.takes(value)) {
        return Err(format!("`{name}` takes {kind}, and {} is none", value.as_str()));
    }
    let doc = doc.trim_start().trim_start_matches(['-', '–', '—']).trim().to_owned();
    Ok(Param { name: name.to_owned(), kind, required, default, doc })
}

/// What stands in braces at the beginning, and what follows.
fn braced(text: &str) -> Result<(Option<&str>, &str), String> {
    if !text.starts_with('{') {
        return Ok((None, text));
    }
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let inner = text.get(1..at).unwrap_or_default().trim();
            return Ok((Some(inner), text.get(at + 1..).unwrap_or_default().trim_start()));
        }
    }
    Err(format!("`{{` has no `}}` in {text:?}"))
}

/// Where the bracket ends that `inner` stands in; a default may have brackets of its own.
fn bracket_end(inner: &str) -> Option<usize> {
    let mut depth = 0_usize;
    inner.char_indices().find_map(|(at, character)| match character {
        '[' => {
            depth += 1;
            None
        }
        ']' if depth == 0 => Some(at),
        ']' => {
            depth -= 1;
            None
        }
        _ => None,
    })
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// A default: JSON, or else a text, which `JSDoc` writes without quotes as often as with them.
fn value_of(kind: &Kind, text: &str) -> RawJson {
    let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    let json = quoted.is_none().then(|| RawJson::parse(text.to_owned().into()).ok()).flatten();
    json.filter(|value| kind.takes(value)).unwrap_or_else(|| RawJson::write(quoted.unwrap_or(text)))
}

impl About {
    /// The value of `input` for these arguments: an object, with defaults for what is left out. An error
    /// names every mistake and what there is to give.
    pub fn input(&self, arguments: Option<&RawJson>) -> Result<RawJson, String> {
        let mut input = match arguments {
            None => Object::new(),
            Some(given) => Object::read(given)
                .map_err(|_| "the arguments of a script are one JSON object".to_owned())?,
        };
        if self.params.is_empty() {
            return Ok(input.write());
        }
        let mut mistakes = Vec::new();
        for param in &self.params {
            match (input.get(&param.name), &param.default) {
                (Some(value), _) if param.kind.takes(value) => {}
                (Some(value), _) if value.is_null() && !param.required => {
                    input.remove(&param.name);
                    if let Some(default) = &param.default {
                        input.set(param.name.clone(), default.clone());
                    }
                }
                (Some(_), _) => mistakes.push(format!("`{}` is to be {}", param.name, param.kind)),
                (None, Some(default)) => input.set(param.name.clone(), default.clone()),
                (None, None) if param.required => {
                    mistakes.push(format!("`{}` is missing", param.name));
                }
                (None, None) => {}
            }
        }
        let known = |name: &str| self.params.iter().any(|param| param.name == name);
        let unknown = input.iter().filter(|(name, _)| !known(name));
        mistakes.extend(unknown.map(|(name, _)| format!("there is no parameter `{name}`")));
        if mistakes.is_empty() {
            return Ok(input.write());
        }
        Err(format!("{}. It takes {}.", mistakes.join("; "), self.signature()))
    }

    /// Its parameters in a line: `(repo: string, days?: integer = 30)`; `(…)` where it names none.
    pub fn signature(&self) -> String {
        if self.params.is_empty() {
            return "(…)".to_owned();
        }
        let shown = self.params.iter().map(|param| {
            let mark = if param.required { "" } else { "?" };
            let default = param.default.as_ref().map(|value| format!(" = {}", value.as_str()));
            format!("{}{mark}: {}{}", param.name, param.kind, default.unwrap_or_default())
        });
        format!("({})", shown.collect::<Vec<_>>().join(", "))
    }

    /// Its parameters as a JSON schema of its arguments.
    pub fn schema(&self) -> RawJson {
        let mut properties = Object::new();
        for param in &self.params {
            let mut property = Object::read_or_empty(Some(&param.kind.schema()));
            if !param.doc.is_empty() {
                property.set("description", RawJson::write(&param.doc));
            }
            if let Some(default) = &param.default {
                property.set("default", default.clone());
            }
            properties.set(param.name.clone(), property.write());
        }
        let required: Vec<&str> = self
            .params
            .iter()
            .filter(|param| param.required)
            .map(|param| param.name.as_str())
            .collect();
        let mut schema = Object::new();
        schema.set("type", RawJson::write("object"));
        schema.set("properties", properties.write());
        if !required.is_empty() {
            schema.set("required", RawJson::write(&required));
        }
        schema.write()
    }
}

#[cfg(test)]
mod tests;
