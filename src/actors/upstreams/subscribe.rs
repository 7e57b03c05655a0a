//! A host's subscription to one resource, from the wish to the server's word.

use super::{Caller, Reason, Refused, Shared};
use crate::actors::pool::caller;
use crate::actors::subs::{ListenerId, NotSubscribed, Said, Subs};
use crate::protocol::session::Limit;

/// See [`super::UpstreamsHandle::subscribe`].
pub(super) async fn subscribe(
    shared: &Shared,
    listener: Option<ListenerId>,
    caller: &Caller,
    key: &str,
    uri: &str,
    shown: &str,
) -> Result<Said, Refused> {
    let settings = shared.settings();
    let server = shared.server(key)?;
    let subs = &shared.shop.subs;
    let most = settings.host.max_subscriptions;
    // Before the server is started, so that it is asked as soon as it is open.
    let said = subs.subscribe(&server.def, listener, caller, uri, shown, most);
    let said = said.map_err(|why| refused(key, why))?;
    let mut back = TakenBack { subs, listener, shown };
    let limit = settings.call.idle;
    let waiting = async {
        let _awake = caller::wake(shared, &server, caller).await?;
        // It resolves without a word where the host has left.
        let gone = || Refused::unavailable(format!("the subscription to {shown} was taken back"));
        said.await.map_err(|_| gone())
    };
    let said = tokio::time::timeout(limit, waiting).await.map_err(|_| {
        let limit = Limit::time("call.idle_timeout", limit);
        let text = format!(
            "server `{key}` did not say within {} (setting {}) whether it tells of {uri}",
            limit.value, limit.setting,
        );
        Refused { reason: Reason::Timeout, text, limit: Some(limit) }
    })??;
    back.listener = None;
    Ok(said)
}

fn refused(key: &str, why: NotSubscribed) -> Refused {
    match why {
        NotSubscribed::Nowhere => Refused::unavailable(format!(
            "there is nobody to tell of changes: subscriptions need a session of the host and a \
             server that outlives a call (server `{key}`, its `scope`)"
        )),
        NotSubscribed::Full(limit) => Refused {
            reason: Reason::Busy,
            text: format!(
                "this host is subscribed to {} resources, as many as the setting {} admits; \
                 unsubscribe from one, or raise it",
                limit.value, limit.setting,
            ),
            limit: Some(limit),
        },
    }
}

/// A subscription that nobody waits for any more is taken back.
struct TakenBack<'a> {
    subs: &'a Subs,
    listener: Option<ListenerId>,
    shown: &'a str,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        if let Some(listener) = self.listener {
            self.subs.unsubscribe(listener, self.shown);
        }
    }
}
