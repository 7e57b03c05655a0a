//! Openings over HTTP: headers, verdicts by status and body.

use super::*;

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
