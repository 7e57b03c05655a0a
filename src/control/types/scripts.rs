//! Requests and answers about saved scripts.

use serde::{Deserialize, Serialize};

use super::RunRequest;
use crate::protocol::jsonrpc::RawJson;

/// `GET /v1/scripts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptsAnswer {
    /// All that are saved, by name.
    pub scripts: Vec<ScriptView>,
}

/// A saved script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptView {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// What it does; empty where it does not say.
    pub description: String,
    /// Its parameters in a line, as in `(repo: string, days?: integer = 30)`; `(…)` where it names none and
    /// takes any.
    pub signature: String,
    /// Why it cannot be used, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// `GET /v1/scripts/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptAnswer {
    /// What it is.
    pub script: ScriptView,
    /// Its parameters as a JSON schema of its arguments.
    pub schema: RawJson,
    /// Its source.
    pub code: String,
}

/// `POST /v1/scripts/{name}/run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptRunRequest {
    /// The script.
    pub name: String,
    /// Its arguments.
    pub arguments: Option<RawJson>,
    /// How it runs.
    pub run: RunRequest,
}

/// `PUT /v1/scripts/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptSaved {
    /// What was saved.
    pub script: ScriptView,
    /// Whether it took the place of an earlier one.
    pub replaced: bool,
}

/// `POST /v1/scripts/{name}/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptRemoved {
    /// What was removed.
    pub name: String,
}
