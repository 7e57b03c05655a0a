//! The program `mcpx __sandbox`: it runs one script, in a process of its own, and ends.
//!
//! The engine has a thread of its own. The first thread reads the script, hands it over, and then
//! watches: processor time, because the engine's native loops look at no clock, and stdin, because
//! nobody wants the script's result when the daemon is gone. When it returns, the process ends, whatever
//! the engine is doing.

mod bridge;
mod compile;
mod cpu;
mod engine;
mod failure;
mod host;
mod live;
mod pipe;
mod trace;

use std::io::{self, PipeReader, PipeWriter};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::resource::{Resource, setrlimit};

use self::cpu::Cpu;
use self::engine::Engine;
use self::pipe::{Lines, Out};
use crate::script::wire::{Failure, FromSandbox, Run, ToSandbox};

/// How much less than the daemon this process wants of the processor (`nice`).
const NICE: i32 = 10;

/// Processor time beyond the limit for the engine to say where the script was, in milliseconds; it can where
/// that was not in a native loop.
const LAST_WORDS_MS: u64 = 50;

/// What the engine's thread gets to do.
struct Work {
    run: Run,
    lines: Lines,
    cpu: Cpu,
}

/// Why watching ends.
enum Watched {
    /// The engine's thread has ended.
    Ended,
    /// The daemon has gone.
    Gone,
    /// The processor time is used up.
    Over,
}

/// Whether a script can run at all: its first mistake, where it has one. Takes as long as reading it does.
pub fn check(source: &str) -> Result<(), Failure> {
    compile::compile(source).map(drop)
}

/// Runs one script for the daemon on the other side of stdin and stdout. `now` is the clock for timers.
pub fn run(now: fn() -> Instant) -> io::Result<()> {
    // Without it everything works, calls only wait a little more.
    let _ = rustix::process::nice(NICE);
    let out = Arc::new(Out::default());
    let (ready, is_ready) = mpsc::sync_channel(1);
    let (hand, work) = mpsc::sync_channel(1);
    let (ended, ending) = io::pipe()?;
    let thread = thread::Builder::new().name("engine".to_owned()).stack_size(engine::STACK);
    let theirs = Arc::clone(&out);
    thread.spawn(move || engine(now, &theirs, &ready, &work, ending))?;
    let stands: Result<(), String> =
        is_ready.recv().unwrap_or_else(|_| Err("the engine ended".to_owned()));
    stands.map_err(io::Error::other)?;
    confine();
    out.say(&FromSandbox::Ready)?;
    out.flush()?;
    let mut lines = Lines::default();
    let Some(line) = lines.wait()? else {
        return Ok(());
    };
    let ToSandbox::Run(run) = serde_json::from_slice(line)? else {
        return Err(io::Error::other("an answer came before there was a script"));
    };
    let cpu = Cpu::from_now(run.limits.cpu_ms);
    let handed = hand.send(Work { run, lines, cpu });
    match watch(&ended, cpu.with_more(LAST_WORDS_MS))? {
        Watched::Gone => Ok(()),
        Watched::Over => out.end(&FromSandbox::Failed(failure::cpu(cpu.limit(), None))),
        // Said only where the engine has not said how it ended.
        Watched::Ended => out.end(&FromSandbox::Failed(failure::broken())),
    }
    .and(handed.map_err(io::Error::other))
}

/// Nothing here opens anything or leaves a core behind; should a script ever get out of the engine, the
/// system refuses that as well.
fn confine() {
    // What is open already: three streams, and the pipe between the threads. `poll` counts with it.
    const OPEN: u64 = 3;
    for (resource, limit) in [(Resource::RLIMIT_NOFILE, OPEN), (Resource::RLIMIT_CORE, 0)] {
        // A second wall, whose absence breaks nothing.
        let _ = setrlimit(resource, limit, limit);
    }
}

/// The engine's thread. `ending` is closed when it returns, and when it panics.
fn engine(
    now: fn() -> Instant,
    out: &Arc<Out>,
    ready: &SyncSender<Result<(), String>>,
    work: &Receiver<Work>,
    ending: PipeWriter,
) {
    let _ending = ending;
    match Engine::new(now, Arc::clone(out)) {
        Ok(engine) => {
            // Freeing a heap that ends with the process costs time and helps nobody.
            let engine = ManuallyDrop::new(engine);
            let _ = ready.send(Ok(()));
            if let Ok(Work { run, lines, cpu }) = work.recv() {
                engine.bridge.listen(lines);
                live::run(&engine, &run, out, cpu);
            }
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    }
}

/// Waits until something ends.
fn watch(ended: &PipeReader, cpu: Cpu) -> io::Result<Watched> {
    let stdin = io::stdin();
    loop {
        let Some(left) = cpu.left() else {
            return Ok(Watched::Over);
        };
        // No event is asked for: only the end of the other side is told.
        let mut watched = [
            PollFd::new(ended.as_fd(), PollFlags::empty()),
            PollFd::new(stdin.as_fd(), PollFlags::empty()),
        ];
        // One thread cannot use more processor time than passes meanwhile.
        match poll(&mut watched, pipe::timeout(left)) {
            Ok(0) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) if watched[0].any() == Some(true) => return Ok(Watched::Ended),
            Ok(_) => return Ok(Watched::Gone),
        }
    }
}
