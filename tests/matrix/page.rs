//! The table, printed and kept in `docs/matrix.md`.

use std::fmt::Write as _;
use std::path::Path;

use crate::cell::Peer;
use crate::features::FEATURES;
use crate::rules::{Expect, REASONS, letter};
use crate::support::golden;
use crate::support::schema::REVISIONS;

/// What was found in one cell.
#[derive(Debug)]
pub struct Found {
    /// The host.
    pub host: Peer,
    /// The upstream.
    pub up: Peer,
    /// The row.
    pub feature: &'static str,
    /// What was expected and seen, or why not.
    pub outcome: Result<Expect, String>,
}

impl Found {
    /// What is wrong with the cell, if anything.
    pub fn complaint(&self) -> Option<String> {
        let why = self.outcome.as_ref().err()?;
        let Self { host, up, feature, .. } = self;
        Some(format!("{host}>{up} {feature}: {why}"))
    }

    fn symbol(&self) -> char {
        match self.outcome {
            Ok(Expect::Works) => '+',
            Ok(Expect::Not(reason)) => letter(reason),
            Err(_) => '!',
        }
    }
}

/// One character for the four transports of a pair of revisions: theirs, where they agree.
fn symbol(found: &[Found], feature: &str, host: &str, up: &str) -> char {
    let mut all: Vec<char> = found
        .iter()
        .filter(|one| one.feature == feature && one.host.revision == host && one.up.revision == up)
        .map(Found::symbol)
        .collect();
    all.sort_unstable();
    all.dedup();
    match all.as_slice() {
        [] => ' ',
        [one] => *one,
        _ => '?',
    }
}

/// One row a feature; a column for each host revision, in it one character for each upstream revision.
pub fn table(found: &[Found]) -> String {
    let mut text = String::from("| feature |");
    for host in REVISIONS {
        let _ = write!(text, " {host} |");
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(REVISIONS.len()));
    for feature in &FEATURES {
        let _ = write!(text, "\n| {} |", feature.title);
        for host in REVISIONS {
            let cells: String =
                REVISIONS.iter().map(|up| symbol(found, feature.name, host, up)).collect();
            let _ = write!(text, " `{cells}` |");
        }
    }
    text
}

fn whole(found: &[Found]) -> String {
    let mut text = String::from(
        "# Any revision to any revision\n\n\
         Written by `cargo test --test matrix` from what it holds each cell to. `MCPX_MATRIX=all`, as \
         in `.ci/run`, runs every one, over stdio and HTTP on either side (100 pairs a row), with peers \
         made of bytes and every frame checked against the schema of its revision; without it only a \
         diagonal is run.\n\n\
         Columns are revisions of the host. In each, the five characters are revisions of the \
         upstream, oldest first: 2024-11-05 (whose HTTP is HTTP+SSE), 2025-03-26, 2025-06-18, \
         2025-11-25, 2026-07-28. `+` works; a letter says which rule makes it impossible, and what \
         is seen instead.\n\n",
    );
    text.push_str(&table(found));
    text.push_str("\n\n");
    for (reason, why) in REASONS {
        let _ = writeln!(text, "- `{}`: {why}", letter(reason));
    }
    text
}

/// Compares with the file; where it differs, writes it and fails.
pub fn check(found: &[Found]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/matrix.md");
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let now = whole(found);
    if let Some(difference) = golden::difference(&there, &now) {
        std::fs::write(&path, &now).unwrap();
        panic!("docs/matrix.md was not up to date, {difference}\nIt is now; commit it.");
    }
}
