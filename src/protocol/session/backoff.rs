//! How long a server rests after a failed start (P-08).

use std::time::Duration;

/// A cool-down that grows by `step` with each failure up to `max`; `max` is the cap whatever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// What each failure adds (`plumbing.restart_backoff_step`).
    pub step: Duration,
    /// The longest rest (`plumbing.restart_backoff_max`).
    pub max: Duration,
}

impl Backoff {
    /// The rest after `failures` failures in a row. Up to half a step of it is taken off by `jitter`
    /// (two random bytes from the caller), so that servers which fell together do not come back
    /// together; the cap is never passed.
    pub fn delay(&self, failures: u32, jitter: [u8; 2]) -> Duration {
        let grown = self.step.saturating_mul(failures).min(self.max);
        let off =
            self.step.min(grown) / 2 * u32::from(u16::from_be_bytes(jitter)) / u32::from(u16::MAX);
        grown.saturating_sub(off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P-08: grows by the step, capped by the setting itself, also below 30 s.
    #[test]
    fn p08_grows_by_step_up_to_max() {
        let second = Duration::from_secs(1);
        let backoff = Backoff { step: second * 2, max: second * 5 };
        let plain: Vec<_> = (0..5).map(|n| backoff.delay(n, [0, 0]).as_secs()).collect();
        assert_eq!(plain, [0, 2, 4, 5, 5]);
        assert_eq!(backoff.delay(u32::MAX, [0, 0]), second * 5);
        let small = Backoff { step: second * 2, max: second };
        assert_eq!(small.delay(1, [0, 0]), second);
    }

    /// P-08: jitter only shortens, and by no more than half a step.
    #[test]
    fn p08_jitter_shortens() {
        let backoff = Backoff { step: Duration::from_secs(2), max: Duration::from_secs(30) };
        assert_eq!(backoff.delay(3, [0xff, 0xff]), Duration::from_secs(5));
        let some = backoff.delay(3, [0x80, 0]);
        assert!(some > Duration::from_secs(5) && some < Duration::from_secs(6), "{some:?}");
        assert_eq!(backoff.delay(0, [0xff, 0xff]), Duration::ZERO);
    }
}
