//! A call on an upstream, with what it asks before it is over (product.md 8).
//!
//! Whoever can be asked is asked: a legacy host by a request of its own, a modern one by an
//! `input_required` result, the follower of a task by the task, and where none of them can answer, a
//! person at the broker. Where nobody is there, an elicitation is cancelled and the call goes on with
//! what its upstream makes of that, and with roots, for which legacy servers ask whatever is called;
//! anything else is an error to the upstream, and to a modern host, which can repeat its request with
//! more declared, -32021.
//!
//! What a modern upstream asks of a modern host that can answer passes whole, with its own state.

mod consent;
mod conversation;

use std::fmt;

use memchr::memmem;

use super::Context;
use super::outcome::{Told, answer_outcome};
use super::recorded::Recording;
use crate::actors::catalog::ToolRecord;
use crate::actors::exec::Running;
use crate::actors::parked::Fetched;
use crate::actors::pool::ongoing::{Called, Ongoing};
use crate::actors::upstreams::{Answers, CallWant, Reason, Refused};
use crate::protocol::jsonrpc::{Object, RawJson, RpcError};
use crate::protocol::model::answers;
use crate::protocol::model::questions::{self, Asking, RESPONSES, STATE};
use crate::protocol::mrtr::{self, Bound, State, Waits};
use crate::protocol::session::{Answer, Limit, Outcome};

use self::consent::Consent;
pub(crate) use self::conversation::Conversation;

/// What is called, as texts name it: "tool `search` of server `github`".
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// `tool`, `prompt`, `resource`.
    pub(crate) kind: &'static str,
    /// Its name on its server.
    pub(crate) name: &'a str,
    /// The server's configuration key.
    pub(crate) server: &'a str,
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, server } = self;
        write!(f, "{kind} `{name}` of server `{server}`")
    }
}

/// Makes one call of a method that may ask, and sees it to what its caller is to be told: its outcome,
/// or an `input_required` result for a modern host. `tool` is given for a call of one.
pub(crate) async fn call(
    context: &Context,
    subject: Subject<'_>,
    tool: Option<&ToolRecord>,
    mut want: CallWant,
) -> Result<Outcome, Told> {
    let recording = Recording::begin(context, subject, &mut want);
    let outcome = attempt(context, subject, tool, want).await;
    recording.end(outcome)
}

async fn attempt(
    context: &Context,
    subject: Subject<'_>,
    tool: Option<&ToolRecord>,
    mut want: CallWant,
) -> Result<Outcome, Told> {
    let call = Call { context, subject, tool };
    if let Some(state) = brought(&want) {
        return Box::pin(call.resume(want, &state)).await;
    }
    let confirmed = match tool {
        Some(tool) => match consent::needed(context, &want, tool)? {
            None => false,
            Some(question) => {
                let upstream = want.params.member(STATE);
                match Box::pin(call.consent(&want, question, upstream)).await? {
                    Consent::Given => true,
                    Consent::Asks(result) => return Ok(Ok(result)),
                }
            }
        },
        None => false,
    };
    let called = context.upstreams.call_with(&mut want).await;
    // The common case needs no words.
    if let Ok(Called::Done(Answer::Complete(result))) = called {
        return Ok(Ok(result));
    }
    Box::pin(call.go_on(want, called, confirmed)).await
}

/// Goes on with a call that is under way already, of a task that an earlier daemon began.
pub(super) async fn go_on(
    context: &Context,
    subject: Subject<'_>,
    want: &mut CallWant,
    ongoing: Ongoing,
) -> Result<Outcome, Told> {
    let call = Call { context, subject, tool: None };
    let recording = Recording::begin(context, subject, want);
    let outcome = call.run(want, Box::new(Conversation::new(Box::new(ongoing), want))).await;
    recording.end(outcome)
}

/// Sees a run of a script of ours to its outcome, or to where its host has to answer. `begin` is called
/// unless the host brings the state of one back.
pub(super) async fn script(
    context: &Context,
    subject: Subject<'_>,
    want: CallWant,
    begin: impl FnOnce(&CallWant) -> Running,
) -> Result<Outcome, Told> {
    let call = Call { context, subject, tool: None };
    if let Some(state) = brought(&want) {
        return Box::pin(call.resume(want, &state)).await;
    }
    let ongoing = Box::new(Ongoing::Script(Box::new(begin(&want))));
    call.run(&want, Box::new(Conversation::new(ongoing, &want))).await
}

/// The state of ours that a modern host brings back.
fn brought(want: &CallWant) -> Option<String> {
    if !matches!(want.caller.answers.present(), Answers::Inline { .. })
        || memmem::find(want.params.as_bytes(), STATE.as_bytes()).is_none()
    {
        return None;
    }
    want.params.member_str(STATE).filter(|state| mrtr::is_ours(state))
}

/// A call and what its texts and its states say of it.
#[derive(Clone, Copy)]
struct Call<'a> {
    context: &'a Context,
    subject: Subject<'a>,
    tool: Option<&'a ToolRecord>,
}

impl Call<'_> {
    /// What a state of ours is bound to.
    fn bound(want: &CallWant) -> Bound<'_> {
        Bound {
            method: want.method.as_str(),
            server: &want.server,
            params: &want.params,
            owner: owner(want),
        }
    }

    /// Goes on with what came of the first attempt.
    async fn go_on(
        self,
        want: CallWant,
        called: Result<Called, Refused>,
        confirmed: bool,
    ) -> Result<Outcome, Told> {
        let ongoing = match called {
            Ok(Called::Open(ongoing)) => ongoing,
            Ok(Called::Done(Answer::InputRequired(result))) => {
                if let Answers::Inline { declared } = want.caller.answers.present()
                    && questions::undeclared(&result, declared).is_none()
                {
                    return self.pass(&want, result, confirmed);
                }
                match self.context.upstreams.rounds(want.clone(), &result) {
                    Ok(ongoing) => Box::new(ongoing),
                    Err(why) => return self.outcome(Ok(Answer::Invalid(why))),
                }
            }
            Ok(Called::Done(Answer::Error(error))) => match self.urls_first(&want, &error) {
                Some(ongoing) => ongoing,
                None => return Ok(Err(error)),
            },
            Ok(Called::Done(answer)) => return self.outcome(Ok(answer)),
            Err(refused) => return self.outcome(Err(refused)),
        };
        self.run(&want, Box::new(Conversation::new(ongoing, &want))).await
    }

    /// A server of 2025-11-25 wants urls to be seen to, and the request again then (-32042, elicitation
    /// page): questions and another attempt for everybody to whom the error itself says nothing. `None`
    /// where that is not so, or nobody could see to them.
    fn urls_first(self, want: &CallWant, error: &RpcError) -> Option<Box<Ongoing>> {
        let urls = questions::url_required(error)?;
        let can = |declared| questions::sees_urls(declared, error);
        let asked = match want.caller.answers.present() {
            Answers::Line { declared, .. } if can(declared) => false,
            Answers::Inline { declared } | Answers::Script { declared, .. } if can(declared) => {
                true
            }
            Answers::Task(_) => true,
            _ => self.context.broker.keeps(),
        };
        let questions = urls.into_iter().enumerate().map(|(at, url)| (format!("url{at}"), url));
        let asking = Asking { questions: questions.collect(), state: None }.write();
        let upstreams = &self.context.upstreams;
        let again = asked.then(|| upstreams.rounds_unless(want.clone(), &asking, error.clone()));
        again?.ok().map(Box::new)
    }

    /// A question of a modern upstream for a modern host. Where the call was confirmed, our state
    /// stands in front of the upstream's, so that it need not be confirmed again.
    fn pass(self, want: &CallWant, result: RawJson, confirmed: bool) -> Result<Outcome, Told> {
        if !confirmed {
            return Ok(Ok(result));
        }
        let mut object = Object::read_or_empty(Some(&result));
        let kept = self.context.parked.keep(
            Self::bound(want),
            Waits::Confirmed,
            object.get(STATE).cloned(),
            None,
        );
        object.set(STATE, kept.map_err(|limit| self.no_room(&limit))?);
        Ok(Ok(object.write()))
    }

    /// A host brings a state of ours.
    async fn resume(self, want: CallWant, text: &str) -> Result<Outcome, Told> {
        let parked = &self.context.parked;
        let state = match parked.open(Self::bound(&want), text) {
            Ok(state) => state,
            Err(unfit) => return Ok(Err(answers::bad_state(unfit.to_string()))),
        };
        match (&state.waits, parked.fetch(&state)) {
            (_, Fetched::Again) => Ok(Err(answers::bad_state(
                "the `requestState` was brought back before, and is good for one request; wait for \
                 the answer to that, or make the call anew without it",
            ))),
            (Waits::Open, Fetched::Call(mut conversation)) => {
                conversation.meet(&want);
                self.run(&want, conversation).await
            }
            (_, Fetched::GaveWay) => Err(self.gave_way()),
            (Waits::Open, Fetched::Gone | Fetched::Nothing) => Err(self.gone()),
            (Waits::Confirmation, Fetched::Nothing) => {
                match consent::read(&want.params, self.subject)? {
                    Some(()) => self.confirmed(want, state).await,
                    None => self.ask_again(want, state).await,
                }
            }
            (Waits::Confirmed, Fetched::Nothing) => self.confirmed(want, state).await,
            // Nothing has been done, so that asking once more does no harm.
            (Waits::Confirmation | Waits::Confirmed, Fetched::Gone | Fetched::Call(_)) => {
                self.ask_again(want, state).await
            }
        }
    }

    /// Makes a call that was confirmed, with what its upstream wanted back and the answers to it.
    async fn confirmed(self, mut want: CallWant, state: State) -> Result<Outcome, Told> {
        let mut params = Object::read_or_empty(Some(&want.params));
        if state.waits == Waits::Confirmation {
            // They were for us.
            params.remove(RESPONSES);
        }
        params.remove(STATE);
        if let Some(upstream) = state.upstream {
            params.set(STATE, upstream);
        }
        want.params = params.write();
        let called = self.context.upstreams.call_with(&mut want).await;
        self.go_on(want, called, true).await
    }

    /// Has a call confirmed for which the answer is missing or unknown.
    async fn ask_again(self, want: CallWant, state: State) -> Result<Outcome, Told> {
        let question = match self.tool {
            Some(tool) => consent::needed(self.context, &want, tool)?,
            None => None,
        };
        let Some(question) = question else { return self.confirmed(want, state).await };
        match self.consent(&want, question, state.upstream.clone()).await? {
            Consent::Given => self.confirmed(want, state).await,
            Consent::Asks(result) => Ok(Ok(result)),
        }
    }

    /// Sees a conversation to its end, or to where its host has to answer.
    async fn run(
        self,
        want: &CallWant,
        mut conversation: Box<Conversation>,
    ) -> Result<Outcome, Told> {
        use conversation::Stop;
        match conversation.go_on(self.context, self.subject).await {
            Stop::Over(answered) => self.outcome(answered),
            Stop::Cannot(error) => Ok(Err(error)),
            Stop::Asks(asking) => {
                let kept = self.context.parked.keep(
                    Self::bound(want),
                    Waits::Open,
                    None,
                    Some(conversation),
                );
                let state = kept.map_err(|limit| self.no_room(&limit))?;
                Ok(Ok(Asking { questions: asking, state: Some(state) }.write()))
            }
        }
    }

    fn outcome(self, answered: Result<Answer, Refused>) -> Result<Outcome, Told> {
        answer_outcome(&self.subject, self.subject.kind == "tool", answered)
    }

    fn no_room(self, limit: &Limit) -> Told {
        let text = format!(
            "{} asks something, and {} calls wait for answers of hosts already, as many as the \
             setting {} admits; it was told to cancel, but may have taken effect",
            self.subject, limit.value, limit.setting
        );
        Told::new(Reason::Busy, text)
    }

    fn gave_way(self) -> Told {
        let limit = Limit::time("elicit.turn", self.context.settings().elicit.turn);
        let text = format!(
            "the call of {} was cancelled: server `{}` has one call at a time, and others waited for \
             their turn longer than the setting {} admits ({}); it may have taken effect; make the call \
             anew without `requestState`, and answer sooner, or give the server `scope = \"session\"`",
            self.subject, self.subject.server, limit.setting, limit.value
        );
        Told::new(Reason::Timeout, text)
    }

    fn gone(self) -> Told {
        let text = format!(
            "outcome unknown: the mcpx daemon that held the call of {} while it waited for answers \
             has ended; it may or may not have taken effect, check before trying again",
            self.subject
        );
        Told::new(Reason::OutcomeUnknown, text)
    }
}

/// What the host of a call calls itself, where a host makes it: by its session, or by what it declared.
fn host_of(want: &CallWant) -> Option<String> {
    let by_host = want.caller.host.is_some()
        || !matches!(want.caller.answers, Answers::Nobody | Answers::Told { .. });
    by_host.then(|| want.caller.label.to_string())
}

/// Whose a call is, where something stands for that: the project, whose instance it uses.
fn owner(want: &CallWant) -> &str {
    want.caller.project.as_ref().and_then(|project| project.to_str()).unwrap_or_default()
}
