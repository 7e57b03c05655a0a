//! Who shares an instance (P-01, P-09, F33), and for how long.

use std::time::Duration;

use serde_json::json;

use crate::setup::{self, call};
use crate::support::raw_host::text_of;
use crate::{SOON, eventually, pids};

async fn pid(host: &mut crate::support::raw_host::RawHost) -> String {
    text_of(&call(host, "up", "pid", json!({})).await)
}

/// P-01: who shares with whom, for each scope.
#[tokio::test]
async fn p01_scopes() {
    for (scope, same_project, other_project, again) in [
        ("global", true, true, true),
        ("project", true, false, true),
        ("session", false, false, true),
        ("call", false, false, false),
    ] {
        let daemon = setup::start(
            |daemon| {
                vec![daemon.fake("up").args("--tools pid").line(format!("scope = \"{scope}\""))]
            },
            "",
        );
        let elsewhere = daemon.path("notes");
        let mut first = setup::host(&daemon, "2025-06-18").await;
        let mut second = setup::host(&daemon, "2025-06-18").await;
        let mut third = daemon.shim(&["--project", elsewhere.to_str().unwrap()]);
        third.initialize("2025-06-18").await;
        let one = pid(&mut first).await;
        assert_eq!(one == pid(&mut first).await, again, "{scope}");
        assert_eq!(one == pid(&mut second).await, same_project, "{scope}");
        assert_eq!(one == pid(&mut third).await, other_project, "{scope}");
        drop((first, second, third));
        // What belonged to a session or a call leaves with it.
        if ["session", "call"].contains(&scope) {
            eventually!(SOON, pids(&daemon, "up").await.is_empty(), "{scope}");
            eventually!(SOON, daemon.descendants().is_empty(), "{scope}");
        }
    }
}

/// F33: twenty hosts in one moment, one process.
#[tokio::test]
async fn f33_twenty_hosts_at_once() {
    let daemon =
        setup::start(|daemon| vec![daemon.fake("up").args("--tools pid --start-delay 200")], "");
    let mut hosts: Vec<_> = (0..20).map(|_| daemon.shim(&[])).collect();
    for host in &mut hosts {
        let wanted = json!({ "namespace": "up", "tool": "pid", "arguments": {} });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "x", "version": "1" } } });
        host.send(&hello).await;
        host.start_call(2, "mcpx_call", wanted).await;
    }
    let mut seen = std::collections::BTreeSet::new();
    for host in &mut hosts {
        host.expect_response(1).await;
        seen.insert(text_of(&host.expect_response(2).await));
    }
    assert_eq!((seen.len(), daemon.fake("up").starts()), (1, 1), "{seen:?}");
}

/// F33: hosts that leave while a server starts, and a configuration that changes meanwhile, orphan
/// nothing.
#[tokio::test]
async fn f33_leaving_and_changing_while_starting() {
    let daemon =
        setup::start(|daemon| vec![daemon.fake("up").args("--tools pid --start-delay 700")], "");
    let mut host = setup::host(&daemon, "2025-06-18").await;
    let wanted = json!({ "namespace": "up", "tool": "pid", "arguments": {} });
    host.start_call(5, "mcpx_call", wanted.clone()).await;
    eventually!(SOON, daemon.fake("up").starts() == 1);
    drop(host);
    let mut host = setup::host(&daemon, "2025-06-18").await;
    host.start_call(5, "mcpx_call", wanted).await;
    daemon.write_config(
        &[daemon.fake("up").args("--tools pid,echo --start-delay 100")],
        &setup::quick(""),
    );
    daemon.cli(&["reload"]).await.expect_code(0);
    // Whichever generation it meets, it gets one answer.
    let answer = host.expect_response(5).await;
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(text_of(&call(&mut host, "up", "echo", json!({ "text": "new" })).await), "new");
    eventually!(SOON, daemon.descendants().len() == 1, "{:?}", daemon.descendants());
}

/// `max`: so many instances of a key, and no more.
#[tokio::test]
async fn p02_max_instances() {
    let daemon = setup::start(
        |daemon| {
            vec![
                daemon
                    .fake("up")
                    .args("--tools pid,sleep")
                    .line("scope = \"project\"")
                    .line("max = 3"),
            ]
        },
        "pool.in_flight = 1",
    );
    let mut host = setup::host(&daemon, "2025-06-18").await;
    let wanted = json!({ "namespace": "up", "tool": "sleep", "arguments": { "ms": 500 } });
    for id in 100..106 {
        host.start_call(id, "mcpx_call", wanted.clone()).await;
    }
    for id in 100..106 {
        assert_eq!(text_of(&host.expect_response(id).await), "slept");
    }
    assert_eq!(daemon.fake("up").starts(), 3);
}

/// P-09: an idle server is stopped, and started again by the next call; a call keeps it awake.
#[tokio::test]
async fn p09_idle_servers_are_stopped() {
    let daemon = setup::start(
        |daemon| {
            vec![daemon.fake("up").args("--tools echo,sleep").line("idle_timeout = \"400ms\"")]
        },
        "",
    );
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let slept = daemon.cli(&["call", "up", "sleep", "ms:=900"]).await.expect_code(0);
    assert_eq!(slept.stdout.trim(), "slept");
    assert_eq!(daemon.fake("up").starts(), 1, "a call in flight is no idleness");
    eventually!(SOON, daemon.descendants().is_empty(), "{:?}", daemon.descendants());
    // Health and status pages do not count as use.
    let state = crate::server(&daemon, "up").await;
    assert_eq!(state["state"], "idle", "{state}");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(daemon.fake("up").starts(), 1);
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    assert_eq!(daemon.fake("up").starts(), 2);
}
