//! One mcpx as another's upstream, over `/mcp`, in both eras (D-19).

use std::time::Duration;

use serde_json::json;

use crate::setup;
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::raw_host::{RawHost, text_of};

/// The inner daemon with its fake, the outer one in front of it, and a host of that.
async fn chain(protocol: &str) -> (Daemon, Fake, Daemon, RawHost) {
    let inner = setup::start(
        |daemon| vec![daemon.fake("up").line("scope = \"global\"")],
        &format!("{}\nhost.progress_interval = \"0s\"", setup::PASS),
    );
    let (url, token) = inner.over_http().await;
    let more = format!(
        "{}\nhost.progress_interval = \"0s\"\n\n[servers.inner]\nurl = \"{url}\"\n\
         protocol = \"{protocol}\"\nauth = {{ type = \"bearer\", token = \"{token}\" }}",
        setup::PASS
    );
    let outer = setup::start(|_| Vec::new(), &more);
    let host = setup::host(&outer, "2025-11-25").await;
    let fake = inner.fake("up");
    (inner, fake, outer, host)
}

/// D-19: calls, progress in order, and a cancellation that reaches the innermost server.
#[tokio::test]
async fn d19_mcpx_behind_mcpx() {
    for (protocol, revision) in
        [("force-discover", "2026-07-28"), ("force-initialize", "2025-11-25")]
    {
        let (_inner, fake, outer, mut host) = chain(protocol).await;
        let answer = host.call("inner_up_echo", json!({ "text": "deep" })).await;
        assert_eq!(text_of(&answer), "deep", "{protocol}: {answer}");
        let slow = json!({ "ms": 60, "steps": 3 });
        host.start_call_with_progress(70, "inner_up_slow", slow, "t").await;
        for step in 1..=3 {
            let note = host.expect_notification("notifications/progress").await;
            assert_eq!(note["params"]["progress"], step, "{protocol}: {note}");
        }
        assert_eq!(text_of(&host.expect_response(70).await), "done in 3 steps");

        host.start_call(71, "inner_up_hang", json!({})).await;
        crate::eventually!(SOON, fake.transcript().with_method("tools/call").len() == 3);
        host.cancel(71).await;
        let cancelled = || fake.transcript().with_method("notifications/cancelled").len();
        crate::eventually!(SOON, cancelled() == 1);
        let status = outer.cli(&["status", "inner", "--json"]).await.expect_code(0).stdout;
        assert!(status.contains(revision), "{status}");
    }
}

/// D-19, A-01: without its token the inner one is not opened, and the text says what to set.
#[tokio::test]
async fn d19_without_the_token() {
    let inner = setup::start(|_| Vec::new(), "");
    let (url, _token) = inner.over_http().await;
    let more = format!("\n\n[servers.inner]\nurl = \"{url}\"");
    let outer = setup::start(|_| Vec::new(), &more);
    let mut host = setup::host(&outer, "2025-11-25").await;
    let answer = setup::call(&mut host, "inner", "echo", json!({})).await;
    let text = text_of(&answer);
    assert!(text.contains("HTTP 401") && text.contains("`auth`"), "{text}");
}

const SOON: Duration = Duration::from_secs(5);
