//! The shim that starts the daemon by itself (F47, H-33, H-34), from outside.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::setup::{self, call, failed, reason};
use crate::support::procs;
use crate::support::raw_host::text_of;
use crate::{SOON, daemons, eventually, stop_daemon};

/// F47, H-34: a daemon on its way out holds its folder but no longer listens. A call in that gap is
/// not told that a daemon runs already: the next one waits for the folder, and the call for it.
#[tokio::test]
async fn f47_the_next_daemon_waits_for_the_end_of_the_last() {
    let daemon = setup::prepare();
    let slow_to_end = daemon.fake("up").args("--ignore-eof --ignore-term");
    let more = "plumbing.stdio_drain_grace = \"500ms\"\nplumbing.term_grace = \"500ms\"";
    daemon.write_config(&[slow_to_end], &setup::quick(more));
    let mut host = setup::host(&daemon, "2025-06-18").await;
    assert_eq!(text_of(&call(&mut host, "up", "echo", json!({ "text": "a" })).await), "a");
    let old = daemons(&daemon);
    let stopped = daemon.cli(&["stop", "--daemon"]);
    let gap = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(old.iter().all(|pid| procs::alive(*pid)), "the gap is over too soon to be one");
        call(&mut host, "up", "echo", json!({ "text": "b" })).await
    };
    let (_, answer) = tokio::join!(stopped, gap);
    assert_eq!(text_of(&answer), "b", "{answer}");
    eventually!(SOON, old.iter().all(|pid| !procs::alive(*pid)), "the old one stays");
    // Where the old one has answered, the next is started by the shim that dials again.
    eventually!(SOON, daemons(&daemon).len() == 1);
    drop(host);
    stop_daemon(&daemon).await;
}

/// A configuration that is refused is told to the host at once, with the place of the mistake; when
/// it has been mended, the same shim works.
#[tokio::test]
async fn f47_a_refused_configuration_reaches_the_host() {
    let daemon = setup::prepare();
    std::fs::write(daemon.config_path(), "[call]\nidle_timeot = \"1m\"\n").unwrap();
    let mut host = daemon.shim(&[]);
    let began = Instant::now();
    let answer = host.initialize_only("2025-06-18").await;
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(message.contains("idle_timeot") && message.contains(":2:1"), "{message}");
    let told = host.request("tools/call", json!({ "name": "mcpx_status" })).await;
    assert!(failed(&told), "{told}");
    assert_eq!(reason(&told), "unavailable");

    daemon.write_config(&[daemon.fake("up")], &setup::quick(""));
    setup::open(&mut host, "2025-06-18").await;
    assert_eq!(text_of(&call(&mut host, "up", "echo", json!({ "text": "a" })).await), "a");
    drop(host);
    stop_daemon(&daemon).await;
}

/// H-33: a host that writes everything and closes its side at once, with no daemon running, still
/// gets its answers.
#[tokio::test]
async fn h33_all_of_the_input_at_once() {
    let daemon = setup::prepare();
    daemon.write_config(&[], &setup::quick("shim.end_grace = \"10s\""));
    let mut host = daemon.shim(&[]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "brief", "version": "1" } } });
    host.send(&hello).await;
    host.notify("notifications/initialized", Value::Null).await;
    host.start_call(
        2,
        "mcpx_call",
        json!({
        "namespace": "demo", "tool": "add", "arguments": { "a": 40, "b": 2 } }),
    )
    .await;
    host.close_input().await;
    assert!(host.expect_response(1).await["result"].is_object());
    let answer = host.expect_response(2).await;
    assert_eq!(answer["result"]["structuredContent"], json!({ "sum": 42 }), "{answer}");
    let began = Instant::now();
    assert!(host.wait_exit().await.success());
    assert!(began.elapsed() < Duration::from_secs(1), "nothing is left to wait for");
    stop_daemon(&daemon).await;
}
