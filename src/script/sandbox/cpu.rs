//! How much processor time a run has used.

use std::time::Duration;

use nix::time::ClockId;

/// Processor time of this process, from a moment on, with a limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cpu {
    start: Duration,
    limit: Duration,
}

impl Cpu {
    /// Counts from now on.
    pub(super) fn from_now(limit_ms: u64) -> Self {
        Self { start: used(), limit: Duration::from_millis(limit_ms) }
    }

    /// The same with more time.
    pub(super) fn with_more(self, more_ms: u64) -> Self {
        Self { limit: self.limit + Duration::from_millis(more_ms), ..self }
    }

    /// What may still be used; `None` when nothing may.
    pub(super) fn left(&self) -> Option<Duration> {
        let left = (self.start + self.limit).saturating_sub(used());
        Some(left).filter(|left| !left.is_zero())
    }

    /// The limit.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }
}

/// Without such a clock nothing is ever used: the daemon's limit on the whole run remains.
fn used() -> Duration {
    ClockId::CLOCK_PROCESS_CPUTIME_ID.now().map(Duration::from).unwrap_or_default()
}
