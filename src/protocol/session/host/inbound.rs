//! What a host says: the lifecycle is answered here, everything else is handed up.

use std::sync::Arc;

use bytes::Bytes;

use super::progress::Throttle;
use super::{Handshake, HostEvent, HostOutput, HostSession, Open, PostId, Stage, To};
use crate::protocol::Notice;
use crate::protocol::edge::methods::{Direction, Standing, standing};
use crate::protocol::edge::{self, Lifted, lifecycle};
use crate::protocol::jsonrpc::{
    Code, Id, Malformed, Message, Method, Notification, Object, RawJson, Request, RpcError,
};
use crate::protocol::model::{implementation, tool_result};
use crate::protocol::revision::Revision;
use crate::protocol::session::{CallKey, HostRequest, LogLevel, Outcome, Peer};

/// Who makes a request, and what of its log it wants to hear.
struct Asker {
    peer: Arc<Peer>,
    log_level: Option<LogLevel>,
}

impl HostSession {
    pub(super) fn message(&mut self, message: Message, to: To) {
        match message {
            Message::Request(request) => self.request(request, to),
            Message::Notification(notification) => self.notification(notification),
            Message::Response(response) => self.response(response),
        }
    }

    /// H-28, F11: only where 2025-03-26 is spoken, or may be because nothing was agreed yet (H-27);
    /// never of requests that say themselves that they are of a revision without batches.
    pub(super) fn batch(&mut self, parts: Vec<Result<Message, Malformed>>, post: Option<PostId>) {
        let revision = if parts.iter().flatten().any(is_modern) || self.is_only_modern() {
            Revision::NEWEST
        } else {
            self.handshake.as_ref().map_or(Revision::HEADERLESS, |known| known.peer.revision)
        };
        if !revision.allows_batches() {
            let text = format!("protocol revision {revision} has no batches; send one by one");
            let to = To { post, batch: None };
            self.answer_unread(revision, to, &RpcError::new(Code::InvalidRequest, text));
            return;
        }
        let batch = self.batches.start();
        let to = To { post, batch: Some(batch) };
        for part in parts {
            match part {
                Ok(Message::Request(request)) if request.method.as_str() == "initialize" => {
                    self.batches.expect(batch);
                    let text = "`initialize` must not be part of a batch";
                    let error = RpcError::new(Code::InvalidRequest, text);
                    self.answer(to, request.id, Err(error));
                }
                Ok(message) => {
                    if matches!(message, Message::Request(_)) {
                        self.batches.expect(batch);
                    }
                    self.message(message, to);
                }
                Err(malformed) => {
                    self.batches.expect(batch);
                    let error = RpcError::new(Code::InvalidRequest, malformed.to_string());
                    match malformed.id().cloned() {
                        Some(id) => self.answer(to, id, Err(error)),
                        None => self.answer_nobody(to, &error),
                    }
                }
            }
        }
        self.settle(post, batch, None);
    }

    /// product.md 8: over stdio something unreadable is answered where an id can be read, and
    /// otherwise logged and skipped. What is plainly meant as a
    /// request, an array or an object with a method and a bad id, is answered in any case (F11, F14).
    pub(super) fn malformed(&mut self, malformed: &Malformed, frame: &Bytes) {
        let meant = matches!(malformed, Malformed::EmptyBatch | Malformed::Id(_));
        let error = malformed.error();
        if let Some(id) = malformed.id_in(frame) {
            self.answer(To::default(), id, Err(error));
        } else if meant {
            self.answer_nobody(To::default(), &error);
        } else {
            let text = format!("a line from the host was skipped: {}", error.message);
            self.outputs.push_back(HostOutput::Notice(Notice::host(text)));
        }
    }

    fn request(&mut self, request: Request, to: To) {
        let Request { id, method, params } = request;
        if self.keys.contains_key(&id) {
            let text = format!("a request with the id {id} is in flight already");
            self.answer(to, id, Err(RpcError::new(Code::InvalidRequest, text)));
            return;
        }
        let opening = method.as_str() == "initialize";
        match edge::lift_params(params.as_ref()) {
            Ok(lifted) if lifted.envelope.is_some() => {
                self.modern_request(id, method, lifted, to);
            }
            Ok(lifted) if opening => self.handshake(id, &lifted.params, to),
            // H-06: what cannot be read asks for nothing.
            Err(_) if opening && !params.is_some_and(|params| params.is_object()) => {
                self.handshake(id, &RawJson::empty_object(), to);
            }
            Ok(lifted) => self.legacy_request(id, method, lifted, to),
            Err(error) => self.answer(to, id, Err(error)),
        }
    }

    /// H-02, H-05, H-15: everything about the peer comes from this one request.
    fn modern_request(&mut self, id: Id, method: Method, lifted: Lifted, to: To) {
        let Some(envelope) = lifted.envelope else { return };
        let (revision, info) = (envelope.revision, envelope.info);
        if standing(revision, method.as_str(), Direction::ToServer) == Standing::Foreign {
            let text = format!("protocol revision {revision} has no method {method}");
            self.answer(to, id, Err(RpcError::new(Code::MethodNotFound, text)));
            return;
        }
        let peer = Peer { revision, capabilities: envelope.capabilities, info };
        if self.stage == Stage::Unknown {
            self.introduce(&peer);
        }
        if method.as_str() == "server/discover" {
            self.discover(id, revision, to);
            return;
        }
        let peer = Arc::new(peer);
        if method.as_str() == "subscriptions/listen" {
            self.listen(id, &lifted.params, peer, to);
            return;
        }
        let asker = Asker { peer, log_level: envelope.log_level };
        self.admit(id, method, lifted.params, asker, lifted.progress_token, to);
    }

    fn legacy_request(&mut self, id: Id, method: Method, lifted: Lifted, to: To) {
        match method.as_str() {
            "ping" => self.answer(to, id, Ok(RawJson::empty_object())),
            // H-20: on any connection; it only exists in the newest revision's spelling.
            "server/discover" => self.discover(id, Revision::NEWEST, to),
            "logging/setLevel" => {
                let outcome = self.set_level(&lifted.params);
                self.answer(to, id, outcome);
            }
            _ => {
                let asker = Asker { peer: self.legacy_peer(to), log_level: self.log_level };
                self.admit(id, method, lifted.params, asker, lifted.progress_token, to);
            }
        }
    }

    /// Who speaks without an envelope. H-26, H-27: how somebody who declared nothing is spoken to.
    pub(super) fn legacy_peer(&self, to: To) -> Arc<Peer> {
        if let Some(handshake) = &self.handshake {
            return Arc::clone(&handshake.peer);
        }
        let unsaid = if self.config.over_stdio && to.batch.is_none() {
            Revision::OLDEST
        } else {
            Revision::HEADERLESS
        };
        let revision = self.assumed.unwrap_or(unsaid);
        Arc::new(Peer { revision, capabilities: RawJson::empty_object(), info: None })
    }

    /// Admits before anything is queued: what is beyond the limit is refused here.
    fn admit(
        &mut self,
        id: Id,
        method: Method,
        params: RawJson,
        asker: Asker,
        token: Option<RawJson>,
        to: To,
    ) {
        let Asker { peer, log_level } = asker;
        let limit = self.config.max_in_flight;
        if self.calls.len() >= limit {
            let outcome = self.spell(peer.revision, &method, busy(&method, limit));
            self.answer(to, id, outcome);
            return;
        }
        self.last_key += 1;
        let key = CallKey(self.last_key);
        self.keys.insert(id.clone(), key);
        let wants_progress = token.is_some();
        let progress = token.map(Throttle::new);
        let revision = peer.revision;
        let open =
            Open { id: id.clone(), method: method.clone(), revision, to, progress, log_level };
        self.calls.insert(key, open);
        self.hold(to.post);
        let request = HostRequest { key, id, method, params, peer, wants_progress, log_level };
        self.outputs.push_back(HostOutput::Event(HostEvent::Request(request)));
    }

    /// H-06 to H-08. A repeated handshake is a new agreement (F35); what is in flight is answered
    /// in the revision in which it was asked.
    fn handshake(&mut self, id: Id, params: &RawJson, to: To) {
        let asked = params.member_str("protocolVersion");
        let revision = Revision::counter_offer(asked.as_deref());
        let object = |key| params.member(key).filter(RawJson::is_object);
        // Kept as long as the connection: not as slices of a read buffer.
        let capabilities = object("capabilities")
            .map_or_else(RawJson::empty_object, |capabilities| capabilities.detached());
        let info = object("clientInfo").map(|info| info.detached());
        let peer = Peer { revision, capabilities, info };
        let result = lifecycle::initialize_result(
            revision,
            &self.config.info,
            &self.config.capabilities,
            &self.config.instructions,
        );
        self.answer(to, id, Ok(result));
        self.introduce(&peer);
        let answers = peer.declared_on();
        self.handshake = Some(Handshake { peer: Arc::new(peer), answers, initialized: false });
        self.agreed_anew();
    }

    /// H-19 to H-21.
    fn discover(&mut self, id: Id, revision: Revision, to: To) {
        let config = &self.config;
        let result = lifecycle::discover_result(&config.capabilities, &config.instructions);
        let outcome = self.spell(revision, &Method::known("server/discover"), Ok(result));
        self.answer(to, id, outcome);
    }

    fn set_level(&mut self, params: &RawJson) -> Outcome {
        if self.config.capabilities.member("logging").is_none() {
            let text = "logging was not declared, so there is no level to set";
            return Err(RpcError::new(Code::MethodNotFound, text));
        }
        let level = edge::read_log_level(&params.member("level").unwrap_or_else(RawJson::null))?;
        self.log_level = Some(level);
        self.agreed_anew();
        Ok(RawJson::empty_object())
    }

    fn notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        match method.as_str() {
            // H-05: some hosts leave the prefix out.
            "notifications/initialized" | "initialized" => {
                let Some(handshake) = &mut self.handshake else { return };
                if !std::mem::replace(&mut handshake.initialized, true) {
                    self.agreed_anew();
                }
                self.tell_untold();
                self.ask_unasked();
            }
            "notifications/cancelled" => self.cancelled(params.as_ref()),
            _ => {
                let Ok(lifted) = edge::lift_params(params.as_ref()) else { return };
                let known = standing(Revision::NEWEST, method.as_str(), Direction::NoteToServer);
                let params = lifted.params;
                let event = match known {
                    Standing::Unknown => HostEvent::Foreign { method, params },
                    Standing::Known | Standing::Foreign => {
                        HostEvent::Notification { method, params }
                    }
                };
                self.outputs.push_back(HostOutput::Event(event));
            }
        }
    }

    /// F36: only the exact text of an id in flight counts. `initialize` is answered at once and is
    /// never in flight, so it cannot be cancelled.
    fn cancelled(&mut self, params: Option<&RawJson>) {
        let id = params.and_then(|params| params.member("requestId"));
        let id = id.and_then(|id| Id::from_raw(id.as_str()).ok());
        let Some(key) = id.and_then(|id| self.keys.get(&id).copied()) else { return };
        // A stream is never part of a batch: its revision has none.
        let to = match self.forget(key) {
            Some(open) => open.to,
            None => match self.forget_listen(key) {
                Some(open) => open.to,
                None => return,
            },
        };
        if let Some(batch) = to.batch {
            self.settle(to.post, batch, None);
        }
        self.outputs.push_back(HostOutput::Event(HostEvent::Cancelled { key }));
        self.release(to.post);
    }

    pub(super) fn introduce(&mut self, peer: &Peer) {
        self.stage = Stage::Introduced;
        let label = implementation::label(peer.info.as_ref());
        let declared = (!peer.revision.is_modern()).then(|| told_at_handshake(peer));
        let revision = peer.revision.to_string();
        let event = HostEvent::Opened { label, revision, declared };
        self.outputs.push_back(HostOutput::Event(event));
    }
}

/// What a legacy host can be asked, and whether it tells when its roots change, which newest shape does
/// not have.
fn told_at_handshake(peer: &Peer) -> RawJson {
    let declared = peer.declared_on();
    let roots = peer.capabilities.member("roots");
    let told = roots.and_then(|roots| roots.member("listChanged"));
    let Some(told) = told.filter(|told| told.as_bytes() == b"true") else { return declared };
    let mut object = Object::read_or_empty(Some(&declared));
    let mut roots = Object::read_or_empty(object.get("roots"));
    roots.set("listChanged", told);
    object.set("roots", roots.write());
    object.write()
}

/// Whether a request declares its own revision, readable or not.
fn is_modern(message: &Message) -> bool {
    let Message::Request(Request { params, .. }) = message else { return false };
    !matches!(edge::read_envelope(params.as_ref()), Ok(None))
}

/// product.md 7: a limit that refuses names itself, its value and its setting.
fn busy(method: &Method, limit: usize) -> Outcome {
    let text = format!(
        "busy: {limit} requests of this host are in flight, which is the limit (setting \
         host.max_in_flight); wait for one of them to end"
    );
    if method.as_str() == "tools/call" {
        return Ok(tool_result::refused_result("busy", &text));
    }
    let data = serde_json::json!({
        "reason": "busy", "setting": "host.max_in_flight", "value": limit.to_string(),
    });
    Err(RpcError::new(Code::InternalError, text).with_data(RawJson::write(&data)))
}
