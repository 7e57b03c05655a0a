//! Ops on tasks: for the person whose daemon this is, so on all of them, whoever began them.

use std::sync::Arc;

use crate::actors::dispatch::Context;
use crate::actors::tasks::Entry;
use crate::control::ApiError;
use crate::control::types::{FailureCode, TaskAnswer, TaskCancelled, TaskView, TasksAnswer};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::tasks::Detail;

pub(super) fn list(context: &Context) -> RawJson {
    let tasks = context.tasks.all().iter().map(|entry| view(entry)).collect();
    RawJson::write(&TasksAnswer { tasks })
}

pub(super) async fn get(context: &Context, id: &str) -> Result<RawJson, ApiError> {
    let entry = find(context, id)?;
    let mut answer = TaskAnswer { task: view(&entry), asks: None, result: None, error: None };
    match context.tasks.whole(&entry).await.detail {
        Detail::Nothing => {}
        Detail::Asks(asks) => answer.asks = Some(asks),
        Detail::Result(result) => answer.result = Some(result),
        Detail::Error(error) => answer.error = Some(RawJson::write(&error)),
    }
    Ok(RawJson::write(&answer))
}

pub(super) async fn cancel(context: &Context, id: &str) -> Result<RawJson, ApiError> {
    let entry = find(context, id)?;
    let cancelled = context.tasks.cancel(&entry).await;
    Ok(RawJson::write(&TaskCancelled { task: view(&entry), cancelled }))
}

/// By its id, or by as much of its beginning as no other shares.
fn find(context: &Context, id: &str) -> Result<Arc<Entry>, ApiError> {
    if let Some(entry) = context.tasks.get(id) {
        return Ok(entry);
    }
    let mut alike = context.tasks.all().into_iter().filter(|entry| entry.facts.id.starts_with(id));
    match (alike.next(), alike.next()) {
        (Some(only), None) if !id.is_empty() => Ok(only),
        (Some(_), Some(_)) => {
            let text = format!("more than one task begins with {id:?}; give more of the id");
            Err(ApiError::new(FailureCode::BadRequest, text))
        }
        _ => {
            let text = format!("there is no task {id:?}; it may have been kept for its time");
            Err(ApiError::new(FailureCode::NotFound, text).with_hint("mcpx tasks list"))
        }
    }
}

fn view(entry: &Entry) -> TaskView {
    let facts = &entry.facts;
    TaskView {
        task: facts.id.clone(),
        status: entry.status().as_str().to_owned(),
        message: entry.message(),
        what: facts.what.clone(),
        server: facts.server.clone(),
        host: facts.host.clone(),
        created_ms: facts.created_ms,
        ttl_ms: facts.ttl_ms,
        questions: entry.open_questions(),
    }
}
