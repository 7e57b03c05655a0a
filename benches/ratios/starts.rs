//! How long things take to begin: the daemon, a shim, ten slow servers.

use std::io;
use std::time::{Duration, Instant};

use crate::calls::ALONE;
use crate::daemon::Bench;
use crate::driver::Scale;
use crate::host::{Era, Host, broken};
use crate::report::{Limit, Row, Unit, short};
use crate::stats::median;

/// The section.
pub fn run(bench: &Bench, scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    for (what, row) in [
        ("daemon start to ready", daemon_start(bench, scale)),
        ("shim start to answered initialize", shim_start(bench)),
        ("10 slow servers: first complete list", slow_servers(bench, scale)),
    ] {
        rows.push(row.unwrap_or_else(|error| Row::failed(what, &error)));
    }
    rows
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn daemon_start(bench: &Bench, scale: Scale) -> io::Result<Row> {
    let names: Vec<String> = (0..50).map(|number| format!("server{number}")).collect();
    let servers: Vec<(&str, &[&str], &str)> =
        names.iter().map(|name| (name.as_str(), &[][..], "")).collect();
    let mut took = Vec::new();
    for _ in 0..scale.rounds {
        let daemon = bench.daemon("start", &servers)?;
        took.push(millis(daemon.took));
        daemon.stop()?;
    }
    let what = "daemon start to ready, 50 servers configured";
    Ok(Row::new(what, median(&took), Unit::Plain("ms"), Limit::AtMost(100.0)))
}

fn shim_start(bench: &Bench) -> io::Result<Row> {
    let daemon = bench.daemon("shim", &[("echo", &[], ALONE)])?;
    let (mut plain, mut through) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        let start = Instant::now();
        let host = bench.direct(Era::Legacy)?;
        plain.push(millis(start.elapsed()));
        drop(host);
        let start = Instant::now();
        let host = daemon.host(Era::Legacy)?;
        through.push(millis(start.elapsed()));
        drop(host);
    }
    daemon.stop()?;
    let what = "shim start to answered initialize";
    let row = Row::new(what, median(&through), Unit::Plain("ms"), Limit::AtMost(30.0));
    Ok(row.sides(format!("{} ms", short(median(&plain))), ""))
}

/// Servers that take 200 ms to start, one of them and ten of them.
fn slow_servers(bench: &Bench, scale: Scale) -> io::Result<Row> {
    let (mut one, mut ten, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let single = first_list(bench, 1)?;
        let all = first_list(bench, 10)?;
        one.push(single);
        ten.push(all);
        ratios.push(all / single);
    }
    let what = "10 servers of 200 ms: first complete list ÷ one of them";
    Ok(Row::new(what, median(&ratios), Unit::Times, Limit::AtMost(1.15))
        .sides(format!("({} ms)", short(median(&one))), format!("{} ms", short(median(&ten)))))
}

/// From the shim's start to a list with every tool, on a daemon that never saw these servers.
fn first_list(bench: &Bench, count: usize) -> io::Result<f64> {
    let names: Vec<String> = (0..count).map(|number| format!("slow{number}")).collect();
    let manner = &["--start-delay", "200"][..];
    let more = "scope = \"global\"\nexpose = \"passthrough\"";
    let servers: Vec<(&str, &[&str], &str)> =
        names.iter().map(|name| (name.as_str(), manner, more)).collect();
    let daemon = bench.daemon("slow", &servers)?;
    let start = Instant::now();
    let mut host: Host = daemon.host(Era::Legacy)?;
    let mut seen = host.tools()?.len();
    while seen < count {
        host.wait_for("notifications/tools/list_changed")?;
        seen = host.tools()?.len();
    }
    let took = millis(start.elapsed());
    if seen > count {
        return Err(broken(format!("{seen} tools where {count} were expected")));
    }
    drop(host);
    daemon.stop()?;
    Ok(took)
}
