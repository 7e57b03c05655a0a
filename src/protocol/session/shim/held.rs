//! What waits for a daemon, in order, bounded in number and bytes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::protocol::jsonrpc::{Id, scan};
use crate::protocol::session::Limit;
use crate::protocol::session::timers::after;

/// One message that waits.
#[derive(Debug)]
struct Waiting {
    /// The id of a request; `None` for everything else.
    id: Option<Id>,
    frame: Bytes,
    since: Instant,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Held {
    queue: VecDeque<Waiting>,
    bytes: usize,
    max_frames: usize,
    max_bytes: usize,
}

impl Held {
    pub(super) fn new(max_frames: usize, max_bytes: usize) -> Self {
        Self { queue: VecDeque::new(), bytes: 0, max_frames, max_bytes }
    }

    /// Puts a message at the end; where there is no room, gives it back with the limit it met.
    pub(super) fn push(
        &mut self,
        now: Instant,
        id: Option<Id>,
        frame: Bytes,
    ) -> Result<(), (Limit, Bytes)> {
        if self.queue.len() >= self.max_frames {
            return Err((Limit::count("shim.hold_frames", self.max_frames), frame));
        }
        if self.bytes.saturating_add(frame.len()) > self.max_bytes {
            return Err((Limit::count("shim.hold_bytes", self.max_bytes), frame));
        }
        self.bytes += frame.len();
        self.queue.push_back(Waiting { id, frame, since: now });
        Ok(())
    }

    /// Takes out the request with this id: its host gave it up. `initialize` cannot be cancelled.
    pub(super) fn remove(&mut self, id: &Id) {
        let stays = |waiting: &Waiting| {
            waiting.id.as_ref() != Some(id) || scan::head(&waiting.frame).method_is("initialize")
        };
        self.queue.retain(stays);
        self.bytes = self.queue.iter().map(|waiting| waiting.frame.len()).sum();
    }

    /// All of it, in order.
    pub(super) fn take_all(&mut self) -> VecDeque<Bytes> {
        self.bytes = 0;
        std::mem::take(&mut self.queue).into_iter().map(|waiting| waiting.frame).collect()
    }

    /// One message that has waited for `grace`.
    pub(super) fn take_over(&mut self, now: Instant, grace: Duration) -> Option<Bytes> {
        self.due(grace).filter(|due| *due <= now)?;
        let waiting = self.queue.pop_front()?;
        self.bytes -= waiting.frame.len();
        Some(waiting.frame)
    }

    /// When the first of them has waited for `grace`.
    pub(super) fn due(&self, grace: Duration) -> Option<Instant> {
        after(self.queue.front()?.since, grace)
    }

    /// How many requests wait.
    pub(super) fn requests(&self) -> usize {
        self.queue.iter().filter(|waiting| waiting.id.is_some()).count()
    }
}
