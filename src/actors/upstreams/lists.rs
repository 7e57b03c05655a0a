//! Reading the lists of servers that were never listed.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Caller, Reason, Refused, Shared};
use crate::actors::catalog::Listing;
use crate::actors::pool::{RouteAnswer, caller};
use crate::protocol::session::Limit;
use crate::protocol::session::upstream::ListKind;
use crate::settings::Settings;

/// Starts `keys` and reads their lists, a few at a time: starting fifty `npx` at once would stall the
/// machine.
pub(super) async fn list_all(
    shared: Arc<Shared>,
    caller: Caller,
    kind: ListKind,
    keys: Vec<Arc<str>>,
) {
    let at_once = Arc::new(Semaphore::new(shared.settings().upstream.list_parallel));
    let mut tasks = JoinSet::new();
    for key in keys {
        let (shared, caller, at_once) = (Arc::clone(&shared), caller.clone(), Arc::clone(&at_once));
        tasks.spawn(async move {
            // Never closed.
            let Ok(_turn) = at_once.acquire_owned().await else { return };
            // Its state says why; a list must not fail because one server does (F48).
            let _ = list_one(&shared, &caller, &key, kind).await;
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// Starts a server and waits until its list has been read: by whatever instance, or until the one that
/// was started for `caller` is gone.
pub(super) async fn list_one(
    shared: &Shared,
    caller: &Caller,
    key: &str,
    kind: ListKind,
) -> Result<(), Refused> {
    let settings = shared.settings();
    let catalog = &shared.shop.catalog;
    // Longer than the session's own limit, which keeps the pages that came and says why (F39).
    let limit = settings.upstream.list + settings.daemon.ask;
    // Again where the server was replaced meanwhile: the next generation is to be started too.
    for _ in 0..=settings.call.resend_limit {
        let server = shared.server(key)?;
        let awake = caller::wake(shared, &server, caller).await?;
        let ended = tokio::select! {
            biased;
            () = catalog.until_listed(&server.def, kind) => RouteAnswer::Ready,
            gone = server.pool.until_gone(&awake.key, caller, limit) => gone,
        };
        // What it gave before it went may be on its way.
        catalog.caught_up(settings.daemon.ask).await;
        if catalog.listing(key, kind) != Some(Listing::Never) {
            return Ok(());
        }
        match ended {
            RouteAnswer::Ready | RouteAnswer::Moved => {}
            RouteAnswer::Refused(refused) => return Err(refused),
            RouteAnswer::Late => return Err(unlisted(key, kind, &settings)),
        }
    }
    Err(Refused::unavailable(format!(
        "server `{key}` was replaced again and again before its {} were listed; try again",
        kind.noun()
    )))
}

fn unlisted(key: &str, kind: ListKind, settings: &Settings) -> Refused {
    let limit = Limit::time("upstream.list_timeout", settings.upstream.list);
    let text = format!(
        "server `{key}` did not give its list of {} within {} (setting {})",
        kind.noun(),
        limit.value,
        limit.setting,
    );
    Refused { reason: Reason::Timeout, text, limit: Some(limit) }
}

/// Reads a list again that is not whole.
pub(super) async fn list_again(
    shared: &Shared,
    caller: &Caller,
    key: &str,
    kind: ListKind,
) -> Result<(), Refused> {
    let settings = shared.settings();
    let server = shared.server(key)?;
    let awake = caller::wake(shared, &server, caller).await?;
    caller::read_again(&server, &awake, kind, settings.upstream.list + settings.daemon.ask).await;
    shared.shop.catalog.caught_up(settings.daemon.ask).await;
    Ok(())
}
