//! How a run fails, in words.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use serde::Deserialize;

use super::compile::{Compiled, FILE};
use crate::protocol::jsonrpc::RawJson;
use crate::script::wire::{Failure, Limits, limit};

/// The prelude's account of what was thrown.
#[derive(Debug, Deserialize)]
pub(super) struct Told {
    name: String,
    message: String,
    stack: Option<String>,
    content: Option<RawJson>,
    limit: Option<String>,
}

/// What was thrown and caught by nobody.
pub(super) fn uncaught(told: Told, compiled: &Compiled, limits: &Limits) -> Failure {
    let place = told.stack.as_deref().and_then(|stack| place(stack, compiled));
    let failure = match (told.name.as_str(), told.message.as_str()) {
        ("InternalError", "out of memory") => memory(limits),
        ("RangeError", "Maximum call stack size exceeded") => stack(limits),
        _ => Failure {
            name: told.name,
            message: told.message,
            line: None,
            column: None,
            limit: told.limit,
            content: told.content,
        },
    };
    Failure { line: place.map(|place| place.0), column: place.map(|place| place.1), ..failure }
}

/// `null` was thrown: by the script, or by the engine where no memory is left for an error.
pub(super) fn null(limits: &Limits) -> Failure {
    let peak = getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.max_rss());
    let peak = usize::try_from(peak).unwrap_or_default().saturating_mul(1024);
    if peak > limits.memory / 2 { memory(limits) } else { plain("Error", "null was thrown") }
}

/// The topmost place in the script of a trace.
fn place(stack: &str, compiled: &Compiled) -> Option<(u32, u32)> {
    stack.match_indices(FILE).find_map(|(at, name)| {
        let mut numbers =
            stack.get(at + name.len()..)?.strip_prefix(':')?.split(|c: char| !c.is_ascii_digit());
        let line = numbers.next()?.parse().ok()?;
        let column = numbers.next()?.parse().ok()?;
        compiled.origin((line, column))
    })
}

fn struck(name: &str, message: String) -> Failure {
    let limit = Some(name.to_owned());
    Failure {
        name: "LimitError".to_owned(),
        message,
        line: None,
        column: None,
        limit,
        content: None,
    }
}

/// Too much processor time.
pub(super) fn cpu(allowed: Duration) -> Failure {
    struck(
        limit::CPU_TIME,
        format!(
            "the script used more than {allowed:?} of processor time (exec.cpu_time): look for a loop without end, or do less in one script"
        ),
    )
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

/// A number of bytes for people.
pub(super) fn size(bytes: usize) -> String {
    const KIB: usize = 1024;
    match bytes {
        0..KIB => format!("{bytes} B"),
        _ if bytes < KIB * KIB => format!("{} KiB", bytes / KIB),
        _ => format!("{}.{} MiB", bytes / (KIB * KIB), bytes % (KIB * KIB) * 10 / (KIB * KIB)),
    }
}
