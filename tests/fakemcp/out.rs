//! Everything that leaves the process, and what it writes down for the test.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::args::Args;
use crate::http::Lines;

/// Longer lines are cut in the log: a log of 64 MB lines helps nobody.
const LOGGED: usize = 256 * 1024;
const LOGGED_HEAD: usize = 2000;
/// Lines that are JSON and no message (F05).
const JSON_NOISE: &str = "42\n\"ready\"\nnull\ntrue\n[1]\n{\"level\":\"info\",\"msg\":\"up\"}\n\
                          {\"type\":\"heartbeat\"}\n";

/// Standard output with the script's bad habits, and the two files.
#[derive(Debug)]
pub struct Out {
    args: Args,
    began: Instant,
    log: Option<Mutex<File>>,
    ledger: Option<Mutex<File>>,
    /// True until the first byte is out.
    first: Mutex<bool>,
    /// Where lines go instead of standard output, and the conversation's name in the log.
    lines: Option<Arc<Lines>>,
    session: Mutex<String>,
}

impl Out {
    pub fn new(args: &Args) -> Self {
        Self {
            args: args.clone(),
            began: Instant::now(),
            log: open("FAKEMCP_LOG"),
            ledger: open("FAKEMCP_LEDGER"),
            first: Mutex::new(true),
            lines: None,
            session: Mutex::default(),
        }
    }

    /// Over HTTP: the lines of one conversation.
    pub fn to_lines(args: &Args, lines: Arc<Lines>, session: &str) -> Self {
        Self { lines: Some(lines), session: Mutex::new(session.to_owned()), ..Self::new(args) }
    }

    /// Another conversation begins.
    pub fn rename(&self, session: &str) {
        session.clone_into(&mut self.session.lock().unwrap());
    }

    /// What a chatty one prints before anything is asked.
    pub fn hello(&self) {
        if self.args.flag("noise") || self.args.flag("json-noise") {
            self.raw(self.noise().as_bytes());
        }
    }

    /// Writes one message as a frame.
    pub fn send(&self, message: &Value) {
        let mut message = message.clone();
        let answer = message.get("method").is_none();
        if answer && self.args.flag("string-ids") {
            message["id"] = Value::from(message["id"].to_string());
        }
        if answer && self.args.flag("batch") {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/message",
                "params": { "level": "debug", "data": "in a batch" } });
            message = json!([note, message]);
        }
        self.send_text(message.to_string().as_bytes());
    }

    /// Writes the text of one message as a frame.
    pub fn send_text(&self, text: &[u8]) {
        let mut bytes = self.noise().into_bytes();
        if let Some(glue) = self.args.get("glue") {
            bytes.extend_from_slice(glue.as_bytes());
        }
        if self.args.flag("bom-lines") {
            bytes.extend_from_slice(b"\xef\xbb\xbf");
        }
        if self.args.flag("cr-tokens") && text.starts_with(b"{") {
            bytes.extend_from_slice(b"{\r");
            bytes.extend_from_slice(&text[1..text.len() - 1]);
            bytes.extend_from_slice(b"\r}");
        } else {
            bytes.extend_from_slice(text);
        }
        bytes.extend_from_slice(if self.args.flag("crlf") { b"\r\n" } else { b"\n" });
        self.note("out", text);
        self.write(&bytes);
    }

    /// Writes bytes as they are.
    pub fn raw(&self, bytes: &[u8]) {
        self.note("out", bytes);
        self.write(bytes);
    }

    /// Writes pieces with pauses, nothing of ours between them.
    pub fn pieces(&self, pieces: &[&[u8]], pause: Duration) {
        if self.lines.is_some() {
            return self.raw(&pieces.concat());
        }
        let mut out = io::stdout().lock();
        for (index, piece) in pieces.iter().enumerate() {
            if index > 0 {
                std::thread::sleep(pause);
            }
            done(out.write_all(piece));
            done(out.flush());
        }
        drop(out);
        for line in pieces.concat().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.note("out", line);
        }
    }

    fn write(&self, bytes: &[u8]) {
        if let Some(lines) = &self.lines {
            return bytes.split(|byte| *byte == b'\n').for_each(|line| lines.deliver(line));
        }
        let mut out = io::stdout().lock();
        if std::mem::take(&mut *self.first.lock().unwrap()) && self.args.flag("bom") {
            done(out.write_all(b"\xef\xbb\xbf"));
        }
        let chunk = self.args.number("chunk").unwrap_or(bytes.len().max(1));
        let pause = Duration::from_micros(self.args.number("chunk-us").unwrap_or(0));
        for piece in bytes.chunks(chunk) {
            done(out.write_all(piece));
            done(out.flush());
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
        }
    }

    fn noise(&self) -> String {
        let mut text = String::new();
        if self.args.flag("blank-lines") {
            text.push_str("\n \n\r\n");
        }
        for line in self.args.all_of("noise") {
            text.push_str(line);
            text.push('\n');
        }
        if self.args.flag("json-noise") {
            text.push_str(JSON_NOISE);
        }
        text
    }

    /// One entry in the log.
    pub fn note(&self, dir: &str, line: &[u8]) {
        let Some(log) = &self.log else { return };
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let shown = if line.len() > LOGGED { &line[..LOGGED_HEAD] } else { line };
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let entry = json!({
            "pid": std::process::id(), "ms": millis, "dir": dir, "bytes": line.len(),
            "session": *self.session.lock().unwrap(), "line": String::from_utf8_lossy(shown),
        });
        // One write: several processes may append to the same file.
        let _ = log.lock().unwrap().write_all(format!("{entry}\n").as_bytes());
    }

    /// One line in the ledger.
    pub fn ledger(&self, line: &str) {
        if let Some(ledger) = &self.ledger {
            let _ = ledger.lock().unwrap().write_all(format!("{line}\n").as_bytes());
        }
    }

    /// How many of the ledger's lines start so.
    pub fn ledger_count(start: &str) -> usize {
        let text = std::env::var_os("FAKEMCP_LEDGER")
            .and_then(|path| std::fs::read_to_string(path).ok())
            .unwrap_or_default();
        text.lines().filter(|line| line.starts_with(start)).count()
    }
}

fn open(variable: &str) -> Option<Mutex<File>> {
    let path = std::env::var_os(variable)?;
    OpenOptions::new().create(true).append(true).open(path).ok().map(Mutex::new)
}

/// A reader that is gone is no reason to make noise.
fn done(written: io::Result<()>) {
    if written.is_err() {
        std::process::exit(0);
    }
}
