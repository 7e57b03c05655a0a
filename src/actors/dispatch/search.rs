//! `mcpx_search`: which tools of all servers fit some words. Reads the catalog; no server needs to run.

use std::fmt::Write as _;

use super::Context;
use super::arguments::{object_of, only_known};
use super::call_tool::find_server;
use super::nearest::nearest;
use crate::actors::catalog::{Listing, Snapshot};
use crate::actors::scripts::Saved;
use crate::actors::upstreams::Caller;
use crate::control::types::{FoundTool, ScriptView, SearchAnswer, SearchRequest};
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::tool_result::text_result;
use crate::protocol::session::upstream::ListKind;
use crate::script::search::{Document, Index, Query, first_sentence, search};
use crate::script::{names, types};

/// `mcpx_search` as a tool.
pub(super) async fn answer(
    context: &Context,
    caller: &Caller,
    arguments: Option<&RawJson>,
) -> RawJson {
    let found = match looked(context, arguments) {
        Ok(looked) => find(context, caller, &looked).await.map(|found| text(&looked, &found)),
        Err(text) => Err(text),
    };
    match found {
        Ok(text) => text_result(&text, false),
        Err(text) => text_result(&text, true),
    }
}

/// `mcpx.search({…})` of a script: `[{namespace, tool, member, signature, description}]`, the best first.
pub(crate) async fn value(
    context: &Context,
    caller: &Caller,
    arguments: Option<&RawJson>,
) -> Result<RawJson, String> {
    let found = find(context, caller, &looked(context, arguments)?).await?;
    Ok(RawJson::write(&found.tools))
}

fn looked(context: &Context, arguments: Option<&RawJson>) -> Result<SearchRequest, String> {
    let given = object_of(arguments)?;
    only_known("mcpx_search", &given, &["query", "namespace", "limit"])?;
    let query = given.get_str("query").filter(|query| !query.trim().is_empty());
    let query = query.ok_or("mcpx_search needs `query`: words that say what a tool is to do.")?;
    let most = context.settings().search.max_results;
    let limit = match given.get("limit").filter(|limit| !limit.is_null()) {
        None => None,
        Some(limit) => Some(limit.read().ok().filter(|limit| (1..=most).contains(limit)).ok_or(
            format!("`limit` is a number from 1 to {most} (setting search.max_results)."),
        )?),
    };
    let namespace = given.get_str("namespace").filter(|name| !name.is_empty());
    Ok(SearchRequest { query, namespace, limit, project: None })
}

/// Looks in all that is known. Servers that were never listed are listed first, as far as that comes within
/// `expose.list_wait`.
pub(crate) async fn find(
    context: &Context,
    caller: &Caller,
    looked: &SearchRequest,
) -> Result<SearchAnswer, String> {
    let namespace = looked.namespace.as_deref();
    if let Some(name) = namespace {
        let server = find_server(&context.catalog.snapshot(), name)?;
        if server.listing == Listing::Never {
            let (key, kind) = (&server.def.key, ListKind::Tools);
            let listed = context.upstreams.list_soon(caller, key, kind).await;
            listed.map_err(|refused| refused.text)?;
        }
    } else {
        // Asks nobody whose list is known.
        context.list_missing(caller, ListKind::Tools, |_| true).await;
    }
    let mut found = look(context, &context.catalog.snapshot(), looked);
    if namespace.is_none() {
        found.scripts = scripts(context, looked).await;
    }
    Ok(found)
}

/// The saved scripts that fit, the best first.
async fn scripts(context: &Context, looked: &SearchRequest) -> Vec<ScriptView> {
    // A folder that cannot be read is told of where it is asked for: `mcpx scripts list`.
    let saved = context.scripts.all().await.unwrap_or_default();
    let definition = |saved: &Saved| {
        let mut definition = Object::new();
        if let Ok(about) = &saved.about {
            definition.set("description", RawJson::write(&about.description));
            definition.set("inputSchema", about.schema());
        }
        definition.write()
    };
    let definitions: Vec<RawJson> = saved.iter().map(definition).collect();
    let documents = saved.iter().zip(&definitions);
    let index = Index::new(documents.map(|(saved, definition)| Document {
        namespace: "",
        server: "",
        name: &saved.name,
        definition,
    }));
    let settings = context.settings().search;
    let results = looked.limit.unwrap_or(settings.results).min(settings.max_results);
    let query = Query { text: &looked.query, namespace: None, words: settings.words, results };
    let hits = search(&[&index], &query);
    hits.iter().filter_map(|hit| saved.get(hit.document)).map(Saved::view).collect()
}

/// Namespaces of servers of whose tools nothing is known.
fn unlisted<'a>(
    snapshot: &'a Snapshot,
    namespace: Option<&'a str>,
) -> impl Iterator<Item = &'a str> {
    let servers = snapshot.servers.iter();
    let unknown = servers.filter(|it| it.listing != Listing::Whole && it.tools.is_empty());
    let names = unknown.map(|server| server.def.namespace.as_str());
    names.filter(move |name| namespace.is_none_or(|wanted| wanted == *name))
}

fn look(context: &Context, snapshot: &Snapshot, looked: &SearchRequest) -> SearchAnswer {
    let settings = context.settings();
    let namespace = looked.namespace.as_deref();
    let query = Query {
        text: &looked.query,
        namespace,
        words: settings.search.words,
        results: looked.limit.unwrap_or(settings.search.results).min(settings.search.max_results),
    };
    let of = settings.types;
    let size = settings.search.signature;
    let limits = types::Limits { depth: of.depth, nodes: of.nodes, size, description: 0 };
    let hits = search(&[snapshot.search_index()], &query);
    let tools = hits.into_iter().filter_map(|hit| found(snapshot, &limits, hit.document)).collect();
    let unlisted = unlisted(snapshot, namespace).map(str::to_owned).collect();
    let mut found = SearchAnswer { tools, scripts: Vec::new(), unlisted, near: Vec::new() };
    if found.tools.is_empty() {
        found.near = near(snapshot, looked);
    }
    found
}

/// The tool at this place among all.
fn found(snapshot: &Snapshot, limits: &types::Limits, mut at: usize) -> Option<FoundTool> {
    let server = snapshot.servers.iter().find(|server| {
        let here = at < server.tools.len();
        if !here {
            at -= server.tools.len();
        }
        here
    })?;
    let tool = server.tools.get(at)?;
    let all = names::members(server.tools.iter().map(|tool| tool.name.as_str()));
    let member = all.into_iter().nth(at).map(|(member, _)| member).unwrap_or_default();
    let description = tool.raw.member_str("description").unwrap_or_default();
    Some(FoundTool {
        namespace: server.def.namespace.clone(),
        tool: tool.name.clone(),
        signature: types::signature_as(&member, &tool.raw, limits),
        member,
        description: first_sentence(&description).to_owned(),
    })
}

/// Longest part of a query that fits nothing which is said again, in characters.
const SHOWN_QUERY: usize = 80;

fn near(snapshot: &Snapshot, looked: &SearchRequest) -> Vec<String> {
    const SHOWN: usize = 5;
    let wanted = |namespace: &str| looked.namespace.as_deref().is_none_or(|it| it == namespace);
    let servers = snapshot.servers.iter().filter(|server| wanted(&server.def.namespace));
    let name = |namespace: &str, tool: &str| format!("{namespace}.{tool}");
    let names: Vec<(&str, String)> = servers
        .flat_map(|server| server.tools.iter().map(move |tool| (server, tool)))
        .map(|(server, tool)| (tool.name.as_str(), name(&server.def.namespace, &tool.name)))
        .collect();
    let near = nearest(&looked.query, names.iter().map(|(tool, _)| *tool), SHOWN);
    let full = names.iter().filter(|(tool, _)| near.contains(tool)).take(SHOWN);
    full.map(|(_, full)| full.clone()).collect()
}

fn text(looked: &SearchRequest, found: &SearchAnswer) -> String {
    let mut text = String::new();
    for tool in &found.tools {
        // By its own name, which mcpx_call takes; how scripts write it is said where it differs.
        let shape = tool.signature.strip_prefix(&*tool.member).unwrap_or(&tool.signature);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}.{}{shape}", tool.namespace, tool.tool);
        if tool.member != tool.tool {
            let _ = writeln!(text, "  in scripts: {}", tool.member);
        }
        if !tool.description.is_empty() {
            let _ = writeln!(text, "  {}", tool.description);
        }
    }
    for script in &found.scripts {
        let _ = writeln!(
            text,
            "Saved script, run by mcpx_scripts: {}{}",
            script.name, script.signature
        );
        if !script.description.is_empty() {
            let _ = writeln!(text, "  {}", script.description);
        }
    }
    if found.tools.is_empty() {
        let query: String = looked.query.chars().take(SHOWN_QUERY).collect();
        let _ = write!(text, "No tool fits `{query}`.");
        if !found.near.is_empty() {
            let _ = write!(text, " Did you mean {}?", found.near.join(", "));
        }
        text.push_str(" Try other words; mcpx_namespaces lists servers and their tools.\n");
    }
    if !found.unlisted.is_empty() {
        let _ = writeln!(
            text,
            "Not searched, since their tools could not be listed yet: {}. mcpx_status tells why.",
            found.unlisted.join(", ")
        );
    }
    text
}
