//! Processes: wrappers, grandchildren, the deaf and the stopped (F30, F31), and their stderr (F32).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::setup::{self, call};
use crate::support::procs;
use crate::support::raw_host::text_of;
use crate::{SOON, eventually};

/// A server with these habits works, and after `mcpx stop` nothing of it is left.
async fn leaves_nothing(args: &str) {
    let daemon = setup::start(|daemon| vec![daemon.fake("up").args(args)], "");
    let mut host = setup::host(&daemon, "2025-06-18").await;
    for _ in 0..2 {
        let answer = call(&mut host, "up", "echo", json!({ "text": "x" })).await;
        assert_eq!(text_of(&answer), "x", "{args}");
    }
    assert_eq!(daemon.fake("up").starts(), 1, "{args}: the end of a wrapper is not the server's");
    let shim = host.pid().unwrap();
    let ours = || {
        let mut found = daemon.marked();
        found.retain(|process| process.pid != shim && process.name != "mcpx");
        found
    };
    assert!(!ours().is_empty(), "{args}");
    let began = Instant::now();
    daemon.cli(&["stop", "up"]).await.expect_code(0);
    eventually!(SOON, ours().is_empty(), "{args}: {:?}", ours());
    assert!(began.elapsed() < Duration::from_secs(3), "{args}: {:?}", began.elapsed());
    let pid = daemon.pid().unwrap();
    eventually!(SOON, procs::zombies(pid).is_empty(), "{args}: {:?}", procs::zombies(pid));
}

#[tokio::test]
async fn f30_grandchildren() {
    leaves_nothing("--grandchild").await;
}

#[tokio::test]
async fn f30_a_grandchild_that_holds_the_pipe() {
    leaves_nothing("--grandchild-pipe").await;
}

#[tokio::test]
async fn f30_a_grandchild_in_a_session_of_its_own() {
    leaves_nothing("--grandchild-setsid").await;
}

#[tokio::test]
async fn f30_wrappers() {
    leaves_nothing("--wrapper").await;
    leaves_nothing("--wrapper-wait --grandchild").await;
}

#[tokio::test]
async fn f31_deaf_to_everything() {
    leaves_nothing("--ignore-term --ignore-eof --grandchild-setsid").await;
}

/// F30: `sh -c 'sleep 1000 & exec server'`.
#[tokio::test]
async fn f30_a_shell_with_something_in_the_background() {
    let daemon = setup::start(
        |daemon| {
            let path = daemon.path("launch.sh");
            let exe = env!("CARGO_BIN_EXE_fakemcp");
            crate::script(&path, &format!("#!/bin/sh\nsleep 1000 &\nexec {exe} \"$@\"\n"));
            let mut fake = daemon.fake("up").args("--tools echo");
            fake.exe = path;
            vec![fake]
        },
        "",
    );
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let sleeps = || daemon.marked().iter().filter(|process| process.name == "sleep").count();
    assert_eq!(sleeps(), 1);
    daemon.cli(&["stop", "up"]).await.expect_code(0);
    eventually!(SOON, daemon.marked().is_empty(), "{:?}", daemon.marked());
}

/// F31: stopped by a signal: it is continued and ended, or killed.
#[tokio::test]
async fn f31_stopped_by_sigstop() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], "");
    let mut host = setup::host(&daemon, "2025-06-18").await;
    call(&mut host, "up", "echo", json!({})).await;
    let wanted = json!({ "namespace": "up", "tool": "stop_self", "arguments": {} });
    host.start_call(90, "mcpx_call", wanted).await;
    let child = crate::pids(&daemon, "up").await[0];
    eventually!(SOON, procs::one(child).is_some_and(|process| process.state == 'T'));
    daemon.cli(&["stop", "up"]).await.expect_code(0);
    eventually!(SOON, !procs::alive(child));
    assert!(setup::failed(&host.expect_response(90).await));
}

/// A crash leaves no grandchild either, and no zombie.
#[tokio::test]
async fn f30_a_crash_takes_its_grandchildren_along() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], "");
    let mut host = setup::host(&daemon, "2025-06-18").await;
    for setsid in [false, true] {
        call(&mut host, "up", "spawn", json!({ "setsid": setsid })).await;
    }
    let sleepers = || {
        daemon
            .marked()
            .iter()
            .filter(|one| one.name == "fakemcp-sleeper" || one.name == "fakemcp")
            .count()
    };
    assert!(sleepers() >= 2, "{:?}", daemon.marked());
    call(&mut host, "up", "die", json!({})).await;
    eventually!(SOON, sleepers() == 0, "{:?}", daemon.marked());
    let pid = daemon.pid().unwrap();
    eventually!(SOON, procs::zombies(pid).is_empty());
}

/// F32: the last lines of stderr are kept in a ring, shown by `mcpx logs`, and bounded.
#[tokio::test]
async fn f32_stderr_is_kept_in_a_ring() {
    let daemon = setup::start(
        |daemon| vec![daemon.fake("up").args("--stderr-text first-words")],
        "process.stderr_lines = 20\nprocess.stderr_line_bytes = \"100B\"",
    );
    let mut host = setup::host(&daemon, "2025-06-18").await;
    call(&mut host, "up", "echo", json!({})).await;
    let logs = daemon.cli(&["logs", "up"]).await.expect_code(0).stdout;
    assert!(logs.contains("first-words"), "{logs}");
    for kind in ["lines", "cr", "binary"] {
        call(&mut host, "up", "stderr", json!({ "bytes": 100_000, "kind": kind })).await;
    }
    eventually!(SOON, {
        let logs = daemon.cli(&["logs", "up", "--json"]).await.expect_code(0).json();
        let lines = logs["lines"].as_array().unwrap().clone();
        // And the one that is being written.
        assert!(lines.len() <= 21, "{}", lines.len());
        assert!(lines.iter().all(|line| line["text"].as_str().unwrap().len() <= 200), "{lines:?}");
        lines.len() >= 20
    });
}
