//! A schema's text, opened piece by piece where somebody looks. No value is built of it: a schema may
//! have many megabytes and any depth, of which little is read.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;

use crate::protocol::jsonrpc::{RawJson, skim};

/// One JSON value, a slice of a text that has been checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Json<'a>(&'a str);

/// The members of an object, in order and each name once, with the last of its values (as JSON readers do).
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    list: Vec<(Cow<'a, str>, Json<'a>)>,
    /// Places by name, where there are more than [`FEW`].
    index: HashMap<Cow<'a, str>, usize>,
}

/// So many members are found faster by looking at each.
const FEW: usize = 16;

impl<'a> Json<'a> {
    pub(super) fn of(raw: &'a RawJson) -> Self {
        Self(raw.as_str())
    }

    /// Where it stands: tells two values of one text apart.
    pub(super) fn address(self) -> usize {
        self.0.as_ptr().addr()
    }

    pub(super) const fn as_str(self) -> &'a str {
        self.0
    }

    fn first(self) -> u8 {
        self.0.as_bytes().first().copied().unwrap_or_default()
    }

    pub(super) fn is_object(self) -> bool {
        self.first() == b'{'
    }

    pub(super) fn is_array(self) -> bool {
        self.first() == b'['
    }

    pub(super) fn is_string(self) -> bool {
        self.first() == b'"'
    }

    pub(super) fn is(self, text: &str) -> bool {
        self.0 == text
    }

    /// Its members; none where it is no object.
    pub(super) fn members(self) -> Members<'a> {
        let mut members = Members::default();
        for member in skim::Members::new(self.0.as_bytes()) {
            let (Some(name), Some(value)) =
                (self.part(member.key), self.part(member.value).map(Json))
            else {
                break;
            };
            let Some(name) = Json(name).text() else { break };
            members.put(name, value);
        }
        members
    }

    /// Its elements; none where it is no array.
    pub(super) fn elements(self) -> impl Iterator<Item = Self> {
        skim::Elements::new(self.0.as_bytes()).map_while(move |place| self.part(place).map(Json))
    }

    fn part(self, (start, end): (usize, usize)) -> Option<&'a str> {
        self.0.get(start..end)
    }

    /// The text of a string; half a surrogate pair becomes U+FFFD.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if !inner.contains('\\') {
            return Some(Cow::Borrowed(inner));
        }
        let raw = RawJson::trusted(Bytes::copy_from_slice(self.0.as_bytes()));
        raw.text().map(Cow::Owned)
    }

    /// The texts of an array, without what is no text in it.
    pub(super) fn texts(self) -> Vec<Cow<'a, str>> {
        self.elements().filter_map(Self::text).collect()
    }

    /// A whole number from 0.
    pub(super) fn count(self) -> Option<usize> {
        self.0.parse().ok()
    }
}

impl<'a> Members<'a> {
    fn put(&mut self, name: Cow<'a, str>, value: Json<'a>) {
        if let Some(known) = self.place(&name).and_then(|at| self.list.get_mut(at)) {
            known.1 = value;
            return;
        }
        self.list.push((name, value));
        let end = self.list.len();
        let new = if end == FEW + 1 { 0 } else { end - 1 };
        if end > FEW {
            let names = self.list.iter().enumerate().skip(new);
            self.index.extend(names.map(|(at, (name, _))| (name.clone(), at)));
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        if self.list.len() > FEW {
            return self.index.get(name).copied();
        }
        self.list.iter().position(|(known, _)| known == name)
    }

    pub(super) fn get(&self, name: &str) -> Option<Json<'a>> {
        self.place(name).and_then(|at| self.list.get(at)).map(|(_, value)| *value)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// The text of a member that is one.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(Json::text)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Json<'a>)> {
        self.list.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }
}
