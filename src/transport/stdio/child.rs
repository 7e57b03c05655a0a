//! One child process in a process group of its own, with its three streams.
//!
//! The leader of the group is buried last: while it is a zombie, the group's number can be nobody
//! else's, and signals to the group cannot hit a stranger. What has left the group is found by the
//! marker in its environment, by descent, or because it was seen before ([`super::census`]).

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::census::{Family, MARKER, Process};
use super::ledger::{Ledger, Record};
use super::ring::{RingLimits, StderrDrain, StderrRing};
use super::{locate, reaper};
use crate::transport::clock;
use crate::transport::link::{Link, LinkCloser, LinkLimits};

/// Looks for survivors between two rungs of the ladder: first after this part of the rung's time,
/// then each time twice as long.
const FIRST_LOOK: u32 = 1024;
/// And at least this often in a rung's time.
const LOOKS: u32 = 16;

/// What to start.
#[derive(Debug, Clone)]
pub struct SpawnSpec {
    /// The upstream's name, for logs.
    pub label: String,
    /// The program, as configured.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment: nothing is inherited beside it.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Limits of its streams.
    pub link: LinkLimits,
    /// Limits of its stderr ring.
    pub stderr: RingLimits,
    /// How long what was killed is looked after, where nobody waits for its end (`plumbing.term_grace`).
    pub grace: Duration,
}

/// Why it did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No such program on the PATH it is given. Permanent until configuration or PATH change (F28).
    #[error("no program `{program}` on PATH={path}")]
    NotFound {
        /// As configured.
        program: String,
        /// Where it was looked for.
        path: String,
    },
    /// A program given by its path is not there. Permanent (F28).
    #[error("there is no file `{program}`")]
    NoFile {
        /// As configured.
        program: String,
    },
    /// There is a file, but it cannot be executed. Permanent (F28).
    #[error("`{program}` cannot be executed: {source}")]
    NotExecutable {
        /// The file.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is a file, but not what it says shall run it. Permanent (F28).
    #[error("`{program}` is to be run by `{interpreter}`: {why}")]
    BadInterpreter {
        /// As configured.
        program: String,
        /// What stands behind `#!`.
        interpreter: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The working directory is not there. Permanent.
    #[error("the working directory {} is not there", .0.display())]
    NoDirectory(PathBuf),
    /// Anything else (no memory, too many processes): passing.
    #[error("could not start `{program}`: {source}")]
    Other {
        /// As configured.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl SpawnError {
    /// Whether trying again without a change is pointless.
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Other { .. })
    }
}

/// The steps of the stop ladder (U-54): close stdin, wait, SIGTERM to the group, wait, SIGKILL.
#[derive(Debug, Clone, Copy)]
pub struct StopLadder {
    /// After closing stdin (`plumbing.stdio_drain_grace`).
    pub drain: Duration,
    /// After SIGTERM (`plumbing.term_grace`).
    pub term: Duration,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitReport {
    /// `exited with status 1`, `killed by signal 9`.
    pub text: String,
    /// The status, where it exited by itself.
    pub code: Option<i32>,
    /// How far the ladder had to go, where it was stopped: `stdin`, `term`, `kill`.
    pub rung: Option<&'static str>,
}

/// A running child: its link, what drains its stderr, and the handle that ends it. Dropping the
/// handle without [`ChildHandle::stop`] kills the whole group and what carries the marker.
#[derive(Debug)]
pub struct Child {
    /// Its stdin and stdout.
    pub link: Link,
    /// To be run as a task: a child whose stderr is full answers nothing (F32).
    pub drain: StderrDrain,
    /// The rest.
    pub handle: ChildHandle,
}

/// Owns the process.
#[derive(Debug)]
pub struct ChildHandle {
    label: String,
    /// Until it is reaped.
    leader: Option<std::process::Child>,
    family: Family,
    /// Closes its stdin, where that is a link.
    stdin: Option<LinkCloser>,
    /// See [`SpawnSpec::grace`].
    grace: Duration,
    stderr: StderrRing,
    ended: tokio::signal::unix::Signal,
    exit: Option<ExitReport>,
    record: Option<Record>,
    /// The ladder is through: nothing is left to kill.
    done: bool,
}

/// Starts a process that no ledger knows: for tests and short helpers.
pub fn spawn(spec: &SpawnSpec) -> Result<Child, SpawnError> {
    spawn_recorded(spec, None)
}

/// Starts a process and records it, so that the next daemon can end it if this one is killed. Never
/// blocks for longer than the fork takes. Needs the runtime.
pub fn spawn_recorded(spec: &SpawnSpec, ledger: Option<&Ledger>) -> Result<Child, SpawnError> {
    let Launched { stdin, stdout, drain, mut handle } = launch(spec, ledger)?;
    let link = Link::new(stdout, stdin, spec.link);
    handle.stdin = Some(link.sender.closer());
    Ok(Child { link, drain, handle })
}

/// A process with its bare pipes.
pub(super) struct Launched {
    pub(super) stdin: pipe::Sender,
    pub(super) stdout: pipe::Receiver,
    pub(super) drain: StderrDrain,
    pub(super) handle: ChildHandle,
}

/// Starts a process.
pub(super) fn launch(spec: &SpawnSpec, ledger: Option<&Ledger>) -> Result<Launched, SpawnError> {
    let file = locate::locate(&spec.program, &spec.env, &spec.cwd)?;
    let marker = format!("{:032x}", u128::from_ne_bytes(clock::random()));
    // Before the start: otherwise a child that hangs could miss the signal of its own end.
    let ended = signal(SignalKind::child()).map_err(|source| other(spec, source))?;
    let mut record = ledger.map(|ledger| ledger.announce(&marker, &spec.label));
    let started = start(spec, &file, &marker);
    let mut process = match started {
        Ok(process) => process,
        Err(error) => {
            record.into_iter().for_each(Record::over);
            return Err(error);
        }
    };

    let pid = process.id().cast_signed();
    let unseen = Process { pid, start: 0, parent: Pid::this().as_raw(), group: pid, zombie: false };
    let leader = Process::read(pid).unwrap_or(unseen);
    if let Some(record) = &mut record {
        record.started(&leader);
    }
    let family = Family { leader, marker, anchored: true, seen: Vec::new() };
    let (stdin, stdout, stderr) = match streams(&mut process) {
        Ok(streams) => streams,
        Err(source) => {
            bury_later(Some(process), family, record, spec.grace);
            return Err(other(spec, source));
        }
    };
    let ring = StderrRing::new(spec.stderr);
    let handle = ChildHandle {
        label: spec.label.clone(),
        leader: Some(process),
        family,
        stdin: None,
        grace: spec.grace,
        stderr: ring.clone(),
        ended,
        exit: None,
        record,
        done: false,
    };
    let drain = StderrDrain::new(spec.label.clone(), stderr, ring);
    Ok(Launched { stdin, stdout, drain, handle })
}

/// Forks and executes.
#[expect(clippy::disallowed_methods, reason = "the one sanctioned use")]
fn start(spec: &SpawnSpec, file: &Path, marker: &str) -> Result<std::process::Child, SpawnError> {
    let mut command = Command::new(file);
    command
        .arg0(&spec.program)
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .env(MARKER, marker)
        .current_dir(&spec.cwd)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut known = reaper::known();
    let process = command.spawn().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => locate::missing_interpreter(file, &spec.program),
        std::io::ErrorKind::PermissionDenied => not_executable(spec, source),
        _ if source.raw_os_error() == Some(nix::errno::Errno::ENOEXEC as i32) => {
            not_executable(spec, source)
        }
        _ => other(spec, source),
    })?;
    known.insert(process.id().cast_signed());
    Ok(process)
}

/// The three pipes, registered with the reactor. Our ends are ours alone: that they do not block is
/// not seen by the child.
fn streams(
    process: &mut std::process::Child,
) -> std::io::Result<(pipe::Sender, pipe::Receiver, pipe::Receiver)> {
    let missing = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    let stdin: OwnedFd = process.stdin.take().ok_or_else(missing)?.into();
    let stdout: OwnedFd = process.stdout.take().ok_or_else(missing)?.into();
    let stderr: OwnedFd = process.stderr.take().ok_or_else(missing)?.into();
    Ok((
        pipe::Sender::from_owned_fd(stdin)?,
        pipe::Receiver::from_owned_fd(stdout)?,
        pipe::Receiver::from_owned_fd(stderr)?,
    ))
}

fn not_executable(spec: &SpawnSpec, source: std::io::Error) -> SpawnError {
    SpawnError::NotExecutable { program: spec.program.to_string_lossy().into_owned(), source }
}

fn other(spec: &SpawnSpec, source: std::io::Error) -> SpawnError {
    SpawnError::Other { program: spec.program.to_string_lossy().into_owned(), source }
}

impl ChildHandle {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.family.leader.pid.cast_unsigned()
    }

    /// Its stderr.
    pub fn stderr(&self) -> &StderrRing {
        &self.stderr
    }

    /// Resolves when the leader has exited (it has been reaped then). Cancel-safe. The leader's exit
    /// alone is not the end of the connection while the pipe lives (F30): the link says that.
    pub async fn exited(&mut self) -> ExitReport {
        loop {
            if let Some(exit) = &self.exit {
                return exit.clone();
            }
            if self.leader.as_mut().is_none_or(is_dead) {
                // Who is in the group is certain only now; see `Family::census`.
                self.census().await;
                self.bury();
            } else if self.ended.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Walks the ladder to its end and reaps; afterwards no process of the group, and none that
    /// carries the marker, is left. The link's writer has to be running or dropped for stdin to
    /// close; its senders need not be gone.
    pub async fn stop(mut self, ladder: StopLadder) -> ExitReport {
        if let Some(stdin) = &self.stdin {
            stdin.close();
        }
        let mut rung = "stdin";
        if !self.gone_within(ladder.drain).await {
            rung = "term";
            self.signal(Signal::SIGTERM).await;
            if !self.gone_within(ladder.term).await {
                rung = "kill";
                self.signal(Signal::SIGKILL).await;
                if !self.gone_within(ladder.term).await {
                    tracing::error!(
                        server = %self.label, pid = self.pid(), left = ?self.family.seen,
                        "processes survive SIGKILL (waiting for a device or a file system?)"
                    );
                }
            }
        }
        let mut exit = self.exit.clone().unwrap_or_else(unknown_exit);
        exit.rung = Some(rung);
        exit
    }

    /// Whether the leader has exited and left nobody behind.
    pub(super) fn is_alone(&self) -> bool {
        self.exit.is_some() && self.family.seen.is_empty()
    }

    /// Lets go of what the leader has left running on purpose (an agent, say). It has exited.
    pub(super) fn release(mut self) {
        self.done = self.exit.is_some();
    }

    /// Whether the leader and all others are gone within the time.
    async fn gone_within(&mut self, limit: Duration) -> bool {
        timeout(limit, self.gone(limit)).await.is_ok()
    }

    async fn gone(&mut self, limit: Duration) {
        self.exited().await;
        // They are not our children, so that nothing tells of their end: look again and again.
        let mut pause = limit / FIRST_LOOK;
        while !self.family.seen.is_empty() {
            sleep(pause).await;
            pause = (pause * 2).min(limit / LOOKS);
            self.census().await;
        }
        // Those of them that were left to us when their parents died.
        reaper::bury();
        if let Some(record) = self.record.take() {
            record.over();
        }
        self.done = true;
    }

    /// Sends a signal to the group and to all that have left it.
    async fn signal(&mut self, signal: Signal) {
        self.census().await;
        self.family.send(signal);
    }

    /// Reading all of `/proc` takes milliseconds where many processes run: not on a worker.
    async fn census(&mut self) {
        let mut family = self.family.clone();
        let taken = tokio::task::spawn_blocking(move || {
            family.census();
            family
        });
        if let Ok(family) = taken.await {
            self.family = family;
        }
    }

    /// Reaps the leader, which is dead.
    fn bury(&mut self) {
        let report = self.leader.take().map(|mut leader| bury(&mut leader));
        self.family.anchored = false;
        self.exit = Some(report.unwrap_or_else(unknown_exit));
    }
}

impl Drop for ChildHandle {
    /// The stop that waits for nobody: for an actor that was killed.
    fn drop(&mut self) {
        if self.done {
            return;
        }
        self.family.kill();
        let (leader, record) = (self.leader.take(), self.record.take());
        if leader.is_some() || record.is_some() {
            bury_later(leader, self.family.clone(), record, self.grace);
        }
    }
}

/// Waits for the leader, where nobody has yet, and looks after the others until they are gone, in a
/// thread: the runtime may be gone. A killed process takes a moment to be no more, a long one where the
/// machine is busy.
fn bury_later(
    leader: Option<std::process::Child>,
    mut family: Family,
    record: Option<Record>,
    grace: Duration,
) {
    let wait = move || {
        family.kill();
        if let Some(mut leader) = leader {
            bury(&mut leader);
        }
        family.anchored = false;
        let (latest, mut pause) = (clock::now() + grace, grace / FIRST_LOOK);
        loop {
            family.kill();
            reaper::bury();
            if family.seen.is_empty() || clock::now() >= latest {
                break;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(grace / LOOKS);
        }
        if let Some(record) = record.filter(|_| family.seen.is_empty()) {
            record.over();
        }
    };
    let thread = std::thread::Builder::new().name("reap".to_owned()).spawn(wait);
    if let Err(error) = thread {
        // The record stays, and the next daemon looks after it.
        tracing::warn!(%error, "no thread to reap a killed process");
    }
}

/// Reaps one of ours.
fn bury(leader: &mut std::process::Child) -> ExitReport {
    let status = leader.wait();
    reaper::known().remove(&leader.id().cast_signed());
    status.map_or_else(|_| unknown_exit(), exit_report)
}

/// Whether it has exited; it is not reaped by asking.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn is_dead(process: &mut std::process::Child) -> bool {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    let status = waitid(Id::Pid(Pid::from_raw(process.id().cast_signed())), flags);
    !matches!(status, Ok(WaitStatus::StillAlive))
}

/// Whether it has exited. Here it is reaped by asking; `wait` knows the answer then.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn is_dead(process: &mut std::process::Child) -> bool {
    !matches!(process.try_wait(), Ok(None))
}

fn exit_report(status: ExitStatus) -> ExitReport {
    let text = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(number)) => {
            let name = Signal::try_from(number).map_or("unknown", Signal::as_str);
            format!("killed by signal {number} ({name})")
        }
        (None, None) => unknown_exit().text,
    };
    ExitReport { text, code: status.code(), rung: None }
}

fn unknown_exit() -> ExitReport {
    ExitReport { text: "ended in an unknown way".to_owned(), code: None, rung: None }
}

#[cfg(test)]
mod tests;
