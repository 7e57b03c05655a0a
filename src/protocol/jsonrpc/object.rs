//! A JSON object opened one level deep, so that single members can go, come or change while every
//! other member keeps its text, its place and its duplicates.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};

use super::RawJson;
use super::frame::{APART, Writer};
use super::skim::Members;

/// The members of an object in the order they came.
#[derive(Debug, Clone, Default)]
pub struct Object {
    members: Vec<(Key, RawJson)>,
}

/// A member's name. One that came keeps its text, so that it is written as it was read.
#[derive(Debug, Clone)]
enum Key {
    /// One of ours.
    Own(Cow<'static, str>),
    /// As it came, with quotes and without escapes.
    Plain(Bytes),
    /// As it came, with quotes, and what its escapes mean.
    Escaped(Bytes, String),
}

impl Key {
    fn read(raw: Bytes) -> Self {
        if memchr::memchr(b'\\', &raw).is_none() {
            return Self::Plain(raw);
        }
        let name = super::raw::text_of(&raw).unwrap_or_default();
        Self::Escaped(raw, name)
    }

    fn name(&self) -> &str {
        match self {
            Self::Own(name) => name,
            Self::Plain(raw) => {
                let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
                std::str::from_utf8(inner).unwrap_or_default()
            }
            Self::Escaped(_, name) => name,
        }
    }

    fn is(&self, name: &str) -> bool {
        match self {
            Self::Own(own) => own == name,
            Self::Plain(raw) => {
                raw.len() == name.len() + 2 && raw.get(1..=name.len()) == Some(name.as_bytes())
            }
            Self::Escaped(_, own) => own == name,
        }
    }

    fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Own(name) => super::raw::put_text(out, name),
            Self::Plain(raw) | Self::Escaped(raw, _) => out.extend_from_slice(raw),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Own(name) => name.len() + 2,
            Self::Plain(raw) | Self::Escaped(raw, _) => raw.len(),
        }
    }
}

impl Object {
    /// No members.
    pub const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// Opens `raw`; an error where it is no object.
    pub fn read(raw: &RawJson) -> Result<Self, serde_json::Error> {
        let text = raw.bytes();
        let mut walk = Members::new(&text);
        let mut members = Vec::new();
        for member in walk.by_ref() {
            let key = Key::read(text.slice(member.key.0..member.key.1));
            let value = RawJson::trusted(text.slice(member.value.0..member.value.1));
            members.push((key, value));
        }
        if walk.is_done() {
            Ok(Self { members })
        } else {
            Err(<serde_json::Error as serde::de::Error>::custom("not an object"))
        }
    }

    /// Opens `raw`, taking anything that is no object for an empty one.
    pub fn read_or_empty(raw: Option<&RawJson>) -> Self {
        raw.and_then(|raw| Self::read(raw).ok()).unwrap_or_default()
    }

    /// The last member named `key`, as JSON readers do with duplicates.
    pub fn get(&self, key: &str) -> Option<&RawJson> {
        self.members.iter().rev().find(|(name, _)| name.is(key)).map(|(_, value)| value)
    }

    /// The member `key` where it is a string.
    pub fn get_str(&self, key: &str) -> Option<String> {
        self.get(key)?.text()
    }

    /// Whether there is a member `key`.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Takes out every member named `key` and returns the last.
    pub fn remove(&mut self, key: &str) -> Option<RawJson> {
        let mut removed = None;
        self.members.retain(|(name, value)| {
            let goes = name.is(key);
            if goes {
                removed = Some(value.clone());
            }
            !goes
        });
        removed
    }

    /// Sets `key` in the place it has, or at the end.
    pub fn set(&mut self, key: impl Into<Cow<'static, str>>, value: RawJson) {
        let key = key.into();
        match self.members.iter_mut().rev().find(|(name, _)| name.is(&key)) {
            Some((_, old)) => *old = value,
            None => self.members.push((Key::Own(key), value)),
        }
    }

    /// Sets `key` only where it is missing.
    pub fn set_default(&mut self, key: impl Into<Cow<'static, str>>, value: RawJson) {
        let key = key.into();
        if !self.contains(&key) {
            self.members.push((Key::Own(key), value));
        }
    }

    /// Keeps the members for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &RawJson) -> bool) {
        self.members.retain(|(name, value)| keep(name.name(), value));
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.members.iter().map(|(name, value)| (name.name(), value))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Writes the object; every value as the text it came in, a long one where it is.
    pub fn write(&self) -> RawJson {
        let room = |value: &RawJson| if value.len() < APART { value.len() } else { 0 };
        let size: usize =
            self.members.iter().map(|(name, value)| name.len() + room(value) + 2).sum();
        let mut out = Writer::with_capacity(size + 2);
        out.open.put_u8(b'{');
        for (index, (name, value)) in self.members.iter().enumerate() {
            if index > 0 {
                out.open.put_u8(b',');
            }
            name.write(&mut out.open);
            out.open.put_u8(b':');
            value.pieces().iter().for_each(|piece| out.put(piece));
        }
        out.open.put_u8(b'}');
        RawJson::around(out.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &'static str) -> RawJson {
        RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap()
    }

    #[test]
    fn untouched_members_keep_their_text() {
        let text = r#"{"z":12345678901234567890123,"a":[1e2,-0, 0.10],"s":"\ud800\u00e9","z":1}"#;
        let mut object = Object::read(&raw(text)).unwrap();
        object.set("new", raw("true"));
        object.remove("nothing");
        assert_eq!(
            object.write().as_str(),
            r#"{"z":12345678901234567890123,"a":[1e2,-0, 0.10],"s":"\ud800\u00e9","z":1,"new":true}"#
        );
        assert_eq!(object.get("z").unwrap().as_str(), "1");
    }

    /// F10: keys with escapes, also with half a surrogate pair, are found and written as they came.
    #[test]
    fn f10_keys_keep_their_escapes() {
        let text = r#"{"\u005fmeta":1,"a\udcafb":2,"c\/d":3}"#;
        let mut object = Object::read(&raw(text)).unwrap();
        assert_eq!(object.get("_meta").unwrap().as_str(), "1");
        assert_eq!(object.get("c/d").unwrap().as_str(), "3");
        assert_eq!(object.write().as_str(), text);
        object.set("_meta", raw("7"));
        assert_eq!(object.write().as_str(), r#"{"\u005fmeta":7,"a\udcafb":2,"c\/d":3}"#);
        object.remove("_meta");
        assert_eq!(object.len(), 2);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["[]", "1", "\"{}\"", "null"] {
            assert!(Object::read(&raw(text)).is_err(), "{text}");
        }
        assert!(Object::read_or_empty(Some(&raw("[1]"))).is_empty());
    }
}
