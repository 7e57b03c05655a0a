//! The role `load`: one series against one command, on its own. For use under `perf`, and to see
//! what a single figure comes from.
//!
//! `load [--modern] [--tool T] [--payload BYTES] [--in-flight N] [--calls N] -- COMMAND…`

use std::io;
use std::process::Command;

use crate::args::Args;
use crate::host::{Era, Host, Plan};
use crate::process::{Spawned, cpu_seconds};

/// Runs it and prints a line.
pub fn run(args: &Args) -> io::Result<()> {
    let words = args.rest();
    let Some((program, rest)) = words.split_first() else {
        return Err(io::Error::other("load: no command after --"));
    };
    let era = if args.flag("--modern") { Era::Modern } else { Era::Legacy };
    let mut host = Host::spawn(Spawned::start(Command::new(program).args(rest))?, era);
    host.handshake()?;
    let plan = Plan {
        tool: args.value("--tool").unwrap_or("echo"),
        payload: args.number("--payload").unwrap_or(100) as usize,
        in_flight: args.number("--in-flight").unwrap_or(1) as usize,
        calls: args.number("--calls").unwrap_or(10_000) as usize,
    };
    host.run(Plan { calls: (plan.calls / 10).max(1), ..plan })?;
    let pid = host.pid();
    let before = pid.map_or(f64::NAN, cpu_seconds);
    let outcome = host.run(plan)?;
    println!(
        "p50 {:.1} us, p99 {:.1} us, {:.0} calls/s, {} errors, {:.2} s CPU of the command",
        outcome.latencies.percentile(0.5),
        outcome.latencies.percentile(0.99),
        outcome.rate,
        outcome.errors,
        pid.map_or(f64::NAN, cpu_seconds) - before,
    );
    Ok(())
}
