//! Tasks of servers over HTTP, of both forms, for hosts of both forms and of none (T-17, T-18, U-57).

use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, host, prepare, quick};
use crate::support::asking::accept;
use crate::support::daemon::Daemon;
use crate::support::fake::{Fake, FakeServer};
use crate::support::raw_host::{RawHost, text_of};

const SOON: Duration = Duration::from_secs(10);
const MODERN: &str = "2026-07-28";
const CORE: &str = "2025-11-25";
const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn one(era: &str) -> (Daemon, Fake, FakeServer) {
    let mut daemon = prepare();
    let fake = daemon.fake("up").args(&format!("--era {era} --tasks --questions"));
    let (fake, server) = fake.serve();
    daemon.write_config(std::slice::from_ref(&fake), &quick(&format!("{PASS}\n{FAST}")));
    daemon.launch();
    (daemon, fake, server)
}

const FAST: &str = "tasks.poll_min = \"20ms\"\ntasks.eager = \"20ms\"";

async fn with_extension(daemon: &Daemon) -> RawHost {
    let mut host = host(daemon, MODERN).await;
    host.capabilities = json!({ "extensions": { EXTENSION: {} }, "elicitation": { "form": {} } });
    host
}

async fn able(daemon: &Daemon) -> RawHost {
    let mut host = daemon.shim(&[]);
    host.capabilities = json!({ "elicitation": { "form": {} } });
    crate::setup::open(&mut host, CORE).await;
    host
}

async fn get(host: &mut RawHost, id: &Value) -> Value {
    host.request("tasks/get", json!({ "taskId": id })).await["result"].clone()
}

/// T-17: of both forms over HTTP, to both forms of hosts, questions included; the result says nothing of
/// a name that only its server knows.
#[tokio::test]
async fn t17_tasks_of_a_server_over_http() {
    for era in [CORE, "modern"] {
        let (daemon, fake, _server) = one(era);
        let mut modern = with_extension(&daemon).await;
        let arguments = json!({ "ms": 150, "ask": true, "text": "m" });
        let made = modern.call("up_task_required", arguments).await;
        let id = made["result"]["taskId"].clone();
        assert!(id.is_string(), "{era}: {made}");
        let mut task;
        eventually!(SOON, {
            task = get(&mut modern, &id).await;
            task["status"] == "input_required"
        });
        let asked = task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let answers = json!({ asked: accept(json!({ "name": "Ada" })) });
        modern.request("tasks/update", json!({ "taskId": id, "inputResponses": answers })).await;
        eventually!(SOON, {
            task = get(&mut modern, &id).await;
            task["status"] == "completed"
        });
        let result = &task["result"];
        assert!(result["content"][0]["text"].as_str().unwrap().contains("Ada"), "{era}: {task}");
        assert!(result["_meta"][RELATED].is_null(), "{era}: {task}");

        let mut core = able(&daemon).await;
        core.answer_with(|_| accept(json!({ "name": "Bob" })));
        let wanted = json!({ "name": "up_task_required", "task": {},
            "arguments": { "ms": 50, "ask": true, "text": "c" } });
        let made = core.request("tools/call", wanted).await;
        let id = made["result"]["task"]["taskId"].clone();
        let done = core.request("tasks/result", json!({ "taskId": id })).await;
        assert!(text_of(&done).contains("Bob"), "{era}: {done}");
        assert_eq!(done["result"]["_meta"][RELATED]["taskId"], id, "{era}");

        // Whoever has no tasks waits for it.
        let done = core.call("up_task_required", json!({ "ms": 20, "text": "plain" })).await;
        assert_eq!(text_of(&done), "done plain", "{era}: {done}");
        assert!(done["result"]["_meta"][RELATED].is_null(), "{era}: {done}");
        assert_eq!(fake.ledger("task ").iter().filter(|it| it.contains("completed")).count(), 3);
    }
}

/// T-11: what is cancelled here is cancelled there.
#[tokio::test]
async fn t11_a_cancelled_task_is_cancelled_over_http() {
    for era in [CORE, "modern"] {
        let (daemon, fake, _server) = one(era);
        let mut host = with_extension(&daemon).await;
        let made = host.call("up_task_required", json!({ "never": true })).await;
        let id = made["result"]["taskId"].clone();
        eventually!(SOON, !fake.ledger("task ").is_empty());
        host.request("tasks/cancel", json!({ "taskId": id })).await;
        eventually!(SOON, fake.ledger("task ").iter().any(|line| line.contains("cancelled")));
        assert_eq!(get(&mut host, &id).await["status"], "cancelled");
    }
}

/// T-18: the daemon is killed, or asked to end, while a server over HTTP works on its task: the next one goes
/// on with it.
#[tokio::test]
async fn t18_the_next_daemon_goes_on_with_a_task_over_http() {
    for (era, killed) in [(CORE, true), ("modern", true), (CORE, false), ("modern", false)] {
        let (mut daemon, fake, _server) = one(era);
        let mut host = with_extension(&daemon).await;
        let made = host.call("up_task_required", json!({ "ms": 1_500, "text": "late" })).await;
        let id = made["result"]["taskId"].clone();
        assert!(id.is_string(), "{era}: {made}");
        if killed {
            daemon.kill9();
        } else {
            daemon.stop();
        }
        daemon.launch();
        let mut task;
        eventually!(SOON, {
            task = get(&mut host, &id).await;
            task["status"] == "completed"
        });
        assert_eq!(task["result"]["content"][0]["text"], "done late", "{era}: {task}");
        assert_eq!(fake.transcript().with_method("tools/call").len(), 1, "{era}");
    }
}
