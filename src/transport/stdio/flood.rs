//! So much of something a second.

use std::time::{Duration, Instant};

/// The unit of all rates.
pub(super) const SECOND: Duration = Duration::new(1, 0);

/// Counts what came within the current second.
#[derive(Debug)]
pub struct Rate {
    limit: usize,
    since: Option<Instant>,
    used: usize,
}

impl Rate {
    /// `limit` a second.
    pub const fn new(limit: usize) -> Self {
        Self { limit, since: None, used: 0 }
    }

    /// It is `now`; whether another second has begun.
    pub fn at(&mut self, now: Instant) -> bool {
        let over = self.since.is_none_or(|since| now.saturating_duration_since(since) >= SECOND);
        if over {
            self.since = Some(now);
            self.used = 0;
        }
        over
    }

    /// So much came.
    pub const fn add(&mut self, amount: usize) {
        self.used = self.used.saturating_add(amount);
    }

    /// Whether this second's share is used up.
    pub const fn is_over(&self) -> bool {
        self.used >= self.limit
    }

    /// When the current second is over.
    pub fn ends(&self) -> Option<Instant> {
        self.since?.checked_add(SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::clock;

    #[test]
    fn a_share_is_given_anew_each_second() {
        let mut rate = Rate::new(3);
        let start = clock::now();
        assert!(rate.at(start) && !rate.is_over());
        rate.add(3);
        assert!(!rate.at(start + SECOND / 2) && rate.is_over());
        assert_eq!(rate.ends(), Some(start + SECOND));
        assert!(rate.at(start + SECOND) && !rate.is_over());
    }
}
