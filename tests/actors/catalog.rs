//! Lists: when they are read, when others are told, what is kept.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpx::actors::catalog::Listing;
use mcpx::actors::instance::connect::Children;
use mcpx::protocol::session::upstream::ListKind;
use mcpx::settings::ExposeMode;
use serde_json::json;

use crate::eventually;
use crate::stage::{Stage, bare, nobody};

const SOON: Duration = Duration::from_secs(5);

fn names(stage: &Stage, server: &str) -> Vec<String> {
    let snapshot = stage.catalog.snapshot();
    let server = snapshot.by_key(server).unwrap();
    server.tools.iter().map(|tool| tool.name.clone()).collect()
}

/// F38: fifty notifications are few readings; the snapshot is there before anybody is woken; nothing
/// changed means nobody is woken.
#[tokio::test(flavor = "multi_thread")]
async fn f38_changes_are_read_once_and_told_when_known() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("list", "--tools echo,set_tools,notify --list-delay 50");
    stage.serve(vec![stage.def(&fake)]).await;
    stage.upstreams.list_now(&nobody(), "list", ListKind::Tools).await.unwrap();
    assert_eq!(names(&stage, "list"), ["echo", "notify", "set_tools"]);
    let mut watch = stage.catalog.watch();
    watch.mark_unchanged();

    let args = json!({"add": ["new"], "notify": 50, "ms": 2});
    stage.call("list", "set_tools", args).await.unwrap();
    tokio::time::timeout(SOON, watch.changed()).await.unwrap().unwrap();
    let seen = watch.borrow_and_update().by_key("list").unwrap().tool("new").is_some();
    assert!(seen, "woken before the list was there");
    eventually!(SOON, names(&stage, "list").contains(&"new".to_owned()));

    // Notified although nothing changed, and read again after a restart: the same.
    let args = json!({"method": "notifications/tools/list_changed", "count": 5});
    stage.call("list", "notify", args).await.unwrap();
    let readings = || fake.transcript().with_method("tools/list").len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(readings() < 15, "{} readings", readings());
    assert!(!watch.has_changed().unwrap(), "told of nothing");

    // Another list after a restart, without a word: compared and told.
    stage.upstreams.restart_server("list").await.unwrap();
    tokio::time::timeout(SOON, watch.changed()).await.unwrap().unwrap();
    assert_eq!(names(&stage, "list"), ["echo", "notify", "set_tools"]);
    stage.end().await;
}

/// F48: one dead of many: the list is answered in time with what is known, and the dead ones say why.
#[tokio::test(flavor = "multi_thread")]
async fn f48_one_dead_of_many() {
    let mut stage = Stage::new(|settings| {
        settings.expose.mode = ExposeMode::Passthrough;
        settings.expose.list_wait = Duration::from_millis(800);
    })
    .await;
    let fine = stage.fake("fine", "");
    let slow = stage.fake("slow", "--start-delay 20000");
    let silent = stage.fake("silent", "--initialize-silent --probe silent");
    let exits = stage.fake("exits", "--exit 3");
    let defs = [&fine, &slow, &silent, &exits].map(|fake| stage.def(fake));
    stage.serve(defs.into_iter().chain([bare("missing")]).collect()).await;

    let begun = Instant::now();
    let all = ["fine", "slow", "silent", "exits", "missing"].map(Arc::from).to_vec();
    stage.upstreams.list_all(&nobody(), ListKind::Tools, all).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let view = stage.catalog.view(&stage.settings.expose);
    assert!(view.waits_for_lists());
    assert!(view.find("fine_echo").is_some());
    assert!(view.tools().iter().all(|tool| tool.server.def.key == "fine"));
    for (name, states) in [
        ("slow", ["starting", "starting"]),
        ("silent", ["starting", "starting"]),
        ("exits", ["backoff", "starting"]),
        ("missing", ["parked", "parked"]),
    ] {
        let status = stage.status(name).await;
        assert!(states.contains(&status.state), "{status:?}");
    }
    assert!(stage.status("missing").await.reason.unwrap().contains("nothing"));
    stage.end().await;
}

/// Lists are kept: the next daemon shows them without starting anything.
#[tokio::test(flavor = "multi_thread")]
async fn lists_outlive_the_daemon() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("kept", "--tools echo,add --info").arg(r#"{"name":"kept-server"}"#);
    let def = stage.def(&fake);
    stage.serve(vec![def.clone()]).await;
    assert_eq!(stage.catalog.listing("kept", ListKind::Tools), Some(Listing::Never));
    stage.upstreams.list_now(&nobody(), "kept", ListKind::Tools).await.unwrap();
    stage.catalog.flush(SOON).await;
    let folder = stage.end_keeping().await;

    let mut stage = Stage::within(folder, Arc::new(Children::default()), |_| {}).await;
    let mut renamed = def;
    "renamed".clone_into(&mut renamed.key);
    stage.serve(vec![renamed]).await;
    assert_eq!(stage.catalog.listing("renamed", ListKind::Tools), Some(Listing::Whole));
    assert_eq!(names(&stage, "renamed"), ["add", "echo"]);
    let snapshot = stage.catalog.snapshot();
    let info = snapshot.by_key("renamed").unwrap().info.clone().unwrap();
    assert!(info.as_str().contains("kept-server"));
    assert_eq!(stage.processes(), 0);
    stage.end().await;
}
