//! A call whose upstream answered with questions (2026-07-28, basic/patterns/mrtr, client requirements):
//! when all of them have answers it is made again, under another id, until there is an outcome (U-58).
//!
//! Every attempt is a call of its own: between two of them nothing of it is open upstream, and nothing
//! is held. What belongs to one call never meets another: answers and state live in here.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use super::caller;
use super::ongoing::{Called, News, Ongoing};
use crate::actors::upstreams::{CallWant, Reason, Refused, Shared};
use crate::protocol::jsonrpc::{Object, RawJson, RpcError};
use crate::protocol::model::questions::{
    Asking, Kind, Question, RESPONSES, Reply, STATE, cancelled, responses,
};
use crate::protocol::session::{Answer, Limit};

/// See the module.
pub struct Rounds {
    shared: Arc<Shared>,
    /// As it was made first.
    want: CallWant,
    /// The questions of this round, in the order that the upstream gave them.
    open: Vec<Open>,
    /// What it wants back, byte for byte.
    state: Option<RawJson>,
    ready: VecDeque<News>,
    attempt: Option<Attempt>,
    /// The last attempt is not over either.
    inner: Option<Box<Ongoing>>,
    /// How many there were.
    round: usize,
    /// What the call comes to unless all of its first questions are answered with yes.
    unless_agreed: Option<RpcError>,
}

type Attempt = Pin<Box<dyn Future<Output = Result<Called, Refused>> + Send>>;

struct Open {
    key: String,
    kind: Kind,
    answer: Option<RawJson>,
}

impl fmt::Debug for Rounds {
    /// Without what is asked and answered, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rounds").field("server", &self.want.server).finish_non_exhaustive()
    }
}

impl Rounds {
    /// Of a call that was answered with this `input_required` result; an error says what is wrong with
    /// that.
    pub(in crate::actors) fn new(
        shared: &Arc<Shared>,
        want: CallWant,
        result: &RawJson,
    ) -> Result<Self, String> {
        let mut rounds = Self {
            shared: Arc::clone(shared),
            want,
            open: Vec::new(),
            state: None,
            ready: VecDeque::new(),
            attempt: None,
            inner: None,
            round: 0,
            unless_agreed: None,
        };
        rounds.begin(Asking::read(result)?);
        Ok(rounds)
    }

    /// The call is made again only where all that is asked first is agreed to, and else is answered with
    /// this: its server would say nothing else to it.
    pub(in crate::actors) fn unless_agreed(self, error: RpcError) -> Self {
        Self { unless_agreed: Some(error), ..self }
    }

    /// The next that is heard of it. Cancel-safe: what is under way is kept.
    pub(super) async fn next(&mut self) -> News {
        loop {
            if let Some(news) = self.ready.pop_front() {
                return news;
            }
            if let Some(inner) = &mut self.inner {
                return Box::pin(inner.next()).await;
            }
            let Some(attempt) = &mut self.attempt else { return std::future::pending().await };
            let called = attempt.as_mut().await;
            self.attempt = None;
            match called {
                Ok(Called::Done(Answer::InputRequired(result))) => match Asking::read(&result) {
                    Ok(asking) => self.begin(asking),
                    Err(why) => return News::Done(Ok(Answer::Invalid(why))),
                },
                Ok(Called::Done(answer)) => return News::Done(Ok(answer)),
                Ok(Called::Open(ongoing)) => self.inner = Some(ongoing),
                Err(refused) => return News::Done(Err(refused)),
            }
        }
    }

    /// Answers a question; one that is not open is ignored.
    pub(super) fn reply(&mut self, key: &str, reply: Reply) {
        if let Some(inner) = &mut self.inner {
            return inner.reply(key, reply);
        }
        let waits = |open: &&mut Open| open.key == key && open.answer.is_none();
        let Some(open) = self.open.iter_mut().find(waits) else { return };
        let agrees = |answer: &RawJson| answer.member_str("action").as_deref() == Some("accept");
        if !reply.as_ref().is_ok_and(agrees)
            && let Some(error) = self.unless_agreed.take()
        {
            let open = std::mem::take(&mut self.open).into_iter().filter(|open| open.key != key);
            self.ready.extend(open.map(|open| News::Withdrawn { key: open.key }));
            return self.ready.push_back(News::Done(Ok(Answer::Error(error))));
        }
        match (reply, open.kind) {
            (Ok(answer), _) => open.answer = Some(answer),
            // There is no word for an error here; an elicitation has one for no answer.
            (Err(_), Kind::Form | Kind::Url) => open.answer = Some(cancelled()),
            (Err(error), Kind::Sampling | Kind::Roots) => {
                let text = format!(
                    "server `{}` asked for something that could not be given, so the call was not \
                     made again: {}",
                    self.want.server, error.message
                );
                self.open.clear();
                let error = RpcError { message: text, relayed: false, ..error };
                return self.ready.push_back(News::Done(Ok(Answer::Error(error))));
            }
        }
        if self.open.iter().all(|open| open.answer.is_some()) {
            self.call_again();
        }
    }

    fn begin(&mut self, asking: Asking) {
        self.round += 1;
        let most = self.shared.settings().elicit.max_rounds;
        if self.round > most {
            self.ready.push_back(News::Done(Err(too_many(&self.want.server, most))));
            return;
        }
        self.state = asking.state;
        let open = |(key, question): &(String, Question)| Open {
            key: key.clone(),
            kind: question.kind(),
            answer: None,
        };
        self.open = asking.questions.iter().map(open).collect();
        if self.open.is_empty() {
            return self.call_again();
        }
        let asked = asking.questions.into_iter();
        self.ready.extend(asked.map(|(key, question)| News::Asked { key, question }));
    }

    /// With the answers of this round and no other.
    fn call_again(&mut self) {
        let answers: Vec<_> =
            self.open.drain(..).filter_map(|open| Some((open.key, open.answer?))).collect();
        let mut params = Object::read_or_empty(Some(&self.want.params));
        self.unless_agreed = None;
        params.remove(RESPONSES);
        params.remove(STATE);
        if !answers.is_empty() {
            params.set(RESPONSES, responses(&answers));
        }
        if let Some(state) = self.state.take() {
            params.set(STATE, state);
        }
        let (shared, mut want) = (Arc::clone(&self.shared), self.want.clone());
        want.params = params.write();
        self.attempt = Some(Box::pin(async move { caller::call(&shared, &mut want).await }));
    }
}

/// It asks and asks.
pub(in crate::actors) fn too_many(server: &str, most: usize) -> Refused {
    let limit = Limit::count("elicit.max_rounds", most);
    let text = format!(
        "server `{server}` asked again and again: a call may be asked {} times before its outcome \
         (setting elicit.max_rounds); it was given up, but may have taken effect",
        limit.value
    );
    Refused { reason: Reason::Busy, text, limit: Some(limit) }
}
