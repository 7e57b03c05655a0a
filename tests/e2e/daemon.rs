//! The daemon's life: stopping in time and in order, with everything it started.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::setup;
use crate::support::procs;
use crate::{SOON, eventually, pids};

/// F31: servers that heed nothing are stopped in parallel, within the graces, and reaped.
#[tokio::test]
async fn f31_stubborn_servers_stop_in_parallel() {
    let mut daemon = setup::start(
        |daemon| {
            (0..4)
                .map(|number| {
                    daemon
                        .fake(&format!("up{number}"))
                        .args("--tools echo --ignore-term --ignore-eof --grandchild")
                })
                .collect()
        },
        "plumbing.stdio_drain_grace = \"400ms\"\nplumbing.term_grace = \"400ms\"",
    );
    for number in 0..4 {
        let name = format!("up{number}");
        daemon.cli(&["call", &name, "echo", "text=x"]).await.expect_code(0);
    }
    assert!(daemon.marked().len() >= 8, "{:?}", daemon.marked());
    let took = daemon.stop();
    assert!(took < Duration::from_millis(2500), "one after the other: {took:?}");
    assert!(daemon.marked().is_empty(), "{:?}", daemon.marked());
}

/// U-54: the order is end of input, then SIGTERM; a decent server ends by itself at the first.
#[tokio::test]
async fn u54_decent_servers_end_at_the_end_of_input() {
    let mut daemon = setup::start(
        |daemon| vec![daemon.fake("up").args("--tools echo")],
        "plumbing.stdio_drain_grace = \"5s\"",
    );
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let took = daemon.stop();
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(daemon.fake("up").ledger("eof").len(), 1, "it saw the end of its input");
}

/// Hosts' calls in flight may finish for `host.drain`; then the rest is told.
#[tokio::test]
async fn calls_in_flight_may_finish() {
    let mut daemon = setup::start(|daemon| vec![daemon.fake("up")], "host.drain = \"3s\"");
    let mut host = setup::host(&daemon, "2025-11-25").await;
    let wanted = json!({ "namespace": "up", "tool": "sleep", "arguments": { "ms": 500 } });
    host.start_call(70, "mcpx_call", wanted).await;
    eventually!(SOON, !daemon.fake("up").transcript().with_method("tools/call").is_empty());
    let stopping = tokio::task::spawn_blocking(move || {
        let took = daemon.stop();
        (daemon, took)
    });
    let answer = host.expect_response(70).await;
    assert_eq!(crate::support::raw_host::text_of(&answer), "slept", "{answer}");
    drop(host);
    let (_daemon, took) = stopping.await.unwrap();
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// SIGINT and SIGTERM end it alike; SIGHUP reads the configuration again.
#[tokio::test]
async fn signals() {
    let mut daemon = setup::start(|daemon| vec![daemon.fake("up").args("--tools echo")], "");
    daemon.write_config(
        &[daemon.fake("up").args("--tools echo"), daemon.fake("two")],
        &setup::quick(""),
    );
    procs::signal(daemon.pid().unwrap(), Signal::SIGHUP);
    eventually!(SOON, crate::status(&daemon).await["servers"].as_array().unwrap().len() == 2);
    procs::signal(daemon.pid().unwrap(), Signal::SIGINT);
    let pid = daemon.pid().unwrap();
    eventually!(SOON, !procs::alive(pid));
    daemon.stop();
    assert!(!daemon.socket().exists(), "the socket is taken away");
}

/// `mcpx stop NAME` and `start`: refused in between, with what to run.
#[tokio::test]
async fn stop_and_start_a_server() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up").args("--tools echo")], "");
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let before = pids(&daemon, "up").await;
    daemon.cli(&["stop", "up"]).await.expect_code(0);
    eventually!(SOON, before.iter().all(|pid| !procs::alive(*pid)));
    let output = daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(1);
    assert!(format!("{output:?}").contains("mcpx start up"), "{output:?}");
    assert_eq!(crate::server(&daemon, "up").await["state"], "stopped");
    daemon.cli(&["start", "up"]).await.expect_code(0);
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let began = Instant::now();
    daemon.cli(&["restart", "up"]).await.expect_code(0);
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_ne!(pids(&daemon, "up").await, before);
}
