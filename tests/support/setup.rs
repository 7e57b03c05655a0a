//! The short way from a list of fakes to a running daemon and a host that is through its opening.
//!
//! Needs both executables, so only integration tests can take it in.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(unreachable_pub, reason = "a binary has no outside; `pub` marks what tests may use")]

use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::raw_host::RawHost;
use crate::support::raw_http::HttpHost;
use crate::support::schema::MODERN;

/// Limits that are made for people, shortened: no test waits for them on purpose unless it says so.
const QUICK: &str = r#"
upstream.probe_patience = "400ms"
plumbing.stdio_drain_grace = "300ms"
plumbing.term_grace = "300ms"
plumbing.restart_backoff_step = "50ms"
plumbing.restart_backoff_max = "200ms"
host.drain = "500ms"
shim.end_grace = "300ms"
host.list_changed_delay = "50ms"
config.watch = false
expose.list_wait = "5s"
"#;

/// Folders for a daemon; nothing is started.
pub fn prepare() -> Daemon {
    Daemon::prepare(env!("CARGO_BIN_EXE_mcpx"), env!("CARGO_BIN_EXE_fakemcp"))
}

/// A daemon in front of these fakes. `more` holds settings, one a line with their whole name
/// (`call.idle_timeout = "1s"`), then tables, if any.
pub fn start(fakes: impl Fn(&Daemon) -> Vec<Fake>, more: &str) -> Daemon {
    let mut daemon = prepare();
    let fakes = fakes(&daemon);
    daemon.write_config(&fakes, &quick(more));
    daemon.launch();
    daemon
}

/// `more` on top of the shortened limits, as one configuration text.
pub fn quick(more: &str) -> String {
    let (settings, tables) = more.find("\n[").map_or((more, ""), |at| more.split_at(at));
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let all: Vec<&str> = QUICK.lines().chain(settings.lines()).collect();
    // What is said later wins, as in the layers of mcpx itself; TOML would refuse it.
    let last = |at: usize| !all[at + 1..].iter().any(|later| key(later) == key(all[at]));
    let lines: Vec<&str> = (0..all.len()).filter(|at| last(*at)).map(|at| all[at]).collect();
    format!("{}\n{tables}", lines.join("\n"))
}

/// Every tool of every server under its own name, `<namespace>_<tool>`.
pub const PASS: &str = "expose.mode = \"passthrough\"";

/// A host of this revision behind a shim, ready to ask.
pub async fn host(daemon: &Daemon, revision: &str) -> RawHost {
    let mut host = daemon.shim(&[]);
    open(&mut host, revision).await;
    host
}

/// A host of this revision over HTTP, ready to ask.
pub async fn http_host(daemon: &Daemon, revision: &str) -> HttpHost {
    let mut host = http_stranger(daemon).await;
    host.open(revision).await;
    host
}

/// A host over HTTP that has the token, where there is one, and has said nothing.
pub async fn http_stranger(daemon: &Daemon) -> HttpHost {
    let (url, token) = daemon.over_http().await;
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("no address: {url:?}"));
    let (address, path) = rest.split_once('/').unwrap();
    let mut host = HttpHost::at(address.parse().unwrap(), &format!("/{path}"));
    if !token.is_empty() {
        host.headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    host
}

/// The daemon was started again: the same host asks it, wherever it listens now.
pub async fn follow(host: &mut HttpHost, daemon: &Daemon) {
    let (url, _) = daemon.over_http().await;
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("no address: {url:?}"));
    host.move_to(rest.split_once('/').unwrap().0.parse().unwrap());
}

/// The opening of this revision: the handshake, or nothing.
pub async fn open(host: &mut RawHost, revision: &str) {
    if revision == MODERN {
        host.use_modern();
    } else {
        assert_eq!(host.initialize(revision).await["protocolVersion"], revision);
    }
}

/// `mcpx_call` with these arguments; the whole answer.
pub async fn call(host: &mut RawHost, namespace: &str, tool: &str, arguments: Value) -> Value {
    let wanted = json!({ "namespace": namespace, "tool": tool, "arguments": arguments });
    host.call("mcpx_call", wanted).await
}

/// The names in a list of tools.
pub fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

/// The reason that mcpx gives in a tool result of its own (product.md 7).
pub fn reason(answer: &Value) -> &str {
    answer["result"]["_meta"]["dev.mcpx/reason"].as_str().unwrap_or_default()
}

/// True for a tool result that says that something went wrong.
pub fn failed(answer: &Value) -> bool {
    answer["result"]["isError"] == true
}

/// The tool of this name in a list.
pub fn find<'a>(tools: &'a [Value], name: &str) -> &'a Value {
    tools
        .iter()
        .find(|tool| tool["name"] == name)
        .unwrap_or_else(|| panic!("no tool {name} among {:?}", names(tools)))
}
