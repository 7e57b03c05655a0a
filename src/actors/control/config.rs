//! Ops on the configuration: settings, reload, show.

use serde_json::{Map, Value as Json};

use super::super::dispatch::Context;
use super::super::settings::ChangeRefused;
use super::not_asked;
use crate::control::ApiError;
use crate::control::types::{
    ConfigAnswer, FailureCode, ReloadAnswer, SettingView, SettingsAnswer, SettingsChanged,
};
use crate::control::views::mistake_lines;
use crate::protocol::jsonrpc::RawJson;
use crate::settings::defs::Applies;
use crate::settings::parse::read_changes;

pub(super) fn settings(context: &Context, key: Option<&str>) -> Result<RawJson, ApiError> {
    let current = context.settings.current();
    SettingsAnswer::of(&current.loaded, key)
        .map(|answer| RawJson::write(&answer))
        .map_err(|text| ApiError::new(FailureCode::NotFound, text))
}

pub(super) fn show(context: &Context) -> RawJson {
    RawJson::write(&ConfigAnswer::of(&context.settings.current().loaded))
}

pub(super) async fn reload(context: &Context) -> Result<RawJson, ApiError> {
    let limit = context.settings().daemon.ask;
    let changed = context.settings.reload(limit).await.map_err(|error| not_changed(&error))?;
    Ok(RawJson::write(&ReloadAnswer::between(&changed.before, &changed.now)))
}

pub(super) async fn change(
    context: &Context,
    changes: &Map<String, Json>,
) -> Result<RawJson, ApiError> {
    let wanted = read_changes(changes).map_err(|mistakes| {
        ApiError::new(FailureCode::Refused, mistake_lines(&mistakes).join("\n"))
    })?;
    let keys: Vec<&str> = wanted.iter().map(|(def, _)| def.key).collect();
    let limit = context.settings().daemon.ask;
    let done = context.settings.change(wanted, limit).await.map_err(|error| not_changed(&error))?;
    let named = done.now.resolved.all.iter().filter(|value| keys.contains(&value.def.key));
    let settings: Vec<_> = named.clone().map(SettingView::of).collect();
    let after_restart = named
        .filter(|value| value.def.applies == Applies::Restart)
        .map(|value| value.def.key.to_owned())
        .collect();
    Ok(RawJson::write(&SettingsChanged { settings, after_restart }))
}

fn not_changed(refused: &ChangeRefused) -> ApiError {
    match refused {
        ChangeRefused::Mistakes(_) => ApiError::new(FailureCode::Refused, refused.to_string())
            .with_hint("mend them and run `mcpx reload`"),
        ChangeRefused::NotKept(_) => ApiError::new(FailureCode::Internal, refused.to_string()),
        ChangeRefused::Asking(error) => not_asked(*error),
    }
}
