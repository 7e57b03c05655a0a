//! Sans-IO state machines: one per connection, in either role.
//!
//! Every session has the same four kinds of method and no other:
//!
//! - `handle_*`: something happened (a frame, the end of the link, a deadline); `now` is an argument;
//! - commands from above (`start_call`, `finish`, `cancel`, …);
//! - `poll_output`: what the owner must do next, until it says `None`;
//! - `poll_deadline`: when to call `handle_timeout` at the latest.
//!
//! A session never leaves a caller hanging: when the link closes, every pending call gets an outcome.

pub mod backoff;
pub mod host;
pub mod listen;
pub mod pending;
pub mod probe;
pub mod reconnect;
pub mod resume;
pub mod shim;
pub mod timers;
pub mod upstream;

use std::time::Duration;

pub use super::edge::LogLevel;
use super::edge::questions::lift_capabilities;
use super::jsonrpc::{Code, Frame, Id, Method, RawJson, Response, RpcError};
use super::model::{questions, tasks};
use super::revision::Revision;

/// A request of one host session, from its event to its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(pub u64);

/// Who asks, for one request: from the handshake of a legacy connection, or from the `_meta` of one
/// modern request (then it is never stored, H-15).
#[derive(Debug, Clone)]
pub struct Peer {
    /// The revision in which this peer is spoken to.
    pub revision: Revision,
    /// Its declared capabilities, as they came.
    pub capabilities: RawJson,
    /// `clientInfo` or `serverInfo` as it came: labels logs, decides nothing (H-16, A-07).
    pub info: Option<RawJson>,
}

impl Peer {
    /// `name` of the self-reported identity, for labels.
    pub fn name(&self) -> Option<String> {
        self.info.as_ref()?.member_str("name")
    }

    /// In which form it takes tasks.
    pub fn task_form(&self) -> TaskForm {
        match self.revision.is_modern() {
            false => TaskForm::Core,
            true if tasks::declares(&self.capabilities) => TaskForm::Extension,
            true => TaskForm::Without,
        }
    }

    /// What it declared that can answer questions, in newest shape, for declaring it on to upstreams
    /// (U-35).
    pub fn declared_on(&self) -> RawJson {
        questions::declared_on(&lift_capabilities(self.revision, &self.capabilities))
    }
}

/// In which form a peer takes tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskForm {
    /// In none: a modern peer that has not declared the extension on this request.
    Without,
    /// Where it asks for one, as 2025-11-25 has them in its core; honoured from all of the legacy era
    /// (T-01).
    Core,
    /// By the extension of 2026-07-28, declared on this request.
    Extension,
}

/// A host's request in newest shape, handed up for an answer.
#[derive(Debug, Clone)]
pub struct HostRequest {
    /// To be given back with the outcome.
    pub key: CallKey,
    /// By which its host knows it.
    pub id: Id,
    /// What is asked.
    pub method: Method,
    /// Lifted parameters, without the per-request envelope keys and without the progress token;
    /// other `_meta` keys stay.
    pub params: RawJson,
    /// Who asks.
    pub peer: std::sync::Arc<Peer>,
    /// Whether the host gave a progress token; only then does progress go back (F37).
    pub wants_progress: bool,
    /// The least level of log messages that the host wants to hear while this goes on: the modern
    /// key of this request, or what `logging/setLevel` said; none where it asked for none (H-41).
    pub log_level: Option<LogLevel>,
}

/// What a host's request ends with: a newest-shape result, or an error.
pub type Outcome = Result<RawJson, RpcError>;

/// Why a link ended, for texts and for deciding what in-flight calls are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// One phrase: `exited with status 1`, `end of input`, `killed by signal 9`, `stopped`.
    pub why: String,
    /// How many frames of this link the writer had begun to write (the first is number 1); calls
    /// whose frame is beyond it never reached the peer.
    pub frames_begun: u64,
}

/// How one upstream call ended, in newest shape. Every pending call gets exactly one.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A complete result (`resultType` removed or `complete`), lifted, otherwise as it came.
    Complete(RawJson),
    /// A modern upstream's `input_required` result, whole.
    InputRequired(RawJson),
    /// A task handle, whole.
    Task(RawJson),
    /// The upstream's own error response.
    Error(RpcError),
    /// A result that is none: unknown `resultType`, no object (U-27).
    Invalid(String),
    /// The link ended first. `written` says whether the request may have reached the upstream; only
    /// then is the outcome unknown (F23).
    Lost {
        /// Whether any byte of the request may have reached the upstream.
        written: bool,
        /// Why the link ended.
        why: String,
    },
    /// A limit struck; the upstream has been told to cancel.
    TimedOut(Limit),
    /// The frame of the answer was larger than the link admits (F08).
    TooLarge {
        /// Its size as far as it was seen, in bytes.
        bytes: usize,
        /// The limit it passed, in bytes.
        limit: usize,
    },
}

/// A limit that ended something, with what a person needs to change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The setting's name, as in `config/defaults.toml`.
    pub setting: &'static str,
    /// Its value as a person writes it: `5m`, `256KiB`, `64`.
    pub value: String,
}

impl Limit {
    /// A limit on time.
    pub fn time(setting: &'static str, limit: Duration) -> Self {
        Self { setting, value: duration_text(limit) }
    }

    /// A limit on a number of things.
    pub fn count(setting: &'static str, limit: usize) -> Self {
        Self { setting, value: limit.to_string() }
    }
}

/// As a person writes it, in whole units: `5m`, `90s`, `1h`, `250ms`.
fn duration_text(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis == 0 {
        return "0s".to_owned();
    }
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let whole = units.into_iter().find(|(size, _)| millis.is_multiple_of(*size));
    whole.map_or_else(|| format!("{millis}ms"), |(size, unit)| format!("{}{unit}", millis / size))
}

/// The answer to a request that was with a daemon when that went away (F23, F47).
pub fn outcome_unknown(id: Id) -> Frame {
    let data = RawJson::trusted(r#"{"reason":"outcome_unknown"}"#.to_owned());
    let error = RpcError::new(Code::InternalError, OUTCOME_UNKNOWN).with_data(data);
    Response { id: Some(id), outcome: Err(error) }.to_frame()
}

/// Why such a request has no other answer, for people and models.
const OUTCOME_UNKNOWN: &str = "outcome unknown: the mcpx daemon went away while this request was with it, so it may or may not \
     have been carried out; check before trying again";

/// Where the virtual time of tests starts.
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "only a starting point; tests add to it")]
fn some_instant() -> std::time::Instant {
    std::time::Instant::now()
}

#[cfg(test)]
mod tests;
