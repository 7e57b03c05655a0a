//! What mcpx asks a legacy host during one of the host's requests: elicitation, sampling, roots.
//!
//! A question goes out as a request of mcpx's own, on the stream of the request that it belongs to
//! (Streamable HTTP pages: what relates to a request goes where its answer goes), after
//! `notifications/initialized`, and only where the host declared that it can answer (E-04). Every
//! question gets one reply, unless it is withdrawn; it is withdrawn when its request ends.

use std::time::Instant;

use bytes::Bytes;

use super::{HostEvent, HostOutput, HostSession, OK, To};
use crate::protocol::edge::questions::{downgrade_question, lift_reply};
use crate::protocol::jsonrpc::{
    Code, Id, Method, Notification, RawJson, Request, Response, RpcError,
};
use crate::protocol::model::questions::{Question, Reply};
use crate::protocol::revision::Revision;
use crate::protocol::session::CallKey;

/// A question to the host that has no reply yet.
#[derive(Debug)]
pub(super) struct Asked {
    id: Id,
    key: CallKey,
    question: Question,
    revision: Revision,
    to: To,
    /// What waits for `notifications/initialized`.
    unsent: Option<Bytes>,
}

impl HostSession {
    /// Puts a question to the host during its request `key`. A [`HostEvent::Answered`] with `ask`
    /// follows, unless the question is withdrawn first. `ask` is an id that neither the host nor an
    /// earlier life of this connection can have used (H-29).
    pub fn ask(&mut self, _now: Instant, key: CallKey, ask: Id, question: &Question) {
        let Some(open) = self.calls.get(&key) else {
            self.answered(ask, Err(over()));
            return;
        };
        let (revision, to) = (open.revision, To { batch: None, ..open.to });
        let hint = ask.as_raw().trim_matches('"').to_owned();
        let params = match downgrade_question(revision, question, &hint) {
            Ok(params) => params,
            Err(cannot) => {
                let error = RpcError::new(Code::MethodNotFound, cannot.to_string());
                self.answered(ask, Err(error));
                return;
            }
        };
        let method = question.method.clone();
        let frame = Request { id: ask.clone(), method, params: Some(params) }.to_frame();
        let ready = self.handshake.as_ref().is_some_and(|handshake| handshake.initialized);
        let unsent = if ready {
            self.send_on(to, frame);
            None
        } else {
            Some(frame)
        };
        let question = question.clone();
        self.asked.push(Asked { id: ask, key, question, revision, to, unsent });
    }

    /// Nobody wants the reply to this question any more: the host is told, and whatever it still
    /// says is ignored.
    pub fn unask(&mut self, ask: &Id) {
        let Some(index) = self.asked.iter().position(|asked| asked.id == *ask) else { return };
        let asked = self.asked.swap_remove(index);
        if asked.unsent.is_none() {
            self.withdraw(&asked);
        }
    }

    /// A request of the host has ended, and its questions with it.
    pub(super) fn unask_all_of(&mut self, key: CallKey) {
        while let Some(asked) = self.asked.iter().find(|asked| asked.key == key) {
            let id = asked.id.clone();
            self.unask(&id);
            self.answered(id, Err(over()));
        }
    }

    /// `notifications/initialized` came.
    pub(super) fn ask_unasked(&mut self) {
        let mut frames = Vec::new();
        for asked in &mut self.asked {
            frames.extend(asked.unsent.take().map(|frame| (asked.to, frame)));
        }
        for (to, frame) in frames {
            self.send_on(to, frame);
        }
    }

    /// The host has answered; only the exact text of an open id counts.
    pub(super) fn response(&mut self, response: Response) {
        let Response { id: Some(id), outcome } = response else { return };
        let known = self.asked.iter().position(|asked| asked.id == id && asked.unsent.is_none());
        let Some(index) = known else { return };
        let asked = self.asked.swap_remove(index);
        let reply = outcome.map(|result| lift_reply(asked.revision, &asked.question, result));
        self.answered(id, reply);
    }

    /// The link has ended.
    pub(super) fn unask_everything(&mut self) {
        for asked in std::mem::take(&mut self.asked) {
            self.answered(asked.id, Err(over()));
        }
    }

    fn answered(&mut self, ask: Id, reply: Reply) {
        self.outputs.push_back(HostOutput::Event(HostEvent::Answered { ask, reply }));
    }

    fn withdraw(&mut self, asked: &Asked) {
        let mut params = crate::protocol::jsonrpc::Object::new();
        if let Ok(id) = RawJson::parse(Bytes::copy_from_slice(asked.id.as_raw().as_bytes())) {
            params.set("requestId", id);
        }
        let method = Method::known("notifications/cancelled");
        let frame = Notification { method, params: Some(params.write()) }.to_frame();
        self.send_on(asked.to, frame);
    }

    fn send_on(&mut self, to: To, frame: Bytes) {
        self.outputs.push_back(HostOutput::Send { frame, post: to.post, status: OK });
    }
}

/// What is said where nobody is there to be asked any more.
fn over() -> RpcError {
    RpcError::new(Code::InternalError, "the request that this question belongs to has ended")
}
