//! Saved scripts.

use super::Values;

/// Saved scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptSettings {
    /// `scripts.agent_write`: agents may save and remove them.
    pub agent_write: bool,
    /// `scripts.max`: how many there are.
    pub most: usize,
    /// `scripts.max_size` in bytes: one of them.
    pub max_size: usize,
}

impl ScriptSettings {
    pub(super) fn of(values: &Values<'_>) -> Self {
        Self {
            agent_write: values.switch("scripts.agent_write"),
            most: values.count("scripts.max"),
            max_size: values.count("scripts.max_size"),
        }
    }
}
