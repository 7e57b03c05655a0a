//! `mcpx_call`: one tool of one server, by namespace and name.
//!
//! Returns what the upstream returned, whole (H-55, H-56): every content block, `structuredContent`,
//! `isError`, `_meta`; and a text copy of structured content where the upstream sent none.

use std::sync::Arc;

use super::arguments::{self, Wanted};
use super::as_task::{self, Plan};
use super::nearest::did_you_mean;
use super::outside::{self, Origin};
use super::{Context, OWN, Request, Told, recorded, tools};
use crate::actors::catalog::{CatalogServer, Listing, Snapshot, ToolRecord};
use crate::actors::upstreams::{Answers, Caller, Reason};
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::{answers, questions, tool_result};
use crate::protocol::session::Outcome;
use crate::protocol::session::upstream::{ListKind, TaskWant};
use crate::script::names;
use crate::transport::clock;

pub(super) async fn answer(context: &Context, request: Request, params: &Object) -> Outcome {
    let given = params.get("arguments");
    let wanted = match arguments::wanted(given) {
        Ok(wanted) => wanted,
        Err(text) => {
            let result = tool_result::text_result(&text, true);
            let given = given.map(RawJson::as_bytes).unwrap_or_default();
            return Ok(request.repeats.told(OWN, "mcpx_call", given, result));
        }
    };
    match prepare(context, &request.caller, &wanted).await {
        Ok(prepared) => start(context, request, params, prepared).await,
        Err(result) => Ok(turned_down(&request, &wanted, result)),
    }
}

/// What became of a script's call.
#[derive(Debug)]
pub(super) struct Ran {
    /// Always a result.
    pub(super) result: RawJson,
    /// Whether the tool may have run.
    pub(super) reached: bool,
}

/// A call that a script makes: it waits for the outcome.
pub(super) async fn for_script(context: &Context, request: Request, wanted: &Wanted) -> Ran {
    let prepared = match prepare(context, &request.caller, wanted).await {
        Ok(prepared) => prepared,
        Err(result) => {
            return Ran { result: turned_down(&request, wanted, result), reached: false };
        }
    };
    // A task only where there is no other way, kept as long as it is waited for (U-57).
    let ttl = context.settings().call.total;
    let task = Some(TaskWant { ttl, support: prepared.tool.tasks, eager: false });
    let mut params = Object::new();
    params.set("name", RawJson::write(&prepared.tool.name));
    params.set("arguments", prepared.arguments.clone());
    // A script has its results whole: they cost a model nothing.
    let result = run(context, request, params.write(), prepared, task, 0).await;
    let result = result.unwrap_or_else(|error| tool_result::text_result(&error.message, true));
    let unreached = [Reason::Busy, Reason::Unavailable, Reason::NotConfirmed].map(Reason::as_str);
    let reason = tool_result::reason(&result);
    let reached = reason.is_none_or(|reason| !unreached.contains(&&*reason));
    Ran { result, reached }
}

/// The result of a call that reached nobody, with words where it is made again and again.
fn turned_down(request: &Request, wanted: &Wanted, result: RawJson) -> RawJson {
    let arguments = wanted.arguments.as_ref().map(RawJson::as_bytes).unwrap_or_default();
    request.repeats.told(&wanted.namespace, &wanted.tool, arguments, result)
}

/// Runs the call, as a task where that is what it is to be.
async fn start(
    context: &Context,
    mut request: Request,
    params: &Object,
    prepared: Prepared,
) -> Outcome {
    let settings = context.settings();
    let (support, name) = (prepared.tool.tasks, prepared.tool.name.as_str());
    let called = as_task::Tool { support, name, through_core: true };
    let plan = as_task::plan(&request, called, &settings)?;
    let task = plan.want(&request, called, &settings);
    let upstream = upstream_params(&request, params, &prepared);
    let limit = settings.call.result_limit;
    if matches!(plan, Plan::Inline) {
        return run(context, request, upstream, prepared, task, limit).await;
    }
    let begin = as_task::begin(&request, &plan, name, &prepared.server.def.key);
    let handover = as_task::hand_over(&mut request, &plan);
    let own = context.clone();
    let work = Box::pin(async move { run(&own, request, upstream, prepared, task, limit).await });
    Box::pin(as_task::run(context, plan, handover, begin, task, work)).await
}

struct Prepared {
    server: Arc<CatalogServer>,
    tool: Arc<ToolRecord>,
    arguments: RawJson,
}

/// Finds server and tool; an error is a result for the model, with the reason where the server
/// cannot be had (product.md 7).
async fn prepare(context: &Context, caller: &Caller, wanted: &Wanted) -> Result<Prepared, RawJson> {
    let told = |text: String| tool_result::text_result(&text, true);
    // product.md 7: what is not there is unavailable.
    let missing = |text| Told::new(Reason::Unavailable, text).as_tool_result();
    let find = || find_server(&context.catalog.snapshot(), &wanted.namespace).map_err(missing);
    let mut server = find()?;
    // Only where something has to be waited for, or goes wrong: an ordinary call does not pay for it.
    let turned_away = |server: &CatalogServer, begun, told| {
        let what = (server.def.key.as_str(), wanted.tool.as_str());
        recorded::turned_away(context, caller, what, begun, told).as_tool_result()
    };
    if server.listing == Listing::Never {
        // Nobody has asked this server for its tools yet; the call needs their names and hints.
        let begun = clock::now();
        let listed =
            Box::pin(context.upstreams.list_now(caller, &server.def.key, ListKind::Tools)).await;
        listed.map_err(|refused| turned_away(&server, begun, refused.into()))?;
        server = find()?;
    }
    if tool_of(&server, &wanted.tool).is_none() && matches!(server.listing, Listing::Incomplete(_))
    {
        let begun = clock::now();
        let listed = context.upstreams.list_again(caller, &server.def.key, ListKind::Tools).await;
        listed.map_err(|refused| turned_away(&server, begun, refused.into()))?;
        server = find()?;
    }
    let Some(tool) = tool_of(&server, &wanted.tool) else {
        let near = did_you_mean(&wanted.tool, server.tools.iter().map(|tool| tool.name.as_str()));
        let incomplete = match &server.listing {
            Listing::Incomplete(why) => format!(" Its list is incomplete: {why}."),
            Listing::Never | Listing::Whole => String::new(),
        };
        let text = format!(
            "server `{}` has no tool `{}`.{near}{incomplete} mcpx_namespaces with this namespace \
             lists its tools.",
            server.def.namespace, wanted.tool
        );
        return Err(turned_away(&server, clock::now(), Told::new(Reason::Unavailable, text)));
    };
    let arguments = arguments::for_tool(wanted.arguments.as_ref(), &tool.raw)
        .map_err(|why| told(with_schema(&why, &tool)))?;
    Ok(Prepared { server, tool, arguments })
}

/// The tool of this name, or of this name in scripts (C-13).
fn tool_of(server: &CatalogServer, name: &str) -> Option<Arc<ToolRecord>> {
    let by_member = || {
        let name = names::resolve(name, server.tools.iter().map(|tool| tool.name.as_str()))?;
        server.tool(name)
    };
    server.tool(name).or_else(by_member).cloned()
}

/// The server of a namespace, or of its name in scripts (C-13); or words with the nearest names.
pub(super) fn find_server(
    snapshot: &Snapshot,
    namespace: &str,
) -> Result<Arc<CatalogServer>, String> {
    let of = |name: &str| snapshot.servers.iter().find(|server| server.def.namespace == name);
    let all = || snapshot.servers.iter().map(|server| server.def.namespace.as_str());
    let by_member = || of(names::resolve(namespace, all())?);
    of(namespace).or_else(by_member).cloned().ok_or_else(|| no_namespace(namespace, all()))
}

/// Words for a namespace that is none, with those that are.
pub(super) fn no_namespace<'a>(wanted: &str, all: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = did_you_mean(wanted, all.clone());
    let all: Vec<&str> = all.collect();
    format!("there is no namespace `{wanted}`.{near} Namespaces: {}.", all.join(", "))
}

/// The parameters of the call of the tool itself.
fn upstream_params(request: &Request, params: &Object, prepared: &Prepared) -> RawJson {
    let mut upstream = Object::new();
    upstream.set("name", RawJson::write(&prepared.tool.name));
    upstream.set("arguments", prepared.arguments.clone());
    if let Some(meta) = params.get("_meta") {
        upstream.set("_meta", meta.clone());
    }
    questions::copy_answers(&request.params, &mut upstream);
    upstream.write()
}

async fn run(
    context: &Context,
    request: Request,
    upstream: RawJson,
    prepared: Prepared,
    task: Option<TaskWant>,
    result_limit: usize,
) -> Outcome {
    let Prepared { server, tool, arguments } = prepared;
    let repeats = Arc::clone(&request.repeats);
    let owner = request.tasks.session.clone();
    let asks_host = matches!(request.caller.answers.present(), Answers::Inline { .. });
    let line = match request.caller.answers.present() {
        Answers::Line { declared, .. } => Some(declared.clone()),
        _ => None,
    };
    let key: Arc<str> = Arc::from(server.def.key.as_str());
    let outcome = tools::upstream_call(context, request, key, &tool, upstream, task).await;
    let result = match outcome {
        // Neither a success nor a failure yet, and the host's own business.
        Ok(Ok(result)) if questions::is_asking(&result) => return Ok(result),
        Ok(Err(error)) if asks_host && answers::is_for_host(&error) => {
            return Err(error);
        }
        // -32042: its host sees to the addresses, and makes this call again.
        Ok(Err(error)) if line.is_some_and(|line| questions::sees_urls(&line, &error)) => {
            return Err(error);
        }
        Ok(Ok(result)) => {
            let failed = tool_result::is_error(&result);
            let mut result = tool_result::with_text_copy(result);
            if result_limit > 0 && result.len() > result_limit {
                let maker = format!("tool `{}` of server `{}`", tool.name, server.def.key);
                let owner = owner.as_deref().map(str::to_owned);
                let origin = Origin { maker, name: tool.name.clone(), owner };
                result = Box::pin(outside::keep_outside(context, result, origin)).await;
            }
            if failed { explain(result, &arguments, &tool) } else { result }
        }
        // H-63: what a model can mend is a result, in the upstream's words and with the schema.
        Ok(Err(error)) => {
            let text = format!("{} ({})", questions::told_urls(&error), error.code);
            tool_result::text_result(&with_schema(&text, &tool), true)
        }
        Err(told) => told.as_tool_result(),
    };
    Ok(repeats.told(&server.def.key, &tool.name, arguments.as_bytes(), result))
}

/// An upstream's error result, with the schema where the arguments do not fit it.
fn explain(result: RawJson, arguments: &RawJson, tool: &ToolRecord) -> RawJson {
    if arguments::look_wrong(arguments, &tool.raw) {
        return tool_result::append_text(&result, &schema_text(tool));
    }
    result
}

fn with_schema(text: &str, tool: &ToolRecord) -> String {
    format!("{text}\n{}", schema_text(tool))
}

fn schema_text(tool: &ToolRecord) -> String {
    let schema = tool.raw.member("inputSchema").unwrap_or_else(RawJson::empty_object);
    format!("Input schema of `{}`: {}", tool.name, schema.as_str())
}
