//! `resources/subscribe` and `resources/unsubscribe` of legacy hosts, and what streams of modern ones
//! ask for.
//!
//! Which era the server is of makes no difference: a legacy one is asked by a request of its own, a
//! modern one on its listen stream. A host is answered when the server has agreed, and told of
//! updates under the address that it subscribed with.

use super::outcome::Told;
use super::resources::{find, missing_error};
use super::{Context, Request};
use crate::actors::subs::ListenerId;
use crate::actors::upstreams::Caller;
use crate::protocol::edge::keys::AGAIN;
use crate::protocol::jsonrpc::{Code, RawJson, RpcError};
use crate::protocol::model::answers;
use crate::protocol::session::Outcome;
use crate::protocol::session::upstream::ListKind;

pub(super) async fn subscribe_host(context: &Context, request: &Request) -> Outcome {
    let address = address(request)?;
    let listener = ListenerId::of(&request.caller);
    let agreed = subscribe(context, listener, &request.caller, &address).await?;
    let again = request.params.member("_meta").and_then(|meta| meta.member(AGAIN)).is_some();
    if let Some(listener) = listener.filter(|_| again) {
        context.upstreams.subs().missed(listener, &address);
    }
    Ok(agreed)
}

/// Subscribes a listener of `caller`'s to what `address` means.
pub(crate) async fn subscribe(
    context: &Context,
    listener: Option<ListenerId>,
    caller: &Caller,
    address: &str,
) -> Outcome {
    let found = find(context, caller, address).await;
    let target = found.map_err(|missing| missing_error(address, &missing))?;
    let server = &target.server;
    if server.lacks(ListKind::Resources.capability()) {
        let text = format!("server `{}` has no resources", server.def.namespace);
        return Err(about(address, RpcError::new(Code::InvalidParams, text)));
    }
    let key = server.def.key.as_str();
    let said = context.upstreams.subscribe(listener, caller, key, &target.uri, address).await;
    match said.map_err(Told::from) {
        Ok(Ok(())) => Ok(RawJson::empty_object()),
        Ok(Err(error)) => {
            let text = format!("server `{}`: {}", server.def.namespace, error.message);
            Err(about(address, RpcError { message: text, ..error }))
        }
        Err(told) => Err(told.as_error()),
    }
}

/// Also of one that was never subscribed to: there is nothing left to do.
pub(super) fn unsubscribe(context: &Context, request: &Request) -> Outcome {
    let address = address(request)?;
    if let Some(listener) = ListenerId::of(&request.caller) {
        context.upstreams.subs().unsubscribe(listener, &address);
    }
    Ok(RawJson::empty_object())
}

fn address(request: &Request) -> Result<String, RpcError> {
    let text = || format!("{} needs a `uri`", request.method);
    let address = request.params.member_str("uri");
    address.ok_or_else(|| RpcError::new(Code::InvalidParams, text()))
}

/// With the address that the host knows, where the server gave nothing itself.
fn about(address: &str, error: RpcError) -> RpcError {
    if error.data.is_some() { error } else { answers::at_address(address, error) }
}
