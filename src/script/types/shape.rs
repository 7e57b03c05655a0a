//! What a schema becomes, before it is text: the few forms of types that TypeScript needs here.

use std::collections::{HashMap, HashSet};

/// A type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Type {
    /// Anything.
    Unknown,
    /// `unknown`, and why nothing better.
    Cut(String),
    /// `string`, `number`, `boolean`, `null`, `undefined` or `never`.
    Name(&'static str),
    /// A literal, as text.
    Literal(String),
    /// `T[]`.
    List(Box<Type>),
    /// `[A, B?, ...C[]]`.
    Tuple {
        /// What has a place of its own.
        items: Vec<Type>,
        /// How many of them must be there.
        needed: usize,
        /// What may follow.
        rest: Option<Box<Type>>,
    },
    /// `{ a: A; b?: B; [key: string]: C }`.
    Object {
        /// By name.
        properties: Vec<Property>,
        /// All others.
        index: Option<Box<Property>>,
    },
    /// `A | B`.
    Either(Vec<Type>),
    /// `A & B`.
    Both(Vec<Type>),
    /// A definition of the same shape, by its number.
    Ref(usize),
    /// A type with words of its own.
    Said(Vec<String>, Box<Type>),
}

/// A property, or the index signature of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) optional: bool,
    pub(super) of: Type,
    pub(super) doc: Vec<String>,
}

/// What somebody refers to.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    /// What its author called it.
    pub(super) name: String,
    pub(super) of: Type,
    pub(super) doc: Vec<String>,
}

/// A schema as a type, with what it refers to. Definition 0 is the schema itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    pub(super) definitions: Vec<Definition>,
}

/// Alternatives that an intersection may multiply to. tsc gives up at 100,000; long before that nobody
/// can read it.
const WIDEST: usize = 256;

/// Alternatives of a definition that is written in the place of its name.
const FEW: usize = 8;

impl Type {
    pub(super) const STRING: Self = Self::Name("string");
    pub(super) const NUMBER: Self = Self::Name("number");
    pub(super) const BOOLEAN: Self = Self::Name("boolean");
    pub(super) const NULL: Self = Self::Name("null");
    pub(super) const UNDEFINED: Self = Self::Name("undefined");
    pub(super) const NEVER: Self = Self::Name("never");

    /// Any object.
    pub(super) fn record() -> Self {
        let index =
            Property { name: String::new(), optional: false, of: Self::Unknown, doc: Vec::new() };
        Self::Object { properties: Vec::new(), index: Some(Box::new(index)) }
    }

    pub(super) fn is_record(&self) -> bool {
        matches!(self, Self::Object { properties, index: Some(index) }
            if properties.is_empty() && index.of == Self::Unknown && index.doc.is_empty())
    }

    /// One of these; whatever one of them leaves open is open.
    pub(super) fn either(types: impl IntoIterator<Item = Self>) -> Self {
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        let mut open = None;
        let flat = types.into_iter().flat_map(|of| match of {
            Self::Either(inner) => inner,
            one => vec![one],
        });
        for of in flat {
            match of.bare() {
                Self::Unknown | Self::Cut(_) => open = open.or(Some(of)),
                _ if of == Self::NEVER => {}
                _ => {
                    if seen.insert(of.clone()) {
                        kept.push(of);
                    }
                }
            }
        }
        match (open, kept.len()) {
            (Some(open), _) => open,
            (None, 0) => Self::NEVER,
            (None, 1) => kept.swap_remove(0),
            (None, _) => Self::Either(kept),
        }
    }

    /// All of these at once.
    pub(super) fn both(types: impl IntoIterator<Item = Self>) -> Self {
        let mut kept = Vec::new();
        let mut cut = None;
        let flat = types.into_iter().flat_map(|of| match of {
            Self::Both(inner) => inner,
            one => vec![one],
        });
        for of in flat {
            match of {
                Self::Unknown => {}
                Self::Cut(_) => cut = cut.or(Some(of)),
                Self::Name("never") => return Self::NEVER,
                of if kept.contains(&of) => {}
                of => kept.push(of),
            }
        }
        let mut merged = merged(kept);
        match merged.len() {
            0 => cut.unwrap_or(Self::Unknown),
            1 => merged.swap_remove(0),
            _ => Self::Both(merged),
        }
    }

    /// Without its words.
    pub(super) fn bare(&self) -> &Self {
        match self {
            Self::Said(_, of) => of.bare(),
            of => of,
        }
    }

    /// With words, where there are any.
    pub(super) fn said(self, doc: Vec<String>) -> Self {
        if doc.is_empty() { self } else { Self::Said(doc, Box::new(self)) }
    }

    /// Its parts, one level down.
    fn parts_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::List(of) | Self::Said(_, of) => vec![of],
            Self::Tuple { items, rest, .. } => {
                items.iter_mut().chain(rest.iter_mut().map(|rest| &mut **rest)).collect()
            }
            Self::Object { properties, index } => {
                let index = index.iter_mut().map(|index| &mut index.of);
                properties.iter_mut().map(|property| &mut property.of).chain(index).collect()
            }
            Self::Either(types) | Self::Both(types) => types.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    /// The definitions that are named anywhere in it, in order.
    pub(super) fn refs(&self, found: &mut Vec<usize>) {
        match self {
            Self::Ref(at) => found.push(*at),
            Self::List(of) | Self::Said(_, of) => of.refs(found),
            Self::Tuple { items, rest, .. } => {
                for of in items.iter().chain(rest.as_deref()) {
                    of.refs(found);
                }
            }
            Self::Object { properties, index } => {
                for property in properties {
                    property.of.refs(found);
                }
                if let Some(index) = index {
                    index.of.refs(found);
                }
            }
            Self::Either(types) | Self::Both(types) => {
                for of in types {
                    of.refs(found);
                }
            }
            _ => {}
        }
    }

    /// Whether it is short enough to stand wherever it is meant.
    fn is_short(&self) -> bool {
        match self {
            Self::Unknown | Self::Cut(_) | Self::Name(_) | Self::Literal(_) => true,
            Self::List(of) => matches!(**of, Self::Name(_) | Self::Unknown),
            Self::Either(types) => {
                types.len() <= FEW
                    && types.iter().all(|of| matches!(of, Self::Name(_) | Self::Literal(_)))
            }
            Self::Object { properties, .. } => properties.is_empty() && self.is_record(),
            _ => false,
        }
    }
}

impl Shape {
    pub(super) fn root(&self) -> &Type {
        self.definitions.first().map_or(&Type::Unknown, |root| &root.of)
    }

    /// Makes of it what the compiler takes: no name that only means itself, no product of alternatives that
    /// nobody could write out; and short definitions in the place of their names.
    pub(super) fn settle(&mut self) {
        let order = self.cut_circles();
        self.write_out_short();
        self.narrow(&order);
    }

    /// A name that means itself without an object or a list between is no type: such names become `unknown`.
    /// Returns the definitions in an order in which each comes after those that it means directly.
    fn cut_circles(&mut self) -> Vec<usize> {
        let mut order = Vec::new();
        // 0: not seen, 1: on the way, 2: done.
        let mut state = vec![0_u8; self.definitions.len()];
        let mut circular = HashSet::new();
        for start in 0..self.definitions.len() {
            let mut way = vec![(start, self.direct(start))];
            while let Some((at, next)) = way.last_mut() {
                let at = *at;
                if state.get(at) == Some(&2) {
                    way.pop();
                    continue;
                }
                set(&mut state, at, 1);
                match next.pop() {
                    Some(to) if state.get(to) == Some(&1) => {
                        circular.insert((at, to));
                    }
                    Some(to) if state.get(to) == Some(&0) => {
                        let direct = self.direct(to);
                        way.push((to, direct));
                    }
                    Some(_) => {}
                    None => {
                        set(&mut state, at, 2);
                        order.push(at);
                        way.pop();
                    }
                }
            }
        }
        for (at, to) in circular {
            if let Some(definition) = self.definitions.get_mut(at) {
                let name = std::mem::replace(&mut definition.of, Type::Unknown);
                definition.of = without(name, to);
            }
        }
        order
    }

    /// What a definition means without an object or a list between.
    fn direct(&self, at: usize) -> Vec<usize> {
        fn walk(of: &Type, found: &mut Vec<usize>) {
            match of {
                Type::Ref(at) => found.push(*at),
                Type::Said(_, of) => walk(of, found),
                Type::Either(types) | Type::Both(types) => {
                    for of in types {
                        walk(of, found);
                    }
                }
                _ => {}
            }
        }
        let mut found = Vec::new();
        self.definitions
            .get(at)
            .into_iter()
            .for_each(|definition| walk(&definition.of, &mut found));
        found
    }

    fn write_out_short(&mut self) {
        let short: Vec<Option<(Type, Vec<String>)>> =
            (0..self.definitions.len()).map(|at| self.short(at)).collect();
        for definition in &mut self.definitions {
            put_short(&mut definition.of, &short);
        }
    }

    /// What a definition is, where that is short, or another definition. Circles have been cut.
    fn short(&self, at: usize) -> Option<(Type, Vec<String>)> {
        let mut last = self.definitions.get(at)?;
        let mut short = None;
        for _ in 0..self.definitions.len() {
            let Type::Ref(next) = last.of else { break };
            short = Some((last.of.clone(), Vec::new()));
            last = self.definitions.get(next)?;
        }
        last.of.is_short().then(|| (last.of.clone(), last.doc.clone())).or(short)
    }

    /// Leaves parts of intersections out that would multiply to too many alternatives.
    fn narrow(&mut self, order: &[usize]) {
        let mut widths = vec![None; self.definitions.len()];
        for at in order {
            let width = self.definitions.get(*at).map_or(1, |it| width(&it.of, &widths));
            if let Some(slot) = widths.get_mut(*at) {
                *slot = Some(width);
            }
        }
        for definition in &mut self.definitions {
            narrow(&mut definition.of, &widths);
        }
    }
}

fn set(state: &mut [u8], at: usize, to: u8) {
    if let Some(slot) = state.get_mut(at) {
        *slot = to;
    }
}

/// Objects that can be one object are: what is in each of them is shorter to read in one.
fn merged(types: Vec<Type>) -> Vec<Type> {
    let mut kept: Vec<Type> = Vec::new();
    let has_object = |types: &[Type]| {
        types.iter().any(|of| matches!(of, Type::Object { .. }) && !of.is_record())
    };
    let any_object = has_object(&types);
    for of in types {
        if any_object && of.is_record() {
            continue;
        }
        let before = kept.iter_mut().find_map(|known| match known {
            Type::Object { properties, index: None } => Some(properties),
            _ => None,
        });
        match (of, before) {
            (Type::Object { properties, index: None }, Some(before))
                if agree(before, &properties) =>
            {
                add(before, properties);
            }
            (of, _) => kept.push(of),
        }
    }
    kept
}

/// Whether what both have says the same, or one of them nothing.
fn agree(one: &[Property], other: &[Property]) -> bool {
    let known: HashMap<&str, &Type> =
        one.iter().map(|property| (property.name.as_str(), &property.of)).collect();
    other.iter().all(|property| match known.get(property.name.as_str()) {
        None => true,
        Some(of) => **of == property.of || **of == Type::Unknown || property.of == Type::Unknown,
    })
}

fn add(to: &mut Vec<Property>, more: Vec<Property>) {
    let places: HashMap<String, usize> =
        to.iter().enumerate().map(|(at, property)| (property.name.clone(), at)).collect();
    for property in more {
        match places.get(&property.name).and_then(|at| to.get_mut(*at)) {
            None => to.push(property),
            Some(known) => {
                known.optional &= property.optional;
                if known.of == Type::Unknown {
                    known.of = property.of;
                }
                known.doc.extend(property.doc.into_iter().filter(|line| !line.is_empty()));
                known.doc.dedup();
            }
        }
    }
}

/// Without the direct mention of a definition.
fn without(of: Type, gone: usize) -> Type {
    match of {
        Type::Ref(at) if at == gone => Type::Cut("it only refers to itself".to_owned()),
        Type::Said(doc, of) => without(*of, gone).said(doc),
        Type::Either(types) => Type::either(types.into_iter().map(|of| without(of, gone))),
        Type::Both(types) => Type::both(types.into_iter().map(|of| without(of, gone))),
        of => of,
    }
}

fn put_short(of: &mut Type, short: &[Option<(Type, Vec<String>)>]) {
    let meant = |of: &Type| match of {
        Type::Ref(at) => short.get(*at).and_then(Option::as_ref),
        _ => None,
    };
    if let Type::Object { properties, index } = of {
        let index = index.iter_mut().map(|index| &mut **index);
        for property in properties.iter_mut().chain(index) {
            if let Some((_, doc)) = meant(&property.of) {
                property.doc.extend(doc.iter().filter(|line| !line.is_empty()).cloned());
            }
        }
    }
    if let Some((short, _)) = meant(of) {
        *of = short.clone();
    }
    for part in of.parts_mut() {
        put_short(part, short);
    }
    match of {
        Type::Either(types) => *of = Type::either(std::mem::take(types)),
        Type::Both(types) => *of = Type::both(std::mem::take(types)),
        _ => {}
    }
}

/// Alternatives that the compiler makes of a type.
fn width(of: &Type, known: &[Option<usize>]) -> usize {
    match of {
        Type::Ref(at) => known.get(*at).copied().flatten().unwrap_or(1),
        Type::Said(_, of) => width(of, known),
        Type::Either(types) => {
            types.iter().map(|of| width(of, known)).fold(0, usize::saturating_add)
        }
        Type::Both(types) => types.iter().map(|of| width(of, known)).fold(1, usize::saturating_mul),
        Type::Name("boolean") => 2,
        _ => 1,
    }
}

fn narrow(of: &mut Type, known: &[Option<usize>]) {
    for part in of.parts_mut() {
        narrow(part, known);
    }
    if let Type::Both(types) = of {
        let mut product = 1_usize;
        let mut left_out = false;
        types.retain(|of| {
            let width = width(of, known).max(1);
            // One list of alternatives may be long; it is their products that explode.
            let fits = width == 1 || product == 1 || product.saturating_mul(width) <= WIDEST;
            if fits {
                product = product.saturating_mul(width);
            }
            left_out |= !fits;
            fits
        });
        if left_out {
            let kept = Type::both(std::mem::take(types));
            *of = kept.said(vec!["More alternatives apply.".to_owned()]);
        }
    }
}
