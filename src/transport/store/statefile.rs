//! Files written whole: temporary file, fsync, rename; mode 0600 in folders of mode 0700.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::transport::clock;

/// Writes a file so that a reader, and a crash at any moment, sees the old one or the new one.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_to(&Real, path, bytes)
}

/// What a file is written with, step by step: the disk, or in tests one that fails on purpose.
trait Disk {
    type File;

    /// A new file, for its owner alone.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    fn fill(&self, file: &mut Self::File, bytes: &[u8]) -> io::Result<()>;
    /// What was written stays, whatever happens then.
    fn sync(&self, file: &Self::File) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Names in it stay.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
}

struct Real;

impl Disk for Real {
    type File = File;

    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    }

    fn fill(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        OpenOptions::new().read(true).open(folder)?.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }
}

fn write_to<D: Disk>(disk: &D, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let suffix = u64::from_ne_bytes(clock::random());
    let temporary = folder.join(format!(".{name}.{suffix:016x}"));
    let written = write_new(disk, &temporary, bytes).and_then(|()| disk.rename(&temporary, path));
    if written.is_err() {
        let _ = disk.remove(&temporary);
    }
    written?;
    // The rename is durable when the folder is. Some file systems refuse to sync a folder.
    let _ = disk.sync_folder(folder);
    Ok(())
}

fn write_new<D: Disk>(disk: &D, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = disk.create(path)?;
    disk.fill(&mut file, bytes)?;
    disk.sync(&file)
}

/// The file's content; `None` if there is no such file.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes sure that the folder is there, with its parents, and that only its owner can enter it. One
/// that everybody may write into is refused.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o002 != 0 {
        // A shared folder such as /tmp: closing it would hurt others.
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write into it"));
    }
    if mode & 0o077 != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Closes a file to everybody but its owner; whether it was open to others.
pub fn make_private(path: &Path) -> io::Result<bool> {
    let was_open = std::fs::metadata(path)?.permissions().mode() & 0o077 != 0;
    if was_open {
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    }
    Ok(was_open)
}

/// Puts a file that cannot be read out of the way, under a name that tells so; returns the name.
pub fn set_aside(path: &Path) -> io::Result<std::path::PathBuf> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
    name.push(format!(".unreadable-{}", clock::wall().as_secs()));
    let aside = path.with_file_name(name);
    std::fs::rename(path, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod crash_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("a/b");
        private_folder(&folder).unwrap();
        let path = folder.join("file.json");
        assert_eq!(read(&path).unwrap(), None);
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"two");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn an_open_folder_is_closed() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("open");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
        assert!(private_folder(&folder).is_err());
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        private_folder(&folder).unwrap();
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn an_unreadable_file_is_put_aside() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("x.redb");
        write(&path, b"rubbish").unwrap();
        let aside = set_aside(&path).unwrap();
        assert!(!path.exists());
        assert_eq!(read(&aside).unwrap().unwrap(), b"rubbish");
    }
}
