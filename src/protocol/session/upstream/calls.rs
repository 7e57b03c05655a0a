//! Callers' requests: sending, cancelling, limits, and whether the upstream is alive at all.

use std::time::Instant;

use super::http::Kept;
use super::opening::bare_params;
use super::{Asked, Call, Phase, TaskWant, UpstreamEvent, UpstreamSession, tasks};
use crate::protocol::edge::{self, keys};
use crate::protocol::jsonrpc::{
    Id, Message, Method, Notification, RawJson, Request, salvage_cut_id, scan,
};
use crate::protocol::model::{answers, questions};
use crate::protocol::session::pending::{CallSink, Entry, LogWant, Struck};
use crate::protocol::session::timers::{Timer, after};
use crate::protocol::session::{Answer, Limit, LogLevel};
use bytes::Bytes;
use serde::Serialize;

/// What the session keeps about calls beside [`super::Pending`].
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Calls that came before the opening settled, or before the list of tools that they need.
    pub held: Vec<Held>,
    /// The `_meta` members that every request to a modern upstream carries; none for a legacy one.
    pub envelope: Vec<(&'static str, RawJson)>,
    /// The upstream declared `logging`.
    pub logs: bool,
    /// It takes calls of tools as tasks.
    pub tasks: bool,
    /// The level that a legacy upstream was given last.
    log_level: Option<LogLevel>,
    /// When the liveness check under way was sent.
    checked_at: Option<Instant>,
}

/// A call whose frame is not written yet; its entry is in [`super::Pending`] already.
#[derive(Debug)]
pub(super) struct Held {
    id: u64,
    pub method: Method,
    params: RawJson,
    wants_progress: bool,
    log: Option<LogWant>,
    declared: Option<RawJson>,
    task: Option<TaskWant>,
    /// It was sent in vain once, to the end of a session or with headers that no longer fit, and is
    /// not sent a third time (U-26, U-40).
    pub last: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    request_id: u64,
    reason: &'a str,
}

impl Calls {
    /// The upstream knows no level any more.
    pub(super) fn forget_level(&mut self) {
        self.log_level = None;
    }
}

impl<S: CallSink> UpstreamSession<S> {
    /// Sends a call; before the opening has settled it is held and sent then.
    pub fn start_call(&mut self, now: Instant, call: Call<S>) {
        if let Phase::Ended(why) = &self.phase {
            call.sink.done(Answer::Lost { written: false, why: why.clone() });
            return;
        }
        let Call { id, method, params, wants_progress, log, host, declared, task, limits, sink } =
            call;
        let idle = after(now, limits.idle);
        let total = after(now, limits.total);
        self.timers.set_earlier(Timer::Calls, idle);
        self.timers.set_earlier(Timer::Calls, total);
        let open = self.revision().is_some() && !self.waits_for_marks(now, &method);
        // Before the call's own place among the frames is known.
        if open {
            self.set_level(log);
        }
        let entry = Entry {
            method: method.clone(),
            sink,
            limits,
            wants_progress,
            log,
            host,
            declared: declared.clone(),
            open: 0,
            task: task.is_some(),
            started: now,
            last_activity: now,
            frame: open.then_some(self.out.frames + 1),
        };
        self.pending.insert(id, entry);
        let held = Held { id, method, params, wants_progress, log, declared, task, last: false };
        if open {
            self.send_call(held);
        } else {
            self.calls.held.push(held);
        }
    }

    /// What was held goes out in the order it came, but for what must wait longer.
    pub(super) fn send_held(&mut self, now: Instant) {
        if self.revision().is_none() {
            return;
        }
        for held in std::mem::take(&mut self.calls.held) {
            if self.waits_for_marks(now, &held.method) {
                self.calls.held.push(held);
                continue;
            }
            self.set_level(held.log);
            // A call that expired while it was held is gone from the table.
            if self.pending.mark_sent(now, held.id, self.out.frames + 1) {
                self.send_call(held);
            }
        }
    }

    /// A legacy upstream has one level for all callers: the most talkative that any of them has
    /// wanted yet; each hears only what it wants itself. A modern one is asked by each request, and
    /// one that did not declare logging not at all (U-32).
    fn set_level(&mut self, log: Option<LogWant>) {
        let legacy = self.revision().is_some_and(|revision| !revision.is_modern());
        let Some(want) = log.filter(|_| legacy && self.calls.logs) else { return };
        if self.calls.log_level.is_some_and(|set| set <= want.level) {
            return;
        }
        self.calls.log_level = Some(want.level);
        let params = serde_json::json!({ "level": want.level.as_str() });
        self.ask(Asked::SetLevel, "logging/setLevel", Some(RawJson::write(&params)));
    }

    /// Writes one call, spelled for the upstream's revision. The progress token is our own id, so
    /// that tokens of different hosts cannot meet (F15, F37).
    fn send_call(&mut self, held: Held) {
        let Some(revision) = self.revision() else { return };
        let Held { id, method, params, wants_progress, log, declared, task, last } = &held;
        let (id, last) = (*id, *last);
        // No server with a handshake gives states: sent without it, the call would begin anew (E-07).
        if !revision.is_modern() && questions::carries_state(method.as_str(), params) {
            if let Some(entry) = self.pending.remove(id) {
                let text = "the `requestState` is none that was given out for this call; make the call \
                            anew without it";
                entry.sink.done(Answer::Error(answers::bad_state(text)));
            }
            return;
        }
        let more = match self.marked_headers(method, params) {
            Ok(more) => more,
            Err(error) => {
                if let Some(entry) = self.pending.remove(id) {
                    entry.sink.done(Answer::Error(error));
                }
                return;
            }
        };
        let level = log.filter(|_| revision.is_modern() && self.calls.logs);
        let nothing = RawJson::empty_object();
        let declared = declared.as_ref().filter(|theirs| **theirs != nothing);
        let modern = revision.is_modern();
        let task = task.as_ref().filter(|_| self.calls.tasks);
        let task = task.filter(|want| tasks::wanted(modern, method, want));
        let with_tasks = task.map(|_| tasks::declared(declared.unwrap_or(&nothing)));
        let declared = with_tasks.as_ref().or(declared).filter(|_| modern);
        let own;
        let meta = if *wants_progress || level.is_some() || declared.is_some() {
            let token = wants_progress.then(|| (keys::PROGRESS_TOKEN, RawJson::write(&id)));
            let level = level.map(|want| (keys::LOG_LEVEL, RawJson::write(want.level.as_str())));
            let envelope = self.calls.envelope.iter().map(|(key, value)| {
                let theirs = declared.filter(|_| *key == keys::CLIENT_CAPABILITIES);
                (*key, theirs.unwrap_or(value).clone())
            });
            own = token.into_iter().chain(envelope).chain(level).collect::<Vec<_>>();
            own.as_slice()
        } else {
            self.calls.envelope.as_slice()
        };
        let params = edge::downgrade_params(revision, method, params, meta);
        let params = Some(match task {
            Some(task) if !modern => tasks::asked(params, task),
            _ => params,
        });
        let request = Request { id: Id::number(id), method: method.clone(), params };
        let kept = if last { Kept::Nothing } else { Kept::Call(held) };
        self.send_request_with(id, request, kept, more);
    }

    /// Says something that a host says to this server; nothing before it is open.
    pub fn notify(&mut self, note: Notification) {
        if self.revision().is_some() {
            self.send(&Message::Notification(note));
        }
    }

    /// The caller gave up: forgets the call, whose sink is dropped, and tells the upstream as its
    /// revision asks (U-31). A call that is unknown or answered already is ignored (F36).
    ///
    /// Where it asked in the course of the call, that is answered, also after the call's outcome.
    pub fn cancel(&mut self, now: Instant, id: u64, reason: &str) {
        self.call_over(id);
        let Some(entry) = self.pending.remove(id) else { return };
        self.calls.held.retain(|held| held.id != id);
        if entry.frame.is_some() {
            self.given_up(now, id, &entry);
            self.withdraw(id, reason);
            self.fence();
        }
    }

    /// The notification, with the id that the upstream knows (U-31).
    pub(super) fn send_cancelled(&mut self, id: u64, reason: &str) {
        let params = RawJson::write(&Cancelled { request_id: id, reason });
        let method = Method::known("notifications/cancelled");
        self.send(&Message::Notification(Notification { method, params: Some(params) }));
    }

    /// Ends the calls whose limit has struck. A call that was silent for its idle limit is also a
    /// reason to ask whether the upstream is alive (P-13).
    pub(super) fn expire_calls(&mut self, now: Instant) {
        let (expired, next) = self.pending.take_expired(now);
        self.timers.set(Timer::Calls, next);
        let mut silent = false;
        for (id, struck, entry) in expired {
            let limit = struck.limit(&entry.limits);
            self.call_over(id);
            if entry.frame.is_some() {
                self.given_up(now, id, &entry);
                silent |= struck == Struck::Idle;
                // Where nothing was promised that is the reason, and no word can reach it.
                if self.accepted_only(id) {
                    let text = format!(
                        "it accepted the request with HTTP 202, which promises no answer, and none \
                         came within {} (setting {})",
                        limit.value, limit.setting
                    );
                    self.withdraw(id, "no answer came");
                    entry.sink.done(Answer::Invalid(text));
                    continue;
                }
                self.withdraw(id, &format!("{} ({}) passed", limit.setting, limit.value));
            }
            self.calls.held.retain(|held| held.id != id);
            entry.sink.done(Answer::TimedOut(limit));
        }
        if silent {
            self.check_alive(now);
        }
    }

    /// Asks the server for a sign of life (`ping`, or `server/discover` to a modern one, U-32).
    /// Anything it says until the limit counts as one.
    pub fn check_alive(&mut self, now: Instant) {
        let Some(revision) = self.revision() else { return };
        if self.is_asked(Asked::Alive) {
            return;
        }
        self.calls.checked_at = Some(now);
        self.timers.set(Timer::Ping, after(now, self.config.timings.ping));
        if revision.is_modern() {
            let params = bare_params(&self.config, revision);
            self.ask(Asked::Alive, "server/discover", Some(params));
        } else {
            self.ask(Asked::Alive, "ping", None);
        }
    }

    /// The sign of life did not come.
    pub(super) fn ping_over(&mut self) {
        self.forget(Asked::Alive);
        let asked_at = self.calls.checked_at.take();
        // A busy server that reports progress is slow to answer pings, but not wedged.
        if self.pending.last_heard() > asked_at {
            return;
        }
        let limit = Limit::time(Timer::Ping.setting(), self.config.timings.ping);
        self.out.event(UpstreamEvent::Wedged(limit));
    }

    /// The upstream sent a frame beyond the link's limit: if a single call is in flight it ends with
    /// `TooLarge`; otherwise the head of the frame tells which (F08).
    pub fn handle_too_large(&mut self, now: Instant, head: &Bytes, bytes: usize, limit: usize) {
        // Some servers write the id last: it stands in the kept end of the frame then.
        let last = salvage_cut_id(head).and_then(|id| id.as_u64());
        let head = scan::head(head);
        let id = head.id.and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<u64>().ok());
        let id = id.or(last);
        // A request or notification of its own answers nobody.
        let ours = id.filter(|_| head.method.is_none());
        let size = format!("a frame of {bytes} bytes, beyond the link's limit of {limit}");
        if let Some(id) = ours {
            let error = Err(super::inbound::unusable(format!("the server answered with {size}")));
            if self.own_answer(now, id, &error) {
                self.out.warn(format!("the server sent {size}"));
                return;
            }
        }
        let only = || self.pending.only().filter(|_| id.is_none() && head.method.is_none());
        let concerned = ours.filter(|id| self.pending.contains(*id)).or_else(only);
        match concerned.and_then(|id| self.pending.remove(id)) {
            Some(entry) => entry.sink.done(Answer::TooLarge { bytes, limit }),
            None => self.out.warn(format!("the server sent {size}; it was thrown away")),
        }
    }
}
