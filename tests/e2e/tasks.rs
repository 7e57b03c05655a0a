//! Tasks over the end of a daemon, and by hand (T-18; D-10).

use serde_json::{Value, json};

use crate::setup::{self, PASS};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};

const CORE: &str = "2025-11-25";

fn daemon(more: &str) -> Daemon {
    let more = format!("shim.autostart = false\n{PASS}\n{more}");
    setup::start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], &more)
}

async fn begin(host: &mut RawHost, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "task": {} });
    let made = host.request("tools/call", params).await;
    let task = made["result"]["task"].clone();
    assert!(task["taskId"].is_string(), "{made}");
    task
}

async fn ask(host: &mut RawHost, method: &str, task: &Value) -> Value {
    host.request(method, json!({ "taskId": task["taskId"] })).await
}

/// T-18: a daemon that is killed takes no result with it, and what it was at is told honestly; the host
/// behind the shim has its tasks as before, and nobody else has them.
#[tokio::test]
async fn t18_tasks_outlive_a_killed_daemon() {
    let mut daemon = daemon("");
    let mut host = setup::host(&daemon, CORE).await;
    let done = begin(&mut host, "up_echo", json!({ "text": "kept" })).await;
    let first = ask(&mut host, "tasks/result", &done).await;
    assert_eq!(text_of(&first), "kept");
    let running = begin(&mut host, "up_hang", json!({})).await;
    // What a host was told of is on disk: a task before its handle, a result before it is shown.
    daemon.kill9();
    daemon.launch();
    let again = ask(&mut host, "tasks/result", &done).await;
    assert_eq!(again["result"], first["result"], "the same, to the byte");
    let unknown = ask(&mut host, "tasks/result", &running).await;
    assert_eq!(setup::reason(&unknown), "outcome_unknown", "{unknown}");
    assert_eq!(ask(&mut host, "tasks/get", &running).await["result"]["status"], "failed");
    let mut other = setup::host(&daemon, CORE).await;
    assert_eq!(ask(&mut other, "tasks/get", &done).await["error"]["code"], -32602);
}

/// D-10: command, route and tool show the same tasks; each can be cancelled by hand.
#[tokio::test]
async fn d10_tasks_by_hand() {
    let daemon = daemon("expose.ops = true");
    let mut host = setup::host(&daemon, CORE).await;
    let task = begin(&mut host, "up_hang", json!({})).await;
    let id = task["taskId"].as_str().unwrap();
    let printed = daemon.cli(&["tasks", "list", "--json"]).await.expect_code(0).json();
    assert_eq!(printed["tasks"][0]["task"], id, "{printed}");
    assert_eq!(printed["tasks"][0]["status"], "working");
    assert_eq!(printed, daemon.http("GET", "/v1/tasks", None).await.json());
    let told = host.call("mcpx_tasks", json!({})).await;
    assert_eq!(printed, serde_json::from_str::<Value>(&text_of(&told)).unwrap());
    let shown = daemon.cli(&["status"]).await.expect_code(0);
    assert!(shown.stdout.contains("1 calls run as tasks"), "{}", shown.stdout);
    let get = daemon.cli(&["tasks", "get", &id[..8], "--json"]).await.expect_code(0).json();
    assert_eq!(get, daemon.http("GET", &format!("/v1/tasks/{id}"), None).await.json());
    let cancelled = daemon.cli(&["tasks", "cancel", id, "--json"]).await.expect_code(0).json();
    assert_eq!(cancelled["cancelled"], true, "{cancelled}");
    assert_eq!(ask(&mut host, "tasks/get", &task).await["result"]["status"], "cancelled");
    let again = daemon.http("POST", &format!("/v1/tasks/{id}/cancel"), Some(&json!({}))).await;
    assert_eq!(again.json()["cancelled"], false);
    daemon.cli(&["tasks", "get", "nothing"]).await.expect_code(1);
    let people = daemon.cli(&["tasks", "list"]).await.expect_code(0);
    assert!(people.stdout.contains("tool `hang` of server `up`"), "{}", people.stdout);
}

/// product.md 4: a host without tasks gets a handle for what takes long, and `mcpx_task` follows it.
#[tokio::test]
async fn a_long_call_is_a_handle_for_hosts_without_tasks() {
    let more = "call.handle_after = \"200ms\"";
    let daemon = setup::start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], more);
    let mut host = setup::host(&daemon, "2025-06-18").await;
    let quick = setup::call(&mut host, "up", "echo", json!({ "text": "q" })).await;
    assert_eq!(text_of(&quick), "q");
    let slow = setup::call(&mut host, "up", "sleep", json!({ "ms": 900 })).await;
    let text = text_of(&slow);
    let id = text.split('`').find(|word| word.len() == 32).unwrap_or_else(|| panic!("{text}"));
    let shown = host.call("mcpx_task", json!({ "task": id, "action": "show" })).await;
    assert!(text_of(&shown).contains("still at work"), "{shown}");
    let waited = host.call("mcpx_task", json!({ "task": id, "seconds": 10 })).await;
    assert_eq!(text_of(&waited), "slept", "{waited}");
    let hang = setup::call(&mut host, "up", "hang", json!({})).await;
    let text = text_of(&hang);
    let id = text.split('`').find(|word| word.len() == 32).unwrap();
    let impatient = host.call("mcpx_task", json!({ "task": id, "seconds": 0 })).await;
    assert!(text_of(&impatient).contains("still at work"), "{impatient}");
    let gone = host.call("mcpx_task", json!({ "task": id, "action": "cancel" })).await;
    assert!(text_of(&gone).contains("was cancelled"), "{gone}");
    for bad in [json!({}), json!({ "task": "x" }), json!({ "task": id, "action": "y" })] {
        assert!(setup::failed(&host.call("mcpx_task", bad).await));
    }
}
