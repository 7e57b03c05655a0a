//! A fresh machine: the built-in upstream, the daemon that starts by itself, and only one of it.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

use crate::support::procs;
use crate::support::raw_host::{RawHost, text_of};
use crate::{SOON, command_line, daemons, eventually, setup, status, stop_daemon};

/// Issue 2: without any configuration, `mcpx call demo echo text=hello` prints `hello`.
#[tokio::test]
async fn call_demo_on_a_fresh_machine() {
    let daemon = setup::prepare();
    // As a person types it: no --config, and no file anywhere.
    let template = daemon.command(&["unused"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpx"));
    command.args(["call", "demo", "echo", "text=hello"]).env_clear();
    command.current_dir(daemon.path("project")).stdin(Stdio::null());
    for (key, value) in template.get_envs() {
        command.env(key, value.unwrap());
    }
    let output = command.output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let running = daemons(&daemon);
    assert_eq!(running.len(), 1, "started by itself, and stays");
    // A session of its own: it outlives the terminal of whoever called.
    let pid = nix::unistd::Pid::from_raw(i32::try_from(running[0]).unwrap());
    assert_eq!(nix::unistd::getsid(Some(pid)).unwrap(), pid);
    command = Command::from(daemon.command(&["stop", "--daemon"]));
    std::fs::write(daemon.config_path(), "").unwrap();
    assert!(command.status().await.unwrap().success());
    eventually!(SOON, daemons(&daemon).is_empty());
}

/// A host may end all that descends from it, as opencode does when it leaves: the daemon that its shim
/// started is there for others too.
#[tokio::test]
async fn a_daemon_descends_from_no_host() {
    let daemon = setup::prepare();
    daemon.write_config(&[daemon.fake("up").args("--tools echo")], &setup::quick(""));
    let host = setup::host(&daemon, "2025-06-18").await;
    eventually!(SOON, procs::descendants(host.pid().unwrap()).is_empty());
    let running = daemons(&daemon);
    assert_eq!(running.len(), 1, "{:?}", daemon.marked());
    drop(host);
    stop_daemon(&daemon).await;
}

/// Promise: the daemon starts once, however many shims ask for it at once.
#[tokio::test]
async fn one_daemon_however_many_shims() {
    let daemon = setup::prepare();
    daemon.write_config(&[daemon.fake("up").args("--tools echo")], &setup::quick(""));
    let mut hosts: Vec<RawHost> = (0..12).map(|_| daemon.shim(&[])).collect();
    for host in &mut hosts {
        host.initialize("2025-06-18").await;
    }
    for host in &mut hosts {
        let answer = setup::call(host, "up", "echo", json!({ "text": "x" })).await;
        assert_eq!(text_of(&answer), "x");
    }
    assert_eq!(daemons(&daemon).len(), 1, "{:?}", daemon.marked());
    let shown = status(&daemon).await;
    assert_eq!(shown["hosts"].as_array().unwrap().len(), 12, "{shown}");
    assert_eq!(shown["daemon"]["pid"], daemons(&daemon)[0]);
    // They share one project, so one process (F33).
    assert_eq!(daemon.fake("up").starts(), 1);
    drop(hosts);
    stop_daemon(&daemon).await;
    eventually!(SOON, daemon.marked().is_empty(), "{:?}", daemon.marked());
}

/// Commands that ask only about a running daemon start none: they exit with 3.
#[tokio::test]
async fn commands_that_start_nothing() {
    let daemon = setup::prepare();
    daemon.write_config(&[], "");
    for words in [
        vec!["ps"],
        vec!["status"],
        vec!["logs"],
        vec!["events"],
        vec!["settings"],
        vec!["settings", "get"],
        vec!["stop", "demo"],
        vec!["stop", "--daemon"],
        vec!["restart", "demo"],
        vec!["reload"],
    ] {
        let output = daemon.cli(&words).await.expect_code(3);
        assert!(output.stdout.is_empty(), "{words:?}: {output:?}");
        assert!(output.stderr.contains("mcpx daemon"), "says what to do: {output:?}");
    }
    assert!(daemon.marked().is_empty());
}

/// `shim.autostart = false`: a call says so, and exits with 3; the shim waits its grace and says so.
#[tokio::test]
async fn autostart_can_be_off() {
    let daemon = setup::prepare();
    daemon.write_config(&[], "shim.autostart = false\nshim.grace = \"300ms\"");
    let output = daemon.cli(&["call", "demo", "echo", "text=x"]).await.expect_code(3);
    assert!(output.stderr.contains("shim.autostart"), "{output:?}");
    let mut host = daemon.shim(&[]);
    let answer = host.initialize_only("2025-06-18").await;
    assert!(answer.to_string().contains("mcpx daemon"), "says how to start one: {answer}");
    assert!(daemons(&daemon).is_empty());
}

/// A replacer gives its right to start back: the next one replaces it, and two at once end with one
/// daemon.
#[tokio::test]
async fn replace_works_again_and_again() {
    let mut daemon = setup::start(|daemon| vec![daemon.fake("up").args("--tools echo")], "");
    let replace = || {
        let mut next = daemon.command(&["daemon", "--replace"]);
        next.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        next.spawn().unwrap()
    };
    let mut all = Vec::new();
    for _ in 0..2 {
        all.push(replace());
        let pid = all.last().unwrap().id();
        eventually!(SOON, daemon.cli(&["ps", "--json"]).await.stdout.contains(&pid.to_string()));
    }
    all.extend([replace(), replace()]);
    let left = |all: &mut Vec<std::process::Child>| {
        all.retain_mut(|one| one.try_wait().unwrap().is_none());
        all.len()
    };
    eventually!(SOON, left(&mut all) == 1, "one of them stays");
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    daemon.cli(&["stop", "--daemon"]).await.expect_code(0);
    eventually!(SOON, left(&mut all) == 0);
    daemon.kill9();
}

/// A log that takes nothing costs lines, not the daemon.
#[tokio::test]
async fn a_full_disk_under_the_log() {
    let mut daemon = setup::prepare();
    daemon.write_config(&[daemon.fake("up").args("--tools echo")], &setup::quick(""));
    let mut command = daemon.command(&["daemon"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(full);
    let mut running = command.spawn().unwrap();
    eventually!(SOON, daemon.socket().exists());
    for _ in 0..3 {
        daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
        daemon.cli(&["restart", "up"]).await.expect_code(0);
    }
    assert_eq!(status(&daemon).await["daemon"]["pid"], running.id());
    daemon.cli(&["stop", "--daemon"]).await.expect_code(0);
    assert!(running.wait().unwrap().success());
    daemon.stop();
}

/// A second daemon leaves the first alone; `--replace` takes over.
#[tokio::test]
async fn a_second_daemon_and_replace() {
    let mut daemon = setup::start(|daemon| vec![daemon.fake("up").args("--tools echo")], "");
    let first = daemon.pid().unwrap();
    let output = daemon.cli(&["daemon"]).await;
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("--replace"), "{output:?}");
    assert!(procs::alive(first));
    let mut host = setup::host(&daemon, "2025-06-18").await;
    let mut second = daemon.command(&["daemon", "--replace"]);
    second.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut second = second.spawn().unwrap();
    // The harness reaps the first, which was told to leave.
    eventually!(SOON, procs::one(first).is_none_or(|process| process.state == 'Z'));
    daemon.kill9();
    let answer = setup::call(&mut host, "up", "echo", json!({ "text": "over" })).await;
    assert_eq!(text_of(&answer), "over", "the host notices nothing");
    assert_eq!(status(&daemon).await["daemon"]["pid"], second.id());
    drop(host);
    stop_daemon_child(&daemon, &mut second).await;
}

/// `mcpx stop --daemon` is through when the daemon is: the next one finds its place free.
#[tokio::test]
async fn stop_waits_for_the_end_of_the_daemon() {
    let daemon = setup::start(
        |daemon| vec![daemon.fake("up").args("--tools echo --ignore-eof --ignore-term")],
        "plumbing.stdio_drain_grace = \"500ms\"\nplumbing.term_grace = \"500ms\"",
    );
    daemon.cli(&["call", "up", "echo", "text=a"]).await.expect_code(0);
    let told = daemon.cli(&["stop", "--daemon"]).await.expect_code(0);
    assert!(told.stdout.contains("has ended"), "{told:?}");
    let mut next = daemon.command(&["daemon"]);
    next.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut next = next.spawn().unwrap();
    eventually!(SOON, procs::alive(next.id()) && daemon.socket().exists(), "no next daemon");
    daemon.cli(&["call", "up", "echo", "text=b"]).await.expect_code(0);
    assert_eq!(status(&daemon).await["daemon"]["pid"], next.id());
    stop_daemon_child(&daemon, &mut next).await;
}

async fn stop_daemon_child(
    daemon: &crate::support::daemon::Daemon,
    child: &mut std::process::Child,
) {
    daemon.cli(&["stop", "--daemon"]).await.expect_code(0);
    eventually!(SOON, child.try_wait().unwrap().is_some(), "it stays");
}

/// A socket file that nobody listens on is no daemon.
#[tokio::test]
async fn a_stale_socket_is_no_daemon() {
    let daemon = setup::prepare();
    daemon.write_config(&[], "");
    drop(std::os::unix::net::UnixListener::bind(daemon.socket()).unwrap());
    daemon.cli(&["ps"]).await.expect_code(3);
    let output = daemon.cli(&["call", "demo", "echo", "text=up"]).await.expect_code(0);
    assert_eq!(output.stdout, "up\n");
    stop_daemon(&daemon).await;
}

/// The socket is the user's own, and so is what the daemon keeps.
#[tokio::test]
async fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let daemon = setup::start(|daemon| vec![daemon.fake("up").args("--tools echo")], "");
    daemon.cli(&["tools"]).await.expect_code(0);
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&daemon.socket()), 0o600);
    let mut open = vec![daemon.path("state")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let wanted = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path) & !wanted, 0, "{} is open to others", path.display());
            if path.is_dir() {
                open.push(path);
            }
        }
    }
}

/// Nothing of the daemon's command line is secret, and a shim names itself in `ps`.
#[tokio::test]
async fn processes_can_be_told_apart() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up").args("--tools echo")], "");
    let host = setup::host(&daemon, "2025-06-18").await;
    assert!(command_line(host.pid().unwrap()).contains(&"serve".to_owned()));
    tokio::time::sleep(Duration::from_millis(1)).await;
}
