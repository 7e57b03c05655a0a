//! HTTP host → daemon → stdio server beside the same load on `http-echo`, and both beside `direct`.

use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::unistd::Pid;

use crate::calls::{ALONE, MEGABYTE, ratio};
use crate::daemon::{Bench, Daemon};
use crate::driver::Scale;
use crate::host::{Era, Host, Outcome, Plan, broken};
use crate::http_host::HttpHost;
use crate::place::Apart;
use crate::process::{Spawned, cpu_seconds, memory_kib};
use crate::report::{Limit, Row, Unit, micros, short};
use crate::stats::median;

/// Idle sessions whose memory is measured.
const SESSIONS: usize = 1000;
/// Long enough for what follows an opening to be over.
const SETTLE: Duration = Duration::from_secs(1);

/// A size and a number in flight, the calls of a full series, and the targets that apply.
struct Cell {
    name: &'static str,
    payload: usize,
    in_flight: usize,
    calls: usize,
    p50: Limit,
    rate: Limit,
    cpu: Limit,
}

#[rustfmt::skip]
const CELLS: [Cell; 9] = {
    use Limit::{AtLeast, AtMost, None};
    [
        Cell { name: "100 B", payload: 100, in_flight: 1, calls: 20_000, p50: AtMost(2.0), rate: None, cpu: AtMost(2.5) },
        Cell { name: "100 B", payload: 100, in_flight: 16, calls: 60_000, p50: None, rate: AtLeast(0.45), cpu: AtMost(2.5) },
        Cell { name: "100 B", payload: 100, in_flight: 64, calls: 60_000, p50: None, rate: AtLeast(0.45), cpu: AtMost(2.5) },
        Cell { name: "10 KB", payload: 10_000, in_flight: 1, calls: 8_000, p50: None, rate: None, cpu: None },
        Cell { name: "10 KB", payload: 10_000, in_flight: 16, calls: 16_000, p50: None, rate: None, cpu: None },
        Cell { name: "10 KB", payload: 10_000, in_flight: 64, calls: 16_000, p50: None, rate: None, cpu: None },
        Cell { name: "1 MB", payload: MEGABYTE, in_flight: 1, calls: 200, p50: AtMost(2.0), rate: None, cpu: None },
        Cell { name: "1 MB", payload: MEGABYTE, in_flight: 16, calls: 400, p50: None, rate: None, cpu: None },
        Cell { name: "1 MB", payload: MEGABYTE, in_flight: 64, calls: 512, p50: None, rate: None, cpu: None },
    ]
};

/// The section.
pub fn run(bench: &Bench, scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Err(error) = measure(bench, scale, &mut rows) {
        rows.push(Row::failed("calls over HTTP", &error));
    }
    if let Err(error) = many_sessions(bench, &mut rows) {
        rows.push(Row::failed("HTTP: 1,000 idle sessions with a stream", &error));
    }
    rows
}

/// `http-echo` under way.
struct Floor {
    process: Spawned,
    addr: SocketAddr,
}

impl Floor {
    fn start(bench: &Bench) -> io::Result<Floor> {
        let mut command = Command::new(&bench.own);
        command.arg("echo-http").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Spawned::start_as_is(&mut command)?;
        let mut line = String::new();
        BufReader::new(process.take_stdout()).read_line(&mut line)?;
        let addr = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let addr = addr.and_then(|addr| addr.parse().ok());
        Ok(Floor { process, addr: addr.ok_or_else(|| broken(format!("http-echo: {line}")))? })
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.process.terminate();
    }
}

/// A daemon with an endpoint, and where that is.
fn daemon<'a>(bench: &'a Bench, name: &str) -> io::Result<(Daemon<'a>, SocketAddr)> {
    let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let settings = format!(
        "[http]\nlisten = \"{addr}\"\nopen = true\nmax_connections = 4096\nmax_sessions = 4096\n"
    );
    let daemon = bench.daemon_with(name, &settings, &[("echo", &[], ALONE)])?;
    // The control socket answers first.
    for _ in 0..500 {
        if TcpStream::connect(addr).is_ok() {
            return Ok((daemon, addr));
        }
        sleep(Duration::from_millis(10));
    }
    Err(broken(format!("nothing listens on {addr}")))
}

fn measure(bench: &Bench, scale: Scale, rows: &mut Vec<Row>) -> io::Result<()> {
    let (daemon, addr) = daemon(bench, "http")?;
    let floor = Floor::start(bench)?;
    let mut through = HttpHost::open(addr, Era::Legacy)?;
    let mut plain = HttpHost::open(floor.addr, Era::Legacy)?;
    for cell in &CELLS {
        if let Err(error) = compare(cell, scale, &daemon, &floor, &mut plain, &mut through, rows) {
            let what = format!("HTTP, {}, {} in flight", cell.name, cell.in_flight);
            rows.push(Row::failed(what, &error));
            // What hung was broken off, so both sides begin anew.
            through = HttpHost::open(addr, Era::Legacy)?;
            plain = HttpHost::open(floor.addr, Era::Legacy)?;
        }
    }
    drop((through, plain));
    let hosts = [HttpHost::open(addr, Era::Legacy)?, HttpHost::open(addr, Era::Modern)?];
    eras(scale, &daemon, hosts, rows)?;
    beside_direct(bench, scale, &daemon, addr, &floor, rows)?;
    daemon.stop()
}

/// One cell in rounds of rotated order.
fn compare(
    cell: &Cell,
    scale: Scale,
    daemon: &Daemon<'_>,
    floor: &Floor,
    plain: &mut HttpHost,
    through: &mut HttpHost,
    rows: &mut Vec<Row>,
) -> io::Result<()> {
    let calls = (cell.calls / scale.divide).max(2 * cell.in_flight);
    let plan = Plan { tool: "echo", payload: cell.payload, in_flight: cell.in_flight, calls };
    let warm = Plan { calls: (calls / 10).max(2 * cell.in_flight), ..plan };
    plain.run(warm)?;
    through.run(warm)?;
    let pids = [floor.process.pid(), daemon.pid()];
    let servers: Vec<Pid> = daemon.servers().into_iter().chain([pids[0]]).collect();
    let apart = (cell.in_flight == 1).then(|| Apart::hold(&servers));
    let (mut left, mut right, mut spent) = (Vec::new(), Vec::new(), [0.0; 2]);
    for round in 0..scale.rounds {
        for step in 0..2 {
            let side = (round + step) % 2;
            let before = cpu_seconds(pids[side]);
            if side == 0 {
                left.push(plain.run(plan)?);
            } else {
                right.push(through.run(plan)?);
            }
            spent[side] += cpu_seconds(pids[side]) - before;
        }
    }
    drop(apart);
    let errors = |all: &[Outcome]| all.iter().map(|outcome| outcome.errors).sum::<usize>();
    if errors(&left) + errors(&right) > 0 {
        let text = format!("{} errors, {} of http-echo", errors(&right), errors(&left));
        return Err(broken(text));
    }
    let label = format!("HTTP, {}, {} in flight", cell.name, cell.in_flight);
    let p50 = |outcome: &Outcome| outcome.latencies.percentile(0.5);
    let rate = |outcome: &Outcome| outcome.rate;
    let per_second = |figure: f64| format!("{figure:.0}/s");
    let pair = (&left[..], &right[..]);
    rows.push(ratio(format!("{label}: p50 ÷ http-echo"), pair, p50, micros, cell.p50));
    rows.push(ratio(format!("{label}: calls/s ÷ http-echo"), pair, rate, per_second, cell.rate));
    let each = |spent: f64| spent * 10_000.0 / (calls * scale.rounds) as f64;
    let shown = |spent: f64| format!("{} s per 10,000", short(each(spent)));
    rows.push(
        Row::new(format!("{label}: CPU ÷ http-echo"), spent[1] / spent[0], Unit::Times, cell.cpu)
            .sides(shown(spent[0]), shown(spent[1])),
    );
    Ok(())
}

/// Hosts of both eras at the same server.
fn eras(
    scale: Scale,
    daemon: &Daemon<'_>,
    mut hosts: [HttpHost; 2],
    rows: &mut Vec<Row>,
) -> io::Result<()> {
    let calls = 10_000 / scale.divide;
    let plan = Plan { tool: "echo", payload: 100, in_flight: 1, calls };
    let apart = Apart::hold(&daemon.servers());
    let mut outcomes = [const { Vec::new() }; 2];
    // The first round only warms up.
    for round in 0..=scale.rounds {
        for step in 0..2 {
            let side = (round + step) % 2;
            let outcome = hosts[side].run(plan)?;
            if outcome.errors > 0 {
                return Err(broken(format!("side {side}: {} errors", outcome.errors)));
            }
            if round > 0 {
                outcomes[side].push(outcome);
            }
        }
    }
    drop(apart);
    let [legacy, modern] = &outcomes;
    let p50 = |outcome: &Outcome| outcome.latencies.percentile(0.5);
    let what = "HTTP: 2026-07-28 host ÷ handshake host: p50".to_owned();
    rows.push(ratio(what, (&legacy[..], &modern[..]), p50, micros, Limit::AtMost(1.15)));
    Ok(())
}

/// What `direct` takes in this run, for the scale of the other rows: a call over HTTP to a server on stdio
/// takes what both take, at least, and of a long message `direct` has the larger share.
fn beside_direct(
    bench: &Bench,
    scale: Scale,
    daemon: &Daemon<'_>,
    addr: SocketAddr,
    floor: &Floor,
    rows: &mut Vec<Row>,
) -> io::Result<()> {
    let mut direct: Host = bench.direct(Era::Legacy)?;
    let mut plain = HttpHost::open(floor.addr, Era::Legacy)?;
    let mut through = HttpHost::open(addr, Era::Legacy)?;
    let own = [Some(floor.process.pid()), direct.pid()].into_iter().flatten();
    let apart = Apart::hold(&own.chain(daemon.servers()).collect::<Vec<_>>());
    for (name, payload, calls) in [("100 B", 100, 20_000), ("1 MB", MEGABYTE, 200)] {
        let plan = Plan { tool: "echo", payload, in_flight: 1, calls: calls / scale.divide };
        let mut p50 = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..scale.rounds {
            let outcomes = [direct.run(plan)?, plain.run(plan)?, through.run(plan)?];
            for (all, outcome) in p50.iter_mut().zip(outcomes) {
                all.push(outcome.latencies.percentile(0.5));
            }
        }
        let [direct, echo, mcpx] = p50.map(|all| median(&all));
        let label = format!("HTTP, {name}, 1 in flight");
        rows.push(
            Row::new(
                format!("{label}: http-echo ÷ direct: p50"),
                echo / direct,
                Unit::Times,
                Limit::None,
            )
            .sides(micros(direct), micros(echo)),
        );
        let both = direct + echo;
        rows.push(
            Row::new(
                format!("{label}: p50 ÷ (http-echo + direct)"),
                mcpx / both,
                Unit::Times,
                Limit::AtMost(2.0),
            )
            .sides(micros(both), micros(mcpx)),
        );
    }
    drop(apart);
    Ok(())
}

/// What a session costs that does nothing but hold its stream open.
fn many_sessions(bench: &Bench, rows: &mut Vec<Row>) -> io::Result<()> {
    let (daemon, addr) = daemon(bench, "httpidle")?;
    let open = || -> io::Result<(HttpHost, TcpStream)> {
        let mut host = HttpHost::open(addr, Era::Legacy)?;
        let stream = host.stream()?;
        host.hang_up();
        Ok((host, stream))
    };
    let mut sessions = vec![open()?];
    sessions[0].0.run(Plan { tool: "echo", payload: 100, in_flight: 1, calls: 1000 })?;
    sleep(SETTLE);
    let before = memory_kib(daemon.pid(), "VmRSS");
    for _ in 0..SESSIONS {
        sessions.push(open()?);
    }
    sleep(SETTLE);
    let each = (memory_kib(daemon.pid(), "VmRSS") - before) / SESSIONS as f64;
    let what = "each of 1,000 idle HTTP sessions with an open stream";
    rows.push(Row::new(what, each, Unit::Plain("KiB"), Limit::AtMost(28.0)));
    drop(sessions);
    daemon.stop()
}
