//! Files of other programs: changed in one step, through links, with their mode; and undone to the byte.
//!
//! Before a file is changed, a record of the change and the bytes that were there are on disk, in a
//! folder of the state folder. So what was interrupted can be undone as well.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::statefile;
use crate::settings::hosts::connect::Where;

/// A change of ours in a file of another program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The host's name.
    pub host: String,
    /// The file, links resolved.
    pub file: PathBuf,
    /// What was put in.
    #[serde(flatten)]
    pub put: Where,
    /// Whether there was a file before.
    pub existed: bool,
    /// Folders that were made for it, the outermost first.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
    /// SHA-256 of the file as it was left.
    pub left: String,
}

/// Where a path leads to: what links lead to, also where nothing is there yet.
pub fn resolved(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    // A link to a file that is not there; its folder may have links of its own.
    let target = std::fs::read_link(path).ok().map(|target| match path.parent() {
        Some(folder) => folder.join(target),
        None => target,
    });
    let path = target.unwrap_or_else(|| path.to_owned());
    let folder = path.parent().and_then(|folder| std::fs::canonicalize(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// The mode of a file, without its type.
fn mode_of(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|metadata| metadata.permissions().mode() & 0o7777)
}

/// Writes a file whole; its mode stays, a new one gets `mode`.
fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mode = mode_of(path).unwrap_or(mode);
    statefile::write(path, bytes)?;
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Makes the folder of a file; gives those that were not there.
fn folders_for(path: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut made: Vec<PathBuf> =
        folder.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    made.reverse();
    std::fs::create_dir_all(folder)?;
    Ok(made)
}

fn digest(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The folder of the records.
#[derive(Debug, Clone)]
pub struct Journal {
    folder: PathBuf,
}

/// How a change was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    /// The bytes from before are back.
    Restored,
    /// The file, which was ours alone, is gone.
    Removed,
    /// Our entry was taken out of a file that has changed since.
    TakenOut,
    /// There was nothing left to undo.
    Gone,
}

impl Journal {
    /// In the state folder.
    pub fn new(state: &Path) -> Self {
        Self { folder: state.join("hosts") }
    }

    fn name(&self, file: &Path, ending: &str) -> PathBuf {
        let digest = digest(file.to_string_lossy().as_bytes());
        self.folder.join(format!("{}{ending}", digest.get(..16).unwrap_or(&digest)))
    }

    /// The record of a file; one that cannot be read counts as none.
    pub fn record(&self, file: &Path) -> Option<Record> {
        let bytes = statefile::read(&self.name(file, ".json")).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    /// The bytes from before.
    pub fn before(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        statefile::read(&self.name(file, ".before"))
    }

    /// Whether a file is as we left it.
    pub fn is_as_left(record: &Record, bytes: &[u8]) -> bool {
        record.left == digest(bytes)
    }

    /// Changes a file: `before` is what is to come back. A new file gets `mode`.
    pub fn change(
        &self,
        mut record: Record,
        before: Option<&[u8]>,
        after: &[u8],
        mode: u32,
    ) -> io::Result<()> {
        statefile::private_folder(&self.folder)?;
        record.left = digest(after);
        record.existed = before.is_some();
        let missing = record.file.parent().unwrap_or(Path::new("."));
        let missing: Vec<PathBuf> =
            missing.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        record.folders.extend(missing.into_iter().rev());
        statefile::write(&self.name(&record.file, ".before"), before.unwrap_or_default())?;
        let bytes = serde_json::to_vec_pretty(&record).map_err(io::Error::other)?;
        statefile::write(&self.name(&record.file, ".json"), &bytes)?;
        folders_for(&record.file)?;
        write(&record.file, after, mode)
    }

    /// Undoes a change where the file is as we left it.
    pub fn restore(&self, record: &Record) -> io::Result<Undone> {
        let before = self.before(&record.file)?.filter(|_| record.existed);
        let undone = if let Some(bytes) = before {
            write(&record.file, &bytes, 0o600)?;
            Undone::Restored
        } else {
            std::fs::remove_file(&record.file)?;
            for folder in record.folders.iter().rev() {
                // What others have put there stays.
                let _ = std::fs::remove_dir(folder);
            }
            Undone::Removed
        };
        self.forget(&record.file)?;
        Ok(undone)
    }

    /// Writes a file from which our entry was taken, and forgets the change.
    pub fn replace(&self, file: &Path, bytes: &[u8]) -> io::Result<Undone> {
        write(file, bytes, 0o600)?;
        self.forget(file)?;
        Ok(Undone::TakenOut)
    }

    /// Forgets a change.
    pub fn forget(&self, file: &Path) -> io::Result<()> {
        for ending in [".json", ".before"] {
            match std::fs::remove_file(self.name(file, ending)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Writes a file of our own configuration, in folders that are made for it: mode 0600.
pub fn write_own(path: &Path, bytes: &[u8]) -> io::Result<()> {
    folders_for(path)?;
    let path = resolved(path);
    write(&path, bytes, 0o600)
}

/// Writes a secret, in a folder that only its owner enters.
pub fn write_secret(path: &Path, value: &str) -> io::Result<()> {
    statefile::private_folder(path.parent().unwrap_or(Path::new(".")))?;
    statefile::write(path, format!("{value}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(file: &Path) -> Record {
        let put = Where { at: vec!["x".into()], key: "m".into(), made: 1, input: false };
        Record {
            host: "cursor".to_owned(),
            file: file.to_owned(),
            put,
            existed: false,
            folders: Vec::new(),
            left: String::new(),
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test writes its own input")]
    fn a_change_is_undone_to_the_byte_through_a_link() {
        let top = tempfile::tempdir().unwrap();
        let (real, link) = (top.path().join("real.json"), top.path().join("link.json"));
        std::fs::write(&real, b"{ \"a\": 1 }\r\n\xff").unwrap();
        std::fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real.json", &link).unwrap();
        let journal = Journal::new(&top.path().join("state"));
        let file = resolved(&link);
        let before = std::fs::read(&file).unwrap();
        journal.change(record(&file), Some(&before), b"changed", 0o600).unwrap();
        assert_eq!(std::fs::read(&link).unwrap(), b"changed");
        assert!(link.symlink_metadata().unwrap().file_type().is_symlink());
        assert_eq!(mode_of(&real), Some(0o640));
        let kept = journal.record(&file).unwrap();
        assert!(kept.existed && Journal::is_as_left(&kept, b"changed"));
        assert_eq!(mode_of(&journal.name(&file, ".before")), Some(0o600));
        assert_eq!(journal.restore(&kept).unwrap(), Undone::Restored);
        assert_eq!(std::fs::read(&real).unwrap(), before);
        assert_eq!(mode_of(&real), Some(0o640));
        assert_eq!(journal.record(&file), None);
    }

    #[test]
    fn a_file_that_was_made_goes_with_its_folders() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("a/b/c.json");
        let journal = Journal::new(&top.path().join("state"));
        journal.change(record(&file), None, b"{}", 0o600).unwrap();
        assert_eq!(mode_of(&file), Some(0o600));
        let kept = journal.record(&file).unwrap();
        assert_eq!(kept.folders, [top.path().join("a"), top.path().join("a/b")]);
        assert_eq!(journal.restore(&kept).unwrap(), Undone::Removed);
        assert!(!top.path().join("a").exists());
    }

    #[test]
    fn a_link_to_nothing_leads_to_its_target() {
        let top = tempfile::tempdir().unwrap();
        let folder = std::fs::canonicalize(top.path()).unwrap();
        std::os::unix::fs::symlink("later.json", folder.join("link.json")).unwrap();
        assert_eq!(resolved(&folder.join("link.json")), folder.join("later.json"));
        assert_eq!(resolved(&folder.join("none.json")), folder.join("none.json"));
    }
}
