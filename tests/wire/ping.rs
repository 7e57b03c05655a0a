//! Signs of life from hosts.

use serde_json::Value;

use crate::setup::{PASS, host, start};
use crate::support::schema::MODERN;

crate::for_revisions! { legacy_real;
    /// H-25: answered to legacy callers at any time, with an empty result.
    async fn h25_ping_is_answered(revision) {
        let daemon = start(|daemon| vec![daemon.fake("up").args("--initialize-silent")], "");
        let mut host = host(&daemon, revision).await;
        for _ in 0..3 {
            let answer = host.request("ping", Value::Null).await;
            assert_eq!(answer["result"], serde_json::json!({}));
        }
    }
}

/// H-25: to a caller that declared nothing yet, too; under a modern envelope it is gone.
#[tokio::test]
async fn h25_ping_of_the_undeclared_and_of_the_modern() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--tools echo")], PASS);
    let mut undeclared = daemon.shim(&[]);
    undeclared.frames.assume("2024-11-05");
    assert!(undeclared.request("ping", Value::Null).await.get("result").is_some());
    let mut modern = host(&daemon, MODERN).await;
    assert_eq!(modern.modern("ping", Value::Null).await["error"]["code"], -32601);
}

/// A host's answer to nothing, and an unknown notification, are passed over in silence.
#[tokio::test]
async fn answers_to_nothing_are_passed_over() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--tools echo")], PASS);
    let mut host = host(&daemon, "2025-11-25").await;
    host.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n").await;
    host.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":6,\"error\":{\"code\":1,\"message\":\"m\"}}\n")
        .await;
    host.notify("notifications/x", Value::Null).await;
    host.expect_silence(100).await;
    assert!(host.request("ping", Value::Null).await.get("result").is_some());
}
