//! One JSON value as the text it came in.
//!
//! Payloads never pass through `serde_json::Value`: it loses big integers, `1e2`, `-0`, key order,
//! duplicate keys and lone surrogates (F10, F14; product promise 5).

use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One complete JSON value, valid and UTF-8, shared without copying.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(Bytes);

/// Text that is not one JSON value.
#[derive(Debug, thiserror::Error)]
#[error("not one JSON value")]
pub struct BadJson(#[source] serde_json::Error);

impl RawJson {
    /// Checks that `text` is exactly one JSON value and keeps it as it stands.
    pub fn parse(text: Bytes) -> Result<Self, BadJson> {
        let value: &RawValue = serde_json::from_slice(&text).map_err(BadJson)?;
        let inner = text.slice_ref(value.get().as_bytes());
        Ok(Self(inner))
    }

    /// A value that is a slice of `whole`, which the caller has parsed already.
    pub(crate) fn slice_of(whole: &Bytes, value: &RawValue) -> Self {
        Self(whole.slice_ref(value.get().as_bytes()))
    }

    /// Text that this crate has just written itself.
    pub(crate) fn trusted(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }

    /// Writes `value`, which is one of our own types and always has a JSON form.
    pub fn write<T: Serialize + ?Sized>(value: &T) -> Self {
        Self(serde_json::to_vec(value).map_or_else(|_| Bytes::from_static(b"null"), Bytes::from))
    }

    /// `{}`.
    pub const fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// `null`.
    pub const fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, sharing its memory.
    pub fn bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// The text as `str`; empty if it should not be UTF-8, which parsing has excluded.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: a JSON value has at least one character. Here for the habit of `len`.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        self.as_bytes() == b"null"
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Reads the value into one of our own types.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// The member `key` of an object, as raw text; `None` where there is none or it is no object.
    pub fn member(&self, key: &str) -> Option<Self> {
        super::Object::read(self).ok()?.get(key).cloned()
    }

    /// The member `key` where it is a string, unescaped.
    pub fn member_str(&self, key: &str) -> Option<String> {
        self.member(key)?.read().ok()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 200;
        let text: String = self.as_str().chars().take(SHOWN).collect();
        f.write_str(&text)?;
        if text.len() < self.len() { write!(f, "… ({} bytes)", self.len()) } else { Ok(()) }
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_slice(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Bytes::from(String::from(Box::<str>::from(raw)).into_bytes())))
    }
}
