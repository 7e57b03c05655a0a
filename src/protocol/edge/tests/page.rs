//! The tables of `docs/protocol.md`, from the tables that the edge goes by.

use std::fmt::Write as _;

use super::super::fields::{FIELDS, Field};
use super::super::methods::{Direction, METHODS, Row};
use crate::pages::ensure;
use crate::protocol::jsonrpc::Code;
use crate::protocol::revision::Revision;

/// One row: what is asked, what a yes is shown as, and whether a revision has it.
type Rule = (&'static str, fn(Revision) -> bool);

/// The named questions of `revision.rs` that decide what goes over the wire.
const RULES: [Rule; 8] = [
    ("opened by `initialize`; a connection remembers what was agreed", |one| !one.is_modern()),
    ("each request carries its own `_meta` envelope; nothing is remembered", Revision::is_modern),
    ("JSON-RPC arrays, in both directions", Revision::allows_batches),
    ("HTTP: `MCP-Protocol-Version` on every message", Revision::sends_version_header),
    ("HTTP: `Mcp-Method`, `Mcp-Name`, `Mcp-Param-…` repeat the body", Revision::mirrors_in_headers),
    ("HTTP: a stream for what belongs to no request, by GET", Revision::has_standalone_stream),
    ("HTTP, towards hosts: a broken stream can be taken up again", Revision::resumes_streams),
    (
        "an empty `nextCursor` of a server is a cursor, not the end",
        Revision::empty_cursor_continues,
    ),
];

fn head(first: &str) -> String {
    let mut text = format!("| {first} |");
    for revision in Revision::ALL {
        let _ = write!(text, " {revision} |");
    }
    text.push_str("\n| --- |");
    text.push_str(&" :-: |".repeat(Revision::ALL.len()));
    text.push('\n');
    text
}

fn marks(text: &mut String, first: &str, has: impl Fn(Revision) -> bool) {
    let _ = write!(text, "| {first} |");
    for revision in Revision::ALL {
        text.push_str(if has(revision) { " + |" } else { " |" });
    }
    text.push('\n');
}

#[test]
fn x01_the_rules_of_each_revision() {
    let mut text = head("");
    for (what, has) in RULES {
        marks(&mut text, what, has);
    }
    ensure("protocol.md", "rules", &text);
}

#[test]
fn x01_the_methods_of_each_revision() {
    const GROUPS: [(Direction, &str); 4] = [
        (Direction::ToServer, "request to a server"),
        (Direction::NoteToServer, "notification to a server"),
        (Direction::ToClient, "request of a server"),
        (Direction::NoteToClient, "notification of a server"),
    ];
    let mut text = String::new();
    for (direction, title) in GROUPS {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&head(title));
        for Row(name, towards, first, last) in METHODS {
            if *towards == direction {
                marks(&mut text, &format!("`{name}`"), |it| (*first..=*last).contains(&it));
            }
        }
    }
    ensure("protocol.md", "methods", &text);
}

#[test]
fn x01_the_members_that_not_every_revision_has() {
    let mut text = head("object and member");
    for Field(shape, name, first, last) in FIELDS {
        let first_cell = format!("{shape:?} `{name}`");
        marks(&mut text, &first_cell, |revision| (*first..=*last).contains(&revision));
    }
    ensure("protocol.md", "members", &text);
}

#[test]
fn x02_what_an_initialize_is_answered_with() {
    let mut text = String::from("| a host asks for | it gets |\n| --- | --- |\n");
    let dates = Revision::ALL.map(Revision::as_str);
    for asked in dates.into_iter().chain(["2099-01-01", "1.0"]) {
        let _ = writeln!(text, "| `{asked}` | `{}` |", Revision::counter_offer(Some(asked)));
    }
    let _ = writeln!(text, "| nothing readable | `{}` |", Revision::counter_offer(None));
    ensure("protocol.md", "offers", &text);
}

#[test]
fn x02_the_codes_and_their_status() {
    const MEANING: [(Code, &str); 9] = [
        (Code::ParseError, "the bytes are not JSON"),
        (Code::InvalidRequest, "JSON, but no message that the revision allows"),
        (Code::MethodNotFound, "no such method, in this revision or at all"),
        (
            Code::InvalidParams,
            "parameters are missing or wrong; in 2026-07-28 also: no such resource",
        ),
        (Code::InternalError, "mcpx or the server could not do it; `data.reason` says why"),
        (Code::HeaderMismatch, "2026-07-28 over HTTP: headers say something else than the body"),
        (Code::MissingCapability, "2026-07-28: the request lacks a capability that is needed"),
        (
            Code::UnsupportedRevision,
            "2026-07-28: the revision is not served; `data` lists those that are",
        ),
        (Code::ResourceNotFound, "revisions with a handshake: no such resource"),
    ];
    assert_eq!(MEANING.len(), Code::ALL.len(), "a code is not explained");
    let mut text = String::from("| code | status | means |\n| --- | --- | --- |\n");
    for code in Code::ALL {
        let (_, meaning) = MEANING.iter().find(|(of, _)| of == code).unwrap();
        let _ = writeln!(text, "| {} | {} | {meaning} |", code.number(), code.http_status());
    }
    ensure("protocol.md", "codes", &text);
}
