//! Every deadline that a session waits for, by name, in one table.
//!
//! A session holds a [`Timers`]; each timer of it is armed or not. The owner asks for the earliest
//! and calls back when it has passed. Callers' limits are not kept one by one: see
//! [`Timer::Calls`].

use std::time::{Duration, Instant};

macro_rules! timers {
    ($($(#[$doc:meta])* $name:ident = $setting:literal;)*) => {
        /// What is waited for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Timer { $($(#[$doc])* $name,)* }

        impl Timer {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The setting that says how long.
            pub const fn setting(self) -> &'static str {
                match self { $(Self::$name => $setting,)* }
            }
        }
    };
}

timers! {
    /// An answer to a stdio `server/discover`; past it `initialize` is sent beside it (U-08).
    ProbePatience = "upstream.probe_patience";
    /// The opening in all; past it the connection is given up.
    Handshake = "upstream.handshake_timeout";
    /// One reading of a list, all pages together (F39).
    List = "upstream.list_timeout";
    /// An answer to a liveness check; past it the upstream counts as wedged (P-13).
    Ping = "upstream.ping_timeout";
    /// A look at the limits of the calls in flight. Armed for the earliest that was known when it
    /// was armed; activity since may have moved it, so that firing early is normal and costs one
    /// scan. The total limit of a call is the other setting behind it.
    Calls = "call.idle_timeout";
    /// The rest of a listen stream that has ended (U-43).
    ListenReopen = "upstream.listen_reopen_delay";
    /// The end of a rest, after which an event stream is opened again (U-39).
    Reconnect = "upstream.sse_reconnect_delay";
    /// A look at event streams whose request may be answered.
    Streams = "upstream.sse_linger";
    /// The daemon's return; past it the shim answers what it has held back (F47).
    ShimGrace = "shim.grace";
}

/// The setting of a call's total limit, beside [`Timer::Calls`].
pub const CALL_TOTAL: &str = "call.total_timeout";

/// The armed timers of one session.
#[derive(Debug, Default)]
pub struct Timers {
    // A handful at most: a scan beats any ordered structure.
    armed: Vec<(Timer, Instant)>,
}

/// `now` and `wait` later; `None` where that is beyond what an instant can hold, which is never.
pub(super) fn after(now: Instant, wait: Duration) -> Option<Instant> {
    now.checked_add(wait)
}

impl Timers {
    /// Arms `timer` anew, whatever it was set to; `None` disarms it.
    pub fn set(&mut self, timer: Timer, at: Option<Instant>) {
        self.clear(timer);
        if let Some(at) = at {
            self.armed.push((timer, at));
        }
    }

    /// Arms `timer` unless it is armed for an earlier moment already.
    pub fn set_earlier(&mut self, timer: Timer, at: Option<Instant>) {
        let Some(at) = at else { return };
        match self.armed.iter_mut().find(|(armed, _)| *armed == timer) {
            Some((_, old)) => *old = at.min(*old),
            None => self.armed.push((timer, at)),
        }
    }

    /// Whether `timer` is armed.
    pub fn is_set(&self, timer: Timer) -> bool {
        self.armed.iter().any(|(armed, _)| *armed == timer)
    }

    /// Disarms `timer`.
    pub fn clear(&mut self, timer: Timer) {
        self.armed.retain(|(armed, _)| *armed != timer);
    }

    /// Disarms all.
    pub fn clear_all(&mut self) {
        self.armed.clear();
    }

    /// Takes one timer that is due, the earliest first.
    pub fn take_due(&mut self, now: Instant) -> Option<Timer> {
        let due = self.armed.iter().filter(|(_, at)| *at <= now);
        let (timer, _) = *due.min_by_key(|(_, at)| *at)?;
        self.clear(timer);
        Some(timer)
    }

    /// When the earliest is due.
    pub fn next(&self) -> Option<Instant> {
        self.armed.iter().map(|(_, at)| *at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_due_first_and_only_once() {
        let start = super::super::some_instant();
        let second = Duration::from_secs(1);
        let mut timers = Timers::default();
        timers.set(Timer::List, after(start, second * 2));
        timers.set(Timer::Ping, after(start, second));
        timers.set_earlier(Timer::Ping, after(start, second * 3));
        assert_eq!(timers.next(), Some(start + second));
        assert_eq!(timers.take_due(start), None);
        assert_eq!(timers.take_due(start + second * 2), Some(Timer::Ping));
        assert_eq!(timers.take_due(start + second * 2), Some(Timer::List));
        assert_eq!(timers.take_due(start + second * 9), None);
        timers.set(Timer::Ping, after(start, Duration::MAX));
        assert_eq!(timers.next(), None);
    }
}
