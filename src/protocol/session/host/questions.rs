//! What mcpx asks a legacy host during one of the host's requests: elicitation, sampling, roots.
//!
//! A question goes out as a request of mcpx's own on the stream of the request that it belongs to
//! (Streamable HTTP pages of 2025-03-26 to 2025-11-25, "Sending Messages to the Server"), after
//! `notifications/initialized`, and only where the host declared that it can answer (E-04). Each
//! gets one reply, unless whoever asked withdraws it. It is withdrawn from the host, too, when its
//! request ends. What the host says to anything else is ignored.

use std::collections::VecDeque;
use std::fmt;
use std::time::Instant;

use super::{HostEvent, HostOutput, HostSession, OK, PostId};
use crate::protocol::edge::questions::{as_text, check_reply, downgrade_question, lift_reply};
use crate::protocol::jsonrpc::{
    Code, Frame, Id, Method, Notification, Object, RawJson, Request, Response, RpcError,
};
use crate::protocol::model::questions::{
    Kind, Question, Reply, can_answer, unanswered, url_required,
};
use crate::protocol::revision::Revision;
use crate::protocol::session::CallKey;

/// The reply to one question.
#[derive(Clone)]
pub struct Answered {
    /// The id of the question.
    pub ask: Id,
    /// What the host said, in newest shape.
    pub reply: Reply,
}

impl fmt::Debug for Answered {
    /// Without what was said, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answered({})", self.ask)
    }
}

/// Stands for the request of a question that is about none: no request is numbered so.
pub const NO_REQUEST: CallKey = CallKey(0);

/// A question to the host that has no reply yet.
#[derive(Debug)]
pub(super) struct Asked {
    id: Id,
    key: CallKey,
    question: Question,
    revision: Revision,
    post: Option<PostId>,
    /// What waits for `notifications/initialized`.
    unsent: Option<Frame>,
}

/// Which urls this host was sent to, latest last: it is told when what it does there is done.
#[derive(Debug, Default)]
pub(super) struct Urls(VecDeque<RawJson>);

impl Urls {
    pub(super) fn note(&mut self, id: &RawJson, most: usize) {
        while self.0.len() >= most.max(1) {
            self.0.pop_front();
        }
        self.0.push_back(id.detached());
    }

    /// Whether it was sent there.
    pub(super) fn knows(&self, id: &RawJson) -> bool {
        self.0.iter().any(|known| known.text() == id.text())
    }

    /// It has been told.
    pub(super) fn forget(&mut self, id: &RawJson) {
        self.0.retain(|known| known.text() != id.text());
    }
}

impl HostSession {
    /// What can be asked of the host while its request `key` is open, in newest shape; `None` where
    /// no question can reach it.
    pub fn can_be_asked(&self, key: CallKey) -> Option<&RawJson> {
        let open = self.calls.get(&key)?;
        let hears = open.to.post.is_none_or(|post| self.deaf.binary_search(&post).is_err());
        let handshake = self.handshake.as_ref().filter(|_| hears && !open.revision.is_modern())?;
        (handshake.answers.as_bytes() != b"{}").then_some(&handshake.answers)
    }

    /// Who is asked, where, and what it declared: during its request `key`, or during none.
    fn place(&self, key: CallKey) -> Option<(Revision, Option<PostId>, &RawJson)> {
        if key == NO_REQUEST {
            // Over HTTP nobody may be listening to what is about no request.
            let handshake = self.handshake.as_ref().filter(|_| self.config.over_stdio)?;
            return Some((handshake.peer.revision, None, &handshake.answers));
        }
        let open = self.calls.get(&key)?;
        Some((open.revision, open.to.post, self.can_be_asked(key)?))
    }

    /// Puts a question to the host during its request `key`. [`HostEvent::Answered`] with `ask`
    /// follows, unless the question is withdrawn first. `ask` is a text that no other id of this
    /// connection, nor one of another connection of the same host, can be (H-29).
    pub fn ask(&mut self, _now: Instant, key: CallKey, ask: Id, question: &Question) {
        match self.spell_question(key, &ask, question) {
            Ok(asked) => {
                let ready = self.handshake.as_ref().is_some_and(|handshake| handshake.initialized);
                let at = self.asked.len();
                self.asked.push(asked);
                if ready {
                    self.send_question(at);
                }
            }
            Err(reply) => self.answered(ask, reply),
        }
    }

    /// Nobody wants the reply to this question any more.
    pub fn unask(&mut self, ask: &Id) {
        if let Some(at) = self.asked.iter().position(|asked| asked.id == *ask) {
            let asked = self.asked.remove(at);
            self.withdraw(&asked);
        }
    }

    /// No answer can come any more, though the host can still be told things: what it was asked is
    /// withdrawn and counts as unanswered.
    pub fn stop_asking(&mut self) {
        self.mute = true;
        self.give_up(|_| true, true);
    }

    /// What is sent on the stream of this POST does not arrive any more.
    pub fn stream_lost(&mut self, post: PostId) {
        self.deafen(post);
        self.give_up(|asked| asked.post == Some(post), false);
    }

    /// The host does not hear what is said on this POST before its answer.
    pub(super) fn deafen(&mut self, post: PostId) {
        if let Err(at) = self.deaf.binary_search(&post) {
            self.deaf.insert(at, post);
        }
    }

    /// The POST is done.
    pub(super) fn undeafen(&mut self, post: PostId) {
        if let Ok(at) = self.deaf.binary_search(&post) {
            self.deaf.remove(at);
        }
    }

    /// A request of the host has ended, and its questions with it.
    pub(super) fn unask_all_of(&mut self, key: CallKey) {
        self.give_up(|asked| asked.key == key, true);
    }

    /// The link has ended.
    pub(super) fn unask_everything(&mut self) {
        self.give_up(|_| true, false);
    }

    /// `notifications/initialized` came.
    pub(super) fn ask_unasked(&mut self) {
        for at in 0..self.asked.len() {
            self.send_question(at);
        }
    }

    /// The host answers; only the exact text of the id of an open question counts.
    pub(super) fn response(&mut self, response: Response) {
        let Response { id: Some(id), outcome } = response else { return };
        let open = self.asked.iter().position(|asked| asked.id == id && asked.unsent.is_none());
        let Some(at) = open else { return };
        let asked = self.asked.remove(at);
        let reply = outcome.and_then(|result| {
            check_reply(&asked.question, &result)?;
            Ok(lift_reply(asked.revision, &asked.question, result))
        });
        self.answered(id, reply);
    }

    /// An error, spelled already, that sends the host to urls (-32042): one that cannot open any is
    /// told in words, any other will be told when it is done there.
    pub(super) fn about_urls(&mut self, error: RpcError) -> RpcError {
        let Some(urls) = url_required(&error) else { return error };
        let answers = self.handshake.as_ref().map(|handshake| &handshake.answers);
        if !answers.is_some_and(|answers| urls.iter().all(|url| can_answer(answers, url))) {
            return as_text(&error);
        }
        for url in &urls {
            self.note_url(&url.params);
        }
        error
    }

    fn note_url(&mut self, params: &RawJson) {
        if let Some(id) = params.member("elicitationId") {
            self.urls.note(&id, self.config.max_open_questions);
        }
    }

    /// The question as it is asked, or what stands for the reply where it cannot be.
    fn spell_question(
        &mut self,
        key: CallKey,
        ask: &Id,
        question: &Question,
    ) -> Result<Asked, Reply> {
        let place = self.place(key).filter(|_| !self.mute);
        let Some((revision, post, declared)) = place else { return Err(unanswered(question)) };
        if !can_answer(declared, question) {
            let text = format!("the host has not declared that it can answer {}", question.method);
            return Err(Err(RpcError::new(Code::MethodNotFound, text)));
        }
        let text = ask.as_raw().trim_matches('"');
        let hint = text.strip_prefix("mcpx-").unwrap_or(text);
        let params = downgrade_question(revision, question, hint)
            .map_err(|cannot| Err(RpcError::new(Code::MethodNotFound, cannot.to_string())))?;
        if question.kind() == Kind::Url {
            self.note_url(&params);
        }
        let method = question.method.clone();
        let frame = Request { id: ask.clone(), method, params: Some(params) }.to_frame();
        let (id, question) = (ask.clone(), question.clone());
        Ok(Asked { id, key, question, revision, post, unsent: Some(frame) })
    }

    fn send_question(&mut self, at: usize) {
        let Some(asked) = self.asked.get_mut(at) else { return };
        if let Some(frame) = asked.unsent.take() {
            let post = asked.post;
            self.outputs.push_back(HostOutput::Send { frame, post, status: OK });
        }
    }

    /// Counts what is `over` as unanswered; the host is told where it still can be.
    fn give_up(&mut self, over: impl Fn(&Asked) -> bool, tell: bool) {
        let (gone, open) = std::mem::take(&mut self.asked).into_iter().partition(over);
        self.asked = open;
        let gone: Vec<Asked> = gone;
        for asked in gone {
            if tell {
                self.withdraw(&asked);
            }
            self.answered(asked.id, unanswered(&asked.question));
        }
    }

    fn answered(&mut self, ask: Id, reply: Reply) {
        let answered = Answered { ask, reply };
        self.outputs.push_back(HostOutput::Event(HostEvent::Answered(answered)));
    }

    /// Tells the host that it need not go on; what it was never asked needs no word.
    fn withdraw(&mut self, asked: &Asked) {
        if asked.unsent.is_some() {
            return;
        }
        let mut params = Object::new();
        params.set("requestId", RawJson::trusted(asked.id.as_raw().to_owned()));
        params.set("reason", RawJson::write("the answer is no longer needed"));
        let method = Method::known("notifications/cancelled");
        let frame = Notification { method, params: Some(params.write()) }.to_frame();
        self.outputs.push_back(HostOutput::Send { frame, post: asked.post, status: OK });
    }
}
