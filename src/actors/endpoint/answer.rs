//! Answers of the endpoint as HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::sync::mpsc;

use crate::actors::host::sessions::SessionId;
use crate::protocol::http_rules::headers::SESSION_ID;
use crate::protocol::http_rules::post::Refusal;
use crate::protocol::jsonrpc::{Code, Frame, Id, RpcError};
use crate::protocol::revision::Revision;
use crate::transport::http::{HttpBody, HttpOut};

/// The methods of an endpoint that keeps sessions.
pub(super) const ALL_METHODS: &str = "GET, POST, DELETE";
/// The method of an endpoint as the modern era has it.
pub(super) const POST_ONLY: &str = "POST";

/// A message, or an array of them.
pub(super) fn json(status: StatusCode, body: Frame) -> HttpOut {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    HttpOut { status, headers, body: HttpBody::Full(body) }
}

/// Messages as they come.
pub(super) fn events(chunks: mpsc::Receiver<Bytes>, keep_alive: Duration) -> HttpOut {
    let body = HttpBody::Events { chunks, keep_alive };
    HttpOut { status: StatusCode::OK, headers: HeaderMap::new(), body }
}

/// The same message as an event, and nothing after it.
pub(super) fn one_event(event: Bytes) -> HttpOut {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    HttpOut { status: StatusCode::OK, headers, body: HttpBody::Full(event.into()) }
}

/// 202, without a body.
pub(super) fn accepted() -> HttpOut {
    empty(StatusCode::ACCEPTED)
}

/// The session has ended.
pub(super) fn ended() -> HttpOut {
    empty(StatusCode::NO_CONTENT)
}

fn empty(status: StatusCode) -> HttpOut {
    HttpOut { status, headers: HeaderMap::new(), body: HttpBody::Full(Bytes::new().into()) }
}

pub(super) fn refusal(refusal: Refusal) -> HttpOut {
    let Refusal { status, body } = refusal;
    let mut out = json(status, body);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        out.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    out
}

/// A request that is refused for what its session is, or is not.
pub(super) fn refused(status: StatusCode, id: Option<Id>, text: impl Into<String>) -> HttpOut {
    let error = RpcError::new(Code::InvalidRequest, text);
    refusal(Refusal::new(status, Revision::NEWEST_LEGACY, id, &error))
}

/// Legacy Transports pages: a host that hears this begins again with `initialize`.
pub(super) fn no_session(id: Option<Id>) -> HttpOut {
    let text = "this session is not known: it has ended, or was idle for too long; open a new one \
                with `initialize` and without Mcp-Session-Id";
    refused(StatusCode::NOT_FOUND, id, text)
}

/// The session ended while it worked on this.
pub(super) fn session_failed(id: Option<Id>) -> HttpOut {
    let text = "the session ended before this was answered; what was asked for may or may not have \
                taken effect, check before trying again";
    let error = RpcError::new(Code::InternalError, text);
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    refusal(Refusal::new(status, Revision::NEWEST_LEGACY, id, &error))
}

/// The daemon is about to end: another one may answer soon.
pub(super) fn ending() -> HttpOut {
    let text = "mcpx is about to end; try again in a moment";
    refused(StatusCode::SERVICE_UNAVAILABLE, None, text)
}

pub(super) fn wrong_method(allowed: &'static str) -> HttpOut {
    let text = format!("this address takes {allowed}");
    let mut out = refused(StatusCode::METHOD_NOT_ALLOWED, None, text);
    out.headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
    out
}

pub(super) fn not_acceptable(wanted: &str) -> HttpOut {
    let text = format!("the header Accept must admit {wanted}");
    refused(StatusCode::NOT_ACCEPTABLE, None, text)
}

pub(super) fn wrong_kind() -> HttpOut {
    let text = "the header Content-Type must be application/json";
    refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, text)
}

pub(super) fn no_profile(text: &str) -> HttpOut {
    refused(StatusCode::NOT_FOUND, None, text)
}

/// Tells the host the id of the session that its request has opened.
pub(super) fn with_session(mut out: HttpOut, session: Option<&SessionId>) -> HttpOut {
    let id = session.and_then(|session| HeaderValue::from_str(session.as_str()).ok());
    if let Some(id) = id {
        out.headers.insert(SESSION_ID, id);
    }
    out
}
