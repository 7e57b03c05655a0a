//! One row of the settings table, and the spellings that it is found by.

use crate::settings::value::Kind;

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Def {
    /// Its name: table and key, snake case.
    pub key: &'static str,
    /// Type and bounds.
    pub kind: Kind,
    /// When a change is obeyed.
    pub applies: Applies,
    /// What it does, for people: sentences.
    pub doc: &'static str,
}

/// When a change of a setting is obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// At once, by whatever starts or is asked next.
    Live,
    /// When the daemon starts again.
    Restart,
}

impl Applies {
    /// As shown: `live` or `restart`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Restart => "restart",
        }
    }
}

impl Def {
    /// The environment variable: `call.idle_timeout` is `MCPX_CALL_IDLE_TIMEOUT`.
    pub fn variable(&self) -> String {
        format!("MCPX_{}", self.key.replace('.', "_").to_ascii_uppercase())
    }

    /// The spelling of earlier configurations, where it differs: `upstream.eraCache`.
    pub fn alias(&self) -> Option<String> {
        let moved = MOVED.iter().find(|(_, key)| *key == self.key);
        let alias = moved.map_or_else(|| camel(self.key), |(alias, _)| (*alias).to_owned());
        (alias != self.key).then_some(alias)
    }
}

/// How many rows there are in `parts`.
pub(super) const fn count(parts: &[&[Def]]) -> usize {
    let (mut rest, mut count) = (parts, 0);
    while let [first, more @ ..] = rest {
        count += first.len();
        rest = more;
    }
    count
}

/// The rows of `parts`, which are `N` of them, in their order. Runs at compile time.
pub(super) const fn joined<const N: usize>(parts: &[&[Def]]) -> [Def; N] {
    const FILLER: Def = Def { key: "", kind: Kind::Switch, applies: Applies::Live, doc: "" };
    let (mut all, mut at, mut parts) = ([FILLER; N], 0, parts);
    while let [part, more @ ..] = parts {
        let mut rows = *part;
        while let [row, others @ ..] = rows {
            if let Some((_, end)) = all.split_at_mut_checked(at)
                && let [place, ..] = end
            {
                *place = *row;
            }
            at += 1;
            rows = others;
        }
        parts = more;
    }
    all
}

/// Earlier spellings that stood in another table.
const MOVED: &[(&str, &str)] =
    &[("timing.taskEager", "tasks.eager"), ("protoMessages.taskAfter", "tasks.after")];

/// The camel-case spelling of a snake-case name; dots stay.
pub(in crate::settings) fn camel(snake: &str) -> String {
    let mut text = String::with_capacity(snake.len());
    let mut raise = false;
    for letter in snake.chars() {
        if letter == '_' {
            raise = true;
        } else if raise {
            text.push(letter.to_ascii_uppercase());
            raise = false;
        } else {
            text.push(letter);
        }
    }
    text
}
