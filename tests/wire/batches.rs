//! JSON-RPC arrays (F11, H-27, H-28).

use serde_json::{Value, json};

use crate::setup::{PASS, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};

fn one() -> Daemon {
    start(|daemon| vec![daemon.fake("up").args("--tools echo,slow")], PASS)
}

fn ping(id: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

async fn invalid_request(host: &mut RawHost) {
    host.expect("one -32600", |message| message["error"]["code"] == -32600).await;
    host.expect_silence(50).await;
    assert!(host.request("ping", Value::Null).await.get("result").is_some(), "the session lives");
}

/// F11, H-28: 2025-03-26 has batches: each request in one is answered, the notification is not.
#[tokio::test]
async fn f11_a_batch_at_2025_03_26() {
    let daemon = one();
    let mut host = host(&daemon, "2025-03-26").await;
    host.send(&json!([
        ping(71),
        { "jsonrpc": "2.0", "method": "notifications/x" },
        { "jsonrpc": "2.0", "id": 72, "method": "tools/list" },
        { "jsonrpc": "2.0", "id": 73, "method": "tools/call",
          "params": { "name": "up_echo", "arguments": { "text": "in a batch" } } },
    ]))
    .await;
    assert_eq!(host.expect_response(71).await["result"], json!({}));
    assert!(host.expect_response(72).await["result"]["tools"].is_array());
    assert_eq!(text_of(&host.expect_response(73).await), "in a batch");
    host.expect_silence(50).await;
}

/// F11: notifications and answers alone make no answer.
#[tokio::test]
async fn f11_a_batch_without_requests() {
    let daemon = one();
    let mut host = host(&daemon, "2025-03-26").await;
    host.send(&json!([
        { "jsonrpc": "2.0", "method": "notifications/x" },
        { "jsonrpc": "2.0", "id": 5, "result": {} },
    ]))
    .await;
    host.expect_silence(100).await;
}

/// F36 in a batch: a request that the same array cancels leaves the others' answers alone.
#[tokio::test]
async fn f11_a_cancelled_request_in_a_batch() {
    let daemon = one();
    let mut host = host(&daemon, "2025-03-26").await;
    host.send(&json!([
        { "jsonrpc": "2.0", "id": 80, "method": "tools/call",
          "params": { "name": "up_slow", "arguments": { "ms": 60_000 } } },
        ping(81),
    ]))
    .await;
    host.cancel(80).await;
    assert_eq!(host.expect_response(81).await["result"], json!({}));
    host.expect_no_response(80, 100).await;
}

/// F11: no members, and members that are no messages.
#[tokio::test]
async fn f11_an_empty_batch_and_bad_members() {
    let daemon = one();
    let mut host = host(&daemon, "2025-03-26").await;
    host.send_raw(b"[]\n").await;
    invalid_request(&mut host).await;
    host.send(&json!([1, ping(91)])).await;
    host.expect("-32600 for the number", |message| message["error"]["code"] == -32600).await;
    assert!(host.expect_response(91).await.get("result").is_some());
}

/// H-28: `initialize` is never inside a batch.
#[tokio::test]
async fn h28_initialize_in_a_batch() {
    let daemon = one();
    let mut host = host(&daemon, "2025-03-26").await;
    let initialize = json!({ "jsonrpc": "2.0", "id": 60, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "x", "version": "1" } } });
    host.send(&json!([initialize, ping(61)])).await;
    host.expect("-32600", |message| message["error"]["code"] == -32600).await;
    // Whatever became of the rest, the agreement is the old one.
    host.send(&json!([ping(62)])).await;
    assert!(host.expect_response(62).await.get("result").is_some());
}

/// F11: later revisions have no batches: one -32600, and the session lives.
#[tokio::test]
async fn f11_a_batch_at_later_revisions() {
    let daemon = one();
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut host = host(&daemon, revision).await;
        host.send(&json!([ping(71), ping(72)])).await;
        invalid_request(&mut host).await;
        host.send_raw(b"[]\n").await;
        invalid_request(&mut host).await;
    }
}

/// H-27: a batch before the handshake counts as 2025-03-26.
#[tokio::test]
async fn h27_a_batch_before_the_handshake() {
    let daemon = one();
    let mut host = daemon.shim(&[]);
    host.frames.assume("2025-03-26");
    host.send(&json!([ping(1), { "jsonrpc": "2.0", "id": 2, "method": "tools/list" }])).await;
    assert_eq!(host.expect_response(1).await["result"], json!({}));
    assert!(host.expect_response(2).await["result"]["tools"].is_array());
}
