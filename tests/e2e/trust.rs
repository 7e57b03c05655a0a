//! Project configuration (issue 6): what a `.mcpx.toml` adds, for whom, and only once it is trusted.

use std::fs;

use serde_json::{Value, json};

use crate::setup::{self, call, names};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};
use crate::{SOON, eventually};

/// A daemon with a server for everybody, and a project with one of its own that nobody has trusted.
fn project(more: &str) -> Daemon {
    let daemon = setup::start(|daemon| vec![daemon.fake("one").args("--tools echo,pid,cwd")], more);
    own(&daemon, "cwd,pid");
    daemon
}

/// The project's file: a server with these tools.
fn own(daemon: &Daemon, tools: &str) {
    let text = daemon.fake("db").args(&format!("--tools {tools}")).line("scope = \"global\"");
    fs::write(daemon.path("project/.mcpx.toml"), text.toml()).unwrap();
}

async fn elsewhere(daemon: &Daemon) -> RawHost {
    let mut host = daemon.shim(&["--project", daemon.path("notes").to_str().unwrap()]);
    setup::open(&mut host, "2025-06-18").await;
    host
}

async fn ask(host: &mut RawHost, tool: &str) -> String {
    text_of(&host.call(tool, json!({})).await)
}

async fn kinds(daemon: &Daemon, kind: &str) -> Vec<Value> {
    let events = daemon.cli(&["events", "--json", "--kind", kind]).await.expect_code(0).json();
    events["events"].as_array().unwrap().clone()
}

#[tokio::test]
async fn nothing_of_it_runs_before_it_is_trusted() {
    let daemon = project("");
    let mut host = setup::host(&daemon, "2025-06-18").await;
    assert!(!ask(&mut host, "mcpx_namespaces").await.contains("db"));
    let text = text_of(&call(&mut host, "db", "cwd", json!({})).await);
    assert!(text.contains("no namespace `db`"), "{text}");
    // It is said where people and models look.
    let status = ask(&mut host, "mcpx_status").await;
    assert!(
        status.contains(".mcpx.toml is not trusted") && status.contains("mcpx trust"),
        "{status}"
    );
    eventually!(SOON, kinds(&daemon, "project.untrusted").await.len() == 1);

    // What is shown is not yet done.
    let shown = daemon.cli(&["trust"]).await.expect_code(1);
    let file = fs::read_to_string(daemon.path("project/.mcpx.toml")).unwrap();
    for line in file.lines() {
        assert!(shown.stdout.contains(line), "all of it counts: {line}\n{shown:?}");
    }
    assert!(shown.stderr.contains("nothing was trusted"), "{shown:?}");
    assert!(!ask(&mut host, "mcpx_namespaces").await.contains("db"));
    assert!(!daemon.fake("db").log_path().exists(), "it has never run");
}

#[tokio::test]
async fn a_trusted_project_has_its_servers_for_itself() {
    let daemon = project("expose.mode = \"both\"");
    let mut host = setup::host(&daemon, "2025-06-18").await;
    let mut other = elsewhere(&daemon).await;
    assert!(!names(&host.list_tools().await).contains(&"db_cwd"));
    let others = other.list_tools().await;

    // In force at once, and its hosts are told.
    let trusted = daemon.cli(&["trust", "--yes"]).await.expect_code(0);
    assert!(trusted.stdout.contains(".mcpx.toml is trusted"), "{trusted:?}");
    host.expect_notification("notifications/tools/list_changed").await;
    assert!(names(&host.list_tools().await).contains(&"db_cwd"));
    let folder = daemon.path("project").canonicalize().unwrap().display().to_string();
    // Relative to the project, although its scope is global.
    assert_eq!(text_of(&call(&mut host, "db", "cwd", json!({})).await), folder);
    assert_eq!(text_of(&host.call("db_cwd", json!({})).await), folder);
    let found = text_of(&host.call("mcpx_search", json!({ "query": "cwd" })).await);
    assert!(found.contains("db"), "{found}");
    assert!(ask(&mut host, "mcpx_status").await.contains("db: "));
    let ran = json!({ "code": "return await tools.db.cwd({})" });
    assert!(text_of(&host.call("mcpx_exec", ran).await).contains(&folder));

    // A host that came in later sees the same; over the command line it is where one stands.
    let mut later = setup::host(&daemon, "2026-07-28").await;
    assert!(ask(&mut later, "mcpx_namespaces").await.contains("db"));
    let called = daemon.cli(&["call", "db", "cwd"]).await.expect_code(0);
    assert_eq!(called.stdout.trim(), folder);
    let tools = daemon.cli(&["tools", "db"]).await.expect_code(0);
    assert!(tools.stdout.contains("cwd"), "{tools:?}");
    let ps = daemon.cli(&["ps"]).await.expect_code(0).stdout;
    let key = format!("db@{folder}");
    assert!(ps.contains(&key), "{ps}");
    for words in [["restart", key.as_str()], ["status", &key], ["logs", &key]] {
        daemon.cli(&words).await.expect_code(0);
    }

    // For everybody else there is no such server, by no way.
    other.expect_silence(200).await;
    assert_eq!(other.list_tools().await, others);
    for (tool, arguments) in [
        ("mcpx_namespaces", json!({})),
        ("mcpx_search", json!({ "query": "db cwd" })),
        ("mcpx_status", json!({})),
        ("mcpx_exec", json!({ "code": "return typeof tools.db?.cwd" })),
    ] {
        let text = text_of(&other.call(tool, arguments).await);
        assert!(!text.contains("db"), "{tool}: {text}");
    }
    let text = text_of(&call(&mut other, "db", "cwd", json!({})).await);
    assert!(text.contains("no namespace `db`"), "{text}");
    let web = setup::http_host(&daemon, "2025-06-18").await;
    assert!(!text_of(&web.call("mcpx_namespaces", json!({})).await).contains("db"));
}

#[tokio::test]
async fn a_file_that_changes_is_asked_about_again() {
    let mut daemon = project("config.watch = true\nconfig.watch_delay = \"100ms\"");
    daemon.cli(&["trust", "--yes"]).await.expect_code(0);
    let mut host = setup::host(&daemon, "2025-06-18").await;
    assert!(ask(&mut host, "mcpx_namespaces").await.contains("db"));
    let list = daemon.cli(&["trust", "--list"]).await.expect_code(0);
    assert!(list.stdout.contains("in force"), "{list:?}");

    // Seen by itself.
    own(&daemon, "cwd,pid,echo");
    eventually!(SOON, !ask(&mut host, "mcpx_namespaces").await.contains("db"));
    let status = ask(&mut host, "mcpx_status").await;
    assert!(status.contains("has changed since it was trusted"), "{status}");
    let list = daemon.cli(&["trust", "--list"]).await.expect_code(0);
    assert!(list.stdout.contains("changed since"), "{list:?}");
    daemon.cli(&["trust", "--yes"]).await.expect_code(0);
    let text = text_of(&call(&mut host, "db", "echo", json!({ "text": "hi" })).await);
    assert_eq!(text, "hi");

    // A restart of the daemon forgets nothing.
    drop(host);
    daemon.restart();
    let mut host = setup::host(&daemon, "2025-06-18").await;
    assert_eq!(text_of(&call(&mut host, "db", "echo", json!({ "text": "ho" })).await), "ho");

    daemon.cli(&["untrust"]).await.expect_code(0);
    assert!(!ask(&mut host, "mcpx_namespaces").await.contains("db"));
    eventually!(SOON, daemon.descendants().iter().all(|child| child.name != "fakemcp"));
    let again = daemon.cli(&["untrust"]).await.expect_code(1);
    assert!(again.stderr.contains("is not trusted"), "{again:?}");
}

#[tokio::test]
async fn a_file_with_mistakes_is_not_trusted() {
    let daemon = project("");
    fs::write(daemon.path("project/.mcpx.toml"), "[pool]\nqueue = 3\n[servers.x]\n").unwrap();
    let refused = daemon.cli(&["trust", "--yes"]).await.expect_code(4);
    assert!(refused.stderr.contains(".mcpx.toml:2:1: `pool.queue` is no project's"), "{refused:?}");
    assert!(refused.stderr.contains("server `x`"), "{refused:?}");
    // What it quotes steers no terminal.
    fs::write(daemon.path("project/.mcpx.toml"), "\"foo\\u001b[31m\" = 1\n").unwrap();
    let refused = daemon.cli(&["trust", "--yes"]).await.expect_code(4);
    assert!(!refused.stderr.contains('\u{1b}') && refused.stderr.contains("foo"), "{refused:?}");
    fs::remove_file(daemon.path("project/.mcpx.toml")).unwrap();
    let refused = daemon.cli(&["trust", "--yes"]).await.expect_code(4);
    assert!(refused.stderr.contains("is not there"), "{refused:?}");
}

/// A pipe of that name is waited for by nobody: neither a command, nor the daemon, nor its end.
#[tokio::test]
async fn a_pipe_in_its_place_holds_up_nothing() {
    let mut daemon = project("");
    daemon.cli(&["trust", "--yes"]).await.expect_code(0);
    let path = daemon.path("project/.mcpx.toml");
    fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut host = setup::host(&daemon, "2025-06-18").await;
    let status = ask(&mut host, "mcpx_status").await;
    assert!(status.contains("is no plain file"), "{status}");
    daemon.cli(&["reload"]).await.expect_code(0);
    assert!(!ask(&mut host, "mcpx_namespaces").await.contains("db"));
    let refused = daemon.cli(&["trust", "--yes"]).await.expect_code(4);
    assert!(refused.stderr.contains("is no plain file"), "{refused:?}");
    drop(host);
    assert!(daemon.stop() < SOON);
}
