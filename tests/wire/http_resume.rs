//! Streams that are taken up again: 2025-11-25 Transports page, "Resumability and Redelivery" (H-32).

use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, http_host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::text_of;
use crate::support::raw_http::HttpHost;

const SOON: Duration = Duration::from_secs(5);

fn one(more: &str) -> Daemon {
    let more = format!("{PASS}\nhost.progress_interval = \"0s\"\n{more}");
    start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], &more)
}

/// A GET that goes on after this event.
async fn resume(host: &HttpHost, last: &str) -> crate::support::raw_http::Response {
    host.get().header("last-event-id", last).send().await
}

/// H-32: a stream begins with an id; broken in the middle, it is taken up after what was seen, with
/// the answer of a call that ended meanwhile.
#[tokio::test]
async fn h32_a_broken_stream_is_taken_up() {
    let daemon = one("");
    let mut host = http_host(&daemon, "2025-11-25").await;
    let arguments = json!({ "ms": 400, "steps": 4 });
    let mut stream = host.start_call_with_progress(71, "up_slow", arguments, 1).await;
    let first = stream.next_event().await.unwrap();
    assert_eq!((first.data.as_deref(), first.retry), (Some(""), Some(1000)));
    let step = stream.next_event().await.unwrap();
    assert_eq!(step.json()["params"]["progress"], 1);
    drop(stream);
    // Nothing of another stream comes along.
    host.call("up_echo", json!({ "text": "other" })).await;
    let mut again = resume(&host, &step.id.unwrap()).await;
    assert_eq!(again.status, 200);
    assert_eq!(text_of(&again.answer(71).await), "done in 4 steps");
    again.expect_end().await;
    let steps: Vec<Value> =
        host.inbox().iter().map(|note| note["params"]["progress"].clone()).collect();
    assert_eq!(steps, [2, 3, 4]);
    // From the beginning, long after its end; what comes again is no news to a strict reader.
    host.strict = false;
    let mut again = resume(&host, &first.id.unwrap()).await;
    again.answer(71).await;
    again.expect_end().await;
    assert_eq!(host.inbox().len(), 4);
}

/// A call that says nothing becomes a stream all the same, so that a broken one is not lost.
#[tokio::test]
async fn h32_a_long_call_can_be_taken_up() {
    let daemon = one("http.stream_after = \"50ms\"\nhttp.retry = \"20ms\"");
    let host = http_host(&daemon, "2025-11-25").await;
    let mut stream = host.start_call(71, "up_sleep", json!({ "ms": 400 })).await;
    let first = stream.next_event().await.unwrap();
    assert_eq!((first.data.as_deref(), first.retry), (Some(""), Some(20)));
    drop(stream);
    let mut again = resume(&host, &first.id.unwrap()).await;
    assert_eq!(text_of(&again.answer(71).await), "slept");
    again.expect_end().await;
}

/// The session's own stream too, with what was said while nobody listened.
#[tokio::test]
async fn h32_the_hosts_own_stream_is_taken_up() {
    let daemon = one("");
    let host = http_host(&daemon, "2025-11-25").await;
    host.list_tools().await;
    let mut own = host.get().send().await;
    let first = own.next_event().await.unwrap();
    assert_eq!(first.data.as_deref(), Some(""));
    host.call("up_set_tools", json!({ "add": ["extra"], "notify": true })).await;
    let change = own.next_event().await.unwrap();
    drop(own);
    let mut again = resume(&host, &first.id.unwrap()).await;
    assert_eq!(again.next_event().await.unwrap(), change, "the same event, under the same id");
    host.list_tools().await;
    host.call("up_set_tools", json!({ "remove": ["extra"], "notify": true })).await;
    again.expect_notification("notifications/tools/list_changed").await;
}

/// Ids that were never given, and those of another session, are refused with words.
#[tokio::test]
async fn h32_an_unknown_event_is_refused() {
    let daemon = one("");
    let host = http_host(&daemon, "2025-11-25").await;
    let other = http_host(&daemon, "2025-11-25").await;
    let first = other.get().send().await.next_event().await.unwrap();
    for id in [first.id.as_deref().unwrap(), "77-1", "x"] {
        let mut answer = resume(&host, id).await;
        assert_eq!(answer.status, 400);
        let text = answer.json().await["error"]["message"].to_string();
        assert!(text.contains("http.resume_age"), "{text}");
    }
}

/// What is kept has a limit: what is beyond it is gone, the rest comes.
#[tokio::test]
async fn h32_what_is_kept_has_a_limit() {
    let daemon = one("http.resume_events = 2");
    let mut host = http_host(&daemon, "2025-11-25").await;
    let arguments = json!({ "ms": 50, "steps": 5 });
    let mut stream = host.start_call_with_progress(71, "up_slow", arguments, 1).await;
    let first = stream.next_event().await.unwrap();
    stream.answer(71).await;
    host.inbox();
    host.strict = false;
    let mut again = resume(&host, &first.id.unwrap()).await;
    again.answer(71).await;
    assert_eq!(host.inbox().len(), 1, "the last step and the answer");
}

/// Older revisions have no such events, and a host's last id means nothing there.
#[tokio::test]
async fn h32_older_revisions_get_no_ids() {
    let daemon = one("");
    let host = http_host(&daemon, "2025-06-18").await;
    let arguments = json!({ "ms": 20, "steps": 1 });
    let mut stream = host.start_call_with_progress(71, "up_slow", arguments, 1).await;
    while let Some(event) = stream.next_event().await {
        assert_eq!((event.id, event.retry), (None, None));
        assert_ne!(event.data.as_deref(), Some(""));
    }
    assert_eq!(resume(&host, "1-1").await.status, 200);
    drop(stream);
    eventually!(SOON, host.delete().send().await.status == 204);
}

/// A host that names events before JSON gets them from the first moment on, a notification none.
#[tokio::test]
async fn f21_a_host_that_would_rather_have_events() {
    let daemon = one("");
    let host = http_host(&daemon, "2025-11-25").await;
    let events = "text/event-stream, application/json";
    let ping = host.message(71, "ping", Value::Null);
    let mut stream = host.post(&ping).header("accept", events).send().await;
    let first = stream.next_event().await.unwrap();
    assert_eq!((first.data.as_deref(), first.retry), (Some(""), Some(1000)));
    stream.answer(71).await;
    stream.expect_end().await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/x" });
    host.post(&note).header("accept", events).send().await.expect_accepted().await;
}
