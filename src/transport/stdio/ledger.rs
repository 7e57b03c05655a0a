//! What child processes this daemon has started, on disk: so that the next daemon finds and ends
//! those that a killed one left behind, by what was recorded and never by name.
//!
//! One file per daemon, `children/<pid>-<start>`, appended to and never synced: it has to survive
//! the death of the daemon, not of the machine, whose boot id makes it void. A line is
//! `+ marker label` before a start, `= marker pid start` after it, `- marker` at the end. The marker
//! stands in the child's environment as well (`MCPX_SPAWN`), so that descendants that left the group
//! are found, and a child whose daemon was killed between the first two lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::time::{sleep, timeout};

use super::census::{self, Family, Process};
use super::child::StopLadder;
use crate::transport::store::statefile;

/// The file is written anew when so many lines of it tell of nothing that lives.
const DEAD_LINES: usize = 512;
/// Looks for survivors while a rung's time passes.
const LOOKS: u32 = 64;

/// The running daemon's own file. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    live: BTreeMap<String, Entry>,
    dead_lines: usize,
    complained: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    label: String,
    process: Option<(i32, u64)>,
}

/// One child in the ledger. It stays there unless [`Record::over`] is called.
#[derive(Debug)]
pub struct Record {
    ledger: Ledger,
    marker: String,
}

impl Ledger {
    /// The ledger of this process, in a folder of the state folder.
    pub fn open(folder: &Path) -> io::Result<Self> {
        statefile::private_folder(folder)?;
        let me = Process::read(Pid::this().as_raw());
        let start = me.map_or(0, |me| me.start);
        let path = folder.join(format!("{}-{start}", Pid::this()));
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let mut inner =
            Inner { path, file, live: BTreeMap::new(), dead_lines: 0, complained: false };
        inner.rewrite();
        Ok(Self { inner: Arc::new(Mutex::new(inner)) })
    }

    /// Removes the file, at the end of a daemon that has stopped all its children.
    pub fn close(&self) {
        self.with(|inner| {
            if inner.live.is_empty() {
                let _ = std::fs::remove_file(&inner.path);
            }
        });
    }

    /// Says that a child is about to start.
    pub(super) fn announce(&self, marker: &str, label: &str) -> Record {
        let label = label.replace(char::is_whitespace, "_");
        self.with(|inner| {
            inner.append(&format!("+ {marker} {label}\n"));
            inner.live.insert(marker.to_owned(), Entry { label, process: None });
        });
        Record { ledger: self.clone(), marker: marker.to_owned() }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Record {
    /// The child runs.
    pub(super) fn started(&self, leader: &Process) {
        self.ledger.with(|inner| {
            inner.append(&format!("= {} {} {}\n", self.marker, leader.pid, leader.start));
            if let Some(entry) = inner.live.get_mut(&self.marker) {
                entry.process = Some((leader.pid, leader.start));
            }
        });
    }

    /// Nothing of it is left.
    pub fn over(self) {
        self.ledger.with(|inner| {
            inner.append(&format!("- {}\n", self.marker));
            inner.live.remove(&self.marker);
            inner.dead_lines += 3;
            if inner.dead_lines > DEAD_LINES {
                inner.rewrite();
            }
        });
    }
}

impl Inner {
    fn append(&mut self, line: &str) {
        let written = self.file.write_all(line.as_bytes());
        self.complain(written);
    }

    /// Writes what lives. Torn in the middle it has lost some: markers are looked for anyway.
    fn rewrite(&mut self) {
        let mut text = format!("boot {}\n", boot_id());
        for (marker, entry) in &self.live {
            let _ = writeln!(text, "+ {marker} {}", entry.label);
            if let Some((pid, start)) = entry.process {
                let _ = writeln!(text, "= {marker} {pid} {start}");
            }
        }
        let written = statefile::write(&self.path, text.as_bytes())
            .and_then(|()| OpenOptions::new().append(true).open(&self.path))
            .map(|file| self.file = file);
        self.dead_lines = 0;
        self.complain(written);
    }

    fn complain(&mut self, written: io::Result<()>) {
        let Err(error) = written else { return };
        if !std::mem::replace(&mut self.complained, true) {
            tracing::warn!(
                path = %self.path.display(), %error,
                "processes are not recorded: what a killed daemon leaves will not be found"
            );
        }
    }
}

/// One process that the sweep has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// The upstream's name.
    pub label: String,
    /// Its process id.
    pub pid: i32,
}

/// Ends what daemons that are no more have left, and removes their files. To be called by a daemon
/// that holds the lock of its runtime folder, before it starts anything.
pub async fn sweep(folder: &Path, ladder: StopLadder) -> Vec<Swept> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut ended = Vec::new();
    for file in files.flatten() {
        let path = file.path();
        if daemon_lives(&path) {
            continue;
        }
        let left = std::fs::read(&path).map(|bytes| parse(&bytes, &boot_id())).unwrap_or_default();
        ended.extend(end(left, ladder).await);
        let _ = std::fs::remove_file(&path);
    }
    for one in &ended {
        tracing::warn!(server = %one.label, pid = one.pid, "ended what a killed daemon had left");
    }
    ended
}

/// Whether the daemon that the file is named after runs (it may be this one).
fn daemon_lives(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((pid, start)) = name.split_once('-') else { return false };
    let (Ok(pid), Ok(start)) = (pid.parse::<i32>(), start.parse::<u64>()) else { return false };
    Process::read(pid).is_some_and(|there| there.start == start && !there.zombie)
}

/// What was alive at the end of the file; nothing if the machine was started since.
fn parse(bytes: &[u8], boot: &str) -> BTreeMap<String, Entry> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let mut live: BTreeMap<String, Entry> = BTreeMap::new();
    if lines.next() != Some(&format!("boot {boot}")) {
        return live;
    }
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["+", marker, label] => {
                let label = (*label).to_owned();
                live.insert((*marker).to_owned(), Entry { label, process: None });
            }
            ["=", marker, pid, start] => {
                if let (Ok(pid), Ok(start)) = (pid.parse(), start.parse()) {
                    live.entry((*marker).to_owned()).or_default().process = Some((pid, start));
                }
            }
            ["-", marker] => {
                live.remove(*marker);
            }
            // Torn: the daemon died while writing it.
            _ => {}
        }
    }
    live
}

/// Walks the ladder, without its first rung: their stdin has ended with the daemon.
async fn end(left: BTreeMap<String, Entry>, ladder: StopLadder) -> Vec<Swept> {
    if left.is_empty() {
        return Vec::new();
    }
    let mut families: Vec<(String, Family)> =
        left.into_iter().map(|(marker, entry)| family(marker, entry)).collect();
    let mut ended = Vec::new();
    look(&mut families);
    for (label, family) in &families {
        let swept = |one: &Process| Swept { label: label.clone(), pid: one.pid };
        ended.extend(family.seen.iter().map(swept));
    }
    for (signal, grace) in [(Signal::SIGTERM, ladder.term), (Signal::SIGKILL, ladder.drain)] {
        for (_, family) in &families {
            family.send(signal);
        }
        let gone = timeout(grace, async {
            while look(&mut families) {
                sleep(grace / LOOKS).await;
            }
        });
        if gone.await.is_ok() {
            break;
        }
    }
    ended
}

/// A recorded child: the leader is a member like any other here, since we are not its parent.
fn family(marker: String, entry: Entry) -> (String, Family) {
    let (pid, start) = entry.process.unwrap_or_default();
    let leader = Process::read(pid).filter(|there| there.start == start);
    let nobody = Process { pid: 0, start: 0, parent: 0, group: 0, zombie: true };
    let group = Process { pid, start: 0, ..nobody };
    (entry.label, Family { leader: group, marker, anchored: false, seen: Vec::from_iter(leader) })
}

/// Takes the census of all; whether any member lives.
fn look(families: &mut [(String, Family)]) -> bool {
    let all = census::ours(0);
    let alive = families
        .iter_mut()
        .filter_map(|(_, family)| (!family.census_among(&all).is_empty()).then_some(()));
    alive.count() > 0
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_file_tells_what_it_can() {
        let file = b"boot B\n+ m1 one\n= m1 10 100\n+ m2 two\n- m1\n+ m3 thr\xff\n= m2 11";
        let live = parse(file, "B");
        let label = |marker: &str| live.get(marker).map(|entry| entry.label.clone());
        assert_eq!(live.len(), 2);
        assert_eq!(label("m2").as_deref(), Some("two"));
        assert_eq!(live["m2"].process, None);
        assert!(parse(file, "another boot").is_empty());
        assert!(parse(b"", "B").is_empty());
    }

    #[test]
    fn the_file_stays_small_over_many_spawns() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path()).unwrap();
        let kept = ledger.announce("kept", "a name");
        let leader = Process { pid: 7, start: 8, parent: 1, group: 7, zombie: false };
        kept.started(&leader);
        for n in 0..1000 {
            let record = ledger.announce(&format!("{n:032}"), "x");
            record.started(&leader);
            record.over();
        }
        let path = ledger.with(|inner| inner.path.clone());
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.len() < 32_000, "{}", bytes.len());
        let live = parse(&bytes, &boot_id());
        let entry = Entry { label: "a_name".into(), process: Some((7, 8)) };
        assert_eq!(live, BTreeMap::from([("kept".into(), entry)]));
        assert!(daemon_lives(&path));
        kept.over();
        ledger.close();
        assert!(!path.exists());
    }
}
