//! `config/mcpx.example.toml`, `config/settings.schema.json` and the tables of `docs/configuration.md`.
//!
//! A test writes them and fails when they were stale, so that the next run passes and the
//! difference is seen in review.

pub mod reference;

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::defs::{Applies, Def};
use super::layers::{LayerValues, Resolved};
use super::mistake::Mistake;
use super::profiles::PROFILE_KEYS;
use super::servers::{SERVER_KEYS, TableKey};
use super::value::Kind;

/// Longest line of the example.
const WIDTH: usize = 96;

const EXAMPLE_HEAD: &str = "\
# Every setting of mcpx with its built-in value, commented out. Generated from the table in
# src/settings/defs.rs; `mcpx settings` shows what is in force and why, `mcpx config check` finds
# mistakes. Copy what you need to ~/.config/mcpx/config.toml, or give the file by --config.
#
# Each setting is also read from the environment variable that stands beside it. \"restart\" means
# that a change is obeyed when the daemon starts again; everything else is obeyed at once.

# A server that mcpx starts and fronts. The name in brackets becomes its namespace.
#
# [servers.github]
# command = [\"npx\", \"-y\", \"@modelcontextprotocol/server-github\"]
# env = { GITHUB_TOKEN = \"${env:GITHUB_TOKEN}\" }
#
# What may be called of its tools: \"allow\" (the default), \"ask\" (only once somebody has agreed) or \"deny\"
# (it is hidden). `*` and `?` are wildcards; the most specific rule decides, wherever it stands.
#
# [policy]
# \"github.create_*\" = \"ask\"
# \"*.delete_*\" = \"deny\"
#
# What some hosts see, by `mcpx serve --profile review` or http://127.0.0.1:7332/mcp/review: fewer servers, in
# another way. A profile narrows what everybody may; it opens nothing.
#
# [profiles.review]
# servers = [\"github\", \"docs\"]
# expose = \"passthrough\"
#
# What may stand in a server's table:
#
";

/// The text of `config/mcpx.example.toml`.
pub fn example(defaults: &LayerValues) -> Result<String, Mistake> {
    let resolved = Resolved::merge(std::slice::from_ref(defaults))?;
    let mut text = EXAMPLE_HEAD.to_owned();
    for key in SERVER_KEYS {
        comment(&mut text, &format!("{}: {}", key.name, key.doc));
    }
    text.push_str("#\n# What may stand in a profile's table:\n#\n");
    for key in PROFILE_KEYS {
        comment(&mut text, &format!("{}: {}", key.name, key.doc));
    }
    let mut section = "";
    for in_force in &resolved.all {
        let (table, name) = split(in_force.def);
        if table != section {
            let _ = write!(text, "\n[{table}]\n");
            section = table;
        }
        text.push('\n');
        comment(&mut text, in_force.def.doc);
        let note = match in_force.def.applies {
            Applies::Live => String::new(),
            Applies::Restart => "; restart".to_owned(),
        };
        let expected = in_force.def.kind.expected();
        comment(&mut text, &format!("{}; {expected}{note}", in_force.def.variable()));
        let value = match in_force.value.to_json() {
            Json::String(text) => format!("\"{text}\""),
            other => other.to_string(),
        };
        let _ = writeln!(text, "# {name} = {value}");
    }
    Ok(text)
}

fn split(def: &'static Def) -> (&'static str, &'static str) {
    def.key.split_once('.').unwrap_or(("", def.key))
}

/// Words of a sentence as comment lines.
fn comment(text: &mut String, sentence: &str) {
    let mut line = "#".to_owned();
    for word in sentence.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

/// The text of `config/settings.schema.json`, for editors.
pub fn schema(defaults: &LayerValues) -> Result<String, Mistake> {
    let resolved = Resolved::merge(std::slice::from_ref(defaults))?;
    let mut sections = serde_json::Map::new();
    for in_force in &resolved.all {
        let (table, name) = split(in_force.def);
        let section = sections.entry(table).or_insert_with(
            || json!({"type": "object", "additionalProperties": false, "properties": {}}),
        );
        if let Some(Json::Object(properties)) = section.get_mut("properties") {
            let mut property = kind_schema(in_force.def.kind);
            property.insert("description".to_owned(), in_force.def.doc.into());
            property.insert("default".to_owned(), in_force.value.to_json());
            properties.insert(name.to_owned(), property.into());
        }
    }
    sections.insert(
        "servers".to_owned(),
        json!({
            "type": "object",
            "description": "The servers that mcpx fronts, by name.",
            "additionalProperties": server_schema(),
        }),
    );
    sections.insert(
        "policy".to_owned(),
        json!({
            "type": "object",
            "description": "What may be called: NAMESPACE.TOOL with `*` and `?`; the most specific decides.",
            "additionalProperties": {"anyOf": [
                {"enum": ["allow", "ask", "deny"]},
                {"type": "object", "additionalProperties": {"enum": ["allow", "ask", "deny"]}},
            ]},
        }),
    );
    sections.insert(
        "profiles".to_owned(),
        json!({
            "type": "object",
            "description": "What some hosts see, by name.",
            "additionalProperties": table_schema(PROFILE_KEYS),
        }),
    );
    sections.insert("$schema".to_owned(), json!({"type": "string"}));
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mcpx configuration",
        "type": "object",
        "additionalProperties": false,
        "properties": sections,
    });
    Ok(format!("{whole:#}\n"))
}

fn server_schema() -> Json {
    let mut schema = table_schema(SERVER_KEYS);
    if let Some(schema) = schema.as_object_mut() {
        schema
            .insert("oneOf".to_owned(), json!([{"required": ["command"]}, {"required": ["url"]}]));
    }
    schema
}

fn table_schema(keys: &[TableKey]) -> Json {
    let mut properties = serde_json::Map::new();
    for key in keys {
        let mut property: serde_json::Map<String, Json> =
            serde_json::from_str(key.schema).unwrap_or_default();
        property.insert("description".to_owned(), key.doc.into());
        properties.insert(key.name.to_owned(), property.into());
    }
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

fn kind_schema(kind: Kind) -> serde_json::Map<String, Json> {
    let schema = match kind {
        Kind::Switch => json!({"type": "boolean"}),
        Kind::Count { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Time { .. } => json!({"type": ["string", "integer"], "pattern": TIME_PATTERN}),
        Kind::Size { .. } => json!({"type": ["string", "integer"], "minimum": 0}),
        Kind::Choice(choices) => {
            json!({"enum": choices.iter().map(|choice| choice.word).collect::<Vec<_>>()})
        }
        Kind::Text(_) | Kind::Secret => json!({"type": "string"}),
        Kind::List(_) => json!({"type": "array", "items": {"type": "string"}}),
    };
    match schema {
        Json::Object(members) => members,
        _ => serde_json::Map::new(),
    }
}

/// What [`super::value::parse_duration`] reads.
const TIME_PATTERN: &str = "^(0|(\\d+d)?(\\d+h)?(\\d+m)?(\\d+s)?(\\d+ms)?)$";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::layers::Layer;
    use crate::settings::parse;
    use crate::settings::tree::SourceText;

    /// Writes a generated file; a failure means that it was stale and is current now.
    #[expect(clippy::disallowed_methods, reason = "writes into the working copy, not at run time")]
    fn ensure(name: &str, text: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(name);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        if before != text {
            std::fs::write(&path, text).unwrap();
            panic!("config/{name} was stale; it has been written anew, look at the difference");
        }
    }

    #[test]
    fn the_example_is_current() {
        ensure("mcpx.example.toml", &example(&parse::defaults().unwrap()).unwrap());
    }

    #[test]
    fn the_schema_is_current() {
        ensure("settings.schema.json", &schema(&parse::defaults().unwrap()).unwrap());
    }

    #[test]
    fn the_example_without_its_comment_signs_is_the_defaults() {
        let defaults = parse::defaults().unwrap();
        let text = example(&defaults).unwrap();
        let (_, settings) = text.split_once("\n[expose]").unwrap();
        let bare: String = format!("[expose]{settings}")
            .lines()
            .filter_map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.contains(" = ") && !rest.contains("; ") => Some(rest),
                Some(_) => None,
                None => Some(line),
            })
            .fold(String::new(), |text, line| text + line + "\n");
        let mut mistakes = Vec::new();
        let source = SourceText::new(Path::new("example.toml"), &bare);
        let read = parse::read_source(&source, Layer::Default, &mut mistakes);
        assert_eq!(mistakes, []);
        let show = |values: &LayerValues| -> std::collections::BTreeMap<_, _> {
            values.values.iter().map(|(def, value, _)| (def.key, value.to_string())).collect()
        };
        assert_eq!(show(&read.values), show(&defaults));
    }

    #[test]
    fn the_schema_takes_the_defaults_and_refuses_a_typing_error() {
        let defaults = parse::defaults().unwrap();
        let schema: Json = serde_json::from_str(&schema(&defaults).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut whole = serde_json::Map::new();
        for (def, value, _) in &defaults.values {
            let (table, name) = split(def);
            let section = whole.entry(table).or_insert_with(|| json!({}));
            section.as_object_mut().unwrap().insert(name.to_owned(), value.to_json());
        }
        whole.insert("servers".to_owned(), json!({"a": {"command": "a", "max": 2}}));
        let mut whole = Json::Object(whole);
        let errors: Vec<_> = validator.iter_errors(&whole).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        whole["call"]["idle_timout"] = json!("5m");
        assert!(!validator.is_valid(&whole));
    }
}
