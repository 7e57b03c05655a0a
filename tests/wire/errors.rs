//! Error codes (O-08, H-30): a sweep over every way to go wrong, in both eras.

use serde_json::{Value, json};

use crate::setup::{PASS, host, open, start};
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::raw_host::{RawHost, modern_params};
use crate::support::schema::MODERN;

const COMMON: [i64; 5] = [-32700, -32600, -32601, -32602, -32603];

fn allowed(revision: &str, code: i64) -> bool {
    if COMMON.contains(&code) {
        return true;
    }
    // Beyond those, numbers are an upstream's own words, but for what a revision reserves.
    match code {
        -32768..=-32100 => false,
        -32021 | -32022 => revision == MODERN,
        -32020 => false,
        -32002 => revision != MODERN,
        -32042 => revision == "2025-11-25",
        -32099..=-32023 => revision != MODERN,
        _ => true,
    }
}

fn fakes(daemon: &Daemon) -> Vec<Fake> {
    vec![
        daemon.fake("up"),
        daemon.fake("dead").args("--exit 1 --stderr-text gone"),
        daemon.fake("mute").args("--initialize-silent --probe silent"),
        daemon.fake("broken").args("--tools echo --list-error -32050"),
    ]
}

const SETTINGS: &str = "upstream.handshake_timeout = \"600ms\"\nexpose.list_wait = \"1s\"\n\
                        call.idle_timeout = \"400ms\"";

/// Writes a frame and gives the next answer, whatever its id.
async fn raw(host: &mut RawHost, line: &str) -> Value {
    host.send_raw(format!("{line}\n").as_bytes()).await;
    host.expect("an answer", |message| message.get("method").is_none()).await
}

fn check(revision: &str, what: &str, answer: &Value, seen: &mut usize) {
    let Some(code) = answer["error"].get("code") else { return };
    let code = code.as_i64().unwrap_or_else(|| panic!("{what}: no whole number: {answer}"));
    assert!(allowed(revision, code), "{what} at {revision}: {answer}");
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(!message.is_empty(), "{what} at {revision}: {answer}");
    *seen += 1;
}

crate::for_revisions! { all_real;
    /// O-08, H-30: no stray reserved code, whatever goes wrong, and a message each time.
    async fn o08_h30_sweep(revision) {
        let daemon = start(fakes, &format!("expose.mode = \"both\"\n{SETTINGS}"));
        let mut host = host(&daemon, revision).await;
        let mut seen = 0;
        for (method, params) in [
            ("no/such", Value::Null),
            ("", Value::Null),
            ("tools/list", json!({ "cursor": "rubbish" })),
            ("tools/list", json!({ "cursor": 7 })),
            ("tools/call", Value::Null),
            ("tools/call", json!({ "name": 5 })),
            ("tools/call", json!({ "name": "no_such_tool" })),
            ("tools/call", json!({ "name": "up_echo", "arguments": [1] })),
            ("tools/call", json!({ "name": "mcpx_call" })),
            ("tools/call", json!({ "name": "mcpx_call", "arguments": { "namespace": "no", "tool": "x" } })),
            ("tools/call", json!({ "name": "mcpx_call", "arguments": { "namespace": "dead", "tool": "x" } })),
            ("tools/call", json!({ "name": "mcpx_call", "arguments": { "namespace": "mute", "tool": "x" } })),
            ("tools/call", json!({ "name": "mcpx_call", "arguments": { "namespace": "broken", "tool": "echo" } })),
            ("tools/call", json!({ "name": "mcpx_namespaces", "arguments": { "namespace": "dead" } })),
            ("tools/call", json!({ "name": "mcpx_status", "arguments": { "namespace": "no" } })),
            ("tools/call", json!({ "name": "up_hang" })),
            ("tools/call", json!({ "name": "up_die" })),
            ("resources/read", json!({ "uri": "mcpx://no/such" })),
            ("prompts/get", json!({ "name": "no" })),
            ("completion/complete", json!({})),
            ("logging/setLevel", json!({ "level": "loud" })),
            ("tasks/get", json!({ "taskId": "no" })),
            ("server/discover", json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": 5 } })),
        ] {
            let answer = host.request(method, params.clone()).await;
            check(revision, &format!("{method} {params}"), &answer, &mut seen);
        }
        // H-30: a code of an upstream's own is relayed only where it means nothing else.
        for code in [-32700, -32600, -32601, -32602, -32603, -32000, -32002, -32004, -32020, -32021,
            -32022, -32042, -32050, 1, 404, -1]
        {
            // What the schemas demand beside some codes.
            let data = json!({ "elicitations": [], "requiredCapabilities": {}, "supported": [],
                "requested": "x", "uri": "x://y" });
            let arguments = json!({ "code": code, "message": "from upstream", "data": data });
            let answer = host.call("up_rpc_error", arguments).await;
            check(revision, &format!("upstream's {code}"), &answer, &mut seen);
            assert!(answer.to_string().contains("from upstream"), "{answer}");
        }
        assert!(seen > 20, "{seen}");
    }
}

/// H-30, product.md 8: frames that are no requests. -32700 only where an id can be read.
#[tokio::test]
async fn h30_malformed_frames() {
    let daemon = start(fakes, PASS);
    for revision in ["2025-11-25", MODERN] {
        let mut host = host(&daemon, revision).await;
        let mut seen = 0;
        for line in [
            r#"{"jsonrpc":"2.0","id":50}"#,
            r#"{"jsonrpc":"2.0","id":51,"method":5}"#,
            r#"{"id":52,"method":"tools/list"}"#,
            r#"{"jsonrpc":"1.0","id":53,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":54,"method":"tools/list","params":[1]}"#,
            r#"{"jsonrpc":"2.0","id":55,"method":"tools/list","params":"x"}"#,
            r#"{"jsonrpc":"2.0","id":56,"method":"tools/list","params":{"#,
        ] {
            let answer = raw(&mut host, line).await;
            check(revision, line, &answer, &mut seen);
        }
        // Without an id there is nobody to answer: passed over, and the stream goes on.
        for line in ["this is no JSON", "{", "42", "\"x\"", "null", "\u{1}\u{2}", "{\"a\":1}"] {
            host.send_raw(format!("{line}\n").as_bytes()).await;
        }
        host.gather(std::time::Duration::from_millis(100)).await;
        for answer in std::mem::take(&mut host.inbox) {
            check(revision, "rubbish", &answer, &mut seen);
        }
        let list = host.request("tools/list", Value::Null).await;
        assert!(list.get("result").is_some(), "the stream goes on: {list}");
    }
}

/// F06 towards hosts: an error is never answered with an error.
#[tokio::test]
async fn f06_errors_are_not_answered() {
    let daemon = start(fakes, PASS);
    let mut host = daemon.shim(&[]);
    open(&mut host, "2025-11-25").await;
    for id in ["null", "1", "\"x\""] {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32700,\"message\":\"no\"}}}}\n"
        );
        host.send_raw(line.as_bytes()).await;
    }
    host.expect_silence(100).await;
}

/// F09 towards hosts: bytes that are no UTF-8 end nothing.
#[tokio::test]
async fn f09_a_host_that_sends_no_utf8() {
    let daemon = start(fakes, PASS);
    let mut host = daemon.shim(&[]);
    open(&mut host, "2025-11-25").await;
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":90,\"method\":\"tools/call\",\"params\":{\"name\":\
                 \"up_echo\",\"arguments\":{\"text\":\"a\xc7\xd1b\"}}}\n";
    host.send_raw(line).await;
    host.frames.incoming(br#"{"jsonrpc":"2.0","id":90,"method":"tools/call"}"#);
    let answer = host.expect("an answer", |message| message.get("method").is_none()).await;
    assert_eq!(answer["id"], 90, "{answer}");
    assert!(host.request("ping", Value::Null).await.get("result").is_some());
}

/// A frame beyond `link.max_frame` fails alone.
#[tokio::test]
async fn a_host_frame_beyond_the_limit_fails_alone() {
    let daemon = start(fakes, &format!("{PASS}\nlink.max_frame = \"64KiB\""));
    let mut host = host(&daemon, MODERN).await;
    let params = modern_params(
        json!({ "name": "up_echo", "arguments": { "text": "x".repeat(100_000) } }),
        &json!({}),
    );
    host.start(70, "tools/call", params).await;
    let small = json!({ "text": "small" });
    host.start_call(71, "up_echo", small).await;
    assert_eq!(crate::support::raw_host::text_of(&host.expect_response(71).await), "small");
}
