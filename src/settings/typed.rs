//! Settings as the rest of the program receives them: one narrow struct for each need.

use std::sync::Arc;
use std::time::Duration;

use super::servers::{ExposeMode, ServerDef};
use crate::protocol::session::probe::Preference;

/// Everything that is in force, resolved and checked. Immutable; a change makes a new one.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Upstreams, in the order of the files. Only `demo` where none is configured.
    pub servers: Vec<Arc<ServerDef>>,
    /// Limits of links.
    pub link: LinkSettings,
    /// Host connections.
    pub host: HostSettings,
    /// Calls.
    pub call: CallSettings,
    /// Openings and lists.
    pub upstream: UpstreamSettings,
    /// Pools: backoff, parking, queues, idle stop.
    pub pool: PoolSettings,
    /// Child processes.
    pub process: ProcessSettings,
    /// The shim.
    pub shim: ShimSettings,
    /// What hosts see.
    pub expose: ExposeSettings,
    /// Events, logs and the daemon itself.
    pub daemon: DaemonSettings,
}

/// Limits of every link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSettings {
    /// `link.max_frame` in bytes (64 MiB).
    pub max_frame: usize,
    /// `link.write_queue` in frames.
    pub write_queue: usize,
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
    /// `host.list_changed_delay`: changes are gathered for this long before a host is told (F38).
    pub list_changed_delay: Duration,
    /// `host.drain`: how long hosts' requests may go on when the daemon stops.
    pub drain: Duration,
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
    /// `call.repeat_memory`: failing calls of one host remembered to tell the third identical one.
    pub repeat_memory: usize,
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
    /// `upstream.ping_timeout`.
    pub ping: Duration,
}

/// Pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSettings {
    /// `plumbing.restart_backoff_step` (2 s).
    pub backoff_step: Duration,
    /// `plumbing.restart_backoff_max` (30 s).
    pub backoff_max: Duration,
    /// `pool.sustained_uptime`: only after it the backoff starts again from its first step (F29).
    pub sustained_uptime: Duration,
    /// `pool.park_after`: failures in a row (short lives counted) after which the pool is parked.
    pub park_after: u32,
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
    /// `process.login_env_timeout`: the login shell is asked for its environment this long.
    pub login_env: Duration,
    /// `process.spawn_timeout`: from the start of a process to its first sign or its end.
    pub spawn: Duration,
}

/// The shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// `shim.start_timeout`: how long a daemon that it started may take to answer.
    pub start: Duration,
}

/// What hosts see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExposeSettings {
    /// `expose.mode`.
    pub mode: ExposeMode,
    /// `expose.ops`.
    pub ops: bool,
    /// `expose.name_limit` (64).
    pub name_limit: usize,
    /// `expose.list_wait` (2 s).
    pub list_wait: Duration,
    /// `expose.page`: tools on one page of `mcpx_namespaces`.
    pub page: usize,
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
    /// `control.header_timeout`: how long a control connection may take over its request head.
    pub control_headers: Duration,
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
