//! `direct`: an MCP echo server over stdio that is as fast as one blocking thread can be.
//!
//! It is the floor that every ratio is measured from, and the same program stands behind mcpx on
//! the other side of the ratio. It reads and writes in turn, never both, so it is also the blocking
//! server that makes a careless proxy hang. Both eras are served request by request.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use crate::args::Args;
use crate::lines::Lines;
use crate::wire::{LEGACY, MODERN, Request};

/// Answers are written once this much has gathered, or when no request is waiting.
const WRITE_AT: usize = 64 * 1024;

const SERVER: &str = r#"{"name":"echo","version":"1.0.0"}"#;
const TOOLS: &str = r#"[{"name":"echo","description":"Returns its text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]"#;

/// How this copy of the server behaves.
#[derive(Debug, Clone)]
pub struct Manner {
    /// Answers `initialize` and requests without `_meta`.
    pub legacy: bool,
    /// Answers `server/discover` and requests with `_meta`.
    pub modern: bool,
    /// Answers no `tools/call` at all.
    pub hangs: bool,
}

impl Manner {
    /// From the command line of the role.
    pub fn from_args(args: &Args) -> Self {
        let era = args.value("--era").unwrap_or("both");
        Manner { legacy: era != "modern", modern: era != "legacy", hangs: args.flag("--hang") }
    }

    /// Appends the answer to one frame; nothing for a notification.
    pub fn answer(&self, frame: &[u8], out: &mut Vec<u8>) {
        let Some(request) = Request::read(frame) else { return };
        let Some(id) = request.id else { return };
        let modern = request.modern && self.modern;
        match request.method {
            b"tools/call" if self.hangs => {}
            b"initialize" if self.legacy => {
                let revision = agreed(request.asked);
                open(out, id);
                out.extend_from_slice(br#""protocolVersion":""#);
                out.extend_from_slice(revision.as_bytes());
                out.extend_from_slice(br#"","capabilities":{"tools":{}},"serverInfo":"#);
                out.extend_from_slice(SERVER.as_bytes());
                out.extend_from_slice(b"}}\n");
            }
            b"server/discover" if self.modern => {
                open(out, id);
                self.list_revisions(out, "supportedVersions");
                out.extend_from_slice(br#","capabilities":{"tools":{}},"#);
                out.extend_from_slice(br#""ttlMs":0,"cacheScope":"public""#);
                close(out, true);
            }
            _ if !modern && !self.legacy => {
                fail(out, id, -32022, "Unsupported protocol version");
                out.truncate(out.len() - 3);
                out.extend_from_slice(br#","data":{"#);
                self.list_revisions(out, "supported");
                out.extend_from_slice(br#","requested":"none"}}}"#);
                out.push(b'\n');
            }
            b"tools/call" => {
                let Some(text) = request.text else {
                    return fail(out, id, -32602, "the argument text is missing");
                };
                open(out, id);
                out.extend_from_slice(br#""content":[{"type":"text","text":"#);
                out.extend_from_slice(text);
                out.extend_from_slice(b"}]");
                close(out, modern);
            }
            b"tools/list" => {
                open(out, id);
                out.extend_from_slice(br#""tools":"#);
                out.extend_from_slice(TOOLS.as_bytes());
                if modern {
                    out.extend_from_slice(br#","ttlMs":0,"cacheScope":"public""#);
                }
                close(out, modern);
            }
            b"ping" => {
                out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
                out.extend_from_slice(id);
                out.extend_from_slice(b",\"result\":{}}\n");
            }
            _ => fail(out, id, -32601, "method not found"),
        }
    }

    fn list_revisions(&self, out: &mut Vec<u8>, key: &str) {
        let both = format!(r#""{key}":["{MODERN}","{LEGACY}"]"#);
        let one = format!(r#""{key}":["{MODERN}"]"#);
        out.extend_from_slice(if self.legacy { both.as_bytes() } else { one.as_bytes() });
    }
}

fn agreed(asked: Option<&[u8]>) -> &'static str {
    let known = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];
    known.into_iter().find(|known| asked == Some(known.as_bytes())).unwrap_or(LEGACY)
}

fn open(out: &mut Vec<u8>, id: &[u8]) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(br#","result":{"#);
}

fn close(out: &mut Vec<u8>, modern: bool) {
    if modern {
        out.extend_from_slice(br#","resultType":"complete","_meta":{"#);
        out.extend_from_slice(br#""io.modelcontextprotocol/serverInfo":"#);
        out.extend_from_slice(SERVER.as_bytes());
        out.push(b'}');
    }
    out.extend_from_slice(b"}}\n");
}

fn fail(out: &mut Vec<u8>, id: &[u8], code: i32, text: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    let _ = writeln!(out, r#","error":{{"code":{code},"message":"{text}"}}}}"#);
}

/// The role `echo-stdio`. `--start-delay MS` sleeps before the first read, `--flood N` writes N log
/// lines every 10 ms beside the answers, `--hang` never answers a call.
pub fn run(args: &Args) -> io::Result<()> {
    let manner = Manner::from_args(args);
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if let Some(delay) = args.number("--start-delay") {
        thread::sleep(Duration::from_millis(delay));
    }
    if let Some(burst) = args.number("--flood") {
        flood(output.try_clone()?, burst);
    }
    let mut lines = Lines::new();
    let mut out = Vec::with_capacity(2 * WRITE_AT);
    while lines.fill(&mut input)? > 0 {
        while let Some(frame) = lines.next() {
            manner.answer(frame, &mut out);
            if out.len() >= WRITE_AT {
                output.write_all(&out)?;
                out.clear();
            }
        }
        if !out.is_empty() {
            output.write_all(&out)?;
            out.clear();
        }
    }
    Ok(())
}

/// Writes bursts of log notifications until the pipe closes. Each burst is under 4 KiB at a time,
/// which a pipe takes whole, so that it never splits an answer.
fn flood(mut output: File, burst: u64) {
    const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"one of very many lines"}}"#;
    thread::spawn(move || {
        let group = 32;
        let block = format!("{NOTE}\n").repeat(group);
        loop {
            for _ in 0..burst / group as u64 {
                if output.write_all(block.as_bytes()).is_err() {
                    return;
                }
            }
            thread::sleep(Duration::from_millis(10));
        }
    });
}
