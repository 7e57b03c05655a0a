//! The engine: `QuickJS` with everything a script finds, but no script yet.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use rquickjs::context::EvalOptions;
use rquickjs::{
    CatchResultExt as _, Context, Ctx, FromJs, Function, Object, Persistent, Runtime, Value,
};

use super::bridge::Bridge;
use super::cpu::Cpu;
use super::host;
use super::pipe::Out;
use crate::script::wire::Limits;

/// What a script finds: `core` makes it, with the help of the others.
const CORE: &str = include_str!("prelude/core.js");
const JSON: &str = include_str!("prelude/json.js");
const INSPECT: &str = include_str!("prelude/inspect.js");
const WEB: &str = include_str!("prelude/web.js");

/// The name of the prelude in traces.
const PRELUDE: &str = "mcpx";

/// The stack of the thread that makes and runs an engine, in bytes.
pub(super) const STACK: usize = 16 * 1024 * 1024;

/// What remains of it for everything that is not the engine, in bytes.
const STACK_LEFT: usize = 2 * 1024 * 1024;

/// Memory beyond the script's own limit for saying how it failed, in bytes.
const RESERVE: usize = 4 * 1024 * 1024;

/// See the module. Its heap ends with the process, and is never freed before.
pub(super) struct Engine {
    pub(super) runtime: Runtime,
    pub(super) context: Context,
    pub(super) prelude: Persistent<Object<'static>>,
    pub(super) bridge: Rc<Bridge>,
}

impl Engine {
    /// Everything that can be done before there is a script.
    pub(super) fn new(now: fn() -> Instant, out: Arc<Out>) -> Result<Self, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        runtime.set_max_stack_size(STACK - STACK_LEFT);
        let context = Context::full(&runtime).map_err(|error| error.to_string())?;
        let bridge = Rc::new(Bridge::new(now, out));
        let prelude = context.with(|ctx| {
            let make = || {
                let part = |code| evaluate::<Function<'_>>(&ctx, code, PRELUDE);
                let host = host::functions(&ctx, &bridge)?;
                let made: Object<'_> =
                    part(CORE)?.call((host, part(JSON)?, part(INSPECT)?, part(WEB)?))?;
                let rejected = Persistent::save(&ctx, made.get::<_, Function<'_>>("rejected")?);
                Ok((Persistent::save(&ctx, made), rejected))
            };
            make().catch(&ctx).map_err(|error| error.to_string())
        });
        let (prelude, rejected) = prelude?;
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, handled| {
                let rejected = rejected.clone().restore(&ctx);
                let told = rejected.and_then(|it| it.call::<_, ()>((promise, reason, handled)));
                if told.is_err() {
                    // Memory is missing, which the script learns by itself.
                    ctx.catch();
                }
            },
        )));
        Ok(Self { runtime, context, prelude, bridge })
    }

    /// Sets what a script may use from now on.
    pub(super) fn limit(&self, limits: &Limits, cpu: Cpu) {
        self.runtime.set_memory_limit(limits.memory);
        self.runtime.set_max_stack_size(limits.stack.min(STACK - STACK_LEFT));
        self.bridge.set_log_limit(limits.log);
        let bridge = Rc::clone(&self.bridge);
        self.runtime.set_interrupt_handler(Some(Box::new(move || {
            if cpu.left().is_none() {
                bridge.set_over();
            }
            bridge.is_over()
        })));
    }

    /// Lets go of some memory that scripts have not, for what is left to say.
    pub(super) fn open_reserve(&self, limits: &Limits) {
        self.runtime.set_memory_limit(limits.memory.saturating_add(RESERVE));
    }

    /// Does what is queued. What was thrown last where some of it could not be done: time is over, or memory
    /// is missing.
    pub(super) fn work(&self) -> Option<Persistent<Value<'static>>> {
        let mut failed = None;
        while !self.bridge.must_stop() {
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => break,
                Err(job) => {
                    failed = Some(job.0.with(|ctx| Persistent::save(&ctx, ctx.catch())));
                }
            }
        }
        failed
    }
}

/// The value of an expression, which stands in `file`.
pub(super) fn evaluate<'js, V: FromJs<'js>>(
    ctx: &Ctx<'js>,
    code: &str,
    file: &str,
) -> rquickjs::Result<V> {
    let mut options = EvalOptions::default();
    options.filename = Some(file.to_owned());
    ctx.eval_with_options(code, options)
}
