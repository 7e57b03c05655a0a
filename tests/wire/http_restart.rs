//! Sessions over HTTP outlive the daemon (F47, D-23): what was agreed holds, streams go on, and an
//! answer that went with the daemon is told to be unknown.

use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, follow, http_host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::text_of;
use crate::support::raw_http::HttpHost;

const SOON: Duration = Duration::from_secs(10);
const README: &str = "file:///README.md";
const UPDATED: &str = "notifications/resources/updated";
const CORE: &str = "2025-11-25";

fn one(more: &str) -> Daemon {
    let more = format!("{PASS}\nhost.progress_interval = \"0s\"\n{more}");
    let fake = |daemon: &Daemon| daemon.fake("up").args("--offers").line("scope = \"global\"");
    start(|daemon| vec![fake(daemon)], &more)
}

async fn restart(daemon: &mut Daemon, host: &mut HttpHost, kill: bool) {
    if kill {
        daemon.kill9();
        daemon.launch();
    } else {
        daemon.restart();
    }
    follow(host, daemon).await;
}

async fn echoes(host: &HttpHost, text: &str) {
    let answer = host.call("up_echo", json!({ "text": text })).await;
    assert_eq!(text_of(&answer), text, "{answer}");
}

async fn session_status(host: &HttpHost) -> u16 {
    host.start(900, "tools/list", json!({})).await.status
}

crate::for_revisions! { legacy_real;
    /// F47, D-23: the id of a session is valid after a stop and after a crash; revision, host, log level
    /// and subscriptions with it. What has ended stays ended.
    async fn f47_d23_a_session_survives_the_daemon(revision) {
        let mut daemon = one("");
        let mut host = http_host(&daemon, revision).await;
        let before = host.list_tools().await;
        let declares = host.request("logging/setLevel", json!({ "level": "warning" })).await;
        assert_eq!(declares["result"], json!({}), "{declares}");
        let address = format!("mcpx://up/{README}");
        host.request("resources/subscribe", json!({ "uri": address })).await;
        for kill in [false, true] {
            restart(&mut daemon, &mut host, kill).await;
            let mut stream = host.get().send().await;
            assert_eq!(stream.status, 200);
            // Whatever happened meanwhile, nobody has heard.
            let missed = stream.expect_notification(UPDATED).await;
            assert_eq!(missed["params"], json!({ "uri": address }));
            host.call("up_touch", json!({ "uri": README })).await;
            stream.expect_notification(UPDATED).await;
            for (level, hears) in [("info", false), ("error", true)] {
                let params = json!({ "level": level, "data": "hear" });
                let arguments = json!({ "method": "notifications/message", "params": params });
                host.call("up_notify", arguments).await;
                let mut heard = host.inbox();
                heard.retain(|note| note["method"] == "notifications/message");
                assert_eq!(heard.len(), usize::from(hears), "{level}: {heard:?}");
            }
            assert_eq!(host.list_tools().await, before);
            let shown = crate::support::http::request(&daemon.socket(), "GET", "/v1/status", None).await;
            let shown = shown.json();
            assert_eq!(shown["hosts"][0]["revision"], revision, "{shown}");
            assert!(shown["hosts"][0]["label"].as_str().unwrap().starts_with("raw-http"), "{shown}");
        }
        let other = http_host(&daemon, revision).await;
        assert_eq!(host.delete().send().await.status, 204);
        restart(&mut daemon, &mut host, true).await;
        assert_eq!(session_status(&host).await, 404);
        host.session = other.session;
        echoes(&host, "the other").await;
    }

    /// F47: a crash in the very moment after the handshake loses nothing that the host was told.
    async fn f47_a_crash_after_the_handshake(revision) {
        let mut daemon = one("");
        let mut host = http_host(&daemon, revision).await;
        for round in 0..5 {
            if round > 0 {
                host = http_host(&daemon, revision).await;
            }
            restart(&mut daemon, &mut host, true).await;
            echoes(&host, "after").await;
        }
    }
}

/// F47, F23, H-32: a call was in flight. Its stream ended with the daemon; a host that comes back for
/// the answer hears that there is none, and the call is not made twice.
#[tokio::test]
async fn f47_f23_the_answer_that_went_with_the_daemon() {
    let mut daemon = one("http.stream_after = \"20ms\"");
    let mut host = http_host(&daemon, CORE).await;
    let mut stream = host.start_call("one", "up_ledger_die", json!({ "ms": 60_000 })).await;
    let begun = stream.next_event().await.unwrap().id.unwrap();
    eventually!(SOON, daemon.fake("up").ledger("effect").len() == 1);
    restart(&mut daemon, &mut host, true).await;
    let mut again = host.get().header("last-event-id", &begun).send().await;
    assert_eq!(again.status, 200);
    let answer = again.answer("one").await;
    assert_eq!(answer["error"]["data"]["reason"], "outcome_unknown", "{answer}");
    again.expect_end().await;
    assert_eq!(daemon.fake("up").ledger("effect").len(), 1, "once");
    echoes(&host, "and on").await;
}

/// F47, H-32: the session's own stream goes on after an event of the daemon before, under ids that were
/// never given, and tells of a list that is another one now.
#[tokio::test]
async fn f47_h32_the_sessions_own_stream_goes_on() {
    let mut daemon = one("");
    let mut host = http_host(&daemon, CORE).await;
    host.list_tools().await;
    let mut ids = Vec::new();
    let mut last: Option<String> = None;
    for (round, kill) in [false, true, false].into_iter().enumerate() {
        let get = host.get();
        let get = match &last {
            Some(last) => get.header("last-event-id", last),
            None => get,
        };
        let mut stream = get.send().await;
        ids.push(stream.next_event().await.unwrap().id.unwrap());
        host.call("up_set_tools", json!({ "add": [format!("extra{round}")], "notify": true }))
            .await;
        let event = stream.next_event().await.unwrap();
        assert_eq!(event.json()["method"], "notifications/tools/list_changed");
        ids.push(event.id.unwrap());
        last = ids.last().cloned();
        host.list_tools().await;
        restart(&mut daemon, &mut host, kill).await;
        // The server that was started anew has its own list again, once it is asked.
        echoes(&host, "asked").await;
    }
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
}

/// F47, T-14: tasks of the core belong to the session, and so they do after a restart.
#[tokio::test]
async fn f47_t14_tasks_stay_with_their_session() {
    let mut daemon = one("tasks.eager = \"20ms\"");
    let mut host = http_host(&daemon, CORE).await;
    let wanted =
        json!({ "name": "up_sleep", "arguments": { "ms": 60 }, "task": { "ttl": 60_000 } });
    let made = host.request("tools/call", wanted).await;
    let id = made["result"]["task"]["taskId"].clone();
    assert!(id.is_string(), "{made}");
    let of = json!({ "taskId": id });
    eventually!(
        SOON,
        host.request("tasks/get", of.clone()).await["result"]["status"] == "completed"
    );
    restart(&mut daemon, &mut host, true).await;
    let found = host.request("tasks/get", of.clone()).await;
    assert_eq!(found["result"]["status"], "completed", "{found}");
    let result = host.request("tasks/result", of.clone()).await;
    assert!(result["result"]["content"].is_array(), "{result}");
    let stranger = http_host(&daemon, CORE).await;
    assert!(stranger.request("tasks/get", of).await["error"].is_object());
}

/// F47: shims hold nothing of this on disk, but their hosts' log level and subscriptions come back, too.
#[tokio::test]
async fn f47_log_level_and_subscriptions_behind_a_shim() {
    let mut daemon = one("shim.autostart = false");
    let mut host = crate::setup::host(&daemon, CORE).await;
    let address = format!("mcpx://up/{README}");
    for (method, params) in [
        ("logging/setLevel", json!({ "level": "warning" })),
        ("resources/subscribe", json!({ "uri": address })),
    ] {
        assert_eq!(host.request(method, params).await["result"], json!({}));
    }
    daemon.restart();
    assert_eq!(host.expect_notification(UPDATED).await["params"], json!({ "uri": address }));
    host.call("up_touch", json!({ "uri": README })).await;
    host.expect_notification(UPDATED).await;
    let params = json!({ "level": "error", "data": "hear" });
    host.call("up_notify", json!({ "method": "notifications/message", "params": params })).await;
    let heard = host.inbox.iter().filter(|note| note["method"] == "notifications/message").count();
    assert_eq!(heard, 1);
    let answered: Vec<&Value> = host.inbox.iter().filter(|note| note.get("id").is_some()).collect();
    assert!(answered.is_empty(), "{answered:?}");
}
