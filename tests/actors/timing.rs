//! What takes minutes, under a paused clock and with upstreams in memory.

use std::sync::Arc;
use std::time::Duration;

use mcpx::actors::upstreams::Reason;
use mcpx::settings::Settings;
use serde_json::json;

use crate::memory::{Memory, Script};
use crate::stage::{Stage, bare, text, want};

const SECOND: Duration = Duration::from_secs(1);

async fn stage(memory: &Arc<Memory>, change: impl FnOnce(&mut Settings)) -> Stage {
    let connect = Arc::clone(memory);
    let mut stage = Stage::with(connect, |settings| {
        // The real ones: the clock is free.
        settings.pool.backoff_step = SECOND * 2;
        settings.pool.backoff_max = SECOND * 30;
        change(settings);
    })
    .await;
    stage.serve(vec![bare("mem")]).await;
    stage
}

/// F29: handshakes well and dies after 2 s, for ever: rests grow, few starts a minute, then parked;
/// a call tries once more in each rest; the list stays.
#[tokio::test(start_paused = true)]
async fn f29_a_crash_loop_rests_longer_and_is_parked() {
    let memory = Memory::new(Script { dies_after: Some(SECOND * 2), ..Script::default() });
    let stage = stage(&memory, |_| {}).await;
    stage.call("mem", "echo", json!({})).await.unwrap();
    tokio::time::sleep(SECOND * 600).await;
    let starts = memory.starts();
    assert_eq!(starts.len(), 6, "{starts:?}");
    let gaps: Vec<_> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (number, gap) in (1..).zip(&gaps) {
        // A life of 2 s, and a rest of 2 s for each failure, less at most half a step.
        let rest = *gap - SECOND * 2;
        assert!(rest > SECOND * (2 * number - 1) && rest <= SECOND * 2 * number, "{gaps:?}");
    }
    let status = stage.status("mem").await;
    assert_eq!((status.state, status.failures), ("parked", 6), "{status:?}");
    assert_eq!(stage.catalog.snapshot().by_key("mem").unwrap().tools.len(), 1);

    // A user's call starts it once; the second one within the rest starts nothing.
    stage.call("mem", "echo", json!({})).await.unwrap();
    tokio::time::sleep(SECOND * 3).await;
    for _ in 0..5 {
        let refused = stage.call("mem", "echo", json!({})).await.unwrap_err();
        assert_eq!(refused.reason, Reason::Unavailable);
        assert!(refused.text.contains("mcpx restart mem"), "{}", refused.text);
    }
    assert_eq!(memory.starts().len(), 7);

    memory.follow(Script::default());
    stage.upstreams.restart_server("mem").await.unwrap();
    stage.call("mem", "echo", json!({})).await.unwrap();
    assert_eq!(stage.status("mem").await.state, "ready");
    stage.end().await;
}

/// F29: a sustained life clears what was before it.
#[tokio::test(start_paused = true)]
async fn f29_a_sustained_life_begins_anew() {
    let memory = Memory::new(Script { dies_after: Some(SECOND * 90), ..Script::default() });
    let stage = stage(&memory, |_| {}).await;
    stage.call("mem", "echo", json!({})).await.unwrap();
    tokio::time::sleep(SECOND * 1800).await;
    let status = stage.status("mem").await;
    assert_ne!(status.state, "parked");
    assert!(memory.starts().len() > 15, "{:?}", memory.starts());
    stage.end().await;
}

/// P-09: idle ones are stopped, started again on demand, and zero means never.
#[tokio::test(start_paused = true)]
async fn p09_idle_servers_stop() {
    let memory = Memory::new(Script::default());
    let mut stage = stage(&memory, |settings| settings.pool.idle = SECOND * 60).await;
    for _ in 0..3 {
        stage.call("mem", "echo", json!({})).await.unwrap();
        tokio::time::sleep(SECOND * 50).await;
    }
    assert_eq!(memory.starts().len(), 1, "use keeps it");
    tokio::time::sleep(SECOND * 61).await;
    assert_eq!(memory.alive(), 0);
    assert_eq!(stage.status("mem").await.state, "idle");
    stage.call("mem", "echo", json!({})).await.unwrap();
    assert_eq!(memory.starts().len(), 2);

    let mut never = bare("mem");
    never.idle_timeout = Some(Duration::ZERO);
    stage.serve(vec![never]).await;
    stage.call("mem", "echo", json!({})).await.unwrap();
    tokio::time::sleep(SECOND * 100_000).await;
    assert_eq!(memory.alive(), 1);
    stage.end().await;
}

/// P-13: alive but silent: noticed by a call's idle limit and the check after it, and replaced.
#[tokio::test(start_paused = true)]
async fn p13_a_wedged_server_is_replaced() {
    let memory = Memory::new(Script { wedges_after: Some(SECOND), ..Script::default() });
    let stage = stage(&memory, |settings| {
        settings.call.idle = SECOND * 20;
        settings.upstream.ping = SECOND * 5;
    })
    .await;
    stage.call("mem", "echo", json!({})).await.unwrap();
    tokio::time::sleep(SECOND * 2).await;
    memory.follow(Script::default());
    let answer = stage.call("mem", "echo", json!({})).await.unwrap();
    let told = format!("{answer:?}");
    assert!(told.contains("call.idle_timeout"), "{told}");
    tokio::time::sleep(SECOND * 30).await;
    assert_eq!(memory.starts().len(), 2);
    assert_eq!(text(&stage.call("mem", "echo", json!({})).await.unwrap()), "called");
    let crash = stage.events.listen(0).0;
    let crash = crash.iter().find(|event| event.kind == "server.crashed").unwrap();
    assert!(crash.text.contains("upstream.ping_timeout"), "{}", crash.text);
    stage.end().await;
}

/// F28: what is permanent is looked at again at most once for each rest.
#[tokio::test(start_paused = true)]
async fn f28_a_missing_program_is_found_when_it_comes() {
    let memory = Memory::new(Script { missing: true, ..Script::default() });
    let stage = stage(&memory, |_| {}).await;
    for _ in 0..10 {
        stage.call("mem", "echo", json!({})).await.unwrap_err();
    }
    tokio::time::sleep(SECOND * 1000).await;
    assert_eq!(memory.starts().len(), 1, "nothing is tried by itself");
    memory.follow(Script::default());
    stage.call("mem", "echo", json!({})).await.unwrap();
    stage.end().await;
}

/// Limits of a start name themselves.
#[tokio::test(start_paused = true)]
async fn limits_of_a_start_name_themselves() {
    let memory = Memory::new(Script { mute: true, ..Script::default() });
    let mut stage = stage(&memory, |settings| {
        settings.process.spawn = SECOND * 5;
        settings.upstream.handshake = SECOND * 9;
        settings.pool.queue_timeout = SECOND * 20;
        settings.pool.park_after = 100;
    })
    .await;
    let refused = stage.call("mem", "echo", json!({})).await.unwrap_err();
    assert!(refused.text.contains("process.spawn_timeout"), "{}", refused.text);

    stage.settings.process.spawn = SECOND * 50;
    stage.serve(vec![]).await;
    stage.serve(vec![bare("mem")]).await;
    let refused = stage.call("mem", "echo", json!({})).await.unwrap_err();
    assert!(refused.text.contains("upstream.handshake_timeout"), "{}", refused.text);

    stage.settings.pool.queue_timeout = SECOND * 3;
    stage.serve(vec![]).await;
    stage.serve(vec![bare("mem")]).await;
    let refused =
        stage.upstreams.call_unattended(want("mem", "echo", json!({}))).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Timeout);
    assert_eq!(refused.limit.unwrap().setting, "pool.queue_timeout");
    stage.end().await;
}
