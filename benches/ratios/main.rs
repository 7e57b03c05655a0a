//! The end-to-end ratios that the README shows, measured side by side in one run.
//!
//! One program in several roles, so that both sides of a ratio have the very same load generator
//! and the very same server. `cargo bench --bench ratios -- --help` tells the options.
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::should_implement_trait,
    reason = "a bench is a program of its own; the crate's rules guard the daemon"
)]
#![allow(unreachable_pub, reason = "the modules of a program have no outside")]

mod alarm;
mod args;
mod calls;
mod daemon;
mod driver;
mod echo;
mod echo_http;
mod eras;
mod host;
mod http;
mod http_host;
mod lines;
mod load;
mod memory;
mod place;
mod process;
mod report;
mod scripts;
mod sharing;
mod starts;
mod stats;
mod wire;

use std::process::ExitCode;

use args::Args;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let role = words.first().cloned().unwrap_or_default();
    let args = Args::new(words);
    let done = || ExitCode::SUCCESS;
    let ran = match role.as_str() {
        "echo-stdio" => echo::run(&args).map(|()| done()),
        "echo-http" => echo_http::run(&args).map(|()| done()),
        "load" => load::run(&args).map(|()| done()),
        "reaper" => process::reaper(&args).map(|()| done()),
        // cargo calls with options alone.
        _ => driver::run(&args),
    };
    ran.unwrap_or_else(|error| {
        eprintln!("ratios {role}: {error}");
        ExitCode::FAILURE
    })
}
