//! What pure code has to say to a person: returned, never logged from here.

/// A remark about a peer that an actor logs and emits as an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The event it becomes: `server.warning`, `server.era.stale`, `host.warning`.
    pub kind: &'static str,
    /// One sentence: what was seen, on what, and what was done about it.
    pub text: String,
}

impl Notice {
    /// A warning about an upstream (`server.warning`, O-01).
    pub fn server(text: impl Into<String>) -> Self {
        Self { kind: "server.warning", text: text.into() }
    }

    /// A warning about a host.
    pub fn host(text: impl Into<String>) -> Self {
        Self { kind: "host.warning", text: text.into() }
    }
}
