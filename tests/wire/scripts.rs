//! `mcpx_scripts`: saved scripts for agents (product.md 4; docs/saved-scripts.md).

use serde_json::{Value, json};

use crate::setup::{failed, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};

const GREET: &str = r"/**
 * Greets by a tool.
 * @param {string} name - whom
 */
return await tools.up.echo({ text: `hello ${input.name}` });
";

fn one(more: &str) -> Daemon {
    start(|daemon| vec![daemon.fake("up")], more)
}

async fn act(host: &mut RawHost, arguments: Value) -> Value {
    host.call("mcpx_scripts", arguments).await
}

async fn save(daemon: &Daemon, name: &str, code: &str) {
    let answer =
        daemon.http("PUT", &format!("/v1/scripts/{name}"), Some(&json!({ "code": code }))).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
}

crate::for_revisions! { all_real;
    async fn a_saved_script_is_found_shown_and_run(revision) {
        let daemon = one("");
        save(&daemon, "greet", GREET).await;
        let mut host = host(&daemon, revision).await;
        let listed = text_of(&act(&mut host, json!({ "action": "list" })).await);
        assert!(listed.contains("greet(name: string) | Greets by a tool."), "{listed}");
        let shown = text_of(&act(&mut host, json!({ "action": "show", "name": "greet" })).await);
        assert!(shown.contains("tools.up.echo"), "{shown}");
        let found = text_of(&host.call("mcpx_search", json!({ "query": "greets whom" })).await);
        assert!(found.contains("Saved script, run by mcpx_scripts: greet(name: string)"), "{found}");
        let run = json!({ "action": "run", "name": "greet", "arguments": { "name": "you" } });
        let ran = act(&mut host, run).await;
        assert!(!failed(&ran) && text_of(&ran).contains("hello you"), "{ran}");
    }
}

/// Errors for models: what is wrong, and what there is.
#[tokio::test]
async fn mistakes_are_told_in_words() {
    let daemon = one("");
    let mut early = host(&daemon, "2025-11-25").await;
    let none = text_of(&act(&mut early, json!({ "action": "show", "name": "greet" })).await);
    assert!(none.contains("there is no saved script `greet`; none is saved yet"), "{none}");
    save(&daemon, "greet", GREET).await;
    let mut host = host(&daemon, "2025-11-25").await;
    for (arguments, words) in [
        (json!({}), "`action` is list, show, run, save or remove"),
        (json!({ "action": "run" }), "`name`"),
        (json!({ "action": "run", "name": "gret" }), "did you mean `greet`"),
        (json!({ "action": "run", "name": "greet" }), "`name` is missing. It takes (name: string)"),
        (
            json!({ "action": "run", "name": "greet", "arguments": { "name": 1 } }),
            "`name` is to be string",
        ),
        (json!({ "action": "list", "x": 1 }), "`x`"),
    ] {
        let answer = act(&mut host, arguments.clone()).await;
        assert!(failed(&answer) && text_of(&answer).contains(words), "{arguments}: {answer}");
    }
}

/// Agents write only where a setting allows it; by op tools not at all.
#[tokio::test]
async fn agents_write_only_where_they_may() {
    let daemon = one("expose.ops = true");
    let mut host = host(&daemon, "2025-11-25").await;
    let save = json!({ "action": "save", "name": "mine", "code": "/** Mine. */ return 7" });
    for arguments in [save.clone(), json!({ "action": "remove", "name": "mine" })] {
        let refused = act(&mut host, arguments).await;
        assert!(failed(&refused) && text_of(&refused).contains("scripts.agent_write"), "{refused}");
    }
    let listed = host.request("tools/list", json!({})).await;
    let names: Vec<_> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"mcpx_scripts"));
    assert!(!names.iter().any(|name| name.starts_with("mcpx_script_")), "{names:?}");
    let set = json!({ "settings": { "scripts.agent_write": true } });
    assert_eq!(daemon.http("PUT", "/v1/settings", Some(&set)).await.status, 200);
    let saved = act(&mut host, save).await;
    assert!(!failed(&saved) && text_of(&saved).contains("saved: mine(…) | Mine."), "{saved}");
    let bad = act(&mut host, json!({ "action": "save", "name": "bad", "code": "return (" })).await;
    assert!(failed(&bad) && text_of(&bad).contains("line 1, column "), "{bad}");
    let ran = act(&mut host, json!({ "action": "run", "name": "mine" })).await;
    assert!(text_of(&ran).contains('7'), "{ran}");
    let removed = act(&mut host, json!({ "action": "remove", "name": "mine" })).await;
    assert!(!failed(&removed) && !daemon.path("state/scripts/mine.ts").exists(), "{removed}");
}
