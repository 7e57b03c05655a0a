//! Upstream definitions: the `[servers.NAME]` tables.

mod remote;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::defs::{MODES, PREFERENCES, camel};
use super::mistake::{Mistake, Place, hint};
use super::policy::{Glob, ToolRules};
use super::references;
use super::tree::{Entry, Node, Raw, SourceText};
use super::value::{choose, parse_duration};
use crate::protocol::naming::namespace_of_key;
use crate::protocol::revision::Revision;
use crate::protocol::session::probe::Preference;

pub use remote::{AuthDef, RemoteTransport, check_header, check_url};

/// Who shares an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// Everybody.
    Global,
    /// Everybody in one project directory; the default.
    #[default]
    Project,
    /// One host session.
    Session,
    /// One call.
    Call,
}

impl Scope {
    /// All of them, widest first.
    pub const ALL: [Self; 4] = [Self::Global, Self::Project, Self::Session, Self::Call];

    /// As configured.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Project => "project",
            Self::Session => "session",
            Self::Call => "call",
        }
    }
}

/// What a host sees of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExposeMode {
    /// Only through the core tools.
    Core,
    /// Each tool under a name of its own, without the core tools.
    Passthrough,
    /// Both.
    Both,
}

impl ExposeMode {
    /// As configured.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Passthrough => "passthrough",
            Self::Both => "both",
        }
    }

    /// The mode of a canonical word.
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Core, Self::Passthrough, Self::Both].into_iter().find(|mode| mode.as_str() == word)
    }
}

/// A preference as configured and shown (U-05).
pub const fn preference_word(preference: Preference) -> &'static str {
    preference.as_str()
}

/// The preference of a canonical word.
pub fn preference_of_word(word: &str) -> Option<Preference> {
    Preference::ALL.into_iter().find(|preference| preference.as_str() == word)
}

/// One upstream as configured.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerDef {
    /// The configuration key.
    pub key: String,
    /// The namespace: from the key, or `namespace`.
    pub namespace: String,
    /// Program and arguments, references unexpanded; empty for a remote server.
    pub command: Vec<String>,
    /// The address of a remote server, references unexpanded.
    pub url: Option<String>,
    /// Its transport; without one it is probed, HTTP first.
    pub transport: Option<RemoteTransport>,
    /// Headers of every request to it, references unexpanded.
    pub headers: BTreeMap<String, String>,
    /// Its credential, references unexpanded.
    pub auth: Option<AuthDef>,
    /// Environment, references unexpanded.
    pub env: BTreeMap<String, String>,
    /// Working directory as written; relative to the project of the scope.
    pub cwd: Option<String>,
    /// The folder of the file that defines it: the base of relative paths for global scope.
    pub base: PathBuf,
    /// Who shares an instance.
    pub scope: Scope,
    /// Instances per scope key and lane.
    pub max: usize,
    /// Its own preference (U-07).
    pub protocol: Option<Preference>,
    /// A revision pin (U-02).
    pub revision: Option<Revision>,
    /// Its own idle time; zero means never.
    pub idle_timeout: Option<Duration>,
    /// Its own exposure.
    pub expose: Option<ExposeMode>,
    /// Its own name prefix; `""` for bare names.
    pub prefix: Option<String>,
    /// Which of its tools may be called.
    pub tools: ToolRules,
    /// The built-in upstream.
    pub builtin: bool,
}

/// The key and namespace of the built-in upstream.
pub const DEMO: &str = "demo";

impl ServerDef {
    /// The preference in force for it, where `general` is `upstream.protocol` (U-07).
    pub fn preference(&self, general: Preference) -> Preference {
        self.protocol.unwrap_or(general)
    }

    /// Whether callers of legacy revisions get a session of their own (U-18); a pinned revision
    /// leaves no second one.
    pub fn follows(&self, general: Preference) -> bool {
        self.revision.is_none() && self.preference(general) == Preference::Follow
    }

    /// What its names are shown under in pass-through mode, where `expose.prefix` says no other.
    pub(super) fn shown_prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(&self.namespace)
    }

    /// The built-in upstream: this program's own small stdio server.
    pub fn demo(program: &Path) -> Self {
        Self {
            key: DEMO.to_owned(),
            namespace: DEMO.to_owned(),
            // A `$` in our own path is no reference.
            command: vec![references::escape(&program.to_string_lossy()), "demo-server".to_owned()],
            url: None,
            transport: None,
            headers: BTreeMap::new(),
            auth: None,
            env: BTreeMap::new(),
            cwd: None,
            base: PathBuf::from("/"),
            scope: Scope::Global,
            max: GLOBAL_MAX,
            protocol: None,
            revision: None,
            idle_timeout: None,
            expose: None,
            prefix: None,
            tools: ToolRules::default(),
            builtin: true,
        }
    }

    /// Whether what runs for the one serves the other as well: they differ in nothing but in which tools
    /// may be called.
    pub fn runs_like(&self, other: &Self) -> bool {
        *self == Self { tools: self.tools.clone(), ..other.clone() }
    }

    /// Whether it is reached by an address and has no process of ours.
    pub const fn is_remote(&self) -> bool {
        self.url.is_some()
    }
}

/// Which server it is; the rest may hold secrets that were written in clear.
impl fmt::Debug for ServerDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerDef")
            .field("key", &self.key)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// Everybody shares the one instance of a server with global scope, unless it says otherwise (P-01).
const GLOBAL_MAX: usize = 1;

/// A server table that was read but does not know the settings yet.
#[derive(Debug, Clone)]
pub struct ServerDraft {
    /// All that stands in its table; `max` is provisional.
    pub def: ServerDef,
    /// Its own `max`.
    pub max: Option<usize>,
    /// Where its table begins.
    pub place: Place,
}

impl ServerDraft {
    /// The definition, with `pool.max` where it has no `max` of its own.
    pub fn finish(self, pool_max: usize) -> ServerDef {
        let usual = if self.def.scope == Scope::Global { GLOBAL_MAX } else { pool_max };
        ServerDef { max: self.max.unwrap_or(usual), ..self.def }
    }
}

/// One key of a server table: its name, the JSON schema of its value, what it does.
#[derive(Debug)]
pub struct TableKey {
    /// Snake case; camel case is read as well.
    pub name: &'static str,
    /// The JSON schema of its value, as text.
    pub schema: &'static str,
    /// For people: sentences.
    pub doc: &'static str,
}

/// What may stand in `[servers.NAME]`.
pub const SERVER_KEYS: &[TableKey] = &[
    TableKey {
        name: "command",
        schema: r#"{"type":["string","array"],"items":{"type":"string"},"minItems":1}"#,
        doc: "The program: a name or path, or a list of program and arguments. ${env:NAME}, \
              ${file:PATH} and ${cmd:COMMAND} are replaced when it starts; $$ is a dollar sign.",
    },
    TableKey {
        name: "args",
        schema: r#"{"type":"array","items":{"type":"string"}}"#,
        doc: "Further arguments.",
    },
    TableKey {
        name: "env",
        schema: r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        doc: "Environment variables beside the clean environment it gets.",
    },
    TableKey {
        name: "cwd",
        schema: r#"{"type":"string"}"#,
        doc: "Working directory; relative to the project of its scope, or, with global scope, to \
              the folder of this file.",
    },
    TableKey {
        name: "url",
        schema: r#"{"type":"string"}"#,
        doc: "The address of a remote server, in place of a program. References are replaced when a \
              connection is made.",
    },
    TableKey {
        name: "transport",
        schema: r#"{"enum":["http","sse"]}"#,
        doc: "How a remote server is spoken to: Streamable HTTP, or HTTP+SSE of 2024-11-05; without \
              it, HTTP is tried first.",
    },
    TableKey {
        name: "headers",
        schema: r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        doc: "Headers of every request to a remote server; sent to the origin of its `url` only.",
    },
    TableKey {
        name: "auth",
        schema: r#"{"type":"object","required":["type"],"additionalProperties":false,"properties":{"type":{"enum":["bearer","basic","header","env","query"]},"token":{"type":"string"},"username":{"type":"string"},"password":{"type":"string"},"name":{"type":"string"},"value":{"type":"string"}}}"#,
        doc: "A credential: { type = \"bearer\", token }, { type = \"basic\", username, password }, \
              { type = \"header\", name, value } or { type = \"query\", name, value } for a `url`, \
              { type = \"env\", name, value } for a `command`. A credential in the query of a URL \
              ends up in the logs of servers and proxies: use `query` only where nothing else is \
              taken.",
    },
    TableKey {
        name: "scope",
        schema: r#"{"enum":["global","project","session","call"]}"#,
        doc: "Who shares an instance: everybody, everybody in one project (the default), one host \
              session, or one call.",
    },
    TableKey {
        name: "max",
        schema: r#"{"type":"integer","minimum":1}"#,
        doc: "Instances for each scope key; by default 1 with global scope, otherwise `pool.max`.",
    },
    TableKey {
        name: "protocol",
        schema: r#"{"enum":["prefer-discover","prefer-initialize","force-discover","force-initialize","follow"]}"#,
        doc: "Which request opens its connection, in place of `upstream.protocol`. `follow` opens a \
              second session with `initialize` for hosts that speak a revision before 2026-07-28, so \
              that a server of both eras can ask them; that costs a second process of a `command` \
              server for each scope key.",
    },
    TableKey {
        name: "revision",
        schema: r#"{"enum":["2024-11-05","2025-03-26","2025-06-18","2025-11-25","2026-07-28"]}"#,
        doc: "Pins the protocol revision: only this one is offered and accepted.",
    },
    TableKey {
        name: "idle_timeout",
        schema: r#"{"type":["string","integer"]}"#,
        doc: "Its own idle time, in place of `pool.idle_timeout`; 0 means never.",
    },
    TableKey {
        name: "expose",
        schema: r#"{"enum":["core","passthrough","both"]}"#,
        doc: "What hosts see of it, in place of `expose.mode`.",
    },
    TableKey {
        name: "prefix",
        schema: r#"{"type":"string"}"#,
        doc: "What its exposed tools' names begin with, in place of its namespace; \"\" for bare \
              names, which one server may have.",
    },
    TableKey {
        name: "tools",
        schema: r#"{"type":"object","additionalProperties":false,"properties":{"allow":{"type":"array","items":{"type":"string"}},"deny":{"type":"array","items":{"type":"string"}}}}"#,
        doc: "Which of its tools there are: { allow = [\"get_*\"], deny = [\"*_all\"] }, patterns with `*` and \
              `?`. Allow first, then deny; without allow, all. What is denied is hidden and cannot be \
              called.",
    },
    TableKey {
        name: "namespace",
        schema: r#"{"type":"string"}"#,
        doc: "Its name towards hosts, in place of the one made from its key.",
    },
];

/// Reads one `[servers.NAME]` table; `None` where it has mistakes.
pub fn read(
    entry: &Entry,
    source: &SourceText,
    mistakes: &mut Vec<Mistake>,
) -> Option<ServerDraft> {
    let before = mistakes.len();
    let mut reading = TableReading::new(entry, source, mistakes);
    match &entry.node.raw {
        Raw::Table(keys) => reading.keys(keys),
        other => {
            let text = format!("server `{}` is a table, found {}", entry.key, other.name());
            reading.wrong(entry.at, text);
        }
    }
    let draft = reading.draft;
    (mistakes.len() == before).then_some(draft)
}

struct TableReading<'a> {
    key: &'a str,
    at: usize,
    source: &'a SourceText,
    mistakes: &'a mut Vec<Mistake>,
    draft: ServerDraft,
}

impl<'a> TableReading<'a> {
    fn new(entry: &'a Entry, source: &'a SourceText, mistakes: &'a mut Vec<Mistake>) -> Self {
        let def = ServerDef {
            key: entry.key.clone(),
            namespace: namespace_of_key(&entry.key),
            base: source.path.parent().map(Path::to_owned).unwrap_or_default(),
            command: Vec::new(),
            scope: Scope::default(),
            builtin: false,
            ..ServerDef::demo(Path::new(""))
        };
        let draft = ServerDraft { def, max: None, place: source.place(entry.at) };
        Self { key: &entry.key, at: entry.at, source, mistakes, draft }
    }

    fn wrong(&mut self, at: usize, text: impl Into<String>) {
        let text = format!("server `{}`: {}", self.key, text.into());
        self.mistakes.push(Mistake { place: self.source.place(at), text });
    }

    fn keys(&mut self, entries: &[Entry]) {
        let mut seen: Vec<&str> = Vec::new();
        let mut args: Vec<String> = Vec::new();
        for entry in entries {
            let names = SERVER_KEYS.iter().map(|key| key.name);
            let name = names.clone().find(|name| *name == entry.key || camel(name) == entry.key);
            let Some(name) = name else {
                let foreign = remote::FOREIGN_KEYS.iter().find(|(name, _)| *name == entry.key);
                let what = match foreign {
                    Some((_, instead)) => (*instead).to_owned(),
                    None => hint(&entry.key, names),
                };
                self.wrong(entry.at, format!("unknown key `{}`; {what}", entry.key));
                continue;
            };
            if seen.contains(&name) {
                self.wrong(entry.at, format!("`{name}` is given twice"));
            }
            seen.push(name);
            if name == "args" {
                args = self.texts(&entry.node, "args");
            } else {
                self.key_value(name, entry);
            }
        }
        self.draft.def.command.append(&mut args);
        self.one_kind(&seen);
        self.whole();
    }

    /// One known key other than `args`.
    fn key_value(&mut self, name: &str, entry: &Entry) {
        let node = &entry.node;
        match name {
            "command" => self.draft.def.command = self.command(node),
            "env" => self.draft.def.env = self.environment(node),
            "cwd" => self.draft.def.cwd = self.text(node, name),
            "url" => self.draft.def.url = self.url(node),
            "transport" => self.draft.def.transport = self.transport(node),
            "headers" => self.draft.def.headers = self.headers(node),
            "auth" => self.draft.def.auth = self.auth(node),
            "tools" => self.tools(node),
            "max" => self.draft.max = self.instances(node),
            "prefix" => self.draft.def.prefix = self.label(node, name, true),
            "namespace" => {
                if let Some(namespace) = self.label(node, name, false) {
                    self.draft.def.namespace = namespace;
                }
            }
            "scope" => {
                let scopes = Scope::ALL;
                let known = |word: &str| scopes.into_iter().find(|scope| scope.as_str() == word);
                let list = || scopes.map(Scope::as_str).join(", ");
                if let Some(scope) = self.word(node, name, known, list) {
                    self.draft.def.scope = scope;
                }
            }
            "revision" => {
                let list = || Revision::ALL.map(Revision::as_str).join(", ");
                self.draft.def.revision = self.word(node, name, Revision::parse, list);
            }
            "protocol" => {
                let word = self.text(node, name);
                let chosen = word.map(|word| choose(PREFERENCES, &word));
                self.draft.def.protocol =
                    self.kept(node, name, chosen).and_then(preference_of_word);
            }
            "expose" => {
                let word = self.text(node, name);
                let chosen = word.map(|word| choose(MODES, &word));
                self.draft.def.expose = self.kept(node, name, chosen).and_then(ExposeMode::of_word);
            }
            "idle_timeout" => {
                let time = match &node.raw {
                    Raw::Whole(0) => Some(Ok(Duration::ZERO)),
                    Raw::Whole(number) => {
                        Some(Err(format!("a time needs its unit, for example \"{number}s\"")))
                    }
                    _ => self.text(node, name).map(|text| parse_duration(&text)),
                };
                self.draft.def.idle_timeout = self.kept(node, name, time);
            }
            _ => {}
        }
    }

    /// What can only be judged once every key is known.
    fn whole(&mut self) {
        let def = &self.draft.def;
        if def.namespace.is_empty() {
            let text = "no namespace can be made from this key; give it a `namespace`";
            self.wrong(self.at, text);
        } else if def.namespace == OWN_NAMESPACE {
            let text = format!(
                "the namespace `{OWN_NAMESPACE}` is that of mcpx's own tools; give it another \
                 `namespace`"
            );
            self.wrong(self.at, text);
        }
        let def = &self.draft.def;
        if def.revision.is_some() && def.protocol == Some(Preference::Follow) {
            let text = "`revision` leaves one session and `protocol` follow is about two: leave one \
                        of them out";
            self.wrong(self.at, text);
        }
        let def = &self.draft.def;
        let contradiction = match (def.revision, def.protocol) {
            (Some(pin), Some(Preference::ForceInitialize)) if pin.is_modern() => {
                Some((pin, "force-initialize"))
            }
            (Some(pin), Some(Preference::ForceDiscover)) if !pin.is_modern() => {
                Some((pin, "force-discover"))
            }
            _ => None,
        };
        if let Some((pin, word)) = contradiction {
            let text = format!("`revision` {pin} can never be agreed by `protocol` {word}");
            self.wrong(self.at, text);
        }
    }

    /// The value, or a mistake at the node.
    fn kept<T>(&mut self, node: &Node, name: &str, value: Option<Result<T, String>>) -> Option<T> {
        match value? {
            Ok(value) => Some(value),
            Err(why) => {
                self.wrong(node.at, format!("`{name}`: {why}"));
                None
            }
        }
    }

    fn text(&mut self, node: &Node, name: &str) -> Option<String> {
        let Raw::Text(text) = &node.raw else {
            self.wrong(node.at, format!("`{name}` is text, found {}", node.raw.name()));
            return None;
        };
        if let Err(why) = references::check(text) {
            self.wrong(node.at, format!("`{name}`: {why}"));
            return None;
        }
        Some(text.clone())
    }

    fn texts(&mut self, node: &Node, name: &str) -> Vec<String> {
        let Raw::List(items) = &node.raw else {
            self.wrong(node.at, format!("`{name}` is a list of texts, found {}", node.raw.name()));
            return Vec::new();
        };
        items.iter().filter_map(|item| self.text(item, name)).collect()
    }

    fn command(&mut self, node: &Node) -> Vec<String> {
        let words = match &node.raw {
            Raw::List(_) => self.texts(node, "command"),
            Raw::Text(text) if text.split_whitespace().nth(1).is_some() => {
                let words: Vec<_> =
                    text.split_whitespace().map(|word| format!("\"{word}\"")).collect();
                let text = format!(
                    "`command` as text is one program; with arguments write a list: [{}]",
                    words.join(", ")
                );
                self.wrong(node.at, text);
                return Vec::new();
            }
            _ => self.text(node, "command").into_iter().collect(),
        };
        let empty_list = matches!(&node.raw, Raw::List(items) if items.is_empty());
        if empty_list || words.first().is_some_and(|program| program.trim().is_empty()) {
            self.wrong(node.at, "`command` names no program");
        }
        words
    }

    fn environment(&mut self, node: &Node) -> BTreeMap<String, String> {
        let Raw::Table(entries) = &node.raw else {
            self.wrong(node.at, format!("`env` is a table of texts, found {}", node.raw.name()));
            return BTreeMap::new();
        };
        let mut variables = BTreeMap::new();
        for entry in entries {
            let name = format!("env.{}", entry.key);
            if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
                self.wrong(entry.at, format!("{:?} is no name of a variable", entry.key));
            } else if let Some(text) = self.text(&entry.node, &name) {
                variables.insert(entry.key.clone(), text);
            }
        }
        variables
    }

    fn tools(&mut self, node: &Node) {
        let Raw::Table(entries) = &node.raw else {
            let text =
                format!("`tools` is a table of `allow` and `deny`, found {}", node.raw.name());
            return self.wrong(node.at, text);
        };
        for entry in entries {
            match entry.key.as_str() {
                "allow" => {
                    self.draft.def.tools.allow = Some(self.globs(&entry.node, "tools.allow"));
                }
                "deny" => self.draft.def.tools.deny = self.globs(&entry.node, "tools.deny"),
                other => {
                    let text =
                        format!("unknown key `tools.{other}`; {}", hint(other, ["allow", "deny"]));
                    self.wrong(entry.at, text);
                }
            }
        }
    }

    fn globs(&mut self, node: &Node, name: &str) -> Vec<Glob> {
        let Raw::List(items) = &node.raw else {
            self.wrong(
                node.at,
                format!("`{name}` is a list of patterns, found {}", node.raw.name()),
            );
            return Vec::new();
        };
        let mut globs = Vec::new();
        for item in items {
            match &item.raw {
                Raw::Text(text) => globs.extend(self.kept(item, name, Some(Glob::parse(text)))),
                other => {
                    self.wrong(item.at, format!("`{name}` holds patterns, found {}", other.name()));
                }
            }
        }
        globs
    }

    fn instances(&mut self, node: &Node) -> Option<usize> {
        match &node.raw {
            Raw::Whole(number) if *number >= 1 => usize::try_from(*number).ok(),
            other => {
                let found = match other {
                    Raw::Whole(number) => number.to_string(),
                    other => other.name().to_owned(),
                };
                self.wrong(node.at, format!("`max` is a whole number from 1, found {found}"));
                None
            }
        }
    }

    fn word<T>(
        &mut self,
        node: &Node,
        name: &str,
        known: impl Fn(&str) -> Option<T>,
        list: impl Fn() -> String,
    ) -> Option<T> {
        let text = self.text(node, name)?;
        let found = known(&text).ok_or_else(|| format!("{text:?} is not one of {}", list()));
        self.kept(node, name, Some(found))
    }

    /// A name towards hosts: it must be one already, so that what is written is what is seen.
    fn label(&mut self, node: &Node, name: &str, may_be_empty: bool) -> Option<String> {
        let text = self.text(node, name)?;
        if text.is_empty() && may_be_empty {
            return Some(text);
        }
        let fitting = namespace_of_key(&text);
        if fitting == text && !text.is_empty() {
            return Some(text);
        }
        let offer =
            if fitting.is_empty() { String::new() } else { format!("; `{fitting}` would do") };
        self.wrong(node.at, format!("`{name}` {text:?} cannot be shown to hosts as it is{offer}"));
        None
    }
}

/// The namespace of mcpx's own tools.
const OWN_NAMESPACE: &str = "mcpx";

/// Refuses servers that hosts could not tell apart, with both names and places (H-47).
pub fn check_names(drafts: &[ServerDraft], mistakes: &mut Vec<Mistake>) {
    for (index, draft) in drafts.iter().enumerate() {
        for other in drafts.iter().take(index) {
            let (a, b) = (&other.def, &draft.def);
            let text = if a.namespace == b.namespace {
                format!(
                    "servers `{}` (at {}) and `{}` have the same namespace `{}`; give one of them \
                     a `namespace` of its own",
                    a.key, other.place, b.key, a.namespace
                )
            } else if a.shown_prefix() == b.shown_prefix() {
                format!(
                    "servers `{}` (at {}) and `{}` have the same prefix {:?}; only one may have it",
                    a.key,
                    other.place,
                    b.key,
                    a.shown_prefix()
                )
            } else {
                continue;
            };
            mistakes.push(Mistake { place: draft.place.clone(), text });
        }
    }
}

#[cfg(test)]
mod tests;
