//! Tasks as 2025-11-25 has them in its core, towards hosts (T-01, T-08, T-10, T-11, T-13, T-14).

use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, host, http_host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};

const SOON: Duration = Duration::from_secs(5);
const CORE: &str = "2025-11-25";
const STATUS: &str = "notifications/tasks/status";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn one(more: &str) -> Daemon {
    let more = format!("{PASS}\n{more}");
    start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], &more)
}

fn as_task(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60_000 } })
}

/// Begins a task and returns it.
async fn begin(host: &mut RawHost, tool: &str, arguments: Value) -> Value {
    let answer = host.request("tools/call", as_task(tool, &arguments)).await;
    let task = answer["result"]["task"].clone();
    assert!(task["taskId"].as_str().is_some_and(|id| id.len() == 32), "{answer}");
    task
}

async fn ask(host: &mut RawHost, method: &str, task: &Value) -> Value {
    host.request(method, json!({ "taskId": task["taskId"] })).await
}

/// The whole life of a task: made at once, looked at, waited for; its result twice the same (T-14).
#[tokio::test]
async fn t01_t14_a_task_from_its_beginning_to_its_end() {
    let daemon = one("");
    let mut host = host(&daemon, CORE).await;
    let task = begin(&mut host, "up_sleep", json!({ "ms": 300 })).await;
    assert_eq!(task["status"], "working", "{task}");
    assert_eq!(task["ttl"], 60_000);
    assert!(task["pollInterval"].is_u64() && task["createdAt"].is_string());
    assert!(task.get("result").is_none() && task.get("ttlMs").is_none());
    assert_eq!(ask(&mut host, "tasks/get", &task).await["result"]["status"], "working");
    let first = ask(&mut host, "tasks/result", &task).await;
    assert_eq!(text_of(&first), "slept");
    assert_eq!(first["result"]["_meta"][RELATED]["taskId"], task["taskId"]);
    let second = ask(&mut host, "tasks/result", &task).await;
    assert_eq!(first["result"], second["result"]);
    let done = ask(&mut host, "tasks/get", &task).await;
    assert_eq!(done["result"]["status"], "completed", "{done}");
    assert!(done["result"].get("result").is_none(), "{done}");
    let listed = host.request("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0], done["result"]);
}

/// T-10: a result that says `isError` is a failed task, and still the result; an error is that error.
#[tokio::test]
async fn t10_what_failed_is_failed() {
    let daemon = one("");
    let mut host = host(&daemon, CORE).await;
    let wrong = begin(&mut host, "up_fail", json!({ "text": "no" })).await;
    let result = ask(&mut host, "tasks/result", &wrong).await;
    assert_eq!(text_of(&result), "no");
    assert_eq!(result["result"]["isError"], true);
    assert_eq!(ask(&mut host, "tasks/get", &wrong).await["result"]["status"], "failed");
    let arguments = json!({ "code": -32603, "message": "broken" });
    let broken = begin(&mut host, "up_rpc_error", arguments).await;
    let error = ask(&mut host, "tasks/result", &broken).await;
    assert_eq!(error["error"]["message"], "broken", "{error}");
    let task = ask(&mut host, "tasks/get", &broken).await;
    assert_eq!(task["result"]["status"], "failed");
    assert_eq!(task["result"]["statusMessage"], "broken");
    let listed = host.request("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["status"], "failed", "{listed}");
}

/// T-11: cancelling cancels the call behind; a task that has ended cannot be cancelled.
#[tokio::test]
async fn t11_a_cancelled_task_cancels_its_call() {
    let daemon = one("");
    let fake = daemon.fake("up");
    let mut host = host(&daemon, CORE).await;
    let task = begin(&mut host, "up_slow", json!({ "ms": 60_000 })).await;
    eventually!(SOON, !fake.transcript().with_method("tools/call").is_empty());
    let cancelled = ask(&mut host, "tasks/cancel", &task).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    eventually!(SOON, !fake.ledger("stopped").is_empty());
    let again = ask(&mut host, "tasks/cancel", &task).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let result = ask(&mut host, "tasks/result", &task).await;
    assert_eq!(result["error"]["data"]["reason"], "cancelled", "{result}");
}

/// T-13: nobody else sees it, by a list or by its id; and what is unknown is told alike.
#[tokio::test]
async fn t13_a_task_belongs_to_its_session() {
    let daemon = one("");
    let mut mine = host(&daemon, CORE).await;
    let mut other = host(&daemon, CORE).await;
    let over_http = http_host(&daemon, CORE).await;
    let task = begin(&mut mine, "up_hang", json!({})).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let named = json!({ "taskId": task["taskId"] });
        assert_eq!(other.request(method, named.clone()).await["error"]["code"], -32602);
        assert_eq!(over_http.request(method, named).await["error"]["code"], -32602);
    }
    assert_eq!(other.request("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    assert_eq!(over_http.request("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    let listed = mine.request("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], task["taskId"]);
    let unknown = mine.request("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(mine.request("tasks/get", json!({})).await["error"]["code"], -32602);
}

/// 2025-11-25 tasks page, "Task Status Notification": the host whose task it is hears of each status, as
/// its revision spells it, and nobody else does.
#[tokio::test]
async fn t13_the_owner_hears_how_its_task_stands() {
    let daemon = one("");
    let mut other = host(&daemon, CORE).await;
    let mut mine = daemon.shim(&[]);
    mine.capabilities = json!({ "elicitation": {} });
    crate::setup::open(&mut mine, CORE).await;
    mine.answer_with(|_| json!({ "action": "decline" }));
    let task = begin(&mut mine, "up_ask_form", json!({})).await;
    let waits = mine.expect_notification(STATUS).await;
    assert_eq!(waits["params"]["taskId"], task["taskId"], "{waits}");
    assert_eq!(waits["params"]["status"], "input_required", "{waits}");
    ask(&mut mine, "tasks/result", &task).await;
    let again = mine.expect_notification(STATUS).await;
    assert_eq!(again["params"]["status"], "working", "{again}");
    let done = mine.expect_notification(STATUS).await;
    assert_eq!(done["params"]["status"], "completed", "{done}");
    assert!(done["params"]["ttl"].is_u64() && done["params"].get("result").is_none(), "{done}");
    assert_eq!(text_of(&other.call("up_echo", json!({ "text": "a" })).await), "a");
    assert!(other.inbox.iter().all(|message| message["method"] != STATUS), "{:?}", other.inbox);
}

/// T-01: lists come by pages, oldest first, and a cursor that is none is refused.
#[tokio::test]
async fn t01_lists_have_pages() {
    let daemon = one("tasks.page = 2");
    let mut host = host(&daemon, CORE).await;
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(begin(&mut host, "up_echo", json!({ "text": "x" })).await["taskId"].clone());
    }
    let first = host.request("tasks/list", json!({})).await;
    let cursor = first["result"]["nextCursor"].clone();
    let second = host.request("tasks/list", json!({ "cursor": cursor })).await;
    let ids = |answer: &Value| -> Vec<Value> {
        let tasks = answer["result"]["tasks"].as_array().unwrap().iter();
        tasks.map(|task| task["taskId"].clone()).collect()
    };
    let mut seen = ids(&first);
    assert_eq!(seen.len(), 2);
    seen.extend(ids(&second));
    seen.sort_by_key(ToString::to_string);
    made.sort_by_key(ToString::to_string);
    assert_eq!(seen, made);
    assert!(second["result"].get("nextCursor").is_none());
    for bad in [json!("nonsense"), json!(7)] {
        let refused = host.request("tasks/list", json!({ "cursor": bad })).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

/// T-01: a handle is given at once where its server has no tasks of its own, however long one that has
/// some may take to make one.
#[tokio::test]
async fn t01_a_server_without_tasks_is_not_waited_for() {
    let daemon = one("tasks.eager = \"1m\"");
    let mut host = host(&daemon, CORE).await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "a" })).await), "a");
    let task = begin(&mut host, "up_hang", json!({})).await;
    assert_eq!(task["status"], "working");
}

/// T-16: behind `mcpx_call` any tool can be a task, and the definition says so.
#[tokio::test]
async fn t16_mcpx_call_can_be_a_task() {
    let daemon = start(|daemon| vec![daemon.fake("up")], "");
    let mut host = host(&daemon, CORE).await;
    let tools = host.list_tools().await;
    let call = tools.iter().find(|tool| tool["name"] == "mcpx_call").unwrap();
    assert_eq!(call["execution"]["taskSupport"], "optional");
    let arguments = json!({ "namespace": "up", "tool": "sleep", "arguments": { "ms": 50 } });
    let task = begin(&mut host, "mcpx_call", arguments).await;
    let result = ask(&mut host, "tasks/result", &task).await;
    assert_eq!(text_of(&result), "slept");
}

/// `tasks.max` refuses, by its name; what is forgotten makes room again.
#[tokio::test]
async fn t01_there_is_a_limit() {
    let daemon = one("tasks.max = 1");
    let mut host = host(&daemon, CORE).await;
    let arguments = json!({ "name": "up_echo", "arguments": { "text": "x" },
        "task": { "ttl": 700 } });
    let made = host.request("tools/call", arguments.clone()).await["result"]["task"].clone();
    assert_eq!(made["ttl"], 700);
    let refused = host.request("tools/call", arguments.clone()).await;
    assert_eq!(refused["result"]["_meta"]["dev.mcpx/reason"], "busy", "{refused}");
    assert!(text_of(&refused).contains("tasks.max"), "{refused}");
    let mut tries = 0;
    while ask(&mut host, "tasks/get", &made).await["error"]["code"] != -32602 {
        tries += 1;
        assert!(tries < 500, "it is kept for ever");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let again = host.request("tools/call", arguments).await;
    assert!(again["result"]["task"].is_object(), "{again}");
}

/// What a task asks comes to its host as a request of the task while it waits for the result, and
/// nowhere else (2025-11-25 tasks page, "Input Required Status").
#[tokio::test]
async fn t06_a_task_asks_while_its_result_is_waited_for() {
    let daemon = one("");
    let mut host = daemon.shim(&[]);
    host.capabilities = json!({ "elicitation": {} });
    crate::setup::open(&mut host, CORE).await;
    let task = begin(&mut host, "up_ask_form", json!({})).await;
    let mut tries = 0;
    while ask(&mut host, "tasks/get", &task).await["result"]["status"] != "input_required" {
        tries += 1;
        assert!(tries < 500, "it never asks");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let id = host.take_id();
    host.start(id, "tasks/result", json!({ "taskId": task["taskId"] })).await;
    let question = host.expect_request("elicitation/create").await;
    assert_eq!(question["params"]["_meta"][RELATED]["taskId"], task["taskId"], "{question}");
    host.answer(&question, json!({ "action": "decline" })).await;
    let result = host.expect_response(id).await;
    assert!(text_of(&result).contains("decline"), "{result}");
    assert_eq!(ask(&mut host, "tasks/get", &task).await["result"]["status"], "completed");
}
