//! What the upstream says by itself, answers that need a second look, and what is no message at all.
//!
//! Lenient, because a host that drops a server for one odd line gets the blame (F04, F09, F13); and
//! silent: nothing that is no request is ever answered, or two programs answer each other's noise for
//! ever (F06).

use std::time::Instant;

use bytes::Bytes;

use super::listen;
use super::{Asked, ListKind, Phase, Revision, UpstreamEvent, UpstreamSession};
use crate::protocol::edge::methods::{Direction, Standing, standing};
use crate::protocol::jsonrpc::{
    Code, Id, Incoming, Malformed, Message, Notification, RawJson, Request, Response, RpcError,
    parse, parse_noting, scan,
};
use crate::protocol::model::logging::LogMessage;
use crate::protocol::session::pending::CallSink;
use crate::protocol::session::{Answer, Outcome};

/// What has been seen that is worth saying once.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    noise: u64,
    told: Vec<Oddity>,
    /// The request on whose HTTP answer the present frame came (U-47).
    pub about: Option<u64>,
    /// What the present frame is, where it is no answer to anything.
    pub odd: Option<String>,
}

/// Each is told once a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Oddity {
    NotJson,
    NotAMessage,
    NotUtf8,
    GluedNoise,
    IdKind,
    NullId,
    StrangeId,
    Batch,
    Request,
    RepeatedQuestion,
}

/// How much of a line a notice quotes.
const SAMPLE: usize = 120;

/// How many places in a line that look like the beginning of an object are tried.
const SALVAGE_TRIES: usize = 8;

fn sample(frame: &[u8]) -> String {
    let head = frame.get(..SAMPLE).unwrap_or(frame);
    let more = if head.len() < frame.len() { "…" } else { "" };
    format!("{:?}{more}", String::from_utf8_lossy(head))
}

fn another_id(id: &Id) -> String {
    format!("an answer to another request: its id is {:.80}", id.to_string())
}

/// The error that stands for an answer which cannot be used.
pub(super) fn unusable(text: String) -> RpcError {
    RpcError::new(Code::InternalError, text)
}

/// The number that an id means, where the peer wrote ours in another form: `"7"`, `7.0` (F13).
fn meant(id: &Id) -> Option<u64> {
    let raw = id.as_raw();
    let inner = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.or_else(|| raw.strip_suffix(".0"))?.parse().ok()
}

impl<S: CallSink> UpstreamSession<S> {
    /// A frame that [`super::Pending::resolve`] gave back.
    pub fn handle_frame(&mut self, now: Instant, frame: &Bytes) {
        let (parsed, repaired) = parse_noting(frame);
        if repaired && parsed.is_ok() {
            self.tell(Oddity::NotUtf8, || {
                format!("the server sends bytes that are no UTF-8; replaced: {}", sample(frame))
            });
        }
        match parsed {
            // The reader has tried all others on the calls in flight.
            Ok(Incoming::One(message))
                if repaired && self.pending.take_message(now, self.inbound.about, &message) => {}
            Ok(Incoming::One(message)) => self.message(now, &message),
            Ok(Incoming::Batch(parts)) => self.batch(now, &parts, frame),
            Err(error) => self.malformed(now, &error, frame),
        }
    }

    /// Lines seen on this connection that were no messages (F04, F05).
    pub fn noise(&self) -> u64 {
        self.inbound.noise
    }

    /// Only 2025-03-26 has batches (U-45), but JSON-RPC itself does, and dropping one would leave
    /// its callers without an answer.
    fn batch(&mut self, now: Instant, parts: &[Result<Message, Malformed>], frame: &Bytes) {
        if parts.iter().all(Result::is_err) {
            return self.noise_seen(Oddity::NotAMessage, frame);
        }
        if !self.revision().is_some_and(Revision::allows_batches) {
            self.tell(Oddity::Batch, || {
                "the server sends batches, which its revision does not have; they are read"
                    .to_owned()
            });
        }
        for part in parts {
            match part {
                Ok(message) if self.pending.take_message(now, self.inbound.about, message) => {}
                Ok(message) => self.message(now, message),
                Err(_) => self.noise_seen(Oddity::NotAMessage, frame),
            }
        }
    }

    fn message(&mut self, now: Instant, message: &Message) {
        self.pending.heard(now);
        match message {
            Message::Request(request) => self.request(now, request),
            Message::Notification(note) => self.notification(now, note),
            Message::Response(response) => self.response(now, response),
        }
    }

    /// An answer to a request of the session's own, or to a call by an id in another form.
    fn response(&mut self, now: Instant, response: &Response) {
        let Some(id) = &response.id else { return self.null_id(now, &response.outcome) };
        if let Some(number) = id.as_u64() {
            if self.own_answer(now, number, &response.outcome) {
                return;
            }
            self.inbound.odd = Some(another_id(id));
            self.questions.answered_late(number);
            // An answer that comes after its request was cancelled is normal, and nobody's.
            if !self.pending.was_taken(number) {
                self.tell(Oddity::StrangeId, || {
                    format!("the server answered id {id}, which was never asked")
                });
            }
            return;
        }
        let known = meant(id).filter(|number| self.is_waiting(*number));
        if let Some(number) = known {
            self.tell(Oddity::IdKind, || {
                format!("the server answers id {number} as {id}; it is matched all the same")
            });
            self.deliver(now, number, &response.outcome);
        } else {
            self.inbound.odd = Some(another_id(id));
            self.tell(Oddity::StrangeId, || {
                format!("the server answered id {:.80}, which was never asked", id.to_string())
            });
        }
    }

    /// An error for something that the peer could not read. While nothing but the probe is on the
    /// wire it can only mean that; later it may be about a notification, and is no call's answer.
    fn null_id(&mut self, now: Instant, outcome: &Outcome) {
        // Over HTTP it stands on the answer to what could not be read.
        if let Some(id) = self.inbound.about.filter(|id| self.is_waiting(*id)) {
            return self.deliver(now, id, outcome);
        }
        let probe = self.asked.iter().find(|(_, asked)| *asked == Asked::Discover);
        let alone = matches!(self.phase, Phase::Opening) && self.asked.len() == 1;
        if let Some(id) = probe.filter(|_| alone).map(|(id, _)| *id) {
            self.own_answer(now, id, outcome);
            return;
        }
        let text = outcome.as_ref().err().map(super::refusal).unwrap_or_default();
        self.tell(Oddity::NullId, || {
            format!("the server could not read something it was sent: {text:.200}")
        });
    }

    /// Whether an answer to `id` is waited for.
    pub(super) fn is_waiting(&self, id: u64) -> bool {
        self.asked.iter().any(|(asked, _)| *asked == id) || self.pending.contains(id)
    }

    pub(super) fn deliver(&mut self, now: Instant, id: u64, outcome: &Outcome) {
        if !self.own_answer(now, id, outcome) {
            self.pending.answer(now, id, outcome.clone());
        }
    }

    /// The upstream asks. `ping` is answered in any era (U-46); what a legacy one was told that it may
    /// ask is a question; for the rest nothing is declared, and it is told so.
    ///
    /// The 2026-07-28 stdio page says that a server must not write requests and a client must not
    /// write responses. A server that breaks the first is answered against the second: it would
    /// otherwise wait for ever, and the call it waits in with it.
    fn request(&mut self, now: Instant, request: &Request) {
        let outcome = match request.method.as_str() {
            // Every result of the modern era says what it is, also this one that it does not have.
            "ping" if self.revision().is_some_and(Revision::is_modern) => {
                Ok(RawJson::trusted(r#"{"resultType":"complete"}"#))
            }
            "ping" => Ok(RawJson::empty_object()),
            _ => match self.question(now, request) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
        };
        // Over HTTP a modern one has no place that takes answers, and does not wait for any.
        let modern = self.revision().is_some_and(Revision::is_modern);
        if self.http.is_some() && modern {
            return;
        }
        let response = Response { id: Some(request.id.clone()), outcome };
        self.send(&Message::Response(response));
    }

    fn notification(&mut self, now: Instant, note: &Notification) {
        if !self.is_of_open_stream(note) {
            return;
        }
        match note.method.as_str() {
            listen::ACKNOWLEDGED => {
                self.listen_acknowledged(now, note.params.as_ref());
            }
            "notifications/cancelled" => {
                self.listen_cancelled(now, note.params.as_ref());
                self.question_withdrawn(now, note.params.as_ref());
            }
            "notifications/elicitation/complete" => {
                let params = note.params.as_ref();
                if let Some(id) = params.and_then(|params| params.member("elicitationId")) {
                    self.out.event(UpstreamEvent::Completed { id: id.detached() });
                }
            }
            "notifications/resources/updated" => self.resource_updated(note.params.as_ref()),
            "notifications/tools/list_changed" => self.list_changed(now, ListKind::Tools),
            "notifications/resources/list_changed" => self.list_changed(now, ListKind::Resources),
            "notifications/prompts/list_changed" => self.list_changed(now, ListKind::Prompts),
            "notifications/message" => {
                // 2026-07-28 logging page: its messages belong to a request, and none is here.
                let legacy = self.revision().is_some_and(|revision| !revision.is_modern());
                let message = note.params.as_ref().and_then(LogMessage::read);
                if let Some(message) = message.filter(|_| legacy) {
                    self.out.event(UpstreamEvent::Log(message));
                }
            }
            // One name each for the two forms; what it says is looked up.
            "notifications/tasks/status" | "notifications/tasks" => {
                let id = note.params.as_ref().and_then(|params| params.member_str("taskId"));
                if let Some(id) = id {
                    self.out.event(UpstreamEvent::TaskChanged { id });
                }
            }
            method => {
                let known = standing(Revision::NEWEST, method, Direction::NoteToClient);
                if known == Standing::Unknown {
                    let (method, params) = (note.method.clone(), note.params.clone());
                    self.out.event(UpstreamEvent::Foreign { method, params });
                }
                // The rest is of no concern here; a notification is never answered.
            }
        }
    }

    /// No message as it stands: noise, unless something in it is waited for.
    fn malformed(&mut self, now: Instant, error: &Malformed, frame: &Bytes) {
        let Malformed::NotJson(_) = error else {
            if !self.broken_answer(now, error, frame) {
                self.noise_seen(Oddity::NotAMessage, frame);
            }
            return;
        };
        let Some(message) = self.salvage(frame) else {
            return self.noise_seen(Oddity::NotJson, frame);
        };
        self.inbound.noise += 1;
        self.tell(Oddity::GluedNoise, || {
            format!("the server prints before its messages, on one line: {}", sample(frame))
        });
        if !self.pending.take_message(now, self.inbound.about, &message) {
            self.message(now, &message);
        }
    }

    /// An object that answers something waited for, but not as a message may: its caller is told,
    /// instead of waiting for an answer that was given already.
    fn broken_answer(&mut self, now: Instant, error: &Malformed, frame: &Bytes) -> bool {
        let head = scan::head(frame);
        if !head.is_response() {
            return false;
        }
        let id = head.id.and_then(|raw| Id::from_raw(std::str::from_utf8(raw).ok()?).ok());
        let id = id.and_then(|id| id.as_u64().or_else(|| meant(&id)));
        let Some(id) = id.filter(|id| self.is_waiting(*id)) else { return false };
        let text = format!("its answer is no JSON-RPC response: {error}");
        match self.pending.remove(id) {
            Some(entry) => entry.sink.done(Answer::Invalid(text)),
            None => _ = self.own_answer(now, id, &Err(unusable(text))),
        }
        true
    }

    /// Noise glued before a frame: taken only if the rest of the line is an answer waited for
    /// (product.md 8).
    fn salvage(&self, frame: &Bytes) -> Option<Message> {
        // Which member comes first is each SDK's own affair. An object inside the frame does not
        // parse to the end of the line, so only the frame itself can be taken.
        memchr::memmem::find_iter(frame, b"{\"").take(SALVAGE_TRIES).find_map(|at| {
            let Ok(Incoming::One(message)) = parse(&frame.slice(at..)) else { return None };
            let Message::Response(Response { id: Some(id), .. }) = &message else { return None };
            id.as_u64().filter(|id| self.is_waiting(*id))?;
            Some(message)
        })
    }

    /// Counted, told once a kind with a sample, never answered.
    fn noise_seen(&mut self, kind: Oddity, frame: &[u8]) {
        self.inbound.noise += 1;
        let head = frame.get(..SAMPLE).unwrap_or(frame);
        let line = String::from_utf8_lossy(head).trim_end().to_owned();
        self.out.event(UpstreamEvent::Noise(line));
        let (one, what) = match kind {
            Oddity::NotJson => ("broken JSON", "lines that are no JSON"),
            _ => ("JSON that is no message", "JSON that is no message"),
        };
        self.inbound.odd = Some(format!("{one}: {}", sample(frame)));
        self.tell(kind, || {
            format!("the server sends {what} among its messages; skipped: {}", sample(frame))
        });
    }

    pub(super) fn tell(&mut self, oddity: Oddity, text: impl FnOnce() -> String) {
        if !self.inbound.told.contains(&oddity) {
            self.inbound.told.push(oddity);
            self.out.warn(text());
        }
    }
}
