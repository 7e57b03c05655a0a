//! Profiles as configured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One profile as configured, canonical.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileConfig {
    /// Its name, as `--profile` and `/mcp/{profile}` have it.
    pub profile: String,
    /// Patterns for the keys of the servers it shows; all where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// What its hosts see of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose: Option<String>,
    /// Longest name of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_limit: Option<usize>,
    /// The project of its hosts over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its rules beside `[policy]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policy: BTreeMap<String, String>,
}
