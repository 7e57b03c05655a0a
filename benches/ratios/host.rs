//! An MCP host over a pair of pipes or a socket: handshake, one request at a time, and tool calls
//! as fast as the peer takes them. What it does is the same whatever stands behind the pipes.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;
use serde_json::Value;

use crate::alarm::{Alarm, Breaker, HANG};
use crate::lines::Lines;
use crate::process::Spawned;
use crate::stats::Latencies;
use crate::wire::{Answer, LEGACY, MODERN};

const CLIENT: &str = r#"{"name":"bench","version":"1.0.0"}"#;

/// Which of the two kinds of host this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize` at 2025-11-25.
    Legacy,
    /// Every request bears 2026-07-28 in `_meta`.
    Modern,
}

/// One series of calls.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The tool's name as this host sees it.
    pub tool: &'a str,
    /// Bytes of text in the argument and in the answer.
    pub payload: usize,
    /// How many calls are open at a time.
    pub in_flight: usize,
    /// How many calls in all.
    pub calls: usize,
}

/// What a series came to.
#[derive(Debug)]
pub struct Outcome {
    /// From the first byte queued to the answer read, one per call.
    pub latencies: Latencies,
    /// Calls a second over the whole series.
    pub rate: f64,
    /// Answers that were an error or not the text that was sent.
    pub errors: usize,
}

/// One connected host.
#[derive(Debug)]
pub struct Host {
    input: File,
    output: File,
    lines: Lines,
    era: Era,
    next_id: u64,
    breaker: Breaker,
    /// Dropped last, so that the peer sees the end of its input first.
    process: Option<Spawned>,
}

impl Host {
    /// Starts a command and speaks to it over its stdio. No handshake yet.
    pub fn spawn(mut process: Spawned, era: Era) -> Host {
        let (output, input) = process.take_stdio();
        Host {
            input: File::from(input),
            output: File::from(output),
            lines: Lines::new(),
            era,
            next_id: 1,
            breaker: Breaker::Kill(process.pid()),
            process: Some(process),
        }
    }

    /// Speaks over a socket that is ready for frames.
    pub fn on_socket(socket: UnixStream, era: Era) -> io::Result<Host> {
        let output = File::from(OwnedFd::from(socket.try_clone()?));
        let input = File::from(OwnedFd::from(socket.try_clone()?));
        let breaker = Breaker::Shut(socket);
        Ok(Host { input, output, lines: Lines::new(), era, next_id: 1, breaker, process: None })
    }

    /// `initialize` and `initialized`, or `server/discover`.
    pub fn handshake(&mut self) -> io::Result<()> {
        match self.era {
            Era::Legacy => {
                let params = format!(
                    r#"{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{CLIENT}}}"#
                );
                self.ask("initialize", &params)?;
                let note = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
                self.output.write_all(note)
            }
            Era::Modern => self.ask("server/discover", &self.params("")).map(drop),
        }
    }

    /// Parameters of a request in this host's era, from the members given.
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

    /// One request, answered. An error answer is an error here.
    pub fn ask(&mut self, method: &str, params: &str) -> io::Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let frame =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let _alarm = self.arm();
        self.output.write_all(frame.as_bytes())?;
        self.output.write_all(b"\n")?;
        loop {
            while let Some(line) = self.lines.next() {
                if is_for_the_shim(line) {
                    continue;
                }
                let answer: Value = serde_json::from_slice(line)?;
                if answer["id"] == id {
                    return match answer.get("result") {
                        Some(result) => Ok(result.clone()),
                        None => Err(broken(format!("{method}: {answer}"))),
                    };
                }
            }
            if self.lines.fill(&mut self.input)? == 0 {
                return Err(broken(format!("{method}: the peer closed, or was ended as hung")));
            }
        }
    }

    /// The names `tools/list` gives.
    pub fn tools(&mut self) -> io::Result<Vec<String>> {
        let result = self.ask("tools/list", &self.params(""))?;
        let tools = result["tools"].as_array().cloned().unwrap_or_default();
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str()).map(String::from).collect())
    }

    /// Waits for a notification of this method.
    pub fn wait_for(&mut self, method: &str) -> io::Result<()> {
        let _alarm = self.arm();
        loop {
            while let Some(line) = self.lines.next() {
                if Answer::read(line).is_some_and(|got| got.method == Some(method.as_bytes())) {
                    return Ok(());
                }
            }
            if self.lines.fill(&mut self.input)? == 0 {
                return Err(broken(format!("no {method}")));
            }
        }
    }

    /// Sends calls and does not wait for an answer.
    pub fn send_only(&mut self, plan: Plan<'_>) -> io::Result<()> {
        let call = CallFrame::new(self, plan);
        let mut frames = Vec::new();
        for _ in 0..plan.calls {
            call.append(self.next_id, &mut frames);
            self.next_id += 1;
        }
        self.output.write_all(&frames)
    }

    /// The process that this host speaks to, where it started one.
    pub fn pid(&self) -> Option<Pid> {
        self.process.as_ref().map(Spawned::pid)
    }

    /// Runs a series.
    pub fn run(&mut self, plan: Plan<'_>) -> io::Result<Outcome> {
        let start = Instant::now();
        let mut series = Series::new(self, plan);
        if plan.in_flight == 1 {
            series.one_by_one(self)?;
        } else {
            set_blocking(&self.input, false)?;
            set_blocking(&self.output, false)?;
            let ran = series.many_at_once(self);
            set_blocking(&self.input, true)?;
            set_blocking(&self.output, true)?;
            ran?;
        }
        let rate = plan.calls as f64 / start.elapsed().as_secs_f64();
        Ok(Outcome { latencies: series.latencies, rate, errors: series.errors })
    }

    /// Breaks the connection off unless the alarm is dropped in time.
    fn arm(&self) -> Option<Alarm> {
        self.breaker.another().map(Alarm::set)
    }
}

/// The bytes of a call around its id.
struct CallFrame {
    after_id: Vec<u8>,
    /// The text with its quotes, as it must come back.
    text: Vec<u8>,
}

impl CallFrame {
    fn new(host: &Host, plan: Plan<'_>) -> Self {
        let text = format!("\"{}\"", "x".repeat(plan.payload));
        let name = plan.tool;
        let params = host.params(&format!(r#""name":"{name}","arguments":{{"text":{text}}}"#));
        let after_id = format!(",\"method\":\"tools/call\",\"params\":{params}}}\n");
        CallFrame { after_id: after_id.into_bytes(), text: text.into_bytes() }
    }

    fn append(&self, id: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        push_number(id, out);
        out.extend_from_slice(&self.after_id);
    }
}

/// A series under way.
struct Series {
    call: CallFrame,
    plan_calls: usize,
    in_flight: usize,
    first_id: u64,
    begun: Vec<Instant>,
    latencies: Latencies,
    errors: usize,
}

impl Series {
    fn new(host: &Host, plan: Plan<'_>) -> Self {
        Series {
            call: CallFrame::new(host, plan),
            plan_calls: plan.calls,
            in_flight: plan.in_flight,
            first_id: host.next_id,
            begun: Vec::with_capacity(plan.calls),
            latencies: Latencies::with_capacity(plan.calls),
            errors: 0,
        }
    }

    fn begin(&mut self, host: &mut Host, out: &mut Vec<u8>) {
        self.begun.push(Instant::now());
        self.call.append(host.next_id, out);
        host.next_id += 1;
    }

    /// Takes every whole line that was read.
    fn settle(&mut self, lines: &mut Lines, replies: &mut Vec<u8>) {
        while let Some(line) = lines.next() {
            if is_for_the_shim(line) {
                continue;
            }
            let Some(answer) = Answer::read(line) else {
                self.errors += 1;
                continue;
            };
            if answer.method.is_some() {
                if let Some(id) = answer.id {
                    replies.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
                    replies.extend_from_slice(id);
                    replies.extend_from_slice(b",\"result\":{}}\n");
                }
                continue;
            }
            let place =
                answer.id.and_then(read_number).and_then(|id| id.checked_sub(self.first_id));
            let Some(begun) = place.and_then(|place| self.begun.get(place as usize)) else {
                self.errors += 1;
                continue;
            };
            self.latencies.push(begun.elapsed());
            let good = answer.text == Some(&self.call.text) && !answer.is_error;
            if !good && self.errors < 3 {
                let head = &line[..line.len().min(200)];
                eprintln!("bad answer: {}", String::from_utf8_lossy(head));
            }
            self.errors += usize::from(!good);
        }
    }

    fn one_by_one(&mut self, host: &mut Host) -> io::Result<()> {
        let mut out = Vec::new();
        // One alarm for a stretch of calls, not one for each.
        for stretch in (0..self.plan_calls).step_by(256) {
            let _alarm = host.arm();
            for number in stretch..self.plan_calls.min(stretch + 256) {
                out.clear();
                self.begin(host, &mut out);
                host.output.write_all(&out)?;
                while self.latencies.len() <= number {
                    if host.lines.fill(&mut host.input)? == 0 {
                        return Err(broken(format!("closed or hung at call {number}")));
                    }
                    out.clear();
                    self.settle(&mut host.lines, &mut out);
                    host.output.write_all(&out)?;
                }
            }
        }
        Ok(())
    }

    /// Each call is a write of its own, as the SDKs' hosts do it; gathering them into one would
    /// flatter whoever stands nearest.
    fn many_at_once(&mut self, host: &mut Host) -> io::Result<()> {
        let mut out = Vec::new();
        let mut written = 0;
        while self.latencies.len() < self.plan_calls {
            let open = self.begun.len() - self.latencies.len();
            if out.is_empty() && self.begun.len() < self.plan_calls && open < self.in_flight {
                self.begin(host, &mut out);
            }
            if !out.is_empty() {
                written += would_block(host.output.write(&out[written..]))?.unwrap_or(0);
                if written == out.len() {
                    out.clear();
                    written = 0;
                    // Answers wait until every open place is taken again.
                    if self.begun.len() < self.plan_calls && open + 1 < self.in_flight {
                        continue;
                    }
                }
            }
            match would_block(host.lines.fill(&mut host.input))? {
                Some(0) => return Err(broken(format!("closed at {}", self.latencies.len()))),
                Some(_) => self.settle(&mut host.lines, &mut out),
                None => wait(host, written < out.len(), self.latencies.len())?,
            }
        }
        Ok(())
    }
}

/// On the attach stream the daemon also tells the shim things, in lines that are no frames.
fn is_for_the_shim(line: &[u8]) -> bool {
    line.first() == Some(&b'#')
}

/// Waits until there is something to read, or room to write where that is wanted.
fn wait(host: &Host, writing: bool, answered: usize) -> io::Result<()> {
    let mut wanted = vec![PollFd::new(host.input.as_fd(), PollFlags::POLLIN)];
    if writing {
        wanted.push(PollFd::new(host.output.as_fd(), PollFlags::POLLOUT));
    }
    let limit = PollTimeout::try_from(HANG).map_err(io::Error::other)?;
    match poll(&mut wanted, limit)? {
        0 => Err(broken(format!("hung: nothing for {HANG:?} after {answered} answers"))),
        _ => Ok(()),
    }
}

fn would_block(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

fn set_blocking(file: &File, blocking: bool) -> io::Result<()> {
    let mut flags = OFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFL)?);
    flags.set(OFlag::O_NONBLOCK, !blocking);
    fcntl(file, FcntlArg::F_SETFL(flags))?;
    Ok(())
}

fn push_number(number: u64, out: &mut Vec<u8>) {
    let _ = write!(out, "{number}");
}

fn read_number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// An error with a sentence.
pub fn broken(text: String) -> io::Error {
    io::Error::other(text)
}

/// Reads until the blank line that ends an HTTP head, byte by byte, so that nothing after it is lost.
pub fn read_head(socket: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
