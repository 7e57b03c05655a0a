//! `notifications/tools/list_changed` to hosts with a handshake (F38).

use std::time::Duration;

use serde_json::{Value, json};

use crate::setup::{PASS, call, host, names, start};
use crate::support::raw_host::{RawHost, text_of};

const CHANGED: &str = "notifications/tools/list_changed";

fn changes(host: &mut RawHost) -> usize {
    let count = host.inbox.iter().filter(|message| message["method"] == CHANGED).count();
    host.inbox.retain(|message| message["method"] != CHANGED);
    count
}

crate::for_revisions! { legacy_real;
    /// F38: the list is new before the host is told. A modern upstream tells on a listen stream,
    /// which is another issue's.
    async fn f38_a_new_tool_is_told(revision) {
        let daemon = start(|daemon| vec![daemon.fake("up")], PASS);
        let mut host = host(&daemon, revision).await;
        host.list_tools().await;
        for tool in ["fresh", "fresher"] {
            host.call("up_set_tools", json!({ "add": [tool] })).await;
            host.expect_notification(CHANGED).await;
            let tools = host.list_tools().await;
            assert!(names(&tools).contains(&format!("up_{tool}").as_str()), "{:?}", names(&tools));
        }
    }
}

/// F38: fifty notices in a second are few to the host, and few lists to the upstream.
#[tokio::test]
async fn f38_many_notices_are_gathered() {
    let daemon = start(
        |daemon| vec![daemon.fake("up")],
        &format!("{PASS}\nhost.list_changed_delay = \"150ms\""),
    );
    let mut host = host(&daemon, "2025-11-25").await;
    host.list_tools().await;
    let lists = || daemon.fake("up").transcript().with_method("tools/list").len();
    let before = lists();
    let many = json!({ "add": ["one_more"], "notify": 50, "ms": 10 });
    host.call("up_set_tools", many).await;
    host.gather(Duration::from_millis(500)).await;
    let told = changes(&mut host);
    assert!((1..=2).contains(&told), "told {told} times");
    assert!(lists() - before <= 50, "single flight: {}", lists() - before);
}

/// F38: nothing changed, nobody is told.
#[tokio::test]
async fn f38_a_notice_without_a_change() {
    let daemon = start(|daemon| vec![daemon.fake("up")], PASS);
    let mut host = host(&daemon, "2025-11-25").await;
    host.list_tools().await;
    host.call("up_set_tools", json!({ "notify": 5 })).await;
    host.gather(Duration::from_millis(400)).await;
    assert_eq!(changes(&mut host), 0);
}

/// F38: what a host has just been given is no news, also where its own request brought it about.
#[tokio::test]
async fn f38_the_first_list_is_no_change() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--start-delay 300")], PASS);
    let mut first = host(&daemon, "2025-11-25").await;
    assert!(!first.list_tools().await.is_empty());
    first.gather(Duration::from_millis(400)).await;
    assert_eq!(changes(&mut first), 0);
    // Whoever asked before it was there is told.
    let mut second = host(&daemon, "2025-11-25").await;
    second.list_tools().await;
    first.call("up_set_tools", json!({ "add": ["fresh"] })).await;
    first.expect_notification(CHANGED).await;
    second.expect_notification(CHANGED).await;
}

/// F38: a host in core mode does not see the upstream's list; it is not told of changes in it, but
/// reaches the new tool.
#[tokio::test]
async fn f38_a_change_that_this_host_does_not_see() {
    let daemon = start(|daemon| vec![daemon.fake("up")], "");
    let mut host = host(&daemon, "2025-11-25").await;
    host.list_tools().await;
    call(&mut host, "up", "set_tools", json!({ "add": ["fresh"] })).await;
    host.gather(Duration::from_millis(400)).await;
    assert_eq!(changes(&mut host), 0);
    let answer = call(&mut host, "up", "fresh", json!({ "a": 1 })).await;
    assert!(text_of(&answer).starts_with("called fresh"), "{answer}");
}

/// F38: a server that comes back with another list and says nothing.
#[tokio::test]
async fn f38_another_list_after_a_restart() {
    let daemon = start(
        |daemon| {
            let file = daemon.path("tools.json");
            std::fs::write(&file, tool_file(&["before", "both"])).unwrap();
            vec![daemon.fake("up").args("--tools none --tool-file").arg(file.display().to_string())]
        },
        PASS,
    );
    let mut host = host(&daemon, "2025-11-25").await;
    assert_eq!(names(&host.list_tools().await), ["up_before", "up_both"]);
    std::fs::write(daemon.path("tools.json"), tool_file(&["after", "both"])).unwrap();
    daemon.cli(&["restart", "up"]).await.expect_code(0);
    host.call("up_both", json!({})).await;
    host.expect_notification(CHANGED).await;
    assert_eq!(names(&host.list_tools().await), ["up_after", "up_both"]);
}

/// F38: hosts before their handshake, and modern ones, are sent nothing unasked.
#[tokio::test]
async fn f38_nobody_is_told_unasked() {
    let daemon = start(|daemon| vec![daemon.fake("up")], PASS);
    let mut teller = host(&daemon, "2025-11-25").await;
    let mut modern = host(&daemon, "2026-07-28").await;
    modern.list_tools().await;
    let mut early = daemon.shim(&[]);
    early.initialize_only("2025-11-25").await;
    teller.list_tools().await;
    teller.call("up_set_tools", json!({ "add": ["fresh"] })).await;
    teller.expect_notification(CHANGED).await;
    modern.expect_silence(150).await;
    early.expect_silence(50).await;
}

fn tool_file(names: &[&str]) -> String {
    let tools: Vec<Value> = names
        .iter()
        .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }))
        .collect();
    json!(tools).to_string()
}
