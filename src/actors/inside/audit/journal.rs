//! The audit's files: JSON, a line each, in a folder of their own. All of it blocks.
//!
//! The present one is `audit.jsonl`. One that is long or old enough is renamed after the time of its end,
//! and goes when there are too many or it has been kept for its time. A crash costs what was not written
//! yet, and at most the half of a last line, which a reader leaves out.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::settings::typed::AuditSettings;
use crate::transport::clock;
use crate::transport::store::statefile;

/// The present file.
const PRESENT: &str = "audit.jsonl";
/// What the names of earlier ones have around the time of their end.
const EARLIER: (&str, &str) = ("audit-", ".jsonl");

/// See the module.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    file: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
    /// When the file was begun, since 1970.
    begun: Duration,
}

impl Journal {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder, file: None }
    }

    /// Writes whole lines; where the present file is long or old enough, another one is begun first.
    pub(super) fn write(&mut self, lines: &[u8], limits: &AuditSettings) -> io::Result<()> {
        let now = clock::wall();
        let full = |open: &Open| {
            let old = now.saturating_sub(open.begun) >= limits.rotate_after;
            open.bytes > 0 && (old || open.bytes.saturating_add(length(lines)) > limits.max_size)
        };
        if self.file.is_none() {
            self.file = Some(self.open()?);
            // What came of age while no daemon ran.
            self.prune(limits, now)?;
        }
        if self.file.as_ref().is_some_and(full) {
            self.file = None;
            std::fs::rename(self.folder.join(PRESENT), self.free_name(now)?)?;
            self.file = Some(self.open()?);
            self.prune(limits, now)?;
        }
        let Some(open) = &mut self.file else { return Ok(()) };
        let written = open.file.write_all(lines);
        if written.is_err() {
            // Looked at anew the next time: what is there may end in half a line.
            self.file = None;
        } else {
            open.bytes = open.bytes.saturating_add(length(lines));
        }
        written
    }

    /// A name for a file that ends now. Files stand in the order of their names, so that one which ends
    /// in the same millisecond as another, or after the clock was set back, is named behind it.
    fn free_name(&self, now: Duration) -> io::Result<PathBuf> {
        let last = earlier(&self.folder)?.iter().map(|(ended_ms, _)| *ended_ms).max();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let ended_ms = last.map_or(now, |last| now.max(last.saturating_add(1)));
        Ok(self.folder.join(format!("{}{ended_ms}{}", EARLIER.0, EARLIER.1)))
    }

    /// Opens the present file behind its last whole line.
    fn open(&self) -> io::Result<Open> {
        statefile::private_folder(&self.folder)?;
        let path = self.folder.join(PRESENT);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)?;
        statefile::make_private(&path)?;
        let about = file.metadata()?;
        let end = last_line_end(&mut file, about.len())?;
        if end < about.len() {
            file.set_len(end)?;
        }
        let bytes = file.seek(SeekFrom::End(0))?;
        let since_1970 = |time: std::time::SystemTime| {
            time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
        };
        let now = clock::wall();
        // Where the file system keeps no such time, it counts from now.
        let begun = about.created().map_or(now, since_1970).min(now);
        Ok(Open { file, bytes, begun })
    }

    /// Takes away what was kept for its time, and the oldest of too many.
    pub(super) fn prune(&self, limits: &AuditSettings, now: Duration) -> io::Result<()> {
        let mut earlier = earlier(&self.folder)?;
        earlier.sort_by_key(|(ended_ms, _)| std::cmp::Reverse(*ended_ms));
        for (at, (ended_ms, path)) in earlier.iter().enumerate() {
            let age = now.saturating_sub(Duration::from_millis(*ended_ms));
            // With the present one.
            if at + 1 >= limits.max_files || age >= limits.keep {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

fn length(lines: &[u8]) -> u64 {
    u64::try_from(lines.len()).unwrap_or(u64::MAX)
}

/// Behind the last newline: what follows was cut off by a crash.
fn last_line_end(file: &mut File, length: u64) -> io::Result<u64> {
    /// Far longer than a line without arguments.
    const TAIL: u64 = 64 * 1024;
    let from = length.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    io::Read::read_to_end(file, &mut tail)?;
    let end = tail.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
    Ok(end.map_or(if from == 0 { 0 } else { length }, |end| from + length_of(end)))
}

fn length_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Files that have ended: when, in milliseconds since 1970, and where.
fn earlier(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let ended = name.strip_prefix(EARLIER.0).and_then(|name| name.strip_suffix(EARLIER.1));
        if let Some(ended) = ended.and_then(|ended| ended.parse().ok()) {
            found.push((ended, path));
        }
    }
    Ok(found)
}

/// Gives every line that is kept to `each`, oldest first.
pub(super) fn read(folder: &Path, mut each: impl FnMut(&str)) -> io::Result<()> {
    let mut files = earlier(folder)?;
    files.sort();
    let present = folder.join(PRESENT);
    for path in files.into_iter().map(|(_, path)| path).chain([present]) {
        let file = match File::open(&path) {
            // It may have gone meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        for line in BufReader::new(file).lines() {
            each(&line?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn limits() -> AuditSettings {
        let hour = Duration::from_hours(1);
        AuditSettings {
            enabled: true,
            arguments: false,
            max_size: 10,
            max_files: 3,
            rotate_after: hour,
            keep: hour * 24,
            queue: 10,
            flush: Duration::ZERO,
        }
    }

    fn lines(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        read(folder, |line| found.push(line.to_owned())).unwrap();
        found
    }

    /// O-03: bounded in size and number, for its owner alone.
    #[test]
    fn o03_files_are_rotated_and_go() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("audit");
        assert!(lines(&folder).is_empty());
        let mut journal = Journal::new(folder.clone());
        for number in 0..6 {
            journal.write(format!("line {number}\n").as_bytes(), &limits()).unwrap();
        }
        assert_eq!(lines(&folder), ["line 3", "line 4", "line 5"]);
        for entry in std::fs::read_dir(&folder).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let late = clock::wall() + limits().keep + Duration::from_secs(1);
        journal.prune(&limits(), late).unwrap();
        assert_eq!(lines(&folder), ["line 5"]);
    }

    #[test]
    fn half_a_line_is_left_out_and_the_next_one_is_whole() {
        let top = tempfile::tempdir().unwrap();
        let mut journal = Journal::new(top.path().to_owned());
        journal.write(b"one\n", &limits()).unwrap();
        let path = top.path().join(PRESENT);
        statefile::write(&path, b"one\ntw").unwrap();
        let mut journal = Journal::new(top.path().to_owned());
        journal.write(b"three\n", &AuditSettings { max_size: 100, ..limits() }).unwrap();
        assert_eq!(lines(top.path()), ["one", "three"]);
    }
}
