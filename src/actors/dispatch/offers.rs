//! `resources/list`, `resources/templates/list` and `prompts/list` as a host asks them.

use super::{Context, Request, tools};
use crate::actors::catalog::ShownOffer;
use crate::protocol::jsonrpc::{Code, Object, RawJson, RpcError};
use crate::protocol::session::Outcome;
use crate::protocol::session::upstream::ListKind;

/// All of this list on one page.
pub(super) async fn list(context: &Context, request: &Request, kind: ListKind) -> Outcome {
    only_page(&request.params, kind)?;
    let settings = context.settings();
    if context.catalog.offers(&settings.expose).waits_for(kind) {
        context.ensure_listed(&request.caller, kind).await;
    }
    let view = context.catalog.offers(&settings.expose);
    request.listed.note(kind, tools::shown(&view.digest(kind)));
    let items = view.items(kind).iter().map(definition);
    let mut result = Object::new();
    result.set(member(kind), RawJson::array(items));
    Ok(result.write())
}

const fn definition(item: &ShownOffer) -> &RawJson {
    &item.definition
}

const fn member(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "tools",
        ListKind::Resources => "resources",
        ListKind::Templates => "resourceTemplates",
        ListKind::Prompts => "prompts",
    }
}

/// One page holds everything, so no cursor is ever given out and none can be right (F39).
pub(super) fn only_page(params: &RawJson, kind: ListKind) -> Result<(), RpcError> {
    if params.member("cursor").is_none_or(|cursor| cursor.is_null()) {
        return Ok(());
    }
    let text =
        format!("this cursor is none of mcpx's: its list of {} has a single page", kind.noun());
    Err(RpcError::new(Code::InvalidParams, text))
}
