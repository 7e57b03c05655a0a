//! The real binary from outside: commands, the control API, the daemon's life, its processes, and
//! the shim that outlives it. Few and slow; everything else is tested nearer to its place.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the ban-list is for the product")]
#![allow(clippy::too_many_lines, reason = "a story reads best in one piece")]

#[path = "../support/setup.rs"]
mod setup;
#[path = "../support/mod.rs"]
mod support;

mod artifacts;
mod attribution;
mod commands;
mod configuration;
mod daemon;
mod demo;
mod elicit;
mod environment;
mod exec;
mod first_run;
mod follow;
mod gap;
mod hosts;
mod http_door;
mod http_limits;
mod inside;
mod killed;
mod offers;
mod orphans;
mod parity;
mod pool;
mod processes;
mod profiles;
mod sandbox;
mod scopes;
mod scripts;
mod search;
mod settings;
mod shim;
mod streams;
mod tasks;
mod trust;
mod watch;

use std::time::Duration;

use serde_json::Value;

use support::daemon::Daemon;
use support::procs;

/// Long enough for anything that should happen by itself.
const SOON: Duration = Duration::from_secs(8);

/// `mcpx status --json`.
async fn status(daemon: &Daemon) -> Value {
    daemon.cli(&["status", "--json"]).await.expect_code(0).json()
}

/// One server in it.
async fn server(daemon: &Daemon, key: &str) -> Value {
    let status = status(daemon).await;
    let servers = status["servers"].as_array().unwrap();
    servers.iter().find(|one| one["server"] == key).unwrap_or_else(|| panic!("{status}")).clone()
}

/// The processes of one server's instances.
async fn pids(daemon: &Daemon, key: &str) -> Vec<u32> {
    let server = server(daemon, key).await;
    let instances = server["instances"].as_array().unwrap();
    instances.iter().filter_map(|one| u32::try_from(one["pid"].as_u64()?).ok()).collect()
}

/// The arguments a process was started with.
fn command_line(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The daemons among this test's processes, whoever started them.
fn daemons(daemon: &Daemon) -> Vec<u32> {
    let mut found: Vec<u32> = daemon.marked().iter().map(|process| process.pid).collect();
    found.extend(daemon.pid());
    found.retain(|pid| command_line(*pid).iter().any(|word| word == "daemon"));
    found
}

/// Ends a daemon that a command started, and waits until it is gone.
async fn stop_daemon(daemon: &Daemon) {
    let running = daemons(daemon);
    daemon.cli(&["stop", "--daemon"]).await.expect_code(0);
    eventually!(SOON, running.iter().all(|pid| !procs::alive(*pid)), "the daemon stays");
}

/// Writes an executable script.
fn script(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
