//! One server's entry of a host's file, in mcpx's words: the union of all hosts' spellings, whatever
//! the case of a key, and what was assumed on the way (C4, C7, C8, C10, C11).

mod keys;

use std::path::Path;

use keys::{Key, Kind, key_of, kind_of};

use super::command;
use super::found::folded;
use super::secret::{self, SecretFile};
use super::words::{Reader, Told};
use crate::settings::references;
use crate::settings::servers::check_url;
use crate::settings::tree::{Entry, Node, Raw};

/// A server as it will be written; texts in mcpx's spelling.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its environment.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Its address.
    pub url: Option<String>,
    /// `http` or `sse`, where the entry pins it.
    pub transport: Option<&'static str>,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// The members of `auth`.
    pub auth: Vec<(&'static str, String)>,
    /// Its tools, where the entry says which.
    pub allow: Option<Vec<String>>,
    /// Tools that it is not to have.
    pub deny: Vec<String>,
    /// The host does not start it.
    pub off: bool,
    /// What is to be said about it.
    pub told: Told,
    /// Values that go into files of their own.
    pub secrets: Vec<SecretFile>,
}

/// What an entry is read with.
pub(super) struct Context<'a> {
    /// References.
    pub reader: Reader<'a>,
    /// Whether a program is found here.
    pub runs: &'a dyn Fn(&str) -> bool,
    /// The project whose file it is.
    pub project: Option<&'a Path>,
}

/// Reads an entry, or says why it is left out.
pub(super) fn read(key: &str, node: &Node, context: &Context<'_>) -> Result<Server, String> {
    let Raw::Table(entries) = &node.raw else {
        return Err(format!("is {}, not a table", node.raw.name()));
    };
    let mut reading = Reading {
        key,
        context,
        server: Server::default(),
        command: None,
        args: Vec::new(),
        url: None,
        kind: None,
        switches: Vec::new(),
        odd: None,
    };
    reading.table(entries);
    reading.finish(entries)
}

struct Reading<'a> {
    key: &'a str,
    context: &'a Context<'a>,
    server: Server,
    command: Option<Vec<String>>,
    args: Vec<String>,
    url: Option<String>,
    kind: Option<Kind>,
    /// Each of `disabled` and `enabled`: whether it says off.
    switches: Vec<bool>,
    /// A `type` that nobody knows.
    odd: Option<String>,
}

impl Reading<'_> {
    fn table(&mut self, entries: &[Entry]) {
        for entry in entries {
            match key_of(&entry.key) {
                Some(key) => self.value(key, entry),
                None => self.unused(entry, "mcpx has no such key"),
            }
        }
    }

    fn value(&mut self, key: Key, entry: &Entry) {
        let node = &entry.node;
        match key {
            Key::Command => self.command(node),
            Key::Args => self.args = self.texts(entry),
            Key::Env => {
                for (name, value) in self.pairs(entry) {
                    self.variable(name, &value);
                }
            }
            Key::Forwarded => {
                for name in self.texts(entry) {
                    self.server.env.push((name.clone(), format!("${{env:{name}}}")));
                }
            }
            Key::EnvFile | Key::Approved | Key::OAuth => self.beside(key, entry),
            Key::Cwd => {
                let text = self.text(entry);
                self.server.cwd = text.map(|text| self.read("cwd", &text));
            }
            Key::Url | Key::HttpUrl => {
                self.url = self.text(entry);
                if key == Key::HttpUrl {
                    self.kind = self.kind.or(Some(Kind::Http));
                }
            }
            Key::Kind => self.kind(entry),
            Key::Transport => match &node.raw {
                Raw::Table(inner) => self.table(inner),
                _ => self.kind(entry),
            },
            Key::Nested => match &node.raw {
                Raw::Table(inner) => self.table(inner),
                _ => self.unused(entry, "it is no table"),
            },
            Key::Headers => {
                for (name, value) in self.pairs(entry) {
                    self.header(name, &value);
                }
            }
            Key::EnvHeaders => {
                for (name, variable) in self.pairs(entry) {
                    self.server.headers.push((name, format!("${{env:{variable}}}")));
                }
            }
            Key::BearerVariable => {
                if let Some(name) = self.text(entry) {
                    self.bearer(format!("${{env:{name}}}"));
                }
            }
            Key::Disabled => self.switches.push(matches!(node.raw, Raw::Switch(true))),
            Key::Enabled => self.switches.push(matches!(node.raw, Raw::Switch(false))),
            Key::Allow => self.allow(entry),
            Key::Deny => self.server.deny = self.globs(entry),
            Key::Timeout => self.timeout(entry),
            Key::Idle => {}
        }
    }

    /// What is known, and not for mcpx.
    fn beside(&mut self, key: Key, entry: &Entry) {
        let name = &entry.key;
        match key {
            Key::EnvFile => self.server.told.warn(format!(
                "`{name}` names a file of variables ({}), which mcpx does not read: write what the server \
                 needs of it into `env`",
                shown(&entry.node)
            )),
            Key::Approved => self.server.told.note(format!(
                "`{name}` says what its host runs without asking; that is no permission here and was left \
                 out"
            )),
            _ => self.server.told.warn(format!(
                "`{name}` is about a login that mcpx does not do: where the server needs one, give it a token \
                 (`auth`)"
            )),
        }
    }

    /// A key that stays a note. Its value may be a secret of a kind that nobody knows.
    fn unused(&mut self, entry: &Entry, why: &str) {
        let value = if secret::telling(&entry.key) { "…".to_owned() } else { shown(&entry.node) };
        self.server.told.note(format!("not used: {} = {value} ({why})", entry.key));
    }

    fn timeout(&mut self, entry: &Entry) {
        let name = folded(&entry.key);
        let unit = if name.ends_with("ms") {
            "milliseconds by its name"
        } else if name.ends_with("sec") {
            "seconds by its name"
        } else {
            "in a unit that it does not say"
        };
        self.server.told.note(format!(
            "not used: {} = {} ({unit}); mcpx limits the silence of calls of all servers, by \
             call.idle_timeout",
            entry.key,
            shown(&entry.node)
        ));
    }

    fn kind(&mut self, entry: &Entry) {
        let Some(word) = self.text(entry) else { return };
        match kind_of(&word) {
            Some(kind) => self.kind = Some(kind),
            None => self.odd = Some(word),
        }
    }

    fn read(&mut self, what: &str, text: &str) -> String {
        self.context.reader.read(self.key, what, text, &mut self.server.told)
    }

    /// A text; numbers and switches are what a person meant as text.
    fn text(&mut self, entry: &Entry) -> Option<String> {
        self.text_of(&entry.key, &entry.node)
    }

    fn text_of(&mut self, key: &str, node: &Node) -> Option<String> {
        match &node.raw {
            Raw::Text(text) => Some(text.clone()),
            Raw::Whole(number) => {
                self.server.told.note(format!("`{key}` = {number} was a number; it is text here"));
                Some(number.to_string())
            }
            Raw::Switch(on) => {
                self.server.told.note(format!("`{key}` = {on} was a boolean; it is text here"));
                Some(on.to_string())
            }
            other => {
                self.server
                    .told
                    .warn(format!("`{key}` was left out: it is {}, not text", other.name()));
                None
            }
        }
    }

    fn texts(&mut self, entry: &Entry) -> Vec<String> {
        match &entry.node.raw {
            Raw::List(items) => {
                items.iter().filter_map(|item| self.text_of(&entry.key, item)).collect()
            }
            Raw::Text(text) => {
                self.server.told.note(format!("`{}` was one text; taken as one word", entry.key));
                vec![text.clone()]
            }
            _ => self.text(entry).into_iter().collect(),
        }
    }

    fn pairs(&mut self, entry: &Entry) -> Vec<(String, String)> {
        match &entry.node.raw {
            Raw::Table(inner) => inner
                .iter()
                .filter_map(|inner| {
                    let text =
                        self.text_of(&format!("{}.{}", entry.key, inner.key), &inner.node)?;
                    Some((inner.key.clone(), text))
                })
                .collect(),
            // `["NAME=value"]`, as docker has it.
            Raw::List(_) => {
                let texts = self.texts(entry);
                let pair = |text: String| {
                    text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
                };
                texts.into_iter().filter_map(pair).collect()
            }
            other => {
                let found = other.name();
                self.server.told.warn(format!("`{}` was left out: it is {found}", entry.key));
                Vec::new()
            }
        }
    }

    /// `command`: a text, a list, or a table of `path` and `args` (older files of Zed).
    fn command(&mut self, node: &Node) {
        match &node.raw {
            Raw::Text(text) => self.command = Some(vec![text.clone()]),
            Raw::List(items) => {
                let words = items.iter().filter_map(|item| self.text_of("command", item));
                self.command = Some(words.collect());
            }
            Raw::Table(inner) => {
                for entry in inner {
                    match folded(&entry.key).as_str() {
                        "path" | "command" => self.command(&entry.node),
                        _ => self.table(std::slice::from_ref(entry)),
                    }
                }
            }
            other => {
                let found = other.name();
                self.server.told.warn(format!("`command` was left out: it is {found}"));
            }
        }
    }

    fn variable(&mut self, name: String, value: &str) {
        let what = format!("env.{name}");
        let text = self.kept_secret(&what, &name, value).unwrap_or_else(|| self.read(&what, value));
        self.server.env.push((name, text));
    }

    fn header(&mut self, name: String, value: &str) {
        let what = format!("headers.{name}");
        let (scheme, credential) = secret::credential(value);
        let kept = self.kept_secret(&what, &name, credential);
        let text = kept.unwrap_or_else(|| self.read(&what, credential));
        if name.eq_ignore_ascii_case("authorization") && scheme.eq_ignore_ascii_case("bearer ") {
            self.bearer(text);
        } else {
            self.server.headers.push((name, format!("{scheme}{text}")));
        }
    }

    fn bearer(&mut self, token: String) {
        self.server.auth = vec![("type", "bearer".to_owned()), ("token", token)];
    }

    /// A reference to the file of a secret, where a value is one and refers to nothing.
    fn kept_secret(&mut self, what: &str, name: &str, value: &str) -> Option<String> {
        if self.context.reader.refers(value) {
            return None;
        }
        if secret::placeholder(value) && secret::telling(name) {
            let shown = value.replace('`', "'");
            self.server
                .told
                .need(format!("{what} is the placeholder `{shown}`: write its value there"));
            return None;
        }
        if !secret::is(name, value) || value.starts_with('$') {
            return None;
        }
        Some(self.put_away(what, name, value))
    }

    /// Puts a value into a file of its own and gives the reference.
    fn put_away(&mut self, what: &str, name: &str, value: &str) -> String {
        let path = self.context.reader.secret_file(&format!("{}-{name}", self.key));
        self.server.told.note(format!(
            "{what} is a secret that stood in clear text: it goes into {}, mode 0600",
            path.display()
        ));
        let reference = format!("${{file:{}}}", path.display());
        self.server.secrets.push(SecretFile { path, value: value.to_owned() });
        reference
    }

    fn allow(&mut self, entry: &Entry) {
        match &entry.node.raw {
            Raw::List(items) if items.is_empty() => {}
            Raw::List(_) => {
                let globs = self.globs(entry);
                // Every tool is what there is without the list.
                if globs.iter().all(|glob| glob != "*") {
                    self.server.allow = Some(globs);
                }
            }
            _ => self.unused(entry, "it is no list of tools"),
        }
    }

    fn globs(&mut self, entry: &Entry) -> Vec<String> {
        let texts = self.texts(entry);
        let (good, bad): (Vec<_>, Vec<_>) =
            texts.into_iter().partition(|text| crate::settings::policy::Glob::parse(text).is_ok());
        for text in bad {
            self.server
                .told
                .warn(format!("`{}`: {text:?} is no pattern here and was left out", entry.key));
        }
        good
    }

    /// What can be judged once every key is known.
    fn finish(mut self, entries: &[Entry]) -> Result<Server, String> {
        if self.switches.contains(&true) && self.switches.contains(&false) {
            self.server.told.note("`disabled` and `enabled` contradict each other; off wins");
        }
        self.server.off = self.switches.contains(&true);
        if let Some(word) = self.odd.take() {
            if matches!(folded(&word).as_str(), "ws" | "websocket") {
                return Err(format!("its type is {word:?}, which mcpx does not speak"));
            }
            self.server.told.note(format!("its type {word:?} is not known; taken by what it has"));
        }
        let remote = matches!(self.kind, Some(Kind::Http | Kind::Sse | Kind::Address));
        match (self.command.take(), self.url.take()) {
            (Some(_), Some(url)) if remote => {
                self.server.told.note("has both a command and an address; its type says address");
                self.remote(&url)?;
            }
            (Some(command), other) if !command.is_empty() => {
                if other.is_some() {
                    self.server
                        .told
                        .note("has both a command and an address; the command is taken");
                }
                self.program(command);
            }
            (_, Some(url)) => self.remote(&url)?,
            (_, None) => return Err(nothing_to_start(entries)),
        }
        Ok(self.server)
    }

    fn program(&mut self, words: Vec<String>) {
        if matches!(self.kind, Some(Kind::Http | Kind::Sse | Kind::Address)) {
            self.server
                .told
                .note("its type says address, but it has a command: taken as a program");
        }
        if !self.server.headers.is_empty() || !self.server.auth.is_empty() {
            self.server.headers.clear();
            self.server.auth.clear();
            self.server.told.warn("headers belong to an address and were left out");
        }
        let mut words =
            command::words(words, std::mem::take(&mut self.args), &mut self.server.told);
        command::look(&words, self.context.runs, &mut self.server.told);
        for kept in command::secrets(&words) {
            let reference = if self.context.reader.refers(&kept.value) {
                self.read("args", &kept.value)
            } else {
                self.server.told.note(
                    "a secret on a command line is seen by every program of this machine; better where \
                     the server reads it from a variable",
                );
                self.put_away("args", &kept.name, &kept.value)
            };
            if let Some(word) = words.get_mut(kept.word) {
                *word = command::Word::Done(format!("{}{reference}", kept.before));
            }
        }
        let server = self.key;
        self.server.command = words
            .into_iter()
            .map(|word| match word {
                command::Word::Done(text) => text,
                command::Word::Text(text) => {
                    self.context.reader.read(server, "args", &text, &mut self.server.told)
                }
                command::Word::Script(text) => self.context.reader.read(
                    server,
                    super::words::SCRIPT,
                    &text,
                    &mut self.server.told,
                ),
            })
            .collect();
        self.in_its_project();
    }

    /// A server of a project's file runs in that project, whoever calls it.
    fn in_its_project(&mut self) {
        let Some(project) = self.context.project else { return };
        let cwd = match &self.server.cwd {
            None => project.to_owned(),
            Some(cwd) if Path::new(cwd).is_relative() && !cwd.starts_with('$') => project.join(cwd),
            Some(_) => return,
        };
        let cwd: std::path::PathBuf = cwd.components().collect();
        self.server.cwd = Some(references::escape(&cwd.to_string_lossy()));
        self.server.told.note(format!("it is of the project {} and runs there", project.display()));
    }

    fn remote(&mut self, url: &str) -> Result<(), String> {
        let trimmed = url.trim();
        let git =
            ["git+", "git@", "ssh://", "git://"].iter().any(|start| trimmed.starts_with(start));
        if git || Path::new(trimmed).extension().is_some_and(|ending| ending == "git") {
            return Err(format!(
                "its url {trimmed:?} is the address of a repository, not of a server"
            ));
        }
        if !self.server.env.is_empty() || self.server.cwd.is_some() || !self.args.is_empty() {
            self.server.env.clear();
            self.server.cwd = None;
            self.server.told.warn("env, cwd and args belong to a program and were left out");
        }
        self.server.transport = match self.kind {
            Some(Kind::Http) => Some("http"),
            Some(Kind::Sse) => Some("sse"),
            _ => {
                self.server.told.note("no transport is named: HTTP is tried first, then SSE");
                None
            }
        };
        let url = self.without_credentials(trimmed);
        let text = self.read("url", &url);
        if references::references(&text).is_empty() {
            let uri = references::plain(&text).and_then(|plain| check_url(&plain));
            let uri = uri.map_err(|why| format!("its url {}: {why}", masked(&url)))?;
            if uri.host().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]")) {
                self.server.told.note(
                    "is a program on this machine that may be off at times; calls then say so and nothing \
                     else suffers",
                );
            }
        }
        self.server.url = Some(text);
        if self.server.auth.is_empty() {
            return Ok(());
        }
        self.server.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        Ok(())
    }

    /// Moves a password and secrets of the query out of an address.
    fn without_credentials(&mut self, url: &str) -> String {
        let mut url = url.to_owned();
        if let Some((scheme, rest)) = url.clone().split_once("://") {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, after) = rest.split_at(end);
            if let Some((user, host)) = authority.rsplit_once('@') {
                let (name, password) = user.split_once(':').unwrap_or((user, ""));
                let password = self.put_away("the password in its url", "password", password);
                self.server.auth = vec![
                    ("type", "basic".to_owned()),
                    ("username", references::escape(name)),
                    ("password", password),
                ];
                url = format!("{scheme}://{host}{after}");
            }
        }
        let Some((before, query)) = url.split_once('?') else { return url };
        let (mut kept, mut found) = (Vec::new(), None);
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some((name, value))
                    if found.is_none()
                        && self.server.auth.is_empty()
                        && secret::is(name, value)
                        && !self.context.reader.refers(value) =>
                {
                    found = Some((name.to_owned(), value.to_owned()));
                }
                _ => kept.push(pair),
            }
        }
        let Some((name, value)) = found else { return url };
        let rest = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
        let plain = percent_encoding::percent_decode_str(&value).decode_utf8_lossy().into_owned();
        let reference = self.put_away(&format!("`{name}` in its url"), &name, &plain);
        self.server.auth = vec![("type", "query".to_owned()), ("name", name), ("value", reference)];
        format!("{before}{rest}")
    }
}

fn masked(url: &str) -> &str {
    url.split_once('?').map_or(url, |(before, _)| before)
}

fn nothing_to_start(entries: &[Entry]) -> String {
    let near = entries.iter().find(|entry| {
        matches!(
            folded(&entry.key).as_str(),
            "link" | "uri" | "endpoint" | "address" | "path" | "baseurl"
        )
    });
    match near {
        Some(entry) => format!(
            "has neither a command nor an address; `{}` is no key of any host that is known: if it is the \
             server's address, call it `url`",
            entry.key
        ),
        None => "has neither a command nor an address".to_owned(),
    }
}

/// A value for people, on one line and not too long.
fn shown(node: &Node) -> String {
    const LONGEST: usize = 60;
    let text = match &node.raw {
        Raw::Switch(on) => on.to_string(),
        Raw::Whole(number) => number.to_string(),
        Raw::Text(text) if secret::is("", text) => "…".to_owned(),
        Raw::Text(text) => format!("{text:?}"),
        Raw::List(items) => format!("a list of {}", items.len()),
        other => other.name().to_owned(),
    };
    if text.chars().count() > LONGEST {
        text.chars().take(LONGEST).chain(['…']).collect()
    } else {
        text
    }
}
