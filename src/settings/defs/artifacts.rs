//! Rows of the table: what mcpx keeps outside of answers.

use super::{Def, GIB, KIB, MIB, MS, YEAR, count, live, size, time};

pub(super) const RESULT_LIMIT: Def = live(
    "call.result_limit",
    size(0, GIB),
    "A longer result of a call by mcpx_call or a script is stored, and its beginning, size and address \
     are given instead; 0: never.",
);

pub(super) const RESULT_HEAD: Def =
    live("call.result_head", size(0, MIB), "How much of the beginning of such a result is given.");

pub(super) const MEDIA_LIMIT: Def = live(
    "call.media_limit",
    size(0, GIB),
    "A picture or a sound up to this length, in base64, is given as it is by mcpx_call and mcpx_read: \
     hosts show it to a model as such.",
);

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
