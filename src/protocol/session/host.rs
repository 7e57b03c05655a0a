//! One host connection, with mcpx as the server.
//!
//! Takes frames, answers what belongs to the lifecycle itself (`initialize`, `server/discover`,
//! `ping`, malformed and out-of-era messages, duplicate ids) and hands every other request up as an
//! event in newest shape. What comes back is spelled for the peer by [`crate::protocol::edge`].
//! Never knows tools, upstreams or sockets.

mod agreed;
mod batch;
mod inbound;
mod listen;
mod notes;
mod progress;
mod questions;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

pub use self::agreed::Agreed;
use self::batch::{BatchKey, Batches};
use self::listen::Listening;
pub use self::listen::{ListenNote, ListenWant, too_many};
pub use self::notes::HostNote;
pub use self::progress::ProgressPace;
use self::progress::{Passage, Throttle};
pub use self::questions::{Answered, NO_REQUEST};
use self::questions::{Asked, Urls};
use super::{CallKey, HostRequest, LogLevel, Outcome, Peer};
use crate::protocol::Notice;
use crate::protocol::edge;
use crate::protocol::jsonrpc::{
    Code, Frame, Id, Incoming, Method, Notification, RawJson, Response, RpcError, parse_noting,
    salvage_cut_id,
};
use crate::protocol::revision::Revision;

/// What mcpx says of itself to hosts, and the limits of a host session.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Our identity in newest shape: name, title, version, description, icons, websiteUrl.
    pub info: RawJson,
    /// Server capabilities in newest shape; the edge takes out what a revision lacks (H-24).
    pub capabilities: RawJson,
    /// Instructions of both openings (H-22); under 1 KB.
    pub instructions: String,
    /// Requests of one host in flight at most; one more is refused as `busy` (`host.max_in_flight`).
    pub max_in_flight: usize,
    /// Listen streams that one host may have open (`listen.max_per_host`).
    pub max_listens: usize,
    /// How fast progress of one call may go to this host; where it must wait, the last one wins
    /// (F37).
    pub progress_pace: ProgressPace,
    /// Log messages of upstreams that this host is sent in a second (`host.log_rate`).
    pub log_rate: usize,
    /// The transport is stdio or the shim: batches before the handshake count as 2025-03-26, a
    /// caller that declared nothing as 2024-11-05 (H-26, H-27).
    pub over_stdio: bool,
    /// Urls that a host was sent to and may be told of when it is done there (`elicit.max_open`).
    pub max_open_questions: usize,
}

/// One HTTP request that carries messages of a host: what it asks for is answered on its own stream,
/// together with whatever relates to it (Streamable HTTP pages of all revisions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PostId(pub u64);

/// What the owner must do.
#[derive(Debug)]
pub enum HostOutput {
    /// Write this frame to the host.
    Send {
        /// The bytes of one message or array.
        frame: Frame,
        /// On the stream of this POST; `None` is the connection's own stream, over stdio the only
        /// one.
        post: Option<PostId>,
        /// The HTTP status that it has as the only answer to a modern POST (H-12); elsewhere it
        /// means nothing.
        status: u16,
    },
    /// Everything that this POST asked for is answered or withdrawn; nothing more is sent for it.
    PostDone(PostId),
    /// Act on this.
    Event(HostEvent),
    /// Log this.
    Notice(Notice),
}

/// What a host wants or did.
#[derive(Debug)]
pub enum HostEvent {
    /// A request; answer it with [`HostSession::finish`].
    Request(HostRequest),
    /// A stream of `subscriptions/listen`; to be agreed to ([`HostSession::agree`]) or refused
    /// ([`HostSession::refuse_listen`]).
    Listen(ListenWant),
    /// The host no longer wants this request's answer, or this stream; what is said for it is ignored
    /// from now on (F36).
    Cancelled {
        /// Which one.
        key: CallKey,
    },
    /// The handshake is complete, or the first modern request was seen; with the label of the host
    /// (`clientInfo` name and version) and the revision, for status pages.
    Opened {
        /// `name version` as the host says, or `unknown`.
        label: String,
        /// The revision spoken, as text, for status pages and logs.
        revision: String,
        /// What a legacy host can be asked; none where each request says so for itself.
        declared: Option<RawJson>,
    },
    /// What [`HostSession::agreement`] says is something else than before.
    Agreed,
    /// The reply to a question of [`HostSession::ask`].
    Answered(Answered),
    /// A notification that no revision knows.
    Foreign {
        /// Its method.
        method: Method,
        /// Lifted parameters.
        params: RawJson,
    },
    /// A notification that mcpx acts on above (`notifications/roots/list_changed`, …).
    Notification {
        /// Its method.
        method: Method,
        /// Lifted parameters.
        params: RawJson,
    },
}

/// The status of whatever is no refusal.
const OK: u16 = http::StatusCode::OK.as_u16();

/// How many open requests' room an idle session keeps.
const ROOM_KEPT: usize = 32;

/// See the module.
#[derive(Debug)]
pub struct HostSession {
    config: Arc<HostConfig>,
    /// How everything without an envelope is spelled (H-07).
    handshake: Option<Handshake>,
    /// What a message without an envelope says of its revision before any handshake.
    assumed: Option<Revision>,
    /// What could not be told yet, each thing once.
    untold: Vec<HostNote>,
    /// What `logging/setLevel` said (H-42).
    log_level: Option<LogLevel>,
    log_share: notes::LogShare,
    stage: Stage,
    last_key: u64,
    calls: HashMap<CallKey, Open>,
    /// Streams, which are no requests in flight.
    listens: HashMap<CallKey, Listening>,
    /// The requests and streams that are open.
    keys: HashMap<Id, CallKey>,
    /// Questions to the host that have no reply yet; few.
    asked: Vec<Asked>,
    urls: Urls,
    /// No answer of the host can come any more.
    mute: bool,
    /// POSTs on which the host hears nothing but the answer, in order; mostly none.
    deaf: Vec<PostId>,
    batches: Batches,
    /// POSTs that are not answered yet, with how many of their requests are open.
    posts: HashMap<PostId, usize>,
    outputs: VecDeque<HostOutput>,
    /// How many calls hold progress back.
    held: usize,
    warned_of_encoding: bool,
}

/// How far the connection has come.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody has said who it is.
    Unknown,
    /// The owner was told who this is.
    Introduced,
    /// The link has ended.
    Closed,
}

/// What the last `initialize` agreed.
#[derive(Debug)]
struct Handshake {
    peer: Arc<Peer>,
    /// What it declared that can answer questions, in newest shape.
    answers: RawJson,
    /// `notifications/initialized` came after it.
    initialized: bool,
}

/// A request that has no answer yet.
#[derive(Debug)]
struct Open {
    id: Id,
    method: Method,
    revision: Revision,
    to: To,
    progress: Option<Throttle>,
    /// The modern key of this request (H-41).
    log_level: Option<LogLevel>,
}

/// Where the answer to a message goes.
#[derive(Debug, Clone, Copy, Default)]
struct To {
    post: Option<PostId>,
    batch: Option<BatchKey>,
}

impl HostSession {
    /// A fresh connection.
    pub fn new(config: Arc<HostConfig>) -> Self {
        Self {
            config,
            handshake: None,
            assumed: None,
            untold: Vec::new(),
            log_level: None,
            log_share: notes::LogShare::default(),
            stage: Stage::Unknown,
            last_key: 0,
            calls: HashMap::new(),
            listens: HashMap::new(),
            keys: HashMap::new(),
            asked: Vec::new(),
            urls: Urls::default(),
            mute: false,
            deaf: Vec::new(),
            batches: Batches::default(),
            posts: HashMap::new(),
            outputs: VecDeque::new(),
            held: 0,
            warned_of_encoding: false,
        }
    }

    /// The host said something.
    pub fn handle_frame(&mut self, _now: Instant, frame: &Bytes) {
        if self.stage == Stage::Closed {
            return;
        }
        let (incoming, mended) = parse_noting(frame);
        if mended && !self.warned_of_encoding {
            self.warned_of_encoding = true;
            let text = "the host sends text that is not UTF-8; bad bytes were replaced (F09)";
            self.outputs.push_back(HostOutput::Notice(Notice::host(text)));
        }
        match incoming {
            Ok(incoming) => self.incoming(incoming, None),
            Err(malformed) => self.malformed(&malformed, frame),
        }
    }

    /// The host said something in a POST: the body of an HTTP request is read by whoever finds out
    /// which session it is for. `hears` where it takes what is said before its answer, questions
    /// among it. A [`HostOutput::PostDone`] follows sooner or later.
    pub fn handle_post(&mut self, _now: Instant, post: PostId, incoming: Incoming, hears: bool) {
        if !hears {
            self.deafen(post);
        }
        // Held open while its messages are taken.
        self.posts.insert(post, 1);
        if self.stage != Stage::Closed {
            self.incoming(incoming, Some(post));
        }
        self.release(Some(post));
    }

    fn incoming(&mut self, incoming: Incoming, post: Option<PostId>) {
        match incoming {
            Incoming::One(message) => self.message(message, To { post, batch: None }),
            Incoming::Batch(parts) => self.batch(parts, post),
        }
    }

    /// The header of a request that comes before any handshake names its revision.
    pub fn assume(&mut self, revision: Revision) {
        self.assumed = Some(revision);
    }

    /// The revision that a handshake has agreed on.
    pub fn agreed(&self) -> Option<Revision> {
        self.handshake.as_ref().map(|handshake| handshake.peer.revision)
    }

    /// The host sent a line beyond the link's limit; its bytes were thrown away.
    pub fn handle_too_large(&mut self, now: Instant, bytes: usize, limit: usize) {
        self.handle_oversized(now, &Bytes::new(), bytes, limit);
    }

    /// [`Self::handle_too_large`] with what was kept of the line: where that shows the request's id,
    /// the request is answered, so that its sender does not wait for ever (F08).
    pub fn handle_oversized(&mut self, _now: Instant, head: &Bytes, bytes: usize, limit: usize) {
        if self.stage == Stage::Closed {
            return;
        }
        let text = format!(
            "a message of {bytes} bytes was thrown away: the limit is {limit} bytes (setting \
             link.max_frame)"
        );
        if let Some(id) = salvage_cut_id(head) {
            let error = RpcError::new(Code::InvalidRequest, text.clone());
            self.answer(To::default(), id, Err(error));
        }
        self.outputs.push_back(HostOutput::Notice(Notice::host(text)));
    }

    /// The link ended: every open request and stream is reported as cancelled.
    pub fn handle_closed(&mut self, _now: Instant) {
        self.stage = Stage::Closed;
        self.keys.clear();
        self.batches.clear();
        self.held = 0;
        self.unask_everything();
        let calls = self.calls.drain().map(|(key, _)| key);
        let mut keys: Vec<CallKey> =
            calls.chain(self.listens.drain().map(|(key, _)| key)).collect();
        keys.sort_unstable();
        for key in keys {
            self.outputs.push_back(HostOutput::Event(HostEvent::Cancelled { key }));
        }
        self.deaf.clear();
        let mut posts: Vec<PostId> = self.posts.drain().map(|(post, _)| post).collect();
        posts.sort_unstable();
        self.outputs.extend(posts.into_iter().map(HostOutput::PostDone));
    }

    /// A deadline passed (held-back progress is due).
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.held == 0 {
            return;
        }
        let pace = self.config.progress_pace;
        for open in self.calls.values_mut() {
            let Some(throttle) = &mut open.progress else { continue };
            if let Some(params) = throttle.take_due(now, pace) {
                self.held -= 1;
                let frame = progress_frame(open.revision, &params, throttle.token());
                self.outputs.push_back(HostOutput::Send { frame, post: open.to.post, status: OK });
            }
        }
    }

    /// The outcome of a request, in newest shape.
    pub fn finish(&mut self, _now: Instant, key: CallKey, outcome: Outcome) {
        let Some(mut open) = self.forget(key) else { return };
        if let Some(throttle) = open.progress.take() {
            let (token, rest) = throttle.into_rest();
            if let Some(params) = rest {
                let frame = progress_frame(open.revision, &params, &token);
                self.outputs.push_back(HostOutput::Send { frame, post: open.to.post, status: OK });
            }
        }
        let outcome = self.spell(open.revision, &open.method, outcome);
        let outcome = outcome.map_err(|error| self.about_urls(error));
        self.answer(open.to, open.id, outcome);
        self.release(open.to.post);
    }

    /// Progress of a request: `params` as the upstream sent them, whatever token they hold.
    pub fn progress(&mut self, now: Instant, key: CallKey, params: &RawJson) {
        let Some(open) = self.calls.get_mut(&key) else { return };
        let Some(throttle) = &mut open.progress else { return };
        let held_before = throttle.deadline().is_some();
        if throttle.offer(now, self.config.progress_pace, params) == Passage::Now {
            let frame = progress_frame(open.revision, params, throttle.token());
            self.outputs.push_back(HostOutput::Send { frame, post: open.to.post, status: OK });
        }
        let holds = throttle.deadline().is_some();
        self.held = self.held + usize::from(holds) - usize::from(held_before);
    }

    /// How many requests are open.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// What to do next; `None` when nothing is left.
    pub fn poll_output(&mut self) -> Option<HostOutput> {
        let output = self.outputs.pop_front();
        if output.is_none() && self.outputs.capacity() > ROOM_KEPT {
            self.outputs.shrink_to(ROOM_KEPT);
        }
        output
    }

    /// When to call [`Self::handle_timeout`] at the latest.
    pub fn poll_deadline(&self) -> Option<Instant> {
        if self.held == 0 {
            return None;
        }
        self.calls.values().filter_map(|open| open.progress.as_ref()?.deadline()).min()
    }

    fn forget(&mut self, key: CallKey) -> Option<Open> {
        let open = self.calls.remove(&key)?;
        if !self.asked.is_empty() {
            self.unask_all_of(key);
        }
        self.keys.remove(&open.id);
        let holds = open.progress.as_ref().is_some_and(|throttle| throttle.deadline().is_some());
        self.held -= usize::from(holds);
        if self.calls.is_empty() && self.calls.capacity() > ROOM_KEPT {
            self.calls.shrink_to(ROOM_KEPT);
            self.keys.shrink_to(ROOM_KEPT);
        }
        Some(open)
    }

    fn spell(&self, revision: Revision, method: &Method, outcome: Outcome) -> Outcome {
        match outcome {
            Ok(result) => Ok(edge::downgrade_result(revision, method, &result, &self.config.info)),
            Err(error) => Err(edge::downgrade_error(revision, &error)),
        }
    }

    /// Sends an outcome that is spelled already.
    fn answer(&mut self, to: To, id: Id, outcome: Outcome) {
        let status = outcome.as_ref().map_or_else(RpcError::http_status, |_| OK);
        self.reply(to, Response { id: Some(id), outcome }.to_frame(), status);
    }

    /// Answers a request whose id cannot be read.
    fn answer_nobody(&mut self, to: To, error: &RpcError) {
        let modern = self.is_only_modern();
        let revision = if modern { Revision::NEWEST } else { self.legacy_peer(to).revision };
        self.answer_unread(revision, to, error);
    }

    /// Introduced without a handshake: by modern requests.
    fn is_only_modern(&self) -> bool {
        self.handshake.is_none() && self.stage == Stage::Introduced
    }

    /// [`Self::answer_nobody`] in a revision.
    fn answer_unread(&mut self, revision: Revision, to: To, error: &RpcError) {
        let frame = if revision.leaves_out_unread_ids() {
            Response::to_frame_without_id(error)
        } else {
            Response { id: None, outcome: Err(error.clone()) }.to_frame()
        };
        self.reply(to, frame, error.http_status());
    }

    fn reply(&mut self, to: To, frame: Frame, status: u16) {
        match to.batch {
            None => self.outputs.push_back(HostOutput::Send { frame, post: to.post, status }),
            Some(batch) => self.settle(to.post, batch, Some(frame)),
        }
    }

    fn settle(&mut self, post: Option<PostId>, batch: BatchKey, answer: Option<Frame>) {
        if let Some(frame) = self.batches.settle(batch, answer) {
            self.outputs.push_back(HostOutput::Send { frame, post, status: OK });
        }
    }

    /// One request of a POST is open.
    fn hold(&mut self, post: Option<PostId>) {
        if let Some(open) = post.and_then(|post| self.posts.get_mut(&post)) {
            *open += 1;
        }
    }

    /// One is not any more.
    fn release(&mut self, post: Option<PostId>) {
        let Some(post) = post else { return };
        let Some(open) = self.posts.get_mut(&post) else { return };
        *open -= 1;
        if *open == 0 {
            self.posts.remove(&post);
            self.undeafen(post);
            self.outputs.push_back(HostOutput::PostDone(post));
        }
    }
}

fn progress_frame(revision: Revision, params: &RawJson, token: &RawJson) -> Frame {
    let params = Some(edge::downgrade_progress(revision, params, token));
    Notification { method: Method::known("notifications/progress"), params }.to_frame()
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod post_tests;
