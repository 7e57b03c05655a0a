//! Large frames, floods and back-pressure (F08, issue 2 item 5).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::front;
use crate::setup::failed;
use crate::support::procs;
use crate::support::raw_host::text_of;

#[tokio::test]
async fn f08_ten_megabytes_pass_in_bounded_memory() {
    let (daemon, _, mut host) = front("", "").await;
    host.call("up_echo", json!({ "text": "warm" })).await;
    let (before, _) = procs::memory_kib(daemon.pid().unwrap()).unwrap();
    let answer = host.call("up_big", json!({ "bytes": 10_000_000 })).await;
    assert_eq!(text_of(&answer).len(), 10_000_000);
    let (_, peak) = procs::memory_kib(daemon.pid().unwrap()).unwrap();
    assert!(peak - before < 80_000, "{} KiB more at the peak", peak - before);
}

#[tokio::test]
async fn f08_beyond_the_cap_one_call_fails() {
    let (_daemon, fake, mut host) = front("", "link.max_frame = \"256KiB\"").await;
    let fits = host.call("up_big", json!({ "bytes": 200_000 })).await;
    assert_eq!(text_of(&fits).len(), 200_000);
    host.start_call(70, "up_sleep", json!({ "ms": 300 })).await;
    let large = host.call("up_big", json!({ "bytes": 300_000 })).await;
    let told = large.to_string();
    assert!(failed(&large) || large.get("error").is_some(), "{told}");
    assert!(told.contains("link.max_frame"), "names its cap: {told}");
    assert!(told.contains("3000"), "names the size: {told}");
    assert_eq!(text_of(&host.expect_response(70).await), "slept", "only that call failed");
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "sync" })).await), "sync");
    assert_eq!(fake.starts(), 1);
}

/// 64 large calls on a blocking server that reads nothing while it writes: nobody hangs.
#[tokio::test]
async fn f08_a_blocking_server_with_64_large_calls() {
    let (_daemon, fake, mut host) = front("--serial", "").await;
    let text = "y".repeat(60_000);
    for id in 100..164 {
        host.start_call(id, "up_echo", json!({ "text": text })).await;
    }
    for id in 100..164 {
        assert_eq!(text_of(&host.expect_response(id).await).len(), text.len());
    }
    assert_eq!(fake.starts(), 1);
}

/// A host that does not read holds up neither the daemon nor another host.
#[tokio::test]
async fn a_host_that_does_not_read_holds_up_nobody() {
    let (daemon, _, mut other) = front("", "").await;
    let mut lazy = crate::setup::host(&daemon, "2025-11-25").await;
    for id in 100..110 {
        lazy.start_call(id, "up_big", json!({ "bytes": 1_000_000 })).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let began = Instant::now();
    assert_eq!(text_of(&other.call("up_echo", json!({ "text": "x" })).await), "x");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    for id in 100..110 {
        assert_eq!(text_of(&lazy.expect_response(id).await).len(), 1_000_000);
    }
}

#[tokio::test]
async fn f32_floods_of_standard_error() {
    let (daemon, _, mut host) = front("--stderr-start 262144", "").await;
    let began = Instant::now();
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let (before, _) = procs::memory_kib(daemon.pid().unwrap()).unwrap();
    for (kind, bytes) in [("lines", 20_000_000), ("cr", 5_000_000), ("binary", 1_000_000)] {
        host.start_call(70, "up_stderr", json!({ "bytes": bytes, "kind": kind })).await;
        let began = Instant::now();
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
        assert!(began.elapsed() < Duration::from_secs(1), "{kind}: {:?}", began.elapsed());
        assert_eq!(text_of(&host.expect_response(70).await), "written");
    }
    let (_, peak) = procs::memory_kib(daemon.pid().unwrap()).unwrap();
    assert!(peak < before + 20_000, "{before} KiB, then {peak} KiB");
    // The journal is rate-limited and says so.
    assert!(daemon.output().len() < 2_000_000, "{} bytes of log", daemon.output().len());
    assert!(daemon.output().contains("dropped"), "says that lines were dropped");
}
