//! The shim against scripts, in virtual time: F47 and the kind of fault it stands for, H-34.

mod random;
mod streams;

use serde_json::Value;

use super::*;

fn raw(text: &str) -> RawJson {
    RawJson::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

struct Rig {
    shim: ShimSession,
    start: Instant,
    now: Instant,
    host: Vec<Bytes>,
    daemon: Vec<Bytes>,
    notices: Vec<String>,
    closes: usize,
}

impl Rig {
    fn new() -> Self {
        let config = ShimConfig {
            grace: Duration::from_secs(30),
            hold_frames: 4,
            hold_bytes: 1000,
            info: raw(r#"{"name":"mcpx","version":"1"}"#),
            how_to_start: "Run `mcpx daemon`.".into(),
        };
        let start = crate::protocol::session::some_instant();
        Self {
            shim: ShimSession::new(config),
            start,
            now: start,
            host: Vec::new(),
            daemon: Vec::new(),
            notices: Vec::new(),
            closes: 0,
        }
    }

    /// Attached, with the handshake of a legacy host behind it.
    fn connected() -> Self {
        let mut rig = Self::new();
        rig.attach();
        rig.host(INITIALIZE);
        rig.daemon(INITIALIZED);
        rig.host(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        rig.daemon_got();
        rig.host_got();
        rig
    }

    fn drain(&mut self) {
        while let Some(output) = self.shim.poll_output() {
            match output {
                ShimOutput::ToHost(frame) => self.host.push(frame),
                ShimOutput::ToDaemon(frame) => self.daemon.push(frame),
                ShimOutput::CloseOurSide => self.closes += 1,
                ShimOutput::Notice(notice) => self.notices.push(notice.text),
            }
        }
    }

    fn host(&mut self, frame: &str) {
        self.shim.handle_host_frame(self.now, Bytes::copy_from_slice(frame.as_bytes()));
        self.drain();
    }

    fn daemon(&mut self, frame: &str) {
        self.shim.handle_daemon_frame(self.now, Bytes::copy_from_slice(frame.as_bytes()));
        self.drain();
    }

    fn attach(&mut self) {
        self.shim.handle_attached(self.now);
        self.drain();
    }

    fn lose(&mut self) {
        self.shim.handle_lost(self.now);
        self.drain();
    }

    fn at(&mut self, secs: u64) {
        let target = self.start + Duration::from_secs(secs);
        while let Some(due) = self.shim.poll_deadline().filter(|due| *due <= target) {
            self.now = due.max(self.now);
            self.shim.handle_timeout(self.now);
            self.drain();
        }
        self.now = target;
    }

    fn daemon_got(&mut self) -> Vec<String> {
        let text = |frame: Bytes| String::from_utf8(frame.to_vec()).unwrap();
        std::mem::take(&mut self.daemon).into_iter().map(text).collect()
    }

    fn host_got(&mut self) -> Vec<Value> {
        let value = |frame: Bytes| serde_json::from_slice(&frame).unwrap();
        std::mem::take(&mut self.host).into_iter().map(value).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // Whatever is open: after the end of all waiting nobody is left without an answer.
            self.lose();
            self.at(100_000);
            assert_eq!(self.shim.open_requests(), 0);
            assert_eq!(self.shim.poll_deadline(), None);
        }
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}"#;
const INITIALIZED: &str =
    r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;

fn call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","n":1e2}}}}"#
    )
}

fn modern_call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

fn asks(id: &str, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

fn done(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#)
}

/// Frames pass untouched, both ways, also those that are nonsense.
#[test]
fn frames_pass_untouched() {
    let mut rig = Rig::connected();
    for frame in [&call(" 7 "), "not json", "{\"jsonrpc\": \"2.0\" , \"method\":\"x\"}", "[]", "42"]
    {
        rig.host(frame);
        assert_eq!(rig.daemon_got(), [frame]);
    }
    let answer = r#"{"id":7,"result":{"n":1e2} ,"jsonrpc":"2.0"}"#;
    rig.daemon(answer);
    assert_eq!(std::mem::take(&mut rig.host), [answer.as_bytes()]);
    let refusal = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#;
    rig.daemon(refusal);
    rig.daemon(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    assert_eq!(rig.host_got().len(), 2);
}

/// F47: a restart while nothing is open cannot be seen by the host; the handshake is repeated.
#[test]
fn f47_an_idle_restart_is_invisible() {
    let mut rig = Rig::connected();
    rig.lose();
    rig.at(3);
    rig.attach();
    let sent = rig.daemon_got();
    assert_eq!(sent[0], INITIALIZE.replace("\"id\":0", "\"id\":\"mcpx-shim-1\""));
    assert!(sent[1].contains("notifications/initialized"));
    assert_eq!(sent.len(), 2);
    rig.daemon(&INITIALIZED.replace("\"id\":0", "\"id\":\"mcpx-shim-1\""));
    assert!(rig.host_got().is_empty() && rig.notices.is_empty());
    // And a second time, under another id.
    rig.lose();
    rig.attach();
    assert!(rig.daemon_got()[0].contains("mcpx-shim-2"));
    rig.daemon(&INITIALIZED.replace("\"id\":0", "\"id\":\"mcpx-shim-2\""));
    rig.host(&call("1"));
    rig.daemon(&done("1"));
    assert_eq!(rig.host_got().len(), 1);
}

/// F47: what a legacy host asked for the time to come is asked of the next daemon as well.
#[test]
fn f47_log_level_and_subscriptions_are_asked_for_again() {
    let mut rig = Rig::connected();
    let ask = |id: u8, method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    };
    let agreed = |id: u8| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    let refused = |id: u8| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no"}}}}"#)
    };
    for (id, method, params, good) in [
        (1, "logging/setLevel", r#"{"level":"info"}"#, true),
        (2, "logging/setLevel", r#"{"level":"loud"}"#, false),
        (3, "resources/subscribe", r#"{"uri":"a://1"}"#, true),
        (4, "resources/subscribe", r#"{"uri":"a://2"}"#, true),
        (5, "resources/subscribe", r#"{"uri":"a://3"}"#, false),
        (6, "resources/unsubscribe", r#"{"uri":"a://1"}"#, true),
    ] {
        rig.host(&ask(id, method, params));
        rig.daemon(&if good { agreed(id) } else { refused(id) });
    }
    // One that is in flight is asked again itself; the host gets its answer.
    rig.host(&ask(7, "resources/subscribe", r#"{"uri":"a://4"}"#));
    assert_eq!((rig.host_got().len(), rig.daemon_got().len()), (6, 7));
    rig.lose();
    assert!(rig.host_got().is_empty());
    rig.attach();
    let sent = rig.daemon_got();
    let again = r#""_meta":{"dev.mcpx/again":true}"#;
    assert_eq!(sent.len(), 5, "{sent:?}");
    assert!(sent[2].contains(r#"{"level":"info","#) && sent[2].contains(again), "{}", sent[2]);
    assert!(sent[3].contains(r#"{"uri":"a://2","#) && sent[3].contains(again), "{}", sent[3]);
    assert_eq!(sent[4], ask(7, "resources/subscribe", r#"{"uri":"a://4"}"#));
    for number in [1, 2] {
        rig.daemon(&format!(
            r#"{{"jsonrpc":"2.0","id":"mcpx-shim-again-{number}","result":{{}}}}"#
        ));
    }
    assert!(rig.host_got().is_empty());
    rig.daemon(&agreed(7));
    assert_eq!(rig.host_got().len(), 1);
    rig.lose();
    rig.attach();
    assert_eq!(rig.daemon_got().len(), 5);
}

/// F47, F23: a call in flight is told at once that its outcome is unknown, and is never sent again.
#[test]
fn f47_calls_in_flight_are_told_outcome_unknown() {
    let mut rig = Rig::connected();
    rig.host(&call("1"));
    rig.host(&call("\"1\""));
    rig.host(&asks("2", "resources/read"));
    rig.daemon_got();
    rig.lose();
    let told = rig.host_got();
    assert_eq!(told.len(), 3);
    for (answer, id) in told[..2].iter().zip([serde_json::json!(1), serde_json::json!("1")]) {
        assert_eq!(answer["id"], id);
        let result = &answer["result"];
        assert_eq!(result["isError"], true);
        assert_eq!(result["_meta"]["dev.mcpx/reason"], "outcome_unknown");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("outcome unknown") && text.contains("check before"), "{text}");
        assert!(result.get("resultType").is_none());
    }
    assert_eq!(told[2]["error"]["code"], -32603);
    assert_eq!(told[2]["error"]["data"]["reason"], "outcome_unknown");
    rig.attach();
    assert!(!rig.daemon_got().iter().any(|frame| frame.contains("tools/call")));
    // A late answer, from wherever, goes nowhere.
    rig.daemon(&done("1"));
    assert!(rig.host_got().is_empty());
}

/// H-17: a modern request is answered in the modern shape, on the same connection.
#[test]
fn h17_modern_requests_get_modern_answers() {
    let mut rig = Rig::new();
    rig.attach();
    rig.host(&modern_call("1"));
    rig.lose();
    let told = rig.host_got();
    let result = &told[0]["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["isError"], true);
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "mcpx");
    assert_eq!(result["_meta"]["dev.mcpx/reason"], "outcome_unknown");
    // An argument that merely quotes the key does not make a request modern.
    rig.attach();
    rig.host(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"q":"io.modelcontextprotocol/protocolVersion"}}}"#,
    );
    rig.lose();
    assert!(rig.host_got()[0]["result"].get("resultType").is_none());
}

/// Requests without side effects wait and are asked again, in their order, after the handshake.
#[test]
fn f47_queries_in_flight_are_asked_again() {
    let mut rig = Rig::connected();
    for (id, method) in
        [("5", "tools/list"), ("3", "server/discover"), ("4", "subscriptions/listen")]
    {
        rig.host(&asks(id, method));
    }
    rig.daemon_got();
    rig.lose();
    assert!(rig.host_got().is_empty());
    rig.attach();
    let sent = rig.daemon_got();
    assert_eq!(sent.len(), 5);
    assert_eq!(
        sent[2..],
        [asks("5", "tools/list"), asks("3", "server/discover"), asks("4", "subscriptions/listen")]
    );
    rig.daemon(r#"{"jsonrpc":"2.0","id":5,"result":{"tools":[]}}"#);
    assert_eq!(rig.host_got()[0]["id"], 5);
}

/// An unanswered `initialize` is asked again as the host wrote it, and not repeated besides.
#[test]
fn f47_lost_during_the_handshake() {
    let mut rig = Rig::new();
    rig.attach();
    rig.host(INITIALIZE);
    rig.daemon_got();
    rig.lose();
    rig.attach();
    assert_eq!(rig.daemon_got(), [INITIALIZE]);
    rig.daemon(INITIALIZED);
    assert_eq!(rig.host_got()[0]["id"], 0);
}

/// F47: calls written in the gap wait and succeed; the grace is each one's own.
#[test]
fn f47_calls_in_the_gap_wait() {
    let mut rig = Rig::connected();
    rig.lose();
    rig.host(&call("1"));
    rig.at(29);
    rig.host(&call("2"));
    rig.attach();
    assert_eq!(rig.daemon_got()[2..], [call("1"), call("2")]);
    assert!(rig.host_got().is_empty());
    rig.daemon(&done("2"));
    rig.daemon(&done("1"));
    assert_eq!(rig.host_got().len(), 2);
}

/// F47: absent for 60 s: told how to start it; later calls work again.
#[test]
fn f47_a_long_absence_is_told_and_survived() {
    let mut rig = Rig::connected();
    rig.lose();
    rig.host(&call("1"));
    rig.host(&asks("2", "prompts/list"));
    rig.host(&modern_call("3"));
    rig.at(29);
    assert!(rig.host_got().is_empty());
    rig.at(60);
    let told = rig.host_got();
    assert_eq!(told.len(), 3);
    let text = told[0]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("mcpx daemon`") && text.contains("30s") && text.contains("shim.grace"));
    assert_eq!(told[0]["result"]["_meta"]["dev.mcpx/reason"], "unavailable");
    assert_eq!(told[1]["error"]["data"]["reason"], "unavailable");
    assert_eq!(told[1]["error"]["data"]["setting"], "shim.grace");
    assert_eq!(told[2]["result"]["resultType"], "complete");
    rig.attach();
    assert_eq!(rig.daemon_got().len(), 2);
    rig.host(&call("4"));
    rig.daemon(&done("4"));
    assert_eq!(rig.host_got().len(), 1);
}

/// The host is faster than the daemon's start: all of it waits, in order, without a repeat.
#[test]
fn frames_before_the_first_daemon_wait() {
    let mut rig = Rig::new();
    rig.host(INITIALIZE);
    rig.host(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    rig.host(&asks("1", "tools/list"));
    rig.attach();
    let sent = rig.daemon_got();
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0], INITIALIZE);
    // Both are known for the next time.
    rig.daemon(INITIALIZED);
    rig.lose();
    rig.attach();
    let sent = rig.daemon_got();
    assert!(sent[0].contains("mcpx-shim-1") && sent[1].contains("initialized"));
}

/// A later `initialize` replaces the first; one that was refused is not repeated.
#[test]
fn the_newest_handshake_counts() {
    let mut rig = Rig::connected();
    let newer = INITIALIZE.replace("2025-06-18", "2024-11-05").replace("\"id\":0", "\"id\":9");
    rig.host(&newer);
    rig.daemon(r#"{"jsonrpc":"2.0","id":9,"result":{"protocolVersion":"2024-11-05"}}"#);
    rig.daemon_got();
    rig.lose();
    rig.attach();
    let sent = rig.daemon_got();
    assert_eq!(sent.len(), 1, "no `initialized` was sent for this one");
    assert!(sent[0].contains("2024-11-05") && sent[0].contains("mcpx-shim-1"));
    rig.host(&newer);
    rig.daemon(r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"no"}}"#);
    rig.daemon_got();
    rig.lose();
    rig.attach();
    assert!(rig.daemon_got().is_empty());
}

/// A daemon that answers the repeated handshake otherwise is spoken of, not hidden.
#[test]
fn a_handshake_that_comes_out_otherwise_is_noticed() {
    for answer in [
        r#""result":{"protocolVersion":"2024-11-05"}"#,
        r#""error":{"code":-32603,"message":"no"}"#,
    ] {
        let mut rig = Rig::connected();
        rig.lose();
        rig.attach();
        rig.daemon(&format!(r#"{{"jsonrpc":"2.0","id":"mcpx-shim-1",{answer}}}"#));
        assert!(rig.host_got().is_empty());
        assert!(rig.notices[0].contains("2025-06-18"), "{:?}", rig.notices);
    }
}

/// F36: cancelled requests are forgotten, in flight and waiting; `initialize` cannot be cancelled.
#[test]
fn f36_cancels() {
    let cancel = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    let mut rig = Rig::connected();
    rig.host(&call("1"));
    rig.host(&cancel("\"1\""));
    rig.host(&cancel("1"));
    assert_eq!(rig.daemon_got().len(), 3);
    rig.lose();
    assert!(rig.host_got().is_empty());
    rig.host(&call("2"));
    rig.host(&call("3"));
    rig.host(&cancel("2"));
    rig.attach();
    assert_eq!(rig.daemon_got()[2..], [call("3")]);
    let mut rig = Rig::new();
    rig.attach();
    rig.host(INITIALIZE);
    rig.host(&cancel("0"));
    rig.daemon(INITIALIZED);
    assert_eq!(rig.host_got().len(), 1);
    // Also where both came before the first daemon was there.
    let mut rig = Rig::new();
    rig.host(INITIALIZE);
    rig.host(&cancel("0"));
    rig.attach();
    assert_eq!(rig.daemon_got(), [INITIALIZE]);
}

/// A ping is answered by whoever is there.
#[test]
fn f35_pings_are_answered_while_away() {
    let mut rig = Rig::connected();
    rig.host(&asks("1", "ping"));
    rig.daemon_got();
    rig.lose();
    rig.host(&asks("\"p\"", "ping"));
    let told = rig.host_got();
    assert_eq!(
        told,
        [
            serde_json::json!({"jsonrpc":"2.0","id":1,"result":{}}),
            serde_json::json!({"jsonrpc":"2.0","id":"p","result":{}}),
        ]
    );
    rig.attach();
    assert_eq!(rig.daemon_got().len(), 2);
}

/// What waits is bounded in number and bytes, each by its setting.
#[test]
fn holding_is_bounded() {
    let mut rig = Rig::new();
    for id in 0..5 {
        rig.host(&call(&id.to_string()));
    }
    let told = rig.host_got();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["id"], 4);
    let text = told[0]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("shim.hold_frames") && text.contains('4'), "{text}");
    assert_eq!(told[0]["result"]["_meta"]["dev.mcpx/reason"], "busy");
    let mut rig = Rig::new();
    rig.host(&asks("1", &"x".repeat(1000)));
    assert_eq!(rig.host_got()[0]["error"]["data"]["setting"], "shim.hold_bytes");
}

/// F11: batches are tracked element by element, and their parts wait one by one.
#[test]
fn f11_batches() {
    let mut rig = Rig::connected();
    let batch = format!("[{},{},{}]", call("1"), asks("2", "tools/list"), asks("3", "ping"));
    rig.host(&batch);
    assert_eq!(rig.daemon_got(), [batch.as_str()]);
    rig.daemon(&format!("[{}]", done("3")));
    rig.lose();
    let told = rig.host_got();
    assert_eq!(told.len(), 2);
    assert_eq!(told[1]["result"]["_meta"]["dev.mcpx/reason"], "outcome_unknown");
    rig.host(&format!("[{}]", call("4")));
    rig.attach();
    assert_eq!(rig.daemon_got()[2..], [asks("2", "tools/list"), call("4")]);
    rig.daemon(&format!("[{},{}]", done("2"), done("4")));
    rig.daemon(&format!("[{}]", done("4")));
    assert_eq!(std::mem::take(&mut rig.host).len(), 1);
}

/// An id used twice at once: the daemon refuses the second, and both answers pass.
#[test]
fn the_same_id_twice() {
    let mut rig = Rig::connected();
    rig.host(&call("1"));
    rig.host(&call("1"));
    rig.daemon(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"twice"}}"#);
    rig.daemon(&done("1"));
    rig.daemon(&done("1"));
    assert_eq!(rig.host_got().len(), 2);
}

/// Requests whose frame was never begun to be written have surely not been carried out (F23).
#[test]
fn f23_unwritten_calls_are_sent_again() {
    let mut rig = Rig::connected();
    rig.host(&call("1"));
    rig.host(&call("2"));
    rig.daemon_got();
    // The handshake was frames 1 and 2 of this link.
    rig.shim.handle_lost_after(rig.now, 3);
    rig.drain();
    let told = rig.host_got();
    assert_eq!((told.len(), &told[0]["id"]), (1, &serde_json::json!(1)));
    rig.attach();
    assert_eq!(rig.daemon_got()[2..], [call("2")]);
    // Ordinals begin anew with each link.
    rig.shim.handle_lost_after(rig.now, 3);
    rig.drain();
    assert_eq!(rig.host_got()[0]["id"], 2);
}

/// Questions of a daemon that is gone are called off, and their answers reach nobody.
#[test]
fn questions_of_a_lost_daemon() {
    let mut rig = Rig::connected();
    let ask = asks("1", "elicitation/create");
    rig.daemon(&ask);
    rig.daemon(&asks("2", "ping"));
    rig.host(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    assert_eq!(rig.daemon_got().len(), 1);
    rig.host_got();
    rig.lose();
    let told = rig.host_got();
    assert_eq!(told[0]["method"], "notifications/cancelled");
    assert_eq!((told.len(), &told[0]["params"]["requestId"]), (1, &serde_json::json!(1)));
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}"#;
    rig.host(answer);
    rig.attach();
    rig.host(answer);
    assert_eq!(rig.daemon_got().len(), 2);
}

/// `#view` is remembered and never reaches the host; other control lines are passed over.
#[test]
fn control_lines() {
    let mut rig = Rig::connected();
    assert_eq!(rig.shim.view(), None);
    rig.daemon("#view abc123\r");
    rig.daemon("#later something");
    assert_eq!(rig.shim.view(), Some("abc123"));
    rig.lose();
    assert_eq!(rig.shim.view(), Some("abc123"));
    assert!(rig.host_got().is_empty());
}

/// A deliberate end: nothing more goes to the old daemon, which answers what it has; what the host
/// says meanwhile waits, and nothing is left unknown.
#[test]
fn h34_a_drained_daemon_leaves_nothing_unknown() {
    let mut rig = Rig::connected();
    rig.host(&call("1"));
    rig.host(&asks("2", "tools/list"));
    rig.daemon_got();
    rig.daemon("#drain");
    rig.daemon("#drain\r");
    assert_eq!(rig.closes, 1);
    rig.host(&call("3"));
    rig.host(&asks("4", "ping"));
    assert!(rig.daemon_got().is_empty());
    rig.daemon(&done("1"));
    rig.daemon(r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#);
    let ids: Vec<_> = rig.host_got().iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [4, 1, 2]);
    rig.lose();
    assert!(rig.host_got().is_empty());
    rig.attach();
    assert_eq!(rig.daemon_got()[2..], [call("3")]);
    rig.daemon("#drain");
    assert_eq!(rig.closes, 2);
}

/// What a draining daemon still has when it closes is unknown; what it was never sent is not. A call
/// that its host gives up during the drain is forgotten.
#[test]
fn h34_a_drain_that_is_cut_short() {
    let mut rig = Rig::connected();
    rig.host(&call("1"));
    rig.host(&call("2"));
    rig.host(&call("3"));
    rig.daemon("#drain");
    rig.host(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    rig.daemon(&done("1"));
    assert!(rig.host_got().is_empty());
    rig.daemon_got();
    rig.shim.handle_lost_after(rig.now, 4);
    rig.drain();
    let told = rig.host_got();
    assert_eq!((told.len(), &told[0]["id"]), (1, &serde_json::json!(2)));
    assert_eq!(told[0]["result"]["_meta"]["dev.mcpx/reason"], "outcome_unknown");
    rig.attach();
    assert_eq!(rig.daemon_got()[2..], [call("3")]);
}

/// A daemon that cannot start is no reason to wait: all that waits is told why, and later calls work.
#[test]
fn f47_an_unreachable_daemon_is_told_at_once() {
    let mut rig = Rig::new();
    rig.host(INITIALIZE);
    rig.host(&call("1"));
    rig.shim.handle_unreachable("the daemon ended at once: c.toml:1:1: unknown key");
    rig.drain();
    let told = rig.host_got();
    let text = told[0]["error"]["message"].as_str().unwrap();
    assert!(text.contains("c.toml:1:1") && text.contains("mcpx daemon`"), "{text}");
    assert_eq!(told[1]["result"]["_meta"]["dev.mcpx/reason"], "unavailable");
    assert_eq!(rig.shim.poll_deadline(), None);
    rig.host(INITIALIZE);
    rig.attach();
    assert_eq!(rig.daemon_got(), [INITIALIZE]);
    rig.daemon(INITIALIZED);
    assert_eq!(rig.host_got().len(), 1);
}

/// F08: lines beyond the limit, of either side; who waits for an answer gets one.
#[test]
fn f08_lines_beyond_the_limit() {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let mut rig = Rig::connected();
    rig.shim.handle_host_oversized(
        &bytes(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"x":"#),
        2000,
        1000,
    );
    // Half an answer answers nobody.
    rig.shim.handle_host_oversized(&bytes(r#"{"id":1,"result":{"x":"#), 2000, 1000);
    rig.drain();
    let told = rig.host_got();
    assert_eq!((told.len(), &told[0]["id"]), (1, &serde_json::json!("a")));
    assert_eq!(told[0]["error"]["code"], -32600);
    assert_eq!(rig.notices.len(), 2);

    rig.host(&call("7"));
    let kept = bytes(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"te"#);
    rig.shim.handle_daemon_oversized(&kept, 2000, 1000);
    rig.shim.handle_daemon_oversized(&kept, 2000, 1000);
    rig.drain();
    let told = rig.host_got();
    assert_eq!((told.len(), &told[0]["id"]), (1, &serde_json::json!(7)));
    assert_eq!(told[0]["result"]["_meta"]["dev.mcpx/reason"], "too_large");
    assert_eq!(rig.notices.len(), 3);
}
