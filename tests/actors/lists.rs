//! How long a list is waited for, and when it is read again; under a paused clock.

use std::sync::Arc;
use std::time::Duration;

use mcpx::actors::catalog::Listing;
use mcpx::actors::upstreams::Reason;
use mcpx::protocol::session::upstream::ListKind;
use mcpx::settings::Scope;
use serde_json::json;
use tokio::time::Instant;

use crate::memory::{ListScript, Memory, Script};
use crate::stage::{Stage, bare, nobody};

const SECOND: Duration = Duration::from_secs(1);

async fn stage(memory: &Arc<Memory>, scope: Scope) -> Stage {
    let mut stage = Stage::with(Arc::clone(memory) as Arc<_>, |settings| {
        settings.expose.list_wait = SECOND * 2;
        settings.upstream.handshake = SECOND * 90;
        settings.pool.queue_timeout = SECOND * 120;
        settings.process.spawn = SECOND * 100;
    })
    .await;
    let mut def = bare("mem");
    def.scope = scope;
    stage.serve(vec![def]).await;
    stage
}

/// F48: a server that takes its time is asked for its list and left to it.
#[tokio::test(start_paused = true)]
async fn f48_a_slow_list_is_waited_for_a_moment_only() {
    for scope in [Scope::Global, Scope::Call] {
        let memory = Memory::new(Script { opens_after: SECOND * 20, ..Script::default() });
        let stage = stage(&memory, scope).await;
        for _ in 0..2 {
            let begun = Instant::now();
            assert!(!stage.upstreams.list_soon(&nobody(), "mem", ListKind::Tools).await.unwrap());
            assert!(begun.elapsed() < SECOND * 3, "{:?}", begun.elapsed());
        }
        let status = stage.upstreams.status_of("mem").await.unwrap();
        assert_eq!((status.state, status.instances[0].uptime_ms / 1000), ("starting", 4));
        tokio::time::sleep(SECOND * 30).await;
        assert_eq!(
            stage.catalog.listing("mem", ListKind::Tools),
            Some(Listing::Whole),
            "{scope:?}"
        );
        stage.end().await;
    }
}

/// F28: the failure of the start that was waited for is the answer, after one start.
#[tokio::test(start_paused = true)]
async fn f28_a_failed_start_is_the_answer_of_who_waited() {
    let memory = Memory::new(Script { mute: true, ..Script::default() });
    let stage = stage(&memory, Scope::Global).await;
    let begun = Instant::now();
    let refused = stage.upstreams.list_now(&nobody(), "mem", ListKind::Tools).await.unwrap_err();
    assert!(refused.text.contains("upstream.handshake_timeout"), "{}", refused.text);
    assert!(begun.elapsed() < SECOND * 91, "{:?}", begun.elapsed());
    assert_eq!((memory.starts().len(), stage.status("mem").await.failures), (1, 1));
    stage.end().await;
}

/// P-12: an instance that dies over its list is heard of at once.
#[tokio::test(start_paused = true)]
async fn p12_who_waits_for_a_list_hears_of_a_death() {
    let list = ListScript::Deadly(SECOND);
    let memory = Memory::new(Script { list, ..Script::default() });
    let stage = stage(&memory, Scope::Global).await;
    let begun = Instant::now();
    let refused = stage.upstreams.list_now(&nobody(), "mem", ListKind::Tools).await.unwrap_err();
    assert!(begun.elapsed() < SECOND * 2, "{:?}", begun.elapsed());
    assert_eq!(refused.reason, Reason::Unavailable);
    assert!(refused.text.contains("gone before its tools were listed"), "{}", refused.text);
    assert_eq!(stage.catalog.listing("mem", ListKind::Tools), Some(Listing::Never));
    stage.end().await;
}

/// F39: a list that could not be read is read again for whoever misses a tool, but not all the time.
#[tokio::test(start_paused = true)]
async fn f39_a_list_that_is_not_whole_is_read_again() {
    let list = ListScript::RefusedFirst;
    let memory = Memory::new(Script { list, ..Script::default() });
    let stage = stage(&memory, Scope::Global).await;
    stage.upstreams.list_now(&nobody(), "mem", ListKind::Tools).await.unwrap();
    let incomplete =
        || matches!(stage.catalog.listing("mem", ListKind::Tools), Some(Listing::Incomplete(_)));
    assert!(incomplete());
    stage.upstreams.list_again(&nobody(), "mem", ListKind::Tools).await.unwrap();
    assert!(incomplete(), "read again at once");
    tokio::time::sleep(stage.settings.upstream.relist_interval).await;
    let all = [(); 3].map(|()| stage.upstreams.clone());
    let [one, two, three] = &all;
    let caller = nobody();
    let (one, two, three) = tokio::join!(
        one.list_again(&caller, "mem", ListKind::Tools),
        two.list_again(&caller, "mem", ListKind::Tools),
        three.list_again(&caller, "mem", ListKind::Tools),
    );
    one.and(two).and(three).unwrap();
    assert_eq!(stage.catalog.listing("mem", ListKind::Tools), Some(Listing::Whole));
    assert_eq!(memory.starts().len(), 1);
    stage.end().await;
}

/// A call that comes while the daemon stops is told that, and not of a replacement.
#[tokio::test(start_paused = true)]
async fn calls_hear_that_the_daemon_stops() {
    let memory = Memory::new(Script { opens_after: SECOND * 20, ..Script::default() });
    let stage = stage(&memory, Scope::Global).await;
    let upstreams = stage.upstreams.clone();
    let early = tokio::spawn(async move {
        upstreams.call_unattended(crate::stage::want("mem", "echo", json!({}))).await
    });
    tokio::time::sleep(SECOND).await;
    let upstreams = stage.upstreams.clone();
    stage.end().await;
    let late = upstreams.call_unattended(crate::stage::want("mem", "echo", json!({}))).await;
    for refused in [early.await.unwrap(), late] {
        let refused = refused.unwrap_err();
        assert!(refused.text.contains("daemon is stopping"), "{}", refused.text);
    }
}
