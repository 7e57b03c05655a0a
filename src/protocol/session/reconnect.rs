//! When an event stream that broke off is opened again, and where it goes on (U-39, F18, F19).
//!
//! The specification (2025-11-25 transports page, "Resumability and Redelivery") has a client rest
//! for as long as the server's `retry` says and then name the last event that it saw. What it leaves
//! open is when to stop: a server that closes every stream at once was once asked 30,000 times in
//! eleven hours. So the ends that nothing came before are bounded in a row; and whatever came, each
//! connection that does not last makes the next rest longer. Events that only say where the stream
//! stands bring nothing.
//!
//! **Bias**: a `retry` below a tenth of our own delay is taken for that tenth, and below our delay it
//! counts for the first rest alone. A server that means to be asked more often than that is asked too
//! rarely; one that says 0 by mistake is not flooded. And a silent stream that lasted for a while
//! counts as one worth having: proxies close those after a minute.

use std::time::Duration;

/// The settings behind the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// The rest where the server names none (`upstream.sse_reconnect_delay`).
    pub delay: Duration,
    /// Tries in a row that may come to nothing (`upstream.sse_reconnect_attempts`).
    pub attempts: u32,
    /// The longest rest, and that of a stream that is worth having for ever once the tries are used
    /// up (`upstream.sse_poll_interval`).
    pub poll: Duration,
}

/// The share of our own delay that a server's `retry` cannot go below.
const SHARE: u32 = 10;
/// A connection of this many times our own delay was worth having, whatever came on it.
const SUSTAINED: u32 = 30;
/// Doublings of a rest; beyond them it would pass any poll interval anyhow.
const DOUBLINGS: u32 = 16;

/// How far one stream has come, over all the connections that carried it.
#[derive(Debug, Clone, Default)]
pub struct Trail {
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Something came on the present connection.
    fruitful: bool,
    /// Connections made again in a row without anything new on one of them.
    tries: u32,
    /// Connections made again in a row since one lasted.
    short: u32,
    /// It is a session's standalone stream.
    standalone: bool,
}

impl Trail {
    /// The trail of a session's standalone stream. That may be silent for long, so an event without
    /// a message is no progress of it.
    pub fn standalone() -> Self {
        Self { standalone: true, ..Self::default() }
    }

    /// A frame came.
    pub const fn heard(&mut self) {
        self.fruitful = true;
    }

    /// An event said where the stream stands. A new id of an event that bears a message is progress;
    /// the same one again is none, and neither is a new one without a message, with which a server
    /// primes a stream that it may close at once (2025-11-25).
    pub fn mark(&mut self, id: Option<String>, retry: Option<Duration>, bears: bool) {
        if let Some(id) = id {
            let id = Some(id).filter(|id| !id.is_empty());
            self.fruitful |= bears && !self.standalone && id.is_some() && id != self.last_id;
            self.last_id = id;
        }
        self.retry = retry.or(self.retry);
    }

    /// Where a new connection is to go on; `None` where the server gave its events no ids.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The connection ended, `lasted` after it was asked for: the rest before the next one, or `None`
    /// when it has been tried often enough. A standalone stream is worth having for as long as its
    /// session lives, and after the tries is asked for rarely.
    pub fn broke(&mut self, rules: &Reconnect, lasted: Duration) -> Option<Duration> {
        let sustained = lasted >= rules.delay.saturating_mul(SUSTAINED);
        if sustained {
            self.short = 0;
        } else if self.fruitful && lasted >= rules.delay {
            // It is no hurry of the server's; the rest is our own from here on.
            self.short = self.short.min(1);
        }
        if self.fruitful || sustained {
            self.tries = 0;
        }
        self.fruitful = false;
        if self.tries >= rules.attempts {
            return self.standalone.then_some(rules.poll);
        }
        let doublings = self.short.min(DOUBLINGS);
        self.tries += 1;
        self.short = self.short.saturating_add(1);
        let first = self.retry.map_or(rules.delay, |retry| retry.max(rules.delay / SHARE));
        let ours = match doublings.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => rules.delay.saturating_mul(2_u32.saturating_pow(doublings)),
        };
        let rest = first.saturating_mul(2_u32.saturating_pow(doublings)).max(ours);
        Some(rest.min(rules.poll.max(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Reconnect {
        let second = Duration::from_secs(1);
        Reconnect { delay: second, attempts: 3, poll: second * 300 }
    }

    fn millis(rest: Option<Duration>) -> Option<u128> {
        rest.map(|rest| rest.as_millis())
    }

    /// U-39: ours where the server names none, the server's where it does, each longer than the one
    /// before while nothing comes, and then no more.
    #[test]
    fn u39_rests_grow_and_end() {
        for (retry, expected) in [(None, [1000, 2000, 4000]), (Some(500), [500, 1000, 2000])] {
            let mut trail = Trail::default();
            trail.mark(None, retry.map(Duration::from_millis), false);
            for rest in expected {
                assert_eq!(millis(trail.broke(&rules(), Duration::ZERO)), Some(rest));
            }
            assert_eq!(trail.broke(&rules(), Duration::ZERO), None);
        }
    }

    /// A stream that is polled goes on for as long as each connection brings something new, and no
    /// faster than our own delay.
    #[test]
    fn u39_progress_starts_again() {
        let (mut trail, second) = (Trail::default(), Duration::from_secs(1));
        for turn in 0..20 {
            trail.mark(Some(turn.to_string()), Some(second / 2), true);
            let rest = if turn == 0 { 500 } else { 1000 };
            assert_eq!(millis(trail.broke(&rules(), second)), Some(rest));
        }
        for rest in [Some(2000), Some(4000), None, None] {
            trail.mark(Some("19".to_owned()), None, true);
            assert_eq!(millis(trail.broke(&rules(), second)), rest);
        }
        trail.heard();
        assert_eq!(millis(trail.broke(&rules(), second)), Some(1000));
    }

    /// U-39: an id without a message is no progress, however new.
    #[test]
    fn u39_priming_is_no_progress() {
        let mut trail = Trail::default();
        let mut rest = |turn: u32| {
            trail.mark(Some(turn.to_string()), Some(Duration::ZERO), false);
            millis(trail.broke(&rules(), Duration::ZERO))
        };
        let rests: Vec<_> = (0..5).map(&mut rest).collect();
        assert_eq!(rests, [Some(100), Some(1000), Some(2000), None, None]);
    }

    /// F19 g: what ends at once is asked for ever more rarely, whatever it brings.
    #[test]
    fn f19_messages_do_not_make_it_fast() {
        for mut trail in [Trail::default(), Trail::standalone()] {
            let mut rest = |turn: u32| {
                trail.mark(Some(turn.to_string()), Some(Duration::ZERO), true);
                trail.heard();
                trail.broke(&rules(), Duration::ZERO).unwrap().as_millis()
            };
            let rests: Vec<_> = (0..12).map(&mut rest).collect();
            assert_eq!(rests[..5], [100, 1000, 2000, 4000, 8000]);
            assert_eq!(rests[10..], [300_000, 300_000]);
        }
    }

    /// F19 g: streams that end at once are asked for ever more rarely, and never quickly again; one
    /// that lasted is.
    #[test]
    fn f19_a_stream_that_always_ends_is_polled_slowly() {
        let mut trail = Trail::standalone();
        let mut rest = |lasted| {
            trail.mark(Some("new".to_owned()), Some(Duration::ZERO), false);
            trail.broke(&rules(), Duration::from_secs(lasted)).unwrap().as_millis()
        };
        let rests: Vec<_> = (0..6).map(|_| rest(1)).collect();
        assert_eq!(rests, [100, 1000, 2000, 300_000, 300_000, 300_000]);
        assert_eq!(rest(60), 100);
    }

    /// An empty id takes the last one back (WHATWG: the last event id is then the empty string).
    #[test]
    fn an_empty_id_is_none() {
        let mut trail = Trail::default();
        trail.mark(Some("a".to_owned()), None, true);
        assert_eq!(trail.last_id(), Some("a"));
        trail.mark(Some(String::new()), None, false);
        assert_eq!(trail.last_id(), None);
    }
}
