//! The op that runs a script.

use std::time::Duration;

use tokio::sync::mpsc;

use super::super::dispatch::{Context, exec};
use super::super::support::progress::ProgressSender;
use super::super::upstreams::Answers;
use super::calls::{caller, told_error};
use crate::control::ApiError;
use crate::control::types::ExecRequest;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions;
use crate::script::wire;

/// The result as `mcpx_exec` gives it; without what the script told `console`, where that is heard as it
/// comes.
pub(super) async fn exec(
    context: &Context,
    wanted: ExecRequest,
    progress: Option<ProgressSender>,
    console: Option<mpsc::Sender<wire::Log>>,
) -> Result<RawJson, ApiError> {
    let mut caller = caller(context, wanted.project.as_deref());
    if wanted.questions.is_some() {
        caller.answers = Answers::Told { declared: questions::with_elicitation(None) };
    }
    let script = exec::Script {
        source: wanted.code,
        input: wanted.input,
        timeout: wanted.timeout.map(Duration::from_secs),
        name: None,
        console,
    };
    exec::run_for(context, caller, progress, script).await.map_err(told_error)
}
