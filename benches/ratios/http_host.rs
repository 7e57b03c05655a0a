//! An MCP host over Streamable HTTP: one keep-alive connection for each call that is open at a time,
//! as HTTP/1.1 has it. What it does is the same whatever answers.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Instant;

use memchr::memmem;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::alarm::HANG;
use crate::host::{Era, Outcome, Plan, broken};
use crate::stats::Latencies;
use crate::wire::{Answer, LEGACY, MODERN};

const CLIENT: &str = r#"{"name":"bench","version":"1.0.0"}"#;
const CHUNK: usize = 256 * 1024;

/// One host, after its opening.
#[derive(Debug)]
pub struct HttpHost {
    addr: SocketAddr,
    era: Era,
    session: Option<String>,
    connections: Vec<Connection>,
    next_id: u64,
}

impl HttpHost {
    /// Opens a session, or asks who is there in the modern era.
    pub fn open(addr: SocketAddr, era: Era) -> io::Result<HttpHost> {
        let mut host = HttpHost { addr, era, session: None, connections: Vec::new(), next_id: 1 };
        match era {
            Era::Legacy => {
                let params = format!(
                    r#"{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{CLIENT}}}"#
                );
                let head = host.ask("initialize", &params)?;
                host.session = header(&head, "mcp-session-id").map(str::to_owned);
                let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                host.say("notifications/initialized", "", note.as_bytes())?;
            }
            Era::Modern => drop(host.ask("server/discover", &host.params(""))?),
        }
        Ok(host)
    }

    /// Opens the session's own stream; the connection that it stands on.
    pub fn stream(&self) -> io::Result<TcpStream> {
        let mut stream = dial(self.addr)?;
        let head = self.head("GET", "", "Accept: text/event-stream\r\n", 0);
        stream.write_all(head.as_bytes())?;
        let answer = crate::host::read_head(&mut stream)?;
        match answer.starts_with("HTTP/1.1 200") {
            true => Ok(stream),
            false => Err(broken(format!("GET: {}", answer.lines().next().unwrap_or_default()))),
        }
    }

    /// Lets go of its connections; the session stays.
    pub fn hang_up(&mut self) {
        self.connections.clear();
    }

    /// One request, answered; gives the head of the answer.
    fn ask(&mut self, method: &str, params: &str) -> io::Result<String> {
        let id = self.next_id;
        self.next_id += 1;
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let (head, answer) = self.say(method, "", body.as_bytes())?;
        let text = String::from_utf8_lossy(&answer).into_owned();
        if text.contains("\"result\"") {
            Ok(head)
        } else {
            Err(broken(format!("{method}: {text}")))
        }
    }

    fn say(&mut self, method: &str, name: &str, body: &[u8]) -> io::Result<(String, Vec<u8>)> {
        let head = self.request_head(method, name, body.len());
        if self.connections.is_empty() {
            self.connections.push(Connection::dial(self.addr)?);
        }
        let connection = &mut self.connections[0];
        connection.stream.set_nonblocking(false)?;
        connection.stream.set_read_timeout(Some(HANG))?;
        connection.stream.write_all(head.as_bytes())?;
        connection.stream.write_all(body)?;
        while !connection.whole()? {
            connection.fill()?;
        }
        Ok((connection.head.clone(), connection.take_body()))
    }

    fn params(&self, members: &str) -> String {
        match self.era {
            Era::Legacy => format!("{{{members}}}"),
            Era::Modern => {
                let comma = if members.is_empty() { "" } else { "," };
                format!(
                    r#"{{{members}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientInfo":{CLIENT},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}"#
                )
            }
        }
    }

    fn request_head(&self, method: &str, name: &str, length: usize) -> String {
        let mut more = String::from(
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
        );
        if self.era == Era::Modern {
            let _ = write!(more, "Mcp-Method: {method}\r\n");
            if !name.is_empty() {
                let _ = write!(more, "Mcp-Name: {name}\r\n");
            }
        }
        self.head("POST", method, &more, length)
    }

    fn head(&self, verb: &str, method: &str, more: &str, length: usize) -> String {
        let mut head = format!("{verb} /mcp HTTP/1.1\r\nHost: {}\r\n{more}", self.addr);
        if method != "initialize" {
            let revision = if self.era == Era::Modern { MODERN } else { LEGACY };
            let _ = write!(head, "MCP-Protocol-Version: {revision}\r\n");
        }
        if let Some(session) = &self.session {
            let _ = write!(head, "Mcp-Session-Id: {session}\r\n");
        }
        if length > 0 {
            let _ = write!(head, "Content-Length: {length}\r\n");
        }
        head + "\r\n"
    }

    /// Runs a series.
    pub fn run(&mut self, plan: Plan<'_>) -> io::Result<Outcome> {
        while self.connections.len() < plan.in_flight {
            self.connections.push(Connection::dial(self.addr)?);
        }
        self.connections.truncate(plan.in_flight);
        let call = Call::new(self, plan);
        let start = Instant::now();
        let mut series = Series {
            call,
            plan,
            begun: 0,
            latencies: Latencies::with_capacity(plan.calls),
            errors: 0,
        };
        if plan.in_flight == 1 {
            series.one_by_one(self)?;
        } else {
            series.many_at_once(self)?;
        }
        let rate = plan.calls as f64 / start.elapsed().as_secs_f64();
        Ok(Outcome { latencies: series.latencies, rate, errors: series.errors })
    }
}

fn dial(addr: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(addr)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(HANG))?;
    Ok(stream)
}

/// The value of a header, in a head as it came.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The bytes of a call around its id. The length of the body depends on the id's digits.
struct Call {
    /// For a body whose id has none.
    length: usize,
    head: String,
    after_id: Vec<u8>,
    text: Vec<u8>,
}

const BEFORE_ID: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

impl Call {
    fn new(host: &HttpHost, plan: Plan<'_>) -> Self {
        let text = format!("\"{}\"", "x".repeat(plan.payload));
        let name = plan.tool;
        let params = host.params(&format!(r#""name":"{name}","arguments":{{"text":{text}}}"#));
        let after_id = format!(",\"method\":\"tools/call\",\"params\":{params}}}");
        let head = host.request_head("tools/call", name, 0);
        Call {
            length: BEFORE_ID.len() + after_id.len(),
            // The length is the last header of all.
            head: head[..head.len() - 2].to_owned(),
            after_id: after_id.into_bytes(),
            text: text.into_bytes(),
        }
    }

    fn write(&self, id: u64, out: &mut Vec<u8>) {
        let id = id.to_string();
        let length = self.length + id.len();
        let _ = write!(out, "{}Content-Length: {length}\r\n\r\n", self.head);
        out.extend_from_slice(BEFORE_ID);
        out.extend_from_slice(id.as_bytes());
        out.extend_from_slice(&self.after_id);
    }

    /// Whether the body of an answer, plain or as events, holds the text that was sent.
    fn is_good(&self, body: &[u8]) -> bool {
        let good = |frame: &[u8]| {
            Answer::read(frame)
                .is_some_and(|answer| answer.text == Some(&self.text[..]) && !answer.is_error)
        };
        if body.starts_with(b"{") {
            return good(body);
        }
        // The answer is the last event; what stands before it is about progress.
        memmem::rfind(body, b"data: ").is_some_and(|at| {
            let data = &body[at + 6..];
            good(&data[..memchr::memchr(b'\n', data).unwrap_or(data.len())])
        })
    }
}

/// A series under way.
struct Series<'a> {
    call: Call,
    plan: Plan<'a>,
    begun: usize,
    latencies: Latencies,
    errors: usize,
}

impl Series<'_> {
    fn begin(&mut self, connection: &mut Connection, next_id: &mut u64) {
        connection.out.clear();
        connection.written = 0;
        connection.since = Some(Instant::now());
        self.call.write(*next_id, &mut connection.out);
        *next_id += 1;
        self.begun += 1;
    }

    fn settle(&mut self, connection: &mut Connection) {
        if let Some(since) = connection.since.take() {
            self.latencies.push(since.elapsed());
        }
        let body = connection.take_body();
        let good = connection.head.starts_with("HTTP/1.1 200") && self.call.is_good(&body);
        if !good && self.errors < 3 {
            let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            eprintln!("bad answer: {}\n{shown}", connection.head.trim_end());
        }
        self.errors += usize::from(!good);
        connection.spare = body;
    }

    fn one_by_one(&mut self, host: &mut HttpHost) -> io::Result<()> {
        let HttpHost { connections, next_id, .. } = host;
        let connection = &mut connections[0];
        connection.stream.set_nonblocking(false)?;
        while self.begun < self.plan.calls {
            self.begin(connection, next_id);
            connection.stream.write_all(&connection.out)?;
            while !connection.whole()? {
                connection.fill()?;
            }
            self.settle(connection);
        }
        Ok(())
    }

    fn many_at_once(&mut self, host: &mut HttpHost) -> io::Result<()> {
        let HttpHost { connections, next_id, .. } = host;
        for connection in connections.iter_mut() {
            connection.stream.set_nonblocking(true)?;
            if self.begun < self.plan.calls {
                self.begin(connection, next_id);
                connection.flush()?;
            }
        }
        while self.latencies.len() < self.plan.calls {
            let ready = ready(connections, self.latencies.len())?;
            for (connection, _) in connections.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
                connection.flush()?;
                while connection.since.is_some() && connection.try_fill()? {
                    if !connection.whole()? {
                        continue;
                    }
                    self.settle(connection);
                    if self.begun < self.plan.calls {
                        self.begin(connection, next_id);
                        connection.flush()?;
                    }
                    // The others come first.
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Which connections can be read, or written where something waits to be.
fn ready(connections: &[Connection], answered: usize) -> io::Result<Vec<bool>> {
    let mut wanted: Vec<PollFd<'_>> = connections
        .iter()
        .map(|connection| {
            let mut flags = PollFlags::POLLIN;
            flags.set(PollFlags::POLLOUT, connection.written < connection.out.len());
            PollFd::new(connection.stream.as_fd(), flags)
        })
        .collect();
    let limit = PollTimeout::try_from(HANG).map_err(io::Error::other)?;
    if poll(&mut wanted, limit)? == 0 {
        return Err(broken(format!("hung: nothing for {HANG:?} after {answered} answers")));
    }
    Ok(wanted.iter().map(|one| one.any().unwrap_or(true)).collect())
}

/// How the body of an answer is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// The head is not there yet.
    Unknown,
    Length(usize),
    Chunked,
}

/// A connection with at most one call on it.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// Read and not used yet.
    buffer: Vec<u8>,
    head: String,
    framing: Body,
    /// What there is of a body that comes in chunks.
    body: Vec<u8>,
    /// A body that was used, for its memory.
    spare: Vec<u8>,
    out: Vec<u8>,
    written: usize,
    since: Option<Instant>,
}

impl Connection {
    fn dial(addr: SocketAddr) -> io::Result<Self> {
        Ok(Connection {
            stream: dial(addr)?,
            buffer: Vec::new(),
            head: String::new(),
            framing: Body::Unknown,
            body: Vec::new(),
            spare: Vec::new(),
            out: Vec::new(),
            written: 0,
            since: None,
        })
    }

    /// Reads once, waiting for something.
    fn fill(&mut self) -> io::Result<()> {
        let start = self.buffer.len();
        self.buffer.resize(start + CHUNK, 0);
        let got = self.stream.read(&mut self.buffer[start..]);
        self.buffer.truncate(start + *got.as_ref().unwrap_or(&0));
        match got? {
            0 => Err(broken(format!("the peer closed; its last answer: {}", self.head))),
            _ => Ok(()),
        }
    }

    /// Reads once; false where nothing is there.
    fn try_fill(&mut self) -> io::Result<bool> {
        match self.fill() {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes what it takes now.
    fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the whole answer is there.
    fn whole(&mut self) -> io::Result<bool> {
        if self.framing == Body::Unknown {
            let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") else { return Ok(false) };
            self.head.clear();
            self.head.push_str(&String::from_utf8_lossy(&self.buffer[..end + 2]));
            self.buffer.drain(..end + 4);
            self.framing = match header(&self.head, "content-length") {
                Some(length) => Body::Length(length.parse().map_err(io::Error::other)?),
                None if header(&self.head, "transfer-encoding").is_some() => Body::Chunked,
                None => Body::Length(0),
            };
            self.body.clear();
        }
        match self.framing {
            Body::Length(length) => Ok(self.buffer.len() >= length),
            _ => self.dechunk(),
        }
    }

    /// Takes every whole chunk; true after the last.
    fn dechunk(&mut self) -> io::Result<bool> {
        let mut at = 0;
        let done = loop {
            let rest = &self.buffer[at..];
            let Some(line) = memmem::find(rest, b"\r\n") else { break false };
            let digits = std::str::from_utf8(&rest[..line]).map_err(io::Error::other)?;
            let size = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
            let end = line + 2 + size + 2;
            if rest.len() < end {
                break false;
            }
            self.body.extend_from_slice(&rest[line + 2..line + 2 + size]);
            at += end;
            if size == 0 {
                break true;
            }
        };
        self.buffer.drain(..at);
        Ok(done)
    }

    fn take_body(&mut self) -> Vec<u8> {
        let framing = std::mem::replace(&mut self.framing, Body::Unknown);
        let Body::Length(length) = framing else { return std::mem::take(&mut self.body) };
        let mut body = std::mem::take(&mut self.spare);
        body.clear();
        body.extend_from_slice(&self.buffer[..length]);
        self.buffer.drain(..length);
        body
    }
}
