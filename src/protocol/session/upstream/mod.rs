//! One upstream connection, with mcpx as its client: opening (probe or handshake), calls, list
//! reading, cancellation, limits.
//!
//! Never knows processes, pools or hosts. Frames that answer a call in flight do not come here; see
//! [`super::pending`]. Reading order: `types` (what goes in and out), `opening` (which era, which
//! revision), `calls` (requests of callers, their limits, liveness), `listing` (the lists),
//! `inbound` (what the upstream says by itself, and what is no message), `questions` (what it asks).

mod calls;
mod exchange;
mod http;
mod inbound;
mod listen;
mod listing;
mod opening;
mod questions;
mod tasks;
mod types;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

pub use exchange::{Exchange, ExchangeEnd, ExchangeNews, HttpConfig, HttpFailure};
pub use types::{
    Call, ListKind, ListRead, OpenError, OpeningTimings, Settled, TaskWant, UpstreamConfig,
    UpstreamEvent, UpstreamOutput,
};

use super::pending::{CallSink, Pending};
use super::timers::{Timer, Timers};
use super::{Closed, Outcome};
use crate::protocol::Notice;
use crate::protocol::jsonrpc::{Frame, Id, Message, Method, RawJson, Request, RpcError};
use crate::protocol::revision::Revision;

/// Where the connection is in its life.
#[derive(Debug)]
enum Phase {
    /// Before [`UpstreamSession::open`].
    New,
    /// The era is being found out; calls are held.
    Opening,
    /// Calls are admitted.
    Open(Revision),
    /// Of no more use, with the reason that later calls are told.
    Ended(String),
}

/// What a request of the session's own was for; callers' requests are in [`Pending`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Discover,
    Initialize,
    ListPage(ListKind),
    Alive,
    Fence,
    SetLevel,
    Listen,
    Subscribe,
    Unsubscribe,
}

/// See the module.
#[derive(Debug)]
pub struct UpstreamSession<S> {
    config: UpstreamConfig,
    pending: Arc<Pending<S>>,
    phase: Phase,
    out: Outbox,
    timers: Timers,
    /// The session's own requests that have no answer yet; a handful at most.
    asked: Vec<(u64, Asked)>,
    opening: opening::Opening,
    calls: calls::Calls,
    lists: listing::Lists,
    listening: listen::Listening,
    inbound: inbound::Inbound,
    questions: questions::Questions,
    /// Set where the upstream is reached over Streamable HTTP.
    http: Option<Box<http::Http>>,
}

/// Outputs in order, and how many frames were among them: the owner executes them in order with one
/// writer, so the n-th `Send` is the link's n-th frame ([`Closed::frames_begun`]).
#[derive(Debug, Default)]
struct Outbox {
    queue: VecDeque<UpstreamOutput>,
    frames: u64,
}

impl Outbox {
    fn send(&mut self, message: &Message) {
        self.send_frame(message.to_frame());
    }

    fn send_frame(&mut self, frame: Frame) {
        self.frames += 1;
        self.queue.push_back(UpstreamOutput::Send(frame));
    }

    fn event(&mut self, event: UpstreamEvent) {
        self.queue.push_back(UpstreamOutput::Event(event));
    }

    fn warn(&mut self, text: impl Into<String>) {
        self.queue.push_back(UpstreamOutput::Notice(Notice::server(text)));
    }
}

impl<S: CallSink> UpstreamSession<S> {
    /// A connection that is not open yet; nothing is sent before [`Self::open`].
    pub fn new(config: UpstreamConfig, pending: Arc<Pending<S>>) -> Self {
        Self {
            opening: opening::Opening::new(&config),
            http: config.http.map(|http| Box::new(http::Http::new(http))),
            config,
            pending,
            phase: Phase::New,
            out: Outbox::default(),
            timers: Timers::default(),
            asked: Vec::new(),
            calls: calls::Calls::default(),
            lists: listing::Lists::default(),
            listening: listen::Listening::default(),
            inbound: inbound::Inbound::default(),
            questions: questions::Questions::default(),
        }
    }

    /// The link ended; every pending call gets [`super::Answer::Lost`].
    pub fn handle_closed(&mut self, _now: Instant, closed: &Closed) {
        match self.phase {
            Phase::Ended(_) => {}
            Phase::New | Phase::Opening => self.opening_closed(&closed.why),
            Phase::Open(_) => self.end(closed.why.clone()),
        }
        self.pending.close(closed);
    }

    /// A deadline passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_due(now) {
            match timer {
                Timer::ProbePatience => self.patience_over(now),
                Timer::Handshake => self.handshake_over(),
                Timer::List => self.lists_over(now),
                Timer::Ping => self.ping_over(),
                Timer::Calls => self.expire_calls(now),
                Timer::ListenReopen => self.listen_due(),
                Timer::Reconnect => self.reconnect_due(now),
                Timer::Streams => self.streams_due(now),
                // The shim's.
                Timer::ShimGrace => {}
            }
        }
    }

    /// What to do next; `None` when nothing is left.
    pub fn poll_output(&mut self) -> Option<UpstreamOutput> {
        self.out.queue.pop_front()
    }

    /// When to call [`Self::handle_timeout`] at the latest.
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The revision agreed; `None` before that and after the end.
    fn revision(&self) -> Option<Revision> {
        match self.phase {
            Phase::Open(revision) => Some(revision),
            _ => None,
        }
    }

    /// Sends a request of our own. A modern one is to carry its envelope in `params` already.
    fn ask(&mut self, what: Asked, method: &'static str, params: Option<RawJson>) -> u64 {
        let id = self.pending.take_id();
        self.asked.push((id, what));
        let request = Request { id: Id::number(id), method: Method::known(method), params };
        self.send_request(id, request.clone(), http::Kept::Own(request));
        id
    }

    /// Whether a request for `what` has no answer yet.
    fn is_asked(&self, what: Asked) -> bool {
        self.asked.iter().any(|(_, asked)| *asked == what)
    }

    /// Answers for `what` are no longer waited for.
    fn forget(&mut self, what: Asked) {
        self.asked.retain(|(_, asked)| *asked != what);
    }

    /// The answer to a request of our own; whether `id` was one.
    fn own_answer(&mut self, now: Instant, id: u64, outcome: &Outcome) -> bool {
        let Some(at) = self.asked.iter().position(|(asked, _)| *asked == id) else {
            return false;
        };
        let (_, what) = self.asked.swap_remove(at);
        match what {
            Asked::Discover => self.discover_answered(now, outcome),
            Asked::Initialize => self.initialize_answered(now, outcome),
            Asked::ListPage(kind) => self.page_answered(now, kind, outcome),
            // Whatever it says: what is not wanted is not passed on.
            Asked::SetLevel | Asked::Unsubscribe => {}
            Asked::Listen => self.listen_answered(now, id, outcome),
            Asked::Subscribe => self.subscribe_answered(id, outcome),
            // Also an error is a sign of life (P-13).
            Asked::Alive => self.timers.clear(Timer::Ping),
            Asked::Fence => self.fenced(id),
        }
        true
    }

    /// The connection is of no more use: everything of the session's own ends here. Callers are told
    /// by whoever knows whether their requests were written.
    fn end(&mut self, why: String) {
        self.timers.clear_all();
        self.asked.clear();
        self.calls.held.clear();
        // Nobody is left to be answered.
        self.questions = questions::Questions::default();
        if let Some(http) = &mut self.http {
            http.end();
        }
        self.listening_ended();
        self.lists_ended(&why);
        self.phase = Phase::Ended(why);
    }
}

/// An outcome in one phrase, for texts.
fn refusal(error: &RpcError) -> String {
    format!("{} {}", error.code, error.message)
}
