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
        // Without a text of its own in between: every call of a server has one.
        const MOST: usize = u64::MAX.ilog10() as usize + 1;
        let (mut digits, mut rest, mut count) = ([b'0'; MOST], value, 0);
        for digit in digits.iter_mut().rev() {
            *digit += u8::try_from(rest % 10).unwrap_or_default();
            rest /= 10;
            count += 1;
            if rest == 0 {
                break;
            }
        }
        let used = digits.get(MOST - count..).unwrap_or_default();
        Self(std::str::from_utf8(used).unwrap_or_default().into())
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

    #[test]
    fn numbers_are_written_in_full() {
        for value in [0, 7, 10, 99, 1_000_000, u64::MAX] {
            assert_eq!(Id::number(value).as_raw(), value.to_string());
        }
    }

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
