//! A JSON object opened one level deep, so that single members can go, come or change while every
//! other member keeps its text, its place and its duplicates.

use std::borrow::Cow;
use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::RawJson;

/// The members of an object in the order they came.
#[derive(Debug, Clone, Default)]
pub struct Object {
    members: Vec<(Key, RawJson)>,
}

/// A member's name, unescaped. (Escapes in keys are rare; re-escaping keeps the meaning.)
type Key = Cow<'static, str>;

struct Members<'a>(&'a Bytes);

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Vec<(Key, RawJson)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let value: &'de RawValue = map.next_value()?;
            members.push((Cow::Owned(key), RawJson::slice_of(self.0, value)));
        }
        Ok(members)
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
        let mut deserializer = serde_json::Deserializer::from_slice(&text);
        let members = deserializer.deserialize_map(Members(&text))?;
        Ok(Self { members })
    }

    /// Opens `raw`, taking anything that is no object for an empty one.
    pub fn read_or_empty(raw: Option<&RawJson>) -> Self {
        raw.and_then(|raw| Self::read(raw).ok()).unwrap_or_default()
    }

    /// The last member named `key`, as JSON readers do with duplicates.
    pub fn get(&self, key: &str) -> Option<&RawJson> {
        self.members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The member `key` where it is a string.
    pub fn get_str(&self, key: &str) -> Option<String> {
        self.get(key)?.read().ok()
    }

    /// Whether there is a member `key`.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Takes out every member named `key` and returns the last.
    pub fn remove(&mut self, key: &str) -> Option<RawJson> {
        let mut removed = None;
        self.members.retain_mut(|(name, value)| {
            let goes = name == key;
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
        match self.members.iter_mut().rev().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = value,
            None => self.members.push((key, value)),
        }
    }

    /// Sets `key` only where it is missing.
    pub fn set_default(&mut self, key: impl Into<Cow<'static, str>>, value: RawJson) {
        let key = key.into();
        if !self.contains(&key) {
            self.members.push((key, value));
        }
    }

    /// Keeps the members for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &RawJson) -> bool) {
        self.members.retain(|(name, value)| keep(name, value));
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.members.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Writes the object; every value as the text it came in.
    pub fn write(&self) -> RawJson {
        let size: usize =
            self.members.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let mut out = BytesMut::with_capacity(size + 2);
        out.put_u8(b'{');
        for (index, (name, value)) in self.members.iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            out.extend_from_slice(RawJson::write(name.as_ref()).as_bytes());
            out.put_u8(b':');
            out.extend_from_slice(value.as_bytes());
        }
        out.put_u8(b'}');
        RawJson::trusted(out.freeze())
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
}
