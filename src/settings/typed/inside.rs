//! What goes on inside, and who may see it.

use std::net::SocketAddr;

use super::Values;
use crate::protocol::http_rules::origin::Authority;

/// Metrics over TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsSettings {
    /// `metrics.listen`; `None` means nowhere.
    pub listen: Option<SocketAddr>,
    /// `metrics.allowed_hosts`.
    pub allowed_hosts: Vec<Authority>,
    /// `metrics.max_connections`.
    pub max_connections: usize,
}

impl MetricsSettings {
    pub(super) fn of(values: &Values<'_>) -> Self {
        Self {
            listen: values.text("metrics.listen").parse().ok(),
            allowed_hosts: values.list("metrics.allowed_hosts", Authority::parse),
            max_connections: values.count("metrics.max_connections"),
        }
    }
}
