//! What this process can see by itself: files, folders, sockets, units, other processes of this program.

use std::ffi::OsStr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use mcpx::control::types::{Finding, Severity};
use mcpx::settings::Settings;
use mcpx::transport::environment;
use mcpx::transport::process;
use mcpx::transport::stdio::locate::locate;

use crate::reach::Reach;
use crate::setup::Setup;

/// Longest socket path that every system takes.
const LONGEST_SOCKET: usize = 103;
/// Bits of a file's mode that let others in.
const OTHERS: u32 = 0o077;

pub(super) fn configuration(reach: &Reach<'_>) -> Vec<Finding> {
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

pub(super) fn folder(subject: &str, path: &Path) -> Finding {
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
        Ok(metadata) if metadata.permissions().mode() & OTHERS != 0 => {
            let text = format!("others may look into {shown}");
            Finding::bad(Severity::Warning, subject, text, format!("chmod 700 {shown}"))
        }
        Ok(_) if !process::may_write(path) => {
            let text = format!("{shown} cannot be written to");
            let mend = format!("chmod u+rwx {shown}, or give it to yourself with chown");
            Finding::bad(Severity::Error, subject, text, mend)
        }
        Ok(_) => Finding::ok(subject, format!("{shown}")),
    }
}

/// Room for what the state folder may come to hold.
pub(super) fn disk(setup: &Setup, settings: &Settings) -> Option<Finding> {
    let there = setup.places.state.ancestors().find(|path| path.exists())?;
    let free = process::free_bytes(there)?;
    let audit = settings.inside.audit;
    let files = u64::try_from(audit.max_files).unwrap_or(u64::MAX);
    let may = settings.artifacts.max_total.saturating_add(audit.max_size.saturating_mul(files));
    let text = format!("{} free for the state folder", rounded(free));
    if free >= may {
        return Some(Finding::ok("disk", text));
    }
    let text = format!("{text}, less than the {} that it may come to hold", rounded(may));
    let mend = "make room, or lower artifacts.max_total and audit.max_size";
    let severity = if free == 0 { Severity::Error } else { Severity::Warning };
    Some(Finding::bad(severity, "disk", text, mend))
}

/// A size in whole MiB, which is all that matters of a disk.
fn rounded(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

pub(super) fn socket(setup: &Setup) -> Vec<Finding> {
    const SUBJECT: &str = "socket";
    let socket = setup.socket();
    let (shown, length) = (socket.display(), socket.as_os_str().len());
    let mut findings = Vec::new();
    if length > LONGEST_SOCKET {
        let text = format!("{shown} has {length} bytes; {LONGEST_SOCKET} are the most");
        let mend = "set MCPX_RUNTIME_DIR to a shorter folder, for daemon and hosts alike";
        findings.push(Finding::bad(Severity::Error, SUBJECT, text, mend));
    }
    let Ok(about) = std::fs::symlink_metadata(&socket) else { return findings };
    if !about.file_type().is_socket() {
        let text = format!("{shown} is no socket");
        findings.push(Finding::bad(Severity::Error, SUBJECT, text, "move it away"));
    } else if about.permissions().mode() & OTHERS != 0 {
        let text = format!("others may use {shown}");
        let mend = format!("chmod 600 {shown}");
        findings.push(Finding::bad(Severity::Warning, SUBJECT, text, mend));
    }
    findings
}

/// Whether the port for hosts over HTTP could be had, where no daemon has it.
pub(super) fn port(settings: &Settings) -> Option<Finding> {
    let subject = "hosts over HTTP";
    let wanted = settings.http.listen?;
    Some(match std::net::TcpListener::bind(wanted) {
        Ok(_) => Finding::ok(subject, format!("{wanted} is free")),
        Err(error) => Finding::bad(
            Severity::Error,
            subject,
            format!("{wanted} cannot be listened on (setting http.listen): {error}"),
            "set http.listen to a port that is free, or to \"off\"",
        ),
    })
}

/// Units that start a program which is not there any more.
pub(super) fn units() -> Vec<Finding> {
    let own = environment::own();
    let folder = |name: &str| own.get(OsStr::new(name)).map(PathBuf::from);
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    let user = config.map(|config| config.join("systemd/user"));
    let system = ["/etc/systemd/system", "/usr/lib/systemd/system"].map(PathBuf::from);
    user.into_iter().chain(system).filter_map(|folder| unit(&folder.join("mcpx.service"))).collect()
}

fn unit(path: &Path) -> Option<Finding> {
    let text = std::fs::read_to_string(path).ok()?;
    let shown = path.display();
    let start = text.lines().find_map(|line| line.trim().strip_prefix("ExecStart="))?;
    // What may stand before the program is a matter of systemd's.
    let program = start.trim_start_matches(['-', '@', ':', '+', '!']);
    let program = program.split_whitespace().next().unwrap_or_default();
    Some(if Path::new(program).is_file() {
        Finding::ok("unit", format!("{shown} starts {program}"))
    } else {
        let text = format!("{shown} starts {program:?}, which is not there");
        let mend = format!("correct ExecStart in {shown}, then `systemctl daemon-reload`");
        Finding::bad(Severity::Error, "unit", text, mend)
    })
}

/// Processes that run this program as it was before it was replaced.
pub(super) fn outdated(program: &Path) -> Option<Finding> {
    let old = process::outdated(program);
    if old.is_empty() {
        return None;
    }
    let pids: Vec<_> = old.iter().map(ToString::to_string).collect();
    let text = format!(
        "{} processes run {} as it was before it was replaced (pid {})",
        old.len(),
        program.display(),
        pids.join(", ")
    );
    let mend =
        "`mcpx daemon --replace` renews the daemon; shims go on until their hosts start anew";
    Some(Finding::bad(Severity::Warning, "versions", text, mend))
}

/// Whether the servers' programs are there, as this process sees it: for want of a daemon's eyes.
pub(super) fn programs(settings: &Settings) -> Vec<Finding> {
    let env: Vec<_> = environment::own().into_iter().collect();
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let own = settings.servers.iter().filter(|def| !def.is_remote() && !def.builtin);
    own.filter_map(|def| {
        let program = def.command.first()?;
        let subject = format!("server {}", def.key);
        Some(match locate(OsStr::new(program), &env, &here) {
            Ok(file) => {
                let text = format!("{} is there; it was not started", file.display());
                Finding::ok(subject, text)
            }
            Err(error) => {
                let mend = "install it, or write its whole path into `command`";
                Finding::bad(Severity::Error, subject, error.to_string(), mend)
            }
        })
    })
    .collect()
}
