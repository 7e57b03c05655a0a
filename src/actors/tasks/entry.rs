//! One task as the table of tasks has it, and as it stands in the store.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::TaskMsg;
use crate::actors::support::slot::Slot;
use crate::protocol::jsonrpc::{RawJson, RpcError};
use crate::protocol::model::questions::Asking;
use crate::protocol::model::tasks::{Detail, Task, moment};
use crate::protocol::model::tool_result;
use crate::protocol::session::Outcome;
use crate::protocol::task_fsm::{Machine, Status};
use crate::transport::clock;

/// What is known of a task but where it stands.
#[derive(Clone, Serialize, Deserialize)]
pub struct Facts {
    /// Its id: whoever knows it may have the task, where it has no owner. So it is a secret, and never
    /// shown whole in events and logs.
    pub id: String,
    /// The session that alone may have it (T-13); none where the id is all it takes.
    pub owner: Option<String>,
    /// What runs, as in "tool `t` of server `s`".
    pub what: String,
    /// The tool, by its server's name for it.
    pub tool: String,
    /// The server, by its configuration key.
    pub server: String,
    /// The host that began it, by its label.
    pub host: String,
    /// When it began, in milliseconds since 1970.
    pub created_ms: u64,
    /// How long it is kept from then on, in milliseconds.
    pub ttl_ms: u64,
    /// The project folder of its caller.
    #[serde(default)]
    pub project: Option<String>,
    /// Its caller speaks a revision of the legacy era.
    #[serde(default)]
    pub legacy: bool,
}

impl Facts {
    /// As much of the id as tells tasks apart in events.
    pub fn short_id(&self) -> &str {
        const SHOWN: usize = 8;
        self.id.get(..SHOWN).unwrap_or_default()
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}… ({})", self.short_id(), self.what)
    }
}

/// A task in the table. Its actor changes it, others look and wait.
pub struct Entry {
    /// What it is.
    pub facts: Facts,
    /// When it is forgotten.
    pub expires: Instant,
    state: watch::Sender<Machine>,
    /// Its server's own task, by which a later daemon may ask after it.
    upstream: OnceLock<String>,
    /// Its record says that, too.
    noted: watch::Sender<bool>,
    pub(super) actor: Slot<TaskMsg>,
    /// Who may put its questions to a host.
    turns: watch::Sender<u64>,
    /// One write of it at a time, so that the last one is what stays.
    writing: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.facts, self.status().as_str())
    }
}

/// Milliseconds since 1970.
pub(super) fn wall_ms() -> u64 {
    u64::try_from(clock::wall().as_millis()).unwrap_or(u64::MAX)
}

impl Entry {
    pub(super) fn new(facts: Facts, machine: Machine) -> Self {
        let end = facts.created_ms.saturating_add(facts.ttl_ms);
        let left = Duration::from_millis(end.saturating_sub(wall_ms()));
        let now = clock::now();
        Self {
            facts,
            expires: now.checked_add(left).unwrap_or(now),
            state: watch::Sender::new(machine),
            upstream: OnceLock::new(),
            noted: watch::Sender::new(false),
            actor: Slot::default(),
            turns: watch::Sender::new(0),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Where it stands.
    pub fn status(&self) -> Status {
        self.state.borrow().status()
    }

    /// What it says of itself.
    pub fn message(&self) -> Option<String> {
        self.state.borrow().message().map(str::to_owned)
    }

    /// The id of the task that its server works on, where it works on one.
    pub fn upstream(&self) -> Option<&str> {
        self.upstream.get().map(String::as_str)
    }

    /// Its server works on this task; whether that is news.
    pub(crate) fn note_upstream(&self, id: &str) -> bool {
        self.upstream.set(id.to_owned()).is_ok()
    }

    /// Its record has been written as it stood.
    pub(super) fn was_kept(&self) {
        if self.upstream().is_some() {
            self.noted.send_replace(true);
        }
    }

    /// Resolves when its record says which task its server works on, or it has ended or asks something.
    pub async fn is_noted(&self) {
        let (mut noted, mut state) = (self.noted.subscribe(), self.watch());
        // Both senders are ours.
        tokio::select! {
            _ = noted.wait_for(|noted| *noted) => {}
            _ = state.wait_for(|machine| machine.status() != Status::Working) => {}
        }
    }

    /// How many questions wait.
    pub fn open_questions(&self) -> usize {
        self.state.borrow().open().len()
    }

    /// Shows every change.
    pub fn watch(&self) -> watch::Receiver<Machine> {
        self.state.subscribe()
    }

    /// Changes it; whether there was a change, which everybody who looks then sees.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Machine, u64) -> bool) -> bool {
        self.state.send_if_modified(|machine| change(machine, wall_ms()))
    }

    /// The task in newest shape, with its questions and without what it ended with. `poll` is how
    /// often its host is to look.
    pub fn task(&self, poll: Duration) -> Task {
        let machine = self.state.borrow();
        let detail = match machine.status() {
            Status::InputRequired => {
                let asked = machine.open().iter();
                let questions = asked.map(|open| (open.key.clone(), open.question.clone()));
                let asking = Asking { questions: questions.collect(), state: None };
                asking.write().member("inputRequests").map(Detail::Asks)
            }
            // As much of the result as says how it ended.
            Status::Completed if machine.is_wrong() => Some(Detail::Result(tool_result::wrong())),
            _ => None,
        };
        Task {
            id: self.facts.id.clone(),
            status: machine.status(),
            message: machine.message().map(str::to_owned),
            created_at: moment(self.facts.created_ms),
            updated_at: moment(machine.updated_ms()),
            ttl_ms: Some(self.facts.ttl_ms),
            poll_ms: u64::try_from(poll.as_millis()).ok(),
            detail: detail.unwrap_or(Detail::Nothing),
        }
    }

    /// The right to put its questions to a host, until somebody else takes it: who comes last has the
    /// host that still listens.
    pub fn take_turn(&self) -> Turn {
        let mut seen = self.turns.subscribe();
        self.turns.send_modify(|turn| *turn += 1);
        let mine = *seen.borrow_and_update();
        Turn { seen, mine }
    }

    /// What it ended with, if that is in memory.
    pub(super) fn outcome_here(&self) -> Option<Outcome> {
        self.state.borrow().outcome().cloned()
    }

    /// Its record as it stands now, or as it will once it has ended with `end`; nothing else writes it
    /// until the guard falls. `None` where the one on disk is to stay: it holds an outcome that is not
    /// in memory any more, or the task has ended otherwise.
    pub(super) async fn record(
        &self,
        end: Option<&Outcome>,
    ) -> Option<(tokio::sync::MutexGuard<'_, ()>, Vec<u8>)> {
        let guard = self.writing.lock().await;
        let record = {
            let mut machine = self.state.borrow().clone();
            if let Some(end) = end
                && !machine.finished(wall_ms(), end.clone())
            {
                return None;
            }
            let has_one = matches!(machine.status(), Status::Completed | Status::Failed);
            if has_one && machine.outcome().is_none() {
                return None;
            }
            let (result, error) = match machine.outcome() {
                Some(Ok(result)) => (Some(result.clone()), None),
                Some(Err(error)) => (None, Some(error.clone())),
                None => (None, None),
            };
            Record {
                layout: LAYOUT,
                facts: self.facts.clone(),
                status: machine.status().as_str().to_owned(),
                message: machine.message().map(str::to_owned),
                updated_ms: machine.updated_ms(),
                upstream: self.upstream().map(str::to_owned),
                result,
                error,
            }
        };
        Some((guard, RawJson::write(&record).as_bytes().to_vec()))
    }
}

/// See [`Entry::take_turn`].
#[derive(Debug)]
pub struct Turn {
    seen: watch::Receiver<u64>,
    mine: u64,
}

impl Turn {
    /// Whether nobody has taken it since.
    pub fn is_mine(&self) -> bool {
        *self.seen.borrow() == self.mine
    }

    /// Resolves when somebody takes it.
    pub async fn is_over(&mut self) {
        let mine = self.mine;
        // The task outlives whoever waits for it; a sender that is gone asks nothing any more.
        let _ = self.seen.wait_for(|turn| *turn != mine).await;
    }
}

/// Raised when an older mcpx could not read what this one writes.
const LAYOUT: u32 = 1;

/// A task in the store.
#[derive(Serialize, Deserialize)]
pub(super) struct Record {
    layout: u32,
    facts: Facts,
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    updated_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

impl Record {
    /// Reads one; none where it cannot be read.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(bytes).ok()?;
        (record.layout == LAYOUT).then_some(record)
    }

    /// What it ended with.
    pub(super) fn outcome(self) -> Option<Outcome> {
        match (self.result, self.error) {
            (Some(result), _) => Some(Ok(result)),
            (None, Some(error)) => Some(Err(error)),
            (None, None) => None,
        }
    }

    /// The task as it was; `None` where its state has no meaning.
    pub(super) fn entry(self) -> Option<Entry> {
        let status = Status::parse(&self.status)?;
        let (facts, message, updated_ms) =
            (self.facts.clone(), self.message.clone(), self.updated_ms);
        let upstream = self.upstream.clone();
        let outcome = self.outcome();
        let machine = Machine::kept(status, message, updated_ms, outcome.as_ref());
        let entry = Entry::new(facts, machine);
        if let Some(id) = upstream {
            entry.note_upstream(&id);
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            id: "0123456789abcdef".to_owned(),
            owner: Some("s".to_owned()),
            what: "tool `t` of server `s`".to_owned(),
            tool: "t".to_owned(),
            server: "s".to_owned(),
            host: "h".to_owned(),
            created_ms: wall_ms(),
            ttl_ms: 60_000,
            project: None,
            legacy: false,
        }
    }

    /// T-14: a record gives back what was put in, to the byte.
    #[tokio::test]
    async fn t14_a_record_keeps_the_text_of_a_result() {
        let text = r#"{"content":[],"n":[1e2,-0,12345678901234567890],"isError":true}"#;
        let result = RawJson::parse(text.to_owned().into()).unwrap();
        let entry = Entry::new(facts(), Machine::new(1));
        assert!(entry.change(|machine, now| machine.finished(now, Ok(result))));
        let (guard, bytes) = entry.record(None).await.unwrap();
        drop(guard);
        entry.change(|machine, _| {
            machine.forget_outcome();
            true
        });
        assert!(entry.record(None).await.is_none(), "what is on disk is not written over");
        let again = Record::read(&bytes).unwrap().entry().unwrap();
        assert_eq!((again.status(), again.facts.id), (Status::Completed, entry.facts.id.clone()));
        assert!(again.state.borrow().is_wrong());
        let outcome = Record::read(&bytes).unwrap().outcome().unwrap();
        assert_eq!(outcome.unwrap().as_str(), text);
    }

    #[test]
    fn ids_are_not_shown_whole() {
        let entry = Entry::new(facts(), Machine::new(1));
        let shown = format!("{entry:?}");
        assert!(shown.contains("01234567…") && !shown.contains("89abcdef"), "{shown}");
    }

    #[tokio::test]
    async fn who_comes_last_asks() {
        let entry = Entry::new(facts(), Machine::new(1));
        let mut first = entry.take_turn();
        assert!(first.is_mine());
        let second = entry.take_turn();
        first.is_over().await;
        assert!(!first.is_mine() && second.is_mine());
    }
}
