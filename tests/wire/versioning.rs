//! Which revision is agreed on, and what a modern request must name.

use serde_json::{Value, json};

use crate::setup::{PASS, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::modern_params;
use crate::support::schema::{MODERN, NEWEST_LEGACY};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn one() -> Daemon {
    start(|daemon| vec![daemon.fake("up").args("--tools echo")], PASS)
}

/// H-08, H-09, F26: what is not served is counter-offered, never refused and never echoed.
#[tokio::test]
async fn h08_f26_counter_offers() {
    let daemon = one();
    for asked in ["2099-01-01", "1999-01-01", MODERN, "", "DRAFT-2025", "2025-06-18 "] {
        let mut host = daemon.shim(&[]);
        let answer = host.initialize_only(asked).await;
        assert_eq!(answer["result"]["protocolVersion"], NEWEST_LEGACY, "{asked:?}: {answer}");
        assert!(host.request("ping", Value::Null).await.get("result").is_some());
    }
}

/// H-11: a modern request that names a revision which is not served.
#[tokio::test]
async fn h11_an_unserved_revision_in_meta() {
    let daemon = one();
    let mut host = host(&daemon, MODERN).await;
    for (id, asked) in [(10, "2099-01-01"), (11, "2026-07-29"), (12, "1999-01-01"), (13, "x")] {
        let params = json!({ "_meta": { VERSION: asked, CAPABILITIES: {} } });
        host.start(id, "tools/list", params).await;
        let answer = host.expect_response(id).await;
        assert_eq!(answer["error"]["code"], -32022, "{asked}: {answer}");
        assert_eq!(answer["error"]["data"]["requested"], asked);
        let supported = answer["error"]["data"]["supported"].as_array().unwrap();
        assert!(supported.contains(&json!(MODERN)), "{answer}");
    }
    // Refused before dispatch: an unknown method makes no difference.
    let params = json!({ "_meta": { VERSION: "2099-01-01", CAPABILITIES: {} } });
    host.start(20, "no/such", params).await;
    assert_eq!(host.expect_response(20).await["error"]["code"], -32022);
    assert!(host.modern("tools/list", Value::Null).await.get("result").is_some());
}

/// H-13: without capabilities a modern request is malformed; without any modern key it is legacy.
#[tokio::test]
async fn h13_capabilities_are_mandatory() {
    let daemon = one();
    let mut host = daemon.shim(&[]);
    host.start(1, "tools/list", json!({ "_meta": { VERSION: MODERN } })).await;
    assert_eq!(host.expect_response(1).await["error"]["code"], -32602);
    host.frames.assume("2024-11-05");
    host.start(2, "tools/list", json!({ "_meta": { "progressToken": 5, "vendor/x": 1 } })).await;
    let answer = host.expect_response(2).await;
    assert!(answer["result"]["tools"].is_array() && answer["result"].get("resultType").is_none());
}

/// H-14: a log level that does not exist.
#[tokio::test]
async fn h14_a_log_level_that_does_not_exist() {
    let daemon = one();
    let mut host = host(&daemon, MODERN).await;
    for (id, level, good) in
        [(1, json!("loud"), false), (2, json!(3), false), (3, json!("info"), true)]
    {
        let mut params = modern_params(Value::Null, &json!({}));
        params["_meta"][LEVEL] = level.clone();
        host.start(id, "tools/list", params).await;
        let answer = host.expect_response(id).await;
        assert_eq!(answer.get("result").is_some(), good, "{level}: {answer}");
        if !good {
            assert_eq!(answer["error"]["code"], -32602, "{level}: {answer}");
        }
    }
}

/// H-05, H-25, H-64: what 2026-07-28 has removed is not found under its envelope.
#[tokio::test]
async fn h05_h25_h64_removed_methods() {
    let daemon = one();
    let mut host = host(&daemon, MODERN).await;
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "tasks/list",
        "tasks/result",
    ] {
        let answer = host.modern(method, json!({ "protocolVersion": MODERN })).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

/// H-03: a modern method that a legacy revision lacks.
#[tokio::test]
async fn h05_methods_of_the_other_era_are_not_found() {
    let daemon = one();
    let mut host = host(&daemon, "2025-11-25").await;
    let listen = host.request("subscriptions/listen", json!({ "notifications": {} })).await;
    assert_eq!(listen["error"]["code"], -32601, "{listen}");
    let unknown = host.request("no/such/method", Value::Null).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("no/such/method"));
}
