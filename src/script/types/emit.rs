//! Types as text.

use super::convert::written;
use super::shape::{Property, Type};
use super::signature::MORE;
use crate::protocol::jsonrpc::RawJson;
use crate::script::names;

/// Columns that an object may take in one line.
const WIDTH: usize = 80;

/// Writes types; `name` gives the name of a definition.
pub(super) struct Printer<'p> {
    pub(super) name: &'p mut dyn FnMut(usize) -> String,
    /// Whether descriptions are written.
    pub(super) docs: bool,
}

/// How a type stands in another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Within {
    Anything,
    Both,
    List,
}

impl Printer<'_> {
    /// The type in one line, without the descriptions of properties.
    pub(super) fn line(&mut self, of: &Type) -> String {
        let mut out = Out { text: String::new(), flat: Some(usize::MAX), failed: false };
        let docs = std::mem::replace(&mut self.docs, false);
        self.put(&mut out, of, 0, Within::Anything);
        self.docs = docs;
        out.text
    }

    /// The type, objects over several lines where they need them.
    pub(super) fn block(&mut self, of: &Type, indent: usize) -> String {
        let mut out = Out { text: String::new(), flat: None, failed: false };
        self.put(&mut out, of, indent, Within::Anything);
        out.text
    }

    fn put(&mut self, out: &mut Out, of: &Type, indent: usize, within: Within) {
        if out.is_over() {
            return;
        }
        match of {
            Type::Cut(why) if self.docs => out.add(&format!("unknown /* {why} */")),
            Type::Unknown | Type::Cut(_) => out.add("unknown"),
            Type::Name(name) => out.add(name),
            Type::Literal(text) => out.add(text),
            Type::Ref(at) => {
                let name = (self.name)(*at);
                out.add(&name);
            }
            Type::Said(doc, of) => {
                if self.docs {
                    out.add(&format!("/** {} */ ", doc.join(" ")));
                }
                self.put(out, of, indent, within);
            }
            Type::List(of) => {
                self.put(out, of, indent, Within::List);
                out.add("[]");
            }
            Type::Tuple { items, needed, rest } => {
                self.tuple(out, items, *needed, rest.as_deref(), indent);
            }
            Type::Object { properties, index } => {
                if of.is_record() {
                    out.add("Record<string, unknown>");
                } else {
                    self.object(out, properties, index.as_deref(), indent);
                }
            }
            Type::Either(types) => self.joined(out, types, " | ", indent, within),
            Type::Both(types) => self.joined(out, types, " & ", indent, within),
        }
    }

    fn joined(
        &mut self,
        out: &mut Out,
        types: &[Type],
        joint: &str,
        indent: usize,
        within: Within,
    ) {
        let inner = if joint == " & " { Within::Both } else { Within::Anything };
        let braces = within == Within::List || within == Within::Both && joint == " | ";
        if braces {
            out.add("(");
        }
        for (at, of) in types.iter().enumerate() {
            if at > 0 {
                out.add(joint);
            }
            self.put(out, of, indent, inner);
        }
        if braces {
            out.add(")");
        }
    }

    fn tuple(
        &mut self,
        out: &mut Out,
        items: &[Type],
        needed: usize,
        rest: Option<&Type>,
        indent: usize,
    ) {
        out.add("[");
        for (at, of) in items.iter().enumerate() {
            if at > 0 {
                out.add(", ");
            }
            if at < needed {
                self.put(out, of, indent, Within::Anything);
            } else {
                self.put(out, of, indent, Within::List);
                out.add("?");
            }
        }
        if let Some(rest) = rest {
            out.add(if items.is_empty() { "..." } else { ", ..." });
            self.put(out, rest, indent, Within::List);
            out.add("[]");
        }
        out.add("]");
    }

    fn object(
        &mut self,
        out: &mut Out,
        properties: &[Property],
        index: Option<&Property>,
        indent: usize,
    ) {
        if properties.is_empty() && index.is_none() {
            return out.add("{}");
        }
        let documented = |property: &Property| self.docs && !property.doc.is_empty();
        let speaks = properties.iter().chain(index).any(documented);
        if out.flat.is_some() {
            if speaks {
                out.failed = true;
                return;
            }
            return self.flat(out, properties, index, indent);
        }
        if !speaks {
            let start = out.text.len();
            out.flat = Some(start + WIDTH);
            self.flat(out, properties, index, indent);
            let fits = !out.is_over();
            out.flat = None;
            out.failed = false;
            if fits {
                return;
            }
            out.text.truncate(start);
        }
        out.add("{\n");
        for (property, named) in all(properties, index) {
            if self.docs {
                comment(&mut out.text, &property.doc, indent + 1);
            }
            margin(&mut out.text, indent + 1);
            self.property(out, property, named, indent + 1);
            out.add(";\n");
        }
        margin(&mut out.text, indent);
        out.add("}");
    }

    fn flat(
        &mut self,
        out: &mut Out,
        properties: &[Property],
        index: Option<&Property>,
        indent: usize,
    ) {
        out.add("{ ");
        for (at, (property, named)) in all(properties, index).enumerate() {
            if at > 0 {
                out.add("; ");
            }
            self.property(out, property, named, indent);
        }
        out.add(" }");
    }

    fn property(&mut self, out: &mut Out, property: &Property, named: bool, indent: usize) {
        if named && !self.docs && property.name == MORE {
            return out.add(MORE);
        }
        if named {
            out.add(&key(&property.name));
        } else {
            out.add("[key: string]");
        }
        out.add(if property.optional { "?: " } else { ": " });
        self.put(out, &property.of, indent, Within::Anything);
    }
}

/// The named properties, and the index signature.
fn all<'p>(
    properties: &'p [Property],
    index: Option<&'p Property>,
) -> impl Iterator<Item = (&'p Property, bool)> {
    properties.iter().map(|property| (property, true)).chain(index.map(|index| (index, false)))
}

struct Out {
    text: String,
    /// Everything in one line, which ends here at the latest.
    flat: Option<usize>,
    /// It did not fit into one line.
    failed: bool,
}

impl Out {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn is_over(&self) -> bool {
        self.failed || self.flat.is_some_and(|end| self.text.len() > end)
    }
}

/// A name before a colon, in quotes where it needs them.
pub(super) fn key(name: &str) -> String {
    let mut chars = name.chars();
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    let plain = chars.next().is_some_and(first) && chars.all(|c| first(c) || c.is_ascii_digit());
    if plain { name.to_owned() } else { written(RawJson::write(name).as_str()) }
}

/// A name for a method: `new` would be a constructor.
pub(super) fn method(name: &str) -> String {
    if name == "new" || !names::is_identifier(name) {
        written(RawJson::write(name).as_str())
    } else {
        name.to_owned()
    }
}

/// A doc comment, in one line where it is one.
pub(super) fn comment(out: &mut String, lines: &[String], indent: usize) {
    match lines {
        [] => {}
        [line] => {
            margin(out, indent);
            out.push_str("/** ");
            out.push_str(line);
            out.push_str(" */\n");
        }
        lines => {
            margin(out, indent);
            out.push_str("/**\n");
            for line in lines {
                margin(out, indent);
                out.push_str(" * ");
                out.push_str(line);
                out.push('\n');
            }
            margin(out, indent);
            out.push_str(" */\n");
        }
    }
}

pub(super) fn margin(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n("  ", indent));
}
