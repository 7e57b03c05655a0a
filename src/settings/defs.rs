//! The settings table: what each setting means. Its value stands in `config/defaults.toml`.
//!
//! A row is written once; the file syntax, the environment variable, `mcpx settings`,
//! `PUT /v1/settings`, `config/mcpx.example.toml` and `config/settings.schema.json` follow from it.
//! A setting enters with the code that obeys it, never before.

mod artifacts;
mod config;
mod exec;
mod http;
mod inside;
mod row;
mod scripts;

use std::time::Duration;

pub(super) use self::row::camel;
pub use self::row::{Applies, Def};
use super::value::{Choice, Form, Kind};

/// The setting of a name or of its alias.
pub fn find(key: &str) -> Option<&'static Def> {
    DEFS.iter().find(|def| def.key == key || def.alias().is_some_and(|alias| alias == key))
}

/// Which request opens a connection, named for the first one sent (U-05).
pub const PREFERENCES: &[Choice] = &[
    Choice { word: "prefer-discover", also: &["modern"] },
    Choice { word: "prefer-initialize", also: &["legacy"] },
    Choice { word: "force-discover", also: &["force-modern"] },
    Choice { word: "force-initialize", also: &["force-legacy"] },
    Choice { word: "follow", also: &[] },
];

/// What a host sees of an upstream.
pub const MODES: &[Choice] = &[
    Choice { word: "core", also: &[] },
    Choice { word: "passthrough", also: &["pass-through"] },
    Choice { word: "both", also: &[] },
];

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const MS: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const WEEK: Duration = Duration::from_hours(7 * 24);
const YEAR: Duration = Duration::from_hours(365 * 24);
const NOW: Duration = Duration::ZERO;

const fn time(min: Duration, max: Duration) -> Kind {
    Kind::Time { min, max }
}

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

const fn size(min: u64, max: u64) -> Kind {
    Kind::Size { min, max }
}

const fn live(key: &'static str, kind: Kind, doc: &'static str) -> Def {
    Def { key, kind, applies: Applies::Live, doc }
}

const fn restart(key: &'static str, kind: Kind, doc: &'static str) -> Def {
    Def { key, kind, applies: Applies::Restart, doc }
}

/// Every setting, in the order in which they are shown.
pub const DEFS: &[Def] = &row::joined::<{ row::count(PARTS) }>(PARTS);

/// The table in parts.
const PARTS: &[&[Def]] = &[
    CALLS,
    artifacts::RESULTS,
    exec::ROWS,
    QUESTIONS,
    artifacts::ROWS,
    scripts::ROWS,
    UPSTREAMS,
    http::ROWS,
    config::ROWS,
    inside::ROWS,
    PROGRAM,
];

const CALLS: &[Def] = &[
    // What hosts see.
    live(
        "expose.mode",
        Kind::Choice(MODES),
        "What hosts see: the core tools, every tool of every server under a name of its own, or both.",
    ),
    live("expose.ops", Kind::Switch, "Whether hosts may operate the daemon by tools of its own."),
    live(
        "expose.name_limit",
        count(24, 256),
        "Longest name of a tool that is exposed by itself; longer ones end in a hash.",
    ),
    live(
        "expose.list_wait",
        time(NOW, MINUTE),
        "How long a list of exposed tools waits for servers that were never listed before.",
    ),
    live(
        "expose.page",
        count(1, 10_000),
        "Items on one page of mcpx_namespaces and of mcpx_resources.",
    ),
    live(
        "expose.read_limit",
        size(KIB, GIB),
        "How much of a resource mcpx_read gives at once; ranges and patterns give the rest.",
    ),
    // Searches.
    live(
        "search.results",
        count(1, 1000),
        "Tools that a search gives where no number is asked for.",
    ),
    live("search.max_results", count(1, 1000), "Most tools that a search may be asked for."),
    live("search.signature", size(64, MIB), "Longest signature of a tool that a search gives."),
    live("search.words", count(1, 1000), "Words of a query that count; the rest is left out."),
    live(
        "types.depth",
        count(1, 64),
        "Levels of a tool's schema that become TypeScript; what is deeper becomes `unknown`.",
    ),
    live(
        "types.nodes",
        count(16, 1_000_000),
        "Schemas and values of one tool's schema that become TypeScript; the rest becomes `unknown`.",
    ),
    live(
        "types.size",
        size(KIB, GIB),
        "How much TypeScript mcpx_types gives at once; it names the tools that are left out.",
    ),
    live(
        "types.description",
        size(0, MIB),
        "How much of one description stands in a comment of the TypeScript.",
    ),
    // Calls.
    live(
        "call.idle_timeout",
        time(MS, WEEK),
        "A call without an answer and without progress for this long ends.",
    ),
    live("call.total_timeout", time(MS, WEEK), "Longest call in all, progress or not."),
    live(
        "call.resend_limit",
        count(0, 100),
        "How often a call that certainly never reached its server is sent again.",
    ),
    live(
        "call.progress_queue",
        count(1, 65_536),
        "Progress notes of one call that may wait for a slow host; beyond it the newest wins.",
    ),
    live(
        "call.log_queue",
        count(0, 65_536),
        "Log messages during one call that may wait for a slow host; beyond it new ones are dropped.",
    ),
    live(
        "call.repeat_memory",
        count(0, 65_536),
        "Failed calls remembered of each host, to tell it when it repeats one unchanged.",
    ),
    live(
        "call.handle_after",
        time(NOW, WEEK),
        "A host without tasks is handed a call by mcpx_call that takes longer than this as a handle \
         for mcpx_task, and need not wait for it; 0: never.",
    ),
];

const QUESTIONS: &[Def] = &[
    // Questions.
    live(
        "elicit.hold",
        time(NOW, HOUR),
        "How long a question that no host can be asked is kept although nobody listens for it; with 0 it \
         is cancelled at once.",
    ),
    live(
        "elicit.linger",
        time(NOW, HOUR),
        "How long a question is kept when the last who could see it has gone, and that of a `mcpx call` \
         that is not on a terminal while nobody listens.",
    ),
    live(
        "elicit.timeout",
        time(MS, WEEK),
        "How long a host or a person may take to answer a question.",
    ),
    live(
        "elicit.max_open",
        count(1, 65_536),
        "Questions that may be open at once: of each connection to a host or a server, and of all that \
         wait for a person.",
    ),
    live(
        "elicit.keep_lost",
        time(NOW, WEEK),
        "How long questions are shown that were open when an earlier daemon ended.",
    ),
    live(
        "elicit.confirm_destructive",
        Kind::Switch,
        "Whether a call of a tool that may destroy something is confirmed first: of every tool that is \
         neither marked read-only nor marked as not destructive.",
    ),
    live(
        "elicit.max_rounds",
        count(1, 65_536),
        "How often a server may ask in the course of one call; then the call is given up.",
    ),
    live(
        "elicit.max_parked",
        count(1, 65_536),
        "Calls of 2026-07-28 hosts that may wait at once for the request that brings the answers.",
    ),
    live(
        "elicit.state_ttl",
        time(MS, WEEK),
        "How long such a call waits, and how long its `requestState` is good; then it is cancelled.",
    ),
    live(
        "elicit.turn",
        time(MS, WEEK),
        "How long such a call keeps others waiting whose server has one call at a time; then it is \
         cancelled for the next of them.",
    ),
    live(
        "elicit.gather",
        time(NOW, HOUR),
        "How long further questions of a server are waited for before a 2026-07-28 host is told of the \
         first, so that it gets those that belong together at once.",
    ),
    // Tasks.
    live(
        "tasks.eager",
        time(NOW, HOUR),
        "How long a tool that can run as a task has to end or to ask, for a host with the tasks \
         extension, before its call becomes a task.",
    ),
    live(
        "tasks.after",
        time(NOW, WEEK),
        "The same for a tool that says nothing of tasks, and only for hosts that cannot be asked \
         questions; 0: never.",
    ),
    live(
        "tasks.ttl",
        time(MS, WEEK),
        "How long a task is kept from its creation where its host does not say.",
    ),
    live("tasks.max_ttl", time(MS, YEAR), "The longest that a host may have a task kept."),
    live(
        "tasks.max",
        count(1, 65_536),
        "Tasks that are kept at once, running and ended; beyond it no call becomes one.",
    ),
    live("tasks.poll_interval", time(MS, HOUR), "How often hosts are told to look after a task."),
    live(
        "tasks.poll_min",
        time(MS, HOUR),
        "The shortest rest between two looks after the task of a server; where the server names no rest \
         of its own, the first, which doubles while nothing changes.",
    ),
    live(
        "tasks.poll_max",
        time(MS, HOUR),
        "The longest rest between two looks after the task of a server, also where it asks for more.",
    ),
    live("tasks.page", count(1, 10_000), "Tasks on one page of tasks/list."),
];

const UPSTREAMS: &[Def] = &[
    // Upstreams: opening and lists.
    live(
        "upstream.protocol",
        Kind::Choice(PREFERENCES),
        "Which request opens a server's connection; a server's own `protocol` beats it. `follow` is \
         prefer-discover, and a second session, opened with `initialize`, for hosts that speak a \
         revision before 2026-07-28: each `command` server then runs twice for each scope key once \
         such a host has called it, so set it where servers are cheap to run twice.",
    ),
    live(
        "upstream.era_cache",
        Kind::Switch,
        "Whether the era of a server is remembered, so that a legacy one is not probed again.",
    ),
    live(
        "upstream.version_attempts",
        count(1, 10),
        "How often each revision is offered to a server that refuses revisions.",
    ),
    live(
        "upstream.probe_patience",
        time(MS, HOUR),
        "How long the probe waits for an answer before `initialize` is tried beside it.",
    ),
    live(
        "upstream.handshake_timeout",
        time(MS, HOUR),
        "Longest opening of a server, from the start of its process.",
    ),
    live("upstream.list_timeout", time(MS, HOUR), "Longest reading of a list, all pages together."),
    live("upstream.list_max_pages", count(1, 100_000), "Most pages of one list."),
    live("upstream.list_max_items", count(1, 1_000_000), "Most entries of one list."),
    live(
        "upstream.relist_interval",
        time(NOW, HOUR),
        "A list that is not whole is read again for a tool that is missing in it, but not within \
         this time of the last reading.",
    ),
    live(
        "upstream.listen_reopen_delay",
        time(MS, HOUR),
        "How long a listen stream that its server has ended rests before it is opened again.",
    ),
    live(
        "upstream.list_parallel",
        count(1, 1000),
        "Servers started at once to read their lists, and looked at at once by `mcpx doctor`.",
    ),
    live(
        "upstream.ping_timeout",
        time(MS, HOUR),
        "A server that does not answer a sign-of-life request within this time is restarted.",
    ),
    live(
        "upstream.sse_reconnect_delay",
        time(MS, HOUR),
        "The rest before an event stream that broke off is opened again, where the server names none; \
         longer each time that it does not last.",
    ),
    live(
        "upstream.sse_reconnect_attempts",
        count(0, 1000),
        "How often in a row an event stream is opened again without anything coming of it.",
    ),
    live(
        "upstream.sse_poll_interval",
        time(MS, WEEK),
        "How often a session's own event stream is tried after those attempts.",
    ),
    live(
        "upstream.sse_linger",
        time(MS, HOUR),
        "How long an HTTP server may leave an answer open when nothing more is expected in it.",
    ),
    live(
        "upstream.end_timeout",
        time(NOW, MINUTE),
        "How long an HTTP server has to take the end of its session.",
    ),
    // Remote servers.
    live(
        "upstream.connect_timeout",
        time(MS, HOUR),
        "Longest way to a remote server: its name, TCP, a proxy and TLS together.",
    ),
    live(
        "upstream.error_body",
        size(64, MIB),
        "Bytes kept of what a remote server says to a refusal, where it is not JSON.",
    ),
    live(
        "upstream.redirects",
        count(0, 100),
        "Redirects of one request that are followed; never to another origin.",
    ),
    live(
        "upstream.http_idle",
        time(NOW, HOUR),
        "How long a connection to a remote server is kept that is not in use.",
    ),
    live(
        "upstream.http_idle_connections",
        count(0, 65_536),
        "Such connections of one instance at most.",
    ),
    live(
        "upstream.tcp_keepalive",
        time(Duration::from_secs(1), HOUR),
        "After so much silence on a connection to a remote server, the system asks whether it is \
         still there.",
    ),
    live(
        "upstream.sse_post_wait",
        time(NOW, HOUR),
        "How long a message to a server of HTTP+SSE waits until the one before it was taken.",
    ),
    restart(
        "tls.extra_ca",
        Kind::List(Form::File),
        "Files with further CA certificates in PEM form, beside those of the system, that remote \
         servers may show.",
    ),
    restart(
        "proxy.http",
        Kind::Text(Form::Proxy),
        "The proxy on the way to http: servers; empty takes the environment's HTTP_PROXY or \
         ALL_PROXY, which may hold a password. This machine itself is never reached through one.",
    ),
    restart(
        "proxy.https",
        Kind::Text(Form::Proxy),
        "The proxy on the way to https: servers; empty takes the environment's HTTPS_PROXY or \
         ALL_PROXY.",
    ),
    restart(
        "proxy.no_proxy",
        Kind::List(Form::Any),
        "Hosts, domains and networks that are reached without a proxy; empty takes the \
         environment's NO_PROXY.",
    ),
    // Pools.
    live(
        "pool.max",
        count(1, 1_000),
        "Instances of one server for each scope key, where the server has no `max` of its own.",
    ),
    live("pool.in_flight", count(1, 65_536), "Calls on one instance at once."),
    live("pool.queue", count(0, 65_536), "Calls that may wait for one server."),
    live(
        "pool.queue_timeout",
        time(MS, HOUR),
        "Longest wait of a call for its turn, or for its server to start.",
    ),
    live(
        "pool.idle_timeout",
        time(NOW, WEEK),
        "An instance without calls for this long is stopped, where the server has no \
         `idle_timeout` of its own; 0 means never.",
    ),
    live(
        "pool.park_after",
        count(1, 1_000),
        "Failures in a row after which a server is parked until it is restarted by hand.",
    ),
    live(
        "pool.fault_memory",
        count(1, 1_000_000),
        "Projects and sessions of one server whose failures are remembered; beyond it the one that \
         failed longest ago is forgotten.",
    ),
    live(
        "pool.sustained_uptime",
        time(MS, WEEK),
        "Only an instance that lived this long counts as healthy and resets backoff and failures.",
    ),
    live(
        "plumbing.restart_backoff_step",
        time(MS, HOUR),
        "The pause before a failed server is started again grows by this much each time.",
    ),
    live("plumbing.restart_backoff_max", time(MS, HOUR), "The longest such pause."),
    // Processes.
    live(
        "plumbing.stdio_drain_grace",
        time(NOW, HOUR),
        "How long a server may take to end after its input was closed, before SIGTERM.",
    ),
    live(
        "plumbing.term_grace",
        time(NOW, HOUR),
        "How long a server may take to end after SIGTERM, before SIGKILL.",
    ),
    live(
        "process.spawn_timeout",
        time(MS, HOUR),
        "Longest silence of a new process before its start counts as failed.",
    ),
    live("process.stderr_lines", count(1, 1_000_000), "Lines of stderr kept of each instance."),
    live("process.stderr_line_bytes", size(64, MIB), "Longest such line; the rest of it is cut."),
    live(
        "process.stderr_log_rate",
        count(0, 100_000),
        "Lines of stderr a second that go into the daemon's log; the rest is counted.",
    ),
    live(
        "process.stderr_bytes",
        size(KIB, GIB),
        "Bytes of a server's stderr that are read in a second; a flood waits in its pipe.",
    ),
    live(
        "process.noise_rate",
        count(0, 100_000),
        "Lines a second of a server's output that are no messages and yet looked at and shown; \
         the rest is counted.",
    ),
    live(
        "process.noise_bytes",
        size(KIB, GIB),
        "Bytes of such lines that are read in a second; a flood waits in its pipe.",
    ),
    restart(
        "process.login_env_timeout",
        time(NOW, HOUR),
        "How long the login shell may take to tell its environment (PATH above all).",
    ),
    // Hosts.
    live("host.max_connections", count(1, 1_000_000), "Hosts connected at once."),
    live("host.max_in_flight", count(1, 65_536), "Requests of one host at once."),
    live(
        "host.progress_interval",
        time(NOW, HOUR),
        "Least time between two progress notes of one call to a host; in between the last wins.",
    ),
    live(
        "host.progress_burst",
        count(1, 10_000),
        "Progress notes of one call that may follow each other before that time is kept.",
    ),
    live(
        "host.list_changed_delay",
        time(NOW, HOUR),
        "Changes of a list are gathered this long before hosts are told.",
    ),
    live(
        "host.max_subscriptions",
        count(0, 1_000_000),
        "Resources that one host may be subscribed to.",
    ),
    live(
        "host.log_rate",
        count(0, 1_000_000),
        "Log messages of servers that one host is sent in a second; more are dropped.",
    ),
    live("host.drain", time(NOW, HOUR), "How long hosts' calls may go on when the daemon stops."),
    // Streams of subscriptions/listen.
    live(
        "listen.max_per_host",
        count(0, 65_536),
        "Streams of subscriptions/listen that one host may have open.",
    ),
    live(
        "listen.max",
        count(0, 1_000_000),
        "Streams of subscriptions/listen open at once, of all hosts.",
    ),
    live(
        "listen.ack_wait",
        time(NOW, HOUR),
        "How long the acknowledgement of a stream waits for servers to agree to tell of its \
         resources; those that have not by then are left out of it.",
    ),
];

const PROGRAM: &[Def] = &[
    // The shim.
    live(
        "shim.autostart",
        Kind::Switch,
        "Whether `mcpx serve`, and commands that need a server, start a daemon where none runs.",
    ),
    live("shim.grace", time(NOW, HOUR), "How long a host's calls wait for a daemon that is away."),
    live(
        "shim.redial_step",
        time(MS, MINUTE),
        "First pause between two tries to reach the daemon.",
    ),
    live("shim.redial_max", time(MS, HOUR), "Longest pause between two tries to reach the daemon."),
    live(
        "shim.start_timeout",
        time(MS, HOUR),
        "How long a daemon that was started by a command may take to answer.",
    ),
    live("shim.hold_frames", count(0, 1_000_000), "Messages held while the daemon is away."),
    live("shim.hold_bytes", size(0, GIB), "Bytes of such messages."),
    live(
        "shim.end_grace",
        time(NOW, HOUR),
        "How long answers may still come once a host has closed its side.",
    ),
    // Links.
    restart("link.max_frame", size(KIB, GIB), "Longest message from or to anybody."),
    restart("link.write_queue", count(1, 65_536), "Messages that wait to be written to one peer."),
    restart(
        "link.write_queue_bytes",
        size(KIB, GIB),
        "Bytes of such messages; a single longer message still passes.",
    ),
    restart(
        "link.read_credits",
        count(1, 65_536),
        "Messages of one peer that were read and are not yet dealt with.",
    ),
    // The daemon.
    restart("control.max_connections", count(1, 1_000_000), "Connections to the control socket."),
    restart("control.max_body", size(KIB, GIB), "Longest body of a control request."),
    restart(
        "control.body_budget",
        size(KIB, GIB),
        "Bytes of all bodies of control requests that are read or worked on; more are refused.",
    ),
    restart(
        "control.header_timeout",
        time(MS, HOUR),
        "How long a control connection may take over the head of its request.",
    ),
    restart(
        "control.accept_pause",
        time(MS, MINUTE),
        "The pause after the system had no room for one more connection.",
    ),
    restart(
        "control.close_grace",
        time(MS, MINUTE),
        "How long open answers may go on when the daemon stops.",
    ),
    restart("events.ring", count(1, 1_000_000), "Events kept for those who ask later."),
    restart(
        "daemon.ask_timeout",
        time(MS, HOUR),
        "Longest wait of one part of the daemon for another.",
    ),
    restart("daemon.stop_timeout", time(MS, HOUR), "Longest stop of the daemon in all."),
    restart(
        "daemon.restart_intensity",
        count(1, 1_000),
        "So many failures of the daemon's own parts within `daemon.restart_window` end it.",
    ),
    restart("daemon.restart_window", time(MS, WEEK), "See `daemon.restart_intensity`."),
    restart("daemon.workers", count(0, 1_024), "Threads of the daemon; 0 means one for each core."),
    // The command line.
    live(
        "cli.spinner_delay",
        time(NOW, MINUTE),
        "A command that takes longer than this shows on a terminal that it is at work.",
    ),
    live("cli.spinner_tick", time(MS, MINUTE), "How often such a sign moves."),
    live(
        "cli.answer_timeout",
        time(MS, HOUR),
        "How long a command waits for the daemon's answer; calls wait for their own limits.",
    ),
    live("cli.log_lines", count(1, 100_000), "Lines that `mcpx logs` shows where none are asked."),
];

#[cfg(test)]
mod tests;
