//! Runs the sections and prints the table.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::args::Args;
use crate::daemon::Bench;
use crate::process::{end_reaper, start_reaper};
use crate::report::{self, Row};
use crate::{calls, eras, http, memory, place, scripts, sharing, starts};

/// How long a section may dwell on a figure.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Rounds in rotated order; the median of the per-round ratios counts.
    pub rounds: usize,
    /// Divides the number of calls of a series.
    pub divide: usize,
    /// Seconds to watch an idle daemon.
    pub idle_seconds: u64,
}

type Section = (&'static str, fn(&Bench, Scale) -> Vec<Row>);

const SECTIONS: [Section; 7] = [
    ("calls", calls::run),
    ("http", http::run),
    ("eras", eras::run),
    ("memory", memory::run),
    ("starts", starts::run),
    ("sharing", sharing::run),
    ("scripts", scripts::run),
];

const HELP: &str = "\
cargo bench --bench ratios -- [OPTIONS]
  --short         for CI, under two minutes; fails only where a figure is twice its target
  --full          more rounds and more calls
  --mcpx PATH     another program to measure than the one just built
  --only SECTION  calls, http, eras, memory, starts, sharing or scripts
  --no-pin        leave host and server on whatever processor the kernel likes
or, for a look at one figure:
  RATIOS load [--modern] [--tool T] [--payload BYTES] [--in-flight N] [--calls N] -- COMMAND…
  RATIOS load … --at 127.0.0.1:PORT     (an endpoint over HTTP)
  RATIOS echo-stdio | echo-http";

/// The role without a name.
pub fn run(args: &Args) -> io::Result<ExitCode> {
    if args.flag("--help") {
        println!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    if args.flag("--no-pin") {
        place::leave_to_kernel();
    }
    let scale = match (args.flag("--short"), args.flag("--full")) {
        (true, _) => Scale { rounds: 3, divide: 4, idle_seconds: 5 },
        (_, true) => Scale { rounds: 7, divide: 1, idle_seconds: 20 },
        _ => Scale { rounds: 5, divide: 2, idle_seconds: 10 },
    };
    let built = option_env!("CARGO_BIN_EXE_mcpx");
    let mcpx = args.value("--mcpx").or(built).ok_or_else(|| io::Error::other("no --mcpx"))?;
    let bench = Bench {
        mcpx: fs::canonicalize(mcpx)?,
        own: std::env::current_exe()?,
        root: private_folder()?,
    };
    start_reaper(&bench.root)?;
    raise_file_limit();
    end_after(Duration::from_secs(if args.flag("--short") { 300 } else { 1800 }));
    let only = args.value("--only");
    let mut rows = Vec::new();
    for (name, section) in SECTIONS {
        if only.is_none_or(|only| only == name) {
            eprintln!("ratios: {name}…");
            rows.extend(section(&bench, scale));
        }
    }
    end_reaper();
    report::print(&rows);
    let gross = rows.iter().filter(|row| row.is_gross()).count();
    println!("\n{} figures, {gross} far worse than they should be or failed.", rows.len());
    let failed = args.flag("--short") && gross > 0;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Ends a run that stands still; the reaper ends what it started.
fn end_after(limit: Duration) {
    thread::spawn(move || {
        thread::sleep(limit);
        eprintln!("ratios: not done after {limit:?}, which is a failure");
        std::process::exit(1);
    });
}

/// A folder nobody else can read, with a short name: socket paths end at 107 bytes.
fn private_folder() -> io::Result<PathBuf> {
    let root = std::env::temp_dir().join(format!("mcpx-bench-{}", std::process::id()));
    fs::DirBuilder::new().mode(0o700).create(&root)?;
    Ok(root)
}

/// A thousand sessions need as many descriptors here and in the daemon, which inherits the limit.
fn raise_file_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard.min(65_536), hard);
    }
}
