//! Rows of the table: what goes on inside, and who may see it.

use super::{
    Def, GIB, HOUR, KIB, MIB, MINUTE, MS, NOW, WEEK, YEAR, count, live, restart, size, time,
};
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
    restart(
        "metrics.max_connections",
        count(1, 65_536),
        "Connections for metrics over TCP at once.",
    ),
    live(
        "audit.enabled",
        Kind::Switch,
        "Whether each call of a tool, and each read of a resource or prompt, is recorded in the state \
         folder: who, what, when, how long and how it ended. `mcpx audit` shows it.",
    ),
    live(
        "audit.arguments",
        Kind::Switch,
        "Whether the record also has what was called with; values under names like `token` are masked.",
    ),
    live(
        "audit.max_size",
        size(4 * KIB, GIB),
        "Longest file of the record; then another is begun.",
    ),
    live("audit.max_files", count(1, 10_000), "Files of the record; beyond it the oldest go."),
    live("audit.rotate_after", time(MINUTE, YEAR), "How long one file of the record is written."),
    live("audit.keep", time(MINUTE, YEAR), "How long a file of the record is kept after its end."),
    live(
        "audit.queue",
        count(1, 1_000_000),
        "Calls that wait to be recorded; beyond it they are not, and are counted.",
    ),
    live(
        "audit.flush",
        time(NOW, MINUTE),
        "How long calls are gathered before they are recorded together; as many are lost in a crash.",
    ),
    live(
        "trace.keep",
        Kind::Switch,
        "Whether the last messages to and from every server are kept at all times; else only from the \
         first `mcpx trace NAME` on, for `trace.linger`. Obeyed by servers that start, and when asked.",
    ),
    live("trace.frames", count(1, 65_536), "Messages of each server that are kept."),
    live("trace.frame_bytes", size(64, MIB), "How much of each is kept."),
    live(
        "trace.linger",
        time(MS, WEEK),
        "How long messages of a server are kept after somebody has looked at them.",
    ),
    live(
        "otel.endpoint",
        Kind::Text(Form::Url),
        "The address of a collector that takes traces by OTLP over HTTP, like http://127.0.0.1:4318; empty \
         or \"off\" means that none are sent. Names of hosts, servers and tools go there, never arguments.",
    ),
    live(
        "otel.headers",
        Kind::Secret,
        "Headers of each request to the collector, as OTEL_EXPORTER_OTLP_HEADERS has them: NAME=VALUE, \
         with commas between. A value may hold references, like authorization=Bearer ${file:PATH}; shown \
         is none that is not a reference alone.",
    ),
    live(
        "otel.queue",
        count(1, 1_000_000),
        "Spans that wait to be sent; beyond it they are dropped.",
    ),
    live("otel.batch", count(1, 65_536), "Spans that are sent together."),
    live("otel.interval", time(NOW, HOUR), "How long spans are gathered before they are sent."),
    live("otel.timeout", time(MS, HOUR), "How long a collector may take to answer."),
];
