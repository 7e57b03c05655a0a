//! Bodies: read within a limit, and made of chunks as they come.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyRefused {
    /// Longer than the limit, in bytes.
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    /// Not there within the time.
    #[error("the body did not come in time")]
    TooSlow,
    /// The peer went away or broke the protocol.
    #[error("the body could not be read: {0}")]
    Broken(String),
}

/// Reads all of `body`, at most `limit` bytes. The only place where bodies are read.
#[expect(clippy::disallowed_methods, reason = "the one sanctioned use")]
pub async fn read<B>(body: B, limit: usize) -> Result<Bytes, BodyRefused>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(BodyRefused::TooLarge(limit))
        }
        Err(error) => Err(BodyRefused::Broken(error.to_string())),
    }
}

/// An answer's body on its way out.
#[derive(Debug)]
pub(super) enum OutBody {
    /// All of it.
    Full(Option<Bytes>),
    /// Chunks until the sender is gone. A reader that is too slow leaves them in the bounded queue,
    /// and so stops the sender.
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for OutBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(chunks) => {
                chunks.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
