//! What a legacy upstream asks (elicitation, sampling, roots): to which call it belongs, and its answer.
//!
//! Over HTTP what comes on the answer to a call belongs to that call (U-47). Everywhere else nothing
//! says so: it belongs to whatever is in flight where that is all of one host, and is never guessed
//! (product.md 8). A question is always answered: by who was asked, by who gives its call up, or
//! here.

use std::time::Instant;

use super::inbound::Oddity;
use super::{Asked, UpstreamEvent, UpstreamSession};
use crate::protocol::edge::{lifecycle, questions as edge};
use crate::protocol::jsonrpc::{
    Code, Id, Message, Method, Notification, Object, RawJson, Request, Response, RpcError,
};
use crate::protocol::model::questions::{ELICITATION_ID, Question, Reply, can_answer, unanswered};
use crate::protocol::revision::Revision;
use crate::protocol::session::pending::{CallSink, Entry, Whose};
use crate::protocol::session::timers::{Timer, after};

/// Questions of one connection.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// What a legacy upstream was told that it may ask, as its revision has it.
    declared: Option<RawJson>,
    last: u64,
    open: Vec<Open>,
    ghosts: Ghosts,
    told_interactive: bool,
}

/// A question that has no answer yet.
#[derive(Debug)]
struct Open {
    number: u64,
    /// As the upstream wrote it (U-44).
    id: Id,
    question: Question,
    /// The call to which it belongs.
    call: Option<u64>,
}

/// Calls that were given up. What their server still asks for them must not be put to the host of
/// another call, and whether it has stopped is never said: it may ask for as long as a call may be
/// silent, unless it answers before. Hosts without a connection cannot be told apart, so that after
/// one such call nobody could be asked for as long: of those it counts as having stopped once it has
/// answered a `ping` behind the cancellation, which it has read by then.
#[derive(Debug, Default)]
struct Ghosts {
    known: Vec<Ghost>,
    /// There were more than could be kept: until then any host's may be among them.
    crowded: Option<Instant>,
}

#[derive(Debug)]
struct Ghost {
    id: u64,
    host: Option<u64>,
    until: Instant,
    /// The `ping` behind its cancellation.
    fence: Option<u64>,
}

impl Ghosts {
    fn add(&mut self, now: Instant, most: usize, ghost: Ghost) {
        self.known.retain(|known| known.until > now);
        if self.known.len() < most {
            self.known.push(ghost);
        } else {
            self.crowded = Some(ghost.until);
        }
    }

    /// Whether a question may be one of another host's than this.
    fn are_others(&self, now: Instant, host: Option<u64>) -> bool {
        let mut known = self.known.iter().filter(|ghost| ghost.until > now);
        self.crowded.is_some_and(|until| until > now)
            || known.any(|ghost| ghost.host.is_none() || ghost.host != host)
    }
}

impl Questions {
    /// The opening has settled.
    pub(super) fn declare(&mut self, revision: Revision, capabilities: &RawJson) {
        self.declared =
            (!revision.is_modern()).then(|| lifecycle::client_capabilities(revision, capabilities));
    }

    /// The answer of a call that was given up: nothing more can come of it.
    pub(super) fn answered_late(&mut self, call: u64) {
        self.ghosts.known.retain(|ghost| ghost.id != call);
    }

    fn take(&mut self, which: impl Fn(&Open) -> bool) -> Option<Open> {
        let at = self.open.iter().position(which)?;
        Some(self.open.remove(at))
    }
}

/// What becomes of a question.
enum Course {
    /// It is put to this call.
    Call(u64),
    /// It is about no call that is known.
    Unowned,
    /// Its call is over.
    Over,
}

impl<S: CallSink> UpstreamSession<S> {
    /// The upstream asks something that is no `ping`. An error is its answer.
    pub(super) fn question(&mut self, now: Instant, request: &Request) -> Result<(), RpcError> {
        let question = self.lifted(request)?;
        if self.questions.open.iter().any(|open| open.id == request.id) {
            // The one before it is still to be answered, which answers both.
            self.tell(Oddity::RepeatedQuestion, || {
                let id = request.id.to_string();
                format!("the server asks again with the id {id:.80}, which is asked already")
            });
            return Ok(());
        }
        let most = self.config.most_questions;
        if self.questions.open.len() >= most {
            let text = format!(
                "{most} questions of this server are open, as many as mcpx admits (setting \
                 elicit.max_open); this one was not put to anybody"
            );
            return Err(RpcError::new(Code::InternalError, text));
        }
        self.questions.last += 1;
        let number = self.questions.last;
        let call = match self.course(now, &question) {
            Course::Call(call) if self.pending.ask(call, number, &question) => Some(call),
            // It ended in this very moment.
            Course::Call(_) | Course::Over => {
                let id = request.id.clone();
                self.say(id, &question, unanswered(&question));
                return Ok(());
            }
            Course::Unowned => {
                let question = question.clone();
                self.out.event(UpstreamEvent::Asked { number, question });
                None
            }
        };
        let id = request.id.clone();
        self.questions.open.push(Open { number, id, question, call });
        Ok(())
    }

    /// The question that a request is, in newest shape, where it may be asked at all: what is not
    /// declared is refused with the code that its page names (E-04).
    fn lifted(&mut self, request: &Request) -> Result<Question, RpcError> {
        let method = request.method.as_str();
        let revision = self.revision().filter(|revision| !revision.is_modern());
        let declared = self.questions.declared.as_ref();
        let mut code = Code::MethodNotFound;
        if let (Some(revision), Some(declared)) = (revision, declared)
            && let Some(bare) = Question::new(method, None)
        {
            let params = request.params.as_ref();
            let mut question = edge::lift_question(revision, request.method.clone(), params);
            if can_answer(declared, &question) {
                // Newest shape has none; it stays for hosts that know them (E-03).
                if let Some(id) = params.and_then(|params| params.member(ELICITATION_ID)) {
                    let mut object = Object::read_or_empty(Some(&question.params));
                    object.set(ELICITATION_ID, id);
                    question.params = object.write();
                }
                question.params = question.params.detached();
                return Ok(question);
            }
            if can_answer(declared, &bare) {
                code = Code::InvalidParams;
            }
        }
        // 2025-11-25 elicitation page: undeclared modes are invalid parameters.
        if method == "elicitation/create" {
            code = Code::InvalidParams;
        }
        self.tell(Oddity::Request, || {
            format!("the server asked for {method:.80}, which was not declared; it was refused")
        });
        Err(RpcError::new(code, format!("mcpx did not declare what {method:.80} needs")))
    }

    fn course(&mut self, now: Instant, question: &Question) -> Course {
        if let Some(about) = self.inbound.about {
            return match self.pending.contains(about) {
                true => Course::Call(about),
                // A request of our own has nobody behind it.
                false if self.is_waiting(about) => Course::Unowned,
                false => Course::Over,
            };
        }
        let whose = self.pending.whose(question);
        if whose != Whose::Nobodys && !self.questions.told_interactive {
            self.questions.told_interactive = true;
            self.out.event(UpstreamEvent::Interactive);
        }
        match whose {
            Whose::Of { call, host } if !self.questions.ghosts.are_others(now, host) => {
                Course::Call(call)
            }
            Whose::Nobodys | Whose::Of { .. } | Whose::Unknown => Course::Unowned,
        }
    }

    /// What is said to a question; one that is not open is ignored.
    pub fn answer_question(&mut self, now: Instant, number: u64, reply: Reply) {
        let Some(open) = self.questions.take(|open| open.number == number) else { return };
        self.settled_question(now, &open, None);
        self.say(open.id, &open.question, reply);
    }

    /// Roots that the upstream may have asked for are others; it is told where it was told so.
    pub fn roots_changed(&mut self) {
        let declared = self.questions.declared.as_ref();
        let roots = declared.and_then(|declared| declared.member("roots"));
        let told = roots.and_then(|roots| roots.member("listChanged"));
        if told.is_some_and(|told| told.as_bytes() == b"true") && self.revision().is_some() {
            let method = Method::known("notifications/roots/list_changed");
            self.send(&Message::Notification(Notification { method, params: None }));
        }
    }

    /// Questions of the upstream that have no answer yet.
    pub fn open_questions(&self) -> usize {
        self.questions.open.len()
    }

    fn say(&mut self, id: Id, question: &Question, reply: Reply) {
        let Some(revision) = self.revision() else { return };
        let outcome = reply.map(|result| edge::downgrade_reply(revision, question, &result));
        self.send(&Message::Response(Response { id: Some(id), outcome }));
    }

    /// A call has one question less to wait for.
    fn settled_question(&mut self, now: Instant, open: &Open, withdrawn: Option<u64>) {
        let Some(call) = open.call else { return };
        if let Some(idle) = self.pending.settled_question(now, call, withdrawn) {
            self.timers.set_earlier(Timer::Calls, after(now, idle));
        }
    }

    /// `notifications/cancelled` of the upstream, for a question of its own.
    pub(super) fn question_withdrawn(&mut self, now: Instant, params: Option<&RawJson>) {
        let id = params.and_then(|params| params.member("requestId"));
        let Some(Ok(id)) = id.map(|id| Id::from_raw(id.as_str())) else { return };
        if let Some(open) = self.questions.take(|open| open.id == id) {
            self.withdrawn(now, &open);
        }
    }

    fn withdrawn(&mut self, now: Instant, open: &Open) {
        match open.call {
            Some(_) => self.settled_question(now, open, Some(open.number)),
            None => self.out.event(UpstreamEvent::Withdrawn { number: open.number }),
        }
    }

    /// The session in which the upstream asked is gone: it knows of no question any more.
    pub(super) fn questions_forgotten(&mut self, now: Instant) {
        for open in std::mem::take(&mut self.questions.open) {
            self.withdrawn(now, &open);
        }
        self.questions.ghosts = Ghosts::default();
    }

    /// Nobody waits for what a call comes to: what was asked in its course is not put to anybody any
    /// more.
    pub(super) fn call_over(&mut self, call: u64) {
        while let Some(open) = self.questions.take(|open| open.call == Some(call)) {
            self.say(open.id, &open.question, unanswered(&open.question));
        }
    }

    /// A call that the upstream may still work on was given up.
    pub(super) fn given_up(&mut self, now: Instant, id: u64, entry: &Entry<S>) {
        if self.questions.declared.is_none() {
            return;
        }
        if let Some(until) = after(now, entry.limits.idle) {
            let ghost = Ghost { id, host: entry.host, until, fence: None };
            self.questions.ghosts.add(now, self.config.most_questions, ghost);
        }
    }

    /// The cancellations of calls without a host's connection are written. Over HTTP nothing is read in
    /// the order in which it was sent.
    pub(super) fn fence(&mut self) {
        let is_bare = |ghost: &Ghost| ghost.host.is_none() && ghost.fence.is_none();
        let any = self.questions.ghosts.known.iter().any(is_bare);
        if !any || self.http.is_some() || self.is_asked(Asked::Fence) {
            return;
        }
        let fence = self.ask(Asked::Fence, "ping", None);
        for ghost in self.questions.ghosts.known.iter_mut().filter(|ghost| is_bare(ghost)) {
            ghost.fence = Some(fence);
        }
    }

    /// The answer to such a `ping`, whatever it says.
    pub(super) fn fenced(&mut self, fence: u64) {
        self.questions.ghosts.known.retain(|ghost| ghost.fence != Some(fence));
        // For those that were given up meanwhile.
        self.fence();
    }
}
