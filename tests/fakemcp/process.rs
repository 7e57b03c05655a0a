//! What it does as a process: dying, ignoring, spawning (F28 to F32).

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, raise};

use crate::args::Args;
use crate::out::Out;

/// How long a sleeper lives at most, should a test forget it.
const SLEEPER: Duration = Duration::from_mins(5);

/// Everything before the first line is read.
pub fn before_start(args: &Args) {
    ignore_term(args);
    if args.flag("wrapper") || args.flag("wrapper-wait") {
        run_again(args);
    }
    let out = Out::new(args);
    out.ledger(&format!("start {}", std::process::id()));
    if let Some(text) = args.get("stderr-text") {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
    if let Some(spec) = args.get("stderr-start") {
        let (bytes, kind) = spec.split_once(':').unwrap_or((spec, "lines"));
        flood(bytes.parse().expect("--stderr-start BYTES[:KIND]"), kind);
    }
    for (flag, setsid, pipe) in [
        ("grandchild", false, false),
        ("grandchild-setsid", true, false),
        ("grandchild-pipe", false, true),
    ] {
        if args.flag(flag) {
            let pid = spawn_sleeper(setsid, pipe, args.flag("ignore-term"));
            out.ledger(&format!("spawned {pid}"));
        }
    }
    if args.flag("stop-at-start") {
        stop_self();
    }
    if let Some(millis) = args.number("start-delay") {
        std::thread::sleep(Duration::from_millis(millis));
    }
    let code = args.number("exit").unwrap_or(1);
    let early = args.number("exit-first").map(|times: usize| Out::ledger_count("start ") <= times);
    if early.unwrap_or(args.flag("exit")) {
        if early.is_some() {
            // Always after the first message: an end before it was written is another case.
            let _ = std::io::stdin().read_line(&mut String::new());
        }
        std::process::exit(code);
    }
}

/// A blocked signal stays pending for ever; threads started later inherit that.
fn ignore_term(args: &Args) {
    if args.flag("ignore-term") {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTERM);
        signals.thread_block().expect("SIGTERM can be blocked");
    }
}

/// Starts ourselves without the wrapper flag, on the same pipes.
fn run_again(args: &Args) -> ! {
    let rest =
        args.all.iter().filter(|arg| !matches!(arg.as_str(), "--wrapper" | "--wrapper-wait"));
    let mut child = Command::new(own_path()).args(rest).spawn().expect("we can be started again");
    if args.flag("wrapper-wait") {
        let code = child.wait().ok().and_then(|status| status.code());
        std::process::exit(code.unwrap_or(1));
    }
    std::process::exit(0)
}

/// A process that only sleeps, in our group or in a session of its own.
pub fn spawn_sleeper(setsid: bool, pipe: bool, ignore_term: bool) -> u32 {
    let mut command = Command::new(own_path());
    command.arg("--sleeper").stdin(Stdio::null()).stderr(Stdio::null());
    if setsid {
        command.arg("--setsid");
    }
    if ignore_term {
        command.arg("--ignore-term");
    }
    if !pipe {
        command.stdout(Stdio::null());
    }
    command.arg0("fakemcp-sleeper");
    command.spawn().expect("a sleeper can be started").id()
}

/// What such a process does.
pub fn sleeper(args: &Args) {
    ignore_term(args);
    if args.flag("setsid") {
        let _ = nix::unistd::setsid();
    }
    std::thread::sleep(SLEEPER);
}

/// Stops ourselves until somebody sends SIGCONT.
pub fn stop_self() {
    let _ = raise(Signal::SIGSTOP);
}

/// Sleeps for longer than any test.
pub fn sleep_long() -> ! {
    std::thread::sleep(SLEEPER);
    std::process::exit(0)
}

/// Writes that much to standard error: whole lines, one line with carriage returns, or bytes
/// that are no text (F32).
pub fn flood(bytes: usize, kind: &str) {
    let piece: &[u8] = match kind {
        "cr" => b"progress 50% of many things to come ...................\r",
        "binary" => b"\x00\xff\xfe\x80\x1b[31m\xc3(\x07\n",
        _ => b"a line on standard error, as some print them by the thousand ..\n",
    };
    let block = piece.repeat(1024);
    let mut err = std::io::stderr().lock();
    let mut left = bytes;
    while left > 0 {
        let count = left.min(block.len());
        if err.write_all(&block[..count]).is_err() {
            return;
        }
        left -= count;
    }
}

fn own_path() -> std::path::PathBuf {
    std::env::current_exe().expect("we know our own path")
}
