//! Tools as declarations: what `tools` is in a script, and the types that have names.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::convert::shape;
use super::emit::{Printer, comment, margin, method};
use super::json::{Json, Members};
use super::shape::{Definition, Shape, Type};
use super::{Limits, docs};
use crate::protocol::jsonrpc::RawJson;
use crate::script::names;

/// A server whose tools are declared.
#[derive(Debug)]
pub struct Namespace<'a> {
    /// Its name after `tools.`.
    pub member: String,
    /// What it is, where that is to be said.
    pub about: String,
    /// Its tools, or those of them that are wanted.
    pub tools: Vec<Tool<'a>>,
}

/// A tool that is declared.
#[derive(Debug)]
pub struct Tool<'a> {
    /// Its name after its server's.
    pub member: String,
    /// The tool as its server lists it.
    pub definition: &'a RawJson,
}

/// Declarations.
#[derive(Debug, PartialEq, Eq)]
pub struct Declared {
    /// TypeScript: `interface Tools { … }`, and the types that it names.
    pub text: String,
    /// The tools that there was no room for, by their members: of the namespace, of the tool.
    pub left_out: Vec<(String, String)>,
}

/// Declares these tools. With `room`, only as many as fit into so many bytes; the first always, with less
/// detail where it needs more.
pub fn declare(namespaces: &[Namespace<'_>], limits: &Limits, room: Option<usize>) -> Declared {
    let mut types = Types::default();
    let mut text = String::from("interface Tools {\n");
    let mut left_out = Vec::new();
    let mut left = room.unwrap_or(usize::MAX);
    let mut is_first = true;
    for namespace in namespaces {
        let mut methods = String::new();
        for tool in &namespace.tools {
            let written =
                left_out.is_empty().then(|| types.fit(namespace, tool, limits, left, is_first));
            let Some(written) = written.flatten() else {
                left_out.push((namespace.member.clone(), tool.member.clone()));
                continue;
            };
            is_first = false;
            left = left.saturating_sub(written.size());
            methods.push_str(&written.method);
            types.text.push_str(&written.types);
        }
        if !methods.is_empty() || namespace.tools.is_empty() {
            comment(&mut text, &docs::text_lines(&namespace.about, limits.description), 1);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {}: {{\n{methods}  }};", method(&namespace.member));
        }
    }
    text.push_str("}\n");
    text.push_str(&types.text);
    Declared { text, left_out }
}

/// What a tool takes and gives.
pub(super) struct Shapes {
    pub(super) takes: Shape,
    pub(super) gives: Option<Shape>,
    /// What is odd about its schemas.
    odd: Option<&'static str>,
}

impl Shapes {
    pub(super) fn of(definition: &Members<'_>, member: &str, limits: &Limits) -> Self {
        let (mut takes, mut odd) = (Shape::default(), None);
        match definition.get("inputSchema") {
            Some(schema) if schema.is_object() => {
                takes = shape(schema, &format!("{member}_args"), limits);
            }
            Some(schema) if schema.is("null") || schema.is("true") => {}
            Some(_) => odd = Some("Its input schema is no schema."),
            None => {}
        }
        if let Some(root) = takes.definitions.first_mut() {
            match root.of.bare() {
                Type::Unknown | Type::Cut(_) => root.of = Type::record(),
                Type::Name(_) | Type::Literal(_) | Type::List(_) | Type::Tuple { .. } => {
                    odd = Some("Its input schema is not that of an object.");
                    root.of = Type::record();
                }
                _ => {}
            }
        } else {
            let doc = Vec::new();
            takes.definitions.push(Definition { name: String::new(), of: Type::record(), doc });
        }
        let output = definition.get("outputSchema").filter(|schema| schema.is_object());
        let gives = output.map(|schema| shape(schema, &format!("{member}_result"), limits));
        Self { takes, gives, odd }
    }

    /// Whether a call needs no arguments.
    pub(super) fn takes_nothing(&self) -> bool {
        will_do(self.takes.root(), &self.takes, COMPARED)
    }
}

/// Whether `{}` will do for a type. Ways over more than so many names are not followed.
fn will_do(of: &Type, shape: &Shape, names: usize) -> bool {
    let all = |of: &Type| will_do(of, shape, names);
    match of {
        Type::Unknown | Type::Cut(_) => true,
        Type::Object { properties, .. } => properties.iter().all(|property| property.optional),
        Type::Said(_, of) => will_do(of, shape, names),
        Type::Either(types) => types.iter().any(all),
        Type::Both(types) => types.iter().all(all),
        Type::Ref(at) if names > 0 => {
            let meant = shape.definitions.get(*at);
            meant.is_some_and(|meant| will_do(&meant.of, shape, names - 1))
        }
        _ => false,
    }
}

/// Definitions of one schema up to which those of several tools are compared.
const COMPARED: usize = 64;

/// The types with names of one text: the same definition of several tools has one name.
#[derive(Default)]
struct Types {
    text: String,
    /// Names by what they stand for.
    known: HashMap<String, String>,
    taken: HashSet<String>,
    /// The next number of a name that is taken.
    next: HashMap<String, usize>,
}

/// One tool as text, and the types that it adds.
#[derive(Default)]
struct Written {
    method: String,
    types: String,
    /// What it added to [`Types::known`].
    keys: Vec<String>,
}

impl Written {
    const fn size(&self) -> usize {
        self.method.len() + self.types.len()
    }
}

impl Types {
    fn write(
        &mut self,
        namespace: &Namespace<'_>,
        tool: &Tool<'_>,
        limits: &Limits,
        docs: bool,
    ) -> Written {
        let definition = Json::of(tool.definition).members();
        let shapes = Shapes::of(&definition, &tool.member, limits);
        let mut written = Written::default();
        let args = self.root(&shapes.takes, namespace, docs, &mut written);
        let gives = shapes.gives.as_ref();
        let gives = gives.map(|shape| self.root(shape, namespace, docs, &mut written));
        let out = &mut written.method;
        comment(out, &tool_lines(&definition, &tool.member, shapes.odd, limits), 2);
        margin(out, 2);
        out.push_str(&method(&tool.member));
        out.push_str(if shapes.takes_nothing() { "(args?: " } else { "(args: " });
        out.push_str(&args);
        out.push_str("): Promise<");
        out.push_str(gives.as_deref().unwrap_or("any"));
        out.push_str(">;\n");
        written
    }

    /// The type of a whole schema; what it names goes into `written`.
    fn root(
        &mut self,
        shape: &Shape,
        namespace: &Namespace<'_>,
        docs: bool,
        written: &mut Written,
    ) -> String {
        let used = used(shape);
        let mut names = HashMap::new();
        let mut fresh = Vec::new();
        for at in &used {
            let Some(definition) = shape.definitions.get(*at) else { continue };
            let compared = used.len() <= COMPARED;
            let key = compared.then(|| format!("{} {}", namespace.member, meaning(shape, *at)));
            if let Some(known) = key.as_ref().and_then(|key| self.known.get(key)) {
                names.insert(*at, known.clone());
                continue;
            }
            let name = self.free(&namespace.member, &definition.name);
            let key = key.unwrap_or_else(|| name.clone());
            self.known.insert(key.clone(), name.clone());
            written.keys.push(key);
            names.insert(*at, name.clone());
            fresh.push((definition, name));
        }
        let mut name = |at: usize| names.get(&at).cloned().unwrap_or_default();
        let mut printer = Printer { name: &mut name, docs };
        let out = &mut written.types;
        for (definition, name) in fresh {
            if docs {
                comment(out, &definition.doc, 0);
            }
            let body = printer.block(&definition.of, 0);
            let is_object = matches!(&definition.of, Type::Object { .. }) && body.starts_with('{');
            let (word, is, end) =
                if is_object { ("interface", "", "") } else { ("type", "= ", ";") };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{word} {name} {is}{body}{end}");
        }
        names.get(&0).cloned().unwrap_or_else(|| printer.block(shape.root(), 2))
    }

    /// A name for a type that no other one has.
    fn free(&mut self, member: &str, name: &str) -> String {
        let base = format!("{}_{}", names::identifier(member), names::identifier(name));
        let mut free = base.clone();
        while !self.taken.insert(free.clone()) {
            let next = self.next.entry(base.clone()).or_insert(1);
            *next += 1;
            free = format!("{base}_{next}");
        }
        free
    }

    /// One tool in so many bytes. With ever less detail where it `must` be there; the least may still be
    /// more than fits.
    fn fit(
        &mut self,
        namespace: &Namespace<'_>,
        tool: &Tool<'_>,
        limits: &Limits,
        left: usize,
        must: bool,
    ) -> Option<Written> {
        let mut less = *limits;
        loop {
            let docs = less == *limits;
            let written = self.write(namespace, tool, &less, docs);
            if written.size() <= left || must && less.depth == 0 {
                return Some(written);
            }
            self.drop(&written);
            if !must {
                return None;
            }
            less.depth /= 2;
            less.nodes = (less.nodes / 4).min(less.nodes * left / written.size().max(1));
            less.description /= 4;
        }
    }

    /// Forgets what was written.
    fn drop(&mut self, written: &Written) {
        for key in &written.keys {
            if let Some(name) = self.known.remove(key) {
                self.taken.remove(&name);
            }
        }
    }
}

/// The definitions that a shape needs by name, in the order in which they are named.
fn used(shape: &Shape) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    shape.root().refs(&mut found);
    let mut at = 0;
    loop {
        order.extend(found.drain(..).filter(|at| seen.insert(*at)));
        let Some(next) = order.get(at).and_then(|at| shape.definitions.get(*at)) else {
            return order;
        };
        next.of.refs(&mut found);
        at += 1;
    }
}

/// All that a definition says, and all that it refers to: the same text where it is the same type.
fn meaning(shape: &Shape, at: usize) -> String {
    let order = RefCell::new(vec![at]);
    let mut text = String::new();
    let mut done = 0;
    loop {
        let next = order.borrow().get(done).copied();
        let Some(definition) = next.and_then(|at| shape.definitions.get(at)) else { return text };
        let mut name = |at: usize| {
            let mut order = order.borrow_mut();
            let place = order.iter().position(|known| *known == at).unwrap_or_else(|| {
                order.push(at);
                order.len() - 1
            });
            format!("#{place}")
        };
        let body = Printer { name: &mut name, docs: true }.block(&definition.of, 0);
        let _ = writeln!(text, "{} {} {body}", definition.name, definition.doc.join("\n"));
        done += 1;
    }
}

fn tool_lines(
    definition: &Members<'_>,
    member: &str,
    odd: Option<&str>,
    limits: &Limits,
) -> Vec<String> {
    let said = |key| definition.text(key).filter(|text| !text.trim().is_empty());
    let text = said("description").or_else(|| said("title")).unwrap_or_default();
    let mut lines = docs::text_lines(&text, limits.description);
    let name = said("name").unwrap_or_default();
    if name != member {
        let name = docs::clean(docs::head(&name, limits.description));
        match lines.first_mut() {
            Some(first) => *first = format!("`{name}`: {first}"),
            None => lines.push(format!("`{name}`")),
        }
    }
    lines.extend(odd.map(str::to_owned));
    lines
}
