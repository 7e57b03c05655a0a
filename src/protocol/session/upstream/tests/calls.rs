//! Callers' requests: F08, F12 to F15, F23, F36, F37, U-27, U-31, U-32, P-12, P-13.

use super::*;
use crate::protocol::session::Limit;

fn legacy() -> Rig {
    Rig::settled(Revision::V2025_06_18)
}

fn modern() -> Rig {
    Rig::settled(Revision::V2026_07_28)
}

const DONE: &str = r#"{"content":[],"n":1e2}"#;

fn limits(idle: u64, total: u64) -> CallLimits {
    CallLimits { idle: seconds(idle), total: seconds(total) }
}

/// F12, F15: ids of our own, plain integers; answers in reverse order find their callers.
#[test]
fn f15_answers_in_reverse_order() {
    let mut rig = legacy();
    let (first, second) = (rig.call(), rig.call());
    assert_ne!(first, second);
    assert_eq!(rig.new_frames(), ["tools/call", "tools/call"]);
    rig.answers(second, r#"{"content":[],"of":2}"#);
    rig.answers(first, r#"{"content":[],"of":1}"#);
    for (id, of) in [(first, 1), (second, 2)] {
        let Answer::Complete(result) = rig.outcome(id) else { panic!("no result") };
        assert_eq!(result.as_str(), format!(r#"{{"content":[],"of":{of}}}"#));
    }
}

/// Parameters keep their text; a legacy call without progress has no `_meta` at all.
#[test]
fn f37_no_token_for_a_caller_that_wants_no_progress() {
    let mut rig = legacy();
    rig.call();
    let params = rig.last()["params"].clone();
    assert_eq!(params["name"], "t");
    assert!(params.get("_meta").is_none());
}

/// The envelope on every request to a modern upstream.
#[test]
fn u21_modern_calls_carry_the_envelope() {
    let mut rig = modern();
    let id = rig.call_with(true, limits(300, 3600));
    let meta = &rig.last()["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "mcpx");
    assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
    assert_eq!(meta["progressToken"], id);
    rig.call();
    assert!(rig.last()["params"]["_meta"].get("progressToken").is_none());
}

/// Calls before the opening has settled are held, sent in order, and may be cancelled meanwhile.
#[test]
fn calls_are_held_until_the_opening_has_settled() {
    let mut rig = Rig::new(config(Preference::PreferDiscover));
    let (first, second, third) = (rig.call(), rig.call(), rig.call());
    assert_eq!(rig.new_frames(), ["server/discover"]);
    rig.cancel(second);
    rig.answers(rig.last_id("server/discover"), DISCOVERED);
    assert_eq!(rig.new_frames(), ["tools/call", "tools/call"]);
    assert_eq!(rig.last()["id"], third);
    rig.answers(first, DONE);
    rig.answers(third, DONE);
    assert!(matches!(rig.outcome(first), Answer::Complete(_)));
    assert!(rig.news(second).is_empty());
}

/// F37: progress goes to the call whose id is the token, and nowhere else.
#[test]
fn f37_progress_by_our_own_tokens() {
    let mut rig = legacy();
    let (with, without) = (rig.call_with(true, limits(300, 3600)), rig.call());
    let say = |rig: &mut Rig, token: &str| {
        rig.says(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress",
            "params":{{"progressToken":{token},"progress":0.10}}}}"#
        ));
    };
    say(&mut rig, &with.to_string());
    for made_up in
        ["\"abc\"", "0", "99", &format!("\"{with}\""), &without.to_string(), "null", "-1"]
    {
        say(&mut rig, made_up);
    }
    rig.answers(with, DONE);
    say(&mut rig, &with.to_string());
    let news = rig.news(with);
    assert_eq!(news.len(), 2, "{news:?}");
    let News::Progress(params) = &news[0] else { panic!("{news:?}") };
    assert!(params.contains(r#""progress":0.10"#));
    assert!(rig.news(without).is_empty());
    assert!(rig.notices.is_empty() && rig.new_frames().len() == 2);
    rig.answers(without, DONE);
}

/// F36: only the cancelled call is told of, by the upstream's id; its late answer goes nowhere.
#[test]
fn f36_cancelling() {
    // What a legacy server may still ask about a call of nobody's ends where it answers the ping (F44).
    let with_fence: &[&str] = &["notifications/cancelled", "ping"];
    for (mut rig, told) in [(legacy(), with_fence), (modern(), &with_fence[..1])] {
        let (slow, fast) = (rig.call(), rig.call());
        rig.new_frames();
        rig.cancel(slow);
        let params = rig.sent.get(rig.taken).unwrap()["params"].clone();
        assert_eq!(rig.new_frames(), told);
        assert_eq!(params["requestId"], slow);
        assert_eq!(params["reason"], "changed my mind");
        rig.answers(fast, DONE);
        rig.answers(slow, DONE);
        assert!(rig.news(slow).is_empty());
        assert_eq!(rig.news(fast).len(), 1);
        // Answered already, unknown, twice: nothing is sent.
        rig.session.cancel(rig.now, fast, "late");
        rig.session.cancel(rig.now, 4711, "unknown");
        rig.cancel(slow);
        assert!(rig.new_frames().is_empty() && rig.notices.is_empty());
    }
}

/// The limits of a call: silence and total time; the upstream is told, the text names the setting.
#[test]
fn limits_end_a_call_and_tell_the_upstream() {
    let mut rig = legacy();
    let id = rig.call_with(true, limits(10, 25));
    rig.new_frames();
    rig.at(9);
    let progress = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress",
        "params":{{"progressToken":{id},"progress":1}}}}"#
    );
    rig.says(&progress);
    rig.at(18);
    rig.says(&progress);
    rig.at(24);
    assert!(rig.new_frames().is_empty());
    rig.at(25);
    let limit = Limit { setting: "call.total_timeout", value: "25s".into() };
    assert!(matches!(&rig.news(id)[2], News::Done(Answer::TimedOut(struck)) if *struck == limit));
    assert_eq!(rig.new_frames(), ["notifications/cancelled"]);
    // No silence, no doubt about its life.
    assert!(!rig.sent.iter().any(|frame| frame["method"] == "ping"));
}

/// P-13, U-32: an idle call makes the session ask for a sign of life in the era's own way.
#[test]
fn p13_silence_is_checked_for_life() {
    for (mut rig, ask) in [(legacy(), "ping"), (modern(), "server/discover")] {
        let id = rig.call_with(false, limits(10, 100));
        rig.new_frames();
        rig.at(10);
        let limit = Limit { setting: "call.idle_timeout", value: "10s".into() };
        assert!(matches!(rig.outcome(id), Answer::TimedOut(struck) if struck == limit));
        assert_eq!(rig.new_frames(), ["notifications/cancelled", ask]);
        rig.at(15);
        let wedged = rig.events.iter().find_map(|event| match event {
            UpstreamEvent::Wedged(limit) => Some(limit.clone()),
            _ => None,
        });
        assert_eq!(wedged.unwrap().setting, "upstream.ping_timeout");
    }
}

/// P-13: an answer of any kind, or any other message, is a sign of life.
#[test]
fn p13_signs_of_life() {
    let wedged = |rig: &Rig| rig.events.iter().any(|e| matches!(e, UpstreamEvent::Wedged(_)));
    let mut rig = legacy();
    rig.session.check_alive(rig.now);
    rig.session.check_alive(rig.now);
    rig.drain();
    assert_eq!(rig.new_frames(), ["ping"]);
    rig.refuses(rig.last_id("ping"), -32601, "null");
    rig.at(60);
    assert!(!wedged(&rig));
    rig.session.check_alive(rig.now);
    rig.drain();
    rig.at(62);
    rig.says(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"busy"}}"#);
    rig.at(90);
    assert!(!wedged(&rig));
    rig.session.check_alive(rig.now);
    rig.drain();
    rig.says("not a sign of life");
    rig.at(120);
    assert!(wedged(&rig));
}

/// U-27: what a modern result's `resultType` says.
#[test]
fn u27_result_types() {
    let mut rig = modern();
    let mut ask = |result: &str| {
        let id = rig.call();
        rig.answers(id, result);
        rig.outcome(id)
    };
    assert!(matches!(ask(DONE), Answer::Complete(_)));
    assert!(matches!(ask(r#"{"resultType":"complete","content":[]}"#), Answer::Complete(_)));
    let whole = r#"{"resultType":"input_required","requestState":"s"}"#;
    assert!(matches!(ask(whole), Answer::InputRequired(raw) if raw.as_str() == whole));
    assert!(matches!(ask(r#"{"resultType":"task","taskId":"t"}"#), Answer::Task(_)));
    let Answer::Invalid(text) = ask(r#"{"resultType":"hologram"}"#) else { panic!("accepted") };
    assert!(text.contains("hologram"), "{text}");
    for odd in [r#"{"resultType":7}"#, "[]", "null", "\"done\""] {
        assert!(matches!(ask(odd), Answer::Invalid(_)), "{odd}");
    }
    // A member of that name further down, or in a legacy result, is the server's own.
    assert!(matches!(ask(r#"{"content":[],"x":{"resultType":"hologram"}}"#), Answer::Complete(_)));
    let mut rig = legacy();
    let id = rig.call();
    rig.answers(id, r#"{"content":[],"resultType":"hologram"}"#);
    assert!(matches!(rig.outcome(id), Answer::Complete(_)));
}

/// The upstream's own error is the caller's, whole.
#[test]
fn errors_reach_the_caller() {
    let mut rig = legacy();
    let id = rig.call();
    rig.refuses(id, -32000, r#"{"n":1e2}"#);
    let Answer::Error(error) = rig.outcome(id) else { panic!("no error") };
    assert_eq!((error.code, error.data.unwrap().as_str()), (-32000, r#"{"n":1e2}"#));
}

/// F10, F14, product promise 5: a result of the same spelling comes through byte for byte.
#[test]
fn f10_results_keep_their_text() {
    let mut rig = legacy();
    let id = rig.call();
    let result =
        r#"{"z":12345678901234567890123,"content":[{"type":"text","text":"a\udcafb"}],"z":-0}"#;
    rig.answers(id, result);
    assert!(matches!(rig.outcome(id), Answer::Complete(raw) if raw.as_str() == result));
}

/// F23, P-12: at the end of the link each call is told whether it can have reached the upstream.
#[test]
fn f23_lost_calls_know_whether_they_were_written() {
    let mut rig = legacy();
    let before = rig.sent.len() as u64;
    let (first, second) = (rig.call(), rig.call());
    rig.closes("exited with status 1", before + 1);
    assert!(matches!(rig.outcome(first), Answer::Lost { written: true, why } if why.contains('1')));
    assert!(matches!(rig.outcome(second), Answer::Lost { written: false, .. }));
    let late = rig.call();
    assert!(matches!(rig.outcome(late), Answer::Lost { written: false, .. }));
}

/// F08: a frame beyond the limit ends the call it answers, and only that.
#[test]
fn f08_too_large_answers() {
    let large = |rig: &mut Rig, head: &str| {
        rig.session.handle_too_large(rig.now, &Bytes::copy_from_slice(head.as_bytes()), 65, 64);
        rig.drain();
    };
    let mut rig = legacy();
    let (first, second) = (rig.call(), rig.call());
    large(&mut rig, &format!(r#"{{"jsonrpc":"2.0","id":{second},"result":{{"content":[{{"#));
    assert!(matches!(rig.outcome(second), Answer::TooLarge { bytes: 65, limit: 64 }));
    // No id in the head: the one call in flight it must be.
    large(&mut rig, r#"{"result":{"content":[{"type":"text","text":"aaaa"#);
    assert!(matches!(rig.outcome(first), Answer::TooLarge { .. }));
    // Several in flight and no id, somebody else's id, a notification: nobody is ended.
    let (third, fourth) = (rig.call(), rig.call());
    large(&mut rig, r#"{"result":{"content":[{"#);
    large(&mut rig, r#"{"jsonrpc":"2.0","id":4711,"result":{"#);
    rig.answers(fourth, DONE);
    large(&mut rig, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"#);
    assert!(rig.news(third).is_empty());
    assert_eq!(rig.notices.len(), 3);
    rig.answers(third, DONE);
}

/// U-35: a modern upstream is told what the host of each call declared, and nothing of the last one.
#[test]
fn u35_each_call_declares_for_its_host() {
    let key = "io.modelcontextprotocol/clientCapabilities";
    let theirs = r#"{"elicitation":{"url":{}},"roots":{"x":1}}"#;
    let mut rig = Rig::settled(Revision::V2026_07_28);
    rig.call();
    let ours = rig.last()["params"]["_meta"][key].clone();
    rig.declared = Some(raw(theirs));
    rig.call();
    let meta = &rig.last()["params"]["_meta"];
    assert_eq!(meta[key], serde_json::from_str::<Value>(theirs).unwrap());
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert!(meta["io.modelcontextprotocol/clientInfo"].is_object());
    rig.declared = None;
    rig.call();
    assert_eq!(rig.last()["params"]["_meta"][key], ours);
    let mut rig = Rig::settled(Revision::V2025_11_25);
    rig.declared = Some(raw(theirs));
    rig.call();
    assert!(rig.last()["params"].get("_meta").is_none());
}
