//! HTTP as an upstream session sees it: exchanges it wants made, and what comes of them.
//!
//! An exchange is one request with everything that its answer brings, however long that takes. The
//! owner makes it, reports what happens in order, and forgets it when it has ended or was dropped.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use crate::protocol::jsonrpc::{Incoming, Message, RpcError, parse};

/// What a session that speaks Streamable HTTP is told beside [`super::UpstreamConfig`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpConfig {
    /// Whether a server that knows neither opening may be one of 2024-11-05's HTTP+SSE (U-41): then
    /// the opening ends with [`super::OpenError::TrySse`].
    pub may_be_sse: bool,
    /// The rest before an event stream is opened again, where the server names none
    /// (`upstream.sse_reconnect_delay`, U-39).
    pub reconnect_delay: Duration,
    /// How often that is tried in a row without anything coming of it
    /// (`upstream.sse_reconnect_attempts`).
    pub reconnect_attempts: u32,
    /// How often the standalone stream is tried after that (`upstream.sse_poll_interval`, F19).
    pub poll_interval: Duration,
    /// How long an event stream may stay open once its request was answered
    /// (`upstream.sse_linger`).
    pub linger: Duration,
}

/// One request to be made.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Given once in a session's life; news of this exchange carry it.
    pub tag: u64,
    /// The request that it answers, whose its frames are ([`super::Pending::resolve_of`]); none for
    /// everything else.
    pub request: Option<u64>,
    /// `POST`, `GET` (an event stream) or `DELETE` (the end of a legacy session).
    pub method: Method,
    /// What this request carries beside the configured headers.
    pub headers: HeaderMap,
    /// One message; empty for `GET` and `DELETE`.
    pub body: Bytes,
}

/// What came of an exchange so far.
#[derive(Debug, Clone)]
pub enum ExchangeNews {
    /// It was accepted (a status of 2xx); before any frame.
    Head {
        /// Which one.
        status: StatusCode,
        /// The answer's headers.
        headers: HeaderMap,
        /// Whether an event stream follows.
        stream: bool,
    },
    /// A frame that [`super::Pending::resolve`] gave back.
    Frame(Bytes),
    /// An event said where the stream stands; before the frame of that event.
    Mark {
        /// Its id, for `Last-Event-ID`; an empty one forgets the one before.
        id: Option<String>,
        /// How long to rest before the stream is opened again.
        retry: Option<Duration>,
        /// Whether the event bears a message, also one that was resolved.
        bears: bool,
    },
    /// It is over.
    Ended(ExchangeEnd),
}

/// How an exchange ended.
#[derive(Debug, Clone)]
pub enum ExchangeEnd {
    /// The answer came to its end.
    Whole,
    /// A status that is not 2xx.
    Refused {
        /// Which one.
        status: StatusCode,
        /// The beginning of its body (`upstream.error_body`).
        body: Bytes,
    },
    /// The body is nothing that could hold messages.
    Unreadable {
        /// What it is, in one phrase.
        what: String,
    },
    /// A frame beyond `link.max_frame`.
    TooLarge {
        /// Its size as far as it was seen, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// It was answered by a redirect that is not followed. The server is there, and has done
    /// nothing.
    Elsewhere {
        /// Where from and where to, in one phrase.
        why: String,
    },
    /// The connection failed.
    Failed {
        /// Whether any byte of the request may have reached the server.
        sent: bool,
        /// Why, in one phrase.
        why: String,
    },
}

/// A failed HTTP answer (U-12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpFailure {
    /// The status.
    pub status: StatusCode,
    /// The beginning of its body, as text on one line.
    pub body: String,
    /// The JSON-RPC error in it, where there is one.
    pub error: Option<RpcError>,
}

/// How much of a failed answer's body a text quotes; pages of HTML say nothing more after that.
const QUOTED: usize = 200;

impl HttpFailure {
    /// Reads a refusal. An error response counts whatever its id is.
    pub fn read(status: StatusCode, body: &Bytes) -> Self {
        let error = match parse(body) {
            Ok(Incoming::One(Message::Response(response))) => response.outcome.err(),
            _ => None,
        };
        let words = String::from_utf8_lossy(body);
        let body = words.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { status, body, error }
    }

    /// Whether credentials are missing, wrong, or not enough.
    pub fn is_auth(&self) -> bool {
        matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    /// Whether this is how a server answers at an address where it has no such endpoint, or none of
    /// this kind (U-41).
    pub fn is_bare(&self) -> bool {
        let no_endpoint = matches!(
            self.status,
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
        );
        no_endpoint && self.error.is_none()
    }
}

impl fmt::Display for HttpFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.status)?;
        match (&self.error, self.body.as_str()) {
            (Some(error), _) => write!(f, ": {} {:.QUOTED$}", error.code, error.message),
            (None, "") => Ok(()),
            (None, body) => write!(f, ": {body:.QUOTED$}"),
        }?;
        if self.is_auth() {
            f.write_str("; set this server's `auth` (or `headers`), or mend what is set there")?;
        }
        Ok(())
    }
}
