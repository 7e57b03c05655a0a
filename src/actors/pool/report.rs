//! What a pool tells callers and people about itself.

use std::time::Instant;

use super::InstanceLog;
use super::member::Member;
use super::plan::Phase as Rest;
use super::state::PoolState;
use super::status::{PoolStatus, ProtocolStatus};
use crate::actors::upstreams::Refused;
use crate::settings::servers::preference_word;

/// Lines of stderr quoted in a text for a caller: enough for a traceback's end, few enough for a
/// model's context. All kept lines are shown by `mcpx logs`.
const QUOTED: usize = 10;

impl PoolState {
    /// Why nothing is started now.
    pub(super) fn refusal(&self) -> Refused {
        let name = &self.def.key;
        let text = match self.health.phase() {
            Rest::Stopped => {
                format!("server `{name}` is stopped; `mcpx start {name}` starts it")
            }
            Rest::Parked { permanent: true } => format!(
                "server `{name}` is parked: {}; mend its configuration or the PATH, then run \
                 `mcpx restart {name}`",
                self.quoted_trouble(),
            ),
            Rest::Parked { permanent: false } => format!(
                "server `{name}` is parked after {} failures in a row: {}; `mcpx logs {name}` \
                 shows more, `mcpx restart {name}` tries again",
                self.health.failures(),
                self.quoted_trouble(),
            ),
            Rest::Fine | Rest::Backoff(_) => format!(
                "server `{name}` is not running: {}; `mcpx status {name}` shows its state",
                self.quoted_trouble(),
            ),
        };
        Refused::unavailable(text)
    }

    /// Why a start that callers waited for failed.
    pub(super) fn start_refusal(&self, now: Instant) -> Refused {
        let Rest::Backoff(until) = self.health.phase() else { return self.refusal() };
        let name = &self.def.key;
        Refused::unavailable(format!(
            "server `{name}` could not be started: {}; it is tried again in {} s, `mcpx logs \
             {name}` shows more",
            self.quoted_trouble(),
            until.saturating_duration_since(now).as_secs_f32().ceil(),
        ))
    }

    fn quoted_trouble(&self) -> String {
        let Some(end) = &self.trouble else { return "nothing is known of it".to_owned() };
        let skipped = end.stderr.len().saturating_sub(QUOTED);
        let mut text = end.text.clone();
        if !end.stderr.is_empty() {
            text.push_str("; its last words on stderr:");
        }
        for line in end.stderr.iter().skip(skipped) {
            text.push_str("\n  ");
            text.push_str(line);
        }
        if !end.stderr.is_empty() {
            text.push('\n');
        }
        text
    }

    pub(super) fn status(&self, now: Instant) -> PoolStatus {
        let rest = self.health.phase();
        let is = |test: fn(&Member) -> bool| self.members.values().any(test);
        let state = match rest {
            Rest::Stopped => "stopped",
            _ if is(|member| member.settled().is_some()) => "ready",
            _ if is(Member::is_starting) => "starting",
            Rest::Parked { .. } => "parked",
            Rest::Backoff(until) if until > now => "backoff",
            Rest::Fine | Rest::Backoff(_) => "idle",
        };
        let retry = match rest {
            Rest::Backoff(until) if until > now => Some(until.duration_since(now).as_millis()),
            _ => None,
        };
        // Forgotten when the instance ends; shown as what it is before that (F29).
        let sustained = self.members.values().any(|member| {
            member.settled().is_some()
                && member.uptime(now) >= self.shared.settings().pool.sustained_uptime
        });
        let trouble = self.trouble.as_ref().filter(|_| self.health.failures() > 0);
        PoolStatus {
            server: self.def.key.clone(),
            namespace: self.def.namespace.clone(),
            state,
            retry_in_ms: retry.map(|millis| u64::try_from(millis).unwrap_or(u64::MAX)),
            permanent: rest == Rest::Parked { permanent: true },
            reason: trouble.map(|end| end.text.clone()),
            stderr: trouble.map(|end| end.stderr.clone()).unwrap_or_default(),
            failures: if sustained { 0 } else { self.health.failures() },
            restarts: self.health.restarts(),
            waiting: self.routes.waiting(),
            instances: self.members.iter().map(|(id, member)| member.status(now, *id)).collect(),
        }
    }

    pub(super) fn protocol(&self) -> ProtocolStatus {
        let settings = self.shared.settings();
        let settled = self.members.values().find_map(Member::settled);
        ProtocolStatus {
            server: self.def.key.clone(),
            preference: preference_word(self.def.protocol.unwrap_or(settings.upstream.protocol)),
            pin: self.def.revision.map(|pin| pin.to_string()),
            era: settled.map(|settled| settled.revision.era().to_string()),
            revision: settled.map(|settled| settled.revision.to_string()),
            era_source: settled.map(|settled| settled.source),
            cached: self.shared.shop().eras.get(&self.def),
        }
    }

    pub(super) fn logs(&self) -> Vec<InstanceLog> {
        let dead = self.last_words.iter().map(|(id, ring)| (*id, false, ring));
        let live = self
            .members
            .iter()
            .filter_map(|(id, member)| Some((*id, true, member.stderr.as_ref()?)));
        dead.chain(live)
            .map(|(id, alive, ring)| InstanceLog { instance: id.0, alive, ring: ring.clone() })
            .collect()
    }
}
