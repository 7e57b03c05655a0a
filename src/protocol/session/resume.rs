//! What a host can still be told of a stream that broke: the events of a session, by stream.
//!
//! 2025-11-25 Transports page, "Resumability and Redelivery": an event's id is unique in its session
//! and names its stream; a host that comes back with the last id it saw is told what came after it on
//! that stream, and nothing of any other. Events are kept as they go out, within three limits.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::protocol::framing::sse::encode::{Fields, event};

/// How much of a session's past is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepLimits {
    /// Events (`http.resume_events`).
    pub events: usize,
    /// Bytes of them (`http.resume_bytes`).
    pub bytes: usize,
    /// Age of the oldest (`http.resume_age`).
    pub age: Duration,
}

/// A stream of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamId(u64);

/// An event's place in its stream; the first is number 1, and 0 is before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventId {
    stream: StreamId,
    number: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream.0, self.number)
    }
}

impl EventId {
    fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.trim().split_once('-')?;
        Some(Self { stream: StreamId(stream.parse().ok()?), number: number.parse().ok()? })
    }
}

#[derive(Debug)]
struct Event {
    id: EventId,
    at: Instant,
    text: Bytes,
}

#[derive(Debug, Default)]
struct Stream {
    /// The number of its last event.
    last: u64,
    /// Nothing follows any more.
    ended: bool,
}

/// What a host that came back has missed.
#[derive(Debug)]
pub struct Missed {
    /// The stream that it takes up.
    pub stream: StreamId,
    /// Its events after the one that was seen last, encoded, as far as they are kept.
    pub events: Vec<Bytes>,
    /// Whether more may follow.
    pub open: bool,
}

/// The streams of one session, with their latest events.
#[derive(Debug)]
pub struct Streams {
    limits: KeepLimits,
    last: u64,
    known: HashMap<StreamId, Stream>,
    /// Oldest first.
    events: VecDeque<Event>,
    bytes: usize,
}

impl Streams {
    /// None yet.
    pub fn new(limits: KeepLimits) -> Self {
        let (known, events) = (HashMap::new(), VecDeque::new());
        Self { limits, last: 0, known, events, bytes: 0 }
    }

    /// A new stream, and the event that begins it: an id without data, so that the host can come back
    /// before anything was said, and the time after which it may (`http.retry`).
    pub fn open(&mut self, retry: Duration) -> (StreamId, Bytes) {
        self.last += 1;
        let stream = StreamId(self.last);
        self.known.insert(stream, Stream::default());
        let id = EventId { stream, number: 0 }.to_string();
        (stream, event(Fields { id: Some(&id), retry: Some(retry), name: None }, b""))
    }

    /// A frame as the next event of `stream`; kept from now on.
    pub fn say(&mut self, now: Instant, stream: StreamId, frame: &[u8]) -> Bytes {
        let Some(known) = self.known.get_mut(&stream) else { return say_plainly(frame) };
        known.last += 1;
        let id = EventId { stream, number: known.last };
        let written = id.to_string();
        let text = event(Fields { id: Some(&written), ..MESSAGE }, frame);
        self.bytes += text.len();
        self.events.push_back(Event { id, at: now, text: text.clone() });
        self.forget_old(now);
        text
    }

    /// Nothing follows on `stream`; what is kept of it can still be asked for.
    pub fn end(&mut self, stream: StreamId) {
        if let Some(known) = self.known.get_mut(&stream) {
            known.ended = true;
        }
        self.forget_empty(stream);
    }

    /// What came after the event with this id. `None` where no such stream is known any more.
    pub fn after(&mut self, now: Instant, last_seen: &str) -> Option<Missed> {
        self.forget_old(now);
        let seen = EventId::parse(last_seen)?;
        let known = self.known.get(&seen.stream)?;
        let missed = self
            .events
            .iter()
            .filter(|event| event.id.stream == seen.stream && event.id.number > seen.number);
        let events = missed.map(|event| event.text.clone()).collect();
        Some(Missed { stream: seen.stream, events, open: !known.ended })
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some(oldest) = self.events.front() {
            let over = self.events.len() > self.limits.events || self.bytes > self.limits.bytes;
            let aged = now.saturating_duration_since(oldest.at) > self.limits.age;
            if !over && !aged {
                return;
            }
            let Some(Event { id, text, .. }) = self.events.pop_front() else { return };
            self.bytes -= text.len();
            self.forget_empty(id.stream);
        }
    }

    /// A stream that has ended goes with its last event.
    fn forget_empty(&mut self, stream: StreamId) {
        let ended = self.known.get(&stream).is_some_and(|known| known.ended);
        if ended && !self.events.iter().any(|event| event.id.stream == stream) {
            self.known.remove(&stream);
        }
    }
}

/// Named as other servers name it: some hosts look for the name.
const MESSAGE: Fields<'_> = Fields { id: None, retry: None, name: Some("message") };

/// A frame as an event that cannot be asked for again.
pub fn say_plainly(frame: &[u8]) -> Bytes {
    event(MESSAGE, frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::session::some_instant;

    const LIMITS: KeepLimits = KeepLimits { events: 4, bytes: 1000, age: Duration::from_mins(1) };

    fn texts(missed: Missed) -> (Vec<String>, bool) {
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        (missed.events.into_iter().map(text).collect(), missed.open)
    }

    #[test]
    fn h32_a_stream_is_taken_up_where_it_broke_and_no_other_with_it() {
        let (mut streams, now) = (Streams::new(LIMITS), some_instant());
        let (one, first) = streams.open(Duration::from_secs(1));
        assert_eq!(first, "id: 1-0\nretry: 1000\ndata: \n\n");
        let (two, _) = streams.open(Duration::from_secs(1));
        let said = streams.say(now, one, b"{\"a\":1}");
        assert_eq!(said, "id: 1-1\nevent: message\ndata: {\"a\":1}\n\n");
        streams.say(now, two, b"{\"b\":1}");
        streams.say(now, one, b"{\"a\":2}");
        let (missed, open) = texts(streams.after(now, "1-0").unwrap());
        assert_eq!((missed.len(), open), (2, true));
        let (missed, _) = texts(streams.after(now, "1-1").unwrap());
        assert_eq!(missed, ["id: 1-2\nevent: message\ndata: {\"a\":2}\n\n"]);
        streams.end(one);
        assert_eq!(texts(streams.after(now, "1-2").unwrap()), (vec![], false));
        for unknown in ["", "1", "3-0", "x-1", "1-x", "18446744073709551616-0"] {
            assert!(streams.after(now, unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn h32_what_is_kept_has_limits() {
        let (mut streams, now) = (Streams::new(LIMITS), some_instant());
        let (one, _) = streams.open(Duration::ZERO);
        for number in 0..6_u8 {
            streams.say(now, one, &[b'0' + number]);
        }
        assert_eq!(streams.after(now, "1-0").unwrap().events.len(), 4);
        streams.say(now, one, &[b'x'; 900]);
        assert_eq!(streams.after(now, "1-0").unwrap().events.len(), 3);
        streams.say(now, one, &[b'x'; 1100]);
        assert!(
            streams.after(now, "1-0").unwrap().events.is_empty(),
            "longer than all that is kept"
        );
        streams.say(now, one, b"1");
        streams.end(one);
        let later = now + LIMITS.age + Duration::from_millis(1);
        assert!(streams.after(later, "1-8").is_none(), "ended, and nothing of it is left");
        assert_eq!((streams.bytes, streams.known.len()), (0, 0));
    }
}
