//! What a pool knows of one of its instances.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ractor::{ActorRef, RpcReplyPort};

use super::RouteAnswer;
use super::directory::{Route, RouteKey};
use super::faults::FaultKey;
use super::status::InstanceStatus;
use crate::actors::instance::{InstanceId, InstanceMsg, Reach};
use crate::protocol::session::upstream::Settled;
use crate::transport::stdio::ring::StderrRing;

/// How far an instance is.
#[derive(Debug)]
pub(super) enum Phase {
    /// Its opening is not settled.
    Starting,
    /// It admits calls.
    Ready {
        /// Since when.
        since: Instant,
        /// What its opening settled.
        settled: Arc<Settled>,
        /// Its route.
        route: Arc<Route>,
    },
    /// It admits no more calls.
    Leaving {
        /// How long it had been usable.
        uptime: Duration,
        /// One phrase.
        why: String,
    },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Member {
    pub key: RouteKey,
    /// With whom it fails.
    pub whose: FaultKey,
    pub project: Option<Arc<Path>>,
    pub actor: ActorRef<InstanceMsg>,
    pub started: Instant,
    pub phase: Phase,
    pub pid: Option<u32>,
    pub stderr: Option<StderrRing>,
    pub reach: Option<Reach>,
    /// It was started without the probe, because the one before it ended on it (F25 f).
    pub without_probe: bool,
    /// Nobody will use its scope key again.
    pub abandoned: bool,
    /// Who waits for its list.
    pub list_waiters: Vec<RpcReplyPort<RouteAnswer>>,
}

impl Member {
    pub(super) const fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Starting)
    }

    pub(super) const fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Leaving { .. })
    }

    pub(super) fn settled(&self) -> Option<&Settled> {
        match &self.phase {
            Phase::Ready { settled, .. } => Some(settled),
            Phase::Starting | Phase::Leaving { .. } => None,
        }
    }

    /// How long it has been usable, or was.
    pub(super) fn uptime(&self, now: Instant) -> Duration {
        match &self.phase {
            Phase::Starting => Duration::ZERO,
            Phase::Ready { since, .. } => now.saturating_duration_since(*since),
            Phase::Leaving { uptime, .. } => *uptime,
        }
    }

    /// It admits no more calls. Drops the route, and with it the pool's hold on its calls.
    pub(super) fn leave(&mut self, now: Instant, why: String) {
        self.phase = Phase::Leaving { uptime: self.uptime(now), why };
    }

    /// Why it leaves, and its last lines on stderr.
    pub(super) fn farewell(&self) -> (&str, Vec<String>) {
        let why = match &self.phase {
            Phase::Leaving { why, .. } => why.as_str(),
            Phase::Starting | Phase::Ready { .. } => "it ended",
        };
        (why, self.stderr.as_ref().map(|ring| ring.tail(usize::MAX)).unwrap_or_default())
    }

    /// Tells it to stop.
    pub(super) fn stop(&mut self, now: Instant, why: &'static str, limit: Duration) {
        if self.is_leaving() {
            return;
        }
        // A dead one is reported by its supervision event.
        let _ = self.actor.cast(InstanceMsg::Stop { why, limit });
        self.leave(now, why.to_owned());
    }

    /// Asks it to stop if it is idle; it knows best, and says so when it leaves.
    pub(super) fn stop_if_idle(&self) {
        let _ = self.actor.cast(InstanceMsg::StopIfIdle);
    }

    /// When it will have been idle for `idle`, or is to be looked at again.
    pub(super) fn idle_due(&self, now: Instant, idle: Duration) -> Option<Instant> {
        let Phase::Ready { since, route, .. } = &self.phase else { return None };
        let last = route.pending.last_activity().map_or(*since, |at| at.max(*since));
        super::plan::idle_due(now, last, route.is_busy(), idle)
    }

    pub(super) fn status(&self, now: Instant, id: InstanceId) -> InstanceStatus {
        let (state, in_flight) = match &self.phase {
            Phase::Starting => ("starting", 0),
            Phase::Ready { route, .. } => ("ready", route.pending.len()),
            Phase::Leaving { .. } => ("leaving", 0),
        };
        let uptime = now.saturating_duration_since(self.started).as_millis();
        let opened_ms = match &self.phase {
            Phase::Ready { since, .. } => {
                let took = since.saturating_duration_since(self.started).as_millis();
                u64::try_from(took).ok()
            }
            Phase::Starting | Phase::Leaving { .. } => None,
        };
        InstanceStatus {
            actor: self.actor.get_id().pid(),
            id: id.0,
            pid: self.pid,
            transport: self.reach.as_ref().map(|reach| reach.transport),
            url: self.reach.as_ref().and_then(|reach| reach.url.clone()),
            session: self.settled().and_then(|settled| settled.session.clone()),
            state,
            lane: self.key.lane.text(),
            scope: self.key.scope.text(),
            revision: self.settled().map(|settled| settled.revision.to_string()),
            uptime_ms: u64::try_from(uptime).unwrap_or(u64::MAX),
            opened_ms,
            in_flight,
            interactive: matches!(&self.phase, Phase::Ready { route, .. } if route.is_serial()),
        }
    }
}
