//! `mcpx doctor`: what will not work, and how it is mended. What this process can see it looks at
//! itself ([`local`]); programs and servers are looked at by the daemon, whose eyes count. Without one
//! the rest is looked at all the same.

mod hosts;
mod local;

use mcpx::control::OpCall;
use mcpx::control::types::{DoctorAnswer, Finding, Severity, VersionAnswer};

use crate::ended::{Ended, Outcome};
use crate::reach::{Reach, understood};
use crate::{output, tables};

/// Looks at everything.
pub(crate) async fn run(reach: &Reach<'_>, server: Option<String>) -> Outcome {
    let setup = reach.setup;
    let mut findings = local::configuration(reach);
    let sound = findings.iter().all(|finding| finding.severity != Severity::Error);
    findings.push(local::folder("state folder", &setup.places.state));
    findings.extend(local::disk(setup, &reach.settings));
    findings.push(local::folder("runtime folder", &setup.places.runtime));
    findings.extend(local::socket(setup));
    findings.extend(local::units());
    findings.extend(local::outdated(&setup.program));
    findings.extend(hosts::entries(reach));
    if sound {
        findings.extend(daemon(reach, server).await);
    } else {
        let text = "not looked at: no daemon starts with this configuration";
        findings.push(Finding::bad(Severity::Warning, "servers", text, "mend it first"));
    }
    let broken = findings.iter().any(|finding| finding.severity == Severity::Error);
    if reach.printer.json {
        output::as_json(&DoctorAnswer { findings })?;
    } else {
        output::line(&tables::findings(reach.printer, &findings))?;
    }
    if broken { Err(Ended::Told) } else { Ok(()) }
}

/// What the daemon finds; it is started for it where that is allowed.
async fn daemon(reach: &Reach<'_>, server: Option<String>) -> Vec<Finding> {
    let answer = match reach.ask(&OpCall::Doctor { server }).await {
        Ok(body) => understood::<DoctorAnswer>(&body),
        Err(ended) => Err(ended),
    };
    let mut findings = match answer {
        Ok(answer) => {
            let text = format!("listens on {}", reach.setup.socket().display());
            let mut findings = vec![Finding::ok("daemon", text)];
            findings.extend(version(reach).await);
            findings.extend(answer.findings);
            return findings;
        }
        Err(Ended::NoDaemon(text)) if !reach.settings.shim.autostart => {
            let mend = "`mcpx daemon` starts one; it looks at the servers";
            vec![Finding::bad(Severity::Warning, "daemon", text, mend)]
        }
        Err(ended) => {
            let text = ended.text().unwrap_or_else(|| "it cannot be asked".to_owned());
            let mend = format!("look at {}", reach.setup.places.daemon_log().display());
            vec![Finding::bad(Severity::Error, "daemon", text, mend)]
        }
    };
    findings.extend(local::port(&reach.settings));
    findings.extend(local::programs(&reach.settings));
    findings
}

/// Whether the daemon is of another version than this program.
async fn version(reach: &Reach<'_>) -> Option<Finding> {
    let own = env!("CARGO_PKG_VERSION");
    let body = reach.ask(&OpCall::Version).await.ok()?;
    let daemon = understood::<VersionAnswer>(&body).ok()?.version;
    Some(if daemon == own {
        Finding::ok("versions", format!("daemon and program are {own}"))
    } else {
        let text = format!("the daemon is {daemon}, this program {own}");
        let mend = "`mcpx daemon --replace` takes over from it; hosts stay";
        Finding::bad(Severity::Warning, "versions", text, mend)
    })
}
