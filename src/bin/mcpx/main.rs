//! `mcpx`: arguments in, exit code out.
//!
//! The daemon, the shim, the command line and the built-in upstream are one program. Everything but
//! reading arguments and printing stands in the library.

mod arguments;
mod call;
mod cli;
mod commands;
mod connect;
mod daemon;
mod demo;
mod doctor;
mod elicit;
mod ended;
mod exec;
mod hosts;
mod import;
mod inside;
mod install;
mod log;
mod offers;
mod output;
mod person;
mod questions;
mod reach;
mod sandbox;
mod scripts;
mod search;
mod serve;
mod setup;
mod stream;
mod tables;
mod trust;
mod waiting;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(ended) = sandbox::asked_for(std::env::args_os().skip(1)) {
        return output::end(ended);
    }
    if let Some(ended) = serve::handed_over(std::env::args_os().skip(1)) {
        return output::end(ended);
    }
    let matches = match cli::tree().try_get_matches() {
        Ok(matches) => matches,
        Err(message) => return output::usage(&message),
    };
    let ended = cli::run(&matches);
    output::end(ended)
}
