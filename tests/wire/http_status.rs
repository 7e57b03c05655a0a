//! The status of every refusal, in both eras, with a JSON-RPC error that its revision has (H-12, H-30,
//! H-31, O-08).

use serde_json::{Value, json};

use crate::setup::{PASS, http_host, http_stranger, start};
use crate::support::daemon::Daemon;
use crate::support::raw_http::Response;
use crate::support::schema::MODERN;

fn one() -> Daemon {
    start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], PASS)
}

/// Status, code and id of an answer.
async fn told(mut response: Response) -> (u16, i64, Value) {
    let status = response.status;
    let body = response.json().await;
    let code = body["error"]["code"].as_i64().unwrap_or_default();
    (status, code, body.get("id").cloned().unwrap_or(json!("left out")))
}

/// A modern host's own refusals.
#[tokio::test]
async fn h12_modern_refusals() {
    let daemon = one();
    let host = http_host(&daemon, MODERN).await;
    let ask = |method: &'static str, params: Value| host.message(7, method, params);
    let list = || ask("tools/list", json!({}));
    let call = || ask("tools/call", json!({ "name": "up_echo", "arguments": {} }));
    let unserved = {
        let mut message = list();
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
        message
    };
    let lacking = |key: &str| {
        let mut message = list();
        let meta = message["params"]["_meta"].as_object_mut().unwrap();
        meta.remove(&format!("io.modelcontextprotocol/{key}")).unwrap();
        message
    };
    let bare = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {} });
    let modern = |message: &Value| {
        host.post(message).header("mcp-protocol-version", MODERN).header("mcp-method", "tools/list")
    };
    let cases = [
        ("no version header", host.post(&list()).without("mcp-protocol-version"), 400, -32020),
        (
            "another version",
            host.post(&list()).header("mcp-protocol-version", "2025-11-25"),
            400,
            -32020,
        ),
        ("no method", host.post(&list()).without("mcp-method"), 400, -32020),
        ("another method", host.post(&list()).header("mcp-method", "TOOLS/LIST"), 400, -32020),
        ("no name", host.post(&call()).without("mcp-name"), 400, -32020),
        ("another name", host.post(&call()).header("mcp-name", "up_add"), 400, -32020),
        ("bad base64", host.post(&call()).header("mcp-name", "=?base64?!?="), 400, -32020),
        ("unserved", host.post(&unserved), 400, -32022),
        ("unserved, header", modern(&unserved), 400, -32020),
        ("no _meta", modern(&bare), 400, -32602),
        ("no version in _meta", modern(&lacking("protocolVersion")), 400, -32602),
        ("no capabilities", modern(&lacking("clientCapabilities")), 400, -32602),
        ("unknown", host.post(&ask("unknown/method", json!({}))), 404, -32601),
        ("initialize", host.post(&ask("initialize", json!({}))), 404, -32601),
        ("ping", host.post(&ask("ping", json!({}))), 404, -32601),
        ("setLevel", host.post(&ask("logging/setLevel", json!({ "level": "info" }))), 404, -32601),
        ("subscribe", host.post(&ask("resources/subscribe", json!({ "uri": "x:y" }))), 404, -32601),
        ("tasks", host.post(&ask("tasks/list", json!({}))), 404, -32601),
        ("an array", host.post(&json!([list()])), 400, -32600),
    ];
    for (what, send, status, code) in cases {
        let (said, number, id) = told(send.send().await).await;
        assert_eq!((said, number), (status, code), "{what}");
        assert_eq!(id, if what == "an array" { json!("left out") } else { json!(7) }, "{what}");
    }
    let (status, _, _) = told(host.post(&list()).header("mcp-name", "x").send().await).await;
    assert_eq!(status, 200, "a name that nothing asks for is not looked at");
    // What an upstream refuses is an answer; its missing capability alone is a refusal (H-12).
    let error = |code: i64| {
        let data = json!({ "requiredCapabilities": { "sampling": {} } });
        json!({ "name": "up_rpc_error", "arguments": { "code": code, "data": data } })
    };
    for (code, status) in [(-32602, 200), (-32000, 200), (-32021, 400)] {
        let told = told(host.start(7, "tools/call", error(code)).await).await;
        assert_eq!(told, (status, code, json!(7)));
    }
    for verb in ["GET", "DELETE"] {
        let send = host.plain(verb, b"").header("mcp-protocol-version", MODERN);
        let answer = send.header("accept", "text/event-stream").send().await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{verb}");
    }
}

/// What is wrong with a request whoever sends it.
#[tokio::test]
async fn h32_refusals_of_either_era() {
    let daemon = one();
    let host = http_stranger(&daemon).await;
    host.frames(|log| log.assume("2025-11-25"));
    let ping = host.message(7, "ping", Value::Null);
    let status = |response: Response| response.status;
    assert_eq!(status(host.post(&ping).header("accept", "text/html").send().await), 406);
    assert_eq!(status(host.post(&ping).without("accept").send().await), 200);
    assert_eq!(status(host.post(&ping).header("accept", "*/*").send().await), 200);
    assert_eq!(status(host.post(&ping).header("content-type", "text/plain").send().await), 415);
    for kind in ["application/json; charset=utf-8", "Application/JSON"] {
        assert_eq!(status(host.post(&ping).header("content-type", kind).send().await), 200);
    }
    for verb in ["PUT", "PATCH"] {
        let answer = host.plain(verb, b"").send().await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, POST, DELETE")));
    }
    assert_eq!(status(host.post(&ping).path("/mcp/none").send().await), 404);
    assert_eq!(status(host.post(&ping).header("mcp-session-id", "none").send().await), 404);
    assert_eq!(status(host.get().send().await), 400);
    assert_eq!(status(host.delete().send().await), 400);
}

crate::for_revisions! { legacy_real;
    /// Bodies that are no messages, arrays and headers of another revision.
    async fn f11_f14_bodies_and_headers(revision) {
        let daemon = one();
        let host = http_host(&daemon, revision).await;
        let unread = if revision == "2025-11-25" { json!("left out") } else { Value::Null };
        // Revisions before 2025-11-25 have no word for an error without an id (H-30).
        host.frames(|log| log.assume(revision));
        let bytes = async |body: &str| told(host.post_bytes(body.as_bytes()).send().await).await;
        for (body, code) in [("hello", -32700), ("", -32700), ("42", -32600), ("[]", -32600)] {
            let (status, said, id) = bytes(body).await;
            // A headerless revision is not told by its header.
            let id_is_right = id == unread || id.is_null();
            assert!(status == 400 && said == code && id_is_right, "{body}: {status} {said} {id}");
        }
        assert_eq!(bytes(r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#).await, (400, -32600, json!(3)));
        let array = json!([host.message(1, "ping", Value::Null)]);
        let (status, code, _) = told(host.post(&array).send().await).await;
        let allowed = revision == "2025-03-26";
        assert_eq!((status, code), if allowed { (200, 0) } else { (400, -32600) });
        let ping = host.message(7, "ping", Value::Null);
        for other in ["1999-01-01", "2025-06-18", "2025-11-25"] {
            if other != revision {
                let send = host.post(&ping).header("mcp-protocol-version", other);
                assert_eq!(told(send.send().await).await, (400, -32600, json!(7)), "{other}");
                let send = host.get().header("mcp-protocol-version", other);
                assert_eq!(send.send().await.status, 400, "{other}");
            }
        }
        assert_eq!(host.post(&ping).without("mcp-protocol-version").send().await.status, 200);
        assert_eq!(host.get().header("accept", "application/json").send().await.status, 406);
        // O-08: what is refused within the protocol is an answer like any other.
        assert_eq!(told(host.start(8, "unknown/method", Value::Null).await).await, (200, -32601, json!(8)));
        assert_eq!(host.start(9, "ping", Value::Null).await.status, 200, "the session lives");
    }
}
