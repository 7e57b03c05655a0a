//! What is heard of one call before its outcome, on its way to its caller: progress and log messages,
//! in order and bounded. Under a flood the newest progress wins (F37), and the oldest messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use crate::actors::upstreams::HostId;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::logging::LogMessage;
use crate::protocol::session::host::{HostNote, HostSession};
use crate::protocol::session::pending::LogWant;
use crate::protocol::session::{CallKey, HostRequest};
use crate::settings::typed::CallSettings;

/// Something heard of a call.
#[derive(Debug)]
pub enum CallNote {
    /// Progress parameters as the upstream sent them.
    Progress(RawJson),
    /// A log message.
    Log(LogMessage),
}

/// What a caller wants to hear, and how much of it may wait.
#[derive(Debug, Clone, Copy)]
pub struct Wants {
    /// Whether progress is wanted.
    pub progress: bool,
    /// What is wanted of the log.
    pub log: Option<LogWant>,
    /// Notes of progress that may wait (`call.progress_queue`).
    pub progress_queue: usize,
    /// Log messages that may wait (`call.log_queue`).
    pub log_queue: usize,
}

impl Wants {
    /// What a host wants to hear of its request; none where it wants nothing. `host` is its
    /// connection.
    pub(crate) fn of(
        request: &HostRequest,
        host: Option<HostId>,
        limits: &CallSettings,
    ) -> Option<Self> {
        let wanted = request.wants_progress || request.log_level.is_some();
        wanted.then(|| Self {
            progress: request.wants_progress,
            log: request.log_level.map(|level| LogWant { level, host: host.map(|id| id.0) }),
            progress_queue: limits.progress_queue,
            log_queue: limits.log_queue,
        })
    }

    /// Progress and nothing else.
    pub const fn progress(queue: usize) -> Self {
        Self { progress: true, log: None, progress_queue: queue, log_queue: 0 }
    }
}

#[derive(Debug)]
struct Shared {
    notes: Mutex<VecDeque<CallNote>>,
    wants: Wants,
    arrived: Notify,
}

/// The upstream's end.
#[derive(Debug, Clone)]
pub struct ProgressSender(Arc<Shared>);

/// The caller's end.
#[derive(Debug)]
pub struct ProgressReceiver(Arc<Shared>);

/// A queue of at most what `wants` says.
pub fn channel(wants: Wants) -> (ProgressSender, ProgressReceiver) {
    let shared =
        Arc::new(Shared { notes: Mutex::new(VecDeque::new()), wants, arrived: Notify::new() });
    (ProgressSender(Arc::clone(&shared)), ProgressReceiver(shared))
}

impl ProgressSender {
    /// Whether progress is wanted at all.
    pub fn wants_progress(&self) -> bool {
        self.0.wants.progress
    }

    /// What is wanted of the log.
    pub fn log_want(&self) -> Option<LogWant> {
        self.0.wants.log
    }

    /// Adds a note of progress; never waits. In a full queue it takes the place of the last.
    pub fn send(&self, params: RawJson) {
        let most = self.0.wants.progress_queue.max(1);
        let is_progress = |note: &CallNote| matches!(note, CallNote::Progress(_));
        self.add(CallNote::Progress(params), |notes| {
            if notes.iter().filter(|note| is_progress(note)).count() >= most
                && let Some(last) = notes.iter().rposition(is_progress)
            {
                notes.remove(last);
            }
            true
        });
    }

    /// Adds a log message; never waits. A full queue takes no more.
    pub fn log(&self, message: LogMessage) {
        let most = self.0.wants.log_queue;
        let is_log = |note: &&CallNote| matches!(note, CallNote::Log(_));
        self.add(CallNote::Log(message), |notes| notes.iter().filter(is_log).count() < most);
    }

    fn add(&self, note: CallNote, room: impl FnOnce(&mut VecDeque<CallNote>) -> bool) {
        let mut notes = self.0.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !room(&mut notes) {
            return;
        }
        notes.push_back(note);
        drop(notes);
        self.0.arrived.notify_one();
    }
}

impl CallNote {
    /// Tells the host whose request `key` is.
    pub(crate) fn tell(self, session: &mut HostSession, now: Instant, key: CallKey) {
        match self {
            Self::Progress(params) => session.progress(now, key, &params),
            Self::Log(LogMessage { level, params }) => {
                session.host_note(now, HostNote::Log { level, params, about: Some(key) });
            }
        }
    }
}

impl ProgressReceiver {
    /// The next note, if one waits.
    pub fn try_next(&self) -> Option<CallNote> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next note. Never ends by itself: the call's outcome is what ends it. Cancel-safe.
    pub async fn next(&self) -> CallNote {
        loop {
            if let Some(note) = self.try_next() {
                return note;
            }
            self.0.arrived.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::session::LogLevel;

    fn log(number: usize) -> LogMessage {
        LogMessage { level: LogLevel::Info, params: RawJson::write(&number) }
    }

    fn rest(receiver: &ProgressReceiver) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(note) = receiver.try_next() {
            seen.push(match note {
                CallNote::Progress(params) => params.as_str().to_owned(),
                CallNote::Log(message) => format!("log {}", message.params.as_str()),
            });
        }
        seen
    }

    /// F37: a flood is coalesced, keeping the last.
    #[tokio::test]
    async fn f37_the_last_of_a_flood_is_kept() {
        let (sender, receiver) = channel(Wants::progress(4));
        for number in 0..10_000 {
            sender.send(RawJson::write(&number));
        }
        assert_eq!(rest(&receiver), ["0", "1", "2", "9999"]);
        sender.send(RawJson::null());
        assert!(matches!(receiver.next().await, CallNote::Progress(note) if note.is_null()));
    }

    /// H-42: of a flood of messages the first are kept, in their place among the progress.
    #[test]
    fn h42_the_first_of_a_flood_of_messages_are_kept() {
        let log_want = LogWant { level: LogLevel::Info, host: None };
        let wants = Wants { log: Some(log_want), log_queue: 2, ..Wants::progress(1) };
        let (sender, receiver) = channel(wants);
        sender.send(RawJson::write(&"first"));
        for number in 0..1000 {
            sender.log(log(number));
        }
        sender.send(RawJson::write(&"last"));
        assert_eq!(rest(&receiver), ["log 0", "log 1", "\"last\""]);
    }
}
