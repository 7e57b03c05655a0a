//! A session over HTTP: what its endpoint asks of it, and when it ends.

use std::collections::BTreeSet;
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::mpsc;

use super::kept::{Held, Record};
use super::sessions::{Entry, SessionId, Sessions};
use super::streams::{HttpWire, PostIn, PostOut};
use super::{HostMsg, HostState, Wire};
use crate::actors::dispatch;
use crate::actors::subs::ListenerId;
use crate::actors::support::task::spawn;
use crate::actors::support::timer::Timer;
use crate::actors::upstreams::Caller;
use crate::protocol::http_rules::post::{Refusal, Said, asks, check_batch, id_of};
use crate::protocol::jsonrpc::{Code, RpcError};
use crate::protocol::revision::{Era, Revision};
use crate::protocol::session::host::HostNote;
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
    /// What is kept of it for the next daemon.
    held: Held,
    /// How many lives it has had before this one.
    lives: u32,
    /// What it subscribed to in the life before and is being asked for anew.
    pending: BTreeSet<String>,
}

impl Session {
    pub(super) fn new(
        wire: HttpWire,
        id: SessionId,
        sessions: Sessions,
        held: Held,
        lives: u32,
    ) -> Self {
        let (last_used, idle) = (clock::now(), Timer::new());
        Self {
            wire,
            id,
            sessions,
            entry: None,
            untold: None,
            last_used,
            idle,
            held,
            lives,
            pending: BTreeSet::new(),
        }
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
        http.wire.take(id, id_of(&incoming), accepts, reply);
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
            http.wire.keep(http.lives);
        }
        if http.entry.is_none() {
            let profile = self.context.profile().cloned();
            let entry = http.sessions.enter(http.id.clone(), profile, self.me.clone());
            http.untold = Some(http.id.clone());
            self.entered(entry);
        }
    }

    /// It has its place in the table, and is idle from here on.
    pub(super) fn entered(&mut self, entry: Entry) {
        let Wire::Http(http) = &mut self.wire else { return };
        http.entry = Some(entry);
        let due = http.last_used.checked_add(self.context.settings().sessions.idle);
        http.idle.set(&self.me, due, HostMsg::IdleDue);
    }

    /// Goes on where an earlier daemon ended (F47): what was agreed holds, what changed meanwhile is
    /// told, and what its host subscribed to is asked for once more.
    pub(super) fn resume(&mut self, record: Record) {
        let Some(agreed) = record.agreed() else { return };
        self.session.resume(agreed);
        for kind in self.view.changed_since_text(&record.views) {
            self.session.host_note(clock::now(), HostNote::Changed(kind));
        }
        let caller = Caller { era: Era::Legacy, ..self.caller.clone() };
        if let Wire::Http(http) = &mut self.wire {
            http.pending.clone_from(&record.subscriptions);
        }
        for address in record.subscriptions {
            let (me, context, caller) = (self.me.clone(), self.context.clone(), caller.clone());
            // Its own limits end it. A server that refuses now has refused a host that cannot be told.
            spawn(async move {
                let listener = ListenerId::of(&caller);
                if dispatch::subscribe(&context, listener, &caller, &address).await.is_ok()
                    && let Some(listener) = listener
                {
                    context.upstreams.subs().missed(listener, &address);
                }
                let _ = me.cast(HostMsg::Subscribed { again: Some(address) });
            });
        }
    }

    /// Its subscriptions are others, or one of the life before was asked for `again`.
    pub(super) fn subscribed(&mut self, again: Option<&str>) {
        if let (Wire::Http(http), Some(address)) = (&mut self.wire, again) {
            http.pending.remove(address);
        }
        self.keep();
    }

    /// Keeps what the session is, for the next daemon; the host is answered when it is on disk.
    pub(super) fn keep(&mut self) {
        let Wire::Http(http) = &mut self.wire else { return };
        let Some(agreed) = self.session.agreement() else { return };
        let mut subscriptions = self.context.upstreams.subs().of_host(self.id);
        subscriptions.extend(http.pending.iter().cloned());
        let views = self.view.as_given(&self.listed).unwrap_or_else(|| self.view.clone());
        let record = Record::new(agreed, subscriptions, views.to_string(), http.lives);
        http.held.put(record, &self.context.settings().sessions);
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
            http.held.forget();
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
            // That it is used.
            self.keep();
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
