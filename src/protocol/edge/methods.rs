//! Which method exists in which revision, and who may send it. Data; from the five schemas.

use crate::protocol::revision::Revision::{
    self, V2024_11_05 as R2411, V2025_06_18 as R2506, V2025_11_25 as R2511, V2026_07_28 as R2607,
};

/// Who sends a method, and whether it wants an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// A request towards whoever plays the server.
    ToServer,
    /// A request towards whoever plays the client.
    ToClient,
    /// A notification towards the server.
    NoteToServer,
    /// A notification towards the client.
    NoteToClient,
}

use Direction::{NoteToClient, NoteToServer, ToClient, ToServer};

/// Name, direction, first and last revision that have it.
pub(super) struct Row(
    pub(super) &'static str,
    pub(super) Direction,
    pub(super) Revision,
    pub(super) Revision,
);

pub(super) const METHODS: &[Row] = &[
    Row("initialize", ToServer, R2411, R2511),
    Row("notifications/initialized", NoteToServer, R2411, R2511),
    Row("server/discover", ToServer, R2607, R2607),
    Row("ping", ToServer, R2411, R2511),
    Row("ping", ToClient, R2411, R2511),
    Row("tools/list", ToServer, R2411, R2607),
    Row("tools/call", ToServer, R2411, R2607),
    Row("resources/list", ToServer, R2411, R2607),
    Row("resources/templates/list", ToServer, R2411, R2607),
    Row("resources/read", ToServer, R2411, R2607),
    Row("resources/subscribe", ToServer, R2411, R2511),
    Row("resources/unsubscribe", ToServer, R2411, R2511),
    Row("prompts/list", ToServer, R2411, R2607),
    Row("prompts/get", ToServer, R2411, R2607),
    Row("completion/complete", ToServer, R2411, R2607),
    Row("logging/setLevel", ToServer, R2411, R2511),
    Row("subscriptions/listen", ToServer, R2607, R2607),
    // 2025-11-25 has tasks in its core. 2026-07-28 has get, update and cancel as an extension, and
    // list and result not at all (SEP-2663, H-64).
    Row("tasks/get", ToServer, R2511, R2607),
    Row("tasks/cancel", ToServer, R2511, R2607),
    Row("tasks/update", ToServer, R2607, R2607),
    Row("tasks/list", ToServer, R2511, R2511),
    Row("tasks/result", ToServer, R2511, R2511),
    // In 2026-07-28 these three are entries of `inputRequests` and no requests of their own.
    Row("sampling/createMessage", ToClient, R2411, R2511),
    Row("roots/list", ToClient, R2411, R2511),
    Row("elicitation/create", ToClient, R2506, R2511),
    Row("notifications/cancelled", NoteToServer, R2411, R2607),
    Row("notifications/cancelled", NoteToClient, R2411, R2607),
    Row("notifications/progress", NoteToServer, R2411, R2511),
    Row("notifications/progress", NoteToClient, R2411, R2607),
    Row("notifications/message", NoteToClient, R2411, R2607),
    Row("notifications/tools/list_changed", NoteToClient, R2411, R2607),
    Row("notifications/prompts/list_changed", NoteToClient, R2411, R2607),
    Row("notifications/resources/list_changed", NoteToClient, R2411, R2607),
    Row("notifications/resources/updated", NoteToClient, R2411, R2607),
    Row("notifications/roots/list_changed", NoteToServer, R2411, R2511),
    Row("notifications/elicitation/complete", NoteToClient, R2511, R2511),
    Row("notifications/tasks/status", NoteToClient, R2511, R2511),
    Row("notifications/subscriptions/acknowledged", NoteToClient, R2607, R2607),
];

/// The methods whose complete results carry cache hints (2026-07-28 caching page, H-21).
const CACHEABLE: &[&str] = &[
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// What a revision has to say about a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The revision has it.
    Known,
    /// Another revision has it, this one does not: -32601 (H-05, H-25, H-64).
    Foreign,
    /// No revision has it: an extension's or a vendor's, which passes.
    Unknown,
}

/// What `revision` has to say about `method` in `direction`.
pub fn standing(revision: Revision, method: &str, direction: Direction) -> Standing {
    let mut standing = Standing::Unknown;
    for Row(name, towards, first, last) in METHODS {
        if *name == method && *towards == direction {
            if (*first..=*last).contains(&revision) {
                return Standing::Known;
            }
            standing = Standing::Foreign;
        }
    }
    standing
}

/// Whether complete results of `method` carry `ttlMs` and `cacheScope`.
pub(super) fn is_cacheable(method: &str) -> bool {
    CACHEABLE.contains(&method)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H-05, H-25, H-64: what 2026-07-28 has removed.
    #[test]
    fn h05_removed_methods() {
        for method in [
            "initialize",
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
            "tasks/list",
            "tasks/result",
        ] {
            assert_eq!(standing(R2607, method, ToServer), Standing::Foreign, "{method}");
            assert_eq!(standing(R2511, method, ToServer), Standing::Known, "{method}");
        }
        assert_eq!(standing(R2607, "tasks/get", ToServer), Standing::Known);
        assert_eq!(standing(R2607, "skills/list", ToServer), Standing::Unknown);
        assert_eq!(standing(R2511, "server/discover", ToServer), Standing::Foreign);
        assert_eq!(standing(R2411, "elicitation/create", ToClient), Standing::Foreign);
    }
}
