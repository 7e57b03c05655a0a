//! What all connections of a daemon to remote servers have in common: roots of trust and proxies.

use std::fmt;
use std::path::PathBuf;

/// Where remote servers are reached through, and whom to trust.
#[derive(Clone, Default)]
pub struct NetSpec {
    /// Further roots of trust: PEM files (`tls.extra_ca`).
    pub extra_ca: Vec<PathBuf>,
}

/// Roots of trust and proxies; built once for a daemon, cheap to clone.
#[derive(Clone)]
pub struct Net;

impl Net {
    /// From the settings. Reads nothing before the first connection that needs it.
    pub fn new(_spec: NetSpec) -> Self {
        Self
    }
}

impl fmt::Debug for NetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NetSpec")
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Net")
    }
}
