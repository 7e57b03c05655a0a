//! Requests and answers of the control API, as both sides of the socket read and write them.

mod doctor;
mod exec;
mod inside;
mod offers;
mod profiles;
mod questions;
mod scripts;
mod tasks;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::era_record::{EraRecord, EraSource};
use crate::protocol::jsonrpc::RawJson;

pub use doctor::{DoctorAnswer, Finding, Severity};
pub use exec::{ConsoleLine, ExecRequest, RunRequest};
pub use inside::{
    ActorView, AuditAnswer, AuditRecord, AuditRequest, EventsRequest, FrameView, RestartView,
    TraceAnswer, TraceRequest, TreeAnswer,
};
pub use offers::{
    FoundTool, NamespacePrompts, NamespaceResources, PromptRequest, PromptsAnswer, ResourcesAnswer,
    SearchAnswer, SearchRequest, TypesAnswer, TypesRequest,
};
pub use profiles::ProfileConfig;
pub use questions::{
    AnswerRequest, QuestionAnswered, QuestionClosed, QuestionKind, QuestionState, QuestionView,
    QuestionsAnswer, WhoAnswers,
};
pub use scripts::{
    ScriptAnswer, ScriptRemoved, ScriptRunRequest, ScriptSaved, ScriptView, ScriptsAnswer,
};
pub use tasks::{TaskAnswer, TaskCancelled, TaskView, TasksAnswer};

/// `GET /v1/version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionAnswer {
    /// The daemon's version.
    pub version: String,
    /// The revisions of the specification it speaks, oldest first.
    pub revisions: Vec<String>,
    /// The version of the attach stream it serves; it serves the one before as well.
    pub attach: u32,
}

/// `GET /v1/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthAnswer {
    /// Whether the daemon serves hosts.
    pub ready: bool,
    /// Whether it is on its way out.
    pub draining: bool,
    /// Servers that are parked or wait to be started again, by key.
    pub troubled: Vec<String>,
    /// What was wrong with the configuration when it was last read, if something was; the one
    /// before is in force then.
    pub configuration: Vec<String>,
}

/// `GET /v1/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusAnswer {
    /// The daemon.
    pub daemon: DaemonView,
    /// The servers, sorted by key.
    pub servers: Vec<ServerView>,
    /// The host connections, oldest first.
    pub hosts: Vec<HostView>,
}

/// `GET /v1/http`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpAnswer {
    /// Where hosts are served; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Why they are not, where they should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether hosts need no token.
    pub open: bool,
    /// The bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_from: Option<String>,
}

/// The daemon itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonView {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// How long it runs.
    pub uptime_ms: u64,
    /// Its control socket.
    pub socket: String,
    /// Where hosts are served over HTTP; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Why they are not, where they should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_problem: Option<String>,
    /// Its state folder.
    pub state_dir: String,
    /// Its resident memory in bytes, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Calls that run as tasks.
    #[serde(default)]
    pub tasks: usize,
    /// Calls of 2026-07-28 hosts that wait for their hosts to bring an answer.
    #[serde(default)]
    pub parked: usize,
    /// Streams of `subscriptions/listen` that hosts have open.
    #[serde(default)]
    pub listens: usize,
    /// What was wrong with the configuration when it was last read; see [`HealthAnswer`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configuration: Vec<String>,
}

/// What a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// Nothing runs; the next call starts it.
    Idle,
    /// An instance is being started and none is ready.
    Starting,
    /// An instance takes calls.
    Ready,
    /// It failed and is started again after a pause.
    Backoff,
    /// It failed too often, or cannot start as it is configured; a person must act.
    Parked,
    /// Stopped by a person.
    Stopped,
}

impl ServerState {
    /// As shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Backoff => "backoff",
            Self::Parked => "parked",
            Self::Stopped => "stopped",
        }
    }

    /// The state of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Idle, Self::Starting, Self::Ready, Self::Backoff, Self::Parked, Self::Stopped]
            .into_iter()
            .find(|state| state.as_str() == word)
    }
}

/// One server (P-14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerView {
    /// Its configuration key.
    pub server: String,
    /// Its namespace.
    pub namespace: String,
    /// What it is doing.
    pub state: ServerState,
    /// When it is started again by itself, in milliseconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// Whether a parked server needs a change of configuration or machine.
    #[serde(default)]
    pub permanent: bool,
    /// Why the last instance failed or died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The last lines of that instance's stderr.
    #[serde(default)]
    pub stderr: Vec<String>,
    /// Failures in a row.
    pub failures: u32,
    /// Deaths and failed starts since its definition is in force.
    pub restarts: u32,
    /// Calls that wait for it.
    pub waiting: usize,
    /// Its running instances.
    pub instances: Vec<InstanceView>,
}

/// One instance of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceView {
    /// Its number.
    pub id: u64,
    /// Its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// `stdio`, `http` or `http+sse`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// The address of a remote server, without its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The beginning of the id of its HTTP session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// `starting`, `ready` or `leaving`.
    pub state: String,
    /// Its lane.
    pub lane: String,
    /// Who shares it: the scope and its key.
    pub scope: String,
    /// The revision agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How long it runs.
    pub uptime_ms: u64,
    /// Calls in flight.
    pub in_flight: usize,
    /// Whether it has one call at a time, because it asks questions without saying in which call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
}

/// One host connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// Its number in this daemon's life.
    pub id: u64,
    /// What it calls itself, and its version (H-16).
    pub label: String,
    /// The revision it speaks; empty before it has said.
    pub revision: String,
    /// Its project folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its requests in flight.
    pub in_flight: usize,
}

/// The answer of `restart`, `stop` and `start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerChanged {
    /// Its configuration key.
    pub server: String,
    /// What it is doing now.
    pub state: ServerState,
    /// How many of its instances were told to leave.
    pub stopped: usize,
}

/// `POST /v1/reload`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadAnswer {
    /// Servers that are new.
    pub added: Vec<String>,
    /// Servers that are gone.
    pub removed: Vec<String>,
    /// Servers whose definition changed.
    pub changed: Vec<String>,
    /// Settings whose value in force changed.
    pub settings: Vec<String>,
    /// Those of them that are obeyed when the daemon starts again.
    pub after_restart: Vec<String>,
}

/// `GET /v1/tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolsAnswer {
    /// Each server's tools, sorted by namespace.
    pub namespaces: Vec<NamespaceTools>,
}

/// The tools of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceTools {
    /// Its namespace.
    pub namespace: String,
    /// Its configuration key.
    pub server: String,
    /// Its own identity as it came (U-53), once it has been reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<RawJson>,
    /// How far its list is known: `never`, `whole` or `incomplete`.
    pub listing: String,
    /// Why it is not whole, or why the server cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tools as they came, in newest shape, sorted by name.
    pub tools: Vec<RawJson>,
}

/// `POST /v1/call` and `POST /v1/ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRequest {
    /// The namespace.
    pub namespace: String,
    /// The tool, by the server's own name for it.
    pub tool: String,
    /// Its arguments: an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<RawJson>,
    /// Who answers its questions; without it only who listens to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<WhoAnswers>,
    /// The project folder on whose behalf; the daemon's "no project" where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whether the answer is a stream of events, with progress before the result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
}

/// `POST /v1/ask`: the result with its error flag beside it, so that nobody need look inside (D-04).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskAnswer {
    /// Whether the tool, or the way to it, failed.
    pub failed: bool,
    /// The result as it came.
    pub result: RawJson,
}

/// The events of a stream: their SSE names.
pub mod stream {
    /// Progress of a call; data: the `params` of a progress notification.
    pub const PROGRESS: &str = "progress";
    /// What a script told `console`; data: a [`super::ConsoleLine`].
    pub const CONSOLE: &str = "console";
    /// The end of a call; data: what `/v1/call` answers without a stream.
    pub const RESULT: &str = "result";
    /// The end of anything that failed; data: an [`super::ApiError`].
    pub const ERROR: &str = "error";
    /// One line of a log; data: a [`super::LogLine`].
    pub const LINE: &str = "line";
    /// One lifecycle event; data: an [`super::EventView`].
    pub const EVENT: &str = "event";
    /// A listener was too slow; data: a [`super::Missed`].
    pub const MISSED: &str = "missed";
    /// A question that is open; data: a [`super::QuestionView`].
    pub const QUESTION: &str = "question";
    /// A call of the audit; data: a [`super::AuditRecord`].
    pub const CALL: &str = "call";
    /// A frame to or from a server; data: a [`super::FrameView`].
    pub const FRAME: &str = "frame";
    /// A question that no longer is; data: a [`super::QuestionClosed`].
    pub const CLOSED: &str = "closed";
}

/// What a slow listener did not get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// How many events or lines.
    pub missed: u64,
}

/// `GET /v1/logs` without `follow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogsAnswer {
    /// Oldest first for each instance.
    pub lines: Vec<LogLine>,
}

/// One line that a server wrote to stderr.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The server's configuration key.
    pub server: String,
    /// The instance that wrote it.
    pub instance: u64,
    /// The line, cut at `process.stderr_line_bytes`.
    pub text: String,
}

/// `GET /v1/events` without `follow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsAnswer {
    /// Oldest first.
    pub events: Vec<EventView>,
}

/// One lifecycle event (O-01).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventView {
    /// Its number in this daemon's life.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at: u64,
    /// `server.started`, `server.warning`, …
    pub kind: String,
    /// The server concerned, by its configuration key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The instance concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The host concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// One sentence for people.
    pub text: String,
}

/// `GET /v1/settings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsAnswer {
    /// In the order of the table.
    pub settings: Vec<SettingView>,
}

/// One setting in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingView {
    /// Its name.
    pub key: String,
    /// Its value in canonical spelling; switches and counts as such, everything else as text.
    pub value: serde_json::Value,
    /// Who said so: `default`, a file with line and column, a variable, a flag, `set at run time`.
    pub origin: String,
    /// `live` or `restart`.
    pub applies: String,
    /// What may stand there.
    pub expected: String,
    /// What it does.
    pub doc: String,
}

/// `PUT /v1/settings`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsChange {
    /// Names and values; `null` forgets what was set before.
    pub settings: serde_json::Map<String, serde_json::Value>,
}

/// The answer of `PUT /v1/settings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsChanged {
    /// The settings named, as they are in force now.
    pub settings: Vec<SettingView>,
    /// Those of them that are obeyed when the daemon starts again.
    pub after_restart: Vec<String>,
}

/// `GET /v1/config` (D-07).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigAnswer {
    /// The files it was read from, weakest first.
    pub files: Vec<String>,
    /// Settings that differ from the built-in values, by name.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// The servers, in the order of the files.
    pub servers: Vec<ServerConfig>,
    /// What may be called: patterns and what they say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policy: BTreeMap<String, String>,
    /// What some hosts see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileConfig>,
    /// The whole as a file that would be read to the same effect.
    pub toml: String,
}

/// One server as configured, canonical; references stand as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerConfig {
    /// Its configuration key.
    pub server: String,
    /// Its namespace.
    pub namespace: String,
    /// Program and arguments; none for a remote server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The address of a remote server; what stands in its query in clear is masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its transport, where it is not probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Its headers; what is written in clear is masked where its name speaks of a secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Its credential, `type` and members; secrets in clear are masked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub auth: BTreeMap<String, String>,
    /// Its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Who shares an instance.
    pub scope: String,
    /// Instances for each scope key.
    pub max: usize,
    /// Its own preference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Its pinned revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Its own idle time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
    /// Its own exposure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose: Option<String>,
    /// Only these of its tools, where that is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// None of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Its own prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The built-in upstream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub builtin: bool,
    /// Where it is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// `GET /v1/protocol` (D-05).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolAnswer {
    /// The servers, sorted by key.
    pub servers: Vec<ProtocolView>,
}

/// How one server is spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolView {
    /// Its configuration key.
    pub server: String,
    /// The preference in force, as a setting's value.
    pub preference: String,
    /// The pinned revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// The era of its running instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// The revision of its running instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How that era became known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era_source: Option<EraSource>,
    /// What the era cache holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<EraRecord>,
    /// Of a server that follows: the revision of the session for callers of legacy revisions, or
    /// `idle`, `shared` (they use the other one) or `refused` (so do they, for good).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legacy_lane: Option<String>,
}

/// `POST /v1/shutdown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownAnswer {
    /// The process that is ending.
    pub pid: u32,
}

/// The body of every answer that is no success (D-20): typed, so that nobody matches text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}", .error.message)]
pub struct ApiError {
    /// The failure.
    pub error: Failure,
}

/// A failure, for programs and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind it is.
    pub code: FailureCode,
    /// What happened, naming the thing and the cause.
    pub message: String,
    /// `dev.mcpx/reason` where a call was refused or lost: `busy`, `timeout`, `unavailable`,
    /// `outcome_unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The call in the audit, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<String>,
}

/// The kinds of failure; each has one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The request itself is wrong.
    BadRequest,
    /// There is no such route, server, namespace, tool or setting.
    NotFound,
    /// The route exists, but not for this method.
    MethodNotAllowed,
    /// A configuration or a setting's value was refused.
    Refused,
    /// A limit or queue is full.
    Busy,
    /// A server cannot be reached: parked, stopped, not starting.
    Unavailable,
    /// A limit of time struck.
    Timeout,
    /// A call was written and its outcome is not known.
    OutcomeUnknown,
    /// The server answered with an error of its own.
    Upstream,
    /// The body is larger than `control.max_body`.
    TooLarge,
    /// The daemon is ending.
    Draining,
    /// A fault of the daemon.
    Internal,
}

impl FailureCode {
    /// The HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::TooLarge => 413,
            Self::Refused => 422,
            Self::Busy => 429,
            Self::Internal => 500,
            Self::Upstream | Self::OutcomeUnknown => 502,
            Self::Unavailable | Self::Draining => 503,
            Self::Timeout => 504,
        }
    }
}

impl ApiError {
    /// A failure without reason and hint.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        let error =
            Failure { code, message: message.into(), reason: None, hint: None, audit: None };
        Self { error }
    }

    /// With what to do next.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.error.hint = Some(hint.into());
        self
    }

    /// With the reason a call carries.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.error.reason = Some(reason.into());
        self
    }
}
