//! The tables of `docs/eras.md`: each value of `protocol` against each kind of server, as the session
//! opens it (X-03).

use std::collections::VecDeque;
use std::fmt::Write as _;

use super::*;
use crate::pages::ensure;
use crate::protocol::revision::Era;
use Preference::{Follow, ForceDiscover, ForceInitialize, PreferDiscover, PreferInitialize};

/// How a server over stdio takes the two openings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Modern,
    SlowModern,
    Both,
    Legacy,
    Silent,
    EndsOnProbe,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Modern, "2026-07-28 only"),
    (Kind::SlowModern, "2026-07-28 only, slow to start (`npx` downloads it)"),
    (Kind::Both, "both eras"),
    (Kind::Legacy, "handshake only"),
    (Kind::Silent, "handshake only, silent on what it does not know"),
    (Kind::EndsOnProbe, "handshake only, ends on what it does not know"),
];

/// When the slow one begins to answer, in seconds.
const SLOW: u64 = 10;
/// By when every opening is over.
const OVER: u64 = 40;

const HANDSHAKE: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},
    "serverInfo":{"name":"l","version":"3"}}"#;

impl Kind {
    fn is_up(self, second: u64) -> bool {
        self != Self::SlowModern || second >= SLOW
    }

    /// Deals with a request.
    fn hears(self, rig: &mut Rig, method: &str, id: u64) {
        match (self, method) {
            (Self::Modern | Self::SlowModern | Self::Both, "server/discover") => {
                rig.answers(id, DISCOVERED);
            }
            (Self::Both | Self::Legacy | Self::Silent | Self::EndsOnProbe, "initialize") => {
                rig.answers(id, HANDSHAKE);
            }
            (Self::Modern | Self::SlowModern, "initialize") | (Self::Legacy, "server/discover") => {
                rig.refuses(id, -32601, "null");
            }
            (Self::EndsOnProbe, "server/discover") => rig.closes("exited with status 1", 1),
            _ => {}
        }
    }
}

/// What one opening looked like: the requests in their order, waits between them, and its end.
fn opened(kind: Kind, config: UpstreamConfig) -> String {
    let mut rig = Rig::new(config.clone());
    let (mut told, mut open) = (Vec::new(), VecDeque::new());
    let (mut seen, mut second, mut told_at) = (0, 0, 0);
    while second <= OVER && !is_over(&rig) {
        rig.at(second);
        // An answer may lead to a further request at the same moment.
        loop {
            while let Some(frame) = rig.sent.get(seen) {
                seen += 1;
                let (Some(method), Some(id)) = (frame["method"].as_str(), frame["id"].as_u64())
                else {
                    continue;
                };
                let short = method.trim_start_matches("server/");
                let wait = second - std::mem::replace(&mut told_at, second);
                told.push(if wait > 0 {
                    format!("after {wait} s {short}")
                } else {
                    short.to_owned()
                });
                open.push_back((method.to_owned(), id));
            }
            if !kind.is_up(second) || is_over(&rig) {
                break;
            }
            let Some((method, id)) = open.pop_front() else { break };
            kind.hears(&mut rig, &method, id);
        }
        second += 1;
    }
    let told = told.join(", ");
    match ending(&rig) {
        None => {
            let again = UpstreamConfig { remembered: Some(EraRecord::ended_on_probe()), ..config };
            format!("{told}, started again, {}", opened(kind, again))
        }
        Some(end) => format!("{told}: {end}"),
    }
}

fn is_over(rig: &Rig) -> bool {
    let over = |event: &UpstreamEvent| {
        matches!(event, UpstreamEvent::Settled(_) | UpstreamEvent::OpenFailed(_))
    };
    rig.events.iter().any(over)
}

/// How it ended; `None` where the server is to be started once more.
fn ending(rig: &Rig) -> Option<&'static str> {
    let end = |event: &UpstreamEvent| match event {
        UpstreamEvent::Settled(settled) if settled.revision.era() == Era::Modern => {
            Some(Some("**modern**"))
        }
        UpstreamEvent::Settled(_) => Some(Some("**legacy**")),
        UpstreamEvent::OpenFailed(OpenError::RestartLegacy) => Some(None),
        UpstreamEvent::OpenFailed(OpenError::TimedOut(_)) => Some(Some("fails at its time limit")),
        UpstreamEvent::OpenFailed(_) => Some(Some("fails")),
        _ => None,
    };
    rig.events.iter().find_map(end).unwrap_or(Some("nothing comes of it"))
}

fn table(columns: &[(String, UpstreamConfig)]) -> String {
    let mut text = String::from("| server |");
    for (title, _) in columns {
        let _ = write!(text, " {title} |");
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(columns.len()));
    text.push('\n');
    for (kind, title) in KINDS {
        let _ = write!(text, "| {title} |");
        for (_, config) in columns {
            let _ = write!(text, " {} |", opened(kind, config.clone()));
        }
        text.push('\n');
    }
    text
}

#[test]
fn x03_values_against_kinds_of_servers() {
    let values = [PreferDiscover, PreferInitialize, ForceDiscover, ForceInitialize];
    let columns = values.map(|value| (format!("`{}`", value.as_str()), config(value)));
    ensure("eras.md", "values", &table(&columns));
}

#[test]
fn x03_what_a_remembered_era_changes() {
    let of = |era: &str, revision: &str| UpstreamConfig {
        remembered: Some(remembered(era, revision)),
        ..config(PreferDiscover)
    };
    let columns = [
        ("legacy is remembered".to_owned(), of("legacy", "2025-11-25")),
        ("modern is remembered".to_owned(), of("modern", "2026-07-28")),
    ];
    ensure("eras.md", "remembered", &table(&columns));
}

/// X-07: the first session under `follow` is that of the default; the second is a handshake, which a
/// server of the new era alone refuses.
#[test]
fn x03_follow_is_the_default_and_a_handshake() {
    for (kind, _) in KINDS {
        assert_eq!(opened(kind, config(Follow)), opened(kind, config(PreferDiscover)), "{kind:?}");
    }
    assert_eq!(opened(Kind::Both, config(ForceInitialize)), "initialize: **legacy**");
    assert_eq!(opened(Kind::Modern, config(ForceInitialize)), "initialize: fails");
}
