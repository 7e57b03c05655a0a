//! Scripts over the control API.

use serde::{Deserialize, Serialize};

use super::WhoAnswers;
use crate::protocol::jsonrpc::RawJson;

/// `POST /v1/exec`. Answered like a call of a tool; as a stream of events with what the script tells
/// `console`, where it streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecRequest {
    /// TypeScript or JavaScript.
    pub code: String,
    /// The value of `input`.
    pub input: Option<RawJson>,
    /// How it runs.
    pub run: RunRequest,
}

/// How a script is run, a saved one as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRequest {
    /// How long it may run, in seconds; at most `exec.timeout`.
    pub timeout: Option<u64>,
    /// The project folder on whose behalf; the daemon's "no project" where there is none.
    pub project: Option<String>,
    /// Whether the answer is a stream of events, with progress and console before the result.
    pub progress: bool,
    /// Who answers the questions of its calls; without it only who listens to all.
    pub questions: Option<WhoAnswers>,
}

/// One thing that a script told `console`, in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleLine {
    /// `debug`, `info`, `log`, `warn` or `error`.
    pub level: String,
    /// What it was told; may have several lines.
    pub text: String,
}
