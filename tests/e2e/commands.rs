//! Commands: output for people and for programs, exit codes, errors that say what to do.

use serde_json::{Value, json};

use crate::setup;
use crate::support::daemon::Daemon;

fn daemon() -> Daemon {
    setup::start(|daemon| vec![daemon.fake("up"), daemon.fake("other").args("--tools add")], "")
}

/// product.md 2: 0 done, 1 the operation failed, a tool's `isError` too, 2 usage.
#[tokio::test]
async fn exit_codes() {
    let daemon = daemon();
    for (code, words) in [
        (0, vec!["call", "up", "echo", "text=x"]),
        (0, vec!["version"]),
        (0, vec!["--help"]),
        (1, vec!["call", "up", "fail", "text=why"]),
        (1, vec!["call", "up", "rpc_error"]),
        (1, vec!["call", "up", "no_such_tool"]),
        (1, vec!["call", "no_such_server", "echo"]),
        (1, vec!["restart", "no_such_server"]),
        (2, vec!["call", "up", "echo", "no-pair"]),
        (2, vec!["call"]),
        (2, vec!["no-such-command"]),
        (2, vec!["ps", "--no-such-flag"]),
        (2, vec![]),
    ] {
        let output = daemon.cli(&words).await;
        assert_eq!(output.code, code, "{words:?}: {output:?}");
        if code != 0 && words.first() != Some(&"call") {
            assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{words:?}: {output:?}");
        }
    }
}

/// A server whose list cannot be read is not called empty: the cause is said (F48).
#[tokio::test]
async fn f48_a_list_that_failed_is_not_an_empty_one() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up").args("--list-error -32603")], "");
    let output = daemon.cli(&["call", "up", "echo"]).await.expect_code(1);
    assert!(output.stderr.contains("the list is refused"), "{output:?}");
    assert!(!output.stderr.contains("has no tool"), "{output:?}");
}

/// Errors name the thing and the nearest name.
#[tokio::test]
async fn errors_name_what_is_near() {
    let daemon = daemon();
    let output = daemon.cli(&["call", "up", "ecko"]).await;
    assert!(format!("{output:?}").contains("echo"), "{output:?}");
    let output = daemon.cli(&["restart", "othr"]).await;
    assert!(output.stderr.contains("other"), "{output:?}");
}

/// Arguments: pairs typed by the schema, one JSON object, stdin.
#[tokio::test]
async fn arguments_of_call() {
    let daemon = daemon();
    for words in [
        vec!["call", "up", "add", "a=2", "b=3"],
        vec!["call", "up", "add", "{\"a\":2,\"b\":3}"],
        vec!["call", "up", "add", "a:=2", "b:=3"],
    ] {
        assert_eq!(daemon.cli(&words).await.expect_code(0).stdout.trim(), "5", "{words:?}");
    }
    let mut command = daemon.command(&["call", "up", "echo", "-"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"{\"text\":\"in\"}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "in\n");
}

/// `--json` gives the result as the upstream sent it; without, people get text.
#[tokio::test]
async fn call_for_programs_and_people() {
    let daemon = daemon();
    let whole = daemon.cli(&["call", "up", "content", "--json"]).await.expect_code(0).json();
    assert_eq!(whole["content"].as_array().unwrap().len(), 7, "{whole}");
    let failed = daemon.cli(&["call", "up", "fail", "text=why", "--json"]).await.expect_code(1);
    assert_eq!(failed.json()["isError"], true);
    let people = daemon.cli(&["call", "up", "content"]).await.expect_code(0).stdout;
    assert!(people.starts_with("plain\n"), "{people}");
    assert!(people.contains("image/png"), "a block that is no text is named: {people}");
    let failed = daemon.cli(&["call", "up", "fail", "text=why"]).await.expect_code(1);
    assert!(format!("{}{}", failed.stdout, failed.stderr).contains("why"), "{failed:?}");
}

/// Tables for people, JSON for programs, no colour and no escape where there is no terminal.
#[tokio::test]
async fn tables_and_json() {
    let daemon = daemon();
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    for words in [
        vec!["ps"],
        vec!["status"],
        vec!["status", "up"],
        vec!["tools"],
        vec!["tools", "up"],
        vec!["logs"],
        vec!["events"],
        vec!["settings"],
        vec!["settings", "get", "call"],
        vec!["config", "show"],
        vec!["protocol"],
        vec!["doctor"],
        vec!["version"],
    ] {
        let table = daemon.cli(&words).await;
        assert!(table.code <= 1, "{words:?}: {table:?}");
        assert!(!table.stdout.contains('\u{1b}'), "{words:?}: {table:?}");
        let mut with_json = words.clone();
        with_json.push("--json");
        let answer: Value = daemon.cli(&with_json).await.json();
        assert!(answer.is_object(), "{words:?}: {answer}");
    }
    let ps = daemon.cli(&["ps"]).await.expect_code(0).stdout;
    let up = ps
        .lines()
        .find(|line| line.trim_start().starts_with("up "))
        .unwrap_or_else(|| panic!("{ps}"));
    assert!(up.contains("ready"), "{ps}");
    let pid = crate::pids(&daemon, "up").await[0].to_string();
    let detailed = daemon.cli(&["status", "up"]).await.expect_code(0).stdout;
    assert!(ps.contains(&pid) || detailed.contains(&pid), "{ps}\n{detailed}");
}

/// `mcpx ps | head`: a reader that leaves early is no failure.
#[tokio::test]
async fn a_reader_that_leaves_is_no_failure() {
    let daemon = daemon();
    let mut command = daemon.command(&["tools", "--json"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}", output.status);
}

/// Completions for every shell, without a daemon and without a configuration.
#[tokio::test]
async fn completions_and_version_need_nothing() {
    let daemon = setup::prepare();
    for shell in ["bash", "zsh", "fish"] {
        let output = daemon.cli(&["completions", shell]).await.expect_code(0);
        assert!(output.stdout.contains("mcpx") && output.stdout.contains("doctor"), "{shell}");
    }
    std::fs::write(daemon.config_path(), "").unwrap();
    let output = daemon.cli(&["version"]).await;
    assert!(output.stdout.contains(env!("CARGO_PKG_VERSION")), "{output:?}");
    assert!(daemon.marked().is_empty(), "nothing was started");
}

/// `doctor` finds what does not work and says how to mend it; exits with 1 where something is bad.
#[tokio::test]
async fn doctor_finds_what_does_not_work() {
    let daemon = setup::start(
        |daemon| {
            let mut missing = daemon.fake("missing");
            missing.exe = "/no/such/program".into();
            vec![
                daemon.fake("fine").args("--tools echo"),
                missing,
                daemon.fake("dies").args("--exit 1 --stderr-text out-of-cheese"),
            ]
        },
        "",
    );
    let output = daemon.cli(&["doctor", "--json"]).await.expect_code(1).json();
    let findings = output["findings"].as_array().unwrap();
    let of = |name: &str| {
        let subject = format!("server {name}");
        findings.iter().find(|one| one["subject"] == subject).unwrap_or_else(|| panic!("{output}"))
    };
    assert_eq!(of("fine")["severity"], "ok");
    assert_eq!(of("missing")["severity"], "error");
    assert!(of("missing")["text"].as_str().unwrap().contains("/no/such/program"));
    assert!(of("missing")["mend"].is_string() && of("dies")["mend"].is_string());
    assert!(of("dies").to_string().contains("out-of-cheese"));
    let people = daemon.cli(&["doctor"]).await.expect_code(1);
    assert!(people.stdout.contains("/no/such/program"), "{people:?}");
}

/// Servers are looked at side by side, and told in their order: two that each start only once the other has.
#[tokio::test]
async fn the_doctor_looks_at_several_servers_at_once() {
    let daemon = setup::start(
        |daemon| {
            let pair = |name: &str, other: &str| {
                let mut fake = daemon.fake(name).args("--tools echo");
                let script = daemon.path(format!("home/{name}.sh"));
                let (own, awaited) = (
                    daemon.path(format!("notes/{name}-is-up")),
                    daemon.path(format!("notes/{other}-is-up")),
                );
                let text = format!(
                    "#!/bin/sh\ntouch {}\nwhile ! [ -e {} ]; do sleep 0.05; done\nexec {} \"$@\"\n",
                    own.display(),
                    awaited.display(),
                    fake.exe.display()
                );
                crate::script(&script, &text);
                fake.exe = script;
                fake
            };
            vec![pair("b", "a"), pair("a", "b")]
        },
        "",
    );
    let output = daemon.cli(&["doctor", "--json"]).await.json();
    let findings = output["findings"].as_array().unwrap();
    let servers: Vec<(&str, &str)> = findings
        .iter()
        .map(|one| (one["subject"].as_str().unwrap(), one["severity"].as_str().unwrap()))
        .filter(|(subject, _)| subject.starts_with("server "))
        .collect();
    assert_eq!(servers, [("server b", "ok"), ("server a", "ok")], "{output}");
}

/// H-16: what a host calls itself labels it, and nothing else.
#[tokio::test]
async fn h16_hosts_are_labelled() {
    let daemon = daemon();
    let _host = setup::host(&daemon, "2025-06-18").await;
    let shown = crate::status(&daemon).await;
    assert!(shown["hosts"][0]["label"].as_str().unwrap().starts_with("raw-host"), "{shown}");
    assert_eq!(shown["hosts"][0]["revision"], "2025-06-18");
    let project = std::fs::canonicalize(daemon.path("project")).unwrap();
    assert_eq!(shown["hosts"][0]["project"], json!(project));
}
