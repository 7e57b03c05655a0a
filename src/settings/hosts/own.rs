//! Which entries of hosts' files are mcpx itself: what is never imported, and what `connect` wrote.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use http::Uri;

use super::document;
use super::found::{self, folded};
use super::table::{Around, Found, HOSTS, Host, Reach};
use crate::settings::tree::{Node, Raw, SourceText};

/// Who we are.
#[derive(Debug, Clone, Copy)]
pub struct Own<'a> {
    /// This program.
    pub program: &'a Path,
    /// Where hosts over HTTP reach us.
    pub listen: Option<SocketAddr>,
}

/// How an entry leads to mcpx.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Leads {
    /// It starts the shim: program and arguments.
    Command(Vec<String>),
    /// It goes to this address.
    Url(String),
}

/// Whether an entry leads to mcpx.
pub(super) fn is(node: &Node, own: &Own<'_>) -> bool {
    leads(node, own).is_some()
}

/// How an entry leads to mcpx, if it does.
pub(super) fn leads(node: &Node, own: &Own<'_>) -> Option<Leads> {
    let Raw::Table(entries) = &node.raw else { return None };
    let mut words = Vec::new();
    let mut url = None;
    for entry in entries {
        match folded(&entry.key).as_str() {
            "command" | "cmd" => {
                let mut command = texts(&entry.node);
                command.append(&mut words);
                words = command;
            }
            "args" | "arguments" => words.extend(texts(&entry.node)),
            "url" | "serverurl" | "httpurl" => url = texts(&entry.node).pop(),
            "transport" => {
                if let Some(inner) = leads(&entry.node, own) {
                    return Some(inner);
                }
            }
            _ => {}
        }
    }
    if serves(&words, own) {
        return Some(Leads::Command(words));
    }
    url.filter(|url| is_ours(url, own)).map(Leads::Url)
}

fn texts(node: &Node) -> Vec<String> {
    match &node.raw {
        Raw::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
        Raw::List(items) => items
            .iter()
            .filter_map(|item| match &item.raw {
                Raw::Text(text) => Some(text.clone()),
                _ => None,
            })
            .collect(),
        Raw::Table(inner) => inner.iter().flat_map(|entry| texts(&entry.node)).collect(),
        _ => Vec::new(),
    }
}

/// A word that is mcpx, with `serve` behind it: also inside a wrapper such as `env` or a shell's script.
fn serves(words: &[String], own: &Own<'_>) -> bool {
    let words: Vec<&str> = words.iter().flat_map(|word| word.split_whitespace()).collect();
    let is_program = |word: &&str| {
        let path = Path::new(word);
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        name == "mcpx" || name == "mcpx.exe" || path == own.program
    };
    let at = words.iter().position(is_program);
    at.is_some_and(|at| {
        words.iter().skip(at + 1).any(|word| word.trim_matches(['"', '\'']) == "serve")
    })
}

/// An address of this machine, with our port, under `/mcp`.
fn is_ours(url: &str, own: &Own<'_>) -> bool {
    let (Some(listen), Ok(uri)) = (own.listen, url.trim().parse::<Uri>()) else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let here = host == "localhost"
        || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback() || ip == listen.ip());
    let path = uri.path();
    here && uri.port_u16() == Some(listen.port()) && (path == "/mcp" || path.starts_with("/mcp/"))
}

/// An entry of a host that leads to mcpx.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Connected {
    /// The host's name.
    pub host: &'static str,
    /// The file.
    pub file: PathBuf,
    /// `user` or `project`.
    pub reach: &'static str,
    /// The entry's key.
    pub key: String,
    /// How it leads to mcpx.
    #[serde(flatten)]
    pub leads: Leads,
    /// Whether the host is told not to use it.
    pub off: bool,
}

/// Every entry of every known host that leads to mcpx. Files that cannot be read or parsed have none.
pub fn entries(around: &Around<'_>, own: &Own<'_>) -> Vec<Connected> {
    HOSTS.iter().flat_map(|host| entries_of(host, around, own)).collect()
}

/// The same of one host.
pub fn entries_of(host: &Host, around: &Around<'_>, own: &Own<'_>) -> Vec<Connected> {
    let mut all = Vec::new();
    for file in host.files(around) {
        all.extend(in_file(host, &file.path, file.reach, around, own));
    }
    all
}

fn in_file(
    host: &Host,
    path: &Path,
    reach: Reach,
    around: &Around<'_>,
    own: &Own<'_>,
) -> Vec<Connected> {
    let Ok(source) = SourceText::read(path) else { return Vec::new() };
    let Ok(top) = document::parse(&source) else { return Vec::new() };
    let found = found::servers(&source, &top, Some(around.project));
    let ours = found.into_iter().filter_map(|candidate| {
        let leads = leads(&candidate.node, own)?;
        Some(Connected {
            host: host.name,
            file: path.to_owned(),
            reach: reach.as_str(),
            off: candidate.off.is_some() || switched_off(&candidate.node),
            key: candidate.key,
            leads,
        })
    });
    ours.collect()
}

fn switched_off(node: &Node) -> bool {
    let Raw::Table(entries) = &node.raw else { return false };
    entries.iter().any(|entry| {
        matches!(
            (folded(&entry.key).as_str(), &entry.node.raw),
            ("disabled", Raw::Switch(true)) | ("enabled", Raw::Switch(false))
        )
    })
}

/// A host's file as an overview shows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Surveyed {
    /// The file.
    pub file: PathBuf,
    /// `user` or `project`.
    pub reach: &'static str,
    /// Its servers that are not mcpx.
    pub servers: usize,
    /// Keys of entries that lead to mcpx.
    pub mcpx: Vec<String>,
    /// Why it cannot be read, with line and column.
    pub broken: Option<String>,
}

/// What a host's files hold.
pub fn survey(host: &Host, around: &Around<'_>, own: &Own<'_>) -> Vec<Surveyed> {
    let look = |file: Found| {
        let mut seen = Surveyed {
            reach: file.reach.as_str(),
            servers: 0,
            mcpx: Vec::new(),
            broken: None,
            file: file.path,
        };
        let parsed =
            SourceText::read(&seen.file).map_err(|mistake| vec![mistake]).and_then(|source| {
                let top = document::parse(&source)?;
                Ok(found::servers(&source, &top, Some(around.project)))
            });
        match parsed {
            Err(mistakes) => seen.broken = mistakes.first().map(ToString::to_string),
            Ok(all) => {
                let (ours, others): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|candidate| is(&candidate.node, own));
                seen.servers = others.len();
                seen.mcpx = ours.into_iter().map(|candidate| candidate.key).collect();
            }
        }
        seen
    };
    host.files(around).into_iter().map(look).collect()
}
