//! Starting the daemon for a command or a shim that finds none: once, however many ask.
//!
//! Whoever asks takes the lock on `start.lock` in the runtime folder first; the others wait for the
//! socket meanwhile. What is started here ends once the daemon listens, and the daemon leaves our session
//! by itself (`setsid`), so that neither the end of a terminal, an interrupt of its starter, nor a host that
//! ends all its descendants reaches it; it logs to the state folder. Where it is a
//! service (`mcpx install`), its service manager is asked instead, and nobody else starts one.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::process::Child;

use super::clock;
use super::environment;
use super::socket;
use super::store::statefile;

/// How a daemon is started.
#[derive(Debug, Clone)]
pub struct Autostart {
    /// This program's own file.
    pub program: PathBuf,
    /// What has it start a daemon.
    pub args: Vec<OsString>,
    /// Variables it gets beside our own: relative folders in ours would be others in its own folder.
    pub variables: Vec<(&'static str, PathBuf)>,
    /// The control socket it will listen on.
    pub socket: PathBuf,
    /// The runtime folder.
    pub runtime: PathBuf,
    /// Where its standard streams go; the log of the one before is kept beside it.
    pub log: PathBuf,
    /// How long it may take to listen (`shim.start_timeout`).
    pub timeout: Duration,
    /// The pause between two looks at the socket (`shim.redial_step`).
    pub step: Duration,
    /// The command that starts the service that the daemon is, where it is one.
    pub service: Option<Vec<&'static str>>,
}

/// Why no daemon was started.
#[derive(Debug, thiserror::Error)]
pub enum StartFailed {
    /// It ended instead of listening.
    #[error("the daemon ended at once ({status}); {} says why{}", log.display(), said(.tail))]
    Ended {
        /// How.
        status: ExitStatus,
        /// Its log.
        log: PathBuf,
        /// The log's last lines.
        tail: Vec<String>,
    },
    /// It does not listen in time.
    #[error(
        "the daemon does not answer within {timeout:?} (setting shim.start_timeout); see {}",
        log.display()
    )]
    Silent {
        /// The limit.
        timeout: Duration,
        /// Its log.
        log: PathBuf,
    },
    /// Its service manager did not start it.
    #[error("`{command}` did not start the daemon: {said}; `journalctl {}-u mcpx` says why",
        if command.contains(" --user ") { "--user " } else { "" })]
    Service {
        /// What was run.
        command: String,
        /// What it said.
        said: String,
    },
    /// The system refused something.
    #[error("the daemon cannot be started: {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StartFailed {
    /// The exit code of a daemon that ended at once.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Ended { status, .. } => status.code(),
            Self::Silent { .. } | Self::Service { .. } | Self::Io { .. } => None,
        }
    }
}

fn said(tail: &[String]) -> String {
    tail.iter().flat_map(|line| ["\n  ", line]).collect()
}

/// Lines of the log that an error quotes.
const QUOTED: usize = 20;

impl Autostart {
    /// Returns once a daemon listens; starts one where none does.
    pub async fn ensure(&self) -> Result<(), StartFailed> {
        let deadline = clock::now() + self.timeout;
        if self.listens().await {
            return Ok(());
        }
        let Some(_lock) = self.lock(deadline).await? else { return Ok(()) };
        // Whoever held the lock before may have started it.
        if self.listens().await {
            return Ok(());
        }
        if let Some(command) = &self.service {
            self.ask_manager(command).await?;
            while !self.listens().await {
                self.pause(deadline).await?;
            }
            return Ok(());
        }
        let mut child = self.spawn()?;
        loop {
            if self.listens().await {
                // tokio reaps it, should it end before we do.
                drop(child);
                return Ok(());
            }
            // Whoever was to start it and has, with no fault to tell, leaves it to be waited for.
            if let Ok(Some(status)) = child.try_wait()
                && !status.success()
            {
                // Another daemon, started by hand in the same moment, counts as well.
                if self.listens().await {
                    return Ok(());
                }
                return Err(StartFailed::Ended {
                    status,
                    log: self.log.clone(),
                    tail: tail(&self.log),
                });
            }
            self.pause(deadline).await?;
        }
    }

    /// Has the service manager start it.
    #[expect(clippy::disallowed_methods, reason = "a program of the system, not an upstream")]
    async fn ask_manager(&self, command: &[&str]) -> Result<(), StartFailed> {
        let failed = |said: String| StartFailed::Service { command: command.join(" "), said };
        let Some((program, args)) = command.split_first() else { return Ok(()) };
        let mut asked = tokio::process::Command::new(program);
        asked.args(args).stdin(Stdio::null()).kill_on_drop(true);
        let out = tokio::time::timeout(self.timeout, asked.output()).await;
        let out = out.map_err(|_| failed(format!("no end within {:?}", self.timeout)))?;
        let out = out.map_err(|error| failed(error.to_string()))?;
        if out.status.success() {
            return Ok(());
        }
        Err(failed(String::from_utf8_lossy(&out.stderr).trim().to_owned()))
    }

    /// Whether somebody listens on the socket.
    pub async fn listens(&self) -> bool {
        socket::answers(&self.socket).await
    }

    /// The lock, or `None` where a daemon listens while we wait for it.
    async fn lock(&self, deadline: Instant) -> Result<Option<StartLock>, StartFailed> {
        loop {
            if let Some(lock) = start_lock(&self.runtime)? {
                return Ok(Some(lock));
            }
            self.pause(deadline).await?;
            if self.listens().await {
                return Ok(None);
            }
        }
    }

    async fn pause(&self, deadline: Instant) -> Result<(), StartFailed> {
        if clock::now() >= deadline {
            return Err(StartFailed::Silent { timeout: self.timeout, log: self.log.clone() });
        }
        tokio::time::sleep(self.step).await;
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "our own program, not an upstream")]
    fn spawn(&self) -> Result<Child, StartFailed> {
        let folder = self.log.parent().unwrap_or(Path::new("/"));
        statefile::private_folder(folder).map_err(failed(folder))?;
        // One log for each life; the one before is what a person looks at after a crash.
        let _ = std::fs::rename(&self.log, self.log.with_extension("log.1"));
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.log)
            .map_err(failed(&self.log))?;
        let errors = log.try_clone().map_err(failed(&self.log))?;
        tokio::process::Command::new(&self.program)
            .args(&self.args)
            // Started from inside an upstream, it must not be taken for a part of that one.
            .env_clear()
            .envs(environment::for_daemon(&environment::own()))
            .envs(self.variables.iter().map(|(name, path)| (*name, path)))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(failed(&self.program))
    }
}

/// The right to start a daemon in a runtime folder, for as long as this lives.
#[derive(Debug)]
pub struct StartLock(#[expect(dead_code, reason = "held, not read")] File);

/// Takes the right to start a daemon; `None` where somebody else has it.
pub fn start_lock(runtime: &Path) -> Result<Option<StartLock>, StartFailed> {
    statefile::private_folder(runtime).map_err(failed(runtime))?;
    let path = runtime.join("start.lock");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(StartLock(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(failed(&path)(error)),
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> StartFailed + use<> {
    let path = path.to_owned();
    move |source| StartFailed::Io { path: path.clone(), source }
}

fn tail(log: &Path) -> Vec<String> {
    let text = statefile::read(log).ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.iter().skip(lines.len().saturating_sub(QUOTED)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(folder: &Path, script: &str) -> Autostart {
        let socket = folder.join("control.sock");
        Autostart {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), script.into(), socket.clone().into()],
            variables: vec![("MCPX_STATE_DIR", folder.join("state"))],
            socket,
            runtime: folder.join("run"),
            log: folder.join("state/daemon.log"),
            timeout: Duration::from_secs(20),
            step: Duration::from_millis(5),
            service: None,
        }
    }

    /// D-21: where it is a service, its manager is asked, and its refusal is told.
    #[tokio::test]
    async fn d21_a_service_is_started_by_its_manager() {
        let folder = tempfile::tempdir().unwrap();
        let own = start(folder.path(), "exit 9");
        let service = Some(vec!["sh", "-c", "echo masked >&2; exit 1"]);
        let error = Autostart { service, ..own.clone() }.ensure().await.unwrap_err();
        assert!(error.to_string().contains("did not start the daemon: masked;"), "{error}");
        let socket = own.socket.clone();
        let _listener = tokio::net::UnixListener::bind(folder.path().join("other")).unwrap();
        let script = format!("cd {}; mv other control.sock", folder.path().display());
        let service = Some(vec!["sh", "-c", &*String::leak(script)]);
        Autostart { service, ..own }.ensure().await.unwrap();
        assert!(socket.exists());
        assert!(!folder.path().join("state/daemon.log").exists(), "nothing else was started");
    }

    #[tokio::test]
    async fn a_running_daemon_is_not_started_again() {
        let folder = tempfile::tempdir().unwrap();
        let start = start(folder.path(), "exit 9");
        let _listener = tokio::net::UnixListener::bind(&start.socket).unwrap();
        start.ensure().await.unwrap();
        assert!(!start.log.exists());
    }

    #[tokio::test]
    async fn one_that_ends_at_once_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let start = start(folder.path(), "echo 'c.toml:1:1: unknown key' >&2; exit 4");
        let error = start.ensure().await.unwrap_err();
        assert_eq!(error.exit_code(), Some(4));
        assert!(error.to_string().contains("\n  c.toml:1:1: unknown key"), "{error}");
    }

    #[tokio::test]
    async fn it_has_the_same_folders_as_its_starter() {
        let folder = tempfile::tempdir().unwrap();
        let start = start(folder.path(), "echo at $MCPX_STATE_DIR in $PWD; exit 1");
        let error = start.ensure().await.unwrap_err().to_string();
        let expected = format!("at {} in /", folder.path().join("state").display());
        assert!(error.contains(&expected), "{error}");
    }

    #[tokio::test]
    async fn many_who_ask_at_once_start_one() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        // A stand-in that says that it was started, and stays; the test listens in its place.
        // It ends with the test's folder.
        let script =
            format!("echo x >> {0}; while [ -e {0} ]; do sleep 0.05; done", count.display());
        let start = start(folder.path(), &script);
        let asking: Vec<_> = (0..8)
            .map(|_| {
                let start = start.clone();
                super::super::task::spawn_named("ask", async move { start.ensure().await })
            })
            .collect();
        while !count.exists() {
            tokio::time::sleep(start.step).await;
        }
        let _listener = tokio::net::UnixListener::bind(&start.socket).unwrap();
        for asked in asking {
            asked.await.unwrap().unwrap();
        }
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
    }
}
