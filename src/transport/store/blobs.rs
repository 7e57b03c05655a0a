//! A folder of files that are written whole and known by their names, which mcpx draws itself: for what
//! is too large for a table. All of it blocks: it belongs on a blocking thread.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::statefile;

/// One such folder. It is made, for its owner alone, by the first write.
#[derive(Debug, Clone)]
pub struct Blobs {
    folder: PathBuf,
}

/// A file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// When it was written, in milliseconds since 1970.
    pub written_ms: u64,
}

impl Blobs {
    /// The files in `folder`.
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where a file of this name is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file; it is on disk when this returns, and never there in part.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        statefile::private_folder(&self.folder)?;
        statefile::write(&self.path(name), bytes)
    }

    /// Opens a file for reading.
    pub fn open(&self, name: &str) -> io::Result<File> {
        File::open(self.path(name))
    }

    /// Takes a file away, if it is there.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Puts a file that is not what it should be out of the way; returns its new name.
    pub fn set_aside(&self, name: &str) -> io::Result<PathBuf> {
        statefile::set_aside(&self.path(name))
    }

    /// The files whose names `is_ours` knows, after taking away what writes left that never ended.
    pub fn look(&self, is_ours: impl Fn(&str) -> bool) -> io::Result<Vec<Found>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if is_unfinished(&name, &is_ours) {
                // It stays where that fails, and is tried again at the next start.
                let _ = std::fs::remove_file(entry.path());
            }
            if !is_ours(&name) {
                continue;
            }
            let about = entry.metadata()?;
            let written =
                about.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            let written_ms = written.unwrap_or_default().as_millis();
            found.push(Found {
                name,
                size: about.len(),
                written_ms: u64::try_from(written_ms).unwrap_or(u64::MAX),
            });
        }
        Ok(found)
    }
}

/// As [`statefile::write`] names files until they are whole: `.name.suffix`.
fn is_unfinished(name: &str, is_ours: impl Fn(&str) -> bool) -> bool {
    let inner = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.'));
    inner.is_some_and(|(name, _)| is_ours(name))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests write their files")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_are_private_found_again_and_never_there_in_part() {
        let top = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(top.path().join("blobs"));
        let ours = |name: &str| name.starts_with('a');
        assert_eq!(blobs.look(ours).unwrap(), []);
        blobs.remove("a1").unwrap();
        blobs.write("a1", b"one").unwrap();
        blobs.write("b1", b"not ours").unwrap();
        let unfinished = blobs.path(".a2.0123456789abcdef");
        std::fs::write(&unfinished, b"tor").unwrap();
        let found = blobs.look(ours).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].size), ("a1", 3));
        assert!(found[0].written_ms > 0);
        assert!(!unfinished.exists());
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(blobs.path("a1")), mode(top.path().join("blobs"))), (0o600, 0o700));
        let aside = blobs.set_aside("a1").unwrap();
        assert!(aside.exists() && blobs.open("a1").is_err());
    }
}
