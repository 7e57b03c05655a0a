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
    let line = |level: usize, result: usize, optional: usize| {
        let args = brief(&shapes.takes, level, optional, limits.size);
        let given = shapes.gives.as_ref().map(|it| brief(it, result, usize::MAX, limits.size));
        let given = given.as_deref().unwrap_or("any");
        format!("(args{mark}: {args}): Promise<{given}>")
    };
    let fits = |line: &String| line.len() <= limits.size;
    let whole = (1..=LEVELS).rev().map(|level| line(level, level.min(2), usize::MAX)).find(fits);
    let mut line = whole.unwrap_or_else(|| {
        // As many of the properties that may be left out as there is room for.
        let (mut shown, mut step) = (0, limits.size.next_power_of_two());
        while step > 0 {
            if fits(&line(1, 0, shown + step)) {
                shown += step;
            }
            step /= 2;
        }
        line(1, 0, shown)
    });
    if !fits(&line) {
        let end = line.floor_char_boundary(limits.size.saturating_sub(MORE.len()));
        line.truncate(end);
        line.push_str(MORE);
    }
    format!("{}{line}", method(member))
}

/// A whole schema in one line: objects in objects only so far, and so many properties of the outermost that
/// may be left out.
fn brief(shape: &Shape, levels: usize, optional: usize, room: usize) -> String {
    let mut brief = Brief { shape, way: Vec::new(), left: room, optional };
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
    /// Properties of the outermost object that need not be given, and are still shown.
    optional: usize,
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

    fn object(
        &mut self,
        properties: &[Property],
        index: Option<&Property>,
        levels: usize,
        is_root: bool,
    ) -> Type {
        if levels == 0 && !properties.is_empty() {
            return Type::Literal("{…}".to_owned());
        }
        let below = levels.saturating_sub(1);
        let mut kept = Vec::new();
        for property in properties {
            if is_root && property.optional {
                if self.optional == 0 {
                    continue;
                }
                self.optional -= 1;
            }
            let of = self.of(&property.of, below, false);
            let (name, optional) = (property.name.clone(), property.optional);
            kept.push(Property { name, optional, of, doc: Vec::new() });
        }
        if kept.len() < properties.len() {
            if kept.is_empty() {
                return Type::Literal("{…}".to_owned());
            }
            let (name, of) = (MORE.to_owned(), Type::Unknown);
            kept.push(Property { name, optional: false, of, doc: Vec::new() });
        }
        let index = index.map(|index| {
            let (name, of) = (String::new(), self.of(&index.of, below, false));
            Box::new(Property { name, optional: false, of, doc: Vec::new() })
        });
        Type::Object { properties: kept, index }
    }
}
