//! Rows of the table: the configuration itself.

use super::{Def, KIB, MIB, MINUTE, MS, live, size, time};
use crate::settings::value::Kind;

pub(super) const ROWS: &[Def] = &[
    live(
        "config.watch",
        Kind::Switch,
        "Whether the configuration is read again when one of its files has changed.",
    ),
    live(
        "config.watch_delay",
        time(MS, MINUTE),
        "How long its files have to be left alone before they are read: an editor may take several \
         steps to save one.",
    ),
    live(
        "config.max_project",
        size(KIB, 64 * MIB),
        "Longest `.mcpx.toml` of a project that is read; a longer one is left out.",
    ),
];
