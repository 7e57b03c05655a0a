//! Schemas to types. Every dialect is read alike: a word means what it means in the dialects that know it,
//! and where two dialects differ the form of the value tells them apart (`items` as a list is a tuple).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;

use super::Limits;
use super::docs;
use super::json::{Json, Members};
use super::refs::Document;
use super::shape::{Definition, Property, Shape, Type};

/// Names and literals longer than this are no help to anybody.
const LONGEST_NAME: usize = 256;

/// Steps of a pointer for each level of a schema: a word and a name.
const STEPS: usize = 2;

/// Kinds of types that an index signature beside properties may list; beyond it is `unknown`.
const INDEX_KINDS: usize = 3;

/// What a schema says, as types. `name` is what the whole is called where it refers to itself.
pub(super) fn shape(schema: Json<'_>, name: &str, limits: &Limits) -> Shape {
    let mut convert = Convert {
        document: Document::new(schema, limits.depth * STEPS, limits.nodes),
        root: schema,
        limits,
        nodes: limits.nodes,
        text: limits.size,
        known: HashMap::new(),
        names: Vec::new(),
        waiting: VecDeque::new(),
    };
    convert.place(Place { schema, base: schema }, name.to_owned());
    let mut shape = Shape::default();
    while let Some(place) = convert.waiting.pop_front() {
        let of = convert.schema(place, limits.depth);
        let is_root = shape.definitions.is_empty();
        let name = convert.names.get(shape.definitions.len()).cloned().unwrap_or_default();
        // The tool's own words stand above those of its arguments.
        let doc = if is_root { Vec::new() } else { convert.words(place.schema, &name) };
        shape.definitions.push(Definition { name, of, doc });
    }
    shape.settle();
    shape
}

/// A schema, and the resource that its references count from.
#[derive(Clone, Copy)]
struct Place<'a> {
    schema: Json<'a>,
    base: Json<'a>,
}

impl<'a> Place<'a> {
    fn at(self, schema: Json<'a>) -> Self {
        Self { schema, ..self }
    }
}

struct Convert<'a, 'l> {
    document: Document<'a>,
    root: Json<'a>,
    limits: &'l Limits,
    /// Schemas that may still be read.
    nodes: usize,
    /// Bytes of descriptions that may still be taken over.
    text: usize,
    /// Definitions by where their schemas stand.
    known: HashMap<usize, usize>,
    names: Vec<String>,
    waiting: VecDeque<Place<'a>>,
}

impl<'a> Convert<'a, '_> {
    /// The number of the definition that stands there.
    fn place(&mut self, place: Place<'a>, name: String) -> usize {
        let next = self.names.len();
        let number = *self.known.entry(place.schema.address()).or_insert(next);
        if number == next {
            self.names.push(name);
            self.waiting.push_back(place);
        }
        number
    }

    /// What a schema says in words.
    fn words(&mut self, schema: Json<'a>, name: &str) -> Vec<String> {
        if !schema.is_object() {
            return Vec::new();
        }
        let members = self.document.open(schema);
        let lines = docs::lines(&members, name, self.limits.description.min(self.text));
        let bytes: usize = lines.iter().map(String::len).sum();
        self.text = self.text.saturating_sub(bytes);
        lines
    }

    fn schema(&mut self, place: Place<'a>, depth: usize) -> Type {
        if self.nodes == 0 {
            return Type::Cut("more than types.nodes".to_owned());
        }
        self.nodes -= 1;
        let schema = place.schema;
        if !schema.is_object() {
            return match schema.as_str() {
                "false" => Type::NEVER,
                _ => Type::Unknown,
            };
        }
        let members = self.document.open(schema);
        let base = if members.has("$id") && schema.address() != self.root.address() {
            schema
        } else {
            place.base
        };
        let place = Place { schema, base };
        if refuses(schema, &members) {
            return Type::NEVER;
        }
        if depth == 0 && members.iter().any(|(word, _)| goes_down(word)) {
            return Type::Cut("deeper than types.depth".to_owned());
        }
        let depth = depth.saturating_sub(1);
        let mut parts = self.composed(&members, place, depth);
        let own = self.own(&members, place, depth);
        // `type: object` beside alternatives that are objects says nothing more.
        let says_nothing = !members.iter().any(|(word, _)| is_specific(word));
        if parts.iter().all(|part| matches!(part, Type::Unknown | Type::Cut(_))) || !says_nothing {
            parts.insert(0, own);
        }
        let of = Type::both(parts);
        let nullable = members.get("nullable").is_some_and(|value| value.is("true"));
        match of {
            Type::Unknown => Type::Unknown,
            of if nullable => Type::either([of, Type::NULL]),
            of => of,
        }
    }

    /// What a schema is composed of, beside its own words.
    fn composed(&mut self, members: &Members<'a>, place: Place<'a>, depth: usize) -> Vec<Type> {
        let mut parts = Vec::new();
        for word in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(reference) = members.text(word) {
                parts.push(self.reference(&reference, place));
            }
        }
        for part in list(members.get("allOf")) {
            parts.push(self.schema(place.at(part), depth));
        }
        for word in ["anyOf", "oneOf"] {
            let options: Vec<_> = list(members.get(word)).collect();
            if !options.is_empty() {
                let options = options.into_iter().map(|one| self.described(place.at(one), depth));
                parts.push(Type::either(options.collect::<Vec<_>>()));
            }
        }
        parts.extend(self.conditional(members, place, depth));
        for word in ["dependentSchemas", "dependencies"] {
            let Some(dependent) = members.get(word) else { continue };
            for (name, schema) in dependent.members().iter().filter(|(_, it)| it.is_object()) {
                let given = Type::Object {
                    properties: vec![property(name, false, Type::Unknown)],
                    index: None,
                };
                let also = self.schema(place.at(schema), depth);
                parts.push(Type::Either(vec![Type::both([given, also]), nothing()]));
            }
        }
        parts
    }

    /// `if`, `then`, `else`: what holds in one case or in the other; a case that says nothing is open.
    fn conditional(
        &mut self,
        members: &Members<'a>,
        place: Place<'a>,
        depth: usize,
    ) -> Option<Type> {
        let condition = members.get("if")?;
        let (then, other) = (members.get("then"), members.get("else"));
        if then.is_none() && other.is_none() {
            return None;
        }
        let condition = self.schema(place.at(condition), depth);
        let mut branch = |schema: Option<Json<'a>>| match schema {
            Some(schema) => self.schema(place.at(schema), depth),
            None => Type::Unknown,
        };
        let (then, other) = (branch(then), branch(other));
        let open = |of: Type| if of == Type::Unknown { nothing() } else { of };
        let then = open(if then == Type::Unknown { then } else { Type::both([condition, then]) });
        Some(Type::Either(vec![then, open(other)]))
    }

    /// A type with the words of its schema, where they have no other place.
    fn described(&mut self, place: Place<'a>, depth: usize) -> Type {
        let of = self.schema(place, depth);
        if matches!(of, Type::Unknown | Type::NULL) || !place.schema.is_object() {
            return of;
        }
        let doc = self.words(place.schema, "");
        of.said(doc)
    }

    fn reference(&mut self, reference: &str, place: Place<'a>) -> Type {
        let shown = docs::clean(docs::head(reference, LONGEST_NAME));
        match self.document.resolve(reference, place.base) {
            Some((schema, base))
                if schema.is_object() || schema.is("true") || schema.is("false") =>
            {
                let name = name_of(reference);
                Type::Ref(self.place(Place { schema, base }, name))
            }
            Some(_) => Type::Cut(format!("$ref {shown} leads to no schema")),
            None if reference.contains("://") => Type::Cut(format!("$ref {shown} is not fetched")),
            None => Type::Cut(format!("$ref {shown} leads nowhere")),
        }
    }

    /// What a schema says by itself.
    fn own(&mut self, members: &Members<'a>, place: Place<'a>, depth: usize) -> Type {
        if let Some(value) = members.get("const") {
            return self.literal(value, depth);
        }
        if let Some(values) = members.get("enum").filter(|values| values.is_array()) {
            return self.enumeration(values, depth);
        }
        let types = match members.get("type") {
            Some(one) if one.is_string() => vec![one],
            Some(several) if several.is_array() => several.elements().take(16).collect(),
            _ => Vec::new(),
        };
        let named: Vec<Type> = types
            .iter()
            .map(|of| match of.text() {
                Some(name) => self.of_name(&name, members, place, depth),
                // Draft 3 had schemas there.
                None => self.schema(place.at(*of), depth),
            })
            .collect();
        if !named.is_empty() {
            return Type::either(named);
        }
        let says = |words: &[&str]| words.iter().any(|word| members.has(word));
        if says(&["properties", "patternProperties", "required"])
            || members.get("additionalProperties").is_some_and(Json::is_object)
        {
            self.object(members, place, depth)
        } else if says(&["items", "prefixItems"]) {
            self.list(members, place, depth)
        } else {
            Type::Unknown
        }
    }

    fn of_name(
        &mut self,
        name: &str,
        members: &Members<'a>,
        place: Place<'a>,
        depth: usize,
    ) -> Type {
        match name {
            "string" => Type::STRING,
            "number" | "integer" => Type::NUMBER,
            "boolean" => Type::BOOLEAN,
            "null" => Type::NULL,
            "object" => self.object(members, place, depth),
            "array" => self.list(members, place, depth),
            _ => Type::Unknown,
        }
    }

    fn enumeration(&mut self, values: Json<'a>, depth: usize) -> Type {
        let mut types = Vec::new();
        for value in values.elements() {
            if self.nodes == 0 {
                types.push(kind_of(value));
                continue;
            }
            self.nodes -= 1;
            types.push(self.literal(value, depth));
        }
        Type::either(types)
    }

    /// The type of one value.
    fn literal(&mut self, value: Json<'a>, depth: usize) -> Type {
        let text = value.as_str();
        if text == "null" {
            return Type::NULL;
        }
        if value.is_array() || value.is_object() {
            if depth == 0 || self.nodes == 0 || text.len() > LONGEST_NAME {
                return kind_of(value);
            }
            if value.is_array() {
                let items: Vec<Type> =
                    value.elements().map(|it| self.literal(it, depth - 1)).collect();
                return Type::Tuple { needed: items.len(), items, rest: None };
            }
            let members = value.members();
            let properties = members
                .iter()
                .map(|(name, value)| property(name, false, self.literal(value, depth - 1)))
                .collect();
            return Type::Object { properties, index: None };
        }
        if text.len() > LONGEST_NAME { kind_of(value) } else { Type::Literal(written(text)) }
    }

    fn object(&mut self, members: &Members<'a>, place: Place<'a>, depth: usize) -> Type {
        let given = members.get("properties").filter(|it| it.is_object());
        let mut missing: Vec<Cow<'a, str>> =
            members.get("required").map(Json::texts).unwrap_or_default();
        let required: HashSet<Cow<'a, str>> = missing.iter().cloned().collect();
        let mut properties = Vec::new();
        let mut left_out = 0;
        let all = given.map(|given| self.document.open(given)).unwrap_or_default();
        for (name, schema) in all.iter() {
            if self.nodes == 0 || name.len() > LONGEST_NAME {
                left_out += 1;
                continue;
            }
            let of = self.schema(place.at(schema), depth);
            let demanded = schema.is_object()
                && self.document.open(schema).get("required").is_some_and(|it| it.is("true"));
            properties.push(Property {
                name: name.to_owned(),
                optional: !demanded && !required.contains(name),
                of,
                doc: self.words(schema, name),
            });
        }
        missing.retain(|name| !all.has(name) && name.len() <= LONGEST_NAME);
        missing.sort();
        missing.dedup();
        missing.truncate(self.nodes);
        self.nodes -= missing.len();
        properties.extend(missing.iter().map(|name| property(name, false, Type::Unknown)));
        let index = self.index(members, place, depth, &properties, left_out);
        let open = given.is_none()
            && properties.is_empty()
            && index.is_none()
            && !members.get("additionalProperties").is_some_and(|it| {
                it.is("false") || it.is_object() && refuses(it, &self.document.open(it))
            });
        if open { Type::record() } else { Type::Object { properties, index } }
    }

    /// The signature of all properties without a name in the schema. TypeScript wants it to take what the
    /// named ones are.
    fn index(
        &mut self,
        members: &Members<'a>,
        place: Place<'a>,
        depth: usize,
        properties: &[Property],
        left_out: usize,
    ) -> Option<Box<Property>> {
        let mut types = Vec::new();
        let mut doc = Vec::new();
        if let Some(patterns) = members.get("patternProperties") {
            let patterns = patterns.members();
            for (pattern, schema) in patterns.iter() {
                doc.push(format!(
                    "Names like `{}`",
                    docs::clean(docs::head(pattern, LONGEST_NAME))
                ));
                types.push(self.schema(place.at(schema), depth));
            }
        }
        let others = ["additionalProperties", "unevaluatedProperties"];
        let open = others.iter().find_map(|word| members.get(word));
        let open = open.filter(|schema| {
            schema.is_object() && !refuses(*schema, &self.document.open(*schema))
                || schema.is("true")
        });
        if let Some(schema) = open {
            types.push(self.schema(place.at(schema), depth));
            if schema.is_object() {
                doc.extend(self.words(schema, ""));
            }
        }
        if left_out > 0 {
            doc.push(format!("{left_out} more properties (types.nodes)"));
            types.push(Type::Unknown);
        }
        if types.is_empty() {
            return None;
        }
        let alone = properties.is_empty();
        types.extend(properties.iter().map(|property| property.of.clone()));
        if properties.iter().any(|property| property.optional) {
            types.push(Type::UNDEFINED);
        }
        let of = match Type::either(types) {
            Type::Either(types) if !alone && types.len() > INDEX_KINDS => Type::Unknown,
            of => of,
        };
        Some(Box::new(Property { name: String::new(), optional: false, of, doc }))
    }

    fn list(&mut self, members: &Members<'a>, place: Place<'a>, depth: usize) -> Type {
        let items = members.get("items");
        let tuple = members.get("prefixItems").or(items).filter(|it| it.is_array());
        let Some(tuple) = tuple else {
            return Type::List(Box::new(match items {
                Some(items) => self.described(place.at(items), depth),
                None => Type::Unknown,
            }));
        };
        let mut places = Vec::new();
        for item in tuple.elements() {
            if self.nodes == 0 {
                break;
            }
            places.push(self.described(place.at(item), depth));
        }
        let rest = if members.has("prefixItems") { items } else { members.get("additionalItems") };
        let count = |word| members.get(word).and_then(Json::count);
        let needed = count("minItems").unwrap_or(0).min(places.len());
        let closed = count("maxItems").is_some_and(|most| most <= places.len());
        let rest = match rest {
            Some(schema) if schema.is("false") => None,
            _ if closed => None,
            Some(schema) => Some(Box::new(self.described(place.at(schema), depth))),
            None => Some(Box::new(Type::Unknown)),
        };
        Type::Tuple { items: places, needed, rest }
    }
}

/// Whether a schema takes nothing, as Go's generators write `false`: `{"not": {}}`.
fn refuses(schema: Json<'_>, members: &Members<'_>) -> bool {
    schema.is_object()
        && members
            .get("not")
            .is_some_and(|not| not.is("true") || not.is_object() && not.members().len() == 0)
}

/// Words that contain schemas.
fn goes_down(word: &str) -> bool {
    matches!(
        word,
        "properties"
            | "patternProperties"
            | "items"
            | "prefixItems"
            | "anyOf"
            | "oneOf"
            | "allOf"
            | "if"
            | "then"
            | "else"
            | "dependentSchemas"
            | "dependencies"
    )
}

/// Words beyond `type` by which a schema says itself what it takes.
fn is_specific(word: &str) -> bool {
    matches!(
        word,
        "properties"
            | "patternProperties"
            | "additionalProperties"
            | "required"
            | "items"
            | "prefixItems"
            | "enum"
            | "const"
    )
}

/// The kind of a value, where the value itself would be too long.
fn kind_of(value: Json<'_>) -> Type {
    match value.as_str().as_bytes().first() {
        Some(b'"') => Type::STRING,
        Some(b't' | b'f') => Type::BOOLEAN,
        Some(b'n') => Type::NULL,
        Some(b'[') => Type::List(Box::new(Type::Unknown)),
        Some(b'{') => Type::record(),
        _ => Type::NUMBER,
    }
}

/// `{}`: what adds nothing to an intersection.
const fn nothing() -> Type {
    Type::Object { properties: Vec::new(), index: None }
}

fn property(name: &str, optional: bool, of: Type) -> Property {
    Property { name: name.to_owned(), optional, of, doc: Vec::new() }
}

fn list(value: Option<Json<'_>>) -> impl Iterator<Item = Json<'_>> {
    value.into_iter().flat_map(Json::elements)
}

/// JSON as TypeScript writes it: the same, but for characters that editors hide.
pub(super) fn written(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{2028}'
            | '\u{2029}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}' => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text
}

/// What the author of a schema calls what a reference leads to.
fn name_of(reference: &str) -> String {
    const WORDS: [&str; 14] = [
        "properties",
        "patternProperties",
        "items",
        "prefixItems",
        "anyOf",
        "oneOf",
        "allOf",
        "if",
        "then",
        "else",
        "definitions",
        "$defs",
        "additionalProperties",
        "schema",
    ];
    let fragment = reference.split_once('#').map_or("", |(_, fragment)| fragment);
    let telling = |part: &&str| {
        !part.is_empty() && !WORDS.contains(part) && !part.chars().all(|c| c.is_ascii_digit())
    };
    let part = fragment.rsplit('/').find(telling);
    let part = part.or_else(|| reference.rsplit(['/', '#']).find(telling)).unwrap_or("Type");
    let part = part.trim_end_matches(".json").trim_end_matches(".schema");
    // Generators write whole paths: `com.example.Page`.
    part.split('.').next_back().filter(|part| !part.is_empty()).unwrap_or(part).to_owned()
}
