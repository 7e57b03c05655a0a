//! `mcpx_namespaces`: the servers with a line each, or one server's tools with their schemas.

use std::fmt::Write as _;

use super::Context;
use super::arguments::{object_of, only_known};
use super::call_tool::find_server;
use crate::actors::catalog::{CatalogServer, Listing};
use crate::actors::upstreams::Caller;
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::tool_result;
use crate::protocol::session::upstream::ListKind;

pub(super) async fn answer(
    context: &Context,
    caller: &Caller,
    arguments: Option<&RawJson>,
) -> RawJson {
    match text(context, caller, arguments).await {
        Ok(text) => tool_result::text_result(&text, false),
        Err(text) => tool_result::text_result(&text, true),
    }
}

async fn text(
    context: &Context,
    caller: &Caller,
    arguments: Option<&RawJson>,
) -> Result<String, String> {
    let given = object_of(arguments)?;
    only_known("mcpx_namespaces", &given, &["namespace", "page"])?;
    let Some(namespace) = given.get_str("namespace").filter(|name| !name.is_empty()) else {
        return Ok(servers(context));
    };
    let mut server = find_server(&context.catalog.snapshot(), &namespace)?;
    if server.listing == Listing::Never {
        let listed = context.upstreams.list_soon(caller, &server.def.key, ListKind::Tools).await;
        if !listed.map_err(|refused| refused.text)? {
            return Ok(not_yet(context, &server).await);
        }
        server = find_server(&context.catalog.snapshot(), &namespace)?;
    }
    let page: usize = given.get("page").and_then(|page| page.read().ok()).unwrap_or(1);
    one_server(&server, page, context.settings().expose.page)
}

fn servers(context: &Context) -> String {
    let snapshot = context.catalog.snapshot();
    if snapshot.servers.is_empty() {
        return "No server is configured. `mcpx config path` says where to add one.".to_owned();
    }
    let mut text = String::new();
    for server in &snapshot.servers {
        let _ = writeln!(text, "{}", one_line(server));
    }
    text
}

fn one_line(server: &CatalogServer) -> String {
    let count = match &server.listing {
        Listing::Never => "tools not listed yet".to_owned(),
        Listing::Whole => format!("{} tools", server.tools.len()),
        Listing::Incomplete(why) => format!("{} tools, list incomplete: {why}", server.tools.len()),
    };
    let about = about(server);
    let about = if about.is_empty() { String::new() } else { format!(": {about}") };
    format!("{} ({count}){about}", server.def.namespace)
}

/// Title and description as the server gives them, on one line.
pub(super) fn about(server: &CatalogServer) -> String {
    const SHOWN: usize = 160;
    let info = Object::read_or_empty(server.info.as_ref());
    let name = info.get_str("title").or_else(|| info.get_str("name")).unwrap_or_default();
    let description = info.get_str("description").or_else(|| server.instructions.clone());
    let description = description.unwrap_or_default();
    let words: Vec<&str> = description.split_whitespace().collect();
    let description: String = words.join(" ").chars().take(SHOWN).collect();
    match (name.is_empty(), description.is_empty()) {
        (true, _) => description,
        (false, true) => name,
        (false, false) => format!("{name}. {description}"),
    }
}

/// What is known of a server whose list did not come within `expose.list_wait`: a host gives up on a
/// tool long before a slow server is ready, so it is told to ask again (F48).
async fn not_yet(context: &Context, server: &CatalogServer) -> String {
    let mut text = one_line(server);
    text.push('\n');
    let Some(status) = context.upstreams.status_of(&server.def.key).await else { return text };
    let oldest = status.instances.iter().max_by_key(|instance| instance.uptime_ms);
    let since = oldest.map(|it| format!(" since {} s", it.uptime_ms / 1000)).unwrap_or_default();
    let doing = match status.state {
        "ready" => format!("It runs{since}, but has not given its list yet"),
        "starting" => format!("It is starting{since}"),
        other => format!("It is in state `{other}`{since}"),
    };
    let reason = status.reason.map(|why| format!(" (before that: {why})")).unwrap_or_default();
    let _ = writeln!(text, "{doing}{reason}. Ask again in a moment; mcpx_status tells more.");
    text
}

fn one_server(server: &CatalogServer, page: usize, size: usize) -> Result<String, String> {
    let pages = server.tools.len().div_ceil(size).max(1);
    if page == 0 || page > pages {
        return Err(format!("`{}` has pages 1 to {pages} of tools", server.def.namespace));
    }
    let mut text = one_line(server);
    text.push('\n');
    if page == 1
        && let Some(instructions) = &server.instructions
    {
        let _ = writeln!(text, "Instructions: {instructions}");
    }
    for tool in server.tools.iter().skip((page - 1) * size).take(size) {
        let object = Object::read_or_empty(Some(&tool.raw));
        let description = object.get_str("description").unwrap_or_default();
        let schema = object.get("inputSchema").cloned().unwrap_or_else(RawJson::empty_object);
        let _ = writeln!(text, "\n## {}\n{description}\ninput: {}", tool.name, schema.as_str());
        if let Some(output) = object.get("outputSchema") {
            let _ = writeln!(text, "output: {}", output.as_str());
        }
    }
    if pages > 1 {
        let _ = writeln!(text, "\nPage {page} of {pages}.");
    }
    Ok(text)
}
