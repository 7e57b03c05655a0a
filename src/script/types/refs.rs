//! What `$ref` means: JSON pointers, anchors and identifiers within one schema. Nothing is ever fetched.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::json::{Json, Members};

/// A schema and what of it has been looked into.
#[derive(Debug)]
pub(super) struct Document<'a> {
    root: Json<'a>,
    /// Steps of one pointer.
    steps: usize,
    /// Values that are looked at for names.
    values: usize,
    objects: HashMap<usize, Rc<Members<'a>>>,
    lists: HashMap<usize, Rc<Vec<Json<'a>>>>,
    /// Anchors with their `#`, and identifiers, whole and by their last part.
    names: Option<HashMap<String, Json<'a>>>,
}

impl<'a> Document<'a> {
    /// Pointers take at most `steps` steps; names are looked for in at most `values` objects and lists.
    pub(super) fn new(root: Json<'a>, steps: usize, values: usize) -> Self {
        let (objects, lists) = (HashMap::new(), HashMap::new());
        Self { root, steps, values, objects, lists, names: None }
    }

    /// Where `reference` leads from within the resource `base`, and the resource that it leads into; what is
    /// not in this schema is `None`.
    pub(super) fn resolve(
        &mut self,
        reference: &str,
        base: Json<'a>,
    ) -> Option<(Json<'a>, Json<'a>)> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let start = if address.is_empty() { base } else { self.named(address)? };
        let fragment = percent_decoded(fragment);
        if fragment.is_empty() {
            return Some((start, start));
        }
        let Some(pointer) = fragment.strip_prefix('/') else {
            return self.named(&format!("#{fragment}")).map(|found| (found, start));
        };
        if let Some(found) = self.follow(start, pointer) {
            return Some((found, start));
        }
        // Many generators count from the root whatever `$id` says.
        let root = self.root;
        let again = address.is_empty() && base.address() != root.address();
        again.then(|| self.follow(root, pointer)).flatten().map(|found| (found, root))
    }

    /// The members of a value; each is opened once, as a schema may be long.
    pub(super) fn open(&mut self, at: Json<'a>) -> Rc<Members<'a>> {
        Rc::clone(self.objects.entry(at.address()).or_insert_with(|| Rc::new(at.members())))
    }

    fn follow(&mut self, start: Json<'a>, pointer: &str) -> Option<Json<'a>> {
        let mut at = start;
        for (step, name) in pointer.split('/').enumerate() {
            if step >= self.steps {
                return None;
            }
            let name = name.replace("~1", "/").replace("~0", "~");
            at = if at.is_array() {
                let index: usize = name.parse().ok()?;
                let list = self.lists.entry(at.address());
                *list.or_insert_with(|| Rc::new(at.elements().collect())).get(index)?
            } else {
                self.open(at).get(&name)?
            };
        }
        Some(at)
    }

    /// A schema with this anchor or identifier.
    fn named(&mut self, name: &str) -> Option<Json<'a>> {
        let (root, steps, values) = (self.root, self.steps, self.values);
        let names = self.names.get_or_insert_with(|| names(root, steps, values));
        // `item.json` beside `https://example.com/schemas/tool.json`.
        let relative = !name.contains("://") && !name.starts_with('#');
        names.get(name).or_else(|| names.get(last_part(name)).filter(|_| relative)).copied()
    }
}

/// All anchors and identifiers of a schema, as far as these limits allow.
fn names(root: Json<'_>, levels: usize, mut values: usize) -> HashMap<String, Json<'_>> {
    let mut names = HashMap::new();
    let mut waiting = vec![(root, 0)];
    while let Some((at, level)) = waiting.pop() {
        if level >= levels || values == 0 {
            continue;
        }
        values -= 1;
        if at.is_array() {
            waiting.extend(at.elements().map(|of| (of, level + 1)));
            continue;
        }
        for (name, value) in at.members().iter() {
            match (name, value.text()) {
                ("$anchor" | "$dynamicAnchor", Some(anchor)) => {
                    names.entry(format!("#{anchor}")).or_insert(at);
                }
                ("$id" | "id", Some(id)) => {
                    // Before 2019 an anchor was an identifier that begins with `#`.
                    let id = if id.len() > 1 { id.trim_end_matches('#') } else { &id };
                    names.entry(id.to_owned()).or_insert(at);
                    names.entry(last_part(id).to_owned()).or_insert(at);
                }
                _ if value.is_object() || value.is_array() => waiting.push((value, level + 1)),
                _ => {}
            }
        }
    }
    names
}

fn last_part(address: &str) -> &str {
    address.rsplit('/').next().unwrap_or(address)
}

/// `%25` and its like in a fragment; what is no such thing stays.
fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) if byte == b'%' => {
                bytes.push(code);
                rest = tail.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}
