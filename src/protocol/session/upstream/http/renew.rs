//! A session that the server gave up: one fresh handshake, whoever noticed it first (U-40, F22).
//!
//! Only a 404 in answer to a request that named the session means that (2025-11-25 transports page,
//! "Session Management" 4). What got it was not looked at and is sent again, once; everything else
//! that is in flight goes on.

use std::time::Instant;

use super::super::inbound::unusable;
use super::super::opening::Opening;
use super::super::{Asked, Phase, UpstreamSession};
use super::{Kept, Live, What};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::session::Answer;
use crate::protocol::session::pending::CallSink;
use crate::protocol::session::timers::{Timer, after};

impl<S: CallSink> UpstreamSession<S> {
    /// A request met the end of its session.
    pub(super) fn session_lost(&mut self, now: Instant, id: u64, live: Live) {
        let Live { generation, trail, kept, .. } = live;
        let text = "the server does not know the session any more (HTTP 404)";
        if self.asked.contains(&(id, Asked::Alive)) {
            // What answers lives.
            self.own_answer(now, id, &Ok(RawJson::empty_object()));
        } else if trail.last_id().is_some() {
            // Its stream had begun: it was looked at.
            self.answer_instead(now, id, Answer::Lost { written: true, why: text.to_owned() });
        } else {
            match kept {
                Kept::Call(mut held) => {
                    self.pending.mark_held(id);
                    held.last = true;
                    self.calls.held.push(held);
                }
                Kept::Own(request) => {
                    if let Some(http) = &mut self.http {
                        http.held.push((id, request));
                    }
                }
                Kept::Nothing => {
                    let text = format!("{text}, though it has just opened it");
                    self.deliver(now, id, &Err(unusable(text)));
                }
            }
        }
        self.renew(now, generation);
        // Somebody else's end may have renewed it before.
        if self.revision().is_some() {
            self.send_held(now);
            self.send_own_held();
        }
    }

    /// The session numbered `generation` is over: opens another, once.
    pub(super) fn renew(&mut self, now: Instant, generation: u32) {
        let Some(revision) = self.revision() else { return };
        let Some(http) = &mut self.http else { return };
        if http.generation != generation {
            return;
        }
        http.generation += 1;
        http.renewing = true;
        http.resting.retain(|(_, live)| live.what != What::Standalone);
        let standalone = http.live.iter().find(|(_, live)| live.what == What::Standalone);
        if let Some(tag) = standalone.map(|(tag, _)| *tag) {
            http.drop_exchange(&mut self.out, tag);
        }
        // A stream that broke off in the old session cannot be had in the new one.
        let broken: Vec<_> = http.resting.drain(..).map(|(_, live)| live.what).collect();
        self.timers.clear(Timer::Reconnect);
        for what in broken {
            if let What::Request(id) = what {
                let why = "the server gave up the session in which it was asked".to_owned();
                self.answer_instead(now, id, Answer::Lost { written: true, why });
            }
        }
        self.out.warn("the server gave up the session; another is opened");
        self.session_forgotten(now);
        self.phase = Phase::Opening;
        self.opening = Opening::again(self.config.pin.unwrap_or(revision));
        self.timers.set(Timer::Handshake, after(now, self.config.timings.handshake));
        self.send_initialize();
    }

    /// Makes requests of our own again that met the end of a session.
    pub(in super::super) fn send_own_held(&mut self) {
        let held = self.http.as_mut().map(|http| std::mem::take(&mut http.held));
        for (id, request) in held.unwrap_or_default() {
            if self.is_waiting(id) {
                self.send_request(id, request, Kept::Nothing);
            }
        }
    }
}
