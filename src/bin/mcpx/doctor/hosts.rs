//! The entries of hosts that lead to mcpx: whether what they start is there, and whether they are on.

use std::path::Path;

use mcpx::control::types::{Finding, Severity};
use mcpx::settings::hosts::{Connected, HOSTS, Leads, entries_of, survey};

use crate::hosts::Desk;
use crate::reach::Reach;

/// One finding for each entry, and for each file that cannot be read.
pub(super) fn entries(reach: &Reach<'_>) -> Vec<Finding> {
    let Ok(desk) = Desk::lenient(reach.setup, reach.printer) else { return Vec::new() };
    let own = desk.own();
    let mut findings = Vec::new();
    for host in HOSTS {
        let subject = format!("host {}", host.name);
        let entries = desk.around(|around| entries_of(host, around, &own));
        findings.extend(entries.iter().map(|entry| one(&desk, &subject, entry)));
        let seen = desk.around(|around| survey(host, around, &own));
        let broken = seen.into_iter().filter_map(|seen| seen.broken);
        findings.extend(broken.map(|why| {
            let mend = "mend the file: the host cannot read it either";
            Finding::bad(Severity::Warning, subject.clone(), why, mend)
        }));
    }
    if findings.is_empty() {
        let text = "none of the hosts that mcpx knows has it configured";
        let mend = "`mcpx connect HOST` writes it into a host's configuration";
        findings.push(Finding::bad(Severity::Warning, "hosts", text, mend));
    }
    findings
}

fn one(desk: &Desk<'_>, subject: &str, entry: &Connected) -> Finding {
    let (key, file) = (&entry.key, entry.file.display());
    let again = format!("`mcpx connect {}` writes it anew", entry.host);
    if entry.off {
        let text = format!("mcpx is switched off there, as `{key}` in {file}");
        return Finding::bad(Severity::Warning, subject, text, "switch it on in that file");
    }
    match &entry.leads {
        Leads::Url(url) => Finding::ok(subject, format!("reaches {url}, as `{key}` in {file}")),
        Leads::Command(words) => {
            let program = words.first().map(String::as_str).unwrap_or_default();
            let found = match Path::new(program) {
                path if path.is_absolute() => path.exists().then(|| path.to_owned()),
                _ => desk.found(program),
            };
            let Some(found) = found else {
                let text = format!("`{key}` in {file} starts {program}, which is not there");
                return Finding::bad(Severity::Error, subject, text, again);
            };
            Finding::ok(subject, format!("starts {}, as `{key}` in {file}", found.display()))
        }
    }
}
