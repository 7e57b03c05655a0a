//! The configuration itself.

use std::time::Duration;

use super::Values;

/// When its files are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigSettings {
    /// `config.watch`.
    pub watch: bool,
    /// `config.watch_delay`: quiet before they are read.
    pub watch_delay: Duration,
    /// `config.max_project` in bytes: the longest file of a project.
    pub max_project: usize,
}

impl ConfigSettings {
    pub(super) fn of(values: &Values<'_>) -> Self {
        Self {
            watch: values.switch("config.watch"),
            watch_delay: values.time("config.watch_delay"),
            max_project: values.count("config.max_project"),
        }
    }
}
