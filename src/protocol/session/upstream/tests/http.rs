//! The session over HTTP against scripted exchanges.

use ::http::{HeaderName, Method as HttpMethod, StatusCode};

mod marks;

use super::*;
use crate::protocol::http_rules::headers::{
    LAST_EVENT_ID, METHOD, NAME, PROTOCOL_VERSION, SESSION_ID,
};

fn over_http(preference: Preference) -> UpstreamConfig {
    let http = HttpConfig {
        may_be_sse: true,
        reconnect_delay: seconds(1),
        reconnect_attempts: 2,
        poll_interval: seconds(300),
        linger: seconds(5),
    };
    UpstreamConfig { http: Some(http), ..config(preference) }
}

fn initialized(revision: &str) -> String {
    format!(r#"{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}}}}}}"#)
}

/// The method of a POST's message; `GET`, `DELETE`; `answer`.
fn name(exchange: &Exchange) -> String {
    if exchange.method != HttpMethod::POST {
        assert!(exchange.body.is_empty());
        return exchange.method.to_string();
    }
    let body: Value = serde_json::from_slice(&exchange.body).unwrap();
    body["method"].as_str().unwrap_or("answer").to_owned()
}

impl Rig {
    fn names(&self) -> Vec<String> {
        self.exchanges.iter().map(name).collect()
    }

    /// The last exchange of this name.
    fn last_of(&self, wanted: &str) -> Exchange {
        let found = self.exchanges.iter().rev().find(|exchange| name(exchange) == wanted);
        found.unwrap_or_else(|| panic!("no {wanted}: {:?}", self.names())).clone()
    }

    fn count_of(&self, wanted: &str) -> usize {
        self.names().iter().filter(|name| *name == wanted).count()
    }

    fn brings(&mut self, tag: u64, news: ExchangeNews) {
        self.session.handle_exchange(self.now, tag, news);
        self.drain();
    }

    fn head(&mut self, tag: u64, status: u16, session: Option<&str>, stream: bool) {
        let mut headers = ::http::HeaderMap::new();
        if let Some(session) = session {
            headers.insert(SESSION_ID, session.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        self.brings(tag, ExchangeNews::Head { status, headers, stream });
    }

    fn frame(&mut self, tag: u64, text: &str) {
        let frame = Bytes::copy_from_slice(text.replace('\n', " ").as_bytes());
        if let Resolved::Other(frame) = self.pending.resolve(self.now, frame) {
            self.brings(tag, ExchangeNews::Frame(frame));
        }
    }

    fn mark(&mut self, tag: u64, id: &str, retry: Option<u64>) {
        let retry = retry.map(Duration::from_millis);
        self.brings(tag, ExchangeNews::Mark { id: Some(id.to_owned()), retry });
    }

    fn ends(&mut self, tag: u64, end: ExchangeEnd) {
        self.brings(tag, ExchangeNews::Ended(end));
    }

    fn http_refuses(&mut self, exchange: &Exchange, status: u16, body: &str) {
        let status = StatusCode::from_u16(status).unwrap();
        let body = Bytes::copy_from_slice(body.as_bytes());
        self.ends(exchange.tag, ExchangeEnd::Refused { status, body });
    }

    fn fails(&mut self, exchange: &Exchange, sent: bool) {
        self.ends(exchange.tag, ExchangeEnd::Failed { sent, why: "broken".to_owned() });
    }

    /// One JSON body, as an answer to the request in `exchange`.
    fn http_answers(&mut self, exchange: &Exchange, session: Option<&str>, outcome: &str) {
        let id = id_of(exchange);
        self.head(exchange.tag, 200, session, false);
        self.frame(exchange.tag, &format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#));
        self.ends(exchange.tag, ExchangeEnd::Whole);
    }

    fn http_result(&mut self, exchange: &Exchange, result: &str) {
        self.http_answers(exchange, None, &format!(r#""result":{result}"#));
    }

    /// Answers the last `tools/list`.
    fn lists_tools(&mut self, tools: &str) {
        let result = format!(r#"{{"resultType":"complete","tools":{tools}}}"#);
        self.http_result(&self.last_of("tools/list"), &result);
    }

    /// 202.
    fn takes(&mut self, exchange: &Exchange) {
        self.head(exchange.tag, 202, None, false);
        self.ends(exchange.tag, ExchangeEnd::Whole);
    }

    /// A session that has settled on `revision` over HTTP; a legacy one in session `s1`, with its
    /// standalone stream refused.
    fn http_settled(revision: Revision) -> Self {
        let mut rig;
        if revision.is_modern() {
            rig = Self::new(over_http(Preference::ForceDiscover));
            rig.http_result(&rig.last_of("server/discover"), DISCOVERED);
            rig.session.read_list(rig.now, ListKind::Tools);
            rig.drain();
            rig.lists_tools("[]");
            assert!(rig.list().unwrap().items.is_empty());
        } else {
            rig = Self::new(over_http(Preference::ForceInitialize));
            rig.initialize(revision.as_str(), Some("s1"));
            if revision.has_standalone_stream() {
                rig.http_refuses(&rig.last_of("GET"), 405, "");
            }
        }
        assert_eq!(rig.settled_as().revision, revision);
        rig.exchanges.clear();
        rig
    }

    /// Answers the last `initialize`, and takes what follows it.
    fn initialize(&mut self, revision: &str, session: Option<&str>) {
        let result = format!(r#""result":{}"#, initialized(revision));
        self.http_answers(&self.last_of("initialize"), session, &result);
        self.takes(&self.last_of("notifications/initialized"));
    }
}

fn id_of(exchange: &Exchange) -> u64 {
    let body: Value = serde_json::from_slice(&exchange.body).unwrap();
    body["id"].as_u64().unwrap()
}

fn header<'a>(exchange: &'a Exchange, name: &HeaderName) -> Option<&'a str> {
    exchange.headers.get(name).map(|value| value.to_str().unwrap())
}

/// U-20, U-38: nothing on `initialize`; the revision, where it has such a header, and the session on
/// everything after it; the standalone stream from 2025-03-26.
#[test]
fn u20_headers_of_a_legacy_session() {
    let cases = [
        ("2024-11-05", None, false),
        ("2025-03-26", None, true),
        ("2025-06-18", Some("2025-06-18"), true),
        ("2025-11-25", Some("2025-11-25"), true),
    ];
    for (revision, version, stream) in cases {
        let mut rig = Rig::new(over_http(Preference::ForceInitialize));
        let initialize = rig.last_of("initialize");
        assert!(initialize.headers.is_empty());
        rig.initialize(revision, Some("s1"));
        let call = rig.call();
        let mut expected = vec!["initialize", "notifications/initialized"];
        expected.extend(stream.then_some("GET"));
        expected.push("tools/call");
        assert_eq!(rig.names(), expected, "{revision}");
        for exchange in rig.exchanges.iter().skip(1) {
            assert_eq!(header(exchange, &PROTOCOL_VERSION), version, "{revision}");
            assert_eq!(header(exchange, &SESSION_ID), Some("s1"));
            assert_eq!(header(exchange, &METHOD), None);
        }
        rig.http_result(&rig.last_of("tools/call"), r#"{"content":[]}"#);
        assert!(matches!(rig.outcome(call), Answer::Complete(_)));
        // The end of the session is told once.
        let leave = rig.session.take_leave().unwrap();
        assert_eq!((leave.method.as_str(), header(&leave, &SESSION_ID)), ("DELETE", Some("s1")));
        assert!(rig.session.take_leave().is_none());
    }
}

/// U-21: a modern message repeats revision, method and name, and knows no session.
#[test]
fn u21_headers_of_a_modern_server() {
    let mut rig = Rig::new(over_http(Preference::PreferDiscover));
    let discover = rig.last_of("server/discover");
    assert_eq!(header(&discover, &PROTOCOL_VERSION), Some("2026-07-28"));
    assert_eq!(header(&discover, &METHOD), Some("server/discover"));
    let result = format!(r#""result":{DISCOVERED}"#);
    rig.http_answers(&discover, Some("s1"), &result);
    let call = rig.call();
    rig.lists_tools("[]");
    let posted = rig.last_of("tools/call");
    assert_eq!(header(&posted, &NAME), Some("t"));
    assert_eq!(header(&posted, &METHOD), Some("tools/call"));
    assert_eq!(header(&posted, &SESSION_ID), None);
    rig.http_result(&posted, r#"{"resultType":"complete","content":[]}"#);
    assert!(matches!(rig.outcome(call), Answer::Complete(_)));
    assert_eq!(rig.names(), ["server/discover", "tools/list", "tools/call"]);
    assert!(rig.session.take_leave().is_none());
}

/// Calls are held until the server has taken `notifications/initialized`, however it says so (F20),
/// and an answer to that which is none ends nothing.
#[test]
fn f20_any_answer_to_initialized_opens_the_session() {
    type Says = fn(&mut Rig, &Exchange);
    let cases: [(Says, usize); 5] = [
        (|rig, note| rig.takes(note), 0),
        (|rig, note| rig.head(note.tag, 200, None, true), 0),
        (|rig, note| rig.ends(note.tag, ExchangeEnd::Whole), 0),
        (|rig, note| rig.http_refuses(note, 400, "what?"), 1),
        (|rig, note| rig.http_refuses(note, 500, ""), 1),
    ];
    for (says, notices) in cases {
        let mut rig = Rig::new(over_http(Preference::ForceInitialize));
        let result = format!(r#""result":{}"#, initialized("2025-06-18"));
        rig.http_answers(&rig.last_of("initialize"), None, &result);
        let call = rig.call();
        assert_eq!(rig.names(), ["initialize", "notifications/initialized"]);
        let note = rig.last_of("notifications/initialized");
        says(&mut rig, &note);
        assert_eq!(rig.notices.len(), notices, "{:?}", rig.notices);
        rig.http_result(&rig.last_of("tools/call"), "{}");
        assert!(matches!(rig.outcome(call), Answer::Complete(_)));
    }
}

/// U-11, F24: what a refused probe says about the era.
#[test]
fn f24_verdicts_by_status_and_body() {
    let error = |code, id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no",
            "data":{{"supported":["2026-07-28"]}}}}}}"#
        )
    };
    let legacy = [
        (400, String::new()),
        (400, error(-32000, "null")),
        (400, error(-32000, "1")),
        (400, "<html><body>no</body></html>".to_owned()),
        (404, String::new()),
        (405, "Method Not Allowed".to_owned()),
        (404, error(-32601, "1")),
        (500, error(-32601, "1")),
        (415, String::new()),
    ];
    for (status, body) in legacy {
        let mut rig = Rig::new(over_http(Preference::PreferDiscover));
        rig.http_refuses(&rig.last_of("server/discover"), status, &body);
        assert_eq!(rig.names(), ["server/discover", "initialize"], "{status} {body}");
        rig.initialize("2025-06-18", None);
        assert_eq!(rig.settled_as().record.unwrap().era, "legacy");
    }
    for id in ["1", "null", "\"server-error\""] {
        let mut rig = Rig::new(over_http(Preference::PreferDiscover));
        rig.http_refuses(&rig.last_of("server/discover"), 400, &error(-32022, id));
        assert_eq!(rig.names(), ["server/discover", "server/discover"]);
        rig.http_result(&rig.last_of("server/discover"), DISCOVERED);
        assert_eq!(rig.settled_as().record.unwrap().era, "modern");
    }
    for code in [-32020, -32021] {
        let mut rig = Rig::new(over_http(Preference::PreferDiscover));
        rig.http_refuses(&rig.last_of("server/discover"), 400, &error(code, "1"));
        assert!(matches!(rig.failed_as(), OpenError::Refused { .. }));
        assert_eq!(rig.names(), ["server/discover"]);
    }
    for (status, words) in [(401, "`auth`"), (403, "`auth`"), (500, "500"), (503, "503")] {
        let mut rig = Rig::new(over_http(Preference::PreferDiscover));
        rig.http_refuses(&rig.last_of("server/discover"), status, "sorry,\n  not  now");
        let failed = rig.failed_as();
        assert!(matches!(failed, OpenError::Http(_)), "{status}");
        let text = failed.to_string();
        assert!(text.contains(words) && text.contains("sorry, not now"), "{text}");
        assert_eq!(rig.names(), ["server/discover"]);
        assert_eq!(rig.closes.len(), 1);
    }
}

/// U-11: what cannot be reached is no server of either era, and is not waited for with patience.
#[test]
fn u11_connection_failures_and_silence() {
    for sent in [false, true] {
        let mut rig = Rig::new(over_http(Preference::PreferDiscover));
        rig.fails(&rig.last_of("server/discover"), sent);
        assert!(matches!(rig.failed_as(), OpenError::Unreachable(_)));
        assert_eq!(rig.names(), ["server/discover"]);
    }
    let mut rig = Rig::new(over_http(Preference::PreferDiscover));
    rig.at(29);
    assert_eq!(rig.names(), ["server/discover"]);
    rig.at(30);
    assert!(matches!(rig.failed_as(), OpenError::TimedOut(_)));
}

/// U-08 over HTTP: `{}` with status 200, an empty answer and a page are legacy, too.
#[test]
fn u08_odd_answers_to_the_probe_are_legacy() {
    let mut rig = Rig::new(over_http(Preference::PreferDiscover));
    rig.http_result(&rig.last_of("server/discover"), "{}");
    assert_eq!(rig.count_of("initialize"), 1);
    let mut rig = Rig::new(over_http(Preference::PreferDiscover));
    rig.takes(&rig.last_of("server/discover"));
    assert_eq!(rig.count_of("initialize"), 1);
    let mut rig = Rig::new(over_http(Preference::PreferDiscover));
    for leg in ["server/discover", "initialize"] {
        let what = "a page titled \"Log in\"".to_owned();
        rig.ends(rig.last_of(leg).tag, ExchangeEnd::Unreadable { what });
    }
    assert!(rig.failed_as().to_string().contains("Log in"));
}

/// U-10: a modern-only server that refuses `initialize` by a bare status.
#[test]
fn u10_fall_forward_by_status() {
    let mut rig = Rig::new(over_http(Preference::PreferInitialize));
    rig.http_refuses(&rig.last_of("initialize"), 400, "");
    rig.http_result(&rig.last_of("server/discover"), DISCOVERED);
    assert!(rig.settled_as().revision.is_modern());
}

/// U-41: both openings refused as by something that has no such endpoint.
#[test]
fn u41_bare_refusals_of_both_openings_lead_to_sse() {
    use Preference::{Follow, ForceDiscover, ForceInitialize, PreferDiscover, PreferInitialize};
    let legs = |preference| match preference {
        PreferDiscover | Follow => vec!["server/discover", "initialize"],
        PreferInitialize => vec!["initialize", "server/discover"],
        ForceInitialize => vec!["initialize"],
        ForceDiscover => vec!["server/discover"],
    };
    for preference in Preference::ALL {
        for status in [400, 404, 405, 406] {
            let mut rig = Rig::new(over_http(preference));
            for leg in legs(preference) {
                rig.http_refuses(&rig.last_of(leg), status, "<p>no</p>");
            }
            let sse = matches!(rig.failed_as(), OpenError::TrySse(_));
            assert_eq!(sse, status != 406 && preference != ForceDiscover, "{preference} {status}");
        }
    }
    let mut rig = Rig::new(over_http(PreferDiscover));
    rig.http_refuses(&rig.last_of("server/discover"), 404, "");
    let message = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}"#;
    rig.http_refuses(&rig.last_of("initialize"), 400, message);
    assert!(matches!(rig.failed_as(), OpenError::Refused { code: -32000, .. }));
}

/// F26: a modern revision inside an initialize result is asked about once.
#[test]
fn f26_counter_offers_over_http() {
    let mut rig = Rig::new(over_http(Preference::PreferInitialize));
    rig.http_result(&rig.last_of("initialize"), &initialized("2026-07-28"));
    rig.http_refuses(&rig.last_of("server/discover"), 404, "");
    assert!(matches!(rig.failed_as(), OpenError::Version { .. }));
    let mut rig = Rig::new(over_http(Preference::PreferDiscover));
    rig.http_result(&rig.last_of("server/discover"), "{}");
    rig.http_result(&rig.last_of("initialize"), &initialized("1999-01-01"));
    assert!(rig.failed_as().to_string().contains("1999-01-01"));
    assert_eq!(rig.count_of("notifications/initialized"), 0);
}

/// U-38, F19: a server without a standalone stream is asked once; it never holds up the session.
#[test]
fn f19_no_standalone_stream() {
    type Says = fn(&mut Rig, &Exchange);
    let cases: [Says; 5] = [
        |rig, get| rig.http_refuses(get, 405, ""),
        |rig, get| rig.http_refuses(get, 404, ""),
        |rig, get| rig.http_refuses(get, 406, ""),
        |rig, get| {
            rig.head(get.tag, 200, None, false);
            assert_eq!(rig.dropped, [get.tag]);
        },
        |rig, get| rig.ends(get.tag, ExchangeEnd::Unreadable { what: "text".to_owned() }),
    ];
    for says in cases {
        let mut rig = Rig::new(over_http(Preference::ForceInitialize));
        rig.initialize("2025-11-25", Some("s1"));
        let get = rig.last_of("GET");
        says(&mut rig, &get);
        rig.at(20_000);
        assert_eq!(rig.count_of("GET"), 1);
        assert!(rig.notices.is_empty(), "{:?}", rig.notices);
    }
}

/// U-39, F19 g: opened again after the server's `retry` or our own delay, naming the last event; a
/// stream that always ends at once is asked for ever more rarely; 405 then ends it.
#[test]
fn u39_the_standalone_stream_comes_back() {
    let mut rig = Rig::new(over_http(Preference::ForceInitialize));
    rig.initialize("2025-11-25", Some("s1"));
    let first = rig.last_of("GET");
    assert_eq!(header(&first, &LAST_EVENT_ID), None);
    rig.head(first.tag, 200, None, true);
    rig.mark(first.tag, "e7", Some(3000));
    rig.frame(first.tag, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
    rig.ends(first.tag, ExchangeEnd::Whole);
    rig.at(2);
    assert_eq!(rig.count_of("GET"), 1);
    rig.at(3);
    let second = rig.last_of("GET");
    assert_eq!(header(&second, &LAST_EVENT_ID), Some("e7"));
    assert_eq!(header(&second, &SESSION_ID), Some("s1"));
    for (at, gets) in [(9, 3), (308, 3), (309, 4), (608, 4), (609, 5)] {
        let open = rig.last_of("GET");
        rig.head(open.tag, 200, None, true);
        rig.ends(open.tag, ExchangeEnd::Whole);
        rig.at(at);
        assert_eq!(rig.count_of("GET"), gets, "at {at}");
    }
    rig.http_refuses(&rig.last_of("GET"), 405, "");
    rig.at(9000);
    assert_eq!(rig.count_of("GET"), 5);
}

/// F18 by era: resumed where an id was seen; without one, and at a modern server, the call ends at
/// once and is not made again.
#[test]
fn f18_a_stream_that_ends_without_its_answer() {
    for (revision, numbered) in [
        (Revision::V2025_03_26, false),
        (Revision::V2025_11_25, false),
        (Revision::V2026_07_28, false),
        (Revision::V2026_07_28, true),
    ] {
        for whole in [true, false] {
            let mut rig = Rig::http_settled(revision);
            let call = rig.call();
            let post = rig.last_of("tools/call");
            rig.head(post.tag, 200, None, true);
            if numbered {
                rig.mark(post.tag, "e1", None);
            }
            if whole {
                rig.ends(post.tag, ExchangeEnd::Whole);
            } else {
                rig.fails(&post, true);
            }
            assert!(matches!(rig.outcome(call), Answer::Lost { written: true, .. }));
            rig.at(100);
            assert_eq!(rig.names(), ["tools/call"]);
        }
    }
}

/// U-39: the stream of a call goes on under GET where it broke off, and the call is not noticed.
#[test]
fn u39_a_call_is_resumed() {
    let mut rig = Rig::http_settled(Revision::V2025_11_25);
    let call = rig.call();
    let post = rig.last_of("tools/call");
    rig.head(post.tag, 200, None, true);
    rig.mark(post.tag, "e1", Some(2000));
    rig.ends(post.tag, ExchangeEnd::Whole);
    rig.at(1);
    assert_eq!(rig.count_of("GET"), 0);
    rig.at(2);
    let get = rig.last_of("GET");
    assert_eq!(header(&get, &LAST_EVENT_ID), Some("e1"));
    assert_eq!(header(&get, &SESSION_ID), Some("s1"));
    rig.head(get.tag, 200, None, true);
    rig.mark(get.tag, "e2", None);
    rig.ends(get.tag, ExchangeEnd::Whole);
    rig.at(4);
    let get = rig.last_of("GET");
    assert_eq!(header(&get, &LAST_EVENT_ID), Some("e2"));
    rig.head(get.tag, 200, None, true);
    rig.frame(get.tag, &format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{{}}}}"#));
    assert!(matches!(rig.outcome(call), Answer::Complete(_)));
    rig.ends(get.tag, ExchangeEnd::Whole);
    assert_eq!(rig.names(), ["tools/call", "GET", "GET"]);
}

/// U-39: at most so many tries that bring nothing, or one refusal; the outcome is then unknown.
#[test]
fn u39_resumption_is_bounded() {
    for refused in [false, true] {
        let mut rig = Rig::http_settled(Revision::V2025_11_25);
        let call = rig.call();
        let post = rig.last_of("tools/call");
        rig.head(post.tag, 200, None, true);
        rig.mark(post.tag, "e1", None);
        rig.ends(post.tag, ExchangeEnd::Whole);
        for at in [1, 3] {
            rig.at(at);
            let get = rig.last_of("GET");
            if refused {
                rig.http_refuses(&get, 405, "");
                break;
            }
            rig.fails(&get, false);
        }
        assert!(matches!(rig.outcome(call), Answer::Lost { written: true, .. }));
        assert_eq!(rig.count_of("GET"), if refused { 1 } else { 2 });
    }
}

/// U-31: a modern server is told by the end of the stream, a legacy one by a notification in the
/// session, also while it has not answered at all, and while the stream rests.
#[test]
fn u31_cancelling_over_http() {
    let mut rig = Rig::http_settled(Revision::V2026_07_28);
    let call = rig.call();
    let tag = rig.last_of("tools/call").tag;
    rig.cancel(call);
    assert_eq!((rig.names(), rig.dropped.clone()), (vec!["tools/call".to_owned()], vec![tag]));
    for answered in [false, true] {
        for revision in [Revision::V2025_03_26, Revision::V2025_11_25] {
            let mut rig = Rig::http_settled(revision);
            let call = rig.call();
            let tag = rig.last_of("tools/call").tag;
            if answered {
                rig.head(tag, 200, None, true);
            }
            rig.cancel(call);
            let note = rig.last_of("notifications/cancelled");
            let body: Value = serde_json::from_slice(&note.body).unwrap();
            assert_eq!(body["params"]["requestId"], call);
            assert_eq!(header(&note, &SESSION_ID), Some("s1"));
            assert_eq!(rig.dropped, [tag]);
        }
    }
    let mut rig = Rig::http_settled(Revision::V2025_11_25);
    let call = rig.call();
    let post = rig.last_of("tools/call");
    rig.head(post.tag, 200, None, true);
    rig.mark(post.tag, "e1", None);
    rig.ends(post.tag, ExchangeEnd::Whole);
    rig.cancel(call);
    rig.at(60);
    assert_eq!(rig.names(), ["tools/call", "notifications/cancelled"]);
}

/// U-40, F22: five calls meet the end of the session at once: one handshake, without the old id; each
/// call is sent again in the new session, and the stream opened again.
#[test]
fn u40_one_fresh_handshake_for_all() {
    let mut rig = Rig::http_settled(Revision::V2025_11_25);
    let calls: Vec<u64> = (0..5).map(|_| rig.call()).collect();
    let posts = rig.exchanges.clone();
    let bodies = [
        "",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
        r#"{"jsonrpc":"2.0","id":"","error":{"code":-32600,"message":"Session not found"}}"#,
        r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"gone"}}"#,
    ];
    for (post, body) in posts.iter().zip(bodies) {
        rig.http_refuses(post, 404, body);
    }
    let during = rig.call();
    let initialize = rig.last_of("initialize");
    assert!(initialize.headers.is_empty());
    assert_eq!(rig.count_of("initialize"), 1);
    assert_eq!(rig.count_of("tools/call"), 5);
    rig.initialize("2025-11-25", Some("s2"));
    assert_eq!((rig.count_of("initialize"), rig.count_of("GET")), (1, 1));
    assert_eq!(rig.count_of("tools/call"), 10);
    // The fifth comes late, from the session before.
    rig.http_refuses(&posts[4], 404, "");
    assert_eq!((rig.count_of("initialize"), rig.count_of("tools/call")), (1, 11));
    let again: Vec<_> =
        rig.exchanges[5..].iter().filter(|e| name(e) == "tools/call").cloned().collect();
    for exchange in again {
        assert_eq!(header(&exchange, &SESSION_ID), Some("s2"));
        rig.http_result(&exchange, "{}");
    }
    for call in calls.into_iter().chain([during]) {
        assert!(matches!(rig.outcome(call), Answer::Complete(_)));
    }
    assert!(rig.events.iter().any(|event| matches!(event, UpstreamEvent::Renewed(_))));
    rig.http_refuses(&rig.last_of("GET"), 405, "");
}

/// U-40: a server that forgets every session at once is not asked for ever.
#[test]
fn u40_a_call_is_sent_again_once() {
    let mut rig = Rig::http_settled(Revision::V2025_03_26);
    let call = rig.call();
    rig.http_refuses(&rig.last_of("tools/call"), 404, "");
    rig.initialize("2025-03-26", Some("s2"));
    rig.http_refuses(&rig.last_of("tools/call"), 404, "");
    let Answer::Error(error) = rig.outcome(call) else { panic!("{:?}", rig.outcome(call)) };
    assert!(error.message.contains("session"), "{}", error.message);
    assert_eq!(rig.count_of("tools/call"), 2);
}

/// U-40: what was being looked at when the session ended is not sent again.
#[test]
fn u40_a_begun_stream_is_an_unknown_outcome() {
    let mut rig = Rig::http_settled(Revision::V2025_11_25);
    let call = rig.call();
    let post = rig.last_of("tools/call");
    rig.head(post.tag, 200, None, true);
    rig.mark(post.tag, "e1", None);
    rig.ends(post.tag, ExchangeEnd::Whole);
    rig.at(1);
    rig.http_refuses(&rig.last_of("GET"), 404, "");
    assert!(matches!(rig.outcome(call), Answer::Lost { written: true, .. }));
    assert_eq!(rig.count_of("initialize"), 1);
    rig.fails(&rig.last_of("initialize"), false);
    assert!(matches!(rig.events.last(), Some(UpstreamEvent::OpenFailed(_))));
}

/// F22: other wordings surface, and are no reason for a handshake; nor is 404 without a session, or
/// one that quotes the request.
#[test]
fn f22_other_wordings_surface() {
    let quoted = |rig: &Rig, code| {
        let id = id_of(&rig.last_of("tools/call"));
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no such"}}}}"#)
    };
    for (status, code, body) in [
        (400, -32603, "Session not found"),
        (503, -32603, "later"),
        (401, -32603, "who are you"),
        (404, -32601, ""),
        (400, -32000, ""),
    ] {
        let mut rig = Rig::http_settled(Revision::V2025_06_18);
        let call = rig.call();
        let text = if body.is_empty() { quoted(&rig, code) } else { body.to_owned() };
        rig.http_refuses(&rig.last_of("tools/call"), status, &text);
        let Answer::Error(error) = rig.outcome(call) else { panic!("{status}") };
        assert_eq!(error.code, code);
        let words = if body.is_empty() { "no such" } else { body };
        assert!(error.message.contains(words), "{}", error.message);
        assert_eq!(rig.count_of("initialize"), 0);
    }
    let mut rig = Rig::new(over_http(Preference::ForceInitialize));
    rig.initialize("2025-03-26", None);
    rig.http_refuses(&rig.last_of("GET"), 405, "");
    let call = rig.call();
    rig.http_refuses(&rig.last_of("tools/call"), 404, "");
    assert!(matches!(rig.outcome(call), Answer::Error(_)));
    assert_eq!(rig.count_of("initialize"), 1);
}

/// F23: a request that never left may be sent again; where nothing else shows that the server is
/// there, the connection ends, and says so of the call.
#[test]
fn f23_what_never_left() {
    let mut rig = Rig::http_settled(Revision::V2026_07_28);
    let (first, second) = (rig.call(), rig.call());
    let posts = rig.exchanges.clone();
    rig.fails(&posts[0], false);
    assert!(matches!(rig.outcome(first), Answer::Lost { written: false, .. }));
    assert!(rig.closes.is_empty());
    rig.fails(&posts[1], false);
    assert_eq!(rig.closes.len(), 1);
    rig.closes("could not be reached", u64::MAX);
    assert!(matches!(rig.outcome(second), Answer::Lost { written: false, .. }));
}

/// product.md 8: a request answered with 202 is answered on the standalone stream, or ends at its
/// limit with that reason.
#[test]
fn accepted_requests_are_answered_elsewhere() {
    for open in [true, false] {
        let mut rig = Rig::new(over_http(Preference::ForceInitialize));
        rig.initialize("2025-11-25", Some("s1"));
        let get = rig.last_of("GET");
        if open {
            rig.head(get.tag, 200, None, true);
        } else {
            rig.http_refuses(&get, 405, "");
        }
        let call = rig.call();
        rig.takes(&rig.last_of("tools/call"));
        assert!(rig.news(call).is_empty());
        assert_eq!(rig.notices.len(), usize::from(!open));
        if open {
            rig.frame(get.tag, &format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{{}}}}"#));
            assert!(matches!(rig.outcome(call), Answer::Complete(_)));
        } else {
            rig.at(301);
            let Answer::Invalid(why) = rig.outcome(call) else { panic!("{:?}", rig.outcome(call)) };
            assert!(why.contains("202") && why.contains("call.idle_timeout"), "{why}");
        }
    }
}

/// U-45, F13 over HTTP: arrays are split; an error without an id belongs to the request on whose
/// answer it stands.
#[test]
fn u45_what_stands_on_an_answer() {
    let mut rig = Rig::http_settled(Revision::V2025_03_26);
    let call = rig.call();
    let post = rig.last_of("tools/call");
    rig.head(post.tag, 200, None, false);
    rig.frame(
        post.tag,
        &format!(
            r#"[{{"jsonrpc":"2.0","method":"notifications/message","params":{{}}}},
            {{"jsonrpc":"2.0","id":{call},"result":{{}}}}]"#
        ),
    );
    rig.ends(post.tag, ExchangeEnd::Whole);
    assert!(matches!(rig.outcome(call), Answer::Complete(_)));
    let call = rig.call();
    let post = rig.last_of("tools/call");
    rig.head(post.tag, 200, None, false);
    rig.frame(post.tag, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"odd"}}"#);
    assert!(matches!(rig.outcome(call), Answer::Error(_)));
}

/// U-46, U-47: what a legacy server asks on a stream is answered by a POST in the session; a modern
/// one has no place for answers.
#[test]
fn u46_answers_are_posted() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let mut rig = Rig::http_settled(revision);
        let call = rig.call();
        let post = rig.last_of("tools/call");
        rig.head(post.tag, 200, None, true);
        rig.frame(post.tag, r#"{"jsonrpc":"2.0","id":"p1","method":"ping"}"#);
        rig.frame(post.tag, r#"{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage"}"#);
        let answers = rig.count_of("answer");
        if revision.is_modern() {
            assert_eq!(answers, 0);
        } else {
            assert_eq!(answers, 2);
            let answer = rig.last_of("answer");
            assert_eq!(header(&answer, &SESSION_ID), Some("s1"));
            assert_eq!(header(&answer, &PROTOCOL_VERSION), Some("2025-06-18"));
        }
        rig.frame(post.tag, &format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{{}}}}"#));
        // The server leaves the stream open: it is ended after a while.
        assert!(rig.dropped.is_empty());
        rig.at(6);
        assert_eq!(rig.dropped, [post.tag]);
    }
}

/// P-13: any status is a sign of life, a connection that fails is the end.
#[test]
fn p13_signs_of_life_over_http() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let ask = if revision.is_modern() { "server/discover" } else { "ping" };
        let mut rig = Rig::http_settled(revision);
        rig.session.check_alive(rig.now);
        rig.drain();
        rig.http_refuses(&rig.last_of(ask), 500, "");
        rig.at(60);
        assert!(!rig.events.iter().any(|event| matches!(event, UpstreamEvent::Wedged(_))));
        rig.session.check_alive(rig.now);
        rig.drain();
        rig.fails(&rig.last_of(ask), false);
        assert_eq!(rig.closes.len(), 1);
    }
}

/// F08: the call whose answer was too large is known.
#[test]
fn f08_too_large_concerns_one_call() {
    let mut rig = Rig::http_settled(Revision::V2026_07_28);
    let (first, second) = (rig.call(), rig.call());
    let posts = rig.exchanges.clone();
    rig.ends(posts[0].tag, ExchangeEnd::TooLarge { bytes: 9, limit: 8 });
    assert!(matches!(rig.outcome(first), Answer::TooLarge { bytes: 9, limit: 8 }));
    rig.http_result(&posts[1], "{}");
    assert!(matches!(rig.outcome(second), Answer::Complete(_)));
}
