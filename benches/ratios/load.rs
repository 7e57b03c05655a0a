//! The role `load`: one series against one command or one endpoint, on its own. For use under `perf`, and to see
//! what a single figure comes from.
//!
//! `load [--modern] [--tool T] [--payload BYTES] [--in-flight N] [--calls N] -- COMMAND…`
//! `load … --at 127.0.0.1:PORT` speaks HTTP to `/mcp` there.

use std::io;
use std::process::Command;

use crate::args::Args;
use crate::host::{Era, Host, Outcome, Plan};
use crate::http_host::HttpHost;
use crate::process::{Spawned, cpu_seconds};

/// Runs it and prints a line.
pub fn run(args: &Args) -> io::Result<()> {
    let era = if args.flag("--modern") { Era::Modern } else { Era::Legacy };
    let plan = Plan {
        tool: args.value("--tool").unwrap_or("echo"),
        payload: args.number("--payload").unwrap_or(100) as usize,
        in_flight: args.number("--in-flight").unwrap_or(1) as usize,
        calls: args.number("--calls").unwrap_or(10_000) as usize,
    };
    if let Some(addr) = args.value("--at") {
        let mut host = HttpHost::open(addr.parse().map_err(io::Error::other)?, era)?;
        host.run(Plan { calls: (plan.calls / 10).max(1), ..plan })?;
        print(&host.run(plan)?, None);
        return Ok(());
    }
    let words = args.rest();
    let Some((program, rest)) = words.split_first() else {
        return Err(io::Error::other("load: no command after --"));
    };
    let mut host = Host::spawn(Spawned::start(Command::new(program).args(rest))?, era);
    host.handshake()?;
    host.run(Plan { calls: (plan.calls / 10).max(1), ..plan })?;
    let pid = host.pid();
    let before = pid.map_or(f64::NAN, cpu_seconds);
    let outcome = host.run(plan)?;
    print(&outcome, Some(pid.map_or(f64::NAN, cpu_seconds) - before));
    Ok(())
}

fn print(outcome: &Outcome, cpu: Option<f64>) {
    let cpu = cpu.map(|seconds| format!(", {seconds:.2} s CPU of the command"));
    println!(
        "p50 {:.1} us, p99 {:.1} us, {:.0} calls/s, {} errors{}",
        outcome.latencies.percentile(0.5),
        outcome.latencies.percentile(0.99),
        outcome.rate,
        outcome.errors,
        cpu.unwrap_or_default(),
    );
}
