//! The reference of all settings for people: `docs/configuration.md`, and what `mcpx.toml(5)` has of it.
//!
//! The page's prose is its own; what stands between its two marks is made here.

use std::fmt::Write as _;

use crate::settings::defs::{Applies, Def};
use crate::settings::layers::{LayerValues, Resolved};
use crate::settings::mistake::Mistake;
use crate::settings::profiles::PROFILE_KEYS;
use crate::settings::servers::{SERVER_KEYS, TableKey};
use crate::settings::value::Value;

/// One table of the configuration file with its settings.
#[derive(Debug)]
pub struct Section {
    /// Its name in brackets.
    pub name: &'static str,
    /// What it is about, a phrase.
    pub about: &'static str,
    /// The page under `docs/` with more.
    pub page: Option<&'static str>,
    /// Its settings, in the order of the table.
    pub rows: Vec<Row>,
}

/// One setting.
#[derive(Debug)]
pub struct Row {
    /// Its meaning.
    pub def: &'static Def,
    /// The built-in value, as a file has it.
    pub default: String,
    /// Keys of `[servers.NAME]` that stand in its place for one server.
    pub of_server: Vec<&'static str>,
    /// Keys of `[profiles.NAME]` that stand in its place for the hosts of one profile.
    pub of_profile: Vec<&'static str>,
}

impl Row {
    /// Its name within its section.
    pub fn name(&self) -> &'static str {
        super::split(self.def).1
    }

    /// Where else it may be set, and when a change is obeyed: sentences, or nothing.
    pub fn notes(&self) -> String {
        let mut notes = String::new();
        for (keys, whose) in [(&self.of_server, "server"), (&self.of_profile, "profile")] {
            for key in keys {
                let _ = write!(notes, " A {whose}'s own: `{key}`.");
            }
        }
        if self.def.applies == Applies::Restart {
            notes.push_str(" Obeyed when the daemon starts again.");
        }
        notes
    }
}

/// What each section is about, and where more stands.
const ABOUT: &[(&str, &str, Option<&str>)] = &[
    ("expose", "what hosts see", Some("context.md")),
    ("search", "`mcpx_search` and `mcpx search`", Some("search.md")),
    ("types", "tools as TypeScript", Some("types.md")),
    ("call", "calls of tools, and their results", Some("results.md")),
    ("exec", "scripts", Some("scripts.md")),
    ("elicit", "questions of servers", Some("questions.md")),
    ("tasks", "calls that run as tasks", Some("tasks.md")),
    ("artifacts", "stored results and files of scripts", Some("results.md")),
    ("scripts", "saved scripts", Some("saved-scripts.md")),
    ("upstream", "how servers are opened, listed and spoken to", Some("eras.md")),
    ("tls", "certificates of remote servers", Some("security.md")),
    ("proxy", "the way to remote servers", Some("troubleshooting.md")),
    ("pool", "instances of servers, and who waits for them", Some("operations.md")),
    ("plumbing", "how servers are started again and stopped", Some("operations.md")),
    ("process", "processes of servers", Some("operations.md")),
    ("host", "connections of hosts", Some("notifications.md")),
    ("listen", "streams of changes towards hosts", Some("notifications.md")),
    ("http", "hosts over HTTP", Some("security.md")),
    ("transport", "event streams in either direction", Some("notifications.md")),
    ("config", "the configuration itself", None),
    ("metrics", "Prometheus over TCP", Some("operations.md")),
    ("audit", "the record of calls", Some("operations.md")),
    ("trace", "messages that are kept to be looked at", Some("operations.md")),
    ("otel", "traces by OTLP", Some("operations.md")),
    ("shim", "`mcpx serve`", Some("restarts.md")),
    ("link", "messages from and to anybody", None),
    ("control", "the control socket", Some("operations.md")),
    ("events", "what happened", Some("events.md")),
    ("daemon", "the daemon itself", Some("operations.md")),
    ("cli", "the command line", None),
];

/// Every section with its settings, in the order of the table.
pub fn sections(defaults: &LayerValues) -> Result<Vec<Section>, Mistake> {
    let resolved = Resolved::merge(std::slice::from_ref(defaults))?;
    let mut sections: Vec<Section> = Vec::new();
    for in_force in &resolved.all {
        let (table, _) = super::split(in_force.def);
        let row = Row {
            def: in_force.def,
            default: as_in_a_file(&in_force.value),
            of_server: in_place_of(in_force.def, SERVER_KEYS),
            of_profile: in_place_of(in_force.def, PROFILE_KEYS),
        };
        if let Some(section) = sections.last_mut().filter(|section| section.name == table) {
            section.rows.push(row);
        } else {
            let about = ABOUT.iter().find(|(name, ..)| *name == table);
            let (name, about, page) = about.copied().unwrap_or((table, "", None));
            sections.push(Section { name, about, page, rows: vec![row] });
        }
    }
    Ok(sections)
}

/// The keys whose text names the setting: that is how such a key says what it stands in place of.
fn in_place_of(def: &Def, keys: &[TableKey]) -> Vec<&'static str> {
    let named = format!("`{}`", def.key);
    keys.iter().filter(|key| key.doc.contains(&named)).map(|key| key.name).collect()
}

fn as_in_a_file(value: &Value) -> String {
    match value.to_json() {
        serde_json::Value::String(text) => format!("\"{text}\""),
        other => other.to_string(),
    }
}

/// What stands between the marks of `docs/configuration.md`.
pub fn page(defaults: &LayerValues) -> Result<String, Mistake> {
    let sections = sections(defaults)?;
    let mut text = String::from("| table | is about |\n| --- | --- |\n");
    for Section { name, about, .. } in &sections {
        let _ = writeln!(text, "| [`[{name}]`](#{name}) | {about} |");
    }
    text.push_str("| [`[servers.NAME]`](#servers) | one server |\n");
    text.push_str("| [`[profiles.NAME]`](#profiles) | what some hosts see |\n");
    text.push_str("| [`[policy]`](#policy) | what may be called |\n");
    for section in &sections {
        let Section { name, about, page, rows } = section;
        let _ = write!(text, "\n### {name}\n\n`[{name}]`: {about}.");
        if let Some(page) = page {
            let _ = write!(text, " More in [{page}]({page}).");
        }
        text.push_str("\n\n| setting | built-in value | takes | |\n| --- | --- | --- | --- |\n");
        for row in rows {
            let what = format!("{}{}", row.def.doc, row.notes());
            let cells = [format!("`{}`", row.def.key), format!("`{}`", row.default)];
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                cells.join(" | "),
                cell(&row.def.kind.expected()),
                cell(&what)
            );
        }
    }
    keys(&mut text, "servers", "one server, which mcpx starts or connects to", SERVER_KEYS);
    keys(&mut text, "profiles", "what some hosts see ([profiles.md](profiles.md))", PROFILE_KEYS);
    Ok(text)
}

/// The keys of a table that people name.
fn keys(text: &mut String, name: &str, about: &str, keys: &[TableKey]) {
    let _ = write!(text, "\n### {name}\n\n`[{name}.NAME]`: {about}.\n\n| key | |\n| --- | --- |\n");
    for key in keys {
        let _ = writeln!(text, "| `{}` | {} |", key.name, cell(key.doc));
    }
}

/// A sentence in a cell of a table: `|` would end it, and `${…}` and patterns are no Markdown.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::pages::ensure;
    use crate::settings::parse;

    fn row<'a>(sections: &'a [Section], key: &str) -> &'a Row {
        sections.iter().flat_map(|section| &section.rows).find(|row| row.def.key == key).unwrap()
    }

    #[test]
    fn x10_the_page_is_current() {
        ensure("configuration.md", "settings", &page(&parse::defaults().unwrap()).unwrap());
    }

    #[test]
    fn x10_every_section_says_what_it_is_about_and_links_a_page_that_there_is() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        let sections = sections(&parse::defaults().unwrap()).unwrap();
        let mut names: Vec<&str> = sections.iter().map(|section| section.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a section stands in two places of the table");
        assert_eq!(count, ABOUT.len(), "a section of ABOUT has no settings");
        for section in sections {
            assert!(!section.about.is_empty(), "[{}]: say in ABOUT what it is", section.name);
            if let Some(page) = section.page {
                assert!(docs.join(page).exists(), "[{}] links {page}", section.name);
            }
        }
    }

    #[test]
    fn x10_what_a_server_or_a_profile_may_have_of_its_own_is_said() {
        let sections = sections(&parse::defaults().unwrap()).unwrap();
        for (key, server, profile) in [
            ("expose.mode", &["expose"][..], &["expose"][..]),
            ("expose.name_limit", &[], &["name_limit"]),
            ("upstream.protocol", &["protocol"], &[]),
            ("pool.max", &["max"], &[]),
            ("pool.idle_timeout", &["idle_timeout"], &[]),
            ("call.idle_timeout", &[], &[]),
        ] {
            let row = row(&sections, key);
            assert_eq!((&*row.of_server, &*row.of_profile), (server, profile), "{key}");
        }
        let pool = row(&sections, "pool.idle_timeout");
        assert!(pool.notes().contains("A server's own: `idle_timeout`."), "{}", pool.notes());
    }
}
