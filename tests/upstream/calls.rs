//! Calls whose upstream dies (F23, U-56), and what is kept of results on the way.

use std::time::Duration;

use serde_json::json;

use crate::front;
use crate::setup::{failed, reason};
use crate::support::raw_host::text_of;

const SOON: Duration = Duration::from_secs(5);

/// F23: a side effect is not run twice; the caller is told that the outcome is unknown.
#[tokio::test]
async fn f23_a_plain_tool_runs_once() {
    for era in ["legacy", "modern"] {
        let (_daemon, fake, mut host) = front(&format!("--era {era}"), "").await;
        let answer = host.call("up_ledger_die", json!({ "text": "once" })).await;
        assert!(failed(&answer), "{answer}");
        assert_eq!(reason(&answer), "outcome_unknown");
        assert!(text_of(&answer).starts_with("outcome unknown: "), "{answer}");
        assert_eq!(fake.ledger("effect ledger_die ").len(), 1);
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "after" })).await), "after");
        assert_eq!(fake.ledger("effect ledger_die ").len(), 1, "{era}");
    }
}

/// F23, U-56: one that is marked read-only or idempotent may be sent once more.
#[tokio::test]
async fn f23_u56_hinted_tools_are_sent_again() {
    for tool in ["ledger_die_ro", "ledger_die_idem"] {
        let (_daemon, fake, mut host) = front("", "").await;
        let answer = host.call(&format!("up_{tool}"), json!({ "text": "x" })).await;
        assert_eq!(text_of(&answer), "done at last", "{answer}");
        assert_eq!(fake.ledger("effect ").len(), 2, "{tool}");
        // Once: not for ever.
        let (_daemon, fake, mut host) = front("", "").await;
        let answer = host.call(&format!("up_{tool}"), json!({ "times": 9 })).await;
        assert_eq!(reason(&answer), "outcome_unknown", "{answer}");
        assert_eq!(fake.ledger("effect ").len(), 2, "{tool}");
    }
}

/// F23, P-12: every call in flight is told at once, each whether it had been written.
#[tokio::test]
async fn f23_p12_all_calls_in_flight_are_told() {
    let (_daemon, fake, mut host) = front("", "").await;
    for id in 100..110 {
        host.start_call(id, "up_hang", json!({})).await;
    }
    crate::eventually!(SOON, fake.transcript().with_method("tools/call").len() == 10);
    host.start_call(110, "up_die", json!({})).await;
    let began = std::time::Instant::now();
    for id in 100..=110 {
        assert_eq!(reason(&host.expect_response(id).await), "outcome_unknown");
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// F23: a call that never left is made again: those that waited for their turn come through.
#[tokio::test]
async fn f23_waiting_calls_are_made_on_the_next_process() {
    let (_daemon, fake, mut host) = front("", "pool.in_flight = 1").await;
    host.call("up_echo", json!({ "text": "warm" })).await;
    host.start_call(100, "up_die", json!({ "ms": 200 })).await;
    crate::eventually!(SOON, !fake.ledger("effect die").is_empty());
    for id in 101..104 {
        host.start_call(id, "up_ledger", json!({ "text": id.to_string() })).await;
    }
    assert_eq!(reason(&host.expect_response(100).await), "outcome_unknown");
    for id in 101..104 {
        assert_eq!(text_of(&host.expect_response(id).await), "noted");
    }
    assert_eq!(fake.ledger("effect ledger ").len(), 3, "each once");
}

/// A process that dies while it starts, once: the call waits and comes through.
#[tokio::test]
async fn f28_a_first_start_that_fails_is_made_again() {
    let (_daemon, fake, mut host) = front("--exit-first 1", "").await;
    crate::eventually!(SOON, {
        host.start_call(900, "up_echo", json!({ "text": "x" })).await;
        text_of(&host.expect_response(900).await) == "x"
    });
    assert_eq!(fake.starts(), 2);
}
