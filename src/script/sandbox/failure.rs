//! How a run fails, in words.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use serde::Deserialize;

use super::trace::{Place, Positions};
use crate::protocol::jsonrpc::RawJson;
use crate::script::wire::{Failure, Limits, limit};

/// The prelude's account of what was thrown.
#[derive(Debug, Deserialize)]
pub(super) struct Told {
    name: String,
    message: String,
    stack: Option<String>,
    content: Option<RawJson>,
    limit: Option<Box<str>>,
}

impl Told {
    /// Where in the script it was thrown.
    pub(super) fn place(&self, positions: &Positions) -> Option<Place> {
        self.stack.as_deref().and_then(|stack| positions.place(stack))
    }
}

/// What was thrown and caught by nobody.
pub(super) fn uncaught(told: Told, positions: &Positions, limits: &Limits) -> Failure {
    let place = told.place(positions);
    let failure = match (told.name.as_str(), told.message.as_str()) {
        ("InternalError", "out of memory") => memory(limits),
        ("RangeError", "Maximum call stack size exceeded") => stack(limits),
        _ => Failure {
            message: hinted(&told.name, told.message),
            name: told.name,
            line: None,
            column: None,
            limit: told.limit,
            content: told.content,
        },
    };
    at(place, failure)
}

fn at(place: Option<Place>, failure: Failure) -> Failure {
    Failure { line: place.map(|place| place.0), column: place.map(|place| place.1), ..failure }
}

/// An error's message, with a hint where a script took itself for a program with a machine around it.
fn hinted(name: &str, message: String) -> String {
    const MISSED: [&str; 12] = [
        "fetch",
        "require",
        "process",
        "Buffer",
        "XMLHttpRequest",
        "WebSocket",
        "Deno",
        "Bun",
        "fs",
        "module",
        "exports",
        "window",
    ];
    let missed = message.strip_suffix(" is not defined");
    let outside = missed.is_some_and(|missed| MISSED.contains(&missed))
        || message.starts_with("could not load module");
    if name == "ReferenceError" && outside {
        return format!(
            "{message}: scripts have no modules, network, files or processes; use `tools`, `mcpx`, `artifacts` and `input`"
        );
    }
    message
}

/// `null` was thrown: by the script, or by the engine where no memory is left for an error.
pub(super) fn null(limits: &Limits) -> Failure {
    let peak = getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.max_rss());
    let peak = usize::try_from(peak).unwrap_or_default().saturating_mul(1024);
    if peak > limits.memory / 2 { memory(limits) } else { plain("Error", "null was thrown") }
}

fn struck(name: &str, message: String) -> Failure {
    let limit = Some(name.to_owned());
    Failure {
        name: "LimitError".to_owned(),
        message,
        line: None,
        column: None,
        limit: limit.map(String::into_boxed_str),
        content: None,
    }
}

/// Too long a script.
pub(super) fn source(bytes: usize, longest: usize) -> Failure {
    struck(
        limit::SOURCE,
        format!(
            "the script has {bytes} bytes, more than {longest} (exec.max_source): give data as `input`, or read it with a tool"
        ),
    )
}

/// Too much processor time, and where it was by then.
pub(super) fn cpu(allowed: Duration, place: Option<Place>) -> Failure {
    let failure = struck(
        limit::CPU_TIME,
        format!(
            "the script used more than {allowed:?} of processor time (exec.cpu_time): look for a loop without end, or do less in one script"
        ),
    );
    at(place, failure)
}

/// Too much memory.
pub(super) fn memory(limits: &Limits) -> Failure {
    struck(
        limit::MEMORY,
        format!(
            "the script needed more than {} of memory (exec.memory): keep less at once, work through it in parts",
            size(limits.memory)
        ),
    )
}

/// Too deep.
pub(super) fn stack(limits: &Limits) -> Failure {
    struck(
        limit::STACK,
        format!(
            "the script called itself or nested its data more deeply than {} of stack hold (exec.stack)",
            size(limits.stack)
        ),
    )
}

/// Too large a result.
pub(super) fn output(bytes: usize, limits: &Limits) -> Failure {
    struck(
        limit::OUTPUT,
        format!(
            "the result is {} of JSON, and {} are possible (exec.output_limit): return what matters, and keep the rest with `artifacts.write(name, data)`",
            size(bytes),
            size(limits.output)
        ),
    )
}

/// The script waits, and nothing can end that.
pub(super) fn never() -> Failure {
    plain(
        "Error",
        "the script waits for a promise that nothing will ever settle: no call is open and no timer set",
    )
}

/// The engine's thread has ended without a word.
pub(super) fn broken() -> Failure {
    plain("InternalError", "the sandbox failed; this is a fault of mcpx, not of the script")
}

/// A failure of the sandbox itself.
pub(super) fn plain(name: &str, message: &str) -> Failure {
    Failure {
        name: name.to_owned(),
        message: message.to_owned(),
        line: None,
        column: None,
        limit: None,
        content: None,
    }
}

/// What a script that gives no value may have meant otherwise: `tools.a.b().c` is nothing.
pub(super) fn unawaited(calls: usize) -> String {
    let these = if calls == 1 { "a call was".to_owned() } else { format!("{calls} calls were") };
    format!(
        "{these} not awaited: without `await` it is a promise, which has none of the value's members"
    )
}

/// What `console` was told in vain.
pub(super) fn dropped(lines: usize, limits: &Limits) -> String {
    let limit = size(limits.log);
    format!("the last {lines} lines of console output were dropped ({} is {limit})", limit::LOG)
}

/// A number of bytes for people.
pub(super) fn size(bytes: usize) -> String {
    const KIB: usize = 1024;
    match bytes {
        0..KIB => format!("{bytes} B"),
        _ if bytes < KIB * KIB => format!("{} KiB", bytes / KIB),
        _ => format!("{}.{} MiB", bytes / (KIB * KIB), bytes % (KIB * KIB) * 10 / (KIB * KIB)),
    }
}
