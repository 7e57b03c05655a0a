//! The HTTP client towards remote servers: one exchange is one request and all that comes back.
//!
//! It knows methods, statuses, media types and event streams; what a frame means, which headers a
//! request carries and what follows from an end are its user's business.

pub(super) mod exchange;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::address::{Origin, shown};
use super::dial::Dial;
use super::mask::Mask;
pub use super::net::Net;
use crate::settings::Settings;
use crate::settings::typed::RemoteSettings;
use crate::transport::task::spawn_named;

/// Limits of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Longest way to a connection: name, TCP, proxy and TLS together (`upstream.connect_timeout`).
    pub connect: Duration,
    /// Redirects followed of one request (`upstream.redirects`).
    pub redirects: usize,
    /// Bytes kept of a body that says why a request was refused (`upstream.error_body`).
    pub error_body: usize,
    /// Longest frame in bytes (`link.max_frame`).
    pub max_frame: usize,
    /// How long a connection is kept that nobody uses (`upstream.http_idle`).
    pub idle: Duration,
    /// Such connections of one server at most (`upstream.http_idle_connections`).
    pub idle_connections: usize,
    /// After so much silence on a connection the system asks whether the peer is still there
    /// (`upstream.tcp_keepalive`).
    pub keepalive: Duration,
    /// How long a message over HTTP+SSE waits until the one before it was taken
    /// (`upstream.sse_post_wait`).
    pub post_wait: Duration,
}

impl ClientLimits {
    /// What the settings say.
    pub fn of(settings: &Settings) -> Self {
        let RemoteSettings { connect, redirects, error_body, idle, idle_connections, .. } =
            settings.remote;
        Self {
            connect,
            redirects,
            error_body,
            max_frame: settings.link.max_frame,
            idle,
            idle_connections,
            keepalive: settings.remote.tcp_keepalive,
            post_wait: settings.remote.sse_post_wait,
        }
    }
}

/// Whom to speak to, and with what.
#[derive(Clone)]
pub struct ClientSpec {
    /// The address.
    pub url: Uri,
    /// A credential for the query of every address that is asked, `name=value`, already encoded
    ///
    pub query: Option<String>,
    /// Sent with every request, but only to the origin of [`Self::url`]: what is configured,
    /// and credentials, which are marked sensitive.
    pub headers: HeaderMap,
    /// Takes all these secrets out of what the server says in place of an answer.
    pub mask: Mask,
    /// See [`ClientLimits`].
    pub limits: ClientLimits,
    /// Roots of trust and proxies, the same for the whole daemon.
    pub net: Net,
}

/// Without the query, which may hold a credential, and without headers.
impl fmt::Debug for ClientSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSpec").field("url", &shown(&self.url)).finish_non_exhaustive()
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none of HTTP.
    #[error("`url` {0}")]
    BadUrl(String),
}

/// One request.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The user's name for it; comes back with each event.
    pub tag: u64,
    /// Its method.
    pub method: Method,
    /// Its own headers, beside those of the client.
    pub headers: HeaderMap,
    /// Its body; empty for GET and DELETE.
    pub body: Bytes,
}

/// Looks at a frame first; gives back what it does not know.
pub type Take = Arc<dyn Fn(Bytes) -> Option<Bytes> + Send + Sync>;

/// Where the outcome of an exchange goes.
#[derive(Clone)]
pub struct ExchangeTo {
    /// Offered every frame first.
    pub take: Take,
    /// Everything else. It is waited for, so a full queue slows the peer.
    pub events: mpsc::Sender<(u64, ExchangeEvent)>,
}

impl fmt::Debug for ExchangeTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExchangeTo")
    }
}

/// What comes of an exchange, in order.
#[derive(Debug)]
pub enum ExchangeEvent {
    /// The head of a 2xx, before any frame.
    Head {
        /// The status.
        status: StatusCode,
        /// The headers.
        headers: HeaderMap,
        /// Whether the body is declared as an event stream.
        stream: bool,
    },
    /// A whole JSON body, or the data of one event named `message` or not named. Always one line:
    /// line ends between the tokens of a JSON text are spaces here.
    Frame(Bytes),
    /// What an event said about resumption. Comes before the frame of the same event, and also for
    /// events without data.
    Mark {
        /// The event's id; an empty one takes the last id back.
        id: Option<String>,
        /// The time to wait before a reconnection.
        retry: Option<Duration>,
        /// Whether the event bears a frame, also one that [`ExchangeTo::take`] takes.
        bears: bool,
    },
    /// The last.
    Ended(ExchangeEnd),
}

/// How an exchange ended.
#[derive(Debug)]
pub enum ExchangeEnd {
    /// The body came to its end.
    Whole,
    /// A status that is no success.
    Refused {
        /// The status.
        status: StatusCode,
        /// The headers.
        headers: HeaderMap,
        /// The body: whole where it is JSON, which may be an answer in the protocol's own words;
        /// else its beginning, within `upstream.error_body`. Without the secrets that it quotes.
        body: Bytes,
    },
    /// A success that is no answer: neither JSON nor an event stream. Its head was told.
    Unreadable {
        /// What it was, as a sentence without a full stop.
        what: String,
    },
    /// A frame beyond `link.max_frame`.
    TooLarge {
        /// What came of it, or what its length was said to be.
        bytes: usize,
    },
    /// A redirect that is not followed: to another origin, to what is no address, or one too many.
    /// The server is there and has answered; what redirects has done nothing.
    Elsewhere {
        /// Where from and where to, as a sentence without a full stop.
        why: String,
    },
    /// No connection, or it broke.
    Failed {
        /// Whether any byte of the request may have reached the server.
        sent: bool,
        /// Why, as a sentence without a full stop.
        why: String,
    },
}

/// Ends its exchange when dropped: a stream is closed at once.
#[derive(Debug)]
pub struct ExchangeGuard(AbortHandle);

impl Drop for ExchangeGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A client of one server. Cheap to clone; its clones share their connections.
#[derive(Debug, Clone)]
pub struct HttpClient {
    spec: Arc<ClientSpec>,
    pool: Client<Dial, Full<Bytes>>,
}

impl HttpClient {
    /// A client of the server at `spec.url`. Connects to nothing yet.
    pub fn new(spec: ClientSpec) -> Result<Self, ClientError> {
        if Origin::of(&spec.url).is_none() {
            return Err(ClientError::BadUrl(format!("{} is no address of HTTP", shown(&spec.url))));
        }
        let ClientLimits { connect, keepalive, idle, idle_connections, .. } = spec.limits;
        let dial = Dial { net: spec.net.clone(), limit: connect, keepalive };
        // A request that an idle connection did not take any more is sent on another one: hyper
        // does so only where not a byte of it was written.
        let pool = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(idle)
            .pool_max_idle_per_host(idle_connections)
            .build(dial);
        Ok(Self { spec: Arc::new(spec), pool })
    }

    /// Whom it speaks to.
    pub fn spec(&self) -> &ClientSpec {
        &self.spec
    }

    /// Runs one exchange as a task. Whoever wants nothing of an answer drops the guard when its
    /// head has come: the body is closed, not read (F20).
    pub fn start(&self, exchange: Exchange, to: ExchangeTo) -> ExchangeGuard {
        let client = self.clone();
        let running = spawn_named("exchange", exchange::run(client, exchange, to));
        ExchangeGuard(running.abort_handle())
    }
}

#[cfg(test)]
pub(super) mod tests;
