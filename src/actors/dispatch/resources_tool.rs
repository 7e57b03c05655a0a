//! `mcpx_resources`: resources and templates with a line each, of one server or by words.

use std::fmt::Write as _;
use std::sync::Arc;

use super::Context;
use super::arguments::{object_of, only_known};
use super::call_tool::find_server;
use super::resources::view;
use crate::actors::artifacts::Record;
use crate::actors::catalog::{Listing, ShownOffer};
use crate::actors::upstreams::Caller;
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::tool_result::text_result;
use crate::protocol::session::upstream::ListKind;
use crate::protocol::uri;

pub(super) async fn answer(
    context: &Context,
    caller: &Caller,
    session: Option<&str>,
    arguments: Option<&RawJson>,
) -> RawJson {
    match text(context, caller, session, arguments).await {
        Ok(text) => text_result(&text, false),
        Err(text) => text_result(&text, true),
    }
}

async fn text(
    context: &Context,
    caller: &Caller,
    session: Option<&str>,
    arguments: Option<&RawJson>,
) -> Result<String, String> {
    let given = object_of(arguments)?;
    only_known("mcpx_resources", &given, &["namespace", "query", "page"])?;
    let namespace = given.get_str("namespace").filter(|name| !name.is_empty());
    let query = given.get_str("query").unwrap_or_default();
    let page: usize = given.get("page").and_then(|page| page.read().ok()).unwrap_or(1);
    let size = context.settings().expose.page;
    let stored = stored(context, session);
    if namespace.as_deref() == Some(uri::ARTIFACTS) && !is_server(context, uri::ARTIFACTS) {
        return one_page(&with_all_words(stored.into_iter(), &query), page, size);
    }
    let mut waits = false;
    match &namespace {
        Some(name) => {
            let server = find_server(&context.catalog.snapshot(), name)?;
            if server.resources.listing == Listing::Never {
                let (key, kind) = (&server.def.key, ListKind::Resources);
                let listed = context.upstreams.list_soon(caller, key, kind).await;
                waits = !listed.map_err(|refused| refused.text)?;
            }
        }
        None => {
            // A server that has just begun may have given the one list and not yet the other.
            for kind in [ListKind::Resources, ListKind::Templates] {
                if view(context).waits_for(kind) {
                    context.ensure_listed(caller, kind).await;
                    waits |= view(context).waits_for(kind);
                }
            }
        }
    }
    let lines = lines(context, namespace.as_deref(), &query);
    let mut text = one_page(&lines, page, size)?;
    if namespace.is_none() && !stored.is_empty() {
        let count = stored.len();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "And {count} stored results and files: namespace \"{}\".",
            uri::ARTIFACTS
        );
    }
    if waits {
        text.push_str("Some servers could not be listed yet; mcpx_status tells which and why.\n");
    }
    Ok(text)
}

/// A line for each resource and template that has all words of `query` in it.
fn lines(context: &Context, namespace: Option<&str>, query: &str) -> Vec<String> {
    let view = view(context);
    let wanted =
        |item: &&ShownOffer| namespace.is_none_or(|name| item.server.def.namespace == name);
    let resources = view.resources().iter().filter(wanted).map(|item| line("", item));
    let templates = view.templates().iter().filter(wanted).map(|item| line("template ", item));
    with_all_words(resources.chain(templates), query)
}

fn with_all_words(lines: impl Iterator<Item = String>, query: &str) -> Vec<String> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let has_all = |line: &String| {
        let line = line.to_lowercase();
        words.iter().all(|word| line.contains(word))
    };
    lines.filter(has_all).collect()
}

fn is_server(context: &Context, namespace: &str) -> bool {
    context.catalog.snapshot().servers.iter().any(|server| server.def.namespace == namespace)
}

/// A line for each artifact that was made for this session, or for nobody's; newest first.
fn stored(context: &Context, session: Option<&str>) -> Vec<String> {
    let line = |record: &Arc<Record>| {
        let Record { name, kind, size, maker, .. } = &**record;
        format!("{} | {name} | {maker} | {kind} | {size} bytes", uri::artifact(&record.id))
    };
    let all = context.artifacts.all();
    let own = |record: &&Arc<Record>| record.owner.is_none() || record.owner.as_deref() == session;
    all.iter().filter(own).map(line).collect()
}

fn line(before: &str, item: &ShownOffer) -> String {
    const SHOWN: usize = 160;
    let object = Object::read_or_empty(Some(&item.definition));
    let text = |key: &str| object.get_str(key).filter(|text| !text.is_empty());
    let mut line = format!("{before}{}", item.shown);
    let name = text("title").or_else(|| text("name")).filter(|name| *name != item.offer.key);
    let words: Vec<_> = text("description").into_iter().collect();
    let words: Vec<&str> = words.iter().flat_map(|text| text.split_whitespace()).collect();
    let description: String = words.join(" ").chars().take(SHOWN).collect();
    for (mark, part) in [(" | ", name), (" | ", Some(description)), (" | ", text("mimeType"))] {
        if let Some(part) = part.filter(|part| !part.is_empty()) {
            // Writing to a string cannot fail.
            let _ = write!(line, "{mark}{part}");
        }
    }
    if let Some(size) = object.get("size") {
        let _ = write!(line, " | {} bytes", size.as_str());
    }
    line
}

fn one_page(lines: &[String], page: usize, size: usize) -> Result<String, String> {
    if lines.is_empty() {
        return Ok("No such resource is listed.\n".to_owned());
    }
    let pages = lines.len().div_ceil(size).max(1);
    if page == 0 || page > pages {
        return Err(format!("there are pages 1 to {pages}"));
    }
    let mut text = String::new();
    for line in lines.iter().skip((page - 1) * size).take(size) {
        let _ = writeln!(text, "{line}");
    }
    if pages > 1 {
        let _ = writeln!(text, "\nPage {page} of {pages}; {} in all.", lines.len());
    }
    Ok(text)
}
