//! The edge: the one place that knows how each revision spells things.
//!
//! `lift` right after parsing, `downgrade` right before writing, for both roles. Raw where nothing
//! changes: a payload is only opened where a table says that a member must go, come or change for
//! the revision at hand, and everything else is spliced from its own text. Whether a payload has to
//! be opened is first asked of its bytes: a name that is not in them needs no spelling.
//! Called by the sessions and by nobody else.
//!
//! Reading order: the tables `methods` and `fields`, then the steps, one per file.

pub mod keys;
pub mod methods;
pub mod questions;

mod content;
mod errors;
mod fields;
pub mod lifecycle;
mod requests;
mod results;
pub mod tasks;

use super::jsonrpc::{Method, RawJson, RpcError};
use super::revision::Revision;

/// Spells a newest-shape result of `method` for a host of `revision`. Takes a reference: a stored
/// result handed out twice must not change (seed LV-36).
///
/// For a modern host it adds `resultType`, server identity under its `_meta` key and, on complete
/// results of the methods that have them, cache hints (H-17, H-18, H-21); for a legacy host it takes
/// out what that revision lacks, also inside list items and content blocks (H-04, H-53, H-54, H-60).
pub fn downgrade_result(
    revision: Revision,
    method: &Method,
    result: &RawJson,
    own_info: &RawJson,
) -> RawJson {
    results::downgrade(revision, method.as_str(), result, own_info)
}

/// Spells an error for a host of `revision` (H-30: codes of another era become this one's).
pub fn downgrade_error(revision: Revision, error: &RpcError) -> RpcError {
    errors::downgrade(revision, error)
}

/// Reads a result that an upstream of `revision` gave to `method` into newest shape.
pub fn lift_result(revision: Revision, method: &Method, result: RawJson) -> RawJson {
    results::lift(revision, method.as_str(), result)
}

/// Reads an error that an upstream of `revision` gave to `method`. That a resource is not there is
/// told by a code of its own in here, whatever the revision says it by (U-28).
pub fn lift_error(revision: Revision, method: &Method, error: RpcError) -> RpcError {
    errors::lift(revision, method.as_str(), error)
}

/// Spells newest-shape request parameters for an upstream of `revision`. `meta` is set by the
/// session: progress token, and for a modern upstream the request envelope
/// ([`lifecycle::request_meta`]).
pub fn downgrade_params(
    revision: Revision,
    method: &Method,
    params: &RawJson,
    meta: &[(&'static str, RawJson)],
) -> RawJson {
    requests::downgrade(revision, method.as_str(), params, meta)
}

/// Progress parameters as an upstream sent them, with the token that the host of `revision` chose.
pub fn downgrade_progress(revision: Revision, params: &RawJson, token: &RawJson) -> RawJson {
    requests::progress(revision, params, token)
}

/// Parameters of `notifications/message` for a host of any revision, which spell it alike: what a
/// modern upstream says about its own request and stream goes.
pub fn downgrade_log(params: &RawJson) -> RawJson {
    requests::log(params)
}

/// Reads the parameters of a host's request into newest shape, and takes the envelope out of them.
/// An error is the answer to the request (H-11, H-13, H-14).
pub fn lift_params(params: Option<&RawJson>) -> Result<Lifted, RpcError> {
    requests::lift(params)
}

/// Reads the envelope of a request and leaves the parameters alone. `None` where there is no modern
/// key at all, which is a legacy request (H-13).
pub fn read_envelope(params: Option<&RawJson>) -> Result<Option<Envelope>, RpcError> {
    requests::read_envelope(params)
}

/// The revision that an envelope names, served or not; `None` where it names none.
pub fn envelope_revision(params: Option<&RawJson>) -> Option<String> {
    params?.member("_meta")?.member_str(keys::PROTOCOL_VERSION)
}

/// What a request without an envelope is told whose headers say that it has one (H-13).
pub fn lacks_envelope() -> RpcError {
    requests::lacks(keys::PROTOCOL_VERSION, "a string, the protocol revision of the request")
}

/// Reads a log level, of `logging/setLevel` or an envelope; the error lists those that exist (H-14).
pub fn read_log_level(level: &RawJson) -> Result<LogLevel, RpcError> {
    requests::log_level(level, "`level`")
}

/// The revisions we speak, newest first, as `server/discover` and -32022 list them.
pub fn supported() -> Vec<&'static str> {
    Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect()
}

/// What a modern request says of itself and its sender; for this request only (H-15).
#[derive(Debug, Clone)]
pub struct Envelope {
    /// The revision it is written in.
    pub revision: Revision,
    /// What its sender can do.
    pub capabilities: RawJson,
    /// Who its sender says it is: a label, nothing more (H-16).
    pub info: Option<RawJson>,
    /// The least level of log messages it wants; none where it is absent (H-41).
    pub log_level: Option<LogLevel>,
}

/// Parameters with the envelope taken out.
#[derive(Debug, Clone)]
pub struct Lifted {
    /// What is left; `{}` where there were none. Other `_meta` keys stay.
    pub params: RawJson,
    /// The envelope of a modern request.
    pub envelope: Option<Envelope>,
    /// The progress token as it was written, where there is a usable one (F37).
    pub progress_token: Option<RawJson>,
}

impl Lifted {
    fn plain(params: RawJson) -> Self {
        Self { params, envelope: None, progress_token: None }
    }
}

/// The levels of log messages, least first; the same eight in all revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are those of RFC 5424")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// All of them, least first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level of this name, exactly as the schema spells it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}

#[cfg(test)]
mod tests;
