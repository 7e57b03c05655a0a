//! Answers about tasks.

use serde::{Deserialize, Serialize};

use crate::protocol::jsonrpc::RawJson;

/// `GET /v1/tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksAnswer {
    /// All that are kept, oldest first.
    pub tasks: Vec<TaskView>,
}

/// A task on a page. Its id is a secret: whoever knows it may have its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its id.
    pub task: String,
    /// `working`, `input_required`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// A word on that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What runs, as in "tool `t` of server `s`".
    pub what: String,
    /// The server, by its configuration key.
    pub server: String,
    /// The host that began it.
    pub host: String,
    /// When it began, in milliseconds since 1970.
    pub created_ms: u64,
    /// How long it is kept from then on, in milliseconds.
    pub ttl_ms: u64,
    /// How many of its questions wait for an answer.
    pub questions: usize,
}

/// `GET /v1/tasks/{task}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAnswer {
    /// The task.
    pub task: TaskView,
    /// What it asks, by key: method and parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<RawJson>,
    /// What it ended with, as its server sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RawJson>,
    /// What it failed with: code and message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RawJson>,
}

/// `POST /v1/tasks/{task}/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCancelled {
    /// The task as it stands now.
    pub task: TaskView,
    /// Whether it still ran.
    pub cancelled: bool,
}
