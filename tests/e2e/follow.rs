//! `protocol = "follow"` from outside: which session a host's call goes to, and where that is shown.

use serde_json::{Value, json};

use crate::setup::{self, call};
use crate::support::raw_host::text_of;
use crate::support::schema::MODERN;
use crate::{SOON, eventually, server};

/// The lanes of a server's instances, sorted.
fn lanes(server: &Value) -> Vec<&str> {
    let instances = server["instances"].as_array().unwrap();
    let mut lanes: Vec<_> = instances.iter().map(|it| it["lane"].as_str().unwrap()).collect();
    lanes.sort_unstable();
    lanes
}

/// U-18, U-19: hosts of both eras and the command line in front of a server of both eras, of a legacy
/// one and of a modern one; the listing of a legacy host opens no second session (P-18).
#[tokio::test]
async fn u18_hosts_are_followed() {
    let daemon = setup::start(
        |daemon| {
            let follow = |name: &str, era: &str| {
                daemon.fake(name).args("--era").arg(era).line("protocol = \"Follow\"")
            };
            vec![follow("dual", "dual"), follow("old", "legacy"), follow("new", "modern")]
        },
        &format!("{}\nupstream.era_cache = false", setup::PASS),
    );
    let mut old = setup::host(&daemon, "2025-06-18").await;
    let mut new = setup::host(&daemon, MODERN).await;
    old.list_tools().await;
    for name in ["dual", "old", "new"] {
        let shown = server(&daemon, name).await;
        assert_eq!(lanes(&shown), ["shared"], "P-18: {shown}");
    }
    for (name, apart) in [("dual", true), ("old", false), ("new", false)] {
        let pid = format!("{name}_pid");
        let of_old = text_of(&old.call(&pid, json!({})).await);
        let of_new = text_of(&new.call(&pid, json!({})).await);
        assert_eq!(of_old != of_new, apart, "{name}: {of_old} {of_new}");
        let of_cli = daemon.cli(&["call", name, "pid"]).await.expect_code(0).stdout;
        assert_eq!(of_cli.trim(), of_new, "{name}: the command line is modern");
        assert_eq!(text_of(&old.call(&pid, json!({})).await), of_old, "{name}");
        daemon.fake(name).transcript().check_frames();
    }
    assert_eq!(lanes(&server(&daemon, "dual").await), ["legacy", "shared"]);
    assert!(daemon.cli(&["ps"]).await.expect_code(0).stdout.contains("legacy"));
    let protocol = daemon.http("GET", "/v1/protocol", None).await.json();
    let servers = protocol["servers"].as_array().unwrap();
    let shown = |name: &str| {
        let one = servers.iter().find(|one| one["server"] == name).unwrap();
        (one["preference"].clone(), one["era"].clone(), one["legacy_lane"].clone())
    };
    let follow = || json!("follow");
    assert_eq!(shown("dual"), (follow(), json!("modern"), json!("2025-11-25")));
    assert_eq!(shown("old"), (follow(), json!("legacy"), json!("shared")));
    assert_eq!(shown("new"), (follow(), json!("modern"), json!("refused")));
    assert_eq!(server(&daemon, "new").await["state"], "ready");
}

/// P-03: a legacy call that never ends holds up no modern host.
#[tokio::test]
async fn p03_a_stuck_legacy_call_holds_up_no_modern_host() {
    let daemon = setup::start(
        |daemon| vec![daemon.fake("dual").args("--era dual").line("protocol = \"follow\"")],
        "pool.in_flight = 1",
    );
    let mut old = setup::host(&daemon, "2025-11-25").await;
    let mut new = setup::host(&daemon, MODERN).await;
    let wanted = json!({ "namespace": "dual", "tool": "hang", "arguments": {} });
    old.start_call(90, "mcpx_call", wanted).await;
    eventually!(SOON, {
        let shown = server(&daemon, "dual").await;
        let instances = shown["instances"].as_array().unwrap().clone();
        instances.iter().any(|it| it["lane"] == "legacy" && it["in_flight"] == 1)
    });
    let answer = call(&mut new, "dual", "echo", json!({ "text": "free" })).await;
    assert_eq!(text_of(&answer), "free");
}
