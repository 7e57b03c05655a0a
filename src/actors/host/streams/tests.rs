//! What goes where, and what becomes of readers that do not read.

use crate::protocol::jsonrpc::Frame;
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;

use super::*;
use crate::protocol::session::resume::KeepLimits;

const QUEUE: usize = 3;
const BOTH: Accepts = Accepts { json: true, events: true, events_first: false };

fn wire(keep: bool) -> HttpWire {
    let mut wire = HttpWire::new(SessionSettings {
        most: 1,
        idle: Duration::from_mins(1),
        record: 1000,
        stream_after: Duration::from_secs(1),
        stream_queue: QUEUE,
        max_streams: 2,
        retry: Duration::from_secs(1),
        keep: KeepLimits { events: 100, bytes: 10_000, age: Duration::from_mins(1) },
    });
    if keep {
        wire.keep(0);
    }
    wire
}

fn frame(text: &str) -> Frame {
    Bytes::from(format!("\"{text}\"")).into()
}

fn post(wire: &mut HttpWire, id: u64, accepts: Accepts) -> oneshot::Receiver<PostOut> {
    let (reply, answered) = oneshot::channel();
    wire.take(PostId(id), Some(Id::number(id)), accepts, reply);
    answered
}

/// What a POST was answered with.
fn answer(answered: &mut oneshot::Receiver<PostOut>) -> Answer {
    answered.try_recv().expect("an answer").answer.expect("no refusal")
}

fn stream(answered: &mut oneshot::Receiver<PostOut>) -> mpsc::Receiver<Bytes> {
    match answer(answered) {
        Answer::Events(events) => events,
        other => panic!("no stream: {other:?}"),
    }
}

/// The data of everything that waits, and whether the stream has ended.
fn read(events: &mut mpsc::Receiver<Bytes>) -> (Vec<String>, bool) {
    let mut seen = Vec::new();
    loop {
        match events.try_recv() {
            Ok(event) => {
                let text = String::from_utf8(event.to_vec()).unwrap();
                let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
                seen.push(data.trim_matches('"').to_owned());
            }
            Err(error) => return (seen, error == TryRecvError::Disconnected),
        }
    }
}

fn now() -> Instant {
    crate::transport::clock::now()
}

#[tokio::test]
async fn an_answer_alone_is_one_body() {
    let mut wire = wire(true);
    let mut answered = post(&mut wire, 1, BOTH);
    wire.send(now(), Some(PostId(1)), frame("answer"));
    wire.done(now(), PostId(1), None);
    assert!(
        matches!(answer(&mut answered), Answer::Whole(body) if body.to_bytes() == "\"answer\"")
    );
    let mut nothing = post(&mut wire, 2, BOTH);
    wire.done(now(), PostId(2), None);
    assert!(matches!(answer(&mut nothing), Answer::Nothing));
    assert!(wire.is_quiet());
}

/// What comes before the answer makes a stream, in one breath or over time.
#[tokio::test]
async fn what_comes_before_the_answer_makes_a_stream() {
    let mut wire = wire(false);
    let mut at_once = post(&mut wire, 1, BOTH);
    wire.send(now(), Some(PostId(1)), frame("note"));
    wire.send(now(), Some(PostId(1)), frame("answer"));
    wire.done(now(), PostId(1), None);
    let seen = read(&mut stream(&mut at_once));
    assert_eq!(seen, (vec!["note".to_owned(), "answer".to_owned()], true));
    let mut later = post(&mut wire, 2, BOTH);
    wire.send(now(), Some(PostId(2)), frame("note"));
    assert!(later.try_recv().is_err(), "it may be all there is to say");
    wire.flush(now());
    let mut events = stream(&mut later);
    assert_eq!(read(&mut events), (vec!["note".to_owned()], false));
    wire.send(now(), Some(PostId(2)), frame("answer"));
    wire.done(now(), PostId(2), None);
    assert_eq!(read(&mut events), (vec!["answer".to_owned()], true));
}

/// A host that takes JSON alone hears the last thing that is said.
#[tokio::test]
async fn without_events_the_answer_alone_is_heard() {
    let mut wire = wire(true);
    let mut answered =
        post(&mut wire, 1, Accepts { json: true, events: false, events_first: false });
    for text in ["one", "two"] {
        wire.send(now(), Some(PostId(1)), frame(text));
        wire.flush(now());
    }
    wire.begin_waiting(PostId(1));
    wire.send(now(), Some(PostId(1)), frame("answer"));
    wire.done(now(), PostId(1), None);
    assert!(
        matches!(answer(&mut answered), Answer::Whole(body) if body.to_bytes() == "\"answer\"")
    );
}

/// Of a reader that does not read, notes are dropped and the answer is not.
#[tokio::test]
async fn a_slow_reader_loses_notes_but_not_the_answer() {
    let mut wire = wire(false);
    let mut answered = post(&mut wire, 1, BOTH);
    for number in 0..10 {
        wire.send(now(), Some(PostId(1)), frame(&number.to_string()));
        wire.flush(now());
    }
    wire.send(now(), Some(PostId(1)), frame("answer"));
    wire.done(now(), PostId(1), None);
    let (seen, ended) = read(&mut stream(&mut answered));
    assert!(ended && seen.len() == QUEUE + 2 && seen.last().unwrap() == "answer", "{seen:?}");
}

/// Where streams can be taken up, it loses the stream and nothing else.
#[tokio::test]
async fn a_slow_reader_comes_back_for_what_it_missed() {
    let mut wire = wire(true);
    let mut answered = post(&mut wire, 1, BOTH);
    for number in 0..10 {
        wire.send(now(), Some(PostId(1)), frame(&number.to_string()));
        wire.flush(now());
    }
    let (seen, ended) = read(&mut stream(&mut answered));
    assert!(ended && seen.len() < 10, "{seen:?}");
    let mut again = wire.listen(now(), Some(&format!("1-{}", seen.len() - 1))).unwrap();
    wire.send(now(), Some(PostId(1)), frame("answer"));
    wire.done(now(), PostId(1), None);
    let (rest, ended) = read(&mut again);
    let texts: Vec<_> = seen.iter().skip(1).chain(&rest).map(String::as_str).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "answer"]);
    assert!(ended);
}

/// The newest of a session's own streams is spoken to; what nobody hears waits, within a limit.
#[tokio::test]
async fn own_streams_and_what_waits_for_one() {
    let mut wire = wire(false);
    for number in 0..5 {
        wire.send(now(), None, frame(&number.to_string()));
    }
    let mut first = wire.listen(now(), None).unwrap();
    assert_eq!(read(&mut first).0, ["2", "3", "4"], "the oldest went");
    let mut second = wire.listen(now(), None).unwrap();
    wire.send(now(), None, frame("a"));
    assert_eq!((read(&mut first).0.len(), read(&mut second).0), (0, vec!["a".to_owned()]));
    drop(second);
    wire.send(now(), None, frame("b"));
    assert_eq!(read(&mut first).0, ["b"]);
    let (_third, _fourth) = (wire.listen(now(), None).unwrap(), wire.listen(now(), None).unwrap());
    assert!(read(&mut first).1, "beyond the limit the oldest ends");
    assert!(!wire.is_quiet());
    wire.end_own();
    assert!(wire.is_quiet());
}

/// A host that came back to its own stream hears what waited, and nothing twice.
#[tokio::test]
async fn an_own_stream_that_is_taken_up() {
    let mut wire = wire(true);
    let own = wire.listen(now(), None).unwrap();
    wire.send(now(), None, frame("a"));
    drop(own);
    wire.send(now(), None, frame("b"));
    let mut again = wire.listen(now(), Some("1-0")).unwrap();
    assert_eq!(read(&mut again), (vec!["a".to_owned(), "b".to_owned()], false));
    wire.send(now(), None, frame("c"));
    assert_eq!(read(&mut again).0, ["c"]);
    assert!(wire.listen(now(), Some("7-0")).unwrap_err().contains("http.resume_age"));
}

/// What cannot arrive any more is told of once, so that nobody waits for an answer to it. Where the
/// host can come back for it, nothing is lost.
#[tokio::test]
async fn what_is_lost_for_ever_is_told() {
    for kept in [false, true] {
        let mut wire = wire(kept);
        let mut answered = post(&mut wire, 1, BOTH);
        wire.send(now(), Some(PostId(1)), frame("question"));
        wire.flush(now());
        let events = stream(&mut answered);
        assert!(wire.take_lost().is_empty());
        drop(events);
        wire.send(now(), Some(PostId(1)), frame("another"));
        wire.flush(now());
        assert_eq!(wire.take_lost(), if kept { vec![] } else { vec![PostId(1)] });
        wire.send(now(), Some(PostId(1)), frame("answer"));
        wire.done(now(), PostId(1), None);
        assert!(wire.take_lost().is_empty());
    }
}
