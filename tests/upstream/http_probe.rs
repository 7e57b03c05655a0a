//! The opening over HTTP: headers, verdicts, what is remembered (U-11, U-20, U-21, F24, F26).

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::http::{LEGACY, count, error, front, names, refusal};
use crate::setup::{failed, reason};
use crate::support::raw_host::text_of;
use crate::support::scripted_http::{Reply, ScriptedHttp, answers};

/// Core tools beside those of `up`, which cannot be listed here.
const BOTH: &str = "expose.mode = \"both\"";

/// U-20, U-21, U-38: every revision serves calls, with its own headers.
#[tokio::test]
async fn u20_u21_every_revision_over_http() {
    for revision in LEGACY {
        let server = ScriptedHttp::start(move |request| answers::legacy(request, revision)).await;
        let (mut daemon, mut host) = front(&server, "").await;
        let answer = host.call("up_echo", json!({ "text": revision })).await;
        assert_eq!(text_of(&answer), revision, "{answer}\n{}", server.story());
        assert!(server.check_frames() >= 4);
        let version = (revision >= "2025-06-18").then(|| revision.to_owned());
        for request in server.requests() {
            match request.method() {
                Some("server/discover") => {
                    let said = request.header("mcp-protocol-version");
                    assert_eq!(said.as_deref(), Some("2026-07-28"));
                    assert_eq!(request.session(), None);
                }
                Some("initialize") => {
                    assert_eq!(request.header("mcp-protocol-version"), None);
                    assert_eq!(request.session(), None);
                }
                _ => {
                    assert_eq!(request.header("mcp-protocol-version"), version, "{revision}");
                    assert_eq!(request.session().as_deref(), Some(answers::SESSION));
                    assert_eq!(request.header("mcp-method"), None);
                }
            }
        }
        let streams = usize::from(revision >= "2025-03-26");
        assert_eq!(count(&server, "GET"), streams, "{revision}");
        // The end of the session is told.
        daemon.stop();
        assert_eq!(server.nth_verb("DELETE", 1).await.session().as_deref(), Some("session-1"));
    }
    let server = ScriptedHttp::start(answers::modern).await;
    let (mut daemon, mut host) = front(&server, "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "m" })).await), "m");
    let call = server.nth("tools/call", 1).await;
    assert_eq!(call.header("mcp-name").as_deref(), Some("echo"));
    for request in server.requests() {
        assert_eq!(request.header("mcp-method").as_deref(), request.method());
        assert_eq!(request.header("mcp-protocol-version").as_deref(), Some("2026-07-28"));
        assert_eq!(request.session(), None);
    }
    server.check_frames();
    daemon.stop();
    assert!(server.requests().iter().all(|request| request.verb == "POST"));
}

/// U-11, F24: what shows a legacy server.
#[tokio::test]
async fn f24_legacy_servers_by_their_refusals() {
    for case in 0..6 {
        let server = ScriptedHttp::start(move |request| match (request.method(), case) {
            (Some("server/discover"), 0) => Reply::status(400),
            (Some("server/discover"), 1) => {
                let text = "MCP-Protocol-Version header value 2026-07-28 is not supported";
                refusal(400, &error(request, -32000, text))
            }
            (Some("server/discover"), 2) => Reply::text(400, "text/html", "<h1>Bad Request</h1>"),
            (Some("server/discover"), 3) => Reply::status(404),
            (Some("server/discover"), 4) => Reply::status(405),
            (Some("server/discover"), _) => Reply::result(request, json!({})),
            _ => answers::legacy(request, "2025-03-26"),
        })
        .await;
        let (_daemon, mut host) = front(&server, "").await;
        let answer = host.call("up_echo", json!({ "text": "x" })).await;
        assert_eq!(text_of(&answer), "x", "case {case}: {answer}");
        assert_eq!(names(&server)[..2], ["server/discover", "initialize"]);
    }
}

/// U-14, U-11: a server that refuses the first request whatever it is, and lists what it speaks.
#[tokio::test]
async fn u14_a_version_is_asked_for_again() {
    for id in [true, false] {
        let first = AtomicUsize::new(0);
        let server = ScriptedHttp::start(move |request| {
            if first.fetch_add(1, Ordering::Relaxed) > 0 {
                return answers::modern(request);
            }
            let mut body = error(request, -32022, "unsupported");
            body["error"]["data"] = json!({ "supported": ["2026-07-28"], "requested": "x" });
            if !id {
                body["id"] = json!(null);
            }
            refusal(400, &body)
        })
        .await;
        let (_daemon, mut host) = front(&server, "").await;
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
        assert_eq!(names(&server)[..2], ["server/discover", "server/discover"]);
        assert_eq!(count(&server, "initialize"), 0);
    }
}

/// U-11, F24: errors that no other opening mends: the text says what to do, nothing is remembered.
#[tokio::test]
async fn f24_errors_are_told_and_leave_no_record() {
    for (status, words) in [(401, "`auth`"), (403, "`auth`"), (500, "HTTP 500"), (503, "HTTP 503")]
    {
        let server = ScriptedHttp::start(move |_| Reply::text(status, "text/plain", "oh no")).await;
        let (daemon, mut host) = front(&server, BOTH).await;
        let answer = crate::setup::call(&mut host, "up", "echo", json!({})).await;
        let text = answer.to_string();
        assert!(text.contains(words) && text.contains("oh no"), "{text}");
        assert_eq!(count(&server, "initialize"), 0);
        let protocol = daemon.http("GET", "/v1/protocol", None).await;
        assert!(!format!("{protocol:?}").contains("cached"), "{protocol:?}");
    }
    let server =
        ScriptedHttp::start(|request| refusal(400, &error(request, -32021, "needs roots"))).await;
    let (_daemon, mut host) = front(&server, BOTH).await;
    let answer = crate::setup::call(&mut host, "up", "echo", json!({})).await;
    assert!(answer.to_string().contains("needs roots"), "{answer}");
    assert_eq!(count(&server, "initialize"), 0);
}

/// F23, F24: nobody is there; the caller is told so, and when it is tried again.
#[tokio::test]
async fn u11_an_address_where_nobody_listens() {
    let server = ScriptedHttp::start(answers::modern).await;
    let addr = crate::http::end(server).await;
    let gone = ScriptedHttp::start(answers::modern).await;
    let more =
        format!("{BOTH}\n---\ntransport = \"http\"\n\n[servers.lost]\nurl = \"http://{addr}/mcp\"");
    let (daemon, mut host) = front(&gone, &more).await;
    let answer = crate::setup::call(&mut host, "lost", "echo", json!({})).await;
    assert!(failed(&answer), "{answer}");
    assert_eq!(reason(&answer), "unavailable", "{answer}");
    assert!(text_of(&answer).contains("could not be reached"), "{answer}");
    // It comes back, and is used with the next call.
    let _back = ScriptedHttp::start_at(addr, answers::modern).await;
    daemon.cli(&["restart", "lost"]).await.expect_code(0);
    let answer = crate::setup::call(&mut host, "lost", "echo", json!({ "text": "hi" })).await;
    assert_eq!(text_of(&answer), "hi", "{answer}");
}

/// U-17 over HTTP: a remembered legacy server gets no probe, and a wrong record is corrected.
#[tokio::test]
async fn u17_the_era_is_remembered() {
    let server = ScriptedHttp::start(|request| answers::legacy(request, "2025-11-25")).await;
    let (mut daemon, mut host) = front(&server, "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "1" })).await), "1");
    daemon.restart();
    let mut host = crate::setup::host(&daemon, "2025-11-25").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "2" })).await), "2");
    assert_eq!((count(&server, "server/discover"), count(&server, "initialize")), (1, 2));
}

/// F26: a version that mcpx does not speak ends the opening, with both named.
#[tokio::test]
async fn f26_an_unknown_counter_offer() {
    let server = ScriptedHttp::start(|request| answers::legacy(request, "1999-01-01")).await;
    let (_daemon, mut host) = front(&server, BOTH).await;
    let answer = crate::setup::call(&mut host, "up", "echo", json!({})).await;
    assert!(answer.to_string().contains("1999-01-01"), "{answer}");
    assert_eq!(count(&server, "notifications/initialized"), 0);
}

/// F21: a login page in place of a server.
#[tokio::test]
async fn f21_a_login_page_is_named() {
    let page = "<html><head><title>Sign in please</title></head></html>";
    let server = ScriptedHttp::start(move |_| Reply::text(200, "text/html", page)).await;
    let (_daemon, mut host) = front(&server, BOTH).await;
    let answer = crate::setup::call(&mut host, "up", "echo", json!({})).await;
    assert!(answer.to_string().contains("Sign in please"), "{answer}");
}
