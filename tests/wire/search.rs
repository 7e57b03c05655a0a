//! `mcpx_search`: tools by words.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::setup::{failed, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::text_of;

fn two(more: &str) -> Daemon {
    start(
        |daemon| {
            let own = json!({ "name": "create-issue", "description": "Opens an issue. And more.",
                "inputSchema": { "type": "object", "required": ["title"], "properties": {
                    "title": { "type": "string" }, "labels": { "type": "array" } } } });
            vec![
                daemon.fake("one").args("--tools echo,add"),
                daemon.fake("hub").args("--tools none").arg("--tool").arg(own.to_string()),
            ]
        },
        more,
    )
}

/// Issue 5, 1: ranked, with a signature and the first sentence; by another word for the same; within a
/// namespace; as many as wanted.
#[tokio::test]
async fn tools_are_found_by_words() {
    let daemon = two("");
    let mut host = host(&daemon, "2025-06-18").await;
    let text = text_of(&host.call("mcpx_search", json!({ "query": "make a new issue" })).await);
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("hub.create-issue(args: {"), "{text}");
    assert!(first.contains("title: string") && first.contains("labels?: "), "{text}");
    assert!(text.contains("\n  in scripts: create_issue\n  Opens an issue.\n"), "{text}");
    assert!(!text.contains("Not searched"), "{text}");
    let within = json!({ "query": "echo issue", "namespace": "one" });
    let text = text_of(&host.call("mcpx_search", within).await);
    assert!(text.starts_with("one.echo") && !text.contains("hub."), "{text}");
    let one = json!({ "query": "issue", "limit": 1 });
    let text = text_of(&host.call("mcpx_search", one).await);
    assert_eq!(text.lines().filter(|line| !line.starts_with(' ')).count(), 1, "{text}");
}

/// Issue 5, 1: what has been listed once is found while no server runs, also by the next daemon.
#[tokio::test]
async fn no_server_needs_to_run() {
    let mut daemon = two("");
    let mut first = host(&daemon, "2025-06-18").await;
    first.call("mcpx_search", json!({ "query": "issue" })).await;
    drop(first);
    daemon.restart();
    let started = daemon.fake("hub").starts();
    let mut host = host(&daemon, "2025-06-18").await;
    let text = text_of(&host.call("mcpx_search", json!({ "query": "issue" })).await);
    assert!(text.contains("hub.create-issue"), "{text}");
    assert_eq!((started, daemon.fake("hub").starts()), (1, 1));
}

/// what may not be called is not found.
#[tokio::test]
async fn a09_a_denied_tool_is_not_found() {
    let daemon = start(
        |daemon| {
            let rule = "tools = { deny = [\"add*\"] }";
            vec![daemon.fake("one").args("--tools echo,add").line(rule)]
        },
        "",
    );
    let mut host = host(&daemon, "2025-06-18").await;
    for query in ["add", "one add", "one.add"] {
        let text = text_of(&host.call("mcpx_search", json!({ "query": query })).await);
        assert!(!text.contains("one.add("), "{query}: {text}");
    }
    let text = text_of(&host.call("mcpx_search", json!({ "query": "one" })).await);
    assert!(text.starts_with("one.echo("), "{text}");
}

/// F43: nothing found and wrong arguments say what to do.
#[tokio::test]
async fn f43_nothing_found_says_what_to_do() {
    let daemon = two("");
    let mut host = host(&daemon, "2025-06-18").await;
    let answer = host.call("mcpx_search", json!({ "query": "crate-isue" })).await;
    let text = text_of(&answer);
    assert!(!failed(&answer) && text.starts_with("No tool fits `crate-isue`."), "{answer}");
    assert!(text.contains("hub.create-issue") && text.contains("mcpx_namespaces"), "{text}");
    for (arguments, words) in [
        (json!({}), "needs `query`"),
        (json!({ "query": " " }), "needs `query`"),
        (json!({ "query": "x", "limit": 0 }), "search.max_results"),
        (json!({ "query": "x", "limit": 9999 }), "search.max_results"),
        (json!({ "query": "x", "limit": "two" }), "search.max_results"),
        (json!({ "query": "x", "bogus": 1 }), "`bogus`"),
        (json!({ "query": "x", "namespace": "hob" }), "hub"),
    ] {
        let answer = host.call("mcpx_search", arguments.clone()).await;
        assert!(failed(&answer) && text_of(&answer).contains(words), "{arguments}: {answer}");
    }
}

/// F48: servers that do not answer are not waited for longer than `expose.list_wait`, and are named.
#[tokio::test]
async fn f48_servers_that_cannot_be_listed_are_named() {
    let daemon = start(
        |daemon| {
            vec![
                daemon.fake("fine").args("--tools echo"),
                daemon.fake("mute").args("--initialize-silent --probe silent"),
                daemon.fake("crashes").args("--exit 1"),
            ]
        },
        "expose.list_wait = \"600ms\"",
    );
    let mut host = host(&daemon, "2025-06-18").await;
    let began = Instant::now();
    let text = text_of(&host.call("mcpx_search", json!({ "query": "echo" })).await);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(text.starts_with("fine.echo("), "{text}");
    assert!(text.contains("could not be listed yet: crashes, mute."), "{text}");
}
