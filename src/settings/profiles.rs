//! Profiles: the `[profiles.NAME]` tables, and what is in force for a host that comes in by one.
//!
//! A profile narrows: it shows some of the servers, and its `policy` adds rules to those of everybody,
//! of which the stricter counts. It opens nothing that is shut elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::defs::{MODES, find};
use super::mistake::{Mistake, Place, hint};
use super::policy::{self, Glob, PolicyRule};
use super::projects::key_in_file;
use super::servers::{ExposeMode, ServerDef, TableKey};
use super::tree::{Entry, Node, Raw, SourceText};
use super::typed::Settings;
use super::value::{Value, choose};

/// What may stand in `[profiles.NAME]`.
pub const PROFILE_KEYS: &[TableKey] = &[
    TableKey {
        name: "servers",
        schema: r#"{"type":"array","items":{"type":"string"}}"#,
        doc: "The servers it shows, by key, with `*` and `?` where wanted; without it, all.",
    },
    TableKey {
        name: "expose",
        schema: r#"{"enum":["core","passthrough","both"]}"#,
        doc: "What its hosts see of them, in place of `expose.mode` and the servers' own `expose`.",
    },
    TableKey {
        name: "name_limit",
        schema: r#"{"type":"integer","minimum":24,"maximum":256}"#,
        doc: "Longest name of a tool, in place of `expose.name_limit`: less for a host that puts a \
              prefix of its own before each.",
    },
    TableKey {
        name: "project",
        schema: r#"{"type":"string"}"#,
        doc: "The project folder of its hosts over HTTP, who cannot say theirs; an absolute path.",
    },
    TableKey {
        name: "policy",
        schema: r#"{"type":"object"}"#,
        doc: "Rules beside those of [policy]; of the two, the stricter counts.",
    },
];

/// One profile as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileDef {
    /// Its name, as `--profile` and `/mcp/{profile}` have it.
    pub name: String,
    /// The keys of the servers it shows; all where there is none.
    pub servers: Option<Vec<Glob>>,
    /// What its hosts see of them.
    pub expose: Option<ExposeMode>,
    /// Longest name of a tool.
    pub name_limit: Option<usize>,
    /// The project of its hosts over HTTP.
    pub project: Option<PathBuf>,
    /// Its rules.
    pub policy: Vec<PolicyRule>,
    /// Where its table begins.
    pub place: Place,
}

/// A profile in force.
#[derive(Debug, Clone)]
pub struct Profile {
    /// As configured.
    pub def: ProfileDef,
    /// What is in force for its hosts: no server that it does not show.
    pub settings: Arc<Settings>,
}

impl ProfileDef {
    /// Whether it shows this server.
    pub fn shows(&self, key: &str) -> bool {
        self.servers.as_ref().is_none_or(|globs| globs.iter().any(|glob| glob.fits(key)))
    }

    /// What is in force for its hosts, of what is in force for everybody.
    fn narrow(&self, everybody: &Settings) -> Settings {
        let shown = everybody.servers.iter().filter(|def| self.shows(&def.key));
        let servers = shown.map(|def| Arc::new(self.narrow_server(def))).collect();
        let mut settings = Settings { servers, ..everybody.clone() };
        settings.expose.mode = self.expose.unwrap_or(settings.expose.mode);
        // They operate the whole daemon.
        settings.expose.ops = false;
        settings.expose.name_limit = self.name_limit.unwrap_or(settings.expose.name_limit);
        settings
    }

    fn narrow_server(&self, def: &ServerDef) -> ServerDef {
        let mut def = def.clone();
        def.tools.narrow(&def.namespace, &self.policy);
        if self.expose.is_some() {
            def.expose = None;
        }
        def
    }
}

/// All profiles, each with what is in force for it.
pub(super) fn assemble(defs: Vec<ProfileDef>, everybody: &Settings) -> Vec<Profile> {
    let of = |def: ProfileDef| Profile { settings: Arc::new(def.narrow(everybody)), def };
    defs.into_iter().map(of).collect()
}

/// Names and rules that are about no server: a slip of the pen would hide what is to be seen.
pub(super) fn about_nothing(defs: &[ProfileDef], everywhere: &Settings) -> Vec<Mistake> {
    let key = |def: &Arc<ServerDef>| key_in_file(&def.key).to_owned();
    let keys: Vec<String> = everywhere.servers.iter().map(key).collect();
    let mut warnings = Vec::new();
    for def in defs {
        let idle = |glob: &&Glob| !keys.iter().any(|key| glob.fits(key));
        for glob in def.servers.iter().flatten().filter(idle) {
            let hint = hint(glob.as_str(), keys.iter().map(String::as_str));
            let text = format!("profile `{}` shows `{glob}`, which is no server: {hint}", def.name);
            warnings.push(Mistake { place: def.place.clone(), text });
        }
        let shown = everywhere.servers.iter().filter(|server| def.shows(key_in_file(&server.key)));
        let namespaces: Vec<&str> = shown.map(|server| server.namespace.as_str()).collect();
        warnings.extend(policy::about_nothing(&def.policy, &namespaces).map(|mistake| Mistake {
            text: format!("profile `{}`: {}", def.name, mistake.text),
            ..mistake
        }));
    }
    warnings
}

/// A later file's profile of the same name takes the earlier one's place.
pub(super) fn place(defs: &mut Vec<ProfileDef>, later: Vec<ProfileDef>) {
    for def in later {
        match defs.iter_mut().find(|earlier| earlier.name == def.name) {
            Some(earlier) => *earlier = def,
            None => defs.push(def),
        }
    }
}

/// Reads `[profiles.NAME]`; `None` where it has mistakes.
pub(super) fn read(
    entry: &Entry,
    source: &SourceText,
    mistakes: &mut Vec<Mistake>,
) -> Option<ProfileDef> {
    let before = mistakes.len();
    let def = ProfileDef {
        name: entry.key.clone(),
        servers: None,
        expose: None,
        name_limit: None,
        project: None,
        policy: Vec::new(),
        place: source.place(entry.at),
    };
    let mut reading = Reading { source, mistakes, def };
    reading.name(entry.at);
    match &entry.node.raw {
        Raw::Table(entries) => entries.iter().for_each(|entry| reading.key(entry)),
        other => reading.wrong(entry.at, &format!("it is a table, found {}", other.name())),
    }
    let def = reading.def;
    (mistakes.len() == before).then_some(def)
}

struct Reading<'a> {
    source: &'a SourceText,
    mistakes: &'a mut Vec<Mistake>,
    def: ProfileDef,
}

impl Reading<'_> {
    fn wrong(&mut self, at: usize, text: &str) {
        let text = format!("profile `{}`: {text}", self.def.name);
        self.mistakes.push(Mistake { place: self.source.place(at), text });
    }

    /// It stands in an address.
    fn name(&mut self, at: usize) {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name = &self.def.name;
        if name.is_empty() || !name.chars().all(plain) || name.starts_with('.') {
            self.wrong(at, "a name has letters of ASCII, digits, `-`, `_` and `.` alone");
        }
    }

    fn key(&mut self, entry: &Entry) {
        let node = &entry.node;
        let read = match entry.key.as_str() {
            "servers" => globs(node).map(|globs| self.def.servers = Some(globs)),
            "expose" => mode(node).map(|mode| self.def.expose = Some(mode)),
            "name_limit" | "nameLimit" => {
                name_limit(node).map(|limit| self.def.name_limit = Some(limit))
            }
            "project" => project(node).map(|project| self.def.project = Some(project)),
            "policy" => match &node.raw {
                Raw::Table(rules) => {
                    self.def.policy = policy::read(rules, self.source, self.mistakes);
                    Ok(())
                }
                other => Err(format!("`policy` is a table of rules, found {}", other.name())),
            },
            other => {
                let hint = hint(other, PROFILE_KEYS.iter().map(|key| key.name));
                return self.wrong(entry.at, &format!("unknown key `{other}`; {hint}"));
            }
        };
        if let Err(why) = read {
            self.wrong(node.at, &why);
        }
    }
}

fn globs(node: &Node) -> Result<Vec<Glob>, String> {
    let Raw::List(items) = &node.raw else {
        return Err(format!("`servers` is a list of keys, found {}", node.raw.name()));
    };
    let glob = |item: &Node| match &item.raw {
        Raw::Text(text) => Glob::parse(text).map_err(|why| format!("`servers`: {why}")),
        other => Err(format!("`servers` is a list of keys, found {} in it", other.name())),
    };
    items.iter().map(glob).collect()
}

fn mode(node: &Node) -> Result<ExposeMode, String> {
    let Raw::Text(text) = &node.raw else {
        return Err(format!("`expose` is a word, found {}", node.raw.name()));
    };
    let word = choose(MODES, text).map_err(|why| format!("`expose`: {why}"))?;
    ExposeMode::of_word(word).ok_or_else(|| format!("`expose`: {word}"))
}

/// Within the bounds of the setting in whose place it stands.
fn name_limit(node: &Node) -> Result<usize, String> {
    let kind = find("expose.name_limit").map(|def| def.kind);
    match kind.map(|kind| kind.read(&node.raw)) {
        Some(Ok(Value::Count(limit))) => usize::try_from(limit).map_err(|error| error.to_string()),
        Some(Err(why)) => Err(format!("`name_limit`: {why}")),
        _ => Err("`name_limit` is a number".to_owned()),
    }
}

fn project(node: &Node) -> Result<PathBuf, String> {
    match &node.raw {
        Raw::Text(text) if Path::new(text).is_absolute() => Ok(PathBuf::from(text)),
        Raw::Text(text) => Err(format!("`project` is an absolute path, not {text:?}")),
        other => Err(format!("`project` is an absolute path, found {}", other.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Loaded, Rule, Sources};

    fn load(text: &str) -> Result<Loaded, Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        #[expect(clippy::disallowed_methods, reason = "a test writes its own input")]
        std::fs::write(&file, text).unwrap();
        let sources = Sources { file: Some(file), ..Sources::default() };
        Settings::load(&sources, Path::new("/nowhere/mcpx")).map_err(|mistakes| {
            let short = |mistake: &Mistake| mistake.to_string();
            mistakes.iter().map(short).collect()
        })
    }

    const SERVERS: &str =
        "[servers.docs]\ncommand = 'd'\n[servers.github]\ncommand = 'g'\nexpose = 'core'\n";

    #[test]
    fn a_profile_shows_some_servers_in_its_own_way() {
        let text = format!(
            "{SERVERS}[profiles.review]\nservers = ['git*']\nexpose = 'both'\nname_limit = 30\n\
             project = '/p'\n[profiles.all]\n"
        );
        let loaded = load(&text).unwrap();
        let review = loaded.profile("review").unwrap();
        let keys: Vec<_> = review.settings.servers.iter().map(|def| def.key.as_str()).collect();
        assert_eq!(keys, ["github"]);
        let expose = &review.settings.expose;
        assert_eq!((expose.mode, expose.name_limit), (ExposeMode::Both, 30));
        let shown = review.settings.servers.first().unwrap();
        assert_eq!(shown.expose, None, "the profile decides");
        assert_eq!(review.def.project.as_deref(), Some(Path::new("/p")));
        let all = loaded.profile("all").unwrap();
        assert_eq!(all.settings.servers, loaded.settings.servers);
        assert_eq!(all.settings.expose, loaded.settings.expose);
        assert!(loaded.profile("other").is_none());
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }

    /// Layers only narrow: of two rules the stricter counts, whichever is the more specific.
    #[test]
    fn a_profile_opens_nothing() {
        let text = format!(
            "{SERVERS}[policy]\n'docs.*' = 'ask'\n'docs.x' = 'deny'\n\
             [profiles.p.policy]\n'docs.x' = 'allow'\n'docs.a*' = 'allow'\n'docs.b' = 'deny'\n\
             'docs.*' = 'allow'\n'github.z' = 'ask'\n"
        );
        let loaded = load(&text).unwrap();
        let rules = |profile: &str, key: &str| {
            let servers = &loaded.profile(profile).unwrap().settings.servers;
            servers.iter().find(|def| def.key == key).unwrap().tools.clone()
        };
        let docs = rules("p", "docs");
        for (tool, rule) in
            [("x", Rule::Deny), ("a1", Rule::Ask), ("b", Rule::Deny), ("c", Rule::Ask)]
        {
            assert_eq!(docs.of(tool), rule, "{tool}");
        }
        assert_eq!(rules("p", "github").of("z"), Rule::Ask);
        let everybody = loaded.settings.servers.iter().find(|def| def.key == "github").unwrap();
        assert_eq!(everybody.tools.of("z"), Rule::Allow);
    }

    #[test]
    fn mistakes_name_the_profile_and_the_place() {
        let text = "[profiles.'a b']\n[profiles.p]\nservers = 'docs'\nexpose = 'al'\n\
                    name_limit = 3\nproject = 'x'\nserver = []\npolicy = { x = 'deny' }\n\
                    [profiles]\nq = 1\nr = { servers = ['[a]'] }\n";
        let told = load(text).unwrap_err();
        let expected = [
            "profile `a b`: a name has letters",
            "profile `p`: `servers` is a list of keys, found text",
            "profile `p`: `expose`: \"al\" is not one of core, passthrough, both",
            "profile `p`: `name_limit`: 3 is not a whole number from 24 to 256",
            "profile `p`: `project` is an absolute path, not \"x\"",
            "profile `p`: unknown key `server`; did you mean `servers`?",
            "policy `x`: write \"NAMESPACE.TOOL\"",
            "profile `q`: it is a table, found a number",
            "profile `r`: `servers`: \"[a]\" has '['",
        ];
        for expected in expected {
            assert!(told.iter().any(|told| told.contains(expected)), "{expected}: {told:#?}");
        }
        assert_eq!(told.len(), expected.len(), "{told:#?}");
    }

    #[test]
    fn what_is_about_no_server_is_said() {
        let text = format!(
            "{SERVERS}[profiles.p]\nservers = ['dcs', 'docs']\npolicy = {{ 'gihub.*' = 'deny' }}\n"
        );
        let loaded = load(&text).unwrap();
        let told: Vec<_> = loaded.warnings.iter().map(|mistake| mistake.text.as_str()).collect();
        assert_eq!(
            told,
            [
                "profile `p` shows `dcs`, which is no server: did you mean `docs`?",
                "profile `p`: policy `gihub.*` is about no server: accepted: docs",
            ]
        );
    }
}
