//! Who needs a session of their own: callers of legacy revisions, where their server follows and is
//! not known to be legacy anyway (U-18, P-02 to P-06). Pure.
//!
//! Bias: a process that is not started beats a session that is a little better. A server that speaks
//! legacy to everybody, or refuses `initialize`, is never started twice for long; and a legacy-only
//! start that fails while nothing of that server runs is put down to the server, not to its era.

use super::RouteAnswer;
use super::directory::{Lane, RouteKey};
use super::faults::FaultKey;
use super::member::Member;
use super::plan::Phase as Rest;
use super::state::PoolState;
use crate::actors::events::Event;
use crate::actors::instance::{End, EndKind, Fault};
use crate::protocol::era_record::EraRecord;
use crate::protocol::revision::Era;

/// What is known of a server's second lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LegacyLane {
    /// Nothing speaks against it.
    #[default]
    Open,
    /// It has been opened: what fails from now on is a failure like any other.
    Proven,
    /// The shared lane speaks legacy itself, so nobody needs it (P-04).
    Needless,
    /// Its start failed while nothing of this server ran: whether that was about its era shows when
    /// the shared lane starts.
    Doubted,
    /// Both lanes failed: it is tried again when the shared one has come up.
    Down,
    /// Its start failed while the shared lane ran: a modern-only server. For the pool's life, or
    /// until an operator starts the server (P-05).
    Refused,
}

impl LegacyLane {
    /// Whether callers of legacy revisions use the shared lane.
    pub(super) const fn is_shared(self) -> bool {
        match self {
            Self::Open | Self::Proven => false,
            Self::Needless | Self::Doubted | Self::Down | Self::Refused => true,
        }
    }

    /// As it begins, with what the era cache remembers of the server.
    pub(super) fn remembered(era: Option<Era>) -> Self {
        if era == Some(Era::Legacy) { Self::Needless } else { Self::Open }
    }

    /// For people: what callers of legacy revisions find while no instance of theirs runs.
    const fn word(self) -> &'static str {
        match self {
            Self::Open | Self::Proven => "idle",
            Self::Needless | Self::Doubted | Self::Down => "shared",
            Self::Refused => "refused",
        }
    }

    /// An instance of the shared lane has opened in `era`.
    pub(super) const fn shared_opened(self, era: Era) -> Self {
        match (self, era) {
            (Self::Refused, _) | (Self::Doubted, Era::Modern) => Self::Refused,
            (Self::Proven, Era::Modern) => Self::Proven,
            (Self::Open | Self::Needless | Self::Down, Era::Modern) => Self::Open,
            (_, Era::Legacy) => Self::Needless,
        }
    }

    /// A start in the shared lane failed.
    pub(super) const fn shared_failed(self) -> Self {
        match self {
            Self::Doubted => Self::Down,
            other => other,
        }
    }

    /// A start in the lane itself failed; what the shared lane is doing meanwhile. `None` where that
    /// is a failure like any other.
    const fn failed(self, shared: SharedLane) -> Option<Self> {
        match (self, shared) {
            (Self::Proven, _) => None,
            (Self::Refused, _) | (_, SharedLane::Runs) => Some(Self::Refused),
            (Self::Needless, _) => Some(Self::Needless),
            (_, SharedLane::Rests) => Some(Self::Down),
            (_, SharedLane::Idle) => Some(Self::Doubted),
        }
    }

    /// An operator wants everything tried again.
    const fn revived(self) -> Self {
        match self {
            Self::Refused | Self::Doubted | Self::Down => Self::Open,
            other => other,
        }
    }
}

/// What the shared lane does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SharedLane {
    Runs,
    /// After failures of its own.
    Rests,
    Idle,
}

impl PoolState {
    /// What is known before anything has run.
    pub(super) fn begin_lanes(&mut self) {
        if self.follows() && self.shared.settings().upstream.era_cache {
            let record = self.shared.shop().eras.get(&self.def);
            let era = record.as_ref().and_then(EraRecord::known_era);
            self.legacy_lane_is(LegacyLane::remembered(era));
        }
    }

    /// Whether legacy callers may have a session of their own, by the settings in force.
    pub(super) fn follows(&self) -> bool {
        self.def.follows(self.shared.settings().upstream.protocol)
    }

    /// What is known changes; callers in the second lane that are better off in the other are sent
    /// there.
    pub(super) fn legacy_lane_is(&mut self, lane: LegacyLane) {
        self.legacy_lane = lane;
        self.routes.share_lanes(lane.is_shared());
        if !lane.is_shared() {
            return;
        }
        self.wanted.retain(|key, _| key.lane != Lane::Legacy);
        let moved: Vec<RouteKey> = self.waiting_keys(Lane::Legacy);
        for key in moved {
            // They look again, and find themselves in the shared lane.
            self.answer_waiting(&key, &RouteAnswer::Moved);
        }
    }

    /// An instance of `key` has opened.
    pub(super) fn lane_opened(&mut self, key: &RouteKey, era: Era) {
        self.legacy_lane_is(match key.lane {
            Lane::Shared => self.legacy_lane.shared_opened(era),
            Lane::Legacy if self.legacy_lane == LegacyLane::Open => LegacyLane::Proven,
            Lane::Legacy => self.legacy_lane,
        });
    }

    /// A start of `key` failed. Whether that is all there is to it: a legacy-only start that fails
    /// counts against nobody, its callers share the other lane (P-05).
    pub(super) fn lane_failed(&mut self, key: &RouteKey, whose: &FaultKey, end: &End) -> bool {
        if key.lane == Lane::Shared {
            self.legacy_lane_is(self.legacy_lane.shared_failed());
            return false;
        }
        // No program, no folder: that concerns both lanes alike.
        if end.kind != (EndKind::StartFailed { fault: Fault::Passing }) {
            return false;
        }
        let Some(lane) = self.legacy_lane.failed(self.shared_lane(whose)) else { return false };
        self.legacy_lane_is(lane);
        let text = format!(
            "server `{}` gave no second session for callers of legacy revisions (protocol follow), \
             so they share the one of all others: {}",
            self.def.key, end.text,
        );
        let event = Event::new("server.warning", text).of_server(self.def.key.as_str());
        self.shared.shop().events.emit(event);
        true
    }

    fn shared_lane(&self, whose: &FaultKey) -> SharedLane {
        let mut shared = self.members.values().filter(|member| member.key.lane == Lane::Shared);
        if shared.any(|member| member.settled().is_some()) {
            SharedLane::Runs
        } else if self.faults.phase(&whose.in_lane(Lane::Shared)) == Rest::Fine {
            SharedLane::Idle
        } else {
            SharedLane::Rests
        }
    }

    /// Whether a start of `key` waits for that of the shared lane, which will say what the server
    /// speaks (P-04).
    pub(super) fn waits_for_the_shared_lane(&self, key: &RouteKey) -> bool {
        let beside = RouteKey { scope: key.scope.clone(), lane: Lane::Shared };
        key.lane == Lane::Legacy
            && self.legacy_lane != LegacyLane::Proven
            && self.is_starting(&beside)
    }

    /// What callers of legacy revisions find: the revision of their own session, or a word.
    pub(super) fn legacy_lane_text(&self) -> String {
        let mut members = self.members.values().filter(|member| member.key.lane == Lane::Legacy);
        let settled = members.find_map(Member::settled);
        settled.map_or_else(|| self.legacy_lane.word().to_owned(), |it| it.revision.to_string())
    }

    /// An operator wants everything tried again.
    pub(super) fn revive(&mut self) {
        self.faults.revive();
        self.legacy_lane_is(self.legacy_lane.revived());
    }
}

#[cfg(test)]
mod tests {
    use super::LegacyLane::{Doubted, Down, Needless, Open, Proven, Refused};
    use super::*;

    /// P-04: a server that speaks legacy to everybody needs no second session; one that has learned
    /// the new revision gets one again.
    #[test]
    fn p04_a_legacy_server_is_not_started_twice() {
        let lane = LegacyLane::default().shared_opened(Era::Legacy);
        assert_eq!(LegacyLane::remembered(Some(Era::Legacy)), lane);
        assert_eq!(LegacyLane::remembered(Some(Era::Modern)), LegacyLane::remembered(None));
        assert_eq!((lane, lane.is_shared()), (Needless, true));
        assert_eq!(lane.shared_opened(Era::Modern), Open);
        assert_eq!(Proven.shared_opened(Era::Legacy), Needless);
    }

    /// P-05: refused while the server runs is remembered, whatever the shared lane does afterwards.
    #[test]
    fn p05_a_refusal_is_remembered() {
        let lane = Open.failed(SharedLane::Runs).unwrap();
        assert_eq!((lane, lane.is_shared()), (Refused, true));
        for era in [Era::Legacy, Era::Modern] {
            assert_eq!(lane.shared_opened(era), Refused);
        }
        assert_eq!(lane.shared_failed(), Refused);
        assert_eq!(lane.revived(), Open);
    }

    /// P-05: refused before anything runs is a doubt, which the shared lane settles.
    #[test]
    fn p05_a_doubt_is_settled_by_the_shared_lane() {
        let lane = Open.failed(SharedLane::Idle).unwrap();
        assert_eq!((lane, lane.is_shared()), (Doubted, true));
        assert_eq!(lane.shared_opened(Era::Modern), Refused);
        assert_eq!(lane.shared_opened(Era::Legacy), Needless);
        assert_eq!(lane.shared_failed(), Down);
    }

    /// A server that was down refuses nothing: it is asked again when it is back.
    #[test]
    fn p05_a_server_that_was_down_is_asked_again() {
        for lane in [Open.failed(SharedLane::Rests).unwrap(), Doubted.shared_failed()] {
            assert_eq!((lane, lane.is_shared()), (Down, true));
            assert_eq!(lane.shared_opened(Era::Modern), Open);
        }
    }

    /// What has been open once and fails later is counted like any other failure.
    #[test]
    fn p05_a_proven_lane_fails_like_any_other() {
        for shared in [SharedLane::Runs, SharedLane::Rests, SharedLane::Idle] {
            assert_eq!(Proven.failed(shared), None);
        }
        assert_eq!(Proven.shared_opened(Era::Modern), Proven);
        assert_eq!(Proven.shared_failed(), Proven);
        assert_eq!(Proven.revived(), Proven);
    }
}
