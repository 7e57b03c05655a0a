//! What goes on inside, and who may see it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Values;
use crate::protocol::http_rules::origin::Authority;
use crate::settings::references;
use crate::settings::servers::check_header;
use crate::settings::value::Secret;

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
    /// `otel.headers` of each request.
    pub headers: Arc<[OtelHeader]>,
    /// `otel.queue`: spans that wait to be sent.
    pub queue: usize,
    /// `otel.batch`: spans that are sent together.
    pub batch: usize,
    /// `otel.interval`: how long they are gathered.
    pub interval: Duration,
    /// `otel.timeout`: how long the collector may take.
    pub timeout: Duration,
}

/// A header of requests to a collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelHeader {
    /// Its name, which is one.
    pub name: String,
    /// Its value as it was written, references unexpanded.
    pub value: Secret,
}

impl OtelHeader {
    /// Reads `otel.headers`, or says what is wrong with it, without its values.
    pub fn read_all(text: &str) -> Result<Arc<[Self]>, String> {
        let pairs = references::split(text, ',')?;
        let written = pairs.into_iter().map(str::trim).filter(|pair| !pair.is_empty());
        let read = |(at, pair): (usize, &str)| {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(format!("header {} is not written NAME=VALUE", at + 1));
            };
            let name = name.trim();
            check_header(name)?;
            references::check(value)?;
            Ok(Self { name: name.to_owned(), value: value.trim().into() })
        };
        written.enumerate().map(read).collect()
    }
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
                // Whatever is no header was refused when it was read.
                headers: values
                    .secret("otel.headers")
                    .and_then(|written| OtelHeader::read_all(written.written()).ok())
                    .unwrap_or_default(),
                queue: values.count("otel.queue"),
                batch: values.count("otel.batch"),
                interval: values.time("otel.interval"),
                timeout: values.time("otel.timeout"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, String> {
        let pair = |one: &OtelHeader| (one.name.clone(), one.value.written().to_owned());
        OtelHeader::read_all(text).map(|all| all.iter().map(pair).collect())
    }

    #[test]
    fn headers_of_a_collector_are_pairs_with_commas_between() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read(" a = b=, c=,"), Ok(vec![pair("a", "b="), pair("c", "")]));
        assert_eq!(
            read("authorization=Bearer ${cmd:pick a,b},x-scope=$$1"),
            Ok(vec![pair("authorization", "Bearer ${cmd:pick a,b}"), pair("x-scope", "$$1")])
        );
    }

    #[test]
    fn what_is_no_header_is_named_and_no_value_is() {
        for text in ["token", "a=b,hush", "a b=hush", "host=hush", "a=${hush"] {
            let said = read(text).unwrap_err();
            assert!(!said.contains("hush"), "{said}");
        }
    }
}
