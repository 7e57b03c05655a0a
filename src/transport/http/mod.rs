//! HTTP/1.1 over sockets: requests in, answers, event streams and upgrades out. Routes and meaning
//! belong to the actors.

pub mod body;
pub mod client;
pub mod control_call;
pub mod listen;
pub mod net;
pub mod serve;

use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use tokio::sync::mpsc;

use super::link::Link;

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
    /// The body, within `http.max_body`.
    pub body: Bytes,
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
    Full(Bytes),
    /// Chunks as they come, until the sender is dropped; a reader that is too slow stops the sender.
    Stream(mpsc::Receiver<Bytes>),
    /// 101: after the answer the connection is a link, handed to this function.
    Upgrade(Box<dyn FnOnce(Link) + Send>),
}

impl std::fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full",
            Self::Stream(_) => "Stream",
            Self::Upgrade(_) => "Upgrade",
        })
    }
}

/// A future of an answer.
pub type Answering = Pin<Box<dyn Future<Output = HttpOut> + Send>>;

/// Who answers requests.
pub trait HttpHandler: Send + Sync + 'static {
    /// Answers one request.
    fn handle(&self, request: HttpIn) -> Answering;
}

#[cfg(test)]
mod tests;
