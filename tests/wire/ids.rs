//! Request ids: kept as written, told apart by type, unique among those in flight.

use serde_json::{Value, json};

use crate::setup::{PASS, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::text_of;

fn one() -> Daemon {
    start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], PASS)
}

crate::for_revisions! { all_real;
    /// F12: `1` and `"1"` are two requests.
    async fn f12_number_and_string_at_once(revision) {
        let daemon = one();
        let mut host = host(&daemon, revision).await;
        host.list_tools().await;
        host.start_call(1, "up_slow", json!({ "ms": 200, "steps": 1 })).await;
        host.start_call("1", "up_echo", json!({ "text": "fast" })).await;
        assert_eq!(text_of(&host.expect_response("1").await), "fast");
        assert_eq!(text_of(&host.expect_response(1).await), "done in 1 steps");
        host.expect_silence(30).await;
    }
}

/// F14: integers and strings come back exactly as they were written.
#[tokio::test]
async fn f14_ids_come_back_as_written() {
    let daemon = one();
    let mut host = host(&daemon, "2025-11-25").await;
    // Beyond what the checker's JSON reader can hold without rounding.
    host.strict = false;
    for id in [
        "9007199254740993",
        "18446744073709551615",
        "123456789012345678901234567890",
        "-1",
        "0",
        "\"\"",
        "\"a b\"",
        "\"\\u00e9\\n\"",
        "\"é\"",
    ] {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        host.send_raw(line.as_bytes()).await;
        host.expect("the answer", |message| message.get("result").is_some()).await;
        let text = String::from_utf8_lossy(host.last_read().unwrap()).into_owned();
        assert!(text.contains(&format!("\"id\":{id}")), "{id}: {text}");
    }
}

/// F14: `1.0` and `1e3` are echoed as written or refused, never rewritten.
#[tokio::test]
async fn f14_integers_in_fancy_dress() {
    let daemon = one();
    let mut host = host(&daemon, "2025-11-25").await;
    host.strict = false;
    for id in ["1.0", "1e3"] {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        host.send_raw(line.as_bytes()).await;
        let answer = host.expect("an answer", |message| message.get("method").is_none()).await;
        let text = String::from_utf8_lossy(host.last_read().unwrap()).into_owned();
        let echoed = text.contains(&format!("\"id\":{id}"));
        assert!(echoed || answer["error"]["code"] == -32600, "{id}: {text}");
    }
}

/// F14, H-29: what is no id is refused, and not taken for a notification.
#[tokio::test]
async fn f14_h29_what_is_no_id() {
    let daemon = one();
    let mut host = host(&daemon, "2025-11-25").await;
    for id in ["null", "true", "{}", "[1]", "1.5"] {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        host.send_raw(line.as_bytes()).await;
        let answer = host.expect("a refusal", |message| message.get("method").is_none()).await;
        assert_eq!(answer["error"]["code"], -32600, "{id}: {answer}");
    }
    assert!(host.request("ping", Value::Null).await.get("result").is_some());
}

/// F15: two hosts with the same id on one shared upstream; answers in reverse order.
#[tokio::test]
async fn f15_two_hosts_with_the_same_id() {
    let daemon = one();
    let mut first = host(&daemon, "2025-06-18").await;
    let mut second = host(&daemon, "2025-11-25").await;
    first.start_call(7, "up_slow", json!({ "ms": 300, "steps": 3 })).await;
    crate::eventually!(
        std::time::Duration::from_secs(5),
        daemon.fake("up").transcript().with_method("tools/call").len() == 1
    );
    second.start_call(7, "up_echo", json!({ "text": "second" })).await;
    assert_eq!(text_of(&second.expect_response(7).await), "second");
    assert_eq!(text_of(&first.expect_response(7).await), "done in 3 steps");
    let calls = daemon.fake("up").transcript().with_method("tools/call");
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    assert_eq!(daemon.fake("up").starts(), 1, "they share one process");
}

/// H-29 and product.md 8: an id that is in flight already is refused; the first is unaffected.
#[tokio::test]
async fn h29_the_same_id_twice_in_flight() {
    let daemon = one();
    let mut host = host(&daemon, "2025-11-25").await;
    host.start_call(5, "up_slow", json!({ "ms": 300, "steps": 1 })).await;
    host.start_call(5, "up_echo", json!({ "text": "again" })).await;
    assert_eq!(host.expect_response(5).await["error"]["code"], -32600);
    assert_eq!(text_of(&host.expect_response(5).await), "done in 1 steps");
    // Once it is answered, the id is free again.
    host.start_call(5, "up_echo", json!({ "text": "later" })).await;
    assert_eq!(text_of(&host.expect_response(5).await), "later");
}
