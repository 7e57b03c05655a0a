//! Processes that the bench started: none outlives it, whatever way it ends.
//!
//! Two nets. A [`Spawned`] ends its process when it is dropped. Beyond that a reaper, this same
//! program in another role and in a process group of its own, is told of every process over a pipe;
//! when the pipe closes, it ends those still on its list. So a bench that is killed leaves nothing.
//! Processes are ended by id alone, and only where the id still has the start time it was noted with.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::args::Args;

/// How long a process may take to end by itself, and again after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(3);

static REAPER: Mutex<Option<Child>> = Mutex::new(None);

/// Starts the reaper, which removes `folder` too when the bench is gone.
pub fn start_reaper(folder: &Path) -> io::Result<()> {
    let reaper = Command::new(std::env::current_exe()?)
        .arg("reaper")
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()?;
    *REAPER.lock().unwrap() = Some(reaper);
    Ok(())
}

/// Lets the reaper do its work, and waits until it has.
pub fn end_reaper() {
    if let Some(mut reaper) = REAPER.lock().unwrap().take() {
        // Its stdin closes first.
        let _ = reaper.wait();
    }
}

fn tell_reaper(word: &str, pid: Pid) {
    let started = start_time(pid).unwrap_or(0);
    if let Some(pipe) = REAPER.lock().unwrap().as_mut().and_then(|reaper| reaper.stdin.as_mut()) {
        let _ = writeln!(pipe, "{word} {pid} {started}");
    }
}

/// The role `reaper FOLDER`.
pub fn reaper(args: &Args) -> io::Result<()> {
    let mut alive: HashMap<i32, u64> = HashMap::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        let [word, pid, started] = words[..] else { continue };
        let (Ok(pid), Ok(started)) = (pid.parse(), started.parse()) else { continue };
        match word {
            "started" => drop(alive.insert(pid, started)),
            _ => drop(alive.remove(&pid)),
        }
    }
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let until = Instant::now() + PATIENCE;
        alive.retain(|pid, started| start_time(Pid::from_raw(*pid)) == Some(*started));
        for pid in alive.keys() {
            let _ = kill(Pid::from_raw(*pid), signal);
        }
        while !alive.is_empty() && Instant::now() < until {
            sleep(Duration::from_millis(20));
            alive.retain(|pid, started| start_time(Pid::from_raw(*pid)) == Some(*started));
        }
    }
    match args.value("reaper") {
        Some(folder) => fs::remove_dir_all(folder),
        None => Ok(()),
    }
}

/// A process that ends when this is dropped.
#[derive(Debug)]
pub struct Spawned {
    child: Child,
}

impl Spawned {
    /// Starts it with its stdin and stdout piped to us. stderr goes where the command says.
    pub fn start(command: &mut Command) -> io::Result<Spawned> {
        Self::start_as_is(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
    }

    /// Starts it as the command says.
    pub fn start_as_is(command: &mut Command) -> io::Result<Spawned> {
        let child = command.spawn()?;
        let spawned = Spawned { child };
        tell_reaper("started", spawned.pid());
        Ok(spawned)
    }

    /// Its id.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Its stdout and stdin, in this order.
    pub fn take_stdio(&mut self) -> (OwnedFd, OwnedFd) {
        let input = self.child.stdin.take().map(OwnedFd::from);
        let output = self.child.stdout.take().map(OwnedFd::from);
        input.zip(output).unwrap_or_else(|| panic!("the pipes were taken before"))
    }

    /// Its stdout alone.
    pub fn take_stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().unwrap_or_else(|| panic!("the pipe was taken before"))
    }

    /// Whether it has ended already.
    pub fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGTERM, then SIGKILL. True where SIGTERM was enough.
    pub fn terminate(&mut self) -> bool {
        // Once it was waited for, its id may be another's.
        if self.ended() {
            return true;
        }
        let _ = kill(self.pid(), Signal::SIGTERM);
        self.wait(PATIENCE * 3) || {
            let _ = self.child.kill();
            let _ = self.child.wait();
            false
        }
    }

    fn wait(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while Instant::now() < until {
            if self.ended() {
                return true;
            }
            sleep(Duration::from_millis(2));
        }
        false
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        if !self.wait(PATIENCE) {
            self.terminate();
        }
        tell_reaper("ended", self.pid());
    }
}

/// Fields of `/proc/PID/stat` after the name, which may itself hold blanks and brackets.
fn stat(pid: Pid) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split_whitespace().map(String::from).collect())
}

fn start_time(pid: Pid) -> Option<u64> {
    let fields = stat(pid)?;
    // A zombie no longer counts: somebody else is about to reap it.
    (fields.first()? != "Z").then(|| fields.get(19)?.parse().ok())?
}

/// User and system time so far, in seconds, in steps of 10 ms (USER_HZ is 100 on Linux).
pub fn cpu_seconds(pid: Pid) -> f64 {
    let ticks = |fields: &Vec<String>, at: usize| fields.get(at)?.parse::<f64>().ok();
    stat(pid)
        .and_then(|fields| Some((ticks(&fields, 11)? + ticks(&fields, 12)?) / 100.0))
        .unwrap_or(f64::NAN)
}

/// Time on a processor of all living threads, in milliseconds, to the nanosecond. What threads used
/// that have ended is missing, so this serves for idle processes.
pub fn thread_millis(pid: Pid) -> f64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return f64::NAN };
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<f64>().ok())
        .sum::<f64>()
        / 1e6
}

/// A field of `/proc/PID/status`, in KiB: `VmRSS`, `VmHWM`, `RssAnon`.
pub fn memory_kib(pid: Pid, field: &str) -> f64 {
    fs::read_to_string(format!("/proc/{pid}/status"))
        .ok()
        .and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix(field))?;
            line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().ok()
        })
        .unwrap_or(f64::NAN)
}

/// Makes `VmHWM` begin again at what is resident now.
pub fn reset_peak(pid: Pid) {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// Living processes whose command line holds this word.
pub fn with_word(word: &str) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
        .filter(|pid| start_time(*pid).is_some())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.split(|byte| *byte == 0).any(|arg| arg == word.as_bytes()))
        })
        .collect()
}

/// Ends the processes with this word on their command line. Gives how many there were.
pub fn end_with_word(word: &str) -> usize {
    let left = with_word(word);
    for pid in &left {
        let _ = kill(*pid, Signal::SIGKILL);
    }
    left.len()
}
