//! What a script asks of the daemon, one call at a time.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::Errand;
use crate::actors::artifacts::NewArtifact;
use crate::actors::dispatch::arguments::Wanted;
use crate::actors::dispatch::as_task::TaskSide;
use crate::actors::dispatch::{Request, call_tool, read_tool, search, types};
use crate::protocol::jsonrpc::{Method, Object, RawJson};
use crate::protocol::model::tool_result;
use crate::protocol::session::TaskForm;
use crate::script::values;
use crate::script::wire::{Answer, Call, Outcome, Target, Thrown};

/// Sees one call to its outcome. Dropping the future cancels it.
pub(super) async fn answer(errand: Arc<Errand>, call: Call) -> Answer {
    let Call { call, target, arguments } = call;
    let (progress, heard) = errand.notes.of_call();
    let name = name_of(&target);
    let request = Request {
        method: Method::known("tools/call"),
        params: RawJson::empty_object(),
        caller: errand.caller.clone(),
        tasks: TaskSide { form: TaskForm::Without, session: None },
        progress,
        repeats: Arc::clone(&errand.repeats),
        listed: Arc::clone(&errand.listed),
        headers: None,
    };
    let result = made(&errand, request, target, arguments);
    let result = match heard {
        None => result.await,
        Some(heard) => {
            let mut result = Box::pin(result);
            let result = loop {
                tokio::select! {
                    biased;
                    note = heard.next() => errand.notes.heard(call, &name, note),
                    result = &mut result => break result,
                }
            };
            while let Some(note) = heard.try_next() {
                errand.notes.heard(call, &name, note);
            }
            result
        }
    };
    errand.notes.done(call);
    let outcome = result.unwrap_or_else(Outcome::Thrown);
    Answer { call, outcome }
}

/// What is called, as texts name it.
pub(super) fn name_of(target: &Target) -> String {
    match target {
        Target::Tool { namespace, tool } => format!("{namespace}.{tool}"),
        Target::Own { name } => format!("mcpx.{name}"),
        Target::Artifact => "artifacts.write".to_owned(),
    }
}

async fn made(
    errand: &Errand,
    request: Request,
    target: Target,
    arguments: RawJson,
) -> Result<Outcome, Thrown> {
    match target {
        Target::Tool { namespace, tool } => {
            let wanted = Wanted { namespace, tool, arguments: Some(arguments) };
            let result = call_tool::for_script(&errand.context, request, &wanted).await;
            Ok(outcome_of(&result))
        }
        Target::Own { name } => Box::pin(own(errand, request, &name, arguments)).await,
        Target::Artifact => Box::pin(artifact(errand, &arguments)).await,
    }
}

/// C-10, C-11.
fn outcome_of(result: &RawJson) -> Outcome {
    if !tool_result::is_error(result) {
        return Outcome::Value(values::of_result(result));
    }
    let meta = result.member("_meta");
    Outcome::Thrown(Thrown {
        name: "ToolError".to_owned(),
        message: values::message(result),
        content: result.member("content"),
        reason: meta.and_then(|meta| meta.member_str(tool_result::REASON_KEY)),
    })
}

/// One of mcpx's own tools.
async fn own(
    errand: &Errand,
    mut request: Request,
    name: &str,
    arguments: RawJson,
) -> Result<Outcome, Thrown> {
    let context = &errand.context;
    let result = match name {
        "search" => {
            let found = search::value(context, &request.caller, Some(&arguments)).await;
            return found.map(Outcome::Value).map_err(|why| thrown("TypeError", why));
        }
        "types" => {
            let told = types::text(context, &request.caller, Some(&arguments)).await;
            let told = told.map(|text| Outcome::Value(RawJson::write(&text)));
            return told.map_err(|why| thrown("TypeError", why));
        }
        "read" => {
            let mut params = Object::new();
            params.set("arguments", arguments);
            request.params = params.write();
            read_tool::answer(context, request).await
        }
        _ => return Err(thrown("TypeError", format!("mcpx has no function `{name}` for scripts"))),
    };
    match result {
        Ok(result) => Ok(outcome_of(&result)),
        Err(error) => Err(thrown("ToolError", error.message)),
    }
}

fn thrown(name: &str, message: String) -> Thrown {
    Thrown { name: name.to_owned(), message, content: None, reason: None }
}

/// What `artifacts.write` is given.
struct File {
    name: String,
    kind: String,
    bytes: Bytes,
}

impl File {
    fn read(arguments: &RawJson) -> Result<Self, String> {
        let text = |key: &str| arguments.member_str(key);
        let name = text("name").filter(|name| !name.trim().is_empty());
        let name = name.ok_or("artifacts.write(name, data, type) needs a name")?;
        let (bytes, usual) = match (text("text"), text("base64")) {
            (Some(text), _) => (Bytes::from(text), "text/plain"),
            (None, Some(coded)) => {
                let bytes = STANDARD.decode(coded).map_err(|error| format!("data: {error}"))?;
                (Bytes::from(bytes), "application/octet-stream")
            }
            (None, None) => return Err("artifacts.write(name, data, type) needs data".to_owned()),
        };
        let kind = text("type").filter(|kind| !kind.is_empty());
        Ok(Self { name, kind: kind.unwrap_or_else(|| usual.to_owned()), bytes })
    }
}

async fn artifact(errand: &Errand, arguments: &RawJson) -> Result<Outcome, Thrown> {
    let File { name, kind, bytes } =
        File::read(arguments).map_err(|why| thrown("TypeError", why))?;
    let most = errand.context.settings().exec.max_artifacts;
    if errand.files.all().len() >= most {
        let text = format!(
            "`{name}` was not kept: a script may write {most} artifacts (setting exec.max_artifacts)"
        );
        return Err(thrown("RangeError", text));
    }
    let owner = errand.session.as_deref().map(str::to_owned);
    let new = NewArtifact { name, kind, bytes, maker: errand.maker.clone(), owner };
    let stored = errand.context.artifacts.write(new).await;
    let stored = stored.map_err(|why| thrown("Error", why.text()))?;
    let mut value = Object::new();
    value.set("uri", RawJson::write(&stored.uri));
    value.set("name", RawJson::write(&stored.name));
    value.set("type", RawJson::write(&stored.kind));
    value.set("size", RawJson::write(&stored.size));
    errand.files.all().push(stored);
    Ok(Outcome::Value(value.write()))
}
