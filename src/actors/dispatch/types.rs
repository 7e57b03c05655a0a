//! `mcpx_types`: tools as TypeScript. Reads the catalog; no server needs to run.

use std::fmt::Write as _;
use std::sync::Arc;

use super::Context;
use super::arguments::{object_of, only_known};
use super::call_tool::no_namespace;
use super::nearest::did_you_mean;
use crate::actors::catalog::{CatalogServer, Listing, Snapshot};
use crate::actors::upstreams::Caller;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::tool_result::text_result;
use crate::protocol::session::upstream::ListKind;
use crate::script::names;
use crate::script::types::{self, Declared, Namespace, PRELUDE, Tool};

/// Bytes of names of tools that are left out.
const NAMED: usize = 2000;

/// `mcpx_types` as a tool.
pub(super) async fn answer(
    context: &Context,
    caller: &Caller,
    arguments: Option<&RawJson>,
) -> RawJson {
    match text(context, caller, arguments).await {
        Ok(text) => text_result(&text, false),
        Err(text) => text_result(&text, true),
    }
}

/// The TypeScript that is asked for; `mcpx.types({…})` of a script is the same text.
pub(crate) async fn text(
    context: &Context,
    caller: &Caller,
    arguments: Option<&RawJson>,
) -> Result<String, String> {
    let (namespace, tools) = wanted(arguments)?;
    let Some(namespace) = namespace else {
        if !tools.is_empty() {
            return Err("mcpx_types needs the `namespace` of these tools.".to_owned());
        }
        let snapshot = context.catalog.snapshot();
        let members: Vec<String> = members(&snapshot).map(|(member, _)| member).collect();
        let note = "`mcpx_types` with one of them declares its tools.";
        return Ok(format!("{PRELUDE}\n// Namespaces: {}. {note}\n", members.join(", ")));
    };
    let mut server = find(&context.catalog.snapshot(), &namespace)?;
    if server.listing == Listing::Never {
        let listed = context.upstreams.list_soon(caller, &server.def.key, ListKind::Tools).await;
        if !listed.map_err(|refused| refused.text)? {
            return Err(format!(
                "`{namespace}` has not given its list of tools yet. Ask again in a moment; \
                 mcpx_status tells more."
            ));
        }
        server = find(&context.catalog.snapshot(), &namespace)?;
    }
    let room = context.settings().types.size;
    let declared = declare(context, vec![Arc::clone(&server)], tools, Some(room)).await?;
    Ok(explained(&server, &declared))
}

/// Namespace and tools of the arguments. A model may write one tool where a list is meant.
fn wanted(arguments: Option<&RawJson>) -> Result<(Option<String>, Vec<String>), String> {
    let given = object_of(arguments)?;
    only_known("mcpx_types", &given, &["namespace", "tools", "tool"])?;
    let namespace = given.get_str("namespace").filter(|name| !name.is_empty());
    let list = |name: &str| match given.get(name).filter(|value| !value.is_null()) {
        None => Ok(Vec::new()),
        Some(value) => value
            .text()
            .map(|one| vec![one])
            .or_else(|| value.read().ok())
            .ok_or_else(|| format!("`{name}` is a list of names of tools.")),
    };
    let mut tools = list("tools")?;
    tools.extend(list("tool")?);
    tools.retain(|tool| !tool.is_empty());
    Ok((namespace, tools))
}

/// The names of all servers for scripts, with their namespaces.
fn members(snapshot: &Snapshot) -> impl Iterator<Item = (String, &str)> {
    let namespaces = snapshot.servers.iter().map(|server| server.def.namespace.as_str());
    names::members(namespaces).into_iter()
}

/// The server of a namespace, or of its name in scripts.
fn find(snapshot: &Snapshot, namespace: &str) -> Result<Arc<CatalogServer>, String> {
    let all = || snapshot.servers.iter().map(|server| server.def.namespace.as_str());
    let meant = names::resolve(namespace, all());
    let found = snapshot.servers.iter().find(|server| Some(server.def.namespace.as_str()) == meant);
    found.cloned().ok_or_else(|| no_namespace(namespace, all()))
}

/// Declares tools of these servers: all of them, or those of `wanted`, which have to be there. Beside the
/// threads that serve calls: a schema may be long.
pub(crate) async fn declare(
    context: &Context,
    servers: Vec<Arc<CatalogServer>>,
    wanted: Vec<String>,
    room: Option<usize>,
) -> Result<Declared, String> {
    let settings = context.settings().types;
    let limits = types::Limits {
        depth: settings.depth,
        nodes: settings.nodes,
        size: settings.size,
        description: settings.description,
    };
    let snapshot = context.catalog.snapshot();
    let work = move || {
        let mut namespaces = Vec::new();
        for server in &servers {
            let own = members(&snapshot).find(|(_, namespace)| *namespace == server.def.namespace);
            let member = own.map_or_else(|| server.def.namespace.clone(), |(member, _)| member);
            let about = super::namespaces::about(server);
            namespaces.push(Namespace { member, about, tools: tools_of(server, &wanted)? });
        }
        Ok(types::declare(&namespaces, &limits, room))
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|why| Err(format!("the declarations could not be made: {why}")))
}

fn tools_of<'a>(server: &'a CatalogServer, wanted: &[String]) -> Result<Vec<Tool<'a>>, String> {
    let all = || server.tools.iter().map(|tool| tool.name.as_str());
    let mut chosen = Vec::new();
    for name in wanted {
        let meant = names::resolve(name, all()).ok_or_else(|| {
            let near = did_you_mean(name, all());
            format!("`{}` has no tool `{name}`.{near}", server.def.namespace)
        })?;
        chosen.push(meant);
    }
    let members = names::members(all());
    let tools = members.into_iter().zip(server.tools.iter());
    let tools = tools.filter(|((_, name), _)| wanted.is_empty() || chosen.contains(name));
    Ok(tools.map(|((member, _), tool)| Tool { member, definition: &tool.raw }).collect())
}

/// The declarations, with what a model has to know beside them.
fn explained(server: &CatalogServer, declared: &Declared) -> String {
    let mut text = String::from(
        "// tools.<namespace>.<tool>(args) in scripts. Promise<any>: JSON where the result is JSON, \
         else its text.\n",
    );
    text.push_str(&declared.text);
    if let Listing::Incomplete(why) = &server.listing {
        // Writing to a string cannot fail.
        let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "// The list of its tools is incomplete: {why}.");
    }
    if !declared.left_out.is_empty() {
        let mut names = String::new();
        let mut unnamed = 0;
        for (_, tool) in &declared.left_out {
            if names.len() + tool.len() > NAMED {
                unnamed += 1;
                continue;
            }
            let joint = if names.is_empty() { "" } else { ", " };
            let _ = write!(names, "{joint}{tool}");
        }
        let more = if unnamed > 0 { format!(" and {unnamed} more") } else { String::new() };
        let count = declared.left_out.len();
        let _ = writeln!(
            text,
            "// {count} more tools, no room here (setting types.size): {names}{more}. Ask for them with `tools`."
        );
    }
    text
}
