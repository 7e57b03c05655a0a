//! Settings as the rest of the program receives them: one narrow struct for each need.

mod artifacts;
mod config;
mod elicit;
mod exec;
mod expose;
mod inside;
mod listen;
mod scripts;
mod search;
mod tasks;
mod types;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::artifacts::ArtifactSettings;
pub use self::config::ConfigSettings;
pub use self::elicit::ElicitSettings;
pub use self::exec::ExecSettings;
pub use self::expose::ExposeSettings;
pub use self::inside::{
    AuditSettings, InsideSettings, MetricsSettings, OtelHeader, OtelSettings, TraceSettings,
};
pub use self::listen::ListenSettings;
pub use self::scripts::ScriptSettings;
pub use self::search::SearchSettings;
pub use self::tasks::TaskSettings;
pub use self::types::TypesSettings;
use super::layers::Resolved;
use super::servers::{ServerDef, preference_of_word};
use super::value::{Secret, Value};
use crate::protocol::http_rules::origin::{Authority, Origin};
use crate::protocol::session::probe::Preference;
use crate::protocol::session::resume::KeepLimits;

/// Everything that is in force, resolved and checked. Immutable; a change makes a new one.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Upstreams, in the order of the files. Only `demo` where none is configured.
    pub servers: Vec<Arc<ServerDef>>,
    /// Limits of links.
    pub link: LinkSettings,
    /// Host connections.
    pub host: HostSettings,
    /// Streams of `subscriptions/listen`.
    pub listen: ListenSettings,
    /// Hosts over HTTP.
    pub http: HttpSettings,
    /// Hosts over HTTP: sessions and streams.
    pub sessions: SessionSettings,
    /// Calls.
    pub call: CallSettings,
    /// Questions.
    pub elicit: ElicitSettings,
    /// Tasks.
    pub tasks: TaskSettings,
    /// Scripts.
    pub exec: ExecSettings,
    /// Stored results and files of scripts.
    pub artifacts: ArtifactSettings,
    /// Saved scripts.
    pub scripts: ScriptSettings,
    /// Openings and lists.
    pub upstream: UpstreamSettings,
    /// Remote servers.
    pub remote: RemoteSettings,
    /// Pools: backoff, parking, queues, idle stop.
    pub pool: PoolSettings,
    /// Child processes.
    pub process: ProcessSettings,
    /// The shim.
    pub shim: ShimSettings,
    /// What hosts see.
    pub expose: ExposeSettings,
    /// Searches.
    pub search: SearchSettings,
    /// TypeScript of schemas.
    pub types: TypesSettings,
    /// The configuration itself.
    pub config: ConfigSettings,
    /// Events, logs and the daemon itself.
    pub daemon: DaemonSettings,
    /// Metrics, the audit and traces.
    pub inside: InsideSettings,
    /// The command line.
    pub cli: CliSettings,
}

/// Limits of every link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSettings {
    /// `link.max_frame` in bytes (64 MiB).
    pub max_frame: usize,
    /// `link.write_queue` in frames.
    pub write_queue: usize,
    /// `link.write_queue_bytes`: bytes of those frames.
    pub write_queue_bytes: usize,
    /// `link.read_credits`: frames a reader may have handed to its actor that are not yet handled.
    pub read_credits: usize,
}

/// Host connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostSettings {
    /// `host.max_connections`.
    pub max_connections: usize,
    /// `host.max_in_flight`: requests of one host at once.
    pub max_in_flight: usize,
    /// `host.progress_interval`.
    pub progress_interval: Duration,
    /// `host.progress_burst`: this many notes of a call are never held back.
    pub progress_burst: usize,
    /// `host.list_changed_delay`: changes are gathered for this long before a host is told (F38).
    pub list_changed_delay: Duration,
    /// `host.max_subscriptions`: resources that one host may be subscribed to.
    pub max_subscriptions: usize,
    /// `host.log_rate`: log messages of servers in a second (H-42).
    pub log_rate: usize,
    /// `host.drain`: how long hosts' requests may go on when the daemon stops.
    pub drain: Duration,
}

/// Hosts over HTTP: the listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// `http.listen`; `None` means that nothing listens.
    pub listen: Option<SocketAddr>,
    /// `http.token`, references unexpanded; `None` where it is not given.
    pub token: Option<Secret>,
    /// `http.open`: no token is asked for.
    pub open: bool,
    /// `http.allowed_hosts`.
    pub allowed_hosts: Vec<Authority>,
    /// `http.allowed_origins`.
    pub allowed_origins: Vec<Origin>,
    /// `http.max_connections`.
    pub max_connections: usize,
    /// `http.max_body` in bytes.
    pub max_body: usize,
    /// `http.body_budget` in bytes.
    pub body_budget: usize,
    /// `http.max_header_bytes`.
    pub max_header_bytes: usize,
    /// `http.header_timeout`: for a request's head, and again for its body.
    pub header_timeout: Duration,
    /// `http.write_timeout`: for a peer that takes nothing.
    pub write_timeout: Duration,
    /// `http.linger`: for the rest of a refused request.
    pub linger: Duration,
    /// `transport.sse_keep_alive`: silence of a stream before a comment goes out.
    pub sse_keep_alive: Duration,
}

/// Hosts over HTTP: sessions and streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionSettings {
    /// `http.max_sessions`.
    pub most: usize,
    /// `http.session_idle`.
    pub idle: Duration,
    /// `http.session_record`: bytes that are kept of one session for the next daemon.
    pub record: usize,
    /// `http.stream_after`: an answer that takes longer becomes a stream of events.
    pub stream_after: Duration,
    /// `http.stream_queue`: events that wait for one reader.
    pub stream_queue: usize,
    /// `http.max_streams`: streams of a session's own.
    pub max_streams: usize,
    /// `http.retry`: what a host whose stream broke is asked to wait.
    pub retry: Duration,
    /// `http.resume_events`, `http.resume_bytes` and `http.resume_age`: what is kept of streams.
    pub keep: KeepLimits,
}

/// Calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSettings {
    /// `call.idle_timeout`.
    pub idle: Duration,
    /// `call.total_timeout`.
    pub total: Duration,
    /// `call.resend_limit`: how often a call that never reached an upstream is sent again.
    pub resend_limit: u32,
    /// `call.progress_queue`: progress notes of one call that wait; beyond it the newest wins.
    pub progress_queue: usize,
    /// `call.log_queue`: log messages during one call that wait; beyond it new ones are dropped.
    pub log_queue: usize,
    /// `call.repeat_memory`: failing calls of one host remembered to tell the third identical one.
    pub repeat_memory: usize,
    /// `call.handle_after`: a call that outlasts it is handed back as a handle; zero never.
    pub handle_after: Duration,
    /// `call.result_limit` in bytes: a longer result is stored; 0 never.
    pub result_limit: usize,
    /// `call.result_head` in bytes: what is given of such a result.
    pub result_head: usize,
    /// `call.media_limit` in bytes: a picture or a sound that stays in such a result.
    pub media_limit: usize,
}

/// Openings and lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamSettings {
    /// `upstream.protocol`.
    pub protocol: Preference,
    /// `upstream.era_cache`.
    pub era_cache: bool,
    /// `upstream.version_attempts`.
    pub version_attempts: u32,
    /// `upstream.probe_patience`.
    pub probe_patience: Duration,
    /// `upstream.handshake_timeout`.
    pub handshake: Duration,
    /// `upstream.list_timeout`.
    pub list: Duration,
    /// `upstream.list_max_pages`.
    pub list_max_pages: usize,
    /// `upstream.list_max_items`.
    pub list_max_items: usize,
    /// `upstream.relist_interval`: least time between two readings of a list that is not whole.
    pub relist_interval: Duration,
    /// `upstream.listen_reopen_delay` (U-43).
    pub listen_reopen: Duration,
    /// `upstream.list_parallel`: servers started at once only to read their lists.
    pub list_parallel: usize,
    /// `upstream.ping_timeout`.
    pub ping: Duration,
    /// `upstream.sse_reconnect_delay`: the rest before an event stream is opened again (U-39).
    pub sse_reconnect_delay: Duration,
    /// `upstream.sse_reconnect_attempts`: tries in a row that may come to nothing.
    pub sse_reconnect_attempts: u32,
    /// `upstream.sse_poll_interval`: how often a session's own stream is tried after those.
    pub sse_poll_interval: Duration,
    /// `upstream.sse_linger`: how long a stream may stay open once its request is answered.
    pub sse_linger: Duration,
    /// `upstream.end_timeout`: longest farewell to an HTTP session.
    pub end: Duration,
}

/// Remote servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSettings {
    /// `upstream.connect_timeout`.
    pub connect: Duration,
    /// `upstream.error_body` in bytes.
    pub error_body: usize,
    /// `upstream.redirects`.
    pub redirects: usize,
    /// `upstream.http_idle`.
    pub idle: Duration,
    /// `upstream.http_idle_connections`.
    pub idle_connections: usize,
    /// `upstream.tcp_keepalive`.
    pub tcp_keepalive: Duration,
    /// `upstream.sse_post_wait`.
    pub sse_post_wait: Duration,
    /// `tls.extra_ca`.
    pub extra_ca: Vec<PathBuf>,
    /// `proxy.http`; empty for what the environment says, `off` for none.
    pub http_proxy: Arc<str>,
    /// `proxy.https`, like it.
    pub https_proxy: Arc<str>,
    /// `proxy.no_proxy`; empty for what the environment says.
    pub no_proxy: Vec<String>,
}

/// Pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSettings {
    /// `pool.max`: instances per scope key, where the server has no `max` of its own.
    pub max: usize,
    /// `plumbing.restart_backoff_step` (2 s).
    pub backoff_step: Duration,
    /// `plumbing.restart_backoff_max` (30 s).
    pub backoff_max: Duration,
    /// `pool.sustained_uptime`: only after it the backoff starts again from its first step (F29).
    pub sustained_uptime: Duration,
    /// `pool.park_after`: failures in a row (short lives counted) after which the pool is parked.
    pub park_after: u32,
    /// `pool.fault_memory`: scope keys whose failures are remembered.
    pub fault_memory: usize,
    /// `pool.in_flight`: calls on one instance at once.
    pub in_flight: usize,
    /// `pool.queue`: callers waiting for one server at most.
    pub queue: usize,
    /// `pool.queue_timeout`: longest wait for a permit or a start.
    pub queue_timeout: Duration,
    /// `pool.idle_timeout`, where the server has none of its own; zero means never.
    pub idle: Duration,
}

/// Child processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSettings {
    /// `plumbing.stdio_drain_grace` (3 s).
    pub drain: Duration,
    /// `plumbing.term_grace`.
    pub term: Duration,
    /// `process.stderr_lines`.
    pub stderr_lines: usize,
    /// `process.stderr_line_bytes`.
    pub stderr_line_bytes: usize,
    /// `process.stderr_log_rate`, lines a second.
    pub stderr_log_rate: u32,
    /// `process.stderr_bytes`, bytes a second.
    pub stderr_bytes: usize,
    /// `process.noise_rate`, lines a second.
    pub noise_rate: usize,
    /// `process.noise_bytes`, bytes a second.
    pub noise_bytes: usize,
    /// `process.login_env_timeout`: the login shell is asked for its environment this long.
    pub login_env: Duration,
    /// `process.spawn_timeout`: from the start of a process to its first sign or its end.
    pub spawn: Duration,
}

/// The shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimSettings {
    /// `shim.autostart`.
    pub autostart: bool,
    /// `shim.grace` (30 s): how long calls wait for a daemon that is away.
    pub grace: Duration,
    /// `shim.redial_step` and `shim.redial_max`: the backoff of dialling.
    pub redial_step: Duration,
    /// See `redial_step`.
    pub redial_max: Duration,
    /// `shim.hold_frames`: frames held while the daemon is away.
    pub hold_frames: usize,
    /// `shim.hold_bytes`: bytes of them.
    pub hold_bytes: usize,
    /// `shim.end_grace`: how long answers may still come once the host has closed its side.
    pub end_grace: Duration,
    /// `shim.start_timeout`: how long a daemon that it started may take to answer.
    pub start: Duration,
}

/// The daemon itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonSettings {
    /// `events.ring`: events kept for late readers.
    pub events_ring: usize,
    /// `control.max_connections`.
    pub control_connections: usize,
    /// `control.max_body` in bytes.
    pub control_body: usize,
    /// `control.body_budget` in bytes.
    pub control_bodies: usize,
    /// `control.header_timeout`: how long a control connection may take over its request head.
    pub control_headers: Duration,
    /// `control.accept_pause`: after the system had no room for one more connection.
    pub accept_pause: Duration,
    /// `control.close_grace`: how long open answers may go on when the daemon stops.
    pub close_grace: Duration,
    /// `daemon.ask_timeout`: longest wait of one actor for another.
    pub ask: Duration,
    /// `daemon.stop_timeout`: longest stop in all.
    pub stop: Duration,
    /// `daemon.restart_intensity` failures of permanent actors within `daemon.restart_window` end it.
    pub restart_intensity: u32,
    /// See `restart_intensity`.
    pub restart_window: Duration,
    /// `daemon.workers`: threads that serve calls.
    pub workers: usize,
}

/// The command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CliSettings {
    /// `cli.spinner_delay`.
    pub spinner_delay: Duration,
    /// `cli.spinner_tick`.
    pub spinner_tick: Duration,
    /// `cli.answer_timeout`.
    pub answer: Duration,
    /// `cli.log_lines`.
    pub log_lines: usize,
}

impl Settings {
    /// The structs of the values in force; without servers.
    pub(super) fn of_values(resolved: &Resolved) -> Self {
        Self::of(&Values { resolved, read: RefCell::default() })
    }

    fn of(v: &Values<'_>) -> Self {
        Self {
            servers: Vec::new(),
            link: v.link(),
            host: v.host(),
            listen: v.listen(),
            http: v.http(),
            sessions: v.sessions(),
            call: v.call(),
            elicit: ElicitSettings::of(v),
            tasks: TaskSettings::of(v),
            exec: ExecSettings::of(v),
            artifacts: ArtifactSettings::of(v),
            scripts: ScriptSettings::of(v),
            upstream: v.upstream(),
            remote: v.remote(),
            pool: v.pool(),
            process: v.process(),
            shim: v.shim(),
            expose: ExposeSettings::of(v),
            search: v.search(),
            types: v.types(),
            config: ConfigSettings::of(v),
            daemon: v.daemon(),
            inside: InsideSettings::of(v),
            cli: CliSettings {
                spinner_delay: v.time("cli.spinner_delay"),
                spinner_tick: v.time("cli.spinner_tick"),
                answer: v.time("cli.answer_timeout"),
                log_lines: v.count("cli.log_lines"),
            },
        }
    }
}

/// Reads checked values by name. Names here and rows of the table are the same set, each with the
/// type asked for: `every_setting_is_read_with_its_type` proves it.
struct Values<'a> {
    resolved: &'a Resolved,
    read: RefCell<Vec<&'static str>>,
}

impl Values<'_> {
    fn value(&self, key: &'static str) -> Option<Value> {
        self.read.borrow_mut().push(key);
        self.resolved.get(key).map(|in_force| in_force.value.clone())
    }

    #[expect(clippy::panic, reason = "a test reads every setting by its type; see above")]
    fn time(&self, key: &'static str) -> Duration {
        match self.value(key) {
            Some(Value::Time(time)) => time,
            other => panic!("`{key}` is a time of the settings table, not {other:?}"),
        }
    }

    #[expect(clippy::panic, reason = "a test reads every setting by its type; see above")]
    fn number(&self, key: &'static str) -> u64 {
        match self.value(key) {
            Some(Value::Count(number) | Value::Size(number)) => number,
            other => panic!("`{key}` is a number of the settings table, not {other:?}"),
        }
    }

    #[expect(clippy::panic, reason = "a test reads every setting by its type; see above")]
    fn switch(&self, key: &'static str) -> bool {
        match self.value(key) {
            Some(Value::Switch(on)) => on,
            other => panic!("`{key}` is a switch of the settings table, not {other:?}"),
        }
    }

    #[expect(clippy::panic, reason = "a test reads every setting by its type; see above")]
    fn word<T>(&self, key: &'static str, of_word: impl Fn(&str) -> Option<T>) -> T {
        match self.value(key) {
            Some(Value::Word(word)) if let Some(value) = of_word(word) => value,
            other => panic!("`{key}` is a word of the settings table, not {other:?}"),
        }
    }

    fn count(&self, key: &'static str) -> usize {
        usize::try_from(self.number(key)).unwrap_or(usize::MAX)
    }

    fn small(&self, key: &'static str) -> u32 {
        u32::try_from(self.number(key)).unwrap_or(u32::MAX)
    }

    fn link(&self) -> LinkSettings {
        LinkSettings {
            max_frame: self.count("link.max_frame"),
            write_queue: self.count("link.write_queue"),
            write_queue_bytes: self.count("link.write_queue_bytes"),
            read_credits: self.count("link.read_credits"),
        }
    }

    fn host(&self) -> HostSettings {
        HostSettings {
            max_connections: self.count("host.max_connections"),
            max_in_flight: self.count("host.max_in_flight"),
            progress_interval: self.time("host.progress_interval"),
            progress_burst: self.count("host.progress_burst"),
            list_changed_delay: self.time("host.list_changed_delay"),
            max_subscriptions: self.count("host.max_subscriptions"),
            log_rate: self.count("host.log_rate"),
            drain: self.time("host.drain"),
        }
    }

    #[expect(clippy::panic, reason = "a test reads every setting by its type; see above")]
    fn text(&self, key: &'static str) -> Arc<str> {
        match self.value(key) {
            Some(Value::Text(text)) => text,
            other => panic!("`{key}` is a text of the settings table, not {other:?}"),
        }
    }

    #[expect(clippy::panic, reason = "a test reads every setting by its type; see above")]
    fn secret(&self, key: &'static str) -> Option<Secret> {
        match self.value(key) {
            Some(Value::Secret(secret)) => {
                Some(secret).filter(|secret| !secret.written().is_empty())
            }
            other => panic!("`{key}` is a secret of the settings table, not {other:?}"),
        }
    }

    /// Each was checked by its form when it was read.
    #[expect(clippy::panic, reason = "a test reads every setting by its type; see above")]
    fn list<T>(&self, key: &'static str, parse: impl Fn(&str) -> Option<T>) -> Vec<T> {
        match self.value(key) {
            Some(Value::List(texts)) => texts.iter().filter_map(|text| parse(text)).collect(),
            other => panic!("`{key}` is a list of the settings table, not {other:?}"),
        }
    }

    fn http(&self) -> HttpSettings {
        HttpSettings {
            listen: self.text("http.listen").parse().ok(),
            token: self.secret("http.token"),
            open: self.switch("http.open"),
            allowed_hosts: self.list("http.allowed_hosts", Authority::parse),
            allowed_origins: self.list("http.allowed_origins", Origin::parse),
            max_connections: self.count("http.max_connections"),
            max_body: self.count("http.max_body"),
            body_budget: self.count("http.body_budget"),
            max_header_bytes: self.count("http.max_header_bytes"),
            header_timeout: self.time("http.header_timeout"),
            write_timeout: self.time("http.write_timeout"),
            linger: self.time("http.linger"),
            sse_keep_alive: self.time("transport.sse_keep_alive"),
        }
    }

    fn sessions(&self) -> SessionSettings {
        SessionSettings {
            most: self.count("http.max_sessions"),
            idle: self.time("http.session_idle"),
            record: self.count("http.session_record"),
            stream_after: self.time("http.stream_after"),
            stream_queue: self.count("http.stream_queue"),
            max_streams: self.count("http.max_streams"),
            retry: self.time("http.retry"),
            keep: KeepLimits {
                events: self.count("http.resume_events"),
                bytes: self.count("http.resume_bytes"),
                age: self.time("http.resume_age"),
            },
        }
    }

    fn call(&self) -> CallSettings {
        CallSettings {
            idle: self.time("call.idle_timeout"),
            total: self.time("call.total_timeout"),
            resend_limit: self.small("call.resend_limit"),
            progress_queue: self.count("call.progress_queue"),
            log_queue: self.count("call.log_queue"),
            repeat_memory: self.count("call.repeat_memory"),
            handle_after: self.time("call.handle_after"),
            result_limit: self.count("call.result_limit"),
            result_head: self.count("call.result_head"),
            media_limit: self.count("call.media_limit"),
        }
    }

    fn upstream(&self) -> UpstreamSettings {
        UpstreamSettings {
            protocol: self.word("upstream.protocol", preference_of_word),
            era_cache: self.switch("upstream.era_cache"),
            version_attempts: self.small("upstream.version_attempts"),
            probe_patience: self.time("upstream.probe_patience"),
            handshake: self.time("upstream.handshake_timeout"),
            list: self.time("upstream.list_timeout"),
            list_max_pages: self.count("upstream.list_max_pages"),
            list_max_items: self.count("upstream.list_max_items"),
            relist_interval: self.time("upstream.relist_interval"),
            listen_reopen: self.time("upstream.listen_reopen_delay"),
            list_parallel: self.count("upstream.list_parallel"),
            ping: self.time("upstream.ping_timeout"),
            sse_reconnect_delay: self.time("upstream.sse_reconnect_delay"),
            sse_reconnect_attempts: self.small("upstream.sse_reconnect_attempts"),
            sse_poll_interval: self.time("upstream.sse_poll_interval"),
            sse_linger: self.time("upstream.sse_linger"),
            end: self.time("upstream.end_timeout"),
        }
    }

    fn remote(&self) -> RemoteSettings {
        RemoteSettings {
            connect: self.time("upstream.connect_timeout"),
            error_body: self.count("upstream.error_body"),
            redirects: self.count("upstream.redirects"),
            idle: self.time("upstream.http_idle"),
            idle_connections: self.count("upstream.http_idle_connections"),
            tcp_keepalive: self.time("upstream.tcp_keepalive"),
            sse_post_wait: self.time("upstream.sse_post_wait"),
            extra_ca: self.list("tls.extra_ca", |text| Some(PathBuf::from(text))),
            http_proxy: self.text("proxy.http"),
            https_proxy: self.text("proxy.https"),
            no_proxy: self.list("proxy.no_proxy", |text| Some(text.to_owned())),
        }
    }

    fn pool(&self) -> PoolSettings {
        PoolSettings {
            max: self.count("pool.max"),
            backoff_step: self.time("plumbing.restart_backoff_step"),
            backoff_max: self.time("plumbing.restart_backoff_max"),
            sustained_uptime: self.time("pool.sustained_uptime"),
            park_after: self.small("pool.park_after"),
            fault_memory: self.count("pool.fault_memory"),
            in_flight: self.count("pool.in_flight"),
            queue: self.count("pool.queue"),
            queue_timeout: self.time("pool.queue_timeout"),
            idle: self.time("pool.idle_timeout"),
        }
    }

    fn process(&self) -> ProcessSettings {
        ProcessSettings {
            drain: self.time("plumbing.stdio_drain_grace"),
            term: self.time("plumbing.term_grace"),
            stderr_lines: self.count("process.stderr_lines"),
            stderr_line_bytes: self.count("process.stderr_line_bytes"),
            stderr_log_rate: self.small("process.stderr_log_rate"),
            stderr_bytes: self.count("process.stderr_bytes"),
            noise_rate: self.count("process.noise_rate"),
            noise_bytes: self.count("process.noise_bytes"),
            login_env: self.time("process.login_env_timeout"),
            spawn: self.time("process.spawn_timeout"),
        }
    }

    fn shim(&self) -> ShimSettings {
        ShimSettings {
            autostart: self.switch("shim.autostart"),
            grace: self.time("shim.grace"),
            redial_step: self.time("shim.redial_step"),
            redial_max: self.time("shim.redial_max"),
            hold_frames: self.count("shim.hold_frames"),
            hold_bytes: self.count("shim.hold_bytes"),
            end_grace: self.time("shim.end_grace"),
            start: self.time("shim.start_timeout"),
        }
    }

    fn daemon(&self) -> DaemonSettings {
        DaemonSettings {
            events_ring: self.count("events.ring"),
            control_connections: self.count("control.max_connections"),
            control_body: self.count("control.max_body"),
            control_bodies: self.count("control.body_budget"),
            control_headers: self.time("control.header_timeout"),
            accept_pause: self.time("control.accept_pause"),
            close_grace: self.time("control.close_grace"),
            ask: self.time("daemon.ask_timeout"),
            stop: self.time("daemon.stop_timeout"),
            restart_intensity: self.small("daemon.restart_intensity"),
            restart_window: self.time("daemon.restart_window"),
            workers: self.count("daemon.workers"),
        }
    }
}

#[cfg(test)]
mod tests;
