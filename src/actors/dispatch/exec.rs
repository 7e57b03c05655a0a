//! Scripts: `mcpx_exec`, saved scripts and `mcpx exec` run them by this.

use std::time::Duration;

use super::{Context, Request, Told};
use crate::actors::support::progress::ProgressSender;
use crate::actors::upstreams::{Caller, Reason};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::session::Outcome;

/// A script to be run.
#[derive(Debug)]
pub(crate) struct Script {
    /// TypeScript or JavaScript.
    pub(crate) source: String,
    /// The value of `input`; none is `undefined`.
    pub(crate) input: Option<RawJson>,
    /// Shorter than `exec.timeout`.
    pub(crate) timeout: Option<Duration>,
    /// Of a saved script, for texts.
    pub(crate) name: Option<String>,
}

/// Runs a script for a host, in the course of its `request` of `tools/call`: to a result of a tool, to an
/// `input_required` result where the script's calls ask a modern host, or to the handle of a task. The
/// answers that a modern host brings back are taken from the request.
pub(crate) async fn run(context: &Context, request: Request, script: Script) -> Outcome {
    let Request { caller, progress, .. } = request;
    let ran = run_for(context, caller, progress, script).await;
    Ok(ran.unwrap_or_else(|told| told.as_tool_result()))
}

/// Runs a script for a person, who is asked as `caller` says; the result of a tool.
pub(crate) async fn run_for(
    context: &Context,
    caller: Caller,
    progress: Option<ProgressSender>,
    script: Script,
) -> Result<RawJson, Told> {
    let _ = (context, caller, progress, script);
    Err(Told { reason: Reason::Unavailable, text: "scripts do not run yet".to_owned() })
}
