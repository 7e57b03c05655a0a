//! Rows of the table: hosts over HTTP.

use super::{Def, GIB, HOUR, KIB, MIB, MINUTE, MS, NOW, WEEK, count, live, restart, size, time};
use crate::settings::value::{Form, Kind};

pub(super) const ROWS: &[Def] = &[
    live(
        "http.listen",
        Kind::Text(Form::Listen),
        "The address and port where hosts reach mcpx over HTTP, under /mcp; empty or \"off\" means nowhere. \
         Port 0 takes one that is free.",
    ),
    live(
        "http.token",
        Kind::Secret,
        "What hosts over HTTP show as their bearer token. Without it one is made at the first start \
         and kept in the state folder; `mcpx status --http` shows it. Given here, it also opens the \
         control API under /v1 to whoever has it.",
    ),
    live(
        "http.open",
        Kind::Switch,
        "Whether hosts over HTTP need no token: every program of this machine may then use every \
         server. Only together with a loopback address.",
    ),
    live(
        "http.allowed_hosts",
        Kind::List(Form::Host),
        "Further names under which mcpx is reached over HTTP, beside those of this machine; a request \
         for any other is refused, because a web page may have made it.",
    ),
    live(
        "http.allowed_origins",
        Kind::List(Form::Origin),
        "Further web pages that may speak to mcpx, beside those of this machine, by their origin.",
    ),
    restart("http.max_connections", count(1, 1_000_000), "Connections of hosts over HTTP at once."),
    restart("http.max_body", size(KIB, GIB), "Longest body of a request over HTTP."),
    restart(
        "http.body_budget",
        size(KIB, GIB),
        "Bytes of all bodies of requests over HTTP that are read or worked on; more are refused.",
    ),
    restart(
        "http.max_header_bytes",
        size(KIB, MIB),
        "Longest head of a request over HTTP: its first line and all headers together.",
    ),
    restart(
        "http.header_timeout",
        time(MS, HOUR),
        "How long a connection over HTTP may take over the head of its next request, and then over \
         its body.",
    ),
    restart(
        "http.write_timeout",
        time(MS, HOUR),
        "A host over HTTP that takes nothing of its answer for this long is given up.",
    ),
    restart(
        "http.linger",
        time(NOW, MINUTE),
        "How long the rest of a refused request is read and thrown away, so that the refusal arrives.",
    ),
    live(
        "http.max_sessions",
        count(1, 1_000_000),
        "Sessions that hosts over HTTP may have open at once; one more is refused.",
    ),
    live(
        "http.session_idle",
        time(MS, WEEK),
        "A session over HTTP that asked for nothing and listened to nothing for this long ends.",
    ),
    live(
        "http.session_record",
        size(0, 64 * MIB),
        "Bytes that are kept on disk of one session over HTTP, so that it survives a restart; one \
         that has agreed on more does not.",
    ),
    live(
        "http.stream_after",
        time(NOW, HOUR),
        "A request over HTTP that is not answered after this is answered as a stream of events.",
    ),
    live(
        "http.stream_queue",
        count(1, 1_000_000),
        "Events that may wait for one reader; of one that does not read, messages are dropped, but \
         not answers.",
    ),
    live(
        "http.max_streams",
        count(1, 1_000),
        "Streams of a session's own, opened with GET, at once; the newest is spoken to, and one more \
         ends the oldest.",
    ),
    live(
        "http.retry",
        time(NOW, HOUR),
        "How long a host whose stream broke is asked to wait before it comes back.",
    ),
    live(
        "http.resume_events",
        count(0, 1_000_000),
        "Events of a session that are kept for a host that comes back for what it has missed.",
    ),
    live("http.resume_bytes", size(0, GIB), "Bytes of those events."),
    live("http.resume_age", time(NOW, WEEK), "How long such an event is kept."),
    live(
        "transport.sse_keep_alive",
        time(MS, HOUR),
        "A stream of events that was silent for this long sends a comment, as a sign of life.",
    ),
];
