//! One child process in a process group of its own, with its three streams.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::ring::{RingLimits, StderrRing};
use crate::transport::link::{Link, LinkLimits};

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
    /// There is a file, but it cannot be executed. Permanent (F28).
    #[error("`{program}` cannot be executed: {source}")]
    NotExecutable {
        /// The file.
        program: String,
        /// What the system said.
        source: std::io::Error,
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

/// A running child: its link, and the handle that ends it. Dropping the handle without
/// [`ChildHandle::stop`] kills the whole group and what carries the marker.
#[derive(Debug)]
pub struct Child {
    /// Its stdin and stdout.
    pub link: Link,
    /// The rest.
    pub handle: ChildHandle,
}

/// Owns the process.
#[derive(Debug)]
pub struct ChildHandle {
    _pid: u32,
}

/// Starts a process. Never blocks for longer than the fork takes.
pub fn spawn(_spec: &SpawnSpec) -> Result<Child, SpawnError> {
    todo!()
}

impl ChildHandle {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        todo!()
    }

    /// Its stderr.
    pub fn stderr(&self) -> &StderrRing {
        todo!()
    }

    /// Resolves when the leader has exited (it has been reaped then). Cancel-safe. The leader's exit
    /// alone is not the end of the connection while the pipe lives (F30): the link says that.
    pub async fn exited(&mut self) -> ExitReport {
        todo!()
    }

    /// Walks the ladder to its end and reaps; afterwards no process of the group, and none that
    /// carries the marker, is left. The link's sender must have been dropped for stdin to close;
    /// the handle closes it in any case.
    pub async fn stop(self, _ladder: StopLadder) -> ExitReport {
        todo!()
    }
}
