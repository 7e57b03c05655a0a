//! What goes on inside, for people and their tools: metrics, the supervision tree and its history.
//!
//! Counting happens where calls end ([`ending`], [`meter`]), in blocks of atomics; whoever asks puts the
//! rest together from what the other parts say of themselves ([`exposition`], [`tree`]), so that nothing
//! is kept up to date while nobody looks.

pub mod chronicle;
pub mod ending;
pub mod exposition;
pub mod meter;
pub mod metrics;
pub mod tree;

use self::chronicle::Chronicle;
use self::metrics::MetricsHandle;

/// The handles of these parts. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Inside {
    /// Metrics over TCP.
    pub metrics: MetricsHandle,
    /// What was started and has failed.
    pub chronicle: Chronicle,
}
