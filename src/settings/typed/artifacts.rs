//! How long stored results and files of scripts are kept, and how much room they have.

use std::time::Duration;

use super::Values;

/// Artifacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtifactSettings {
    /// `artifacts.keep`: how long each is kept.
    pub keep: Duration,
    /// `artifacts.max_size` in bytes: one of them.
    pub max_size: usize,
    /// `artifacts.max_total` in bytes: all of them.
    pub max_total: u64,
    /// `artifacts.max`: how many there are.
    pub most: usize,
}

impl ArtifactSettings {
    pub(super) fn of(values: &Values<'_>) -> Self {
        Self {
            keep: values.time("artifacts.keep"),
            max_size: values.count("artifacts.max_size"),
            max_total: values.number("artifacts.max_total"),
            most: values.count("artifacts.max"),
        }
    }
}
