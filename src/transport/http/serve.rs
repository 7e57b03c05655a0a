//! One HTTP connection: hyper's requests to [`HttpIn`], and [`HttpOut`] back; after a 101 the
//! connection becomes a link with no HTTP left in its path.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::body::{self, BodyBudget, BodyRefused, OutBody, Share};
use super::{HttpBody, HttpHandler, HttpIn, HttpOut};
use crate::transport::link::{Link, LinkLimits};
use crate::transport::socket::widen;
use crate::transport::task::spawn_named;

/// Limits of one connection.
#[derive(Debug, Clone, Copy)]
pub struct ServeLimits {
    /// Longest body, in bytes (`control.max_body`).
    pub body: usize,
    /// Bytes of all bodies together that are read or worked on (`control.body_budget`).
    pub bodies: usize,
    /// Longest wait for a whole request head, and then for its body (`control.header_timeout`).
    pub headers: Duration,
    /// Limits of the link after an upgrade.
    pub link: LinkLimits,
}

/// Serves one connection to its end, or until `stop` turns true and its open answer is out.
pub(super) async fn serve(
    stream: UnixStream,
    handler: Arc<dyn HttpHandler>,
    limits: ServeLimits,
    bodies: BodyBudget,
    mut stop: watch::Receiver<bool>,
) {
    let service =
        service_fn(move |request| answer(request, Arc::clone(&handler), limits, bodies.share()));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let stopped = async {
        // The value stands behind a lock, which must not be held over the wait below.
        let _ = stop.wait_for(|stopped| *stopped).await.map(drop);
    };
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stopped => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        // A peer that goes away in the middle is its own affair.
        tracing::debug!(%error, "connection ended");
    }
}

async fn answer(
    request: http::Request<Incoming>,
    handler: Arc<dyn HttpHandler>,
    limits: ServeLimits,
    mut share: Share,
) -> Result<Response<OutBody>, Infallible> {
    let (mut parts, body) = request.into_parts();
    let upgrade = parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
    let read = body::read_shared(body, limits.body, &mut share);
    let read = tokio::time::timeout(limits.headers, read).await;
    let body = match read.unwrap_or(Err(BodyRefused::TooSlow)) {
        Ok(body) => body,
        Err(refused) => return Ok(refuse(&refused)),
    };
    let answered = handler
        .handle(HttpIn {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            headers: parts.headers,
            body,
        })
        .await;
    // Until here the body may be held by whatever works on it.
    drop(share);
    let HttpOut { status, headers, body } = answered;
    let body = match (body, upgrade) {
        (HttpBody::Full(bytes), _) => OutBody::Full(Some(bytes)),
        (HttpBody::Stream(chunks), _) => OutBody::Stream(chunks),
        (HttpBody::Upgrade(then), Some(upgrade)) => {
            spawn_named("attach", become_link(upgrade, limits.link, then));
            OutBody::Full(None)
        }
        (HttpBody::Upgrade(_), None) => return Ok(not_asked()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Waits for the 101 to be out, takes hyper off the connection and hands the link on.
async fn become_link(
    upgrade: hyper::upgrade::OnUpgrade,
    limits: LinkLimits,
    then: Box<dyn FnOnce(Link) + Send>,
) {
    let Ok(upgraded) = upgrade.await else { return };
    let Ok(parts) = upgraded.downcast::<TokioIo<UnixStream>>() else { return };
    let stream = parts.io.into_inner();
    widen(&stream);
    let (read, write) = stream.into_split();
    then(Link::with_head(&parts.read_buf, read, write, limits));
}

/// The route is for upgrades, and this request asked for none.
fn not_asked() -> Response<OutBody> {
    plain(StatusCode::UPGRADE_REQUIRED, "this route takes an Upgrade request only\n".to_owned())
}

fn refuse(refused: &BodyRefused) -> Response<OutBody> {
    let status = match refused {
        BodyRefused::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        BodyRefused::NoRoom(_) => StatusCode::SERVICE_UNAVAILABLE,
        BodyRefused::TooSlow => StatusCode::REQUEST_TIMEOUT,
        BodyRefused::Broken(_) => StatusCode::BAD_REQUEST,
    };
    let mut response = plain(status, format!("{refused}\n"));
    // What follows on this connection may be the rest of the body.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn plain(status: StatusCode, text: String) -> Response<OutBody> {
    let mut response = Response::new(OutBody::Full(Some(Bytes::from(text))));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}
