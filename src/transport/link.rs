//! A live two-way pair of bounded frame queues to one peer, over any pair of byte streams.
//!
//! Reading never waits for writing: the reader and the writer are two futures that the owner runs as
//! two tasks (a blocking, single-threaded peer with full pipes would hang otherwise).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// Limits of one link.
#[derive(Debug, Clone, Copy)]
pub struct LinkLimits {
    /// Longest frame accepted, in bytes (`link.max_frame`).
    pub max_frame: usize,
    /// Frames waiting to be written at most (`link.write_queue`).
    pub write_queue: usize,
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
    _io: Box<dyn AsyncRead + Send + Unpin>,
}

/// Puts frames into the write queue.
#[derive(Debug, Clone)]
pub struct LinkSender {
    queue: mpsc::Sender<Bytes>,
    begun: Arc<AtomicU64>,
}

/// See [`LinkWriter::run`].
pub struct LinkWriter {
    _io: Box<dyn AsyncWrite + Send + Unpin>,
    _queue: mpsc::Receiver<Bytes>,
    _begun: Arc<AtomicU64>,
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
        let (queue, receiver) = mpsc::channel(limits.write_queue);
        let begun = Arc::new(AtomicU64::new(0));
        Self {
            reader: LinkReader { _io: Box::new(read) },
            sender: LinkSender { queue, begun: Arc::clone(&begun) },
            writer: LinkWriter { _io: Box::new(write), _queue: receiver, _begun: begun },
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
    /// The next thing from the peer. Cancel-safe.
    pub async fn next(&mut self) -> LinkEvent {
        todo!()
    }
}

impl LinkSender {
    /// Queues a frame; never waits.
    pub fn try_send(&self, frame: Bytes) -> Result<(), SendRefused> {
        self.queue.try_send(frame).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendRefused::Full,
            mpsc::error::TrySendError::Closed(_) => SendRefused::Closed,
        })
    }

    /// Queues a frame, waiting for room.
    pub async fn send(&self, frame: Bytes) -> Result<(), SendRefused> {
        self.queue.send(frame).await.map_err(|_| SendRefused::Closed)
    }

    /// How many frames the writer has begun to write; the first is number 1.
    pub fn frames_begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }
}

impl LinkWriter {
    /// Writes frames until every sender is gone or the peer is; each with one LF behind it. Takes
    /// one frame, drains what else waits, writes all in one go. Returns why it ended.
    pub async fn run(self) -> String {
        todo!()
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
