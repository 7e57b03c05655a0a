//! `subscriptions/listen` of modern hosts, behind the shim and over HTTP (H-37 to H-39, R-05, R-06,
//! R-11, F38, T-15).

use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{PASS, call, host, http_host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, modern_params, text_of};
use crate::support::raw_http::{HttpHost, Response};
use crate::support::schema::MODERN;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const UPDATED: &str = "notifications/resources/updated";
const TOOLS: &str = "notifications/tools/list_changed";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const README: &str = "file:///README.md";
const SOON: Duration = Duration::from_secs(10);

/// An upstream of each era with resources, in global scope, so that hosts over HTTP share them.
fn both(more: &str) -> Daemon {
    let more = format!("{PASS}\n{more}");
    start(
        |daemon| {
            let fake = |name: &str| daemon.fake(name).line("scope = \"global\"");
            vec![
                fake("old").args("--offers"),
                fake("new").args("--offers --era modern"),
                fake("bare"),
            ]
        },
        &more,
    )
}

fn filter(notifications: Value) -> Value {
    json!({ "notifications": notifications })
}

fn everything() -> Value {
    json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true })
}

fn is_of(message: &Value, id: &Value) -> bool {
    message["params"]["_meta"][SUBSCRIPTION] == *id
}

/// A stream over whatever leads to mcpx.
enum Stream<'a> {
    Stdio(&'a mut RawHost, Value),
    Http(Response, Value),
}

impl Stream<'_> {
    /// The next message on it.
    async fn next(&mut self, method: &str) -> Value {
        let message = match self {
            Self::Stdio(host, id) => {
                let wanted = |one: &Value| one["method"] == method && is_of(one, id);
                host.expect(method, wanted).await
            }
            Self::Http(response, _) => response.expect_notification(method).await,
        };
        let (Self::Stdio(_, id) | Self::Http(_, id)) = self;
        assert!(is_of(&message, id), "{message}");
        message
    }
}

async fn over_stdio(host: &mut RawHost, id: impl Into<Value>, notifications: Value) -> Stream<'_> {
    let id = id.into();
    let params = modern_params(filter(notifications), &host.capabilities);
    host.start(id.clone(), "subscriptions/listen", params).await;
    Stream::Stdio(host, id)
}

async fn over_http(host: &HttpHost, id: impl Into<Value>, notifications: Value) -> Stream<'static> {
    let id = id.into();
    let response = host.start(id.clone(), "subscriptions/listen", filter(notifications)).await;
    assert_eq!((response.status, response.is_stream()), (200, true));
    assert_eq!(response.header("x-accel-buffering"), Some("no"));
    Stream::Http(response, id)
}

/// Somebody who makes upstreams do things.
async fn teller(daemon: &Daemon) -> RawHost {
    host(daemon, "2025-11-25").await
}

async fn touch(teller: &mut RawHost, up: &str, uri: &str) -> String {
    text_of(&teller.call(&format!("{up}_touch"), json!({ "uri": uri })).await)
}

/// H-37, R-05, R-06, R-11: what is told, on a stream over either transport, from upstreams of either
/// era.
async fn tells(daemon: &Daemon, mut stream: Stream<'_>, uris: &[String]) {
    let mut teller = teller(daemon).await;
    let agreed = stream.next(ACKNOWLEDGED).await;
    let mut expected = everything();
    let mut those = uris.to_vec();
    those.sort();
    expected["resourceSubscriptions"] = json!(those);
    assert_eq!(agreed["params"]["notifications"], expected, "what nobody has is left out");
    for (up, uri) in ["old", "new"].into_iter().zip(uris) {
        touch(&mut teller, up, README).await;
        assert_eq!(stream.next(UPDATED).await["params"]["uri"], *uri);
        for kind in ["resources", "prompts"] {
            let more = json!({ "kind": kind, "add": [format!("x:{up}")] });
            teller.call(&format!("{up}_set_offers"), more).await;
            stream.next(&format!("notifications/{kind}/list_changed")).await;
        }
        teller.call(&format!("{up}_set_tools"), json!({ "add": ["fresh"] })).await;
        stream.next(TOOLS).await;
    }
}

fn wanted() -> (Value, Vec<String>) {
    let uris: Vec<String> = ["old", "new"].map(|up| format!("mcpx://{up}/{README}")).into();
    let mut asked = everything();
    let nowhere = ["mcpx://nowhere/a:b", "mcpx://bare/a:b", "no:thing"].map(str::to_owned);
    asked["resourceSubscriptions"] = json!([nowhere.to_vec(), uris.clone()].concat());
    (asked, uris)
}

#[tokio::test]
async fn h37_r06_a_stream_behind_the_shim() {
    let daemon = both("");
    let mut host = host(&daemon, MODERN).await;
    for method in ["tools/list", "resources/list", "prompts/list"] {
        host.request(method, json!({})).await;
    }
    let (asked, uris) = wanted();
    let stream = over_stdio(&mut host, "l", asked).await;
    tells(&daemon, stream, &uris).await;
    // Nothing is on the wire that was not waited for.
    host.gather(Duration::from_millis(100)).await;
    let stray = host.inbox.iter().find(|one| !is_of(one, &json!("l")));
    assert_eq!(stray, None);
}

#[tokio::test]
async fn h37_r06_a_stream_over_http() {
    let daemon = both("");
    let host = http_host(&daemon, MODERN).await;
    for method in ["tools/list", "resources/list", "prompts/list"] {
        host.request(method, json!({})).await;
    }
    let (asked, uris) = wanted();
    let stream = over_http(&host, 7, asked).await;
    tells(&daemon, stream, &uris).await;
}

/// H-37: the acknowledgement is the first message, and nothing comes that was not asked for.
#[tokio::test]
async fn h37_only_what_was_asked_for() {
    let daemon = both("");
    let mut told = host(&daemon, MODERN).await;
    let http = http_host(&daemon, MODERN).await;
    let mut teller = teller(&daemon).await;
    for method in ["tools/list", "resources/list", "prompts/list"] {
        told.request(method, json!({})).await;
    }
    let asked = json!({ "promptsListChanged": true, "toolsListChanged": false, "x": true });
    let agreed = json!({ "promptsListChanged": true });
    let params = modern_params(filter(asked.clone()), &json!({}));
    told.start(1, "subscriptions/listen", params).await;
    let mut stream = http.start(1, "subscriptions/listen", filter(asked)).await;
    let first = stream.next_frame().await.unwrap();
    assert_eq!(
        (&first["method"], &first["params"]["notifications"]),
        (&json!(ACKNOWLEDGED), &agreed)
    );
    told.expect_notification(ACKNOWLEDGED).await;
    touch(&mut teller, "old", README).await;
    teller.call("old_set_tools", json!({ "add": ["fresh"] })).await;
    teller.call("old_set_offers", json!({ "kind": "resources", "add": ["x:y"] })).await;
    told.expect_silence(300).await;
    teller.call("old_set_offers", json!({ "kind": "prompts", "add": ["fresh"] })).await;
    told.expect_notification("notifications/prompts/list_changed").await;
    let next = stream.next_frame().await.unwrap();
    assert_eq!(next["method"], "notifications/prompts/list_changed");
}

/// H-38: many on one connection, told apart by the exact id; one ends by a cancellation, and nothing
/// is said on it any more. The server is told when nobody wants a resource any longer.
#[tokio::test]
async fn h38_many_streams_and_the_end_of_one() {
    let daemon = both("listen.max_per_host = 3");
    let address = format!("mcpx://old/{README}");
    let mut host = host(&daemon, MODERN).await;
    let mut teller = teller(&daemon).await;
    let one = json!({ "resourceSubscriptions": [address] });
    for id in [json!(901), json!("901"), json!("two")] {
        over_stdio(&mut host, id, one.clone()).await.next(ACKNOWLEDGED).await;
    }
    for (id, code, words) in
        [(json!(901), -32600, "in flight"), (json!("four"), -32603, "listen.max_per_host")]
    {
        let params = modern_params(filter(one.clone()), &json!({}));
        host.start(id.clone(), "subscriptions/listen", params).await;
        let refused = host.expect_response(id).await;
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(words), "{refused}");
    }
    touch(&mut teller, "old", README).await;
    for id in [json!(901), json!("901"), json!("two")] {
        let wanted = |one: &Value| one["method"] == UPDATED && is_of(one, &id);
        assert_eq!(host.expect("an update", wanted).await["params"]["uri"], address);
    }
    host.cancel(901).await;
    host.cancel("two").await;
    // Requests are answered in between: the cancellation has been read.
    host.list_tools().await;
    touch(&mut teller, "old", README).await;
    host.expect("an update", |one| one["method"] == UPDATED && is_of(one, &json!("901"))).await;
    host.expect_silence(150).await;
    let fake = daemon.fake("old");
    assert!(fake.ledger("resources/unsubscribe").is_empty());
    host.cancel("901").await;
    eventually!(SOON, fake.ledger("resources/unsubscribe").len() == 1);
    assert_eq!(fake.ledger("resources/subscribe").len(), 1, "once for all streams");
    // Their ids are free.
    over_stdio(&mut host, 901, everything()).await.next(ACKNOWLEDGED).await;
}

/// Over HTTP the host ends it by closing it; a cancellation means nothing there.
#[tokio::test]
async fn h38_a_closed_stream_is_over() {
    let daemon = both("listen.max = 1");
    let host = http_host(&daemon, MODERN).await;
    let one = json!({ "resourceSubscriptions": [format!("mcpx://old/{README}")] });
    let mut stream = over_http(&host, 1, one.clone()).await;
    stream.next(ACKNOWLEDGED).await;
    host.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    let mut refused = host.start(2, "subscriptions/listen", filter(one.clone())).await;
    let answer = refused.answer(2).await;
    assert_eq!(answer["error"]["data"]["setting"], "listen.max", "{answer}");
    let mut teller = teller(&daemon).await;
    touch(&mut teller, "old", README).await;
    stream.next(UPDATED).await;
    drop(stream);
    let fake = daemon.fake("old");
    eventually!(SOON, fake.ledger("resources/unsubscribe").len() == 1);
    let again = over_http(&host, 1, one).await.next(ACKNOWLEDGED).await;
    assert!(again["params"]["notifications"]["resourceSubscriptions"].is_array());
}

/// A stream is a stream: JSON alone cannot carry it. What is wrong with a request has its status.
#[tokio::test]
async fn h12_what_cannot_be_a_stream() {
    let daemon = both("");
    let host = http_host(&daemon, MODERN).await;
    let message = host.message(1, "subscriptions/listen", filter(everything()));
    let refused = host.post(&message).header("accept", "application/json").send().await;
    assert_eq!(refused.status, 406);
    let bare = host.start(2, "subscriptions/listen", json!({})).await;
    assert_eq!(bare.status, 400);
    // T-15: task ids without the extension.
    let mut tasks =
        host.start(3, "subscriptions/listen", filter(json!({ "taskIds": ["t"] }))).await;
    assert_eq!(tasks.status, 400);
    let answer = tasks.answer(3).await;
    assert_eq!(answer["error"]["code"], -32021);
    let needed = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    assert_eq!(answer["error"]["data"]["requiredCapabilities"], needed);
}

/// H-36: a silent stream shows signs of life.
#[tokio::test]
async fn h36_comments_on_a_silent_stream() {
    let daemon = both("transport.sse_keep_alive = \"50ms\"");
    let host = http_host(&daemon, MODERN).await;
    let mut stream = host.start(1, "subscriptions/listen", filter(everything())).await;
    assert_eq!(stream.next_event().await.unwrap().json()["method"], ACKNOWLEDGED);
    for _ in 0..2 {
        assert!(stream.next_block().await.unwrap().is_comment());
    }
}

/// H-39: the daemon stops. A host over HTTP is told in both forms, and the stream ends properly.
#[tokio::test]
async fn h39_both_forms_of_our_ending() {
    let mut daemon = both("");
    let host = http_host(&daemon, MODERN).await;
    let mut stream = host.start("l", "subscriptions/listen", filter(everything())).await;
    stream.expect_notification(ACKNOWLEDGED).await;
    daemon.stop();
    let cancelled = stream.next_frame().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], "l");
    assert!(is_of(&cancelled, &json!("l")), "{cancelled}");
    let result = stream.next_frame().await.unwrap();
    assert_eq!((&result["id"], &result["result"]["resultType"]), (&json!("l"), &json!("complete")));
    assert_eq!(result["result"]["_meta"][SUBSCRIPTION], "l");
    stream.expect_end().await;
}

/// F38: the list is another one before the host is told; fifty notices are few; one without a change,
/// or with one that this host does not see, is none.
#[tokio::test]
async fn f38_changes_on_a_stream() {
    let daemon = both("host.list_changed_delay = \"150ms\"");
    let mut told = host(&daemon, MODERN).await;
    let mut teller = teller(&daemon).await;
    told.list_tools().await;
    over_stdio(&mut told, "l", everything()).await.next(ACKNOWLEDGED).await;
    teller.call("old_set_tools", json!({ "add": ["one_more"], "notify": 50, "ms": 10 })).await;
    told.expect_notification(TOOLS).await;
    let tools = told.list_tools().await;
    assert!(tools.iter().any(|tool| tool["name"] == "old_one_more"), "{tools:?}");
    told.gather(Duration::from_millis(400)).await;
    assert!(told.inbox.len() <= 1, "{:?}", told.inbox);
    told.inbox.clear();
    teller.call("old_set_tools", json!({ "notify": 5 })).await;
    told.expect_silence(400).await;
}

/// F38: in core mode a host does not see what changed.
#[tokio::test]
async fn f38_a_change_that_this_host_does_not_see() {
    let daemon = start(|daemon| vec![daemon.fake("up").line("scope = \"global\"")], "");
    let mut told = host(&daemon, MODERN).await;
    let mut teller = teller(&daemon).await;
    told.list_tools().await;
    over_stdio(&mut told, "l", everything()).await.next(ACKNOWLEDGED).await;
    call(&mut teller, "up", "set_tools", json!({ "add": ["fresh"] })).await;
    told.expect_silence(300).await;
}

/// F38: what changed between the list that a host has and its stream is told at once; so is a server
/// that a reload brings, also where nobody but a stream waits for it.
#[tokio::test]
async fn f38_nothing_is_missed_before_the_stream() {
    let daemon = both("");
    let mut told = host(&daemon, MODERN).await;
    let mut teller = teller(&daemon).await;
    told.list_tools().await;
    teller.call("old_set_tools", json!({ "add": ["fresh"] })).await;
    eventually!(SOON, {
        let tools = teller.list_tools().await;
        tools.iter().any(|tool| tool["name"] == "old_fresh")
    });
    let mut stream = over_stdio(&mut told, "l", everything()).await;
    stream.next(ACKNOWLEDGED).await;
    stream.next(TOOLS).await;
    drop((teller, told));

    let http = http_host(&daemon, MODERN).await;
    let mut stream = over_http(&http, 901, everything()).await;
    stream.next(ACKNOWLEDGED).await;
    let more = [daemon.fake("brought").line("scope = \"global\"")];
    daemon.write_config(&more, &crate::setup::quick(PASS));
    daemon.cli(&["reload"]).await.expect_code(0);
    stream.next(TOOLS).await;
    eventually!(SOON, {
        let tools = http.list_tools().await;
        tools.iter().any(|tool| tool["name"] == "brought_echo")
    });
}

/// P-12, U-43: an upstream that dies, or ends its own stream, is listened to again, and what may have
/// happened meanwhile counts as an update.
#[tokio::test]
async fn p12_a_stream_outlives_its_servers() {
    let daemon = both("upstream.listen_reopen_delay = \"50ms\"");
    let mut told = host(&daemon, MODERN).await;
    let mut teller = teller(&daemon).await;
    let uris = ["old", "new"].map(|up| format!("mcpx://{up}/{README}"));
    let asked = json!({ "resourceSubscriptions": uris });
    let mut stream = over_stdio(&mut told, 1, asked).await;
    stream.next(ACKNOWLEDGED).await;
    for (up, uri) in ["old", "new"].into_iter().zip(&uris) {
        teller.call(&format!("{up}_die"), json!({})).await;
        assert_eq!(stream.next(UPDATED).await["params"]["uri"], *uri);
        touch(&mut teller, up, README).await;
        stream.next(UPDATED).await;
    }
    teller.call("new_end_listens", json!({})).await;
    assert_eq!(stream.next(UPDATED).await["params"]["uri"], uris[1]);
}

/// F47: the daemon goes and comes back: the host's streams go on under their own ids, and what may
/// have changed meanwhile is told.
#[tokio::test]
async fn f47_streams_survive_the_daemon() {
    let mut daemon = both("shim.autostart = false");
    let mut told = host(&daemon, MODERN).await;
    told.list_tools().await;
    let uri = format!("mcpx://old/{README}");
    let asked = json!({ "toolsListChanged": true, "resourceSubscriptions": [uri] });
    over_stdio(&mut told, "l", asked).await.next(ACKNOWLEDGED).await;
    daemon.restart();
    let update = told.expect_notification(UPDATED).await;
    assert!(is_of(&update, &json!("l")) && update["params"]["uri"] == uri, "{update}");
    told.expect_silence(100).await;
    let mut teller = teller(&daemon).await;
    touch(&mut teller, "old", README).await;
    assert!(is_of(&told.expect_notification(UPDATED).await, &json!("l")));

    // A list that is another one afterwards; and not gracefully this time.
    daemon.kill9();
    let more = [daemon.fake("old").args("--offers --tools echo").line("scope = \"global\"")];
    daemon.write_config(&more, &crate::setup::quick(&format!("{PASS}\nshim.autostart = false")));
    daemon.launch();
    told.expect_notification(UPDATED).await;
    assert!(is_of(&told.expect_notification(TOOLS).await, &json!("l")));
    told.expect_no_response("l", 100).await;
}

/// T-15: the status of tasks, of those that the host can have; one that has got somewhere before it
/// was listened to is told at once.
#[tokio::test]
async fn t15_the_status_of_tasks() {
    let daemon = start(
        |daemon| vec![daemon.fake("up").args("--tasks --era legacy").line("scope = \"global\"")],
        &format!("{PASS}\ntasks.eager = \"0s\""),
    );
    let extension = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut http = http_host(&daemon, MODERN).await;
    http.capabilities = extension.clone();
    let mut stdio = host(&daemon, MODERN).await;
    stdio.capabilities = extension;
    let begun = http.call("up_task_work", json!({ "ms": 1500, "text": "s" })).await;
    let id = begun["result"]["taskId"].clone();
    let asked = json!({ "taskIds": [id, "unknown"] });
    for stream in [
        over_http(&http, 901, asked.clone()).await,
        over_stdio(&mut stdio, 902, asked.clone()).await,
        over_http(&http, 903, asked).await,
    ] {
        let mut stream = stream;
        let agreed = stream.next(ACKNOWLEDGED).await;
        assert_eq!(agreed["params"]["notifications"], json!({ "taskIds": [id] }));
        let told = loop {
            let told = stream.next("notifications/tasks").await["params"].clone();
            assert_eq!(told["taskId"], id);
            if told["status"] != "working" {
                break told;
            }
        };
        assert_eq!(told["status"], "completed", "{told}");
        assert_eq!(told["result"]["content"][0]["text"], "done s", "{told}");
    }
    let mut late = over_http(&http, 904, json!({ "taskIds": [id] })).await;
    late.next(ACKNOWLEDGED).await;
    assert_eq!(late.next("notifications/tasks").await["params"]["status"], "completed");
}
