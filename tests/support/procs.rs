//! Looking at processes through `/proc`: descendants, zombies, and processes that bear a mark in
//! their environment (which a new session or a dead parent does not take from them).

use std::collections::BTreeMap;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// One process as `/proc/<pid>/stat` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent: u32,
    /// `R`, `S`, `Z` and so on.
    pub state: char,
    /// The name the kernel keeps (15 characters).
    pub name: String,
}

/// All processes there are.
pub fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("these tests need /proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(one).collect()
}

/// One process, if it is there.
pub fn one(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let mut fields = tail.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Process { pid, parent, state, name })
}

/// True while the process runs; a zombie does not.
pub fn alive(pid: u32) -> bool {
    one(pid).is_some_and(|process| process.state != 'Z')
}

/// Children, their children and so on; zombies too.
pub fn descendants(root: u32) -> Vec<Process> {
    let mut by_parent: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    for process in all() {
        by_parent.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for process in by_parent.remove(&parent).unwrap_or_default() {
            open.push(process.pid);
            found.push(process);
        }
    }
    found
}

/// Those descendants that ended and were not waited for.
pub fn zombies(root: u32) -> Vec<Process> {
    descendants(root).into_iter().filter(|process| process.state == 'Z').collect()
}

/// Running processes whose environment holds `key=value`, whoever their parent is.
pub fn marked(key: &str, value: &str) -> Vec<Process> {
    let wanted = format!("{key}={value}");
    let bears = |process: &Process| {
        fs::read(format!("/proc/{}/environ", process.pid)).is_ok_and(|environment| {
            environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
        })
    };
    all().into_iter().filter(|process| process.state != 'Z' && bears(process)).collect()
}

/// Sends a signal to one process.
pub fn signal(pid: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal);
}

/// How many file descriptors a process has open.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Resident memory of a process in KiB (`VmRSS`), and its high-water mark (`VmHWM`).
pub fn memory_kib(pid: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}
