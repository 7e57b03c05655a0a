//! Cancellation (F36): the right call, at once, past every queue, and no answer afterwards.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, host, start};
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::raw_host::text_of;

const SOON: Duration = Duration::from_secs(5);

fn one(more: &str) -> (Daemon, Fake) {
    let more = format!("{PASS}\n{more}");
    let daemon = start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], &more);
    let fake = daemon.fake("up");
    (daemon, fake)
}

/// The id that the upstream knows a call of this tool by.
fn upstream_id(fake: &Fake, tool: &str) -> Option<Value> {
    let calls = fake.transcript().with_method("tools/call");
    calls.into_iter().find(|call| call["params"]["name"] == tool).map(|call| call["id"].clone())
}

crate::for_revisions! { all_real;
    /// F36: only the cancelled call is, under its own id; the other is not held up.
    async fn f36_the_right_call_is_cancelled(revision) {
        let (daemon, fake) = one("");
        let mut host = host(&daemon, revision).await;
        host.start_call(101, "up_slow", json!({ "ms": 60_000 })).await;
        eventually!(SOON, upstream_id(&fake, "slow").is_some());
        host.start_call(102, "up_sleep", json!({ "ms": 300 })).await;
        let began = Instant::now();
        host.cancel(101).await;
        eventually!(SOON, !fake.ledger("stopped").is_empty());
        // 50 ms is the aim; the machine of a test run is shared.
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
        assert_eq!(text_of(&host.expect_response(102).await), "slept");
        host.expect_no_response(101, 50).await;
        let cancelled = fake.transcript().with_method("notifications/cancelled");
        assert_eq!(cancelled.len(), 1, "{cancelled:?}");
        assert_eq!(cancelled[0]["params"]["requestId"], upstream_id(&fake, "slow").unwrap());
        // The id may be used again only because its request is over.
        host.start_call(103, "up_echo", json!({ "text": "on" })).await;
        assert_eq!(text_of(&host.expect_response(103).await), "on");
    }
}

/// F36: an id of another type, an unknown one, one long answered, and rubbish are ignored.
#[tokio::test]
async fn f36_cancels_that_name_nothing() {
    let (daemon, fake) = one("");
    let mut host = host(&daemon, "2025-11-25").await;
    host.start_call(1, "up_echo", json!({ "text": "a" })).await;
    host.expect_response(1).await;
    host.start_call(101, "up_sleep", json!({ "ms": 200 })).await;
    eventually!(SOON, upstream_id(&fake, "sleep").is_some());
    for id in [json!("101"), json!(999), json!(1), json!("x")] {
        host.cancel(id).await;
    }
    host.notify("notifications/cancelled", json!({})).await;
    host.notify("notifications/cancelled", Value::Null).await;
    host.notify("notifications/cancelled", json!({ "requestId": null })).await;
    assert_eq!(text_of(&host.expect_response(101).await), "slept");
    assert!(fake.ledger("cancelled").is_empty(), "{:?}", fake.ledger("cancelled"));
}

/// F36: `initialize` cannot be cancelled.
#[tokio::test]
async fn f36_initialize_is_not_cancelled() {
    let (daemon, _) = one("");
    let mut host = daemon.shim(&[]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "x", "version": "1" } } });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1 } });
    host.send_raw(format!("{hello}\n{cancel}\n").as_bytes()).await;
    assert_eq!(host.expect_response(1).await["result"]["protocolVersion"], "2025-06-18");
}

/// F36: cancel and answer cross: at most one answer, and nothing is left over.
#[tokio::test]
async fn f36_cancel_and_answer_cross() {
    let (daemon, _) = one("");
    let mut host = host(&daemon, "2025-11-25").await;
    for id in 200..240 {
        host.start_call(id, "up_echo", json!({ "text": "race" })).await;
        // A varied pause, so that the cancel meets the call in different places.
        tokio::time::sleep(Duration::from_micros(u64::try_from(id - 200).unwrap() * 40)).await;
        host.cancel(id).await;
    }
    host.gather(Duration::from_millis(200)).await;
    // A second answer to one id would have failed the frame check.
    host.inbox.retain(|message| message.get("method").is_none());
    assert!(host.inbox.iter().all(|message| message.get("result").is_some()), "{:?}", host.inbox);
    host.inbox.clear();
    host.start_call(300, "up_echo", json!({ "text": "after" })).await;
    assert_eq!(text_of(&host.expect_response(300).await), "after");
    let status = daemon.cli(&["ps", "--json"]).await.expect_code(0).json();
    assert!(in_flight(&status).iter().all(|count| *count == 0), "{status}");
}

/// Every member `in_flight` of a status page.
fn in_flight(value: &Value) -> Vec<u64> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, child)| match child.as_u64() {
                Some(count) if key == "in_flight" => vec![count],
                _ => in_flight(child),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(in_flight).collect(),
        _ => Vec::new(),
    }
}

/// F36: a call that waits for its turn is cancelled where it waits, and never reaches the upstream.
#[tokio::test]
async fn f36_a_waiting_call_is_cancelled_in_the_queue() {
    let (daemon, fake) = one("pool.in_flight = 1");
    let mut host = host(&daemon, "2025-11-25").await;
    host.start_call(101, "up_slow", json!({ "ms": 60_000 })).await;
    eventually!(SOON, upstream_id(&fake, "slow").is_some());
    host.start_call(102, "up_add", json!({ "a": 1, "b": 1 })).await;
    host.start_call(103, "up_echo", json!({ "text": "turn" })).await;
    host.cancel(102).await;
    // Past the queue: the call that holds the only place is cancelled at once.
    host.cancel(101).await;
    assert_eq!(text_of(&host.expect_response(103).await), "turn");
    host.expect_no_response(102, 50).await;
    assert_eq!(upstream_id(&fake, "add"), None);
}

/// F36 while the upstream is still starting.
#[tokio::test]
async fn f36_a_call_is_cancelled_while_its_server_starts() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--start-delay 600")], "");
    let fake = daemon.fake("up");
    let mut host = host(&daemon, "2025-11-25").await;
    let wanted = json!({ "namespace": "up", "tool": "ledger", "arguments": {} });
    host.start_call(101, "mcpx_call", wanted).await;
    eventually!(SOON, fake.starts() == 1);
    host.cancel(101).await;
    let echo = json!({ "namespace": "up", "tool": "echo", "arguments": { "text": "up" } });
    host.start_call(102, "mcpx_call", echo).await;
    assert_eq!(text_of(&host.expect_response(102).await), "up");
    host.expect_no_response(101, 50).await;
    assert!(fake.ledger("effect").is_empty());
}

/// F36 through `mcpx_call`.
#[tokio::test]
async fn f36_through_mcpx_call() {
    let daemon = start(|daemon| vec![daemon.fake("up")], "");
    let fake = daemon.fake("up");
    let mut host = host(&daemon, "2025-06-18").await;
    let wanted = json!({ "namespace": "up", "tool": "slow", "arguments": { "ms": 60_000 } });
    host.start_call(101, "mcpx_call", wanted).await;
    eventually!(SOON, upstream_id(&fake, "slow").is_some());
    host.cancel(101).await;
    eventually!(SOON, !fake.ledger("stopped").is_empty());
    host.expect_no_response(101, 50).await;
}

/// A host that vanishes takes its calls with it (house 4.5a step 9).
#[tokio::test]
async fn f36_a_host_that_vanishes_cancels_its_calls() {
    let (daemon, fake) = one("");
    let mut host = host(&daemon, "2025-11-25").await;
    host.start_call(101, "up_slow", json!({ "ms": 60_000 })).await;
    eventually!(SOON, upstream_id(&fake, "slow").is_some());
    drop(host);
    eventually!(SOON, !fake.ledger("stopped").is_empty());
}
