//! `subscriptions/listen` towards a modern upstream over stdio (U-42, U-43).

use std::time::Duration;

use serde_json::{Value, json};

use crate::front;
use crate::support::fake::Fake;

const SOON: Duration = Duration::from_secs(10);
const CHANGED: &str = "notifications/tools/list_changed";

fn listens(fake: &Fake) -> Vec<Value> {
    fake.transcript().with_method("subscriptions/listen")
}

/// U-43: both endings that the pages know; the stream comes back after its rest, and what changed
/// meanwhile is looked up.
#[tokio::test]
async fn u43_an_ended_stream_comes_back() {
    for how in ["result", "cancelled"] {
        let more = "upstream.listen_reopen_delay = \"1s\"";
        let (_daemon, fake, mut host) = front("--era modern --offers", more).await;
        host.list_tools().await;
        crate::eventually!(SOON, listens(&fake).len() == 1);
        host.call("up_end_listens", json!({ "how": how })).await;
        host.call("up_set_tools", json!({ "add": ["fresh"] })).await;
        host.gather(Duration::from_millis(100)).await;
        assert!(host.inbox.is_empty(), "nobody has told: {:?}", host.inbox);
        host.expect_notification(CHANGED).await;
        assert_eq!(listens(&fake).len(), 2, "{how}");
        host.call("up_set_tools", json!({ "add": ["fresher"] })).await;
        host.expect_notification(CHANGED).await;
        fake.transcript().check_frames();
    }
}

/// U-43: what was declared and is declined is said to people.
#[tokio::test]
async fn u43_a_declined_part_is_a_warning() {
    let (daemon, fake, mut host) =
        front("--era modern --listen-decline toolsListChanged", "").await;
    host.list_tools().await;
    crate::eventually!(SOON, listens(&fake).len() == 1);
    let warned = async || {
        let events = daemon.cli(&["events", "--json"]).await.json();
        let events = events["events"].as_array().unwrap().clone();
        events.iter().any(|event| {
            let text = event["text"].as_str().unwrap_or_default();
            event["kind"] == "server.warning" && text.contains("toolsListChanged")
        })
    };
    crate::eventually!(SOON, warned().await);
}

/// U-42: no stream where nothing was declared, and none from an instance for one call.
#[tokio::test]
async fn u42_no_stream_for_nothing() {
    let (_daemon, fake, mut host) = front("--era modern --no-list-changed", "").await;
    host.list_tools().await;
    host.call("up_echo", json!({ "text": "x" })).await;
    assert!(listens(&fake).is_empty());
    let (_daemon, fake, mut host) =
        crate::front_with(|fake| fake.args("--era modern").line("scope = \"call\""), "").await;
    host.call("up_echo", json!({ "text": "x" })).await;
    assert!(listens(&fake).is_empty());
}
