//! How the era of an upstream is found out: preferences and verdicts, as pure functions.

/// Which request opens the connection; named for the first request sent (U-05).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preference {
    /// `server/discover` first, `initialize` where that shows a legacy server. The default.
    PreferDiscover,
    /// `initialize` first, `server/discover` where that is refused by a modern-only server.
    PreferInitialize,
    /// `server/discover` only.
    ForceDiscover,
    /// `initialize` only.
    ForceInitialize,
}
