//! The questions that are open, those that an earlier daemon lost, and what of both is not on disk yet.
//!
//! Pure: times and ids are given to it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tokio::sync::oneshot;

use crate::control::types::{QuestionKind, QuestionState, QuestionView};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions::{Question, Reply};
use crate::transport::store::Change;

/// See the module.
#[derive(Default)]
pub(super) struct Table {
    open: BTreeMap<String, Entry>,
    lost: BTreeMap<String, (QuestionView, Instant)>,
    unwritten: BTreeSet<String>,
    last: u64,
}

/// A question that waits.
pub(super) struct Entry {
    /// As it is shown.
    pub(super) view: QuestionView,
    /// As it was asked.
    pub(super) question: Question,
    /// Who waits.
    pub(super) reply: oneshot::Sender<Reply>,
    /// When it was asked, by the clock of its deadlines.
    pub(super) asked: Instant,
    /// When its time is up.
    pub(super) deadline: Instant,
    /// Up to when it is kept while nobody sees it.
    pub(super) unseen_until: Option<Instant>,
    /// The call whose own caller sees it.
    pub(super) watch: Option<u64>,
    /// Whether that one answers it: then it does not matter who else listens.
    pub(super) attended: bool,
    /// Its place in the order.
    pub(super) number: u64,
}

impl Entry {
    fn due(&self) -> Instant {
        self.unseen_until.map_or(self.deadline, |until| until.min(self.deadline))
    }

    /// As it is shown, with the end that it has now. Counted from when it was asked: two looks at one
    /// question show one time.
    fn shown(&self) -> QuestionView {
        let kept = self.due().saturating_duration_since(self.asked);
        let kept = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
        let expires_at = self.view.asked_at.saturating_add(kept);
        QuestionView { expires_at, ..self.view.clone() }
    }
}

impl Table {
    /// How many are open.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether an id is taken.
    pub(super) fn has(&self, id: &str) -> bool {
        self.open.contains_key(id) || self.lost.contains_key(id)
    }

    /// Adds one under the id of its view.
    pub(super) fn open(&mut self, mut entry: Entry) {
        self.last += 1;
        entry.number = self.last;
        self.unwritten.insert(entry.view.id.clone());
        self.open.insert(entry.view.id.clone(), entry);
    }

    /// Takes an open one out.
    pub(super) fn take(&mut self, id: &str) -> Option<Entry> {
        let entry = self.open.remove(id)?;
        self.unwritten.insert(id.to_owned());
        Some(entry)
    }

    /// One that is open.
    pub(super) fn get(&self, id: &str) -> Option<&Entry> {
        self.open.get(id)
    }

    /// An open url question of this server, by the id that the server gave it.
    pub(super) fn of_elicitation(&self, server: &str, elicitation: &str) -> Option<String> {
        let meant = |view: &QuestionView| {
            view.kind == QuestionKind::Url
                && view.server == server
                && view.params.member_str("elicitationId").as_deref() == Some(elicitation)
        };
        self.open.values().find(|entry| meant(&entry.view)).map(|entry| entry.view.id.clone())
    }

    /// One of an earlier daemon, until `until`.
    pub(super) fn lose(&mut self, view: QuestionView, until: Instant) {
        self.unwritten.insert(view.id.clone());
        self.lost.insert(view.id.clone(), (view, until));
    }

    /// Whether this one was lost.
    pub(super) fn is_lost(&self, id: &str) -> bool {
        self.lost.contains_key(id)
    }

    /// The ids of those that are open.
    pub(super) fn ids(&self) -> Vec<String> {
        self.open.keys().cloned().collect()
    }

    /// All of them as they are shown, lost ones first, oldest first; `seen_by` limits it to the questions
    /// of one call.
    pub(super) fn views(&self, seen_by: Option<u64>) -> Vec<QuestionView> {
        let mut lost: Vec<_> = self.lost.values().map(|(view, _)| view).collect();
        lost.sort_by_key(|view| view.asked_at);
        let lost = lost.into_iter().filter(|_| seen_by.is_none()).cloned();
        let seen = |entry: &&Entry| seen_by.is_none_or(|call| entry.watch == Some(call));
        let mut open: Vec<_> = self.open.values().filter(seen).collect();
        open.sort_by_key(|entry| entry.number);
        lost.chain(open.into_iter().map(Entry::shown)).collect()
    }

    /// Somebody listens: what nobody saw is kept for its whole time.
    pub(super) fn seen(&mut self) {
        for entry in self.open.values_mut() {
            entry.unseen_until = None;
        }
    }

    /// Nobody listens any more.
    pub(super) fn unseen(&mut self, until: Instant) {
        for entry in self.open.values_mut().filter(|entry| !entry.attended) {
            entry.unseen_until = Some(until);
        }
    }

    /// When something is next due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let lost = self.lost.values().map(|(_, until)| *until);
        self.open.values().map(Entry::due).chain(lost).min()
    }

    /// Takes out those whose time is up; lost ones fall silently.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Entry> {
        let forgotten: Vec<String> = ids(&self.lost, |(_, until)| *until <= now);
        for id in forgotten {
            self.lost.remove(&id);
            self.unwritten.insert(id);
        }
        let due: Vec<String> = ids(&self.open, |entry| entry.due() <= now);
        due.iter().filter_map(|id| self.take(id)).collect()
    }

    /// What is to be written.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        let unwritten = std::mem::take(&mut self.unwritten);
        let kept = |id: &str| {
            let lost = || self.lost.get(id).map(|(view, _)| view);
            self.open.get(id).map(|entry| &entry.view).or_else(lost)
        };
        let change = |key: String| match kept(&key) {
            Some(view) => Change::Put { key, value: RawJson::write(view).as_bytes().to_vec() },
            None => Change::Remove { key },
        };
        unwritten.into_iter().map(change).collect()
    }
}

fn ids<T>(map: &BTreeMap<String, T>, wanted: impl Fn(&T) -> bool) -> Vec<String> {
    map.iter().filter(|(_, value)| wanted(value)).map(|(id, _)| id.clone()).collect()
}

/// A record of an earlier daemon as a question that was lost; `None` where it cannot be read.
pub(super) fn lost(record: &[u8], expires_at: u64) -> Option<QuestionView> {
    let view: QuestionView = serde_json::from_slice(record).ok()?;
    if view.state == QuestionState::Lost {
        return Some(view);
    }
    let fate = match &view.task {
        // It may have been asked before the call was made, during it, or by a server on its own.
        None => "the daemon ended before it was answered; whether anything was done is not known \
                 here, so look before you call again"
            .to_owned(),
        // A task may have been gone on with, and ask anew.
        Some(task) => format!(
            "the daemon ended before it was answered; `mcpx tasks get {task}` says what became of \
             its task"
        ),
    };
    let (state, fate) = (QuestionState::Lost, Some(fate));
    Some(QuestionView { state, expires_at, fate, ..view })
}
