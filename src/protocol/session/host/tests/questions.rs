//! Questions to the host, from their sending to their replies.

use super::*;
use crate::protocol::jsonrpc::{Id, Method, RpcError};
use crate::protocol::model::questions::{Question, Reply};

const FORM: &str = r#"{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","default":"d"}}}}"#;
const URL: &str =
    r#"{"mode":"url","message":"m","url":"https://x.test/","elicitationId":"e\u0031"}"#;

fn elicit(params: &str) -> Question {
    Question { method: Method::known("elicitation/create"), params: raw(params) }
}

fn sample(more: &str) -> Question {
    let params = format!(r#"{{"messages":[],"maxTokens":1{more}}}"#);
    Question { method: Method::known("sampling/createMessage"), params: raw(&params) }
}

fn roots() -> Question {
    Question { method: Method::known("roots/list"), params: raw("{}") }
}

fn ask_id(number: u32) -> Id {
    Id::text(&format!("mcpx-tag-{number}"))
}

impl Host {
    /// A host that declared `capabilities`, and one request of it.
    fn able(revision: &str, capabilities: &str) -> (Self, CallKey) {
        let mut host = Self::fresh();
        host.ask(&hello(revision, capabilities));
        host.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let key = host.call(&plain("1", "tools/call")).key;
        (host, key)
    }

    fn put(&mut self, key: CallKey, number: u32, question: &Question) -> Vec<String> {
        self.session.ask(self.now, key, ask_id(number), question);
        self.drain()
    }

    /// The reply that was handed up last.
    fn reply(&mut self) -> (Id, Reply) {
        match self.events.pop() {
            Some(HostEvent::Answered(Answered { ask, reply })) => (ask, reply),
            other => panic!("no reply: {other:?}"),
        }
    }

    fn no_reply(&self) -> bool {
        !self.events.iter().any(|event| matches!(event, HostEvent::Answered(_)))
    }
}

fn hello(revision: &str, capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"i","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"h","version":"2"}}}}}}"#
    )
}

fn result(number: u32, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"mcpx-tag-{number}","result":{result}}}"#)
}

fn said(reply: Reply) -> String {
    reply.unwrap().as_str().to_owned()
}

const ALL: &str =
    r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}"#;

/// E-06: a legacy host is asked by a request, in its revision's words, and its answer comes up.
#[test]
fn e06_a_question_and_its_answer() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let (mut host, key) = Host::able(revision, ALL);
        let frames = host.put(key, 7, &elicit(FORM));
        assert_eq!(frames.len(), 1);
        let asked = raw(&frames[0]);
        assert_eq!(id(&frames[0]).unwrap(), r#""mcpx-tag-7""#);
        assert_eq!(asked.member_str("method").unwrap(), "elicitation/create");
        let mode = asked.member("params").unwrap().member("mode");
        assert_eq!(mode.is_some(), revision == "2025-11-25");
        assert!(host.say(&result(7, r#"{"action":"accept","content":{},"_meta":{}}"#)).is_empty());
        let (ask, reply) = host.reply();
        assert_eq!(ask, ask_id(7));
        assert_eq!(said(reply), r#"{"action":"accept","content":{"a":"d"}}"#);
        // Once: the same again is an answer to nothing.
        assert!(host.say(&result(7, r#"{"action":"cancel"}"#)).is_empty());
        assert!(host.no_reply());
        assert_eq!(host.finish(key, "{}").len(), 1);
    }
}

/// E-04: nobody is asked what it did not declare, or what its revision does not have.
#[test]
fn e04_who_is_asked_what() {
    let questions = || [elicit(FORM), elicit(URL), sample(""), sample(r#","tools":[]"#), roots()];
    for (revision, capabilities, asked) in [
        ("2024-11-05", ALL, [false, false, true, false, true]),
        ("2025-03-26", ALL, [false, false, true, false, true]),
        ("2025-06-18", ALL, [true, false, true, false, true]),
        ("2025-11-25", ALL, [true, true, true, true, true]),
        ("2025-11-25", r#"{"elicitation":{}}"#, [true, false, false, false, false]),
        ("2025-11-25", r#"{"elicitation":{"url":{}}}"#, [false, true, false, false, false]),
        ("2025-11-25", r#"{"sampling":{}}"#, [false, false, true, false, false]),
        ("2025-11-25", "{}", [false; 5]),
    ] {
        let (mut host, key) = Host::able(revision, capabilities);
        assert_eq!(host.session.can_be_asked(key).is_some(), asked.contains(&true));
        for (question, asked) in questions().iter().zip(asked) {
            let frames = host.put(key, 1, question);
            let shown = format!("{revision} {capabilities} {question:?}");
            assert_eq!(frames.len(), usize::from(asked), "{shown}");
            if asked {
                host.say(
                    r#"{"jsonrpc":"2.0","id":"mcpx-tag-1","error":{"code":-1,"message":"no"}}"#,
                );
            }
            let (_, reply) = host.reply();
            assert_eq!(reply.is_err_and(|error| error.code == -1), asked, "{shown}");
        }
    }
    // A modern request on the same connection is asked by its answer alone.
    let (mut host, _) = Host::able("2025-11-25", ALL);
    let modern = host.call(&modern("2", "tools/call", "")).key;
    assert!(host.session.can_be_asked(modern).is_none());
    assert!(host.put(modern, 1, &elicit(FORM)).is_empty());
    assert_eq!(said(host.reply().1), r#"{"action":"cancel"}"#);
    // Nor is anybody without a handshake.
    let mut host = Host::fresh();
    let key = host.call(&plain("1", "tools/call")).key;
    assert!(host.session.can_be_asked(key).is_none());
}

/// F35: before `initialized` a host is asked nothing.
#[test]
fn f35_questions_wait_for_initialized() {
    let mut host = Host::fresh();
    host.ask(&hello("2025-06-18", ALL));
    let key = host.call(&plain("1", "tools/call")).key;
    assert!(host.put(key, 1, &elicit(FORM)).is_empty());
    assert!(host.put(key, 2, &roots()).is_empty());
    assert!(host.put(key, 3, &sample("")).is_empty());
    // One that is withdrawn meanwhile is never heard of, and an answer to one unasked is none.
    host.session.unask(&ask_id(2));
    host.say(&result(1, r#"{"action":"cancel"}"#));
    assert!(host.drain().is_empty() && host.no_reply());
    let frames = host.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let ids: Vec<_> = frames.iter().map(|frame| id(frame).unwrap()).collect();
    assert_eq!(ids, [r#""mcpx-tag-1""#, r#""mcpx-tag-3""#]);
    assert!(host.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).is_empty());
}

/// H-29: only the exact text of an open id is an answer; and a host may use such an id itself.
#[test]
fn h29_answers_are_matched_by_exact_id() {
    let (mut host, key) = Host::able("2025-11-25", ALL);
    host.put(key, 1, &roots());
    for other in ["1", "\"1\"", "\"mcpx-tag-2\"", "null", "\"i\"", "\"mcpx-other-1\""] {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{other},"result":{{"roots":[]}}}}"#);
        assert!(host.say(&answer).is_empty());
        assert!(host.no_reply(), "{other}");
    }
    // Directions have ids of their own.
    let own = host.call(&plain(r#""mcpx-tag-1""#, "tools/call"));
    assert!(host.finish(own.key, "{}")[0].contains(r#""id":"mcpx-tag-1","result""#));
    host.say(&result(1, r#"{"roots":[]}"#));
    assert_eq!(said(host.reply().1), r#"{"roots":[]}"#);
}

/// 2025-03-26: answers may come in an array.
#[test]
fn h28_answers_in_batches() {
    let (mut host, key) = Host::able("2025-03-26", ALL);
    host.put(key, 1, &roots());
    host.put(key, 2, &sample(""));
    let first = result(1, r#"{"roots":[]}"#);
    let second = result(2, r#"{"role":"assistant","content":{},"model":"m"}"#);
    assert!(host.say(&format!("[{first},{second}]")).is_empty());
    assert_eq!(host.reply().0, ask_id(2));
    assert_eq!(host.reply().0, ask_id(1));
}

/// What the host says that is no answer ends the question with an error, which repeats nothing of it.
#[test]
fn rubbish_for_an_answer() {
    for rubbish in [r#"{"action":"s3cret"}"#, "7", "null", r#"["s3cret"]"#] {
        let (mut host, key) = Host::able("2025-11-25", ALL);
        host.put(key, 1, &elicit(FORM));
        host.say(&result(1, rubbish));
        let (_, reply) = host.reply();
        assert!(!reply.unwrap_err().message.contains("s3cret"));
    }
    let (mut host, key) = Host::able("2025-11-25", ALL);
    host.put(key, 1, &elicit(FORM));
    host.say(&result(1, r#"{"action":"accept","content":{"a":"s3cret"}}"#));
    let shown = format!("{:?}", host.events.pop().unwrap());
    assert_eq!(shown, r#"Answered(Answered("mcpx-tag-1"))"#);
}

/// A question ends with whoever asked it, and the host need not go on.
#[test]
fn a_question_that_nobody_waits_for_is_withdrawn() {
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mcpx-tag-1","reason":"the answer is no longer needed"}}"#;
    // By its asker, who needs no word.
    let (mut host, key) = Host::able("2025-11-25", ALL);
    host.put(key, 1, &elicit(FORM));
    host.session.unask(&ask_id(1));
    assert_eq!(host.drain(), [cancelled]);
    host.session.unask(&ask_id(1));
    assert!(host.say(&result(1, r#"{"action":"accept"}"#)).is_empty() && host.no_reply());
    // With its request, before the answer to that.
    host.put(key, 1, &elicit(FORM));
    let frames = host.finish(key, "{}");
    assert_eq!((frames.len(), frames[0].as_str()), (2, cancelled));
    assert_eq!(said(host.reply().1), r#"{"action":"cancel"}"#);
    // With its request, because the host gives that up. Another's stays.
    let (mut host, key) = Host::able("2025-11-25", ALL);
    let other = host.call(&plain("2", "tools/call")).key;
    host.put(key, 1, &sample(""));
    host.put(other, 2, &roots());
    let give_up =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(host.say(give_up), [cancelled]);
    host.events.retain(|event| matches!(event, HostEvent::Answered(_)));
    let (ask, reply) = host.reply();
    assert!(ask == ask_id(1) && reply.is_err());
    host.say(&result(2, r#"{"roots":[]}"#));
    assert_eq!(host.reply().0, ask_id(2));
    // A question for a request that is over.
    assert!(host.put(key, 3, &elicit(FORM)).is_empty());
    assert_eq!(said(host.reply().1), r#"{"action":"cancel"}"#);
}

/// F44: a host that is gone has cancelled; where it can still be told, it is.
#[test]
fn f44_a_host_that_goes_or_is_cut_off() {
    let (mut host, key) = Host::able("2025-11-25", ALL);
    host.put(key, 1, &elicit(FORM));
    host.session.handle_closed(host.now);
    assert!(host.drain().is_empty());
    host.events.retain(|event| matches!(event, HostEvent::Answered(_)));
    assert_eq!(said(host.reply().1), r#"{"action":"cancel"}"#);

    let (mut host, key) = Host::able("2025-11-25", ALL);
    host.put(key, 1, &elicit(FORM));
    host.session.stop_asking();
    assert!(host.drain()[0].contains("notifications/cancelled"));
    assert_eq!(said(host.reply().1), r#"{"action":"cancel"}"#);
    assert!(host.put(key, 2, &roots()).is_empty());
    assert!(host.reply().1.is_err());
    assert_eq!(host.finish(key, "{}").len(), 1);
}

/// 2025-11-25 elicitation page: told is who was sent there, once, with the id it was given.
#[test]
fn e02_urls_that_are_done() {
    let done = |id: &str| HostNote::Completed { id: raw(id) };
    let (mut host, key) = Host::able("2025-11-25", ALL);
    host.note(done("\"e1\""));
    assert!(host.drain().is_empty(), "it was never sent there");
    let asked = host.put(key, 1, &elicit(URL));
    assert!(asked[0].contains(r#""elicitationId":"e\u0031""#));
    host.say(&result(1, r#"{"action":"accept"}"#));
    host.finish(key, "{}");
    host.note(done("\"other\""));
    host.note(done("\"e1\""));
    assert_eq!(
        host.drain(),
        [
            r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}"#
        ]
    );
    host.note(done("\"e1\""));
    assert!(host.drain().is_empty());
    // The oldest is forgotten first.
    let key = host.call(&plain("9", "tools/call")).key;
    for number in 1..=5 {
        host.put(key, number, &elicit(&URL.replace("e\\u0031", &format!("u{number}"))));
    }
    host.note(done("\"u1\""));
    host.note(done("\"u2\""));
    assert_eq!(host.drain().len(), 1);
}

/// -32042: as it came to who can open urls, in words to anybody else.
#[test]
fn e02_urls_that_an_error_asks_for() {
    let error = RpcError {
        code: -32042,
        message: "log in first".to_owned(),
        data: Some(raw(&format!(r#"{{"elicitations":[{URL}]}}"#))),
        relayed: true,
    };
    for (revision, capabilities, kept) in [
        ("2025-11-25", ALL, true),
        ("2025-11-25", r#"{"elicitation":{}}"#, false),
        ("2025-11-25", "{}", false),
        ("2025-06-18", ALL, false),
    ] {
        let (mut host, key) = Host::able(revision, capabilities);
        host.session.finish(host.now, key, Err(error.clone()));
        let frame = host.drain().remove(0);
        assert_eq!(code(&frame) == -32042, kept, "{revision} {capabilities}");
        let message = raw(&frame).member("error").unwrap().member_str("message").unwrap();
        assert_eq!(message.contains("https://x.test/"), !kept, "{message}");
        host.note(HostNote::Completed { id: raw("\"e1\"") });
        assert_eq!(host.drain().len(), usize::from(kept));
    }
}

/// E-12: what is about no request of the host is asked all the same, over stdio: over HTTP nobody may
/// be listening.
#[test]
fn e12_a_question_about_no_request() {
    let (mut host, key) = Host::able("2025-06-18", ALL);
    let sent = host.put(NO_REQUEST, 1, &roots());
    assert!(sent[0].contains("\"roots/list\"") && sent[0].contains("mcpx-tag-1"), "{sent:?}");
    // It outlives the host's requests.
    host.session.finish(host.now, key, Ok(RawJson::empty_object()));
    host.drain();
    host.say(&result(1, r#"{"roots":[{"uri":"file:///w"}]}"#));
    let (ask, reply) = host.reply();
    assert_eq!(ask, ask_id(1));
    assert_eq!(said(reply), r#"{"roots":[{"uri":"file:///w"}]}"#);
    // Nor is anybody asked who has not declared it, or has no handshake.
    let (mut host, _key) = Host::able("2025-06-18", r#"{"elicitation":{}}"#);
    assert!(host.put(NO_REQUEST, 1, &roots()).is_empty());
    assert!(host.reply().1.is_err());
    let mut host = Host::fresh();
    assert!(host.put(NO_REQUEST, 1, &roots()).is_empty());
    assert!(host.reply().1.is_err());
}
