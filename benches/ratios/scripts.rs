//! Scripts: how soon one begins, what a call in one costs, what a thousand leave behind, and what
//! hostile ones do to others.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::daemon::{Bench, Daemon};
use crate::driver::Scale;
use crate::host::{Era, Host, Plan, broken};
use crate::place::Apart;
use crate::process::memory_kib;
use crate::report::{Limit, Row, Unit, micros, short};
use crate::stats::{Latencies, median};

/// Its tools stand beside mcpx's own.
const BESIDE: &str = "scope = \"global\"\nexpose = \"both\"";
/// An agent thinks between two scripts, and meanwhile the next sandbox stands ready.
const PAUSE: Duration = Duration::from_millis(30);
/// Each ends at one of its limits.
const HOSTILE: [&str; 4] = [
    "while (true) {}",
    "const all = []; while (true) all.push('x'.repeat(10000) + all.length)",
    "return /(a+)+$/.test('a'.repeat(40) + 'b')",
    "for (;;) await Promise.all(Array.from({ length: 1000 }, () => Promise.resolve(1)))",
];

/// The section.
pub fn run(bench: &Bench, scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Err(error) = alone(bench, scale, &mut rows) {
        rows.push(Row::failed("scripts", &error));
    }
    let hostile = hostile(bench, scale);
    rows.push(hostile.unwrap_or_else(|error| Row::failed("hostile scripts", &error)));
    rows
}

fn alone(bench: &Bench, scale: Scale, rows: &mut Vec<Row>) -> io::Result<()> {
    let daemon = bench.daemon("scripts", &[("echo", &[], BESIDE)])?;
    let mut host = daemon.host(Era::Legacy)?;
    host.tools()?;
    let call = Plan { tool: "echo_echo", payload: 100, in_flight: 1, calls: 2000 / scale.divide };
    host.run(call)?;
    script(&mut host, "return 1")?;
    let apart = Apart::hold(&daemon.servers());
    rows.push(begins(&mut host, call, scale)?);
    rows.push(costs(&mut host, call, scale)?);
    drop(apart);
    rows.push(leaves(&daemon, &mut host)?);
    drop(host);
    daemon.stop()
}

/// The whole of the shortest script, which is more than the way to its first statement.
fn begins(host: &mut Host, call: Plan<'_>, scale: Scale) -> io::Result<Row> {
    let (mut calls, mut scripts) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        calls.push(host.run(call)?.latencies.percentile(0.5));
        let mut whole = Latencies::with_capacity(50);
        for _ in 0..50 {
            sleep(PAUSE);
            whole.push(script(host, "return 1")?);
        }
        scripts.push(whole.percentile(0.5));
    }
    let took = median(&scripts) / 1000.0;
    let what = "mcpx_exec of `return 1`, from request to answer, warm: p50";
    Ok(Row::new(what, took, Unit::Plain("ms"), Limit::AtMost(2.0))
        .sides(format!("(a call: {})", micros(median(&calls))), micros(median(&scripts))))
}

/// What each of a thousand calls adds, one after the other, beside the same call by the host.
fn costs(host: &mut Host, call: Plan<'_>, scale: Scale) -> io::Result<Row> {
    const CALLS: usize = 1000;
    let text = "x".repeat(call.payload);
    let code = format!(
        "for (let n = 0; n < {CALLS}; n += 1) await tools.echo.echo({{ text: '{text}' }}); return 1"
    );
    let (mut calls, mut each, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let by_host = host.run(call)?.latencies.percentile(0.5);
        let in_script = script(host, &code)?.as_secs_f64() * 1e6 / CALLS as f64;
        calls.push(by_host);
        each.push(in_script);
        ratios.push(in_script / by_host);
    }
    let what = "each of 1,000 calls in a script ÷ a call by the host";
    Ok(Row::new(what, median(&ratios), Unit::Times, Limit::AtMost(4.0))
        .sides(format!("({})", micros(median(&calls))), micros(median(&each))))
}

fn leaves(daemon: &Daemon<'_>, host: &mut Host) -> io::Result<Row> {
    const RUNS: usize = 1000;
    let resident = || memory_kib(daemon.pid(), "VmRSS") / 1024.0;
    let before = resident();
    for _ in 0..RUNS {
        script(host, "return await tools.echo.echo({ text: 'x' })")?;
    }
    let after = resident();
    let what = "1,000 scripts: memory of the daemon that is not given back";
    Ok(Row::new(what, (after - before).max(0.0), Unit::Plain("MiB"), Limit::AtMost(2.0))
        .sides("", format!("{} → {} MiB", short(before), short(after))))
}

/// The p99 of calls while scripts that want everything are run by another host.
fn hostile(bench: &Bench, scale: Scale) -> io::Result<Row> {
    let (mut before, mut during) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let settings = "[http]\nlisten = \"\"\n[exec]\ncpu_time = \"2s\"\n";
        let daemon = bench.daemon_with("hostile", settings, &[("echo", &[], BESIDE)])?;
        let (mut host, mut other) = (daemon.host(Era::Legacy)?, daemon.host(Era::Legacy)?);
        host.tools()?;
        before.push(p99(&daemon, &mut host, scale)?);
        let over = AtomicBool::new(false);
        let measured = thread::scope(|scope| {
            let bad = scope.spawn(|| -> io::Result<()> {
                for code in HOSTILE.iter().cycle() {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    // Each ends at a limit, which is an answer.
                    other.ask("tools/call", &exec(code))?;
                }
                Ok(())
            });
            sleep(Duration::from_millis(200));
            let measured = p99(&daemon, &mut host, scale);
            over.store(true, Ordering::Relaxed);
            bad.join().map_err(|_| broken("the hostile host panicked".to_owned()))??;
            measured
        });
        during.push(measured?);
        drop((host, other));
        daemon.stop()?;
    }
    let ratios: Vec<f64> =
        during.iter().zip(&before).map(|(during, before)| during / before).collect();
    let what = "hostile scripts of another host: p99 of the others";
    Ok(Row::new(what, median(&ratios), Unit::Times, Limit::AtMost(2.0))
        .sides(format!("({})", micros(median(&before))), micros(median(&during))))
}

fn p99(daemon: &Daemon<'_>, host: &mut Host, scale: Scale) -> io::Result<f64> {
    let calls = 20_000 / scale.divide;
    let plan = Plan { tool: "echo_echo", payload: 100, in_flight: 1, calls };
    host.run(Plan { calls: calls / 10, ..plan })?;
    let _apart = Apart::hold(&daemon.servers());
    let outcome = host.run(plan)?;
    match outcome.errors {
        0 => Ok(outcome.latencies.percentile(0.99)),
        count => Err(broken(format!("{count} errors beside hostile scripts"))),
    }
}

fn exec(code: &str) -> String {
    let code = serde_json::Value::from(code);
    format!(r#"{{"name":"mcpx_exec","arguments":{{"code":{code}}}}}"#)
}

/// Runs one that must succeed; how long that took.
fn script(host: &mut Host, code: &str) -> io::Result<Duration> {
    let begun = Instant::now();
    let result = host.ask("tools/call", &exec(code))?;
    let took = begun.elapsed();
    if result["isError"] == true { Err(broken(format!("mcpx_exec: {result}"))) } else { Ok(took) }
}
