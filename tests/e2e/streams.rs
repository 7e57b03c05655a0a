//! What goes on and on: logs, events, progress of calls; and the shim's own cost.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::setup::{self, call};
use crate::support::daemon::Daemon;
use crate::support::procs;

fn follow(daemon: &Daemon, words: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = Command::from(daemon.command(words));
    command.stdout(Stdio::piped()).stdin(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

async fn line_with(lines: &mut Lines<BufReader<ChildStdout>>, word: &str) {
    let found = timeout(Duration::from_secs(8), async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(word) {
                return true;
            }
        }
        false
    });
    assert_eq!(found.await, Ok(true), "no line with {word}");
}

/// `mcpx logs -f` goes on with new lines.
#[tokio::test]
async fn logs_follow() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up").args("--stderr-text early")], "");
    let mut host = setup::host(&daemon, "2025-06-18").await;
    call(&mut host, "up", "echo", json!({})).await;
    let (_child, mut lines) = follow(&daemon, &["logs", "up", "-f"]);
    line_with(&mut lines, "early").await;
    call(&mut host, "up", "stderr", json!({ "bytes": 500 })).await;
    line_with(&mut lines, "by the thousand").await;
}

/// `mcpx events -f` goes on with new events, and with JSON a line each.
#[tokio::test]
async fn events_follow() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], "");
    let (_child, mut lines) = follow(&daemon, &["events", "-f"]);
    let (_other, mut json_lines) = follow(&daemon, &["events", "-f", "--json"]);
    line_with(&mut lines, "daemon.ready").await;
    line_with(&mut json_lines, "\"kind\":\"daemon.ready\"").await;
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    line_with(&mut lines, "server.started").await;
    line_with(&mut json_lines, "\"kind\":\"server.started\"").await;
}

/// `/v1/call` with progress is a stream: progress, then the result.
#[tokio::test]
async fn calls_with_progress() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], "");
    let body = json!({ "namespace": "up", "tool": "slow", "progress": true,
        "arguments": { "ms": 300, "steps": 3 } });
    let answer = daemon.http("POST", "/v1/call", Some(&body)).await;
    assert_eq!(answer.status, 200);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(answer.head.to_ascii_lowercase().contains("text/event-stream"), "{}", answer.head);
    let progress = text.find("event: progress").unwrap_or_else(|| panic!("{text}"));
    let result = text.find("event: result").unwrap_or_else(|| panic!("{text}"));
    assert!(progress < result && text[result..].contains("done in 3 steps"), "{text}");
}

/// A command that is interrupted gives its call up.
#[tokio::test]
async fn an_interrupted_command_cancels_its_call() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], "");
    let mut command = Command::from(daemon.command(&["call", "up", "slow", "ms=60000"]));
    command.stdout(Stdio::null()).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    let up = daemon.fake("up");
    crate::eventually!(crate::SOON, !up.transcript().with_method("tools/call").is_empty());
    child.kill().await.unwrap();
    crate::eventually!(crate::SOON, !up.ledger("stopped").is_empty());
}

/// A shim is ready to answer soon after its start, and small (issue 2, 6). The debug build is larger
/// and slower than what people run; benches hold the real targets.
#[tokio::test]
async fn a_shim_is_quick_and_small() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up").args("--tools echo")], "");
    let _warm = setup::host(&daemon, "2025-06-18").await;
    let began = Instant::now();
    let host = setup::host(&daemon, "2025-06-18").await;
    assert!(began.elapsed() < Duration::from_millis(600), "{:?}", began.elapsed());
    let (resident, _) = procs::memory_kib(host.pid().unwrap()).unwrap();
    assert!(resident < 60_000, "{resident} KiB");
}
