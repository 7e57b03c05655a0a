//! A live two-way pair of bounded frame queues to one peer, over any pair of byte streams.
//!
//! Reading never waits for writing: the reader and the writer are two futures that the owner runs as
//! two tasks (a blocking, single-threaded peer with full pipes would hang otherwise).
//!
//! An idle link holds no buffers. Bytes are read into the stack of the poll that finds them and only
//! then given memory of their size; what a burst needed is given back as soon as it is through.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, mpsc};

use crate::protocol::framing::line::{Line, LineDecoder};
use crate::protocol::jsonrpc::Frame;

/// Read at a time into the stack; the rest of a larger frame is read into its own memory.
const SCRATCH: usize = 16 * 1024;
/// Frames in one vectored write at most, and half as many slices as it has: one in pieces takes more than two
/// of them, and what is left over is written next. Far below the system's limit of 1024.
const BATCH: usize = 32;
/// Room kept in the batch when it is empty; a burst's is given back.
const BATCH_KEPT: usize = 4;

/// Limits of one link.
#[derive(Debug, Clone, Copy)]
pub struct LinkLimits {
    /// Longest frame accepted, in bytes (`link.max_frame`).
    pub max_frame: usize,
    /// Frames waiting to be written at most (`link.write_queue`).
    pub write_queue: usize,
    /// Bytes of such frames (`link.write_queue_bytes`). There is room for one more frame, whatever
    /// its size, while fewer wait.
    pub write_queue_bytes: usize,
}

/// What came from the peer.
#[derive(Debug)]
pub enum LinkEvent {
    /// One frame.
    Frame(Bytes),
    /// A frame beyond the limit; its bytes were thrown away, its head kept.
    TooLarge {
        /// The first bytes.
        head: Bytes,
        /// Its size in bytes.
        bytes: usize,
    },
    /// The peer's side is at its end; nothing follows.
    Closed {
        /// One phrase for texts.
        why: String,
    },
}

/// A link, in the three parts that its owner hands to two tasks and keeps.
#[derive(Debug)]
pub struct Link {
    /// For the reading task.
    pub reader: LinkReader,
    /// For the owner, any number of copies.
    pub sender: LinkSender,
    /// For the writing task.
    pub writer: LinkWriter,
}

/// See [`LinkReader::next`].
pub struct LinkReader {
    io: Box<dyn AsyncRead + Send + Unpin>,
    decoder: LineDecoder,
    /// Why the stream ended, once it has; lines may still wait in the decoder.
    ended: Option<String>,
}

/// Puts frames into the write queue.
#[derive(Debug, Clone)]
pub struct LinkSender {
    queue: mpsc::Sender<Frame>,
    shared: Arc<Shared>,
}

/// Closes the writing side without keeping it open: what the owner of a process holds.
#[derive(Debug, Clone)]
pub struct LinkCloser {
    shared: Arc<Shared>,
}

/// See [`LinkWriter::run`].
pub struct LinkWriter {
    io: Box<dyn AsyncWrite + Send + Unpin>,
    queue: mpsc::Receiver<Frame>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    begun: AtomicU64,
    close: Notify,
    /// Bytes of the frames that are queued or being written.
    queued: AtomicUsize,
    max_queued: usize,
    /// The bytes have fallen below the limit.
    drained: Notify,
}

impl Shared {
    fn is_full(&self) -> bool {
        self.queued.load(Ordering::SeqCst) >= self.max_queued
    }

    fn add(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::SeqCst);
    }

    fn take(&self, bytes: usize) {
        let before = self.queued.fetch_sub(bytes, Ordering::SeqCst);
        if before >= self.max_queued && before - bytes < self.max_queued {
            self.drained.notify_waiters();
        }
    }
}

/// The write queue is full (the peer does not read) or the link is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendRefused {
    /// As many frames as `link.write_queue` wait already.
    #[error("the peer does not read: its write queue is full")]
    Full,
    /// The writer has ended.
    #[error("the connection is closed")]
    Closed,
}

impl Link {
    /// A link over two byte streams.
    pub fn new(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        limits: LinkLimits,
    ) -> Self {
        Self::with_head(&[], read, write, limits)
    }

    /// A link over two byte streams of which something was read already.
    pub fn with_head(
        head: &[u8],
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        limits: LinkLimits,
    ) -> Self {
        let (queue, receiver) = mpsc::channel(limits.write_queue.max(1));
        let shared = Arc::new(Shared {
            begun: AtomicU64::new(0),
            close: Notify::new(),
            queued: AtomicUsize::new(0),
            max_queued: limits.write_queue_bytes.max(1),
            drained: Notify::new(),
        });
        let mut decoder = LineDecoder::new(limits.max_frame);
        decoder.buffer().extend_from_slice(head);
        Self {
            reader: LinkReader { io: Box::new(read), decoder, ended: None },
            sender: LinkSender { queue, shared: Arc::clone(&shared) },
            writer: LinkWriter { io: Box::new(write), queue: receiver, shared },
        }
    }

    /// Two links that talk to each other in memory, for tests.
    pub fn pair(limits: LinkLimits) -> (Self, Self) {
        let (a, b) = tokio::io::duplex(limits.max_frame);
        let (a_read, a_write) = tokio::io::split(a);
        let (b_read, b_write) = tokio::io::split(b);
        (Self::new(a_read, a_write, limits), Self::new(b_read, b_write, limits))
    }
}

impl LinkReader {
    /// The next thing from the peer. Cancel-safe. After `Closed` it says `Closed` again.
    pub async fn next(&mut self) -> LinkEvent {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The same, for a caller that polls.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<LinkEvent> {
        loop {
            if let Some(line) = self.decoder.next_line() {
                return Poll::Ready(match line {
                    Line::Frame(frame) => LinkEvent::Frame(frame),
                    Line::TooLarge { head, bytes } => LinkEvent::TooLarge { head, bytes },
                });
            }
            if let Some(why) = &self.ended {
                return Poll::Ready(LinkEvent::Closed { why: why.clone() });
            }
            let buffer = self.decoder.buffer();
            if buffer.is_empty() && buffer.capacity() > 0 {
                // Frames handed out share this memory; what is left of it must not outlive them.
                *buffer = BytesMut::new();
            }
            match ready!(poll_fill(&mut *self.io, buffer, cx)) {
                Ok(0) => self.end("the peer closed its output".to_owned()),
                Ok(_) => {}
                Err(error) => self.end(format!("reading failed: {error}")),
            }
        }
    }

    /// A last line without its end is delivered: a peer that answers and exits may leave it out.
    fn end(&mut self, why: String) {
        self.decoder.buffer().extend_from_slice(b"\n");
        self.ended = Some(why);
    }
}

/// Reads once: into the stack while no frame has begun, behind the beginning of one otherwise.
fn poll_fill(
    io: &mut (dyn AsyncRead + Send + Unpin),
    buffer: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    if buffer.len() < SCRATCH {
        let mut scratch = [MaybeUninit::<u8>::uninit(); SCRATCH];
        let mut read = ReadBuf::uninit(&mut scratch);
        ready!(Pin::new(io).poll_read(cx, &mut read))?;
        buffer.extend_from_slice(read.filled());
        return Poll::Ready(Ok(read.filled().len()));
    }
    // A long frame: its memory doubles, so that it is copied a few times at most.
    if buffer.capacity() == buffer.len() {
        buffer.reserve(buffer.len());
    }
    let fill = pin!(io.read_buf(buffer));
    fill.poll(cx)
}

impl LinkSender {
    /// Queues a frame; never waits. Bytes are counted but refuse nothing here: whoever can wait asks
    /// [`Self::has_room`] first, and what must go out (a cancellation, say) is not held up by size.
    pub fn try_send(&self, frame: impl Into<Frame>) -> Result<(), SendRefused> {
        let frame = frame.into();
        let bytes = frame.len();
        // Before it is in the queue, where the writer may take it off again at once.
        self.shared.add(bytes);
        self.queue.try_send(frame).map_err(|error| {
            self.shared.take(bytes);
            match error {
                mpsc::error::TrySendError::Full(_) => SendRefused::Full,
                mpsc::error::TrySendError::Closed(_) => SendRefused::Closed,
            }
        })
    }

    /// Queues a frame, waiting for room.
    pub async fn send(&self, frame: impl Into<Frame>) -> Result<(), SendRefused> {
        let frame = frame.into();
        self.room().await;
        let bytes = frame.len();
        let place = self.queue.reserve().await.map_err(|_| SendRefused::Closed)?;
        self.shared.add(bytes);
        place.send(frame);
        Ok(())
    }

    /// Whether one more frame can be queued now. Only the link's single user may rely on it.
    pub fn has_room(&self) -> bool {
        (self.queue.capacity() > 0 && !self.shared.is_full()) || self.queue.is_closed()
    }

    /// Waits until there is room, or the writer has ended.
    pub async fn room(&self) {
        loop {
            let mut drained = pin!(self.shared.drained.notified());
            // Registered before the look at the count, so that no change between is missed.
            drained.as_mut().enable();
            if self.has_room() {
                return;
            }
            if self.shared.is_full() {
                tokio::select! {
                    () = drained => {}
                    () = self.queue.closed() => {}
                }
            } else {
                // The permit falls at once: its place is what was waited for.
                let _ = self.queue.reserve().await;
            }
        }
    }

    /// How many frames the writer has begun to write; the first is number 1. Never too low: a frame
    /// beyond this number has not reached the peer with a single byte and may be sent elsewhere. For
    /// the moment of a system call it may be too high.
    pub fn frames_begun(&self) -> u64 {
        self.shared.begun.load(Ordering::SeqCst)
    }

    /// Closes the writing side although senders remain: what is queued is still written.
    pub fn close(&self) {
        self.shared.close.notify_one();
    }

    /// What closes the writing side later, without keeping it open until then.
    pub fn closer(&self) -> LinkCloser {
        LinkCloser { shared: Arc::clone(&self.shared) }
    }
}

impl LinkCloser {
    /// See [`LinkSender::close`].
    pub fn close(&self) {
        self.shared.close.notify_one();
    }
}

impl LinkWriter {
    /// Writes frames until every sender is gone, the link is closed, or the peer is gone; each with
    /// one LF behind it. Takes one frame, drains what else waits, writes all in one go. Ends the
    /// stream (a child sees the end of its stdin) and returns why.
    pub async fn run(self) -> String {
        let Self { mut io, mut queue, shared } = self;
        let mut closed = pin!(shared.close.notified());
        let mut batch = Batch::default();
        loop {
            let first = poll_fn(|cx| match queue.poll_recv(cx) {
                // Closing lets the queue run dry: the receiver yields what waits, then `None`.
                Poll::Pending if closed.as_mut().poll(cx).is_ready() => {
                    queue.close();
                    queue.poll_recv(cx)
                }
                other => other,
            })
            .await;
            let Some(first) = first else { break };
            batch.frames.push_back(first);
            while batch.frames.len() < BATCH {
                let Ok(frame) = queue.try_recv() else { break };
                batch.frames.push_back(frame);
            }
            let written = poll_fn(|cx| batch.poll_write(&mut *io, &shared, cx)).await;
            if let Err(error) = written {
                return format!("writing failed: {error}");
            }
            batch.frames.shrink_to(BATCH_KEPT);
        }
        let _ = poll_fn(|cx| Pin::new(&mut *io).poll_shutdown(cx)).await;
        "closed".to_owned()
    }
}

/// Frames on their way out.
#[derive(Default)]
struct Batch {
    frames: VecDeque<Frame>,
    /// Bytes of the first frame, LF included, that are written.
    offset: usize,
    /// Frames written whole since the beginning.
    done: u64,
}

impl Batch {
    /// Writes all of it and flushes.
    fn poll_write(
        &mut self,
        io: &mut (dyn AsyncWrite + Send + Unpin),
        shared: &Shared,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.frames.is_empty() {
            // Counted before the call, or a peer that answers and dies at once could make a frame
            // look unsent; set right afterwards (F23).
            shared.begun.store(self.done + self.frames.len() as u64, Ordering::SeqCst);
            let written = self.poll_some(io, cx);
            if let Poll::Ready(Ok(bytes)) = &written {
                self.advance(*bytes, shared);
            }
            shared.begun.store(self.done + u64::from(self.offset > 0), Ordering::SeqCst);
            if ready!(written)? == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
        Pin::new(io).poll_flush(cx)
    }

    /// One write of as much as the peer takes.
    fn poll_some(
        &self,
        io: &mut (dyn AsyncWrite + Send + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); 2 * BATCH];
        let mut used = 0;
        let mut skip = self.offset;
        let end = [b"\n".as_slice()];
        let frames = self.frames.iter();
        let pieces =
            frames.flat_map(|frame| frame.pieces().iter().map(|piece| &piece[..]).chain(end));
        for piece in pieces {
            // What is written already.
            let rest = piece.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(piece.len());
            if rest.is_empty() {
                continue;
            }
            let Some(slice) = slices.get_mut(used) else { break };
            *slice = IoSlice::new(rest);
            used += 1;
        }
        Pin::new(io).poll_write_vectored(cx, slices.get(..used).unwrap_or_default())
    }

    /// Takes off what was written.
    fn advance(&mut self, bytes: usize, shared: &Shared) {
        self.offset += bytes;
        while let Some(first) = self.frames.front() {
            let whole = first.len() + 1;
            if self.offset < whole {
                return;
            }
            self.offset -= whole;
            shared.take(first.len());
            self.frames.pop_front();
            self.done += 1;
        }
    }
}

impl std::fmt::Debug for LinkReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkReader")
    }
}

impl std::fmt::Debug for LinkWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkWriter")
    }
}

#[cfg(test)]
mod tests;
