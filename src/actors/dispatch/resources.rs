//! `resources/read`: whose resource an address means, and what its server says.

use std::sync::Arc;

use super::outcome::Told;
use super::rounds::{self, Subject};
use super::{Context, Request, artifacts};
use crate::actors::catalog::{Missing, OffersView, Target};
use crate::actors::support::progress::ProgressSender;
use crate::actors::upstreams::{CallWant, Caller};
use crate::protocol::jsonrpc::{Code, Method, Object, RawJson, RpcError};
use crate::protocol::model::{answers, links, questions};
use crate::protocol::session::Outcome;
use crate::protocol::session::upstream::ListKind;
use crate::protocol::uri;

pub(super) async fn read(context: &Context, request: Request) -> Outcome {
    let address = request
        .params
        .member_str("uri")
        .ok_or_else(|| RpcError::new(Code::InvalidParams, "resources/read needs a `uri`"))?;
    let wanted = Wanted {
        address: &address,
        params: &request.params,
        caller: request.caller,
        progress: request.progress,
    };
    read_address(context, wanted).await.unwrap_or_else(|told| Err(told.as_error()))
}

/// A resource that somebody wants to read.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// Its address, as shown.
    pub(crate) address: &'a str,
    /// Newest-shape parameters; the address in them is replaced.
    pub(crate) params: &'a RawJson,
    /// On whose behalf.
    pub(crate) caller: Caller,
    /// Where progress goes, where it is wanted.
    pub(crate) progress: Option<ProgressSender>,
}

/// The contents behind an address, under addresses as hosts see them. An error is the upstream's, or
/// says that there is no such resource.
pub(crate) async fn read_address(context: &Context, wanted: Wanted<'_>) -> Result<Outcome, Told> {
    let Wanted { address, params, caller, progress } = wanted;
    if let Some(id) = uri::artifact_id(address) {
        return Ok(Box::pin(artifacts::whole(context, address, id)).await);
    }
    let target = match find(context, &caller, address).await {
        Ok(target) => target,
        Err(missing) => return Ok(Err(missing_error(address, &missing))),
    };
    if target.server.lacks(ListKind::Resources.capability()) {
        let text = format!("server `{}` has no resources", target.server.def.namespace);
        return Ok(Err(answers::no_resource(address, text)));
    }
    let mut upstream = Object::read_or_empty(Some(params));
    upstream.set("uri", RawJson::write(&target.uri));
    let key = &target.server.def.key;
    let want = CallWant {
        server: Arc::from(key.as_str()),
        caller,
        method: Method::known("resources/read"),
        params: upstream.write(),
        progress,
        // Reading changes nothing.
        repeatable: true,
        task: None,
    };
    let subject = Subject { kind: "resource", name: &target.uri, server: key };
    Ok(match rounds::call(context, subject, None, want).await? {
        Ok(result) if questions::is_asking(&result) => Ok(result),
        Ok(result) => {
            let view = view(context);
            let renamed = |uri: &str| {
                let shown =
                    if uri == target.uri { address.to_owned() } else { view.address_of(key, uri) };
                (shown != uri).then_some(shown)
            };
            Ok(links::in_contents(&result, &renamed).unwrap_or(result))
        }
        Err(error) if error.code == Code::ResourceNotFound.number() => {
            Err(answers::no_resource(address, error.message))
        }
        Err(error) => Err(error),
    })
}

/// Whose resource an address means. Where it cannot be told from what is known, servers that were
/// never listed are asked.
pub(crate) async fn find(
    context: &Context,
    caller: &Caller,
    address: &str,
) -> Result<Target, Missing> {
    let known = view(context);
    let found = known.resolve(address);
    if matches!(found, Err(Missing::NotOurs(_))) && known.waits_for(ListKind::Resources) {
        context.ensure_listed(caller, ListKind::Resources).await;
        return view(context).resolve(address);
    }
    found
}

pub(super) fn view(context: &Context) -> Arc<OffersView> {
    context.catalog.offers(&context.settings().expose)
}

/// not found is said with the address; what is ambiguous is not missing.
pub(super) fn missing_error(address: &str, missing: &Missing) -> RpcError {
    match missing {
        Missing::Ambiguous { those, .. } => answers::ambiguous(those, missing.to_string()),
        Missing::NotOurs(_)
        | Missing::NoNamespace(_)
        | Missing::NoArtifact(_)
        | Missing::UnknownNamespace { .. } => answers::no_resource(address, missing.to_string()),
    }
}
