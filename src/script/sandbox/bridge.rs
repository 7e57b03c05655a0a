//! What the prelude may ask of this program.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rquickjs::{Ctx, Function, Object};

use super::pipe::Out;
use crate::protocol::jsonrpc::RawJson;
use crate::script::wire::{Call, FromSandbox, Log, Target};

/// State that the engine's host functions share with the run.
pub(super) struct Bridge {
    now: fn() -> Instant,
    out: Arc<Out>,
    /// The processor time is used up.
    over: Cell<bool>,
    /// Nobody reads what we say.
    gone: Cell<bool>,
    /// Calls that are not answered.
    open: Cell<usize>,
    timers: RefCell<Timers>,
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
            over: Cell::new(false),
            gone: Cell::new(false),
            open: Cell::new(0),
            timers: RefCell::default(),
        }
    }

    /// The host functions, for the prelude only.
    pub(super) fn functions<'js>(self: Rc<Self>, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        let functions = Object::new(ctx.clone())?;
        let bridge = Rc::clone(&self);
        let call = move |number: u32, kind: String, a: String, b: String, arguments: String| {
            bridge.call(number, &kind, a, b, arguments);
        };
        functions.set("call", Function::new(ctx.clone(), call)?)?;
        let bridge = Rc::clone(&self);
        let log =
            move |level: String, text: String| bridge.say(&FromSandbox::Log(Log { level, text }));
        functions.set("log", Function::new(ctx.clone(), log)?)?;
        let bridge = Rc::clone(&self);
        let timer = move |number: u32, milliseconds: f64| bridge.set_timer(number, milliseconds);
        functions.set("timer", Function::new(ctx.clone(), timer)?)?;
        let untimer = move |number: u32| self.timers.borrow_mut().clear(number);
        functions.set("untimer", Function::new(ctx.clone(), untimer)?)?;
        Ok(functions)
    }

    fn call(&self, number: u32, kind: &str, a: String, b: String, arguments: String) {
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

    pub(super) fn say(&self, frame: &FromSandbox) {
        if self.out.say(frame).is_err() {
            self.gone.set(true);
        }
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

    fn set_timer(&self, number: u32, milliseconds: f64) {
        let wait =
            Duration::try_from_secs_f64(milliseconds.max(0.0) / 1e3).unwrap_or(Duration::MAX);
        // A timer that ends in no time that there is never does: it is as good as none.
        if let Some(end) = (self.now)().checked_add(wait) {
            self.timers.borrow_mut().set(number, end);
        }
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
