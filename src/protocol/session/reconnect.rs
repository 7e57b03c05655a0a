//! When an event stream that broke off is opened again, and where it goes on (U-39, F18, F19).
//!
//! The specification (2025-11-25 transports page, "Resumability and Redelivery") has a client rest
//! for as long as the server's `retry` says and then name the last event that it saw. What it leaves
//! open is when to stop: a server that closes every stream at once was once asked 30,000 times in
//! eleven hours. So each end that nothing came before makes the next rest longer, and their number in
//! a row is bounded.
//!
//! **Bias**: a `retry` below a tenth of our own delay is taken for that tenth. A server that means to
//! be asked more often than that is asked too rarely; one that says 0 by mistake is not flooded. And a
//! silent stream that lasted for a while counts as one worth having: proxies close those after a
//! minute.

use std::time::Duration;

/// The settings behind the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// The rest where the server names none (`upstream.sse_reconnect_delay`).
    pub delay: Duration,
    /// Tries in a row that may come to nothing (`upstream.sse_reconnect_attempts`).
    pub attempts: u32,
    /// The rest of a stream that is worth having for ever, once the tries are used up
    /// (`upstream.sse_poll_interval`).
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

    /// An event said where the stream stands. A new id is progress of a stream that is polled
    /// (2025-11-25: a server may close after its first event); the same one again is none.
    pub fn mark(&mut self, id: Option<String>, retry: Option<Duration>) {
        if let Some(id) = id {
            let id = Some(id).filter(|id| !id.is_empty());
            self.fruitful |= !self.standalone && id.is_some() && id != self.last_id;
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
        let worth = self.fruitful || lasted >= rules.delay.saturating_mul(SUSTAINED);
        if worth {
            self.tries = 0;
        }
        self.fruitful = false;
        if self.tries >= rules.attempts {
            return self.standalone.then_some(rules.poll);
        }
        let doublings = self.tries.min(DOUBLINGS);
        self.tries += 1;
        let base = self.retry.map_or(rules.delay, |retry| retry.max(rules.delay / SHARE));
        let rest = base.saturating_mul(2_u32.saturating_pow(doublings));
        Some(if self.standalone { rest.min(rules.poll) } else { rest })
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
            trail.mark(None, retry.map(Duration::from_millis));
            for rest in expected {
                assert_eq!(millis(trail.broke(&rules(), Duration::ZERO)), Some(rest));
            }
            assert_eq!(trail.broke(&rules(), Duration::ZERO), None);
        }
    }

    /// A stream that is polled goes on for as long as each connection brings something new.
    #[test]
    fn u39_progress_starts_again() {
        let mut trail = Trail::default();
        for turn in 0..20 {
            trail.mark(Some(turn.to_string()), None);
            assert_eq!(millis(trail.broke(&rules(), Duration::ZERO)), Some(1000));
        }
        for rest in [Some(2000), Some(4000), None, None] {
            trail.mark(Some("19".to_owned()), None);
            assert_eq!(millis(trail.broke(&rules(), Duration::ZERO)), rest);
        }
        trail.heard();
        assert_eq!(millis(trail.broke(&rules(), Duration::ZERO)), Some(1000));
    }

    /// F19 g: streams that end at once are asked for ever more rarely, and never quickly again; one
    /// that lasted is.
    #[test]
    fn f19_a_stream_that_always_ends_is_polled_slowly() {
        let mut trail = Trail::standalone();
        let mut rest = |lasted| {
            trail.mark(Some("new".to_owned()), Some(Duration::ZERO));
            trail.broke(&rules(), Duration::from_secs(lasted)).unwrap().as_millis()
        };
        let rests: Vec<_> = (0..6).map(|_| rest(1)).collect();
        assert_eq!(rests, [100, 200, 400, 300_000, 300_000, 300_000]);
        assert_eq!(rest(60), 100);
    }

    /// An empty id takes the last one back (WHATWG: the last event id is then the empty string).
    #[test]
    fn an_empty_id_is_none() {
        let mut trail = Trail::default();
        trail.mark(Some("a".to_owned()), None);
        assert_eq!(trail.last_id(), Some("a"));
        trail.mark(Some(String::new()), None);
        assert_eq!(trail.last_id(), None);
    }
}
