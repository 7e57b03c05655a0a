//! What goes on inside, and who may see it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Values;
use crate::protocol::http_rules::origin::Authority;

/// Metrics, the audit and traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsideSettings {
    /// Metrics over TCP.
    pub metrics: MetricsSettings,
    /// The record of calls.
    pub audit: AuditSettings,
    /// Frames that are kept to be looked at.
    pub trace: TraceSettings,
    /// Traces by OTLP.
    pub otel: OtelSettings,
}

/// Traces by OTLP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelSettings {
    /// `otel.endpoint`; `None` where traces are not sent.
    pub endpoint: Option<Arc<str>>,
    /// `otel.queue`: spans that wait to be sent.
    pub queue: usize,
    /// `otel.batch`: spans that are sent together.
    pub batch: usize,
    /// `otel.interval`: how long they are gathered.
    pub interval: Duration,
    /// `otel.timeout`: how long the collector may take.
    pub timeout: Duration,
}

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

/// The record of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSettings {
    /// `audit.enabled`.
    pub enabled: bool,
    /// `audit.arguments`: whether arguments are recorded.
    pub arguments: bool,
    /// `audit.max_size` of one file, in bytes.
    pub max_size: u64,
    /// `audit.max_files`.
    pub max_files: usize,
    /// `audit.rotate_after`: when another file is begun.
    pub rotate_after: Duration,
    /// `audit.keep`: how long an ended one is kept.
    pub keep: Duration,
    /// `audit.queue`: calls that wait to be written.
    pub queue: usize,
    /// `audit.flush`: how long they wait.
    pub flush: Duration,
}

/// Frames that are kept to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSettings {
    /// `trace.keep`: always, of every server.
    pub keep: bool,
    /// `trace.frames` of each server.
    pub frames: usize,
    /// `trace.frame_bytes` of each frame.
    pub frame_bytes: usize,
    /// `trace.linger`: for how long after somebody has asked.
    pub linger: Duration,
}

impl InsideSettings {
    pub(super) fn of(values: &Values<'_>) -> Self {
        Self {
            metrics: MetricsSettings {
                listen: values.text("metrics.listen").parse().ok(),
                allowed_hosts: values.list("metrics.allowed_hosts", Authority::parse),
                max_connections: values.count("metrics.max_connections"),
            },
            audit: AuditSettings {
                enabled: values.switch("audit.enabled"),
                arguments: values.switch("audit.arguments"),
                max_size: values.number("audit.max_size"),
                max_files: values.count("audit.max_files"),
                rotate_after: values.time("audit.rotate_after"),
                keep: values.time("audit.keep"),
                queue: values.count("audit.queue"),
                flush: values.time("audit.flush"),
            },
            trace: TraceSettings {
                keep: values.switch("trace.keep"),
                frames: values.count("trace.frames"),
                frame_bytes: values.count("trace.frame_bytes"),
                linger: values.time("trace.linger"),
            },
            otel: OtelSettings {
                endpoint: Some(values.text("otel.endpoint"))
                    .filter(|text| !text.is_empty() && &**text != "off"),
                queue: values.count("otel.queue"),
                batch: values.count("otel.batch"),
                interval: values.time("otel.interval"),
                timeout: values.time("otel.timeout"),
            },
        }
    }
}
