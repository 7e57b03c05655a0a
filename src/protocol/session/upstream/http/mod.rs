//! What a session over Streamable HTTP has beside the rest: the exchanges under way, the session id
//! of a legacy server, the standalone stream, streams that rest before they are opened again.
//!
//! Every message is a POST of its own, and what answers a request comes on the answer to its POST
//! (2025-03-26 to 2026-07-28 transports pages). So unlike on stdio an end concerns one request, and a
//! frame can be told to belong to one. Reading order: this file (what goes out), `news` (what comes
//! back), `ends` (an exchange that ended without an answer), `renew` (a session that the server gave
//! up, U-40).

mod ends;
mod marks;
mod news;
mod renew;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};

use super::calls::Held;
use super::exchange::{Exchange, HttpConfig};
use super::{Outbox, UpstreamOutput, UpstreamSession};
use crate::protocol::http_rules::headers::{
    LAST_EVENT_ID, SESSION_ID, request_headers, response_headers,
};
use crate::protocol::jsonrpc::{Message, RawJson, Request};
use crate::protocol::revision::Revision;
use crate::protocol::session::pending::CallSink;
use crate::protocol::session::reconnect::{Reconnect, Trail};
use crate::protocol::session::timers::{Timer, after};

/// See the module.
#[derive(Debug)]
pub(super) struct Http {
    config: HttpConfig,
    /// What the headers of the next message say; `None` before a revision is agreed, and with
    /// `initialize` (U-20).
    pub speaking: Option<Revision>,
    /// The legacy session that the server opened, if it did.
    session: Option<HeaderValue>,
    /// Counts the server's sessions: what was sent in an older one is not its end's business.
    generation: u32,
    last_tag: u64,
    live: HashMap<u64, Live>,
    /// Streams that broke off, until they are opened again.
    resting: Vec<(Instant, Live)>,
    /// Requests that the server accepted with a status that promises no answer.
    accepted: HashSet<u64>,
    /// Which arguments of which tools are repeated in headers.
    marks: marks::Marks,
    /// The handshake is through but for the server's word on `notifications/initialized`.
    greeting: Option<Greeting>,
    /// A session is opened anew: calls are known, the era is.
    pub renewing: bool,
    /// Requests of the session's own to be made again in the new session.
    held: Vec<(u64, Request)>,
}

/// What a legacy handshake settled.
#[derive(Debug)]
struct Greeting {
    revision: Revision,
    info: Option<RawJson>,
    result: RawJson,
}

/// An exchange under way, or the stream of one at rest.
#[derive(Debug)]
struct Live {
    what: What,
    generation: u32,
    /// Whether the server's present session was named.
    named: bool,
    /// When its head came.
    since: Option<Instant>,
    /// It was accepted with 202 and so promises nothing.
    accepted: bool,
    streams: bool,
    /// What came on it instead of an answer.
    odd: Option<String>,
    trail: Trail,
    kept: Kept,
}

/// What an exchange is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// The request of this id, also when its stream is opened again.
    Request(u64),
    /// `notifications/initialized`.
    Greeting,
    /// Any other notification, or an answer.
    Note,
    /// The stream for what belongs to no request (U-38).
    Standalone,
}

impl What {
    const fn request(self) -> Option<u64> {
        match self {
            Self::Request(id) => Some(id),
            Self::Greeting | Self::Note | Self::Standalone => None,
        }
    }
}

/// What is needed to make a request again that the server never looked at.
#[derive(Debug)]
pub(super) enum Kept {
    /// Nothing: it is not made again.
    Nothing,
    /// A caller's, as it was held.
    Call(Held),
    /// The session's own.
    Own(Request),
}

impl Http {
    pub(super) fn new(config: HttpConfig) -> Self {
        Self {
            config,
            speaking: None,
            session: None,
            generation: 0,
            last_tag: 0,
            live: HashMap::new(),
            resting: Vec::new(),
            accepted: HashSet::new(),
            marks: None,
            greeting: None,
            renewing: false,
            held: Vec::new(),
        }
    }

    /// Whether the server may turn out to speak HTTP+SSE; one that has a session surely does not.
    pub(super) const fn may_be_sse(&self) -> bool {
        self.config.may_be_sse && !self.renewing
    }

    /// `initialize` goes out next: in no session and in no revision (U-20).
    pub(super) fn forget_session(&mut self) {
        self.speaking = None;
        self.session = None;
    }

    /// The connection is of no more use: what still comes of exchanges concerns nobody. The session
    /// is kept, for its end is still to be told.
    pub(super) fn end(&mut self) {
        self.live.clear();
        self.resting.clear();
        self.held.clear();
        self.accepted.clear();
        self.greeting = None;
    }

    /// The session id, cut short for people.
    pub(super) fn shown_session(&self) -> Option<String> {
        const SHOWN: usize = 8;
        let id = self.session.as_ref()?.to_str().ok()?;
        Some(match id.get(..SHOWN) {
            Some(head) if head.len() < id.len() => format!("{head}…"),
            _ => id.to_owned(),
        })
    }

    const fn rules(&self) -> Reconnect {
        Reconnect {
            delay: self.config.reconnect_delay,
            attempts: self.config.reconnect_attempts,
            poll: self.config.poll_interval,
        }
    }

    fn tag(&mut self) -> u64 {
        self.last_tag += 1;
        self.last_tag
    }

    fn live(&self, what: What, kept: Kept) -> Live {
        Live {
            what,
            generation: self.generation,
            named: self.session.is_some(),
            since: None,
            accepted: false,
            streams: false,
            odd: None,
            trail: Trail::default(),
            kept,
        }
    }

    /// The headers of the session, which every request carries.
    fn add_session(&self, headers: &mut HeaderMap) {
        if let Some(session) = &self.session {
            headers.insert(SESSION_ID, session.clone());
        }
    }

    fn post(&mut self, out: &mut Outbox, message: &Message, live: Live, more: HeaderMap) {
        let mut headers = match (self.speaking, message) {
            (None, _) => HeaderMap::new(),
            (Some(revision), Message::Request(Request { method, params, .. })) => {
                request_headers(revision, method.as_str(), params.as_ref())
            }
            (Some(revision), Message::Notification(note)) => {
                request_headers(revision, note.method.as_str(), note.params.as_ref())
            }
            (Some(revision), Message::Response(_)) => response_headers(revision),
        };
        headers.extend(more);
        self.add_session(&mut headers);
        let (tag, body) = (self.tag(), message.to_frame().to_bytes());
        let request = live.what.request();
        self.live.insert(tag, live);
        out.exchange(Exchange { tag, request, method: Method::POST, headers, body });
    }

    /// Opens a stream, or opens it again where its trail says.
    fn get(&mut self, out: &mut Outbox, mut live: Live) {
        let mut headers = self.speaking.map(response_headers).unwrap_or_default();
        self.add_session(&mut headers);
        let last = live.trail.last_id().map(HeaderValue::from_str);
        if let Some(Ok(last)) = last {
            headers.insert(LAST_EVENT_ID, last);
        }
        live.since = None;
        live.streams = false;
        let (tag, request) = (self.tag(), live.what.request());
        self.live.insert(tag, live);
        out.exchange(Exchange { tag, request, method: Method::GET, headers, body: Bytes::new() });
    }

    /// Ends the exchange of a request, or its rest.
    fn drop_request(&mut self, out: &mut Outbox, id: u64) {
        let what = What::Request(id);
        self.resting.retain(|(_, live)| live.what != what);
        self.accepted.remove(&id);
        let tag = self.live.iter().find(|(_, live)| live.what == what).map(|(tag, _)| *tag);
        if let Some(tag) = tag {
            self.drop_exchange(out, tag);
        }
    }

    fn drop_exchange(&mut self, out: &mut Outbox, tag: u64) {
        if self.live.remove(&tag).is_some() {
            out.queue.push_back(UpstreamOutput::Drop { tag });
        }
    }

    /// Whether the standalone stream is there, or will be again.
    fn has_standalone(&self) -> bool {
        let resting = self.resting.iter().map(|(_, live)| live);
        self.live.values().chain(resting).any(|live| live.what == What::Standalone)
    }

    /// When the next resting stream is due.
    fn next_due(&self) -> Option<Instant> {
        self.resting.iter().map(|(at, _)| *at).min()
    }
}

impl Outbox {
    fn exchange(&mut self, exchange: Exchange) {
        self.queue.push_back(UpstreamOutput::Exchange(exchange));
    }
}

impl<S: CallSink> UpstreamSession<S> {
    /// Puts a notification or an answer on the wire.
    pub(super) fn send(&mut self, message: &Message) {
        match &mut self.http {
            None => self.out.send(message),
            Some(http) => {
                let live = http.live(What::Note, Kept::Nothing);
                http.post(&mut self.out, message, live, HeaderMap::new());
            }
        }
    }

    /// Puts a request on the wire, one of a caller or of our own. `kept` is what makes it again where
    /// the server never looked at it.
    pub(super) fn send_request(&mut self, id: u64, request: Request, kept: Kept) {
        self.send_request_with(id, request, kept, HeaderMap::new());
    }

    /// The same with `more` headers, where there are any at all.
    pub(super) fn send_request_with(
        &mut self,
        id: u64,
        request: Request,
        kept: Kept,
        more: HeaderMap,
    ) {
        match &mut self.http {
            None => self.out.send(&Message::Request(request)),
            Some(http) => {
                let live = http.live(What::Request(id), kept);
                http.post(&mut self.out, &Message::Request(request), live, more);
            }
        }
    }

    /// A revision is agreed, or offered: messages say so from now on.
    pub(super) fn speak(&mut self, revision: Revision) {
        if let Some(http) = &mut self.http {
            http.speaking = Some(revision);
        }
    }

    /// Nobody waits for the answer to `id` any more: the server is told as its revision asks (U-31).
    /// A modern one over HTTP takes the end of the stream as the word; all others want it said, with
    /// the id that they know, also before they have answered at all.
    pub(super) fn withdraw(&mut self, id: u64, reason: &str) {
        let modern = self.speaking().is_some_and(Revision::is_modern);
        if self.http.is_none() || !modern {
            self.send_cancelled(id, reason);
        }
        if let Some(http) = &mut self.http {
            http.drop_request(&mut self.out, id);
        }
    }

    /// The revision that is spoken now, also while a session is renewed.
    fn speaking(&self) -> Option<Revision> {
        self.http.as_ref().map_or_else(|| self.revision(), |http| http.speaking)
    }

    /// `notifications/initialized` over HTTP. POSTs are not kept in order, so calls wait until the
    /// server has taken it: some refuse a request that overtakes it.
    pub(super) fn greet(
        &mut self,
        revision: Revision,
        note: &Message,
        info: Option<RawJson>,
        result: &RawJson,
    ) {
        let Some(http) = &mut self.http else { return };
        http.speaking = Some(revision);
        http.greeting = Some(Greeting { revision, info, result: result.clone() });
        let live = http.live(What::Greeting, Kept::Nothing);
        http.post(&mut self.out, note, live, HeaderMap::new());
    }

    /// The session is open: opens the standalone stream where the revision has one (U-38).
    pub(super) fn open_standalone(&mut self) {
        let Some(http) = &mut self.http else { return };
        if http.speaking.is_some_and(Revision::has_standalone_stream) {
            let mut live = http.live(What::Standalone, Kept::Nothing);
            live.trail = Trail::standalone();
            http.get(&mut self.out, live);
        }
    }

    /// A stream broke off: rests, and tells whether it will be opened again.
    fn rest(&mut self, now: Instant, mut live: Live) -> bool {
        let Some(http) = &mut self.http else { return false };
        let lasted = live.since.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let rest = live.trail.broke(&http.rules(), lasted);
        let Some(at) = rest.and_then(|rest| after(now, rest)) else { return false };
        http.resting.push((at, live));
        self.timers.set_earlier(Timer::Reconnect, Some(at));
        true
    }

    /// Opens the streams whose rest is over.
    pub(super) fn reconnect_due(&mut self, now: Instant) {
        let Some(http) = &mut self.http else { return };
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut http.resting).into_iter().partition(|(at, _)| *at <= now);
        http.resting = later;
        for (_, live) in due {
            http.get(&mut self.out, live);
        }
        self.timers.set(Timer::Reconnect, http.next_due());
    }

    /// Ends answers that go on although nobody waits for more of them; some servers never end
    /// theirs. A look while such answers are open, and none otherwise.
    pub(super) fn streams_due(&mut self, now: Instant) {
        let Some(http) = &self.http else { return };
        let mut next: Option<Instant> = None;
        let mut over = Vec::new();
        for (tag, live) in &http.live {
            let open_until = live.since.and_then(|since| after(since, http.config.linger));
            let (Some(until), true) = (open_until, live.what != What::Standalone) else { continue };
            let id = live.what.request();
            // It stays open by itself.
            if id.is_some_and(|id| self.is_listening(id)) {
                continue;
            }
            let waiting = id.is_some_and(|id| self.is_waiting(id));
            if !waiting && until <= now {
                over.push(*tag);
            } else if live.streams || !waiting {
                let look = if until > now { Some(until) } else { after(now, http.config.linger) };
                next = [next, look].into_iter().flatten().min();
            }
        }
        self.timers.set(Timer::Streams, next);
        let Some(http) = &mut self.http else { return };
        for tag in over {
            http.drop_exchange(&mut self.out, tag);
        }
    }

    /// What a call that has waited in vain is told where the server accepted it without promising an
    /// answer (product.md 8): why none came.
    pub(super) fn accepted_only(&mut self, id: u64) -> bool {
        self.http.as_mut().is_some_and(|http| http.accepted.remove(&id))
    }

    /// The session is of no more use: what ends it at the server, to be made at most once and its
    /// outcome ignored (2025-11-25 transports page, "Session Management" 5).
    pub fn take_leave(&mut self) -> Option<Exchange> {
        let http = self.http.as_mut()?;
        let mut headers = http.speaking.map(response_headers).unwrap_or_default();
        http.session.as_ref()?;
        http.add_session(&mut headers);
        http.session = None;
        let tag = http.tag();
        Some(Exchange { tag, request: None, method: Method::DELETE, headers, body: Bytes::new() })
    }

    /// How long an answered request's stream may stay open.
    fn linger(&self) -> Option<Duration> {
        self.http.as_ref().map(|http| http.config.linger)
    }
}
