//! The calls in flight on one upstream connection, shared between its session and its reader.
//!
//! The reader hands every frame to [`Pending::resolve`] first; an answer or a progress notification
//! for a call in flight completes its caller right there, without a turn of the actor. What it does
//! not know is given back, for [`super::upstream::UpstreamSession::handle_frame`].
//!
//! One short lock; nothing waits inside it, and a caller's outcome is delivered outside.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::timers::{CALL_TOTAL, Timer, after};
use super::{Answer, Closed, Limit, LogLevel, Outcome};
use crate::protocol::edge;
use crate::protocol::jsonrpc::{Id, Incoming, Message, Method, RawJson, parse_noting, scan};
use crate::protocol::model::logging::LogMessage;
use crate::protocol::model::questions::{Question, can_answer};
use crate::protocol::revision::Revision;

/// Where the news of one call go. Implemented by the actors' layer; must never block.
pub trait CallSink: Send + 'static {
    /// Progress parameters as the upstream sent them.
    fn progress(&mut self, params: RawJson);
    /// A log message of at least the level that was wanted.
    fn log(&mut self, message: LogMessage);
    /// The upstream asks in the course of this call. `number` is the connection's own for the
    /// question, and goes with what is said to it.
    fn ask(&mut self, number: u64, question: Question);
    /// The upstream no longer wants an answer to the question of this number.
    fn withdraw(&mut self, number: u64);
    /// The one outcome. A call that its caller cancelled has none: its sink is dropped.
    fn done(self, answer: Answer);
}

/// The two limits on one call. Activity (progress, or any message tagged for it) moves the first.
#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    /// Longest silence (`call.idle_timeout`).
    pub idle: Duration,
    /// Longest time in all (`call.total_timeout`).
    pub total: Duration,
}

/// What a call wants to hear of its server's log (H-42).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogWant {
    /// The least level.
    pub level: LogLevel,
    /// Whose call it is: of several calls of one host, one hears a message that names none. None
    /// where the call is all that there is of its host.
    pub host: Option<u64>,
}

/// What became of a frame.
#[derive(Debug)]
pub enum Resolved {
    /// A call's answer or progress; delivered.
    Taken,
    /// Something for the session: the frame as it came.
    Other(Bytes),
}

/// One call in flight, or held until the opening has settled.
pub(super) struct Entry<S> {
    pub method: Method,
    pub sink: S,
    pub limits: CallLimits,
    pub wants_progress: bool,
    pub log: Option<LogWant>,
    /// Whose call it is; none where it is all that there is of its host.
    pub host: Option<u64>,
    /// What that host can be asked, where it can be asked anything.
    pub declared: Option<RawJson>,
    /// Questions that its upstream waits with for an answer. Meanwhile its silence has no limit.
    pub open: usize,
    /// It may be answered by a task.
    pub task: bool,
    pub started: Instant,
    pub last_activity: Instant,
    /// Which frame of the link carries it (the first is 1); `None` while it is held.
    pub frame: Option<u64>,
}

impl<S> Entry<S> {
    /// When it must be looked at, and which limit strikes then.
    fn due(&self) -> Option<(Instant, Struck)> {
        let idle = after(self.last_activity, self.limits.idle).filter(|_| self.open == 0);
        let idle = idle.map(|at| (at, Struck::Idle));
        let total = after(self.started, self.limits.total).map(|at| (at, Struck::Total));
        [idle, total].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// Whose a question is that does not say to which call it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Nothing is in flight.
    Nobodys,
    /// All that is in flight belongs to one host: this call is the oldest that can answer, or the
    /// oldest where none can.
    Of {
        /// The call.
        call: u64,
        /// Its host.
        host: Option<u64>,
    },
    /// Calls of several hosts are in flight.
    Unknown,
}

/// Which limit of a call struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Struck {
    Idle,
    Total,
}

impl Struck {
    pub(super) fn limit(self, limits: &CallLimits) -> Limit {
        match self {
            Self::Idle => Limit::time(Timer::Calls.setting(), limits.idle),
            Self::Total => Limit::time(CALL_TOTAL, limits.total),
        }
    }
}

/// Calls whose limit has struck, by id.
pub(super) type Expired<S> = Vec<(u64, Struck, Entry<S>)>;

/// See the module.
pub struct Pending<S> {
    next_id: AtomicU64,
    table: Mutex<Table<S>>,
}

struct Table<S> {
    /// Set once the opening has settled; no call is on the wire before.
    revision: Option<Revision>,
    calls: HashMap<u64, Entry<S>>,
    last_activity: Option<Instant>,
    last_heard: Option<Instant>,
}

impl<S: CallSink> Pending<S> {
    /// Nothing in flight.
    pub fn new() -> Self {
        let table =
            Table { revision: None, calls: HashMap::new(), last_activity: None, last_heard: None };
        Self { next_id: AtomicU64::new(1), table: Mutex::new(table) }
    }

    /// Takes the next request id (plain integers from 1, F13). The caller takes it before it asks
    /// for the call, so that it can cancel by it at any time.
    pub fn take_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Delivers a frame to the call it answers or reports on.
    pub fn resolve(&self, now: Instant, frame: Bytes) -> Resolved {
        self.resolve_of(now, None, frame)
    }

    /// The same for a frame that came on the stream which answers call `about`: what names no call
    /// is about that one.
    pub fn resolve_of(&self, now: Instant, about: Option<u64>, frame: Bytes) -> Resolved {
        // Arrays are rare (one revision has them) and may hold anything: the session unpacks them.
        if scan::is_batch(&frame) {
            return Resolved::Other(frame);
        }
        match parse_noting(&frame) {
            // A frame that had to be repaired goes by the session, which warns (F09).
            (Ok(Incoming::One(message)), false) if self.take_message(now, about, &message) => {
                Resolved::Taken
            }
            _ => Resolved::Other(frame),
        }
    }

    /// Calls in flight, held ones included.
    pub fn len(&self) -> usize {
        self.lock().calls.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When something was last heard or asked here; for idle stop and wedge detection (P-13).
    pub fn last_activity(&self) -> Option<Instant> {
        self.lock().last_activity
    }

    /// Whether `message` was for a call; then it has been delivered.
    pub(super) fn take_message(&self, now: Instant, about: Option<u64>, message: &Message) -> bool {
        match message {
            Message::Response(response) => {
                let Some(id) = response.id.as_ref().and_then(Id::as_u64) else {
                    return false;
                };
                self.answer(now, id, response.outcome.clone())
            }
            Message::Notification(note) if note.method.as_str() == "notifications/progress" => {
                if let Some(params) = &note.params {
                    self.progress(now, params);
                }
                // Also when nobody is concerned: made-up and late tokens end here (F37).
                true
            }
            Message::Notification(note) if note.method.as_str() == "notifications/message" => {
                let message = note.params.as_ref().and_then(LogMessage::read);
                message.is_some_and(|message| self.log(now, about, &message))
            }
            _ => false,
        }
    }

    /// Ends call `id` with the outcome the upstream gave it; whether there was such a call.
    pub(super) fn answer(&self, now: Instant, id: u64, outcome: Outcome) -> bool {
        let (entry, revision) = {
            let mut table = self.lock();
            let Some(entry) = table.calls.remove(&id) else { return false };
            table.last_activity = Some(now);
            table.last_heard = Some(now);
            (entry, table.revision.unwrap_or(Revision::NEWEST_LEGACY))
        };
        let created = match &outcome {
            Ok(result) if entry.task && !revision.is_modern() => {
                edge::tasks::lift_created(revision, result)
            }
            _ => None,
        };
        entry.sink.done(match created {
            None => classify(revision, &entry.method, outcome),
            Some(Ok(task)) => Answer::Task(task.handle()),
            Some(Err(why)) => Answer::Invalid(format!("its result is no valid task: {why}")),
        });
        true
    }

    fn progress(&self, now: Instant, params: &RawJson) {
        // Only a plain integer can be ours; the members of another call's text are not looked at.
        let token = scan::member(params.as_bytes(), "progressToken");
        let token = token.and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<u64>().ok());
        let Some(token) = token else { return };
        let mut table = self.lock();
        let Some(entry) = table.calls.get_mut(&token) else { return };
        // A call that sent no token gets no progress, even if its id is guessed.
        if !entry.wants_progress || entry.frame.is_none() {
            return;
        }
        entry.last_activity = now;
        // Under the lock, so that no progress can follow the outcome; a sink never blocks.
        entry.sink.progress(params.clone());
        table.last_activity = Some(now);
        table.last_heard = Some(now);
    }

    /// A log message: for the call on whose stream it came, else, where that cannot be known, for
    /// one call of each host that has any on the wire. Whether it was about calls at all; then it
    /// is nobody else's, also where none of them wants it.
    fn log(&self, now: Instant, about: Option<u64>, message: &LogMessage) -> bool {
        let mut table = self.lock();
        table.last_heard = Some(now);
        let on_the_wire = || {
            let sent = table.calls.iter().filter(|(_, entry)| entry.frame.is_some());
            sent.map(|(id, _)| *id).collect()
        };
        let mut sent: Vec<u64> = about.map_or_else(on_the_wire, |id| vec![id]);
        // The newest call of a host is the likeliest.
        sent.sort_unstable_by(|a, b| b.cmp(a));
        let mut told = Vec::new();
        for id in &sent {
            let Some(entry) = table.calls.get_mut(id) else { continue };
            if about.is_some() {
                entry.last_activity = now;
            }
            let Some(want) = entry.log.filter(|want| message.level >= want.level) else { continue };
            if want.host.is_none() || !told.contains(&want.host) {
                told.push(want.host);
                entry.sink.log(message.clone());
            }
        }
        !sent.is_empty()
    }

    /// The opening has settled.
    pub(super) fn settle(&self, revision: Revision) {
        self.lock().revision = Some(revision);
    }

    /// Enters a call.
    pub(super) fn insert(&self, id: u64, entry: Entry<S>) {
        let mut table = self.lock();
        table.last_activity = Some(entry.started);
        let old = table.calls.insert(id, entry);
        drop(table);
        if let Some(old) = old {
            let why = format!("call id {id} was used again");
            old.sink.done(Answer::Lost { written: old.frame.is_some(), why });
        }
    }

    /// A held call goes onto the wire as frame `frame`; `false` where it is gone by now.
    pub(super) fn mark_sent(&self, now: Instant, id: u64, frame: u64) -> bool {
        let mut table = self.lock();
        let Some(entry) = table.calls.get_mut(&id) else { return false };
        entry.frame = Some(frame);
        entry.last_activity = now;
        true
    }

    /// A call that was put on the wire never left, or was not looked at.
    pub(super) fn mark_held(&self, id: u64) {
        if let Some(entry) = self.lock().calls.get_mut(&id) {
            entry.frame = None;
        }
    }

    /// Takes a call out without an outcome.
    pub(super) fn remove(&self, id: u64) -> Option<Entry<S>> {
        self.lock().calls.remove(&id)
    }

    /// Whether `id` is in flight.
    pub(super) fn contains(&self, id: u64) -> bool {
        self.lock().calls.contains_key(&id)
    }

    /// The id of the one call on the wire, where there is exactly one.
    pub(super) fn only(&self) -> Option<u64> {
        let table = self.lock();
        let mut sent = table.calls.iter().filter(|(_, entry)| entry.frame.is_some());
        let (id, _) = sent.next()?;
        sent.next().is_none().then_some(*id)
    }

    /// Whose `question` is, judged by what is on the wire (product.md 8): never guessed.
    pub(super) fn whose(&self, question: &Question) -> Whose {
        let table = self.lock();
        let mut best: Option<(bool, Instant, u64, Option<u64>)> = None;
        for (id, entry) in table.calls.iter().filter(|(_, entry)| entry.frame.is_some()) {
            let cannot = !entry.declared.as_ref().is_some_and(|it| can_answer(it, question));
            let this = (cannot, entry.started, *id, entry.host);
            best = match best {
                None => Some(this),
                Some((.., host)) if host != entry.host || host.is_none() => return Whose::Unknown,
                Some(best) => Some(best.min(this)),
            };
        }
        best.map_or(Whose::Nobodys, |(_, _, call, host)| Whose::Of { call, host })
    }

    /// Puts a question to call `id`, whose silence has no limit from now on; whether there is one.
    pub(super) fn ask(&self, id: u64, number: u64, question: &Question) -> bool {
        let mut table = self.lock();
        let Some(entry) = table.calls.get_mut(&id) else { return false };
        entry.open += 1;
        // Under the lock, so that no question can follow the outcome; a sink never blocks.
        entry.sink.ask(number, question.clone());
        true
    }

    /// A question of call `id` is answered, or `withdrawn` is its number: when the call has no other,
    /// its silence begins to count anew, and how long it may last.
    pub(super) fn settled_question(
        &self,
        now: Instant,
        id: u64,
        withdrawn: Option<u64>,
    ) -> Option<Duration> {
        let mut table = self.lock();
        let entry = table.calls.get_mut(&id)?;
        entry.open = entry.open.saturating_sub(1);
        entry.last_activity = now;
        if let Some(number) = withdrawn {
            entry.sink.withdraw(number);
        }
        let idle = (entry.open == 0).then_some(entry.limits.idle);
        table.last_activity = Some(now);
        idle
    }

    /// Takes out the calls whose limit has struck, and says when to look again.
    pub(super) fn take_expired(&self, now: Instant) -> (Expired<S>, Option<Instant>) {
        let mut table = self.lock();
        let mut struck = Vec::new();
        let mut next: Option<Instant> = None;
        for (id, entry) in &table.calls {
            let Some((at, which)) = entry.due() else { continue };
            if at <= now {
                struck.push((*id, which));
            } else {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        let take = |(id, which)| Some((id, which, table.calls.remove(&id)?));
        (struck.into_iter().filter_map(take).collect(), next)
    }

    /// The link ended: every call is told.
    pub(super) fn close(&self, closed: &Closed) {
        let calls = std::mem::take(&mut self.lock().calls);
        for entry in calls.into_values() {
            // F23: what was never begun to be written has surely not been done.
            let written = entry.frame.is_some_and(|frame| frame <= closed.frames_begun);
            entry.sink.done(Answer::Lost { written, why: closed.why.clone() });
        }
    }

    /// A message that no call was waiting for.
    pub(super) fn heard(&self, now: Instant) {
        self.lock().last_heard = Some(now);
    }

    /// When the upstream last said anything that is a message.
    pub(super) fn last_heard(&self) -> Option<Instant> {
        self.lock().last_heard
    }

    /// Whether `id` was ever given out.
    pub(super) fn was_taken(&self, id: u64) -> bool {
        (1..self.next_id.load(Ordering::Relaxed)).contains(&id)
    }

    fn lock(&self) -> MutexGuard<'_, Table<S>> {
        // Nothing panics inside the lock but a sink could; the table itself is whole all the time.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an outcome from the wire means. The wire has been parsed once; of a modern result one member
/// is looked up, a legacy one has none to look for.
pub(super) fn classify(revision: Revision, method: &Method, outcome: Outcome) -> Answer {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return Answer::Error(edge::lift_error(revision, method, error)),
    };
    if !result.is_object() {
        return Answer::Invalid("its result is no object".to_owned());
    }
    if revision.is_modern() {
        match scan::member(result.as_bytes(), "resultType") {
            // It has what newest shape asks for.
            Some(br#""complete""#) => return Answer::Complete(result),
            None => {}
            Some(br#""input_required""#) => return Answer::InputRequired(result),
            Some(br#""task""#) => return Answer::Task(result),
            Some(other) => {
                let other = String::from_utf8_lossy(other.get(..MAX_QUOTED).unwrap_or(other));
                return Answer::Invalid(format!("its result has the unknown resultType {other}"));
            }
        }
    }
    Answer::Complete(edge::lift_result(revision, method, result))
}

/// How much of a peer's text an error quotes.
const MAX_QUOTED: usize = 80;

impl<S: CallSink> Default for Pending<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for Pending<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("next_id", &self.next_id).finish_non_exhaustive()
    }
}
