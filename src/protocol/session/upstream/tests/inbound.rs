//! What the upstream says by itself, and what is no message: F04 to F06, F09, F11, F13, U-44 to U-46.

use super::*;

fn rig() -> Rig {
    Rig::settled(Revision::V2025_06_18)
}

const DONE: &str = r#"{"content":[]}"#;

/// F04, F05, F06: noise is counted, told once a kind, never answered; the call goes on.
#[test]
fn f04_f05_f06_noise_is_never_answered() {
    let mut rig = rig();
    let id = rig.call();
    rig.new_frames();
    let not_json = ["🖥️ starting", "[INFO] x {\"id\":1}", "{\"id\":", "}"];
    let no_message = [
        "42",
        "\"ready\"",
        "null",
        r#"{"level":"info","msg":"up"}"#,
        r#"{"type":"heartbeat"}"#,
        "[]",
        "[1,2]",
        &format!(r#"{{"id":{id},"level":"info"}}"#),
    ];
    for _ in 0..100 {
        for line in not_json.iter().chain(&no_message) {
            rig.says(line);
        }
    }
    assert_eq!(rig.session.noise(), 1200);
    assert_eq!(rig.notices.len(), 2, "{:?}", rig.notices);
    assert!(rig.notices[0].text.contains("starting"));
    assert!(rig.new_frames().is_empty());
    rig.answers(id, DONE);
    assert!(matches!(rig.outcome(id), Answer::Complete(_)));
}

/// Noise glued before a frame is salvaged only for an answer that is waited for.
#[test]
fn f04_noise_before_an_answer_on_the_same_line() {
    let mut rig = rig();
    let id = rig.call();
    rig.says(&format!(r#"loading... {{"jsonrpc":"2.0","id":{id},"result":{DONE}}}"#));
    assert!(matches!(rig.outcome(id), Answer::Complete(_)));
    rig.says(&format!(r#"loading... {{"jsonrpc":"2.0","id":{id},"result":{DONE}}}"#));
    rig.says(r#"loading... {"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(rig.session.noise(), 3);
    assert_eq!(rig.new_frames(), ["tools/call"]);
}

/// F09: bytes that are no UTF-8 are replaced, the call is answered, one warning.
#[test]
fn f09_invalid_utf8() {
    let mut rig = rig();
    for _ in 0..2 {
        let id = rig.call();
        let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"t":""#).into_bytes();
        line.extend_from_slice(b"\xC7\xD1\"}}");
        rig.says_bytes(&line);
        let Answer::Complete(result) = rig.outcome(id) else { panic!("no result") };
        assert_eq!(result.member_str("t").unwrap(), "\u{fffd}\u{fffd}");
    }
    assert_eq!(rig.notices.len(), 1);
}

/// F13: our number written as a string, or with a fraction of nothing, is matched with a warning.
#[test]
fn f13_ids_in_another_form() {
    let mut rig = rig();
    for form in ["\"{}\"", "{}.0", "\"{}\""] {
        let id = rig.call();
        let echoed = form.replace("{}", &id.to_string());
        rig.says(&format!(r#"{{"jsonrpc":"2.0","id":{echoed},"result":{DONE}}}"#));
        assert!(matches!(rig.outcome(id), Answer::Complete(_)), "{form}");
    }
    assert_eq!(rig.notices.len(), 1);
    for nobodys in ["\"x\"", "\"4711\"", "4711", "1.5", "null"] {
        rig.says(&format!(r#"{{"jsonrpc":"2.0","id":{nobodys},"result":{DONE}}}"#));
    }
    assert!(rig.new_frames().iter().all(|frame| frame == "tools/call"));
}

/// F13 during the opening: the handshake, too, may be answered by a string.
#[test]
fn f13_the_handshake_answered_by_a_string() {
    let mut rig = Rig::new(config(Preference::ForceInitialize));
    let id = rig.last_id("initialize");
    let answer = INITIALIZED.replace('\n', " ");
    rig.says(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{answer}}}"#));
    assert_eq!(rig.settled_as().revision, Revision::V2025_06_18);
}

/// F11, U-45: arrays are unpacked: answers, progress, requests and notifications in one line.
#[test]
fn f11_u45_batches_from_an_upstream() {
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18] {
        let mut rig = Rig::settled(revision);
        let (first, second) = (rig.call(), rig.call());
        rig.new_frames();
        rig.says(&format!(
            r#"[{{"jsonrpc":"2.0","id":{second},"result":{DONE}}},
            {{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"x"}}}},
            {{"jsonrpc":"2.0","id":"a","method":"ping"}}, 7,
            {{"jsonrpc":"2.0","id":{first},"error":{{"code":-1,"message":"no"}}}}]"#
        ));
        assert!(matches!(rig.outcome(second), Answer::Complete(_)));
        assert!(matches!(rig.outcome(first), Answer::Error(_)));
        assert_eq!(rig.new_frames(), ["answer"]);
        assert_eq!(rig.session.noise(), 1);
        // The noise in it, and the batch itself where the revision has none.
        let warnings = 1 + usize::from(!revision.allows_batches());
        assert_eq!(rig.notices.len(), warnings, "{:?}", rig.notices);
    }
}

/// U-44, U-46: a ping is answered in any era, also during the opening, with its id verbatim.
#[test]
fn u44_u46_pings_are_answered_with_their_id() {
    let rigs = [
        (Rig::settled(Revision::V2024_11_05), "{}"),
        (Rig::settled(Revision::V2026_07_28), r#"{"resultType":"complete"}"#),
        (Rig::new(config(Preference::PreferDiscover)), "{}"),
    ];
    for (mut rig, pong) in rigs {
        for id in ["0", "\"a b\"", "9007199254740993"] {
            rig.says(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
            assert_eq!(rig.last()["id"].to_string(), id);
            assert_eq!(rig.last()["result"].to_string(), pong);
        }
    }
}

/// Requests for what was not declared are refused, with the code that their page names.
#[test]
fn u36_undeclared_requests_are_refused() {
    let mut rig = rig();
    for (method, code) in [
        ("roots/list", -32601),
        ("sampling/createMessage", -32601),
        ("elicitation/create", -32602),
        ("x/unknown", -32601),
    ] {
        rig.says(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#));
        assert_eq!(rig.last()["error"]["code"], code, "{method}");
        assert!(rig.last()["error"]["message"].as_str().unwrap().contains(method));
    }
    assert_eq!(rig.notices.len(), 1);
}

/// Log lines go up as they came; other notifications change nothing and are never answered.
#[test]
fn notifications() {
    let mut rig = rig();
    rig.says(
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1e2}}"#,
    );
    assert!(
        matches!(rig.events.last(), Some(UpstreamEvent::Log(log)) if log.params.as_str().contains("1e2"))
    );
    let events = rig.events.len();
    for method in ["notifications/cancelled", "notifications/resources/updated"] {
        rig.says(&format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
    }
    assert_eq!(rig.events.len(), events);
    // What no revision knows goes up as it is, for the hosts of a server that is exposed alone.
    rig.says(r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"n":1e2}}"#);
    assert_eq!(rig.events.len(), events + 1);
    assert!(rig.new_frames().is_empty() && rig.notices.is_empty());
}

/// An answer that is no JSON-RPC response ends its call instead of leaving it without one.
#[test]
fn broken_answers_end_their_call() {
    let mut rig = rig();
    for broken in [
        r#"{"id":ID,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"1.0","id":ID,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}"#,
    ] {
        let id = rig.call();
        rig.says(&broken.replace("ID", &id.to_string()));
        assert!(matches!(rig.outcome(id), Answer::Invalid(_)), "{broken}");
    }
    let mut rig = Rig::new(config(Preference::PreferDiscover));
    let id = rig.last_id("server/discover");
    rig.says(&format!(r#"{{"id":{id},"error":"unknown method"}}"#));
    assert_eq!(rig.new_frames(), ["server/discover", "initialize"]);
}

/// F02, F03: line ends between tokens and byte order marks.
#[test]
fn f03_marks_and_white_space() {
    let mut rig = rig();
    let id = rig.call();
    rig.says_bytes(
        format!("\u{feff}{{\"jsonrpc\":\"2.0\",\r\"id\":{id},\"result\":{DONE}}}\r").as_bytes(),
    );
    assert!(matches!(rig.outcome(id), Answer::Complete(_)));
    assert!(rig.notices.is_empty());
}
