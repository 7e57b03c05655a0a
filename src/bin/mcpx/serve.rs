//! `mcpx serve`: the stdio side of a host, which outlives the daemon.
//!
//! One thread, a socket and two pipes. Everything that knows the protocol is [`ShimSession`], everything
//! that moves frames is [`relay`]. What the host's user should read goes to stderr.

mod relay;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use mcpx::control::attach::Attach;
use mcpx::control::route;
use mcpx::protocol::jsonrpc::RawJson;
use mcpx::protocol::model::implementation::Implementation;
use mcpx::protocol::session::backoff::Backoff;
use mcpx::protocol::session::shim::{ShimConfig, ShimSession};
use mcpx::settings::places::Places;
use mcpx::settings::typed::{LinkSettings, ShimSettings};
use mcpx::transport::Link;
use mcpx::transport::autostart::{Autostart, StartFailed};
use mcpx::transport::clock;
use mcpx::transport::http::control_call::{CallFailed, attach};
use mcpx::transport::link::LinkLimits;
use mcpx::transport::process;
use mcpx::transport::stdio::own;
use serde::{Deserialize, Serialize};

use self::relay::{DialFailed, Rules, Wanted};
use crate::commands;
use crate::ended::{Ended, Outcome};
use crate::output;
use crate::setup::{self, Setup};

/// What people and models are told where there is no daemon.
const HOW_TO_START: &str =
    "`mcpx daemon` starts it and shows what is wrong; `mcpx doctor` looks further.";

/// The argument that hands a shim over to its second image; the rest is its [`Handover`] as JSON.
const HANDOVER: &str = "--handed-over";

/// Everything a shim needs to know.
#[derive(Debug, Serialize, Deserialize)]
struct Handover {
    program: PathBuf,
    file: Option<PathBuf>,
    places: Places,
    project: Option<String>,
    profile: Option<String>,
    shim: ShimSettings,
    link: LinkSettings,
}

/// Reads arguments and configuration, then starts over without them. A host may run dozens of shims:
/// what reading needed (most of this program's text, once touched) is not to stay in each.
pub(crate) fn run(setup: &Setup, arguments: &ArgMatches) -> Outcome {
    let settings = setup.load_leniently()?;
    let handover = Handover {
        program: setup.program.clone(),
        file: setup.file.clone(),
        places: setup.places.clone(),
        project: setup::project(arguments.get_one("project")),
        profile: arguments.get_one("profile").cloned(),
        shim: settings.shim,
        link: settings.link,
    };
    // Paths that are no Unicode have no JSON form; then this image goes on by itself.
    if let Ok(text) = serde_json::to_string(&handover) {
        let args = ["serve".into(), HANDOVER.into(), text.into()];
        let error = process::become_again(&setup.program, &args);
        output::remark(&format!("mcpx: a smaller image of the shim could not be started: {error}"));
    }
    relay(&handover)
}

/// The second image's part, where these arguments are for it.
pub(crate) fn handed_over(mut arguments: impl Iterator<Item = OsString>) -> Option<Outcome> {
    let ours = arguments.next()? == "serve" && arguments.next()? == HANDOVER;
    let text = arguments.next().filter(|_| ours)?;
    let handover = serde_json::from_slice(text.as_encoded_bytes());
    Some(
        handover
            .map_err(|error| Ended::Usage(format!("{HANDOVER}: {error}")))
            .and_then(|handover| relay(&handover)),
    )
}

fn relay(handover: &Handover) -> Outcome {
    let Handover { program, file, places, project, profile, shim, link } = handover;
    let dialer = Arc::new(Dialer {
        autostart: setup::autostart(program, places, file.as_deref(), shim),
        may_start: shim.autostart,
        limit: shim.start,
        link: LinkLimits {
            max_frame: link.max_frame,
            write_queue: link.write_queue,
            write_queue_bytes: link.write_queue_bytes,
        },
        project: project.clone(),
        profile: profile.clone(),
        session: clock::random_name(),
    });
    commands::runtime()?.block_on(Box::pin(serve(shim, dialer)))
}

async fn serve(settings: &ShimSettings, dialer: Arc<Dialer>) -> Outcome {
    let host = own::link(dialer.link)
        .map_err(|error| Ended::Failed(format!("stdin and stdout cannot be used: {error}")))?;
    let session = ShimSession::new(ShimConfig {
        grace: settings.grace,
        hold_frames: settings.hold_frames,
        hold_bytes: settings.hold_bytes,
        info: own_info(),
        how_to_start: HOW_TO_START.to_owned(),
    });
    let rules = Rules {
        backoff: Backoff { step: settings.redial_step, max: settings.redial_max },
        end_grace: settings.end_grace,
        max_frame: dialer.link.max_frame,
        backlog: settings.hold_frames,
    };
    let dial = |wanted| Box::pin(Arc::clone(&dialer).dial(wanted));
    let remark = |text: &str| output::remark(&format!("mcpx: {text}"));
    relay::run(host, session, rules, dial, remark, own::hung_up()).await;
    Ok(())
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
    profile: Option<String>,
    /// By which every daemon knows this host for the same.
    session: String,
}

impl Dialer {
    /// Attaches, where wanted after starting a daemon.
    async fn dial(self: Arc<Self>, wanted: Wanted) -> Result<Link, DialFailed> {
        let attach = Attach {
            project: self.project.clone(),
            view: wanted.view,
            session: Some(self.session.clone()),
            profile: self.profile.clone(),
        };
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
