//! What servers are told that they may ask, and questions of a modern server to a modern host, passed through untouched (2026-07-28,
//! basic/patterns/mrtr): what the host declared goes up with its call (U-35), the questions and the
//! state come down whole, and the answers go up as they are in a request of its own.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{answer, error, front, refusal};
use crate::setup;
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::raw_http::HttpHost;
use crate::support::schema::MODERN;
use crate::support::scripted_http::{Reply, Request, ScriptedHttp, answers};

const SOON: Duration = Duration::from_secs(5);

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// As it must come back, byte for byte.
const STATE: &str = r#""a\u0041\/ é+/=\"\\ \u0001 {}""#;

fn question() -> Value {
    json!({ "who": { "method": "elicitation/create", "params": {
        "mode": "form",
        "message": "Who?",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
    } } })
}

/// A question instead of an outcome, with [`STATE`] as it is written there.
fn asking(request: &Request) -> Reply {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"input_required","inputRequests":{},"requestState":{STATE},"_meta":{{"x.test/k":1}}}}}}"#,
        request.id(),
        question()
    );
    Reply::text(200, "application/json", &body)
}

/// Asks once whatever it may ask about; then it says who it was.
fn asks_once(request: &Request) -> Reply {
    let params = request.json()["params"].clone();
    let marks = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
    let with = |key: &str, value: Value| {
        let mut result = marks.clone();
        result[key] = value;
        Reply::result(request, result)
    };
    let who = params["inputResponses"]["who"]["content"]["name"].as_str();
    match request.method() {
        Some("server/discover") => {
            let mut result = marks;
            result["supportedVersions"] = json!([MODERN]);
            result["capabilities"] = json!({ "tools": {}, "prompts": {}, "resources": {} });
            Reply::result(request, result)
        }
        Some("prompts/list") => with("prompts", json!([{ "name": "p" }])),
        Some("resources/list") => with("resources", json!([{ "name": "r", "uri": "x://r" }])),
        Some("resources/templates/list") => with("resourceTemplates", json!([])),
        Some("tools/call" | "prompts/get" | "resources/read")
            if params["_meta"][CAPABILITIES]["elicitation"].is_null() =>
        {
            let mut body = error(request, -32021, "elicitation is needed");
            body["error"]["data"] = json!({ "requiredCapabilities": { "elicitation": {} } });
            refusal(400, &body)
        }
        Some("tools/call" | "prompts/get" | "resources/read") if who.is_none() => asking(request),
        Some("tools/call") => Reply::json(&answer(request, who.unwrap_or_default())),
        Some("prompts/get") => {
            let content = json!({ "type": "text", "text": who });
            Reply::result(
                request,
                json!({ "resultType": "complete", "messages": [{ "role": "user", "content": content }] }),
            )
        }
        Some("resources/read") => with("contents", json!([{ "uri": "x://r", "text": who }])),
        _ => answers::modern(request),
    }
}

/// A host over HTTP that declares more than mcpx carries.
async fn asked(daemon: &Daemon) -> HttpHost {
    let mut host = setup::http_host(daemon, MODERN).await;
    host.capabilities = json!({
        "elicitation": { "form": {} },
        "roots": {},
        "extensions": { "x.test/tasks": {} },
    });
    host
}

/// The same request with an answer and the state that came.
fn again(params: &Value, result: &Value, name: &str) -> Value {
    let mut params = params.clone();
    params["inputResponses"] =
        json!({ "who": { "action": "accept", "content": { "name": name } } });
    params["requestState"] = result["requestState"].clone();
    params
}

/// A question came whole, and mcpx has added nothing but who it is.
fn check_question(answer: &Value) {
    let mut result = answer["result"].clone();
    let meta = result["_meta"].as_object_mut().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(meta.remove("io.modelcontextprotocol/serverInfo").unwrap()["name"], "mcpx");
    let state: Value = serde_json::from_str(STATE).unwrap();
    let expected = json!({
        "resultType": "input_required",
        "inputRequests": question(),
        "requestState": state,
        "_meta": { "x.test/k": 1 },
    });
    assert_eq!(result, expected);
}

/// U-35: one round for all that a server may ask about, in every way a host can ask for it.
#[tokio::test]
async fn u35_one_round() {
    let server = ScriptedHttp::start(asks_once).await;
    for (mode, method, params) in [
        ("passthrough", "tools/call", json!({ "name": "up_echo", "arguments": { "n": 1 } })),
        ("passthrough", "prompts/get", json!({ "name": "up_p" })),
        ("passthrough", "resources/read", json!({ "uri": "x://r" })),
        (
            "core",
            "tools/call",
            json!({ "name": "mcpx_call", "arguments": { "namespace": "up", "tool": "echo" } }),
        ),
        ("core", "tools/call", json!({ "name": "mcpx_read", "arguments": { "uri": "x://r" } })),
    ] {
        let url = server.url("/mcp");
        let daemon = setup::start(
            |_| Vec::new(),
            &format!("expose.mode = \"{mode}\"\n\n[servers.up]\nurl = \"{url}\""),
        );
        let host = asked(&daemon).await;
        let mut params = params;
        if method == "resources/read" || params["name"] == "mcpx_read" {
            let listed = host.request("resources/list", json!({})).await;
            let uri = listed["result"]["resources"][0]["uri"].clone();
            assert!(uri.is_string(), "{listed}");
            if method == "resources/read" {
                params["uri"] = uri;
            } else {
                params["arguments"]["uri"] = uri;
            }
        }
        let before = server.requests().len();
        let question = host.request(method, params.clone()).await;
        check_question(&question);
        let done = host.request(method, again(&params, &question["result"], "Ada")).await;
        assert!(done["result"].to_string().contains("\"Ada\""), "{done}");
        assert_eq!(done["result"]["resultType"], "complete");

        let calls: Vec<Request> = server.requests().split_off(before);
        let calls: Vec<&Request> = calls
            .iter()
            .filter(|call| {
                matches!(call.method(), Some("tools/call" | "prompts/get" | "resources/read"))
            })
            .collect();
        let [first, second] = calls.as_slice() else { panic!("{}", server.story()) };
        assert_ne!(first.id(), second.id());
        for call in [first, second] {
            assert_eq!(
                call.json()["params"]["_meta"][CAPABILITIES],
                json!({ "elicitation": { "form": {} }, "roots": {} }),
            );
        }
        let params = &second.json()["params"];
        assert_eq!(params["requestState"], serde_json::from_str::<Value>(STATE).unwrap());
        assert_eq!(params["inputResponses"]["who"]["content"]["name"], "Ada");
        assert!(first.json()["params"].get("requestState").is_none());
    }
    server.check_frames();
}

/// Bytes of a state are not written anew on their way, in either direction.
#[tokio::test]
async fn a_state_keeps_its_bytes() {
    let server = ScriptedHttp::start(asks_once).await;
    let (daemon, _legacy) = front(&server, "").await;
    let host = asked(&daemon).await;
    let params = json!({ "name": "up_echo", "arguments": {} });
    let message = host.message(1, "tools/call", params.clone());
    let body = message.to_string();
    let body = format!("{},\"requestState\":{STATE}}}}}", body.strip_suffix("}}").unwrap());
    let mut came = host.post(&message).body(body.as_bytes()).send().await;
    check_question(&came.answer(1).await);
    let calls = server.with_method("tools/call");
    let up = String::from_utf8(calls.last().unwrap().body.clone()).unwrap();
    assert!(up.contains(&format!("\"requestState\":{STATE}")), "{up}");
}

/// Two hosts' rounds at one server at a time, and answers without a question: each call has its own.
#[tokio::test]
async fn u35_calls_are_isolated() {
    let server = ScriptedHttp::start(asks_once).await;
    let (daemon, mut legacy) = front(&server, "").await;
    let (one, two) = (asked(&daemon).await, asked(&daemon).await);
    let params = json!({ "name": "up_echo", "arguments": {} });
    let ask = |host| HttpHost::request(host, "tools/call", params.clone());
    let (first, second) = tokio::join!(ask(&one), ask(&two));
    let (ada, bob) =
        (again(&params, &first["result"], "Ada"), again(&params, &second["result"], "Bob"));
    let (ada, bob) = tokio::join!(one.request("tools/call", ada), two.request("tools/call", bob));
    assert_eq!((text_of(&ada), text_of(&bob)), ("Ada".to_owned(), "Bob".to_owned()));

    server.check_frames();

    // What was never asked is forwarded all the same, however odd, and no state is made up.
    let mut unasked = params.clone();
    unasked["inputResponses"] = json!({ "who": 5, "x": null });
    check_question(&one.request("tools/call", unasked.clone()).await);
    let last = server.with_method("tools/call").pop().unwrap().json();
    assert_eq!(last["params"]["inputResponses"], unasked["inputResponses"]);
    assert!(last["params"].get("requestState").is_none());

    // Who declared nothing is refused by the server itself, as a host is that cannot be asked.
    let silent = setup::http_host(&daemon, MODERN).await;
    let mut refused = silent.start(9, "tools/call", params.clone()).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.answer(9).await["error"]["code"], -32021);
    let refused = legacy.call("up_echo", json!({})).await;
    assert!(refused["error"].is_object(), "{refused}");
    for call in server.with_method("tools/call").iter().rev().take(2) {
        assert_eq!(call.json()["params"]["_meta"][CAPABILITIES], json!({}));
    }
}

/// product.md 8: an elicitation that nobody can answer is cancelled, whoever the host; a server that
/// asks all the same, again and again, is given up, and the host is told why.
#[tokio::test]
async fn questions_that_cannot_be_answered_are_refused() {
    let server = ScriptedHttp::start(|request| match request.method() {
        Some("tools/call") => asking(request),
        _ => answers::modern(request),
    })
    .await;
    let (daemon, mut legacy) = front(&server, "").await;
    let said = text_of(&legacy.call("up_echo", json!({})).await);
    assert!(said.contains("elicit.max_rounds"), "{said}");
    let silent = setup::http_host(&daemon, MODERN).await;
    let said = text_of(&silent.call("up_echo", json!({})).await);
    assert!(said.contains("elicit.max_rounds"), "{said}");
}

/// A host of 2025-11-25 that declares this, ready to ask.
async fn able(daemon: &Daemon, capabilities: Value) -> RawHost {
    let mut host = daemon.shim(&[]);
    host.capabilities = capabilities;
    host.initialize("2025-11-25").await;
    host
}

/// U-34, U-36: a legacy server is told at its handshake that it may elicit, whoever the host, and what
/// its host can be asked beside; that the roots of its host changed it hears where that was said.
#[tokio::test]
async fn u36_a_legacy_server_is_told_what_its_host_can_be_asked() {
    let fake = |daemon: &Daemon| {
        daemon.fake("up").args("--era legacy --tools echo").line("scope = \"session\"")
    };
    let daemon = setup::start(|daemon| vec![fake(daemon)], setup::PASS);
    let full = json!({ "sampling": { "tools": {} }, "roots": { "listChanged": true } });
    let mut first = able(&daemon, full).await;
    first.call("up_echo", json!({ "text": "a" })).await;
    let mut second = able(&daemon, json!({ "roots": {}, "experimental": {} })).await;
    second.call("up_echo", json!({ "text": "b" })).await;
    let up = daemon.fake("up");
    let declared: Vec<Value> = up.transcript().with_method("initialize");
    let declared: Vec<&Value> = declared.iter().map(|it| &it["params"]["capabilities"]).collect();
    let elicitation = json!({ "form": {}, "url": {} });
    assert_eq!(
        declared,
        [
            &json!({ "sampling": { "tools": {} }, "roots": { "listChanged": true },
            "elicitation": elicitation }),
            &json!({ "roots": { "listChanged": false }, "elicitation": elicitation }),
        ]
    );
    for host in [&mut first, &mut second] {
        host.notify("notifications/roots/list_changed", Value::Null).await;
        host.request("ping", json!({})).await;
    }
    let heard = || up.transcript().with_method("notifications/roots/list_changed").len();
    crate::eventually!(SOON, heard() == 1);
    second.call("up_echo", json!({ "text": "c" })).await;
    assert_eq!(heard(), 1);
    up.transcript().check_frames();
}

/// E-12: a server that asks for roots right after its handshake, before anything is called, is answered
/// by the host that it serves.
#[tokio::test]
async fn e12_roots_without_a_call() {
    let mut daemon = setup::prepare();
    let heard = daemon.path("heard");
    let script = format!(
        r#"while read -r line; do case "$line" in
*'"method":"initialize"'*) echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}';;
*notifications/initialized*) echo '{{"jsonrpc":"2.0","id":"r","method":"roots/list"}}';;
*'"id":"r"'*) printf '%s' "$line" > '{0}.new'; mv '{0}.new' '{0}';;
*tools/list*) echo '{{"jsonrpc":"2.0","id":2,"result":{{"tools":[]}}}}';;
esac; done"#,
        heard.display()
    );
    let server = format!(
        "[servers.rooted]\ncommand = [\"sh\", \"-c\", {}]\nprotocol = \"force-initialize\"",
        json!(script)
    );
    daemon.write_config(&[], &setup::quick(&format!("{}\n\n{server}", setup::PASS)));
    daemon.launch();
    let mut host = able(&daemon, json!({ "roots": {} })).await;
    let roots = json!({ "roots": [{ "uri": "file:///w" }] });
    host.answer_with(move |_question| roots.clone());
    host.list_tools().await;
    crate::eventually!(SOON, {
        host.request("ping", json!({})).await;
        heard.exists()
    });
    let said: Value = serde_json::from_str(&std::fs::read_to_string(&heard).unwrap()).unwrap();
    assert_eq!(said["result"]["roots"][0]["uri"], "file:///w", "{said}");
}
