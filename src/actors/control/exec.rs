//! The ops that run a script.

use std::time::Duration;

use tokio::sync::mpsc;

use super::super::dispatch::{Context, exec};
use super::super::support::progress::ProgressSender;
use super::super::upstreams::Answers;
use super::calls::{caller, told_error};
use super::scripts::troubled;
use crate::control::ApiError;
use crate::control::types::{ExecRequest, RunRequest, ScriptRunRequest};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions;
use crate::script::wire;

/// A script that is to run.
pub(super) enum Wanted {
    /// As it is given.
    Given(ExecRequest),
    /// A saved one.
    Saved(ScriptRunRequest),
}

impl Wanted {
    /// How.
    pub(super) const fn run(&self) -> &RunRequest {
        match self {
            Self::Given(ExecRequest { run, .. }) | Self::Saved(ScriptRunRequest { run, .. }) => run,
        }
    }
}

/// The result as `mcpx_exec` gives it; without what the script told `console`, where that is heard as it
/// comes.
pub(super) async fn run(
    context: &Context,
    wanted: Wanted,
    progress: Option<ProgressSender>,
    console: Option<mpsc::Sender<wire::Log>>,
) -> Result<RawJson, ApiError> {
    let how = wanted.run();
    let mut caller = caller(context, how.project.as_deref());
    if how.questions.is_some() {
        caller.answers = Answers::Told { declared: questions::with_elicitation(None) };
    }
    let timeout = how.timeout.map(Duration::from_secs);
    let (source, input, name) = match wanted {
        Wanted::Given(ExecRequest { code, input, .. }) => (code, input, None),
        Wanted::Saved(ScriptRunRequest { name, arguments, .. }) => {
            let runnable = context.scripts.runnable(&name, arguments.as_ref()).await;
            let (source, input) = runnable.map_err(troubled)?;
            (source, Some(input), Some(name))
        }
    };
    let script = exec::Script { source, input, timeout, name, console };
    exec::run_for(context, caller, progress, script).await.map_err(told_error)
}
