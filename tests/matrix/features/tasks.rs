//! Tasks, of hosts in their form, of upstreams in theirs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cell::{Cell, answer};
use crate::rules::Expect;
use crate::support::raw_host::text_of;

/// Longer than the window in which a call is answered without a task (`tasks.eager`).
const WORK_MS: u64 = 250;
/// How often a task is looked at before it counts as stuck.
const LOOKS: usize = 400;

/// Calls a tool as a task, in the host's form; without one, as a call.
async fn begin(cell: &mut Cell, tool: &str, arguments: Value) -> Value {
    let mut params = json!({ "name": format!("up_{tool}"), "arguments": arguments });
    match cell.host.revision {
        "2025-11-25" => params["task"] = json!({ "ttl": 60_000 }),
        _ if cell.host.modern() => cell.declare_tasks(true),
        _ => {}
    }
    cell.request("tools/call", params).await
}

/// Sees a task of the host's to its end, answering what it asks; its result.
async fn finish(cell: &mut Cell, made: &Value) -> Value {
    let modern = cell.host.modern();
    let task = if modern { &made["result"] } else { &made["result"]["task"] };
    assert!(task["taskId"].is_string(), "no task: {made}");
    let id = json!({ "taskId": task["taskId"] });
    let mut answered = false;
    for _ in 0..LOOKS {
        let got = cell.request("tasks/get", id.clone()).await;
        let state = &got["result"];
        match state["status"].as_str() {
            Some("working") => {}
            Some("input_required") if modern => {
                // Until it is seen that the answer has come, the question may still show.
                if !answered {
                    let questions = state["inputRequests"].as_object().unwrap();
                    let replies = questions.iter().map(|(key, one)| (key.clone(), answer(one)));
                    let mut update = id.clone();
                    update["inputResponses"] = Value::Object(replies.collect());
                    let taken = cell.request("tasks/update", update).await;
                    assert!(taken["result"].is_object(), "{taken}");
                    answered = true;
                }
            }
            // The question comes while the result is waited for.
            Some("input_required") => return cell.request("tasks/result", id).await,
            Some("completed") if modern => return json!({ "result": state["result"] }),
            // T-10: at 2025-11-25 an `isError` result is a task that failed.
            Some("completed" | "failed") if !modern => {
                return cell.request("tasks/result", id).await;
            }
            _ => panic!("a task ended otherwise: {got}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a task does not end: {made}");
}

pub async fn task(cell: &mut Cell, expect: Expect) {
    let text = format!("t{}", cell.upstream.number());
    let arguments = json!({ "text": text, "ms": WORK_MS });
    let made = begin(cell, "task_required", arguments).await;
    let result = if expect == Expect::Works { finish(cell, &made).await } else { made };
    cell.declare_tasks(false);
    assert_eq!(text_of(&result), format!("done {text}"), "{result}");
}

/// A task that asks half-way.
pub async fn with_question(cell: &mut Cell, expect: Expect) {
    let mark = format!("m{}", cell.upstream.number());
    let arguments = json!({ "id": mark, "ask": true, "text": "it", "ms": WORK_MS });
    let made = begin(cell, "task_required", arguments).await;
    let result = if expect == Expect::Works { finish(cell, &made).await } else { made };
    cell.declare_tasks(false);
    let text = text_of(&result);
    let asks = |revision: &str| revision >= "2025-06-18";
    let (up, host) = (cell.upstream.peer.revision, cell.host.revision);
    let wanted = if !asks(up) {
        "has no such question"
    } else if !asks(host) {
        r#"done it with {"action":"cancel""#
    } else {
        r#"done it with {"action":"accept""#
    };
    assert!(text.contains(wanted), "{result}");
    assert_eq!(text.contains(&mark), asks(up) && asks(host), "{result}");
}
