//! `tools/list` and `tools/call` as a host asks them.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::as_task::{self, Plan};
use super::listed::Views;
use super::outcome::Told;
use super::rounds::{self, Subject};
use super::{
    Context, OWN, Request, call_tool, core_tools, exec, namespaces, nearest, offers, op_tools,
    read_tool, recorded, resources, resources_tool, scripts_tool, search, status, task_tool, types,
};
use crate::actors::catalog::{Listing, ToolRecord, View, ViewTool};
use crate::actors::upstreams::{CallWant, Reason};
use crate::protocol::hex::hex;
use crate::protocol::http_rules::param_headers;
use crate::protocol::jsonrpc::{Code, Method, Object, RawJson, RpcError};
use crate::protocol::model::links;
use crate::protocol::session::Outcome;
use crate::protocol::session::upstream::{ListKind, TaskWant};
use crate::settings::{ExposeMode, Settings};
use crate::transport::clock;

/// The tools of mcpx itself that are listed under these settings, in order.
pub(crate) fn own_tools(settings: &Settings, view: &View) -> Vec<RawJson> {
    let mut own = Vec::new();
    if shows_core(settings, view) {
        own.extend(core_tools::CORE_TOOLS.iter().map(core_tools::CoreTool::definition));
    }
    if settings.expose.ops {
        own.extend(op_tools::definitions());
    }
    own
}

/// The names of all of mcpx's own tools, listed at present or not: no upstream's tool gets one.
pub(crate) fn own_names() -> Vec<String> {
    let core = core_tools::CORE_TOOLS.iter().map(|tool| tool.name.to_owned());
    core.chain(op_tools::definitions().iter().filter_map(|op| op.member_str("name"))).collect()
}

/// The core tools are listed unless everything is passed through.
pub(crate) fn shows_core(settings: &Settings, view: &View) -> bool {
    settings.expose.mode != ExposeMode::Passthrough && !view.everything_passes()
}

/// Digests of everything that the lists show now, for telling hosts when one has changed and for the
/// shim's comparison after a restart.
pub(crate) fn visible_views(context: &Context) -> Views {
    let settings = context.settings();
    let snapshot = context.catalog.snapshot();
    let offers = snapshot.offers(&settings.expose);
    Views([
        digest_of(&settings, &snapshot.passthrough(&settings.expose)),
        shown(&offers.digest(ListKind::Resources)),
        shown(&offers.digest(ListKind::Prompts)),
    ])
}

fn digest_of(settings: &Settings, view: &View) -> Arc<str> {
    let mut hasher = Sha256::new();
    for tool in own_tools(settings, view) {
        hasher.update(tool.as_bytes());
    }
    hasher.update(view.digest());
    shown(&hasher.finalize())
}

/// As much of a digest as tells lists apart, as text.
pub(super) fn shown(digest: &[u8]) -> Arc<str> {
    const SHOWN: usize = 16;
    hex(digest.get(..SHOWN).unwrap_or(digest)).into()
}

/// All of this host's tools on one page.
pub(super) async fn list(context: &Context, request: &Request) -> Outcome {
    offers::only_page(&request.params, ListKind::Tools)?;
    let settings = context.settings();
    if context.catalog.view(&settings.expose).waits_for_lists() {
        context.ensure_listed(&request.caller, ListKind::Tools).await;
    }
    let view = context.catalog.view(&settings.expose);
    request.listed.note(ListKind::Tools, digest_of(&settings, &view));
    let mut tools = own_tools(&settings, &view);
    tools.extend(view.tools().iter().map(|entry| entry.definition.clone()));
    let mut result = Object::new();
    result.set("tools", RawJson::write(&tools));
    Ok(result.write())
}

/// Calls one of mcpx's own tools, or an upstream's under its exposed name.
pub(super) async fn call(context: &Context, mut request: Request) -> Outcome {
    let member = |key| request.params.member(key);
    let name = member("name").and_then(|name| name.text());
    let name = name.ok_or_else(|| malformed("tools/call needs a `name`"))?;
    let settings = context.settings();
    let view = context.catalog.view(&settings.expose);
    let arguments = member("arguments");
    if shows_core(&settings, &view) && core_tools::find(&name).is_some() {
        let repeats = Arc::clone(&request.repeats);
        let outcome = call_core(context, request, &name, arguments.as_ref()).await?;
        // It knows whose tool failed.
        if name == "mcpx_call" {
            return Ok(outcome);
        }
        let given = arguments.as_ref().map(RawJson::as_bytes).unwrap_or_default();
        return Ok(repeats.told(OWN, &name, given, outcome));
    }
    if settings.expose.ops
        && let Some(op) = op_tools::find(&name)
    {
        let answer = Box::pin(op_tools::answer(context, op, arguments.as_ref())).await;
        let given = arguments.as_ref().map(RawJson::as_bytes).unwrap_or_default();
        return Ok(request.repeats.told(OWN, &name, given, answer));
    }
    let unlisted;
    let entry = match view.find(&name) {
        Some(entry) => entry,
        None => match Box::pin(find_unlisted(context, &request, &name)).await? {
            Ok(entry) => {
                unlisted = entry;
                &unlisted
            }
            Err(told) => return Ok(told.as_tool_result()),
        },
    };
    if let Some(headers) = &request.headers {
        param_headers::check_call(headers, &entry.definition, arguments.as_ref())?;
    }
    if name != entry.tool.name && context.inside.audit.is_on() {
        request.caller.source.named = Some(name.as_str().into());
    }
    // Under its own name the tool gets the parameters as they came.
    let upstream = if name == entry.tool.name {
        request.params.clone()
    } else {
        let mut params = Object::read_or_empty(Some(&request.params));
        params.set("name", RawJson::write(&entry.tool.name));
        params.write()
    };
    let key: Arc<str> = Arc::from(entry.server.def.key.as_str());
    let called = as_task::Tool { support: entry.tool.tasks, name: &name, through_core: false };
    let plan = as_task::plan(&request, called, &settings)?;
    let task = plan.want(&request, called, &settings);
    if !matches!(plan, Plan::Inline) {
        let tool = Arc::clone(&entry.tool);
        let work = Called { key, tool, upstream, task };
        return Box::pin(call_as_task(context, request, plan, work)).await;
    }
    let answered = upstream_call(context, request, key, &entry.tool, upstream, task).await;
    answered.unwrap_or_else(|told| Ok(told.as_tool_result()))
}

/// Calls one of the core tools.
async fn call_core(
    context: &Context,
    request: Request,
    name: &str,
    arguments: Option<&RawJson>,
) -> Outcome {
    let caller = &request.caller;
    Ok(match name {
        "mcpx_namespaces" => Box::pin(namespaces::answer(context, caller, arguments)).await,
        "mcpx_search" => Box::pin(search::answer(context, caller, arguments)).await,
        "mcpx_exec" => return Box::pin(exec::answer(context, request)).await,
        "mcpx_scripts" => return Box::pin(scripts_tool::answer(context, request)).await,
        "mcpx_types" => Box::pin(types::answer(context, caller, arguments)).await,
        "mcpx_read" => return Box::pin(read_tool::answer(context, request)).await,
        "mcpx_resources" => {
            let session = request.tasks.session.as_deref();
            Box::pin(resources_tool::answer(context, caller, session, arguments)).await
        }
        "mcpx_task" => Box::pin(task_tool::answer(context, &request, arguments)).await,
        "mcpx_status" => Box::pin(status::answer(context, arguments)).await,
        _ => {
            let params = Object::read_or_empty(Some(&request.params));
            return Box::pin(call_tool::answer(context, request, &params)).await;
        }
    })
}

/// What is called of whom.
struct Called {
    key: Arc<str>,
    tool: Arc<ToolRecord>,
    upstream: RawJson,
    task: Option<TaskWant>,
}

/// A call that may become a task.
async fn call_as_task(
    context: &Context,
    mut request: Request,
    plan: Plan,
    called: Called,
) -> Outcome {
    let begin = as_task::begin(&request, &plan, &called.tool.name, &called.key);
    let handover = as_task::hand_over(&mut request, &plan);
    let (own, task) = (context.clone(), called.task);
    let work = Box::pin(async move {
        let Called { key, tool, upstream, task } = called;
        let answered = upstream_call(&own, request, key, &tool, upstream, task).await;
        answered.unwrap_or_else(|told| Ok(told.as_tool_result()))
    });
    as_task::run(context, plan, handover, begin, task, work).await
}

/// The tool of this name of a server that had not been listed. It may start slowly, and hosts know
/// names from earlier days or their own configuration (F48: a call never says "unknown tool" because
/// of that).
async fn find_unlisted(
    context: &Context,
    request: &Request,
    name: &str,
) -> Result<Result<ViewTool, Told>, RpcError> {
    let caller = &request.caller;
    let settings = context.settings();
    let mut told = None;
    // More than one only where one prefix begins with another.
    for server in context.catalog.view(&settings.expose).unlisted(name) {
        let begun = clock::now();
        if let Err(refused) =
            context.upstreams.list_now(caller, &server.def.key, ListKind::Tools).await
        {
            let what = (server.def.key.as_str(), name);
            told = Some(recorded::turned_away(context, caller, what, begun, refused.into()));
        }
    }
    let view = context.catalog.view(&settings.expose);
    if let Some(entry) = view.find(name) {
        return Ok(Ok(entry.clone()));
    }
    let unreadable = view.unlisted(name).find_map(|server| match &server.listing {
        Listing::Incomplete(why) => Some(unlistable(name, &server.def.key, why)),
        Listing::Never | Listing::Whole => None,
    });
    if let Some(told) = told.or(unreadable) {
        return Ok(Err(told));
    }
    let mut error = unknown_tool(&settings, name, &view);
    if let Some(words) = request.repeats.words(OWN, name, &[], true) {
        error.message = format!("{} {words}", error.message);
    }
    Err(error)
}

fn unlistable(name: &str, server: &str, why: &str) -> Told {
    let text = format!(
        "whether server `{server}` has the tool behind `{name}` is not known: its tools could not \
         be listed ({why}); `mcpx status {server}` tells more, `mcpx restart {server}` tries again"
    );
    Told::new(Reason::Unavailable, text)
}

/// One tools/call on an upstream.
pub(super) async fn upstream_call(
    context: &Context,
    request: Request,
    server: Arc<str>,
    tool: &ToolRecord,
    params: RawJson,
    task: Option<TaskWant>,
) -> Result<Outcome, Told> {
    let want = CallWant {
        server: Arc::clone(&server),
        caller: request.caller,
        method: Method::known("tools/call"),
        params,
        progress: request.progress,
        repeatable: tool.repeatable,
        task,
    };
    let subject = Subject { kind: "tool", name: &tool.name, server: &server };
    let outcome = rounds::call(context, subject, Some(tool), want).await?;
    Ok(outcome.map(|result| with_addresses(context, &server, result)))
}

/// A result whose links a host can read (F46).
pub(super) fn with_addresses(context: &Context, server: &str, result: RawJson) -> RawJson {
    let renamed = |uri: &str| {
        let shown = resources::view(context).address_of(server, uri);
        (shown != uri).then_some(shown)
    };
    links::in_tool_result(&result, &renamed).unwrap_or(result)
}

/// Says what is near, and which servers may yet have it (F48).
fn unknown_tool(settings: &Settings, name: &str, view: &View) -> RpcError {
    let own = own_tools(settings, view);
    let own: Vec<String> = own.iter().filter_map(|tool| tool.member_str("name")).collect();
    let known = view.tools().iter().map(|entry| entry.name.as_str());
    let near = nearest::did_you_mean(name, own.iter().map(String::as_str).chain(known));
    let unlisted = if view.waits_for_lists() {
        " Some servers could not be listed yet: mcpx_status or `mcpx status` says which and why."
    } else {
        ""
    };
    RpcError::new(Code::InvalidParams, format!("unknown tool `{name}`.{near}{unlisted}"))
}

fn malformed(text: &str) -> RpcError {
    RpcError::new(Code::InvalidParams, text)
}
