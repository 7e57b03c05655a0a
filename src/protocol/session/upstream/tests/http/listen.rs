//! Listening over HTTP: the answer to the POST is the stream.

use super::*;
use crate::protocol::session::LogLevel;

const ALL: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true}}"#;

fn listening(uris: &[&str]) -> Rig {
    let mut rig = Rig::new(over_http(Preference::ForceDiscover));
    let result = format!(
        r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{ALL}}}"#
    );
    rig.http_result(&rig.last_of("server/discover"), &result);
    rig.exchanges.clear();
    rig.events.clear();
    rig.watches(uris);
    rig
}

impl Rig {
    fn watches(&mut self, uris: &[&str]) {
        self.session.watch(self.now, uris.iter().map(|uri| (*uri).to_owned()).collect());
        self.drain();
    }

    /// The stream is opened, and all that was asked for is agreed.
    fn http_agrees(&mut self, listen: &Exchange) {
        let body: Value = serde_json::from_slice(&listen.body).unwrap();
        self.head(listen.tag, 200, None, true);
        let params = serde_json::json!({
            "_meta": { "io.modelcontextprotocol/subscriptionId": body["id"] },
            "notifications": body["params"]["notifications"],
        });
        let method = "notifications/subscriptions/acknowledged";
        let ack = serde_json::json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.frame(listen.tag, &ack.to_string());
    }
}

/// U-42, U-21: a POST like any other, whose stream stays open however long it is silent; replaced by
/// opening the next and then closing it, without a word (U-31).
#[test]
fn u42_the_stream_is_a_posts_answer() {
    let mut rig = listening(&[]);
    let first = rig.last_of("subscriptions/listen");
    assert_eq!(header(&first, &METHOD), Some("subscriptions/listen"));
    assert_eq!(first.request, Some(id_of(&first)));
    rig.http_agrees(&first);
    assert_eq!(rig.session.poll_deadline(), None, "nothing is looked at while it is open");
    rig.at(10_000);
    assert!(rig.dropped.is_empty());
    rig.watches(&["a:1"]);
    let second = rig.last_of("subscriptions/listen");
    assert!(rig.dropped.is_empty(), "new first");
    rig.http_agrees(&second);
    assert_eq!(rig.dropped, [first.tag]);
    assert_eq!(rig.count_of("notifications/cancelled"), 0);
    let late =
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1"}}"#;
    rig.frame(first.tag, late);
    assert!(!rig.events.iter().any(|event| matches!(event, UpstreamEvent::Updated { .. })));
    rig.frame(second.tag, late);
    assert!(rig.events.iter().any(|event| matches!(event, UpstreamEvent::Updated { .. })));
}

/// U-43: a stream that breaks off is opened again after its rest, and a server that cannot be reached
/// meanwhile loses no connection for that.
#[test]
fn u43_a_broken_stream_is_opened_again() {
    let mut rig = listening(&[]);
    let first = rig.last_of("subscriptions/listen");
    rig.http_agrees(&first);
    rig.ends(first.tag, ExchangeEnd::Whole);
    assert_eq!(rig.count_of("subscriptions/listen"), 1);
    rig.at(1);
    assert_eq!(rig.count_of("subscriptions/listen"), 2);
    rig.fails(&rig.last_of("subscriptions/listen"), false);
    rig.at(100);
    let again = rig.last_of("subscriptions/listen");
    assert!(rig.count_of("subscriptions/listen") > 2 && rig.closes.is_empty(), "{:?}", rig.closes);
    rig.http_agrees(&again);
    assert_eq!(rig.count_of("tools/list"), 1, "what changed meanwhile");
    // A server that has none.
    let mut none = listening(&["a:1"]);
    let body = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}"#;
    let listen = none.last_of("subscriptions/listen");
    none.http_refuses(&listen, 404, &body.replace("ID", &id_of(&listen).to_string()));
    none.at(1000);
    assert_eq!(none.count_of("subscriptions/listen"), 1);
    assert!(none.events.iter().any(
        |event| matches!(event, UpstreamEvent::Watched { uri, outcome: Err(_) } if uri == "a:1")
    ));
}

/// U-40: a session that is opened anew is told again what is wanted, and how much to log.
#[test]
fn u40_a_new_session_is_told_again() {
    let mut rig = Rig::new(over_http(Preference::ForceInitialize));
    let all = r#"{"tools":{},"logging":{},"resources":{"subscribe":true}}"#;
    let opened = format!(r#""result":{{"protocolVersion":"2025-11-25","capabilities":{all}}}"#);
    rig.http_answers(&rig.last_of("initialize"), Some("s1"), &opened);
    rig.takes(&rig.last_of("notifications/initialized"));
    rig.http_refuses(&rig.last_of("GET"), 405, "");
    rig.watches(&["a:1"]);
    rig.http_result(&rig.last_of("resources/subscribe"), "{}");
    rig.log_want = Some(LogWant { level: LogLevel::Info, host: None });
    rig.call();
    rig.exchanges.retain(|exchange| name(exchange) == "tools/call");
    rig.events.clear();
    rig.http_refuses(&rig.last_of("tools/call"), 404, "");
    rig.http_answers(&rig.last_of("initialize"), Some("s2"), &opened);
    rig.takes(&rig.last_of("notifications/initialized"));
    for again in ["resources/subscribe", "logging/setLevel"] {
        assert_eq!(rig.count_of(again), 1, "{again}: {:?}", rig.names());
    }
    rig.http_result(&rig.last_of("resources/subscribe"), "{}");
    let updated = |event: &UpstreamEvent| matches!(event, UpstreamEvent::Updated { .. });
    assert_eq!(rig.events.iter().filter(|event| updated(event)).count(), 1);
    rig.http_result(&rig.last_of("tools/call"), r#"{"content":[]}"#);
}
