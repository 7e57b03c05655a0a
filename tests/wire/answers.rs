//! What hosts say to questions, right and wrong, and what becomes of it; and of calls whose server, host
//! or patience ends while a question is open (E-06, E-07, E-10, U-36, U-37, F23).

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, call, failed, host, open, reason, start};
use crate::support::asking::{accept, with_responses};
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::procs;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::schema::MODERN;

const SOON: Duration = Duration::from_secs(5);
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn one(era: &str, more: &str) -> (Daemon, Fake) {
    let args = format!("--era {era} --questions");
    let fake = |daemon: &Daemon| daemon.fake("up").args(&args).line("scope = \"global\"");
    let daemon = start(|daemon| vec![fake(daemon)], &format!("{PASS}\n{more}"));
    let fake = daemon.fake("up");
    (daemon, fake)
}

async fn able(daemon: &Daemon, revision: &str) -> RawHost {
    let mut host = daemon.shim(&[]);
    host.capabilities = json!({ "elicitation": { "form": {} } });
    open(&mut host, revision).await;
    host
}

fn wanted(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

fn key(result: &Value) -> String {
    let asked = result["inputRequests"].as_object();
    asked.unwrap_or_else(|| panic!("nothing is asked: {result}")).keys().next().unwrap().clone()
}

fn calls(fake: &Fake) -> usize {
    fake.transcript().with_method("tools/call").len()
}

/// A form with a field that has a default.
fn tea() -> Value {
    json!({ "schema": { "type": "object", "properties": {
        "name": { "type": "string" }, "tea": { "type": "string", "default": "green" } } } })
}

fn said(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {answer}"))
}

/// E-06, U-37: what a modern host brings to a legacy server is read as a legacy host's reply is: what is
/// no answer is asked again and reaches nobody, and fields that an accepted form leaves out get their
/// defaults.
#[tokio::test]
async fn u37_answers_of_a_modern_host_are_read_too() {
    let (daemon, fake) = one("2025-11-25", "");
    let mut host = able(&daemon, MODERN).await;
    let params = wanted("up_ask_form", &tea());
    let mut asked = host.modern("tools/call", params.clone()).await["result"].clone();
    for wrong in [json!({ "action": "maybe" }), json!({ "action": 7 }), json!("yes"), json!({})] {
        let brought = json!({ key(&asked): wrong });
        let again = host.modern("tools/call", with_responses(&params, &asked, brought)).await;
        assert_eq!(again["result"]["resultType"], "input_required", "{wrong}: {again}");
        asked = again["result"].clone();
    }
    assert!(fake.ledger("answer ").is_empty(), "{:?}", fake.ledger("answer "));
    let brought = json!({ key(&asked): accept(json!({ "name": "Ada" })) });
    let done = host.modern("tools/call", with_responses(&params, &asked, brought)).await;
    let content = &said(&done)["form"]["content"];
    assert_eq!(*content, json!({ "name": "Ada", "tea": "green" }), "{done}");
    assert_eq!(calls(&fake), 1);
}

/// T-06, U-37: the same of what is said to a task.
#[tokio::test]
async fn t06_what_is_no_answer_leaves_a_task_waiting() {
    let fake = |daemon: &Daemon| daemon.fake("up").args("--era legacy --tasks --questions");
    let daemon = start(|daemon| vec![fake(daemon)], PASS);
    let mut host = host(&daemon, MODERN).await;
    host.capabilities = json!({ "extensions": { EXTENSION: {} }, "elicitation": { "form": {} } });
    let arguments = json!({ "ask": true, "ms": 600 });
    let made = host.call("up_task_work", arguments).await;
    let id = made["result"]["taskId"].clone();
    assert!(id.is_string(), "{made}");
    let mut task;
    eventually!(SOON, {
        task = host.request("tasks/get", json!({ "taskId": id })).await["result"].clone();
        task["status"] == "input_required"
    });
    let update = |answer: Value| {
        let said = json!({ key(&task): answer });
        json!({ "taskId": id, "inputResponses": said })
    };
    host.request("tasks/update", update(json!({ "action": "perhaps" }))).await;
    let still = host.request("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(still["result"]["status"], "input_required", "{still}");
    host.request("tasks/update", update(json!({ "action": "decline" }))).await;
    eventually!(SOON, {
        let now = host.request("tasks/get", json!({ "taskId": id })).await;
        now["result"]["status"] == "completed"
    });
}

/// E-07: a server with a handshake gives no states: one that is not ours either was changed, and the
/// call is not made anew for it.
#[tokio::test]
async fn e07_a_state_of_nobody_begins_no_call() {
    let (daemon, fake) = one("2025-11-25", "");
    let mut host = able(&daemon, MODERN).await;
    let params = wanted("up_ask_form", &json!({}));
    let asked = host.modern("tools/call", params.clone()).await["result"].clone();
    let brought = json!({ key(&asked): accept(json!({ "name": "Ada" })) });
    let good = with_responses(&params, &asked, brought);
    let mut changed = good.clone();
    changed["requestState"] = json!(format!("x{}", good["requestState"].as_str().unwrap()));
    let done = host.modern("tools/call", good).await;
    assert_eq!(said(&done)["form"]["content"]["name"], "Ada");
    let refused = host.modern("tools/call", changed).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(refused["error"]["data"]["reason"], "request_state", "{refused}");
    assert_eq!(calls(&fake), 1);
}

/// F23: the server dies while its call waits for its host: the host is told, and nothing is made again.
#[tokio::test]
async fn f23_a_server_that_dies_while_its_call_waits() {
    let (daemon, fake) = one("2025-11-25", "");
    let mut host = able(&daemon, MODERN).await;
    let params = wanted("up_ask_form", &json!({}));
    let asked = host.modern("tools/call", params.clone()).await["result"].clone();
    let pid = fake.ledger("start ")[0].trim_start_matches("start ").parse().unwrap();
    procs::signal(pid, Signal::SIGKILL);
    let brought = json!({ key(&asked): accept(json!({ "name": "Ada" })) });
    eventually!(SOON, !procs::alive(pid));
    let told = host.modern("tools/call", with_responses(&params, &asked, brought)).await;
    assert_eq!(reason(&told), "outcome_unknown", "{told}");
    assert_eq!(calls(&fake), 1);
    let echo = host.modern("tools/call", wanted("up_echo", &json!({ "text": "on" }))).await;
    assert_eq!(text_of(&echo), "on");
}

/// E-10: a confirmation stands in front of a modern server's own question and its state: confirmed once,
/// asked by the server then, and neither state is good twice.
#[tokio::test]
async fn e10_a_confirmed_call_of_a_modern_server_may_ask() {
    let (daemon, fake) = one("modern", "\n[policy]\n\"up.ask_form\" = \"ask\"");
    let mut host = able(&daemon, MODERN).await;
    let params = wanted("up_ask_form", &json!({}));
    let first = host.modern("tools/call", params.clone()).await["result"].clone();
    assert_eq!(key(&first), "mcpx_confirm");
    assert_eq!(calls(&fake), 0);
    let yes = json!({ "mcpx_confirm": accept(json!({ "approve": true })) });
    let confirmed = with_responses(&params, &first, yes);
    let second = host.modern("tools/call", confirmed.clone()).await["result"].clone();
    assert_eq!(key(&second), "form", "{second}");
    let brought = json!({ "form": accept(json!({ "name": "Ada" })) });
    let answered = with_responses(&params, &second, brought);
    let done = host.modern("tools/call", answered.clone()).await;
    assert_eq!(said(&done)["form"]["content"]["name"], "Ada");
    let made = calls(&fake);
    for again in [confirmed, answered] {
        let refused = host.modern("tools/call", again).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert_eq!(calls(&fake), made);
    // The wrap does not take the yes of another call.
    let unasked = json!({ "mcpx_confirm": accept(json!({ "approve": true })) });
    let mut bare = params.clone();
    bare["inputResponses"] = unasked;
    let asked = host.modern("tools/call", bare).await;
    assert_eq!(key(&asked["result"]), "mcpx_confirm", "{asked}");
}

/// U-36: as long as questions are kept for a while though nobody listens, a modern server may ask them.
#[tokio::test]
async fn u36_a_modern_server_is_told_that_questions_are_kept() {
    let (daemon, _) = one("modern", "elicit.hold = \"1m\"");
    let mut host = host(&daemon, "2025-03-26").await;
    let id = host.take_id();
    host.start_call(id, "up_ask_form", json!({})).await;
    let mut open;
    eventually!(SOON, {
        let list = daemon.cli(&["elicit", "list", "--json"]).await.expect_code(0).json();
        open = list["questions"].as_array().unwrap().clone();
        !open.is_empty()
    });
    let answer = ["elicit", "answer", open[0]["id"].as_str().unwrap(), "name=Ada"];
    daemon.cli(&answer).await.expect_code(0);
    let done = host.expect_response(id).await;
    assert_eq!(said(&done)["form"]["content"]["name"], "Ada");
}

/// A call whose host is filling in a form does not become a handle under its hands, which would take the
/// form away and cancel it at the server.
#[tokio::test]
async fn a_form_that_is_open_keeps_a_call_from_being_a_handle() {
    let fake = |daemon: &Daemon| daemon.fake("up").args("--era 2025-11-25 --questions");
    let daemon = start(|daemon| vec![fake(daemon)], "call.handle_after = \"50ms\"");
    let mut host = able(&daemon, "2025-11-25").await;
    // Listed, so that all of its time goes to the call.
    assert_eq!(text_of(&call(&mut host, "up", "echo", json!({ "text": "a" })).await), "a");
    let arguments = json!({ "namespace": "up", "tool": "ask_form", "arguments": {} });
    let id = host.take_id();
    host.start_call(id, "mcpx_call", arguments).await;
    let question = host.expect_request("elicitation/create").await;
    host.gather(Duration::from_millis(200)).await;
    assert!(host.inbox.is_empty(), "{:?}", host.inbox);
    host.answer(&question, accept(json!({ "name": "Ada" }))).await;
    let mut done = host.expect_response(id).await;
    // Its time was up meanwhile: what is left to do may be followed by a handle.
    let handle = text_of(&done).split('`').find(|word| word.len() == 32).map(str::to_owned);
    if let Some(handle) = handle {
        done = host.call("mcpx_task", json!({ "task": handle, "seconds": 10 })).await;
    }
    assert!(!failed(&done), "{done}");
    assert_eq!(said(&done)["form"]["content"]["name"], "Ada");
}

/// A daemon that stops while a question is open: the server is told, and so is the host, also that it
/// need not answer.
#[tokio::test]
async fn f36_a_daemon_that_stops_leaves_no_question_open() {
    let (mut daemon, fake) = one("2025-11-25", "");
    let mut host = able(&daemon, "2025-11-25").await;
    let id = host.take_id();
    host.start_call(id, "up_ask_form", json!({})).await;
    let question = host.expect_request("elicitation/create").await;
    daemon.stop();
    let withdrawn = host.expect_notification("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let done = host.expect_response(id).await;
    assert_eq!(said(&done)["form"]["action"], "cancel", "{done}");
    assert_eq!(fake.ledger("answer ").len(), 1);
}
