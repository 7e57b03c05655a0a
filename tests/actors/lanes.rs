//! `protocol = "follow"`: callers of legacy revisions have a session of their own (U-18, U-19, P-02 to
//! P-06, P-18).

use std::time::Duration;

use mcpx::actors::upstreams::Caller;
use mcpx::protocol::revision::Era;
use mcpx::protocol::session::Answer;
use mcpx::protocol::session::probe::Preference;
use mcpx::protocol::session::upstream::ListKind;
use mcpx::settings::{Scope, ServerDef};
use serde_json::json;

use crate::eventually;
use crate::stage::{Stage, host, nobody, text, want};
use crate::support::fake::Fake;

const SOON: Duration = Duration::from_secs(5);

fn legacy(caller: Caller) -> Caller {
    Caller { era: Era::Legacy, ..caller }
}

async fn pid(stage: &Stage, server: &str, caller: Caller) -> String {
    let mut want = want(server, "pid", json!({}));
    want.caller = caller;
    text(&stage.upstreams.call_unattended(want).await.unwrap())
}

/// A stage with one fake, which follows.
async fn following(args: &str, change: impl FnOnce(&mut ServerDef)) -> (Stage, Fake) {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("up", args);
    let mut def = stage.def(&fake);
    def.protocol = Some(Preference::Follow);
    change(&mut def);
    stage.serve(vec![def]).await;
    (stage, fake)
}

/// The lanes of the instances, in the order in which they were started.
async fn lanes(stage: &Stage) -> Vec<(&'static str, String)> {
    let instances = stage.status("up").await.instances;
    instances.into_iter().map(|it| (it.lane, it.revision.unwrap_or_default())).collect()
}

async fn legacy_lane(stage: &Stage) -> String {
    let all = stage.upstreams.protocol().await;
    all.into_iter().find_map(|status| status.legacy_lane).unwrap()
}

/// U-18, U-19, P-02: a server of both eras is spoken to in each caller's era, one instance a lane, and
/// the era cache hears of its own session alone.
#[tokio::test(flavor = "multi_thread")]
async fn u18_each_era_has_a_session_of_its_own() {
    let (stage, fake) = following("--era dual", |_| {}).await;
    let modern = pid(&stage, "up", nobody()).await;
    let old = pid(&stage, "up", legacy(nobody())).await;
    assert_ne!(modern, old);
    for _ in 0..2 {
        assert_eq!(pid(&stage, "up", legacy(host(7, "/"))).await, old);
        assert_eq!(pid(&stage, "up", host(7, "/")).await, modern);
    }
    assert_eq!(
        lanes(&stage).await,
        [("shared", "2026-07-28".to_owned()), ("legacy", "2025-11-25".to_owned())]
    );
    assert_eq!(legacy_lane(&stage).await, "2025-11-25");
    let status = stage.upstreams.protocol().await.remove(0);
    assert_eq!((status.preference, status.era.as_deref()), ("follow", Some("modern")));
    assert_eq!(status.cached.unwrap().era, "modern");
    let transcript = fake.transcript();
    let first = |pid: &str| {
        let pid: u64 = pid.parse().unwrap();
        let mut sent = transcript.entries.iter().filter(|it| it.from_mcpx && it.pid == pid);
        sent.next().unwrap().json()["method"].clone()
    };
    assert_eq!((first(&modern), first(&old)), (json!("server/discover"), json!("initialize")));
    transcript.check_frames();
    stage.end().await;
}

/// P-18: lists are read in the server's own session, whoever asks, and open no second one; the second
/// one reads none.
#[tokio::test(flavor = "multi_thread")]
async fn p18_lists_open_no_legacy_lane() {
    let (stage, fake) = following("--era dual", |_| {}).await;
    stage.upstreams.list_now(&legacy(nobody()), "up", ListKind::Tools).await.unwrap();
    assert_eq!(lanes(&stage).await, [("shared", "2026-07-28".to_owned())]);
    assert_eq!(legacy_lane(&stage).await, "idle");
    pid(&stage, "up", legacy(nobody())).await;
    assert_eq!(fake.starts(), 2);
    assert_eq!(fake.transcript().with_method("tools/list").len(), 1);
    stage.end().await;
}

/// P-04: a server that turned out legacy serves all callers in one process, also where a legacy caller
/// comes while that is not known yet, and where only the era cache knows it.
#[tokio::test(flavor = "multi_thread")]
async fn p04_a_legacy_server_runs_once() {
    let (mut stage, fake) = following("--era legacy --start-delay 200", |_| {}).await;
    let (upstreams, mut wanted) = (stage.upstreams.clone(), want("up", "pid", json!({})));
    wanted.caller = nobody();
    let modern = tokio::spawn(async move { upstreams.call_unattended(wanted).await });
    eventually!(SOON, !stage.status("up").await.instances.is_empty());
    let old = pid(&stage, "up", legacy(nobody())).await;
    assert_eq!(old, text(&modern.await.unwrap().unwrap()));
    assert_eq!(fake.starts(), 1);
    assert_eq!(legacy_lane(&stage).await, "shared");

    // A new pool for the same process: what differs is no part of the era cache's key.
    let mut def = stage.def(&fake);
    def.protocol = Some(Preference::Follow);
    def.max = 2;
    stage.serve(vec![def]).await;
    pid(&stage, "up", legacy(nobody())).await;
    let shown = stage.status("up").await.instances;
    assert!(shown.iter().all(|instance| instance.lane == "shared"), "{shown:?}");
    assert_eq!(pid(&stage, "up", nobody()).await, pid(&stage, "up", legacy(nobody())).await);
    assert_eq!(fake.starts(), 2);
    stage.end().await;
}

/// P-05: a modern-only server refuses `initialize` once; after that its one session serves all, and
/// nothing counts against it. An operator's word has it tried again.
#[tokio::test(flavor = "multi_thread")]
async fn p05_a_modern_server_is_asked_once() {
    for (order, refusal) in [("modern first", ""), ("legacy first", "--refuse -32601")] {
        let (stage, fake) = following(&format!("--era modern {refusal}"), |_| {}).await;
        if order == "modern first" {
            pid(&stage, "up", nobody()).await;
        }
        let old = pid(&stage, "up", legacy(nobody())).await;
        for _ in 0..3 {
            assert_eq!(pid(&stage, "up", legacy(nobody())).await, old, "{order}");
        }
        assert_eq!(pid(&stage, "up", nobody()).await, old, "{order}");
        assert_eq!(fake.starts(), 2, "{order}");
        assert_eq!(legacy_lane(&stage).await, "refused", "{order}");
        let status = stage.status("up").await;
        assert_eq!((status.state, status.failures, status.restarts), ("ready", 0, 0), "{order}");
        assert_eq!(stage.kinds().iter().filter(|kind| **kind == "server.warning").count(), 1);
        stage.upstreams.restart_server("up").await.unwrap();
        pid(&stage, "up", legacy(nobody())).await;
        assert_eq!(fake.transcript().with_method("initialize").len(), 2, "{order}");
        stage.end().await;
    }
}

/// P-05: a server that fails in both lanes has refused nothing: it rests as any other, and the second
/// session is tried again once it is back.
#[tokio::test(flavor = "multi_thread")]
async fn p05_a_server_that_is_down_refuses_nothing() {
    let (stage, fake) = following("--era dual --exit-first 3 --exit 1", |_| {}).await;
    let mut wanted = want("up", "pid", json!({}));
    wanted.caller = legacy(nobody());
    let failed = stage.upstreams.call_unattended(wanted).await.unwrap_err();
    assert!(failed.text.contains("could not be started"), "{}", failed.text);
    // The shared lane is started twice, since its server may have ended on the probe (F25).
    assert_eq!(fake.starts(), 3);
    assert_eq!(stage.status("up").await.failures, 1);
    pid(&stage, "up", nobody()).await;
    pid(&stage, "up", legacy(nobody())).await;
    assert_eq!(legacy_lane(&stage).await, "2025-11-25");
    stage.end().await;
}

/// P-02, P-03: calls that hang in the legacy lane, up to its last permit and place, hold up no modern
/// caller; each lane has its own `max`.
#[tokio::test(flavor = "multi_thread")]
async fn p03_stuck_legacy_calls_hold_up_nobody() {
    let mut stage = Stage::new(|settings| {
        settings.pool.in_flight = 1;
        settings.pool.queue = 1;
    })
    .await;
    let fake = stage.fake("up", "--era dual");
    let mut def = stage.def(&fake);
    def.protocol = Some(Preference::Follow);
    def.max = 2;
    stage.serve(vec![def]).await;
    let hang = || {
        let (upstreams, mut want) = (stage.upstreams.clone(), want("up", "hang", json!({})));
        want.caller = legacy(nobody());
        tokio::spawn(async move { upstreams.call_unattended(want).await })
    };
    let mut stuck = Vec::new();
    for instances in 1..=2 {
        stuck.push(hang());
        eventually!(SOON, {
            let all = stage.status("up").await.instances;
            let busy = all.iter().filter(|it| it.lane == "legacy" && it.in_flight == 1);
            busy.count() == instances
        });
    }
    stuck.push(hang());
    eventually!(SOON, stage.status("up").await.waiting == 1);
    let mut refused = want("up", "pid", json!({}));
    refused.caller = legacy(nobody());
    let refused = stage.upstreams.call_unattended(refused).await.unwrap_err();
    assert!(refused.text.contains("pool.queue"), "{}", refused.text);
    for _ in 0..3 {
        pid(&stage, "up", nobody()).await;
    }
    let shown = stage.status("up").await.instances;
    assert_eq!(shown.iter().filter(|it| it.lane == "legacy").count(), 2, "{shown:?}");
    for call in stuck {
        call.abort();
    }
    eventually!(SOON, stage.status("up").await.instances.iter().all(|it| it.in_flight == 0));
    stage.end().await;
}

/// What dies in the legacy lane comes back there and concerns nobody else; it has been open, so its
/// failures are like any other's.
#[tokio::test(flavor = "multi_thread")]
async fn p03_the_lanes_fail_apart() {
    let (stage, fake) = following("--era dual", |_| {}).await;
    let modern = pid(&stage, "up", nobody()).await;
    let mut die = want("up", "die", json!({}));
    die.caller = legacy(nobody());
    let died = stage.upstreams.call_unattended(die).await.unwrap();
    assert!(matches!(died, Answer::Lost { .. }), "{died:?}");
    let again = pid(&stage, "up", legacy(nobody())).await;
    assert_ne!(again, modern);
    assert_eq!(pid(&stage, "up", nobody()).await, modern);
    assert_eq!(fake.starts(), 3);
    stage.end().await;
}

/// P-01 in both lanes: the scope key is the caller's, the lane a second axis under it.
#[tokio::test(flavor = "multi_thread")]
async fn p02_the_lane_is_a_second_axis() {
    let (stage, _fake) = following("--era dual", |def| def.scope = Scope::Project).await;
    let callers = [host(1, "/"), legacy(host(1, "/")), host(2, "/tmp"), legacy(host(2, "/tmp"))];
    let mut pids = Vec::new();
    for caller in &callers {
        pids.push(pid(&stage, "up", caller.clone()).await);
    }
    let mut distinct = pids.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 4);
    assert_eq!(pid(&stage, "up", legacy(host(9, "/tmp"))).await, pids[3]);
    stage.end().await;
}

/// P-06: who does not follow has one session, whoever calls.
#[tokio::test(flavor = "multi_thread")]
async fn p06_nobody_follows_unasked() {
    let (stage, fake) = following("--era dual", |def| def.protocol = None).await;
    let modern = pid(&stage, "up", nobody()).await;
    assert_eq!(pid(&stage, "up", legacy(nobody())).await, modern);
    assert_eq!(fake.starts(), 1);
    assert!(stage.upstreams.protocol().await.iter().all(|it| it.legacy_lane.is_none()));
    stage.end().await;
}
