//! `mcpx_task`: for hosts without tasks, the calls that were handed back to them as handles
//! (product.md 4). Waits for one, shows how it stands, or gives it up.

use std::sync::Arc;
use std::time::Duration;

use super::arguments::{object_of, only_known};
use super::{Context, Request, tasks};
use crate::actors::tasks::Entry;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::tool_result;
use crate::protocol::task_fsm::Status;

pub(super) async fn answer(
    context: &Context,
    request: &Request,
    arguments: Option<&RawJson>,
) -> RawJson {
    match act(context, request, arguments).await {
        Ok(result) => result,
        Err(text) => tool_result::text_result(&text, true),
    }
}

async fn act(
    context: &Context,
    request: &Request,
    arguments: Option<&RawJson>,
) -> Result<RawJson, String> {
    let given = object_of(arguments)?;
    only_known("mcpx_task", &given, &["task", "action", "seconds"])?;
    let id = given.get_str("task").filter(|id| !id.is_empty());
    let id = id.ok_or("mcpx_task needs `task`, the handle of a call")?;
    let entry = context.tasks.find(&id, request.tasks.session.as_deref()).ok_or_else(|| {
        format!(
            "there is no task {id:.40?}: it was never made, belongs to another host, or was kept for \
             its time and is forgotten"
        )
    })?;
    match given.get_str("action").as_deref().unwrap_or("wait") {
        "wait" => {
            let seconds = given.get("seconds").map(RawJson::read::<u64>).transpose();
            let seconds = seconds.map_err(|_| "`seconds` is a whole number from 0".to_owned())?;
            Ok(wait(context, request, &entry, seconds.map(Duration::from_secs)).await)
        }
        "show" => Ok(tool_result::text_result(&stands(&entry), false)),
        "cancel" => {
            context.tasks.cancel(&entry).await;
            Ok(tool_result::text_result(&stands(&entry), false))
        }
        other => Err(format!("`action` is wait, show or cancel, not {other:?}")),
    }
}

/// Its result, or how it stands where it takes longer than is waited: what is said, else as long as a
/// call is waited for before it becomes a handle.
async fn wait(
    context: &Context,
    request: &Request,
    entry: &Arc<Entry>,
    patience: Option<Duration>,
) -> RawJson {
    let usual = context.settings().call.handle_after;
    let patience = patience.or_else(|| (usual > Duration::ZERO).then_some(usual));
    let waiting = tasks::wait(context, entry, &request.caller.answers);
    match patience {
        // What is still at work is told below.
        Some(patience) => drop(tokio::time::timeout(patience, waiting).await),
        None => waiting.await,
    }
    match context.tasks.outcome(entry).await {
        Some(Ok(result)) => result,
        Some(Err(error)) => {
            let text = format!("{} ({})", error.message, error.code);
            tool_result::text_result(&text, true)
        }
        None => tool_result::text_result(&stands(entry), entry.status() == Status::Cancelled),
    }
}

fn stands(entry: &Entry) -> String {
    let said = entry.message().map(|message| format!(": {message}")).unwrap_or_default();
    let what = &entry.facts.what;
    match entry.status() {
        Status::Working => format!("{what} is still at work{said}"),
        Status::InputRequired => {
            format!(
                "{what} waits for an answer to a question; a person can give it with `mcpx elicit`"
            )
        }
        Status::Completed => format!("{what} has ended; wait for it to have its result"),
        Status::Failed => format!("{what} has failed{said}"),
        Status::Cancelled => format!("{what} was cancelled{said}"),
    }
}
