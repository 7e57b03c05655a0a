//! The states of a task and the ways between them: one truth for both forms of tasks, core of
//! 2025-11-25 (basic/utilities/tasks) and extension of 2026-07-28 (SEP-2663). How each spells them is
//! the affair of [`crate::protocol::edge::tasks`].

use super::jsonrpc::RawJson;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its key towards hosts; of its own in all the life of the task.
    pub key: String,
    /// Its key towards whoever asked it.
    pub asked_as: String,
    /// The question as an entry of `inputRequests`: method and parameters.
    pub request: RawJson,
}

/// One task from its creation to its end. Every change says whether there was one.
#[derive(Debug, Clone)]
pub struct Machine {
    status: Status,
    message: Option<String>,
    open: Vec<OpenQuestion>,
    /// Every key that hosts have seen, so that none is used for two questions (SEP-2663).
    used: Vec<String>,
    outcome: Option<Outcome>,
    updated_ms: u64,
}

impl Machine {
    /// A task that begins at `now_ms` (milliseconds since 1970, as all times here).
    pub const fn new(now_ms: u64) -> Self {
        Self {
            status: Status::Working,
            message: None,
            open: Vec::new(),
            used: Vec::new(),
            outcome: None,
            updated_ms: now_ms,
        }
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

    /// Its call asks something; `asked_as` is the key by which it wants the answer.
    pub fn asked(&mut self, now_ms: u64, asked_as: &str, request: RawJson) -> bool {
        if self.status.is_terminal() || self.open.iter().any(|open| open.asked_as == asked_as) {
            return false;
        }
        let key = self.unused(asked_as);
        self.used.push(key.clone());
        self.open.push(OpenQuestion { key, asked_as: asked_as.to_owned(), request });
        self.go(now_ms, Status::InputRequired)
    }

    fn unused(&self, wanted: &str) -> String {
        let mut key = wanted.to_owned();
        let mut number = 1_u64;
        while self.used.contains(&key) {
            number += 1;
            key = format!("{wanted}-{number}");
        }
        key
    }

    /// Its call no longer wants the answer that it asked for under this key.
    pub fn withdrawn(&mut self, now_ms: u64, asked_as: &str) -> bool {
        let before = self.open.len();
        self.open.retain(|open| open.asked_as != asked_as);
        before != self.open.len() && self.settle(now_ms)
    }

    /// A host answers the question `key`: the answer goes to its asker under the key that is given
    /// back. `None` where no such question waits: never asked, answered already, withdrawn (T-06).
    pub fn answered(&mut self, now_ms: u64, key: &str) -> Option<String> {
        let at = self.open.iter().position(|open| open.key == key)?;
        let open = self.open.remove(at);
        self.settle(now_ms);
        Some(open.asked_as)
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
        self.outcome = Some(outcome);
        self.go(now_ms, next)
    }

    /// It is given up; one that has ended stays as it is.
    pub fn cancelled(&mut self, now_ms: u64, why: &str) -> bool {
        if !self.status.may_become(Status::Cancelled) {
            return false;
        }
        self.message = Some(why.to_owned());
        self.go(now_ms, Status::Cancelled)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::jsonrpc::{Code, RpcError};

    fn question() -> RawJson {
        RawJson::write(&serde_json::json!({ "method": "roots/list" }))
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

    #[test]
    fn t06_answered_questions_vanish_and_unknown_keys_are_ignored() {
        let mut task = Machine::new(10);
        assert!(task.asked(11, "a", question()));
        assert!(task.asked(12, "b", question()));
        assert_eq!(task.status(), Status::InputRequired);
        assert_eq!(task.answered(13, "nothing"), None);
        assert_eq!(task.answered(14, "a").as_deref(), Some("a"));
        assert_eq!(task.answered(15, "a"), None);
        assert_eq!((task.status(), task.open().len()), (Status::InputRequired, 1));
        assert!(task.withdrawn(16, "b"));
        assert_eq!((task.status(), task.updated_ms()), (Status::Working, 16));
    }

    /// SEP-2663: a key means one question in all the life of a task.
    #[test]
    fn t06_a_key_that_is_used_again_is_another_one() {
        let mut task = Machine::new(0);
        for shown in ["name", "name-2", "name-3"] {
            assert!(task.asked(1, "name", question()));
            assert_eq!(task.open()[0].key, shown);
            assert_eq!(task.answered(1, shown).as_deref(), Some("name"));
        }
        assert!(task.asked(1, "name", question()));
        assert!(!task.asked(1, "name", question()), "it waits already");
    }

    #[test]
    fn t10_an_end_is_an_end() {
        let mut done = Machine::new(0);
        assert!(done.asked(1, "a", question()));
        assert!(done.finished(2, Ok(RawJson::empty_object())));
        assert_eq!((done.status(), done.open().len()), (Status::Completed, 0));
        assert!(!done.cancelled(3, "x") && !done.finished(3, error()));
        assert!(!done.asked(3, "b", question()) && !done.says(3, None));
        assert_eq!(done.updated_ms(), 2);
        let mut failed = Machine::new(0);
        assert!(failed.finished(1, error()));
        assert_eq!((failed.status(), failed.message()), (Status::Failed, Some("broken")));
        let mut cancelled = Machine::new(0);
        assert!(cancelled.cancelled(1, "by request") && !cancelled.finished(2, error()));
        assert!(cancelled.outcome().is_none());
    }
}
