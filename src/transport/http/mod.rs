//! HTTP over sockets: requests in, answers, event streams and upgrades out; and as a client towards
//! remote servers. Routes and meaning belong to the actors.

pub mod address;
pub mod auth;
pub mod body;
pub mod client;
pub mod control_call;
mod dial;
pub mod legacy_sse;
pub mod listen;
pub mod mask;
mod media;
pub mod net;
pub mod serve;
mod stream;

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use tokio::sync::mpsc;

use super::link::Link;
use crate::protocol::jsonrpc::Frame;

/// One request, with its whole body.
#[derive(Debug)]
pub struct HttpIn {
    /// The method.
    pub method: Method,
    /// The path, still percent-encoded.
    pub path: String,
    /// The query, without the question mark.
    pub query: Option<String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, within the listener's limit.
    pub body: Bytes,
    /// Who asks, over TCP.
    pub peer: Option<SocketAddr>,
    /// Which user of the system asks, by number, over the control socket.
    pub user: Option<u32>,
}

/// An answer.
#[derive(Debug)]
pub struct HttpOut {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: HttpBody,
}

/// What an answer carries.
pub enum HttpBody {
    /// All of it at once.
    Full(Frame),
    /// Chunks as they come, until the sender is dropped; a reader that is too slow stops the sender.
    Stream(mpsc::Receiver<Bytes>),
    /// The same for a stream of events, with the headers that such a stream has. While nothing is
    /// sent, a comment goes out at this interval. When the peer goes away the receiver is dropped.
    Events {
        /// The events, encoded.
        chunks: mpsc::Receiver<Bytes>,
        /// `transport.sse_keep_alive`.
        keep_alive: Duration,
    },
    /// 101: after the answer the connection is a link, handed to this function.
    Upgrade(Box<dyn FnOnce(Link) + Send>),
}

impl std::fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full",
            Self::Stream(_) => "Stream",
            Self::Events { .. } => "Events",
            Self::Upgrade(_) => "Upgrade",
        })
    }
}

/// A future of an answer.
pub type Answering = Pin<Box<dyn Future<Output = HttpOut> + Send>>;

/// Who answers requests.
pub trait HttpHandler: Send + Sync + 'static {
    /// Looks at the head of a request before anything of its body is read: an answer ends it here.
    fn turn_away(&self, _head: &http::request::Parts) -> Option<HttpOut> {
        None
    }

    /// Answers one request.
    fn handle(&self, request: HttpIn) -> Answering;
}

#[cfg(test)]
mod tests;
