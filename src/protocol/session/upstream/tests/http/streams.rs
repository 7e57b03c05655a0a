//! Streams that break off, and sessions that end.

use super::*;

/// U-38, F19: a server without a standalone stream is asked once; it never holds up the session.
#[test]
fn f19_no_standalone_stream() {
    type Says = fn(&mut Rig, &Exchange);
    let cases: [Says; 6] = [
        |rig, get| rig.http_refuses(get, 405, ""),
        |rig, get| rig.http_refuses(get, 404, ""),
        |rig, get| rig.http_refuses(get, 406, ""),
        |rig, get| rig.leads_elsewhere(get),
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
    // Nothing came with `e2`.
    rig.at(6);
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
