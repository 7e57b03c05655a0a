//! Scripts over the control API.

use serde::{Deserialize, Serialize};

use super::WhoAnswers;
use crate::protocol::jsonrpc::RawJson;

/// `POST /v1/exec`. Answered like a call of a tool; as a stream of events with what the script tells
/// `console`, where it streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    /// TypeScript or JavaScript.
    pub code: String,
    /// The value of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<RawJson>,
    /// How long it may run, in seconds; at most `exec.timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// Who answers its questions; without it only who listens to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<WhoAnswers>,
    /// The project folder on whose behalf; the daemon's "no project" where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whether the answer is a stream of events, with progress and console before the result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
}

/// One thing that a script told `console`, in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleLine {
    /// `debug`, `info`, `log`, `warn` or `error`.
    pub level: String,
    /// What it was told; may have several lines.
    pub text: String,
}
