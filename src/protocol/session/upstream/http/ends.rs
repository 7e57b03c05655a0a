//! Exchanges that ended, and what that means for a request that is not answered.

use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;

use super::super::exchange::{ExchangeEnd, HttpFailure};
use super::super::inbound::unusable;
use super::super::{Asked, OpenError, UpstreamOutput, UpstreamSession};
use super::{Kept, Live, What};
use crate::protocol::jsonrpc::{
    Code, Incoming, Message, Object, RawJson, Response, RpcError, parse,
};
use crate::protocol::revision::Revision;
use crate::protocol::session::pending::CallSink;
use crate::protocol::session::{Answer, Outcome};

/// The answer to request `id`, where a refusal's body is one: the status is then only its echo.
fn reply_to(id: u64, body: &Bytes) -> Option<Outcome> {
    match parse(body) {
        Ok(Incoming::One(Message::Response(Response { id: Some(said), outcome }))) => {
            (said.as_u64() == Some(id)).then_some(outcome)
        }
        _ => None,
    }
}

/// A failed HTTP answer as the error of a call (U-12).
fn failed(failure: &HttpFailure) -> RpcError {
    let mut data = Object::new();
    data.set("httpStatus", RawJson::write(&failure.status.as_u16()));
    if !failure.body.is_empty() {
        data.set("body", RawJson::write(&failure.body));
    }
    unusable(format!("the server answered {failure}")).with_data(data.write())
}

/// Why nothing answers a request whose exchange came to a good end.
const NO_ANSWER: &str = "its answer ended without one";

impl<S: CallSink> UpstreamSession<S> {
    /// The exchange of a request ended. Whatever answered it has been handled before.
    pub(super) fn request_ended(&mut self, now: Instant, id: u64, live: Live, end: ExchangeEnd) {
        if !self.is_waiting(id) {
            return;
        }
        if let Some(asked) = self.opening_leg(id) {
            return self.leg_ended(now, asked, id, live.accepted, end);
        }
        match end {
            ExchangeEnd::Whole if live.accepted => self.only_accepted(id),
            ExchangeEnd::Whole => self.ended_unanswered(now, id, live),
            ExchangeEnd::Failed { sent: true, why } => self.broke_off(now, id, live, why),
            // What could not be reached again now may be in a moment.
            ExchangeEnd::Failed { sent: false, why } if live.trail.last_id().is_some() => {
                self.broke_off(now, id, live, why);
            }
            ExchangeEnd::Failed { sent: false, why } => self.unreachable(now, id, &why),
            ExchangeEnd::Refused { status, body } => self.refused(now, id, live, status, &body),
            ExchangeEnd::Elsewhere { why } => self.led_elsewhere(now, id, &live, why),
            ExchangeEnd::Unreadable { what } => {
                self.answer_instead(now, id, Answer::Invalid(what));
            }
            ExchangeEnd::TooLarge { bytes, limit } => {
                self.answer_instead(now, id, Answer::TooLarge { bytes, limit });
            }
        }
    }

    /// A whole answer that answers nothing. Where it was to be one message, that is what it came to;
    /// an event stream may go on elsewhere.
    fn ended_unanswered(&mut self, now: Instant, id: u64, live: Live) {
        if live.streams {
            let why = match &live.odd {
                None => NO_ANSWER.to_owned(),
                Some(odd) => format!("{NO_ANSWER}, but with {odd}"),
            };
            return self.broke_off(now, id, live, why);
        }
        let what = live.odd.as_deref().unwrap_or("nothing that answers it");
        let why = format!("the server answered with {what}; it may have taken effect all the same");
        self.answer_instead(now, id, Answer::Invalid(why));
    }

    /// Ends a request with something that is no message of the server's.
    pub(super) fn answer_instead(&mut self, now: Instant, id: u64, answer: Answer) {
        if let Some(entry) = self.pending.remove(id) {
            entry.sink.done(answer);
            return;
        }
        let text = match answer {
            Answer::Invalid(why) | Answer::Lost { why, .. } => why,
            Answer::TooLarge { bytes, limit } => {
                format!("the server answered with {bytes} bytes, beyond the limit of {limit}")
            }
            other => format!("{other:?}"),
        };
        self.own_answer(now, id, &Err(unusable(text)));
    }

    fn only_accepted(&mut self, id: u64) {
        let Some(http) = &mut self.http else { return };
        let pending = &self.pending;
        http.accepted.retain(|id| pending.contains(*id));
        http.accepted.insert(id);
        if !http.has_standalone() {
            self.out.warn(
                "the server accepts requests with HTTP 202, which promises no answer, and has no \
                 event stream on which one could come",
            );
        }
    }

    /// A stream ended before the answer: it is opened again where the server numbers its events and
    /// the revision knows of that (U-39, F18); otherwise the call ends at once (U-33).
    fn broke_off(&mut self, now: Instant, id: u64, live: Live, why: String) {
        let modern =
            self.http.as_ref().and_then(|http| http.speaking).is_some_and(Revision::is_modern);
        let current = self.http.as_ref().is_some_and(|http| http.generation == live.generation);
        let resumable = !modern && current && live.trail.last_id().is_some();
        if !(resumable && self.rest(now, live)) {
            self.answer_instead(now, id, Answer::Lost { written: true, why });
        }
    }

    /// No byte left. Where nothing else shows that the server is there, the connection is given up,
    /// so that its pool can rest before it tries again.
    fn unreachable(&mut self, now: Instant, id: u64, why: &str) {
        let why = format!("the server could not be reached: {why}");
        // Nobody waits for this one: it is tried again after a rest, and costs nobody the connection.
        if self.is_listening(id) {
            return self.answer_instead(now, id, Answer::Lost { written: false, why });
        }
        let alone = self.http.as_ref().is_some_and(|http| {
            let mut requests =
                http.live.values().filter(|live| matches!(live.what, What::Request(_)));
            requests.next().is_none()
        });
        if alone {
            // Its caller is told with the end, after which nobody finds this connection any more.
            self.pending.mark_held(id);
            self.out.queue.push_back(UpstreamOutput::Close(why));
        } else {
            self.answer_instead(now, id, Answer::Lost { written: false, why });
        }
    }

    fn refused(&mut self, now: Instant, id: u64, live: Live, status: StatusCode, body: &Bytes) {
        let reply = reply_to(id, body);
        let unknown = Code::MethodNotFound.number();
        let about_method = matches!(&reply, Some(Err(error)) if error.code == unknown);
        // The specification has a server say so of any session that it does not know any more; one
        // that says so of a method quotes the request.
        if status == StatusCode::NOT_FOUND && live.named && !about_method {
            return self.session_lost(now, id, live);
        }
        if self.asked.contains(&(id, Asked::Alive)) {
            // Also a refusal is a sign of life.
            self.own_answer(now, id, &Ok(RawJson::empty_object()));
            return;
        }
        // A stream that is not given again took its answer with it.
        if live.trail.last_id().is_some() && reply.is_none() {
            let why = format!("{NO_ANSWER}, and it could not be resumed: HTTP {status}");
            return self.answer_instead(now, id, Answer::Lost { written: true, why });
        }
        let failure = HttpFailure::read(status, body);
        let outcome = reply.unwrap_or_else(|| match &failure.error {
            // The error of this very POST, though it could not name the request in it.
            Some(error) if !failure.is_auth() => Err(error.clone()),
            _ => Err(failed(&failure)),
        });
        if let Kept::Call(call) = live.kept
            && self.retry_marked(now, id, &outcome, call)
        {
            return;
        }
        self.deliver(now, id, &outcome);
    }

    /// A redirect that is not followed is the answer to this one request: another try would lead to
    /// the same place, and the connection is as good as before.
    fn led_elsewhere(&mut self, now: Instant, id: u64, live: &Live, why: String) {
        if self.asked.contains(&(id, Asked::Alive)) {
            self.own_answer(now, id, &Ok(RawJson::empty_object()));
            return;
        }
        if live.trail.last_id().is_some() {
            return self.answer_instead(now, id, Answer::Lost { written: true, why });
        }
        self.deliver(now, id, &Err(unusable(why)));
    }

    /// A leg of the opening that has no answer yet.
    fn opening_leg(&self, id: u64) -> Option<Asked> {
        let asked = self.asked.iter().find(|(asked, _)| *asked == id).map(|(_, asked)| *asked)?;
        matches!(asked, Asked::Discover | Asked::Initialize).then_some(asked)
    }

    /// A leg of the opening ended without a message (U-11, F24).
    fn leg_ended(&mut self, now: Instant, leg: Asked, id: u64, accepted: bool, end: ExchangeEnd) {
        let reply = match &end {
            ExchangeEnd::Refused { body, .. } => reply_to(id, body),
            _ => None,
        };
        self.forget(leg);
        let unreadable = |what: String| OpenError::Unusable(what);
        match end {
            ExchangeEnd::Failed { why, .. } | ExchangeEnd::Elsewhere { why } => {
                self.fail(OpenError::Unreachable(why));
            }
            ExchangeEnd::Refused { status, body } => {
                let failure = HttpFailure::read(status, &body);
                self.leg_refused(now, leg, failure, reply);
            }
            ExchangeEnd::Whole => {
                let status = if accepted { " (HTTP 202)" } else { "" };
                self.leg_said_nothing(leg, unreadable(format!("it holds no message{status}")));
            }
            ExchangeEnd::Unreadable { what } => self.leg_said_nothing(leg, unreadable(what)),
            ExchangeEnd::TooLarge { bytes, limit } => {
                self.fail(unreadable(format!("{bytes} bytes, beyond the limit of {limit}")));
            }
        }
    }

    fn leg_refused(
        &mut self,
        now: Instant,
        leg: Asked,
        failure: HttpFailure,
        reply: Option<Outcome>,
    ) {
        let modern = |error: &RpcError| {
            let code = Code::from_number(error.code);
            matches!(
                code,
                Some(Code::HeaderMismatch | Code::MissingCapability | Code::UnsupportedRevision)
            )
        };
        let reply = match reply {
            // Of an error that names no request only a modern one can be trusted to mean it.
            None => failure.error.clone().filter(modern).map(Err),
            reply => reply,
        };
        let about_auth = failure.is_auth() && !matches!(&reply, Some(Err(error)) if modern(error));
        match (reply, leg) {
            _ if about_auth => self.fail(OpenError::Http(failure)),
            (Some(outcome), Asked::Initialize) => self.initialize_answered(now, &outcome),
            (Some(outcome), _) => self.discover_answered(now, &outcome),
            _ if !failure.status.is_client_error() => self.fail(OpenError::Http(failure)),
            (None, Asked::Initialize) => self.initialize_failed(failure),
            (None, _) => self.discover_failed(failure),
        }
    }

    /// A notification or an answer of ours was not taken, which ends nothing (F20).
    pub(super) fn note_ended(&mut self, now: Instant, live: &Live, end: ExchangeEnd) {
        let greeting = live.what == What::Greeting;
        let text = match end {
            ExchangeEnd::Refused { status: StatusCode::NOT_FOUND, .. } if live.named => {
                if greeting {
                    let text = "it ended the session at once (HTTP 404)";
                    return self.fail(OpenError::Unusable(text.to_owned()));
                }
                return self.renew(now, live.generation);
            }
            ExchangeEnd::Refused { status, body } => HttpFailure::read(status, &body).to_string(),
            ExchangeEnd::Failed { why, .. } | ExchangeEnd::Elsewhere { why } if greeting => {
                return self.fail(OpenError::Unreachable(why));
            }
            ExchangeEnd::Failed { why, .. } | ExchangeEnd::Elsewhere { why } => why,
            ExchangeEnd::Whole | ExchangeEnd::Unreadable { .. } | ExchangeEnd::TooLarge { .. } => {
                String::new()
            }
        };
        if !text.is_empty() {
            self.out
                .warn(format!("the server did not take a message that wants no answer: {text}"));
        }
        if greeting {
            self.greeted(now);
        }
    }

    /// The standalone stream ended (F19): a server that has none says so by a status, and is not
    /// asked again; any other end may be followed by another stream.
    pub(super) fn standalone_ended(&mut self, now: Instant, live: Live, end: &ExchangeEnd) {
        let current = self.http.as_ref().is_some_and(|http| http.generation == live.generation);
        let again = match end {
            ExchangeEnd::Whole | ExchangeEnd::Failed { .. } | ExchangeEnd::TooLarge { .. } => true,
            ExchangeEnd::Refused { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            ExchangeEnd::Unreadable { .. } | ExchangeEnd::Elsewhere { .. } => false,
        };
        if let ExchangeEnd::TooLarge { bytes, limit } = end {
            self.out.warn(format!(
                "the server sent {bytes} bytes by itself, beyond the limit of {limit}; thrown away"
            ));
        }
        if again && current {
            self.rest(now, live);
        }
    }
}
