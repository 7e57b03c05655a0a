//! How the era of an upstream is found out: preferences and verdicts, as pure functions.

use std::fmt;
use std::str::FromStr;

use super::Outcome;
use crate::protocol::era_record::EraRecord;
use crate::protocol::jsonrpc::{Code, RawJson, RpcError};
use crate::protocol::revision::{Era, Revision};

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
    /// As [`Self::PreferDiscover`] for the server's own session; callers of legacy revisions get a
    /// second one, opened with `initialize` only (U-18). What that means is the pool's business.
    Follow,
}

/// A preference that is none; lists those that are (U-06).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no protocol preference; use one of {}", accepted())]
pub struct UnknownPreference {
    /// What was written.
    pub given: String,
}

fn accepted() -> String {
    Preference::ALL.map(Preference::as_str).join(", ")
}

impl Preference {
    /// All of them, the default first.
    pub const ALL: [Self; 5] = [
        Self::PreferDiscover,
        Self::PreferInitialize,
        Self::ForceDiscover,
        Self::ForceInitialize,
        Self::Follow,
    ];

    /// The canonical name, which is what is shown wherever the value is shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreferDiscover => "prefer-discover",
            Self::PreferInitialize => "prefer-initialize",
            Self::ForceDiscover => "force-discover",
            Self::ForceInitialize => "force-initialize",
            Self::Follow => "follow",
        }
    }

    /// The name by relative age that older configurations use.
    const fn old_name(self) -> Option<&'static str> {
        match self {
            Self::PreferDiscover => Some("modern"),
            Self::PreferInitialize => Some("legacy"),
            Self::ForceDiscover => Some("force-modern"),
            Self::ForceInitialize => Some("force-legacy"),
            Self::Follow => None,
        }
    }

    /// Whether one era is demanded; then the era cache is neither read nor written (U-17).
    pub const fn is_forced(self) -> bool {
        matches!(self, Self::ForceDiscover | Self::ForceInitialize)
    }
}

impl fmt::Display for Preference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Preference {
    type Err = UnknownPreference;

    /// Canonical and old names, in any case (U-05).
    fn from_str(text: &str) -> Result<Self, UnknownPreference> {
        let given = text.trim();
        Self::ALL
            .into_iter()
            .find(|known| {
                let mut names = [Some(known.as_str()), known.old_name()].into_iter().flatten();
                names.any(|name| name.eq_ignore_ascii_case(given))
            })
            .ok_or_else(|| UnknownPreference { given: text.to_owned() })
    }
}

/// The two openings, in the order in which they may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// What goes first.
    pub first: Era,
    /// Whether the other one may be tried at all.
    pub both: bool,
}

/// What is tried, from preference, pin and what is remembered (U-17): a force value or a pin leaves
/// one way; otherwise a remembered era goes first.
pub fn plan(preference: Preference, pin: Option<Revision>, remembered: Option<&EraRecord>) -> Plan {
    if let Some(pin) = pin {
        return Plan { first: pin.era(), both: false };
    }
    let first = match preference {
        Preference::PreferDiscover | Preference::ForceDiscover | Preference::Follow => Era::Modern,
        Preference::PreferInitialize | Preference::ForceInitialize => Era::Legacy,
    };
    if preference.is_forced() {
        return Plan { first, both: false };
    }
    Plan { first: remembered.and_then(EraRecord::known_era).unwrap_or(first), both: true }
}

/// What an answer to `server/discover` says about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Modern; these versions, as written.
    Discovered(Vec<String>),
    /// Modern, but not in the revision that was offered; it names these (U-14).
    OtherVersion(Vec<String>),
    /// Modern, and refuses for another reason that no fallback mends (-32020, -32021).
    ModernRefusal(RpcError),
    /// Anything else: the server is legacy (U-08).
    Legacy,
}

/// Judges an answer to `server/discover`. Errors are recognised by their number among the modern
/// ones, never by text and never by a single code (U-09, 2026-07-28 stdio page): legacy servers
/// refuse an unknown method with whatever they like, and some answer anything with `{}`.
pub fn classify(outcome: &Outcome) -> Verdict {
    match outcome {
        Ok(result) => match versions_of(result, "supportedVersions") {
            Some(versions) if !versions.is_empty() => Verdict::Discovered(versions),
            _ => Verdict::Legacy,
        },
        Err(error) => match Code::from_number(error.code) {
            Some(Code::UnsupportedRevision) => {
                Verdict::OtherVersion(offered_by(error).unwrap_or_default())
            }
            Some(Code::HeaderMismatch | Code::MissingCapability) => {
                Verdict::ModernRefusal(error.clone())
            }
            _ => Verdict::Legacy,
        },
    }
}

/// The versions that an error lists as supported (`data.supported`), in either era's spelling.
pub fn offered_by(error: &RpcError) -> Option<Vec<String>> {
    versions_of(error.data.as_ref()?, "supported")
}

fn versions_of(object: &RawJson, key: &str) -> Option<Vec<String>> {
    object.member(key)?.read().ok()
}

/// The newest revision of `era` that both sides speak (U-13).
pub fn newest_shared(versions: &[String], era: Era) -> Option<Revision> {
    versions
        .iter()
        .filter_map(|text| Revision::parse(text))
        .filter(|revision| revision.era() == era)
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn error(code: i64, data: Option<&str>) -> Outcome {
        Err(RpcError { code, message: "no".into(), data: data.map(raw), relayed: true })
    }

    /// U-05: canonical and old names in any case; shown canonical.
    #[test]
    fn u05_preference_names() {
        let cases = [
            ("prefer-discover", "prefer-discover"),
            ("Modern", "prefer-discover"),
            ("LEGACY", "prefer-initialize"),
            (" force-legacy ", "force-initialize"),
            ("Force-Modern", "force-discover"),
            ("FORCE-DISCOVER", "force-discover"),
            ("Follow", "follow"),
        ];
        for (given, shown) in cases {
            assert_eq!(given.parse::<Preference>().unwrap().to_string(), shown, "{given}");
        }
    }

    /// U-06: anything else is refused with the list.
    #[test]
    fn u06_other_values_are_refused_with_the_list() {
        for bad in ["", "auto", "follows", "prefer_discover", "2026-07-28"] {
            let text = bad.parse::<Preference>().unwrap_err().to_string();
            for known in Preference::ALL {
                assert!(text.contains(known.as_str()), "{text}");
            }
        }
    }

    /// U-18: the server's own session is opened as by default.
    #[test]
    fn u18_follow_opens_as_the_default_does() {
        let remembered = EraRecord::ended_on_probe();
        for record in [None, Some(&remembered)] {
            assert_eq!(
                plan(Preference::Follow, None, record),
                plan(Preference::PreferDiscover, None, record)
            );
        }
        assert!(!Preference::Follow.is_forced());
    }

    /// U-08, U-09, F25: only a discover result and the three modern codes mean modern.
    #[test]
    fn u09_verdicts_by_code_and_shape() {
        let found = classify(&Ok(raw(r#"{"supportedVersions":["2026-07-28","2099-01-01"]}"#)));
        let Verdict::Discovered(versions) = found else { panic!("{found:?}") };
        assert_eq!(newest_shared(&versions, Era::Modern), Some(Revision::V2026_07_28));
        for result in ["{}", "[]", "null", r#"{"supportedVersions":[]}"#, r#"{"tools":[]}"#] {
            assert_eq!(classify(&Ok(raw(result))), Verdict::Legacy, "{result}");
        }
        for code in [-32601, -32602, -32600, -32000, -32002, -32004, -32700, 0, 1] {
            assert_eq!(classify(&error(code, None)), Verdict::Legacy, "{code}");
        }
        for code in [-32020, -32021] {
            assert!(matches!(classify(&error(code, None)), Verdict::ModernRefusal(_)), "{code}");
        }
        let other = classify(&error(-32022, Some(r#"{"supported":["2025-11-25"]}"#)));
        assert_eq!(other, Verdict::OtherVersion(vec!["2025-11-25".into()]));
        assert_eq!(classify(&error(-32022, None)), Verdict::OtherVersion(vec![]));
    }

    /// U-13: the newest of the shared ones, by date order of the closed list.
    #[test]
    fn u13_newest_shared() {
        let list = ["2024-11-05", "2025-11-25", "2025-06-18", "2099-01-01"].map(String::from);
        assert_eq!(newest_shared(&list, Era::Legacy), Some(Revision::V2025_11_25));
        assert_eq!(newest_shared(&list, Era::Modern), None);
    }
}
