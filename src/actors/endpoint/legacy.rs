//! Requests of the legacy era: each belongs to a session, if only for itself.
//!
//! Streamable HTTP pages of 2025-03-26 to 2025-11-25. A POST without a session id is an `initialize`,
//! which gets one, or comes from a host that keeps none: it is served, and its session with it (H-20,
//! H-27). A host that goes away has cancelled nothing (F27).

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use ractor::ActorRef;
use tokio::sync::oneshot;

use super::{Endpoint, answer, session_id};
use crate::actors::dispatch::Context;
use crate::actors::host::HostMsg;
use crate::actors::host::sessions::SessionId;
use crate::actors::host::streams::{Answer, PostIn, PostOut};
use crate::actors::hosts::{Named, Opening};
use crate::protocol::http_rules::headers::LAST_EVENT_ID;
use crate::protocol::http_rules::post::{Accepts, Said, id_of};
use crate::protocol::jsonrpc::{Id, Incoming};
use crate::protocol::session::host::PostId;
use crate::transport::http::HttpOut;

impl Endpoint {
    pub(super) async fn legacy(
        &self,
        context: &Arc<Context>,
        headers: &HeaderMap,
        incoming: Incoming,
        said: Said,
        accepts: Accepts,
    ) -> HttpOut {
        let request = id_of(&incoming);
        let (reply, answered) = oneshot::channel();
        let post = self.next_post();
        let post_in = PostIn { id: post, incoming, said, accepts, reply };
        let session = if let Some(id) = session_id(headers) {
            let session = match context.hosts.session(id, context).await {
                Named::Host(session) => session,
                Named::Unknown => return answer::no_session(request),
                Named::Later => return answer::ending(),
            };
            // One that has just ended takes no message.
            if session.cast(HostMsg::Post { post: Box::new(post_in) }).is_err() {
                return self.just_ended(request);
            }
            Some(session)
        } else {
            let Some(id) = SessionId::draw() else {
                let text = "the system has no randomness for a session's id";
                return answer::refused(StatusCode::SERVICE_UNAVAILABLE, request, text);
            };
            let context = Arc::clone(context);
            self.context.hosts.open(Opening { id, post: post_in, context });
            None
        };
        match self.wait(answered, session.as_ref(), post).await {
            Some(out) => {
                // What was agreed is on disk before the host is told of it (F47).
                self.context.hosts.settled(self.context.settings().daemon.ask).await;
                self.posted(out)
            }
            None => answer::session_failed(request),
        }
    }

    /// A session was there a moment ago.
    fn just_ended(&self, request: Option<Id>) -> HttpOut {
        // With the daemon it has not ended for good.
        if self.context.root.is_ending() { answer::ending() } else { answer::no_session(request) }
    }

    /// Waits for the answer; where it takes long, it is to be a stream.
    async fn wait(
        &self,
        mut answered: oneshot::Receiver<PostOut>,
        session: Option<&ActorRef<HostMsg>>,
        post: PostId,
    ) -> Option<PostOut> {
        let Some(session) = session else { return answered.await.ok() };
        let limit = self.context.settings().sessions.stream_after;
        if let Ok(out) = tokio::time::timeout(limit, &mut answered).await {
            return out.ok();
        }
        let _ = session.cast(HostMsg::BeginStream { post });
        answered.await.ok()
    }

    fn posted(&self, out: PostOut) -> HttpOut {
        let PostOut { answer, session } = out;
        let out = match answer {
            Ok(Answer::Nothing) => answer::accepted(),
            Ok(Answer::Whole(frame)) => answer::json(StatusCode::OK, frame),
            Ok(Answer::Events(events)) => {
                answer::events(events, self.context.settings().http.sse_keep_alive)
            }
            Err(refusal) => answer::refusal(refusal),
        };
        answer::with_session(out, session.as_ref())
    }

    /// A stream of the session's own, or one that broke.
    pub(super) async fn get(&self, context: &Arc<Context>, headers: &HeaderMap) -> HttpOut {
        let said = Said::of(headers);
        let session = match found(context, headers, &said).await {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        if !Accepts::of(headers).events {
            return answer::not_acceptable("text/event-stream");
        }
        let last_seen = headers.get(LAST_EVENT_ID);
        let last_seen = last_seen.map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
        let (reply, answered) = oneshot::channel();
        let _ = session.cast(HostMsg::Listen { said, last_seen, reply });
        match answered.await {
            Ok(Ok(events)) => answer::events(events, context.settings().http.sse_keep_alive),
            Ok(Err(refusal)) => answer::refusal(refusal),
            Err(_) => self.just_ended(None),
        }
    }

    /// The host needs its session no longer.
    pub(super) async fn delete(&self, context: &Arc<Context>, headers: &HeaderMap) -> HttpOut {
        let said = Said::of(headers);
        let session = match found(context, headers, &said).await {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        let (reply, answered) = oneshot::channel();
        let _ = session.cast(HostMsg::End { said, reply });
        match answered.await {
            Ok(Ok(())) => {
                // It is over for the next daemon, too.
                self.context.hosts.settled(self.context.settings().daemon.ask).await;
                answer::ended()
            }
            Ok(Err(refusal)) => answer::refusal(refusal),
            Err(_) => self.just_ended(None),
        }
    }
}

/// The session of a GET or a DELETE. A modern host has neither (2026-07-28 Streamable HTTP page,
/// "Earlier Streamable HTTP Revisions").
async fn found(
    context: &Arc<Context>,
    headers: &HeaderMap,
    said: &Said,
) -> Result<ActorRef<HostMsg>, Box<HttpOut>> {
    if said.is_modern() {
        return Err(Box::new(answer::wrong_method(answer::POST_ONLY)));
    }
    let Some(id) = session_id(headers) else {
        let text = "the header Mcp-Session-Id is missing; `initialize` answers with it";
        return Err(Box::new(answer::refused(StatusCode::BAD_REQUEST, None, text)));
    };
    match context.hosts.session(id, context).await {
        Named::Host(session) => Ok(session),
        Named::Unknown => Err(Box::new(answer::no_session(None))),
        Named::Later => Err(Box::new(answer::ending())),
    }
}
