//! Rows of the table: what mcpx keeps outside of answers.

use super::{Def, GIB, KIB, MS, YEAR, count, live, size, time};

pub(super) const KEEP: Def = live(
    "artifacts.keep",
    time(MS, YEAR),
    "How long a stored result, and a file that a script has written, is kept.",
);

pub(super) const MAX_SIZE: Def = live(
    "artifacts.max_size",
    size(KIB, GIB),
    "Longest such file; a longer result is given whole, and a script is told.",
);

pub(super) const MAX_TOTAL: Def = live(
    "artifacts.max_total",
    size(KIB, 1024 * GIB),
    "Bytes of all such files together; beyond it the oldest go.",
);

pub(super) const MAX: Def =
    live("artifacts.max", count(1, 1_000_000), "Such files at most; beyond it the oldest go.");
