//! Our own entry in a host's file: how it is spelled, and how it is put in and taken out so that
//! everything else stays to the letter.

use std::fmt;
use std::path::{Path, PathBuf};

use jsonc_parser::cst::CstInputValue;

use super::document::{self, member, table};
use super::found;
use super::own::{self, Leads, Own};
use super::table::{Entry as Spelling, Host, Reach, Token};
use crate::settings::mistake::Mistake;
use crate::settings::tree::{Entry, Node, Raw, SourceText};

pub use super::edit::{Put, Where, difference, holds_nothing, put, take};

/// The key of our entry, unless a person chooses another. Hosts that put it in front of the names of
/// tools show `m_mcpx_call` so, where `mcpx` would give `mcpx_mcpx_call` (H-45).
pub const KEY: &str = "m";

/// The variable that a host takes the token from, where it takes it from one. It is no setting's name:
/// in the daemon's own environment it means nothing.
pub const TOKEN_VARIABLE: &str = "MCPX_TOKEN";

/// VS Code's name for the token that it asks for.
pub(super) const INPUT: &str = "mcpx-token";

/// How a host gets to mcpx.
#[derive(Debug, Clone)]
pub enum Way {
    /// It starts the shim.
    Shim {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// It goes to an address.
    Http {
        /// The address.
        url: String,
        /// The token, unless none is asked for.
        token: Option<Held>,
    },
}

/// Where the token is.
#[derive(Clone)]
pub struct Held {
    /// The file that holds it, where one does.
    pub file: Option<PathBuf>,
    /// The token, where it is known.
    pub text: Option<String>,
}

/// Where it is; what it is stays unsaid.
impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("file", &self.file).finish_non_exhaustive()
    }
}

/// An entry as its host spells it.
pub struct Ours {
    pub(super) value: CstInputValue,
    /// Where entries stand in that file.
    pub at: Vec<String>,
    /// What a new file holds beside it.
    pub(super) begin: &'static str,
    /// VS Code is to ask for the token.
    pub(super) input: bool,
    /// What a person has to know or do.
    pub notes: Vec<String>,
    /// Holds the token itself.
    pub secret: bool,
}

/// Where it goes; it may hold the token.
impl fmt::Debug for Ours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ours").field("at", &self.at).finish_non_exhaustive()
    }
}

pub(super) fn text(text: impl Into<String>) -> CstInputValue {
    CstInputValue::String(text.into())
}

pub(super) fn object(members: Vec<(&str, CstInputValue)>) -> CstInputValue {
    CstInputValue::Object(
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    )
}

/// Spells the entry for a host. `second` asks for the layout of opencode 2.x, which is also taken where
/// the file has it.
pub fn ours(
    host: &Host,
    way: &Way,
    reach: Reach,
    top: &[Entry],
    second: bool,
) -> Result<Ours, String> {
    let mut ours = Ours {
        value: CstInputValue::Null,
        at: host.at.iter().map(|&name| name.to_owned()).collect(),
        begin: host.begin,
        input: false,
        notes: Vec::new(),
        secret: false,
    };
    let opencode = host.entry == Spelling::Opencode;
    if second && !opencode {
        return Err(format!("--v2 is about opencode; {} has one layout", host.title));
    }
    let second = opencode && (second || is_second(top));
    if second {
        ours.at.push("servers".to_owned());
    }
    let mut members = match way {
        Way::Shim { program, args } => shim(host, program, args),
        Way::Http { url, token } => {
            let members = remote(host, url, token.as_ref(), reach, &mut ours)?;
            if opencode { [members, vec![("oauth", false.into())]].concat() } else { members }
        }
    };
    if host.all_tools {
        members.push(("tools", CstInputValue::Array(vec![text("*")])));
    }
    if second {
        // Without it opencode 2.x opens with `initialize` and stays in the legacy era.
        members.push(("protocol", text("auto")));
    }
    ours.value = object(members);
    Ok(ours)
}

/// Whether a file has the layout of opencode 2.x.
fn is_second(top: &[Entry]) -> bool {
    let servers = table(top, "mcp").and_then(|mcp| member(mcp, "servers"));
    let nested = servers.is_some_and(|servers| match &servers.raw {
        Raw::Table(inner) => member(inner, "type").is_none() && member(inner, "command").is_none(),
        _ => false,
    });
    nested || matches!(member(top, "permissions").map(|node| &node.raw), Some(Raw::List(_)))
}

fn shim<'a>(host: &Host, program: &str, args: &[String]) -> Vec<(&'a str, CstInputValue)> {
    match host.entry {
        Spelling::Opencode => {
            let words = std::iter::once(program.to_owned()).chain(args.iter().cloned());
            let words = words.map(CstInputValue::String).collect();
            vec![("type", text("local")), ("command", CstInputValue::Array(words))]
        }
        Spelling::Split(kind) => {
            let mut members: Vec<_> = kind.map(|kind| ("type", text(kind))).into_iter().collect();
            let args = args.iter().cloned().map(CstInputValue::String).collect();
            members.push(("command", text(program)));
            members.push(("args", CstInputValue::Array(args)));
            members
        }
    }
}

fn remote<'a>(
    host: &Host,
    url: &str,
    token: Option<&Held>,
    reach: Reach,
    ours: &mut Ours,
) -> Result<Vec<(&'a str, CstInputValue)>, String> {
    let Some(remote) = host.remote else {
        return Err(format!(
            "{} has no addresses in its file, or none that is documented; leave --http out, and it starts \
             the shim",
            host.title
        ));
    };
    let mut members: Vec<_> = remote.kind.map(|kind| ("type", text(kind))).into_iter().collect();
    members.push((remote.url, text(url)));
    let Some(held) = token else { return Ok(members) };
    if let Token::Named(key) = remote.token {
        ours.notes.push(by_variable(host));
        members.push((key, text(TOKEN_VARIABLE)));
        return Ok(members);
    }
    let bearer = bearer(host, remote.token, held, reach, ours)?;
    let header = object(vec![("Authorization", text(format!("Bearer {bearer}")))]);
    members.push(("headers", header));
    Ok(members)
}

fn by_variable(host: &Host) -> String {
    format!(
        "{} reads the token from its environment: set {TOKEN_VARIABLE} where it starts (`mcpx status --http` \
         shows the token)",
        host.title
    )
}

/// The token as the host can have it in a header.
fn bearer(
    host: &Host,
    token: Token,
    held: &Held,
    reach: Reach,
    ours: &mut Ours,
) -> Result<String, String> {
    match token {
        Token::File => match &held.file {
            Some(file) => Ok(format!("{{file:{}}}", file.display())),
            None => Err(format!(
                "the token stands in the setting http.token, and {} can refer to a file only: write \
                 http.token = \"${{file:PATH}}\", or leave --http out",
                host.title
            )),
        },
        Token::Variable(spelled) | Token::Named(spelled) => {
            ours.notes.push(by_variable(host));
            Ok(spelled.to_owned())
        }
        Token::Input => {
            ours.input = true;
            ours.notes.push(format!(
                "{} asks for the token once and keeps it (`mcpx status --http` shows it)",
                host.title
            ));
            Ok(format!("${{input:{INPUT}}}"))
        }
        Token::Literal if reach == Reach::Project => Err(format!(
            "{} can refer to no file and no variable, and the token has no place in a project's file: leave \
             --project or --http out",
            host.title
        )),
        Token::Literal => {
            ours.secret = true;
            ours.notes.push(
                "the token itself goes into this file: see to it that nobody else reads it"
                    .to_owned(),
            );
            held.text.clone().ok_or_else(|| {
                "there is no token yet: start the daemon once (`mcpx daemon`, or any call)"
                    .to_owned()
            })
        }
    }
}

/// What a file already says about us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Free,
    /// The key is ours.
    Ours,
    /// The key is another server's.
    Taken,
    /// We are there under another key.
    Elsewhere(String),
}

/// Looks for us in a file.
pub fn standing(source: &SourceText, top: &[Entry], key: &str, own: &Own<'_>) -> Standing {
    let all = found::servers(source, top, None);
    if let Some(candidate) = all.iter().find(|candidate| candidate.key == key) {
        return if own::is(&candidate.node, own) { Standing::Ours } else { Standing::Taken };
    }
    let other = all.into_iter().find(|candidate| own::is(&candidate.node, own));
    other.map_or(Standing::Free, |candidate| Standing::Elsewhere(candidate.key))
}

/// How many servers a file has that are not mcpx.
pub fn others(source: &SourceText, top: &[Entry], own: &Own<'_>) -> usize {
    let all = found::servers(source, top, None);
    all.iter().filter(|candidate| leads_elsewhere(&candidate.node, own)).count()
}

fn leads_elsewhere(node: &Node, own: &Own<'_>) -> bool {
    !matches!(own::leads(node, own), Some(Leads::Command(_) | Leads::Url(_)))
}

/// The text and its tree, or the first mistake with line and column.
pub fn readable(path: &Path, text: &str) -> Result<(SourceText, Vec<Entry>), Mistake> {
    let source = SourceText::new(path, text);
    match document::parse(&source) {
        Ok(top) => Ok((source, top)),
        Err(mistakes) => Err(mistakes
            .into_iter()
            .next()
            .unwrap_or_else(|| Mistake::of_file(path, "cannot be read".to_owned()))),
    }
}

#[cfg(test)]
mod tests;
