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

/// Becomes a fresh image of this program with other arguments: same process, same streams, none of the
/// memory used so far. Returns only where that failed.
#[expect(clippy::disallowed_methods, reason = "no process is started, this one goes on")]
pub fn become_again(program: &Path, args: &[OsString]) -> std::io::Error {
    Command::new(program).args(args).exec()
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

#[cfg(test)]
mod tests {
    use super::*;

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
