//! A host made of bytes: it speaks to mcpx over a child's pipes, a socket or a memory pipe.
//!
//! It writes what it is told to write, byte for byte, parses with `serde_json` alone, and checks
//! every frame that it reads (`schema::FrameLog`): a frame that is not valid in the revision in
//! use fails the test that read it. All waiting has a limit; under a paused clock it costs none.

mod ask;

use std::collections::VecDeque;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout, timeout_at};

use super::asking::{self, Answers};
use super::lenient;
use super::schema::{Facing, FrameLog};

pub use super::asking::modern_params;

/// How long a [`RawHost`] waits for anything, unless its `limit` is set otherwise.
const LIMIT: Duration = Duration::from_secs(15);

/// One line of the conversation, for messages of failing tests and for checks afterwards.
#[derive(Debug, Clone)]
pub struct Logged {
    /// True for what the host wrote.
    pub sent: bool,
    /// The bytes, without the line end.
    pub bytes: Vec<u8>,
}

/// A host. Frames that were read while waiting for another are kept in `inbox`.
pub struct RawHost {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    child: Option<Child>,
    buffer: Vec<u8>,
    /// How much of `buffer` is known to hold no line end.
    scanned: usize,
    /// The rest of a batch that was read.
    unpacked: VecDeque<Value>,
    closed: bool,
    next_id: i64,
    era: Option<String>,
    /// What was read and not asked for yet.
    pub inbox: VecDeque<Value>,
    /// Everything said so far, in order.
    pub log: Vec<Logged>,
    /// The strict check; allow foreign keys here.
    pub frames: FrameLog,
    /// False where frames are not to be judged: the peer is a fake with bad habits.
    pub strict: bool,
    /// The limit of every wait.
    pub limit: Duration,
    /// The capabilities that the handshake and modern requests declare.
    pub capabilities: Value,
    /// What was asked, and who answers; see `RawHost::answer_with`.
    pub answers: Answers,
}

impl std::fmt::Debug for RawHost {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RawHost").field("child", &self.child).finish_non_exhaustive()
    }
}

impl RawHost {
    /// A host over any pair of byte streams.
    pub fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Some(Box::new(writer)),
            child: None,
            buffer: Vec::new(),
            scanned: 0,
            unpacked: VecDeque::new(),
            closed: false,
            next_id: 1,
            era: None,
            inbox: VecDeque::new(),
            log: Vec::new(),
            frames: FrameLog::new(Facing::Host),
            strict: true,
            limit: LIMIT,
            capabilities: json!({}),
            answers: Answers::default(),
        }
    }

    /// A host in this process, and the end that mcpx gets.
    pub fn duplex(capacity: usize) -> (Self, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(capacity);
        let (reader, writer) = tokio::io::split(ours);
        (Self::over(reader, writer), theirs)
    }

    /// Starts a command and speaks over its pipes. It is killed when the host is dropped. Its
    /// standard error is inherited unless the command says otherwise.
    pub fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|why| panic!("cannot start: {why}"));
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut host = Self::over(stdout, stdin);
        host.child = Some(child);
        host
    }

    /// Joins a daemon on its control socket as a shim does, by `/v1/attach`; `headers` carry the
    /// version, the project and the profile.
    pub async fn attach(socket: &Path, headers: &[(&str, &str)]) -> Self {
        let stream = UnixStream::connect(socket)
            .await
            .unwrap_or_else(|why| panic!("no daemon at {}: {why}", socket.display()));
        let (reader, mut writer) = stream.into_split();
        let mut head = String::from("GET /v1/attach HTTP/1.1\r\nHost: mcpx\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        writer.write_all(head.as_bytes()).await.unwrap();
        let mut host = Self::over(reader, writer);
        let answer = host.take_head().await;
        assert!(answer.starts_with("HTTP/1.1 101"), "attach was refused:\n{answer}");
        host
    }

    async fn take_head(&mut self) -> String {
        let deadline = Instant::now() + self.limit;
        loop {
            let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
                return String::from_utf8_lossy(&head).into_owned();
            }
            let more = timeout_at(deadline, self.fill()).await.expect("no answer to the upgrade");
            if !more {
                return String::from_utf8_lossy(&self.buffer).into_owned();
            }
        }
    }

    // ---- writing ----

    /// Writes bytes exactly as they are. Reading goes on meanwhile, so that a peer that must
    /// write before it reads on does not block this.
    pub async fn send_raw(&mut self, bytes: &[u8]) {
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.frames.incoming(line);
            self.log.push(Logged { sent: true, bytes: line.to_vec() });
        }
        self.write_all(bytes).await;
    }

    /// Writes bytes that are part of a frame; the log does not see them.
    pub async fn send_part(&mut self, bytes: &[u8]) {
        self.write_all(bytes).await;
    }

    async fn write_all(&mut self, mut bytes: &[u8]) {
        let deadline = Instant::now() + self.limit;
        let mut writer = self.writer.take().expect("the host has closed its side");
        let mut chunk = vec![0; 64 * 1024];
        while !bytes.is_empty() {
            let step = async {
                tokio::select! {
                    biased;
                    read = self.reader.read(&mut chunk), if !self.closed => (None, read.unwrap_or(0)),
                    written = writer.write(bytes) => (Some(written), 0),
                }
            };
            match timeout_at(deadline, step).await {
                Err(_) => {
                    panic!("mcpx does not read: {} bytes left\n{}", bytes.len(), self.story())
                }
                Ok((Some(written), _)) => match written {
                    Ok(count) => bytes = &bytes[count..],
                    Err(why) => panic!("cannot write to mcpx: {why}\n{}", self.story()),
                },
                Ok((None, 0)) => self.closed = true,
                Ok((None, count)) => self.buffer.extend_from_slice(&chunk[..count]),
            }
        }
        let _ = writer.flush().await;
        self.writer = Some(writer);
    }

    /// Writes one message and a line end.
    pub async fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes()).await;
    }

    /// Writes a request with a given id.
    pub async fn start(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(&asking::request(id.into(), method, params)).await;
    }

    /// Writes a `tools/call` with a given id, in the era that the host is in.
    pub async fn start_call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        let params = self.dress(asking::call_params(tool, arguments, Value::Null));
        self.start(id, "tools/call", params).await;
    }

    /// As [`Self::start_call`], with a progress token.
    pub async fn start_call_with_progress(
        &mut self,
        id: impl Into<Value>,
        tool: &str,
        arguments: Value,
        token: impl Into<Value>,
    ) {
        let params = self.dress(asking::call_params(tool, arguments, token.into()));
        self.start(id, "tools/call", params).await;
    }

    /// Writes a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&asking::notification(method, params)).await;
    }

    /// Cancels a request of this host's.
    pub async fn cancel(&mut self, id: impl Into<Value>) {
        self.notify("notifications/cancelled", json!({ "requestId": id.into() })).await;
    }

    /// Answers a request of mcpx's with a result.
    pub async fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    /// Ends the writing side: end of input for mcpx.
    pub async fn close_input(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            let _ = writer.shutdown().await;
        }
    }

    /// One message. `None` at the end. Batches are taken apart.
    async fn read_message(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.unpacked.pop_front() {
                return Some(message);
            }
            if let Some(line) = self.take_line() {
                self.unpack(line);
                continue;
            }
            if !self.fill().await {
                let rest = String::from_utf8_lossy(&self.buffer);
                assert!(rest.is_empty(), "mcpx left half a frame: {rest}\n{}", self.story());
                return None;
            }
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.buffer.len();
            return None;
        };
        let end = self.scanned + end;
        let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
        line.pop();
        self.scanned = 0;
        Some(line)
    }

    fn unpack(&mut self, line: Vec<u8>) {
        let checked = self.frames.outgoing(&line);
        let parsed = lenient::parse(&line);
        self.log.push(Logged { sent: false, bytes: line });
        if let Err(why) = checked
            && self.strict
        {
            panic!("{why}\n{}", self.story());
        }
        match parsed {
            Ok(Value::Array(batch)) => self.unpacked.extend(batch),
            Ok(message) => self.unpacked.push_back(message),
            Err(why) => panic!("mcpx wrote no JSON: {why}\n{}", self.story()),
        }
    }

    /// Reads some bytes; false at the end. Safe to cancel.
    async fn fill(&mut self) -> bool {
        if self.closed {
            return false;
        }
        let mut chunk = vec![0; 64 * 1024];
        let count = self.reader.read(&mut chunk).await.unwrap_or(0);
        self.buffer.extend_from_slice(&chunk[..count]);
        self.closed = count == 0;
        count > 0
    }

    // ---- looking ----

    /// The bytes of the last frame that mcpx sent, for checks on exact text.
    pub fn last_read(&self) -> Option<&[u8]> {
        self.log.iter().rev().find(|line| !line.sent).map(|line| line.bytes.as_slice())
    }

    /// Process id of the spawned command.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// Waits for the spawned command to end.
    pub async fn wait_exit(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("no command was spawned");
        match timeout(self.limit, child.wait()).await {
            Ok(status) => status.unwrap(),
            Err(_) => panic!("still running after {:?}", self.limit),
        }
    }

    /// The conversation so far, shortened, for messages.
    pub fn story(&self) -> String {
        let skipped = self.log.len().saturating_sub(30);
        let mut text = format!("--- conversation ({skipped} lines left out) ---\n");
        for line in &self.log[skipped..] {
            let arrow = if line.sent { "C>" } else { "<C" };
            let shown = String::from_utf8_lossy(&line.bytes[..line.bytes.len().min(400)]);
            text.push_str(&format!("{arrow} {shown}\n"));
        }
        text
    }
}

/// The text of all text blocks of a `tools/call` answer.
pub fn text_of(answer: &Value) -> String {
    let blocks = answer["result"]["content"].as_array();
    let texts = blocks.into_iter().flatten().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}
