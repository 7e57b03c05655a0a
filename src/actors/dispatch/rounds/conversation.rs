//! What an upstream asks in the course of one call, and who is asked for it.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::time::Instant;

use super::{Subject, host_of};
use crate::actors::broker::Held;
use crate::actors::dispatch::Context;
use crate::actors::pool::directory::Load;
use crate::actors::pool::ongoing::{News, Ongoing};
use crate::actors::pool::rounds::too_many;
use crate::actors::support::progress::ProgressSender;
use crate::actors::upstreams::{Answers, CallWant, Refused};
use crate::protocol::edge::questions::modern_reply;
use crate::protocol::jsonrpc::RpcError;
use crate::protocol::model::answers::missing_capability;
use crate::protocol::model::questions::{
    Kind, Question, Reply, can_answer, read_responses, unanswered,
};
use crate::protocol::session::Answer;
use crate::transport::clock;

/// A call that is not over, and its open questions. Dropping it gives up both.
pub(crate) struct Conversation {
    ongoing: Box<Ongoing>,
    answers: Answers,
    /// The host, for whoever answers in its place.
    host: Option<String>,
    /// Where progress goes.
    progress: Option<ProgressSender>,
    /// Questions that somebody else than a modern host is asked.
    put: Vec<Put>,
    /// Questions for a modern host.
    open: Vec<(String, Question)>,
    /// How often it has asked, questions at once counted once.
    rounds: usize,
}

struct Put {
    key: String,
    reply: Pin<Box<dyn Future<Output = Reply> + Send>>,
}

/// Why a conversation does not go on by itself.
pub(super) enum Stop {
    /// The call is over.
    Over(Result<Answer, Refused>),
    /// Its host has to answer these.
    Asks(Vec<(String, Question)>),
    /// Its host would have to, and cannot.
    Cannot(RpcError),
}

impl fmt::Debug for Conversation {
    /// Without what is asked and answered, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("ongoing", &self.ongoing).finish_non_exhaustive()
    }
}

impl Conversation {
    pub(super) fn new(ongoing: Box<Ongoing>, want: &CallWant) -> Self {
        Self {
            ongoing,
            answers: want.caller.answers.clone(),
            host: host_of(want),
            progress: want.progress.clone(),
            put: Vec::new(),
            open: Vec::new(),
            rounds: 0,
        }
    }

    /// The instance of which it has a place that others may wait for.
    pub(crate) fn load(&self) -> Option<&Arc<Load>> {
        self.ongoing.load()
    }

    /// Its host has come back with answers. Those that are missing, or are none, stay open.
    pub(super) fn meet(&mut self, want: &CallWant) {
        self.answers = want.caller.answers.clone();
        if let (Some(before), Some(now)) = (&self.progress, &want.progress) {
            before.lead_to(now);
        }
        for (key, answer) in read_responses(&want.params) {
            let Some(at) = self.open.iter().position(|(open, _)| *open == key) else { continue };
            let answer = self.open.get(at).map(|(_, question)| modern_reply(question, answer));
            if let Some(Ok(answer)) = answer {
                self.open.remove(at);
                self.ongoing.reply(&key, Ok(answer));
            }
        }
    }

    /// Goes on until it is over or its host has to answer.
    pub(super) async fn go_on(&mut self, context: &Context, subject: Subject<'_>) -> Stop {
        let settings = context.settings().elicit;
        let mut gathered = Instant::from_std(clock::now()) + settings.gather;
        loop {
            let asks = !self.open.is_empty();
            let step = tokio::select! {
                biased;
                news = self.ongoing.next() => Step::News(news),
                (key, reply) = next_reply(&mut self.put) => Step::Reply(key, reply),
                () = tokio::time::sleep_until(gathered), if asks => Step::Gathered,
            };
            match step {
                Step::News(News::Asked { key, question }) => {
                    if self.open.is_empty() && self.put.is_empty() {
                        self.rounds += 1;
                        gathered = Instant::from_std(clock::now()) + settings.gather;
                    }
                    // The calls of a script are counted one by one, where they are made.
                    let counted = !matches!(*self.ongoing, Ongoing::Script(_));
                    if counted && self.rounds > settings.max_rounds {
                        return Stop::Over(Err(too_many(subject.server, settings.max_rounds)));
                    }
                    if let Err(error) = self.ask(context, subject, key, question) {
                        return Stop::Cannot(error);
                    }
                }
                Step::News(News::Withdrawn { key }) => {
                    self.open.retain(|(open, _)| *open != key);
                    self.put.retain(|put| put.key != key);
                }
                Step::News(News::Status(task)) => {
                    if let Answers::Task(handover) = &self.answers {
                        handover.status(&task);
                    }
                }
                Step::News(News::Done(answered)) => return Stop::Over(answered),
                Step::Reply(key, reply) => self.ongoing.reply(&key, reply),
                // It has become a task meanwhile: whoever follows that is asked.
                Step::Gathered if matches!(self.answers.present(), Answers::Task(_)) => {
                    for (key, question) in std::mem::take(&mut self.open) {
                        if let Err(error) = self.ask(context, subject, key, question) {
                            return Stop::Cannot(error);
                        }
                    }
                }
                Step::Gathered => return Stop::Asks(self.open.clone()),
            }
        }
    }

    /// Puts a question to whoever can answer it. An error says what a modern host would have to declare
    /// for its request to go on.
    fn ask(
        &mut self,
        context: &Context,
        subject: Subject<'_>,
        key: String,
        question: Question,
    ) -> Result<(), RpcError> {
        let reply: Pin<Box<dyn Future<Output = Reply> + Send>> = match self.answers.present() {
            Answers::Task(handover) if handover.can_answer(&question) => {
                let handover = handover.clone();
                Box::pin(async move { handover.put(&question).await })
            }
            Answers::Inline { declared } if can_answer(declared, &question) => {
                self.open.push((key, question));
                return Ok(());
            }
            Answers::Line { line, declared } if can_answer(declared, &question) => {
                let (line, asked) = (line.clone(), self.answers.asks_host());
                Box::pin(async move {
                    let _asked = asked;
                    line.put(&question).await
                })
            }
            Answers::Script { line, declared } if can_answer(declared, &question) => {
                let line = line.clone();
                Box::pin(async move { line.put(&question).await })
            }
            cannot => {
                let held = Held {
                    server: subject.server.to_owned(),
                    what: subject.to_string(),
                    host: self.host.clone(),
                    question: question.clone(),
                    task: match cannot {
                        Answers::Task(handover) => handover.id().map(str::to_owned),
                        _ => None,
                    },
                };
                match context.broker.hold(held) {
                    Ok(answering) => Box::pin(answering),
                    Err(_) => return self.nobody(subject, &key, &question),
                }
            }
        };
        self.put.push(Put { key, reply });
        Ok(())
    }

    /// Nobody can be asked (product.md 8).
    fn nobody(
        &mut self,
        subject: Subject<'_>,
        key: &str,
        question: &Question,
    ) -> Result<(), RpcError> {
        let modern = matches!(self.answers.present(), Answers::Inline { .. });
        let needed = match question.kind() {
            Kind::Form | Kind::Url => false,
            Kind::Sampling => true,
            // A legacy server asks for them when it likes, mostly when it starts, and can do without.
            Kind::Roots => !matches!(*self.ongoing, Ongoing::Asked(_)),
        };
        if modern && needed {
            let asked = std::slice::from_ref(question);
            return Err(missing_capability(&subject.to_string(), asked));
        }
        self.ongoing.reply(key, unanswered(question));
        Ok(())
    }
}

enum Step {
    News(News),
    Reply(String, Reply),
    Gathered,
}

/// The first that is answered; for ever nothing where nobody is asked. Cancel-safe.
async fn next_reply(put: &mut Vec<Put>) -> (String, Reply) {
    poll_fn(|waker| {
        for (at, waiting) in put.iter_mut().enumerate() {
            if let Poll::Ready(reply) = waiting.reply.as_mut().poll(waker) {
                return Poll::Ready((put.swap_remove(at).key, reply));
            }
        }
        Poll::Pending
    })
    .await
}
