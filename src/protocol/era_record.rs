//! The era cache's key, record and file format (S4, U-15, U-16).

use serde::{Deserialize, Serialize};

/// How an era became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EraSource {
    /// By the opening itself.
    Probe,
    /// From the cache.
    Cache,
    /// By a force value.
    Forced,
}

/// What is remembered of one process definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraRecord {
    /// `legacy` or `modern`.
    pub era: String,
    /// The revision agreed.
    pub revision: String,
    /// Seconds since 1970 when it was learned.
    pub learned_at: u64,
    /// How it was learned.
    pub source: EraSource,
    /// `http+sse` where that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}
