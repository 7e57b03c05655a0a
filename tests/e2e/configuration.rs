//! Configuration: strict, all mistakes at once, canonical form, reload (D-07, D-14, H-47).

use std::fs;

use crate::setup;
use crate::support::daemon::Daemon;
use crate::{SOON, eventually, pids};

fn check(daemon: &Daemon, text: &str) {
    fs::write(daemon.config_path(), text).unwrap();
}

/// D-14: every mistake at once, each with its line and the nearest valid name; exit code 4.
#[tokio::test]
async fn d14_all_mistakes_at_once() {
    let daemon = setup::prepare();
    check(
        &daemon,
        "[call]\nidle_timeot = \"5s\"\ntotal_timeout = \"soon\"\n\n[expose]\nmode = \"cor\"\n\n\
         [servers.one]\ncomand = [\"x\"]\n\n[servers.two]\ncommand = [\"y\"]\nscope = \"globl\"\n\
         max = 0\n\n[servers.three]\nurl = \"ftp://x.test/mcp\"\n",
    );
    for words in [vec!["config", "check"], vec!["call", "two", "x"], vec!["daemon"]] {
        let output = daemon.cli(&words).await.expect_code(4);
        for (line, word) in [
            ("2:", "idle_timeout"),
            ("3:", "total_timeout"),
            ("6:", "core"),
            ("9:", "command"),
            ("13:", "global"),
            ("14:", "max"),
            ("17:", "three"),
        ] {
            let found =
                output.stderr.lines().any(|said| said.contains(line) && said.contains(word));
            assert!(found, "{words:?}: {line} {word} in\n{}", output.stderr);
        }
    }
    assert!(daemon.marked().is_empty(), "nothing was started");
}

/// H-47: two servers with one namespace are refused with both names.
#[tokio::test]
async fn h47_namespaces_that_clash() {
    let daemon = setup::prepare();
    check(
        &daemon,
        "[servers.\"my server\"]\ncommand = \"x\"\n[servers.my_server]\ncommand = \"y\"\n",
    );
    let output = daemon.cli(&["config", "check"]).await.expect_code(4);
    assert!(
        output.stderr.contains("my server") && output.stderr.contains("my_server"),
        "{output:?}"
    );
}

/// A file that is no TOML names line and column; one that is not there is named.
#[tokio::test]
async fn files_that_cannot_be_read() {
    let daemon = setup::prepare();
    check(&daemon, "[servers.a]\ncommand = [\"x\"\n\n[b]\n");
    let output = daemon.cli(&["config", "check"]).await.expect_code(4);
    assert!(output.stderr.contains("config.toml") && output.stderr.contains(':'), "{output:?}");
    fs::remove_file(daemon.config_path()).unwrap();
    let output = daemon.cli(&["config", "check"]).await.expect_code(4);
    assert!(output.stderr.contains("config.toml"), "{output:?}");
}

/// product.md 3: JSON with comments is read as well, with the spellings of the seeds.
#[tokio::test]
async fn json_with_comments() {
    let daemon = setup::prepare();
    let file = daemon.path("config.jsonc");
    fs::write(
        &file,
        "{\n  // a comment\n  \"upstream\": { \"eraCache\": false },\n  \"servers\": { \"a\": \
         { \"command\": [\"true\"], \"idleTimeout\": \"2m\", }, }\n}\n",
    )
    .unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mcpx"));
    for (key, value) in daemon.command(&["x"]).get_envs() {
        command.env(key, value.unwrap());
    }
    let output = command.arg("--config").arg(&file).args(["config", "check"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// D-07: the configuration in canonical form reads back to the same.
#[tokio::test]
async fn d07_canonical_form_reads_back() {
    let daemon = setup::start(
        |daemon| vec![daemon.fake("up").args("--tools echo").line("protocol = \"Legacy\"")],
        "",
    );
    let shown = daemon.cli(&["config", "show"]).await.expect_code(0).stdout;
    assert!(shown.contains("prefer-initialize") && shown.contains("[servers.up]"), "{shown}");
    let before = daemon.cli(&["config", "show", "--json"]).await.expect_code(0).json();
    check(&daemon, before["toml"].as_str().unwrap());
    daemon.cli(&["config", "check"]).await.expect_code(0);
    let changed = daemon.cli(&["reload", "--json"]).await.expect_code(0).json();
    assert_eq!(changed["changed"], serde_json::json!([]), "{changed}");
    let path = daemon.cli(&["config", "path"]).await.expect_code(0).stdout;
    assert!(path.contains("config.toml"), "{path}");
}

/// Reload: only what changed restarts, after draining; mistakes leave the old one in force.
#[tokio::test]
async fn reload_touches_only_what_changed() {
    let daemon = setup::start(
        |daemon| {
            vec![
                daemon.fake("one").args("--tools echo"),
                daemon.fake("two").args("--tools echo,sleep"),
            ]
        },
        "",
    );
    for name in ["one", "two"] {
        daemon.cli(&["call", name, "echo", "text=x"]).await.expect_code(0);
    }
    let before = (pids(&daemon, "one").await, pids(&daemon, "two").await);
    // A call in flight on the one that changes ends well.
    let slow = daemon.cli(&["call", "two", "sleep", "ms:=800"]);
    let change = async {
        eventually!(SOON, daemon.fake("two").transcript().with_method("tools/call").len() == 2);
        daemon.write_config(
            &[
                daemon.fake("one").args("--tools echo"),
                daemon.fake("two").args("--tools echo,add"),
                daemon.fake("three").args("--tools echo"),
            ],
            &setup::quick("host.drain = \"5s\""),
        );
        daemon.cli(&["reload", "--json"]).await.expect_code(0).json()
    };
    let (slept, changed) = tokio::join!(slow, change);
    assert_eq!(slept.expect_code(0).stdout.trim(), "slept", "drained");
    assert_eq!(changed["added"], serde_json::json!(["three"]), "{changed}");
    assert_eq!(changed["changed"], serde_json::json!(["two"]), "{changed}");
    assert_eq!(pids(&daemon, "one").await, before.0, "untouched");
    daemon.cli(&["call", "two", "add", "a=1", "b=1"]).await.expect_code(0);
    assert_ne!(pids(&daemon, "two").await, before.1);
    eventually!(SOON, !before.1.iter().any(|pid| crate::support::procs::alive(*pid)));
    // Mistakes: the old configuration stays in force, with a warning.
    check(&daemon, "[servers.x]\ncomand = 1\n");
    let output = daemon.cli(&["reload"]).await.expect_code(4);
    assert!(output.stderr.contains("command"), "{output:?}");
    daemon.cli(&["call", "one", "echo", "text=still"]).await.expect_code(0);
    let health = daemon.cli(&["health", "--json"]).await.json();
    assert!(!health["configuration"].as_array().unwrap().is_empty(), "{health}");
}

/// A configuration with servers of its own does not show `demo`.
#[tokio::test]
async fn demo_is_for_empty_configurations() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up").args("--tools echo")], "");
    let status = crate::status(&daemon).await;
    assert_eq!(status["servers"].as_array().unwrap().len(), 1, "{status}");
    daemon.cli(&["call", "demo", "echo"]).await.expect_code(1);
}
