//! Streamable HTTP of 2026-07-28: each request is whole in itself (H-12, H-15, H-31, F27, F37).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, http_host, http_stranger, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{modern_params, text_of};
use crate::support::schema::MODERN;

const SOON: Duration = Duration::from_secs(5);

fn one(more: &str) -> Daemon {
    let more = format!("{PASS}\nhost.progress_interval = \"0s\"\n{more}");
    start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], &more)
}

/// Nothing but the answer: one JSON body, and no session.
#[tokio::test]
async fn h15_a_request_is_whole_in_itself() {
    let daemon = one("");
    let host = http_host(&daemon, MODERN).await;
    let mut answer = host.start_call(1, "up_echo", json!({ "text": "a" })).await;
    assert!(!answer.is_stream() && answer.header("mcp-session-id").is_none());
    assert_eq!(text_of(&answer.answer(1).await), "a");
    let discovered = host.request("server/discover", json!({})).await;
    assert!(discovered["result"]["supportedVersions"].is_array());
    // A session id means nothing here, and neither does a last event.
    let message = host.message(2, "tools/list", json!({}));
    let post = host.post(&message).header("mcp-session-id", "none").header("last-event-id", "1-1");
    let sent = post.send().await;
    assert_eq!((sent.status, sent.header("mcp-session-id")), (200, None));
    for _ in 0..3 {
        // The same id again and again: nothing is remembered.
        assert_eq!(host.start_call(1, "up_echo", json!({})).await.status, 200);
    }
    assert_eq!(daemon.http("GET", "/v1/status", None).await.json()["hosts"], json!([]));
}

/// F37: progress makes a stream, each step before the answer, and the stream ends with it.
#[tokio::test]
async fn f37_progress_and_then_the_answer() {
    let daemon = one("");
    let host = http_host(&daemon, MODERN).await;
    let arguments = json!({ "ms": 60, "steps": 3 });
    let mut answer = host.start_call_with_progress(71, "up_slow", arguments.clone(), "t").await;
    assert!(answer.is_stream());
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    let first = answer.next_event().await.unwrap();
    assert_eq!((first.id.as_ref(), &first.json()["params"]["progress"]), (None, &json!(1)));
    assert_eq!(text_of(&answer.answer(71).await), "done in 3 steps");
    answer.expect_end().await;
    assert_eq!(host.inbox().len(), 2);
    // H-41: no token, no stream.
    let mut answer = host.start_call(72, "up_slow", arguments).await;
    assert!(!answer.is_stream());
    answer.answer(72).await;
}

/// What takes long becomes a stream, so that nobody on the way takes it for dead (H-36).
#[tokio::test]
async fn h36_a_long_call_becomes_a_stream() {
    let daemon = one("http.stream_after = \"50ms\"\ntransport.sse_keep_alive = \"50ms\"");
    let host = http_host(&daemon, MODERN).await;
    let mut answer = host.start_call(71, "up_sleep", json!({ "ms": 400 })).await;
    assert!(answer.is_stream());
    assert!(answer.next_block().await.unwrap().is_comment());
    assert_eq!(text_of(&answer.answer(71).await), "slept");
    answer.expect_end().await;
    let message =
        host.message(72, "tools/call", json!({ "name": "up_sleep", "arguments": { "ms": 200 } }));
    let json = host.post(&message).header("accept", "application/json").send().await;
    assert!(!json.is_stream());
}

/// F27: a host that goes away has cancelled, before the first event and after it.
#[tokio::test]
async fn f27_a_closed_stream_cancels() {
    let daemon = one("");
    let host = http_host(&daemon, MODERN).await;
    let fake = daemon.fake("up");
    let arguments = json!({ "ms": 60_000, "steps": 600 });
    let mut answer = host.start_call_with_progress(71, "up_slow", arguments.clone(), "t").await;
    answer.expect_notification("notifications/progress").await;
    let began = Instant::now();
    drop(answer);
    eventually!(SOON, fake.ledger("stopped").len() == 1);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // While nothing was said yet.
    let slow = json!({ "name": "up_slow", "arguments": { "ms": 60_000 } });
    let message = host.message(72, "tools/call", slow);
    let mut wire = host.dial().await;
    wire.write(&host.post(&message).to_bytes()).await;
    eventually!(SOON, fake.transcript().with_method("tools/call").len() == 2);
    drop(wire);
    eventually!(SOON, fake.ledger("stopped").len() == 2);
    assert_eq!(fake.transcript().with_method("notifications/cancelled").len(), 2);
}

/// H-02: both eras at one address, one beside the other.
#[tokio::test]
async fn h02_both_eras_at_one_address() {
    let daemon = one("");
    let legacy = http_host(&daemon, "2025-06-18").await;
    let modern = http_host(&daemon, MODERN).await;
    assert_eq!(text_of(&legacy.call("up_echo", json!({ "text": "a" })).await), "a");
    assert_eq!(text_of(&modern.call("up_echo", json!({ "text": "b" })).await), "b");
    assert_eq!(text_of(&legacy.call("up_echo", json!({ "text": "c" })).await), "c");
}

/// The page's note on notifications: taken, without effect and without further headers.
#[tokio::test]
async fn notifications_are_taken() {
    let daemon = one("");
    let host = http_stranger(&daemon).await;
    let params = modern_params(json!({ "requestId": 1 }), &json!({}));
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    host.post(&note).without("mcp-method").send().await.expect_accepted().await;
    let bare = json!({ "jsonrpc": "2.0", "method": "notifications/x" });
    host.post(&bare).header("mcp-protocol-version", MODERN).send().await.expect_accepted().await;
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    host.frames(|log| log.assume(MODERN));
    let mut refused = host.post(&answer).header("mcp-protocol-version", MODERN).send().await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json().await.get("id"), None::<&Value>);
}
