//! Rows of the table: what mcpx keeps outside of answers.

use super::{Def, GIB, KIB, MIB, MS, YEAR, count, live, size, time};

/// Which results those are.
pub(super) const RESULTS: &[Def] = &[
    live(
        "call.result_limit",
        size(0, GIB),
        "A longer result of a call by mcpx_call or a script is stored, and its beginning, size and \
         address are given instead; 0: never.",
    ),
    live("call.result_head", size(0, MIB), "How much of the beginning of such a result is given."),
    live(
        "call.media_limit",
        size(0, GIB),
        "A picture or a sound up to this length, in base64, is given as it is by mcpx_call and \
         mcpx_read: hosts show it to a model as such.",
    ),
];

/// How long they are kept, and how much room they have.
pub(super) const ROWS: &[Def] = &[
    live(
        "artifacts.keep",
        time(MS, YEAR),
        "How long a stored result, and a file that a script has written, is kept.",
    ),
    live(
        "artifacts.max_size",
        size(KIB, GIB),
        "Longest such file; a longer result is given whole, and a script is told.",
    ),
    live(
        "artifacts.max_total",
        size(KIB, 1024 * GIB),
        "Bytes of all such files together; beyond it the oldest go.",
    ),
    live("artifacts.max", count(1, 1_000_000), "Such files at most; beyond it the oldest go."),
];
