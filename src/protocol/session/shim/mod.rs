//! The shim's part of a conversation: what must survive when the daemon goes away and comes back.
//!
//! Frames pass through untouched; this remembers the host's handshake, which requests are in flight
//! and what must be said for the daemon while there is none (F47, H-34):
//!
//! - **attached**: frames pass both ways; of each only the top level is looked at.
//! - **lost**: requests that may be asked again without harm wait for the next daemon; every other
//!   one in flight is told that its outcome is unknown, because nothing with a side effect is ever
//!   run twice. What the host says meanwhile waits as well, each frame for `shim.grace` at most.
//! - **attached again**: the handshake is repeated under an id of the shim's own, whose answer goes
//!   nowhere, and so are the log level and the subscriptions of a legacy host; then the listen streams
//!   are opened again, under their own ids, and what waited goes out in its order.
//!
//! Control lines: a line of the daemon that begins with `#` is never JSON. [`VIEW_LINE`] says which
//! list of tools this host has been shown; the owner offers the last one when it attaches again, so
//! that the daemon can tell the host of a difference. [`DRAIN_LINE`] says that the daemon is about to
//! end: nothing more goes to it, our side of the connection is closed, and the daemon answers what
//! it was asked before it closes its own. So a deliberate restart leaves nothing unknown.

mod held;
mod streams;
mod told;
mod wishes;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use memchr::memmem::Finder;

use self::held::Held;
use self::streams::Streams;
use self::told::{Kind, Reason};
use self::wishes::Wishes;
use super::timers::{Timer, Timers};
use crate::protocol::Notice;
use crate::protocol::edge::keys;
use crate::protocol::jsonrpc::{
    Code, Id, Method, Notification, Object, RawJson, Response, RpcError, salvage_id, scan,
};
use crate::protocol::revision::Revision;

/// The control line that names the list of tools which the host has been shown; a digest follows.
pub const VIEW_LINE: &str = "#view ";

/// The control line that asks a shim to send nothing more here and to dial again afterwards.
pub const DRAIN_LINE: &str = "#drain";

/// Limits and words of a shim.
#[derive(Debug, Clone)]
pub struct ShimConfig {
    /// How long a frame waits for a daemon (`shim.grace`).
    pub grace: Duration,
    /// Frames that wait at most (`shim.hold_frames`).
    pub hold_frames: usize,
    /// Bytes of them (`shim.hold_bytes`).
    pub hold_bytes: usize,
    /// Our identity in newest shape; answers to modern hosts carry it.
    pub info: RawJson,
    /// One sentence on how to start the daemon, for people and models.
    pub how_to_start: String,
}

/// What the owner must do.
#[derive(Debug)]
pub enum ShimOutput {
    /// Write this frame to the host.
    ToHost(Bytes),
    /// Write this frame to the daemon.
    ToDaemon(Bytes),
    /// Close our side of the connection behind what is queued for it; go on reading.
    CloseOurSide,
    /// Say this where the host's user can find it (never on standard output).
    Notice(Notice),
}

/// What there is between us and a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Away,
    Attached,
    /// The daemon answers what it has, and is sent nothing more.
    Draining,
}

/// A request of the host that has no answer yet.
#[derive(Debug)]
struct InFlight {
    /// Order of asking.
    turn: u64,
    /// Which frame of the link carried it; the first is 1.
    link_frame: u64,
    /// Requests with this id that want an answer. More than one only if the host repeats an id in
    /// flight; the daemon refuses the second, and each gets its answer.
    times: u32,
    kind: Kind,
    modern: bool,
    frame: Bytes,
}

/// What the host and the first daemon agreed on, to be repeated with the next.
#[derive(Debug, Default)]
struct Handshake {
    initialize: Option<Bytes>,
    initialized: Option<Bytes>,
    /// The revision answered; repeated only once there is one.
    revision: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub struct ShimSession {
    config: ShimConfig,
    out: VecDeque<ShimOutput>,
    timers: Timers,
    line: Line,
    /// Frames sent on this link.
    link_frames: u64,
    turns: u64,
    in_flight: HashMap<Id, InFlight>,
    /// The daemon's own requests that the host has not answered; few, mostly none.
    asked: Vec<Id>,
    handshake: Handshake,
    /// The id of the handshake repeated on this link, until it is answered.
    replay: Option<Id>,
    replays: u64,
    held: Held,
    streams: Streams,
    wishes: Wishes,
    view: Option<String>,
}

impl ShimSession {
    /// A shim that has no daemon yet.
    pub fn new(config: ShimConfig) -> Self {
        Self {
            held: Held::new(config.hold_frames, config.hold_bytes),
            config,
            out: VecDeque::new(),
            timers: Timers::default(),
            line: Line::Away,
            link_frames: 0,
            turns: 0,
            in_flight: HashMap::new(),
            asked: Vec::new(),
            handshake: Handshake::default(),
            replay: None,
            replays: 0,
            streams: Streams::default(),
            wishes: Wishes::default(),
            view: None,
        }
    }

    /// The host wrote a line.
    pub fn handle_host_frame(&mut self, now: Instant, frame: Bytes) {
        if self.line != Line::Attached {
            if scan::is_batch(&frame) {
                for part in scan::elements(&frame) {
                    self.hold(now, frame.slice_ref(part));
                }
            } else {
                self.hold(now, frame);
            }
            return;
        }
        let passes = if scan::is_batch(&frame) {
            for part in scan::elements(&frame) {
                self.note(&frame.slice_ref(part));
            }
            true
        } else {
            self.note(&frame)
        };
        if passes {
            self.send(frame);
        }
    }

    /// The daemon wrote a line.
    pub fn handle_daemon_frame(&mut self, _now: Instant, frame: Bytes) {
        if frame.first() == Some(&b'#') {
            self.control_line(&frame);
            return;
        }
        let passes = if scan::is_batch(&frame) {
            // Every element is noted; one that is waited for carries the rest along.
            scan::elements(&frame).filter(|part| self.note_daemon(part)).count() > 0
        } else {
            self.note_daemon(&frame)
        };
        if passes {
            self.out.push_back(ShimOutput::ToHost(frame));
        }
    }

    /// There is a daemon: the handshake first, where there was one, then what has waited.
    /// Attached anew without a loss in between counts as one.
    pub fn handle_attached(&mut self, now: Instant) {
        self.handle_lost(now);
        self.line = Line::Attached;
        self.link_frames = 0;
        self.timers.clear_all();
        self.repeat_handshake();
        for frame in self.streams.reopen() {
            self.note(&frame);
            self.send(frame);
        }
        for frame in self.held.take_all() {
            if self.note(&frame) {
                self.send(frame);
            }
        }
    }

    /// The daemon is gone, and anything sent to it may have reached it.
    pub fn handle_lost(&mut self, now: Instant) {
        self.handle_lost_after(now, u64::MAX);
    }

    /// The daemon is gone. The writer of this link had begun to write `frames_begun` of the frames
    /// it was given; requests beyond that never reached the daemon and may be sent again, whatever
    /// they do.
    pub fn handle_lost_after(&mut self, now: Instant, frames_begun: u64) {
        if std::mem::replace(&mut self.line, Line::Away) == Line::Away {
            return;
        }
        self.replay = None;
        self.drop_questions();
        let mut open: Vec<_> = std::mem::take(&mut self.in_flight).into_iter().collect();
        open.sort_unstable_by_key(|(_, call)| call.turn);
        for (id, call) in open {
            if call.kind == Kind::Listen && self.streams.rests(&id) {
                continue;
            }
            let again = call.kind.is_safe() || call.link_frame > frames_begun;
            for _ in 0..call.times {
                if call.kind == Kind::Ping && !call.modern {
                    self.answer_ping(&id);
                } else if again {
                    self.hold(now, call.frame.clone());
                } else {
                    self.tell(&id, call.kind, call.modern, &Reason::OutcomeUnknown);
                }
            }
        }
    }

    /// No daemon can be had before somebody mends something: what waits is told why at once, rather
    /// than after its grace.
    pub fn handle_unreachable(&mut self, why: &str) {
        let how_to_start = self.config.how_to_start.clone();
        let reason = Reason::Unreachable { why: why.to_owned(), how_to_start };
        for frame in self.held.take_all() {
            self.refuse(&frame, &reason);
        }
        self.arm();
    }

    /// The host wrote a line of `bytes` bytes, beyond `limit`, of which `kept` is left (F08): it
    /// cannot be passed on, and a request in it is answered.
    pub fn handle_host_oversized(&mut self, kept: &Bytes, bytes: usize, limit: usize) {
        let text = format!(
            "a message of {bytes} bytes was thrown away: the limit is {limit} bytes (setting \
             link.max_frame)"
        );
        let is_answer = scan::head(kept).method.is_none();
        if let Some(id) = salvage_id(kept).filter(|_| !is_answer) {
            let outcome = Err(RpcError::new(Code::InvalidRequest, text.clone()));
            self.out.push_back(ShimOutput::ToHost(
                Response { id: Some(id), outcome }.to_frame().to_bytes(),
            ));
        }
        self.out.push_back(ShimOutput::Notice(Notice::host(text)));
    }

    /// The daemon wrote a line beyond `limit`: the request that it answers, if that can be told, was
    /// carried out, but its answer is lost.
    pub fn handle_daemon_oversized(&mut self, kept: &Bytes, bytes: usize, limit: usize) {
        let id = salvage_id(kept).filter(|_| scan::head(kept).method.is_none());
        let open = id.and_then(|id| self.in_flight.remove_entry(&id));
        if let Some((id, call)) = open {
            self.tell(&id, call.kind, call.modern, &Reason::TooLarge { bytes, limit });
        } else {
            self.out.push_back(ShimOutput::Notice(Notice::host(format!(
                "the daemon sent a line of {bytes} bytes, beyond the limit of {limit} (setting \
                 link.max_frame); it was thrown away"
            ))));
        }
    }

    /// A deadline passed: what has waited too long is told so.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.timers.take_due(now).is_some() {}
        let reason = Reason::Unavailable {
            grace: self.config.grace,
            how_to_start: self.config.how_to_start.clone(),
        };
        while let Some(frame) = self.held.take_over(now, self.config.grace) {
            self.refuse(&frame, &reason);
        }
        self.arm();
    }

    /// What to do next; `None` when nothing is left.
    pub fn poll_output(&mut self) -> Option<ShimOutput> {
        self.out.pop_front()
    }

    /// When to call [`Self::handle_timeout`] at the latest.
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The digest of the list of tools that this host has been shown, as the last daemon named it.
    pub fn view(&self) -> Option<&str> {
        self.view.as_deref()
    }

    /// Requests of the host that have no answer yet, those that wait for a daemon included.
    pub fn open_requests(&self) -> usize {
        self.in_flight.len() + self.held.requests()
    }

    /// The same without listen streams, which end with the connection and not with an answer.
    pub fn awaited_requests(&self) -> usize {
        let awaited = self.in_flight.values().filter(|call| call.kind != Kind::Listen).count();
        awaited + self.held.requests()
    }

    fn send(&mut self, frame: Bytes) {
        self.link_frames += 1;
        self.out.push_back(ShimOutput::ToDaemon(frame));
    }

    fn arm(&mut self) {
        self.timers.set(Timer::ShimGrace, self.held.due(self.config.grace));
    }

    /// Looks at one message on its way to the daemon; whether it is to go there.
    fn note(&mut self, message: &Bytes) -> bool {
        let head = scan::head(message);
        let id = head.id.and_then(read_id);
        match (head.method, id) {
            (Some(method), Some(id)) => {
                self.note_request(message, scan::unquoted(method), id, head.params);
                true
            }
            (Some(_), None) if head.method_is("notifications/initialized") => {
                self.handshake.initialized = Some(message.clone());
                true
            }
            (Some(_), None) if head.method_is("notifications/cancelled") => {
                self.note_cancelled(head.params);
                true
            }
            // An answer to a question of a daemon that is gone would answer another one's.
            (None, Some(id)) if head.is_response() => {
                let known = self.asked.iter().position(|asked| *asked == id);
                known.map(|at| self.asked.swap_remove(at)).is_some()
            }
            // No message at all, but the daemon answers its id with an error.
            (None, Some(id)) => {
                self.note_request(message, b"", id, head.params);
                true
            }
            _ => true,
        }
    }

    fn note_request(&mut self, message: &Bytes, method: &[u8], id: Id, params: Option<&[u8]>) {
        let kind = Kind::of(method);
        if kind == Kind::Initialize {
            self.handshake =
                Handshake { initialize: Some(message.clone()), ..Handshake::default() };
            self.wishes.clear();
        }
        if kind == Kind::Listen {
            self.streams.opened(&id, message);
        }
        self.turns += 1;
        let call = InFlight {
            turn: self.turns,
            link_frame: self.link_frames + 1,
            times: 1,
            kind,
            modern: is_modern(params),
            frame: message.clone(),
        };
        self.in_flight.entry(id).and_modify(|open| open.times += 1).or_insert(call);
    }

    /// The host gave a request up. No answer to it will come, or none that is wanted; `initialize`
    /// cannot be cancelled and is answered all the same.
    fn note_cancelled(&mut self, params: Option<&[u8]>) {
        let Some(id) = cancelled_id(params) else { return };
        if self.in_flight.get(&id).is_some_and(|call| call.kind != Kind::Initialize) {
            self.in_flight.remove(&id);
        }
        self.streams.closed(&id);
    }

    /// Looks at one message on its way to the host; whether it is to go there. Answers that nobody
    /// waits for stop here.
    fn note_daemon(&mut self, message: &[u8]) -> bool {
        let head = scan::head(message);
        if head.method_is("notifications/cancelled") {
            let id = cancelled_id(head.params);
            self.asked.retain(|asked| Some(asked) != id.as_ref());
            return true;
        }
        if head.method_is("notifications/subscriptions/acknowledged") {
            return self.streams.acknowledged(head.params);
        }
        let Some(raw) = head.id else { return true };
        let Some(id) = read_id(raw) else { return true };
        if head.is_request() {
            self.asked.push(id);
            return true;
        }
        if self.replay.as_ref() == Some(&id) {
            self.replay = None;
            self.replay_answered(message);
            return false;
        }
        let Some(open) = self.in_flight.get_mut(&id) else { return false };
        open.times -= 1;
        if open.times == 0 {
            let Some(call) = self.in_flight.remove(&id) else { return true };
            match call.kind {
                Kind::Listen => self.streams.closed(&id),
                Kind::Initialize => self.handshake_answered(message),
                Kind::Wish => {
                    let method = scan::head(&call.frame).method.map(scan::unquoted);
                    self.wishes.answered(method.unwrap_or_default(), &call.frame, message);
                }
                Kind::ToolCall | Kind::Ping | Kind::Query | Kind::Other => {}
            }
        }
        true
    }

    fn handshake_answered(&mut self, answer: &[u8]) {
        match answered_revision(answer) {
            Some(revision) => self.handshake.revision = Some(revision),
            None => self.handshake = Handshake::default(),
        }
    }

    fn repeat_handshake(&mut self) {
        if self.handshake.revision.is_none() {
            return;
        }
        let frame = self.handshake.initialize.as_ref().and_then(|frame| {
            let mut object = Object::read(&RawJson::parse(frame.clone()).ok()?).ok()?;
            let id = Id::text(&format!("mcpx-shim-{}", self.replays + 1));
            object.set("id", RawJson::parse(Bytes::copy_from_slice(id.as_raw().as_bytes())).ok()?);
            Some((id, object.write().bytes()))
        });
        let Some((id, frame)) = frame else { return };
        self.replays += 1;
        self.replay = Some(id);
        self.send(frame);
        if let Some(initialized) = self.handshake.initialized.clone() {
            self.send(initialized);
        }
        for frame in self.wishes.again() {
            self.send(frame);
        }
    }

    /// The host was promised one revision; it can only be told so by its user if that is broken.
    fn replay_answered(&mut self, answer: &[u8]) {
        let promised = self.handshake.revision.as_deref().unwrap_or_default();
        let now = answered_revision(answer);
        if now.as_deref() != Some(promised) {
            let now = now.unwrap_or_else(|| "an error".to_owned());
            self.out.push_back(ShimOutput::Notice(Notice::host(format!(
                "the daemon that came back answered the handshake with {now}, but this host was \
                 promised {promised}; connect the host anew if its calls fail"
            ))));
        }
    }

    /// Questions of the daemon that is gone: the host need not go on with them.
    fn drop_questions(&mut self) {
        for id in std::mem::take(&mut self.asked) {
            let mut params = Object::new();
            params.set("requestId", RawJson::trusted(id.as_raw().to_owned()));
            params.set("reason", RawJson::write("the mcpx daemon went away"));
            let method = Method::known("notifications/cancelled");
            let note = Notification { method, params: Some(params.write()) };
            self.out.push_back(ShimOutput::ToHost(note.to_frame().to_bytes()));
        }
    }

    fn control_line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        // Lines of other names are a newer daemon's, and may be passed over.
        if let Some(digest) = text.strip_prefix(VIEW_LINE) {
            self.view = Some(digest.trim().to_owned());
        } else if text.trim() == DRAIN_LINE && self.line == Line::Attached {
            self.line = Line::Draining;
            self.out.push_back(ShimOutput::CloseOurSide);
        }
    }

    /// Keeps one message for the next daemon, or answers it.
    fn hold(&mut self, now: Instant, message: Bytes) {
        let head = scan::head(&message);
        let id = head.id.and_then(read_id);
        match (head.method, &id) {
            // A modern ping is no method any more (H-25): the daemon says so.
            (Some(method), Some(id))
                if scan::unquoted(method) == b"ping" && !is_modern(head.params) =>
            {
                self.answer_ping(id);
                return;
            }
            (Some(_), None) if head.method_is("notifications/cancelled") => {
                // A daemon that drains cannot be told; its answer will find nobody waiting.
                self.note_cancelled(head.params);
                if let Some(id) = cancelled_id(head.params) {
                    self.held.remove(&id);
                    self.arm();
                }
                return;
            }
            // Part of the handshake that will be repeated.
            (Some(_), None)
                if head.method_is("notifications/initialized")
                    && self.handshake.revision.is_some() =>
            {
                self.handshake.initialized = Some(message);
                return;
            }
            // Answers and progress for a daemon that is gone.
            (None, Some(_)) if head.is_response() => return,
            (Some(_), None) if head.method_is("notifications/progress") => return,
            _ => {}
        }
        match self.held.push(now, id, message) {
            Ok(()) => self.arm(),
            Err((limit, message)) => {
                let how_to_start = self.config.how_to_start.clone();
                self.refuse(&message, &Reason::Full { limit, how_to_start });
            }
        }
    }

    fn answer_ping(&mut self, id: &Id) {
        let outcome = Ok(RawJson::empty_object());
        let pong = Response { id: Some(id.clone()), outcome };
        self.out.push_back(ShimOutput::ToHost(pong.to_frame().to_bytes()));
    }

    /// A held message goes nowhere: a request is told why, anything else is dropped.
    fn refuse(&mut self, message: &[u8], reason: &Reason) {
        let head = scan::head(message);
        if let (Some(method), Some(id)) = (head.method, head.id.and_then(read_id)) {
            let kind = Kind::of(scan::unquoted(method));
            self.tell(&id, kind, is_modern(head.params), reason);
        }
    }

    fn tell(&mut self, id: &Id, kind: Kind, modern: bool, reason: &Reason) {
        let legacy = self.handshake.revision.as_deref().and_then(Revision::parse);
        let revision = if modern { Revision::NEWEST } else { legacy.unwrap_or(Revision::OLDEST) };
        let frame = told::answer(revision, id, kind, reason, &self.config.info);
        self.out.push_back(ShimOutput::ToHost(frame));
    }
}

fn read_id(raw: &[u8]) -> Option<Id> {
    Id::from_raw(std::str::from_utf8(raw).ok()?).ok()
}

/// Built once: building it costs more than most searches.
static ENVELOPE: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(keys::PROTOCOL_VERSION.as_bytes()));

/// Whether a request is modern: its `_meta` names a revision. Nearly every frame without one is
/// told by one fast search; one that only quotes the key somewhere is looked at closely.
fn is_modern(params: Option<&[u8]>) -> bool {
    let named = |text: &[u8]| ENVELOPE.find(text).is_some();
    params.is_some_and(|params| named(params) && scan::member(params, "_meta").is_some_and(named))
}

fn cancelled_id(params: Option<&[u8]>) -> Option<Id> {
    read_id(scan::member(params?, "requestId")?)
}

fn answered_revision(answer: &[u8]) -> Option<String> {
    let version = scan::member(scan::member(answer, "result")?, "protocolVersion")?;
    serde_json::from_slice(version).ok()
}
