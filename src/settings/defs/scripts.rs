//! Rows of the table: saved scripts.

use super::{Def, KIB, count, live, size};
use crate::settings::value::Kind;

pub(super) const ROWS: &[Def] = &[
    live(
        "scripts.agent_write",
        Kind::Switch,
        "Whether agents may save and remove scripts by mcpx_scripts; they may run them either way.",
    ),
    live("scripts.max", count(0, 10_000), "Saved scripts at most."),
    live("scripts.max_size", size(KIB, 256 * KIB), "Longest saved script."),
];
