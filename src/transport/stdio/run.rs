//! A process that is run to its end for what it prints.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::child::{self, ChildHandle, ExitReport, Launched, SpawnError, SpawnSpec, StopLadder};
use crate::transport::task::spawn_named;

/// What came of it.
#[derive(Debug)]
pub struct Finished {
    /// What it printed.
    pub stdout: Vec<u8>,
    /// The last lines of its stderr.
    pub stderr: Vec<String>,
    /// How it ended.
    pub exit: ExitReport,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum RunFailed {
    /// It did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It took too long, was asked to end, and then killed.
    #[error("it did not end within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// It printed more than this many bytes, and was killed.
    #[error("it printed more than {0} bytes")]
    TooMuch(usize),
    /// Reading failed.
    #[error("reading what it printed failed: {0}")]
    Read(#[from] std::io::Error),
}

/// The part of its time that one gets to end by itself, once it has had all of it.
const LAST_SHARE: u32 = 10;

/// Lines of stderr in [`Finished`].
const LAST_WORDS: usize = 3;

/// Runs `spec` without input, for at most `limit`; it may print `most` bytes. Whatever it leaves
/// running after its end is left alone: a password tool may have started its agent. When it is
/// killed, nothing of it is left.
pub async fn run(spec: &SpawnSpec, limit: Duration, most: usize) -> Result<Finished, RunFailed> {
    let Launched { stdin, mut stdout, drain, mut handle } = child::launch(spec, None)?;
    drop(stdin);
    let drain = spawn_named("stderr", drain.run());
    let stop_draining = AbortOnDrop(drain.abort_handle());
    let mut text = Vec::new();
    let ended = timeout(limit, to_the_end(&mut stdout, &mut text, &mut handle, most)).await;
    let Ok(ended) = ended else {
        // Asked first: what a person's shell has begun it can undo, a lock on a file for one.
        handle.stop(StopLadder { drain: Duration::ZERO, term: limit / LAST_SHARE }).await;
        return Err(RunFailed::TimedOut(limit));
    };
    // Dropped with an error, the handle kills what is left.
    let exit = ended?;
    if handle.is_alone() {
        // All of stderr is on its way to the ring; an agent would hold it open for ever.
        let _ = timeout(limit, drain).await;
    }
    drop(stop_draining);
    let stderr = handle.stderr().tail(LAST_WORDS);
    handle.release();
    Ok(Finished { stdout: text, stderr, exit })
}

/// Reads until the leader has exited and its output is through.
async fn to_the_end(
    stdout: &mut pipe::Receiver,
    text: &mut Vec<u8>,
    handle: &mut ChildHandle,
    most: usize,
) -> Result<ExitReport, RunFailed> {
    let mut open = true;
    let exit = loop {
        tokio::select! {
            biased;
            read = stdout.read_buf(text), if open => open = read? > 0,
            exit = handle.exited() => break exit,
        }
        if text.len() > most {
            return Err(RunFailed::TooMuch(most));
        }
    };
    // What it wrote last is in the pipe; the pipe's end may be held open by others.
    read_what_waits(stdout, text, most);
    if text.len() > most { Err(RunFailed::TooMuch(most)) } else { Ok(exit) }
}

/// Asks the pipe itself: the runtime may not have heard of its last bytes yet, and would say that
/// there are none.
fn read_what_waits(stdout: &pipe::Receiver, text: &mut Vec<u8>, most: usize) {
    // As much as a pipe usually holds.
    let mut chunk = vec![0; 64 << 10];
    while text.len() <= most {
        match nix::unistd::read(stdout, &mut chunk) {
            Ok(read @ 1..) => text.extend(chunk.iter().take(read)),
            Err(nix::errno::Errno::EINTR) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::link::LinkLimits;
    use crate::transport::stdio::census::{self, MARKER};
    use crate::transport::stdio::ring::RingLimits;

    const LONG: Duration = Duration::from_secs(20);

    fn sh(script: &str) -> SpawnSpec {
        SpawnSpec {
            label: "test".into(),
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            cwd: "/".into(),
            link: LinkLimits { max_frame: 1, write_queue: 1, write_queue_bytes: 1 },
            stderr: RingLimits { lines: 9, line_bytes: 99, log_rate: 0, bytes: 1 << 20 },
            grace: LONG,
        }
    }

    #[tokio::test]
    async fn all_of_the_output_and_the_last_words_are_there() {
        let script = "cat; head -c 100000 /dev/zero; echo end; echo oops >&2; exit 3";
        let finished = run(&sh(script), LONG, 200_000).await.unwrap();
        assert_eq!(finished.stdout.len(), 100_004);
        assert_eq!(finished.stderr, ["oops"]);
        assert_eq!(finished.exit.code, Some(3));
    }

    #[tokio::test]
    async fn too_long_and_too_much_are_killed() {
        let marker_is_gone = || census::children().iter().all(|one| one.zombie);
        let short = Duration::from_millis(50);
        let error = run(&sh("sleep 1000"), short, 10).await.unwrap_err();
        assert_eq!(error.to_string(), "it did not end within 50 ms");
        let error = run(&sh("yes"), LONG, 10_000).await.unwrap_err();
        assert_eq!(error.to_string(), "it printed more than 10000 bytes");
        while !marker_is_gone() {
            tokio::task::yield_now().await;
        }
    }

    /// A login shell that holds a lock gives it back: killed, it would keep every later shell waiting.
    #[tokio::test]
    async fn one_that_takes_too_long_may_tidy_up() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("lock");
        let held = lock.display();
        let script = format!("trap 'rm {held}; exit 1' TERM; : > {held}; sleep 1000 & wait");
        let error = run(&sh(&script), Duration::from_secs(1), 10).await.unwrap_err();
        assert_eq!(error.to_string(), "it did not end within 1000 ms");
        assert!(!lock.exists());
    }

    #[tokio::test]
    async fn what_it_leaves_running_is_not_waited_for_and_not_killed() {
        let script = format!("sleep 1000 & echo $! ${MARKER}");
        let finished = run(&sh(&script), LONG, 1000).await.unwrap();
        let text = String::from_utf8(finished.stdout).unwrap();
        let pid: i32 = text.split(' ').next().unwrap().parse().unwrap();
        let agent = census::Process::read(pid).unwrap();
        assert!(agent.is_there());
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL).unwrap();
    }
}
