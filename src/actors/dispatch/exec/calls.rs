//! What a script asks of the daemon, one call at a time.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::Errand;
use crate::actors::artifacts::NewArtifact;
use crate::actors::dispatch::arguments::Wanted;
use crate::actors::dispatch::as_task::TaskSide;
use crate::actors::dispatch::{OWN, Request, call_tool, read_tool, search, types};
use crate::protocol::jsonrpc::{Method, Object, RawJson};
use crate::protocol::model::tool_result;
use crate::protocol::session::TaskForm;
use crate::protocol::session::upstream::ListKind;
use crate::script::wire::{Answer, Call, Offered, OfferedTool, Outcome, Target, Thrown};
use crate::script::{names, values};

/// A call that has come to its end.
pub(super) struct Done {
    pub(super) answer: Answer,
    /// Whether a tool may have run.
    pub(super) reached: bool,
}

/// Sees one call to its outcome. Dropping the future cancels it.
pub(super) async fn answer(errand: Arc<Errand>, call: Call) -> Done {
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
    let (outcome, reached) = result;
    Done { answer: Answer { call, outcome }, reached }
}

/// What there is to call: servers and tools by the names that scripts may use. Servers that were never listed
/// are listed first, as far as that comes within `expose.list_wait`, as before a search.
pub(super) async fn offered(errand: Arc<Errand>) -> RawJson {
    let context = &errand.context;
    context.list_missing(&errand.caller, ListKind::Tools, |_| true).await;
    let snapshot = context.catalog.snapshot();
    let namespaces = snapshot.servers.iter().map(|server| server.def.namespace.as_str());
    let servers = names::members(namespaces).into_iter().zip(&snapshot.servers);
    let servers = servers.map(|((member, name), server)| {
        let tools = names::members(server.tools.iter().map(|tool| tool.name.as_str()));
        let tools = tools.into_iter();
        let tools = tools.map(|(member, name)| OfferedTool { name: name.to_owned(), member });
        Offered { name: name.to_owned(), member, tools: tools.collect() }
    });
    RawJson::write(&servers.collect::<Vec<_>>())
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
) -> (Outcome, bool) {
    let (outcome, reached) = match target {
        Target::Tool { namespace, tool } => {
            let wanted = Wanted { namespace, tool, arguments: Some(arguments) };
            let ran = call_tool::for_script(&errand.context, request, &wanted).await;
            (Ok(outcome_of(&ran.result)), ran.reached)
        }
        Target::Own { name } => (Box::pin(own(errand, request, &name, arguments)).await, false),
        Target::Artifact => (Box::pin(artifact(errand, &arguments)).await, false),
    };
    (outcome.unwrap_or_else(Outcome::Thrown), reached)
}

/// C-10, C-11.
fn outcome_of(result: &RawJson) -> Outcome {
    if !tool_result::is_error(result) {
        return Outcome::Value(values::of_result(result));
    }
    Outcome::Thrown(Thrown {
        name: "ToolError".to_owned(),
        message: values::message(result),
        content: result.member("content"),
        reason: tool_result::reason(result),
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
    let told = match name {
        "search" => search::value(context, &request.caller, Some(&arguments)).await,
        "types" => {
            let told = types::text(context, &request.caller, Some(&arguments)).await;
            told.map(|text| RawJson::write(&text))
        }
        "read" => {
            let mut params = Object::new();
            params.set("arguments", arguments.clone());
            request.params = params.write();
            return match read_tool::answer(context, request).await {
                Ok(result) => {
                    Ok(outcome_of(&errand.repeats.told(OWN, READ, arguments.as_bytes(), result)))
                }
                Err(error) => Err(thrown("ToolError", error.message)),
            };
        }
        _ => Err(format!("mcpx has no function `{name}` for scripts")),
    };
    let again = errand.repeats.words(OWN, name, arguments.as_bytes(), told.is_err());
    told.map(Outcome::Value).map_err(|why| {
        let again = again.map(|words| format!("\n{words}")).unwrap_or_default();
        thrown("TypeError", format!("{why}{again}"))
    })
}

/// `mcpx.read` is the tool of this name.
const READ: &str = "mcpx_read";

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
