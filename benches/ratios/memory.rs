//! What mcpx takes while it does nothing: with 50 servers, per shim, per host session; in memory
//! and in processor time.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::calls::ALONE;
use crate::daemon::Bench;
use crate::driver::Scale;
use crate::host::{Era, Host, Plan};
use crate::process::{memory_kib, thread_millis};
use crate::report::{Limit, Row, Unit, short};

/// Long enough for timers that follow a connection to have fired.
const SETTLE: Duration = Duration::from_secs(1);

/// The section.
pub fn run(bench: &Bench, scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Err(error) = many_servers(bench, scale, &mut rows) {
        rows.push(Row::failed("idle with 50 servers", &error));
    }
    if let Err(error) = many_sessions(bench, &mut rows) {
        rows.push(Row::failed("1,000 idle host sessions", &error));
    }
    rows
}

fn many_servers(bench: &Bench, scale: Scale, rows: &mut Vec<Row>) -> io::Result<()> {
    let names: Vec<String> = (0..50).map(|number| format!("server{number}")).collect();
    let servers: Vec<(&str, &[&str], &str)> =
        names.iter().map(|name| (name.as_str(), &[][..], "")).collect();
    let daemon = bench.daemon("fifty", &servers)?;
    sleep(SETTLE);
    let resident = memory_kib(daemon.pid(), "VmRSS") / 1024.0;
    let own = memory_kib(daemon.pid(), "RssAnon") / 1024.0;
    rows.push(
        Row::new(
            "daemon idle, 50 servers configured: resident",
            resident,
            Unit::Plain("MiB"),
            Limit::AtMost(15.0),
        )
        .sides("", format!("{} MiB of it its own", short(own))),
    );
    let sessions: io::Result<Vec<Host>> = (0..100).map(|_| daemon.attach(Era::Legacy)).collect();
    let sessions = sessions?;
    sleep(SETTLE);
    let before = thread_millis(daemon.pid());
    sleep(Duration::from_secs(scale.idle_seconds));
    let used = (thread_millis(daemon.pid()) - before) / scale.idle_seconds as f64;
    let what = "idle CPU, 50 servers, 100 sessions, per second";
    rows.push(Row::new(what, used, Unit::Plain("ms"), Limit::AtMost(1.0)));
    drop(sessions);
    daemon.stop()
}

fn many_sessions(bench: &Bench, rows: &mut Vec<Row>) -> io::Result<()> {
    const COUNT: usize = 1000;
    let daemon = bench.daemon("idle", &[("echo", &[], ALONE)])?;
    let mut shim = daemon.host(Era::Legacy)?;
    shim.run(Plan { tool: "echo", payload: 100, in_flight: 1, calls: 1000 })?;
    sleep(SETTLE);
    let pid = shim.pid();
    let shim_memory = |field| pid.map_or(f64::NAN, |pid| memory_kib(pid, field) / 1024.0);
    rows.push(
        Row::new("shim: resident", shim_memory("VmRSS"), Unit::Plain("MiB"), Limit::AtMost(6.0))
            .sides("", format!("{} MiB of it its own", short(shim_memory("RssAnon")))),
    );
    let mut sessions = vec![daemon.attach(Era::Legacy)?];
    sleep(SETTLE);
    let before = memory_kib(daemon.pid(), "VmRSS");
    for _ in 0..COUNT {
        sessions.push(daemon.attach(Era::Legacy)?);
    }
    sleep(SETTLE);
    let each = (memory_kib(daemon.pid(), "VmRSS") - before) / COUNT as f64;
    let what = "each of 1,000 idle host sessions";
    rows.push(Row::new(what, each, Unit::Plain("KiB"), Limit::AtMost(16.0)));
    drop(sessions);
    drop(shim);
    daemon.stop()
}
