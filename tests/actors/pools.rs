//! Who shares an instance, how many there are, what operators and other configurations do.

use std::time::Duration;

use mcpx::settings::Scope;
use serde_json::json;

use crate::eventually;
use crate::stage::{Stage, host, text, want};

const SOON: Duration = Duration::from_secs(5);

/// F33: twenty callers in one moment are one process.
#[tokio::test(flavor = "multi_thread")]
async fn f33_twenty_callers_start_one_process() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("one", "--start-delay 100");
    stage.serve(vec![stage.def(&fake)]).await;
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let upstreams = stage.upstreams.clone();
            let want = want("one", "echo", json!({"text": number.to_string()}));
            tokio::spawn(async move { upstreams.call_unattended(want).await })
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(text(&call.await.unwrap().unwrap()), number.to_string());
    }
    assert_eq!(fake.starts(), 1);
    stage.end().await;
}

/// F33: `max` is a bound and no wish: where the first instance has room, there is no second.
#[tokio::test(flavor = "multi_thread")]
async fn f33_a_caller_with_room_starts_no_second_instance() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("one", "");
    let mut def = stage.def(&fake);
    def.max = 3;
    stage.serve(vec![def]).await;
    for _ in 0..3 {
        stage.call("one", "pid", json!({})).await.unwrap();
    }
    assert_eq!(fake.starts(), 1);
    assert_eq!(stage.status("one").await.instances.len(), 1);
    stage.end().await;
}

/// F33: a configuration that changes during a start: the caller is served by the new generation,
/// one process of each was started, and the superseded one is gone.
#[tokio::test(flavor = "multi_thread")]
async fn f33_a_server_replaced_while_it_starts_leaves_nothing() {
    let mut stage = Stage::new(|_| {}).await;
    let old = stage.fake("swap", "--initialize-delay 60000 --probe silent");
    stage.serve(vec![stage.def(&old)]).await;
    let upstreams = stage.upstreams.clone();
    let call =
        tokio::spawn(
            async move { upstreams.call_unattended(want("swap", "pid", json!({}))).await },
        );
    eventually!(SOON, old.starts() == 1);
    let new = stage.fake("swap", "--instructions new");
    stage.serve(vec![stage.def(&new)]).await;
    let answer = call.await.unwrap().unwrap();
    assert_eq!(new.starts(), 2);
    eventually!(SOON, stage.processes() == 1);
    let pid = stage.status("swap").await.instances[0].pid.unwrap();
    assert_eq!(text(&answer), pid.to_string());
    stage.end().await;
}

/// A call in flight on the old generation is finished there.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_server_finishes_its_calls() {
    let mut stage = Stage::new(|_| {}).await;
    let old = stage.fake("swap", "");
    stage.serve(vec![stage.def(&old)]).await;
    let old_pid = text(&stage.call("swap", "pid", json!({})).await.unwrap());
    let upstreams = stage.upstreams.clone();
    let slow = want("swap", "slow", json!({"ms": 400, "steps": 2}));
    let slow = tokio::spawn(async move { upstreams.call_unattended(slow).await });
    eventually!(SOON, old.transcript().with_method("tools/call").len() == 2);

    let new = stage.fake("swap", "--instructions new");
    stage.serve(vec![stage.def(&new)]).await;
    let new_pid = text(&stage.call("swap", "pid", json!({})).await.unwrap());
    assert_ne!(old_pid, new_pid);
    assert_eq!(text(&slow.await.unwrap().unwrap()), "done in 2 steps");
    eventually!(SOON, stage.processes() == 1);

    // What did not change is not touched.
    let mut settings = stage.settings.clone();
    settings.pool.idle = Duration::from_secs(1000);
    stage.settings = settings;
    stage.serve(vec![stage.def(&new)]).await;
    assert_eq!(text(&stage.call("swap", "pid", json!({})).await.unwrap()), new_pid);
    stage.end().await;
}

/// P-01: each scope has the instances that its name says.
#[tokio::test(flavor = "multi_thread")]
async fn p01_scopes_say_who_shares() {
    let mut stage = Stage::new(|_| {}).await;
    let scopes = [("all", Scope::Global), ("proj", Scope::Project), ("sess", Scope::Session)];
    let fakes: Vec<_> = scopes.iter().map(|(name, _)| stage.fake(name, "")).collect();
    let mut defs = Vec::new();
    for ((_, scope), fake) in scopes.iter().zip(&fakes) {
        let mut def = stage.def(fake);
        def.scope = *scope;
        defs.push(def);
    }
    stage.serve(defs).await;
    let callers = [host(1, "/"), host(2, "/"), host(3, "/tmp")];
    for (name, expected) in [("all", [0, 0, 0]), ("proj", [0, 0, 1]), ("sess", [0, 1, 2])] {
        let mut pids = Vec::new();
        for caller in &callers {
            let mut want = want(name, "pid", json!({}));
            want.caller = caller.clone();
            pids.push(text(&stage.upstreams.call_unattended(want).await.unwrap()));
        }
        let firsts: Vec<_> =
            pids.iter().map(|pid| pids.iter().position(|other| other == pid).unwrap()).collect();
        let distinct: Vec<_> = expected
            .iter()
            .map(|group| expected.iter().position(|other| other == group).unwrap())
            .collect();
        assert_eq!(firsts, distinct, "{name}");
    }
    // F34: the folder is that of the caller's project.
    let mut in_tmp = want("proj", "cwd", json!({}));
    in_tmp.caller = host(3, "/tmp");
    assert_eq!(text(&stage.upstreams.call_unattended(in_tmp).await.unwrap()), "/tmp");

    stage.upstreams.session_ended(mcpx::actors::upstreams::HostId(2));
    eventually!(SOON, stage.status("sess").await.instances.len() == 2);
    stage.end().await;
}

/// Call scope: an instance for each call, and none afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn p01_call_scope_is_one_call() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("each", "");
    let mut def = stage.def(&fake);
    def.scope = Scope::Call;
    stage.serve(vec![def]).await;
    let first = text(&stage.call("each", "pid", json!({})).await.unwrap());
    let second = text(&stage.call("each", "pid", json!({})).await.unwrap());
    assert_ne!(first, second);
    eventually!(SOON, stage.processes() == 0);
    eventually!(SOON, stage.status("each").await.instances.is_empty());
    assert_eq!(fake.starts(), 2);
    stage.end().await;
}

/// P-02: up to `max` instances of a key, and no more, when all are in full use.
#[tokio::test(flavor = "multi_thread")]
async fn p02_a_crowd_starts_up_to_max_instances() {
    let mut stage = Stage::new(|settings| settings.pool.in_flight = 1).await;
    let fake = stage.fake("many", "");
    let mut def = stage.def(&fake);
    def.max = 2;
    stage.serve(vec![def]).await;
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let upstreams = stage.upstreams.clone();
            let want = want("many", "sleep", json!({"ms": 150}));
            tokio::spawn(async move { upstreams.call_unattended(want).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(fake.starts(), 2);
    assert_eq!(stage.status("many").await.instances.len(), 2);
    stage.end().await;
}

/// P-14: stop, start and restart by an operator.
#[tokio::test(flavor = "multi_thread")]
async fn p14_operators_stop_start_and_restart() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("op", "");
    stage.serve(vec![stage.def(&fake)]).await;
    stage.call("op", "echo", json!({"text": "x"})).await.unwrap();
    stage.upstreams.stop_server("op").await.unwrap();
    assert_eq!(stage.processes(), 0);
    assert_eq!(stage.status("op").await.state, "stopped");
    let refused = stage.call("op", "echo", json!({"text": "x"})).await.unwrap_err();
    assert!(refused.text.contains("mcpx start op"), "{}", refused.text);

    stage.upstreams.start_server("op").await.unwrap();
    eventually!(SOON, stage.status("op").await.state == "ready");
    assert_eq!(fake.starts(), 2);
    stage.upstreams.restart_server("op").await.unwrap();
    eventually!(SOON, fake.starts() == 3);
    eventually!(SOON, stage.status("op").await.state == "ready");
    let unknown = stage.upstreams.restart_server("nobody").await.unwrap_err();
    assert!(unknown.text.contains("nobody"), "{}", unknown.text);
    stage.end().await;
}

/// P-17: a second process of a legacy server is opened by `initialize` at once, because the first
/// one's era is remembered, also by the next daemon.
#[tokio::test(flavor = "multi_thread")]
async fn p17_instances_share_one_probe() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("era", "--probe -32601");
    let mut def = stage.def(&fake);
    def.scope = Scope::Session;
    stage.serve(vec![def.clone()]).await;
    for number in 1..=3 {
        let mut want = want("era", "echo", json!({"text": "x"}));
        want.caller = host(number, "/");
        stage.upstreams.call_unattended(want).await.unwrap();
    }
    assert_eq!(fake.transcript().with_method("server/discover").len(), 1);
    assert_eq!(fake.transcript().with_method("initialize").len(), 3);
    stage.eras.flush(SOON).await;
    let file = std::fs::read_to_string(stage.folder.path().join("eras.json")).unwrap();
    assert!(file.contains("\"legacy\""), "{file}");
    let protocol = stage.upstreams.protocol().await;
    assert_eq!(protocol[0].cached.as_ref().unwrap().era, "legacy");
    stage.end().await;
}
