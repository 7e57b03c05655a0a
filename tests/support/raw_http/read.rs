//! Reading what mcpx answers, piece by piece.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::lenient;
use super::Talk;

/// A connection and what was read of it and not used.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Writes bytes as they are.
    pub async fn write(&mut self, bytes: &[u8]) {
        // A peer that refuses early may close before it has read all: its answer is read anyway.
        let _ = self.stream.write_all(bytes).await;
    }

    /// Reads until the peer closes; what came.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.fill().await {}
        std::mem::take(&mut self.buffer)
    }

    async fn fill(&mut self) -> bool {
        let mut chunk = vec![0; 64 * 1024];
        let count = self.stream.read(&mut chunk).await.unwrap_or(0);
        self.buffer.extend_from_slice(&chunk[..count]);
        count > 0
    }

    /// The bytes up to an end mark, without it; `None` where the connection ends first.
    async fn take_to(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        let mut from = 0;
        loop {
            let found = self.buffer[from..].windows(mark.len()).position(|bytes| bytes == mark);
            if let Some(end) = found {
                let end = from + end;
                let taken = self.buffer.drain(..end + mark.len()).take(end).collect();
                return Some(taken);
            }
            from = (self.buffer.len() + 1).saturating_sub(mark.len());
            if !self.fill().await {
                return None;
            }
        }
    }

    /// At most `count` bytes; `None` where the connection ends first.
    async fn take_some(&mut self, count: usize) -> Option<Vec<u8>> {
        if self.buffer.is_empty() && !self.fill().await {
            return None;
        }
        let count = count.min(self.buffer.len());
        Some(self.buffer.drain(..count).collect())
    }
}

/// How the body is delimited, and how much of it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Bytes(usize),
    /// In the middle of a chunk, with so many bytes to come.
    Chunk(usize),
    NextChunk,
    UntilClose,
    Nothing,
    /// The connection ended before the body did.
    Broken,
}

/// One event of a stream, or a block of comments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// `event:`
    pub name: Option<String>,
    /// `id:`
    pub id: Option<String>,
    /// `retry:`
    pub retry: Option<u64>,
    /// The `data:` lines, joined; `Some("")` for an empty one.
    pub data: Option<String>,
    /// The comments.
    pub comments: Vec<String>,
}

impl Event {
    /// True for a block that holds comments alone.
    pub fn is_comment(&self) -> bool {
        let rest = Self { comments: self.comments.clone(), ..Self::default() };
        !self.comments.is_empty() && *self == rest
    }

    /// The data as JSON; null where there is none.
    pub fn json(&self) -> Value {
        self.data
            .as_deref()
            .and_then(|data| lenient::parse(data.as_bytes()).ok())
            .unwrap_or_default()
    }
}

/// An answer whose body is read as it comes. Dropping it closes the connection.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The header lines in order: names as written.
    pub headers: Vec<(String, String)>,
    /// The id of the last event that had one.
    pub last_event_id: Option<String>,
    wire: Wire,
    left: Left,
    /// Bytes of the stream that are no whole event yet.
    partial: Vec<u8>,
    pub(super) talk: Arc<Talk>,
    pub(super) limit: Duration,
    strict: bool,
}

impl Response {
    pub(super) async fn read(
        mut wire: Wire,
        verb: &str,
        talk: Arc<Talk>,
        limit: Duration,
        strict: bool,
    ) -> Self {
        let head = loop {
            let head = match timeout(limit, wire.take_to(b"\r\n\r\n")).await {
                Ok(Some(head)) => String::from_utf8(head).expect("a head that is no text"),
                Ok(None) => panic!("closed without an answer\n{}", talk.story()),
                Err(_) => panic!("no answer within {limit:?}\n{}", talk.story()),
            };
            if !head.starts_with("HTTP/1.1 100") {
                break head;
            }
        };
        talk.note(format!("<C {}", head.replace("\r\n", " | ")));
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').expect("a header line without a colon");
            (name.to_owned(), value.trim().to_owned())
        });
        let mut response = Self {
            status: status.unwrap_or_else(|| panic!("no status line: {first}")),
            headers: headers.collect(),
            last_event_id: None,
            wire,
            left: Left::Nothing,
            partial: Vec::new(),
            talk,
            limit,
            strict,
        };
        response.left = response.framing(verb);
        response
    }

    fn framing(&self, verb: &str) -> Left {
        let length = self.header("content-length").map(|length| length.parse().unwrap());
        let chunked = self.header("transfer-encoding").is_some_and(|how| how == "chunked");
        assert!(!(chunked && length.is_some()), "two lengths: {:?}", self.headers);
        match length {
            _ if verb == "HEAD" || matches!(self.status, 204 | 304 | 100..=199) => Left::Nothing,
            Some(0) => Left::Nothing,
            Some(length) => Left::Bytes(length),
            None if chunked => Left::NextChunk,
            None => Left::UntilClose,
        }
    }

    /// The value of a header, whatever its case.
    ///
    /// # Panics
    /// Where it is there twice.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let (_, value) = all.next()?;
        assert!(all.next().is_none(), "{name} is there twice: {:?}", self.headers);
        Some(value)
    }

    /// True for an event stream.
    pub fn is_stream(&self) -> bool {
        self.media_type() == "text/event-stream"
    }

    fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The next piece of the body; `None` at its end.
    async fn piece(&mut self) -> Option<Vec<u8>> {
        loop {
            let piece = match self.left {
                Left::Nothing | Left::Broken => return None,
                Left::UntilClose => {
                    let piece = self.wire.take_some(usize::MAX).await;
                    if piece.is_none() {
                        self.left = Left::Nothing;
                    }
                    return piece;
                }
                Left::NextChunk => {
                    let line = self.wire.take_to(b"\r\n").await;
                    let size = line.as_ref().map(|line| String::from_utf8_lossy(line));
                    let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
                    self.left = match size {
                        None => Left::Broken,
                        Some(0) => {
                            let end = self.wire.take_to(b"\r\n").await;
                            if end.is_some() { Left::Nothing } else { Left::Broken }
                        }
                        Some(size) => Left::Chunk(size),
                    };
                    continue;
                }
                Left::Bytes(count) | Left::Chunk(count) => self.wire.take_some(count).await,
            };
            let Some(piece) = piece else {
                self.left = Left::Broken;
                return None;
            };
            self.left = match self.left {
                Left::Bytes(count) if count == piece.len() => Left::Nothing,
                Left::Bytes(count) => Left::Bytes(count - piece.len()),
                Left::Chunk(count) if count == piece.len() => {
                    let end = self.wire.take_to(b"\r\n").await;
                    if end.is_some() { Left::NextChunk } else { Left::Broken }
                }
                Left::Chunk(count) => Left::Chunk(count - piece.len()),
                other => other,
            };
            return Some(piece);
        }
    }

    /// The whole body.
    ///
    /// # Panics
    /// Where the connection ends first, or the time.
    pub async fn body(&mut self) -> Vec<u8> {
        let limit = self.limit;
        let all = async {
            let mut body = std::mem::take(&mut self.partial);
            while let Some(piece) = self.piece().await {
                body.extend(piece);
            }
            body
        };
        let body = timeout(limit, all).await;
        let body = body.unwrap_or_else(|_| panic!("the body does not end\n{}", self.talk.story()));
        assert_ne!(self.left, Left::Broken, "the body broke off\n{}", self.talk.story());
        body
    }

    /// The whole body as text.
    pub async fn text(&mut self) -> String {
        String::from_utf8(self.body().await).expect("a body that is no text")
    }

    /// The whole body as one JSON-RPC message or batch, checked; or any other JSON under a status
    /// that is no success.
    pub async fn json(&mut self) -> Value {
        assert_eq!(self.media_type(), "application/json", "{:?}", self.headers);
        let body = self.body().await;
        self.take_frame(&body)
    }

    /// The next block of the stream, comments too; `None` at its end.
    pub async fn next_block(&mut self) -> Option<Event> {
        assert!(self.is_stream(), "no stream: {} {:?}", self.status, self.headers);
        let limit = self.limit;
        match timeout(limit, self.block()).await {
            Ok(block) => block,
            Err(_) => panic!("no event within {limit:?}\n{}", self.talk.story()),
        }
    }

    async fn block(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.partial.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.partial.drain(..end + 2).take(end).collect();
                let event = parse(std::str::from_utf8(&block).expect("an event that is no text"));
                if event.id.is_some() {
                    self.last_event_id.clone_from(&event.id);
                }
                return Some(event);
            }
            let Some(piece) = self.piece().await else {
                let half = String::from_utf8_lossy(&self.partial);
                assert!(half.is_empty() || self.left == Left::Broken, "half an event: {half}");
                return None;
            };
            self.partial.extend(piece);
        }
    }

    /// The next event that is more than comments; `None` at the end.
    pub async fn next_event(&mut self) -> Option<Event> {
        loop {
            let event = self.next_block().await?;
            if !event.is_comment() {
                return Some(event);
            }
        }
    }

    /// The next message, checked: of the stream, or the JSON body. Events without data are passed
    /// over. `None` at the end.
    pub async fn next_frame(&mut self) -> Option<Value> {
        if !self.is_stream() {
            return if self.left == Left::Nothing { None } else { Some(self.json().await) };
        }
        loop {
            let event = self.next_event().await?;
            let Some(data) = event.data.filter(|data| !data.is_empty()) else { continue };
            assert!(matches!(event.name.as_deref(), None | Some("message")), "{:?}", event.name);
            return Some(self.take_frame(data.as_bytes()));
        }
    }

    fn take_frame(&self, bytes: &[u8]) -> Value {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
        self.talk.note(format!("<C {shown}"));
        let value = lenient::parse(bytes)
            .unwrap_or_else(|why| panic!("no JSON: {why}\n{}", self.talk.story()));
        // What is refused before it is read as a message has an error of no request, or none.
        let refusal = self.status >= 400 && value.get("id").is_none_or(Value::is_null);
        if !refusal && self.strict {
            let checked = self.talk.frames.lock().unwrap().outgoing(bytes);
            checked.unwrap_or_else(|why| panic!("{why}\n{}", self.talk.story()));
        }
        value
    }

    /// Nothing but comments comes for that long, and the stream stays open.
    pub async fn expect_silence(&mut self, millis: u64) {
        let quiet = async {
            loop {
                match self.block().await {
                    Some(event) if event.is_comment() => {}
                    other => return other,
                }
            }
        };
        if let Ok(end) = timeout(Duration::from_millis(millis), quiet).await {
            panic!("not silent: {end:?}\n{}", self.talk.story());
        }
    }

    /// The stream ends, in order, without another message.
    pub async fn expect_end(&mut self) {
        if let Some(event) = self.next_event().await {
            panic!("not the end: {event:?}\n{}", self.talk.story());
        }
        assert_ne!(self.left, Left::Broken, "the stream broke off\n{}", self.talk.story());
    }

    /// True when the connection ended before the body did.
    pub fn broke_off(&self) -> bool {
        self.left == Left::Broken
    }

    /// The connection, for another request.
    ///
    /// # Panics
    /// Where the body was not read to its end.
    pub fn keep(self) -> Wire {
        assert_eq!(self.left, Left::Nothing, "the body was not read");
        self.wire
    }
}

fn parse(block: &str) -> Event {
    let mut event = Event::default();
    for line in block.split('\n') {
        assert!(!line.contains('\r'), "a CR in an event line: {line:?}");
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            "" => event.comments.push(value),
            "event" => event.name = Some(value),
            "id" => event.id = Some(value),
            "retry" => event.retry = Some(value.parse().expect("retry is no number")),
            "data" => match &mut event.data {
                Some(data) => data.push_str(&format!("\n{value}")),
                none => *none = Some(value),
            },
            other => panic!("no field of an event: {other:?}"),
        }
    }
    event
}
