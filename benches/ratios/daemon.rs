//! A daemon of the bench's own: its configuration, its folders, its start, its shims, its end.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use crate::host::{Era, Host, broken, read_head};
use crate::process::{Spawned, end_with_word, with_word};

/// How long a daemon may take until it answers.
const READY: Duration = Duration::from_secs(10);

/// What every daemon of this bench has in common.
#[derive(Debug)]
pub struct Bench {
    /// The program under test.
    pub mcpx: PathBuf,
    /// This program, which is the echo server too.
    pub own: PathBuf,
    /// Holds the folders of all daemons.
    pub root: PathBuf,
}

/// A running daemon.
#[derive(Debug)]
pub struct Daemon<'a> {
    bench: &'a Bench,
    process: Spawned,
    home: PathBuf,
    /// From its start until its control socket answered.
    pub took: Duration,
}

impl Bench {
    /// The command of an echo server that bears the daemon's tag, as a TOML list.
    fn echo_words(&self, tag: &str, flags: &[&str]) -> String {
        let mut words = vec![self.own.display().to_string(), "echo-stdio".into()];
        words.extend(["--tag".into(), tag.to_owned()]);
        words.extend(flags.iter().map(|flag| (*flag).to_owned()));
        format!("{words:?}")
    }

    /// The echo server without anything before it.
    pub fn direct(&self, era: Era) -> io::Result<Host> {
        let mut command = Command::new(&self.own);
        command.arg("echo-stdio");
        let mut host = Host::spawn(Spawned::start(&mut command)?, era);
        host.handshake()?;
        Ok(host)
    }

    /// Starts a daemon with these servers: name, flags of the echo server, further TOML lines. Its
    /// hosts come through shims alone.
    pub fn daemon(&self, name: &str, servers: &[(&str, &[&str], &str)]) -> io::Result<Daemon<'_>> {
        self.daemon_with(name, "[http]\nlisten = \"\"\n", servers)
    }

    /// As [`Bench::daemon`], with settings.
    pub fn daemon_with(
        &self,
        name: &str,
        settings: &str,
        servers: &[(&str, &[&str], &str)],
    ) -> io::Result<Daemon<'_>> {
        let home = self.root.join(name);
        let _ = fs::remove_dir_all(&home);
        for folder in ["", "state", "run", "cwd"] {
            fs::create_dir_all(home.join(folder))?;
        }
        let tag = home.display().to_string();
        let mut text = settings.to_owned();
        for (server, flags, more) in servers {
            let words = self.echo_words(&tag, flags);
            text += &format!("[servers.{server}]\ncommand = {words}\n{more}\n");
        }
        fs::write(home.join("config.toml"), text)?;
        let log = File::create(home.join("daemon.log"))?;
        let mut command = self.command(&home, &["daemon"]);
        let start = Instant::now();
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = Spawned::start_as_is(&mut command)?;
        let mut daemon = Daemon { bench: self, process, home, took: Duration::ZERO };
        while !daemon.answers() {
            if start.elapsed() > READY || daemon.process.ended() {
                let log = fs::read_to_string(daemon.home.join("daemon.log")).unwrap_or_default();
                return Err(broken(format!("the daemon is not ready: {}", log.trim())));
            }
            sleep(Duration::from_millis(1));
        }
        daemon.took = start.elapsed();
        Ok(daemon)
    }

    fn command(&self, home: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(&self.mcpx);
        command
            .arg("--config")
            .arg(home.join("config.toml"))
            .args(words)
            .current_dir(home.join("cwd"))
            .env("MCPX_STATE_DIR", home.join("state"))
            .env("MCPX_RUNTIME_DIR", home.join("run"))
            .env("MCPX_SHIM_AUTOSTART", "false")
            .env("HOME", home)
            .env_remove("XDG_CONFIG_HOME");
        command
    }
}

impl Daemon<'_> {
    /// The daemon's process id.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// A connection to the control socket.
    fn dial(&self) -> io::Result<UnixStream> {
        UnixStream::connect(self.home.join("run/control.sock"))
    }

    /// Whether the control socket speaks HTTP. Any status will do: the daemon is up.
    fn answers(&self) -> bool {
        let asked = || -> io::Result<String> {
            let mut socket = self.dial()?;
            socket.set_read_timeout(Some(READY))?;
            socket
                .write_all(b"GET /v1/status HTTP/1.1\r\nHost: mcpx\r\nConnection: close\r\n\r\n")?;
            read_head(&mut socket)
        };
        asked().is_ok_and(|head| head.starts_with("HTTP/1.1 "))
    }

    /// `mcpx status` says so too.
    pub fn check_status(&self) -> io::Result<()> {
        let mut command = self.bench.command(&self.home, &["status"]);
        let done = command.stdin(Stdio::null()).output()?;
        if done.status.success() {
            return Ok(());
        }
        Err(broken(format!("mcpx status: {}", String::from_utf8_lossy(&done.stderr).trim())))
    }

    /// Starts a shim; nothing is said to it yet.
    pub fn shim(&self, era: Era) -> io::Result<Host> {
        let mut command = self.bench.command(&self.home, &["serve"]);
        let log = File::options().append(true).create(true).open(self.home.join("shim.log"))?;
        Ok(Host::spawn(Spawned::start(command.stderr(log))?, era))
    }

    /// A host behind a shim, after its handshake.
    pub fn host(&self, era: Era) -> io::Result<Host> {
        let mut host = self.shim(era)?;
        host.handshake()?;
        Ok(host)
    }

    /// A host session without a shim: this program speaks to the control socket as a shim would.
    pub fn attach(&self, era: Era) -> io::Result<Host> {
        let mut socket = self.dial()?;
        socket.set_read_timeout(Some(READY))?;
        write!(
            socket,
            "GET /v1/attach HTTP/1.1\r\nHost: mcpx\r\nConnection: Upgrade\r\n\
             Upgrade: mcpx-attach\r\nx-mcpx-attach: 1\r\nx-mcpx-project: {}\r\n\r\n",
            self.home.join("cwd").display(),
        )?;
        let head = read_head(&mut socket)?;
        if !head.starts_with("HTTP/1.1 101") {
            return Err(broken(format!("attach: {}", head.lines().next().unwrap_or_default())));
        }
        socket.set_read_timeout(None)?;
        let mut host = Host::on_socket(socket, era)?;
        host.handshake()?;
        Ok(host)
    }

    /// Echo servers that this daemon runs now.
    pub fn servers(&self) -> Vec<Pid> {
        with_word(&self.home.display().to_string())
    }

    /// Ends the daemon; an error where it left servers behind or had to be killed.
    pub fn stop(mut self) -> io::Result<()> {
        let obeyed = self.process.terminate();
        match (obeyed, end_with_word(&self.home.display().to_string())) {
            (true, 0) => Ok(()),
            (true, left) => Err(broken(format!("the daemon left {left} servers behind"))),
            (false, _) => Err(broken("the daemon did not end on SIGTERM".into())),
        }
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        self.process.terminate();
        end_with_word(&self.home.display().to_string());
    }
}
