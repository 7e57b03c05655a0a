//! One HTTP connection: hyper's requests to [`HttpIn`], and [`HttpOut`] back; after a 101 the
//! connection becomes a link with no HTTP left in its path.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;

use super::body::{self, BodyBudget, BodyRefused, Events, OutBody};
use super::stream::{Accepted, Paced, Stream};
use super::{HttpBody, HttpHandler, HttpIn, HttpOut};
use crate::protocol::jsonrpc::Frame;
use crate::transport::link::{Link, LinkLimits};
use crate::transport::socket::widen;
use crate::transport::task::spawn_named;

/// Limits of one connection. `…` is the listener's section of the settings.
#[derive(Debug, Clone, Copy)]
pub struct ServeLimits {
    /// The section where these limits stand, for texts: `control` or `http`.
    pub section: &'static str,
    /// Longest head of a request, in bytes (`http.max_header_bytes`).
    pub head: Option<usize>,
    /// Longest body, in bytes (`….max_body`).
    pub body: usize,
    /// Bytes of all bodies together that are read or worked on (`….body_budget`).
    pub bodies: usize,
    /// Longest wait for a whole request head, and then for its body (`….header_timeout`).
    pub patience: Duration,
    /// Longest time in which a peer takes nothing of its answer (`http.write_timeout`).
    pub write: Option<Duration>,
    /// How long the rest of a refused request is thrown away (`http.linger`), so that the refusal is
    /// read and not lost with the connection.
    pub linger: Duration,
    /// Limits of the link after an upgrade.
    pub link: LinkLimits,
}

/// What all connections of one listener share.
pub(super) struct Serving {
    pub(super) handler: Arc<dyn HttpHandler>,
    pub(super) limits: ServeLimits,
    pub(super) bodies: BodyBudget,
}

/// Serves one connection to its end, or until `stop` turns true and its open answer is out.
pub(super) async fn serve(
    accepted: Accepted,
    serving: Arc<Serving>,
    mut stop: watch::Receiver<bool>,
) {
    let Accepted { stream, peer, user } = accepted;
    let limits = serving.limits;
    // Set where a request was refused before it was read: the peer may still be sending it.
    let unread = Arc::new(AtomicBool::new(false));
    let service = {
        let unread = Arc::clone(&unread);
        let from = Sender { peer, user };
        service_fn(move |request| answer(request, from, Arc::clone(&serving), Arc::clone(&unread)))
    };
    // hyper gives up a connection whose peer has closed it, with the answer that is being made for it:
    // its half-closing stays off (F27).
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.patience);
    if let Some(head) = limits.head {
        builder.max_header_size(head);
    }
    let mut connection = builder
        .serve_connection(TokioIo::new(Paced::new(stream, limits.write)), service)
        .with_upgrades();
    let stopped = async {
        // The value stands behind a lock, which must not be held over the wait below.
        let _ = stop.wait_for(|stopped| *stopped).await.map(drop);
    };
    let served = tokio::select! {
        served = &mut connection => served,
        () = stopped => {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    // `None` after an upgrade.
    let Some(parts) = connection.into_parts() else { return };
    let stream = parts.io.into_inner().into_inner();
    match served {
        Ok(()) if unread.load(Ordering::Relaxed) => linger(stream, limits.linger).await,
        Ok(()) => {}
        // hyper has answered: 400, 414 or 431.
        Err(error) if error.is_parse() => linger(stream, limits.linger).await,
        Err(error) if error.is_timeout() && error.source().is_none() => {
            // hyper is silent about a head that does not come. So are we where none was begun.
            if !parts.read_buf.is_empty() {
                stream.try_write(too_slow(limits).as_bytes());
                linger(stream, limits.linger).await;
            }
        }
        // A peer that goes away in the middle is its own affair.
        Err(error) => tracing::debug!(%error, "connection ended"),
    }
}

/// Ends our side and throws away what still comes, for at most `limit`: a connection that is closed
/// with something unread is reset, and the answer before it is lost.
pub(super) async fn linger(mut stream: Stream, limit: Duration) {
    let rest = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(limit, rest).await;
}

fn too_slow(limits: ServeLimits) -> String {
    let text =
        format!("the request did not come in time (setting {}.header_timeout)\n", limits.section);
    format!(
        "HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    )
}

/// Who is at the other end.
#[derive(Debug, Clone, Copy)]
struct Sender {
    peer: Option<SocketAddr>,
    user: Option<u32>,
}

async fn answer(
    request: http::Request<Incoming>,
    from: Sender,
    serving: Arc<Serving>,
    unread: Arc<AtomicBool>,
) -> Result<Response<OutBody>, Infallible> {
    let (mut parts, body) = request.into_parts();
    let (limits, handler) = (serving.limits, &serving.handler);
    let upgrade = parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
    // A target that names its host itself overrides the header (RFC 9112, 3.2.2).
    if let Some(authority) = parts.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        parts.headers.insert(header::HOST, host);
    }
    // Whoever shows the request for debugging does not show its secret.
    if let Some(value) = parts.headers.get_mut(header::AUTHORIZATION) {
        value.set_sensitive(true);
    }
    if let Some(refused) = handler.turn_away(&parts) {
        let empty = body.is_end_stream();
        let mut response = respond(refused, None, limits);
        if !empty {
            unread.store(true, Ordering::Relaxed);
            close_after(&mut response);
        }
        return Ok(response);
    }
    let mut share = serving.bodies.share();
    let read = body::read_shared(body, limits.body, &mut share);
    let read = tokio::time::timeout(limits.patience, read).await;
    let body = match read.unwrap_or(Err(BodyRefused::TooSlow)) {
        Ok(body) => body,
        Err(refused) => {
            unread.store(true, Ordering::Relaxed);
            return Ok(refuse(&refused, limits));
        }
    };
    let answered = handler
        .handle(HttpIn {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            headers: parts.headers,
            body,
            peer: from.peer,
            user: from.user,
        })
        .await;
    // Until here the body may be held by whatever works on it.
    drop(share);
    Ok(respond(answered, upgrade, limits))
}

/// What there is to send of a text; nothing where it is empty.
fn pieces(text: &Frame) -> VecDeque<Bytes> {
    text.pieces().iter().filter(|piece| !piece.is_empty()).cloned().collect()
}

fn respond(
    out: HttpOut,
    upgrade: Option<hyper::upgrade::OnUpgrade>,
    limits: ServeLimits,
) -> Response<OutBody> {
    let HttpOut { status, mut headers, body } = out;
    let body = match (body, upgrade) {
        (HttpBody::Full(text), _) => OutBody::Full(pieces(&text)),
        (HttpBody::Stream(chunks), _) => OutBody::Stream(chunks),
        (HttpBody::Events { chunks, keep_alive }, _) => {
            for (name, value) in EVENT_HEADERS {
                headers.entry(name).or_insert(value);
            }
            OutBody::Events(Events::new(chunks, keep_alive))
        }
        (HttpBody::Upgrade(then), Some(upgrade)) => {
            spawn_named("attach", become_link(upgrade, limits.link, then));
            OutBody::Full(VecDeque::new())
        }
        (HttpBody::Upgrade(_), None) => return not_asked(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// What a stream of events says of itself: nobody between us and the reader may keep, change or
/// gather it.
const EVENT_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform")),
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
];

/// Waits for the 101 to be out, takes hyper off the connection and hands the link on.
async fn become_link(
    upgrade: hyper::upgrade::OnUpgrade,
    limits: LinkLimits,
    then: Box<dyn FnOnce(Link) + Send>,
) {
    let Ok(upgraded) = upgrade.await else { return };
    let Ok(parts) = upgraded.downcast::<TokioIo<Paced>>() else { return };
    // Shims come over the control socket; their link has limits of its own.
    let Stream::Unix(stream) = parts.io.into_inner().into_inner() else { return };
    widen(&stream);
    let (read, write) = stream.into_split();
    then(Link::with_head(&parts.read_buf, read, write, limits));
}

/// The route is for upgrades, and this request asked for none.
fn not_asked() -> Response<OutBody> {
    plain(StatusCode::UPGRADE_REQUIRED, "this route takes an Upgrade request only\n".to_owned())
}

fn refuse(refused: &BodyRefused, limits: ServeLimits) -> Response<OutBody> {
    let (status, setting) = match refused {
        BodyRefused::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "max_body"),
        BodyRefused::NoRoom(_) => (StatusCode::SERVICE_UNAVAILABLE, "body_budget"),
        BodyRefused::TooSlow => (StatusCode::REQUEST_TIMEOUT, "header_timeout"),
        BodyRefused::Broken(_) => (StatusCode::BAD_REQUEST, ""),
    };
    let text = if setting.is_empty() {
        format!("{refused}\n")
    } else {
        format!("{refused} (setting {}.{setting})\n", limits.section)
    };
    let mut response = plain(status, text);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    close_after(&mut response);
    response
}

/// What follows on this connection may be the rest of the body.
fn close_after(response: &mut Response<OutBody>) {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
}

fn plain(status: StatusCode, text: String) -> Response<OutBody> {
    let mut response = Response::new(OutBody::Full(VecDeque::from([Bytes::from(text)])));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}
