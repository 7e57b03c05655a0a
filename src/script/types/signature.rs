//! A tool in one line.

use super::Limits;
use super::declare::Shapes;
use super::emit::{Printer, method};
use super::json::Json;
use super::shape::{Property, Shape, Type};
use crate::protocol::jsonrpc::RawJson;
use crate::script::names;

/// Levels of objects that are written out where there is room.
const LEVELS: usize = 3;

/// Stands for the properties that are left out.
pub(super) const MORE: &str = "…";

/// Alternatives that are written out.
const ALTERNATIVES: usize = 8;

/// One line that says how a tool is called: `name(args: { title: string; labels?: string[] }): Promise<any>`.
/// Without descriptions; at most `limits.size` bytes, and the name. `…` stands for what is left out.
pub fn signature(definition: &RawJson, limits: &Limits) -> String {
    let name = definition.member_str("name").unwrap_or_default();
    signature_as(&name, definition, limits)
}

/// The same, with the name by which scripts call it.
pub fn signature_as(member: &str, definition: &RawJson, limits: &Limits) -> String {
    let limits = Limits { description: 0, ..*limits };
    let shapes = Shapes::of(&Json::of(definition).members(), member, &limits);
    let mark = if shapes.takes_nothing() { "?" } else { "" };
    let mut line = String::new();
    for level in (0..=LEVELS).rev() {
        let args = brief(&shapes.takes, level, limits.size);
        let given = shapes.gives.as_ref().map(|gives| brief(gives, level.min(2), limits.size));
        let given = given.as_deref().unwrap_or("any");
        line = format!("(args{mark}: {args}): Promise<{given}>");
        if line.len() <= limits.size {
            break;
        }
    }
    if line.len() > limits.size {
        let end = line.floor_char_boundary(limits.size.saturating_sub("…".len()));
        line.truncate(end);
        line.push('…');
    }
    format!("{}{line}", method(member))
}

/// A whole schema in one line, objects in objects only so far.
fn brief(shape: &Shape, levels: usize, room: usize) -> String {
    let mut brief = Brief { shape, way: Vec::new(), left: room };
    let of = brief.of(shape.root(), levels, true);
    let mut name = |at: usize| brief.name(at);
    Printer { name: &mut name, docs: false }.line(&of)
}

struct Brief<'s> {
    shape: &'s Shape,
    /// The definitions that are being written out.
    way: Vec<usize>,
    /// Types that may still be written: each takes a byte at least.
    left: usize,
}

impl Brief<'_> {
    fn name(&self, at: usize) -> String {
        self.shape.definitions.get(at).map_or_else(String::new, |it| names::identifier(&it.name))
    }

    fn of(&mut self, of: &Type, levels: usize, is_root: bool) -> Type {
        if self.left == 0 {
            return Type::Literal(MORE.to_owned());
        }
        self.left -= 1;
        match of {
            Type::Said(_, of) => self.of(of, levels, is_root),
            Type::List(of) => Type::List(Box::new(self.of(of, levels, false))),
            Type::Tuple { items, needed, rest } => Type::Tuple {
                items: items.iter().map(|of| self.of(of, levels, false)).collect(),
                needed: *needed,
                rest: rest.as_ref().map(|rest| Box::new(self.of(rest, levels, false))),
            },
            Type::Either(types) => {
                let mut kept: Vec<Type> = types
                    .iter()
                    .take(ALTERNATIVES)
                    .map(|of| self.of(of, levels, is_root))
                    .collect();
                if types.len() > ALTERNATIVES {
                    kept.push(Type::Literal(MORE.to_owned()));
                }
                Type::Either(kept)
            }
            Type::Both(types) => {
                Type::Both(types.iter().map(|of| self.of(of, levels, is_root)).collect())
            }
            Type::Ref(at) => self.named(*at, levels, is_root),
            Type::Object { properties, index } if !of.is_record() => {
                self.object(properties, index.as_deref(), levels, is_root)
            }
            of => of.clone(),
        }
    }

    fn named(&mut self, at: usize, levels: usize, is_root: bool) -> Type {
        let meant = self.shape.definitions.get(at).filter(|_| !self.way.contains(&at));
        let Some(meant) = meant.filter(|_| is_root || levels > 0) else {
            return Type::Literal(self.name(at));
        };
        self.way.push(at);
        let of = self.of(&meant.of, levels, is_root);
        self.way.pop();
        of
    }

    /// The root keeps its properties at every level; at the last only those that must be given.
    fn object(
        &mut self,
        properties: &[Property],
        index: Option<&Property>,
        levels: usize,
        is_root: bool,
    ) -> Type {
        if levels == 0 && !is_root && !properties.is_empty() {
            return Type::Literal("{…}".to_owned());
        }
        let below = levels.saturating_sub(1);
        let wanted = |property: &&Property| levels > 0 || !property.optional;
        let mut kept = Vec::new();
        for property in properties.iter().filter(wanted) {
            let of = self.of(&property.of, below, false);
            kept.push(Property { of, doc: Vec::new(), ..property.clone() });
        }
        let index = index.map(|index| {
            Box::new(Property { of: self.of(&index.of, below, false), ..index.clone() })
        });
        if kept.len() < properties.len() {
            if kept.is_empty() {
                return Type::Literal("{…}".to_owned());
            }
            kept.push(Property {
                name: MORE.to_owned(),
                optional: false,
                of: Type::Unknown,
                doc: Vec::new(),
            });
        }
        Type::Object { properties: kept, index }
    }
}
