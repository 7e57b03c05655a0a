//! A session over HTTP: what its endpoint asks of it, and when it ends.

use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::mpsc;

use super::sessions::{Entry, SessionId, Sessions};
use super::streams::{HttpWire, PostIn, PostOut};
use super::{HostMsg, HostState, Wire};
use crate::actors::support::timer::Timer;
use crate::protocol::http_rules::post::{Refusal, Said, asks, check_batch, id_of};
use crate::protocol::jsonrpc::{Code, RpcError};
use crate::protocol::revision::Revision;
use crate::transport::clock;

/// A session over HTTP.
pub(super) struct Session {
    pub(super) wire: HttpWire,
    id: SessionId,
    sessions: Sessions,
    /// Its place in the table, once there is a handshake.
    entry: Option<Entry>,
    /// Its id, until its host was told.
    pub(super) untold: Option<SessionId>,
    last_used: Instant,
    idle: Timer,
}

impl Session {
    pub(super) fn new(wire: HttpWire, id: SessionId, sessions: Sessions) -> Self {
        let (last_used, idle) = (clock::now(), Timer::new());
        Self { wire, id, sessions, entry: None, untold: None, last_used, idle }
    }

    /// Its host uses it.
    fn used(&mut self, now: Instant) {
        self.last_used = now;
        if let Some(entry) = &self.entry {
            entry.touch();
        }
    }
}

impl HostState {
    /// Ends, unless something of it is open; then it is not the next one to be asked.
    pub(super) fn give_way(&mut self, now: Instant) {
        let Wire::Http(http) = &mut self.wire else { return };
        if http.wire.is_quiet() {
            // Nothing is said of a header, so nothing is wrong with it.
            let _ = self.end_session(now, &Said::Nothing);
        } else {
            http.used(now);
            self.context.hosts.stays(self.me.get_id());
        }
    }

    /// A POST of a session over HTTP.
    pub(super) fn post(&mut self, now: Instant, post: PostIn) {
        let Wire::Http(http) = &mut self.wire else { return };
        let PostIn { id, incoming, said, accepts, reply } = post;
        let agreed = self.session.agreed();
        let revision = agreed.unwrap_or_else(|| said.or_headerless());
        let checked = said.check_legacy(agreed).map_err(|error| {
            Refusal::new(StatusCode::BAD_REQUEST, revision, id_of(&incoming), &error)
        });
        if let Err(refusal) = checked.and_then(|()| check_batch(revision, &incoming)) {
            // Its host may have gone.
            let _ = reply.send(PostOut::refused(refusal));
            return;
        }
        http.used(now);
        http.wire.take(id, accepts, reply);
        if accepts.events_first && agreed.is_some() && asks(&incoming) {
            http.wire.begin_waiting(id);
        }
        if agreed.is_none() {
            self.session.assume(revision);
        }
        self.session.handle_post(now, id, incoming, accepts.events);
    }

    /// A session over HTTP that has a handshake can be found from now on, and its host be told so.
    pub(super) fn enter(&mut self) {
        let Wire::Http(http) = &mut self.wire else { return };
        let Some(revision) = self.session.agreed() else { return };
        if revision.resumes_streams() {
            http.wire.keep();
        }
        if http.entry.is_none() {
            let profile = self.context.profile().cloned();
            http.entry = Some(http.sessions.enter(http.id.clone(), profile, self.me.clone()));
            http.untold = Some(http.id.clone());
            let due = http.last_used.checked_add(self.context.settings().sessions.idle);
            http.idle.set(&self.me, due, HostMsg::IdleDue);
        }
    }

    pub(super) fn listen(
        &mut self,
        now: Instant,
        said: &Said,
        last_seen: Option<&str>,
    ) -> Result<mpsc::Receiver<Bytes>, Refusal> {
        self.check_header(said)?;
        let Wire::Http(http) = &mut self.wire else { return Err(self.bad("it has no streams")) };
        http.used(now);
        http.wire.listen(now, last_seen).map_err(|why| self.bad(&why))
    }

    pub(super) fn end_session(&mut self, now: Instant, said: &Said) -> Result<(), Refusal> {
        self.check_header(said)?;
        if let Wire::Http(http) = &mut self.wire {
            http.entry = None;
            http.wire.end_own();
        }
        self.session.handle_closed(now);
        self.me.stop(None);
        Ok(())
    }

    pub(super) fn idle_due(&mut self, now: Instant) {
        let Wire::Http(http) = &mut self.wire else { return };
        http.idle.fired();
        if !http.wire.is_quiet() {
            http.used(now);
        }
        let due = http.last_used.checked_add(self.context.settings().sessions.idle);
        if due.is_some_and(|due| due <= now) {
            tracing::debug!(host = self.label(), "a session was idle for http.session_idle");
            // Nothing is said of a header, so nothing is wrong with it.
            let _ = self.end_session(now, &Said::Nothing);
        } else {
            http.idle.set(&self.me, due, HostMsg::IdleDue);
        }
    }

    fn check_header(&self, said: &Said) -> Result<(), Refusal> {
        said.check_legacy(self.session.agreed()).map_err(|error| self.bad(&error.message))
    }

    fn bad(&self, why: &str) -> Refusal {
        let revision = self.session.agreed().unwrap_or(Revision::HEADERLESS);
        let error = RpcError::new(Code::InvalidRequest, why);
        Refusal::new(StatusCode::BAD_REQUEST, revision, None, &error)
    }
}
