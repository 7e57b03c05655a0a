//! What a request's own task runs: functions, not actors.
//!
//! Each takes a request in newest shape and gives its outcome in newest shape. They read snapshots,
//! ask handles and wait for upstreams; they hold no state beyond one request.

mod alone;
mod arguments;
mod artifacts;
mod as_task;
mod call_tool;
mod completion;
mod confirm;
mod core_tools;
mod excerpt;
pub(crate) mod exec;
mod listed;
mod namespaces;
mod nearest;
mod offers;
mod op_tools;
mod outcome;
mod outside;
mod prompts;
mod read_tool;
mod recorded;
mod repeats;
mod resources;
mod resources_tool;
mod resumed;
mod rounds;
mod scripts_tool;
mod search;
mod status;
mod subscriptions;
mod task_tool;
mod tasks;
mod tools;
mod traced;
mod types;

use std::path::Path;
use std::sync::Arc;

use http::HeaderMap;

use super::broker::BrokerHandle;
use super::catalog::{CatalogHandle, Listing};
use super::events::EventsHandle;
use super::parked::ParkedHandle;
use super::settings::SettingsHandle;
use super::support::progress::ProgressSender;
use super::upstreams::{Caller, UpstreamsHandle};
use crate::protocol::jsonrpc::{Method, RawJson};
use crate::protocol::session::Outcome;
use crate::protocol::session::upstream::ListKind;
use crate::settings::{ExposeMode, ServerDef, Settings};

pub(crate) use alone::note as alone_note;
pub(crate) use as_task::TaskSide;
pub(crate) use core_tools::instructions;
pub(crate) use listed::{Listed, Views};
pub(crate) use outcome::Told;
pub(crate) use prompts::get_from as get_prompt;
pub(crate) use recorded::turned_away;
pub(crate) use repeats::Repeats;
pub(crate) use resources::{Wanted, read_address};
pub(crate) use resumed::Resumer;
pub(crate) use rounds::{Conversation, Subject, call as call_upstream};
pub(crate) use search::find as search;
pub(crate) use subscriptions::subscribe;
pub(crate) use tools::{own_names, shows_core, visible_views};
pub(crate) use types::declare as declare_types;

/// The server of mcpx's own tools, where texts and states name one.
const OWN: &str = "mcpx";

/// The handles that a request may use. One for the whole daemon.
#[derive(Debug, Clone)]
pub struct Context {
    /// Calls on upstreams.
    pub upstreams: UpstreamsHandle,
    /// What they offer.
    pub catalog: CatalogHandle,
    /// What happens.
    pub events: EventsHandle,
    /// What is in force.
    pub settings: SettingsHandle,
    /// Questions that no host can be asked.
    pub broker: BrokerHandle,
    /// Calls that wait for a host's next request.
    pub parked: ParkedHandle,
    /// Who this daemon is and since when, for status pages.
    pub identity: Arc<super::control::Identity>,
    /// Listen streams towards hosts.
    pub listens: super::listens::ListensHandle,
    /// Calls that nobody waits for.
    pub tasks: super::tasks::TasksHandle,
    /// Results and files that are kept outside of answers.
    pub artifacts: super::artifacts::ArtifactsHandle,
    /// Sandboxes for scripts.
    pub exec: super::exec::ExecHandle,
    /// Saved scripts.
    pub scripts: super::scripts::ScriptsHandle,
    /// Who asks for ops, over the control API; nobody in particular elsewhere.
    pub asks: Option<super::upstreams::Who>,
    /// The host connections.
    pub hosts: super::hosts::HostsHandle,
    /// Where hosts come in over HTTP.
    pub door: super::hosts::door::DoorHandle,
    /// What goes on inside.
    pub inside: super::inside::Inside,
    /// Changes settings, reloads and ends the daemon.
    pub root: super::root::RootHandle,
}

impl Context {
    /// Whose a request over HTTP is: it has shown the token, unless everybody may come in.
    pub(crate) fn who_over_http(&self) -> Option<super::upstreams::Who> {
        (!self.settings().http.open).then_some(super::upstreams::Who::Bearer)
    }

    /// The settings in force now.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.settings()
    }

    /// The same for hosts of a profile and in a project: settings and catalog have what they see and
    /// nothing else. `None` where there is no profile of this name.
    pub(crate) fn seen_from(
        &self,
        profile: Option<&str>,
        project: Option<Arc<Path>>,
    ) -> Option<Self> {
        let settings = self.settings.seen_from(profile, project)?;
        let catalog = self.catalog.narrowed(settings.clone());
        Some(Self { catalog, settings, ..self.clone() })
    }

    /// The profile for whose hosts it is.
    pub(crate) const fn profile(&self) -> Option<&Arc<str>> {
        self.settings.profile()
    }

    /// Starts for `caller` what a list of this kind shows and was never listed, and waits until it
    /// is, has failed, or `expose.list_wait` has passed; what is under way then goes on (F48). Tools
    /// are shown in pass-through mode alone, the rest in every mode.
    pub(crate) async fn ensure_listed(&self, caller: &Caller, kind: ListKind) {
        let mode = self.settings().expose.mode;
        let shown = |def: &ServerDef| {
            kind != ListKind::Tools || def.expose.unwrap_or(mode) != ExposeMode::Core
        };
        self.list_missing(caller, kind, shown).await;
    }

    /// The same for every server that `wanted` names.
    pub(crate) async fn list_missing(
        &self,
        caller: &Caller,
        kind: ListKind,
        wanted: impl Fn(&ServerDef) -> bool,
    ) {
        let snapshot = self.catalog.snapshot();
        let servers = snapshot.servers.iter();
        let never = servers
            .filter(|server| *server.listing_of(kind) == Listing::Never && wanted(&server.def));
        let never = never.map(|server| server.def.key.as_str().into()).collect();
        self.upstreams.list_all(caller, kind, never).await;
    }
}

/// One request of a host, with what its task needs.
#[derive(Debug)]
pub(crate) struct Request {
    /// What is asked.
    pub(crate) method: Method,
    /// Newest-shape parameters.
    pub(crate) params: RawJson,
    /// On whose behalf.
    pub(crate) caller: Caller,
    /// How its sender takes tasks.
    pub(crate) tasks: TaskSide,
    /// Where progress goes, where the host wants it.
    pub(crate) progress: Option<ProgressSender>,
    /// This host's failing calls (F43).
    pub(crate) repeats: Arc<Repeats>,
    /// The lists this host was given last (F38).
    pub(crate) listed: Arc<Listed>,
    /// The headers it came with, where they must say what its arguments say: over HTTP in revisions
    /// that repeat these (H-31).
    pub(crate) headers: Option<HeaderMap>,
}

/// Answers one request. What is not a call of a tool is boxed, here and in [`tools::call`], so that
/// a call's task does not carry the room of everything else a host can ask.
pub(crate) async fn answer(context: &Context, request: Request) -> Outcome {
    if context.inside.spans.is_on() {
        return Box::pin(traced::answer(context, request)).await;
    }
    perform(context, request).await
}

async fn perform(context: &Context, request: Request) -> Outcome {
    match request.method.as_str() {
        "tools/list" => Box::pin(tools::list(context, &request)).await,
        "tools/call" => tools::call(context, request).await,
        "resources/list" => Box::pin(offers::list(context, &request, ListKind::Resources)).await,
        "resources/templates/list" => {
            Box::pin(offers::list(context, &request, ListKind::Templates)).await
        }
        "prompts/list" => Box::pin(offers::list(context, &request, ListKind::Prompts)).await,
        "resources/read" => Box::pin(resources::read(context, request)).await,
        "resources/subscribe" => Box::pin(subscriptions::subscribe_host(context, &request)).await,
        "resources/unsubscribe" => subscriptions::unsubscribe(context, &request),
        "prompts/get" => Box::pin(prompts::get(context, request)).await,
        "completion/complete" => Box::pin(completion::complete(context, request)).await,
        "tasks/get" => Box::pin(tasks::get(context, &request)).await,
        "tasks/update" => Box::pin(tasks::update(context, &request)).await,
        "tasks/cancel" => Box::pin(tasks::cancel(context, &request)).await,
        "tasks/list" => tasks::list(context, &request),
        "tasks/result" => Box::pin(tasks::result(context, &request)).await,
        _ => Box::pin(alone::forward(context, request)).await,
    }
}
