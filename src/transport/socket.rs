//! The control socket: where it is, who may connect, and the stale file of a dead daemon (D-22).
//!
//! `$MCPX_RUNTIME_DIR/control.sock`, else `$XDG_RUNTIME_DIR/mcpx/control.sock`, else the same in a
//! folder under the state folder. The folder is 0700 before the socket is in it, so that nobody else
//! can reach it even for the moment before it is made 0600. One daemon per runtime folder: it holds
//! the lock on `daemon.lock` for its life, and whoever holds it may take away a stale socket.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::{Pid, Uid, User};
use tokio::net::{UnixListener, UnixStream};

use super::store::statefile;

/// The name of the socket in the runtime folder.
const SOCKET: &str = "control.sock";
/// The name of the lock file in it.
const LOCK: &str = "daemon.lock";
/// Bytes on their way between shim and daemon, asked of the kernel for each side: a message of a
/// megabyte then takes one turn of the other side and not six. The kernel gives at most
/// `net.core.wmem_max`, and takes memory only for what is on its way.
const IN_TRANSIT: usize = 1024 * 1024;
/// Longest socket path that every system takes (`sun_path` is 104 bytes on some, 108 on Linux).
const LONGEST: usize = 103;

/// Gives the sending side of an attach stream room for large messages.
pub(super) fn widen(stream: &UnixStream) {
    // Without it large messages are slower, and nothing else.
    let _ = setsockopt(stream, sockopt::SndBuf, &IN_TRANSIT);
}

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another daemon holds the lock.
    #[error(
        "a daemon{} runs already for {}; `mcpx daemon --replace` takes over from it",
        .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default(), folder.display()
    )]
    Taken {
        /// The runtime folder.
        folder: PathBuf,
        /// Its process, as it wrote it into the lock file.
        pid: Option<u32>,
    },
    /// The system takes no socket of so long a name.
    #[error(
        "the socket path {} has {} bytes, and {LONGEST} are the most; set MCPX_RUNTIME_DIR to a \
         shorter folder", .0.display(), .0.as_os_str().len()
    )]
    TooLong(PathBuf),
    /// Something that is no socket stands in its place.
    #[error("{} is in the way: it is no socket", .0.display())]
    InTheWay(PathBuf),
    /// Another program listens there, though no daemon runs.
    #[error(
        "{} is listened on already, though no daemon runs: that is systemd, where `mcpx install` was \
         used. `systemctl --user start mcpx.service` starts the daemon (without `--user` for the \
         system's), `mcpx uninstall` gives the socket back", .0.display()
    )]
    Held(PathBuf),
    /// The daemon that runs is a service.
    #[error(
        "the daemon that runs (pid {pid}) is the service {unit}, which only systemd replaces: \
         `systemctl {}restart {unit}`", if *user { "--user " } else { "" }
    )]
    Service {
        /// Its process.
        pid: u32,
        /// Its unit.
        unit: String,
        /// Of a user's own service manager.
        user: bool,
    },
    /// The folder belongs to another user.
    #[error("{} belongs to another user (uid {uid})", folder.display())]
    Foreign {
        /// The runtime folder.
        folder: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// The system refused something.
    #[error("{} cannot be used: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The runtime folder of a daemon, locked for as long as this lives.
#[derive(Debug)]
pub struct RuntimeLock {
    folder: PathBuf,
    lock: File,
}

/// The socket's path in a runtime folder.
pub fn path(folder: &Path) -> PathBuf {
    folder.join(SOCKET)
}

/// Takes the lock of a runtime folder, making the folder where it is not there.
pub fn lock(folder: &Path) -> Result<RuntimeLock, SocketError> {
    let failed = |path: &Path, source| SocketError::Io { path: path.to_owned(), source };
    statefile::private_folder(folder).map_err(|source| failed(folder, source))?;
    let owner = std::fs::metadata(folder).map_err(|source| failed(folder, source))?;
    let uid = std::os::unix::fs::MetadataExt::uid(&owner);
    if uid != Uid::effective().as_raw() {
        return Err(SocketError::Foreign { folder: folder.to_owned(), uid });
    }
    let path = folder.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|source| failed(&path, source))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            let pid = text.trim().parse().ok();
            return Err(SocketError::Taken { folder: folder.to_owned(), pid });
        }
        Err(TryLockError::Error(source)) => return Err(failed(&path, source)),
    }
    // For the message of the next one only: the lock is what counts.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", Pid::this()));
    Ok(RuntimeLock { folder: folder.to_owned(), lock: file })
}

/// The service that a process runs as, where it is ours: an error that says how to replace it.
pub fn service_of(pid: u32) -> Option<SocketError> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| {
        // Where both hierarchies are mounted, systemd's is the one that it keeps processes in.
        line.strip_prefix("0::").or_else(|| Some(line.split_once(":name=systemd:")?.1))
    })?;
    let unit =
        path.rsplit('/').find(|part| part.starts_with("mcpx") && part.ends_with(".service"))?;
    let user = path.contains("/user@");
    Some(SocketError::Service { pid, unit: unit.to_owned(), user })
}

/// Whether a process listens on a socket, without a word to it: one that is started by a connection
/// would be.
fn is_listened_on(path: &Path) -> bool {
    let Ok(known) = std::fs::read_to_string("/proc/net/unix") else { return false };
    known.lines().skip(1).any(|line| {
        // Num RefCount Protocol Flags Type St Inode Path
        let mut parts = line.split_whitespace();
        let listens = parts.nth(3).and_then(|flags| u32::from_str_radix(flags, 16).ok());
        listens.is_some_and(|flags| flags & ACCEPTS != 0)
            && parts.nth(3).is_some_and(|found| Path::new(found) == path)
    })
}

/// The flag of a socket that listens in `/proc/net/unix` (`__SO_ACCEPTCON`).
const ACCEPTS: u32 = 1 << 16;

impl RuntimeLock {
    /// The control socket as it was `handed` over, or else bound here.
    pub fn listen(
        &self,
        handed: Option<std::os::unix::net::UnixListener>,
    ) -> Result<UnixListener, SocketError> {
        let Some(handed) = handed else { return self.bind() };
        let path = path(&self.folder);
        let failed = |source| SocketError::Io { path: path.clone(), source };
        let address = handed.local_addr().map_err(failed)?;
        if address.as_pathname() != Some(&path) {
            let text = format!(
                "the service manager listens at {address:?} instead; ListenStream= of mcpx.socket and \
                 the runtime folder (MCPX_RUNTIME_DIR) must agree"
            );
            return Err(failed(io::Error::new(io::ErrorKind::AddrNotAvailable, text)));
        }
        UnixListener::from_std(handed).map_err(failed)
    }

    /// Binds the control socket. A stale file of a dead daemon is taken away: whoever holds the lock
    /// knows that nobody listens there. Needs the runtime.
    pub fn bind(&self) -> Result<UnixListener, SocketError> {
        let path = path(&self.folder);
        if path.as_os_str().len() > LONGEST {
            return Err(SocketError::TooLong(path));
        }
        let failed = |source| SocketError::Io { path: path.clone(), source };
        match std::fs::symlink_metadata(&path) {
            Ok(there) if there.file_type().is_socket() => {
                if is_listened_on(&path) {
                    return Err(SocketError::Held(path));
                }
                std::fs::remove_file(&path).map_err(failed)?;
            }
            Ok(_) => return Err(SocketError::InTheWay(path)),
            Err(_) => {}
        }
        let listener = UnixListener::bind(&path).map_err(failed)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(listener)
    }

    /// A second hold on the lock: it is free once both are dropped. For what must outlast the daemon's
    /// parts, because the next daemon may not begin before they have let go of the state folder.
    pub fn hold(&self) -> Result<impl Send + use<>, SocketError> {
        let held = self.lock.try_clone();
        held.map_err(|source| SocketError::Io { path: self.folder.join(LOCK), source })
    }

    /// Takes the socket away, at the end: who dials then sees at once that no daemon runs.
    pub fn remove_socket(&self) {
        let _ = std::fs::remove_file(path(&self.folder));
    }
}

/// Whether this process, a daemon's, holds the lock of a runtime folder.
pub fn is_held_by(folder: &Path, pid: u32) -> bool {
    let Ok(mut file) = File::open(folder.join(LOCK)) else { return false };
    let mut text = String::new();
    // The lock is tried, which takes it for a moment, only while it is this process's.
    let named = file.read_to_string(&mut text).is_ok() && text.trim().parse() == Ok(pid);
    named && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Whether somebody listens on the socket.
pub async fn answers(path: &Path) -> bool {
    UnixStream::connect(path).await.is_ok()
}

/// The peer's user, by number, where it may speak: it is our own user, or root.
pub fn admit(stream: &UnixStream) -> Option<u32> {
    let uid = stream.peer_cred().map(|peer| peer.uid());
    match uid {
        Ok(uid) if uid == Uid::effective().as_raw() || uid == 0 => Some(uid),
        _ => {
            tracing::warn!(?uid, "a connection of another user was refused");
            None
        }
    }
}

/// The name of a user, or its number where it has none. Blocks: the system may look it up anywhere.
pub fn user_name(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map_or_else(|| uid.to_string(), |user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn d22_the_socket_is_private_and_admits_ourselves() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("run/mcpx");
        let lock = lock(&folder).unwrap();
        let listener = lock.bind().unwrap();
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&path(&folder)), 0o600);
        let (near, far) = tokio::join!(UnixStream::connect(path(&folder)), listener.accept());
        near.unwrap();
        assert_eq!(admit(&far.unwrap().0), Some(Uid::effective().as_raw()));
        assert!(!user_name(Uid::effective().as_raw()).is_empty());
        assert_eq!(user_name(u32::MAX - 7), (u32::MAX - 7).to_string());
        lock.remove_socket();
        assert!(!path(&folder).exists());
    }

    #[tokio::test]
    async fn d22_a_second_daemon_is_told_of_the_first_and_a_stale_file_is_none() {
        let top = tempfile::tempdir().unwrap();
        let first = lock(top.path()).unwrap();
        let listener = first.bind().unwrap();
        let refused = lock(top.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("(pid {})", std::process::id())), "{refused}");
        drop((first, listener));
        assert!(path(top.path()).exists(), "stale");
        let next = lock(top.path()).unwrap();
        let listener = next.bind().unwrap();
        let again = next.bind().unwrap_err();
        assert!(matches!(again, SocketError::Held(_)), "{again}");
        let (near, far) = tokio::join!(UnixStream::connect(path(top.path())), listener.accept());
        assert!(near.is_ok() && far.is_ok());
    }

    #[tokio::test]
    async fn d22_what_is_no_socket_is_left_alone() {
        let top = tempfile::tempdir().unwrap();
        statefile::write(&path(top.path()), b"mine").unwrap();
        let error = lock(top.path()).unwrap().bind().unwrap_err();
        assert!(matches!(error, SocketError::InTheWay(_)));
        assert_eq!(std::fs::read(path(top.path())).unwrap(), b"mine");
    }

    #[tokio::test]
    async fn d22_too_long_a_path_says_what_to_do() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("x".repeat(120));
        let error = lock(&folder).unwrap().bind().unwrap_err().to_string();
        assert!(error.contains("set MCPX_RUNTIME_DIR to a shorter folder"), "{error}");
    }
}
