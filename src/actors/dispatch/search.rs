//! `mcpx_search`: which tools of all servers fit some words. Reads the catalog; no server needs to run.

use std::fmt::Write as _;

use super::Context;
use super::arguments::{object_of, only_known};
use super::call_tool::find_server;
use super::nearest::nearest;
use crate::actors::catalog::{Listing, Snapshot};
use crate::actors::upstreams::Caller;
use crate::control::types::{FoundScript, FoundTool, SearchAnswer, SearchRequest};
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
        context.upstreams.list_missing(caller, ListKind::Tools, |_| true).await;
    }
    let saved = if namespace.is_none() { saved(context).await } else { Vec::new() };
    Ok(look(context, &context.catalog.snapshot(), &saved, looked))
}

/// Saved scripts that can run, described as tools are. Where they cannot be read there are none:
/// mcpx_scripts says why.
async fn saved(context: &Context) -> Vec<(FoundScript, RawJson)> {
    let all = context.scripts.all().await.unwrap_or_default();
    let usable = all.into_iter().filter_map(|saved| Some((saved.name, saved.about.ok()?)));
    let described = usable.map(|(name, about)| {
        let mut definition = Object::new();
        definition.set("description", RawJson::write(&about.description));
        definition.set("inputSchema", about.schema());
        let description = first_sentence(&about.description).to_owned();
        let signature = format!("{name}{}", about.signature());
        (FoundScript { name, signature, description }, definition.write())
    });
    described.collect()
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

fn look(
    context: &Context,
    snapshot: &Snapshot,
    saved: &[(FoundScript, RawJson)],
    looked: &SearchRequest,
) -> SearchAnswer {
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
    let scripts = Index::new(saved.iter().map(|(script, definition)| Document {
        namespace: "",
        server: "",
        name: &script.name,
        definition,
    }));
    let mut found = SearchAnswer {
        unlisted: unlisted(snapshot, namespace).map(str::to_owned).collect(),
        ..SearchAnswer::default()
    };
    for hit in search(&[snapshot.search_index(), &scripts], &query) {
        if hit.index == 0 {
            found.tools.extend(tool_at(snapshot, &limits, hit.document));
        } else {
            found.scripts.extend(saved.get(hit.document).map(|(script, _)| script.clone()));
        }
    }
    if found.tools.is_empty() && found.scripts.is_empty() {
        found.near = near(snapshot, looked);
    }
    found
}

/// The tool at this place among all.
fn tool_at(snapshot: &Snapshot, limits: &types::Limits, mut at: usize) -> Option<FoundTool> {
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
    if !found.scripts.is_empty() {
        text.push_str("Saved scripts, which mcpx_scripts runs:\n");
    }
    for script in &found.scripts {
        let _ = writeln!(text, "{}\n  {}", script.signature, script.description);
    }
    if found.tools.is_empty() && found.scripts.is_empty() {
        let _ = write!(text, "No tool fits `{}`.", looked.query);
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
