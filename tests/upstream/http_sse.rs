//! Servers of 2024-11-05's HTTP+SSE: found, remembered, left again (U-16, U-41).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::http::{answer, count, front, names};
use crate::setup::{self, reason};
use crate::support::raw_host::text_of;
use crate::support::scripted_http::{Reply, Request, ScriptedHttp, answers};

/// A server that answers POSTs at its address with `refusal`, and speaks HTTP+SSE while that is set.
struct Old {
    server: Arc<ScriptedHttp>,
    speaks_it: Arc<AtomicBool>,
    serving: JoinHandle<()>,
}

impl Drop for Old {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn old_server(refusal: u16) -> Old {
    let (posted, mut posts) = mpsc::unbounded_channel::<Request>();
    let speaks_it = Arc::new(AtomicBool::new(true));
    let is_old = Arc::clone(&speaks_it);
    let server = ScriptedHttp::start(move |request| {
        let is_old = is_old.load(Ordering::SeqCst);
        match (request.verb.as_str(), request.target.as_str()) {
            (_, "/mcp") if !is_old => answers::legacy(request, "2025-06-18"),
            ("GET", "/mcp") => Reply::hand_over(),
            ("POST", "/messages?id=1") => {
                let _ = posted.send(request.clone());
                Reply::status(202)
            }
            _ => Reply::text(refusal, "text/plain", "no"),
        }
    })
    .await;
    let server = Arc::new(server);
    let streams = Arc::clone(&server);
    let serving = tokio::spawn(async move {
        loop {
            let stream = streams.taken().await;
            stream.reply(Reply::sse().chunk("event: endpoint\ndata: /messages?id=1\n\n"));
            loop {
                let request = tokio::select! {
                    () = stream.gone() => break,
                    request = posts.recv() => request.unwrap(),
                };
                match request.method() {
                    // A server that falls over.
                    Some("tools/call") if request.json()["params"]["arguments"]["die"] == true => {
                        stream.cut();
                        break;
                    }
                    _ => {
                        if let Some(said) = said_to(&request) {
                            stream.event(&said);
                        }
                    }
                }
            }
        }
    });
    Old { server, speaks_it, serving }
}

fn said_to(request: &Request) -> Option<Value> {
    let result = match request.method()? {
        "initialize" => json!({
            "protocolVersion": "2024-11-05",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "old", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [answers::echo_tool()] }),
        "tools/call" => {
            let text = request.json()["params"]["arguments"]["text"].as_str().unwrap().to_owned();
            return Some(answer(request, &text));
        }
        "ping" => json!({}),
        _ => return None,
    };
    Some(json!({ "jsonrpc": "2.0", "id": request.id(), "result": result }))
}

/// U-41, U-16: bare refusals of both openings lead there, and are not asked for again.
#[tokio::test]
async fn u41_an_old_server_is_found_and_remembered() {
    for status in [400, 404, 405] {
        let old = old_server(status).await;
        let (mut daemon, mut host) = front(&old.server, "").await;
        let answer = host.call("up_echo", json!({ "text": "a" })).await;
        assert_eq!(text_of(&answer), "a", "{answer}\n{}", old.server.story());
        assert_eq!(
            names(&old.server)[..4],
            ["server/discover", "initialize", "GET", "initialize"],
            "{status}"
        );
        old.server.check_frames();
        let status = daemon.cli(&["status", "up", "--json"]).await.expect_code(0).json();
        assert!(status.to_string().contains("\"transport\":\"http+sse\""), "{status}");
        daemon.restart();
        let mut host = setup::host(&daemon, "2025-11-25").await;
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "b" })).await), "b");
        assert_eq!(count(&old.server, "server/discover"), 1);
        assert_eq!(count(&old.server, "initialize"), 3);
    }
}

/// U-41: `transport` says which way, and leaves no other.
#[tokio::test]
async fn u41_the_transport_may_be_configured() {
    let old = old_server(405).await;
    let (_daemon, mut host) = front(&old.server, "---\ntransport = \"sse\"").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "a" })).await), "a");
    assert_eq!(names(&old.server)[..2], ["GET", "initialize"]);

    let old = old_server(405).await;
    let more = "expose.mode = \"both\"\n---\ntransport = \"http\"";
    let (_daemon, mut host) = front(&old.server, more).await;
    let answer = setup::call(&mut host, "up", "echo", json!({})).await;
    assert_eq!(reason(&answer), "unavailable", "{answer}");
    assert!(text_of(&answer).contains("HTTP 405"), "{answer}");
    assert_eq!(count(&old.server, "GET"), 0);
}

/// U-41: credentials go with every message, so it may not go elsewhere.
#[tokio::test]
async fn u41_messages_stay_at_their_origin() {
    let server = ScriptedHttp::start(|request| match request.verb.as_str() {
        "GET" => Reply::sse().chunk("event: endpoint\ndata: http://elsewhere.example/x\n\n").open(),
        _ => Reply::status(405),
    })
    .await;
    let (_daemon, mut host) = front(&server, "expose.mode = \"both\"").await;
    let answer = setup::call(&mut host, "up", "echo", json!({})).await;
    assert!(text_of(&answer).contains("http://elsewhere.example"), "{answer}");
}

/// U-16, U-17: a server that has moved on is found again, and the record corrected.
#[tokio::test]
async fn u17_a_server_that_moved_on() {
    let old = old_server(405).await;
    let (mut daemon, mut host) = front(&old.server, "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "a" })).await), "a");
    old.speaks_it.store(false, Ordering::SeqCst);
    daemon.restart();
    let mut host = setup::host(&daemon, "2025-11-25").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "b" })).await), "b");
    daemon.restart();
    let before = count(&old.server, "GET");
    let mut host = setup::host(&daemon, "2025-11-25").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "c" })).await), "c");
    // Only the standalone stream, after the handshake.
    assert_eq!(count(&old.server, "GET"), before + 1);
    assert_eq!(names(&old.server).last().map(String::as_str), Some("tools/call"));
}

/// F23: the stream ends in the middle of a call; the outcome is unknown, and the next call finds
/// another stream.
#[tokio::test]
async fn f23_a_stream_that_ends() {
    let old = old_server(405).await;
    let (_daemon, mut host) = front(&old.server, "---\ntransport = \"sse\"").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "a" })).await), "a");
    let answer = host.call("up_echo", json!({ "text": "b", "die": true })).await;
    assert_eq!(reason(&answer), "outcome_unknown", "{answer}");
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "c" })).await), "c");
    assert_eq!(count(&old.server, "GET"), 2);
}
