//! `mcpx_scripts`: saved scripts for agents.

use std::fmt::Write as _;

use super::arguments::{object_of, only_known};
use super::exec::{self, Script};
use super::{Context, Request};
use crate::actors::scripts::Trouble;
use crate::protocol::jsonrpc::Object;
use crate::protocol::model::tool_result::text_result;
use crate::protocol::session::Outcome;

pub(super) async fn answer(context: &Context, request: Request) -> Outcome {
    match act(context, &request).await {
        Ok(Done::Text(text)) => Ok(text_result(&text, false)),
        Ok(Done::Run(script)) => exec::run(context, request, script).await,
        Err(text) => Ok(text_result(&text, true)),
    }
}

enum Done {
    Text(String),
    Run(Script),
}

/// What there is to say, or to run. An error is text for the model.
async fn act(context: &Context, request: &Request) -> Result<Done, String> {
    let given = object_of(request.params.member("arguments").as_ref())?;
    only_known("mcpx_scripts", &given, &["action", "name", "arguments", "code"])?;
    let action = given.get_str("action").unwrap_or_default();
    let told = |trouble: Trouble| match trouble {
        Trouble::Missing(text) => format!("{text}. `action` \"list\" lists them."),
        Trouble::Unfit(text) | Trouble::Failed(text) => text,
    };
    Ok(match action.as_str() {
        "list" => Done::Text(list(context).await?),
        "show" => {
            let saved = context.scripts.find(&name(&given)?).await.map_err(told)?;
            Done::Text(format!("{}\n\n{}", saved.line(), saved.source))
        }
        "run" => {
            let name = name(&given)?;
            let runnable = context.scripts.runnable(&name, given.get("arguments")).await;
            let (source, input) = runnable.map_err(told)?;
            let (input, name) = (Some(input), Some(name));
            Done::Run(Script { source, input, name, ..Script::default() })
        }
        "save" => {
            may_write(context, "save")?;
            let code = given.get_str("code").filter(|code| !code.trim().is_empty());
            let code = code.ok_or("to save a script give its `code`, TypeScript or JavaScript")?;
            let (saved, replaced) =
                context.scripts.save(&name(&given)?, &code).await.map_err(told)?;
            let how = if replaced { "saved in the place of the one before" } else { "saved" };
            Done::Text(format!("{how}: {}", saved.line()))
        }
        "remove" => {
            may_write(context, "remove")?;
            let name = name(&given)?;
            context.scripts.remove(&name).await.map_err(told)?;
            Done::Text(format!("`{name}` is removed"))
        }
        other => {
            return Err(format!("`action` is list, show, run, save or remove, not {other:?}"));
        }
    })
}

fn name(given: &Object) -> Result<String, String> {
    let name = given.get_str("name").filter(|name| !name.is_empty());
    name.ok_or_else(|| "give the script's `name`".to_owned())
}

fn may_write(context: &Context, what: &str) -> Result<(), String> {
    if context.settings().scripts.agent_write {
        return Ok(());
    }
    Err(format!(
        "agents may not {what} scripts here (setting scripts.agent_write is off). Run the script with \
         mcpx_exec, or ask the user: `mcpx scripts {what}` does it by hand."
    ))
}

async fn list(context: &Context) -> Result<String, String> {
    let all = context.scripts.all().await.map_err(|trouble| trouble.to_string())?;
    if all.is_empty() {
        return Ok("No script is saved yet.".to_owned());
    }
    let mut text = String::new();
    for saved in all {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", saved.line());
    }
    Ok(text)
}
