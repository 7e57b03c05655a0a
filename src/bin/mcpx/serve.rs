//! shim
use clap::ArgMatches;

use crate::ended::{Ended, Outcome};
use crate::setup::Setup;

pub(crate) fn run(_setup: &Setup, _matches: &ArgMatches) -> Outcome {
    Err(Ended::Failed("seam".to_owned()))
}
