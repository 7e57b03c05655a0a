//! `subscriptions/listen` of a modern host: streams that it opened and that tell it of changes.
//!
//! 2026-07-28 subscriptions page. The first message of a stream acknowledges what was agreed; each
//! carries the id of the request that opened it, as the host wrote it; what was not agreed is not
//! sent, whoever wants it sent (H-37). Any number of them, as far as `listen.max_per_host` goes, are
//! told apart by that id (H-38).
//!
//! The pages disagree on how we end a stream of our own accord: the cancellation page asks for
//! `notifications/cancelled` (a MUST), the subscriptions page for the result (a SHOULD). A host may
//! wait for either, so it gets both, the notification first, while the request is still open (H-39).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::{HostEvent, HostOutput, HostSession, OK, To};
use crate::protocol::edge;
use crate::protocol::edge::keys::{AGAIN, SUBSCRIPTION_ID};
use crate::protocol::jsonrpc::{Code, Frame, Id, Method, Notification, Object, RawJson, RpcError};
use crate::protocol::model::tasks;
use crate::protocol::session::listen::ListenFilter;
use crate::protocol::session::upstream::ListKind;
use crate::protocol::session::{CallKey, Peer};

/// A stream that a host opens.
#[derive(Debug)]
pub struct ListenWant {
    /// Names it, as a request's key does; to be agreed, refused or ended.
    pub key: CallKey,
    /// What the host asks for and mcpx declared to offer.
    pub filter: ListenFilter,
    /// It goes on with one that broke, and what happened in between is not known.
    pub again: bool,
    /// Who asks.
    pub peer: Arc<Peer>,
}

/// What a stream tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenNote {
    /// A list that this host sees is another one. Once for many changes.
    Changed(ListKind),
    /// A resource has changed; its address as the host wrote it.
    Updated(String),
    /// The status of a task.
    Task {
        /// Its id.
        id: String,
        /// Parameters of `notifications/tasks`: the whole task, newest shape.
        params: RawJson,
    },
}

impl ListenNote {
    fn is_in(&self, agreed: &ListenFilter) -> bool {
        match self {
            Self::Changed(kind) => agreed.has(*kind),
            Self::Updated(uri) => agreed.uris.contains(uri),
            Self::Task { id, .. } => agreed.tasks.contains(id),
        }
    }
}

/// A stream that is open.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) id: Id,
    pub(super) to: To,
    peer: Arc<Peer>,
    asked: ListenFilter,
    /// What was acknowledged.
    agreed: Option<ListenFilter>,
}

impl HostSession {
    /// A host opens a stream. T-15: without the extension a stream cannot tell of tasks.
    pub(super) fn listen(&mut self, id: Id, params: &RawJson, peer: Arc<Peer>, to: To) {
        match self.read_listen(params, &peer) {
            Ok(filter) => {
                self.last_key += 1;
                let key = CallKey(self.last_key);
                self.keys.insert(id.clone(), key);
                self.hold(to.post);
                let again = params.member("_meta").and_then(|meta| meta.member(AGAIN)).is_some();
                let open = Listening {
                    id,
                    to,
                    peer: Arc::clone(&peer),
                    asked: filter.clone(),
                    agreed: None,
                };
                self.listens.insert(key, open);
                let want = ListenWant { key, filter, again, peer };
                self.outputs.push_back(HostOutput::Event(HostEvent::Listen(want)));
            }
            Err(error) => {
                let error = edge::downgrade_error(peer.revision, &error);
                self.answer(to, id, Err(error));
            }
        }
    }

    fn read_listen(&self, params: &RawJson, peer: &Peer) -> Result<ListenFilter, RpcError> {
        let notifications = params.member("notifications").filter(RawJson::is_object);
        let notifications = notifications.ok_or_else(|| {
            let text = "subscriptions/listen needs an object `notifications`, which says what to \
                        tell of";
            RpcError::new(Code::InvalidParams, text)
        })?;
        let asked = ListenFilter::read(&notifications);
        if !asked.tasks.is_empty() && !tasks::declares(&peer.capabilities) {
            return Err(tasks::needs_extension("`taskIds`"));
        }
        let limit = self.config.max_listens;
        if self.listens.len() >= limit {
            return Err(too_many("this host has", limit, "listen.max_per_host"));
        }
        Ok(self.offered(asked))
    }

    /// Without what mcpx did not declare.
    fn offered(&self, asked: ListenFilter) -> ListenFilter {
        let changes = |kind: ListKind| self.declares(kind.capability(), "listChanged");
        let subscribe = self.declares(ListKind::Resources.capability(), "subscribe");
        ListenFilter {
            tools: asked.tools && changes(ListKind::Tools),
            prompts: asked.prompts && changes(ListKind::Prompts),
            resources: asked.resources && changes(ListKind::Resources),
            uris: if subscribe { asked.uris } else { BTreeSet::new() },
            tasks: asked.tasks,
        }
    }

    /// What a stream will tell of: its acknowledgement. Nothing beyond what was asked for is agreed.
    pub fn agree(&mut self, _now: Instant, key: CallKey, agreed: ListenFilter) {
        let Some(open) = self.listens.get_mut(&key) else { return };
        if open.agreed.is_some() {
            return;
        }
        let agreed = agreed.within(&open.asked);
        let mut params = Object::new();
        params.set("_meta", tag(&open.id));
        params.set("notifications", agreed.write());
        let frame = frame("notifications/subscriptions/acknowledged", &params);
        let post = open.to.post;
        open.agreed = Some(agreed);
        self.outputs.push_back(HostOutput::Send { frame, post, status: OK });
    }

    /// Something that a stream tells, if it was agreed.
    pub fn listen_note(&mut self, _now: Instant, key: CallKey, note: ListenNote) {
        let Some(open) = self.listens.get(&key) else { return };
        if !open.agreed.as_ref().is_some_and(|agreed| note.is_in(agreed)) {
            return;
        }
        let (method, mut params) = match note {
            ListenNote::Changed(kind) => (kind.changed_method(), Object::new()),
            ListenNote::Updated(uri) => {
                let mut params = Object::new();
                params.set("uri", RawJson::write(&uri));
                ("notifications/resources/updated", params)
            }
            ListenNote::Task { params, .. } => {
                ("notifications/tasks", Object::read_or_empty(Some(&params)))
            }
        };
        let mut meta = Object::read_or_empty(params.get("_meta"));
        meta.set(SUBSCRIPTION_ID, raw_id(&open.id));
        params.set("_meta", meta.write());
        let frame = frame(method, &params);
        self.outputs.push_back(HostOutput::Send { frame, post: open.to.post, status: OK });
    }

    /// mcpx ends a stream. One that was not acknowledged may not say anything yet, and is refused
    /// instead.
    pub fn end_listen(&mut self, now: Instant, key: CallKey, reason: &str) {
        let Some(open) = self.listens.get(&key) else { return };
        if open.agreed.is_none() {
            let error = RpcError::new(Code::InternalError, reason);
            return self.refuse_listen(now, key, error);
        }
        let mut params = Object::new();
        params.set("_meta", tag(&open.id));
        params.set("requestId", raw_id(&open.id));
        params.set("reason", RawJson::write(reason));
        let frame = frame("notifications/cancelled", &params);
        self.outputs.push_back(HostOutput::Send { frame, post: open.to.post, status: OK });
        let mut result = Object::new();
        result.set("_meta", tag(&open.id));
        self.finish_listen(key, Ok(result.write()));
    }

    /// A stream cannot be had.
    pub fn refuse_listen(&mut self, _now: Instant, key: CallKey, error: RpcError) {
        self.finish_listen(key, Err(error));
    }

    fn finish_listen(&mut self, key: CallKey, outcome: Result<RawJson, RpcError>) {
        let Some(open) = self.forget_listen(key) else { return };
        let method = Method::known("subscriptions/listen");
        let outcome = self.spell(open.peer.revision, &method, outcome);
        self.answer(open.to, open.id, outcome);
        self.release(open.to.post);
    }

    /// One stream is closed, whoever closed it.
    pub(super) fn forget_listen(&mut self, key: CallKey) -> Option<Listening> {
        let open = self.listens.remove(&key)?;
        self.keys.remove(&open.id);
        Some(open)
    }

    /// How many streams are open.
    pub fn listening(&self) -> usize {
        self.listens.len()
    }
}

/// product.md 7: a limit that refuses names itself, its value and its setting.
pub fn too_many(who: &str, limit: usize, setting: &str) -> RpcError {
    let text = format!(
        "busy: {who} {limit} streams of subscriptions/listen open, which is the limit (setting \
         {setting}); end one of them"
    );
    let data = serde_json::json!({
        "reason": "busy", "setting": setting, "value": limit.to_string(),
    });
    RpcError::new(Code::InternalError, text).with_data(RawJson::write(&data))
}

fn raw_id(id: &Id) -> RawJson {
    RawJson::trusted(id.as_raw().to_owned())
}

fn tag(id: &Id) -> RawJson {
    let mut meta = Object::new();
    meta.set(SUBSCRIPTION_ID, raw_id(id));
    meta.write()
}

fn frame(method: &'static str, params: &Object) -> Frame {
    let params = Some(params.write());
    Notification { method: Method::known(method), params }.to_frame()
}
