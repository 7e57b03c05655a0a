//! `mcpx doctor`: what will not work, and how it is mended. What this process can see it looks at
//! itself; programs and servers are looked at by the daemon, whose eyes count.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use mcpx::control::OpCall;
use mcpx::control::types::{DoctorAnswer, Finding, Severity};

use crate::ended::{Ended, Outcome};
use crate::reach::{Reach, understood};
use crate::{output, tables};

/// Longest socket path that every system takes.
const LONGEST_SOCKET: usize = 103;

/// Looks at everything.
pub(crate) async fn run(reach: &Reach<'_>, server: Option<String>) -> Outcome {
    let mut findings = configuration(reach);
    let sound = findings.iter().all(|finding| finding.severity != Severity::Error);
    findings.push(folder("state folder", &reach.setup.places.state));
    findings.push(folder("runtime folder", &reach.setup.places.runtime));
    findings.extend(socket_path(reach));
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

fn configuration(reach: &Reach<'_>) -> Vec<Finding> {
    const SUBJECT: &str = "configuration";
    match reach.setup.load() {
        Err(mistakes) => mistakes
            .iter()
            .map(|mistake| {
                let mend = "correct that line; `mcpx config check` looks again";
                Finding::bad(Severity::Error, SUBJECT, mistake.to_string(), mend)
            })
            .collect(),
        Ok(loaded) => {
            let count = loaded.settings.servers.len();
            let text = if loaded.settings.servers.iter().any(|def| def.builtin) {
                "in order; no server is configured, so the built-in `demo` is served".to_owned()
            } else {
                format!("in order; {count} servers from {} files", loaded.files.len())
            };
            let mut findings = vec![Finding::ok(SUBJECT, text)];
            findings.extend(loaded.warnings.iter().map(|warning| {
                let mend = "set it anew with `mcpx settings set`";
                Finding::bad(Severity::Warning, SUBJECT, warning.to_string(), mend)
            }));
            findings
        }
    }
}

fn folder(subject: &str, path: &Path) -> Finding {
    let shown = path.display();
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok(subject, format!("{shown} is not there yet; the daemon makes it"))
        }
        Err(error) => {
            let mend = format!("see to it that you may enter {shown}");
            Finding::bad(Severity::Error, subject, format!("{shown}: {error}"), mend)
        }
        Ok(metadata) if !metadata.is_dir() => {
            let text = format!("{shown} is no folder");
            Finding::bad(Severity::Error, subject, text, "move it away")
        }
        Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
            let text = format!("others may look into {shown}");
            Finding::bad(Severity::Warning, subject, text, format!("chmod 700 {shown}"))
        }
        Ok(_) => Finding::ok(subject, format!("{shown}")),
    }
}

fn socket_path(reach: &Reach<'_>) -> Option<Finding> {
    let socket = reach.setup.socket();
    let length = socket.as_os_str().len();
    (length > LONGEST_SOCKET).then(|| {
        let text =
            format!("{} has {length} bytes; {LONGEST_SOCKET} are the most", socket.display());
        let mend = "set MCPX_RUNTIME_DIR to a shorter folder, for daemon and hosts alike";
        Finding::bad(Severity::Error, "socket", text, mend)
    })
}

/// What the daemon finds; it is started for it where that is allowed.
async fn daemon(reach: &Reach<'_>, server: Option<String>) -> Vec<Finding> {
    let answer = match reach.ask(&OpCall::Doctor { server }).await {
        Ok(body) => understood::<DoctorAnswer>(&body),
        Err(ended) => Err(ended),
    };
    match answer {
        Ok(answer) => {
            let text = format!("listens on {}", reach.setup.socket().display());
            let mut findings = vec![Finding::ok("daemon", text)];
            findings.extend(answer.findings);
            findings
        }
        Err(ended) => {
            let text = ended.text().unwrap_or_else(|| "it cannot be asked".to_owned());
            let mend = format!("look at {}", reach.setup.places.daemon_log().display());
            vec![Finding::bad(Severity::Error, "daemon", text, mend)]
        }
    }
}
