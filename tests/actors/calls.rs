//! One call from end to end: outcomes, resends, cancellation, queues.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpx::actors::upstreams::Reason;
use mcpx::protocol::session::Answer;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::eventually;
use crate::stage::{Stage, text, want};
use crate::support::procs;

const SOON: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn one_call_in_each_era() {
    let mut stage = Stage::new(|_| {}).await;
    let eras = ["legacy", "modern", "dual"];
    let fakes: Vec<_> = eras.iter().map(|era| stage.fake(era, &format!("--era {era}"))).collect();
    stage.serve(fakes.iter().map(|fake| stage.def(fake)).collect()).await;
    for (era, fake) in eras.iter().zip(&fakes) {
        let answer = stage.call(era, "echo", json!({"text": "hello"})).await.unwrap();
        assert_eq!(text(&answer), "hello");
        assert_eq!(fake.starts(), 1);
    }
    let protocol = stage.upstreams.protocol().await;
    let spoken: Vec<_> = protocol.iter().map(|server| server.era.as_deref()).collect();
    assert_eq!(spoken, [Some("modern"), Some("legacy"), Some("modern")]);
    for fake in &fakes {
        assert!(fake.transcript().check_frames() > 2);
    }
    stage.end().await;
}

/// F23: a call that was written and lost is not repeated, unless it is marked repeatable, and then
/// once; the upstream's ledger shows what was done.
#[tokio::test(flavor = "multi_thread")]
async fn f23_a_written_call_is_repeated_only_where_it_may_be() {
    let mut stage = Stage::new(|settings| settings.pool.park_after = 100).await;
    let fake = stage.fake("led", "");
    stage.serve(vec![stage.def(&fake)]).await;

    let answer = stage.call("led", "ledger_die", json!({"text": "once"})).await.unwrap();
    assert!(matches!(answer, Answer::Lost { written: true, .. }), "{answer:?}");
    assert_eq!(fake.ledger("effect").len(), 1);

    let mut hinted = want("led", "ledger_die_ro", json!({"text": "x"}));
    hinted.repeatable = true;
    let answer = stage.upstreams.call_unattended(hinted).await.unwrap();
    assert_eq!(text(&answer), "done at last");
    assert_eq!(fake.ledger("effect ledger_die_ro").len(), 2);

    // Once, not as often as it takes.
    let mut hinted = want("led", "ledger_die_idem", json!({"text": "x", "times": 9}));
    hinted.repeatable = true;
    let answer = stage.upstreams.call_unattended(hinted).await.unwrap();
    assert!(matches!(answer, Answer::Lost { written: true, .. }), "{answer:?}");
    assert_eq!(fake.ledger("effect ledger_die_idem").len(), 2);
    stage.end().await;
}

/// F23: calls that were waiting in a dead instance, unwritten, go to the next one.
#[tokio::test(flavor = "multi_thread")]
async fn f23_an_unwritten_call_is_sent_again() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("stuck", "");
    stage.serve(vec![stage.def(&fake)]).await;
    let pid = text(&stage.call("stuck", "pid", json!({})).await.unwrap());
    let call = |tool: &'static str, args: Value| {
        let upstreams = stage.upstreams.clone();
        tokio::spawn(async move { upstreams.call_unattended(want("stuck", tool, args)).await })
    };
    // It stops itself; the pipe fills with one large call, and what comes behind waits unwritten.
    let stopped = call("stop_self", json!({}));
    let pid: u32 = pid.parse().unwrap();
    eventually!(SOON, procs::one(pid).is_some_and(|process| process.state == 'T'));
    let begun = call("echo", json!({"text": "x".repeat(1_000_000)}));
    eventually!(SOON, stage.status("stuck").await.instances[0].in_flight == 2);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let waiting: Vec<_> = (0..8).map(|_| call("echo", json!({"text": "x"}))).collect();
    eventually!(SOON, stage.status("stuck").await.instances[0].in_flight == 10);
    procs::signal(pid, Signal::SIGKILL);
    for lost in [stopped, begun] {
        let answer = lost.await.unwrap().unwrap();
        assert!(matches!(answer, Answer::Lost { written: true, .. }), "{answer:?}");
    }
    for answer in waiting {
        assert_eq!(text(&answer.await.unwrap().unwrap()), "x");
    }
    assert_eq!(fake.starts(), 2);
    stage.end().await;
}

/// F36: the one that gives up is cancelled upstream at once, by its own id, and nobody else is.
#[tokio::test(flavor = "multi_thread")]
async fn f36_dropping_a_call_cancels_it_and_no_other() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("slow", "");
    stage.serve(vec![stage.def(&fake)]).await;
    stage.call("slow", "echo", json!({"text": "warm"})).await.unwrap();

    let upstreams = stage.upstreams.clone();
    let hanging =
        tokio::spawn(
            async move { upstreams.call_unattended(want("slow", "hang", json!({}))).await },
        );
    eventually!(SOON, stage.status("slow").await.instances[0].in_flight == 1);
    let other = stage.call("slow", "echo", json!({"text": "b"})).await.unwrap();
    assert_eq!(text(&other), "b");
    let given_up = Instant::now();
    hanging.abort();
    eventually!(SOON, fake.transcript().with_method("notifications/cancelled").len() == 1);
    assert!(given_up.elapsed() < Duration::from_secs(1));
    let transcript = fake.transcript();
    let hang = transcript
        .with_method("tools/call")
        .into_iter()
        .find(|call| call["params"]["name"] == "hang")
        .unwrap();
    let cancelled = &transcript.with_method("notifications/cancelled")[0];
    assert_eq!(cancelled["params"]["requestId"], hang["id"]);
    eventually!(SOON, stage.status("slow").await.instances[0].in_flight == 0);
    stage.end().await;
}

/// A full queue refuses at once and says which limit, its value and what to do.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_by_name() {
    let mut stage = Stage::new(|settings| {
        settings.pool.in_flight = 1;
        settings.pool.queue = 1;
        settings.pool.queue_timeout = Duration::from_millis(300);
    })
    .await;
    let fake = stage.fake("one", "");
    stage.serve(vec![stage.def(&fake)]).await;
    stage.call("one", "echo", json!({"text": "warm"})).await.unwrap();
    let upstreams = Arc::new(stage.upstreams.clone());
    let call = |tool: &'static str| {
        let upstreams = Arc::clone(&upstreams);
        tokio::spawn(async move { upstreams.call_unattended(want("one", tool, json!({}))).await })
    };
    let hanging = call("hang");
    eventually!(SOON, stage.status("one").await.instances[0].in_flight == 1);
    let waiting = call("echo");
    eventually!(SOON, stage.status("one").await.waiting == 1);

    let refused = stage.call("one", "echo", json!({})).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Busy);
    assert!(refused.text.contains("pool.queue"), "{}", refused.text);
    let limit = refused.limit.unwrap();
    assert_eq!((limit.setting, limit.value.as_str()), ("pool.queue", "1"));

    let refused = waiting.await.unwrap().unwrap_err();
    assert_eq!(refused.reason, Reason::Timeout);
    assert_eq!(refused.limit.unwrap().setting, "pool.queue_timeout");
    assert!(refused.text.contains("pool.in_flight"), "{}", refused.text);
    hanging.abort();
    stage.end().await;
}

/// In-flight calls of a killed process fail at once.
#[tokio::test(flavor = "multi_thread")]
async fn p12_calls_of_a_killed_process_fail_at_once() {
    let mut stage = Stage::new(|_| {}).await;
    let fake = stage.fake("killed", "");
    stage.serve(vec![stage.def(&fake)]).await;
    stage.call("killed", "echo", json!({"text": "warm"})).await.unwrap();
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let upstreams = stage.upstreams.clone();
            tokio::spawn(async move {
                upstreams.call_unattended(want("killed", "hang", json!({}))).await
            })
        })
        .collect();
    eventually!(SOON, stage.status("killed").await.instances[0].in_flight == 50);
    eventually!(SOON, fake.transcript().with_method("tools/call").len() == 51);
    let pid = stage.status("killed").await.instances[0].pid.unwrap();
    let killed = Instant::now();
    procs::signal(pid, Signal::SIGKILL);
    for call in calls {
        let answer = call.await.unwrap().unwrap();
        assert!(matches!(answer, Answer::Lost { written: true, .. }), "{answer:?}");
    }
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    let answer = stage.call("killed", "echo", json!({"text": "again"})).await.unwrap();
    assert_eq!(text(&answer), "again");
    assert_eq!(fake.starts(), 2);
    stage.end().await;
}
