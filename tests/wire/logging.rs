//! Log messages of upstreams, to hosts (H-41, H-42).

use serde_json::{Value, json};

use crate::setup::{PASS, host, start};
use crate::support::daemon::Daemon;
use crate::support::schema::MODERN;

fn one() -> Daemon {
    start(|daemon| vec![daemon.fake("old"), daemon.fake("new").args("--era modern")], PASS)
}

fn loud(level: &str) -> Value {
    json!({ "method": "notifications/message", "params": { "level": level, "data": "hear" } })
}

/// H-41: a modern caller that asked for no messages gets none; mcpx itself sends none.
#[tokio::test]
async fn h41_no_messages_unasked() {
    let daemon = one();
    let mut host = host(&daemon, MODERN).await;
    for up in ["old", "new"] {
        host.call(&format!("{up}_notify"), loud("emergency")).await;
    }
    host.expect_silence(100).await;
}

crate::for_revisions! { legacy_real;
    /// F35, H-42: the level can be set at any time wherever logging is declared, and a level that
    /// does not exist is refused.
    async fn h42_set_level(revision) {
        let daemon = one();
        let mut host = daemon.shim(&[]);
        let result = host.initialize(revision).await;
        let declared = result["capabilities"].get("logging").is_some();
        let good = host.request("logging/setLevel", json!({ "level": "warning" })).await;
        let bad = host.request("logging/setLevel", json!({ "level": "loud" })).await;
        if declared {
            assert_eq!(good["result"], json!({}), "{good}");
            assert_eq!(bad["error"]["code"], -32602, "{bad}");
        } else {
            assert_eq!(good["error"]["code"], -32601, "{good}");
        }
    }
}
