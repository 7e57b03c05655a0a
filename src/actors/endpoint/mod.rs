//! `/mcp`: hosts over Streamable HTTP, of all revisions.
//!
//! One endpoint for both eras: what a POST holds decides ([`crate::protocol::http_rules::post`]).
//! A modern request is answered by its own task and leaves nothing behind (`modern`); everything
//! else belongs to a session, which is a [`super::host`] (`legacy`). Never looks at what a request
//! means.

mod answer;
mod legacy;
mod modern;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::{HeaderMap, Method};

use super::dispatch::Context;
use super::events::Event;
use crate::protocol::http_rules::headers::SESSION_ID;
use crate::protocol::http_rules::post::{self, Accepts, Posted, Said};
use crate::protocol::jsonrpc::{Incoming, Message};
use crate::protocol::session::host::PostId;
use crate::transport::http::{Answering, HttpHandler, HttpIn, HttpOut};

/// Where hosts reach mcpx over HTTP.
const PATH: &str = "/mcp";

/// Answers `/mcp` and `/mcp/{profile}`.
#[derive(Debug)]
pub struct McpEndpoint {
    inner: Arc<Endpoint>,
}

#[derive(Debug)]
struct Endpoint {
    context: Arc<Context>,
    /// The last POST's number.
    posts: AtomicU64,
    /// Said once, whoever it was.
    warned_of_encoding: AtomicBool,
}

impl McpEndpoint {
    /// Answers with these handles.
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            inner: Arc::new(Endpoint {
                context,
                posts: AtomicU64::new(0),
                warned_of_encoding: AtomicBool::new(false),
            }),
        }
    }
}

impl HttpHandler for McpEndpoint {
    fn handle(&self, request: HttpIn) -> Answering {
        let endpoint = Arc::clone(&self.inner);
        Box::pin(async move { endpoint.answer(request).await })
    }
}

impl Endpoint {
    async fn answer(&self, request: HttpIn) -> HttpOut {
        let context = match self.context_for(&request.path) {
            Ok(context) => context,
            Err(refused) => return *refused,
        };
        if self.context.root.is_ending() {
            return answer::ending();
        }
        match request.method {
            Method::POST => self.post(&context, request).await,
            Method::GET => self.get(&context, &request.headers).await,
            Method::DELETE => self.delete(&context, &request.headers).await,
            _ => answer::wrong_method(answer::ALL_METHODS),
        }
    }

    /// What a host may use that comes in by this path: `/mcp`, or that of a profile.
    fn context_for(&self, path: &str) -> Result<Arc<Context>, Box<HttpOut>> {
        let profile = path.strip_prefix(PATH).unwrap_or(path).trim_matches('/');
        if profile.is_empty() {
            return Ok(Arc::clone(&self.context));
        }
        self.context.seen_from(Some(profile), None).map(Arc::new).ok_or_else(|| {
            let loaded = &self.context.settings.current().loaded;
            Box::new(answer::no_profile(&loaded.no_profile(profile)))
        })
    }

    async fn post(&self, context: &Arc<Context>, request: HttpIn) -> HttpOut {
        let HttpIn { headers, body, .. } = request;
        let accepts = Accepts::of(&headers);
        if !accepts.json && !accepts.events {
            return answer::not_acceptable("application/json and text/event-stream");
        }
        if !post::is_json(&headers) {
            return answer::wrong_kind();
        }
        let (posted, mended) = post::read(&headers, &body);
        if mended && !self.warned_of_encoding.swap(true, Ordering::Relaxed) {
            let text =
                "a host over HTTP sends text that is not UTF-8; bad bytes were replaced (F09)";
            self.context.events.emit(Event::new("host.warning", text));
        }
        let posted = match posted {
            Ok(posted) => posted,
            Err(refusal) => return answer::refusal(refusal),
        };
        // What was read of it holds it as long as it is needed.
        drop(body);
        match posted {
            Posted::Modern(request) => modern::answer(context, headers, request, accepts).await,
            Posted::ModernNote(note) => {
                modern::note(context, note);
                answer::accepted()
            }
            Posted::Opening(request) => {
                let incoming = Incoming::One(Message::Request(request));
                // Whatever its header says: what it asks for stands in its body (H-08).
                self.legacy(context, &headers, incoming, Said::Nothing, accepts).await
            }
            Posted::Legacy(incoming) => {
                self.legacy(context, &headers, incoming, Said::of(&headers), accepts).await
            }
        }
    }

    fn next_post(&self) -> PostId {
        PostId(self.posts.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// The id of the session that a request belongs to.
fn session_id(headers: &HeaderMap) -> Option<&str> {
    // An id that is no text is nobody's, and not none.
    headers.get(SESSION_ID).map(|value| value.to_str().unwrap_or_default())
}
