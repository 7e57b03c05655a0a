//! The units of systemd that `mcpx install` writes: those of `config/systemd`, with what differs from
//! one machine to the next (D-21). Text in, text out.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Whose service manager runs the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The user's own.
    User,
    /// The system's, as this user.
    System(String),
}

/// What the units depend on.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Whose units.
    pub manager: Owner,
    /// The program.
    pub program: PathBuf,
    /// `--config`, where it is not the user's own file.
    pub config: Option<PathBuf>,
    /// `PATH` of whoever installs: servers are looked for in it.
    pub path: Option<String>,
    /// `http.listen`.
    pub http: Option<SocketAddr>,
    /// How long the daemon may take to end.
    pub stop: Duration,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub text: String,
}

/// The unit that runs the daemon.
pub const SERVICE: &str = "mcpx.service";
/// The unit of the control socket.
pub const SOCKET: &str = "mcpx.socket";
/// The unit of the address for hosts over HTTP.
pub const HTTP: &str = "mcpx-http.socket";
/// How much longer than the daemon's own limit the service manager waits.
const BEYOND: Duration = Duration::from_secs(15);

const USER: [&str; 3] = [
    include_str!("../../config/systemd/user/mcpx.service"),
    include_str!("../../config/systemd/user/mcpx.socket"),
    include_str!("../../config/systemd/user/mcpx-http.socket"),
];
const SYSTEM: [&str; 3] = [
    include_str!("../../config/systemd/system/mcpx.service"),
    include_str!("../../config/systemd/system/mcpx.socket"),
    include_str!("../../config/systemd/system/mcpx-http.socket"),
];

impl Wanted {
    /// The units, the service first. The one for hosts over HTTP is among them where there is an address.
    pub fn units(&self) -> Vec<Unit> {
        let [service, socket, http] = match self.manager {
            Owner::User => USER,
            Owner::System(_) => SYSTEM,
        };
        let mut units = vec![
            Unit { name: SERVICE, text: self.service(service) },
            Unit { name: SOCKET, text: self.owned(socket) },
        ];
        if let Some(address) = self.http {
            let text = http.replace("127.0.0.1:7332", &address.to_string());
            units.push(Unit { name: HTTP, text });
        }
        units
    }

    fn owned(&self, text: &str) -> String {
        match &self.manager {
            Owner::User => text.to_owned(),
            Owner::System(user) => {
                let user = user.replace('%', "%%");
                text.replace("User=mcpx\n", &format!("User={user}\n"))
            }
        }
    }

    fn service(&self, text: &str) -> String {
        let mut program = word(&self.program.to_string_lossy());
        if let Some(config) = &self.config {
            program.push_str(" --config ");
            program.push_str(&word(&config.to_string_lossy()));
        }
        let stop = self.stop.saturating_add(BEYOND).as_secs();
        let mut text = self
            .owned(text)
            .replace("/usr/bin/mcpx", &program)
            .replace("TimeoutStopSec=45\n", &format!("TimeoutStopSec={stop}\n"));
        if let Some(path) = &self.path {
            let line = format!("[Service]\nEnvironment={}\n", word(&format!("PATH={path}")));
            text = text.replace("[Service]\n", &line);
        }
        if self.http.is_none() {
            text = text.replace("Wants=mcpx-http.socket\n", "").replace(" mcpx-http.socket", "");
        }
        text
    }
}

/// Where a service manager reads units: the user's folder is in `config`, the folder of the user's
/// configuration.
pub fn folder(manager: &Owner, config: &Path) -> PathBuf {
    match manager {
        Owner::User => config.join("systemd/user"),
        Owner::System(_) => PathBuf::from("/etc/systemd/system"),
    }
}

/// A word of a command line or an assignment as units spell it (`systemd.service(5)`, "Command Lines").
fn word(text: &str) -> String {
    let text = text.replace('%', "%%").replace('$', "$$");
    if text.chars().any(|letter| letter.is_whitespace() || "\"'\\".contains(letter)) {
        return format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(manager: Owner) -> Wanted {
        Wanted {
            manager,
            program: PathBuf::from("/opt/my tools/mcpx"),
            config: None,
            path: Some("/home/a/.nvm/bin:/usr/bin:/100%".to_owned()),
            http: "[::1]:99".parse().ok(),
            stop: Duration::from_secs(40),
        }
    }

    #[test]
    fn d21_units_have_what_this_machine_needs() {
        let [service, socket, http] = <[Unit; 3]>::try_from(wanted(Owner::User).units()).unwrap();
        for line in [
            "ExecStart=\"/opt/my tools/mcpx\" daemon",
            "ExecReload=\"/opt/my tools/mcpx\" reload",
            "Environment=PATH=/home/a/.nvm/bin:/usr/bin:/100%%",
            "TimeoutStopSec=55",
            "Type=notify",
        ] {
            assert!(service.text.lines().any(|found| found == line), "{line}\n{}", service.text);
        }
        assert!(
            socket.text.contains("ListenStream=%t/mcpx/control.sock\nFileDescriptorName=control")
        );
        assert!(http.text.contains("ListenStream=[::1]:99\nFileDescriptorName=http"));
        let own = Owner::System("ada".to_owned());
        let [service, socket, _] = <[Unit; 3]>::try_from(wanted(own).units()).unwrap();
        assert!(
            service.text.contains("\nUser=ada\n") && socket.text.contains("\nSocketUser=ada\n")
        );
        for text in [service.text, socket.text] {
            assert!(!text.contains("User=mcpx"), "{text}");
        }
    }

    #[test]
    fn d21_without_an_address_there_is_no_socket_for_it() {
        let config = Some(PathBuf::from("/c.toml"));
        let wanted = Wanted { http: None, config, path: None, ..wanted(Owner::User) };
        let units = wanted.units();
        assert_eq!(units.len(), 2);
        assert!(!units[0].text.contains(HTTP) && !units[0].text.contains("Environment="));
        assert!(
            units[0].text.contains("ExecStart=\"/opt/my tools/mcpx\" --config /c.toml daemon\n")
        );
        assert!(units[0].text.contains("Sockets=mcpx.socket\n"), "{}", units[0].text);
    }
}
