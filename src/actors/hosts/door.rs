//! The TCP side towards hosts: opened at `http.listen`, closed and opened again when that changes.
//!
//! No actor but a task beside the accept loop of the control socket, because it has no messages. A port
//! that cannot be had does not keep the daemon from its work: it is said, and tried again when the
//! configuration is read again.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::gate::{Gate, Rules};
use super::token::{self, Token};
use crate::actors::dispatch::Context;
use crate::actors::events::Event;
use crate::actors::instance::spec::Surroundings;
use crate::actors::settings::Current;
use crate::actors::support::task;
use crate::protocol::http_rules::origin::Acceptance;
use crate::settings::Settings;
use crate::settings::typed::HttpSettings;
use crate::transport::http::listen::{ListenLimits, listen};
use crate::transport::http::serve::ServeLimits;
use crate::transport::link::LinkLimits;
use crate::transport::systemd;

/// How the door stands.
#[derive(Debug, Clone, Default)]
pub(crate) enum Door {
    /// It is being opened.
    #[default]
    Opening,
    /// Nothing listens, as configured.
    Shut,
    /// Hosts are served.
    Open {
        address: SocketAddr,
        /// `None` where hosts need none.
        token: Option<Token>,
        /// Whether they do without it all the same.
        open: bool,
    },
    /// Nothing listens, and not as configured.
    Stuck { why: String },
}

impl Door {
    /// Where hosts are served.
    pub(crate) fn url(&self) -> Option<String> {
        let Self::Open { address, .. } = self else { return None };
        let mut address = *address;
        if address.ip().is_unspecified() {
            // It listens everywhere; from here it is reached here.
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        Some(format!("http://{address}/mcp"))
    }
}

/// Shows how the door stands. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct DoorHandle {
    door: Arc<watch::Sender<Door>>,
}

impl DoorHandle {
    pub(crate) fn door(&self) -> Door {
        self.door.borrow().clone()
    }

    /// The same, once it is settled, or after `limit`.
    pub(crate) async fn settled(&self, limit: Duration) -> Door {
        let mut door = self.door.subscribe();
        let settled = door.wait_for(|door| !matches!(door, Door::Opening));
        let _ = tokio::time::timeout(limit, settled).await.map(drop);
        self.door()
    }
}

/// No address that anybody asks for.
const UNSAID: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// What the door is made from.
#[derive(Debug)]
pub(crate) struct DoorArgs {
    pub(crate) context: Arc<Context>,
    /// Where references in the token are looked up.
    pub(crate) around: Arc<dyn Surroundings>,
    /// The folder of our own token.
    pub(crate) keys: PathBuf,
    /// Sockets that the service manager has opened: one of them is listened on in place of our own.
    pub(crate) handed: Vec<std::net::TcpListener>,
}

/// An open door.
struct Opened {
    listener: TcpListener,
    address: SocketAddr,
    rules: Rules,
}

/// Keeps the door as it is configured until `stop` turns true; then it closes it first, lets open
/// answers finish within `host.drain`, and returns.
pub(crate) async fn run(args: DoorArgs, mut stop: watch::Receiver<bool>) {
    let mut settings = args.context.settings.watch();
    while !*stop.borrow() {
        let now = in_force(&mut settings);
        let served = match args.open(&now.http).await {
            Ok(Some(opened)) => args.serve(opened, &now, &mut settings, &mut stop).await,
            Ok(None) => {
                args.show(Door::Shut);
                Next::Wait
            }
            Err(why) => args.stuck(why),
        };
        if matches!(served, Next::Wait) {
            tokio::select! {
                _ = stop.wait_for(|stopped| *stopped) => {}
                changed = settings.changed() => if changed.is_err() { return },
            }
        }
    }
    args.show(Door::Shut);
}

/// What comes after the door was closed.
enum Next {
    /// It is looked at anew.
    Again,
    /// The same, once the configuration has been read again.
    Wait,
}

fn in_force(settings: &mut watch::Receiver<Arc<Current>>) -> Arc<Settings> {
    Arc::clone(&settings.borrow_and_update().loaded.settings)
}

impl DoorArgs {
    fn show(&self, door: Door) {
        self.context.door.door.send_replace(door);
    }

    fn warn(&self, text: String) {
        self.context.events.emit(Event::new("daemon.warning", text));
    }

    fn stuck(&self, why: String) -> Next {
        self.warn(format!("hosts over HTTP are not served: {why}"));
        self.show(Door::Stuck { why });
        Next::Wait
    }

    async fn open(&self, http: &HttpSettings) -> Result<Option<Opened>, String> {
        let Some(wanted) = http.listen else {
            if let Some((_, at)) = systemd::handed_at(&self.handed, UNSAID) {
                self.warn(format!(
                    "http.listen is off, but the service manager listens at {at}, where nobody is \
                     answered; `systemctl --user disable --now mcpx-http.socket` ends that"
                ));
            }
            return Ok(None);
        };
        let failed = |error: io::Error| {
            let taken = error.kind() == io::ErrorKind::AddrInUse;
            let mend = if taken { "; another program has it" } else { "" };
            format!("{wanted} cannot be listened on (setting http.listen): {error}{mend}")
        };
        let listener = match systemd::handed_at(&self.handed, wanted) {
            Some((handed, at)) => {
                if at != wanted {
                    self.warn(format!(
                        "http.listen says {wanted}, but the service manager listens at {at}, and that \
                         holds; `mcpx install` writes mcpx-http.socket anew"
                    ));
                }
                handed.try_clone().and_then(TcpListener::from_std).map_err(failed)?
            }
            None => TcpListener::bind(wanted).await.map_err(failed)?,
        };
        let address = listener.local_addr().map_err(failed)?;
        let rules = self.rules(http, address).await?;
        Ok(Some(Opened { listener, address, rules }))
    }

    async fn rules(&self, http: &HttpSettings, listen: SocketAddr) -> Result<Rules, String> {
        let control = http.token.is_some();
        let token = if http.open && !control {
            None
        } else {
            let (token, said) = token::find(http, &*self.around, &self.keys).await?;
            if let Some(text) = said {
                self.warn(text);
            }
            Some(token)
        };
        let acceptance = Acceptance {
            listen,
            hosts: http.allowed_hosts.clone(),
            origins: http.allowed_origins.clone(),
        };
        Ok(Rules { acceptance, token, open: http.open, control })
    }

    /// Serves until the door is to be closed or moved.
    async fn serve(
        &self,
        opened: Opened,
        settings: &Settings,
        changes: &mut watch::Receiver<Arc<Current>>,
        stop: &mut watch::Receiver<bool>,
    ) -> Next {
        let Opened { listener, address, rules } = opened;
        let (limits, mut http) = (limits(settings), settings.http.clone());
        let (rules, followed) = watch::channel(Arc::new(rules));
        self.say(address, &rules);
        let gate = Arc::new(Gate::new(Arc::clone(&self.context), followed));
        let (close, closed) = watch::channel(false);
        // A task of its own: what is done here meanwhile must keep nobody waiting.
        let mut listening = task::spawn(listen(listener, gate, limits, closed));
        loop {
            let now = tokio::select! {
                ended = &mut listening => {
                    let why = match ended {
                        Ok(Ok(())) => "its listener ended".to_owned(),
                        Ok(Err(error)) => format!("its listener failed: {error}"),
                        Err(error) => format!("its listener failed: {error}"),
                    };
                    return self.stuck(why);
                }
                _ = stop.wait_for(|stopped| *stopped) => None,
                known = changes.changed() => known.ok().map(|()| in_force(changes)),
            };
            let Some(now) = now.filter(|now| now.http.listen == http.listen) else { break };
            if now.http == http {
                continue;
            }
            match self.rules(&now.http, address).await {
                Ok(new) => {
                    rules.send_replace(Arc::new(new));
                    self.say(address, &rules);
                }
                Err(why) => self.warn(format!("hosts over HTTP are served as before: {why}")),
            }
            http = now.http.clone();
        }
        close.send_replace(true);
        let _ = listening.await;
        Next::Again
    }

    fn say(&self, address: SocketAddr, rules: &watch::Sender<Arc<Rules>>) {
        let rules = Arc::clone(&rules.borrow());
        let door = Door::Open { address, token: rules.token.clone(), open: rules.open };
        let url = door.url().unwrap_or_default();
        let how = match (rules.open, address.ip().is_loopback()) {
            (true, _) => "without a token",
            (false, true) => "with the token",
            (false, false) => "with the token, and to other machines in clear text",
        };
        self.show(door);
        let text = format!("hosts over HTTP are served at {url}, {how}");
        self.context.events.emit(Event::new("daemon.listening", text));
    }
}

fn limits(settings: &Settings) -> ListenLimits {
    let http = &settings.http;
    ListenLimits {
        connections: http.max_connections,
        serve: ServeLimits {
            section: "http",
            head: Some(http.max_header_bytes),
            body: http.max_body,
            bodies: http.body_budget,
            patience: http.header_timeout,
            write: Some(http.write_timeout),
            linger: http.linger,
            // No connection of the door becomes a link.
            link: LinkLimits {
                max_frame: settings.link.max_frame,
                write_queue: settings.link.write_queue,
                write_queue_bytes: settings.link.write_queue_bytes,
            },
        },
        accept_pause: settings.daemon.accept_pause,
        // Calls of hosts, like those over shims.
        close_grace: settings.host.drain,
    }
}
