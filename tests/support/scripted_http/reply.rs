//! What a scripted server answers with: exact bytes, event streams, waits and ways to break off.

use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::{LIMIT, Request};

/// A wait in a reply that a test ends.
#[derive(Debug, Clone)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// A shut one.
    #[allow(clippy::new_without_default, reason = "a test says what it makes")]
    pub fn new() -> Self {
        Self(watch::channel(false).0)
    }

    /// Opens it for good.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn passed(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// One thing that a connection does for a reply.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Writes bytes as they are.
    Write(Vec<u8>),
    /// Writes one HTTP chunk.
    Chunk(Vec<u8>),
    /// A frame is in what was written: noted for the strict check.
    Said(Vec<u8>),
    /// `Mcp-Session-Id` is in the head.
    Opened(String),
    /// Waits until a test opens the gate, or the peer is gone.
    Wait(Gate),
    /// Waits until the peer closes the connection.
    UntilGone,
    /// Closes the connection in order (FIN).
    Close,
    /// Breaks the connection (RST).
    Reset,
}

/// A reply. It is built from its head on: `Reply::sse().header("Mcp-Session-Id", "s").event(…)`.
#[derive(Debug, Clone)]
pub struct Reply {
    head: Option<Head>,
    pub(super) steps: Vec<Step>,
    pub(super) hand_over: bool,
}

#[derive(Debug, Clone)]
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

impl Reply {
    fn plain() -> Self {
        Self { head: None, steps: Vec::new(), hand_over: false }
    }

    fn with_head(status: u16, headers: &[(&str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Self { head: Some(Head { status, headers: headers.collect() }), ..Self::plain() }
    }

    // ---- whole replies ----

    /// The test answers, through the [`Exchange`] that `ScriptedHttp::taken` gives it.
    pub fn hand_over() -> Self {
        Self { hand_over: true, ..Self::plain() }
    }

    /// Exact bytes from the status line on; the connection stays open unless `close` follows.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { steps: vec![Step::Write(bytes.into())], ..Self::plain() }
    }

    /// Nothing at all: the request hangs until the peer gives up.
    pub fn never() -> Self {
        Self { steps: vec![Step::UntilGone], ..Self::plain() }
    }

    /// 200 with one JSON body.
    pub fn json(body: &Value) -> Self {
        Self::json_status(200, body)
    }

    /// A JSON body under another status.
    pub fn json_status(status: u16, body: &Value) -> Self {
        let text = body.to_string();
        let mut reply = Self::text(status, "application/json", &text);
        reply.steps.push(Step::Said(text.into_bytes()));
        reply
    }

    /// The result of the request, as one JSON body.
    pub fn result(request: &Request, result: Value) -> Self {
        Self::json(&serde_json::json!({ "jsonrpc": "2.0", "id": request.id(), "result": result }))
    }

    /// A body of any type.
    pub fn text(status: u16, media_type: &str, body: &str) -> Self {
        let length = body.len().to_string();
        let mut reply =
            Self::with_head(status, &[("Content-Type", media_type), ("Content-Length", &length)]);
        reply.steps.push(Step::Write(body.into()));
        reply
    }

    /// No body: 202 for a notification, 405 for a GET.
    pub fn status(status: u16) -> Self {
        Self::with_head(status, &[("Content-Length", "0")])
    }

    /// 200 with an event stream in chunks; add events, then `end`, `cut`, `reset` or `open`.
    pub fn sse() -> Self {
        let headers = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")];
        Self::with_head(200, &headers)
    }

    // ---- the head ----

    /// One more header line.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if name.eq_ignore_ascii_case("mcp-session-id") {
            self.steps.push(Step::Opened(value.to_owned()));
        }
        let head = self.head.as_mut().expect("raw bytes have their head in them");
        head.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    // ---- the event stream ----

    /// A message as an event of its own, in one chunk.
    #[must_use]
    pub fn event(self, message: &Value) -> Self {
        self.chunk(format!("event: message\ndata: {message}\n\n")).said(message)
    }

    /// A message under an event id.
    #[must_use]
    pub fn event_id(self, id: &str, message: &Value) -> Self {
        self.chunk(format!("id: {id}\ndata: {message}\n\n")).said(message)
    }

    /// Any text of an event stream (`retry:`, comments, an event without data), in one chunk.
    #[must_use]
    pub fn chunk(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Chunk(text.into()));
        self
    }

    /// A message as an event that is cut into chunks at these places of its bytes.
    #[must_use]
    pub fn event_in_pieces(self, message: &Value, cuts: &[usize]) -> Self {
        self.pieces(format!("data: {message}\n\n").as_bytes(), cuts).said(message)
    }

    /// Bytes cut into chunks at these places.
    #[must_use]
    pub fn pieces(mut self, bytes: &[u8], cuts: &[usize]) -> Self {
        let mut from = 0;
        for to in cuts.iter().copied().chain([bytes.len()]) {
            self.steps.push(Step::Chunk(bytes[from..to].to_vec()));
            from = to;
        }
        self
    }

    fn said(mut self, message: &Value) -> Self {
        self.steps.push(Step::Said(message.to_string().into_bytes()));
        self
    }

    // ---- waits and ends ----

    /// Bytes as they are, after what was said so far.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Write(bytes.into()));
        self
    }

    /// Waits until the test opens the gate. Before the first byte: `Reply::sse()` writes its head
    /// at once, so put the gate first with [`Reply::after`] where the head must wait as well.
    #[must_use]
    pub fn wait(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Wait(gate.clone()));
        self
    }

    /// Waits for the gate before anything of this reply is written.
    #[must_use]
    pub fn after(self, gate: &Gate) -> Self {
        let mut steps = vec![Step::Wait(gate.clone())];
        steps.extend(self.into_steps());
        Self { steps, ..Self::plain() }
    }

    /// Ends the chunks: the stream is whole.
    #[must_use]
    pub fn end(mut self) -> Self {
        self.steps.push(Step::Write(b"0\r\n\r\n".to_vec()));
        self
    }

    /// Closes the connection here, in the middle of the body or not.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.steps.push(Step::Close);
        self
    }

    /// Resets the connection here.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.steps.push(Step::Reset);
        self
    }

    /// Leaves the stream open until the peer goes away.
    #[must_use]
    pub fn open(mut self) -> Self {
        self.steps.push(Step::UntilGone);
        self
    }

    pub(super) fn into_steps(self) -> Vec<Step> {
        let mut steps = Vec::new();
        if let Some(Head { status, headers }) = self.head {
            let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
            for (name, value) in headers {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            text.push_str("\r\n");
            steps.push(Step::Write(text.into_bytes()));
        }
        steps.extend(self.steps);
        steps
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "Whatever",
    }
}

/// A request that the test answers itself. When it is dropped, the connection takes its next
/// request; what was not ended stays unended.
#[derive(Debug)]
pub struct Exchange {
    /// What was asked.
    pub request: Request,
    pub(super) steps: mpsc::UnboundedSender<Step>,
}

impl Exchange {
    /// Says all of a reply, or more of one: `exchange.reply(Reply::sse().event(&message))`.
    pub fn reply(&self, reply: Reply) {
        for step in reply.into_steps() {
            let _ = self.steps.send(step);
        }
    }

    /// The result, as one JSON body.
    pub fn result(&self, result: Value) {
        self.reply(Reply::result(&self.request, result));
    }

    /// One more event of a stream that was begun by `reply(Reply::sse())`.
    pub fn event(&self, message: &Value) {
        self.reply(Reply::plain().event(message));
    }

    /// More text of a begun stream.
    pub fn chunk(&self, text: impl Into<Vec<u8>>) {
        self.reply(Reply::plain().chunk(text));
    }

    /// The end of a begun stream.
    pub fn end(&self) {
        self.reply(Reply::plain().end());
    }

    /// Closes the connection here.
    pub fn cut(&self) {
        self.reply(Reply::plain().cut());
    }

    /// Waits until the peer closes the connection.
    pub async fn gone(&self) {
        let closed = tokio::time::timeout(LIMIT, self.steps.closed()).await;
        assert!(closed.is_ok(), "the peer keeps the connection of {:?}", self.request);
    }
}
