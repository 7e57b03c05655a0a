//! Request ids exactly as they were written.

use std::fmt;
use std::sync::Arc;

use super::RawJson;

/// A request id: the JSON text of a string or an integer, echoed byte for byte (H-29, F12, F14).
///
/// `1` and `"1"` are different ids, and so are `1` and `1.0`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Arc<str>);

/// What stood where an id belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    /// `null`, which the specification excludes.
    #[error("a request id must not be null")]
    Null,
    /// A boolean, array, object or number with a fraction.
    #[error("a request id must be a string or an integer")]
    Kind,
}

impl Id {
    /// Takes the raw text of an `id` member.
    pub fn from_raw(text: &str) -> Result<Self, BadId> {
        match text.as_bytes().first() {
            Some(b'"') => Ok(Self(text.into())),
            Some(b'n') => Err(BadId::Null),
            Some(b'-' | b'0'..=b'9') if is_integer(text) => Ok(Self(text.into())),
            _ => Err(BadId::Kind),
        }
    }

    /// An id of ours.
    pub fn number(value: u64) -> Self {
        Self(value.to_string().into())
    }

    /// A text id of ours; `text` needs no escapes.
    pub fn text(text: &str) -> Self {
        Self(RawJson::write(text).as_str().into())
    }

    /// The raw JSON text.
    pub fn as_raw(&self) -> &str {
        &self.0
    }

    /// The value where it is a plain non-negative integer: the form of all ids that mcpx sends.
    pub fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }
}

/// Integers by value: `1.0` and `1e3` are integers in JSON Schema's sense and are kept as written.
fn is_integer(text: &str) -> bool {
    if text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) {
        return true;
    }
    text.parse::<f64>().is_ok_and(|value| value.is_finite() && value.fract() == 0.0)
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F14: integers echo as written; null, fractions and other kinds are no ids.
    #[test]
    fn f14_ids_of_all_kinds() {
        for good in ["1", "-1", "9007199254740993", "18446744073709551615", "1.0", "1e3", r#""a""#]
        {
            assert_eq!(Id::from_raw(good).unwrap().as_raw(), good);
        }
        assert_eq!(Id::from_raw("null"), Err(BadId::Null));
        for bad in ["1.5", "true", "{}", "[]", "false"] {
            assert_eq!(Id::from_raw(bad), Err(BadId::Kind), "{bad}");
        }
    }
}
