//! What a request over TCP has to show before anything is done for it, and where it goes then.
//!
//! In this order: a `Host` that is ours, an `Origin` that may ask, a path that is served, the token.
//! All of it before the body is read: whoever may not speak costs a head.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tokio::sync::watch;

use super::token::{Shown, Token};
use crate::actors::control::http::ControlHttp;
use crate::actors::dispatch::Context;
use crate::actors::endpoint::McpEndpoint;
use crate::control::route;
use crate::protocol::http_rules::origin::{Acceptance, Refused};
use crate::protocol::jsonrpc::{Code, Response, RpcError};
use crate::transport::http::{Answering, HttpBody, HttpHandler, HttpIn, HttpOut};

/// What is in force at the door.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) acceptance: Acceptance,
    /// `None` where hosts need none and the control API is closed.
    pub(super) token: Option<Token>,
    /// `http.open`.
    pub(super) open: bool,
    /// Whether `/v1` is served: the token was given, not made.
    pub(super) control: bool,
}

/// The door's handler.
#[derive(Debug)]
pub(super) struct Gate {
    context: Arc<Context>,
    rules: watch::Receiver<Arc<Rules>>,
    endpoint: McpEndpoint,
    control: ControlHttp,
}

/// What a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Mcp,
    Health,
    Control,
    Nothing,
}

impl Place {
    fn of(path: &str) -> Self {
        match path {
            "/healthz" => Self::Health,
            "/mcp" => Self::Mcp,
            // A link that is attached has the rights of our own user: for the socket alone.
            route::ATTACH => Self::Nothing,
            _ if path.starts_with("/mcp/") => Self::Mcp,
            _ if path.starts_with("/v1/") => Self::Control,
            _ => Self::Nothing,
        }
    }
}

impl Gate {
    pub(super) fn new(context: Arc<Context>, rules: watch::Receiver<Arc<Rules>>) -> Self {
        let endpoint = McpEndpoint::new(Arc::clone(&context));
        let control = ControlHttp::new(Arc::clone(&context));
        Self { context, rules, endpoint, control }
    }

    fn health(&self) -> HttpOut {
        if self.context.root.is_ending() {
            plain(StatusCode::SERVICE_UNAVAILABLE, "the daemon is about to end\n")
        } else {
            plain(StatusCode::OK, "ok\n")
        }
    }
}

impl HttpHandler for Gate {
    fn turn_away(&self, head: &Parts) -> Option<HttpOut> {
        let rules = Arc::clone(&self.rules.borrow());
        rules.turn_away(head)
    }

    fn handle(&self, request: HttpIn) -> Answering {
        let origin = request.headers.get(header::ORIGIN).cloned();
        let answering = match Place::of(&request.path) {
            Place::Mcp => self.endpoint.handle(request),
            Place::Control => self.control.handle(request),
            Place::Health | Place::Nothing => {
                let health = self.health();
                Box::pin(async move { health })
            }
        };
        match origin {
            None => answering,
            Some(origin) => Box::pin(async move { shared(answering.await, origin) }),
        }
    }
}

impl Rules {
    fn turn_away(&self, head: &Parts) -> Option<HttpOut> {
        if let Err(refused) = self.acceptance.check(&head.headers) {
            let status = match refused {
                Refused::HostCount => StatusCode::BAD_REQUEST,
                Refused::Host(_) | Refused::Origin(_) => StatusCode::FORBIDDEN,
            };
            return Some(refusal(status, &refused.to_string()));
        }
        let origin = head.headers.get(header::ORIGIN).cloned();
        let out = match &origin {
            Some(_) if is_preflight(head) => Some(preflight(&head.headers)),
            _ => self.at_place(head),
        };
        Some(match origin {
            Some(origin) => shared(out?, origin),
            None => out?,
        })
    }

    fn at_place(&self, head: &Parts) -> Option<HttpOut> {
        match Place::of(head.uri.path()) {
            Place::Health if matches!(head.method, Method::GET | Method::HEAD) => None,
            Place::Health => {
                let mut out = refusal(StatusCode::METHOD_NOT_ALLOWED, "/healthz takes GET");
                out.headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                Some(out)
            }
            Place::Mcp if self.open => None,
            Place::Control if !self.control => Some(refusal(
                StatusCode::NOT_FOUND,
                "/v1 is served over TCP only where the setting http.token is given; it is always \
                 served on the control socket",
            )),
            Place::Mcp | Place::Control => self.unlock(&head.headers),
            Place::Nothing => {
                Some(refusal(StatusCode::NOT_FOUND, "nothing is here; hosts are served at /mcp"))
            }
        }
    }

    /// `None` for who has the token.
    fn unlock(&self, headers: &HeaderMap) -> Option<HttpOut> {
        let (text, challenge) = match self.token.as_ref().map(|token| token.look(headers)) {
            Some(Shown::Right) => return None,
            Some(Shown::Wrong) => {
                ("this is not mcpx's token", "Bearer realm=\"mcpx\", error=\"invalid_token\"")
            }
            Some(Shown::Nothing) | None => ("mcpx wants its token", "Bearer realm=\"mcpx\""),
        };
        let text = format!(
            "{text}: send the header `Authorization: Bearer …`; `mcpx status --http` shows the \
             token (setting http.token; http.open = true does without)"
        );
        let mut out = refusal(StatusCode::UNAUTHORIZED, &text);
        out.headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        Some(out)
    }
}

fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS
        && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// What a page that may ask is told before it asks: it may, by every method that is served and with
/// the headers it names, among them any `Mcp-Param-…`.
fn preflight(asked: &HeaderMap) -> HttpOut {
    const PRIVATE: (HeaderName, HeaderName) = (
        HeaderName::from_static("access-control-request-private-network"),
        HeaderName::from_static("access-control-allow-private-network"),
    );
    let mut headers = HeaderMap::new();
    let methods = HeaderValue::from_static("GET, POST, PUT, DELETE, OPTIONS");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    if let Some(named) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, named.clone());
    }
    if let Some(wanted) = asked.get(PRIVATE.0) {
        headers.insert(PRIVATE.1, wanted.clone());
    }
    HttpOut { status: StatusCode::NO_CONTENT, headers, body: HttpBody::Full(Bytes::new().into()) }
}

/// Lets the page of this origin, which may ask, read the answer.
fn shared(mut out: HttpOut, origin: HeaderValue) -> HttpOut {
    out.headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    out.headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let shown = HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate");
    out.headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, shown);
    out
}

/// An error that answers no request in particular (2025-11-25 and later, transports: the body of a 403
/// may be a JSON-RPC error without `id`).
fn refusal(status: StatusCode, text: &str) -> HttpOut {
    let error = RpcError::new(Code::InvalidRequest, text);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let body = HttpBody::Full(Response::to_frame_without_id(&error));
    HttpOut { status, headers, body }
}

fn plain(status: StatusCode, text: &'static str) -> HttpOut {
    let mut headers = HeaderMap::new();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, plain);
    HttpOut { status, headers, body: HttpBody::Full(Bytes::from_static(text.as_bytes()).into()) }
}
