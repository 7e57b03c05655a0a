//! Host → shim → daemon → server beside host → server, at three sizes and three numbers in flight.

use std::io;
use std::time::Duration;

use nix::unistd::Pid;

use crate::daemon::{Bench, Daemon};
use crate::driver::Scale;
use crate::host::{Era, Host, Outcome, Plan};
use crate::place::Apart;
use crate::process::{cpu_seconds, memory_kib, reset_peak};
use crate::report::{Limit, Row, Unit, micros, short};
use crate::stats::median;

/// A server that everybody shares and whose tool keeps its bare name.
pub const ALONE: &str = "scope = \"global\"\nexpose = \"passthrough\"\nprefix = \"\"";

/// The largest payload.
pub const MEGABYTE: usize = 1_000_000;

/// A size and a number in flight, the calls of a full series, and the targets that apply.
struct Cell {
    name: &'static str,
    payload: usize,
    in_flight: usize,
    /// Host and server held apart, see `place.rs`.
    apart: bool,
    calls: usize,
    p50: Limit,
    p99: Limit,
    rate: Limit,
}

#[rustfmt::skip]
const CELLS: [Cell; 10] = {
    use Limit::{AtLeast, AtMost, None};
    [
        Cell { name: "100 B", payload: 100, in_flight: 1, apart: true, calls: 40_000, p50: AtMost(6.0), p99: AtMost(10.0), rate: None },
        Cell { name: "100 B", payload: 100, in_flight: 16, apart: false, calls: 120_000, p50: None, p99: None, rate: AtLeast(0.20) },
        Cell { name: "100 B", payload: 100, in_flight: 64, apart: false, calls: 120_000, p50: None, p99: None, rate: AtLeast(0.20) },
        Cell { name: "100 B, placed by the kernel", payload: 100, in_flight: 1, apart: false, calls: 40_000, p50: None, p99: None, rate: None },
        Cell { name: "10 KB", payload: 10_000, in_flight: 1, apart: true, calls: 12_000, p50: AtMost(4.0), p99: None, rate: None },
        Cell { name: "10 KB", payload: 10_000, in_flight: 16, apart: false, calls: 20_000, p50: None, p99: None, rate: None },
        Cell { name: "10 KB", payload: 10_000, in_flight: 64, apart: false, calls: 20_000, p50: None, p99: None, rate: None },
        Cell { name: "1 MB", payload: MEGABYTE, in_flight: 1, apart: true, calls: 200, p50: AtMost(2.5), p99: None, rate: None },
        Cell { name: "1 MB", payload: MEGABYTE, in_flight: 16, apart: false, calls: 400, p50: None, p99: None, rate: None },
        Cell { name: "1 MB", payload: MEGABYTE, in_flight: 64, apart: false, calls: 512, p50: None, p99: None, rate: None },
    ]
};

/// The section.
pub fn run(bench: &Bench, scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Err(error) = measure(bench, scale, &mut rows) {
        rows.push(Row::failed("calls through the shim", &error));
    }
    rows
}

fn measure(bench: &Bench, scale: Scale, rows: &mut Vec<Row>) -> io::Result<()> {
    let daemon = bench.daemon("calls", &[("echo", &[], ALONE)])?;
    daemon.check_status()?;
    let mut direct = bench.direct(Era::Legacy)?;
    let mut shim = daemon.host(Era::Legacy)?;
    let mut errors = Vec::new();
    for cell in &CELLS {
        match compare(cell, scale, &daemon, &mut direct, &mut shim, rows) {
            Ok(count) if cell.payload > 100 && cell.in_flight > 1 => errors.push(count as f64),
            Ok(_) => {}
            Err(error) => {
                let what = format!("{}, {} in flight", cell.name, cell.in_flight);
                rows.push(Row::failed(what, &error));
                // What hung was broken off, so both sides begin anew.
                direct = bench.direct(Era::Legacy)?;
                shim = daemon.host(Era::Legacy)?;
            }
        }
    }
    if errors.len() == 4 {
        let what = "blocking one-thread server, 16 and 64 × 10 KB and × 1 MB: errors";
        rows.push(Row::new(what, errors.iter().sum(), Unit::Plain(""), Limit::AtMost(0.0)));
    }
    if let Err(error) = burst(&daemon, &mut shim, rows) {
        rows.push(Row::failed("memory under 64 × 1 MB", &error));
    }
    drop(shim);
    daemon.stop()
}

/// One cell in rounds of rotated order.
fn compare(
    cell: &Cell,
    scale: Scale,
    daemon: &Daemon<'_>,
    direct: &mut Host,
    shim: &mut Host,
    rows: &mut Vec<Row>,
) -> io::Result<usize> {
    let calls = (cell.calls / scale.divide).max(2 * cell.in_flight);
    let plan = Plan { tool: "echo", payload: cell.payload, in_flight: cell.in_flight, calls };
    let warm = Plan { calls: (calls / 10).max(10), ..plan };
    direct.run(warm)?;
    shim.run(warm)?;
    let shim_pid = shim.pid();
    let cpu = || cpu_seconds(daemon.pid()) + shim_pid.map_or(f64::NAN, cpu_seconds);
    let servers: Vec<Pid> = daemon.servers().into_iter().chain(direct.pid()).collect();
    let apart = cell.apart.then(|| Apart::hold(&servers));
    let (mut plain, mut through, mut spent) = (Vec::new(), Vec::new(), 0.0);
    for round in 0..scale.rounds {
        for side in 0..2 {
            if (round + side) % 2 == 0 {
                plain.push(direct.run(plan)?);
            } else {
                let before = cpu();
                through.push(shim.run(plan)?);
                spent += cpu() - before;
            }
        }
    }
    drop(apart);
    let label = format!("{}, {} in flight", cell.name, cell.in_flight);
    let p50 = |outcome: &Outcome| outcome.latencies.percentile(0.5);
    let p99 = |outcome: &Outcome| outcome.latencies.percentile(0.99);
    let rate = |outcome: &Outcome| outcome.rate;
    let per_second = |figure: f64| format!("{figure:.0}/s");
    let pair = (&plain[..], &through[..]);
    rows.push(ratio(format!("{label}: p50"), pair, p50, micros, cell.p50));
    rows.push(ratio(format!("{label}: p99"), pair, p99, micros, cell.p99));
    rows.push(ratio(format!("{label}: calls/s"), pair, rate, per_second, cell.rate));
    let ten_thousand = spent * 10_000.0 / (calls * scale.rounds) as f64;
    let what = format!("{label}: CPU of daemon and shim per 10,000 calls");
    rows.push(Row::new(what, ten_thousand, Unit::Plain("s"), Limit::None));
    let errors = |all: &[Outcome]| all.iter().map(|outcome| outcome.errors).sum::<usize>();
    if errors(&plain) > 0 {
        return Err(io::Error::other("the direct side had errors"));
    }
    if errors(&through) > 0 {
        rows.push(Row::new(
            format!("{label}: errors"),
            errors(&through) as f64,
            Unit::Plain(""),
            Limit::AtMost(0.0),
        ));
    }
    Ok(errors(&through))
}

/// A row from the median of the per-round ratios.
pub fn ratio(
    what: String,
    (plain, through): (&[Outcome], &[Outcome]),
    figure: impl Fn(&Outcome) -> f64,
    write: impl Fn(f64) -> String,
    limit: Limit,
) -> Row {
    let left: Vec<f64> = plain.iter().map(&figure).collect();
    let right: Vec<f64> = through.iter().map(&figure).collect();
    let ratios: Vec<f64> = left.iter().zip(&right).map(|(left, right)| right / left).collect();
    Row::new(what, median(&ratios), Unit::Times, limit)
        .sides(write(median(&left)), write(median(&right)))
}

/// What 64 calls of 1 MB at once take, and whether it is given back.
fn burst(daemon: &Daemon<'_>, shim: &mut Host, rows: &mut Vec<Row>) -> io::Result<()> {
    let pids = [Some(daemon.pid()), shim.pid()];
    let sum = |field: &str| -> f64 {
        pids.iter().flatten().map(|pid| memory_kib(*pid, field) / 1024.0).sum()
    };
    let settle = || std::thread::sleep(Duration::from_secs(2));
    // What earlier sections of the run left behind is not this burst's.
    settle();
    let before = sum("VmRSS");
    pids.iter().flatten().for_each(|pid| reset_peak(*pid));
    shim.run(Plan { tool: "echo", payload: MEGABYTE, in_flight: 64, calls: 256 })?;
    let peak = sum("VmHWM");
    settle();
    let after = sum("VmRSS");
    let copies = (peak - before) * 1024.0 * 1024.0 / (64 * MEGABYTE) as f64;
    let sides = |figure: f64| format!("{} → {} MiB", short(before), short(figure));
    rows.push(
        Row::new("64 × 1 MB in flight: copies held", copies, Unit::Plain(""), Limit::AtMost(4.0))
            .sides("", sides(peak)),
    );
    let what = "64 × 1 MB in flight: not given back after 2 s";
    rows.push(
        Row::new(what, (after - before).max(0.0), Unit::Plain("MiB"), Limit::AtMost(16.0))
            .sides("", sides(after)),
    );
    Ok(())
}
