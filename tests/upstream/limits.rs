//! Time limits: each names itself, its value and its setting when it fires; cancellation upstream.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::front;
use crate::setup::{call, failed, reason};
use crate::support::raw_host::text_of;

const SOON: Duration = Duration::from_secs(5);

crate::for_revisions! { all_real;
    /// `call.idle_timeout`: no answer and no progress; the upstream is told to cancel (U-31).
    async fn u31_call_idle(revision) {
        let args = match revision {
            "2026-07-28" => "--era modern".to_owned(),
            legacy => format!("--supports {legacy}"),
        };
        let (_daemon, fake, mut host) = front(&args, "call.idle_timeout = \"300ms\"").await;
        let began = Instant::now();
        let answer = host.call("up_hang", json!({})).await;
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        assert!(failed(&answer), "{answer}");
        assert_eq!(reason(&answer), "timeout", "{answer}");
        let text = text_of(&answer);
        assert!(text.contains("call.idle_timeout") && text.contains("300ms"), "{text}");
        crate::eventually!(SOON, fake.ledger("cancelled").len() == 1);
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
        fake.transcript().check_frames();
    }
}

/// Progress keeps a call alive past the idle limit, whether or not the host asked for it, but not
/// past the total one.
#[tokio::test]
async fn call_total_and_progress() {
    let more = "call.idle_timeout = \"300ms\"\ncall.total_timeout = \"900ms\"";
    let (_daemon, _, mut host) = front("", more).await;
    host.start_call_with_progress(70, "up_slow", json!({ "ms": 600, "steps": 6 }), "p").await;
    assert_eq!(text_of(&host.expect_response(70).await), "done in 6 steps");
    host.inbox.clear();
    host.start_call_with_progress(71, "up_slow", json!({ "ms": 5_000, "steps": 50 }), "q").await;
    let answer = host.expect_response(71).await;
    assert_eq!(reason(&answer), "timeout", "{answer}");
    assert!(text_of(&answer).contains("call.total_timeout"), "{answer}");
}

/// `upstream.list_timeout` names itself; the server stays reachable.
#[tokio::test]
async fn list_timeout_names_itself() {
    let more = "expose.mode = \"core\"\nupstream.list_timeout = \"300ms\"";
    let (_daemon, _, mut host) = front("--list-silent", more).await;
    let answer = call(&mut host, "up", "echo", json!({})).await;
    assert!(failed(&answer), "{answer}");
    assert!(text_of(&answer).contains("upstream.list_timeout"), "{answer}");
}

/// `process.spawn_timeout`: a process that says nothing at all.
#[tokio::test]
async fn spawn_timeout_names_itself() {
    let more = "expose.mode = \"core\"\nprocess.spawn_timeout = \"300ms\"";
    let (_daemon, _, mut host) = front("--never-read", more).await;
    let answer = call(&mut host, "up", "echo", json!({})).await;
    assert!(failed(&answer), "{answer}");
    assert!(text_of(&answer).contains("process.spawn_timeout"), "{answer}");
}

/// The queue of a server is bounded, and its refusal says so; a wait in it is limited.
#[tokio::test]
async fn the_queue_is_bounded() {
    let more = "pool.in_flight = 1\npool.queue = 2\npool.queue_timeout = \"700ms\"";
    let (_daemon, fake, mut host) = front("", more).await;
    host.list_tools().await;
    host.start_call(100, "up_hang", json!({})).await;
    crate::eventually!(SOON, fake.transcript().with_method("tools/call").len() == 1);
    for id in 101..=104 {
        host.start_call(id, "up_echo", json!({ "text": "x" })).await;
    }
    let mut busy = 0;
    let mut late = 0;
    for id in 101..=104 {
        let answer = host.expect_response(id).await;
        assert!(failed(&answer), "{answer}");
        match reason(&answer) {
            "busy" => {
                busy += 1;
                assert!(text_of(&answer).contains("pool.queue"), "{answer}");
            }
            "timeout" => {
                late += 1;
                assert!(text_of(&answer).contains("pool.queue_timeout"), "{answer}");
            }
            other => panic!("{other}: {answer}"),
        }
    }
    assert_eq!((busy, late), (2, 2));
    assert_eq!(fake.transcript().with_method("tools/call").len(), 1, "none of them was sent");
}

/// `host.max_in_flight`: one host's requests are bounded, and the refusal says so.
#[tokio::test]
async fn a_host_is_bounded() {
    let (_daemon, fake, mut host) = front("", "host.max_in_flight = 2").await;
    host.list_tools().await;
    for id in [100, 101, 102] {
        host.start_call(id, "up_hang", json!({})).await;
    }
    let refused = host.expect_response(102).await;
    assert!(refused.to_string().contains("host.max_in_flight"), "{refused}");
    crate::eventually!(SOON, fake.transcript().with_method("tools/call").len() == 2);
}

/// P-13: a server that is alive and silent is noticed when a call runs out of time, and replaced.
#[tokio::test]
async fn p13_a_wedged_server_is_noticed() {
    let more = "call.idle_timeout = \"400ms\"\nupstream.ping_timeout = \"300ms\"";
    let (_daemon, fake, mut host) = front("", more).await;
    host.call("up_echo", json!({ "text": "x" })).await;
    let answer = host.call("up_stop_self", json!({})).await;
    assert!(failed(&answer), "{answer}");
    crate::eventually!(SOON, {
        host.start_call(900, "up_echo", json!({ "text": "back" })).await;
        text_of(&host.expect_response(900).await) == "back"
    });
    assert!(fake.starts() >= 2, "{}", fake.starts());
}
