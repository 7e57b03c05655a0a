//! One JSON value as the text it came in.
//!
//! Payloads never pass through `serde_json::Value`: it loses big integers, `1e2`, `-0`, key order,
//! duplicate keys and lone surrogates (F10, F14; product promise 5).

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::frame::{Frame, joined};

/// One complete JSON value, valid and UTF-8, shared without copying.
#[derive(Clone)]
pub struct RawJson(Text);

#[derive(Clone)]
enum Text {
    Flat(Bytes),
    /// Written around a long value, which stays where it is.
    Around(Arc<Around>),
}

struct Around {
    text: Frame,
    /// In one piece, for whoever must read it so.
    flat: OnceLock<Bytes>,
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for RawJson {}

/// Text that is not one JSON value.
#[derive(Debug, thiserror::Error)]
#[error("not one JSON value")]
pub struct BadJson(#[source] serde_json::Error);

impl RawJson {
    const fn flat(text: Bytes) -> Self {
        Self(Text::Flat(text))
    }

    /// Text that this crate has just written itself, around values that it left where they are.
    pub(super) fn around(text: Frame) -> Self {
        if text.pieces().len() == 1 {
            return Self::flat(text.to_bytes());
        }
        Self(Text::Around(Arc::new(Around { text, flat: OnceLock::new() })))
    }

    fn whole(&self) -> &Bytes {
        match &self.0 {
            Text::Flat(text) => text,
            Text::Around(around) => around.flat.get_or_init(|| joined(around.text.pieces())),
        }
    }

    /// The text, in the pieces that it is in.
    pub(super) fn pieces(&self) -> &[Bytes] {
        match &self.0 {
            Text::Flat(text) => std::slice::from_ref(text),
            Text::Around(around) => around.text.pieces(),
        }
    }

    /// Checks that `text` is exactly one JSON value and keeps it as it stands.
    pub fn parse(text: Bytes) -> Result<Self, BadJson> {
        let value: &RawValue = serde_json::from_slice(&text).map_err(BadJson)?;
        if value.get().len() == text.len() {
            return Ok(Self::flat(text));
        }
        let inner = text.slice_ref(value.get().as_bytes());
        Ok(Self::flat(inner))
    }

    /// A value that is a slice of `whole`, which the caller has parsed already.
    pub(crate) fn slice_of(whole: &Bytes, value: &RawValue) -> Self {
        Self::flat(whole.slice_ref(value.get().as_bytes()))
    }

    /// Text that this crate has just written itself.
    pub(crate) fn trusted(text: impl Into<Bytes>) -> Self {
        Self::flat(text.into())
    }

    /// Writes `value`, which is one of our own types and always has a JSON form.
    pub fn write<T: Serialize + ?Sized>(value: &T) -> Self {
        let text = serde_json::to_vec(value);
        Self::flat(text.map_or_else(|_| Bytes::from_static(b"null"), Bytes::from))
    }

    /// `{}`.
    pub const fn empty_object() -> Self {
        Self::flat(Bytes::from_static(b"{}"))
    }

    /// `null`.
    pub const fn null() -> Self {
        Self::flat(Bytes::from_static(b"null"))
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        self.whole()
    }

    /// The text, sharing its memory.
    pub fn bytes(&self) -> Bytes {
        self.whole().clone()
    }

    /// The text as `str`; empty if it should not be UTF-8, which parsing has excluded.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.whole()).unwrap_or_default()
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Text::Flat(text) => text.len(),
            Text::Around(around) => around.text.len(),
        }
    }

    /// Never: a JSON value has at least one character. Here for the habit of `len`.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        self.len() == b"null".len() && self.as_bytes() == b"null"
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        self.pieces().first().and_then(|piece| piece.first()) == Some(&b'{')
    }

    /// Reads the value into one of our own types.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.whole())
    }

    /// The member `key` of an object, as raw text; `None` where there is none or it is no object.
    pub fn member(&self, key: &str) -> Option<Self> {
        let text = self.as_bytes();
        let mut found = None;
        let mut walk = super::skim::Members::new(text);
        for member in walk.by_ref() {
            let name = text.get(member.key.0..member.key.1)?;
            let inner = name.get(1..name.len() - 1)?;
            let named = inner == key.as_bytes()
                || (inner.contains(&b'\\') && text_of(name).as_deref() == Some(key));
            // The last one counts, as with other JSON readers.
            found = if named { Some(member.value) } else { found };
        }
        let (start, end) = found.filter(|_| walk.is_done())?;
        Some(Self::flat(self.whole().slice(start..end)))
    }

    /// The member `key` where it is a string, unescaped.
    pub fn member_str(&self, key: &str) -> Option<String> {
        self.member(key)?.text()
    }

    /// The elements of an array, each as it stands; `None` where this is no array.
    pub fn elements(&self) -> Option<Vec<Self>> {
        let text = self.whole();
        let mut walk = super::skim::Elements::new(text);
        let element = |(start, end)| Self::flat(text.slice(start..end));
        let elements = walk.by_ref().map(element).collect();
        walk.is_done().then_some(elements)
    }

    /// An array of `elements`, each as it stands.
    pub fn array<'a>(elements: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut out = BytesMut::new();
        out.put_u8(b'[');
        for element in elements {
            if out.len() > 1 {
                out.put_u8(b',');
            }
            out.extend_from_slice(element.as_bytes());
        }
        out.put_u8(b']');
        Self::flat(out.freeze())
    }

    /// The value of a string, unescaped; half a surrogate pair, which JSON can write and Rust cannot
    /// hold, becomes U+FFFD (F10). `None` where this is no string.
    pub fn text(&self) -> Option<String> {
        text_of(self.whole())
    }

    /// The same value in memory of its own. What is kept for long must not be a slice of a read
    /// buffer, of which it would hold the whole.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::flat(Bytes::copy_from_slice(self.whole()))
    }
}

/// The value of the JSON string `raw`, as [`RawJson::text`].
pub(super) fn text_of(raw: &[u8]) -> Option<String> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(text_with_halves(bytes))
        }
    }
    if raw.first() != Some(&b'"') {
        return None;
    }
    serde_json::Deserializer::from_slice(raw).deserialize_bytes(Text).ok()
}

/// Text from UTF-8 in which each half of a surrogate pair has three bytes, the first of which is `ED`.
fn text_with_halves(bytes: &[u8]) -> String {
    const FIRST: u8 = 0xED;
    let chunks = bytes.utf8_chunks();
    chunks.fold(String::with_capacity(bytes.len()), |mut text, chunk| {
        text.push_str(chunk.valid());
        if chunk.invalid().first() == Some(&FIRST) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        text
    })
}

/// Writes `text` as a JSON string.
pub(super) fn put_text(out: &mut BytesMut, text: &str) {
    if text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        out.extend_from_slice(RawJson::write(text).as_bytes());
        return;
    }
    out.put_u8(b'"');
    out.extend_from_slice(text.as_bytes());
    out.put_u8(b'"');
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
        let raw: &RawValue =
            serde_json::from_slice(self.whole()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::flat(Bytes::from(String::from(Box::<str>::from(raw)).into_bytes())))
    }
}

/// For a member that may be missing and may be `null`, which are two things: `#[serde(default)]` beside it
/// makes the missing one `None`.
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &'static str) -> RawJson {
        RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap()
    }

    /// F10: a lone surrogate stays as written in raw text and never makes text unreadable.
    #[test]
    fn f10_lone_surrogates() {
        let value = raw(r#"{"text":"a\udcafb","pair":"\ud83d\ude00"}"#);
        assert_eq!(value.as_str(), r#"{"text":"a\udcafb","pair":"\ud83d\ude00"}"#);
        assert_eq!(value.member_str("pair").unwrap(), "\u{1f600}");
        let text = value.member_str("text").unwrap();
        assert_eq!(text, "a\u{fffd}b");
    }

    #[test]
    fn arrays_keep_their_elements() {
        let value = raw(r#"[ 1e2 , {"a" : [1]},"x" ]"#);
        let elements = value.elements().unwrap();
        assert_eq!(RawJson::array(&elements).as_str(), r#"[1e2,{"a" : [1]},"x"]"#);
        assert!(raw("{}").elements().is_none());
        assert_eq!(RawJson::array([]).as_str(), "[]");
    }

    #[test]
    fn own_text_is_escaped_where_it_must_be() {
        for text in ["plain", "a\"b", "tab\t", "back\\slash", "世界"] {
            let mut out = BytesMut::new();
            put_text(&mut out, text);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
