//! The shim outlives the daemon (F47, H-34, D-23, D-24).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::setup::{self, PASS, call, names};
use crate::support::daemon::Daemon;
use crate::support::procs;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::schema::MODERN;
use crate::{SOON, eventually};

/// Only the harness starts daemons here, so that the gap is as long as the test wants.
const BY_HAND: &str = "shim.autostart = false";

async fn front(more: &str) -> (Daemon, RawHost) {
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], &format!("{BY_HAND}\n{more}"));
    let mut host = setup::host(&daemon, "2025-06-18").await;
    assert_eq!(text_of(&call(&mut host, "up", "echo", json!({ "text": "a" })).await), "a");
    (daemon, host)
}

async fn echoes(host: &mut RawHost, text: &str) {
    let answer = call(host, "up", "echo", json!({ "text": text })).await;
    assert_eq!(text_of(&answer), text, "{answer}");
}

mod idle {
    use super::{BY_HAND, MODERN, PASS, json, setup, text_of};

    crate::for_revisions! { all_real;
        /// F47: an idle session over a restart: nothing is seen of it, in any revision.
        async fn f47_idle_is_invisible(revision) {
            let more = format!("{BY_HAND}\n{PASS}");
            let mut daemon =
                setup::start(|daemon| vec![daemon.fake("up").args("--tools echo,add")], &more);
            let mut host = setup::host(&daemon, revision).await;
            let before = host.list_tools().await;
            daemon.restart();
            let answer = host.call("up_echo", json!({ "text": "after" })).await;
            assert_eq!(text_of(&answer), "after", "{answer}");
            // The revision holds: the new daemon was told of the handshake.
            assert_eq!(host.list_tools().await, before);
            host.expect_silence(150).await;
            if revision != MODERN {
                let shown = crate::status(&daemon).await;
                assert_eq!(shown["hosts"][0]["revision"], revision, "{shown}");
                assert!(shown["hosts"][0]["label"].as_str().unwrap().starts_with("raw-host"));
            }
        }
    }
}

/// F47: a call that is written in the gap waits for the daemon and succeeds.
#[tokio::test]
async fn f47_a_call_in_the_gap_waits() {
    let (mut daemon, mut host) = front("").await;
    daemon.stop();
    let wanted = json!({ "namespace": "up", "tool": "ledger", "arguments": { "text": "once" } });
    host.start_call(50, "mcpx_call", wanted).await;
    host.start(51, "tools/list", Value::Null).await;
    host.expect_no_response(50, 300).await;
    daemon.launch();
    assert_eq!(text_of(&host.expect_response(50).await), "noted");
    assert!(host.expect_response(51).await["result"]["tools"].is_array());
    assert_eq!(daemon.fake("up").ledger("effect").len(), 1, "once");
    echoes(&mut host, "b").await;
}

/// F47, F23: a call in flight is answered, never silently run again; other methods as errors.
#[tokio::test]
async fn f47_f23_a_call_in_flight_is_told() {
    let (mut daemon, mut host) = front("host.drain = \"200ms\"").await;
    let wanted = json!({ "namespace": "up", "tool": "ledger_die", "arguments": { "ms": 60_000 } });
    host.start_call(50, "mcpx_call", wanted).await;
    eventually!(SOON, daemon.fake("up").ledger("effect").len() == 1);
    daemon.kill9();
    let answer = host.expect_response(50).await;
    assert_eq!(setup::reason(&answer), "outcome_unknown", "{answer}");
    daemon.launch();
    echoes(&mut host, "b").await;
    assert_eq!(daemon.fake("up").ledger("effect").len(), 1, "never twice");
}

/// F47: absent beyond the grace: an error that says how to start it; later calls work.
#[tokio::test]
async fn f47_absent_beyond_the_grace() {
    let (mut daemon, mut host) = front("shim.grace = \"400ms\"").await;
    daemon.stop();
    let began = Instant::now();
    let answer = call(&mut host, "up", "echo", json!({ "text": "x" })).await;
    assert!(setup::failed(&answer), "{answer}");
    assert_eq!(setup::reason(&answer), "unavailable", "{answer}");
    assert!(text_of(&answer).contains("mcpx daemon"), "how to start one: {answer}");
    assert!(
        began.elapsed() > Duration::from_millis(300) && began.elapsed() < Duration::from_secs(3)
    );
    let list = host.request("tools/list", Value::Null).await;
    assert_eq!(list["error"]["code"], -32603, "other methods get an error: {list}");
    assert!(
        host.request("ping", Value::Null).await.get("result").is_some(),
        "the shim itself is well"
    );
    daemon.launch();
    eventually!(SOON, !setup::failed(&call(&mut host, "up", "echo", json!({})).await));
}

/// F47: the list of tools differs after the restart: the host is told, once.
#[tokio::test]
async fn f47_a_changed_list_is_told() {
    let mut daemon = setup::start(
        |daemon| vec![daemon.fake("up").args("--tools echo")],
        &format!("{BY_HAND}\n{PASS}"),
    );
    let mut host = setup::host(&daemon, "2025-11-25").await;
    assert_eq!(names(&host.list_tools().await), ["up_echo"]);
    daemon.stop();
    let fakes = [daemon.fake("up").args("--tools echo"), daemon.fake("two").args("--tools add")];
    daemon.write_config(&fakes, &setup::quick(&format!("{BY_HAND}\n{PASS}")));
    daemon.launch();
    host.expect_notification("notifications/tools/list_changed").await;
    assert_eq!(names(&host.list_tools().await), ["two_add", "up_echo"]);
    host.gather(Duration::from_millis(300)).await;
    assert!(host.inbox.len() <= 1, "{:?}", host.inbox);
}

/// F47: what the daemon lost is asked for again only where that is harmless: a cancel in the gap.
#[tokio::test]
async fn f36_f47_a_cancel_in_the_gap() {
    let (mut daemon, mut host) = front("").await;
    daemon.stop();
    let wanted = json!({ "namespace": "up", "tool": "ledger", "arguments": {} });
    host.start_call(50, "mcpx_call", wanted).await;
    host.cancel(50).await;
    daemon.launch();
    echoes(&mut host, "b").await;
    host.expect_no_response(50, 100).await;
    assert!(daemon.fake("up").ledger("effect").is_empty(), "it was never made");
}

/// F47: a host that begins while there is no daemon.
#[tokio::test]
async fn f47_a_host_that_begins_in_the_gap() {
    let (mut daemon, host) = front("").await;
    drop(host);
    daemon.stop();
    let mut host = daemon.shim(&[]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {},
        "clientInfo": { "name": "early", "version": "1" } } });
    host.send(&hello).await;
    host.expect_no_response(1, 200).await;
    daemon.launch();
    assert_eq!(host.expect_response(1).await["result"]["protocolVersion"], "2025-03-26");
    host.notify("notifications/initialized", Value::Null).await;
    echoes(&mut host, "x").await;
}

/// The gap is bounded: what does not fit is refused by name, and order is kept.
#[tokio::test]
async fn f47_the_gap_is_bounded() {
    let (mut daemon, mut host) = front("shim.hold_frames = 3").await;
    daemon.stop();
    let wanted =
        |text: &str| json!({ "namespace": "up", "tool": "ledger", "arguments": { "text": text } });
    for id in 60..66 {
        host.start_call(id, "mcpx_call", wanted(&id.to_string())).await;
    }
    let refused = host.expect("a refusal", |message| message["id"].as_i64().is_some()).await;
    assert_eq!(setup::reason(&refused), "busy", "{refused}");
    assert!(text_of(&refused).contains("shim.hold_frames"), "{refused}");
    daemon.launch();
    for id in 60..63 {
        assert_eq!(text_of(&host.expect_response(id).await), "noted");
    }
}

/// H-33, LV-38: at the end of its input a shim leaves promptly, daemon or none.
#[tokio::test]
async fn h33_the_shim_leaves_in_the_gap() {
    let (mut daemon, mut host) = front("").await;
    daemon.stop();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    host.close_input().await;
    host.wait_exit().await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// Several restarts in a row, with calls all the time: each is answered once, no effect twice.
#[tokio::test]
async fn f47_restarts_under_load() {
    let (mut daemon, mut host) = front("host.drain = \"50ms\"").await;
    let mut id = 100;
    for round in 0..3 {
        for _ in 0..10 {
            id += 1;
            let wanted = json!({ "namespace": "up", "tool": "ledger", "arguments": { "text": id.to_string() } });
            host.start_call(id, "mcpx_call", wanted).await;
        }
        if round % 2 == 0 {
            daemon.kill9();
        } else {
            daemon.stop();
        }
        daemon.launch();
    }
    for id in 101..=id {
        let answer = host.expect_response(id).await;
        let effects = daemon.fake("up").ledger("effect ledger ");
        let times = effects.iter().filter(|line| line.ends_with(&format!(" {id}"))).count();
        if setup::failed(&answer) {
            assert!(times <= 1, "{id}: {times} times");
        } else {
            assert_eq!(times, 1, "{id}");
        }
    }
    assert!(procs::alive(host.pid().unwrap()));
    echoes(&mut host, "z").await;
}
