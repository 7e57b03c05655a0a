//! Servers that fail: permanent and passing faults, backoff, parking, the way out (F28, F29, P-08,
//! P-14).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::setup::{self, call, failed, names, reason};
use crate::support::raw_host::text_of;
use crate::{SOON, eventually, server};

/// F28: no such program, not executable, a shebang with CR LF: permanent at once, with the reason,
/// and mended by the next start once the cause is gone.
#[tokio::test]
async fn f28_permanent_faults() {
    let daemon = setup::start(
        |daemon| {
            let plain = daemon.path("plain");
            fs::write(&plain, "not executable").unwrap();
            let crlf = daemon.path("crlf");
            crate::script(&crlf, "#!/bin/sh\r\nexec true\r\n");
            let with = |name: &str, exe: std::path::PathBuf| {
                let mut fake = daemon.fake(name);
                fake.exe = exe;
                fake
            };
            vec![
                with("missing", daemon.path("late-program")),
                with("plain", plain),
                with("crlf", crlf),
                daemon.fake("fine").args("--tools echo"),
            ]
        },
        "",
    );
    let mut host = setup::host(&daemon, "2025-06-18").await;
    for name in ["missing", "plain", "crlf"] {
        let began = Instant::now();
        let answer = call(&mut host, name, "echo", json!({})).await;
        assert!(failed(&answer), "{name}: {answer}");
        assert_eq!(reason(&answer), "unavailable", "{name}: {answer}");
        assert!(began.elapsed() < Duration::from_secs(2), "{name}: at once");
        let shown = server(&daemon, name).await;
        assert_eq!(
            (&shown["state"], &shown["permanent"]),
            (&json!("parked"), &json!(true)),
            "{shown}"
        );
        assert!(!shown["reason"].as_str().unwrap().is_empty(), "{shown}");
    }
    assert!(text_of(&call(&mut host, "missing", "echo", json!({})).await).contains("late-program"));
    // `list` is unaffected.
    assert_eq!(names(&host.list_tools().await).len(), 10, "the core tools");
    assert_eq!(text_of(&call(&mut host, "fine", "echo", json!({ "text": "x" })).await), "x");
    // Mended: the program is there now, and a restart sees it.
    let exe = env!("CARGO_BIN_EXE_fakemcp");
    crate::script(&daemon.path("late-program"), &format!("#!/bin/sh\nexec {exe} \"$@\"\n"));
    fs::set_permissions(daemon.path("plain"), fs::Permissions::from_mode(0o644)).unwrap();
    daemon.cli(&["restart", "missing"]).await.expect_code(0);
    assert_eq!(text_of(&call(&mut host, "missing", "echo", json!({ "text": "x" })).await), "x");
}

/// F28: exits at once, always: told with its last words, tried again with pauses, then parked.
#[tokio::test]
async fn f28_p14_always_exits() {
    for (args, words) in [
        ("--exit 1 --stderr-text Traceback:no-module", "Traceback:no-module"),
        ("--exit 0", "exit"),
    ] {
        let daemon =
            setup::start(|daemon| vec![daemon.fake("up").args(args)], "pool.park_after = 3");
        let mut host = setup::host(&daemon, "2025-06-18").await;
        let answer = call(&mut host, "up", "echo", json!({})).await;
        assert!(failed(&answer), "{answer}");
        assert!(text_of(&answer).contains(words), "{words}: {answer}");
        eventually!(SOON, {
            call(&mut host, "up", "echo", json!({})).await;
            server(&daemon, "up").await["state"] == "parked"
        });
        let shown = server(&daemon, "up").await;
        assert_eq!(shown["permanent"], false, "{shown}");
        let parked = call(&mut host, "up", "echo", json!({})).await;
        assert_eq!(reason(&parked), "unavailable", "{parked}");
        assert!(text_of(&parked).contains("mcpx restart up"), "the way out: {parked}");
        // Parked is quiet: nothing starts by itself.
        let starts = daemon.fake("up").starts();
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert!(daemon.fake("up").starts() <= starts + 1);
        let restarted = daemon.cli(&["restart", "up", "--json"]).await.expect_code(0).json();
        assert_ne!(restarted["state"], "parked", "P-14: {restarted}");
    }
}

/// F29, P-08: it comes up and dies after a while, for ever: few starts, growing pauses, the catalog
/// stays, and a call makes at most one more try.
#[tokio::test]
async fn f29_comes_up_and_dies() {
    let daemon = setup::start(
        |daemon| vec![daemon.fake("up").args("--tools echo --die-after 50")],
        "expose.mode = \"passthrough\"\npool.park_after = 4\n\
         plumbing.restart_backoff_step = \"150ms\"\nplumbing.restart_backoff_max = \"400ms\"",
    );
    let mut host = setup::host(&daemon, "2025-06-18").await;
    assert_eq!(names(&host.list_tools().await), ["up_echo"]);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(2500) {
        host.call("up_echo", json!({})).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let starts = daemon.fake("up").starts();
    assert!((2..=14).contains(&starts), "{starts} starts in 2.5 s");
    assert_eq!(names(&host.list_tools().await), ["up_echo"], "the catalog stays");
    let shown = server(&daemon, "up").await;
    assert!(
        ["parked", "backoff", "starting", "ready", "idle"]
            .contains(&shown["state"].as_str().unwrap())
    );
    assert!(shown["restarts"].as_u64().unwrap() >= 2, "a short life resets nothing: {shown}");
    assert!(shown["failures"].as_u64().unwrap() >= 2, "{shown}");
}

/// F29: many calls at once on a parked server make one try, not many.
#[tokio::test]
async fn f29_a_parked_server_is_tried_once() {
    let daemon =
        setup::start(|daemon| vec![daemon.fake("up").args("--exit 1")], "pool.park_after = 1");
    let mut host = setup::host(&daemon, "2025-06-18").await;
    call(&mut host, "up", "echo", json!({})).await;
    eventually!(SOON, server(&daemon, "up").await["state"] == "parked");
    let before = daemon.fake("up").starts();
    let wanted = json!({ "namespace": "up", "tool": "echo", "arguments": {} });
    for id in 100..120 {
        host.start_call(id, "mcpx_call", wanted.clone()).await;
    }
    for id in 100..120 {
        assert!(failed(&host.expect_response(id).await));
    }
    assert!(
        daemon.fake("up").starts() <= before + 2,
        "{} after {before}",
        daemon.fake("up").starts()
    );
}

/// F29: sustained uptime, and only that, wipes the slate.
#[tokio::test]
async fn f29_sustained_uptime_resets() {
    let daemon = setup::start(
        |daemon| vec![daemon.fake("up").args("--tools echo --exit-first 2")],
        "pool.sustained_uptime = \"400ms\"",
    );
    let mut host = setup::host(&daemon, "2025-06-18").await;
    eventually!(SOON, !failed(&call(&mut host, "up", "echo", json!({})).await));
    assert!(server(&daemon, "up").await["failures"].as_u64().unwrap() > 0, "it has just come up");
    eventually!(SOON, server(&daemon, "up").await["failures"] == 0);
    // An end at the probe is the probe's fault and counts for nothing (F25 f).
    let restarts = server(&daemon, "up").await["restarts"].as_u64().unwrap();
    assert!((1..=2).contains(&restarts), "what happened is still told: {restarts}");
}

/// O-01: the life of a server can be read from the events.
#[tokio::test]
async fn o01_events_tell_the_story() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], "");
    let mut host = setup::host(&daemon, "2025-06-18").await;
    call(&mut host, "up", "die", json!({})).await;
    call(&mut host, "up", "echo", json!({})).await;
    daemon.cli(&["stop", "up"]).await.expect_code(0);
    let told = || async {
        let events = daemon.cli(&["events", "--json"]).await.expect_code(0).json();
        let events = events["events"].as_array().unwrap().clone();
        let kinds: Vec<String> = events
            .iter()
            .filter(|event| event["server"] == "up" || event.get("host").is_some())
            .map(|event| event["kind"].as_str().unwrap().to_owned())
            .collect();
        kinds
    };
    eventually!(SOON, told().await.contains(&"server.stopped".to_owned()));
    let kinds = told().await;
    for kind in ["server.started", "server.crashed", "server.stopped", "host.opened"] {
        assert!(kinds.iter().any(|one| one == kind), "{kind} in {kinds:?}");
    }
}

/// F28, F48: a command's call starts the server that it names, once, and no other; the failure of that
/// start is its answer.
#[tokio::test]
async fn f28_a_command_starts_one_server_once() {
    let daemon = setup::start(
        |daemon| {
            vec![
                daemon.fake("fine").args("--tools echo"),
                daemon.fake("mute").args("--initialize-silent --probe silent"),
            ]
        },
        "upstream.handshake_timeout = \"500ms\"\nplumbing.restart_backoff_step = \"30s\"\n\
         plumbing.restart_backoff_max = \"30s\"\nexpose.list_wait = \"5s\"",
    );
    for _ in 0..2 {
        let began = Instant::now();
        daemon.cli(&["call", "fine", "echo", "text=x"]).await.expect_code(0);
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }
    assert_eq!(server(&daemon, "mute").await["state"], "idle");
    let failed = daemon.cli(&["call", "mute", "echo", "text=x"]).await.expect_code(1);
    assert!(failed.stderr.contains("upstream.handshake_timeout"), "{}", failed.stderr);
    assert_eq!(server(&daemon, "mute").await["failures"], 1);
}
