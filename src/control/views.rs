//! Settings and configuration as the control API shows them, from what was loaded.

mod profiles;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value as Json;

use super::types::{
    ConfigAnswer, ProfileConfig, ReloadAnswer, ServerConfig, SettingView, SettingsAnswer,
};
use crate::protocol::revision::Revision;
use crate::settings::defs::Applies;
use crate::settings::layers::{InForce, Layer};
use crate::settings::mistake::hint;
use crate::settings::policy::{Glob, PolicyRule};
use crate::settings::servers::preference_word;
use crate::settings::value::{Secret, duration_text};
use crate::settings::{AuthDef, Loaded, Mistake, ServerDef, references};

/// The words that stand before a command line's `KEY=VALUE` in messages.
const UNKNOWN: &str = "there is no setting or section";

impl SettingView {
    /// One setting in force.
    pub fn of(in_force: &InForce) -> Self {
        Self {
            key: in_force.def.key.to_owned(),
            value: in_force.value.to_json(),
            origin: in_force.origin.to_string(),
            applies: in_force.def.applies.as_str().to_owned(),
            expected: in_force.def.kind.expected(),
            doc: in_force.def.doc.to_owned(),
        }
    }
}

impl SettingsAnswer {
    /// All settings, one, or one section; otherwise the nearest name.
    pub fn of(loaded: &Loaded, key: Option<&str>) -> Result<Self, String> {
        let within = |in_force: &&InForce| match key {
            None => true,
            Some(key) => {
                let def = in_force.def;
                let section = def.key.split_once('.').map(|(section, _)| section);
                def.key == key
                    || def.alias().is_some_and(|alias| alias == key)
                    || section == Some(key)
            }
        };
        let settings: Vec<_> =
            loaded.resolved.all.iter().filter(within).map(SettingView::of).collect();
        if settings.is_empty() {
            let key = key.unwrap_or_default();
            let names = loaded.resolved.all.iter().map(|in_force| in_force.def.key);
            return Err(format!("{UNKNOWN} `{key}`; {}", hint(key, names)));
        }
        Ok(Self { settings })
    }
}

impl ServerConfig {
    /// One server in canonical form.
    pub fn of(def: &ServerDef, origin: Option<String>) -> Self {
        Self {
            server: def.key.clone(),
            namespace: def.namespace.clone(),
            command: def.command.clone(),
            url: def.url.as_deref().map(shown_url),
            transport: def.transport.map(|transport| transport.as_str().to_owned()),
            headers: shown_headers(&def.headers),
            auth: def.auth.as_ref().map(shown_auth).unwrap_or_default(),
            env: def.env.clone(),
            cwd: def.cwd.clone(),
            scope: def.scope.as_str().to_owned(),
            max: def.max,
            protocol: def.protocol.map(|preference| preference_word(preference).to_owned()),
            revision: def.revision.map(Revision::as_str).map(str::to_owned),
            idle_timeout: def.idle_timeout.map(duration_text),
            expose: def.expose.map(|mode| mode.as_str().to_owned()),
            allow: def.tools.allow.as_deref().map(texts),
            deny: texts(&def.tools.deny),
            prefix: def.prefix.clone(),
            builtin: def.builtin,
            origin,
        }
    }
}

fn texts(globs: &[Glob]) -> Vec<String> {
    globs.iter().map(Glob::to_string).collect()
}

/// A text that may be a secret: references as they were written, anything else masked.
fn masked(text: &str) -> String {
    Secret::from(text).to_string()
}

/// What the name of a header or of a parameter contains whose value is a secret.
const TELLING: [&str; 7] = ["auth", "cookie", "key", "pass", "secret", "token", "sig"];

fn speaks_of_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|word| name.contains(word))
}

fn shown_headers(headers: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shown = |(name, text): (&String, &String)| {
        // `Bearer ${env:TOKEN}` shows nothing.
        let by_reference = !references::references(text).is_empty();
        let open = by_reference || !speaks_of_a_secret(name);
        (name.clone(), if open { text.clone() } else { masked(text) })
    };
    headers.iter().map(shown).collect()
}

/// Any value of a query may be a credential, whatever its name.
fn shown_url(url: &str) -> String {
    let Some((before, query)) = url.split_once('?') else { return url.to_owned() };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) => format!("{name}={}", masked(value)),
        None => masked(pair),
    });
    format!("{before}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn shown_auth(auth: &AuthDef) -> BTreeMap<String, String> {
    let members = auth.members().into_iter().flatten().map(|(name, text, secret)| {
        (name.to_owned(), if secret { masked(text) } else { text.to_owned() })
    });
    std::iter::once(("type".to_owned(), auth.kind().to_owned())).chain(members).collect()
}

impl ConfigAnswer {
    /// The configuration in force (D-07). Secrets stay the references they were written as. Of what
    /// was written in clear, credentials are masked; a child's environment is shown as it stands in
    /// the file, to the file's own user.
    pub fn of(loaded: &Loaded) -> Self {
        let settings: BTreeMap<_, _> = loaded
            .resolved
            .all
            .iter()
            .filter(|in_force| in_force.origin.layer != Layer::Default)
            .map(|in_force| (in_force.def.key.to_owned(), in_force.value.to_json()))
            .collect();
        let places =
            loaded.server_places.iter().map(|place| place.as_ref().map(ToString::to_string));
        let servers: Vec<_> = loaded
            .settings
            .servers
            .iter()
            .zip(places)
            .map(|(def, place)| ServerConfig::of(def, place))
            .collect();
        let rule = |rule: &PolicyRule| (rule.pattern(), rule.rule.as_str().to_owned());
        let policy = loaded.policy.iter().map(rule).collect();
        let profiles = loaded.profiles.iter();
        let profiles: Vec<_> = profiles.map(|profile| ProfileConfig::of(&profile.def)).collect();
        let mut toml = toml_text(loaded, &servers, &policy);
        for profile in &profiles {
            profiles::toml(&mut toml, profile);
        }
        let files = loaded.files.iter().map(|file| file.display().to_string()).collect();
        Self { files, settings, servers, policy, profiles, toml }
    }
}

fn toml_text(
    loaded: &Loaded,
    servers: &[ServerConfig],
    policy: &BTreeMap<String, String>,
) -> String {
    let mut text = String::new();
    let mut section = "";
    for in_force in &loaded.resolved.all {
        if in_force.origin.layer == Layer::Default {
            continue;
        }
        let (table, name) = in_force.def.key.split_once('.').unwrap_or(("", in_force.def.key));
        if table != section {
            let _ = writeln!(text, "{}[{table}]", if text.is_empty() { "" } else { "\n" });
            section = table;
        }
        let _ = writeln!(text, "{name} = {} # {}", in_force.value.to_json(), in_force.origin);
    }
    if !policy.is_empty() {
        let _ = writeln!(text, "{}[policy]", if text.is_empty() { "" } else { "\n" });
        for (pattern, rule) in policy {
            let _ = writeln!(text, "{} = {}", toml_string(pattern), toml_string(rule));
        }
    }
    for server in servers.iter().filter(|server| !server.builtin) {
        let _ = writeln!(
            text,
            "{}[servers.{}]",
            if text.is_empty() { "" } else { "\n" },
            toml_key(&server.server)
        );
        server_toml(&mut text, server);
    }
    text
}

fn server_toml(text: &mut String, server: &ServerConfig) {
    let mut put = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "{name} = {value}");
    };
    if server.url.is_none() {
        let list: Vec<_> = server.command.iter().map(|word| toml_string(word)).collect();
        put("command", &format!("[{}]", list.join(", ")));
    }
    for (name, value) in [("url", &server.url), ("transport", &server.transport)] {
        if let Some(value) = value {
            put(name, &toml_string(value));
        }
    }
    for (name, table) in
        [("headers", &server.headers), ("auth", &server.auth), ("env", &server.env)]
    {
        let pairs: Vec<_> = table
            .iter()
            .map(|(name, value)| format!("{} = {}", toml_key(name), toml_string(value)))
            .collect();
        if !pairs.is_empty() {
            put(name, &format!("{{ {} }}", pairs.join(", ")));
        }
    }
    let list = |texts: &[String]| {
        let quoted: Vec<_> = texts.iter().map(|text| toml_string(text)).collect();
        format!("[{}]", quoted.join(", "))
    };
    let allow = server.allow.as_ref().map(|allow| format!("allow = {}", list(allow)));
    let deny = (!server.deny.is_empty()).then(|| format!("deny = {}", list(&server.deny)));
    let tools: Vec<_> = allow.into_iter().chain(deny).collect();
    if !tools.is_empty() {
        put("tools", &format!("{{ {} }}", tools.join(", ")));
    }
    put("namespace", &toml_string(&server.namespace));
    put("scope", &toml_string(&server.scope));
    put("max", &server.max);
    for (name, value) in [
        ("cwd", &server.cwd),
        ("protocol", &server.protocol),
        ("revision", &server.revision),
        ("idle_timeout", &server.idle_timeout),
        ("expose", &server.expose),
        ("prefix", &server.prefix),
    ] {
        if let Some(value) = value {
            put(name, &toml_string(value));
        }
    }
}

fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn toml_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { toml_string(key) }
}

impl ReloadAnswer {
    /// What a new configuration changes.
    pub fn between(old: &Loaded, new: &Loaded) -> Self {
        let find = |loaded: &'_ Loaded, key: &str| {
            loaded.settings.servers.iter().find(|def| def.key == key).cloned()
        };
        let mut answer = Self::default();
        for def in &new.settings.servers {
            match find(old, &def.key) {
                None => answer.added.push(def.key.clone()),
                Some(before) if before != *def => answer.changed.push(def.key.clone()),
                Some(_) => {}
            }
        }
        for def in &old.settings.servers {
            if find(new, &def.key).is_none() {
                answer.removed.push(def.key.clone());
            }
        }
        for in_force in &new.resolved.all {
            let before = old.resolved.get(in_force.def.key);
            if before.is_none_or(|before| before.value != in_force.value) {
                answer.settings.push(in_force.def.key.to_owned());
                if in_force.def.applies == Applies::Restart {
                    answer.after_restart.push(in_force.def.key.to_owned());
                }
            }
        }
        answer
    }
}

/// Mistakes as lines.
pub fn mistake_lines(mistakes: &[Mistake]) -> Vec<String> {
    mistakes.iter().map(ToString::to_string).collect()
}

/// A JSON value as a person writes it: text without quotes.
pub fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::settings::{Settings, Sources};

    fn load(file: &Path, text: &str) -> Loaded {
        #[expect(clippy::disallowed_methods, reason = "a test writes its own input")]
        std::fs::write(file, text).unwrap();
        let sources = Sources { file: Some(PathBuf::from(file)), ..Sources::default() };
        Settings::load(&sources, Path::new("/bin/mcpx")).unwrap()
    }

    const TEXT: &str = r#"
[call]
idle_timeout = "90m"
[upstream]
protocol = "Legacy"
[servers."Google Sheets"]
command = "sheets"
args = ["--quote", "\"x\" $$"]
env = { "A.b" = "${env:B}" }
protocol = "force-legacy"
idleTimeout = "120s"
prefix = ""
[servers.docs]
url = "https://docs.example/mcp?${env:ALL}&v=${env:V}"
transport = "sse"
headers = { X-Tenant = "acme", X-Api-Key = "k ${env:K}" }
auth = { type = "basic", username = "me", password = "${file:/run/p}" }
[profiles.review]
servers = ["d*"]
expose = "both"
nameLimit = 40
project = "/p q"
policy = { "docs.*" = "ask" }
[profiles.all]
"#;

    #[test]
    fn the_canonical_form_reads_back_to_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        let first = load(&file, TEXT);
        let shown = ConfigAnswer::of(&first);
        assert_eq!(shown.settings["upstream.protocol"], "prefer-initialize");
        assert_eq!(shown.servers[0].protocol.as_deref(), Some("force-initialize"));
        assert_eq!(shown.servers[0].idle_timeout.as_deref(), Some("2m"));
        let second = load(&file, &shown.toml);
        assert_eq!(second.settings.servers, first.settings.servers);
        let profiles = |loaded: &Loaded| {
            let configs = loaded.profiles.iter().map(|profile| ProfileConfig::of(&profile.def));
            configs.collect::<Vec<_>>()
        };
        assert_eq!(profiles(&second), profiles(&first));
        assert_eq!(shown.profiles.len(), 2);
        assert_eq!(ReloadAnswer::between(&first, &second), ReloadAnswer::default());
    }

    #[test]
    fn secrets_in_clear_are_masked() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"
[servers.a]
url = "https://a.example/mcp?api=hush&v=2&hush&token=${env:T}"
headers = { Authorization = "Bearer hush", X-Tenant = "acme" }
[servers.b]
url = "https://b.example/mcp"
auth = { type = "query", name = "key", value = "hush" }
"#;
        let shown = ConfigAnswer::of(&load(&folder.path().join("c.toml"), text));
        assert!(!format!("{shown:?}").contains("hush"), "{}", shown.toml);
        for line in [
            "url = \"https://a.example/mcp?api=***&v=***&***&token=${env:T}\"",
            "headers = { Authorization = \"***\", X-Tenant = \"acme\" }",
            "auth = { name = \"key\", type = \"query\", value = \"***\" }",
        ] {
            assert!(shown.toml.contains(line), "{}", shown.toml);
        }
    }

    #[test]
    fn a_reload_names_what_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        let old = load(&file, "[servers.a]\ncommand = \"a\"\n[servers.b]\ncommand = \"b\"\n");
        let new = load(
            &file,
            "[link]\nmax_frame = \"1MiB\"\n[call]\nidle_timeout = \"1m\"\n\
             [servers.c]\ncommand = \"c\"\n# a comment\n[servers.b]\ncommand = \"b\"\nmax = 7\n",
        );
        let answer = ReloadAnswer::between(&old, &new);
        assert_eq!(answer.added, ["c"]);
        assert_eq!(answer.removed, ["a"]);
        assert_eq!(answer.changed, ["b"]);
        assert_eq!(answer.settings, ["call.idle_timeout", "link.max_frame"]);
        assert_eq!(answer.after_restart, ["link.max_frame"]);
    }

    #[test]
    fn settings_are_shown_whole_by_section_or_one() {
        let loaded = Settings::defaults(Path::new("/bin/mcpx")).unwrap();
        let count = |key| SettingsAnswer::of(&loaded, key).map(|answer| answer.settings.len());
        assert_eq!(count(Some("call.idleTimeout")), Ok(1));
        assert_eq!(count(Some("call")), Ok(10));
        assert_eq!(count(None), Ok(loaded.resolved.all.len()));
        assert!(count(Some("call.idle_timeou")).unwrap_err().contains("`call.idle_timeout`"));
    }
}
