//! What hosts are told of mcpx and see of it, made once for all who see the same.

use std::sync::Arc;

use super::super::catalog::Listing;
use super::super::dispatch::{self, Context, Views};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::extensions;
use crate::protocol::session::host::{HostConfig, ProgressPace};
use crate::settings::{ServerDef, Settings};

/// See the module.
pub(super) struct Face {
    pub(super) config: Arc<HostConfig>,
    /// The same over HTTP.
    pub(super) http_config: Arc<HostConfig>,
    pub(super) view: Views,
}

impl Face {
    pub(super) fn new(context: &Context) -> Self {
        let config = host_config(context);
        let http_config = Arc::new(HostConfig { over_stdio: false, ..HostConfig::clone(&config) });
        Self { config, http_config, view: dispatch::visible_views(context) }
    }
}

/// What was never listed.
pub(super) fn unlisted(context: &Context) -> Vec<Arc<ServerDef>> {
    let snapshot = context.catalog.snapshot();
    let never = snapshot.servers.iter().filter(|server| server.listing == Listing::Never);
    never.map(|server| Arc::clone(&server.def)).collect()
}

fn host_config(context: &Context) -> Arc<HostConfig> {
    let settings = context.settings();
    let view = context.catalog.view(&settings.expose);
    let core = dispatch::shows_core(&settings, &view);
    Arc::new(HostConfig {
        info: context.identity.info.clone(),
        capabilities: capabilities(context, &settings),
        instructions: dispatch::instructions(core).to_owned(),
        max_in_flight: settings.host.max_in_flight,
        max_listens: settings.listen.per_host,
        progress_pace: ProgressPace {
            interval: settings.host.progress_interval,
            burst: u32::try_from(settings.host.progress_burst).unwrap_or(u32::MAX),
        },
        log_rate: settings.host.log_rate,
        max_open_questions: settings.elicit.max_open,
        over_stdio: true,
    })
}

/// Ours, and those of a server that is exposed alone as far as it has been reached (product.md 3).
fn capabilities(context: &Context, settings: &Settings) -> RawJson {
    let ours = &context.identity.capabilities;
    let snapshot = context.catalog.snapshot();
    let alone = settings.alone().and_then(|def| {
        let server = snapshot.servers.iter().find(|server| server.def.key == def.key)?;
        server.capabilities.as_ref()
    });
    alone.map_or_else(|| ours.clone(), |theirs| extensions::merged(ours, theirs))
}
