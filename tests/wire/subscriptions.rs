//! `resources/subscribe` of hosts with a handshake, in front of upstreams of both eras (R-05, R-06,
//! F46, P-12).

use std::time::Duration;

use serde_json::{Value, json};

use crate::setup::{PASS, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::schema::MODERN;

const UPDATED: &str = "notifications/resources/updated";
const README: &str = "file:///README.md";
const SOON: Duration = Duration::from_secs(10);

/// An upstream of each era; both have the same resource.
fn both() -> Daemon {
    one_of_each(PASS)
}

fn one_of_each(more: &str) -> Daemon {
    start(
        |daemon| {
            vec![
                daemon.fake("old").args("--offers"),
                daemon.fake("new").args("--offers --era modern"),
            ]
        },
        more,
    )
}

async fn subscribe(host: &mut RawHost, uri: &str) {
    let answer = host.request("resources/subscribe", json!({ "uri": uri })).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
}

async fn unsubscribe(host: &mut RawHost, uri: &str) {
    let answer = host.request("resources/unsubscribe", json!({ "uri": uri })).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
}

/// The upstream says that a resource has changed.
async fn touch(host: &mut RawHost, up: &str, uri: &str) -> String {
    text_of(&host.call(&format!("{up}_touch"), json!({ "uri": uri })).await)
}

/// The addresses of the updates that came so far, taken out.
fn updates(host: &mut RawHost) -> Vec<String> {
    let updates = host.inbox.iter().filter(|message| message["method"] == UPDATED);
    let updates = updates.map(|update| update["params"]["uri"].as_str().unwrap().to_owned());
    let updates = updates.collect();
    host.inbox.retain(|message| message["method"] != UPDATED);
    updates
}

fn listens(daemon: &Daemon) -> Vec<Value> {
    daemon.fake("new").transcript().with_method("subscriptions/listen")
}

crate::for_revisions! { legacy_real;
    /// R-05, R-06: an update comes under the address that the host subscribed with, from a server of
    /// either era, until it unsubscribes; the server is then told.
    async fn r05_updates_carry_the_hosts_address(revision) {
        let daemon = both();
        let mut host = host(&daemon, revision).await;
        for up in ["old", "new"] {
            let address = format!("mcpx://{up}/{README}");
            touch(&mut host, up, README).await;
            assert!(updates(&mut host).is_empty());
            subscribe(&mut host, &address).await;
            touch(&mut host, up, README).await;
            let update = host.expect_notification(UPDATED).await;
            assert_eq!(update["params"], json!({ "uri": address }));
            touch(&mut host, up, "fake://rich").await;
            unsubscribe(&mut host, &address).await;
            touch(&mut host, up, README).await;
            host.gather(Duration::from_millis(100)).await;
            assert!(updates(&mut host).is_empty());
        }
        let old = daemon.fake("old");
        crate::eventually!(SOON, old.ledger("resources/unsubscribe") == [format!("resources/unsubscribe {README}")]);
        assert_eq!(old.ledger("resources/subscribe"), [format!("resources/subscribe {README}")]);
        let with_uri = |listen: &Value| {
            listen["params"]["notifications"]["resourceSubscriptions"].is_array()
        };
        crate::eventually!(SOON, listens(&daemon).last().is_some_and(|last| !with_uri(last)));
        assert_eq!(listens(&daemon).iter().filter(|listen| with_uri(listen)).count(), 1);
        for up in ["old", "new"] {
            daemon.fake(up).transcript().check_frames();
        }
    }
}

/// F46: subscribed to by two hosts; the server hears of the last one's leaving alone, also where it
/// just goes away. A resource that one server alone has keeps its own URI where it is passed through.
#[tokio::test]
async fn f46_the_last_host_to_leave() {
    let daemon = start(|daemon| vec![daemon.fake("old").args("--offers")], PASS);
    let mut first = host(&daemon, "2025-11-25").await;
    let mut second = host(&daemon, "2024-11-05").await;
    let third = {
        let mut third = host(&daemon, "2025-06-18").await;
        for host in [&mut first, &mut second, &mut third] {
            subscribe(host, README).await;
        }
        third
    };
    subscribe(&mut second, &format!("mcpx://old/{README}")).await;
    touch(&mut first, "old", README).await;
    assert_eq!(first.expect_notification(UPDATED).await["params"]["uri"], README);
    second.expect_notification(UPDATED).await;
    second.expect_notification(UPDATED).await;
    unsubscribe(&mut first, README).await;
    unsubscribe(&mut second, README).await;
    drop(third);
    touch(&mut first, "old", README).await;
    let update = second.expect_notification(UPDATED).await;
    assert_eq!(update["params"]["uri"], format!("mcpx://old/{README}"));
    first.gather(Duration::from_millis(100)).await;
    assert!(updates(&mut first).is_empty());
    let fake = daemon.fake("old");
    assert_eq!(fake.ledger("resources/subscribe").len(), 1);
    assert!(fake.ledger("resources/unsubscribe").is_empty());
    second.close_input().await;
    crate::eventually!(SOON, fake.ledger("resources/unsubscribe").len() == 1);
    assert_eq!(touch(&mut first, "old", README).await, "nobody listens");
}

/// P-12: a server that dies is started again and asked for the same; what may have happened
/// meanwhile counts as an update.
#[tokio::test]
async fn p12_subscriptions_come_back() {
    let daemon = both();
    let mut host = host(&daemon, "2025-11-25").await;
    for up in ["old", "new"] {
        let address = format!("mcpx://{up}/{README}");
        subscribe(&mut host, &address).await;
        host.call(&format!("{up}_die"), json!({})).await;
        let update = host.expect_notification(UPDATED).await;
        assert_eq!(update["params"]["uri"], address, "{up}");
        assert_eq!(daemon.fake(up).starts(), 2);
        touch(&mut host, up, README).await;
        host.expect_notification(UPDATED).await;
    }
}

/// P-12: also where its definition is replaced while nobody calls it.
#[tokio::test]
async fn p12_subscriptions_outlive_a_reload() {
    let daemon = start(|daemon| vec![daemon.fake("old").args("--offers")], PASS);
    let mut host = host(&daemon, "2025-11-25").await;
    subscribe(&mut host, README).await;
    let changed = daemon.fake("old").args("--offers --name other");
    daemon.write_config(&[changed], &crate::setup::quick(PASS));
    assert_eq!(daemon.cli(&["reload"]).await.code, 0);
    assert_eq!(host.expect_notification(UPDATED).await["params"]["uri"], README);
    assert_eq!(daemon.fake("old").starts(), 2);
}

/// A server that somebody listens to is not idle.
#[tokio::test]
async fn a_server_with_a_listener_is_not_idle() {
    let more = format!("{PASS}\npool.idle_timeout = \"150ms\"");
    let daemon = start(|daemon| vec![daemon.fake("old").args("--offers")], &more);
    let mut host = host(&daemon, "2025-11-25").await;
    subscribe(&mut host, README).await;
    host.gather(Duration::from_millis(700)).await;
    assert!(daemon.fake("old").ledger("eof").is_empty());
    unsubscribe(&mut host, README).await;
    crate::eventually!(SOON, daemon.fake("old").ledger("eof").len() == 1);
}

/// R-04: what leads nowhere is said with the address; what cannot be subscribed to is refused; an
/// unsubscription from nothing is none of these.
#[tokio::test]
async fn refusals_name_the_address() {
    let daemon = start(
        |daemon| {
            let deaf = r#"{"tools":{},"resources":{}}"#;
            vec![
                daemon.fake("old").args("--offers"),
                daemon.fake("none"),
                daemon.fake("deaf").args("--offers --capabilities").arg(deaf),
            ]
        },
        "host.max_subscriptions = 1",
    );
    let mut host = host(&daemon, "2025-11-25").await;
    for (uri, code, words) in [
        ("mcpx://nowhere/a:b", -32602, "nowhere"),
        ("mcpx://none/a:b", -32602, "no subscriptions"),
        ("mcpx://deaf/a:b", -32602, "no subscriptions"),
    ] {
        let answer = host.request("resources/subscribe", json!({ "uri": uri })).await;
        let error = &answer["error"];
        // R-03: a legacy host knows the older code for what is not there.
        assert!([code, -32002].contains(&error["code"].as_i64().unwrap()), "{answer}");
        assert_eq!(error["data"]["uri"], uri, "{answer}");
        assert!(error["message"].as_str().unwrap().contains(words), "{answer}");
    }
    unsubscribe(&mut host, "mcpx://nowhere/a:b").await;
    let answer = host.request("resources/subscribe", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    subscribe(&mut host, &format!("mcpx://old/{README}")).await;
    let answer =
        host.request("resources/subscribe", json!({ "uri": "mcpx://old/fake://rich" })).await;
    assert_eq!(answer["error"]["data"]["reason"], "busy", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("host.max_subscriptions"));
    let mut modern = crate::setup::host(&daemon, MODERN).await;
    let answer = modern.modern("resources/subscribe", json!({ "uri": "mcpx://old/a:b" })).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

/// F38, R-11: a modern upstream's changes reach hosts with a handshake, over its listen stream.
#[tokio::test]
async fn r11_changes_of_a_modern_upstream() {
    let daemon = both();
    let mut host = host(&daemon, "2025-11-25").await;
    host.list_tools().await;
    for method in ["resources/list", "prompts/list"] {
        host.request(method, json!({})).await;
    }
    host.call("new_set_tools", json!({ "add": ["fresh"] })).await;
    host.expect_notification("notifications/tools/list_changed").await;
    for kind in ["resources", "prompts"] {
        host.call("new_set_offers", json!({ "kind": kind, "add": ["x:fresh"] })).await;
        host.expect_notification(&format!("notifications/{kind}/list_changed")).await;
    }
    assert_eq!(listens(&daemon).len(), 1);
    assert_eq!(
        listens(&daemon)[0]["params"]["notifications"],
        json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true })
    );
}
