//! Bodies: read within a limit, and made of chunks as they come.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::time::Sleep;

use crate::protocol::framing::sse::encode::COMMENT;
use crate::transport::clock;

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyRefused {
    /// Longer than the limit, in bytes.
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    /// Together with all other bodies that are held, more than this many bytes.
    #[error("the bodies of all requests together are longer than {0} bytes")]
    NoRoom(usize),
    /// Not there within the time.
    #[error("the body did not come in time")]
    TooSlow,
    /// The peer went away or broke the protocol.
    #[error("the body could not be read: {0}")]
    Broken(String),
}

/// How many bytes all bodies of one listener may hold together (`….body_budget`).
#[derive(Debug, Clone)]
pub struct BodyBudget {
    held: Arc<AtomicUsize>,
    limit: usize,
}

impl BodyBudget {
    /// For `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { held: Arc::default(), limit }
    }

    /// A share of nothing yet.
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }
}

/// What one body holds of a budget; given back when it falls.
#[derive(Debug)]
pub struct Share {
    budget: BodyBudget,
    bytes: usize,
}

impl Share {
    fn grow(&mut self, bytes: usize) -> Result<(), BodyRefused> {
        let BodyBudget { held, limit } = &self.budget;
        self.bytes += bytes;
        if held.fetch_add(bytes, Ordering::SeqCst) + bytes > *limit {
            return Err(BodyRefused::NoRoom(*limit));
        }
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

/// Reads all of `body`, at most `limit` bytes. Here and in [`read_shared`] only are bodies read.
pub async fn read<B>(body: B, limit: usize) -> Result<Bytes, BodyRefused>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    read_shared(body, limit, &mut BodyBudget::new(limit).share()).await
}

/// [`read`], within what `share`'s budget has left. A body that says that it is too long is refused
/// before anything is read of it.
pub async fn read_shared<B>(body: B, limit: usize, share: &mut Share) -> Result<Bytes, BodyRefused>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyRefused::TooLarge(limit));
    }
    let mut body = pin!(body);
    // Gathered in one piece: the chunks of a body that trickles in would each hold a read buffer.
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| BodyRefused::Broken(error.into().to_string()))?;
        let Ok(chunk) = frame.into_data() else { continue };
        if whole.len() + chunk.len() > limit {
            return Err(BodyRefused::TooLarge(limit));
        }
        share.grow(chunk.len())?;
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// Reads the beginning of `body`, at most `limit` bytes; the rest, and why it ends, is of no interest.
pub async fn read_some<B>(body: B, limit: usize) -> Bytes
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let mut some = BytesMut::new();
    while some.len() < limit {
        let Some(Ok(frame)) = body.frame().await else { break };
        let Ok(chunk) = frame.into_data() else { continue };
        let room = chunk.len().min(limit - some.len());
        some.extend_from_slice(&chunk.slice(..room));
    }
    some.freeze()
}

/// An answer's body on its way out.
#[derive(Debug)]
pub(super) enum OutBody {
    /// All of it, piece by piece.
    Full(VecDeque<Bytes>),
    /// Chunks until the sender is gone. A reader that is too slow leaves them in the bounded queue,
    /// and so stops the sender.
    Stream(mpsc::Receiver<Bytes>),
    /// The same, with a comment after each silence.
    Events(Events),
}

/// A stream of events with signs of life in it.
#[derive(Debug)]
pub(super) struct Events {
    chunks: mpsc::Receiver<Bytes>,
    keep_alive: Duration,
    silence: Pin<Box<Sleep>>,
}

impl Events {
    pub(super) fn new(chunks: mpsc::Receiver<Bytes>, keep_alive: Duration) -> Self {
        Self { chunks, keep_alive, silence: Box::pin(tokio::time::sleep(keep_alive)) }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let chunk = match self.chunks.poll_recv(context) {
            Poll::Ready(chunk) => chunk,
            Poll::Pending => {
                ready!(self.silence.as_mut().poll(context));
                Some(Bytes::from_static(COMMENT))
            }
        };
        self.silence.as_mut().reset((clock::now() + self.keep_alive).into());
        Poll::Ready(chunk)
    }
}

impl Body for OutBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Full(pieces) => {
                Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
            }
            Self::Stream(chunks) => {
                chunks.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
            Self::Events(events) => {
                events.poll(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(pieces) if pieces.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Self::Stream(_) | Self::Events(_) => SizeHint::default(),
        }
    }
}
