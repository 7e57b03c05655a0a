//! The file that an import writes. What is there already stays to the letter: a person may have changed
//! it since.

use std::fmt::Write as _;

use toml_edit::{Array, DocumentMut, InlineTable, Item as TomlItem, Table, Value, value};

use super::entry::Server;
use super::plan::Item;
use super::rules::Line;

/// A server's table.
fn table(server: &Server) -> Table {
    let mut table = Table::new();
    let list = |texts: &[String]| value(texts.iter().map(String::as_str).collect::<Array>());
    let pairs = |pairs: &mut dyn Iterator<Item = (&str, &str)>| {
        let mut inline = InlineTable::new();
        for (name, text) in pairs {
            inline.insert(name, Value::from(text));
        }
        value(inline)
    };
    let texts = |all: &[(String, String)]| {
        pairs(&mut all.iter().map(|(name, text)| (name.as_str(), text.as_str())))
    };
    if !server.command.is_empty() {
        table.insert("command", list(&server.command));
    }
    if let Some(url) = &server.url {
        table.insert("url", value(url));
    }
    if let Some(transport) = server.transport {
        table.insert("transport", value(transport));
    }
    if !server.env.is_empty() {
        table.insert("env", texts(&server.env));
    }
    if let Some(cwd) = &server.cwd {
        table.insert("cwd", value(cwd));
    }
    if !server.headers.is_empty() {
        table.insert("headers", texts(&server.headers));
    }
    if !server.auth.is_empty() {
        let auth = pairs(&mut server.auth.iter().map(|(name, text)| (*name, text.as_str())));
        table.insert("auth", auth);
    }
    let mut tools = InlineTable::new();
    for (name, globs) in
        [("allow", server.allow.as_deref()), ("deny", Some(server.deny.as_slice()))]
    {
        if let Some(globs) = globs.filter(|globs| !globs.is_empty()) {
            tools.insert(name, Value::from(globs.iter().map(String::as_str).collect::<Array>()));
        }
    }
    if !tools.is_empty() {
        table.insert("tools", value(tools));
    }
    table
}

/// A server alone, as a file of its own.
pub(super) fn server_text(key: &str, server: &Server) -> String {
    let mut document = DocumentMut::new();
    let mut servers = Table::new();
    servers.set_implicit(true);
    servers.insert(key, TomlItem::Table(table(server)));
    document.insert("servers", TomlItem::Table(servers));
    document.to_string()
}

/// What was said about a server, as comments above its table.
fn comments(item: &Item) -> String {
    let told = &item.told;
    let mut text = format!("# from {}\n", one_line(&item.from));
    for (kind, lines) in
        [("needs a value", &told.needs), ("warning", &told.warnings), ("note", &told.notes)]
    {
        for line in lines {
            let _ = writeln!(text, "# {kind}: {}", one_line(line));
        }
    }
    text
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The file as it grows.
pub(super) struct File {
    /// What a new file begins with.
    begin: String,
    document: DocumentMut,
    /// Servers that are off, as comments at the end.
    off: String,
}

impl File {
    /// Goes on from what is there.
    pub(super) fn begin(present: Option<&str>, from: &str) -> Result<Self, String> {
        let begin = match present {
            Some(_) => String::new(),
            None => format!(
                "# Servers taken over from {} by `mcpx import`.\n# Yours to change: a later import adds \
                 what is new and leaves what is here.\n",
                one_line(from)
            ),
        };
        let document: DocumentMut = present
            .unwrap_or_default()
            .parse()
            .map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
        for name in ["servers", "policy"] {
            if document.get(name).is_some_and(|item| !item.is_table()) {
                return Err(format!("`{name}` is no table there"));
            }
        }
        Ok(Self { begin, document, off: String::new() })
    }

    fn table_of(&mut self, name: &str, implicit: bool) -> Option<&mut Table> {
        let item = self.document.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(implicit);
            TomlItem::Table(table)
        });
        item.as_table_mut()
    }

    /// Adds a server, or puts it in the place of the one of its key.
    pub(super) fn put(&mut self, item: &Item, server: &Server) -> bool {
        let mut table = table(server);
        table.decor_mut().set_prefix(format!("\n{}", comments(item)));
        let Some(servers) = self.table_of("servers", true) else { return false };
        let old = servers.get(&item.server).and_then(TomlItem::as_table);
        if let Some(position) = old.and_then(Table::position) {
            table.set_position(position);
        }
        servers.insert(&item.server, TomlItem::Table(table));
        true
    }

    /// Adds a server that is off, as a comment; not twice.
    pub(super) fn put_off(&mut self, item: &Item, server: &Server) -> bool {
        let text = server_text(&item.server, server);
        let lines: Vec<String> = text.lines().map(|line| format!("# {line}")).collect();
        let there = self.document.to_string();
        if lines.first().is_some_and(|first| there.lines().any(|line| line == first)) {
            return false;
        }
        let comments = comments(item);
        let _ = writeln!(
            self.off,
            "\n{comments}# It is off in its host. Take the `# ` off these lines to have it:\n{}",
            lines.join("\n")
        );
        true
    }

    /// Adds rules.
    pub(super) fn put_policy(&mut self, lines: &[Line]) {
        if lines.is_empty() {
            return;
        }
        let there = self.document.contains_key("policy");
        let Some(policy) = self.table_of("policy", false) else { return };
        if !there {
            policy.decor_mut().set_prefix("\n# The host's own rules for these tools.\n");
        }
        for line in lines {
            policy.insert(&line.pattern, value(line.rule.as_str()));
        }
    }

    /// The text.
    pub(super) fn finish(&mut self) -> String {
        format!("{}{}{}", self.begin, self.document, self.off)
    }
}
