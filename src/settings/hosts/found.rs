//! Where servers stand in a host's file: by what is there, not by whose file it is, since people paste
//! one host's table into another's file.

use std::path::Path;

use super::document::{member, table};
use crate::settings::tree::{Entry, Node, Raw, SourceText};

/// A server's entry, unread.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Its name.
    pub key: String,
    /// Where it stands.
    pub at: usize,
    /// The entry.
    pub node: Node,
    /// Another key of the file turns it off.
    pub off: Option<&'static str>,
}

/// Names of tables that hold servers at the top of a file.
const TABLES: [&str; 4] = ["mcpServers", "mcp_servers", "context_servers", "servers"];

/// All entries of a file, in its order. `project` is whose part of Claude Code's own file is read.
pub(super) fn servers(
    source: &SourceText,
    top: &[Entry],
    project: Option<&Path>,
) -> Vec<Candidate> {
    let mut found = Vec::new();
    for entry in top {
        match entry.key.as_str() {
            "mcp" => found.extend(under_mcp(&entry.node)),
            "projects" => found.extend(of_project(&entry.node, project)),
            key if TABLES.contains(&key) => found.extend(all(&entry.node)),
            _ => {}
        }
    }
    if found.is_empty() {
        found = bare(source, top);
    }
    turn_off(top, &mut found);
    found
}

/// opencode 1.x has servers in `mcp`, opencode 2.x and VS Code in `mcp.servers`; Gemini has other things.
fn under_mcp(node: &Node) -> Vec<Candidate> {
    let Raw::Table(entries) = &node.raw else { return all(node) };
    let inner = |entry: &&Entry| TABLES.contains(&entry.key.as_str()) && !is_server(&entry.node);
    let mut found: Vec<_> =
        entries.iter().filter(inner).flat_map(|entry| all(&entry.node)).collect();
    let direct = |entry: &&Entry| !inner(entry) && matches!(entry.node.raw, Raw::Table(_));
    let settings = ["timeout", "inputs"];
    let direct = entries
        .iter()
        .filter(direct)
        .filter(|entry| is_server(&entry.node) || !settings.contains(&entry.key.as_str()));
    found.extend(direct.map(candidate));
    found
}

fn of_project(node: &Node, project: Option<&Path>) -> Vec<Candidate> {
    let (Raw::Table(projects), Some(project)) = (&node.raw, project) else { return Vec::new() };
    let ours = table(projects, &project.to_string_lossy());
    ours.and_then(|ours| member(ours, "mcpServers")).map(all).unwrap_or_default()
}

/// A table of servers, or a list of servers with names.
fn all(node: &Node) -> Vec<Candidate> {
    match &node.raw {
        Raw::Table(entries) => entries.iter().map(candidate).collect(),
        Raw::List(items) => {
            items.iter().enumerate().map(|(index, item)| listed(index, item)).collect()
        }
        _ => Vec::new(),
    }
}

fn candidate(entry: &Entry) -> Candidate {
    Candidate { key: entry.key.clone(), at: entry.at, node: entry.node.clone(), off: None }
}

fn listed(index: usize, item: &Node) -> Candidate {
    let name = match &item.raw {
        Raw::Table(entries) => member(entries, "name").or_else(|| member(entries, "id")),
        _ => None,
    };
    let key = match name.map(|node| &node.raw) {
        Some(Raw::Text(name)) => name.clone(),
        _ => format!("server-{}", index + 1),
    };
    Candidate { key, at: item.at, node: item.clone(), off: None }
}

/// A file that is a server itself, or a table of servers and nothing else.
fn bare(source: &SourceText, top: &[Entry]) -> Vec<Candidate> {
    let whole = Node { at: 0, raw: Raw::Table(top.to_vec()) };
    if is_server(&whole) {
        let stem = source.path.file_stem().map_or("server".into(), |stem| stem.to_string_lossy());
        return vec![Candidate { key: stem.into_owned(), at: 0, node: whole, off: None }];
    }
    top.iter().filter(|entry| is_server(&entry.node)).map(candidate).collect()
}

/// A name of a key as the table of aliases has it: small letters alone.
pub(super) fn folded(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Whether a table says what a server is.
fn is_server(node: &Node) -> bool {
    const TELLING: [&str; 5] = ["command", "cmd", "url", "serverurl", "httpurl"];
    match &node.raw {
        Raw::Table(entries) => entries.iter().any(|entry| {
            TELLING.contains(&folded(&entry.key).as_str())
                && matches!(entry.node.raw, Raw::Text(_) | Raw::List(_))
        }),
        _ => false,
    }
}

/// Gemini's `mcp.excluded` and `mcp.allowed`, Claude Code's `disabledMcpjsonServers`.
fn turn_off(top: &[Entry], found: &mut [Candidate]) {
    let texts = |node: Option<&Node>| -> Option<Vec<String>> {
        let Raw::List(items) = &node?.raw else { return None };
        let text = |item: &Node| match &item.raw {
            Raw::Text(text) => Some(text.clone()),
            _ => None,
        };
        Some(items.iter().filter_map(text).collect())
    };
    let mcp = table(top, "mcp").unwrap_or_default();
    let excluded = texts(member(mcp, "excluded")).unwrap_or_default();
    let allowed = texts(member(mcp, "allowed"));
    let disabled = texts(member(top, "disabledMcpjsonServers")).unwrap_or_default();
    for candidate in found {
        candidate.off = if excluded.contains(&candidate.key) {
            Some("mcp.excluded")
        } else if allowed.as_ref().is_some_and(|allowed| !allowed.contains(&candidate.key)) {
            Some("mcp.allowed")
        } else if disabled.contains(&candidate.key) {
            Some("disabledMcpjsonServers")
        } else {
            None
        };
    }
}
