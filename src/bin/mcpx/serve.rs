//! `mcpx serve`: the stdio side of a host, which outlives the daemon.
//!
//! One thread, a socket and two pipes. Everything that knows the protocol is [`ShimSession`], everything
//! that moves frames is [`relay`]. What the host's user should read goes to stderr.

mod relay;

use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use mcpx::control::attach::Attach;
use mcpx::control::route;
use mcpx::protocol::jsonrpc::RawJson;
use mcpx::protocol::model::implementation::Implementation;
use mcpx::protocol::session::backoff::Backoff;
use mcpx::protocol::session::shim::{ShimConfig, ShimSession};
use mcpx::settings::Settings;
use mcpx::transport::Link;
use mcpx::transport::autostart::{Autostart, StartFailed};
use mcpx::transport::http::control_call::{CallFailed, attach};
use mcpx::transport::link::LinkLimits;
use mcpx::transport::stdio::own;

use self::relay::{DialFailed, Rules, Wanted};
use crate::commands;
use crate::ended::{Ended, Outcome};
use crate::output;
use crate::setup::{self, Setup};

/// What people and models are told where there is no daemon.
const HOW_TO_START: &str =
    "`mcpx daemon` starts it and shows what is wrong; `mcpx doctor` looks further.";

/// See the module.
pub(crate) fn run(setup: &Setup, arguments: &ArgMatches) -> Outcome {
    let settings = setup.load_leniently()?;
    let project = setup::project(arguments.get_one("project"));
    let dialer = Arc::new(Dialer {
        autostart: setup.autostart(&settings),
        may_start: settings.shim.autostart,
        limit: settings.shim.start,
        link: link_limits(&settings),
        project,
    });
    commands::runtime()?.block_on(Box::pin(serve(&settings, dialer)))
}

async fn serve(settings: &Settings, dialer: Arc<Dialer>) -> Outcome {
    let host = own::link(dialer.link)
        .map_err(|error| Ended::Failed(format!("stdin and stdout cannot be used: {error}")))?;
    let session = ShimSession::new(ShimConfig {
        grace: settings.shim.grace,
        hold_frames: settings.shim.hold_frames,
        hold_bytes: settings.shim.hold_bytes,
        info: own_info(),
        how_to_start: HOW_TO_START.to_owned(),
    });
    let rules = Rules {
        backoff: Backoff { step: settings.shim.redial_step, max: settings.shim.redial_max },
        end_grace: settings.shim.end_grace,
        max_frame: dialer.link.max_frame,
        backlog: settings.shim.hold_frames,
    };
    let dial = |wanted| Box::pin(Arc::clone(&dialer).dial(wanted));
    relay::run(host, session, rules, dial, |text| output::remark(&format!("mcpx: {text}"))).await;
    Ok(())
}

fn link_limits(settings: &Settings) -> LinkLimits {
    LinkLimits { max_frame: settings.link.max_frame, write_queue: settings.link.write_queue }
}

fn own_info() -> RawJson {
    Implementation {
        name: "mcpx".to_owned(),
        title: Some("mcpx".to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        description: Some(env!("CARGO_PKG_DESCRIPTION").to_owned()),
        website_url: None,
    }
    .write()
}

/// The way to the daemon.
#[derive(Debug)]
struct Dialer {
    autostart: Autostart,
    may_start: bool,
    limit: Duration,
    link: LinkLimits,
    project: Option<String>,
}

impl Dialer {
    /// Attaches, where wanted after starting a daemon.
    async fn dial(self: Arc<Self>, wanted: Wanted) -> Result<Link, DialFailed> {
        let attach = Attach { project: self.project.clone(), view: wanted.view };
        match self.attach(&attach).await {
            Err(CallFailed::NoDaemon(_)) if wanted.start && self.may_start => {
                self.autostart.ensure().await.map_err(|failed| start_failed(&failed))?;
                self.attach(&attach).await.map_err(|failed| attach_failed(&failed))
            }
            other => other.map_err(|failed| attach_failed(&failed)),
        }
    }

    async fn attach(&self, said: &Attach) -> Result<Link, CallFailed> {
        let (socket, headers) = (&self.autostart.socket, said.headers());
        let dialled = attach(socket, route::ATTACH, &headers, self.link);
        tokio::time::timeout(self.limit, dialled).await.unwrap_or_else(|_| {
            let limit = self.limit;
            Err(CallFailed::Broken(format!("none within {limit:?} (setting shim.start_timeout)")))
        })
    }
}

/// A daemon that cannot start will not start by itself; one that is slow may still come.
fn start_failed(failed: &StartFailed) -> DialFailed {
    let lasting = !matches!(failed, StartFailed::Silent { .. });
    DialFailed { text: failed.to_string(), lasting }
}

fn attach_failed(failed: &CallFailed) -> DialFailed {
    let lasting = match failed {
        // Of another version, say; one that is ending or full answers otherwise.
        CallFailed::NotUpgraded { status, .. } => (400..500).contains(status),
        CallFailed::Refused { .. } | CallFailed::BadHeader(_) => true,
        CallFailed::NoDaemon(_) | CallFailed::Broken(_) => false,
    };
    DialFailed { text: failed.to_string(), lasting }
}
