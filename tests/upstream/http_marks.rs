//! Arguments repeated in headers towards a modern HTTP server (U-22 to U-26), and a server of both eras
//! that is followed (U-18).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::http::{answer, count, error, front, names, refusal};
use crate::setup;
use crate::support::raw_host::text_of;
use crate::support::schema::MODERN;
use crate::support::scripted_http::{Reply, Request, ScriptedHttp, answers};

/// The tool `mark`: `where.region` is repeated under a name of the test's.
fn mark(header: &str) -> Value {
    json!({ "name": "mark", "inputSchema": { "type": "object", "properties": {
        "count": { "type": "integer", "x-mcp-header": "Count" },
        "where": { "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": header },
        } },
    } } })
}

fn listed(request: &Request, tools: Value) -> Reply {
    let marks = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
    let mut result = marks;
    result["tools"] = tools;
    Reply::result(request, result)
}

/// U-22, U-24, U-25: what is marked is said in headers, spelled as the page says; what is marked badly
/// is no tool, which an event says by name; what cannot be said is refused before it is sent.
#[tokio::test]
async fn u25_marked_arguments_are_mirrored() {
    let server = ScriptedHttp::start(|request| match request.method() {
        Some("tools/list") => {
            let bad = json!({ "name": "bad", "inputSchema": { "type": "object", "properties": {
                "ratio": { "type": "number", "x-mcp-header": "Ratio" },
            } } });
            listed(request, json!([mark("Region"), bad, answers::echo_tool()]))
        }
        _ => answers::modern(request),
    })
    .await;
    let (daemon, mut host) = front(&server, "").await;
    let tools = host.list_tools().await;
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["up_echo", "up_mark"]);
    let events = daemon.cli(&["events", "--json"]).await.expect_code(0).stdout;
    let warning = events.lines().find(|line| line.contains("server.warning")).unwrap();
    assert!(warning.contains("`bad`") && warning.contains("/properties/ratio"), "{warning}");

    let cases = [
        (json!({ "count": 42, "where": { "region": "us-west1" } }), Some("42"), Some("us-west1")),
        (
            json!({ "count": null, "where": { "region": "Hello, 世界" } }),
            None,
            Some("=?base64?SGVsbG8sIOS4lueVjA==?="),
        ),
        (json!({ "where": { "region": "" } }), None, Some("")),
        (json!({ "count": -7 }), Some("-7"), None),
    ];
    for (number, (arguments, count, region)) in cases.into_iter().enumerate() {
        let answered = host.call("up_mark", arguments.clone()).await;
        assert!(answered["result"].is_object(), "{answered}");
        let call = server.nth("tools/call", number + 1).await;
        assert_eq!(call.header("mcp-param-count").as_deref(), count, "{arguments}");
        assert_eq!(call.header("mcp-param-region").as_deref(), region, "{arguments}");
        assert_eq!(call.json()["params"]["arguments"], arguments);
    }
    let refused = host.call("up_mark", json!({ "count": 9_007_199_254_740_992_u64 })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(server.with_method("tools/call").len(), 4);
    server.check_frames();
}

/// U-26: -32020 has the list read again and the call made once more, with what is marked now.
#[tokio::test]
async fn u26_a_changed_schema_is_read_again() {
    let lists = Arc::new(AtomicUsize::new(0));
    let server = ScriptedHttp::start({
        let lists = Arc::clone(&lists);
        move |request| match request.method() {
            Some("tools/list") => {
                let header =
                    if lists.fetch_add(1, Ordering::SeqCst) == 0 { "Region" } else { "Zone" };
                listed(request, json!([mark(header)]))
            }
            Some("tools/call") if request.header("mcp-param-zone").is_none() => {
                refusal(400, &error(request, -32020, "Header mismatch: no Mcp-Param-Zone"))
            }
            _ => answers::modern(request),
        }
    })
    .await;
    let (_daemon, mut host) = front(&server, "").await;
    let arguments = json!({ "where": { "region": "eu" } });
    let answered = host.call("up_mark", arguments.clone()).await;
    assert!(answered["result"].is_object(), "{answered}\n{}", server.story());
    assert_eq!((count(&server, "tools/list"), count(&server, "tools/call")), (2, 2));
    assert!(host.call("up_mark", arguments).await["result"].is_object());
    assert_eq!((count(&server, "tools/list"), count(&server, "tools/call")), (2, 3));
}

/// U-18, P-03: a server of both eras is spoken to in the era of each host, in a session of its own; its
/// legacy calls that hang hold up no modern host.
#[tokio::test]
async fn u18_a_server_of_both_eras_is_followed() {
    let server = ScriptedHttp::start(|request| match request.header("mcp-method") {
        Some(_) => answers::modern(request),
        None if request.json()["params"]["arguments"]["text"] == "hang" => Reply::never(),
        None => match request.method() {
            Some("tools/call") => Reply::json(&answer(request, "legacy")),
            _ => answers::legacy(request, "2025-11-25"),
        },
    })
    .await;
    let (daemon, mut old) = front(&server, "pool.in_flight = 1\n---protocol = \"follow\"").await;
    let mut new = setup::host(&daemon, MODERN).await;
    old.list_tools().await;
    assert_eq!(count(&server, "initialize"), 0, "P-18: {:?}", names(&server));
    let echo = || json!({ "text": "modern" });
    assert_eq!(text_of(&old.call("up_echo", echo()).await), "legacy");
    assert_eq!(text_of(&new.call("up_echo", echo()).await), "modern");
    old.start_call(90, "up_echo", json!({ "text": "hang" })).await;
    server.nth("tools/call", 3).await;
    assert_eq!(text_of(&new.call("up_echo", echo()).await), "modern");
    assert_eq!(count(&server, "initialize"), 1);
    assert_eq!(count(&server, "server/discover"), 1);
    let protocol = daemon.http("GET", "/v1/protocol", None).await.json();
    let shown = &protocol["servers"][0];
    assert_eq!((&shown["era"], &shown["legacy_lane"]), (&json!("modern"), &json!("2025-11-25")));
    server.check_frames();
}

/// P-05: a modern-only server over HTTP is asked for a handshake once.
#[tokio::test]
async fn p05_a_modern_server_is_asked_for_a_handshake_once() {
    let server = ScriptedHttp::start(answers::modern).await;
    let (daemon, mut old) = front(&server, "---protocol = \"follow\"").await;
    for _ in 0..3 {
        assert_eq!(text_of(&old.call("up_echo", json!({ "text": "m" })).await), "m");
    }
    assert_eq!(count(&server, "initialize"), 1, "{:?}", names(&server));
    let status = daemon.cli(&["status", "--json"]).await.expect_code(0).json();
    assert_eq!(status["servers"][0]["state"], "ready", "{status}");
    let protocol = daemon.http("GET", "/v1/protocol", None).await.json();
    assert_eq!(protocol["servers"][0]["legacy_lane"], "refused");
}
