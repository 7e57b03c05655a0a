//! Questions in the course of a call, where host and upstream are of different eras or one of them
//! cannot be asked (F45, U-58, E-10, E-15, E-16, product.md 8).

use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, failed, host, http_host, open, reason, start};
use crate::support::asking::accept;
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::schema::MODERN;

const SOON: Duration = Duration::from_secs(5);

fn one(era: &str, more: &str) -> (Daemon, Fake) {
    let more = format!("{PASS}\n{more}");
    let args = format!("--era {era} --offers --questions");
    let fake = |daemon: &Daemon| daemon.fake("up").args(&args).line("scope = \"global\"");
    let daemon = start(|daemon| vec![fake(daemon)], &more);
    let fake = daemon.fake("up");
    (daemon, fake)
}

/// A host that declares these capabilities.
async fn able(daemon: &Daemon, revision: &str, capabilities: Value) -> RawHost {
    let mut host = daemon.shim(&[]);
    host.capabilities = capabilities;
    open(&mut host, revision).await;
    host
}

fn answers(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("no answers: {answer}"));
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {answer}"))
}

/// How many calls were given up upstream.
fn cancelled(fake: &Fake) -> usize {
    fake.transcript().with_method("notifications/cancelled").len()
}

fn calls(fake: &Fake) -> Vec<Value> {
    fake.transcript().with_method("tools/call")
}

/// F45: both questions reach the host, a decline is one, and the retry has an id of its own and the
/// exact state, which the fake checks. E-16: the result keeps everything.
#[tokio::test]
async fn f45_a_legacy_host_is_asked_for_a_modern_upstream() {
    let (daemon, fake) = one("modern", "");
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut host = able(&daemon, revision, json!({ "elicitation": {} })).await;
        let mut times = 0;
        host.answer_with(move |question| {
            assert_eq!(question["method"], "elicitation/create");
            times += 1;
            if times == 1 {
                accept(json!({ "name": "Ada" }))
            } else {
                json!({ "action": "decline" })
            }
        });
        let before = calls(&fake).len();
        let answer = host.call("up_ask_many", json!({ "kinds": ["form", "form"] })).await;
        let said = answers(&answer);
        let mut actions = [said["q0"]["action"].clone(), said["q1"]["action"].clone()];
        actions.sort_by_key(ToString::to_string);
        assert_eq!(actions, [json!("accept"), json!("decline")], "{said}");
        assert_eq!(host.answers.asked.len(), 2);
        let result = &answer["result"];
        assert_eq!(result["content"][1]["type"], "image");
        assert_eq!(result["structuredContent"]["answers"], said);
        let made = calls(&fake).split_off(before);
        assert_eq!(made.len(), 2, "{made:?}");
        assert_ne!(made[0]["id"], made[1]["id"]);
        assert!(made[0]["params"].get("requestState").is_none());
        assert!(made[1]["params"]["requestState"].is_string());
    }
}

/// U-58: rounds follow each other until there is a result, or `elicit.max_rounds` is reached.
#[tokio::test]
async fn u58_rounds_are_bounded_over_both_eras() {
    for era in ["modern", "2025-11-25"] {
        let (daemon, _) = one(era, "elicit.max_rounds = 3");
        for revision in ["2025-11-25", MODERN] {
            // What passes whole from a modern upstream to a modern host has no rounds of ours.
            if era == "modern" && revision == MODERN {
                continue;
            }
            let mut host = able(&daemon, revision, json!({ "elicitation": { "form": {} } })).await;
            host.answer_with(|_| accept(json!({ "name": "Ada" })));
            let answer = host.call("up_ask_rounds", json!({ "n": 3 })).await;
            let said = answers(&answer);
            assert_eq!(said["q2"]["content"]["name"], "Ada", "{era} {revision}: {said}");
            let answer = host.call("up_ask_rounds", json!({ "n": 4 })).await;
            assert!(failed(&answer) && reason(&answer) == "busy", "{era} {revision}: {answer}");
            assert!(text_of(&answer).contains("elicit.max_rounds"), "{answer}");
        }
    }
}

/// F45: calls side by side have each their own state and answers.
#[tokio::test]
async fn f45_parallel_calls_do_not_mix() {
    let (daemon, _) = one("modern", "");
    let mut host = able(&daemon, "2025-11-25", json!({ "elicitation": {} })).await;
    for id in 0..8 {
        host.start_call(100 + id, "up_ask_rounds", json!({ "n": 2, "id": format!("c{id}") })).await;
    }
    host.answer_with(|question| {
        let message = question["params"]["message"].as_str().unwrap();
        let id = message.split(['[', ']']).nth(1).unwrap().to_owned();
        accept(json!({ "name": id }))
    });
    for id in (0..8).rev() {
        let said = answers(&host.expect_response(100 + id).await);
        for key in ["q0", "q1"] {
            assert_eq!(said[key]["content"]["name"], format!("c{id}"), "{said}");
        }
    }
}

/// product.md 8: where nobody can be asked, an elicitation is cancelled and the call goes on; anything
/// else is -32021 to a modern host, with what is missing, and the call is given up upstream.
#[tokio::test]
async fn what_nobody_can_answer() {
    let (daemon, fake) = one("2025-11-25", "");
    // Its server is told of all that may be asked: there is no host yet that lacks it for good.
    let mut other = able(&daemon, MODERN, json!({})).await;
    assert_eq!(text_of(&other.call("up_echo", json!({ "text": "a" })).await), "a");
    for revision in ["2024-11-05", "2025-11-25", MODERN] {
        let mut host = host(&daemon, revision).await;
        let said = answers(&host.call("up_ask_form", json!({ "force": true })).await);
        assert_eq!(said["form"]["action"], "cancel", "{revision}: {said}");
    }
    let host = http_host(&daemon, MODERN).await;
    let params = json!({ "name": "up_ask_sample", "arguments": { "force": true } });
    let mut response = host.start(7, "tools/call", params).await;
    let answer = response.answer(7).await;
    let error = &answer["error"];
    assert_eq!(error["code"], -32021, "{answer}");
    assert_eq!(error["data"]["requiredCapabilities"], json!({ "sampling": {} }), "{answer}");
    assert_eq!(response.status, 400);
    eventually!(SOON, cancelled(&fake) == 1);
    // Many servers ask for roots when they start, whatever is called: a host without them can go on.
    let params = json!({ "name": "up_ask_roots", "arguments": { "force": true } });
    let answer = host.start(8, "tools/call", params).await.answer(8).await;
    let error = &answers(&answer)["roots"]["error"];
    assert!(error["message"].as_str().unwrap().contains("nobody could be asked"), "{answer}");
    assert_eq!(cancelled(&fake), 1);
}

/// U-36: a server with a handshake is told of all that may be asked while only hosts without one are
/// there, and each of them is asked what its request declares.
#[tokio::test]
async fn u36_modern_hosts_alone_are_asked_by_legacy_servers() {
    let (daemon, _) = one("2025-11-25", "");
    let declared = json!({ "sampling": { "tools": {} }, "roots": {} });
    let mut host = able(&daemon, MODERN, declared).await;
    host.answer_with(|question| match question["method"].as_str() {
        Some("roots/list") => json!({ "roots": [{ "uri": "file:///work" }] }),
        _ => json!({ "role": "assistant", "model": "m", "stopReason": "endTurn",
            "content": { "type": "text", "text": "four" } }),
    });
    let said = answers(&host.call("up_ask_roots", json!({})).await);
    assert_eq!(said["roots"]["roots"][0]["uri"], "file:///work", "{said}");
    for arguments in [json!({}), json!({ "tools": true })] {
        let said = answers(&host.call("up_ask_sample", arguments).await);
        assert_eq!(said["sample"]["content"]["text"], "four", "{said}");
    }
}

/// E-15: prompts and resources ask as tools do, both ways.
#[tokio::test]
async fn e15_prompts_and_resources_ask_too() {
    for (era, revision) in [("modern", "2025-11-25"), ("2025-11-25", MODERN), ("modern", MODERN)] {
        let (daemon, _) = one(era, "");
        let mut host = able(&daemon, revision, json!({ "elicitation": {} })).await;
        host.answer_with(|_| accept(json!({ "name": "Ada" })));
        let prompt = host.request("prompts/get", json!({ "name": "up_ask_prompt" })).await;
        let text = prompt["result"]["messages"][0]["content"]["text"].as_str();
        assert!(text.is_some_and(|text| text.contains("Ada")), "{era} {revision}: {prompt}");
        let listed = host.request("resources/list", json!({})).await;
        let all = listed["result"]["resources"].as_array().unwrap();
        let uri = all.iter().find_map(|one| one["uri"].as_str().filter(|uri| uri.ends_with("ask")));
        let uri = uri.unwrap_or_else(|| panic!("no resource that asks: {listed}"));
        let read = host.request("resources/read", json!({ "uri": uri })).await;
        let text = read["result"]["contents"][0]["text"].as_str();
        assert!(text.is_some_and(|text| text.contains("Ada")), "{era} {revision}: {read}");
    }
}

/// 2025-11-25 elicitation page, -32042: a modern host is asked to see to the urls, and the call is made
/// again then.
#[tokio::test]
async fn a_modern_host_sees_to_urls_first() {
    let (daemon, fake) = one("2025-11-25", "");
    let mut host = able(&daemon, MODERN, json!({ "elicitation": { "url": {} } })).await;
    host.answer_with(|question| {
        assert_eq!(question["params"]["mode"], "url");
        json!({ "action": "accept" })
    });
    let said = answers(&host.call("up_ask_url_required", json!({})).await);
    assert_eq!(said["url"]["action"], "accept", "{said}");
    assert_eq!(calls(&fake).len(), 2);
}

/// F36: a host that gives its call up while it is asked: the question goes, and nothing is left.
#[tokio::test]
async fn f36_a_call_is_given_up_while_its_host_is_asked() {
    let (daemon, fake) = one("2025-11-25", "");
    let mut host = able(&daemon, "2025-11-25", json!({ "elicitation": {} })).await;
    host.start_call(5, "up_ask_form", json!({})).await;
    let question = host.expect_request("elicitation/create").await;
    host.cancel(5).await;
    let gone = host.expect_notification("notifications/cancelled").await;
    assert_eq!(gone["params"]["requestId"], question["id"]);
    eventually!(SOON, cancelled(&fake) == 1);
    // A late answer is nobody's.
    host.answer(&question, accept(json!({ "name": "late" }))).await;
    host.expect_no_response(5, 50).await;
    host.answer_with(|_| accept(json!({ "name": "Ada" })));
    let said = answers(&host.call("up_ask_form", json!({})).await);
    assert_eq!(said["form"]["content"]["name"], "Ada");
}

/// E-10: what may destroy is confirmed first, by whichever way the host can be asked, once a call.
#[tokio::test]
async fn e10_a_call_is_confirmed_before_it_is_made() {
    let (daemon, fake) = one("2025-11-25", "elicit.confirm_destructive = true");
    let yes = json!({ "approve": true });
    let able_to = json!({ "elicitation": { "form": {} } });
    for revision in ["2025-06-18", MODERN] {
        let mut host = able(&daemon, revision, able_to.clone()).await;
        for (said, made) in [
            (accept(yes.clone()), 1),
            (accept(json!({ "approve": false })), 0),
            (json!({ "action": "decline" }), 0),
        ] {
            let before = calls(&fake).len();
            host.answer_with(move |_| said.clone());
            let answer = host.call("up_ledger", json!({ "text": "a" })).await;
            assert_eq!(failed(&answer), made == 0, "{revision}: {answer}");
            assert_eq!(calls(&fake).len() - before, made, "{revision}: {answer}");
        }
    }
    // A yes is good for one call.
    let mut host = able(&daemon, MODERN, able_to).await;
    let params = json!({ "name": "up_ledger", "arguments": { "text": "b" } });
    let asked = host.modern("tools/call", params.clone()).await["result"].clone();
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let mut again = params;
    again["inputResponses"] = json!({ key: accept(yes) });
    again["requestState"] = asked["requestState"].clone();
    let before = calls(&fake).len();
    assert!(!failed(&host.modern("tools/call", again.clone()).await));
    assert_eq!(host.modern("tools/call", again).await["error"]["code"], -32602);
    assert_eq!(calls(&fake).len() - before, 1);
}
