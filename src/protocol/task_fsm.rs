//! The states of a task and the ways between them: one truth for both forms of tasks, core of
//! 2025-11-25 (basic/utilities/tasks) and extension of 2026-07-28 (SEP-2663). How each spells them is
//! the affair of [`crate::protocol::edge::tasks`].

use super::model::questions::Question;
use super::model::tool_result;
use super::session::Outcome;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Its call runs.
    Working,
    /// Its call waits for answers.
    InputRequired,
    /// It ended with a result, also one that says `isError`.
    Completed,
    /// It ended with an error.
    Failed,
    /// It was given up.
    Cancelled,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Working, Self::InputRequired, Self::Completed, Self::Failed, Self::Cancelled];

    /// The word on the wire, the same in both forms.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether nothing comes after it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Whether a task may go from here to `next` (2025-11-25 tasks page, "Task Status Lifecycle").
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Working => !matches!(next, Self::Working),
            Self::InputRequired => !matches!(next, Self::InputRequired),
            Self::Completed | Self::Failed | Self::Cancelled => false,
        }
    }
}

/// A question that waits for its answer.
#[derive(Debug, Clone)]
pub struct OpenQuestion {
    /// By which it is answered; of its own in all the life of the task (SEP-2663).
    pub key: String,
    /// It.
    pub question: Question,
}

/// One task from its creation to its end. Every change says whether there was one.
#[derive(Debug, Clone)]
pub struct Machine {
    status: Status,
    message: Option<String>,
    open: Vec<OpenQuestion>,
    /// How many questions there have been.
    asked: u64,
    outcome: Option<Outcome>,
    /// Its result says `isError`, which 2025-11-25 calls failed.
    wrong: bool,
    updated_ms: u64,
}

impl Machine {
    /// A task that begins at `now_ms` (milliseconds since 1970, as all times here).
    pub const fn new(now_ms: u64) -> Self {
        Self {
            status: Status::Working,
            message: None,
            open: Vec::new(),
            asked: 0,
            outcome: None,
            wrong: false,
            updated_ms: now_ms,
        }
    }

    /// One that an earlier daemon kept. What it asked then will be asked anew.
    pub fn kept(
        status: Status,
        message: Option<String>,
        updated_ms: u64,
        outcome: Option<&Outcome>,
    ) -> Self {
        let wrong = says_error(outcome);
        let status = if status.is_terminal() { status } else { Status::Working };
        Self { status, message, wrong, ..Self::new(updated_ms) }
    }

    /// Where it stands.
    pub const fn status(&self) -> Status {
        self.status
    }

    /// What it says of itself.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The questions that wait, in the order in which they were asked.
    pub fn open(&self) -> &[OpenQuestion] {
        &self.open
    }

    /// What it ended with; nothing where it was cancelled or goes on.
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// When it last changed.
    pub const fn updated_ms(&self) -> u64 {
        self.updated_ms
    }

    /// Its call asks something; the key by which it is answered, or none where it has ended.
    pub fn asked(&mut self, now_ms: u64, question: Question) -> Option<String> {
        if self.status.is_terminal() {
            return None;
        }
        self.asked += 1;
        let key = format!("q{}", self.asked);
        self.open.push(OpenQuestion { key: key.clone(), question });
        self.go(now_ms, Status::InputRequired);
        Some(key)
    }

    /// The question `key` is answered, or its call no longer wants an answer; false where it does not
    /// wait: never asked, answered already (T-06).
    pub fn settled(&mut self, now_ms: u64, key: &str) -> bool {
        let before = self.open.len();
        self.open.retain(|open| open.key != key);
        before != self.open.len() && self.settle(now_ms)
    }

    /// Working again once nothing waits.
    fn settle(&mut self, now_ms: u64) -> bool {
        if self.open.is_empty() {
            self.go(now_ms, Status::Working);
        } else {
            self.updated_ms = self.updated_ms.max(now_ms);
        }
        true
    }

    /// It says something new of itself.
    pub fn says(&mut self, now_ms: u64, message: Option<String>) -> bool {
        if self.status.is_terminal() || self.message == message {
            return false;
        }
        self.message = message;
        self.updated_ms = self.updated_ms.max(now_ms);
        true
    }

    /// Its call has ended: with a result it is completed, with an error failed (T-10).
    pub fn finished(&mut self, now_ms: u64, outcome: Outcome) -> bool {
        let next = if outcome.is_ok() { Status::Completed } else { Status::Failed };
        if !self.status.may_become(next) {
            return false;
        }
        self.message = outcome.as_ref().err().map(|error| error.message.clone());
        self.wrong = says_error(Some(&outcome));
        self.outcome = Some(outcome);
        self.go(now_ms, next)
    }

    /// A word on how it ended, where its outcome alone does not say enough.
    pub fn explain(&mut self, message: String) {
        self.message = Some(message);
    }

    /// Whether it ended with a result that says `isError`.
    pub const fn is_wrong(&self) -> bool {
        self.wrong
    }

    /// It is given up; one that has ended stays as it is.
    pub fn cancelled(&mut self, now_ms: u64, why: &str) -> bool {
        if !self.status.may_become(Status::Cancelled) {
            return false;
        }
        self.message = Some(why.to_owned());
        self.go(now_ms, Status::Cancelled)
    }

    /// Its outcome is kept elsewhere from now on.
    pub fn forget_outcome(&mut self) {
        self.outcome = None;
    }

    fn go(&mut self, now_ms: u64, next: Status) -> bool {
        if next.is_terminal() {
            self.open.clear();
        }
        self.updated_ms = self.updated_ms.max(now_ms);
        self.status = next;
        true
    }
}

fn says_error(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Ok(result)) if tool_result::is_error(result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::jsonrpc::{Code, RawJson, RpcError};

    fn question() -> Question {
        Question::new("roots/list", None).unwrap()
    }

    fn error() -> Outcome {
        Err(RpcError::new(Code::InternalError, "broken"))
    }

    #[test]
    fn t01_the_ways_between_states_are_those_of_the_page() {
        use Status::{Cancelled, Completed, Failed, InputRequired, Working};
        for from in Status::ALL {
            assert_eq!(Status::parse(from.as_str()), Some(from));
            for to in Status::ALL {
                let allowed = match from {
                    Working => matches!(to, InputRequired | Completed | Failed | Cancelled),
                    InputRequired => matches!(to, Working | Completed | Failed | Cancelled),
                    Completed | Failed | Cancelled => false,
                };
                assert_eq!(from.may_become(to), allowed, "{from:?} to {to:?}");
            }
        }
        assert_eq!(Status::parse("done"), None);
    }

    /// T-06, SEP-2663: answered questions vanish, unknown keys are ignored, and no key is used twice.
    #[test]
    fn t06_questions_and_their_keys() {
        let mut task = Machine::new(10);
        let first = task.asked(11, question()).unwrap();
        let second = task.asked(12, question()).unwrap();
        assert_eq!(task.status(), Status::InputRequired);
        assert!(!task.settled(13, "nothing"));
        assert!(task.settled(14, &first) && !task.settled(15, &first));
        assert_eq!((task.status(), task.open().len()), (Status::InputRequired, 1));
        assert!(task.settled(16, &second));
        assert_eq!((task.status(), task.updated_ms()), (Status::Working, 16));
        let third = task.asked(17, question()).unwrap();
        assert!(third != first && third != second);
    }

    #[test]
    fn t10_an_end_is_an_end() {
        let mut done = Machine::new(0);
        let key = done.asked(1, question()).unwrap();
        assert!(done.finished(2, Ok(RawJson::empty_object())));
        assert_eq!((done.status(), done.open().len()), (Status::Completed, 0));
        assert!(!done.cancelled(3, "x") && !done.finished(3, error()));
        assert!(done.asked(3, question()).is_none() && !done.says(3, None));
        assert!(!done.settled(3, &key));
        assert_eq!(done.updated_ms(), 2);
        let mut failed = Machine::new(0);
        assert!(failed.finished(1, error()));
        assert_eq!((failed.status(), failed.message()), (Status::Failed, Some("broken")));
        let mut cancelled = Machine::new(0);
        assert!(cancelled.cancelled(1, "by request") && !cancelled.finished(2, error()));
        assert!(cancelled.outcome().is_none());
    }
}
