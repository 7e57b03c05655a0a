//! Which processes there are, as `/proc` tells it. Where there is no `/proc` it finds none, and the
//! process group alone is what a stop reaches.
//!
//! A process is known by its id *and* its start time: ids are used again.

use std::os::unix::fs::MetadataExt;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, Uid};

/// The name of the variable that marks a child and all that it starts.
pub const MARKER: &str = "MCPX_SPAWN";

/// Looks around while killing without waiting: more would only find the dying again.
const KILL_ROUNDS: usize = 3;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its start, in clock ticks since boot.
    pub start: u64,
    /// Its parent.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Dead, but not buried by its parent.
    pub zombie: bool,
}

impl Process {
    /// The process that has this id now.
    pub fn read(pid: i32) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `pid (name) state ppid pgrp … starttime …`; the name may hold anything.
    fn parse(stat: &[u8]) -> Option<Self> {
        let close = memchr::memrchr(b')', stat)?;
        let pid = std::str::from_utf8(stat.split(|&byte| byte == b' ').next()?).ok()?;
        let mut fields = std::str::from_utf8(stat.get(close + 2..)?).ok()?.split(' ');
        let state = fields.next()?;
        Some(Self {
            pid: pid.parse().ok()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            // proc(5): starttime is field 22, and the group was field 5.
            start: fields.nth(16)?.parse().ok()?,
            zombie: matches!(state, "Z" | "X" | "x"),
        })
    }

    /// Whether it is still the same process.
    pub fn is_there(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.start == self.start && !now.zombie)
    }

    /// The marker that stands in its environment, if it has one.
    pub fn marker(&self) -> Option<String> {
        let environ = std::fs::read(format!("/proc/{}/environ", self.pid)).ok()?;
        let marker = environ
            .split(|&byte| byte == 0)
            .find_map(|variable| variable.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"="))?;
        String::from_utf8(marker.to_vec()).ok()
    }
}

/// All processes of our user that started no earlier than `since`.
pub fn ours(since: u64) -> Vec<Process> {
    let uid = Uid::effective().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let process = Process::read(pid).filter(|process| process.start >= since)?;
            // A zombie's folder belongs to root where it is not dumpable; its parent tells whose.
            let mine = process.zombie || entry.metadata().ok()?.uid() == uid;
            mine.then_some(process)
        })
        .collect()
}

/// Children of this process, by the kernel's own list where it has one.
pub fn children() -> Vec<Process> {
    let me = Pid::this().as_raw();
    let listed: Option<Vec<Process>> =
        std::fs::read_dir("/proc/self/task").ok().and_then(|tasks| {
            let mut found = Vec::new();
            for task in tasks.flatten() {
                let list = std::fs::read_to_string(task.path().join("children")).ok()?;
                let pids = list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
                found.extend(pids.filter_map(Process::read));
            }
            Some(found)
        });
    listed.unwrap_or_else(|| ours(0)).into_iter().filter(|one| one.parent == me).collect()
}

/// A family of processes: what one spawn has brought about.
#[derive(Debug, Clone)]
pub struct Family {
    /// The first of it, which is its group's leader.
    pub leader: Process,
    /// What stands in the environment of all of it, unless one has cleared it.
    pub marker: String,
    /// The leader is not buried: its group's number can be nobody else's.
    pub anchored: bool,
    /// Members alive at the last look.
    pub seen: Vec<Process>,
}

impl Family {
    /// The members alive now, without the leader; remembered for the next time.
    ///
    /// A member carries the marker, or was seen before, or descends from one, or is in the group of
    /// one. A group number alone is no proof once the leader is buried: it may be in use again.
    pub fn census(&mut self) -> &[Process] {
        self.census_among(&ours(self.leader.start))
    }

    /// The same, from a list taken before.
    pub fn census_among(&mut self, all: &[Process]) -> &[Process] {
        let mut pids = vec![];
        let mut group = self.anchored;
        if self.anchored {
            pids.push(self.leader.pid);
        }
        for process in all {
            let seen =
                self.seen.iter().any(|one| (one.pid, one.start) == (process.pid, process.start));
            if seen || process.marker().as_deref() == Some(&self.marker) {
                pids.push(process.pid);
                group |= process.group == self.leader.pid;
            }
        }
        if group {
            let same = all.iter().filter(|process| process.group == self.leader.pid);
            pids.extend(same.map(|process| process.pid));
        }
        let mut known = 0;
        while known != pids.len() {
            known = pids.len();
            for process in all {
                if !pids.contains(&process.pid) && pids.contains(&process.parent) {
                    pids.push(process.pid);
                }
            }
        }
        let family = all
            .iter()
            .copied()
            .filter(|process| pids.contains(&process.pid) && !process.zombie)
            .filter(|process| !self.is_leader(process))
            .collect();
        self.seen = family;
        &self.seen
    }

    /// Signals the group and all that have left it, as of the last look.
    pub fn send(&self, signal: Signal) {
        if self.anchored {
            let _ = killpg(Pid::from_raw(self.leader.pid), signal);
        }
        let reached = |one: &Process| self.anchored && one.group == self.leader.pid;
        for member in self.seen.iter().filter(|one| !reached(one) && one.is_there()) {
            let _ = kill(Pid::from_raw(member.pid), signal);
        }
    }

    /// Kills all of it at once. What starts between two looks is found by the next one.
    pub fn kill(&mut self) {
        self.send(Signal::SIGKILL);
        for _ in 0..KILL_ROUNDS {
            if self.census().is_empty() {
                break;
            }
            self.send(Signal::SIGKILL);
        }
    }

    fn is_leader(&self, process: &Process) -> bool {
        (process.pid, process.start) == (self.leader.pid, self.leader.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_a_hostile_name_is_read() {
        let rest = "S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        let process = Process::parse(format!("42 (a) R 1 (b) {rest}").as_bytes()).unwrap();
        let expected = Process { pid: 42, start: 98765, parent: 7, group: 42, zombie: false };
        assert_eq!(process, expected);
        assert_eq!(Process::parse(b"42 (x"), None);
    }

    #[test]
    fn we_are_there() {
        let me = Process::read(Pid::this().as_raw()).unwrap();
        assert!(me.is_there());
        assert!(!Process { start: me.start + 1, ..me }.is_there());
        assert!(ours(me.start).contains(&me));
    }
}
