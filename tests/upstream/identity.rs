//! What is kept of an upstream: identity, instructions, tools; list changes (U-48, U-53, F38).

use std::time::Duration;

use serde_json::json;

use crate::front_with;
use crate::setup::{call, names};
use crate::support::raw_host::text_of;

const SOON: Duration = Duration::from_secs(5);

/// U-53: name, title, description of either era stand in the catalog.
#[tokio::test]
async fn u53_identity_stands_in_the_catalog() {
    for era in ["legacy", "modern"] {
        let info = json!({ "name": "raw-name", "title": "A Fine Server", "version": "3.1",
            "description": "Does fine things.",
            "icons": [{ "src": "https://icons.test/s.png" }] });
        let (daemon, _, mut host) = front_with(
            |fake| fake.args(&format!("--era {era} --tools echo --info")).arg(info.to_string()),
            "expose.mode = \"both\"",
        )
        .await;
        call(&mut host, "up", "echo", json!({})).await;
        let text = text_of(&host.call("mcpx_namespaces", json!({})).await);
        assert!(
            text.contains("A Fine Server") && text.contains("Does fine things."),
            "{era}: {text}"
        );
        let tools = daemon.cli(&["tools", "--json"]).await.expect_code(0).stdout;
        assert!(tools.contains("echo"), "{tools}");
        let whole = daemon.http("GET", "/v1/tools", None).await;
        assert_eq!(whole.status, 200);
    }
}

/// F38: `list_changed`: fetched again, in a single flight. A modern upstream tells on a listen
/// stream, which is another issue's.
#[tokio::test]
async fn f38_lists_are_fetched_again() {
    let (_daemon, fake, mut host) = front_with(|fake| fake, "").await;
    host.list_tools().await;
    host.call("up_set_tools", json!({ "add": ["fresh"], "remove": ["hang"], "notify": 20 })).await;
    crate::eventually!(SOON, {
        let tools = host.list_tools().await;
        let names = names(&tools);
        names.contains(&"up_fresh") && !names.contains(&"up_hang")
    });
    fake.transcript().check_frames();
}

/// U-48: what is in the catalog is the definition as it came; it survives the daemon.
#[tokio::test]
async fn u48_the_catalog_survives_the_daemon() {
    let (mut daemon, fake, host) =
        front_with(|fake| fake.args("--tools echo").line("idle_timeout = \"0s\""), "").await;
    let mut host = host;
    let before = host.list_tools().await;
    drop(host);
    let starts = fake.starts();
    daemon.restart();
    let mut host = crate::setup::host(&daemon, "2025-11-25").await;
    assert_eq!(host.list_tools().await, before);
    assert_eq!(fake.starts(), starts, "a list needs no running upstream");
}
