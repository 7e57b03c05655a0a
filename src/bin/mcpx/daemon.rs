//! `mcpx daemon`: settings, logs, the root actor, its end.

use clap::ArgMatches;
use mcpx::settings::layers::FlagValue;

use crate::ended::{Ended, Outcome};
use crate::setup::Setup;

/// Runs until the daemon is told to end.
pub(crate) fn run(mut setup: Setup, matches: &ArgMatches) -> Outcome {
    setup.sources.flags = flags(matches)?;
    if matches.get_flag("detached") {
        // Neither the end of our starter's terminal nor its interrupts shall reach us. It fails
        // where we lead a session already, which is as good.
        let _ = nix::unistd::setsid();
    }
    let loaded = setup.load().map_err(Ended::Refused)?;
    // SEAM: actors::root::run(sources, loaded, places, program, replace) lands with the main session.
    let _ = (loaded, matches.get_flag("replace"));
    Err(Ended::Failed("this build has no daemon yet".to_owned()))
}

/// `--set` and `--upstream-protocol` as the flags' layer.
fn flags(matches: &ArgMatches) -> Result<Vec<FlagValue>, Ended> {
    let mut flags = Vec::new();
    for word in matches.get_many::<String>("set").into_iter().flatten() {
        let (key, text) = word
            .split_once('=')
            .ok_or_else(|| Ended::Usage(format!("--set {word}: it is not KEY=VALUE")))?;
        flags.push(FlagValue {
            flag: format!("--set {word}"),
            key: key.trim().to_owned(),
            text: text.to_owned(),
        });
    }
    if let Some(text) = matches.get_one::<String>("upstream-protocol") {
        flags.push(FlagValue {
            flag: "--upstream-protocol".to_owned(),
            key: "upstream.protocol".to_owned(),
            text: text.clone(),
        });
    }
    Ok(flags)
}
