//! What hosts and upstreams do to each other: a thousand hosts on one server, and neighbours that
//! hang or flood.

use std::fs::File;
use std::io::{self, Read};
use std::process::Command;
use std::thread;

use crate::calls::ALONE;
use crate::daemon::{Bench, Daemon};
use crate::driver::Scale;
use crate::host::{Era, Host, Plan};
use crate::place::Apart;
use crate::process::Spawned;
use crate::report::{Limit, Row, Unit, micros};
use crate::stats::{Latencies, median};

const SHARED: &str = "scope = \"global\"\nexpose = \"passthrough\"";

/// Lines every 10 ms: 32,000 a second, some 4 MB/s.
const FLOOD: [&str; 2] = ["--flood", "320"];

/// The section.
pub fn run(bench: &Bench, scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Err(error) = thousand(bench, scale, &mut rows) {
        rows.push(Row::failed("1,000 host sessions on one server", &error));
    }
    rows.push(hung(bench, scale).unwrap_or_else(|error| Row::failed("a hung upstream", &error)));
    let flood = flooding(bench, scale);
    rows.push(flood.unwrap_or_else(|error| Row::failed("a flooding upstream", &error)));
    rows
}

/// One call at a time, each from the next of a thousand sessions, beside as many from one session.
fn thousand(bench: &Bench, scale: Scale, rows: &mut Vec<Row>) -> io::Result<()> {
    const COUNT: usize = 1000;
    let daemon = bench.daemon("thousand", &[("echo", &[], ALONE)])?;
    let mut one = daemon.attach(Era::Legacy)?;
    let mut many = Vec::new();
    for _ in 0..COUNT {
        many.push(daemon.attach(Era::Legacy)?);
    }
    let plan = Plan { tool: "echo", payload: 100, in_flight: 1, calls: 1 };
    one.run(plan)?;
    let apart = Apart::hold(&daemon.servers());
    let (mut alone, mut shared, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=scale.rounds {
        let mut single = Latencies::with_capacity(COUNT);
        for _ in 0..COUNT {
            single.absorb(one.run(plan)?.latencies);
        }
        let mut spread = Latencies::with_capacity(COUNT);
        for host in &mut many {
            spread.absorb(host.run(plan)?.latencies);
        }
        if round > 0 {
            alone.push(single.percentile(0.5));
            shared.push(spread.percentile(0.5));
            ratios.push(spread.percentile(0.5) / single.percentile(0.5));
        }
    }
    drop(apart);
    let what = "1,000 host sessions in turn ÷ one session: p50";
    rows.push(
        Row::new(what, median(&ratios), Unit::Times, Limit::AtMost(1.15))
            .sides(format!("({})", micros(median(&alone))), micros(median(&shared))),
    );
    let what = "1,000 host sessions on one global-scope server: upstream processes";
    let servers = daemon.servers().len();
    if servers == 0 {
        return Err(io::Error::other("no upstream process bears this daemon's tag"));
    }
    rows.push(Row::new(what, servers as f64, Unit::Plain(""), Limit::AtMost(1.0)));
    drop((one, many));
    daemon.stop()
}

/// The p99 of calls to a calm server while 64 calls hang in another.
fn hung(bench: &Bench, scale: Scale) -> io::Result<Row> {
    let (mut before, mut during) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let daemon =
            bench.daemon("hung", &[("calm", &[], SHARED), ("hung", &["--hang"], SHARED)])?;
        let mut host = daemon.host(Era::Legacy)?;
        let mut other = daemon.host(Era::Legacy)?;
        host.tools()?;
        before.push(calm_p99(&daemon, &mut host, scale)?);
        other.send_only(Plan { tool: "hung_echo", payload: 100, in_flight: 64, calls: 64 })?;
        during.push(calm_p99(&daemon, &mut host, scale)?);
        drop((host, other));
        daemon.stop()?;
    }
    Ok(neighbour_row("64 calls hung in another upstream", &before, &during))
}

/// The p99 of calls to a calm server while another floods, beside the same flood outside of mcpx,
/// so that the processor time of the flooder itself weighs on both sides.
fn flooding(bench: &Bench, scale: Scale) -> io::Result<Row> {
    let (mut before, mut during) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let daemon = bench.daemon("calm", &[("calm", &[], SHARED)])?;
        let mut outside = flood_outside(bench)?;
        let mut host = daemon.host(Era::Legacy)?;
        before.push(calm_p99(&daemon, &mut host, scale)?);
        outside.terminate();
        drop(host);
        daemon.stop()?;

        let daemon = bench.daemon("flood", &[("calm", &[], SHARED), ("flood", &FLOOD, SHARED)])?;
        let (mut host, other) = flooded(&daemon)?;
        during.push(calm_p99(&daemon, &mut host, scale)?);
        drop((host, other));
        daemon.stop()?;
    }
    Ok(neighbour_row("another upstream floods", &before, &during))
}

/// Two hosts, the second of which has woken the flooding server.
fn flooded(daemon: &Daemon<'_>) -> io::Result<(Host, Host)> {
    let host = daemon.host(Era::Legacy)?;
    let mut other = daemon.host(Era::Legacy)?;
    other.run(Plan { tool: "flood_echo", payload: 100, in_flight: 1, calls: 1 })?;
    Ok((host, other))
}

/// The same flood with a plain reader at its end, which leaves when the flooder is ended.
fn flood_outside(bench: &Bench) -> io::Result<Spawned> {
    let mut process = Spawned::start(Command::new(&bench.own).arg("echo-stdio").args(FLOOD))?;
    let (output, input) = process.take_stdio();
    thread::spawn(move || {
        // Without its input the flooder would leave at once.
        let _input = input;
        let mut chunk = vec![0; 64 * 1024];
        let mut output = File::from(output);
        while output.read(&mut chunk).is_ok_and(|got| got > 0) {}
    });
    Ok(process)
}

fn calm_p99(daemon: &Daemon<'_>, host: &mut Host, scale: Scale) -> io::Result<f64> {
    let calls = 20_000 / scale.divide;
    let plan = Plan { tool: "calm_echo", payload: 100, in_flight: 1, calls };
    host.run(Plan { calls: calls / 10, ..plan })?;
    let outcome = {
        let _apart = Apart::hold(&daemon.servers());
        host.run(plan)?
    };
    match outcome.errors {
        0 => Ok(outcome.latencies.percentile(0.99)),
        count => Err(io::Error::other(format!("{count} errors on the calm server"))),
    }
}

fn neighbour_row(what: &str, before: &[f64], during: &[f64]) -> Row {
    let ratios: Vec<f64> =
        during.iter().zip(before).map(|(during, before)| during / before).collect();
    Row::new(format!("{what}: p99 of the others"), median(&ratios), Unit::Times, Limit::AtMost(1.5))
        .sides(format!("({})", micros(median(before))), micros(median(during)))
}
