//! The raw HTTP host, against the scripted upstream: an answer of one is what the other reads.

use serde_json::{Value, json};

use crate::support::raw_http::{HttpHost, header_value};
use crate::support::schema::MODERN;
use crate::support::scripted_http::{Gate, Reply, ScriptedHttp, answers};

fn progress(token: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": token, "progress": 1 } })
}

fn done(id: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": { "content": [] } })
}

crate::for_revisions! { all;
    /// Handshake, session, headers and a call, as that revision has them.
    async fn a_whole_conversation(revision) {
        let server = ScriptedHttp::start(move |request| match revision {
            MODERN => answers::modern(request),
            _ => answers::legacy(request, revision),
        })
        .await;
        let mut host = HttpHost::at(server.addr(), "/mcp");
        host.open(revision).await;
        assert_eq!(host.list_tools().await, [answers::echo_tool()]);
        let answer = host.call("echo", json!({ "text": "a" })).await;
        assert_eq!(answer["result"]["content"][0]["text"], "a");
        assert_eq!(host.get().send().await.status, 405);
        let call = server.nth("tools/call", 1).await;
        let header = |name: &str| call.header(name).unwrap_or_default();
        assert_eq!(header("accept"), "application/json, text/event-stream");
        let versioned = if revision >= "2025-06-18" { revision } else { "" };
        assert_eq!(header("mcp-protocol-version"), versioned);
        let modern = revision == MODERN;
        assert_eq!(header("mcp-name"), if modern { "echo" } else { "" });
        assert_eq!(header("mcp-session-id"), if modern { "" } else { answers::SESSION });
        assert!(server.check_frames() >= 2);
    }
}

#[tokio::test]
async fn events_are_read_as_they_come() {
    let gate = Gate::new();
    let reply = Reply::sse()
        .chunk("id: 1\ndata:\n\n")
        .chunk(": quiet\n\n")
        .event(&progress("t"))
        .wait(&gate)
        .chunk("retry: 500\n\n")
        .event_in_pieces(&done(1), &[4, 7])
        .end();
    let server = ScriptedHttp::steps(vec![reply]).await;
    let host = HttpHost::at(server.addr(), "/mcp");
    host.frames(|log| log.assume("2025-11-25"));
    let mut stream = host.start_call_with_progress(1, "t", json!({}), "t").await;
    let first = stream.next_block().await.unwrap();
    assert_eq!((first.id.as_deref(), first.data.as_deref()), (Some("1"), Some("")));
    assert!(stream.next_block().await.unwrap().is_comment());
    stream.expect_notification("notifications/progress").await;
    stream.expect_silence(50).await;
    gate.open();
    assert_eq!(stream.next_event().await.unwrap().retry, Some(500));
    assert_eq!(stream.answer(1).await, done(1));
    stream.expect_end().await;
    assert_eq!(stream.last_event_id.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_told_from_one_that_ends() {
    let server = ScriptedHttp::steps(vec![Reply::sse().event(&progress("t")).cut()]).await;
    let host = HttpHost::at(server.addr(), "/mcp");
    host.frames(|log| log.assume("2025-11-25"));
    let mut stream = host.start_call_with_progress(1, "t", json!({}), "t").await;
    stream.expect_notification("notifications/progress").await;
    assert!(stream.next_event().await.is_none() && stream.broke_off());
}

#[tokio::test]
#[should_panic(expected = "no open request")]
async fn a_frame_that_is_not_valid_fails_the_test() {
    let server = ScriptedHttp::steps(vec![Reply::sse().event(&done(2)).end()]).await;
    let host = HttpHost::at(server.addr(), "/mcp");
    host.frames(|log| log.assume("2025-11-25"));
    host.start_call(1, "t", json!({})).await.next_frame().await;
}

#[tokio::test]
async fn headers_are_changed_and_connections_kept() {
    let server = ScriptedHttp::start(|_| Reply::status(202)).await;
    let mut host = HttpHost::at(server.addr(), "/mcp");
    host.headers.push(("Origin".into(), "http://a.test".into()));
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let send = host.post(&message).without("accept").also("X-A", "1").also("X-A", "2");
    let response = send.send().await;
    let wire = response.keep();
    host.post(&message).path("/other").send_on(wire).await.expect_accepted().await;
    let seen = server.requests();
    assert_eq!((server.connections(), seen[1].target.as_str()), (1, "/other"));
    assert_eq!((seen[0].header("accept"), seen[0].all("x-a").len()), (None, 2));
    assert_eq!(seen[0].header("origin").as_deref(), Some("http://a.test"));
}

#[test]
fn names_as_headers_carry_them() {
    // The table of examples on the page "Streamable HTTP" of 2026-07-28.
    for (text, carried) in [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ] {
        assert_eq!(header_value(text), carried);
    }
}
