//! Burying the dead that were left to us.
//!
//! The daemon is a subreaper: what a child leaves behind becomes a child of ours, where it can be
//! found, and is a zombie when it dies until it is waited for. Waiting for "any child" would steal
//! the exit status of those that [`super::child`] waits for, so those are kept in a list here.
//!
//! The list is a static: children belong to the process, however many daemons a test runs in it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use super::census;

static KNOWN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The children that somebody waits for. Held while one is started, so that it cannot be taken for
/// a stranger before it is in.
pub(super) fn known() -> MutexGuard<'static, BTreeSet<i32>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the parent of every descendant whose own parent ends. Called once, by the
/// daemon, before it starts anything.
pub fn adopt_orphans() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;
    Ok(())
}

/// Reaps the dead that nobody waits for; returns how many.
pub fn bury() -> usize {
    let known = known();
    let strangers = census::children().into_iter().filter(|child| child.zombie);
    strangers
        .filter(|child| !known.contains(&child.pid))
        .filter(|child| waitpid(Pid::from_raw(child.pid), Some(WaitPidFlag::WNOHANG)).is_ok())
        .count()
}

/// Reaps them whenever a child ends. The daemon runs it as a task.
pub async fn run() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut ended = signal(SignalKind::child())?;
    while ended.recv().await.is_some() {
        bury();
    }
    Ok(())
}
