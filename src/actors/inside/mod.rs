//! What goes on inside, for people and their tools: metrics, the record of calls, frames as they
//! pass, the supervision tree and its history.
//!
//! Counting happens where calls end ([`ending`], [`meter`]), in blocks of atomics; whoever asks puts the
//! rest together from what the other parts say of themselves ([`exposition`], [`tree`]), so that nothing
//! is kept up to date while nobody looks.

pub mod audit;
mod batch;
pub mod chronicle;
pub mod ending;
pub mod exposition;
pub mod meter;
pub mod metrics;
pub mod spans;
pub mod trace;
pub mod tree;

use self::audit::AuditHandle;
use self::chronicle::Chronicle;
use self::metrics::MetricsHandle;
use self::spans::SpansHandle;

/// The handles of these parts. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Inside {
    /// The record of calls.
    pub audit: AuditHandle,
    /// Traces.
    pub spans: SpansHandle,
    /// Metrics over TCP.
    pub metrics: MetricsHandle,
    /// What was started and has failed.
    pub chronicle: Chronicle,
}
