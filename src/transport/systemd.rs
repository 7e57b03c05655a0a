//! The service manager's side of a daemon: sockets that it has opened, and what it is told
//! (`sd_listen_fds(3)`, `sd_notify(3)`).
//!
//! Sockets are named by `FileDescriptorName=`: `control` is the control socket, `http` listens for
//! hosts over HTTP. Whoever opened them keeps them: a port never refuses while one daemon ends and the
//! next begins.

use std::ffi::OsStr;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixListener};
use std::time::Duration;

use listenfd::ListenFd;

use super::clock;
use super::environment::Variables;

/// What a service manager has handed over.
#[derive(Debug, Default)]
pub struct Activation {
    /// The control socket.
    pub control: Option<UnixListener>,
    /// Where hosts over HTTP are listened for.
    pub http: Vec<TcpListener>,
    /// Who wants to hear of us.
    pub notify: Option<Notify>,
}

impl Activation {
    /// Takes what `own`, our environment, speaks of. Once, and before there is a second thread: the
    /// variables are taken away. A socket that cannot be used is an error that names it, because its
    /// peers would wait for ever.
    pub fn take(own: &Variables) -> io::Result<Self> {
        let text = |name: &str| own.get(OsStr::new(name))?.to_str().map(str::to_owned);
        let mut taken = Self { notify: Notify::find(&text), ..Self::default() };
        // Without a process id they may be a parent's, which has forgotten to close them.
        if text("LISTEN_PID").and_then(|pid| pid.parse().ok()) != Some(std::process::id()) {
            return Ok(taken);
        }
        let names = text("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut sockets = ListenFd::from_env();
        for at in 0..sockets.len() {
            let name = names.next().unwrap_or_default();
            let unusable = |error: io::Error| {
                io::Error::new(error.kind(), format!("the handed socket `{name}`: {error}"))
            };
            match name {
                "control" => taken.control = sockets.take_unix_listener(at).map_err(unusable)?,
                "http" => taken.http.extend(sockets.take_tcp_listener(at).map_err(unusable)?),
                _ => {
                    let text = "it is neither `control` nor `http` (FileDescriptorName=)";
                    return Err(unusable(io::Error::new(io::ErrorKind::InvalidInput, text)));
                }
            }
        }
        if let Some(control) = &taken.control {
            control.set_nonblocking(true)?;
        }
        for http in &taken.http {
            http.set_nonblocking(true)?;
        }
        Ok(taken)
    }
}

/// The handed socket that listens at `wanted`, or else the only one; with its address.
pub fn handed_at(handed: &[TcpListener], wanted: SocketAddr) -> Option<(&TcpListener, SocketAddr)> {
    let mut all = handed.iter().filter_map(|it| Some((it, it.local_addr().ok()?)));
    let first = all.clone().next();
    all.find(|(_, address)| *address == wanted).or(first)
}

/// The way to tell the service manager something.
#[derive(Debug)]
pub struct Notify {
    socket: UnixDatagram,
    address: UnixAddr,
    watchdog: Option<Duration>,
}

impl Notify {
    fn find(text: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let path = text("NOTIFY_SOCKET")?;
        let address = match path.strip_prefix('@') {
            Some(name) => hidden(name),
            None => UnixAddr::from_pathname(&path),
        };
        let ours =
            text("WATCHDOG_PID").is_none_or(|pid| pid.parse().ok() == Some(std::process::id()));
        let micros = text("WATCHDOG_USEC").filter(|_| ours).and_then(|text| text.parse().ok());
        let watchdog = micros.map(Duration::from_micros).filter(|it| !it.is_zero());
        let socket = UnixDatagram::unbound().ok()?;
        // A manager that does not read costs its own knowledge, and nothing of ours.
        socket.set_nonblocking(true).ok()?;
        Some(Self { socket, address: address.ok()?, watchdog })
    }

    /// Says it, in `sd_notify`'s words.
    pub fn tell(&self, state: &str) {
        if let Err(error) = self.socket.send_to_addr(state.as_bytes(), &self.address) {
            tracing::debug!(%error, state, "the service manager was not told");
        }
    }

    /// The configuration is being read again.
    pub fn reloading(&self) {
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", clock::monotonic().as_micros()));
    }

    /// In what time it wants to hear that we are alive.
    pub const fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }
}

#[cfg(target_os = "linux")]
fn hidden(name: &str) -> io::Result<UnixAddr> {
    <UnixAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)
}

/// Names without a file are Linux's alone.
#[cfg(not(target_os = "linux"))]
fn hidden(_name: &str) -> io::Result<UnixAddr> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Option<Notify> {
        Notify::find(&|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    fn read(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 200];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn d21_the_manager_is_told_by_path_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let notify = found(&[("NOTIFY_SOCKET", path.to_str().unwrap())]).unwrap();
        notify.tell("READY=1");
        assert_eq!(read(&manager), "READY=1");
        notify.reloading();
        let said = read(&manager);
        let micros = said.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(micros.parse::<u128>().unwrap() > 0);
        let name = format!("mcpx-test-{}", std::process::id());
        let hidden = UnixDatagram::bind_addr(&hidden(&name).unwrap()).unwrap();
        found(&[("NOTIFY_SOCKET", &format!("@{name}"))]).unwrap().tell("STOPPING=1");
        assert_eq!(read(&hidden), "STOPPING=1");
        drop(hidden);
        // One that has gone is no failure.
        found(&[("NOTIFY_SOCKET", &format!("@{name}"))]).unwrap().tell("WATCHDOG=1");
        assert!(found(&[]).is_none());
    }

    #[test]
    fn d21_the_watchdog_is_ours_only() {
        let own = std::process::id().to_string();
        let after = |more: &[(&str, &str)]| {
            let mut all = vec![("NOTIFY_SOCKET", "@x")];
            all.extend(more);
            found(&all).unwrap().watchdog()
        };
        let five = Some(Duration::from_secs(5));
        assert_eq!(after(&[("WATCHDOG_USEC", "5000000")]), five);
        assert_eq!(after(&[("WATCHDOG_USEC", "5000000"), ("WATCHDOG_PID", &own)]), five);
        assert_eq!(after(&[("WATCHDOG_USEC", "5000000"), ("WATCHDOG_PID", "1")]), None);
        assert_eq!(after(&[("WATCHDOG_USEC", "0")]), None);
        assert_eq!(after(&[]), None);
    }
}
