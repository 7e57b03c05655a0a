//! Ops on resources and prompts.

use std::sync::Arc;

use super::super::catalog::CatalogServer;
use super::super::dispatch::{self, Context, Told};
use super::calls::{caller, choose, listing, namespace, told_error};
use super::refused;
use crate::actors::artifacts::Record;
use crate::actors::catalog::{Listing, Offers};
use crate::control::ApiError;
use crate::control::types::{
    FailureCode, NamespacePrompts, NamespaceResources, PromptRequest, PromptsAnswer,
    ResourcesAnswer, SearchRequest,
};
use crate::protocol::jsonrpc::{Code, Object, RawJson, RpcError};
use crate::protocol::model::offer::for_hosts;
use crate::protocol::session::Outcome;
use crate::protocol::session::upstream::ListKind;
use crate::protocol::uri;
use crate::settings::mistake::hint;

pub(super) async fn search(context: &Context, wanted: SearchRequest) -> Result<RawJson, ApiError> {
    let most = context.settings().search.max_results;
    if wanted.limit.is_some_and(|limit| limit == 0 || limit > most) {
        let text = format!("`limit` is a number from 1 to {most} (setting search.max_results)");
        return Err(ApiError::new(FailureCode::BadRequest, text));
    }
    if let Some(name) = &wanted.namespace {
        namespace(context, name)?;
    }
    let found =
        dispatch::search(context, &caller(context, wanted.project.as_deref()), &wanted).await;
    let found = found.map_err(|text| ApiError::new(FailureCode::Unavailable, text))?;
    Ok(RawJson::write(&found))
}

pub(super) async fn resources(
    context: &Context,
    namespace: Option<&str>,
    project: Option<&str>,
) -> Result<RawJson, ApiError> {
    let snapshot = context.catalog.snapshot();
    let is_server = snapshot.servers.iter().any(|server| server.def.namespace == uri::ARTIFACTS);
    let stored = stored(context);
    if namespace == Some(uri::ARTIFACTS) && !is_server {
        return Ok(RawJson::write(&ResourcesAnswer { namespaces: vec![stored] }));
    }
    let (servers, reason) = choose(context, ListKind::Resources, namespace, project).await?;
    let namespaces = servers.iter().map(|server| {
        let (listing, reason) = listing(&server.resources.listing, reason.clone());
        NamespaceResources {
            namespace: server.def.namespace.clone(),
            server: server.def.key.clone(),
            listing,
            reason,
            resources: addressed(server, ListKind::Resources, &server.resources),
            templates: addressed(server, ListKind::Templates, &server.templates),
        }
    });
    let stored = Some(stored).filter(|stored| namespace.is_none() && !stored.resources.is_empty());
    Ok(RawJson::write(&ResourcesAnswer { namespaces: namespaces.chain(stored).collect() }))
}

/// Artifacts, newest first, as resources of mcpx itself.
fn stored(context: &Context) -> NamespaceResources {
    let resource = |record: &Arc<Record>| {
        let mut item = Object::new();
        item.set("uri", RawJson::write(&uri::artifact(&record.id)));
        item.set("name", RawJson::write(&record.name));
        item.set("description", RawJson::write(&format!("Of {}", record.maker)));
        item.set("mimeType", RawJson::write(&record.kind));
        item.set("size", RawJson::write(&record.size));
        item.write()
    };
    NamespaceResources {
        namespace: uri::ARTIFACTS.to_owned(),
        server: "mcpx".to_owned(),
        listing: "whole".to_owned(),
        reason: None,
        resources: context.artifacts.all().iter().map(resource).collect(),
        templates: Vec::new(),
    }
}

/// The items under `mcpx://` addresses, whatever hosts see: those can be read in every mode.
fn addressed(server: &CatalogServer, kind: ListKind, list: &Offers) -> Vec<RawJson> {
    let address = |key: &str| uri::address(&server.def.namespace, key);
    let items = list.items.iter();
    let shown = items
        .filter_map(|item| for_hosts(&item.raw, kind.item_key(), &address(&item.key), &item.key));
    shown.collect()
}

pub(super) async fn prompts(
    context: &Context,
    namespace: Option<&str>,
    project: Option<&str>,
) -> Result<RawJson, ApiError> {
    let (servers, reason) = choose(context, ListKind::Prompts, namespace, project).await?;
    let namespaces = servers.iter().map(|server| {
        let (listing, reason) = listing(&server.prompts.listing, reason.clone());
        NamespacePrompts {
            namespace: server.def.namespace.clone(),
            server: server.def.key.clone(),
            listing,
            reason,
            prompts: server.prompts.items.iter().map(|item| item.raw.clone()).collect(),
        }
    });
    Ok(RawJson::write(&PromptsAnswer { namespaces: namespaces.collect() }))
}

pub(super) async fn read(
    context: &Context,
    address: &str,
    project: Option<&str>,
) -> Result<RawJson, ApiError> {
    let mut params = Object::new();
    params.set("uri", RawJson::write(address));
    let wanted = dispatch::Wanted {
        address,
        params: &params.write(),
        caller: caller(context, project),
        progress: None,
    };
    let read = dispatch::read_address(context, wanted).await;
    answered(read, &format!("`{address}`"), "`mcpx resources` lists what there is")
}

pub(super) async fn prompt(context: &Context, wanted: PromptRequest) -> Result<RawJson, ApiError> {
    let caller = caller(context, wanted.project.as_deref());
    let mut server = namespace(context, &wanted.namespace)?;
    if server.prompts.get(&wanted.prompt).is_none() {
        let (key, kind) = (&server.def.key, ListKind::Prompts);
        match server.prompts.listing {
            Listing::Whole => Ok(()),
            Listing::Never => context.upstreams.list_now(&caller, key, kind).await,
            Listing::Incomplete(_) => context.upstreams.list_again(&caller, key, kind).await,
        }
        .map_err(refused)?;
        server = namespace(context, &wanted.namespace)?;
    }
    if server.prompts.get(&wanted.prompt).is_none() {
        let names = server.prompts.items.iter().map(|item| item.key.as_str()).collect::<Vec<_>>();
        let near = hint(&wanted.prompt, names);
        let text = format!("`{}` has no prompt `{}`; {near}", wanted.namespace, wanted.prompt);
        return Err(ApiError::new(FailureCode::NotFound, text));
    }
    let mut params = Object::new();
    params.set("arguments", wanted.arguments.unwrap_or_else(RawJson::empty_object));
    let (key, name) = (&server.def.key, &wanted.prompt);
    let got = dispatch::get_prompt(context, key, name, &params.write(), caller, None).await;
    let what = format!("prompt `{name}` of server `{key}`");
    answered(got, &what, "`mcpx prompts` shows its arguments")
}

fn answered(answer: Result<Outcome, Told>, what: &str, next: &str) -> Result<RawJson, ApiError> {
    match answer {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(failed(&error, what, next)),
        Err(told) => Err(told_error(told)),
    }
}

fn failed(error: &RpcError, what: &str, next: &str) -> ApiError {
    let missing = error.code == Code::ResourceNotFound.number();
    let code = if missing { FailureCode::NotFound } else { FailureCode::Upstream };
    let text = format!("{what} cannot be had: {} ({})", error.message, error.code);
    ApiError::new(code, text).with_hint(next)
}
