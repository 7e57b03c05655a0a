//! When a server may be started, and when it rests. Pure: time and chance are arguments.
//!
//! Bias: a single death costs a caller nothing (its next call starts the server at once), while a
//! server that keeps failing is tried ever more rarely and then only when somebody asks for it.

use std::time::{Duration, Instant};

use crate::protocol::session::backoff::Backoff;
use crate::settings::typed::PoolSettings;

/// The settings behind the rules.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The rest after a failure (P-08).
    pub backoff: Backoff,
    /// Only a life of this length clears the failures before it (F29).
    pub sustained: Duration,
    /// Failures in a row after which the server is parked (P-14).
    pub park_after: u32,
}

impl From<&PoolSettings> for Rules {
    fn from(pool: &PoolSettings) -> Self {
        Self {
            backoff: Backoff { step: pool.backoff_step, max: pool.backoff_max },
            sustained: pool.sustained_uptime,
            park_after: pool.park_after,
        }
    }
}

/// What a pool does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Starts whatever is wanted.
    #[default]
    Fine,
    /// Starts what is wanted when this time has come.
    Backoff(Instant),
    /// Starts nothing by itself.
    Parked {
        /// Trying again without a change is pointless (no such program).
        permanent: bool,
    },
}

/// The life of an instance that ended, or that never became usable.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    /// When it was started.
    pub started: Instant,
    /// How long it had been usable.
    pub uptime: Duration,
}

/// What a caller who finds no route is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// An instance is started now.
    Start,
    /// One is started at this time; wait for it.
    Wait(Instant),
    /// None is started.
    Refuse,
}

/// Failures of those who share instances, and what follows from them.
#[derive(Debug, Default)]
pub struct Health {
    phase: Phase,
    failures: u32,
    rest: Duration,
    /// When the last failure was counted.
    failed_at: Option<Instant>,
    /// Before it, a caller's wish starts nothing in a resting pool: with it, at most one start for
    /// each rest is theirs (F29).
    probe_after: Option<Instant>,
}

impl Health {
    /// What the pool does by itself.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Failures in a row.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// When the last failure was counted.
    pub const fn failed_at(&self) -> Option<Instant> {
        self.failed_at
    }

    /// A caller wants an instance.
    pub fn admit(&mut self, now: Instant) -> Admission {
        let may_probe = self.probe_after.is_none_or(|at| at <= now);
        match self.phase {
            Phase::Fine => Admission::Start,
            Phase::Backoff(until) if until <= now => Admission::Start,
            Phase::Backoff(until) if !may_probe => Admission::Wait(until),
            // For a permanent fault too: looking the program up again is how a change of what is
            // on the PATH is noticed (F28), and starts no process where nothing changed.
            Phase::Parked { .. } if !may_probe => Admission::Refuse,
            Phase::Backoff(_) | Phase::Parked { .. } => {
                self.probe_after = Some(now + self.rest);
                Admission::Start
            }
        }
    }

    /// Whether what is wanted may be started without a caller's wish.
    pub fn may_start(&self, now: Instant) -> bool {
        match self.phase {
            Phase::Fine => true,
            Phase::Backoff(until) => until <= now,
            Phase::Parked { .. } => false,
        }
    }

    /// An instance is usable. The failures before it are forgotten only if it lives long enough.
    pub fn ready(&mut self) {
        self.phase = Phase::Fine;
    }

    /// An instance ended as it was told to, after `uptime`.
    pub fn ended_well(&mut self, rules: &Rules, uptime: Duration) {
        if uptime >= rules.sustained {
            self.clear();
        }
    }

    /// A start failed (its uptime is zero), or an instance died.
    pub fn failed(&mut self, now: Instant, rules: &Rules, life: Life, jitter: [u8; 2]) {
        if life.uptime >= rules.sustained {
            self.clear();
        }
        if !self.count(now, life) {
            return;
        }
        self.rest = rules.backoff.delay(self.failures, jitter);
        self.phase = if self.failures >= rules.park_after {
            Phase::Parked { permanent: false }
        } else {
            Phase::Backoff(now + self.rest)
        };
    }

    /// A start failed for a reason that only a change can mend (F28).
    pub fn failed_for_good(&mut self, now: Instant, rules: &Rules, life: Life) {
        if !self.count(now, life) {
            return;
        }
        self.rest = rules.backoff.delay(self.failures, [0, 0]);
        self.probe_after = Some(now + self.rest);
        self.phase = Phase::Parked { permanent: true };
    }

    /// What was running already when a failure was counted fell with it: one incident is one
    /// failure, however many instances it takes along.
    fn count(&mut self, now: Instant, life: Life) -> bool {
        if self.failed_at.is_some_and(|at| life.started < at) {
            return false;
        }
        self.failures += 1;
        self.failed_at = Some(now);
        true
    }

    fn clear(&mut self) {
        self.failures = 0;
        self.rest = Duration::ZERO;
        self.probe_after = None;
        self.failed_at = None;
    }
}

/// When an instance has been idle long enough, or is to be looked at again; `None` where it never
/// stops by itself. Health checks are no activity (P-09).
pub fn idle_due(
    now: Instant,
    last_activity: Instant,
    busy: bool,
    idle: Duration,
) -> Option<Instant> {
    if idle.is_zero() {
        return None;
    }
    Some(if busy { now + idle } else { last_activity + idle })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rules() -> Rules {
        Rules {
            backoff: Backoff { step: SECOND * 2, max: SECOND * 5 },
            sustained: SECOND * 60,
            park_after: 4,
        }
    }

    fn fail(health: &mut Health, now: Instant, uptime: u64) {
        let uptime = SECOND * u32::try_from(uptime).unwrap();
        health.failed(now, &rules(), Life { started: now, uptime }, [0, 0]);
    }

    /// F29: short lives count; the rest grows although each handshake succeeded, then it is parked.
    #[test]
    fn f29_the_backoff_is_not_reset_by_a_handshake() {
        let (mut health, start) = (Health::default(), clock());
        let mut rests = Vec::new();
        for _ in 0..3 {
            health.ready();
            fail(&mut health, start, 2);
            let Phase::Backoff(until) = health.phase() else { panic!("{:?}", health.phase()) };
            rests.push((until - start).as_secs());
        }
        assert_eq!(rests, [2, 4, 5]);
        health.ready();
        fail(&mut health, start, 2);
        assert_eq!(health.phase(), Phase::Parked { permanent: false });
    }

    /// F29: a sustained life clears what was before it.
    #[test]
    fn f29_a_sustained_life_clears_the_failures() {
        let (mut health, start) = (Health::default(), clock());
        fail(&mut health, start, 0);
        fail(&mut health, start, 0);
        health.ready();
        fail(&mut health, start, 60);
        assert_eq!(health.failures(), 1);
        assert_eq!(health.phase(), Phase::Backoff(start + SECOND * 2));
    }

    /// F29: callers start a resting server once for each rest, not once for each call.
    #[test]
    fn f29_one_extra_try_for_each_rest() {
        let (mut health, start) = (Health::default(), clock());
        fail(&mut health, start, 0);
        assert_eq!(health.admit(start), Admission::Start);
        fail(&mut health, start, 0);
        assert_eq!(health.admit(start), Admission::Wait(start + SECOND * 4));
        for _ in 0..2 {
            fail(&mut health, start, 0);
        }
        assert_eq!(health.admit(start + SECOND), Admission::Refuse);
        assert_eq!(health.admit(start + SECOND * 2), Admission::Start);
        assert_eq!(health.admit(start + SECOND * 2), Admission::Refuse);
        assert_eq!(health.admit(start + SECOND * 7), Admission::Start);
    }

    /// F28, P-14: a permanent fault parks at once.
    #[test]
    fn f28_permanent_faults_park_at_once() {
        let (mut health, start) = (Health::default(), clock());
        let life = Life { started: start, uptime: Duration::ZERO };
        health.failed_for_good(start, &rules(), life);
        assert_eq!(health.phase(), Phase::Parked { permanent: true });
        assert_eq!(health.admit(start), Admission::Refuse);
        assert!(!health.may_start(start + SECOND * 1000));
        assert_eq!(health.admit(start + SECOND * 2), Admission::Start);
    }

    /// P-14: what dies with an instance that was counted is not counted again.
    #[test]
    fn p14_one_incident_is_one_failure() {
        let (mut health, start) = (Health::default(), clock());
        let died = start + SECOND * 5;
        for _ in 0..10 {
            let life = Life { started: start, uptime: SECOND * 5 };
            health.failed(died, &rules(), life, [0, 0]);
        }
        assert_eq!((health.failures(), health.phase()), (1, Phase::Backoff(died + SECOND * 2)));
        fail(&mut health, died + SECOND, 0);
        assert_eq!(health.failures(), 2);
    }

    #[test]
    fn p09_zero_means_never_idle() {
        let start = clock();
        assert_eq!(idle_due(start, start, false, Duration::ZERO), None);
        assert_eq!(idle_due(start + SECOND, start, false, SECOND * 3), Some(start + SECOND * 3));
        assert_eq!(idle_due(start + SECOND, start, true, SECOND * 3), Some(start + SECOND * 4));
    }

    fn clock() -> Instant {
        crate::transport::clock::now()
    }
}
