//! Counters of one server: relaxed atomics in a block of their own, so that counting a call takes no
//! lock and no memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dashmap::DashMap;

use super::chronicle::now_ms;
use super::ending::Ending;

/// Restarts of a server that are remembered with their reasons.
const HISTORY: usize = 8;

/// Upper bounds of the latency histogram, in microseconds: what answers at once, what a person waits
/// for, what takes its time.
pub(super) const BOUNDS_US: [u64; 16] = [
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
];

/// Why an instance ended that was not to end yet, or had to be started once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// It was usable and ended by itself.
    Crashed,
    /// It did not become usable.
    StartFailed,
    /// It is opened again in another way: it had ended on the probe.
    Reopened,
    /// An operator asked for it.
    Operator,
}

impl Restart {
    /// All of them, in the order in which they are counted and shown.
    pub(super) const ALL: [Self; 4] =
        [Self::Crashed, Self::StartFailed, Self::Reopened, Self::Operator];

    /// The value of the label `reason`.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Crashed => "crashed",
            Self::StartFailed => "start_failed",
            Self::Reopened => "reopened",
            Self::Operator => "operator",
        }
    }
}

/// One server's counters, over all of its generations and instances.
#[derive(Debug, Default)]
pub struct Meter {
    endings: [AtomicU64; Ending::ALL.len()],
    /// Calls by how long they took; the last one holds what is beyond every bound.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
    starts: AtomicU64,
    restarts: [AtomicU64; Restart::ALL.len()],
    /// The last restarts; never on the path of a call.
    history: Mutex<VecDeque<(u64, String)>>,
}

impl Meter {
    /// A call is over. What was cancelled, or answered with a question, says nothing about how long the
    /// server takes.
    pub fn ended(&self, ending: Ending, took: Duration) {
        bump(&self.endings, ending as usize, 1);
        if ending.is_timed() {
            let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            bump(&self.buckets, BOUNDS_US.partition_point(|bound| *bound < us), 1);
            self.sum_us.fetch_add(us, Ordering::Relaxed);
        }
    }

    /// An instance became usable.
    pub fn started(&self) {
        self.starts.fetch_add(1, Ordering::Relaxed);
    }

    /// An instance has to be started again; `text` says what happened, in a phrase.
    pub fn restarted(&self, why: Restart, text: &str) {
        bump(&self.restarts, why as usize, 1);
        let mut history = self.remembered();
        if history.len() >= HISTORY {
            history.pop_front();
        }
        history.push_back((now_ms(), format!("{}: {text}", why.word())));
    }

    /// The last restarts, oldest first: when, in milliseconds since 1970, and why.
    pub(super) fn history(&self) -> Vec<(u64, String)> {
        self.remembered().iter().cloned().collect()
    }

    fn remembered(&self) -> MutexGuard<'_, VecDeque<(u64, String)>> {
        // Nothing panics inside the lock.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that ended so.
    pub fn calls(&self, ending: Ending) -> u64 {
        read(&self.endings, ending as usize)
    }

    pub(super) fn starts(&self) -> u64 {
        self.starts.load(Ordering::Relaxed)
    }

    pub(super) fn restarts(&self, why: Restart) -> u64 {
        read(&self.restarts, why as usize)
    }

    /// How many calls took at most each bound, those beyond the last included at the end.
    pub(super) fn cumulated(&self) -> [u64; BOUNDS_US.len() + 1] {
        let mut sum = 0;
        self.buckets.each_ref().map(|bucket| {
            sum += bucket.load(Ordering::Relaxed);
            sum
        })
    }

    pub(super) fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us.load(Ordering::Relaxed))
    }
}

fn bump(counters: &[AtomicU64], at: usize, by: u64) {
    if let Some(counter) = counters.get(at) {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

fn read(counters: &[AtomicU64], at: usize) -> u64 {
    counters.get(at).map_or(0, |counter| counter.load(Ordering::Relaxed))
}

/// The counters of all servers, by configuration key; those of a server that is configured no more stay
/// until the daemon ends, so that they go on where it comes back.
#[derive(Debug, Clone, Default)]
pub struct Meters(Arc<DashMap<Box<str>, Arc<Meter>>>);

impl Meters {
    /// Those of one server.
    pub fn of(&self, server: &str) -> Arc<Meter> {
        if let Some(meter) = self.0.get(server) {
            return Arc::clone(&meter);
        }
        Arc::clone(&self.0.entry(server.into()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_ending_and_length() {
        let meter = Meter::default();
        for (ending, ms) in [
            (Ending::Done, 1),
            (Ending::Done, 3),
            (Ending::ToolError, 700),
            (Ending::Timeout, 400_000),
            (Ending::Cancelled, 5),
            (Ending::Asked, 5),
        ] {
            meter.ended(ending, Duration::from_millis(ms));
        }
        assert_eq!((meter.calls(Ending::Done), meter.calls(Ending::Cancelled)), (2, 1));
        let cumulated = meter.cumulated();
        assert_eq!(cumulated[0], 1, "a bound is included");
        assert_eq!((cumulated[2], cumulated[9], cumulated[15], cumulated[16]), (2, 3, 3, 4));
        assert_eq!(meter.sum(), Duration::from_millis(400_704));
        for (at, ending) in Ending::ALL.into_iter().enumerate() {
            assert_eq!(ending as usize, at, "{ending:?}");
        }
        for (at, why) in Restart::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, at, "{why:?}");
        }
    }

    #[test]
    fn a_server_keeps_its_counters() {
        let meters = Meters::default();
        meters.of("a").started();
        for number in 0..9 {
            meters.of("a").restarted(Restart::Operator, &number.to_string());
        }
        assert_eq!((meters.of("a").starts(), meters.of("b").starts()), (1, 0));
        assert_eq!(meters.of("a").restarts(Restart::Operator), 9);
        let history = meters.of("a").history();
        assert_eq!((history.len(), history[0].1.as_str()), (8, "operator: 1"));
    }
}
