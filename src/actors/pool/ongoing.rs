//! A call that is not over: its upstream wants something first.
//!
//! Held by the task of the call, or parked while a host thinks. Costs nothing where nobody asks.

use std::fmt;
use std::sync::Arc;

use ractor::ActorRef;

use super::caller::{CallScope, InFlight};
use super::directory::{Lease, Load};
use super::rounds::Rounds;
use super::upstream_task::UpstreamTask;
use crate::actors::exec::Running;
use crate::actors::instance::{CallNews, InstanceMsg, NewsQueue, Said};
use crate::actors::upstreams::Refused;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions::{Question, Reply, unanswered};
use crate::protocol::session::Answer;

/// What came of a call.
#[derive(Debug)]
pub enum Called {
    /// It is over.
    Done(Answer),
    /// It is not.
    Open(Box<Ongoing>),
}

impl Called {
    /// The outcome, with nobody there to ask.
    pub async fn unattended(self) -> Result<Answer, Refused> {
        let mut ongoing = match self {
            Self::Done(answer) => return Ok(answer),
            Self::Open(ongoing) => ongoing,
        };
        loop {
            match ongoing.next().await {
                News::Asked { key, question } => ongoing.reply(&key, unanswered(&question)),
                News::Withdrawn { .. } | News::Status(_) => {}
                News::Done(answered) => return answered,
            }
        }
    }
}

/// A call whose upstream asks, or works on a task. Dropping it cancels the call upstream and answers
/// what is open with `cancel`.
#[derive(Debug)]
pub enum Ongoing {
    /// A legacy upstream asks in the course of the call.
    Asked(AskedCall),
    /// A modern upstream asks between two attempts.
    Rounds(Box<Rounds>),
    /// It works on a task.
    Task(Box<UpstreamTask>),
    /// It is no upstream's: a script runs.
    Script(Box<Running>),
}

/// What is heard of it.
pub enum News {
    /// The upstream asks. Several questions may be open at once.
    Asked {
        /// By which it is answered.
        key: String,
        /// It.
        question: Question,
    },
    /// The upstream no longer wants an answer.
    Withdrawn {
        /// To which question.
        key: String,
    },
    /// The state of the upstream's task has changed: its task object in newest shape.
    Status(RawJson),
    /// It is over; always the last.
    Done(Result<Answer, Refused>),
}

impl fmt::Debug for News {
    /// Without what an upstream asks and answers, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked { key, question } => {
                f.debug_struct("Asked").field("key", key).field("method", &question.method).finish()
            }
            Self::Withdrawn { key } => f.debug_struct("Withdrawn").field("key", key).finish(),
            Self::Status(_) => f.write_str("Status"),
            Self::Done(answered) => f.debug_tuple("Done").field(&answered.is_ok()).finish(),
        }
    }
}

impl Ongoing {
    /// The next that is heard of it. Cancel-safe; may be left unpolled for long.
    pub async fn next(&mut self) -> News {
        match self {
            Self::Asked(call) => call.next().await,
            Self::Rounds(rounds) => rounds.next().await,
            Self::Task(task) => task.next().await,
            Self::Script(run) => run.next().await,
        }
    }

    /// The instance of which it has a place that others may wait for.
    pub fn load(&self) -> Option<&Arc<Load>> {
        match self {
            Self::Asked(call) => call.lease.as_ref().map(Lease::load),
            Self::Rounds(_) | Self::Task(_) | Self::Script(_) => None,
        }
    }

    /// Answers a question; one that is not open is ignored.
    pub fn reply(&mut self, key: &str, reply: Reply) {
        match self {
            Self::Asked(call) => call.reply(key, reply),
            Self::Rounds(rounds) => rounds.reply(key, reply),
            Self::Task(task) => task.reply(key, reply),
            Self::Script(run) => run.reply(key, reply),
        }
    }
}

/// See [`Ongoing::Asked`].
#[derive(Debug)]
pub struct AskedCall {
    news: Arc<NewsQueue>,
    guard: InFlight,
    /// Held as long as the call: an instance that waits for an answer is in use.
    lease: Option<Lease>,
    scope: Option<CallScope>,
}

impl AskedCall {
    pub(super) const fn new(
        news: Arc<NewsQueue>,
        guard: InFlight,
        lease: Lease,
        scope: Option<CallScope>,
    ) -> Self {
        Self { news, guard, lease: Some(lease), scope }
    }

    fn actor(&self) -> &ActorRef<InstanceMsg> {
        self.guard.actor()
    }

    async fn next(&mut self) -> News {
        match self.news.next().await {
            CallNews::Asked { number, question } => {
                News::Asked { key: number.to_string(), question }
            }
            CallNews::Withdrawn { number } => News::Withdrawn { key: number.to_string() },
            CallNews::Done(answer) => {
                self.guard.over();
                self.lease = None;
                self.scope = None;
                News::Done(Ok(answer))
            }
        }
    }

    fn reply(&self, key: &str, reply: Reply) {
        if let Ok(number) = key.parse() {
            // With a dead instance the question is gone, too.
            let _ = self.actor().cast(InstanceMsg::Reply { number, said: Said(reply) });
        }
    }
}
