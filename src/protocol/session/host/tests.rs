//! A scripted host against the session, by checklist row and field case.

use std::time::Duration;

use super::*;
use crate::protocol::session::upstream::ListKind;

mod listen;
mod notes;
mod questions;

const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"logging":{}}"#;

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned().into()).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "only a starting point; tests add to it")]
fn start() -> Instant {
    Instant::now()
}

fn config() -> HostConfig {
    HostConfig {
        info: raw(r#"{"name":"mcpx","version":"1","description":"d"}"#),
        capabilities: raw(CAPABILITIES),
        instructions: "short".to_owned(),
        max_in_flight: 3,
        max_listens: 2,
        progress_pace: ProgressPace { interval: Duration::from_millis(100), burst: 1 },
        log_rate: 100,
        max_open_questions: 4,
        over_stdio: true,
    }
}

struct Host {
    session: HostSession,
    now: Instant,
    events: Vec<HostEvent>,
    notices: Vec<Notice>,
}

impl Host {
    fn with(config: HostConfig) -> Self {
        let session = HostSession::new(Arc::new(config));
        Self { session, now: start(), events: Vec::new(), notices: Vec::new() }
    }

    fn fresh() -> Self {
        Self::with(config())
    }

    fn at(revision: &str) -> Self {
        let mut host = Self::fresh();
        host.shake(revision);
        host
    }

    fn shake(&mut self, revision: &str) -> RawJson {
        let answer = self.ask(&format!(
            r#"{{"jsonrpc":"2.0","id":"i","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"h","version":"2"}}}}}}"#
        ));
        assert_eq!(self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), [""; 0]);
        raw(&answer)
    }

    /// Says `text`; the frames that come back.
    fn say(&mut self, text: &str) -> Vec<String> {
        self.session.handle_frame(self.now, &Bytes::copy_from_slice(text.as_bytes()));
        self.drain()
    }

    /// [`Self::say`] with exactly one frame back.
    fn ask(&mut self, text: &str) -> String {
        let mut frames = self.say(text);
        assert_eq!(frames.len(), 1, "{text} -> {frames:?}");
        frames.remove(0)
    }

    fn drain(&mut self) -> Vec<String> {
        let mut frames = Vec::new();
        while let Some(output) = self.session.poll_output() {
            match output {
                HostOutput::Send { frame, .. } => {
                    let frame = frame.to_bytes();
                    serde_json::from_slice::<serde_json::Value>(&frame).expect("JSON");
                    frames.push(String::from_utf8(frame.to_vec()).unwrap());
                }
                HostOutput::Event(event) => self.events.push(event),
                HostOutput::PostDone(post) => panic!("{post:?}"),
                HostOutput::Notice(notice) => self.notices.push(notice),
            }
        }
        frames
    }

    /// Says a request that is handed up.
    fn call(&mut self, text: &str) -> HostRequest {
        let frames = self.say(text);
        assert!(frames.is_empty(), "{text} -> {frames:?}");
        match self.events.pop() {
            Some(HostEvent::Request(request)) => request,
            other => panic!("{text} -> {other:?}"),
        }
    }

    fn finish(&mut self, key: CallKey, result: &str) -> Vec<String> {
        self.session.finish(self.now, key, Ok(raw(result)));
        self.drain()
    }

    fn note(&mut self, note: HostNote) {
        self.session.host_note(self.now, note);
    }

    fn progress(&mut self, key: CallKey, text: &str) -> Vec<String> {
        self.session.progress(self.now, key, &raw(text));
        self.drain()
    }
}

fn code(frame: &str) -> i64 {
    raw(frame).member("error").unwrap().member("code").unwrap().read().unwrap()
}

fn id(frame: &str) -> Option<String> {
    raw(frame).member("id").map(|id| id.as_str().to_owned())
}

fn modern(id: &str, method: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"roots":{{}}}},"io.modelcontextprotocol/clientInfo":{{"name":"m"}}}}{more}}}}}"#
    )
}

fn plain(id: &str, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"t"}}}}"#)
}

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[test]
fn h01_h07_served_revisions_are_echoed_and_govern() {
    for revision in LEGACY {
        let mut host = Host::fresh();
        let result = host.shake(revision).member("result").unwrap();
        assert_eq!(result.member_str("protocolVersion").unwrap(), revision);
        assert_eq!(result.member_str("instructions").unwrap(), "short");
        let described = result.member("serverInfo").unwrap().member("description").is_some();
        assert_eq!(described, revision == "2025-11-25");
        let request = host.call(&plain("1", "tools/call"));
        assert_eq!(request.peer.revision.as_str(), revision);
        let opened = |event: &HostEvent| match event {
            HostEvent::Opened { label, revision, .. } => Some(format!("{label} {revision}")),
            _ => None,
        };
        assert_eq!(host.events.iter().find_map(opened).unwrap(), format!("h 2 {revision}"));
    }
}

#[test]
fn h06_h08_other_openings_get_a_counter_offer() {
    for params in [
        r#","params":{"protocolVersion":"1999-01-01"}"#,
        r#","params":{"protocolVersion":"2026-07-28"}"#,
        r#","params":{"protocolVersion":"2099-01-01"}"#,
        r#","params":{"protocolVersion":7,"capabilities":[],"clientInfo":"x"}"#,
        r#","params":{}"#,
        r#","params":[1]"#,
        r#","params":null"#,
        "",
    ] {
        let mut host = Host::fresh();
        let answer =
            host.ask(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize"{params}}}"#));
        let result = raw(&answer).member("result").unwrap();
        assert_eq!(result.member_str("protocolVersion").unwrap(), "2025-11-25", "{params}");
    }
}

#[test]
fn h02_h15_eras_mix_and_modern_peers_are_not_remembered() {
    let mut host = Host::at("2025-06-18");
    let request = host.call(&modern("1", "tools/call", r#","name":"t""#));
    assert!(request.peer.revision.is_modern());
    assert_eq!(request.peer.capabilities.as_str(), r#"{"roots":{}}"#);
    assert_eq!(request.params.as_str(), r#"{"name":"t"}"#);
    let legacy = host.call(&plain("2", "tools/call"));
    assert_eq!(legacy.peer.revision.as_str(), "2025-06-18");
    assert_eq!(legacy.peer.capabilities.as_str(), "{}");
    let answer = host.finish(request.key, r#"{"content":[]}"#).remove(0);
    assert!(answer.contains(r#""resultType":"complete""#));
    let answer = host.finish(legacy.key, r#"{"content":[],"resultType":"complete"}"#).remove(0);
    assert_eq!(answer, r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#);
}

#[test]
fn h05_h25_removed_methods_under_a_modern_envelope() {
    let mut host = Host::at("2025-11-25");
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/list"] {
        let answer = host.ask(&modern("9", method, ""));
        assert_eq!((code(&answer), id(&answer).as_deref()), (-32601, Some("9")), "{method}");
    }
    assert_eq!(host.ask(&plain("1", "ping")), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(Host::fresh().ask(&plain("1", "ping")), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[test]
fn h05_the_bare_initialized_is_taken() {
    let mut host = Host::fresh();
    assert!(host.say(r#"{"jsonrpc":"2.0","method":"initialized"}"#).is_empty());
    host.ask(&plain("1", "initialize"));
    host.note(HostNote::Changed(ListKind::Tools));
    assert!(host.drain().is_empty());
    assert_eq!(host.say(r#"{"jsonrpc":"2.0","method":"initialized"}"#).len(), 1);
}

#[test]
fn h11_h13_h14_broken_envelopes() {
    let mut host = Host::fresh();
    for (meta, expected) in [
        (r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#, -32602),
        (r#""io.modelcontextprotocol/clientCapabilities":{}"#, -32602),
        (r#""io.modelcontextprotocol/protocolVersion":"2027-01-01""#, -32022),
        (
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"loud""#,
            -32602,
        ),
    ] {
        for method in ["tools/call", "server/discover", "initialize", "x/y"] {
            let answer = host.ask(&format!(
                r#"{{"jsonrpc":"2.0","id":"e","method":"{method}","params":{{"_meta":{{{meta}}}}}}}"#
            ));
            assert_eq!((code(&answer), id(&answer).as_deref()), (expected, Some("\"e\"")));
        }
    }
    assert_eq!(host.session.in_flight(), 0);
    let answer = host.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}"#);
    assert_eq!(code(&answer), -32602);
}

#[test]
fn h19_h20_discover_on_any_connection() {
    for mut host in [Host::fresh(), Host::at("2024-11-05")] {
        for request in [modern("1", "server/discover", ""), plain("1", "server/discover")] {
            let result = raw(&host.ask(&request)).member("result").unwrap();
            assert_eq!(result.member_str("resultType").unwrap(), "complete");
            assert_eq!(result.member("ttlMs").unwrap().as_str(), "0");
            assert_eq!(result.member_str("cacheScope").unwrap(), "private");
            assert!(result.member("serverInfo").is_none());
            let meta = result.member("_meta").unwrap();
            assert!(meta.member("io.modelcontextprotocol/serverInfo").is_some());
            let versions: Vec<String> = result.member("supportedVersions").unwrap().read().unwrap();
            assert_eq!(versions.len(), 5);
        }
    }
}

#[test]
fn h26_h27_undeclared_hosts() {
    let mut host = Host::fresh();
    assert_eq!(host.call(&plain("1", "tools/list")).peer.revision.as_str(), "2024-11-05");
    let mut host = Host::fresh();
    let request = host.call(&format!("[{}]", plain("1", "tools/list")));
    assert_eq!(request.peer.revision.as_str(), "2025-03-26");
    let mut host = Host::with(HostConfig { over_stdio: false, ..config() });
    assert_eq!(host.call(&plain("1", "tools/list")).peer.revision.as_str(), "2025-03-26");
}

#[test]
fn h28_f11_batches() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"tools/list"},{"jsonrpc":"2.0","id":3,"method":"tools/call"},7]"#;
    let mut host = Host::at("2025-03-26");
    let request = host.call(batch);
    assert_eq!(request.method.as_str(), "tools/call");
    let list = match host.events.pop() {
        Some(HostEvent::Request(list)) => list,
        other => panic!("{other:?}"),
    };
    assert!(host.finish(list.key, r#"{"tools":[]}"#).is_empty());
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#;
    let answer = host.ask(cancel);
    let parts = raw(&answer).elements().unwrap();
    let ids: Vec<_> = parts.iter().map(|part| id(part.as_str())).collect();
    assert_eq!(ids, [Some("1".to_owned()), Some("null".to_owned()), Some("2".to_owned())]);
    // Only notifications: nothing to say.
    assert!(host.say(r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#).is_empty());
    // `initialize` is refused inside one, and the session lives.
    let answer = host.ask(&format!("[{}]", plain("4", "initialize")));
    assert_eq!(code(raw(&answer).elements().unwrap()[0].as_str()), -32600);
    // Requests that declare themselves modern are of a revision without batches, whatever was
    // agreed before; and so is a connection that only ever spoke like that.
    let asked = format!("[{},{}]", modern("5", "tools/list", ""), plain("6", "ping"));
    for mut host in [Host::fresh(), Host::at("2025-03-26"), Host::at("2024-11-05")] {
        let answer = host.ask(&asked);
        assert_eq!((code(&answer), id(&answer)), (-32600, None), "{answer}");
        host.call(&plain("7", "tools/list"));
    }
    let mut host = Host::fresh();
    host.ask(&format!("[{}]", plain("8", "ping")));
    host.call(&modern("9", "tools/list", ""));
    assert_eq!(code(&host.ask(&format!("[{}]", plain("10", "ping")))), -32600);
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut host = Host::at(revision);
        let answer = host.ask(batch);
        assert_eq!(code(&answer), -32600);
        assert_eq!(id(&answer).is_none(), revision == "2025-11-25", "{answer}");
        host.ask(&plain("5", "ping"));
    }
    for mut host in [Host::fresh(), Host::at("2025-03-26"), Host::at("2025-11-25")] {
        assert_eq!(code(&host.ask("[]")), -32600);
    }
}

#[test]
fn f12_f14_ids_are_echoed_as_written() {
    let mut host = Host::at("2025-11-25");
    let number = host.call(&plain("1", "tools/call"));
    let text = host.call(&plain("\"1\"", "tools/call"));
    assert!(host.finish(text.key, "{}")[0].contains(r#""id":"1","#));
    assert!(host.finish(number.key, "{}")[0].contains(r#""id":1,"#));
    for odd in ["9007199254740993", "18446744073709551615", "-1", "1.0", "1e3"] {
        let request = host.call(&plain(odd, "tools/call"));
        assert_eq!(id(&host.finish(request.key, "{}")[0]).unwrap(), odd);
    }
    for bad in ["null", "1.5", "true", "{}"] {
        let answer = host.ask(&plain(bad, "tools/call"));
        assert_eq!((code(&answer), id(&answer)), (-32600, None), "{bad}");
    }
    host.ask(&plain("7", "ping"));
    // What each schema can hold where no id could be read.
    let null = |mut host: Host| id(&host.ask(&plain("null", "ping"))).is_some();
    assert!(null(Host::fresh()) && null(Host::at("2025-06-18")));
    let mut modern_only = Host::fresh();
    modern_only.ask(&modern("1", "server/discover", ""));
    assert!(!null(modern_only));
}

/// product.md 8: the same id twice in flight.
#[test]
fn h29_duplicate_ids() {
    let mut host = Host::at("2025-06-18");
    let first = host.call(&plain("1", "tools/call"));
    let answer = host.ask(&plain("1", "tools/call"));
    assert_eq!((code(&answer), id(&answer).as_deref()), (-32600, Some("1")));
    assert_eq!(host.finish(first.key, "{}").len(), 1);
    let again = host.call(&plain("1", "tools/call"));
    assert_ne!(again.key, first.key);
}

/// product.md 8: bad JSON from a host.
#[test]
fn f06_rubbish_from_a_host() {
    let mut host = Host::at("2025-06-18");
    for rubbish in ["hello", "42", "null", "{\"a\":1}", "{\"jsonrpc\":\"2.0\",\"id\":1", "\u{7f}"] {
        let frames = host.say(rubbish);
        // What is cut off in its id has none that can be trusted.
        assert!(frames.is_empty() || rubbish.contains("id"), "{rubbish} -> {frames:?}");
    }
    assert_eq!(host.notices.len() + 1, 6);
    let answer = host.ask(r#"{"jsonrpc":"2.0","id":5,"method":"x","params":{"#);
    assert_eq!((code(&answer), id(&answer).as_deref()), (-32700, Some("5")));
    let answer = host.ask(r#"{"jsonrpc":"2.0","id":6}"#);
    assert_eq!((code(&answer), id(&answer).as_deref()), (-32600, Some("6")));
    // An answer to nothing, and a broken one, are never answered.
    for answer in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
    ] {
        assert!(host.say(answer).is_empty(), "{answer}");
    }
}

/// F14: no request with an id that can be read is left without an answer; each fault is named once.
#[test]
fn f14_members_that_stand_twice_are_refused() {
    let mut host = Host::at("2025-06-18");
    for (asked, answered) in [
        (r#"{"jsonrpc":"2.0","id":42,"method":"ping","method":"tools/list"}"#, "42"),
        (r#"{"jsonrpc":"2.0","id":40,"id":41,"method":"ping"}"#, "40"),
    ] {
        let answer = host.ask(asked);
        assert_eq!((code(&answer), id(&answer).as_deref()), (-32600, Some(answered)));
        assert!(answer.contains("stands twice: duplicate field `"), "{answer}");
    }
    assert!(host.say(r#"{"jsonrpc":"2.0","method":"x","method":"y"}"#).is_empty());
    assert_eq!(host.notices.len(), 1);
    assert!(host.say(r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#).is_empty());
    let answer = host.ask(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#);
    assert_eq!(answer.matches("must not be null").count(), 1, "{answer}");
}

#[test]
fn f08_an_oversized_request_is_answered() {
    let mut host = Host::at("2025-06-18");
    let head =
        Bytes::from_static(br#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"a":"xx"#);
    host.session.handle_oversized(host.now, &head, 5000, 4000);
    let answer = host.drain().remove(0);
    assert_eq!((code(&answer), id(&answer).as_deref()), (-32600, Some("4")));
    assert!(
        answer.contains("5000") && answer.contains("4000") && answer.contains("link.max_frame")
    );
    host.session.handle_too_large(host.now, 5000, 4000);
    assert!(host.drain().is_empty());
    assert_eq!(host.notices.len(), 2);
}

#[test]
fn f09_bad_encoding_is_mended_and_noted_once() {
    let mut host = Host::at("2025-06-18");
    for id in ["1", "2"] {
        let mut line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"a":""#)
                .into_bytes();
        line.extend_from_slice(b"\xff\"}}");
        host.session.handle_frame(host.now, &Bytes::from(line));
        assert!(host.drain().is_empty());
        let Some(HostEvent::Request(request)) = host.events.pop() else { panic!("no request") };
        assert_eq!(request.params.as_str(), "{\"a\":\"\u{fffd}\"}");
    }
    assert_eq!(host.notices.len(), 1);
}

#[test]
fn f35_early_and_repeated_handshakes() {
    let mut host = Host::fresh();
    host.ask(&plain("1", "ping"));
    let level = r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"info"}}"#;
    assert_eq!(host.ask(level), r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    let early = host.call(&plain("3", "tools/list"));
    host.shake("2025-06-18");
    host.shake("2025-03-26");
    assert_eq!(host.finish(early.key, "{}").len(), 1);
    assert_eq!(host.call(&plain("4", "tools/list")).peer.revision.as_str(), "2025-03-26");
    let bad = r#"{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"loud"}}"#;
    assert_eq!(code(&host.ask(bad)), -32602);
    let mut silent = Host::with(HostConfig { capabilities: raw("{}"), ..config() });
    assert_eq!(code(&silent.ask(level)), -32601);
}

#[test]
fn f36_cancellation() {
    let mut host = Host::at("2025-06-18");
    let slow = host.call(&plain("101", "tools/call"));
    let fast = host.call(&plain("102", "prompts/get"));
    let cancel = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    for other in ["\"101\"", "101.0", "7", "null", "{}", "\"i\""] {
        assert!(host.say(&cancel(other)).is_empty());
    }
    assert!(!host.events.iter().any(|event| matches!(event, HostEvent::Cancelled { .. })));
    assert!(host.say(&cancel("101")).is_empty());
    assert!(matches!(host.events.pop(), Some(HostEvent::Cancelled { key }) if key == slow.key));
    // No reply after it, no second event, and the other call is untouched.
    assert!(host.finish(slow.key, "{}").is_empty());
    assert!(host.say(&cancel("101")).is_empty());
    assert!(!host.events.iter().any(|event| matches!(event, HostEvent::Cancelled { .. })));
    assert_eq!(host.finish(fast.key, "{}").len(), 1);
    assert_eq!(host.session.in_flight(), 0);
}

#[test]
fn f37_progress_keeps_token_and_pace() {
    for token in ["1", "0", "\"abc\"", "\"1\""] {
        let mut host = Host::at("2025-06-18");
        let request = host.call(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":{{"progressToken":{token}}}}}}}"#
        ));
        assert!(request.wants_progress);
        assert_eq!(request.params.as_str(), r#"{"name":"t"}"#);
        let frame = host.progress(request.key, r#"{"progressToken":77,"progress":0.5,"x":1e2}"#);
        assert_eq!(
            frame,
            [format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":0.5,"x":1e2}}}}"#
            )]
        );
        // A flood: the last one goes out when its time has come.
        for value in 1..10_000 {
            assert!(host.progress(request.key, &format!(r#"{{"progress":{value}}}"#)).is_empty());
        }
        let due = host.session.poll_deadline().unwrap();
        assert_eq!(due, host.now + Duration::from_millis(100));
        host.now = due;
        host.session.handle_timeout(due);
        let frames = host.drain();
        assert_eq!(frames.len(), 1);
        assert!(frames[0].contains(r#""progress":9999"#));
        assert_eq!(host.session.poll_deadline(), None);
        // Values that do not increase, and none, are dropped.
        host.now += Duration::from_secs(1);
        for odd in [r#"{"progress":9999}"#, r#"{"progress":1}"#, "{}", r#"{"progress":"x"}"#] {
            assert!(host.progress(request.key, odd).is_empty(), "{odd}");
        }
        // What is held back goes before the answer, and nothing after it.
        assert_eq!(host.progress(request.key, r#"{"progress":10000}"#).len(), 1);
        assert!(host.progress(request.key, r#"{"progress":10001}"#).is_empty());
        let frames = host.finish(request.key, "{}");
        assert!(frames[0].contains("10001") && frames[1].contains("result"), "{frames:?}");
        assert!(host.progress(request.key, r#"{"progress":10002}"#).is_empty());
        assert_eq!(host.session.poll_deadline(), None);
    }
}

/// F37: the steps of a short call are all shown, however close; then the pace is kept, and a pause
/// earns as many again.
#[test]
fn f37_a_burst_passes_and_a_flood_does_not() {
    let pace = ProgressPace { interval: Duration::from_millis(100), burst: 4 };
    let mut host = Host::with(HostConfig { progress_pace: pace, ..config() });
    host.shake("2025-06-18");
    let request = host.call(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1}}}"#,
    );
    let mut value = 0;
    let mut sent = |host: &mut Host, many: usize| {
        let mut frames = Vec::new();
        for _ in 0..many {
            value += 1;
            frames.extend(host.progress(request.key, &format!(r#"{{"progress":{value}}}"#)));
        }
        frames.len()
    };
    assert_eq!(sent(&mut host, 10), 4);
    let due = host.session.poll_deadline().unwrap();
    assert_eq!(due, host.now + Duration::from_millis(100));
    host.now = due;
    host.session.handle_timeout(due);
    assert!(host.drain()[0].contains(r#""progress":10"#));
    host.now += Duration::from_millis(250);
    assert_eq!(sent(&mut host, 10), 2);
    host.now += Duration::from_mins(1);
    assert_eq!(sent(&mut host, 10), 4);
}

#[test]
fn f37_no_token_no_progress_and_no_messages_for_the_oldest() {
    let mut host = Host::at("2024-11-05");
    let silent = host.call(&plain("1", "tools/call"));
    assert!(!silent.wants_progress);
    assert!(host.progress(silent.key, r#"{"progress":1}"#).is_empty());
    let request = host.call(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":5}}}"#,
    );
    let frames = host.progress(request.key, r#"{"progressToken":1,"progress":1,"message":"m"}"#);
    assert!(frames[0].ends_with(r#""params":{"progressToken":5,"progress":1}}"#), "{frames:?}");
}

#[test]
fn too_many_requests_are_refused_by_name() {
    for (revision, modern_host) in [("2025-06-18", false), ("2025-06-18", true)] {
        let mut host = Host::at(revision);
        let keys: Vec<CallKey> =
            ["1", "2", "3"].map(|id| host.call(&plain(id, "tools/call")).key).to_vec();
        let text =
            if modern_host { modern("4", "tools/call", "") } else { plain("4", "tools/call") };
        let result = raw(&host.ask(&text)).member("result").unwrap();
        assert_eq!(result.member("isError").unwrap().as_str(), "true");
        assert_eq!(result.member("resultType").is_some(), modern_host);
        let meta = result.member("_meta").unwrap();
        assert_eq!(meta.member_str("dev.mcpx/reason").unwrap(), "busy");
        let answer = host.ask(&plain("5", "tools/list"));
        assert_eq!(code(&answer), -32603);
        assert!(answer.contains("host.max_in_flight"));
        host.finish(keys[0], "{}");
        host.call(&plain("6", "tools/call"));
    }
}

#[test]
fn a_closed_link_cancels_everything() {
    let mut host = Host::at("2025-06-18");
    let keys: Vec<CallKey> =
        ["1", "2", "3"].map(|id| host.call(&plain(id, "tools/call")).key).to_vec();
    host.events.clear();
    host.session.handle_closed(host.now);
    assert!(host.drain().is_empty());
    let cancelled: Vec<CallKey> = host
        .events
        .iter()
        .map(|event| match event {
            HostEvent::Cancelled { key } => *key,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(cancelled, keys);
    assert!(host.finish(keys[0], "{}").is_empty());
    assert!(host.say(&plain("4", "ping")).is_empty());
    assert_eq!(host.session.in_flight(), 0);
}

#[test]
fn other_notifications_go_up() {
    let mut host = Host::at("2025-06-18");
    assert!(
        host.say(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).is_empty()
    );
    assert!(matches!(
        host.events.pop(),
        Some(HostEvent::Notification { method, params })
            if method.as_str() == "notifications/roots/list_changed" && params.as_str() == "{}"
    ));
}
