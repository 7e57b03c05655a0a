//! Ops on saved scripts: for the person whose daemon this is.

use super::super::dispatch::Context;
use crate::actors::scripts::{Saved, Trouble};
use crate::control::ApiError;
use crate::control::types::{FailureCode, ScriptAnswer, ScriptRemoved, ScriptSaved, ScriptsAnswer};
use crate::protocol::jsonrpc::RawJson;

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

pub(super) async fn save(context: &Context, name: &str, code: &str) -> Result<RawJson, ApiError> {
    let (saved, replaced) = context.scripts.save(name, code).await.map_err(troubled)?;
    Ok(RawJson::write(&ScriptSaved { script: saved.view(), replaced }))
}

pub(super) async fn remove(context: &Context, name: &str) -> Result<RawJson, ApiError> {
    context.scripts.remove(name).await.map_err(troubled)?;
    Ok(RawJson::write(&ScriptRemoved { name: name.to_owned() }))
}

pub(super) fn troubled(trouble: Trouble) -> ApiError {
    match trouble {
        Trouble::Missing(text) => {
            ApiError::new(FailureCode::NotFound, text).with_hint("mcpx scripts list")
        }
        Trouble::Unfit(text) => ApiError::new(FailureCode::BadRequest, text),
        Trouble::Failed(text) => ApiError::new(FailureCode::Internal, text),
    }
}
