//! Calls over HTTP: cancelling, refusals, answers elsewhere.

use super::*;

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

/// A05: a redirect that is not followed answers one request, also where nothing else is in flight;
/// a stream that is not given again took its answer with it.
#[test]
fn a05_a_redirect_elsewhere_concerns_one_call() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut rig = Rig::http_settled(revision);
        let call = rig.call();
        rig.leads_elsewhere(&rig.last_of("tools/call"));
        let Answer::Error(error) = rig.outcome(call) else { panic!("{:?}", rig.outcome(call)) };
        assert_eq!(error.message, "a redirects (307) to b");
        rig.session.check_alive(rig.now);
        rig.drain();
        let ask = if revision.is_modern() { "server/discover" } else { "ping" };
        rig.leads_elsewhere(&rig.last_of(ask));
        assert!(rig.closes.is_empty(), "{:?}", rig.closes);
        assert_eq!(rig.count_of("tools/call"), 1);
    }
    let mut rig = Rig::http_settled(Revision::V2025_11_25);
    let call = rig.call();
    let post = rig.last_of("tools/call");
    rig.head(post.tag, 200, None, true);
    rig.mark(post.tag, "e1", None);
    rig.ends(post.tag, ExchangeEnd::Whole);
    rig.at(1);
    rig.leads_elsewhere(&rig.last_of("GET"));
    assert!(matches!(rig.outcome(call), Answer::Lost { written: true, .. }));
}

/// F21: an answer that answers nothing is told for what it is, and not for a connection's end.
#[test]
fn f21_answers_that_are_none() {
    for (body, said) in [
        (Some(r#"{"jsonrpc":"2.0","id":"#), "answered with broken JSON: "),
        (Some(r#"{"jsonrpc":"2.0","id":9999,"result":{}}"#), "another request: its id is 9999"),
        (Some(r#"{"jsonrpc":"2.0","id":"x","result":{}}"#), "another request: its id is \"x\""),
        (Some(r#"{"hello":1}"#), "answered with JSON that is no message: "),
        (Some(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#), "with nothing that answers it"),
        (None, "answered with nothing that answers it"),
    ] {
        for stream in [false, true] {
            let mut rig = Rig::http_settled(Revision::V2025_11_25);
            let call = rig.call();
            let post = rig.last_of("tools/call");
            rig.head(post.tag, 200, None, stream);
            if let Some(body) = body {
                rig.frame(post.tag, body);
            }
            rig.ends(post.tag, ExchangeEnd::Whole);
            match rig.outcome(call) {
                Answer::Invalid(why) if !stream => assert!(why.contains(said), "{why}"),
                Answer::Lost { written: true, .. } if stream => {}
                other => panic!("{said} {stream}: {other:?}"),
            }
            assert!(rig.closes.is_empty());
        }
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
