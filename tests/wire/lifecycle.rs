//! Openings, early and odd messages, and the end of input.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::setup::{PASS, call, find, host, open, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, modern_params, text_of};
use crate::support::schema::{MODERN, NEWEST_LEGACY};

fn one(more: &str) -> Daemon {
    start(|daemon| vec![daemon.fake("up").args("--tools echo,add")], more)
}

crate::for_revisions! { all_real;
    /// H-01, H-07: the opening of each revision, then list and call in it.
    async fn h01_opening_list_and_call(revision) {
        let daemon = one("");
        let mut host = host(&daemon, revision).await;
        let tools = host.list_tools().await;
        let core = [
            "namespaces",
            "search",
            "types",
            "call",
            "exec",
            "read",
            "resources",
            "scripts",
            "task",
            "status",
        ];
        assert_eq!(crate::setup::names(&tools), core.map(|name| format!("mcpx_{name}")));
        assert_eq!(text_of(&call(&mut host, "up", "echo", json!({ "text": "hello" })).await), "hello");
    }

    /// H-22 to H-24: what mcpx says of itself in the opening.
    async fn h22_h23_h24_identity_and_capabilities(revision) {
        let daemon = one("");
        let mut host = daemon.shim(&[]);
        let result = if revision == MODERN {
            host.use_modern();
            host.modern("server/discover", Value::Null).await["result"].clone()
        } else {
            host.initialize(revision).await
        };
        let instructions = result["instructions"].as_str().unwrap_or_default();
        assert!(instructions.contains("mcpx_namespaces") && instructions.len() < 1024);
        let capabilities = &result["capabilities"];
        assert_eq!(capabilities["tools"]["listChanged"], true);
        let tasks = capabilities["tasks"]["requests"]["tools"]["call"].is_object();
        assert_eq!(tasks, revision == "2025-11-25", "{capabilities}");
        let extension = &capabilities["extensions"]["io.modelcontextprotocol/tasks"];
        assert_eq!(extension.is_object(), revision == MODERN, "{capabilities}");
        let info = if revision == MODERN {
            &result["_meta"]["io.modelcontextprotocol/serverInfo"]
        } else {
            &result["serverInfo"]
        };
        assert_eq!(info["name"], "mcpx");
        assert!(info["version"].is_string(), "{info}");
        assert_eq!(info.get("title").is_some(), revision >= "2025-06-18", "{info}");
        assert_eq!(info.get("description").is_some(), revision >= "2025-11-25", "{info}");
    }
}

mod envelope {
    use super::{PASS, Value, host, json, one};

    crate::for_revisions! { legacy_real;
        /// H-17, H-18: legacy results have no envelope.
        async fn h17_legacy_results_have_no_envelope(revision) {
            let daemon = one(PASS);
            let mut host = host(&daemon, revision).await;
            for answer in [
                host.request("tools/list", Value::Null).await,
                host.call("up_echo", json!({ "text": "x" })).await,
            ] {
                assert!(answer["result"].get("resultType").is_none(), "{answer}");
                assert!(answer["result"].get("_meta").is_none(), "{answer}");
                assert!(answer["result"].get("ttlMs").is_none(), "{answer}");
            }
        }
    }
}

/// H-06: an `initialize` without usable params still succeeds.
#[tokio::test]
async fn h06_initialize_without_usable_params() {
    let daemon = one("");
    for params in [Value::Null, json!({}), json!({ "protocolVersion": 7 }), json!([1])] {
        let mut host = daemon.shim(&[]);
        host.start(1, "initialize", params.clone()).await;
        let answer = host.expect_response(1).await;
        assert_eq!(answer["result"]["protocolVersion"], NEWEST_LEGACY, "{params}: {answer}");
    }
}

/// F35: whatever a host sends early is answered, and the session lives.
#[tokio::test]
async fn f35_early_messages() {
    let daemon = one(PASS);
    let mut host = daemon.shim(&[]);
    host.frames.assume("2024-11-05");
    assert!(host.request("ping", Value::Null).await["result"].is_object());
    host.initialize_only("2025-06-18").await;
    let level = host.request("logging/setLevel", json!({ "level": "info" })).await;
    assert!(level.get("result").is_some() || level.get("error").is_some());
    assert_eq!(
        host.request("tools/list", Value::Null).await["result"]["tools"][0]["name"],
        "up_add"
    );
    host.notify("notifications/initialized", Value::Null).await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "on" })).await), "on");
}

/// F35, H-05: repeated handshake messages, and the odd bare `initialized`, harm nothing.
#[tokio::test]
async fn f35_repeated_handshake_messages() {
    let daemon = one(PASS);
    let mut host = host(&daemon, "2025-06-18").await;
    host.notify("notifications/initialized", Value::Null).await;
    host.notify("initialized", Value::Null).await;
    host.expect_silence(50).await;
    let again = host.initialize_only("2025-06-18").await;
    assert!(again.get("result").is_some() || again["error"]["code"] == -32600, "{again}");
    host.notify("notifications/initialized", Value::Null).await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "on" })).await), "on");
}

/// H-26: requests before any handshake are served, spelled for 2024-11-05.
#[tokio::test]
async fn h26_requests_before_a_handshake() {
    let daemon = one(PASS);
    let mut host = daemon.shim(&[]);
    host.frames.assume("2024-11-05");
    let tools = host.list_tools().await;
    assert!(find(&tools, "up_echo").get("annotations").is_none());
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "early" })).await), "early");
}

/// H-02: the era is chosen by each message; both mix on one connection.
#[tokio::test]
async fn h02_eras_mix_on_one_connection() {
    let daemon = one(PASS);
    let mut host = host(&daemon, "2025-03-26").await;
    assert!(host.request("tools/list", Value::Null).await["result"].get("resultType").is_none());
    assert_eq!(host.modern("tools/list", Value::Null).await["result"]["resultType"], "complete");
    assert!(host.request("tools/list", Value::Null).await["result"].get("resultType").is_none());
}

/// H-15: what a modern request declared is forgotten with it.
#[tokio::test]
async fn h15_modern_capabilities_are_not_remembered() {
    let daemon = one(PASS);
    let mut host = host(&daemon, MODERN).await;
    host.capabilities = json!({ "elicitation": { "form": {} } });
    assert!(host.modern("tools/list", Value::Null).await.get("result").is_some());
    let mut params = modern_params(Value::Null, &json!({}));
    params["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    host.start(900, "tools/list", params).await;
    assert_eq!(host.expect_response(900).await["error"]["code"], -32602);
}

/// H-33: the shim leaves promptly at the end of its input.
#[tokio::test]
async fn h33_end_of_input_ends_the_shim() {
    let daemon = one("");
    let mut host = host(&daemon, "2025-11-25").await;
    let began = Instant::now();
    host.close_input().await;
    assert!(host.wait_exit().await.success());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// H-33: also where a call is in flight; nobody is there to hear its answer.
#[tokio::test]
async fn h33_end_of_input_with_a_call_in_flight() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--tools slow")], PASS);
    let mut host = host(&daemon, "2025-11-25").await;
    host.start_call(70, "up_slow", json!({ "ms": 60_000 })).await;
    let up = daemon.fake("up");
    crate::eventually!(
        Duration::from_secs(5),
        !up.transcript().with_method("tools/call").is_empty()
    );
    let began = Instant::now();
    host.close_input().await;
    host.wait_exit().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // Its work upstream is given up.
    crate::eventually!(Duration::from_secs(5), !up.ledger("stopped").is_empty());
}

/// F01 on the shim: a host that ends lines with CR LF is understood, and answered with bare LF.
#[tokio::test]
async fn f01_a_host_with_crlf() {
    let daemon = one(PASS);
    let mut host = daemon.shim(&[]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "crlf", "version": "1" } } });
    host.send_raw(format!("{hello}\r\n").as_bytes()).await;
    assert_eq!(host.expect_response(1).await["result"]["protocolVersion"], "2025-06-18");
}

/// F07 on the shim: a host whose frame comes in pieces, cut inside a character.
#[tokio::test]
async fn f07_a_host_that_writes_in_pieces() {
    let daemon = one(PASS);
    let mut host: RawHost = daemon.shim(&[]);
    open(&mut host, "2025-06-18").await;
    let frame = json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call",
        "params": { "name": "up_echo", "arguments": { "text": "世界😀" } } });
    let line = format!("{frame}\n");
    host.frames.incoming(line.as_bytes());
    for byte in line.as_bytes() {
        host.send_part(&[*byte]).await;
    }
    assert_eq!(text_of(&host.expect_response(77).await), "世界😀");
}
