//! What is heard of one call before its outcome, on its way to its caller: progress and log messages,
//! in order and bounded. Under a flood the newest progress wins (F37), and the oldest messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

#[derive(Debug, Default)]
struct Queue {
    notes: VecDeque<CallNote>,
    /// Who hears it instead.
    onward: Option<ProgressSender>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
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
    let shared = Arc::new(Shared { queue: Mutex::default(), wants, arrived: Notify::new() });
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

    /// From now on another caller hears it, and what waits still: the call goes on, and it is another
    /// request that waits for it.
    pub fn lead_to(&self, onward: &Self) {
        if Arc::ptr_eq(&self.0, &onward.0) {
            return;
        }
        let waiting = {
            let mut queue = self.0.queue();
            queue.onward = Some(onward.clone());
            std::mem::take(&mut queue.notes)
        };
        for note in waiting {
            onward.pass(note);
        }
    }

    fn pass(&self, note: CallNote) {
        match note {
            CallNote::Progress(params) if self.wants_progress() => self.send(params),
            CallNote::Progress(_) => {}
            CallNote::Log(message) => self.log(message),
        }
    }

    fn add(&self, note: CallNote, room: impl FnOnce(&mut VecDeque<CallNote>) -> bool) {
        let mut queue = self.0.queue();
        if let Some(onward) = queue.onward.clone() {
            drop(queue);
            return onward.pass(note);
        }
        if !room(&mut queue.notes) {
            return;
        }
        queue.notes.push_back(note);
        drop(queue);
        self.0.arrived.notify_one();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.0.queue().notes.pop_front()
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

    /// F37: a call that another request waits for tells that one, in order.
    #[test]
    fn f37_the_next_request_hears_the_rest() {
        let ((first, receiver), (second, after)) =
            (channel(Wants::progress(4)), channel(Wants::progress(4)));
        first.send(RawJson::write(&1));
        first.lead_to(&second);
        first.lead_to(&first);
        first.send(RawJson::write(&2));
        assert!(rest(&receiver).is_empty());
        assert_eq!(rest(&after), ["1", "2"]);
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
