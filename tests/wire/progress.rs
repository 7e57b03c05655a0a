//! Progress: tokens belong to the host that gave them (F37).

use serde_json::{Value, json};

use crate::setup::{PASS, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};

fn one(more: &str) -> Daemon {
    let more = format!("{PASS}\n{more}");
    start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], &more)
}

const EACH: &str = "host.progress_interval = \"0s\"";

fn heard(host: &mut RawHost) -> Vec<Value> {
    let (progress, rest): (Vec<Value>, Vec<Value>) =
        host.inbox.drain(..).partition(|message| message["method"] == "notifications/progress");
    host.inbox.extend(rest);
    progress.into_iter().map(|message| message["params"].clone()).collect()
}

crate::for_revisions! { all_real;
    /// F37: the token comes back with its type, each step in order, before the answer.
    async fn f37_tokens_keep_their_type(revision) {
        let daemon = one(EACH);
        let mut host = host(&daemon, revision).await;
        for (id, token) in [(71, json!("abc")), (72, json!(0)), (73, json!("1")), (74, json!(1))] {
            let arguments = json!({ "ms": 60, "steps": 3 });
            host.start_call_with_progress(id, "up_slow", arguments, token.clone()).await;
            assert_eq!(text_of(&host.expect_response(id).await), "done in 3 steps");
            let progress = heard(&mut host);
            let steps: Vec<&Value> = progress.iter().map(|params| &params["progress"]).collect();
            assert_eq!(steps, [1, 2, 3], "{progress:?}");
            for params in &progress {
                assert_eq!(params["progressToken"], token);
                assert_eq!(params["total"], 3);
            }
        }
    }

    /// F37: none is invented for a host that sent no token.
    async fn f37_no_token_no_progress(revision) {
        let daemon = one(EACH);
        let mut host = host(&daemon, revision).await;
        host.list_tools().await;
        host.start_call(71, "up_slow", json!({ "ms": 50, "steps": 5 })).await;
        host.expect_response(71).await;
        host.expect_silence(50).await;
    }
}

/// F37: two hosts with the same token, at the same time, on one process.
#[tokio::test]
async fn f37_two_hosts_with_the_same_token() {
    let daemon = one(EACH);
    let mut first = host(&daemon, "2025-06-18").await;
    let mut second = host(&daemon, "2025-11-25").await;
    first.start_call_with_progress(9, "up_slow", json!({ "ms": 200, "steps": 4 }), 1).await;
    second.start_call_with_progress(9, "up_slow", json!({ "ms": 200, "steps": 2 }), 1).await;
    first.expect_response(9).await;
    second.expect_response(9).await;
    for (host, steps) in [(&mut first, 4), (&mut second, 2)] {
        let progress = heard(host);
        assert_eq!(progress.len(), steps, "{progress:?}");
        assert!(
            progress.iter().all(|params| params["total"] == steps && params["progressToken"] == 1)
        );
    }
    assert_eq!(daemon.fake("up").starts(), 1);
}

/// F37: one host, two calls at once, tokens `1` and `"1"`.
#[tokio::test]
async fn f37_number_and_string_tokens_at_once() {
    let daemon = one(EACH);
    let mut host = host(&daemon, "2025-11-25").await;
    host.start_call_with_progress(8, "up_slow", json!({ "ms": 150, "steps": 3 }), 1).await;
    host.start_call_with_progress(9, "up_slow", json!({ "ms": 150, "steps": 2 }), "1").await;
    host.expect_response(8).await;
    host.expect_response(9).await;
    let progress = heard(&mut host);
    let of = |token: Value| progress.iter().filter(|one| one["progressToken"] == token).count();
    assert_eq!((of(json!(1)), of(json!("1"))), (3, 2), "{progress:?}");
}

/// F37: made-up and late tokens are dropped; what decreases harms nothing.
#[tokio::test]
async fn f37_made_up_late_and_decreasing() {
    let daemon = one(EACH);
    let mut host = host(&daemon, "2025-11-25").await;
    for (id, kind) in [(71, "made_up"), (72, "late"), (73, "decreasing")] {
        host.start_call_with_progress(id, "up_progress", json!({ "kind": kind }), "mine").await;
        // The frame check of the host refuses any progress that no open request asked for.
        assert_eq!(text_of(&host.expect_response(id).await), "done", "{kind}");
        host.gather(std::time::Duration::from_millis(100)).await;
        let progress = heard(&mut host);
        assert!(progress.iter().all(|params| params["progressToken"] == "mine"));
        assert_eq!(progress.is_empty(), kind != "decreasing", "{kind}: {progress:?}");
    }
    assert!(host.request("ping", Value::Null).await.get("result").is_some());
}

/// F37: a flood is thinned out, its last note is kept, the answer is not held up.
#[tokio::test]
async fn f37_a_flood_keeps_its_last() {
    let daemon = one("host.progress_interval = \"50ms\"");
    let mut host = host(&daemon, "2025-11-25").await;
    let flood = json!({ "kind": "flood", "count": 10_000, "ms": 120 });
    host.start_call_with_progress(71, "up_progress", flood, 3).await;
    assert_eq!(text_of(&host.expect_response(71).await), "done");
    let progress = heard(&mut host);
    assert!(progress.len() < 200, "{} notes", progress.len());
    assert_eq!(progress.last().unwrap()["progress"], 10_000);
}

/// F37 through `mcpx_call`: the token of the host's own request.
#[tokio::test]
async fn f37_progress_through_mcpx_call() {
    let daemon = start(|daemon| vec![daemon.fake("up")], "host.progress_interval = \"0s\"");
    let mut host = host(&daemon, "2025-06-18").await;
    let wanted =
        json!({ "namespace": "up", "tool": "slow", "arguments": { "ms": 60, "steps": 3 } });
    host.start_call_with_progress(71, "mcpx_call", wanted, "core").await;
    assert_eq!(text_of(&host.expect_response(71).await), "done in 3 steps");
    let progress = heard(&mut host);
    assert_eq!(progress.len(), 3, "{progress:?}");
    assert!(progress.iter().all(|params| params["progressToken"] == "core"));
}
