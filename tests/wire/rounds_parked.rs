//! A modern host over a legacy upstream: the call waits for the host's next request, under a state that
//! is good for that and for nothing else (E-06 to E-09, F45).

use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, http_host, open, prepare, quick, reason, start};
use crate::support::asking::{accept, with_responses};
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::schema::MODERN;

const SOON: Duration = Duration::from_secs(5);

fn one(more: &str) -> (Daemon, Fake) {
    let more = format!("{PASS}\n{more}");
    let args = "--era 2025-11-25 --questions";
    let fake = |daemon: &Daemon| daemon.fake("up").args(args).line("scope = \"global\"");
    let daemon = start(|daemon| vec![fake(daemon)], &more);
    let fake = daemon.fake("up");
    (daemon, fake)
}

async fn able(daemon: &Daemon) -> RawHost {
    let mut host = daemon.shim(&[]);
    host.capabilities = json!({ "elicitation": { "form": {} } });
    open(&mut host, MODERN).await;
    host
}

/// How many calls were given up upstream.
fn cancelled(fake: &Fake) -> usize {
    fake.transcript().with_method("notifications/cancelled").len()
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

fn keys(result: &Value) -> Vec<String> {
    let asked = result["inputRequests"].as_object();
    asked.unwrap_or_else(|| panic!("nothing is asked: {result}")).keys().cloned().collect()
}

async fn asked(host: &mut RawHost, params: &Value) -> Value {
    let answer = host.modern("tools/call", params.clone()).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    answer["result"].clone()
}

/// E-06, F45: questions that belong together come together; what is missing is asked again, what is
/// too much ignored; one call upstream is behind all of it.
#[tokio::test]
async fn e06_one_call_waits_through_the_rounds_of_its_host() {
    let (daemon, fake) = one("elicit.gather = \"300ms\"");
    let mut host = able(&daemon).await;
    let params = call("up_ask_many", &json!({}));
    let first = asked(&mut host, &params).await;
    let both = keys(&first);
    assert_eq!(both.len(), 2, "{first}");
    let mut some = json!({ both[0].clone(): accept(json!({ "name": "Ada" })), "other": 5 });
    some[&both[1]] = json!(12345);
    let again = with_responses(&params, &first, some);
    let second = asked(&mut host, &again).await;
    assert_eq!(keys(&second), both[1..], "what is no answer is missing");
    assert_ne!(first["requestState"], second["requestState"]);
    // A state is brought once.
    let twice = host.modern("tools/call", again).await;
    assert_eq!(twice["error"]["code"], -32602, "{twice}");
    assert!(twice["error"]["message"].as_str().unwrap().contains("before"), "{twice}");
    let rest = json!({ both[1].clone(): accept(json!({ "name": "Bob" })) });
    let done = host.modern("tools/call", with_responses(&params, &second, rest)).await;
    let said: Value =
        serde_json::from_str(done["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    let mut named =
        [said["q0"].clone(), said["q1"].clone()].map(|one| one["content"]["name"].clone());
    named.sort_by_key(ToString::to_string);
    assert_eq!(named, [json!("Ada"), json!("Bob")], "{done}");
    assert_eq!(done["result"]["content"][1]["type"], "image");
    assert_eq!(fake.transcript().with_method("tools/call").len(), 1);
}

/// E-07, E-08: refused with every other request, and unharmed by that; good on another connection.
#[tokio::test]
async fn e07_a_state_is_good_for_its_request_alone() {
    let (daemon, _) = one("");
    let mut host = http_host(&daemon, MODERN).await;
    host.capabilities = json!({ "elicitation": { "form": {} } });
    let params = call("up_ask_form", &json!({ "id": "x" }));
    let answer = host.request("tools/call", params.clone()).await;
    let first = &answer["result"];
    let reply = json!({ keys(first)[0].clone(): accept(json!({ "name": "Ada" })) });
    let good = with_responses(&params, first, reply);
    let state = good["requestState"].as_str().unwrap();
    let mut changed = good.clone();
    changed["requestState"] = json!(format!("{state}-TAMPERED"));
    let mut other = good.clone();
    other["arguments"]["id"] = json!("y");
    for (bad, why) in [(changed, "was changed"), (other, "other parameters")] {
        let answer = host.request("tools/call", bad).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
    }
    let mut elsewhere = http_host(&daemon, MODERN).await;
    elsewhere.capabilities = host.capabilities.clone();
    let done = elsewhere.request("tools/call", good).await;
    assert!(text_of(&done).contains("Ada"), "{done}");
}

/// A host that does not come back: its call is cancelled upstream when its time is up, and the state
/// says so afterwards.
#[tokio::test]
async fn a_parked_call_ends_when_its_time_is_up() {
    let (daemon, fake) = one("elicit.state_ttl = \"400ms\"");
    let mut host = able(&daemon).await;
    let params = call("up_ask_form", &json!({}));
    let first = asked(&mut host, &params).await;
    eventually!(SOON, cancelled(&fake) == 1);
    let reply = json!({ keys(&first)[0].clone(): accept(json!({ "name": "Ada" })) });
    let late = with_responses(&params, &first, reply);
    // The state's own end is told in whole seconds.
    eventually!(SOON, {
        let answer = host.modern("tools/call", late.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        answer["error"]["message"].as_str().unwrap().contains("expired")
    });
    // The instance is free again.
    let echo = host.modern("tools/call", call("up_echo", &json!({ "text": "on" }))).await;
    assert_eq!(text_of(&echo), "on");
}

/// A host that does not come back keeps a server with one call at a time from the others only so long.
/// What became of its call it is told with the setting.
#[tokio::test]
async fn a_parked_call_gives_way_to_those_who_wait() {
    let (daemon, fake) = one("elicit.turn = \"300ms\"");
    let params = call("up_ask_form", &json!({}));
    let mut away = able(&daemon).await;
    let first = asked(&mut away, &params).await;
    let reply = |asked: &Value| json!({ keys(asked)[0].clone(): accept(json!({ "name": "Ada" })) });
    let mut other = http_host(&daemon, MODERN).await;
    other.capabilities = json!({ "elicitation": { "form": {} } });
    let echo = other.request("tools/call", call("up_echo", &json!({ "text": "on" }))).await;
    assert_eq!(text_of(&echo), "on");
    eventually!(SOON, cancelled(&fake) == 1);
    let late = away.modern("tools/call", with_responses(&params, &first, reply(&first))).await;
    assert_eq!(reason(&late), "timeout", "{late}");
    assert!(text_of(&late).contains("elicit.turn"), "{late}");
    assert_eq!(fake.transcript().with_method("tools/call").len(), 2);
}

/// More than `elicit.max_parked` do not wait: the newest is refused, with the limit's name. Over HTTP,
/// where each call has its own questions however many are open.
#[tokio::test]
async fn parked_calls_are_bounded() {
    let mut daemon = prepare();
    let fake = daemon.fake("up").args("--era 2025-11-25 --questions").line("scope = \"global\"");
    let (fake, _server) = fake.serve();
    let more = quick(&format!("{PASS}\nelicit.max_parked = 2"));
    daemon.write_config(std::slice::from_ref(&fake), &more);
    daemon.launch();
    let mut host = able(&daemon).await;
    let params = call("up_ask_form", &json!({}));
    let first = asked(&mut host, &params).await;
    asked(&mut host, &params).await;
    let third = host.modern("tools/call", params.clone()).await;
    assert_eq!(reason(&third), "busy", "{third}");
    assert!(text_of(&third).contains("elicit.max_parked"), "{third}");
    eventually!(SOON, cancelled(&fake) == 1);
    let reply = json!({ keys(&first)[0].clone(): accept(json!({ "name": "Ada" })) });
    let done = host.modern("tools/call", with_responses(&params, &first, reply)).await;
    assert!(text_of(&done).contains("Ada"), "{done}");
}

/// E-09: a state outlives its daemon, its call does not: what became of it is not known, and it is not
/// made again.
#[tokio::test]
async fn e09_after_a_restart_the_outcome_is_unknown() {
    let (mut daemon, fake) = one("");
    let mut host = able(&daemon).await;
    let params = call("up_ask_form", &json!({}));
    let first = asked(&mut host, &params).await;
    daemon.kill9();
    daemon.launch();
    let reply = json!({ keys(&first)[0].clone(): accept(json!({ "name": "Ada" })) });
    let answer = host.modern("tools/call", with_responses(&params, &first, reply)).await;
    assert_eq!(reason(&answer), "outcome_unknown", "{answer}");
    assert_eq!(fake.transcript().with_method("tools/call").len(), 1);
}
