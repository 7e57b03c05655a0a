//! What goes on inside, for people: events, the audit, messages to and from a server, the supervision
//! tree.

use std::fmt::Write as _;

use clap::ArgMatches;
use comfy_table::Cell;
use mcpx::control::types::{
    ActorView, AuditAnswer, AuditRecord, AuditRequest, EventsRequest, FrameView, TraceAnswer,
    TraceRequest, TreeAnswer,
};
use mcpx::control::{OpCall, OpName};

use crate::output::Printer;
use crate::tables::{ago, clock_text, finish, table};

/// The op of `events`, `audit` or `trace` with its arguments.
pub(crate) fn call(op: OpName, matches: &ArgMatches) -> OpCall {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let follow = matches.get_flag("follow");
    match op {
        OpName::Audit => OpCall::Audit(AuditRequest {
            since: text("since"),
            server: text("server"),
            outcome: text("outcome"),
            id: text("id"),
            limit: matches.get_one::<usize>("limit").copied(),
            follow,
        }),
        OpName::Trace => OpCall::Trace(TraceRequest {
            server: text("server").unwrap_or_default(),
            frames: matches.get_one::<usize>("frames").copied(),
            follow,
        }),
        _ => OpCall::Events(EventsRequest { follow, server: text("server"), kind: text("kind") }),
    }
}

/// `mcpx audit`.
pub(crate) fn audit(printer: Printer, answer: &AuditAnswer) -> String {
    let mut notes = Vec::new();
    if !answer.enabled {
        notes.push("calls are not recorded now (setting audit.enabled)".to_owned());
    }
    if answer.dropped > 0 {
        notes.push(format!("{} calls were not recorded (setting audit.queue)", answer.dropped));
    }
    if answer.records.is_empty() {
        notes.push("no call is recorded that fits".to_owned());
        return notes.join("\n");
    }
    let mut table = table(printer, &["WHEN", "HOST", "SERVER", "WHAT", "OUTCOME", "TOOK", "ID"]);
    for record in &answer.records {
        table.add_row(vec![
            Cell::new(day_text(record.at)),
            Cell::new(who(record)),
            Cell::new(&record.server),
            Cell::new(what(record)),
            Cell::new(&record.outcome),
            Cell::new(took(record.ms)),
            Cell::new(&record.id),
        ]);
    }
    let mut text = finish(&table);
    for note in notes {
        let _ = write!(text, "\n{note}");
    }
    text
}

/// One call in a line, for those who follow.
pub(crate) fn record(record: &AuditRecord) -> String {
    let (who, what, took) = (who(record), what(record), took(record.ms));
    let AuditRecord { server, outcome, id, .. } = record;
    format!("{} {who} {server} {what} {outcome} {took} {id}", clock_text(record.at))
}

fn who(record: &AuditRecord) -> String {
    let session = record.session.map(|session| format!("#{session}")).unwrap_or_default();
    let script = if record.script { " (script)" } else { "" };
    format!("{}{session}{script}", record.host)
}

fn what(record: &AuditRecord) -> String {
    let arguments = record.arguments.as_ref().map(|arguments| format!(" {}", arguments.as_str()));
    let kind = if record.kind == "tool" { String::new() } else { format!("{} ", record.kind) };
    format!("{kind}{}{}", record.name, arguments.unwrap_or_default())
}

fn took(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.1}ms") } else { format!("{:.1}s", ms / 1000.0) }
}

/// `2026-11-30 12:34:56Z`.
fn day_text(ms: u64) -> String {
    let (year, month, day) = date(ms / 86_400_000);
    format!("{year:04}-{month:02}-{day:02} {}", clock_text(ms))
}

/// The date of a day since 1970, by the calendar of four centuries from March on.
const fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// `mcpx trace NAME`.
pub(crate) fn trace(answer: &TraceAnswer) -> String {
    if answer.frames.is_empty() {
        let now = if answer.kept { "none passed since" } else { "they are kept from now on" };
        return format!(
            "no messages to or from `{}` are kept: {now}; `mcpx trace {} -f` shows them as they come",
            answer.server, answer.server
        );
    }
    answer.frames.iter().map(frame).collect::<Vec<_>>().join("\n")
}

/// One frame.
pub(crate) fn frame(frame: &FrameView) -> String {
    let arrow = if frame.way == "to" { "→" } else { "←" };
    let rest = if frame.cut { format!("… ({} bytes)", frame.bytes) } else { String::new() };
    format!("{} #{} {arrow} {}{rest}", clock_text(frame.at), frame.instance, frame.text)
}

/// `mcpx ps --tree`.
pub(crate) fn tree(printer: Printer, answer: &TreeAnswer) -> String {
    let mut table = table(printer, &["ACTOR", "FOR", "STATE", "SINCE", "RESTARTS", "LAST REASON"]);
    let mut rows = Vec::new();
    grow(&answer.root, "", "", &mut rows);
    for row in rows {
        table.add_row(row);
    }
    format!(
        "{}\n{} of {} restarts within {} are used up",
        finish(&table),
        answer.recent,
        answer.intensity,
        ago(answer.window_ms)
    )
}

fn grow(actor: &ActorView, branch: &str, below: &str, rows: &mut Vec<Vec<String>>) {
    let last = actor.history.last();
    rows.push(vec![
        format!("{branch}{}", actor.kind),
        actor.name.clone(),
        actor.state.clone(),
        actor.since_ms.map(ago).unwrap_or_default(),
        if actor.restarts > 0 { actor.restarts.to_string() } else { String::new() },
        last.map(|one| format!("{} ago: {}", ago(one.ago_ms), one.why)).unwrap_or_default(),
    ]);
    let end = actor.children.len();
    for (at, child) in actor.children.iter().enumerate() {
        let (joint, bar) = if at + 1 == end { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        grow(child, &format!("{below}{joint}"), &format!("{below}{bar}"), rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_400_000, "2000-02-29 00:00:00Z"),
            (1_700_000_000_000, "2023-11-14 22:13:20Z"),
            (1_796_083_199_000, "2026-11-30 23:59:59Z"),
        ] {
            assert_eq!(day_text(ms), text);
        }
    }
}
