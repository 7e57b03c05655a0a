//! Lifecycle events: a ring for late readers, and a bounded feed for each that listens.
//!
//! Owns the ring; no children; ends with the daemon. Never waits for a listener: one that is too
//! slow is told how many events it missed.

use std::sync::Arc;

use serde::Serialize;

/// One lifecycle event (O-01).
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// Its number in this daemon's life, from 1.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at: u64,
    /// `server.started`, `server.warning`, `host.opened`, …; the list stands in `docs/events.md`.
    pub kind: String,
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

/// Emits events; cheap to clone; never waits.
#[derive(Debug, Clone)]
pub struct EventsHandle {
    _shared: Arc<()>,
}
