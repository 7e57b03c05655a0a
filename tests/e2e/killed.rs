//! A daemon killed with a question open and a task running: they are there after the restart, or whoever
//! waits for them is told (issue 4, E-09, T-18).

use std::time::Duration;

use serde_json::{Value, json};

use crate::setup::{self, PASS, reason};
use crate::support::daemon::Daemon;
use crate::support::fake::FakeServer;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::schema::MODERN;
use crate::{SOON, eventually};

/// Only the harness starts daemons here.
const BY_HAND: &str = "shim.autostart = false";

/// A daemon in front of a fake with tasks, over stdio or HTTP.
fn front(http: bool, more: &str) -> (Daemon, Option<FakeServer>) {
    let mut daemon = setup::prepare();
    let fake = daemon.fake("up").args("--tasks");
    let (fake, server) = if http {
        let (fake, server) = fake.serve();
        (fake, Some(server))
    } else {
        (fake, None)
    };
    daemon.write_config(&[fake], &setup::quick(&format!("{PASS}\n{BY_HAND}\n{more}")));
    daemon.launch();
    (daemon, server)
}

async fn echoes(host: &mut RawHost) {
    let answer = host.call("up_echo", json!({ "text": "after" })).await;
    assert_eq!(text_of(&answer), "after", "{answer}");
}

/// The question of a legacy host: its caller is told, and an answer that comes too late is nobody's.
#[tokio::test]
async fn a_question_to_a_host() {
    let (mut daemon, _) = front(false, "");
    let mut host = daemon.shim(&[]);
    host.capabilities = json!({ "elicitation": {} });
    setup::open(&mut host, "2025-06-18").await;
    host.start_call(50, "up_ask_form", json!({})).await;
    let question = host.expect_request("elicitation/create").await;
    daemon.kill9();
    let answer = host.expect_response(50).await;
    assert_eq!(reason(&answer), "outcome_unknown", "{answer}");
    daemon.launch();
    host.answer(&question, json!({ "action": "accept", "content": { "name": "late" } })).await;
    echoes(&mut host).await;
    // And another one is asked and answered as ever.
    host.start_call(51, "up_ask_form", json!({})).await;
    let question = host.expect_request("elicitation/create").await;
    host.answer(&question, json!({ "action": "accept", "content": { "name": "new" } })).await;
    assert!(text_of(&host.expect_response(51).await).contains("new"));
}

/// A question that the broker kept: its caller is told, and it is shown as lost.
#[tokio::test]
async fn a_question_at_the_broker() {
    let (mut daemon, _) = front(false, "elicit.hold = \"1m\"");
    let mut host = setup::host(&daemon, "2024-11-05").await;
    host.start_call(50, "up_ask_form", json!({ "id": "kept" })).await;
    let shown = async |daemon: &Daemon| {
        daemon.cli(&["elicit", "list", "--json"]).await.expect_code(0).json()["questions"].clone()
    };
    eventually!(SOON, shown(&daemon).await[0]["state"] == "open");
    let listed = shown(&daemon).await;
    daemon.kill9();
    let answer = host.expect_response(50).await;
    assert_eq!(reason(&answer), "outcome_unknown", "{answer}");
    daemon.launch();
    let after = shown(&daemon).await;
    assert_eq!(
        (&after[0]["state"], &after[0]["id"]),
        (&json!("lost"), &listed[0]["id"]),
        "{after}"
    );
    echoes(&mut host).await;
}

/// A task of a host of either form, begun before the daemon dies; its handle.
async fn begin(host: &mut RawHost, revision: &str) -> Value {
    let modern = revision == MODERN;
    if modern {
        host.capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    }
    setup::open(host, revision).await;
    let arguments = json!({ "ms": 1500, "text": "it" });
    let mut params = json!({ "name": "up_task_required", "arguments": arguments });
    if !modern {
        params["task"] = json!({ "ttl": 60_000 });
    }
    let made = host.request("tools/call", params).await;
    let task = if modern { &made["result"] } else { &made["result"]["task"] };
    assert_eq!(task["status"], "working", "{made}");
    json!({ "taskId": task["taskId"] })
}

/// The state that a task ends in.
async fn ended(host: &mut RawHost, id: &Value) -> Value {
    for _ in 0..200 {
        let got = host.request("tasks/get", id.clone()).await;
        let status = got["result"]["status"].as_str().unwrap_or_else(|| panic!("no task: {got}"));
        if !matches!(status, "working" | "input_required") {
            return got["result"].clone();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the task does not end");
}

/// Its server can still be asked: it goes on where it was.
#[tokio::test]
async fn a_task_whose_server_lives() {
    for revision in ["2025-11-25", MODERN] {
        let (mut daemon, _server) = front(true, "");
        let mut host = daemon.shim(&[]);
        let id = begin(&mut host, revision).await;
        // At once: what a host has a handle of is on record, and so is what its server calls it.
        daemon.kill9();
        daemon.launch();
        let state = ended(&mut host, &id).await;
        assert_eq!(state["status"], "completed", "{revision}: {state}");
        let result = if revision == MODERN {
            json!({ "result": state["result"] })
        } else {
            host.request("tasks/result", id).await
        };
        assert_eq!(text_of(&result), "done it", "{revision}: {result}");
        assert_eq!(daemon.fake("up").ledger("task ").len(), 2, "{revision}: it ran once");
    }
}

/// Its server died with the daemon: it has failed, and says why.
#[tokio::test]
async fn a_task_whose_server_is_gone() {
    for revision in ["2025-11-25", MODERN] {
        let (mut daemon, _) = front(false, "");
        let mut host = daemon.shim(&[]);
        let id = begin(&mut host, revision).await;
        daemon.kill9();
        daemon.launch();
        let state = ended(&mut host, &id).await;
        // T-10: an `isError` result is a failure at 2025-11-25, and a result at 2026-07-28.
        let result = if revision == MODERN {
            assert_eq!(state["status"], "completed", "{state}");
            json!({ "result": state["result"] })
        } else {
            assert_eq!(state["status"], "failed", "{state}");
            host.request("tasks/result", id).await
        };
        assert_eq!(reason(&result), "outcome_unknown", "{revision}: {result}");
        assert!(text_of(&result).contains("restarted"), "{revision}: {result}");
        let begun = daemon.fake("up").transcript().with_method("tools/call").len();
        assert_eq!(begun, 1, "{revision}: never twice");
    }
}
