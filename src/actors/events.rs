//! Lifecycle events: a ring for late readers, and a bounded feed for each that listens (O-01).
//!
//! Not an actor: an emitter never waits and never queues in a mailbox, so a flood of events costs
//! the oldest events and nothing else. A listener that is too slow is told how many it missed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio::sync::broadcast;

use crate::protocol::Notice;
use crate::transport::clock;

/// One lifecycle event.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// Its number in this daemon's life, from 1.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at: u64,
    /// `server.started`, `server.warning`, `host.opened`, …; the list stands in `docs/events.md`.
    pub kind: &'static str,
    /// The upstream concerned, by its configuration key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The instance concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The host concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// One sentence for people.
    pub text: String,
}

impl Event {
    /// An event that concerns nothing but the daemon; add what it concerns with the `of_*` methods.
    pub fn new(kind: &'static str, text: impl Into<String>) -> Self {
        let at = u64::try_from(clock::wall().as_millis()).unwrap_or(u64::MAX);
        Self { seq: 0, at, kind, server: None, instance: None, host: None, text: text.into() }
    }

    /// From what pure code had to say.
    pub fn from_notice(notice: Notice) -> Self {
        Self::new(notice.kind, notice.text)
    }

    /// Concerns this upstream.
    #[must_use]
    pub fn of_server(mut self, key: impl Into<String>) -> Self {
        self.server = Some(key.into());
        self
    }

    /// Concerns this instance.
    #[must_use]
    pub fn of_instance(mut self, id: impl Into<String>) -> Self {
        self.instance = Some(id.into());
        self
    }

    /// Concerns this host.
    #[must_use]
    pub fn of_host(mut self, id: impl Into<String>) -> Self {
        self.host = Some(id.into());
        self
    }

    /// Whether a person should look at it.
    fn is_warning(&self) -> bool {
        const WARNINGS: [&str; 6] =
            ["warning", "stale", "parked", "crashed", "failed", "stop_timeout"];
        WARNINGS.iter().any(|ending| self.kind.ends_with(ending))
    }
}

#[derive(Debug)]
struct Shared {
    ring: Mutex<Ring>,
    feed: broadcast::Sender<Arc<Event>>,
    /// Events that listeners have missed, together.
    missed: AtomicU64,
}

#[derive(Debug)]
struct Ring {
    events: VecDeque<Arc<Event>>,
    most: usize,
    next: u64,
}

/// Emits and reads events; cheap to clone; never waits.
#[derive(Debug, Clone)]
pub struct EventsHandle(Arc<Shared>);

impl EventsHandle {
    /// A ring of `most` events (`events.ring`); a listener may lag by as many.
    pub fn new(most: usize) -> Self {
        let most = most.max(1);
        let (feed, _) = broadcast::channel(most);
        let ring = Ring { events: VecDeque::new(), most, next: 1 };
        Self(Arc::new(Shared { ring: Mutex::new(ring), feed, missed: AtomicU64::new(0) }))
    }

    /// Numbers, keeps, logs and passes on one event.
    pub fn emit(&self, mut event: Event) {
        let mut ring = self.0.ring.lock().unwrap_or_else(PoisonError::into_inner);
        event.seq = ring.next;
        ring.next += 1;
        log(&event);
        let event = Arc::new(event);
        if ring.events.len() >= ring.most {
            ring.events.pop_front();
        }
        ring.events.push_back(Arc::clone(&event));
        // Sent under the lock, so that listeners see the order of the numbers. Nobody listening is
        // no fault.
        let _ = self.0.feed.send(event);
    }

    /// The kept events after number `after`, oldest first, and the feed of those that follow.
    pub fn listen(&self, after: u64) -> (Vec<Arc<Event>>, broadcast::Receiver<Arc<Event>>) {
        let ring = self.0.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = ring.events.iter().filter(|event| event.seq > after).cloned().collect();
        (kept, self.0.feed.subscribe())
    }

    /// A listener was told that it missed so many.
    pub fn missed(&self, count: u64) {
        self.0.missed.fetch_add(count, Ordering::Relaxed);
    }

    /// How many there were, and how many listeners have missed.
    pub fn counts(&self) -> (u64, u64) {
        let ring = self.0.ring.lock().unwrap_or_else(PoisonError::into_inner);
        (ring.next - 1, self.0.missed.load(Ordering::Relaxed))
    }
}

fn log(event: &Event) {
    let server = event.server.as_deref();
    let instance = event.instance.as_deref();
    let host = event.host.as_deref();
    if event.is_warning() {
        tracing::warn!(kind = event.kind, server, instance, host, "{}", event.text);
    } else {
        tracing::info!(kind = event.kind, server, instance, host, "{}", event.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_bounded_and_numbers_go_on() {
        let events = EventsHandle::new(2);
        for text in ["a", "b", "c"] {
            events.emit(Event::new("daemon.test", text));
        }
        let (kept, mut feed) = events.listen(0);
        let texts: Vec<_> = kept.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(texts, ["b", "c"]);
        events.emit(Event::new("daemon.test", "d"));
        assert_eq!(feed.try_recv().unwrap().seq, 4);
    }
}
