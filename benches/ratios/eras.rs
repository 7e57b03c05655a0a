//! Plain calls across the eras of host and upstream, beside the same-era figure.

use std::io;

use crate::daemon::Bench;
use crate::driver::Scale;
use crate::host::{Era, Plan};
use crate::place::Apart;
use crate::report::{Limit, Row, Unit, micros};
use crate::stats::median;

const SHARED: &str = "scope = \"global\"\nexpose = \"passthrough\"";

/// Host era and tool; the two of one era first.
const PAIRS: [(Era, &str); 4] = [
    (Era::Legacy, "old_echo"),
    (Era::Modern, "new_echo"),
    (Era::Legacy, "new_echo"),
    (Era::Modern, "old_echo"),
];

/// The section.
pub fn run(bench: &Bench, scale: Scale) -> Vec<Row> {
    measure(bench, scale).unwrap_or_else(|error| vec![Row::failed("both eras", &error)])
}

fn measure(bench: &Bench, scale: Scale) -> io::Result<Vec<Row>> {
    let servers: [(&str, &[&str], &str); 2] =
        [("old", &["--era", "legacy"], SHARED), ("new", &["--era", "modern"], SHARED)];
    let daemon = bench.daemon("eras", &servers)?;
    let mut hosts = [daemon.host(Era::Legacy)?, daemon.host(Era::Modern)?];
    for (era, tool) in PAIRS {
        let host = &mut hosts[usize::from(era == Era::Modern)];
        host.run(Plan { tool, payload: 100, in_flight: 1, calls: 100 })?;
    }
    let apart = Apart::hold(&daemon.servers());
    let calls = 20_000 / scale.divide;
    let mut p50 = [const { Vec::new() }; 4];
    for round in 0..=scale.rounds {
        for step in 0..PAIRS.len() {
            let number = (round + step) % PAIRS.len();
            let (era, tool) = PAIRS[number];
            let host = &mut hosts[usize::from(era == Era::Modern)];
            let outcome = host.run(Plan { tool, payload: 100, in_flight: 1, calls })?;
            if outcome.errors > 0 {
                return Err(io::Error::other(format!("{era:?} host, {tool}: errors")));
            }
            // The first round only warms up.
            if round > 0 {
                p50[number].push(outcome.latencies.percentile(0.5));
            }
        }
    }
    let [old_old, new_new, old_new, new_old] = &p50;
    let row = |what: &str, figure: &[f64], base: &[f64], limit| {
        let ratios: Vec<f64> =
            figure.iter().zip(base).map(|(figure, base)| figure / base).collect();
        Row::new(what, median(&ratios), Unit::Times, Limit::AtMost(limit))
            .sides(format!("({})", micros(median(base))), micros(median(figure)))
    };
    let rows = vec![
        row("modern host and upstream ÷ legacy both: p50", new_new, old_old, 1.15),
        row("legacy host → modern upstream ÷ legacy both: p50", old_new, old_old, 1.3),
        row("modern host → legacy upstream ÷ modern both: p50", new_old, new_new, 1.3),
    ];
    drop((apart, hosts));
    daemon.stop()?;
    Ok(rows)
}
