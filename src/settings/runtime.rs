//! The file of what `PUT /v1/settings` has set, in the state folder.
//!
//! The daemon writes it; the shim and the command line read it as well, because `shim.*` and `cli.*`
//! are theirs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::parse::Change;

/// What was set: canonical keys and texts.
pub type RuntimeValues = BTreeMap<String, String>;

/// The only layout so far.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    settings: RuntimeValues,
}

/// Reads the file's text, or says why it cannot be read.
pub fn parse(text: &[u8]) -> Result<RuntimeValues, String> {
    let file: File = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if file.version == VERSION {
        Ok(file.settings)
    } else {
        Err(format!("it has layout {}, this mcpx knows {VERSION}", file.version))
    }
}

/// The same, where anything that cannot be read counts as empty: whoever only reads must start
/// whatever stands there, and the daemon is who puts the file aside.
pub fn read(text: &[u8]) -> RuntimeValues {
    parse(text).unwrap_or_default()
}

/// The file's text.
pub fn write(values: &RuntimeValues) -> Vec<u8> {
    let file = File { version: VERSION, settings: values.clone() };
    // Strings only: this always has a JSON form.
    serde_json::to_vec_pretty(&file).unwrap_or_default()
}

/// Applies checked changes: a value is set, `None` forgets it.
pub fn apply(values: &mut RuntimeValues, changes: &[Change]) {
    for (def, value) in changes {
        match value {
            Some(value) => values.insert(def.key.to_owned(), value.kept()),
            None => values.remove(def.key),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::parse::read_changes;

    #[test]
    fn what_is_set_is_kept_and_forgotten() {
        let mut values = RuntimeValues::new();
        let change = |json: serde_json::Value| read_changes(json.as_object().unwrap()).unwrap();
        let put = serde_json::json!({"call.idle_timeout": "90m", "shim.autostart": false});
        apply(&mut values, &change(put));
        assert_eq!(read(&write(&values)), values);
        assert_eq!(values.get("call.idle_timeout").map(String::as_str), Some("1h30m"));
        apply(&mut values, &change(serde_json::json!({"call.idleTimeout": null})));
        assert_eq!(values.len(), 1);
    }

    #[test]
    fn an_unreadable_file_is_empty() {
        for text in ["", "{", "[]", "{\"version\":2,\"settings\":{\"a\":\"b\"}}"] {
            assert_eq!(read(text.as_bytes()), RuntimeValues::new(), "{text}");
        }
    }
}
