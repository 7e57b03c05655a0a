//! Tasks as the extension of 2026-07-28 has them, towards hosts (T-02 to T-12, H-31, H-64).

use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, host, http_host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};

const SOON: Duration = Duration::from_secs(5);
const MODERN: &str = "2026-07-28";
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn one(more: &str) -> Daemon {
    let more = format!("{PASS}\n{more}");
    let fake =
        |daemon: &Daemon| daemon.fake("up").args("--tasks --era legacy").line("scope = \"global\"");
    start(|daemon| vec![fake(daemon)], &more)
}

async fn with_tasks(daemon: &Daemon) -> RawHost {
    let mut host = host(daemon, MODERN).await;
    host.capabilities = json!({ "extensions": { EXTENSION: {} } });
    host
}

async fn ask(host: &mut RawHost, method: &str, id: &Value) -> Value {
    host.request(method, json!({ "taskId": id })).await
}

/// Looks until the task has this status.
async fn until(host: &mut RawHost, id: &Value, status: &str) -> Value {
    let mut tries = 0;
    loop {
        let answer = ask(host, "tasks/get", id).await;
        if answer["result"]["status"] == status {
            return answer["result"].clone();
        }
        tries += 1;
        assert!(tries < 500, "never {status}: {answer}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// T-02, T-03, H-64: without the extension on this very request there are no tasks.
#[tokio::test]
async fn t02_without_the_extension_there_are_no_tasks() {
    let daemon = one("tasks.after = \"10ms\"\ntasks.eager = \"0\"");
    let mut host = host(&daemon, MODERN).await;
    let called = json!({ "name": "up_sleep", "arguments": { "ms": 100 }, "task": { "ttl": 1000 } });
    let answer = host.request("tools/call", called).await;
    assert_eq!(text_of(&answer), "slept");
    assert_eq!(answer["result"]["resultType"], "complete");
    let required = host.call("up_task_required", json!({})).await;
    let needed = json!({ "extensions": { EXTENSION: {} } });
    assert_eq!(required["error"]["code"], -32021, "{required}");
    assert_eq!(required["error"]["data"]["requiredCapabilities"], needed);
    assert!(daemon.fake("up").transcript().with_method("tools/call").len() == 1, "nothing ran");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = ask(&mut host, method, &json!("x")).await;
        assert_eq!(refused["error"]["code"], -32021, "{method}: {refused}");
        assert_eq!(refused["error"]["data"]["requiredCapabilities"], needed);
    }
    for method in ["tasks/list", "tasks/result"] {
        let refused = ask(&mut host, method, &json!("x")).await;
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
    }
}

/// T-04, T-09, T-10: what is quick is answered; what is slow becomes a task with a flat handle.
#[tokio::test]
async fn t04_t09_slow_calls_become_tasks() {
    let daemon = one("");
    let mut host = with_tasks(&daemon).await;
    let quick = host.call("up_task_work", json!({ "ms": 0, "text": "q" })).await;
    assert_eq!(quick["result"]["resultType"], "complete", "{quick}");
    let slow = host.call("up_task_work", json!({ "ms": 900, "text": "s" })).await;
    let handle = &slow["result"];
    assert_eq!(handle["resultType"], "task", "{slow}");
    assert_eq!(handle["status"], "working");
    assert!(handle["ttlMs"].is_u64() && handle["pollIntervalMs"].is_u64(), "{slow}");
    for absent in ["task", "result", "cacheScope", "ttl", "content"] {
        assert!(handle.get(absent).is_none(), "{absent}: {slow}");
    }
    let id = handle["taskId"].clone();
    let looked = ask(&mut host, "tasks/get", &id).await;
    assert_eq!(looked["result"]["resultType"], "complete", "{looked}");
    let done = until(&mut host, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "done s", "{done}");
    let again = until(&mut host, &id, "completed").await;
    assert_eq!(done["result"], again["result"]);
}

/// T-07: a tool that says nothing of tasks becomes one after `tasks.after`, and never for a host that
/// can be asked inline; `isError` is completed, an error is failed with it (T-10).
#[tokio::test]
async fn t07_t10_other_tools() {
    let daemon = one("tasks.after = \"100ms\"");
    let mut host = with_tasks(&daemon).await;
    let slow = host.call("up_sleep", json!({ "ms": 400 })).await;
    assert_eq!(slow["result"]["resultType"], "task", "{slow}");
    let done = until(&mut host, &slow["result"]["taskId"].clone(), "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "slept");
    host.capabilities["elicitation"] = json!({ "form": {} });
    let inline = host.call("up_sleep", json!({ "ms": 400 })).await;
    assert_eq!(text_of(&inline), "slept");
}

#[tokio::test]
async fn t10_failures_are_told_apart() {
    let daemon = one("");
    let mut host = with_tasks(&daemon).await;
    let wrong = host.call("up_task_work", json!({ "ms": 700, "fail": true })).await;
    let id = wrong["result"]["taskId"].clone();
    let done = until(&mut host, &id, "completed").await;
    assert_eq!(done["result"]["isError"], true, "{done}");
    let broken = host.call("up_task_work", json!({ "ms": 700, "error": -32603 })).await;
    let id = broken["result"]["taskId"].clone();
    let failed = until(&mut host, &id, "failed").await;
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    assert!(failed.get("result").is_none());
}

/// T-11: update and cancel answer with nothing, cancel also for a task that has ended; the call behind
/// it is given up.
#[tokio::test]
async fn t11_answers_are_empty() {
    let daemon = one("tasks.after = \"50ms\"");
    let fake = daemon.fake("up");
    let mut host = with_tasks(&daemon).await;
    let slow = host.call("up_slow", json!({ "ms": 60_000 })).await;
    let id = slow["result"]["taskId"].clone();
    let empty = |answer: &Value| {
        let mut result = answer["result"].clone();
        let members = result.as_object_mut().unwrap();
        members.remove("_meta");
        assert_eq!(result, json!({ "resultType": "complete" }), "{answer}");
    };
    let answers = json!({ "taskId": id, "inputResponses": { "nothing": { "action": "cancel" } } });
    empty(&host.request("tasks/update", answers).await);
    empty(&ask(&mut host, "tasks/cancel", &id).await);
    eventually!(SOON, !fake.ledger("stopped").is_empty());
    assert_eq!(ask(&mut host, "tasks/get", &id).await["result"]["status"], "cancelled");
    empty(&ask(&mut host, "tasks/cancel", &id).await);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let unknown = ask(&mut host, method, &json!("0123")).await;
        assert_eq!(unknown["error"]["code"], -32602, "{method}: {unknown}");
    }
}

/// T-12, H-31: over HTTP the header names the task; a contradiction is refused, a missing one is not.
/// Any connection may have a task whose id it knows (T-18).
#[tokio::test]
async fn t12_the_header_names_the_task() {
    let daemon = one("tasks.after = \"50ms\"");
    let mut host = http_host(&daemon, MODERN).await;
    host.capabilities = json!({ "extensions": { EXTENSION: {} } });
    let slow = host.call("up_sleep", json!({ "ms": 300 })).await;
    let id = slow["result"]["taskId"].as_str().unwrap().to_owned();
    let message = host.message(7, "tasks/get", host.dress(json!({ "taskId": id })));
    let mut right = host.post(&message).send().await;
    assert_eq!(right.answer(7).await["result"]["taskId"], id.as_str());
    let mut missing = host.post(&message).without("Mcp-Name").send().await;
    assert_eq!(missing.status, 200);
    assert_eq!(missing.answer(7).await["result"]["taskId"], id.as_str());
    let mut wrong = host.post(&message).header("Mcp-Name", "another").send().await;
    assert_eq!(wrong.status, 400);
    assert_eq!(wrong.answer(7).await["error"]["code"], -32020);
    let mut over_stdio = with_tasks(&daemon).await;
    let done = until(&mut over_stdio, &json!(id), "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "slept");
}

/// T-05, T-06: a question within the window is put inline, a later one waits in the task; answers go by
/// key, unknown keys are ignored, and what is answered vanishes.
#[tokio::test]
async fn t05_t06_questions_before_and_after() {
    let daemon = one("");
    let mut host = with_tasks(&daemon).await;
    host.capabilities["elicitation"] = json!({ "form": {} });
    let inline = host.call("up_task_work", json!({ "ms": 0, "ask": true, "text": "i" })).await;
    assert_eq!(inline["result"]["resultType"], "input_required", "{inline}");
    // Answered first: a shared server that asks works on one call at a time.
    let keys = inline["result"]["inputRequests"].as_object().unwrap().keys();
    let replies: serde_json::Map<String, Value> =
        keys.map(|key| (key.clone(), json!({ "action": "decline" }))).collect();
    let retry = json!({ "name": "up_task_work",
        "arguments": { "ms": 0, "ask": true, "text": "i" },
        "inputResponses": replies, "requestState": inline["result"]["requestState"] });
    let retried = host.request("tools/call", retry).await;
    assert_eq!(retried["result"]["resultType"], "complete", "{retried}");
    let later = host.call("up_task_work", json!({ "ms": 700, "ask": true, "text": "l" })).await;
    assert_eq!(later["result"]["resultType"], "task", "{later}");
    let id = later["result"]["taskId"].clone();
    let asks = until(&mut host, &id, "input_required").await;
    let (key, question) = asks["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{asks}");
    let (key, declined) = (key.clone(), json!({ "action": "decline" }));
    let unknown = json!({ "taskId": id, "inputResponses": { "other": declined } });
    host.request("tasks/update", unknown).await;
    until(&mut host, &id, "input_required").await;
    let answers = json!({ "taskId": id, "inputResponses": { key.as_str(): declined } });
    assert!(host.request("tasks/update", answers).await["result"].is_object());
    let after = ask(&mut host, "tasks/get", &id).await;
    assert!(after["result"]["inputRequests"].get(&key).is_none(), "{after}");
    let done = until(&mut host, &id, "completed").await;
    assert!(done["result"]["content"][0]["text"].as_str().unwrap().contains("decline"), "{done}");
}
