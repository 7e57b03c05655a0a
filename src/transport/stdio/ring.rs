//! The last lines of a child's stderr, bounded in lines and bytes, and the future that fills it
//! (F32).
//!
//! Stderr is drained always and at full speed: a child that waits for room in its stderr answers no
//! calls. What goes to the log is limited by rate; the ring has the rest. A carriage return begins a
//! line anew, as on a terminal, so that a progress bar takes one line.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;

use super::flood::{Rate, SECOND};
use crate::transport::clock;

/// Read at a time, into the stack.
const CHUNK: usize = 16 * 1024;

/// Limits of one ring.
#[derive(Debug, Clone, Copy)]
pub struct RingLimits {
    /// Lines kept (`process.stderr_lines`).
    pub lines: usize,
    /// Bytes kept of one line; the rest is cut (`process.stderr_line_bytes`).
    pub line_bytes: usize,
    /// Lines a second that go to the log; the rest is counted (`process.stderr_log_rate`).
    pub log_rate: u32,
    /// Bytes read in a second (`process.stderr_bytes`).
    pub bytes: usize,
}

/// A shared ring of stderr lines. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StderrRing {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug)]
struct Inner {
    limits: RingLimits,
    lines: VecDeque<Line>,
    /// Lines ever written; the last one in the ring has this number.
    total: u64,
    /// The line being written.
    partial: Line,
    /// The last byte was CR: the next one decides between a line end and a fresh start.
    returned: bool,
    ended: bool,
}

/// One line as it came; made readable when somebody reads it.
#[derive(Debug, Default)]
struct Line {
    /// Up to the limit.
    bytes: Vec<u8>,
    /// Bytes that were cut off.
    cut: usize,
}

impl Line {
    fn text(&self) -> String {
        let mut text = printable(&String::from_utf8_lossy(&self.bytes));
        if self.cut > 0 {
            let _ = write!(text, " … ({} more bytes)", self.cut);
        }
        text
    }

    /// Without its memory where that was of an unusually long line.
    fn clear(&mut self) {
        const KEPT: usize = 256;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.cut = 0;
    }
}

/// What is told of each whole line.
type Log<'a> = &'a mut dyn FnMut(&Line);

/// Lines after a number, for readers that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// The lines, oldest first.
    pub lines: Vec<String>,
    /// The number to ask from next time.
    pub next: u64,
    /// Lines in between that the ring has lost already.
    pub missed: u64,
    /// The stream is at its end: nothing follows.
    pub ended: bool,
}

impl StderrRing {
    /// An empty ring.
    pub fn new(limits: RingLimits) -> Self {
        let inner = Inner {
            limits,
            lines: VecDeque::new(),
            total: 0,
            partial: Line::default(),
            returned: false,
            ended: false,
        };
        Self { shared: Arc::new(Shared { inner: Mutex::new(inner), changed: Notify::new() }) }
    }

    /// The last `count` lines, oldest first; one without its end counts as a line.
    pub fn tail(&self, count: usize) -> Vec<String> {
        let inner = self.lock();
        let partial = (!inner.partial.bytes.is_empty()).then(|| inner.partial.text());
        let whole = count.saturating_sub(usize::from(partial.is_some()));
        let skip = inner.lines.len().saturating_sub(whole);
        inner.lines.iter().skip(skip).map(Line::text).chain(partial).collect()
    }

    /// The number to ask from ([`Self::since`]) for the last `count` lines.
    pub fn before_last(&self, count: usize) -> u64 {
        self.lock().total.saturating_sub(count as u64)
    }

    /// The lines after number `after` (0 for all that are kept).
    pub fn since(&self, after: u64) -> Lines {
        let inner = self.lock();
        let kept = inner.lines.len() as u64;
        let first = inner.total - kept;
        let skip = after.saturating_sub(first);
        Lines {
            lines: inner
                .lines
                .iter()
                .skip(usize::try_from(skip).unwrap_or(0))
                .map(Line::text)
                .collect(),
            next: inner.total,
            missed: first.saturating_sub(after),
            ended: inner.ended,
        }
    }

    /// Resolves when there is more than [`Lines::next`] told, or the stream has ended.
    pub async fn changed(&self, since: u64) {
        loop {
            let notified = self.shared.changed.notified();
            {
                let inner = self.lock();
                if inner.total > since || inner.ended {
                    return;
                }
            }
            notified.await;
        }
    }

    /// Adds one line that did not come from stderr, but belongs to what a reader looks for.
    pub fn note(&self, line: &str) {
        self.push(format!("{}\n", line.replace(['\n', '\r'], " ")).as_bytes(), &mut |_| {});
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a chunk; the whole lines in it go to `log` as well.
    fn push(&self, chunk: &[u8], log: Log<'_>) {
        let mut inner = self.lock();
        let before = inner.total;
        inner.push(chunk, log);
        if inner.total != before {
            drop(inner);
            self.shared.changed.notify_waiters();
        }
    }

    fn end(&self, log: Log<'_>) {
        let mut inner = self.lock();
        if !inner.partial.bytes.is_empty() {
            inner.finish_line(log);
        }
        inner.ended = true;
        drop(inner);
        self.shared.changed.notify_waiters();
    }
}

impl Inner {
    fn push(&mut self, mut chunk: &[u8], log: Log<'_>) {
        while let Some(&next) = chunk.first() {
            if self.returned && next != b'\n' {
                self.partial.clear();
            }
            self.returned = false;
            let at = memchr::memchr2(b'\n', b'\r', chunk).unwrap_or(chunk.len());
            let (text, rest) = chunk.split_at(at);
            let room = self.limits.line_bytes.saturating_sub(self.partial.bytes.len());
            let (kept, cut) = text.split_at(room.min(text.len()));
            self.partial.bytes.extend_from_slice(kept);
            self.partial.cut += cut.len();
            match rest.first() {
                Some(b'\n') => self.finish_line(log),
                Some(_) => self.returned = true,
                None => {}
            }
            chunk = rest.get(1..).unwrap_or_default();
        }
    }

    /// A line that leaves the ring lends its memory to the next: a flood allocates nothing.
    fn finish_line(&mut self, log: Log<'_>) {
        log(&self.partial);
        let full = self.lines.len() >= self.limits.lines;
        let mut fresh = full.then(|| self.lines.pop_front()).flatten().unwrap_or_default();
        fresh.clear();
        let line = std::mem::replace(&mut self.partial, fresh);
        if self.limits.lines > 0 {
            self.lines.push_back(line);
            self.total += 1;
        }
    }
}

/// Without escape sequences and control characters: the ring is shown on terminals and in texts.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        match char {
            '\u{1b}' => {
                // CSI: parameters up to a final letter. Any other escape: one character.
                if rest.next() == Some('[') {
                    rest.by_ref().find(|char| ('@'..='~').contains(char));
                }
            }
            '\t' => out.push(char),
            char if char.is_control() => {}
            char => out.push(char),
        }
    }
    out
}

/// Drains a stderr into its ring and, at a limited rate, into the log. Somebody has to run it.
pub struct StderrDrain {
    io: Box<dyn AsyncRead + Send + Unpin>,
    ring: StderrRing,
    log: RateLimit,
    read: Rate,
}

impl StderrDrain {
    /// For the stderr of `label`.
    pub fn new(
        label: String,
        io: impl AsyncRead + Send + Unpin + 'static,
        ring: StderrRing,
    ) -> Self {
        let RingLimits { log_rate, bytes, .. } = ring.lock().limits;
        let log = RateLimit::new(label, log_rate);
        Self { io: Box::new(io), ring, log, read: Rate::new(bytes) }
    }

    /// Runs until the last holder of the stderr has closed it.
    pub async fn run(mut self) {
        // A failing read ends it as the end of the stream does: there is nobody to tell.
        while poll_fn(|cx| self.poll_chunk(cx)).await.unwrap_or(false) {
            if let Some(end) = self.read.ends().filter(|_| self.read.is_over()) {
                tokio::time::sleep_until(end.into()).await;
            }
        }
        self.ring.end(&mut |line| self.log.line(line));
        self.log.flush();
    }

    /// One chunk; false at the end.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut scratch = [MaybeUninit::<u8>::uninit(); CHUNK];
        let mut read = ReadBuf::uninit(&mut scratch);
        ready!(Pin::new(&mut *self.io).poll_read(cx, &mut read))?;
        if read.filled().is_empty() {
            return Poll::Ready(Ok(false));
        }
        let now = clock::now();
        self.log.at(now);
        self.read.at(now);
        self.read.add(read.filled().len());
        self.ring.push(read.filled(), &mut |line| self.log.line(line));
        Poll::Ready(Ok(true))
    }
}

impl std::fmt::Debug for StderrDrain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StderrDrain")
    }
}

/// So many lines a second; what is beyond is counted and told when the second is over.
struct RateLimit {
    label: String,
    rate: u32,
    window: Option<Instant>,
    logged: u32,
    dropped: u64,
}

impl RateLimit {
    fn new(label: String, rate: u32) -> Self {
        Self { label, rate, window: None, logged: 0, dropped: 0 }
    }

    fn at(&mut self, now: Instant) {
        let over = self.window.is_none_or(|since| now - since >= SECOND);
        if over {
            self.flush();
            self.window = Some(now);
            self.logged = 0;
        }
    }

    fn line(&mut self, line: &Line) {
        if self.logged >= self.rate {
            self.dropped += 1;
            return;
        }
        self.logged += 1;
        tracing::info!(target: "mcpx::stderr", server = %self.label, "{}", line.text());
    }

    fn flush(&mut self) {
        if self.dropped > 0 {
            let dropped = std::mem::take(&mut self.dropped);
            tracing::info!(
                target: "mcpx::stderr", server = %self.label, dropped,
                "{dropped} lines of stderr were dropped here, `mcpx logs` has the last ones"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: RingLimits = RingLimits { lines: 3, line_bytes: 8, log_rate: 2, bytes: 1 << 20 };

    fn ring(chunks: &[&[u8]]) -> (StderrRing, Vec<String>) {
        let ring = StderrRing::new(LIMITS);
        let mut logged = Vec::new();
        for chunk in chunks {
            ring.push(chunk, &mut |line| logged.push(line.text()));
        }
        (ring, logged)
    }

    #[test]
    fn f32_keeps_the_last_lines_and_the_one_being_written() {
        let (ring, logged) = ring(&[b"a\nb\n", b"c", b"\r\nd\n\ne"]);
        assert_eq!(ring.tail(9), ["c", "d", "", "e"]);
        assert_eq!(ring.tail(2), ["", "e"]);
        assert_eq!(logged, ["a", "b", "c", "d", ""]);
        let lines = ring.since(0);
        assert_eq!((lines.lines.len(), lines.next, lines.missed), (3, 5, 2));
        assert_eq!(ring.since(4).lines, [""]);
        assert_eq!(ring.since(ring.before_last(2)).lines, ["d", ""]);
        assert_eq!(ring.before_last(99), 0);
    }

    #[test]
    fn f32_a_carriage_return_begins_the_line_anew() {
        let (ring, logged) = ring(&[b"10 %\r20 %\r", b"30 %", b"\r100 %\ndone\r", b"\n"]);
        assert_eq!(ring.tail(9), ["100 %", "done"]);
        assert_eq!(logged, ["100 %", "done"]);
    }

    #[test]
    fn f32_a_line_without_end_is_bounded() {
        let ring = StderrRing::new(LIMITS);
        for _ in 0..5000 {
            ring.push(&[b'x'; 10_000], &mut |_| panic!("no line yet"));
        }
        assert!(ring.lock().partial.bytes.capacity() < 64);
        assert_eq!(ring.tail(1), ["xxxxxxxx … (49999992 more bytes)"]);
    }

    #[test]
    fn f32_binary_and_escapes_are_made_printable() {
        let (ring, _) = ring(&[b"\xff\x00a\tb\n", b"\x1b[31mred and more\n"]);
        assert_eq!(ring.tail(9), ["\u{fffd}a\tb", "red … (9 more bytes)"]);
    }

    #[test]
    fn f32_the_log_is_limited_by_rate() {
        let mut limit = RateLimit::new("x".into(), 2);
        let start = clock::now();
        limit.at(start);
        for _ in 0..10 {
            limit.line(&Line::default());
        }
        assert_eq!((limit.logged, limit.dropped), (2, 8));
        limit.at(start + Duration::from_millis(900));
        assert_eq!(limit.dropped, 8, "told once a second");
        limit.at(start + Duration::from_secs(1));
        assert_eq!((limit.logged, limit.dropped), (0, 0));
    }

    #[tokio::test]
    async fn the_drain_runs_to_the_end_and_wakes_followers() {
        let ring = StderrRing::new(LIMITS);
        let drain = StderrDrain::new("x".into(), &b"one\ntwo"[..], ring.clone());
        let (follower, ()) = tokio::join!(ring.changed(0), drain.run());
        let () = follower;
        assert_eq!(ring.tail(9), ["one", "two"]);
        assert!(ring.since(2).ended);
        ring.changed(2).await;
    }

    /// F32: whoever writes without end is held up by its own pipe.
    #[tokio::test(start_paused = true)]
    async fn f32_a_flood_is_read_at_a_rate() {
        let (mut flood, io) = tokio::io::duplex(1 << 20);
        let limits = RingLimits { bytes: 4 * CHUNK, ..LIMITS };
        let drain = StderrDrain::new("x".into(), io, StderrRing::new(limits));
        let start = clock::now();
        let drained = async {
            let line = b"flood\n".repeat(2 * CHUNK);
            tokio::io::AsyncWriteExt::write_all(&mut flood, &line).await.unwrap();
            drop(flood);
        };
        tokio::join!(drained, drain.run());
        let took = clock::now() - start;
        assert!((2..=4).contains(&took.as_secs()), "12 chunks at 4 a second took {took:?}");
    }
}
