//! The five revisions of the specification, and every question about them that other code may ask.
//!
//! Outside this file, [`crate::protocol::edge`] and the handshake, nobody names or compares a
//! revision: they ask one of the named questions below, so that each difference has one definition
//! and one source.

use std::fmt;

/// A revision of the specification that mcpx speaks, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05
    V2024_11_05,
    /// 2025-03-26
    V2025_03_26,
    /// 2025-06-18
    V2025_06_18,
    /// 2025-11-25
    V2025_11_25,
    /// 2026-07-28
    V2026_07_28,
}

/// How a revision opens a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// By an `initialize` handshake that the connection remembers.
    Legacy,
    /// By `_meta` in every request; nothing is remembered.
    Modern,
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        })
    }
}

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision; what everything inside mcpx is spelled in.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// The newest revision that has a handshake: the counter-offer of H-08 and our own offer (U-02).
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// How a stdio host that declared nothing is spelled for (H-26): guessing downward is safe.
    pub const OLDEST: Self = Self::V2024_11_05;

    /// What a headerless HTTP request and a batch before the handshake count as (H-27).
    pub const HEADERLESS: Self = Self::V2025_03_26;

    /// The date as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Membership in the known list, never a comparison of text (H-09): a future date is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// The era this revision belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether requests carry their own `_meta` envelope and there is no handshake.
    pub const fn is_modern(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// Whether a JSON-RPC array may be received and sent (only the 2025-03-26 base protocol page).
    pub const fn allows_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }

    /// Whether the events of a stream have ids by which a host takes it up again, and a stream begins
    /// with an event that is nothing but such an id (2025-11-25 Transports page). Older pages know ids
    /// too, but not that event, on which their hosts choke, nor a host that comes back by itself.
    pub const fn resumes_streams(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    /// Whether an error to a request whose id could not be read leaves the member out. The schemas
    /// since 2025-11-25 have it optional and never null; older ones know no such error, and there
    /// JSON-RPC's own `null` is written.
    pub const fn leaves_out_unread_ids(self) -> bool {
        matches!(self, Self::V2025_11_25 | Self::V2026_07_28)
    }

    /// Whether an empty `nextCursor` is a cursor like any other (2026-07-28 pagination page) or,
    /// as legacy servers mean it, the end of the list (U-29).
    pub const fn empty_cursor_continues(self) -> bool {
        self.is_modern()
    }

    /// Whether HTTP messages name the revision in `MCP-Protocol-Version`: since the Transports page of
    /// 2025-06-18 (U-20).
    pub const fn sends_version_header(self) -> bool {
        matches!(self, Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28)
    }

    /// Whether HTTP requests repeat method, name and annotated arguments in headers (2026-07-28
    /// Streamable HTTP page, "Request Metadata"; U-21).
    pub const fn mirrors_in_headers(self) -> bool {
        self.is_modern()
    }

    /// Whether an HTTP server of this revision may have a stream for what belongs to no request, which
    /// is opened by GET (transports pages of 2025-03-26 to 2025-11-25; U-38).
    pub const fn has_standalone_stream(self) -> bool {
        matches!(self, Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25)
    }

    /// What an `initialize` that asked for `requested` is answered with (H-06, H-07, H-08).
    pub fn counter_offer(requested: Option<&str>) -> Self {
        match requested.and_then(Self::parse) {
            Some(known) if known.era() == Era::Legacy => known,
            _ => Self::NEWEST_LEGACY,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_date_is_unknown_not_modern() {
        assert_eq!(Revision::parse("2099-01-01"), None);
        assert_eq!(Revision::parse("2026-07-28"), Some(Revision::V2026_07_28));
    }

    #[test]
    fn counter_offers_are_legacy() {
        for asked in [None, Some("1999-01-01"), Some("2026-07-28"), Some("2099-01-01"), Some("")] {
            assert_eq!(Revision::counter_offer(asked), Revision::V2025_11_25);
        }
        assert_eq!(Revision::counter_offer(Some("2024-11-05")), Revision::V2024_11_05);
    }
}
