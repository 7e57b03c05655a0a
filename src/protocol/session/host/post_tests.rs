//! What belongs to which POST, and when a POST is done.

use std::sync::Arc;

use bytes::Bytes;

use super::{HostConfig, HostEvent, HostNote, HostOutput, HostSession, PostId, ProgressPace};
use crate::protocol::jsonrpc::{Id, Method, RawJson, parse_noting};
use crate::protocol::model::questions::Question;
use crate::protocol::session::upstream::ListKind;
use crate::protocol::session::{CallKey, some_instant};

fn raw(text: &str) -> RawJson {
    RawJson::parse(Bytes::copy_from_slice(text.as_bytes())).expect("JSON")
}

fn session() -> HostSession {
    HostSession::new(Arc::new(HostConfig {
        info: raw(r#"{"name":"mcpx","version":"1"}"#),
        capabilities: raw(r#"{"tools":{"listChanged":true}}"#),
        instructions: String::new(),
        max_in_flight: 8,
        max_listens: 2,
        progress_pace: ProgressPace::FREE,
        log_rate: 100,
        max_open_questions: 4,
        over_stdio: false,
    }))
}

/// POSTs `text`; what comes of it, in short.
fn post(session: &mut HostSession, number: u64, text: &str) -> Vec<String> {
    post_hearing(session, number, text, true)
}

fn post_hearing(session: &mut HostSession, number: u64, text: &str, hears: bool) -> Vec<String> {
    let (incoming, _) = parse_noting(&Bytes::copy_from_slice(text.as_bytes()));
    session.handle_post(some_instant(), PostId(number), incoming.expect("messages"), hears);
    outputs(session)
}

fn outputs(session: &mut HostSession) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(output) = session.poll_output() {
        seen.push(match output {
            HostOutput::Send { frame, post, .. } => {
                let frame = frame.to_bytes();
                let text = std::str::from_utf8(&frame).unwrap();
                let has = |key| raw(text).member(key).is_some();
                let kind = match frame.first() {
                    Some(b'[') => "array",
                    _ if has("id") && has("method") => "question",
                    _ if has("id") => "answer",
                    _ => "note",
                };
                post.map_or_else(|| kind.to_owned(), |post| format!("{kind} on {}", post.0))
            }
            HostOutput::PostDone(post) => format!("done {}", post.0),
            HostOutput::Event(HostEvent::Request(request)) => format!("call {}", request.key.0),
            HostOutput::Event(HostEvent::Cancelled { key }) => format!("cancelled {}", key.0),
            HostOutput::Event(HostEvent::Answered(answered)) => match answered.reply {
                Ok(reply) => reply.as_str().to_owned(),
                Err(error) => error.code.to_string(),
            },
            HostOutput::Event(_) | HostOutput::Notice(_) => continue,
        });
    }
    seen
}

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"progressToken":1}}}"#;

#[test]
fn answers_and_progress_go_to_the_post_that_asked() {
    let mut session = session();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
    assert_eq!(post(&mut session, 1, hello), ["answer on 1", "done 1"]);
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(post(&mut session, 2, ready), ["done 2"]);
    assert_eq!(post(&mut session, 3, CALL), ["call 1"]);
    // The same id once more is refused there, and the first is none the worse for it.
    assert_eq!(post(&mut session, 4, CALL), ["answer on 4", "done 4"]);
    session.progress(some_instant(), CallKey(1), &raw(r#"{"progress":1}"#));
    session.host_note(some_instant(), HostNote::Changed(ListKind::Tools));
    assert_eq!(outputs(&mut session), ["note on 3", "note"]);
    session.finish(some_instant(), CallKey(1), Ok(RawJson::empty_object()));
    assert_eq!(outputs(&mut session), ["answer on 3", "done 3"]);
}

#[test]
fn a_post_whose_request_is_withdrawn_is_done() {
    let mut session = session();
    assert_eq!(post(&mut session, 1, CALL), ["call 1"]);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert_eq!(post(&mut session, 2, cancel), ["cancelled 1", "done 1", "done 2"]);
    assert_eq!(post(&mut session, 3, CALL), ["call 2"]);
    session.handle_closed(some_instant());
    assert_eq!(outputs(&mut session), ["cancelled 2", "done 3"]);
    assert_eq!(post(&mut session, 4, CALL), ["done 4"]);
}

/// H-28: the answers of an array are one array, on its own POST.
#[test]
fn an_array_is_done_with_its_last_answer() {
    let mut session = session();
    let ping = r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#;
    let array = format!("[{CALL},{ping}]");
    assert_eq!(post(&mut session, 1, &array), ["call 1"]);
    session.finish(some_instant(), CallKey(1), Ok(RawJson::empty_object()));
    assert_eq!(outputs(&mut session), ["array on 1", "done 1"]);
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{},"roots":{}}}}"#;

fn ask(session: &mut HostSession, number: u32, call: u64, method: &'static str) -> Vec<String> {
    let question = Question { method: Method::known(method), params: raw("{}") };
    let id = Id::text(&format!("mcpx-{number}"));
    session.ask(some_instant(), CallKey(call), id, &question);
    outputs(session)
}

/// E-06: on the stream of the request that it belongs to; the answer comes in a POST of its own. A
/// host that takes JSON alone there, or whose stream is lost, cannot be asked.
#[test]
fn e06_questions_go_to_the_post_that_they_belong_to() {
    let mut session = session();
    post(&mut session, 1, HELLO);
    post(&mut session, 2, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(post(&mut session, 3, CALL), ["call 1"]);
    assert_eq!(ask(&mut session, 1, 1, "roots/list"), ["question on 3"]);
    let answer = r#"{"jsonrpc":"2.0","id":"mcpx-1","result":{"roots":[]}}"#;
    assert_eq!(post(&mut session, 4, answer), [r#"{"roots":[]}"#, "done 4"]);
    assert_eq!(ask(&mut session, 2, 1, "elicitation/create"), ["question on 3"]);
    assert_eq!(ask(&mut session, 3, 1, "roots/list"), ["question on 3"]);
    session.stream_lost(PostId(3));
    assert_eq!(outputs(&mut session), [r#"{"action":"cancel"}"#, "-32603"]);
    assert!(session.can_be_asked(CallKey(1)).is_none());
    assert_eq!(ask(&mut session, 4, 1, "elicitation/create"), [r#"{"action":"cancel"}"#]);
    session.finish(some_instant(), CallKey(1), Ok(RawJson::empty_object()));
    assert_eq!(outputs(&mut session), ["answer on 3", "done 3"]);

    assert_eq!(post_hearing(&mut session, 5, CALL, false), ["call 2"]);
    assert!(session.can_be_asked(CallKey(2)).is_none());
    assert_eq!(ask(&mut session, 5, 2, "roots/list"), ["-32603"]);
    session.finish(some_instant(), CallKey(2), Ok(RawJson::empty_object()));
    assert_eq!(outputs(&mut session), ["answer on 5", "done 5"]);
    assert_eq!(post(&mut session, 5, CALL), ["call 3"]);
    assert!(session.can_be_asked(CallKey(3)).is_some());
}
