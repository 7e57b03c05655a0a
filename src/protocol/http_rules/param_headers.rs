//! Arguments that are repeated in headers: a tool's schema marks them with `x-mcp-header`, whoever
//! calls it over HTTP sends `Mcp-Param-{name}` for each, and whoever serves it compares (2026-07-28
//! tools page, "x-mcp-header", and Streamable HTTP page, "Custom Headers from Tool Parameters"; U-23
//! to U-26). No older revision and no other transport knows them.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use http::{HeaderMap, HeaderName};

use super::headers::{PARAM_PREFIX, decode_value, encode_value, mismatch, one};
use crate::protocol::jsonrpc::skim::{KeyFinder, has_escaped_ascii};
use crate::protocol::jsonrpc::{Code, Object, RawJson, RpcError};

const KEY: &str = "x-mcp-header";

static FINDER: LazyLock<KeyFinder> = LazyLock::new(|| KeyFinder::new("x-mcp-header\""));

/// How deep a schema is looked through, as deep as `serde_json` reads anything: what is marked deeper
/// makes its tool invalid.
const DEPTH: usize = 128;

/// Most marks of one tool: beyond it HTTP servers refuse the request for its number of headers.
const MARKS: usize = 64;

/// Beyond it JavaScript cannot tell whole numbers apart, and the specification forbids them.
const SAFE: i64 = (1 << 53) - 1;

/// Members of a schema whose members are schemas by a name of their own.
const NAMED: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Members of a schema that hold data, in which nothing is a mark.
const DATA: [&str; 5] = ["enum", "const", "default", "example", "examples"];

/// Why a tool's marks are none; it must not be offered over modern HTTP (U-24).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMark {
    /// The mark is no string.
    #[error("`x-mcp-header` at {at} is not a string")]
    NotText {
        /// Where in the schema.
        at: String,
    },
    /// The mark is no RFC 9110 token.
    #[error("`x-mcp-header` {name:?} at {at} cannot be part of a header's name")]
    NotToken {
        /// Where in the schema.
        at: String,
        /// What stands there.
        name: String,
    },
    /// Two parameters would share a header.
    #[error("`x-mcp-header` {name:?} at {at} stands there twice (case does not count)")]
    Twice {
        /// Where in the schema, the second one.
        at: String,
        /// What stands there.
        name: String,
    },
    /// Only an integer, a string or a boolean may be repeated.
    #[error("`x-mcp-header` at {at} is on a parameter that is no integer, string or boolean")]
    Type {
        /// Where in the schema.
        at: String,
    },
    /// No chain of `properties` leads there.
    #[error("`x-mcp-header` at {at} is not on a property that `properties` alone lead to")]
    Unreachable {
        /// Where in the schema.
        at: String,
    },
    /// More than anybody would look through.
    #[error("its schema is nested too deep, or has too many `x-mcp-header`, to be checked")]
    TooMuch,
}

/// What a marked parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Text,
    Boolean,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    header: HeaderName,
    path: Vec<String>,
    kind: Kind,
}

/// A tool's marked parameters, with the header of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamHeaders(Vec<Mark>);

/// A tool that must not be offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excluded {
    /// Its name.
    pub tool: String,
    /// What is wrong with it.
    pub why: BadMark,
}

/// A list of tools as a modern HTTP connection may use it.
#[derive(Debug, Default)]
pub struct Admitted {
    /// The tools that may be offered, in their order.
    pub tools: Vec<RawJson>,
    /// Those with marked parameters, by name.
    pub marked: HashMap<String, ParamHeaders>,
    /// The others.
    pub excluded: Vec<Excluded>,
}

/// Sorts out the tools of a modern HTTP server (U-24).
pub fn admit(tools: Vec<RawJson>) -> Admitted {
    let mut admitted = Admitted::default();
    for tool in tools {
        let name = tool.member_str("name").unwrap_or_default();
        match ParamHeaders::of_tool(&tool) {
            Ok(marks) => {
                if !marks.is_empty() {
                    admitted.marked.insert(name, marks);
                }
                admitted.tools.push(tool);
            }
            Err(why) => admitted.excluded.push(Excluded { tool: name, why }),
        }
    }
    admitted
}

impl ParamHeaders {
    /// The marks of a tool as it was listed.
    pub fn of_tool(tool: &RawJson) -> Result<Self, BadMark> {
        if !may_be_marked(tool) {
            return Ok(Self::default());
        }
        tool.member("inputSchema").map_or_else(|| Ok(Self::default()), |it| Self::of_schema(&it))
    }

    /// The marks of an input schema (U-23).
    pub fn of_schema(schema: &RawJson) -> Result<Self, BadMark> {
        let mut walk = Walk { marks: Vec::new(), names: HashSet::new(), place: Vec::new() };
        // The root is no property of anything.
        walk.schema(schema, None)?;
        Ok(Self(walk.marks))
    }

    /// Whether no parameter is marked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers of a call with these arguments (U-25): none for what is absent or null. What
    /// cannot be a header's value is refused before anything is sent, as the server would refuse it.
    pub fn mirror(&self, arguments: Option<&RawJson>) -> Result<HeaderMap, RpcError> {
        let mut headers = HeaderMap::new();
        for mark in &self.0 {
            let Some(value) = mark.value(arguments) else { continue };
            let text = mark.text(&value).map_err(|why| {
                let text = format!("the argument `{}` {why}", mark.path.join("."));
                RpcError::new(Code::InvalidParams, text)
            })?;
            headers.insert(mark.header.clone(), encode_value(&text));
        }
        Ok(headers)
    }

    /// Whether the headers of a call say what its arguments say; -32020 where not. Headers that no
    /// parameter is marked for are nobody's business.
    pub fn check(&self, headers: &HeaderMap, arguments: Option<&RawJson>) -> Result<(), RpcError> {
        self.0.iter().try_for_each(|mark| mark.check(headers, arguments))
    }
}

/// Compares a host's call with the schema of the tool it calls, as it was listed to that host: the
/// server's half of the rule. A tool whose marks are bad has no rule to compare by.
pub fn check_call(
    headers: &HeaderMap,
    tool: &RawJson,
    arguments: Option<&RawJson>,
) -> Result<(), RpcError> {
    ParamHeaders::of_tool(tool).map_or(Ok(()), |marks| marks.check(headers, arguments))
}

impl Mark {
    /// The argument, where there is one.
    fn value(&self, arguments: Option<&RawJson>) -> Option<RawJson> {
        let mut value = arguments?.clone();
        for step in &self.path {
            value = value.member(step)?;
        }
        (!value.is_null()).then_some(value)
    }

    /// The argument as a header says it, or what is wrong with it.
    fn text(&self, value: &RawJson) -> Result<String, &'static str> {
        match self.kind {
            Kind::Text => value.text().ok_or("must be a string: a header repeats it"),
            Kind::Boolean => match value.as_bytes() {
                b"true" | b"false" => Ok(value.as_str().to_owned()),
                _ => Err("must be true or false: a header repeats it"),
            },
            Kind::Integer => match whole(value.as_str()) {
                Some(number) => Ok(number.to_string()),
                None => Err("must be an integer between -(2^53-1) and 2^53-1: a header repeats it"),
            },
        }
    }

    fn check(&self, headers: &HeaderMap, arguments: Option<&RawJson>) -> Result<(), RpcError> {
        let shown = &self.header;
        let argument = self.path.join(".");
        let header = one(headers, shown)?;
        let value = self.value(arguments);
        let (header, value) = match (header, value) {
            (None, None) => return Ok(()),
            (Some(_), None) => {
                let text = format!("the header {shown} is there, the argument `{argument}` is not");
                return Err(mismatch(text));
            }
            (None, Some(_)) => {
                let text = format!("the header {shown} must repeat the argument `{argument}`");
                return Err(mismatch(text));
            }
            (Some(header), Some(value)) => (header, value),
        };
        let said = decode_value(header)
            .map_err(|bad| mismatch(format!("the header {shown} cannot be read: {bad}")))?;
        // By value where it is a number: 42.0 is 42.
        let same = match (self.kind, whole(&said), whole(value.as_str())) {
            (Kind::Integer, Some(said), Some(meant)) => said == meant,
            _ => said == value.text().unwrap_or_else(|| value.as_str().to_owned()),
        };
        if same {
            return Ok(());
        }
        let text =
            format!("the header {shown} says {said:?}, which the argument `{argument}` is not");
        Err(mismatch(text))
    }
}

/// A whole number within the safe range, however it is written.
fn whole(text: &str) -> Option<i64> {
    let exact = text.parse::<i64>().ok();
    let number = exact.or_else(|| {
        let value: f64 = serde_json::from_str(text).ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "whole, and small enough for any i64")]
        let number = (value.fract() == 0.0 && value.abs() < 1e16).then_some(value as i64);
        number
    })?;
    (-SAFE..=SAFE).contains(&number).then_some(number)
}

/// Whether a mark may be somewhere in it.
fn may_be_marked(value: &RawJson) -> bool {
    FINDER.is_in(value.as_bytes()) || has_escaped_ascii(value.as_bytes())
}

/// A walk over all of a schema, not only over what `properties` lead to: a mark in the wrong place
/// makes the tool invalid.
struct Walk {
    marks: Vec<Mark>,
    /// In lower case.
    names: HashSet<String>,
    /// Where in the schema.
    place: Vec<String>,
}

impl Walk {
    /// Looks through a schema. `path` leads to it from the arguments, where `properties` alone do;
    /// it is empty at the root only where called so by [`Self::named`].
    fn schema(&mut self, schema: &RawJson, path: Option<&[String]>) -> Result<(), BadMark> {
        if !may_be_marked(schema) {
            return Ok(());
        }
        if self.place.len() > DEPTH {
            return Err(BadMark::TooMuch);
        }
        let Ok(members) = Object::read(schema) else {
            return self.list(schema);
        };
        if let Some(mark) = members.get(KEY) {
            self.mark(mark, &members, path)?;
        }
        let is_root = self.place.is_empty();
        for (key, value) in members.iter() {
            if key == KEY || DATA.contains(&key) {
                continue;
            }
            self.place.push(key.to_owned());
            if NAMED.contains(&key) && value.is_object() {
                let below = if is_root { Some([].as_slice()) } else { path };
                self.named(value, below.filter(|_| key == "properties"))?;
            } else {
                self.schema(value, None)?;
            }
            self.place.pop();
        }
        Ok(())
    }

    fn list(&mut self, list: &RawJson) -> Result<(), BadMark> {
        for (index, item) in list.elements().unwrap_or_default().iter().enumerate() {
            self.place.push(index.to_string());
            self.schema(item, None)?;
            self.place.pop();
        }
        Ok(())
    }

    /// Schemas by name; `path` leads to what has them as its properties.
    fn named(&mut self, schemas: &RawJson, path: Option<&[String]>) -> Result<(), BadMark> {
        for (name, schema) in Object::read_or_empty(Some(schemas)).iter() {
            self.place.push(name.to_owned());
            let path = path.map(|path| [path, &[name.to_owned()]].concat());
            self.schema(schema, path.as_deref())?;
            self.place.pop();
        }
        Ok(())
    }

    fn mark(
        &mut self,
        mark: &RawJson,
        members: &Object,
        path: Option<&[String]>,
    ) -> Result<(), BadMark> {
        let at = self.at();
        let Some(name) = mark.text() else { return Err(BadMark::NotText { at }) };
        let header = (!name.is_empty()).then(|| format!("{PARAM_PREFIX}{name}"));
        let Some(header) = header.and_then(|it| HeaderName::from_bytes(it.as_bytes()).ok()) else {
            return Err(BadMark::NotToken { at, name });
        };
        let Some(path) = path else { return Err(BadMark::Unreachable { at }) };
        let Some(kind) = members.get("type").and_then(kind) else {
            return Err(BadMark::Type { at });
        };
        if !self.names.insert(name.to_ascii_lowercase()) {
            return Err(BadMark::Twice { at, name });
        }
        if self.marks.len() >= MARKS {
            return Err(BadMark::TooMuch);
        }
        self.marks.push(Mark { header, path: path.to_vec(), kind });
        Ok(())
    }

    /// A JSON Pointer, for people.
    fn at(&self) -> String {
        let mut at = "#".to_owned();
        for step in &self.place {
            // Writing to a `String` does not fail.
            let _ = write!(at, "/{}", step.replace('~', "~0").replace('/', "~1"));
        }
        at
    }
}

/// The type of a marked parameter; one that may be null as well is still of that type, and null is
/// not repeated.
fn kind(declared: &RawJson) -> Option<Kind> {
    let of = |word: &str| match word {
        "integer" => Some(Kind::Integer),
        "string" => Some(Kind::Text),
        "boolean" => Some(Kind::Boolean),
        _ => None,
    };
    if let Some(word) = declared.text() {
        return of(&word);
    }
    let words: Vec<String> = declared.elements()?.iter().filter_map(RawJson::text).collect();
    let mut others = words.iter().filter(|word| *word != "null");
    let only = others.next().and_then(|word| of(word));
    only.filter(|_| others.next().is_none())
}

#[cfg(test)]
mod tests;
