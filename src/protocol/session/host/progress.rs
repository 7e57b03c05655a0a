//! Progress of one call towards its host: the host's own token, and no flood (F37).
//!
//! A call may say a few things one right after the other; only what goes on like that is thinned
//! out. Bias: a host that shows steps must see all of a short call's, so the first `burst` notes are
//! never held. What is held to the end goes out together with the answer, and the TypeScript SDK
//! forgets the call when it reads the answer, before it has told of a note in the same chunk.

use std::time::{Duration, Instant};

use crate::protocol::jsonrpc::RawJson;

/// How fast notifications of one call may follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgressPace {
    /// In the long run one in this time (`host.progress_interval`); zero for no limit.
    pub interval: Duration,
    /// This many may follow each other without a pause (`host.progress_burst`).
    pub burst: u32,
}

impl ProgressPace {
    /// Every notification at once.
    pub const FREE: Self = Self { interval: Duration::ZERO, burst: 1 };
}

/// What may be said of one call, and when.
#[derive(Debug)]
pub(super) struct Throttle {
    token: RawJson,
    /// The greatest value that was taken.
    value: Option<f64>,
    /// How many may go out now, as of `since`; one more with each interval from there.
    credit: u32,
    since: Option<Instant>,
    /// The last one that came too early, and when it may go out.
    held: Option<(RawJson, Instant)>,
}

/// What becomes of a notification.
#[derive(Debug, PartialEq)]
pub(super) enum Passage {
    /// It goes out.
    Now,
    /// It waits; one that waited before it is dropped.
    Held,
    /// Its value is none, or no greater than the last one: the pages of all revisions say that the
    /// value must increase with each notification.
    Dropped,
}

impl Throttle {
    pub(super) fn new(token: RawJson) -> Self {
        Self { token, value: None, credit: 0, since: None, held: None }
    }

    /// The host's token.
    pub(super) fn token(&self) -> &RawJson {
        &self.token
    }

    /// Takes what the upstream says.
    pub(super) fn offer(&mut self, now: Instant, pace: ProgressPace, params: &RawJson) -> Passage {
        let value = params.member("progress").and_then(|value| value.read::<f64>().ok());
        let Some(value) = value.filter(|value| self.value.is_none_or(|last| *value > last)) else {
            return Passage::Dropped;
        };
        self.value = Some(value);
        match self.spend(now, pace) {
            None => {
                self.held = None;
                Passage::Now
            }
            Some(due) => {
                self.held = Some((params.clone(), due));
                Passage::Held
            }
        }
    }

    /// What waited long enough.
    pub(super) fn take_due(&mut self, now: Instant, pace: ProgressPace) -> Option<RawJson> {
        if self.deadline().is_none_or(|due| now < due) {
            return None;
        }
        // It has waited for its credit, so there is one, unless the setting grew meanwhile.
        self.spend(now, pace);
        self.held.take().map(|(params, _)| params)
    }

    /// What still waits when the call ends: it goes out before the answer, so that the host has
    /// seen the last value.
    pub(super) fn into_rest(self) -> (RawJson, Option<RawJson>) {
        (self.token, self.held.map(|(params, _)| params))
    }

    /// When something that waits is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.held.as_ref().map(|(_, due)| *due)
    }

    /// Takes one credit; where there is none, when there will be one.
    fn spend(&mut self, now: Instant, pace: ProgressPace) -> Option<Instant> {
        if pace.interval.is_zero() {
            return None;
        }
        let since = *self.since.get_or_insert_with(|| {
            self.credit = pace.burst;
            now
        });
        let passed = now.saturating_duration_since(since).as_nanos() / pace.interval.as_nanos();
        let earned = u32::try_from(passed).unwrap_or(u32::MAX);
        self.credit = self.credit.saturating_add(earned);
        if self.credit >= pace.burst {
            self.credit = pace.burst;
            self.since = Some(now);
        } else {
            self.since = Some(since + pace.interval * earned);
        }
        match self.credit.checked_sub(1) {
            Some(left) => {
                self.credit = left;
                None
            }
            None => self.since.map(|since| since + pace.interval),
        }
    }
}
