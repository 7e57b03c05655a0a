//! This process itself.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Leaves the session of whoever started this process, so that the end of their terminal and its
/// signals are none of ours. For a daemon that a command or a shim has started; it fails where this
/// process leads a group, as one does that a shell has started.
pub fn own_session() -> std::io::Result<()> {
    nix::unistd::setsid()?;
    Ok(())
}

/// What glibc's allocator reads at the start of a process, and nowhere else. Left to itself it learns
/// from the first large message to keep all that follow in its heap, where a small block above them
/// holds tens of megabytes for good. With these, whatever is larger than half a megabyte has pages of its
/// own, which go back when it is freed, and the heap keeps at most 8 MiB of room at its end. Other
/// allocators do not read them.
const HEAP: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "524288"), ("MALLOC_TRIM_THRESHOLD_", "8388608")];

/// Whether this image was started with what [`become_again`] gives, or somebody's own choice of it.
#[expect(clippy::disallowed_methods, reason = "nothing is configured by it")]
pub fn gives_memory_back() -> bool {
    HEAP.iter().any(|(name, _)| std::env::var_os(name).is_some())
}

/// Becomes a fresh image of this program with other arguments: same process, same streams, none of the
/// memory used so far, and an allocator that gives large blocks back. Returns only where that failed.
#[expect(clippy::disallowed_methods, reason = "no process is started, this one goes on")]
pub fn become_again(program: &Path, args: &[OsString]) -> std::io::Error {
    Command::new(program).args(args).envs(HEAP).exec()
}

/// Starts a process of this program, with our streams and an allocator that gives large blocks back. It
/// outlives what it is given to.
#[expect(clippy::disallowed_methods, reason = "our own program, not an upstream")]
pub fn start_again(program: &Path, args: &[OsString]) -> std::io::Result<tokio::process::Child> {
    tokio::process::Command::new(program).args(args).envs(HEAP).spawn()
}

/// Memory of this process that is in RAM, in bytes, where the system tells.
pub fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// How many files and sockets this process has open, where the system tells.
pub fn open_files() -> Option<usize> {
    let count = std::fs::read_dir("/proc/self/fd").ok()?.count();
    // Without the one that reads the folder.
    Some(count.saturating_sub(1))
}

/// How many files and sockets this process may have open, where the system tells.
pub fn most_open_files() -> Option<u64> {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft)
}

/// Bytes that are free for us on the disk of a folder, where the system tells.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let about = nix::sys::statvfs::statvfs(folder).ok()?;
    Some(about.blocks_available().saturating_mul(about.fragment_size()))
}

/// Whether this process may write into a folder.
pub fn may_write(folder: &Path) -> bool {
    use nix::unistd::{AccessFlags, access};
    access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok()
}

/// Processes that run `program` from a file that has been replaced since, as far as we may see them.
pub fn outdated(program: &Path) -> Vec<u32> {
    let mut gone = program.as_os_str().to_owned();
    gone.push(" (deleted)");
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let old = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let file = std::fs::read_link(entry.path().join("exe")).ok()?;
        (file.as_os_str() == gone).then_some(pid)
    };
    let mut found: Vec<u32> = all.filter_map(|entry| old(entry.ok()?)).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_this_process_are_told() {
        let (open, most) = (open_files().unwrap(), most_open_files().unwrap());
        assert!(open > 2 && u64::try_from(open).unwrap() < most, "{open} of {most}");
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(folder.path()).unwrap() > 0 && may_write(folder.path()));
        assert!(outdated(Path::new("/no/such/program")).is_empty());
    }

    #[test]
    fn memory_is_told_and_grows_with_what_is_touched() {
        let grows = || {
            let before = resident_bytes().unwrap();
            let touched = vec![1_u8; 64 << 20];
            let after = resident_bytes().unwrap();
            after > before + (48 << 20) && !touched.is_empty()
        };
        // Other tests of the same process may give memory back meanwhile.
        assert!((0..5).any(|_| grows()));
    }
}
