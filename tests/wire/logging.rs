//! Log messages of upstreams, to hosts (H-41, H-42).

use std::time::Duration;

use serde_json::{Value, json};

use crate::setup::{PASS, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::RawHost;
use crate::support::schema::MODERN;

const LOG: &str = "notifications/message";

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

    /// H-42, F35: what an upstream of either era logs during a call is relayed before its answer,
    /// from the level on that the host set, under its namespace; the host's level at any time.
    async fn h42_messages_of_a_call(revision) {
        let daemon = one();
        let mut host = host(&daemon, revision).await;
        for up in ["old", "new"] {
            host.call(&format!("{up}_notify"), loud("emergency")).await;
            assert_eq!(logs(&mut host), [] as [Value; 0], "nothing was asked for");
            set_level(&mut host, "warning").await;
            for level in ["info", "warning", "error"] {
                host.call(&format!("{up}_notify"), loud(level)).await;
                let told = json!({ "level": level, "logger": up, "data": "hear" });
                let wanted = if level == "info" { vec![] } else { vec![told] };
                assert_eq!(logs(&mut host), wanted, "{up} {level}");
            }
            // Off again, for the next one.
            host = crate::setup::host(&daemon, revision).await;
        }
        let levels = daemon.fake("old").transcript().with_method("logging/setLevel");
        assert_eq!(levels.len(), 1, "{levels:?}");
        assert!(daemon.fake("new").transcript().with_method("logging/setLevel").is_empty(), "U-32");
        for up in ["old", "new"] {
            daemon.fake(up).transcript().check_frames();
        }
    }
}

/// The log messages that came so far, taken out.
fn logs(host: &mut RawHost) -> Vec<Value> {
    let logs = host.inbox.iter().filter(|message| message["method"] == LOG);
    let logs = logs.map(|message| message["params"].clone()).collect();
    host.inbox.retain(|message| message["method"] != LOG);
    logs
}

async fn set_level(host: &mut RawHost, level: &str) {
    let answer = host.request("logging/setLevel", json!({ "level": level })).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
}

/// H-41, H-42: a modern request hears what it asked for itself.
#[tokio::test]
async fn h42_a_modern_host_asks_by_the_request() {
    let daemon = one();
    let mut host = host(&daemon, MODERN).await;
    for up in ["old", "new"] {
        let params = json!({
            "name": format!("{up}_notify"),
            "arguments": loud("error"),
            "_meta": { "io.modelcontextprotocol/logLevel": "notice" },
        });
        host.modern("tools/call", params).await;
        assert_eq!(logs(&mut host), [json!({ "level": "error", "logger": up, "data": "hear" })]);
        host.call(&format!("{up}_notify"), loud("error")).await;
        assert_eq!(logs(&mut host), [] as [Value; 0]);
    }
}

/// H-42: whose call is in flight hears it, and nobody else, whatever level they set.
#[tokio::test]
async fn h42_only_hosts_with_a_call_in_flight() {
    let daemon = one();
    let mut caller = host(&daemon, "2025-11-25").await;
    let mut other = host(&daemon, "2025-11-25").await;
    for host in [&mut caller, &mut other] {
        set_level(host, "debug").await;
        host.call("old_echo", json!({ "text": "x" })).await;
    }
    caller.call("old_notify", loud("error")).await;
    assert_eq!(logs(&mut caller).len(), 1);
    other.gather(Duration::from_millis(200)).await;
    assert_eq!(logs(&mut other).len(), 0);
}

/// H-42: a flood costs a host no more than its share, and the call's answer comes all the same.
#[tokio::test]
async fn h42_floods_are_cut_off() {
    let daemon = start(|daemon| vec![daemon.fake("old")], &format!("{PASS}\nhost.log_rate = 5"));
    let mut host = host(&daemon, "2025-06-18").await;
    set_level(&mut host, "debug").await;
    let mut flood = loud("info");
    flood["count"] = json!(3000);
    let answer = host.call("old_notify", flood).await;
    assert!(answer.get("result").is_some(), "{answer}");
    // A second may end meanwhile.
    let told = logs(&mut host).len();
    assert!((5..=15).contains(&told), "{told}");
}
