//! A push decoder of event streams: bytes in, events out (F16, F17).
//!
//! Two liberties beyond WHATWG, both for resumption and for servers that end early: an event
//! without data is given out where it carries an id or a retry time, and [`SseDecoder::end`] gives
//! out what the stream's end cut short.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name; empty where it has none, which means `message`.
    pub name: String,
    /// Its id, where it has one; an empty one takes the last id back.
    pub id: Option<String>,
    /// How long to wait before a reconnection.
    pub retry: Option<Duration>,
    /// Its data, lines joined by LF; `None` where it has no line of data at all.
    pub data: Option<Bytes>,
}

impl SseEvent {
    /// Whether it is one that everybody hears.
    pub fn is_message(&self) -> bool {
        self.name.is_empty() || self.name == "message"
    }
}

/// An event that is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLarge {
    /// What came of it so far.
    pub bytes: usize,
}

/// Cuts events out of a stream.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    /// What came and is no whole line yet.
    buffer: BytesMut,
    /// Bytes at its beginning that hold no line end.
    scanned: usize,
    /// The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    /// No line was read yet.
    first: bool,
    event: SseEvent,
    /// Lines of data after the first one, which stands in `event`.
    more: Vec<Bytes>,
    /// Bytes of all of them.
    held: usize,
}

impl SseDecoder {
    /// For events of at most `limit` bytes of data.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
            scanned: 0,
            after_cr: false,
            first: true,
            event: SseEvent::default(),
            more: Vec::new(),
            held: 0,
        }
    }

    /// Takes bytes in. Follow with [`Self::next_event`] until it has nothing more.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The stream is at its end: what was begun counts as whole. Some servers leave out the last
    /// line ends; whether such an event is whole is seen when it is parsed.
    pub fn end(&mut self) {
        self.buffer.extend_from_slice(b"\n\n");
    }

    /// The next whole event. After an error the stream cannot be read on.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, EventTooLarge> {
        while let Some(line) = self.next_line()? {
            if !line.is_empty() {
                self.line(&line)?;
            } else if let Some(event) = self.dispatch() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Bytes>, EventTooLarge> {
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer.starts_with(b"\n") {
                self.buffer.advance(1);
            }
        }
        let unseen = self.buffer.get(self.scanned..).unwrap_or_default();
        let Some(at) = memchr::memchr2(b'\r', b'\n', unseen) else {
            self.scanned = self.buffer.len();
            if self.buffer.is_empty() {
                // Data handed out shares this memory; what is left of it must not outlive it.
                self.buffer = BytesMut::new();
            }
            self.within(self.scanned.saturating_sub("data: ".len()))?;
            return Ok(None);
        };
        let mut line = self.buffer.split_to(self.scanned + at).freeze();
        self.after_cr = self.buffer.starts_with(b"\r");
        self.buffer.advance(1);
        self.scanned = 0;
        if std::mem::take(&mut self.first) && line.starts_with("\u{feff}".as_bytes()) {
            line.advance("\u{feff}".len());
        }
        Ok(Some(line))
    }

    fn within(&self, more: usize) -> Result<(), EventTooLarge> {
        let bytes = self.held + more;
        if bytes > self.limit { Err(EventTooLarge { bytes }) } else { Ok(()) }
    }

    fn line(&mut self, line: &Bytes) -> Result<(), EventTooLarge> {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let name = line.slice(..colon);
        let mut value = line.slice((colon + 1).min(line.len())..);
        if value.starts_with(b" ") {
            value.advance(1);
        }
        match name.as_ref() {
            b"data" => {
                self.within(value.len())?;
                // The LF that joins it to the line before.
                self.held += value.len() + 1;
                match self.event.data {
                    None => self.event.data = Some(value),
                    Some(_) => self.more.push(value),
                }
            }
            b"event" => self.event.name = text(&value),
            b"id" if !value.contains(&0) => self.event.id = Some(text(&value)),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let millis = text(&value).parse().ok();
                self.event.retry = millis.map(Duration::from_millis).or(self.event.retry);
            }
            // A comment has no name; what is not known is ignored.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let mut event = std::mem::take(&mut self.event);
        if !self.more.is_empty() {
            let mut whole = BytesMut::with_capacity(self.held);
            whole.extend_from_slice(event.data.as_deref().unwrap_or_default());
            for line in self.more.drain(..) {
                whole.extend_from_slice(b"\n");
                whole.extend_from_slice(&line);
            }
            event.data = Some(whole.freeze());
        }
        self.held = 0;
        let says = event.data.is_some() || event.id.is_some() || event.retry.is_some();
        says.then_some(event)
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole, byte by byte, and cut in two at every place: always the same events.
    fn events(stream: &str) -> Vec<SseEvent> {
        let bytes = stream.as_bytes();
        let read = |chunks: &[&[u8]]| {
            let mut decoder = SseDecoder::new(100);
            let mut events = Vec::new();
            for chunk in chunks {
                decoder.push(chunk);
                while let Some(event) = decoder.next_event().unwrap() {
                    events.push(event);
                }
            }
            events
        };
        let whole = read(&[bytes]);
        assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()), whole, "{stream:?}");
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(read(&[a, b]), whole, "{stream:?} cut at {at}");
        }
        whole
    }

    fn data(stream: &str) -> Vec<String> {
        let data = |event: SseEvent| text(&event.data.unwrap_or_default());
        events(stream).into_iter().map(data).collect()
    }

    fn event(id: Option<&str>, retry: Option<u64>, data: Option<&'static str>) -> SseEvent {
        SseEvent {
            name: String::new(),
            id: id.map(str::to_owned),
            retry: retry.map(Duration::from_millis),
            data: data.map(Bytes::from),
        }
    }

    #[test]
    fn f16_a_priming_event_keeps_its_id_and_its_time() {
        let priming = events("data:\nid: 0\nretry: 3000\n\ndata: {\"id\":1}\n\n");
        let first = event(Some("0"), Some(3000), Some(""));
        assert_eq!(priming, [first, event(None, None, Some("{\"id\":1}"))]);
        assert_eq!(events("id: 7\n\n"), [event(Some("7"), None, None)]);
        assert_eq!(events("data: \n\n"), [event(None, None, Some(""))]);
        assert_eq!(events("id\n\n"), [event(Some(""), None, None)]);
    }

    #[test]
    fn f17_every_line_end_and_every_split() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = ["data: {\"a\":", "data: 1", "data: }", "", "data:{\"b\":2}", "", ""];
            assert_eq!(data(&stream.join(end)), ["{\"a\":\n1\n}", "{\"b\":2}"], "{end:?}");
        }
        assert_eq!(data("data: a\r\n\ndata: b\n\r\n"), ["a", "b"]);
        assert_eq!(data("data: a\n\r\ndata: b\r\r"), ["a", "b"]);
    }

    #[test]
    fn f17_a_byte_order_mark_at_the_start_only() {
        assert_eq!(data("\u{feff}data: a\n\n\u{feff}data: b\n\n"), ["a"]);
    }

    #[test]
    fn the_grammar_of_lines() {
        assert_eq!(data("data:  a\ndata\ndata:b:c\n\n"), [" a\n\nb:c"]);
        assert_eq!(data(": comment\n\n:\n\nwhat: else\n\nevent: x\n\n"), Vec::<String>::new());
        // A name belongs to one event.
        let named = events("event: endpoint\ndata: /m\n\ndata: x\n\n");
        assert_eq!(named.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["endpoint", ""]);
        assert!(!named[0].is_message() && named[1].is_message());
        for odd in ["retry: 1.5\n\n", "retry: -1\n\n", "retry: x\n\n", "id: a\0b\n\n"] {
            assert_eq!(events(odd), [], "{odd:?}");
        }
        assert_eq!(events("retry: 99999999999999999999\nid: 1\n\n")[0].retry, None);
    }

    #[test]
    fn what_the_end_cuts_short_is_given_out() {
        let mut decoder = SseDecoder::new(100);
        decoder.push(b"data: {}");
        assert_eq!(decoder.next_event(), Ok(None));
        decoder.end();
        assert_eq!(decoder.next_event(), Ok(Some(event(None, None, Some("{}")))));
        assert_eq!(decoder.next_event(), Ok(None));
        for nothing in ["", "data: a\n\n", ": x"] {
            let mut decoder = SseDecoder::new(100);
            decoder.push(nothing.as_bytes());
            while decoder.next_event().unwrap().is_some() {}
            decoder.end();
            assert_eq!(decoder.next_event(), Ok(None), "{nothing:?}");
        }
    }

    #[test]
    fn an_event_beyond_the_limit_is_noticed_before_it_is_whole() {
        let mut decoder = SseDecoder::new(20);
        decoder.push(b"data: 01234567890123");
        assert_eq!(decoder.next_event(), Ok(None));
        decoder.push(b"4567890");
        assert_eq!(decoder.next_event(), Err(EventTooLarge { bytes: 21 }));
        let mut decoder = SseDecoder::new(20);
        decoder.push(b"data: 0123456789\ndata: 0123456789\n");
        assert_eq!(decoder.next_event(), Err(EventTooLarge { bytes: 21 }));
        // Events of a stream are counted each for itself.
        let mut decoder = SseDecoder::new(20);
        for _ in 0..9 {
            decoder.push(b"data: 0123456789\n\n");
            assert!(decoder.next_event().unwrap().is_some());
        }
    }
}
