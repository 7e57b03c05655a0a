//! Which rule of which revision makes a cell impossible.

use crate::cell::Peer;
use crate::support::schema::MODERN;

/// What is to be seen in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The whole feature.
    Works,
    /// What the reason says instead.
    Not(Reason),
}

/// Why a cell cannot have a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    StructuredUp,
    StructuredHost,
    FormUp,
    FormHost,
    UrlUp,
    UrlHost,
    ToolsUp,
    ToolsHost,
    Ping,
    TasksHost,
    TasksUp,
}

/// The letter of each reason is its place; what is seen instead is what the cells' tests check.
pub const REASONS: [(Reason, &str); 11] = [
    (
        Reason::StructuredUp,
        "The upstream's revision has no structured content (2025-06-18, \"Structured Content\"); the \
         text comes alone.",
    ),
    (
        Reason::StructuredHost,
        "The host's revision has no structured content; it gets it as one more text.",
    ),
    (
        Reason::FormUp,
        "The upstream's revision has no elicitation (2025-06-18, \"Elicitation\"): nothing can be asked.",
    ),
    (
        Reason::FormHost,
        "The host's revision has no elicitation. While nobody listens at the broker a legacy upstream \
         is answered `cancel`, and a modern one is told that nobody can be asked, which it refuses.",
    ),
    (
        Reason::UrlUp,
        "The upstream's revision has no url elicitation (2025-11-25, \"URL Mode\"): nothing can be asked.",
    ),
    (
        Reason::UrlHost,
        "The host's revision has no url elicitation. Else as for forms; -32042 reaches it as an error \
         that names the address.",
    ),
    (
        Reason::ToolsUp,
        "The upstream's revision has no tools in sampling (2025-11-25, \"Sampling\"): nothing can be \
         asked.",
    ),
    (
        Reason::ToolsHost,
        "The host's revision has no tools in sampling, so the upstream is not told that there are.",
    ),
    (Reason::Ping, "2026-07-28 has no `ping`: -32601."),
    (
        Reason::TasksHost,
        "The host's revision has no tasks: mcpx works the upstream's task off and answers the call.",
    ),
    (Reason::TasksUp, "The upstream's revision has no tasks: the call is answered as any other."),
];

/// The letter of a reason.
pub fn letter(reason: Reason) -> char {
    let at = REASONS.iter().position(|(known, _)| *known == reason).unwrap();
    char::from(b'a' + u8::try_from(at).unwrap())
}

/// Works everywhere.
pub fn everywhere(_: Peer, _: Peer) -> Expect {
    Expect::Works
}

fn since(first: &str, host: Peer, up: Peer, no_host: Reason, no_up: Reason) -> Expect {
    if up.revision < first {
        Expect::Not(no_up)
    } else if host.revision < first {
        Expect::Not(no_host)
    } else {
        Expect::Works
    }
}

/// Structured content.
pub fn structured(host: Peer, up: Peer) -> Expect {
    since("2025-06-18", host, up, Reason::StructuredHost, Reason::StructuredUp)
}

/// Elicitation with a form.
pub fn form(host: Peer, up: Peer) -> Expect {
    since("2025-06-18", host, up, Reason::FormHost, Reason::FormUp)
}

/// Elicitation with a url.
pub fn url(host: Peer, up: Peer) -> Expect {
    since("2025-11-25", host, up, Reason::UrlHost, Reason::UrlUp)
}

/// Sampling with tools.
pub fn sampling_tools(host: Peer, up: Peer) -> Expect {
    since("2025-11-25", host, up, Reason::ToolsHost, Reason::ToolsUp)
}

/// Tasks. A host of 2025-11-25 asks for a task, and mcpx makes one whatever the upstream has; at
/// 2026-07-28 the server decides, and a call that an upstream answers at once needs none.
pub fn tasks(host: Peer, up: Peer) -> Expect {
    if host.revision == "2025-11-25" || host.modern() && up.revision >= "2025-11-25" {
        Expect::Works
    } else if up.revision < "2025-11-25" {
        Expect::Not(Reason::TasksUp)
    } else {
        Expect::Not(Reason::TasksHost)
    }
}

/// `ping`.
pub fn ping(host: Peer, _: Peer) -> Expect {
    if host.revision == MODERN { Expect::Not(Reason::Ping) } else { Expect::Works }
}
