//! A real `mcpx daemon` in folders of its own, and the real command line beside it.
//!
//! Every process that belongs to one [`Daemon`] bears its mark in the environment, so that none
//! can hide by a new session or a dead parent. When it is dropped, the daemon is ended by SIGTERM
//! and no marked process may be left; in a test that failed already they are only killed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command as TokioCommand;
use tokio::time::timeout;

use super::fake::{Fake, MARK_KEY};
use super::http::{self, Answer};
use super::procs::{self, Process};
use super::raw_host::RawHost;

const START_LIMIT: Duration = Duration::from_secs(20);
const STOP_LIMIT: Duration = Duration::from_secs(20);
const COMMAND_LIMIT: Duration = Duration::from_mins(1);

/// What a command printed and how it ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// The exit code; -1 where a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Standard output as JSON.
    ///
    /// # Panics
    /// Where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|why| panic!("no JSON: {why}\n{self:?}"))
    }

    /// Itself, if the command ended with this code.
    ///
    /// # Panics
    /// Where it ended otherwise.
    #[allow(clippy::return_self_not_must_use, reason = "often only the code matters")]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "wrong exit code\n{}\n{}", self.stdout, self.stderr);
        self
    }
}

/// Folders, configuration and the daemon, if it runs.
#[derive(Debug)]
pub struct Daemon {
    folder: TempDir,
    exe: PathBuf,
    fakemcp: PathBuf,
    mark: String,
    child: Option<Child>,
    environment: Vec<(String, String)>,
    /// Set to false by a test that leaves processes on purpose and ends them itself.
    pub check_leftovers: bool,
}

impl Daemon {
    /// Prepares the folders; nothing is started. `exe` is `env!("CARGO_BIN_EXE_mcpx")`, `fakemcp`
    /// is `env!("CARGO_BIN_EXE_fakemcp")`.
    pub fn prepare(exe: &str, fakemcp: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::Builder::new().prefix("mcpx-test-").tempdir().unwrap();
        for name in ["state", "run", "home", "notes", "project"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            mark: format!("{}-{count}", std::process::id()),
            folder,
            exe: PathBuf::from(exe),
            fakemcp: PathBuf::from(fakemcp),
            child: None,
            environment: Vec::new(),
            check_leftovers: true,
        }
    }

    /// Prepares, writes the configuration and starts.
    pub fn start(exe: &str, fakemcp: &str, fakes: impl Fn(&Self) -> Vec<Fake>, more: &str) -> Self {
        let mut daemon = Self::prepare(exe, fakemcp);
        let fakes = fakes(&daemon);
        daemon.write_config(&fakes, more);
        daemon.launch();
        daemon
    }

    /// A fake upstream of this daemon.
    pub fn fake(&self, name: &str) -> Fake {
        Fake::new(name, &self.fakemcp, &self.path("notes"), &self.mark)
    }

    /// Writes the configuration: `more` first (settings), then a table a fake.
    pub fn write_config(&self, fakes: &[Fake], more: &str) {
        let tables: String = fakes.iter().map(Fake::toml).collect();
        fs::write(self.config_path(), format!("{more}\n\n{tables}")).unwrap();
    }

    /// Sets a variable for everything that is started from here on.
    pub fn set_env(&mut self, key: &str, value: &str) {
        self.environment.push((key.to_owned(), value.to_owned()));
    }

    /// Starts `mcpx daemon` and waits until its socket takes connections.
    ///
    /// # Panics
    /// Where it ends first, or is not ready in time; with what it printed.
    pub fn launch(&mut self) {
        self.launch_by(&[]);
    }

    /// The same, by a program that becomes the daemon: `wrapper` and then the daemon's command line.
    pub fn launch_by(&mut self, wrapper: &[&str]) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        let mut command = self.command(&["daemon"]);
        if let Some((program, args)) = wrapper.split_first() {
            let mut around = Command::new(program);
            around.args(args).arg(command.get_program()).args(command.get_args());
            around.env_clear().current_dir(self.path("project"));
            around.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
            command = around;
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + START_LIMIT;
        while std::os::unix::net::UnixStream::connect(self.socket()).is_err() {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the daemon ended at once ({status}):\n{}", self.output());
            }
            if Instant::now() > deadline {
                let _ = child.kill();
                panic!("the daemon was not ready in {START_LIMIT:?}:\n{}", self.output());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child = Some(child);
    }

    /// The daemon's process id, if this harness started it.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Ends the daemon by SIGTERM and waits; returns how long it took.
    pub fn stop(&mut self) -> Duration {
        let Some(mut child) = self.child.take() else { return Duration::ZERO };
        let began = Instant::now();
        procs::signal(child.id(), Signal::SIGTERM);
        while child.try_wait().unwrap().is_none() {
            if began.elapsed() > STOP_LIMIT {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the daemon did not stop in {STOP_LIMIT:?}:\n{}", self.output());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        began.elapsed()
    }

    /// Kills the daemon with SIGKILL and reaps it.
    pub fn kill9(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops and starts again, with what the configuration says now.
    pub fn restart(&mut self) {
        self.stop();
        self.launch();
    }

    /// A command of this installation, not started: its environment holds the test's folders, a
    /// plain PATH and nothing else.
    pub fn command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&self.exe);
        command.arg("--config").arg(self.config_path()).args(args);
        command.current_dir(self.path("project")).env_clear();
        for (key, folder) in [
            ("HOME", "home"),
            ("MCPX_STATE_DIR", "state"),
            ("MCPX_RUNTIME_DIR", "run"),
            ("XDG_CONFIG_HOME", "home"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_RUNTIME_DIR", "run"),
        ] {
            command.env(key, self.path(folder));
        }
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // Tests run side by side: each daemon takes a port that is free, and tells it.
        command.env("MCPX_HTTP_LISTEN", "127.0.0.1:0");
        command.env("SHELL", "/bin/sh").env("MCPX_LOG", "debug").env(MARK_KEY, &self.mark);
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        command
    }

    /// Runs a command to its end.
    pub async fn cli(&self, args: &[impl AsRef<OsStr>]) -> Output {
        let mut command = TokioCommand::from(self.command(args));
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(COMMAND_LIMIT, command.output()).await;
        let output = output.unwrap_or_else(|_| panic!("no end within {COMMAND_LIMIT:?}")).unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A host behind `mcpx serve`; the shim's standard error goes to the log.
    pub fn shim(&self, args: &[&str]) -> RawHost {
        let all: Vec<&str> = ["serve"].into_iter().chain(args.iter().copied()).collect();
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        let mut command = TokioCommand::from(self.command(&all));
        command.stderr(log);
        RawHost::spawn(command)
    }

    /// A request to the control socket.
    pub async fn http(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        http::request(&self.socket(), method, path, body).await
    }

    /// Where this daemon serves hosts over HTTP, with its token: what `mcpx status --http` shows.
    pub async fn over_http(&self) -> (String, String) {
        let answer = self.http("GET", "/v1/http", None).await.json();
        let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
        (text("url"), text("token"))
    }

    /// Children of the daemon, their children and so on.
    pub fn descendants(&self) -> Vec<Process> {
        self.pid().map(procs::descendants).unwrap_or_default()
    }

    /// Running processes that belong to this test, apart from the daemon that it started.
    pub fn marked(&self) -> Vec<Process> {
        let mut found = procs::marked(MARK_KEY, &self.mark);
        found.retain(|process| Some(process.pid) != self.pid());
        found
    }

    /// What the daemon and its shims printed.
    pub fn output(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Text that no other test has: the mark of its processes.
    pub fn unique(&self) -> &str {
        &self.mark
    }

    /// The control socket.
    pub fn socket(&self) -> PathBuf {
        self.path("run").join("control.sock")
    }

    /// The configuration file.
    pub fn config_path(&self) -> PathBuf {
        self.path("config.toml")
    }

    /// A file or folder of the test: `state`, `run`, `home`, `notes`, `project`.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log_path(&self) -> PathBuf {
        self.path("daemon.log")
    }

    fn kill_marked(&self) {
        for process in self.marked() {
            procs::signal(process.pid, Signal::SIGKILL);
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.kill9();
            self.kill_marked();
            // The log is what a failed test is understood by.
            let text = self.output();
            let skipped = text.lines().count().saturating_sub(60);
            let tail: Vec<&str> = text.lines().skip(skipped).collect();
            eprintln!("--- daemon.log, last lines ---\n{}", tail.join("\n"));
            return;
        }
        self.stop();
        let deadline = Instant::now() + Duration::from_secs(3);
        while self.check_leftovers && !self.marked().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let left = self.marked();
        self.kill_marked();
        assert!(left.is_empty() || !self.check_leftovers, "processes are left: {left:?}");
    }
}
