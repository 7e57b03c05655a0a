//! Reading the lists of servers that were never listed.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Caller, Reason, Refused, Shared};
use crate::actors::catalog::Listing;
use crate::actors::pool::caller;
use crate::protocol::session::Limit;

/// Starts `keys` and reads their lists, a few at a time: starting fifty `npx` at once would stall the
/// machine.
pub(super) async fn list_all(shared: Arc<Shared>, caller: Caller, keys: Vec<Arc<str>>) {
    let at_once = Arc::new(Semaphore::new(shared.settings().upstream.list_parallel));
    let mut tasks = JoinSet::new();
    for key in keys {
        let (shared, caller, at_once) = (Arc::clone(&shared), caller.clone(), Arc::clone(&at_once));
        tasks.spawn(async move {
            // Never closed.
            let Ok(_turn) = at_once.acquire_owned().await else { return };
            // Its state says why; a list must not fail because one server does (F48).
            let _ = list_one(&shared, &caller, &key).await;
        });
    }
    while tasks.join_next().await.is_some() {}
}

pub(super) async fn list_one(shared: &Shared, caller: &Caller, key: &str) -> Result<(), Refused> {
    let settings = shared.settings();
    // Longer than the session's own limit, which keeps the pages that came and says why (F39).
    let limit = settings.upstream.list + settings.daemon.ask;
    // Again where the server was replaced meanwhile: the next generation is to be started too.
    let listed = loop {
        let server = shared.server(key)?;
        let _running = caller::wake(shared, &server, caller).await?;
        let until = shared.shop.catalog.until_listed(&server.def);
        let listed = tokio::time::timeout(limit, until).await;
        if listed.is_err() || shared.shop.catalog.listing(key) != Some(Listing::Never) {
            break listed;
        }
    };
    listed.map_err(|_| {
        let limit = Limit::time("upstream.list_timeout", settings.upstream.list);
        let text = format!(
            "server `{key}` did not give its list within {} (setting {})",
            limit.value, limit.setting,
        );
        Refused { reason: Reason::Timeout, text, limit: Some(limit) }
    })
}
