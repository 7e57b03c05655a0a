//! Ops on saved scripts: for the person whose daemon this is.

use std::time::Duration;

use tokio::sync::mpsc;

use super::super::dispatch::{Context, exec};
use super::super::support::progress::ProgressSender;
use super::super::upstreams::Answers;
use super::calls::{caller, told_error};
use crate::actors::scripts::{Saved, Trouble};
use crate::control::ApiError;
use crate::control::types::{
    FailureCode, ScriptAnswer, ScriptRemoved, ScriptRunRequest, ScriptSaved, ScriptsAnswer,
};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions;
use crate::script::wire;

pub(super) async fn list(context: &Context) -> Result<RawJson, ApiError> {
    let all = context.scripts.all().await.map_err(troubled)?;
    Ok(RawJson::write(&ScriptsAnswer { scripts: all.iter().map(Saved::view).collect() }))
}

pub(super) async fn show(context: &Context, name: &str) -> Result<RawJson, ApiError> {
    let saved = context.scripts.find(name).await.map_err(troubled)?;
    let schema = saved
        .about
        .as_ref()
        .map_or_else(|_| RawJson::empty_object(), crate::script::saved::About::schema);
    Ok(RawJson::write(&ScriptAnswer { script: saved.view(), schema, code: saved.source }))
}

pub(super) async fn run(
    context: &Context,
    wanted: ScriptRunRequest,
    progress: Option<ProgressSender>,
    console: Option<mpsc::Sender<wire::Log>>,
) -> Result<RawJson, ApiError> {
    let runnable = context.scripts.runnable(&wanted.name, wanted.arguments.as_ref()).await;
    let (source, input) = runnable.map_err(troubled)?;
    let mut caller = caller(context, wanted.project.as_deref());
    if wanted.questions.is_some() {
        caller.answers = Answers::Told { declared: questions::with_elicitation(None) };
    }
    let script = exec::Script {
        source,
        input: Some(input),
        timeout: wanted.timeout.map(Duration::from_secs),
        name: Some(wanted.name),
        console,
    };
    exec::run_for(context, caller, progress, script).await.map_err(told_error)
}

pub(super) async fn save(context: &Context, name: &str, code: &str) -> Result<RawJson, ApiError> {
    let (saved, replaced) = context.scripts.save(name, code).await.map_err(troubled)?;
    Ok(RawJson::write(&ScriptSaved { script: saved.view(), replaced }))
}

pub(super) async fn remove(context: &Context, name: &str) -> Result<RawJson, ApiError> {
    context.scripts.remove(name).await.map_err(troubled)?;
    Ok(RawJson::write(&ScriptRemoved { name: name.to_owned() }))
}

fn troubled(trouble: Trouble) -> ApiError {
    match trouble {
        Trouble::Missing(text) => {
            ApiError::new(FailureCode::NotFound, text).with_hint("mcpx scripts list")
        }
        Trouble::Unfit(text) => ApiError::new(FailureCode::BadRequest, text),
        Trouble::Failed(text) => ApiError::new(FailureCode::Internal, text),
    }
}
