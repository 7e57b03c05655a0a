//! Calls that somebody has to confirm before they are made (E-10).

use super::{Call, Subject, host_of};
use crate::actors::broker::Held;
use crate::actors::catalog::ToolRecord;
use crate::actors::dispatch::confirm::{self, Verdict};
use crate::actors::dispatch::{Context, Told};
use crate::actors::upstreams::{Answers, CallWant};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions::{Asking, Question, Reply, can_answer, read_responses};
use crate::protocol::mrtr::Waits;

/// By which a modern host answers.
const KEY: &str = "mcpx_confirm";

/// What came of it; that it was denied is told at once.
pub(super) enum Consent {
    /// The call is to be made.
    Given,
    /// The host is asked, by this result.
    Asks(RawJson),
}

/// The question to be answered before a call is made, where there is one.
pub(super) fn needed(
    context: &Context,
    want: &CallWant,
    tool: &ToolRecord,
) -> Result<Option<Question>, Told> {
    match confirm::check(context, &want.server, tool, &want.params) {
        Verdict::Go => Ok(None),
        Verdict::Deny(told) => Err(told),
        Verdict::Ask(question) => Ok(Some(question)),
    }
}

/// What a modern host brought back: a yes, or nothing yet; a no is told.
pub(super) fn read(params: &RawJson, subject: Subject<'_>) -> Result<Option<()>, Told> {
    let answers = read_responses(params);
    match answers.into_iter().find(|(key, answer)| key == KEY && answer.is_object()) {
        None => Ok(None),
        Some((_, answer)) => judge(&Ok(answer), subject).map(Some),
    }
}

fn judge(reply: &Reply, subject: Subject<'_>) -> Result<(), Told> {
    if confirm::approved(reply) { Ok(()) } else { Err(confirm::refused(&subject.to_string())) }
}

impl Call<'_> {
    /// Has the call confirmed by its host, or else by a person at the broker; where neither is there,
    /// it is not made. `upstream` is the state that its upstream wants back.
    pub(super) async fn consent(
        self,
        want: &CallWant,
        question: Question,
        upstream: Option<RawJson>,
    ) -> Result<Consent, Told> {
        let reply = match want.caller.answers.present() {
            Answers::Inline { declared } if can_answer(declared, &question) => {
                let kept = self.context.parked.keep(
                    Self::bound(want),
                    Waits::Confirmation,
                    upstream,
                    None,
                );
                let state = Some(kept.map_err(|limit| self.no_room(&limit))?);
                let questions = vec![(KEY.to_owned(), question)];
                return Ok(Consent::Asks(Asking { questions, state }.write()));
            }
            Answers::Line { line, declared } if can_answer(declared, &question) => {
                let _asked = want.caller.answers.asks_host();
                line.put(&question).await
            }
            Answers::Task(handover) => handover.put(&question).await,
            Answers::Script { line, declared } if can_answer(declared, &question) => {
                line.put(&question).await
            }
            _ => {
                let host = host_of(want);
                let (server, what) = (self.subject.server.to_owned(), self.subject.to_string());
                match self.context.broker.hold(Held { server, what, host, question, task: None }) {
                    Ok(answering) => answering.await,
                    Err(_) => return Err(confirm::nobody(&self.subject.to_string())),
                }
            }
        };
        judge(&reply, self.subject).map(|()| Consent::Given)
    }
}
