//! `server/discover` and the envelope of modern results.

use serde_json::{Value, json};

use crate::setup::{PASS, call, host, start};
use crate::support::daemon::Daemon;
use crate::support::schema::MODERN;

const INFO: &str = "io.modelcontextprotocol/serverInfo";

fn one(more: &str) -> Daemon {
    start(|daemon| vec![daemon.fake("up").args("--tools echo,structured,fail")], more)
}

/// H-19, H-21: exactly what discover has.
#[tokio::test]
async fn h19_h21_members_of_discover() {
    let daemon = one("");
    let mut host = host(&daemon, MODERN).await;
    let answer = host.modern("server/discover", Value::Null).await;
    let mut keys: Vec<&String> = answer["result"].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(
        keys,
        [
            "_meta",
            "cacheScope",
            "capabilities",
            "instructions",
            "resultType",
            "supportedVersions",
            "ttlMs"
        ]
    );
    let versions = answer["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(MODERN)));
    assert_eq!(answer["result"]["_meta"][INFO]["name"], "mcpx");
    assert_eq!(answer["result"]["ttlMs"], 0);
}

/// H-20: it works before, beside and after a handshake, and changes nothing.
#[tokio::test]
async fn h20_discover_on_any_connection() {
    let daemon = one("");
    let mut host = daemon.shim(&[]);
    assert_eq!(
        host.modern("server/discover", Value::Null).await["result"]["resultType"],
        "complete"
    );
    assert_eq!(host.initialize("2025-06-18").await["protocolVersion"], "2025-06-18");
    assert_eq!(
        host.modern("server/discover", Value::Null).await["result"]["resultType"],
        "complete"
    );
    assert!(host.request("tools/list", Value::Null).await["result"].get("resultType").is_none());
}

/// H-17, H-18, H-21: every modern result has its type and our identity, merged with what the
/// upstream put there; only lists have cache hints; errors have nothing.
#[tokio::test]
async fn h17_h18_h21_envelope_of_modern_results() {
    let daemon = one(PASS);
    let mut host = host(&daemon, MODERN).await;
    let list = host.modern("tools/list", Value::Null).await;
    assert_eq!(list["result"]["resultType"], "complete");
    assert_eq!(list["result"]["_meta"][INFO]["name"], "mcpx");
    assert_eq!(list["result"]["ttlMs"], 0);
    assert!(list["result"]["cacheScope"].is_string());
    let meta = host.call("up_structured", json!({ "shape": "meta" })).await;
    assert_eq!(meta["result"]["resultType"], "complete");
    assert_eq!(meta["result"]["_meta"][INFO]["name"], "mcpx");
    assert_eq!(meta["result"]["_meta"]["odd key/ñ"], 1);
    assert!(meta["result"].get("ttlMs").is_none() && meta["result"].get("cacheScope").is_none());
    let error = host.modern("no/such", Value::Null).await;
    assert!(error.get("resultType").is_none() && error["error"].get("resultType").is_none());
}

/// H-17: the results of mcpx's own tools too, good and bad.
#[tokio::test]
async fn h17_own_tools_have_the_envelope() {
    let daemon = one("");
    let mut host = host(&daemon, MODERN).await;
    for answer in [
        host.call("mcpx_namespaces", json!({})).await,
        host.call("mcpx_status", json!({})).await,
        call(&mut host, "up", "echo", json!({ "text": "x" })).await,
        call(&mut host, "up", "fail", json!({ "text": "x" })).await,
        call(&mut host, "nowhere", "x", json!({})).await,
    ] {
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        assert_eq!(answer["result"]["_meta"][INFO]["name"], "mcpx", "{answer}");
    }
}
