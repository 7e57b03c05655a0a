//! Calls over HTTP: streams, cancelling, sessions that end, outcomes (F18, F22, F23, U-31, U-39, U-40).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::http::{LEGACY, answer, count, error, front, progress, refusal};
use crate::setup::{failed, reason};
use crate::support::raw_host::text_of;
use crate::support::scripted_http::{Reply, Request, ScriptedHttp, answers};

const SOON: Duration = Duration::from_secs(5);

/// Calls are handed to the test; all else is ordinary.
fn hand_over(request: &Request, revision: &str) -> Reply {
    match request.method() {
        Some("tools/call") => Reply::hand_over(),
        _ if revision == "2026-07-28" => answers::modern(request),
        _ => answers::legacy(request, revision),
    }
}

async fn calls_handed_over(revision: &'static str) -> ScriptedHttp {
    ScriptedHttp::start(move |request| hand_over(request, revision)).await
}

/// Progress and answer on one event stream, split in the middle of an event; the order holds.
#[tokio::test]
async fn a_call_answered_by_a_stream() {
    for revision in ["2025-03-26", "2025-11-25", "2026-07-28"] {
        let server = calls_handed_over(revision).await;
        let (_daemon, mut host) = front(&server, "").await;
        host.start_call_with_progress(7, "up_echo", json!({}), "tok").await;
        let call = server.taken().await;
        let pieces = Reply::sse()
            .event(&progress(&call.request, 1))
            .event_in_pieces(&answer(&call.request, "streamed"), &[5, 40])
            .end();
        call.reply(pieces);
        let note = host.expect_notification("notifications/progress").await;
        assert_eq!(note["params"]["progressToken"], "tok");
        assert_eq!(text_of(&host.expect_response(7).await), "streamed");
        server.check_frames();
    }
}

/// `pool.in_flight` exchanges go side by side, and none waits for another's answer.
#[tokio::test]
async fn calls_do_not_wait_for_each_other() {
    let server = calls_handed_over("2026-07-28").await;
    let (_daemon, mut host) = front(&server, "").await;
    for id in 100..116 {
        host.start_call(id, "up_echo", json!({ "text": id.to_string() })).await;
    }
    let mut calls = Vec::new();
    for _ in 0..16 {
        calls.push(server.taken().await);
    }
    for call in calls.iter().rev() {
        let text = call.request.json()["params"]["arguments"]["text"].as_str().unwrap().to_owned();
        call.reply(Reply::json(&answer(&call.request, &text)));
    }
    for id in 100..116 {
        assert_eq!(text_of(&host.expect_response(id).await), id.to_string());
    }
}

/// U-31, F27: a modern server is told by the end of its stream, also before it has answered at all; a
/// legacy one by a notification in the session.
#[tokio::test]
async fn u31_cancelling() {
    for revision in LEGACY.into_iter().chain(["2026-07-28"]) {
        for streaming in [false, true] {
            let server = calls_handed_over(revision).await;
            let (_daemon, mut host) = front(&server, "").await;
            host.start_call(7, "up_echo", json!({})).await;
            let call = server.taken().await;
            if streaming {
                call.reply(Reply::sse().chunk(": hello\n\n"));
            }
            host.cancel(7).await;
            if revision == "2026-07-28" {
                server.wait_gone(&call.request).await;
                assert_eq!(count(&server, "notifications/cancelled"), 0);
            } else {
                let note = server.nth("notifications/cancelled", 1).await;
                assert_eq!(note.json()["params"]["requestId"], call.request.id());
                assert_eq!(note.session().as_deref(), Some(answers::SESSION));
            }
            server.check_frames();
        }
    }
}

/// F18, U-33, F23: a stream that ends without its answer: the outcome is unknown, at once, and the call
/// is not made again.
#[tokio::test]
async fn f18_a_stream_without_its_answer() {
    for revision in ["2025-03-26", "2025-11-25", "2026-07-28"] {
        for cut in [false, true] {
            let server = calls_handed_over(revision).await;
            let (_daemon, mut host) = front(&server, "").await;
            host.start_call_with_progress(7, "up_echo", json!({}), 1).await;
            let call = server.taken().await;
            let stream = Reply::sse().event(&progress(&call.request, 1));
            call.reply(if cut { stream.cut() } else { stream.end() });
            let answer = host.expect_response(7).await;
            assert_eq!(reason(&answer), "outcome_unknown", "{answer}");
            assert_eq!(count(&server, "tools/call"), 1);
        }
    }
}

/// U-39, F16: a primed stream that is closed is opened again by GET after the server's `retry`; the
/// call does not notice.
#[tokio::test]
async fn u39_a_call_is_resumed() {
    let server = ScriptedHttp::start(|request| match (request.verb.as_str(), request.method()) {
        ("GET", _) if request.header("last-event-id").is_some() => Reply::hand_over(),
        _ => hand_over(request, "2025-11-25"),
    })
    .await;
    let (_daemon, mut host) = front(&server, "").await;
    host.start_call(7, "up_echo", json!({})).await;
    let call = server.taken().await;
    let asked = call.request.clone();
    call.reply(Reply::sse().chunk("id: e1\nretry: 200\ndata:\n\n").end());
    // Its connection serves other requests from here on.
    drop(call);
    let began = std::time::Instant::now();
    let get = server.taken().await;
    assert!(began.elapsed() >= Duration::from_millis(190), "{:?}", began.elapsed());
    assert_eq!(get.request.header("last-event-id").as_deref(), Some("e1"));
    assert_eq!(get.request.session().as_deref(), Some(answers::SESSION));
    assert_eq!(get.request.header("mcp-protocol-version").as_deref(), Some("2025-11-25"));
    get.reply(Reply::sse().event_id("e2", &answer(&asked, "resumed")).end());
    assert_eq!(text_of(&host.expect_response(7).await), "resumed");
    assert_eq!(count(&server, "tools/call"), 1);
}

/// U-39: tries that bring nothing are bounded.
#[tokio::test]
async fn u39_resumption_ends() {
    let server = ScriptedHttp::start(|request| match (request.verb.as_str(), request.method()) {
        ("GET", _) if request.header("last-event-id").is_some() => Reply::sse().end(),
        ("POST", Some("tools/call")) => Reply::sse().chunk("id: e1\nretry: 10\n\n").end(),
        _ => answers::legacy(request, "2025-11-25"),
    })
    .await;
    let settings = "upstream.sse_reconnect_attempts = 3\nupstream.sse_reconnect_delay = \"20ms\"";
    let (_daemon, mut host) = front(&server, settings).await;
    let answer = host.call("up_echo", json!({})).await;
    assert_eq!(reason(&answer), "outcome_unknown", "{answer}");
    let resumed = server.requests();
    let resumed = resumed.iter().filter(|request| request.header("last-event-id").is_some());
    assert_eq!(resumed.count(), 3);
}

/// U-39: ids without a message are no progress, however new each is.
#[tokio::test]
async fn u39_priming_alone_ends_too() {
    let last = AtomicUsize::new(0);
    let server =
        ScriptedHttp::start(move |request| match (request.verb.as_str(), request.method()) {
            ("GET", _) if request.header("last-event-id").is_some() => {
                let id = last.fetch_add(1, Ordering::Relaxed);
                Reply::sse().chunk(format!("id: n{id}\nretry: 0\ndata:\n\n")).end()
            }
            ("POST", Some("tools/call")) => Reply::sse().chunk("id: e1\nretry: 0\n\n").end(),
            _ => answers::legacy(request, "2025-11-25"),
        })
        .await;
    let settings = "upstream.sse_reconnect_attempts = 3\nupstream.sse_reconnect_delay = \"20ms\"";
    let (_daemon, mut host) = front(&server, settings).await;
    let answer = host.call("up_echo", json!({})).await;
    assert_eq!(reason(&answer), "outcome_unknown", "{answer}");
    let resumed = server.requests();
    let resumed = resumed.iter().filter(|request| request.header("last-event-id").is_some());
    assert_eq!(resumed.count(), 3);
}

/// U-40, F22: five calls meet the end of their session; one handshake without the old id, each call
/// once more in the new one, and nobody outside notices.
#[tokio::test]
async fn u40_a_lost_session() {
    for body in 0..3 {
        let sessions = Arc::new(AtomicUsize::new(0));
        let opened = Arc::clone(&sessions);
        let server = ScriptedHttp::start(move |request| {
            let present = format!("s{}", opened.load(Ordering::SeqCst));
            match request.method() {
                Some("initialize") => {
                    assert_eq!(request.session(), None);
                    let next = format!("s{}", opened.fetch_add(1, Ordering::SeqCst) + 1);
                    let result = json!({
                        "protocolVersion": "2025-06-18",
                        "capabilities": { "tools": {} },
                        "serverInfo": { "name": "scripted", "version": "1" },
                    });
                    Reply::result(request, result).header("Mcp-Session-Id", &next)
                }
                Some("server/discover") => Reply::status(400),
                _ if request.session() != Some(present) => match body {
                    0 => Reply::status(404),
                    1 => refusal(
                        404,
                        &json!({ "jsonrpc": "2.0", "id": null,
                        "error": { "code": -32001, "message": "Session not found" } }),
                    ),
                    _ => refusal(
                        404,
                        &json!({ "jsonrpc": "2.0", "id": "server-error",
                        "error": { "code": -32600, "message": "Session not found" } }),
                    ),
                },
                _ => answers::legacy(request, "2025-06-18"),
            }
        })
        .await;
        let (daemon, mut host) = front(&server, "").await;
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "a" })).await), "a");
        // The server forgets.
        sessions.fetch_add(1, Ordering::SeqCst);
        for id in 100..105 {
            host.start_call(id, "up_echo", json!({ "text": id.to_string() })).await;
        }
        for id in 100..105 {
            let answer = host.expect_response(id).await;
            assert_eq!(text_of(&answer), id.to_string(), "{answer}");
        }
        assert_eq!(count(&server, "initialize"), 2);
        let renewed: Vec<_> = server
            .with_method("tools/call")
            .into_iter()
            .filter(|request| request.session().as_deref() == Some("s3"))
            .collect();
        assert_eq!(renewed.len(), 5);
        let status = daemon.cli(&["status", "up", "--json"]).await.expect_code(0).json();
        assert!(status.to_string().contains("\"session\":\"s3\""), "{status}");
        assert!(status.to_string().contains("\"restarts\":0"), "{status}");
    }
}

/// F22: other wordings surface, with the server's words, and start nothing.
#[tokio::test]
async fn f22_other_wordings_surface() {
    for case in 0..4 {
        let server = ScriptedHttp::start(move |request| match (request.method(), case) {
            (Some("tools/call"), 0) => Reply::text(400, "text/plain", "Session not found"),
            (Some("tools/call"), 1) => Reply::text(503, "text/plain", "Session not found"),
            (Some("tools/call"), 2) => Reply::json(&error(request, -32000, "Session not found")),
            (Some("tools/call"), _) => refusal(400, &error(request, -32600, "Session not found")),
            _ => answers::legacy(request, "2025-06-18"),
        })
        .await;
        let (_daemon, mut host) = front(&server, "").await;
        let answer = host.call("up_echo", json!({})).await;
        assert!(answer.to_string().contains("Session not found"), "{answer}");
        assert_eq!((count(&server, "initialize"), count(&server, "tools/call")), (1, 1), "{case}");
    }
}

/// F23 over HTTP: a reset after the body was sent is an unknown outcome for a plain tool, and one more
/// try for one that is marked read-only.
#[tokio::test]
async fn f23_a_reset_after_the_body() {
    for read_only in [false, true] {
        let server = ScriptedHttp::start(move |request| match request.method() {
            Some("tools/list") => {
                let mut tool = answers::echo_tool();
                tool["annotations"] = json!({ "readOnlyHint": read_only });
                let result = json!({ "resultType": "complete", "tools": [tool],
                    "ttlMs": 0, "cacheScope": "private" });
                Reply::result(request, result)
            }
            Some("tools/call") => Reply::hand_over(),
            _ => answers::modern(request),
        })
        .await;
        let (_daemon, mut host) = front(&server, "").await;
        host.start_call(7, "up_echo", json!({})).await;
        server.taken().await.reply(Reply::raw("").reset());
        if read_only {
            let call = server.taken().await;
            call.reply(Reply::json(&answer(&call.request, "again")));
            assert_eq!(text_of(&host.expect_response(7).await), "again");
        } else {
            let answer = host.expect_response(7).await;
            assert_eq!(reason(&answer), "outcome_unknown", "{answer}");
        }
        assert_eq!(count(&server, "tools/call"), 1 + usize::from(read_only));
    }
}

/// U-38, F19: tools change on the standalone stream; a server whose stream is mute and slow holds up
/// nothing.
#[tokio::test]
async fn u38_the_standalone_stream() {
    let server = ScriptedHttp::start(|request| match request.verb.as_str() {
        "GET" => Reply::hand_over(),
        _ => answers::legacy(request, "2025-11-25"),
    })
    .await;
    let (_daemon, mut host) = front(&server, "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
    let get = server.taken().await;
    assert_eq!(get.request.header("accept").as_deref(), Some("text/event-stream"));
    // Its head has not come, and calls go on.
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "y" })).await), "y");
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let lists = count(&server, "tools/list");
    get.reply(Reply::sse().event(&changed).open());
    server.nth("tools/list", lists + 1).await;
}

/// product.md 8: a request that is accepted with 202 is answered on the standalone stream.
#[tokio::test]
async fn an_answer_on_the_standalone_stream() {
    let server = ScriptedHttp::start(|request| match (request.verb.as_str(), request.method()) {
        ("GET", _) => Reply::hand_over(),
        (_, Some("tools/call")) => Reply::status(202),
        _ => answers::legacy(request, "2025-03-26"),
    })
    .await;
    let (_daemon, mut host) = front(&server, "").await;
    host.list_tools().await;
    let get = server.taken().await;
    get.reply(Reply::sse());
    host.start_call(7, "up_echo", json!({})).await;
    let call = server.nth("tools/call", 1).await;
    get.event(&answer(&call, "late"));
    assert_eq!(text_of(&host.expect_response(7).await), "late");
}

/// U-46, U-47: what a legacy server asks on the stream of a call is answered by a POST, and the call
/// goes on.
#[tokio::test]
async fn u46_answers_are_posted() {
    let server = calls_handed_over("2025-06-18").await;
    let (_daemon, mut host) = front(&server, "").await;
    host.start_call(7, "up_echo", json!({})).await;
    let call = server.taken().await;
    let ping = json!({ "jsonrpc": "2.0", "id": "p1", "method": "ping" });
    call.reply(Reply::sse().event(&ping));
    let posted = server
        .until("the answer", |all| all.iter().find(|request| request.json()["id"] == "p1").cloned())
        .await;
    assert_eq!(posted.json()["result"], json!({}));
    assert_eq!(posted.session().as_deref(), Some(answers::SESSION));
    call.event(&answer(&call.request, "done"));
    assert_eq!(text_of(&host.expect_response(7).await), "done");
    server.check_frames();
}

/// U-45: an array of a 2025-03-26 server, as a JSON body and as an event.
#[tokio::test]
async fn u45_arrays_are_split() {
    for stream in [false, true] {
        let server = calls_handed_over("2025-03-26").await;
        let (_daemon, mut host) = front(&server, "").await;
        host.start_call(7, "up_echo", json!({})).await;
        let call = server.taken().await;
        let log = json!({ "jsonrpc": "2.0", "method": "notifications/message",
            "params": { "level": "info", "data": "x" } });
        let both = json!([log, answer(&call.request, "split")]);
        call.reply(if stream { Reply::sse().event(&both).end() } else { Reply::json(&both) });
        assert_eq!(text_of(&host.expect_response(7).await), "split");
    }
}

/// F20: odd answers to `notifications/initialized`.
#[tokio::test]
async fn f20_answers_to_notifications() {
    for case in 0..6 {
        let server = ScriptedHttp::start(move |request| match (request.method(), case) {
            (Some("notifications/initialized"), 0) => Reply::json(&json!(null)),
            (Some("notifications/initialized"), 1) => Reply::status(200),
            (Some("notifications/initialized"), 2) => Reply::status(204),
            (Some("notifications/initialized"), 3) => Reply::text(202, "text/plain", "Accepted"),
            (Some("notifications/initialized"), 4) => Reply::json_status(202, &json!({ "ok": 1 })),
            (Some("notifications/initialized"), _) => Reply::sse().open(),
            _ => answers::legacy(request, "2025-06-18"),
        })
        .await;
        let (_daemon, mut host) = front(&server, "").await;
        let answer = host.call("up_echo", json!({ "text": "x" })).await;
        assert_eq!(text_of(&answer), "x", "case {case}: {answer}");
    }
}

/// P-08, F23: the server goes away between two calls and comes back; what never reached it is sent
/// again, and the call in between is told that nobody is there.
#[tokio::test]
async fn a_server_that_comes_back() {
    // Each answer on a connection of its own: on one that dies under a request nothing is known.
    let once = |request: &Request| answers::modern(request).header("Connection", "close").cut();
    let server = ScriptedHttp::start(once).await;
    let (_daemon, mut host) = front(&server, "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "a" })).await), "a");
    let addr = crate::http::end(server).await;
    let answer = host.call("up_echo", json!({ "text": "b" })).await;
    assert!(failed(&answer), "{answer}");
    assert_eq!(reason(&answer), "unavailable", "{answer}");
    let _back = ScriptedHttp::start_at(addr, answers::modern).await;
    crate::eventually!(SOON, text_of(&host.call("up_echo", json!({ "text": "c" })).await) == "c");
}

/// Idle stop ends the session at the server, and the next call opens another.
#[tokio::test]
async fn an_idle_session_is_ended() {
    let server = ScriptedHttp::start(|request| answers::legacy(request, "2025-11-25")).await;
    let (_daemon, mut host) = front(&server, "---\nidle_timeout = \"200ms\"").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "a" })).await), "a");
    let leave = server.nth_verb("DELETE", 1).await;
    assert_eq!(leave.session().as_deref(), Some(answers::SESSION));
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "b" })).await), "b");
    assert_eq!(count(&server, "initialize"), 2);
}

/// U-42 over HTTP: changes of a modern server come on a stream of their own, which is opened again.
#[tokio::test]
async fn u42_changes_of_a_modern_server() {
    let server = ScriptedHttp::start(|request| match request.method() {
        Some("subscriptions/listen") => Reply::hand_over(),
        _ => answers::modern(request),
    })
    .await;
    let settings = "upstream.listen_reopen_delay = \"50ms\"";
    let (_daemon, mut host) = front(&server, settings).await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "a" })).await), "a");
    for round in 0..2 {
        let listen = server.taken().await;
        let note = |method: &str, more: serde_json::Value| {
            let id = listen.request.id();
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
            let mut params = json!({ "_meta": meta });
            for (key, value) in more.as_object().unwrap() {
                params[key] = value.clone();
            }
            json!({ "jsonrpc": "2.0", "method": method, "params": params })
        };
        let agreed = listen.request.json()["params"]["notifications"].clone();
        let acknowledged =
            note("notifications/subscriptions/acknowledged", json!({ "notifications": agreed }));
        listen.reply(Reply::sse().event(&acknowledged));
        let lists = count(&server, "tools/list");
        listen.event(&note("notifications/tools/list_changed", json!({})));
        server.nth("tools/list", lists + 1).await;
        if round == 0 {
            listen.end();
        }
    }
    server.check_frames();
}

/// The status names transport and address, and no query.
#[tokio::test]
async fn the_status_of_a_remote_server() {
    let server = ScriptedHttp::start(|request| answers::legacy(request, "2025-11-25")).await;
    let (daemon, mut host) = front(&server, "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "a" })).await), "a");
    let status = daemon.cli(&["status", "up", "--json"]).await.expect_code(0).json();
    let text = status.to_string();
    assert!(text.contains("\"transport\":\"http\""), "{text}");
    assert!(text.contains(&format!("\"url\":\"{}\"", server.url("/mcp"))), "{text}");
    assert!(text.contains("\"session\":\"session-…\""), "{text}");
    assert!(!text.contains("session-1"), "{text}");
}
