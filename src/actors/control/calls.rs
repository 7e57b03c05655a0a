//! Ops on tools: list and call, by namespace and name.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::catalog::{CatalogServer, Listing, ToolRecord};
use super::super::dispatch::{self, Context, Subject, Told};
use super::super::support::progress::ProgressSender;
use super::super::upstreams::{Answers, CallWant, Caller, Reason, Source, Via};
use crate::control::ApiError;
use crate::control::types::{
    AskAnswer, CallRequest, FailureCode, NamespaceTools, ToolsAnswer, TypesAnswer, TypesRequest,
};
use crate::protocol::jsonrpc::{Method, Object, RawJson};
use crate::protocol::model::{questions, tool_result};
use crate::protocol::revision::Era;
use crate::protocol::session::upstream::{ListKind, TaskWant};
use crate::script::types::PRELUDE;
use crate::settings::mistake::hint;
use crate::transport::clock;

/// Who calls when no host does.
pub(super) fn caller(context: &Context, project: Option<&str>) -> Caller {
    let project = project.map(|folder| Arc::from(PathBuf::from(folder)));
    Caller {
        host: None,
        project,
        label: Arc::from("mcpx"),
        era: Era::Modern,
        answers: Answers::Nobody,
        source: Source { who: context.asks, ..Source::new(Via::Control) },
    }
}

pub(super) async fn tools(
    context: &Context,
    namespace: Option<&str>,
    project: Option<&str>,
) -> Result<RawJson, ApiError> {
    let (servers, reason) = choose(context, ListKind::Tools, namespace, project).await?;
    let namespaces = servers.iter().map(|server| {
        let (listing, reason) = listing(&server.listing, reason.clone());
        NamespaceTools {
            namespace: server.def.namespace.clone(),
            server: server.def.key.clone(),
            info: server.info.clone(),
            listing,
            reason,
            tools: server.tools.iter().map(|tool| tool.raw.clone()).collect(),
        }
    });
    Ok(RawJson::write(&ToolsAnswer { namespaces: namespaces.collect() }))
}

/// For people and compilers: whole, however much it is.
pub(super) async fn types(context: &Context, wanted: TypesRequest) -> Result<RawJson, ApiError> {
    let TypesRequest { namespace, tools, all, project } = wanted;
    let namespace = namespace.as_deref();
    let wrong = |text: &str| Err(ApiError::new(FailureCode::BadRequest, text.to_owned()));
    match namespace {
        Some(_) if all => return wrong("it is one namespace, or `all`"),
        None if !tools.is_empty() => {
            return wrong("`tools` needs the `namespace` that they are of");
        }
        _ => {}
    }
    if namespace.is_none() && !all {
        let declarations = PRELUDE.to_owned();
        return Ok(RawJson::write(&TypesAnswer { declarations, unlisted: Vec::new() }));
    }
    let (servers, reason) = choose(context, ListKind::Tools, namespace, project.as_deref()).await?;
    let never = servers.iter().filter(|server| server.listing == Listing::Never);
    let unlisted: Vec<String> = never.map(|server| server.def.namespace.clone()).collect();
    if let (Some(text), [_]) = (reason, unlisted.as_slice()) {
        return Err(ApiError::new(FailureCode::Unavailable, text));
    }
    let declared = dispatch::declare_types(context, servers, tools, None)
        .await
        .map_err(|text| ApiError::new(FailureCode::NotFound, text))?;
    let prelude = if all { PRELUDE } else { "" };
    let declarations = format!("{prelude}{}", declared.text);
    Ok(RawJson::write(&TypesAnswer { declarations, unlisted }))
}

/// The servers whose lists are wanted, listed as far as that can be, and why the one that was asked
/// for could not be.
pub(super) async fn choose(
    context: &Context,
    kind: ListKind,
    namespace: Option<&str>,
    project: Option<&str>,
) -> Result<(Vec<Arc<CatalogServer>>, Option<String>), ApiError> {
    // The project's own instance, which a call from there will use: none is started twice.
    let caller = caller(context, project);
    let wanted = |server: &&Arc<CatalogServer>| {
        namespace.is_none_or(|name| server.def.namespace == name || server.def.key == name)
    };
    let snapshot = context.catalog.snapshot();
    let chosen: Vec<_> = snapshot.servers.iter().filter(wanted).collect();
    if let Some(name) = namespace
        && chosen.is_empty()
    {
        return Err(no_namespace(context, name));
    }
    // One server is waited for as long as it takes to start; of many, what is known is shown. Nobody
    // starts servers that were not asked for.
    let mut reason = None;
    match chosen.as_slice() {
        _ if namespace.is_none() => context.list_missing(&caller, kind, |_| true).await,
        [one] if *one.listing_of(kind) == Listing::Never => {
            let listed = context.upstreams.list_now(&caller, &one.def.key, kind).await;
            reason = listed.err().map(|refused| refused.text);
        }
        _ => {}
    }
    let servers = context.catalog.snapshot().servers.iter().filter(wanted).cloned().collect();
    Ok((servers, reason))
}

/// How far a list is known, in words, and why no further; `failed` where it could not be read now.
pub(super) fn listing(listing: &Listing, failed: Option<String>) -> (String, Option<String>) {
    let (word, reason) = match listing {
        Listing::Never => ("never", failed),
        Listing::Whole => ("whole", None),
        Listing::Incomplete(why) => ("incomplete", Some(why.clone())),
    };
    (word.to_owned(), reason)
}

fn no_namespace(context: &Context, name: &str) -> ApiError {
    let snapshot = context.catalog.snapshot();
    let names: Vec<&str> =
        snapshot.servers.iter().map(|server| server.def.namespace.as_str()).collect();
    let text = format!("there is no namespace `{name}`; {}", hint(name, names));
    ApiError::new(FailureCode::NotFound, text)
}

/// The result as the upstream gave it, `isError` included (D-03).
pub(super) async fn call(
    context: &Context,
    wanted: CallRequest,
    progress: Option<ProgressSender>,
) -> Result<RawJson, ApiError> {
    let mut caller = caller(context, wanted.project.as_deref());
    if wanted.questions.is_some() {
        caller.answers = Answers::Told { declared: questions::with_elicitation(None) };
    }
    let (server, tool) = find(context, &caller, &wanted).await?;
    let mut params = Object::new();
    params.set("name", RawJson::write(&tool.name));
    params.set("arguments", wanted.arguments.unwrap_or_else(RawJson::empty_object));
    // It waits: a task only where there is no other way, kept as long as it is waited for (U-57).
    let ttl = context.settings().call.total;
    let task = Some(TaskWant { ttl, support: tool.tasks, eager: false });
    let want = CallWant {
        server: Arc::from(server.def.key.as_str()),
        caller,
        method: Method::known("tools/call"),
        params: params.write(),
        progress,
        repeatable: tool.repeatable,
        task,
    };
    let what = Subject { kind: "tool", name: &tool.name, server: &server.def.key };
    match dispatch::call_upstream(context, what, Some(&tool), want).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => {
            let text = format!("{what} answered with an error: {} ({})", error.message, error.code);
            Err(ApiError::new(FailureCode::Upstream, text))
        }
        Err(told) => Err(told_error(told)),
    }
}

pub(super) fn told_error(told: Told) -> ApiError {
    let code = match told.reason {
        Reason::Busy => FailureCode::Busy,
        Reason::Timeout => FailureCode::Timeout,
        Reason::Unavailable | Reason::NotConfirmed => FailureCode::Unavailable,
        Reason::OutcomeUnknown => FailureCode::OutcomeUnknown,
    };
    let mut error = ApiError::new(code, told.text).with_reason(told.reason.as_str());
    error.error.audit = told.audit.map(|id| id.to_string());
    error
}

/// The result with a flag beside it that is up for whatever failed, on either side (D-04).
pub(super) async fn ask(
    context: &Context,
    wanted: CallRequest,
    progress: Option<ProgressSender>,
) -> Result<RawJson, ApiError> {
    let result = call(context, wanted, progress).await?;
    Ok(RawJson::write(&AskAnswer { failed: tool_result::is_error(&result), result }))
}

async fn find(
    context: &Context,
    caller: &Caller,
    wanted: &CallRequest,
) -> Result<(Arc<CatalogServer>, Arc<ToolRecord>), ApiError> {
    let mut server = namespace(context, &wanted.namespace)?;
    let begun = clock::now();
    let turned_away = |server: &CatalogServer, told| {
        let what = (server.def.key.as_str(), wanted.tool.as_str());
        dispatch::turned_away(context, caller, what, begun, told)
    };
    if server.listing == Listing::Never {
        context
            .upstreams
            .list_now(caller, &server.def.key, ListKind::Tools)
            .await
            .map_err(|refused| told_error(turned_away(&server, refused.into())))?;
        server = namespace(context, &wanted.namespace)?;
    }
    if server.tool(&wanted.tool).is_none() && matches!(server.listing, Listing::Incomplete(_)) {
        context
            .upstreams
            .list_again(caller, &server.def.key, ListKind::Tools)
            .await
            .map_err(|refused| told_error(turned_away(&server, refused.into())))?;
        server = namespace(context, &wanted.namespace)?;
    }
    let tool = server.tool(&wanted.tool).cloned();
    let tool = tool.ok_or_else(|| {
        let mut error = no_tool(&server, wanted);
        let told = Told::new(Reason::Unavailable, error.error.message.clone());
        error.error.audit = turned_away(&server, told).audit.map(|id| id.to_string());
        error
    })?;
    Ok((server, tool))
}

/// Says that there is no such tool, or that nobody knows because the server could not be asked.
fn no_tool(server: &CatalogServer, wanted: &CallRequest) -> ApiError {
    let CallRequest { namespace, tool, .. } = wanted;
    let names: Vec<&str> = server.tools.iter().map(|tool| tool.name.as_str()).collect();
    let known = if names.is_empty() { "none is known".to_owned() } else { hint(tool, names) };
    if let Listing::Incomplete(why) = &server.listing {
        let text = format!(
            "whether `{namespace}` has a tool `{tool}` is not known, its tools could not all be \
             listed ({why}); {known}"
        );
        return ApiError::new(FailureCode::Unavailable, text);
    }
    ApiError::new(FailureCode::NotFound, format!("`{namespace}` has no tool `{tool}`; {known}"))
}

pub(super) fn namespace(context: &Context, name: &str) -> Result<Arc<CatalogServer>, ApiError> {
    let snapshot = context.catalog.snapshot();
    let found = snapshot.servers.iter().find(|server| server.def.namespace == name);
    found.cloned().ok_or_else(|| no_namespace(context, name))
}
