//! Rows of the table: what goes on inside, and who may see it.

use super::{Def, count, live, restart};
use crate::settings::value::{Form, Kind};

pub(super) const ROWS: &[Def] = &[
    live(
        "metrics.listen",
        Kind::Text(Form::Listen),
        "The address and port where metrics are served over TCP, at /metrics, to whoever can reach it: \
         without a token. Empty or \"off\" means nowhere; the control socket serves them always.",
    ),
    live(
        "metrics.allowed_hosts",
        Kind::List(Form::Host),
        "Further names under which metrics are asked for, beside those of this machine; a request for any \
         other is refused, because a web page may have made it.",
    ),
    restart("metrics.max_connections", count(1, 65_536), "Connections for metrics over TCP at once."),
];
