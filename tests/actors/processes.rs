//! Processes that do not start, end oddly, or do not want to end.

use std::time::Duration;

use mcpx::actors::upstreams::{HostId, Reason};
use mcpx::protocol::session::Answer;
use mcpx::settings::Scope;
use serde_json::json;

use crate::eventually;
use crate::stage::{Stage, bare, host, text, want};
use crate::support::procs;

const SOON: Duration = Duration::from_secs(10);

/// F25 (f): a server that ends on the probe is started again without it, at once, and remembered.
#[tokio::test(flavor = "multi_thread")]
async fn f25_f_a_server_that_ends_on_the_probe_is_started_without_it() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("shy", "--probe exit");
    stage.serve(vec![stage.def(&fake)]).await;
    let answer = stage.call("shy", "echo", json!({"text": "here"})).await.unwrap();
    assert_eq!(text(&answer), "here");
    assert_eq!(fake.starts(), 2);
    let status = stage.status("shy").await;
    assert_eq!((status.failures, status.restarts), (0, 0), "{status:?}");
    stage.upstreams.restart_server("shy").await.unwrap();
    eventually!(SOON, fake.starts() == 3);
    eventually!(SOON, stage.status("shy").await.state == "ready");
    assert_eq!(fake.transcript().with_method("server/discover").len(), 1);
    stage.end().await;
}

/// F28: one that exits at once: the caller is told why with the last words of stderr; then backoff,
/// then parked, with a way out.
#[tokio::test(flavor = "multi_thread")]
async fn f28_a_server_that_exits_is_parked_with_its_last_words() {
    let mut stage = Stage::new(|settings| settings.pool.park_after = 3).await;
    let fake = stage.fake("bad", "--exit 1 --stderr-text").arg("ImportError: no module named x");
    stage.serve(vec![stage.def(&fake)]).await;
    let refused = stage.call("bad", "echo", json!({})).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Unavailable);
    for part in ["bad", "exited with status 1", "ImportError", "mcpx logs bad"] {
        assert!(refused.text.contains(part), "{part} in {}", refused.text);
    }
    eventually!(SOON, stage.status("bad").await.state == "parked");
    let status = stage.status("bad").await;
    assert_eq!(status.failures, 3);
    assert!(!status.permanent);
    assert!(status.stderr.iter().any(|line| line.contains("ImportError")), "{status:?}");
    let log = &stage.upstreams.logs("bad").await.unwrap()[0];
    assert!(!log.alive && log.ring.tail(10).concat().contains("ImportError"));
    let starts = fake.starts();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(fake.starts(), starts, "a parked server starts nothing by itself");
    let kinds = stage.kinds();
    assert!(kinds.contains(&"server.failed") && kinds.contains(&"server.parked"), "{kinds:?}");

    let mended = stage.fake("bad", "");
    stage.serve(vec![stage.def(&mended)]).await;
    assert_eq!(text(&stage.call("bad", "echo", json!({"text": "x"})).await.unwrap()), "x");
    stage.end().await;
}

/// F28: no such program, and one that is not executable: parked at once, for good.
#[tokio::test(flavor = "multi_thread")]
async fn f28_permanent_faults_are_told_at_once() {
    let mut stage = Stage::new(|_| {}).await;
    let plain = stage.folder.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let mut missing = bare("missing");
    missing.command = vec!["mcpx-no-such-program".to_owned()];
    let mut denied = bare("denied");
    denied.command = vec![plain.display().to_string()];
    let mut unset = bare("unset");
    unset.command = vec!["true".to_owned()];
    unset.env = [("TOKEN".to_owned(), "${env:NOT_SET_ANYWHERE}".to_owned())].into();
    stage.serve(vec![missing, denied, unset]).await;
    for (name, part) in [
        ("missing", "mcpx-no-such-program"),
        ("denied", "cannot be executed"),
        ("unset", "NOT_SET_ANYWHERE"),
    ] {
        let refused = stage.call(name, "echo", json!({})).await.unwrap_err();
        assert!(refused.text.contains(part), "{}", refused.text);
        let way_out = format!("mcpx restart {name}");
        assert!(refused.text.contains(&way_out), "{}", refused.text);
        let status = stage.status(name).await;
        assert_eq!((status.state, status.permanent), ("parked", true));
    }
    stage.end().await;
}

/// F30: the wrapper's end is not the server's; all that it started goes with it.
#[tokio::test(flavor = "multi_thread")]
async fn f30_wrappers_and_grandchildren() {
    let mut stage = Stage::new(|_| {}).await;
    let wrapped = stage.fake("wrapped", "--wrapper --grandchild --grandchild-setsid");
    stage.serve(vec![stage.def(&wrapped)]).await;
    let pid = text(&stage.call("wrapped", "pid", json!({})).await.unwrap());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(text(&stage.call("wrapped", "pid", json!({})).await.unwrap()), pid);
    assert!(stage.processes() >= 3);
    stage.upstreams.stop_server("wrapped").await.unwrap();
    assert_eq!(stage.processes(), 0);
    stage.end().await;
}

/// F30: a grandchild that holds the pipe does not hide the server's death: a sign of life is asked
/// for when the leader has exited, and calls do not hang.
#[tokio::test(flavor = "multi_thread")]
async fn f30_a_held_pipe_does_not_hide_a_death() {
    let mut stage =
        Stage::new(|settings| settings.upstream.ping = Duration::from_millis(300)).await;
    let fake = stage.fake("held", "--grandchild-pipe");
    stage.serve(vec![stage.def(&fake)]).await;
    stage.call("held", "echo", json!({"text": "x"})).await.unwrap();
    let pid = stage.status("held").await.instances[0].pid.unwrap();
    procs::signal(pid, nix::sys::signal::Signal::SIGKILL);
    eventually!(SOON, fake.starts() == 2);
    let again = stage.call("held", "echo", json!({"text": "again"})).await.unwrap();
    assert_eq!(text(&again), "again");
    stage.end().await;
}

/// F31: those that ignore everything are killed, all in parallel, within the ladder's time.
#[tokio::test(flavor = "multi_thread")]
async fn f31_stubborn_servers_end_in_parallel() {
    let mut stage = Stage::new(|_| {}).await;
    let names = ["a", "b", "c", "d", "e"];
    let fakes: Vec<_> =
        names.iter().map(|name| stage.fake(name, "--ignore-term --ignore-eof")).collect();
    stage.serve(fakes.iter().map(|fake| stage.def(fake)).collect()).await;
    for name in names {
        stage.call(name, "echo", json!({"text": "x"})).await.unwrap();
    }
    let begun = std::time::Instant::now();
    stage.end().await;
    // One ladder takes two graces of half a second each; five in a row would take five times that.
    assert!(begun.elapsed() < Duration::from_millis(2500), "{:?}", begun.elapsed());
}

/// F34: one pass of expansion, the configured environment and nothing of ours beside it.
#[tokio::test(flavor = "multi_thread")]
async fn f34_references_are_replaced_once() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("env", "");
    let mut def = stage.def(&fake);
    for (name, value) in
        [("A", "${SECRET}"), ("B", "$${SECRET}"), ("C", "${UNSET:-x y}"), ("D", "")]
    {
        def.env.insert(name.to_owned(), value.to_owned());
    }
    stage.serve(vec![def]).await;
    for (name, value) in [("A", "${NOT_AGAIN}"), ("B", "${SECRET}"), ("C", "x y"), ("D", "")] {
        let answer = stage.call("env", "env", json!({"name": name})).await.unwrap();
        assert!(text(&answer).contains(value), "{name}: {}", text(&answer));
    }
    stage.end().await;
}

/// F32: a flood on stderr, before the handshake and during a call, slows nothing and stays bounded.
#[tokio::test(flavor = "multi_thread")]
async fn f32_a_flood_on_stderr_slows_nothing() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("loud", "--stderr-start 5000000");
    stage.serve(vec![stage.def(&fake)]).await;
    let answer = stage.call("loud", "echo", json!({"text": "heard"})).await.unwrap();
    assert_eq!(text(&answer), "heard");
    stage.call("loud", "stderr", json!({"bytes": 20_000_000})).await.unwrap();
    let ring = stage.upstreams.logs("loud").await.unwrap()[0].ring.clone();
    let kept: usize = ring.tail(usize::MAX).iter().map(String::len).sum();
    let process = stage.settings.process;
    assert!(kept <= process.stderr_lines * (process.stderr_line_bytes + 100), "{kept}");
    stage.end().await;
}

/// A blocking single-threaded server with 64 large calls and large answers in flight never hangs:
/// reading from it does not wait for writing to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_blocking_server_with_large_calls_never_hangs() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("serial", "--serial");
    stage.serve(vec![stage.def(&fake)]).await;
    let large = "x".repeat(300_000);
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let upstreams = stage.upstreams.clone();
            let want = want("serial", "echo", json!({"text": large}));
            tokio::spawn(async move { upstreams.call_unattended(want).await })
        })
        .collect();
    for call in calls {
        assert_eq!(text(&call.await.unwrap().unwrap()).len(), large.len());
    }
    assert_eq!(fake.starts(), 1);
    stage.end().await;
}

/// Connect, call, crash, stop, in three scopes, again and again: nothing is left, neither processes
/// nor calls in flight nor open files.
#[tokio::test(flavor = "multi_thread")]
async fn cycles_of_crashes_leave_nothing() {
    let mut stage = Stage::new(|settings| {
        settings.pool.park_after = 1000;
        settings.pool.backoff_step = Duration::from_millis(1);
        settings.pool.backoff_max = Duration::from_millis(5);
    })
    .await;
    let scopes = [("g", Scope::Global), ("s", Scope::Session), ("c", Scope::Call)];
    let fakes = scopes.map(|(name, _)| stage.fake(name, ""));
    let defs = scopes.iter().zip(&fakes).map(|((_, scope), fake)| {
        let mut def = stage.def(fake);
        def.scope = *scope;
        def
    });
    let defs = defs.collect();
    stage.serve(defs).await;
    let me = std::process::id();
    let mut files = 0;
    for round in 0..12 {
        for (name, _) in scopes {
            let mut crash = want(name, "die", json!({}));
            crash.caller = host(round, "/");
            let lost = stage.upstreams.call_unattended(crash).await.unwrap();
            assert!(matches!(lost, Answer::Lost { written: true, .. }), "{lost:?}");
            let mut echo = want(name, "echo", json!({"text": "x"}));
            echo.caller = host(round, "/");
            let answer = stage.upstreams.call_unattended(echo).await;
            assert_eq!(text(&answer.unwrap()), "x");
        }
        stage.upstreams.session_ended(HostId(round));
        eventually!(SOON, stage.processes() == 1, "round {round}");
        eventually!(SOON, procs::zombies(me).is_empty(), "round {round}");
        if round == 2 {
            files = procs::open_files(me);
        }
    }
    // The tests of this binary run beside each other, so that only a growth with the rounds counts.
    eventually!(SOON, procs::open_files(me) < files + 60);
    assert!(stage.status("s").await.instances.is_empty());
    stage.end().await;
}
