//! What a host can still be told of a stream that broke: the events of a session, by stream.
//!
//! 2025-11-25 Transports page, "Resumability and Redelivery": an event's id is unique in its session
//! and names its stream; a host that comes back with the last id it saw is told what came after it on
//! that stream, and nothing of any other. Events are kept as they go out, within three limits.
//!
//! A session may outlive the daemon that keeps its events. Its streams are numbered anew in each life,
//! above all numbers of lives before, so that no id ever means two events; and the id of an event that
//! belongs to a request names the request, so that a host that comes back for the answer after a crash
//! can be told that there is none, rather than wait for it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;

use crate::protocol::framing::sse::encode::{Fields, event};
use crate::protocol::jsonrpc::Id;

/// Streams that a session has in one life at most.
const LIFE: u64 = 1 << 32;
/// Longest id of a request that its events name, in bytes as it is written in JSON.
const NAMED: usize = 64;

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

/// What a stream carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// What belongs to no request.
    Session,
    /// The answer to a request; `None` where its id is too long to be named.
    Request(Option<Id>),
}

impl About {
    /// A stream that answers a request with this id, if it is one.
    pub fn request(id: Option<Id>) -> Self {
        Self::Request(id.filter(|id| id.as_raw().len() <= NAMED))
    }

    fn parse(text: Option<&str>) -> Option<Self> {
        let Some(text) = text else { return Some(Self::Session) };
        if text.is_empty() {
            return Some(Self::Request(None));
        }
        let raw = String::from_utf8(STANDARD_NO_PAD.decode(text).ok()?).ok()?;
        Some(Self::Request(Some(Id::from_raw(&raw).ok()?)))
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session => Ok(()),
            Self::Request(None) => f.write_str("-"),
            Self::Request(Some(id)) => write!(f, "-{}", STANDARD_NO_PAD.encode(id.as_raw())),
        }
    }
}

/// An event's place in its stream; the first is number 1, and 0 is before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EventId {
    stream: StreamId,
    number: u64,
}

impl EventId {
    fn text(self, about: &About) -> String {
        format!("{}-{}{about}", self.stream.0, self.number)
    }

    fn parse(text: &str) -> Option<(Self, About)> {
        let mut parts = text.trim().splitn(3, '-');
        let (stream, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((Self { stream: StreamId(stream), number }, About::parse(parts.next())?))
    }
}

#[derive(Debug)]
struct Event {
    id: EventId,
    at: Instant,
    text: Bytes,
}

#[derive(Debug)]
struct Stream {
    about: About,
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

/// Why a stream cannot be taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Nothing is known of it any more, or never was.
    Unknown,
    /// It ended with the daemon that it was a stream of, and what is missing of it is gone.
    Before(About),
}

/// The streams of one session, with their latest events.
#[derive(Debug)]
pub struct Streams {
    limits: KeepLimits,
    /// The number before this life's first.
    base: u64,
    last: u64,
    known: HashMap<StreamId, Stream>,
    /// Oldest first.
    events: VecDeque<Event>,
    bytes: usize,
}

impl Streams {
    /// None yet, in a session that has had `lives` before this one.
    pub fn new(limits: KeepLimits, lives: u32) -> Self {
        let (known, events) = (HashMap::new(), VecDeque::new());
        let base = u64::from(lives) * LIFE;
        Self { limits, base, last: base, known, events, bytes: 0 }
    }

    /// A new stream for `about`, and the event that begins it: an id without data, so that the host can come back
    /// before anything was said, and the time after which it may (`http.retry`).
    pub fn open(&mut self, retry: Duration, about: About) -> (StreamId, Bytes) {
        self.last += 1;
        let stream = StreamId(self.last);
        let id = EventId { stream, number: 0 }.text(&about);
        self.known.insert(stream, Stream { about, last: 0, ended: false });
        (stream, event(Fields { id: Some(&id), retry: Some(retry), name: None }, b""))
    }

    /// A frame as the next event of `stream`; kept from now on.
    pub fn say(&mut self, now: Instant, stream: StreamId, frame: &[u8]) -> Bytes {
        let Some(known) = self.known.get_mut(&stream) else { return say_plainly(frame) };
        known.last += 1;
        let id = EventId { stream, number: known.last };
        let written = id.text(&known.about);
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

    /// What came after the event with this id, as far as it is kept.
    pub fn after(&mut self, now: Instant, last_seen: &str) -> Result<Missed, Lost> {
        self.forget_old(now);
        let (seen, about) = EventId::parse(last_seen).ok_or(Lost::Unknown)?;
        if seen.stream.0 <= self.base && seen.stream.0 > 0 {
            return Err(Lost::Before(about));
        }
        let known = self.known.get(&seen.stream).ok_or(Lost::Unknown)?;
        let missed = self
            .events
            .iter()
            .filter(|event| event.id.stream == seen.stream && event.id.number > seen.number);
        let events = missed.map(|event| event.text.clone()).collect();
        Ok(Missed { stream: seen.stream, events, open: !known.ended })
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
        let (mut streams, now) = (Streams::new(LIMITS, 0), some_instant());
        let (one, first) = streams.open(Duration::from_secs(1), About::Session);
        assert_eq!(first, "id: 1-0\nretry: 1000\ndata: \n\n");
        let (two, _) = streams.open(Duration::from_secs(1), About::Session);
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
            assert_eq!(streams.after(now, unknown).unwrap_err(), Lost::Unknown, "{unknown}");
        }
    }

    /// F47, H-32: a later life of the session gives no id a second time, and says of an earlier one's
    /// stream what it carried.
    #[test]
    fn f47_no_id_means_two_events_and_a_lost_answer_is_known() {
        let (mut first, now) = (Streams::new(LIMITS, 0), some_instant());
        let id = Id::from_raw("\"a-b\"").unwrap();
        let mut ids = Vec::new();
        for about in [
            About::Session,
            About::request(Some(id.clone())),
            About::request(Some(Id::from_raw(&format!("\"{}\"", "x".repeat(NAMED))).unwrap())),
            About::request(None),
        ] {
            let (stream, event) = first.open(Duration::ZERO, about);
            for event in [event, first.say(now, stream, b"{}")] {
                let text = String::from_utf8(event.to_vec()).unwrap();
                let id = text.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
                ids.push(id.to_owned());
            }
        }
        assert_eq!(ids[2], "2-0-ImEtYiI", "{ids:?}");
        let abouts = [About::Session, About::Request(Some(id)), About::Request(None)];
        let mut later = Streams::new(LIMITS, 1);
        for (at, id) in ids.iter().enumerate() {
            let about = abouts[(at / 2).min(2)].clone();
            assert_eq!(later.after(now, id).unwrap_err(), Lost::Before(about), "{id}");
        }
        let (_, begun) = later.open(Duration::ZERO, About::Session);
        assert!(begun.starts_with(b"id: 4294967297-0\n"), "{begun:?}");
        assert!(later.after(now, "4294967297-0").unwrap().open);
        assert_eq!(later.after(now, "4294967298-0").unwrap_err(), Lost::Unknown);
        assert_eq!(later.after(now, "1-0-!").unwrap_err(), Lost::Unknown);
        assert!(Streams::new(LIMITS, 2).after(now, "4294967297-0").is_err());
    }

    #[test]
    fn h32_what_is_kept_has_limits() {
        let (mut streams, now) = (Streams::new(LIMITS, 0), some_instant());
        let (one, _) = streams.open(Duration::ZERO, About::Session);
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
        assert!(streams.after(later, "1-8").is_err(), "ended, and nothing of it is left");
        assert_eq!((streams.bytes, streams.known.len()), (0, 0));
    }
}
