//! Progress of one call on its way to its caller: bounded, and under a flood the newest wins (F37).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::protocol::jsonrpc::RawJson;

#[derive(Debug)]
struct Shared {
    notes: Mutex<VecDeque<RawJson>>,
    most: usize,
    arrived: Notify,
}

/// The upstream's end.
#[derive(Debug, Clone)]
pub struct ProgressSender(Arc<Shared>);

/// The caller's end.
#[derive(Debug)]
pub struct ProgressReceiver(Arc<Shared>);

/// A queue of at most `most` notes (`call.progress_queue`).
pub fn channel(most: usize) -> (ProgressSender, ProgressReceiver) {
    let shared = Arc::new(Shared {
        notes: Mutex::new(VecDeque::new()),
        most: most.max(1),
        arrived: Notify::new(),
    });
    (ProgressSender(Arc::clone(&shared)), ProgressReceiver(shared))
}

impl ProgressSender {
    /// Adds a note; never waits. In a full queue it takes the place of the last.
    pub fn send(&self, note: RawJson) {
        let mut notes = self.0.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() >= self.0.most {
            notes.pop_back();
        }
        notes.push_back(note);
        drop(notes);
        self.0.arrived.notify_one();
    }
}

impl ProgressReceiver {
    /// The next note, if one waits.
    pub fn try_next(&self) -> Option<RawJson> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next note. Never ends by itself: the call's outcome is what ends it. Cancel-safe.
    pub async fn next(&self) -> RawJson {
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

    /// F37: a flood is coalesced, keeping the last.
    #[tokio::test]
    async fn f37_the_last_of_a_flood_is_kept() {
        let (sender, receiver) = channel(4);
        for number in 0..10_000 {
            sender.send(RawJson::write(&number));
        }
        let mut seen = Vec::new();
        while let Some(note) = receiver.try_next() {
            seen.push(note.as_str().to_owned());
        }
        assert_eq!(seen, ["0", "1", "2", "9999"]);
        sender.send(RawJson::null());
        assert!(receiver.next().await.is_null());
    }
}
