//! Strict reading of configuration files, variables and flags: every mistake of every layer at
//! once, each with its place and with the nearest valid name.

use std::path::Path;

use super::defs::{DEFS, Def, find};
use super::layers::{FlagValue, Layer, LayerValues};
use super::mistake::{Mistake, Place, hint};
use super::policy::{self, PolicyRule};
use super::profiles::{self, ProfileDef};
use super::servers::{self, ServerDraft};
use super::tree::{Entry, Node, Raw, SourceText};

/// The built-in values.
const DEFAULTS: &str = include_str!("../../config/defaults.toml");

/// What one file says.
#[derive(Debug)]
pub struct FileContent {
    /// Its settings.
    pub values: LayerValues,
    /// Its `[servers.NAME]` tables, in order.
    pub servers: Vec<ServerDraft>,
    /// Its `[policy]`.
    pub policy: Vec<PolicyRule>,
    /// Its profiles.
    pub profiles: Vec<ProfileDef>,
}

/// The layer of the built-in values.
pub fn defaults() -> Result<LayerValues, Vec<Mistake>> {
    let source = SourceText::new(Path::new("config/defaults.toml"), DEFAULTS);
    let mut mistakes = Vec::new();
    let content = read_source(&source, Layer::Default, &mut mistakes);
    if mistakes.is_empty() { Ok(content.values) } else { Err(mistakes) }
}

/// One file.
pub fn read_file(path: &Path, layer: Layer, mistakes: &mut Vec<Mistake>) -> Option<FileContent> {
    match SourceText::read(path) {
        Ok(source) => Some(read_source(&source, layer, mistakes)),
        Err(mistake) => {
            mistakes.push(mistake);
            None
        }
    }
}

/// One file whose text is at hand.
pub fn read_source(source: &SourceText, layer: Layer, mistakes: &mut Vec<Mistake>) -> FileContent {
    let mut reading = FileReading {
        source,
        mistakes,
        values: LayerValues { layer, values: Vec::new() },
        servers: Vec::new(),
        policy: Vec::new(),
        profiles: Vec::new(),
    };
    match source.parse() {
        Ok(top) => reading.top(&top),
        Err(mut found) => reading.mistakes.append(&mut found),
    }
    let FileReading { values, servers, policy, profiles, .. } = reading;
    FileContent { values, servers, policy, profiles }
}

/// Names of tables that hold servers elsewhere; people paste them.
const FOREIGN_SERVER_TABLES: [&str; 4] = ["mcpServers", "mcp", "mcp_servers", "server"];

struct FileReading<'a> {
    source: &'a SourceText,
    mistakes: &'a mut Vec<Mistake>,
    values: LayerValues,
    servers: Vec<ServerDraft>,
    policy: Vec<PolicyRule>,
    profiles: Vec<ProfileDef>,
}

impl FileReading<'_> {
    fn wrong(&mut self, at: usize, text: impl Into<String>) {
        self.mistakes.push(Mistake { place: self.source.place(at), text: text.into() });
    }

    fn top(&mut self, entries: &[Entry]) {
        for entry in entries {
            match (entry.key.as_str(), &entry.node.raw) {
                // Editors find the schema of a JSON file by this key.
                ("$schema", Raw::Text(_)) => {}
                ("servers", Raw::Table(tables)) => self.servers(tables),
                ("servers", other) => {
                    let text = format!(
                        "`servers` is a table of servers, found {}; write [servers.NAME]",
                        other.name()
                    );
                    self.wrong(entry.at, text);
                }
                ("policy", Raw::Table(rules)) => {
                    self.policy = policy::read(rules, self.source, self.mistakes);
                }
                ("policy", other) => {
                    let text = format!("`policy` is a table of rules, found {}", other.name());
                    self.wrong(entry.at, text);
                }
                ("profiles", Raw::Table(tables)) => {
                    let (source, mistakes) = (self.source, &mut *self.mistakes);
                    let read = tables.iter().filter_map(|of| profiles::read(of, source, mistakes));
                    self.profiles = read.collect();
                }
                ("profiles", other) => {
                    let text = format!(
                        "`profiles` is a table of profiles, found {}; write [profiles.NAME]",
                        other.name()
                    );
                    self.wrong(entry.at, text);
                }
                (name, _) if FOREIGN_SERVER_TABLES.contains(&name) => {
                    self.wrong(entry.at, format!("unknown key `{name}`; here it is `servers`"));
                }
                _ => self.setting(&entry.key, entry),
            }
        }
    }

    fn servers(&mut self, tables: &[Entry]) {
        for entry in tables {
            self.servers.extend(servers::read(entry, self.source, self.mistakes));
        }
    }

    /// A setting, or a table of them; `path` is the dotted name so far.
    fn setting(&mut self, path: &str, entry: &Entry) {
        if let Some(def) = find(path) {
            self.value(def, entry);
        } else if is_section(path) {
            match &entry.node.raw {
                Raw::Table(entries) => {
                    for inner in entries {
                        self.setting(&format!("{path}.{}", inner.key), inner);
                    }
                }
                other => {
                    let text = format!("`{path}` is a table of settings, found {}", other.name());
                    self.wrong(entry.at, text);
                }
            }
        } else {
            self.wrong(entry.at, unknown_key(path));
        }
    }

    fn value(&mut self, def: &'static Def, entry: &Entry) {
        if let Some((_, _, first)) = self.values.values.iter().find(|(of, _, _)| of == &def) {
            let text = format!("`{}` is given twice; first at {first}", def.key);
            self.wrong(entry.at, text);
            return;
        }
        match def.kind.read(&entry.node.raw) {
            Ok(value) => {
                self.values.values.push((def, value, self.source.place(entry.at)));
            }
            Err(why) => self.wrong(entry.node.at, format!("`{}`: {why}", def.key)),
        }
    }
}

/// Whether settings stand under this name.
fn is_section(path: &str) -> bool {
    let is_in = |key: &str| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    DEFS.iter().any(|def| is_in(def.key) || def.alias().is_some_and(|alias| is_in(&alias)))
}

fn unknown_key(path: &str) -> String {
    let section = path.split_once('.').map(|(section, _)| section);
    let keys = DEFS.iter().map(|def| def.key);
    let known = |section: &str| is_section(section);
    let text = match section {
        // A whole section that does not exist, or a name without section.
        None => {
            let mut sections: Vec<&str> = DEFS
                .iter()
                .filter_map(|def| def.key.split_once('.'))
                .map(|(name, _)| name)
                .collect();
            sections.dedup();
            sections.extend(["servers", "policy", "profiles"]);
            // A bare key that stands in some section: offer it whole.
            let suffix = format!(".{path}");
            match DEFS.iter().find(|def| def.key.ends_with(&suffix)) {
                Some(def) => format!("did you mean `{}`?", def.key),
                None => hint(path, sections),
            }
        }
        Some(section) if known(section) => {
            let prefix = format!("{section}.");
            match super::mistake::nearest(path, keys.clone()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => hint(path, keys.filter(|key| key.starts_with(&prefix))),
            }
        }
        Some(_) => hint(path, keys),
    };
    format!("unknown key `{path}`; {text}")
}

/// A setting by name and text, as flags, variables and `mcpx settings set` give it.
pub fn read_named(key: &str, text: &str, place: Place) -> Result<LayerValue, Mistake> {
    let def = find(key).ok_or_else(|| Mistake { place: place.clone(), text: unknown_key(key) })?;
    match def.kind.read_text(text) {
        Ok(value) => Ok((def, value, place)),
        Err(why) => Err(Mistake { place, text: format!("`{}`: {why}", def.key) }),
    }
}

/// A checked setting with its place.
pub type LayerValue = (&'static Def, super::value::Value, Place);

/// The environment's layer. An empty variable counts as absent.
pub fn read_variables(variables: &[(String, String)], mistakes: &mut Vec<Mistake>) -> LayerValues {
    let mut values = Vec::new();
    for (name, text) in variables.iter().filter(|(_, text)| !text.is_empty()) {
        let Some(def) = DEFS.iter().find(|def| def.variable() == *name) else { continue };
        match read_named(def.key, text, Place::Variable(name.clone())) {
            Ok(value) => values.push(value),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    LayerValues { layer: Layer::Environment, values }
}

/// The flags' layer.
pub fn read_flags(flags: &[FlagValue], mistakes: &mut Vec<Mistake>) -> LayerValues {
    let mut values = Vec::new();
    for flag in flags {
        match read_named(&flag.key, &flag.text, Place::Flag(flag.flag.clone())) {
            Ok(value) => values.push(value),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    LayerValues { layer: Layer::Flag, values }
}

/// The run-time layer; what does not fit is reported apart, as warnings.
pub fn read_runtime(runtime: &[(String, String)], warnings: &mut Vec<Mistake>) -> LayerValues {
    let mut values = Vec::new();
    for (key, text) in runtime {
        match read_named(key, text, Place::Runtime) {
            Ok(value) => values.push(value),
            Err(mistake) => warnings.push(mistake),
        }
    }
    LayerValues { layer: Layer::Runtime, values }
}

/// One change of `PUT /v1/settings`: a value, or `None` to forget what was set before.
pub type Change = (&'static Def, Option<super::value::Value>);

/// Checks the changes of `PUT /v1/settings`: a JSON object of names and values, `null` to forget.
pub fn read_changes(
    changes: &serde_json::Map<String, serde_json::Value>,
) -> Result<Vec<Change>, Vec<Mistake>> {
    let mut read = Vec::new();
    let mut mistakes = Vec::new();
    for (key, value) in changes {
        let wrong = |text: String| Mistake { place: Place::Runtime, text };
        let Some(def) = find(key) else {
            mistakes.push(wrong(unknown_key(key)));
            continue;
        };
        // Text is read as from a command line, so that `mcpx settings set` need not know types.
        let result = match value {
            serde_json::Value::Null => Ok(None),
            serde_json::Value::String(text) => def.kind.read_text(text).map(Some),
            other => {
                let node = Node { at: 0, raw: Raw::from_json(other) };
                def.kind.read(&node.raw).map(Some)
            }
        };
        match result {
            Ok(value) => read.push((def, value)),
            Err(why) => mistakes.push(wrong(format!("`{}`: {why}", def.key))),
        }
    }
    if mistakes.is_empty() { Ok(read) } else { Err(mistakes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes_of(name: &str, text: &str) -> Vec<String> {
        let mut mistakes = Vec::new();
        read_source(&SourceText::new(Path::new(name), text), Layer::User, &mut mistakes);
        mistakes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn defaults_and_table_are_the_same_set_within_bounds() {
        let defaults = defaults().unwrap();
        let keys: std::collections::BTreeSet<_> =
            defaults.values.iter().map(|(def, _, _)| def.key).collect();
        let table: std::collections::BTreeSet<_> = DEFS.iter().map(|def| def.key).collect();
        assert_eq!(keys, table);
        for (def, value, _) in &defaults.values {
            assert_eq!(def.kind.read_text(&value.kept()), Ok(value.clone()), "{}", def.key);
        }
    }

    #[test]
    fn defaults_are_spelled_canonically() {
        for (def, value, _) in defaults().unwrap().values {
            let section = format!("[{}]", def.key.split_once('.').unwrap().0);
            let rest = DEFAULTS.split_once(&section).unwrap().1;
            let name = def.key.split_once('.').unwrap().1;
            let line = rest.lines().find(|line| line.starts_with(&format!("{name} ="))).unwrap();
            let written = line.split_once('=').unwrap().1.trim().trim_matches('"');
            let shown = value.to_json();
            let shown = shown.as_str().map_or_else(|| shown.to_string(), str::to_owned);
            assert_eq!(written, shown, "{}", def.key);
        }
    }

    #[test]
    fn all_mistakes_are_reported_at_once_with_their_places() {
        let text = "\
[call]
idle_timout = \"5m\"
total_timeout = 300
resend_limit = 4000

[polcy]
x = 1

[pool]
queue = \"many\"
idle_timeout = \"10 minutes\"

[upstream]
protocol = \"modren\"
";
        assert_eq!(
            mistakes_of("c.toml", text),
            [
                "c.toml:2:1: unknown key `call.idle_timout`; did you mean `call.idle_timeout`?",
                "c.toml:3:17: `call.total_timeout`: a time needs its unit, for example \"300s\"",
                "c.toml:4:16: `call.resend_limit`: 4000 is not a whole number from 0 to 100",
                "c.toml:6:2: unknown key `polcy`; did you mean `policy`?",
                "c.toml:10:9: `pool.queue`: expected a whole number from 0 to 65536, found text",
                "c.toml:11:16: `pool.idle_timeout`: \"10 minutes\" is not a time; write it like \
                 500ms, 10m or 1h30m",
                "c.toml:14:12: `upstream.protocol`: \"modren\" is not one of prefer-discover, \
                 prefer-initialize, force-discover, force-initialize, follow",
            ]
        );
    }

    #[test]
    fn keys_of_later_versions_are_unknown_now() {
        for text in ["[http]\nport = 1", "[profiles.review]\nserver = []", "[policy]\na = 1"] {
            assert_eq!(mistakes_of("c.toml", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn pasted_server_tables_are_named() {
        let found = mistakes_of("c.json", "{\"mcpServers\": {}}");
        assert_eq!(found, ["c.json:1:2: unknown key `mcpServers`; here it is `servers`"]);
    }

    #[test]
    fn a_key_and_its_alias_do_not_both_count() {
        let text = "[upstream]\nera_cache = true\neraCache = false\n";
        assert!(mistakes_of("c.toml", text).first().unwrap().contains("given twice"));
        assert!(mistakes_of("c.toml", "[upstream]\neraCache = false\n").is_empty());
        assert!(mistakes_of("c.json", "{\"upstream.eraCache\": false}").is_empty());
    }

    #[test]
    fn old_names_of_preferences_are_read_in_any_case_and_become_canonical() {
        for (old, new) in [
            ("legacy", "prefer-initialize"),
            ("Modern", "prefer-discover"),
            ("FORCE-LEGACY", "force-initialize"),
            ("force-modern", "force-discover"),
            ("Prefer-Discover", "prefer-discover"),
        ] {
            let place = Place::Variable("MCPX_UPSTREAM_PROTOCOL".to_owned());
            let (_, value, _) = read_named("upstream.protocol", old, place).unwrap();
            assert_eq!(value.to_string(), new);
        }
    }

    #[test]
    fn a_bad_preference_is_refused_with_the_list_wherever_it_is_given() {
        let list = "prefer-discover, prefer-initialize, force-discover, force-initialize, follow";
        let mut mistakes = Vec::new();
        let variable = ("MCPX_UPSTREAM_PROTOCOL".to_owned(), "new".to_owned());
        read_variables(&[variable], &mut mistakes);
        let flag = FlagValue {
            flag: "--upstream-protocol".to_owned(),
            key: "upstream.protocol".to_owned(),
            text: "new".to_owned(),
        };
        read_flags(&[flag], &mut mistakes);
        let put = serde_json::json!({"upstream.protocol": "new"});
        mistakes.extend(read_changes(put.as_object().unwrap()).unwrap_err());
        read_source(
            &SourceText::new(
                Path::new("c.toml"),
                "[servers.a]\ncommand = \"a\"\nprotocol = \"new\"",
            ),
            Layer::User,
            &mut mistakes,
        );
        assert_eq!(mistakes.len(), 4, "{mistakes:?}");
        assert!(mistakes.iter().all(|mistake| mistake.text.contains(list)), "{mistakes:?}");
    }

    #[test]
    fn changes_are_checked_and_can_forget() {
        let put =
            serde_json::json!({"call.idleTimeout": "90m", "pool.queue": 5, "shim.grace": null});
        let changes = read_changes(put.as_object().unwrap()).unwrap();
        let shown: Vec<_> = changes
            .iter()
            .map(|(def, value)| (def.key, value.as_ref().map(ToString::to_string)))
            .collect();
        assert_eq!(
            shown,
            [
                ("call.idle_timeout", Some("1h30m".to_owned())),
                ("pool.queue", Some("5".to_owned())),
                ("shim.grace", None),
            ]
        );
    }
}
