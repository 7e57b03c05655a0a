//! Finds keys that stand twice in one JSON object.
//!
//! mcpx splices raw text instead of re-writing values, so its typical mistake is a member that
//! is there twice. `serde_json::Value` keeps the last one silently; this looks before that.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The first duplicate key in `text`, as a path, or `None`. Text that is no JSON has none.
pub fn first(text: &[u8]) -> Option<String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let seed = Walk { path: String::new() };
    match seed.deserialize(&mut reader) {
        Ok(()) => None,
        Err(error) => error.to_string().strip_prefix(MARK).map(|rest| {
            let end = rest.find(" at line ").unwrap_or(rest.len());
            rest[..end].to_owned()
        }),
    }
}

const MARK: &str = "duplicate key ";

struct Walk {
    path: String,
}

impl<'de> DeserializeSeed<'de> for Walk {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let path = format!("{}/{index}", self.path);
            if items.next_element_seed(Walk { path })?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = members.next_key::<String>()? {
            let path = format!("{}/{key}", self.path);
            if !seen.insert(key) {
                return Err(A::Error::custom(format!("{MARK}{path}")));
            }
            members.next_value_seed(Walk { path })?;
        }
        Ok(())
    }
}
