//! `kill -9` of the daemon: the decent children end at their end of input, the next start finds and
//! ends the rest by what was recorded, never by name.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::setup::{self, call};
use crate::support::procs;
use crate::support::raw_host::text_of;
use crate::{SOON, eventually};

/// Issue 2, 5: nothing is left after the next start, deaf, escaped and wrapped ones included.
#[tokio::test]
async fn kill9_leaves_nothing_after_the_next_start() {
    let mut daemon = setup::start(
        |daemon| {
            vec![
                daemon.fake("decent").args("--tools echo"),
                daemon.fake("deaf").args("--tools echo --ignore-term --ignore-eof"),
                daemon.fake("family").args(
                    "--tools echo --ignore-eof --grandchild --grandchild-setsid --wrapper-wait",
                ),
                daemon.fake("wrapped").args("--tools echo --ignore-eof --wrapper"),
            ]
        },
        "",
    );
    for name in ["decent", "deaf", "family", "wrapped"] {
        daemon.cli(&["call", name, "echo", "text=x"]).await.expect_code(0);
    }
    // A bystander that looks the same in every way but was not started by the daemon.
    let mut bystander = Command::new(env!("CARGO_BIN_EXE_fakemcp"))
        .args(["--tools", "echo", "--ignore-eof"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let before = daemon.marked();
    assert!(before.len() >= 7, "{before:?}");
    daemon.kill9();
    let decent = daemon.fake("decent");
    eventually!(SOON, !decent.ledger("eof").is_empty(), "the decent one ends by itself");
    assert!(daemon.marked().len() >= 5, "the others live on: {:?}", daemon.marked());
    daemon.launch();
    let left = || {
        let found = daemon.marked();
        found
            .into_iter()
            .filter(|one| before.iter().any(|old| old.pid == one.pid))
            .collect::<Vec<_>>()
    };
    eventually!(SOON, left().is_empty(), "{:?}", left());
    assert!(bystander.try_wait().unwrap().is_none(), "never by name");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    // And it works.
    daemon.cli(&["call", "deaf", "echo", "text=x"]).await.expect_code(0);
}

/// A host in mid-session notices a killed daemon only by the call that was in flight.
#[tokio::test]
async fn f47_kill9_in_mid_session() {
    let mut daemon = setup::start(|daemon| vec![daemon.fake("up")], "");
    let mut host = setup::host(&daemon, "2025-06-18").await;
    assert_eq!(text_of(&call(&mut host, "up", "echo", json!({ "text": "a" })).await), "a");
    let wanted = json!({ "namespace": "up", "tool": "hang", "arguments": {} });
    host.start_call(50, "mcpx_call", wanted).await;
    eventually!(SOON, daemon.fake("up").transcript().with_method("tools/call").len() == 2);
    daemon.kill9();
    let answer = host.expect_response(50).await;
    assert_eq!(setup::reason(&answer), "outcome_unknown", "{answer}");
    assert!(text_of(&answer).starts_with("outcome unknown"), "{answer}");
    // The shim may have started the next one by itself already.
    let again = call(&mut host, "up", "echo", json!({ "text": "b" })).await;
    assert_eq!(text_of(&again), "b", "{again}");
    assert!(procs::alive(host.pid().unwrap()));
    drop(host);
    crate::stop_daemon(&daemon).await;
}
