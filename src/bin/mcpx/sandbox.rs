//! `mcpx __sandbox`: runs one script for the daemon, which starts it. No command for people.

use std::ffi::OsString;

use mcpx::script::sandbox;
use mcpx::transport::clock;

use crate::ended::{Ended, Outcome};

/// The one argument.
const SANDBOX: &str = "__sandbox";

/// Runs it, where these arguments ask for it.
pub(crate) fn asked_for(mut arguments: impl Iterator<Item = OsString>) -> Option<Outcome> {
    let ours = arguments.next()? == SANDBOX && arguments.next().is_none();
    ours.then(|| {
        sandbox::run(clock::now).map_err(|error| Ended::Failed(format!("{SANDBOX}: {error}")))
    })
}
