//! What a pool says of itself, for people and programs.

use serde::Serialize;

use crate::protocol::era_record::EraRecord;

/// One server (P-14, D-05).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolStatus {
    /// Its pool's actor.
    #[serde(skip)]
    pub actor: u64,
    /// Its configuration key.
    pub server: String,
    /// Its namespace.
    pub namespace: String,
    /// `idle`, `starting`, `ready`, `backoff`, `parked` or `stopped`.
    pub state: &'static str,
    /// When it is started again by itself, in milliseconds from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// Whether a parked server can only be mended by a change.
    pub permanent: bool,
    /// Why the last instance failed or died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The last lines of that instance's stderr.
    pub stderr: Vec<String>,
    /// Failures in a row.
    pub failures: u32,
    /// Deaths and failed starts since this definition is in force.
    pub restarts: u32,
    /// Callers that wait.
    pub waiting: usize,
    /// Those that run.
    pub instances: Vec<InstanceStatus>,
}

/// One instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstanceStatus {
    /// Its actor.
    #[serde(skip)]
    pub actor: u64,
    /// Its number.
    pub id: u64,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// `stdio`, `http` or `http+sse`, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'static str>,
    /// The address of a remote server, without its query, which may hold a credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The beginning of the session id that a legacy HTTP server gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// `starting`, `ready` or `leaving`.
    pub state: &'static str,
    /// Its lane.
    pub lane: &'static str,
    /// Who shares it.
    pub scope: String,
    /// The revision agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Time since it was started, in milliseconds.
    pub uptime_ms: u64,
    /// From its start until it was usable, in milliseconds.
    #[serde(skip)]
    pub opened_ms: Option<u64>,
    /// Calls in flight.
    pub in_flight: usize,
    /// Whether it has one call at a time, because it asks without saying of which.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
}

/// How one server is spoken to (D-05).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProtocolStatus {
    /// Its configuration key.
    pub server: String,
    /// The preference in force, as a setting's value.
    pub preference: &'static str,
    /// The pinned revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// The era of its running instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// The revision of its running instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How that era became known: `probe`, `cache` or `forced`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era_source: Option<crate::protocol::era_record::EraSource>,
    /// What the era cache holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<EraRecord>,
    /// Of a server that follows: the revision of the session for callers of legacy revisions, or
    /// `idle`, `shared` (they use the other one) or `refused` (so do they, for good).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legacy_lane: Option<String>,
}
