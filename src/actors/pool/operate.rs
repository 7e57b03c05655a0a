//! What supervisors and operators tell a pool.

use std::time::{Duration, Instant};

use ractor::RpcReplyPort;

use super::directory::{Lane, RouteKey, ScopeKey};
use super::state::PoolState;
use super::{RouteAnswer, answer};
use crate::settings::Scope;
use crate::transport::clock;

impl PoolState {
    pub(super) fn drain(&mut self, limit: Duration) {
        self.draining = true;
        self.wanted.clear();
        self.answer_all(&RouteAnswer::Moved);
        self.stop_members("replaced or no longer needed", limit);
        self.serve(clock::now());
    }

    fn stop_members(&mut self, why: &'static str, limit: Duration) {
        let now = clock::now();
        for member in self.members.values_mut() {
            member.stop(now, why, limit);
        }
    }

    pub(super) fn stop(&mut self, reply: RpcReplyPort<()>) {
        self.faults.stop();
        self.wanted.clear();
        self.answer_all(&RouteAnswer::Refused(self.stopped()));
        self.stop_members("an operator stopped it", Duration::ZERO);
        self.stop_replies.push(reply);
        self.serve(clock::now());
    }

    pub(super) fn start(&mut self, now: Instant, reply: RpcReplyPort<()>) {
        self.revive();
        self.want_global();
        self.want_watched();
        self.serve(now);
        answer(reply, ());
    }

    pub(super) fn restart(&mut self, now: Instant, reply: RpcReplyPort<()>) {
        self.revive();
        let live: Vec<_> = self
            .members
            .values()
            .filter(|member| !member.is_leaving())
            .map(|member| (member.key.clone(), member.project.clone()))
            .collect();
        if !live.is_empty() {
            self.noted_operator();
        }
        for (key, project) in live {
            self.want_again(&key, project);
        }
        self.want_global();
        self.stop_members("an operator restarts it", Duration::ZERO);
        self.serve(now);
        answer(reply, ());
    }

    /// What an operator starts is started at once where it needs no caller to say for whom.
    fn want_global(&mut self) {
        let key = RouteKey { scope: ScopeKey::Global, lane: Lane::Shared };
        let running = self.members.values().any(|member| !member.is_leaving());
        if self.def.scope == Scope::Global && !running {
            self.want_again(&key, None);
        }
    }
}
