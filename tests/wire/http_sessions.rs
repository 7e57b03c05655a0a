//! Streamable HTTP of the handshake revisions: sessions, streams, arrays (H-20, H-26 to H-28, H-32).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::eventually;
use crate::setup::{PASS, http_host, http_stranger, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::text_of;
use crate::support::raw_http::HttpHost;

const SOON: Duration = Duration::from_secs(5);

fn one(more: &str) -> Daemon {
    let more = format!("{PASS}\nhost.progress_interval = \"0s\"\n{more}");
    start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], &more)
}

/// The status of a list request.
async fn status(host: &HttpHost) -> u16 {
    host.start(900, "tools/list", json!({})).await.status
}

crate::for_revisions! { legacy_real;
    /// The whole life of a session: opened, used, ended; afterwards it is not known (H-32).
    async fn h32_a_session_from_its_opening_to_its_end(revision) {
        let daemon = one("");
        let host = http_host(&daemon, revision).await;
        let session = host.session.clone().unwrap();
        assert!(session.len() >= 43 && session.bytes().all(|byte| byte.is_ascii_graphic()));
        let answer = host.call("up_echo", json!({ "text": "a" })).await;
        assert_eq!(text_of(&answer), "a");
        // Nothing but the answer: one small body.
        let mut plain = host.start(71, "ping", Value::Null).await;
        assert!(!plain.is_stream() && plain.header("mcp-session-id").is_none());
        assert_eq!(plain.header("content-type"), Some("application/json"));
        assert_eq!(plain.answer(71).await["result"], json!({}));
        let ended = host.delete().send().await;
        assert_eq!(ended.status, 204);
        assert_eq!(status(&host).await, 404);
        assert_eq!(host.get().send().await.status, 404);
        assert_eq!(host.delete().send().await.status, 404);
        let other = http_host(&daemon, revision).await;
        assert_ne!(other.session.unwrap(), session);
    }

    /// Progress makes a stream of the answer; each step comes before it.
    async fn f37_progress_and_then_the_answer(revision) {
        let daemon = one("");
        let host = http_host(&daemon, revision).await;
        let arguments = json!({ "ms": 60, "steps": 3 });
        let mut answer = host.start_call_with_progress(71, "up_slow", arguments, "t").await;
        assert!(answer.is_stream());
        assert_eq!(text_of(&answer.answer(71).await), "done in 3 steps");
        answer.expect_end().await;
        let steps: Vec<Value> =
            host.inbox().iter().map(|note| note["params"]["progress"].clone()).collect();
        assert_eq!(steps, [1, 2, 3]);
    }

    /// A host that takes no events hears the answer alone; one that takes nothing else, as an event.
    async fn f21_a_host_chooses_how_it_is_answered(revision) {
        let daemon = one("");
        let host = http_host(&daemon, revision).await;
        let meta = json!({ "progressToken": 1 });
        let params = json!({ "name": "up_slow", "arguments": { "ms": 60, "steps": 3 }, "_meta": meta });
        let message = host.message(71, "tools/call", params);
        let mut json = host.post(&message).header("accept", "application/json").send().await;
        assert!(!json.is_stream());
        assert_eq!(text_of(&json.answer(71).await), "done in 3 steps");
        let ping = host.message(72, "ping", Value::Null);
        let mut events = host.post(&ping).header("accept", "text/event-stream").send().await;
        assert!(events.is_stream());
        events.answer(72).await;
        events.expect_end().await;
        assert!(host.inbox().is_empty());
    }

    /// What belongs to no request comes on the stream that the host opened; the newest is spoken to.
    async fn h32_changes_come_on_the_hosts_own_stream(revision) {
        let daemon = one("");
        let host = http_host(&daemon, revision).await;
        host.list_tools().await;
        let mut old = host.get().send().await;
        assert!(old.is_stream());
        if revision == "2025-11-25" {
            assert_eq!(old.next_event().await.unwrap().data.as_deref(), Some(""));
        }
        let mut new = host.get().send().await;
        let change = json!({ "add": ["extra"], "notify": true });
        host.call("up_set_tools", change).await;
        new.expect_notification("notifications/tools/list_changed").await;
        old.expect_silence(100).await;
        // The older one is spoken to once it is known that the newer has gone.
        drop(new);
        let mut heard = None;
        for number in 0..20 {
            host.list_tools().await;
            let change = json!({ "add": [format!("more{number}")], "notify": true });
            host.call("up_set_tools", change).await;
            heard = timeout(Duration::from_millis(500), old.next_frame()).await.ok().flatten();
            if heard.is_some() {
                break;
            }
        }
        assert_eq!(heard.unwrap()["method"], "notifications/tools/list_changed");
    }

    /// F27: a host that goes away has cancelled nothing.
    async fn f27_a_closed_stream_is_no_cancellation(revision) {
        let daemon = one("");
        let host = http_host(&daemon, revision).await;
        let arguments = json!({ "ms": 400, "steps": 4 });
        let mut answer = host.start_call_with_progress(71, "up_slow", arguments, 1).await;
        answer.expect_notification("notifications/progress").await;
        drop(answer);
        let fake = daemon.fake("up");
        host.call("up_sleep", json!({ "ms": 600 })).await;
        assert!(fake.ledger("stopped").is_empty());
        assert!(fake.transcript().with_method("notifications/cancelled").is_empty());
        assert_eq!(status(&host).await, 200);
    }

    /// F36: what is cancelled is done, and its POST ends.
    async fn f36_a_cancelled_request_ends_its_post(revision) {
        let daemon = one("");
        let host = http_host(&daemon, revision).await;
        let fake = daemon.fake("up");
        let cancelling = async {
            eventually!(SOON, fake.transcript().with_method("tools/call").len() == 1);
            host.cancel(71).await;
        };
        let (mut answer, ()) =
            tokio::join!(host.start_call(71, "up_slow", json!({ "ms": 60_000 })), cancelling);
        assert_eq!((answer.status, answer.text().await.as_str()), (202, ""));
        eventually!(SOON, !fake.ledger("stopped").is_empty());
    }

    /// H-07, H-08: a repeated handshake in a session is a new agreement, under the same id.
    async fn f35_a_second_handshake_in_a_session(revision) {
        let daemon = one("");
        let mut host = http_host(&daemon, "2025-06-18").await;
        let session = host.session.clone();
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": { "name": "again", "version": "1" } } });
        let send = host.post(&hello).header("mcp-session-id", session.as_deref().unwrap());
        let answer = send.send().await.answer(1).await;
        assert_eq!(answer["result"]["protocolVersion"], revision);
        host.era = Some(revision.to_owned());
        assert_eq!(status(&host).await, 200);
    }
}

/// H-20, H-27: whoever sends no session id and no `initialize` is served for this one request.
#[tokio::test]
async fn h20_h27_requests_without_a_session_are_served() {
    let daemon = one("");
    let host = http_stranger(&daemon).await;
    host.frames(|log| log.assume("2025-03-26"));
    let mut answer = host.start_call(1, "up_content", json!({})).await;
    assert!(answer.header("mcp-session-id").is_none());
    let answer = answer.answer(1).await;
    // H-27: a headerless request counts as 2025-03-26, which has audio and no links.
    let blocks = answer["result"]["content"].as_array().unwrap();
    let has = |kind: &str| blocks.iter().any(|block| block["type"] == kind);
    assert!(has("audio") && !has("resource_link"), "{answer}");
    host.frames(|log| log.assume("2025-06-18"));
    let message = host.message(2, "tools/call", json!({ "name": "up_echo", "arguments": {} }));
    let post = host.post(&message).header("mcp-protocol-version", "2025-06-18");
    assert_eq!(post.send().await.answer(2).await["id"], 2);
    let sent = host.start(3, "server/discover", Value::Null).await;
    assert_eq!((sent.status, sent.header("mcp-session-id")), (200, None));
    host.notify("notifications/initialized", Value::Null).await;
    let left = daemon.http("GET", "/v1/status", None).await.json();
    assert_eq!(left["hosts"], json!([]), "no session is left behind");
}

/// H-10: an opening that is refused has no session.
#[tokio::test]
async fn h10_a_refused_opening_has_no_session() {
    let daemon = one("http.max_sessions = 1");
    let first = http_host(&daemon, "2025-11-25").await;
    let own = first.get().send().await;
    let host = http_stranger(&daemon).await;
    host.frames(|log| log.assume("2025-11-25"));
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "one more", "version": "1" } } });
    let mut answer = host.post(&hello).send().await;
    assert_eq!((answer.status, answer.header("mcp-session-id")), (503, None));
    let text = answer.json().await["error"]["message"].to_string();
    assert!(text.contains("http.max_sessions"), "{text}");
    assert_eq!(host.post(&hello).send().await.header("retry-after"), Some("1"));
    assert_eq!(status(&first).await, 200, "whoever listens does not give way");
    // Many hosts leave without a word.
    drop(own);
    eventually!(SOON, host.post(&hello).send().await.status == 200);
    assert_eq!(status(&first).await, 404);
}

/// H-10: a session of which nothing is open makes room, so that nobody has to try twice: the one that
/// was used least.
#[tokio::test]
async fn h10_a_quiet_session_makes_room() {
    let daemon = one("http.max_sessions = 2");
    let first = http_host(&daemon, "2025-11-25").await;
    let second = http_host(&daemon, "2025-11-25").await;
    assert_eq!(status(&first).await, 200);
    let third = http_host(&daemon, "2025-11-25").await;
    assert_eq!(status(&second).await, 404, "used before the first");
    assert_eq!([status(&first).await, status(&third).await], [200, 200]);
    // Some that come at once, as many as fit.
    let (one, two) =
        tokio::join!(http_host(&daemon, "2025-06-18"), http_host(&daemon, "2025-03-26"));
    assert_eq!([status(&one).await, status(&two).await], [200, 200]);
    assert_eq!([status(&first).await, status(&third).await], [404, 404]);
}

/// H-28, F11: an array and its answers are one body each, or a stream where something comes before.
#[tokio::test]
async fn f11_arrays_of_a_2025_03_26_host() {
    let daemon = one("");
    let host = http_host(&daemon, "2025-03-26").await;
    let call = json!({ "name": "up_echo", "arguments": { "text": "a" } });
    let array = json!([
        host.message(1, "ping", Value::Null),
        { "jsonrpc": "2.0", "method": "notifications/x" },
        host.message(2, "tools/call", call),
    ]);
    let mut answer = host.post(&array).send().await;
    let answers = answer.json().await;
    let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [1, 2]);
    let notes = json!([{ "jsonrpc": "2.0", "method": "notifications/x" }]);
    host.post(&notes).send().await.expect_accepted().await;
    let meta = json!({ "progressToken": 7 });
    let slow = json!({ "name": "up_slow", "arguments": { "ms": 40, "steps": 2 }, "_meta": meta });
    let array = json!([host.message(3, "ping", Value::Null), host.message(4, "tools/call", slow)]);
    let mut stream = host.post(&array).send().await;
    assert!(stream.is_stream());
    stream.answer(4).await;
    stream.expect_end().await;
    let ids: Vec<Value> = host.inbox().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(ids, [Value::Null, Value::Null, json!(3)], "two steps, then the array");
}

/// H-29: the same id twice in flight; the second is refused, the first unaffected.
#[tokio::test]
async fn h29_the_same_id_twice_in_flight() {
    let daemon = one("");
    let host = http_host(&daemon, "2025-11-25").await;
    let fake = daemon.fake("up");
    let second = async {
        eventually!(SOON, fake.transcript().with_method("tools/call").len() == 1);
        host.start(71, "tools/list", json!({})).await.answer(71).await
    };
    let (mut first, second) =
        tokio::join!(host.start_call(71, "up_sleep", json!({ "ms": 300 })), second);
    assert_eq!(second["error"]["code"], -32600);
    assert_eq!(text_of(&first.answer(71).await), "slept");
}

/// A session that asks for nothing and listens to nothing ends; one that listens does not.
#[tokio::test]
async fn h32_an_idle_session_ends() {
    let daemon = one("http.session_idle = \"300ms\"");
    let listening = http_host(&daemon, "2025-11-25").await;
    let mut own = listening.get().send().await;
    own.next_event().await.unwrap();
    let idle = http_host(&daemon, "2025-11-25").await;
    let hosts = async || daemon.http("GET", "/v1/status", None).await.json()["hosts"].clone();
    eventually!(SOON, hosts().await.as_array().unwrap().len() == 1);
    assert_eq!(status(&idle).await, 404);
    assert_eq!(status(&listening).await, 200);
}

/// A daemon that ends lets open calls finish, and does not wait for streams that have no end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h32_a_daemon_that_ends_waits_for_calls_alone() {
    let mut daemon = one("host.drain = \"10s\"");
    let host = http_host(&daemon, "2025-11-25").await;
    let mut own = host.get().send().await;
    own.next_event().await.unwrap();
    let fake = daemon.fake("up");
    let stopping = async {
        eventually!(SOON, fake.transcript().with_method("tools/call").len() == 1);
        tokio::task::block_in_place(|| daemon.stop())
    };
    let (mut answer, took) =
        tokio::join!(host.start_call(71, "up_sleep", json!({ "ms": 600 })), stopping);
    assert_eq!(text_of(&answer.answer(71).await), "slept");
    own.expect_end().await;
    assert!(took < Duration::from_secs(5), "{took:?}");
}
