//! A host made of bytes that speaks Streamable HTTP to mcpx.
//!
//! Each request goes out on a TCP connection of its own unless a test keeps one
//! ([`Response::keep`], [`Send::send_on`]); a dropped [`Response`] closes its connection. Answers
//! are read piece by piece: status, headers, then a JSON body or the events of a stream. Every
//! frame is checked against its revision by one `FrameLog` for the whole host. All waiting has a
//! limit.
//!
//! ```ignore
//! let mut host = HttpHost::at(addr, "/mcp");
//! host.initialize("2025-06-18").await;
//! let answer = host.call("echo", json!({ "text": "a" })).await;
//! let mut stream = host.get().send().await;
//! let odd = host.post(&message).without("accept").send().await;
//! assert_eq!(odd.status, 406);
//! ```

mod ask;
mod read;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64_by_hand as base64;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::asking::Answers;
use super::schema::{Facing, FrameLog, MODERN};

#[allow(unused_imports, reason = "each test binary uses its own part")]
pub use read::{Event, Response, Wire};

/// How long a host waits for anything, unless its `limit` is set otherwise.
const LIMIT: Duration = Duration::from_secs(15);

/// What the host and its open answers share.
#[derive(Debug)]
struct Talk {
    frames: Mutex<FrameLog>,
    log: Mutex<Vec<String>>,
    /// Messages that were read while waiting for another.
    inbox: Mutex<VecDeque<Value>>,
    answers: Mutex<Answers>,
}

impl Talk {
    fn note(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }

    fn story(&self) -> String {
        let log = self.log.lock().unwrap();
        let skipped = log.len().saturating_sub(30);
        let lines = log[skipped..].join("\n");
        format!("--- conversation ({skipped} lines left out) ---\n{lines}\n")
    }
}

/// A host. Several of its requests may be open at once.
#[derive(Debug)]
pub struct HttpHost {
    addr: SocketAddr,
    path: String,
    talk: Arc<Talk>,
    next_id: AtomicI64,
    /// The revision in use; none before the handshake.
    pub era: Option<String>,
    /// `Mcp-Session-Id` that the handshake gave; set or clear it at will.
    pub session: Option<String>,
    /// Headers on every request: `Authorization`, `Origin`.
    pub headers: Vec<(String, String)>,
    /// False where frames are not to be judged.
    pub strict: bool,
    /// The limit of every wait.
    pub limit: Duration,
    /// The capabilities that the handshake and modern requests declare.
    pub capabilities: Value,
}

impl HttpHost {
    /// A host of the endpoint at `path`; nothing is sent.
    pub fn at(addr: SocketAddr, path: &str) -> Self {
        let frames = Mutex::new(FrameLog::new(Facing::Host));
        Self {
            addr,
            path: path.to_owned(),
            talk: Arc::new(Talk {
                frames,
                log: Mutex::default(),
                inbox: Mutex::default(),
                answers: Mutex::default(),
            }),
            next_id: AtomicI64::new(1),
            era: None,
            session: None,
            headers: Vec::new(),
            strict: true,
            limit: LIMIT,
            capabilities: json!({}),
        }
    }

    /// The endpoint is at another address from here on; everything else stays.
    pub fn move_to(&mut self, addr: SocketAddr) {
        self.addr = addr;
    }

    /// Speaks 2026-07-28 from here on: requests carry their `_meta` and headers, no handshake.
    pub fn use_modern(&mut self) {
        self.era = Some(MODERN.to_owned());
    }

    /// True when requests carry the modern `_meta` and headers.
    pub fn is_modern(&self) -> bool {
        self.era.as_deref() == Some(MODERN)
    }

    /// The strict check: allow foreign keys here, or assume a revision.
    pub fn frames(&self, change: impl FnOnce(&mut FrameLog)) {
        change(&mut self.talk.frames.lock().unwrap());
    }

    /// The next free id.
    pub fn take_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The conversation so far, shortened, for messages.
    pub fn story(&self) -> String {
        self.talk.story()
    }

    // ---- requests, not sent yet ----

    /// A POST of one message, with the headers that the era wants.
    pub fn post(&self, message: &Value) -> Send<'_> {
        let mut send = self.post_bytes(message.to_string().as_bytes());
        let modern = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        if let Some(revision) = modern {
            send = send.header("MCP-Protocol-Version", revision);
            if let Some(method) = message["method"].as_str() {
                send = send.header("Mcp-Method", method);
            }
            if let Some(name) = mirrored_name(message) {
                send = send.header("Mcp-Name", &header_value(name));
            }
        } else if message["method"] == "initialize" {
            // The first request belongs to no session and to no revision.
            send = send.without("mcp-session-id").without("mcp-protocol-version");
        }
        send
    }

    /// A POST of any body, with the headers of a session.
    pub fn post_bytes(&self, body: &[u8]) -> Send<'_> {
        self.plain("POST", body)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
    }

    /// A GET for the session's own stream.
    pub fn get(&self) -> Send<'_> {
        self.plain("GET", b"").header("Accept", "text/event-stream")
    }

    /// A DELETE of the session.
    pub fn delete(&self) -> Send<'_> {
        self.plain("DELETE", b"")
    }

    /// Any request: `Host`, the host's own headers, session and version.
    pub fn plain(&self, verb: &str, body: &[u8]) -> Send<'_> {
        let mut send = Send {
            host: self,
            verb: verb.to_owned(),
            path: self.path.clone(),
            headers: vec![("Host".to_owned(), self.addr.to_string())],
            body: body.to_vec(),
        };
        send.headers.extend(self.headers.iter().cloned());
        if let Some(session) = &self.session {
            send = send.header("Mcp-Session-Id", session);
        }
        // The header came with 2025-06-18.
        if let Some(era) = self.era.as_deref().filter(|era| *era >= "2025-06-18" && *era != MODERN)
        {
            send = send.header("MCP-Protocol-Version", era);
        }
        send
    }

    /// A connection that says nothing yet.
    pub async fn dial(&self) -> Wire {
        let stream = timeout(self.limit, TcpStream::connect(self.addr)).await;
        let stream = stream.expect("no connection in time");
        let stream = stream.unwrap_or_else(|why| panic!("nobody at {}: {why}", self.addr));
        let _ = stream.set_nodelay(true);
        Wire::new(stream)
    }

    /// Exact bytes, from the request line on, on a connection of their own; and the answer.
    pub async fn bytes(&self, bytes: &[u8]) -> Response {
        let mut wire = self.dial().await;
        wire.write(bytes).await;
        self.read_answer(wire, "GET").await
    }

    /// Reads the head of an answer on a connection; `verb` is that of the request.
    pub async fn read_answer(&self, wire: Wire, verb: &str) -> Response {
        Response::read(wire, verb, Arc::clone(&self.talk), self.limit, self.strict).await
    }
}

/// A request that can be changed before it is sent.
#[derive(Debug)]
pub struct Send<'a> {
    host: &'a HttpHost,
    verb: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Send<'_> {
    /// Sets a header, in place of one of that name.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.without(name).also(name, value)
    }

    /// Adds a header line beside those of that name.
    #[must_use]
    pub fn also(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves a header out.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(key, _)| !key.eq_ignore_ascii_case(name));
        self
    }

    /// This body in place of the message's own writing.
    #[must_use]
    #[allow(dead_code, reason = "each test binary uses its own part")]
    pub fn body(mut self, bytes: &[u8]) -> Self {
        bytes.clone_into(&mut self.body);
        self
    }

    /// Another path than the host's.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The bytes that go out: request line, headers, body.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { verb, path, headers, body, .. } = self;
        let mut text = format!("{verb} {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let framed = headers.iter().any(|(name, _)| {
            name.eq_ignore_ascii_case("content-length")
                || name.eq_ignore_ascii_case("transfer-encoding")
        });
        if verb == "POST" && !framed {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body);
        bytes
    }

    /// Sends it on a connection of its own and reads the head of the answer.
    pub async fn send(self) -> Response {
        let wire = self.host.dial().await;
        self.send_on(wire).await
    }

    /// Sends it on a connection that was kept.
    pub async fn send_on(self, wire: Wire) -> Response {
        let wire = self.write_on(wire).await;
        self.host.read_answer(wire, &self.verb).await
    }

    /// Sends it and waits for nothing; `HttpHost::read_answer` reads on.
    pub async fn write(&self) -> Wire {
        let wire = self.host.dial().await;
        self.write_on(wire).await
    }

    async fn write_on(&self, mut wire: Wire) -> Wire {
        let talk = &self.host.talk;
        let shown = String::from_utf8_lossy(&self.body[..self.body.len().min(400)]).into_owned();
        talk.note(format!("C> {} {} {shown}", self.verb, self.path));
        talk.frames.lock().unwrap().incoming(&self.body);
        match timeout(self.host.limit, wire.write(&self.to_bytes())).await {
            Ok(()) => wire,
            Err(_) => panic!("mcpx does not read\n{}", talk.story()),
        }
    }
}

/// The parameter that `Mcp-Name` mirrors at 2026-07-28.
fn mirrored_name(message: &Value) -> Option<&str> {
    let params = &message["params"];
    match message["method"].as_str()? {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        // The tasks extension, "Routing headers".
        "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
        _ => None,
    }
}

/// A value as a header may carry it: as it is, or in the Base64 form of 2026-07-28.
pub fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    let trimmed = text.trim_matches([' ', '\t']) == text;
    let marked = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && trimmed && !marked && !text.is_empty() {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64::encode(text.as_bytes()))
}

/// Base64, written out: the test support shares no code with the product, nor a crate for this.
mod base64_by_hand {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    pub(super) fn encode(bytes: &[u8]) -> String {
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
            let bits = at(0) << 16 | at(1) << 8 | at(2);
            for place in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
                text.push(if place > three.len() { '=' } else { char::from(digit) });
            }
        }
        text
    }
}
