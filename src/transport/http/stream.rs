//! Connections of either kind, TCP or Unix, and the patience with those that do not read.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::Sleep;

use crate::transport::socket;

/// Where connections come from.
#[derive(Debug)]
pub enum Listener {
    /// The control socket: for our own user only.
    Unix(UnixListener),
    /// A TCP port: for everybody who reaches it.
    Tcp(TcpListener),
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl Listener {
    /// The next connection; `None` for one that may not speak.
    pub(super) async fn accept(&self) -> io::Result<Option<Accepted>> {
        Ok(match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = socket::admit(&stream);
                user.map(|user| Accepted {
                    stream: Stream::Unix(stream),
                    peer: None,
                    user: Some(user),
                })
            }
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Some(Accepted { stream: Stream::Tcp(stream), peer: Some(peer), user: None })
            }
        })
    }
}

/// A new connection.
pub(super) struct Accepted {
    pub(super) stream: Stream,
    pub(super) peer: Option<SocketAddr>,
    /// Whose it is, over the control socket.
    pub(super) user: Option<u32>,
}

/// A connection's bytes.
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Probes in a row that an idle peer may leave unanswered before it counts as gone.
const PROBES: u32 = 3;

impl Stream {
    /// Small answers leave at once; a peer that is gone without a word is found: by what it does not
    /// acknowledge for `patience`, or by probes at that interval while nothing is on its way.
    pub(super) fn prepare(&self, patience: Option<Duration>) {
        let Self::Tcp(stream) = self else { return };
        // Without any of these it is slower, or found later, and nothing else.
        let _ = stream.set_nodelay(true);
        let Some(patience) = patience else { return };
        let seconds = u32::try_from(patience.as_secs()).unwrap_or(u32::MAX).max(1);
        let _ = setsockopt(stream, sockopt::KeepAlive, &true);
        #[cfg(target_os = "linux")]
        {
            let millis = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
            let _ = setsockopt(stream, sockopt::TcpUserTimeout, &millis);
            let _ = setsockopt(stream, sockopt::TcpKeepIdle, &seconds);
        }
        let _ = setsockopt(stream, sockopt::TcpKeepInterval, &seconds);
        let _ = setsockopt(stream, sockopt::TcpKeepCount, &PROBES);
    }

    /// Sends what a fresh socket's buffer takes, without waiting.
    pub(super) fn try_write(&self, bytes: &[u8]) {
        let _ = match self {
            Self::Unix(stream) => stream.try_write(bytes),
            Self::Tcp(stream) => stream.try_write(bytes),
        };
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Sockets hold nothing back.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// A connection whose peer has to take what is sent: when it has taken nothing for the patience given,
/// writing fails, which ends the connection and everything that was made for it.
pub(super) struct Paced {
    stream: Stream,
    patience: Option<Duration>,
    /// Runs while the peer takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    pub(super) const fn new(stream: Stream, patience: Option<Duration>) -> Self {
        Self { stream, patience, stuck: None }
    }

    pub(super) fn into_inner(self) -> Stream {
        self.stream
    }

    fn paced(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let Some(patience) = self.patience else { return written };
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        if stuck.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        tracing::debug!(?patience, "a peer takes nothing of its answer");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.paced(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.paced(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use nix::sys::socket::getsockopt;

    use super::*;

    #[tokio::test]
    async fn a_peer_that_is_gone_without_a_word_is_looked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Listener::from(listener);
        let (peer, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let accepted = accepted.unwrap().unwrap();
        assert_eq!(accepted.peer, Some(peer.unwrap().local_addr().unwrap()));
        accepted.stream.prepare(Some(Duration::from_millis(90_500)));
        let Stream::Tcp(stream) = accepted.stream else { panic!("no TCP") };
        assert!(stream.nodelay().unwrap());
        assert!(getsockopt(&stream, sockopt::KeepAlive).unwrap());
        assert_eq!(getsockopt(&stream, sockopt::TcpUserTimeout).unwrap(), 90_500);
        assert_eq!(getsockopt(&stream, sockopt::TcpKeepIdle).unwrap(), 90);
        assert_eq!(getsockopt(&stream, sockopt::TcpKeepInterval).unwrap(), 90);
        assert_eq!(getsockopt(&stream, sockopt::TcpKeepCount).unwrap(), PROBES);
    }
}
