//! What an upstream tells by itself: F46, R-06, U-42, U-43.

use serde_json::json;

use super::*;

const ALL: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},
    "resources":{"listChanged":true,"subscribe":true}}"#;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What came of watching, in order: `uri` or `uri: why not`.
fn watched(rig: &mut Rig) -> Vec<String> {
    let taken = std::mem::take(&mut rig.events);
    let (told, rest) =
        taken.into_iter().partition(|event| matches!(event, UpstreamEvent::Watched { .. }));
    rig.events = rest;
    let text = |event| match event {
        UpstreamEvent::Watched { uri, outcome: Ok(()) } => uri,
        UpstreamEvent::Watched { uri, outcome: Err(error) } => format!("{uri}: {}", error.message),
        other => panic!("{other:?}"),
    };
    Vec::into_iter(told).map(text).collect()
}

/// Changes and updates that went up, taken out.
fn news(rig: &mut Rig) -> Vec<String> {
    let text = |event| match event {
        UpstreamEvent::Changed(kind) => Some(kind.noun().to_owned()),
        UpstreamEvent::Updated { uri } => Some(uri),
        _ => None,
    };
    std::mem::take(&mut rig.events).into_iter().filter_map(text).collect()
}

impl Rig {
    fn with(revision: &str, capabilities: &str) -> Self {
        let mut rig;
        if revision == "2026-07-28" {
            rig = Self::new(config(Preference::ForceDiscover));
            let id = rig.last_id("server/discover");
            rig.answers(
                id,
                &format!(
                    r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{capabilities}}}"#
                ),
            );
        } else {
            rig = Self::new(config(Preference::ForceInitialize));
            let id = rig.last_id("initialize");
            rig.answers(
                id,
                &format!(
                    r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"serverInfo":{{"name":"s","version":"1"}}}}"#
                ),
            );
        }
        rig.new_frames();
        rig.events.clear();
        rig
    }

    fn modern() -> Self {
        Self::with("2026-07-28", ALL)
    }

    fn watch(&mut self, uris: &[&str]) {
        self.session.watch(self.now, uris.iter().map(|uri| (*uri).to_owned()).collect());
        self.drain();
    }

    fn says_about(&mut self, stream: u64, method: &str, more: Value) {
        let mut params = more;
        params["_meta"] = json!({ SUBSCRIPTION: stream });
        self.says(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Acknowledges all that the stream was asked for.
    fn agrees(&mut self, stream: u64) {
        let asked = self.sent.iter().find(|frame| frame["id"] == stream).unwrap();
        let notifications = asked["params"]["notifications"].clone();
        self.agrees_to(stream, &notifications);
    }

    fn agrees_to(&mut self, stream: u64, notifications: &Value) {
        let more = json!({ "notifications": notifications });
        self.says_about(stream, "notifications/subscriptions/acknowledged", more);
    }

    fn asked_for(&self) -> Value {
        self.last()["params"]["notifications"].clone()
    }
}

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const UPDATED: &str = "notifications/resources/updated";

/// U-42: one stream, asked only for what was declared, and only where somebody listens.
#[test]
fn u42_one_stream_asks_for_what_was_declared() {
    let mut rig = Rig::modern();
    assert!(rig.new_frames().is_empty());
    rig.watch(&[]);
    assert_eq!(rig.new_frames(), ["subscriptions/listen"]);
    let all = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
    });
    assert_eq!(rig.asked_for(), all);
    let meta = &rig.last()["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    rig.watch(&[]);
    assert!(rig.new_frames().is_empty());

    let mut some = Rig::with("2026-07-28", r#"{"tools":{"listChanged":true},"prompts":{}}"#);
    some.watch(&["a:b"]);
    assert_eq!(some.asked_for(), json!({ "toolsListChanged": true }));
    assert_eq!(watched(&mut some), ["a:b: the server offers no subscriptions to its resources"]);
    let mut none = Rig::with("2026-07-28", r#"{"tools":{}}"#);
    none.watch(&[]);
    assert!(none.new_frames().is_empty());
}

/// U-42: another resource means another stream: new first, the old one ended when the new one is
/// agreed, what the old one says then dropped, what names no stream let through.
#[test]
fn u42_a_grown_filter_replaces_the_stream() {
    let mut rig = Rig::modern();
    rig.watch(&["a:1"]);
    let old = rig.last_id("subscriptions/listen");
    rig.agrees(old);
    assert_eq!(watched(&mut rig), ["a:1"]);
    rig.new_frames();
    rig.watch(&["a:1", "b:2"]);
    assert_eq!(rig.new_frames(), ["subscriptions/listen"]);
    assert_eq!(rig.asked_for()["resourceSubscriptions"], json!(["a:1", "b:2"]));
    let new = rig.last_id("subscriptions/listen");
    rig.says_about(old, UPDATED, json!({ "uri": "a:1" }));
    assert_eq!(news(&mut rig), ["a:1"], "nothing is missed in between");
    rig.agrees(new);
    assert_eq!(watched(&mut rig), ["b:2"]);
    assert_eq!(rig.new_frames(), ["notifications/cancelled"]);
    assert_eq!(rig.last()["params"]["requestId"], old);
    rig.says_about(old, UPDATED, json!({ "uri": "a:1" }));
    rig.says_about(old, TOOLS_CHANGED, json!({}));
    rig.answers(old, r#"{"resultType":"complete"}"#);
    rig.says_about(999, UPDATED, json!({ "uri": "a:1" }));
    assert_eq!(news(&mut rig), [] as [&str; 0]);
    rig.says_about(new, UPDATED, json!({ "uri": "b:2" }));
    rig.says(&json!({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "a:1"}}).to_string());
    rig.says_about(new, TOOLS_CHANGED, json!({}));
    assert_eq!(news(&mut rig), ["b:2", "a:1", "tools"]);
    assert_eq!(rig.new_frames(), ["tools/list"]);
    // Fewer again, and then fewer before that one was agreed.
    rig.watch(&["a:1"]);
    let third = rig.last_id("subscriptions/listen");
    rig.watch(&[]);
    let fourth = rig.last_id("subscriptions/listen");
    let cancelled = rig.sent.iter().filter(|frame| frame["params"]["requestId"] == third).count();
    assert_eq!(cancelled, 1);
    rig.agrees(fourth);
    assert_eq!(rig.last()["params"]["requestId"], new);
    assert_eq!(watched(&mut rig), [] as [&str; 0]);
    assert!(rig.notices.is_empty(), "{:?}", rig.notices);
}

/// F13: a server that writes the stream's id as a string means it all the same.
#[test]
fn f13_ids_in_another_form() {
    let mut rig = Rig::modern();
    rig.watch(&["a:1"]);
    let id = rig.last_id("subscriptions/listen");
    let note = |method: &str, more: Value| {
        let mut params = more;
        params["_meta"] = json!({ SUBSCRIPTION: id.to_string() });
        json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
    };
    let agreed = json!({ "notifications": { "resourceSubscriptions": ["a:1"] } });
    rig.says(&note("notifications/subscriptions/acknowledged", agreed));
    assert_eq!(watched(&mut rig), ["a:1"]);
    rig.says(&note(UPDATED, json!({ "uri": "a:1" })));
    assert_eq!(news(&mut rig), ["a:1"]);
}

/// U-43: what was declared and is declined is said.
#[test]
fn u43_a_declined_part_is_a_warning() {
    let mut rig = Rig::modern();
    rig.watch(&["a:1", "b:2"]);
    let id = rig.last_id("subscriptions/listen");
    rig.agrees_to(id, &json!({ "toolsListChanged": true, "resourceSubscriptions": ["b:2"] }));
    let told = watched(&mut rig);
    assert_eq!(told, ["a:1: the server declined a subscription to this resource", "b:2"]);
    assert_eq!(rig.notices.len(), 1);
    for declined in ["promptsListChanged", "resourcesListChanged", "a:1"] {
        assert!(rig.notices[0].text.contains(declined), "{}", rig.notices[0].text);
    }
    assert!(!rig.notices[0].text.contains("b:2"));
}

/// U-43: both endings that the pages know, and an error; it comes back after the rest, and what may
/// have happened meanwhile is looked up.
#[test]
fn u43_an_ended_stream_is_opened_again() {
    for ending in ["result", "error", "cancelled"] {
        let mut rig = Rig::modern();
        rig.watch(&["a:1"]);
        let id = rig.last_id("subscriptions/listen");
        rig.agrees(id);
        rig.new_frames();
        watched(&mut rig);
        match ending {
            "result" => rig.answers(id, r#"{"resultType":"complete"}"#),
            "error" => rig.refuses(id, -32000, "null"),
            _ => rig.says(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            )),
        }
        assert!(rig.new_frames().is_empty(), "{ending}");
        // What is wanted meanwhile is asked for then.
        rig.watch(&["a:1", "b:2"]);
        assert!(rig.new_frames().is_empty(), "{ending}");
        rig.at(1);
        assert_eq!(rig.new_frames(), ["subscriptions/listen"], "{ending}");
        assert_eq!(rig.asked_for()["resourceSubscriptions"], json!(["a:1", "b:2"]));
        let again = rig.last_id("subscriptions/listen");
        rig.agrees(again);
        assert_eq!(watched(&mut rig), ["b:2"]);
        assert_eq!(news(&mut rig), ["tools", "prompts", "resources", "a:1", "b:2"], "{ending}");
        let read = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
        assert_eq!(rig.new_frames(), read);
        assert!(rig.notices.is_empty(), "{ending}: {:?}", rig.notices);
    }
}

/// A server that has no streams is asked once; one that refuses is asked ever more rarely.
#[test]
fn u43_refusals() {
    let mut rig = Rig::modern();
    rig.watch(&["a:1"]);
    let id = rig.last_id("subscriptions/listen");
    rig.refuses(id, -32601, "null");
    assert_eq!(watched(&mut rig), ["a:1: no"]);
    rig.new_frames();
    rig.at(100);
    assert!(rig.new_frames().is_empty());
    assert_eq!(rig.notices.len(), 1);

    let mut busy = Rig::modern();
    busy.watch(&[]);
    let mut tries = 0;
    for second in 0..200 {
        busy.at(second);
        if busy.new_frames() == ["subscriptions/listen"] {
            tries += 1;
            let id = busy.last_id("subscriptions/listen");
            busy.refuses(id, -32603, "null");
        }
    }
    assert_eq!(tries, 9, "after 0, 1, 2, 4, 8, 16, 32, 64, 64 seconds");
    assert_eq!(busy.notices.len(), 1);
    let id = {
        busy.at(300);
        busy.last_id("subscriptions/listen")
    };
    // A server that agrees and ends it at once is no better; one that has told something is.
    busy.agrees(id);
    busy.answers(id, r#"{"resultType":"complete"}"#);
    busy.at(320);
    busy.new_frames();
    busy.at(400);
    let id = busy.last_id("subscriptions/listen");
    assert_eq!(busy.new_frames(), ["subscriptions/listen"]);
    busy.agrees(id);
    busy.says_about(id, UPDATED, json!({ "uri": "a:1" }));
    busy.answers(id, r#"{"resultType":"complete"}"#);
    busy.new_frames();
    busy.at(402);
    assert!(busy.new_frames().contains(&"subscriptions/listen".to_owned()));
}

/// A refused replacement leaves the stream before it as it was.
#[test]
fn u43_a_refused_replacement() {
    let mut rig = Rig::modern();
    rig.watch(&["a:1"]);
    let old = rig.last_id("subscriptions/listen");
    rig.agrees(old);
    rig.watch(&["a:1", "b:2"]);
    let new = rig.last_id("subscriptions/listen");
    rig.refuses(new, -32602, "null");
    assert_eq!(watched(&mut rig), ["a:1", "b:2: no"]);
    rig.says_about(old, UPDATED, json!({ "uri": "a:1" }));
    assert_eq!(news(&mut rig), ["a:1"]);
    rig.new_frames();
    rig.watch(&["a:1"]);
    assert!(rig.new_frames().is_empty(), "what is wanted is what there is");
}

/// R-06, F46: a legacy server is asked for each resource, once, and told when nobody wants it.
#[test]
fn f46_legacy_servers_are_asked_for_each_resource() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut rig = Rig::with(revision, ALL);
        rig.watch(&[]);
        assert!(rig.new_frames().is_empty());
        rig.watch(&["a:1"]);
        let first = rig.last_id("resources/subscribe");
        assert_eq!(rig.last()["params"], json!({ "uri": "a:1" }));
        rig.watch(&["a:1", "b:2"]);
        assert_eq!(rig.new_frames(), ["resources/subscribe", "resources/subscribe"]);
        let second = rig.last_id("resources/subscribe");
        rig.answers(first, "{}");
        rig.refuses(second, -32002, "null");
        assert_eq!(watched(&mut rig), ["a:1", "b:2: no"]);
        rig.says(&format!(
            r#"{{"jsonrpc":"2.0","method":"{UPDATED}","params":{{"uri":"a:1/below"}}}}"#
        ));
        assert_eq!(news(&mut rig), ["a:1/below"]);
        rig.watch(&[]);
        assert_eq!(rig.new_frames(), ["resources/unsubscribe"]);
        assert_eq!(rig.last()["params"], json!({ "uri": "a:1" }));
        // Wanted, dropped and wanted again before the server has answered.
        for uris in [&["c:3"][..], &[], &["c:3"]] {
            rig.watch(uris);
        }
        let again = rig.last_id("resources/subscribe");
        rig.answers(again - 2, "{}");
        assert_eq!(watched(&mut rig), [] as [&str; 0]);
        rig.answers(again, "{}");
        assert_eq!(watched(&mut rig), ["c:3"]);
    }
    let mut deaf = Rig::with("2025-06-18", r#"{"resources":{}}"#);
    deaf.watch(&["a:1"]);
    assert!(deaf.new_frames().is_empty());
    assert_eq!(watched(&mut deaf), ["a:1: the server offers no subscriptions to its resources"]);
}

/// P-12: what is wanted before the opening has settled is asked for then.
#[test]
fn p12_wanted_before_it_is_open() {
    let mut rig = Rig::new(config(Preference::ForceInitialize));
    rig.watch(&["a:1"]);
    let id = rig.last_id("initialize");
    rig.answers(
        id,
        &format!(r#"{{"protocolVersion":"2025-06-18","capabilities":{ALL},"serverInfo":{{}}}}"#),
    );
    assert_eq!(
        rig.new_frames(),
        ["initialize", "notifications/initialized", "resources/subscribe"]
    );
}
