//! `prompts/get`, under the names that hosts see.

use std::sync::Arc;

use super::nearest::did_you_mean;
use super::outcome::Told;
use super::resources::view;
use super::rounds::{self, Subject};
use super::{Context, Request};
use crate::actors::catalog::{Listing, OffersView, ShownOffer};
use crate::actors::support::progress::ProgressSender;
use crate::actors::upstreams::{CallWant, Caller, Refused};
use crate::protocol::jsonrpc::{Code, Method, Object, RawJson, RpcError};
use crate::protocol::model::{links, questions};
use crate::protocol::session::Outcome;
use crate::protocol::session::upstream::ListKind;

pub(super) async fn get(context: &Context, request: Request) -> Outcome {
    let name = request.params.member_str("name");
    let name =
        name.ok_or_else(|| RpcError::new(Code::InvalidParams, "prompts/get needs a `name`"))?;
    let prompt = find(context, &request.caller, &name).await?;
    let Request { params, caller, progress, .. } = request;
    let got =
        get_from(context, &prompt.server.def.key, &prompt.offer.key, &params, caller, progress);
    got.await.unwrap_or_else(|told| Err(told.as_error()))
}

/// A prompt of a server by the server's own name for it, with links as hosts see them.
pub(crate) async fn get_from(
    context: &Context,
    server: &str,
    name: &str,
    params: &RawJson,
    caller: Caller,
    progress: Option<ProgressSender>,
) -> Result<Outcome, Told> {
    let mut upstream = Object::read_or_empty(Some(params));
    upstream.set("name", RawJson::write(name));
    let want = CallWant {
        server: Arc::from(server),
        caller,
        method: Method::known("prompts/get"),
        params: upstream.write(),
        progress,
        // Filling in a text changes nothing.
        repeatable: true,
        task: None,
    };
    let subject = Subject { kind: "prompt", name, server };
    Ok(rounds::call(context, subject, None, want).await?.map(|result| {
        if questions::is_asking(&result) {
            return result;
        }
        let view = view(context);
        let renamed = |uri: &str| {
            let shown = view.address_of(server, uri);
            (shown != uri).then_some(shown)
        };
        links::in_prompt(&result, &renamed).unwrap_or(result)
    }))
}

/// The prompt that a host means. One of a server whose list is not known is looked for there: hosts
/// know names from earlier days (F48).
pub(super) async fn find(
    context: &Context,
    caller: &Caller,
    name: &str,
) -> Result<ShownOffer, RpcError> {
    let known = view(context);
    if let Some(prompt) = known.prompt(name) {
        return Ok(prompt.clone());
    }
    let mut refused = None;
    for server in known.unlisted_prompts(name) {
        let key = &server.def.key;
        let listed = match server.prompts.listing {
            Listing::Never => context.upstreams.list_now(caller, key, ListKind::Prompts).await,
            _ => context.upstreams.list_again(caller, key, ListKind::Prompts).await,
        };
        refused = listed.err().or(refused);
    }
    let view = view(context);
    view.prompt(name).cloned().ok_or_else(|| unknown(name, &view, refused))
}

fn unknown(name: &str, view: &OffersView, refused: Option<Refused>) -> RpcError {
    if let Some(refused) = refused {
        return Told::from(refused).as_error();
    }
    let near = did_you_mean(name, view.prompts().iter().map(|prompt| prompt.shown.as_str()));
    let text = format!("unknown prompt `{name}`.{near} prompts/list lists those that there are.");
    RpcError::new(Code::InvalidParams, text)
}
