//! Whose faults are whose: what one project or session does to its instance is nobody else's affair.

use std::sync::Arc;
use std::time::Duration;

use mcpx::actors::upstreams::{Caller, Reason, Refused};
use mcpx::protocol::session::Answer;
use mcpx::settings::{Scope, Settings};
use serde_json::json;

use crate::memory::{Memory, Script};
use crate::stage::{Stage, bare, host, text, want};

const SECOND: Duration = Duration::from_secs(1);

async fn stage(memory: &Arc<Memory>, scope: Scope, change: impl FnOnce(&mut Settings)) -> Stage {
    let mut stage = Stage::with(Arc::clone(memory) as Arc<_>, |settings| {
        settings.pool.backoff_step = SECOND * 2;
        settings.pool.backoff_max = SECOND * 30;
        change(settings);
    })
    .await;
    let mut def = bare("mem");
    def.scope = scope;
    stage.serve(vec![def]).await;
    stage
}

async fn call(stage: &Stage, caller: Caller) -> Result<Answer, Refused> {
    let mut want = want("mem", "echo", json!({}));
    want.caller = caller;
    stage.upstreams.call_unattended(want).await
}

/// P-14: a project whose instance cannot live is parked, and no other project notices; status names
/// it; a restart is the way out.
#[tokio::test(start_paused = true)]
async fn p14_a_projects_fault_is_its_own() {
    let memory = Memory::new(Script::default());
    memory.follow_in("/bad", Script { exits: true, ..Script::default() });
    let stage = stage(&memory, Scope::Project, |_| {}).await;
    let refused = call(&stage, host(1, "/bad")).await.unwrap_err();
    assert!(refused.text.contains("exited with status 1"), "{}", refused.text);
    assert_eq!(text(&call(&stage, host(2, "/good")).await.unwrap()), "called");
    tokio::time::sleep(SECOND * 300).await;
    let status = stage.status("mem").await;
    assert_eq!((status.state, status.failures), ("parked", 6), "{status:?}");
    let reason = status.reason.unwrap();
    assert!(reason.starts_with("for project /bad: "), "{reason}");

    let begun = memory.starts().len();
    assert_eq!(text(&call(&stage, host(3, "/third")).await.unwrap()), "called");
    assert_eq!(text(&call(&stage, host(2, "/good")).await.unwrap()), "called");
    assert_eq!(memory.starts().len(), begun + 1, "the good one was started again");
    // The one try of a rest, then nothing within it.
    call(&stage, host(1, "/bad")).await.unwrap_err();
    let refused = call(&stage, host(1, "/bad")).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Unavailable);
    assert!(refused.text.contains("is parked for project /bad after"), "{}", refused.text);

    memory.follow_in("/bad", Script::default());
    stage.upstreams.restart_server("mem").await.unwrap();
    assert_eq!(text(&call(&stage, host(1, "/bad")).await.unwrap()), "called");
    let status = stage.status("mem").await;
    assert_eq!((status.state, status.failures, status.reason), ("ready", 0, None));
    stage.end().await;
}

/// P-14: what kills every session's instance at once is one death for each, and none of them waits.
#[tokio::test(start_paused = true)]
async fn p14_one_incident_is_one_failure_for_each() {
    let memory = Memory::new(Script::default());
    let stage = stage(&memory, Scope::Session, |_| {}).await;
    for number in 1..=8 {
        call(&stage, host(number, "/")).await.unwrap();
    }
    memory.kill_all();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(stage.status("mem").await.failures, 1);
    let begun = tokio::time::Instant::now();
    for number in 1..=8 {
        assert_eq!(text(&call(&stage, host(number, "/")).await.unwrap()), "called");
    }
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    // A session that is over has no failures.
    for number in 1..=8 {
        stage.upstreams.session_ended(mcpx::actors::upstreams::HostId(number));
    }
    tokio::time::sleep(SECOND).await;
    assert_eq!(stage.status("mem").await.failures, 0);
    stage.end().await;
}

/// F29: who comes while the one try of a rest is under way waits for how it ends.
#[tokio::test(start_paused = true)]
async fn f29_callers_wait_for_the_one_try() {
    let memory = Memory::new(Script { exits: true, ..Script::default() });
    let stage = stage(&memory, Scope::Call, |settings| settings.pool.park_after = 1).await;
    call(&stage, host(1, "/")).await.unwrap_err();
    assert_eq!(stage.status("mem").await.state, "parked");
    memory.follow(Script { opens_after: SECOND * 5, ..Script::default() });
    let calls: Vec<_> = (1..=3)
        .map(|number| {
            let upstreams = stage.upstreams.clone();
            let mut want = want("mem", "echo", json!({}));
            want.caller = host(number, "/");
            tokio::spawn(async move {
                tokio::time::sleep(SECOND * u32::try_from(number).unwrap()).await;
                upstreams.call_unattended(want).await
            })
        })
        .collect();
    for call in calls {
        assert_eq!(text(&call.await.unwrap().unwrap()), "called");
    }

    // Its failure is the answer of all of them.
    memory.follow(Script { exits: true, ..Script::default() });
    call(&stage, host(1, "/")).await.unwrap_err();
    tokio::time::sleep(SECOND * 60).await;
    memory.follow(Script { mute: true, ..Script::default() });
    let begun = (tokio::time::Instant::now(), memory.starts().len());
    let one = |number| call(&stage, host(number, "/"));
    let (first, second, third) = tokio::join!(one(1), one(2), one(3));
    for refused in [first, second, third] {
        let refused = refused.unwrap_err();
        assert!(refused.text.contains("upstream.handshake_timeout"), "{}", refused.text);
    }
    assert_eq!(memory.starts().len(), begun.1 + 1);
    assert!(begun.0.elapsed() < SECOND * 15, "{:?}", begun.0.elapsed());
    stage.end().await;
}

/// F28: a program that is missing is missing for everybody.
#[tokio::test(start_paused = true)]
async fn f28_a_missing_program_is_everybodys_fault() {
    let memory = Memory::new(Script { missing: true, ..Script::default() });
    let stage = stage(&memory, Scope::Project, |_| {}).await;
    for project in ["/a", "/b", "/c"] {
        let refused = call(&stage, host(1, project)).await.unwrap_err();
        assert!(refused.text.contains("is parked: no program"), "{}", refused.text);
    }
    assert_eq!(memory.starts().len(), 1);
    let status = stage.status("mem").await;
    assert_eq!((status.state, status.permanent), ("parked", true));
    assert!(!status.reason.unwrap().contains("project"));
    memory.follow(Script::default());
    tokio::time::sleep(SECOND * 2).await;
    call(&stage, host(1, "/b")).await.unwrap();
    call(&stage, host(1, "/c")).await.unwrap();
    assert_eq!(stage.status("mem").await.failures, 0);
    stage.end().await;
}
