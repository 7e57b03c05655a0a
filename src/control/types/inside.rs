//! What goes on inside: the audit, traces of frames, the supervision tree.

use serde::{Deserialize, Serialize};

use crate::protocol::jsonrpc::RawJson;

/// Which calls are wanted of the audit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditRequest {
    /// Only those within this time before now, as in `10m` or `1d`.
    pub since: Option<String>,
    /// Only calls of this server, by key or namespace.
    pub server: Option<String>,
    /// Only those that ended so.
    pub outcome: Option<String>,
    /// Only this one.
    pub id: Option<String>,
    /// At most so many, the last ones; 0 means all.
    pub limit: Option<usize>,
    /// As a stream that goes on.
    pub follow: bool,
}

/// `GET /v1/audit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditAnswer {
    /// Whether calls are recorded now (`audit.enabled`).
    pub enabled: bool,
    /// Calls of this daemon's life that were not recorded, because too many waited (`audit.queue`) or
    /// they could not be written.
    pub dropped: u64,
    /// Oldest first.
    pub records: Vec<AuditRecord>,
}

/// One call: a line of the audit's files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Its id, which mcpx's own errors carry.
    pub id: String,
    /// When it came, in milliseconds since 1970.
    pub at: u64,
    /// Until its caller was told, in milliseconds.
    pub ms: f64,
    /// `ok`, `tool_error`, `error`, `asked`, `busy`, `timeout`, `unavailable`, `outcome_unknown`,
    /// `not_confirmed` or `cancelled`.
    pub outcome: String,
    /// The server, by its key.
    pub server: String,
    /// `tool`, `resource`, `prompt` or, where a server is exposed alone, `method`.
    pub kind: String,
    /// The server's own name for it; a resource's address there.
    pub name: String,
    /// The name under which the host sees the tool, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<String>,
    /// What the host calls itself, and its version; `mcpx` for the command line and `/v1`.
    pub host: String,
    /// `stdio`, `http`, `control` or `mcpx`.
    pub via: String,
    /// Whose connection it came over: the name of the user of the system whose shim or command it is (the
    /// kernel says it), or `bearer` for whoever has the token over HTTP; none where anybody may come in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The host's session, by its number in this daemon's life; a modern request over HTTP has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// The host's own id of its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RawJson>,
    /// Whether a script of that host made it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub script: bool,
    /// The project folder on whose behalf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The trace it is a part of, where the host named one or traces are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// What it was called with (`audit.arguments`), without what looks secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<RawJson>,
}

/// `GET /v1/servers/{server}/trace`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceAnswer {
    /// The server, by its key.
    pub server: String,
    /// Whether frames were kept before this was asked.
    pub kept: bool,
    /// The last frames, oldest first.
    pub frames: Vec<FrameView>,
}

/// One frame to or from a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameView {
    /// Its number among the server's frames that were kept.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The instance.
    pub instance: u64,
    /// `to` the server or `from` it.
    pub way: String,
    /// Its method, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Its id, as JSON, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How long it is in bytes.
    pub bytes: usize,
    /// Its text, or as much of it as is kept, with what looks secret masked.
    pub text: String,
    /// Whether it goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// `GET /v1/tree`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeAnswer {
    /// The root, and all below it.
    pub root: ActorView,
    /// So many failures of permanent parts within the window end the daemon
    /// (`daemon.restart_intensity`).
    pub intensity: u32,
    /// The window in milliseconds (`daemon.restart_window`).
    pub window_ms: u64,
    /// Failures within the window before now.
    pub recent: usize,
}

/// One actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorView {
    /// What it is: `Root`, `Pool`, `Instance`, ….
    pub kind: String,
    /// Its number in the daemon's process.
    pub actor: u64,
    /// What it is for, where its kind does not say all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its state.
    pub state: String,
    /// How long ago it was started, in milliseconds, where that is remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// How often it was started again.
    #[serde(default)]
    pub restarts: u32,
    /// The last restarts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<RestartView>,
    /// Those that it supervises.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Self>,
}

/// One restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartView {
    /// How long ago, in milliseconds.
    pub ago_ms: u64,
    /// Why.
    pub why: String,
}

/// Which events are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsRequest {
    /// As a stream that goes on.
    pub follow: bool,
    /// Only those that concern this server, by key or namespace.
    pub server: Option<String>,
    /// Only those of this kind or family.
    pub kind: Option<String>,
}

impl EventsRequest {
    /// Whether an event of this kind, about `server`, is wanted. `self.server` is a key here.
    pub fn wants(&self, kind: &str, server: Option<&str>) -> bool {
        let of_kind = |wanted: &str| {
            let rest = kind.strip_prefix(wanted.trim_end_matches(['.', '*']));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.kind.as_deref().is_none_or(of_kind)
            && self.server.as_deref().is_none_or(|wanted| server == Some(wanted))
    }
}

/// Whose frames are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceRequest {
    /// The server, by key or namespace.
    pub server: String,
    /// The last so many.
    pub frames: Option<usize>,
    /// As a stream that goes on.
    pub follow: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_chosen_by_kind_family_and_server() {
        let of = |kind: Option<&str>, server: Option<&str>| EventsRequest {
            follow: true,
            server: server.map(str::to_owned),
            kind: kind.map(str::to_owned),
        };
        for (kind, server, is) in [
            (None, None, true),
            (Some("server"), None, true),
            (Some("server.*"), None, true),
            (Some("server.era"), None, true),
            (Some("server.era.stale"), Some("a"), true),
            (Some("server.era.stale"), Some("b"), false),
            (Some("serv"), None, false),
            (Some("server.crashed"), None, false),
        ] {
            assert_eq!(of(kind, server).wants("server.era.stale", Some("a")), is, "{kind:?}");
        }
        assert!(!of(None, Some("a")).wants("daemon.ready", None));
    }
}
