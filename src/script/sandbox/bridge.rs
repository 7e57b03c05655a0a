//! What the prelude may ask of this program.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pipe::{Lines, Out};
use super::trace::Positions;
use crate::protocol::jsonrpc::RawJson;
use crate::script::wire::{Call, FromSandbox, Log, Target, ToSandbox};

/// State that the engine's host functions share with the run.
pub(super) struct Bridge {
    now: fn() -> Instant,
    out: Arc<Out>,
    lines: RefCell<Lines>,
    /// What came while something else was waited for.
    early: RefCell<VecDeque<Result<ToSandbox, ()>>>,
    /// The processor time is used up.
    over: Cell<bool>,
    /// Nobody reads what we say.
    gone: Cell<bool>,
    /// Calls that are not answered.
    open: Cell<usize>,
    timers: RefCell<Timers>,
    positions: OnceCell<Positions>,
    log_left: Cell<usize>,
    /// Lines for which there was no room any more.
    unheard: Cell<usize>,
}

/// Timers that run, by number.
#[derive(Default)]
struct Timers {
    ends: HashMap<u32, Instant>,
    order: BTreeSet<(Instant, u32)>,
}

impl Bridge {
    pub(super) fn new(now: fn() -> Instant, out: Arc<Out>) -> Self {
        Self {
            now,
            out,
            lines: RefCell::default(),
            early: RefCell::default(),
            over: Cell::new(false),
            gone: Cell::new(false),
            open: Cell::new(0),
            timers: RefCell::default(),
            positions: OnceCell::new(),
            log_left: Cell::new(0),
            unheard: Cell::new(0),
        }
    }

    /// Makes a call.
    pub(super) fn call(&self, number: u32, kind: &str, a: String, b: String, arguments: String) {
        let target = match kind {
            "tool" => Target::Tool { namespace: a, tool: b },
            "own" => Target::Own { name: a },
            _ => Target::Artifact,
        };
        // The engine has written it.
        let arguments = RawJson::trusted(arguments);
        self.open.set(self.open.get() + 1);
        self.say(&FromSandbox::Call(Call { call: u64::from(number), target, arguments }));
    }

    /// From here on the daemon is heard by these.
    pub(super) fn listen(&self, lines: Lines) {
        self.lines.replace(lines);
    }

    /// Waits for the daemon to say more, for as long as this; `false` once it has gone.
    pub(super) fn wait(&self, wait: Option<Duration>) -> bool {
        let has_some = !self.early.borrow().is_empty();
        has_some || self.lines.borrow_mut().fill(wait).unwrap_or(false)
    }

    /// What it has said next; an error where that is nothing it could say.
    pub(super) fn heard(&self) -> Option<Result<ToSandbox, ()>> {
        let early = self.early.borrow_mut().pop_front();
        early.or_else(|| self.next_line())
    }

    fn next_line(&self) -> Option<Result<ToSandbox, ()>> {
        self.lines.borrow_mut().next().map(understood)
    }

    /// What there is to call, as the daemon says it. The script stands still meanwhile: names are asked for
    /// in the middle of its expressions.
    pub(super) fn offered(&self) -> String {
        self.say(&FromSandbox::Offered);
        self.flush();
        let mut lines = self.lines.borrow_mut();
        let mut early = self.early.borrow_mut();
        let mut offered = None;
        while offered.is_none() && !self.gone.get() {
            match lines.wait().ok().flatten().map(understood) {
                Some(Ok(ToSandbox::Offered(told))) => offered = Some(told.as_str().to_owned()),
                Some(Ok(other)) => early.push_back(Ok(other)),
                Some(Err(())) | None => self.gone.set(true),
            }
        }
        // What was read with it is not waited for again.
        while let Some(line) = lines.next() {
            early.push_back(understood(line));
        }
        offered.unwrap_or_else(|| "[]".to_owned())
    }

    pub(super) fn say(&self, frame: &FromSandbox) {
        if self.out.say(frame).is_err() {
            self.gone.set(true);
        }
    }

    /// How much more `console` may be told, in bytes.
    pub(super) fn set_log_limit(&self, limit: usize) {
        self.log_left.set(limit);
    }

    /// See [`Self::set_log_limit`].
    pub(super) fn log_left(&self) -> usize {
        self.log_left.get()
    }

    /// Passes on what `console` was told, as far as there is room.
    pub(super) fn log(&self, level: String, mut text: String) {
        let room = self.log_left.get();
        if text.len() > room {
            text.truncate(text.floor_char_boundary(room));
            text.push('…');
        }
        self.log_left.set(room.saturating_sub(text.len()));
        self.say(&FromSandbox::Log(Log { level, text }));
    }

    /// Counts a line for which there is no room.
    pub(super) fn drop_line(&self) {
        self.unheard.set(self.unheard.get() + 1);
    }

    /// How many lines there was no room for.
    pub(super) fn dropped_lines(&self) -> usize {
        self.unheard.get()
    }

    /// Where in the script what stands in the code; nothing does before there is one.
    pub(super) fn set_positions(&self, positions: Positions) {
        // There is one script.
        let _ = self.positions.set(positions);
    }

    /// See [`Self::set_positions`].
    pub(super) fn positions(&self) -> &Positions {
        self.positions.get_or_init(Positions::default)
    }

    /// Writes what was said.
    pub(super) fn flush(&self) {
        if self.out.flush().is_err() {
            self.gone.set(true);
        }
    }

    /// One call is answered.
    pub(super) fn answered(&self) {
        self.open.set(self.open.get().saturating_sub(1));
    }

    /// How many calls are not answered.
    pub(super) fn open(&self) -> usize {
        self.open.get()
    }

    pub(super) fn set_over(&self) {
        self.over.set(true);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Whether the script may not go on.
    pub(super) fn must_stop(&self) -> bool {
        self.over.get() || self.gone.get()
    }

    /// Sets a timer; one that runs already starts anew.
    pub(super) fn set_timer(&self, number: u32, milliseconds: f64) {
        let wait =
            Duration::try_from_secs_f64(milliseconds.max(0.0) / 1e3).unwrap_or(Duration::MAX);
        // A timer that ends in no time that there is never does: it is as good as none.
        if let Some(end) = (self.now)().checked_add(wait) {
            self.timers.borrow_mut().set(number, end);
        }
    }

    /// Stops a timer.
    pub(super) fn clear_timer(&self, number: u32) {
        self.timers.borrow_mut().clear(number);
    }

    /// How long until the next timer ends.
    pub(super) fn next_timer(&self) -> Option<Duration> {
        let end = self.timers.borrow().order.first()?.0;
        Some(end.saturating_duration_since((self.now)()))
    }

    /// Takes out a timer that has ended.
    pub(super) fn due_timer(&self) -> Option<u32> {
        let mut timers = self.timers.borrow_mut();
        let (end, number) = *timers.order.first()?;
        let due = end <= (self.now)();
        due.then(|| timers.clear(number))?;
        Some(number)
    }
}

/// What the daemon has said.
fn understood(line: &[u8]) -> Result<ToSandbox, ()> {
    serde_json::from_slice(line).map_err(drop)
}

impl Timers {
    fn set(&mut self, number: u32, end: Instant) {
        self.clear(number);
        self.ends.insert(number, end);
        self.order.insert((end, number));
    }

    fn clear(&mut self, number: u32) {
        if let Some(end) = self.ends.remove(&number) {
            self.order.remove(&(end, number));
        }
    }
}
