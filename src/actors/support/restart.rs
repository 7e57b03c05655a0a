//! How often a permanent child may be started again. Pure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// More than `most` restarts within `window` end the parent.
#[derive(Debug)]
pub struct Intensity {
    most: usize,
    window: Duration,
    recent: VecDeque<Instant>,
}

impl Intensity {
    /// A window that is empty.
    pub fn new(most: u32, window: Duration) -> Self {
        Self { most: most as usize, window, recent: VecDeque::new() }
    }

    /// Notes a restart at `now`; false where it is one too many.
    pub fn admit(&mut self, now: Instant) -> bool {
        while self.recent.front().is_some_and(|at| now.duration_since(*at) > self.window) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        self.recent.len() <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_restarts_are_forgotten() {
        let start = crate::transport::clock::now();
        let mut intensity = Intensity::new(2, Duration::from_secs(10));
        assert!(intensity.admit(start));
        assert!(intensity.admit(start + Duration::from_secs(1)));
        assert!(!intensity.admit(start + Duration::from_secs(2)));
        assert!(intensity.admit(start + Duration::from_secs(30)));
    }
}
