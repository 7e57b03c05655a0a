//! Questions to legacy hosts: real requests, in the words of their revision, over both transports
//! (E-02 to E-04, E-06, H-29, U-37). What modern hosts are answered stands with the rounds.

use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, http_stranger, open, start};
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::raw_host::{RawHost, text_of};

const SOON: Duration = Duration::from_secs(5);

fn everything() -> Value {
    json!({
        "elicitation": { "form": {}, "url": {} },
        "sampling": { "tools": {} },
        "roots": { "listChanged": true },
    })
}

fn one(args: &str) -> (Daemon, Fake) {
    let daemon = start(|daemon| vec![daemon.fake("up").args(args)], PASS);
    let fake = daemon.fake("up");
    (daemon, fake)
}

async fn able(daemon: &Daemon, revision: &str) -> RawHost {
    let mut host = daemon.shim(&[]);
    host.capabilities = everything();
    open(&mut host, revision).await;
    host
}

/// What a person, a model and a host would say to any question.
fn say(question: &Value) -> Value {
    match question["method"].as_str().unwrap_or_default() {
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "m", "stopReason": "endTurn",
            "content": { "type": "text", "text": "yes" },
        }),
        "roots/list" => json!({ "roots": [{ "uri": "file:///work", "name": "work" }] }),
        _ if question["params"]["mode"] == "url" => json!({ "action": "accept" }),
        _ => json!({ "action": "accept", "content": { "name": "Ada" } }),
    }
}

/// The tools that ask what hosts of this revision can be asked.
fn kinds(revision: &str) -> Vec<&'static str> {
    let mut kinds = vec!["sample", "roots"];
    if revision >= "2025-06-18" {
        kinds.push("form");
    }
    if revision >= "2025-11-25" {
        kinds.push("url");
    }
    kinds
}

/// What the fake heard, by kind.
fn heard(answer: &Value, kind: &str) -> Value {
    let all: Value = serde_json::from_str(&text_of(answer)).unwrap_or_default();
    all[kind].clone()
}

crate::for_revisions! { all_real;
    /// E-06, E-12: each kind, as a request; the answer reaches the server.
    async fn e06_a_legacy_host_is_asked_by_requests(revision) {
        let (daemon, _) = one("");
        let mut host = able(&daemon, revision).await;
        host.answer_with(say);
        for kind in kinds(revision) {
            let answer = host.call(&format!("up_ask_{kind}"), json!({})).await;
            let question = host.answers.asked.last().cloned().unwrap();
            assert_eq!(heard(&answer, kind), say(&question), "{answer}");
            // H-29: a text that no host would draw.
            let id = question["id"].as_str().unwrap_or_default();
            assert!(id.starts_with("mcpx-") && id.len() > 20, "{question}");
        }
        assert_eq!(host.answers.asked.len(), kinds(revision).len());
    }

    /// The same over HTTP, on the stream of the request; answers come in POSTs of their own.
    async fn e06_over_http_on_the_stream_of_the_request(revision) {
        let (daemon, _) = one("");
        let mut host = http_stranger(&daemon).await;
        host.capabilities = everything();
        host.open(revision).await;
        host.answer_with(say);
        for kind in kinds(revision) {
            let answer = host.call(&format!("up_ask_{kind}"), json!({})).await;
            let question = host.asked().last().cloned().unwrap();
            assert_eq!(heard(&answer, kind), say(&question), "{answer}");
        }
        // Who takes no events there cannot be asked, and is not.
        let message = host.message(900, "tools/call", json!({ "name": "up_ask_roots" }));
        let post = host.post(&message).header("Accept", "application/json");
        let answer = post.send().await.answer(900).await;
        assert!(heard(&answer, "roots")["error"]["code"].is_i64(), "{answer}");
    }
}

/// E-03, E-02: the server's own id reaches a host of its revision, which is told when it is done; a
/// modern server has none, and the host gets one of ours.
#[tokio::test]
async fn e03_ids_of_urls() {
    let (daemon, _) = one("");
    let mut host = able(&daemon, "2025-11-25").await;
    host.answer_with(say);
    let answer = host.call("up_ask_url", json!({ "id": "u7", "complete": true })).await;
    assert_eq!(heard(&answer, "url")["action"], "accept");
    assert_eq!(host.answers.asked[0]["params"]["elicitationId"], "elicitation-u7");
    let done = host.expect_notification("notifications/elicitation/complete").await;
    assert_eq!(done["params"], json!({ "elicitationId": "elicitation-u7" }));

    let (daemon, _) = one("--era modern");
    let mut host = able(&daemon, "2025-11-25").await;
    host.answer_with(say);
    for _ in 0..2 {
        let answer = host.call("up_ask_url", json!({})).await;
        assert_eq!(heard(&answer, "url")["action"], "accept");
    }
    let id = |at: usize| host.answers.asked[at]["params"]["elicitationId"].as_str().unwrap();
    assert!(id(0).starts_with("mcpx-") && id(1).starts_with("mcpx-") && id(0) != id(1));
}

/// U-37, SEP-1330: a host of 2025-06-18 knows no choice of several and no default of a text.
#[tokio::test]
async fn u37_forms_of_newer_servers_for_an_older_host() {
    let (daemon, _) = one("");
    let mut host = able(&daemon, "2025-06-18").await;
    host.answer_with(|_| json!({ "action": "accept", "content": { "colors.2": true } }));
    let schema = json!({ "type": "object", "properties": {
        "colors": { "type": "array", "items": { "anyOf": [
            { "const": "r", "title": "Red" }, { "const": "g", "title": "Green" },
        ] } },
        "size": { "type": "string", "enum": ["s", "m"], "default": "m" },
    } });
    let answer = host.call("up_ask_form", json!({ "schema": schema })).await;
    let content = heard(&answer, "form")["content"].clone();
    assert_eq!(content, json!({ "colors": ["g"], "size": "m" }));
    let asked = &host.answers.asked[0]["params"]["requestedSchema"]["properties"];
    assert_eq!(asked["size"], json!({ "type": "string", "enum": ["s", "m"] }));
    assert_eq!(asked["colors.1"]["title"], "colors: Red");
}

/// E-04: a host is asked nothing that it did not declare.
#[tokio::test]
async fn e04_an_undeclared_question_is_not_put() {
    let (daemon, _) = one("");
    let mut host = daemon.shim(&[]);
    host.capabilities = json!({ "elicitation": {} });
    open(&mut host, "2025-11-25").await;
    host.answer_with(say);
    for (tool, kind) in [("ask_url", "url"), ("ask_sample", "sample"), ("ask_roots", "roots")] {
        host.call(&format!("up_{tool}"), json!({ "force": true })).await;
        assert!(host.answers.asked.is_empty(), "{kind} was asked");
    }
    host.call("up_ask_form", json!({})).await;
    assert_eq!(host.answers.asked.len(), 1);
}

/// A host that gives its request up need not answer what it was asked in it; what it says late is
/// nobody's.
#[tokio::test]
async fn f36_a_cancelled_call_withdraws_its_question() {
    let (daemon, fake) = one("");
    let mut host = able(&daemon, "2025-11-25").await;
    host.start_call(7, "up_ask_form", json!({})).await;
    let question = host.expect_request("elicitation/create").await;
    host.cancel(7).await;
    let withdrawn = host.expect_notification("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    host.answer(&question, say(&question)).await;
    host.expect_no_response(7, 100).await;
    eventually!(SOON, !fake.ledger("stopped").is_empty());
    host.answer_with(say);
    let answer = host.call("up_ask_roots", json!({})).await;
    assert_eq!(heard(&answer, "roots"), say(&json!({ "method": "roots/list" })));
}
