//! `mcpx call`: one tool, with progress on a terminal and its result for people.

use bytes::Bytes;
use clap::ArgMatches;
use mcpx::control::OpCall;
use mcpx::control::types::{
    ApiError, CallRequest, ConsoleLine, ToolsAnswer, WhoAnswers, stream as names,
};
use mcpx::protocol::jsonrpc::{Object, RawJson};
use mcpx::protocol::model::tool_result;
use serde::Deserialize;

use crate::arguments::{self, Typed};
use crate::elicit::{self, News};
use crate::ended::{Ended, Outcome};
use crate::output::{self, Printer};
use crate::person::Person;
use crate::reach::{self, Reach, understood};
use crate::setup;
use crate::stream::{Event, Events};
use crate::waiting::Waiting;

/// Runs it.
pub(crate) async fn run(reach: &Reach<'_>, matches: &ArgMatches) -> Outcome {
    let text = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let (namespace, tool) = (text("namespace"), text("tool"));
    let project = setup::project(matches.get_one("project"));
    let arguments = match arguments::of(matches)? {
        Typed::Whole(raw) => raw,
        Typed::Pairs(pairs) if pairs.is_empty() => RawJson::empty_object(),
        Typed::Pairs(pairs) => {
            let schema = schema_of(reach, &namespace, &tool, project.clone()).await?;
            arguments::typed(&pairs, schema.as_ref()).map_err(Ended::Usage)?
        }
    };
    // A person at this end answers what is asked; for others it is shown, with how to answer it.
    let person = Person::at_terminal(reach);
    let who = if person.is_some() { WhoAnswers::Here } else { WhoAnswers::Elsewhere };
    let title = format!("{namespace} {tool}");
    let call = OpCall::Call(CallRequest {
        namespace,
        tool,
        arguments: Some(arguments),
        project,
        progress: reach.printer.lively,
        questions: Some(who),
    });
    let result = streamed(reach, &call, title, person).await?;
    show(reach.printer, &result)
}

/// The input schema of a tool, where the catalog knows it. Why a server could not be started is the
/// answer: the call would only start it once more.
async fn schema_of(
    reach: &Reach<'_>,
    namespace: &str,
    tool: &str,
    project: Option<String>,
) -> Result<Option<RawJson>, Ended> {
    let call = OpCall::Tools { namespace: Some(namespace.to_owned()), project };
    let answer: ToolsAnswer = understood(&reach.ask(&call).await?)?;
    let failed = answer.namespaces.iter().find(|namespace| namespace.listing == "never");
    if let Some(why) = failed.and_then(|namespace| namespace.reason.clone()) {
        return Err(Ended::Failed(why));
    }
    let tools = answer.namespaces.iter().flat_map(|namespace| &namespace.tools);
    let found = tools.into_iter().find(|raw| raw.member_str("name").as_deref() == Some(tool));
    Ok(found.and_then(|raw| raw.member("inputSchema")))
}

#[derive(Deserialize)]
struct ProgressNote {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

/// Shows progress, questions and what a script tells `console`, until there is a result.
pub(crate) async fn streamed(
    reach: &Reach<'_>,
    call: &OpCall,
    title: String,
    mut person: Option<Person<'_>>,
) -> Result<Bytes, Ended> {
    let waiting = Waiting::new(reach.printer, &reach.settings.cli, title);
    waiting
        .during(async {
            let mut stream = reach.open(call).await?;
            if !is_event_stream(&stream.headers) {
                return reach.read(stream).await;
            }
            let mut events = Events::default();
            loop {
                let next = tokio::select! {
                    next = events.next(&mut stream) => next,
                    asked = Person::next_of(&mut person) => {
                        elicit::said(asked);
                        continue;
                    }
                };
                // Broken off, or ended in order: the daemon is gone either way.
                let Ok(next) = next else { break };
                let Some(event) = next else { break };
                match event.name.as_str() {
                    names::PROGRESS => {
                        if let Ok(note) = serde_json::from_str::<ProgressNote>(&event.data) {
                            waiting.progress(note.progress, note.total, note.message);
                        }
                    }
                    names::CONSOLE => {
                        let line: ConsoleLine = understood(event.data.as_bytes())?;
                        waiting.say(&line.text);
                    }
                    names::RESULT => return Ok(Bytes::from(event.data)),
                    names::ERROR => {
                        let error: ApiError = understood(event.data.as_bytes())?;
                        return Err(reach::failed(&error));
                    }
                    _ => asked(&event, &waiting, &mut person)?,
                }
            }
            Err(Ended::Failed(
                "the daemon went away during the call; its outcome is unknown: check before \
                 trying again"
                    .to_owned(),
            ))
        })
        .await
}

/// A question of this call: to the person here, else to whoever reads stderr.
fn asked(event: &Event, waiting: &Waiting, person: &mut Option<Person<'_>>) -> Outcome {
    match (elicit::news(event)?, person) {
        (News::Question(view), Some(person)) => {
            waiting.hush();
            person.ask(view);
        }
        (News::Question(view), None) => {
            waiting.hush();
            elicit::show_elsewhere(&view);
        }
        (News::Closed(id), Some(person)) => person.forget(&id),
        (News::Closed(_) | News::Other, _) => {}
    }
    Ok(())
}

/// Whether an answer comes as events.
pub(crate) fn is_event_stream(headers: &http::HeaderMap) -> bool {
    headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// The result for people; that of a failed call goes to stderr (product.md 2).
fn show(printer: Printer, result: &Bytes) -> Outcome {
    shown(printer, result, |result, is_error| {
        let text = readable(result);
        if is_error {
            output::remark(&text);
            Ok(())
        } else {
            output::line(&text)
        }
    })
}

/// A result of a tool, by `print` for people; one that says that it failed ends the command so.
pub(crate) fn shown(
    printer: Printer,
    result: &Bytes,
    print: impl FnOnce(&Object, bool) -> Outcome,
) -> Outcome {
    let raw = RawJson::parse(result.clone())
        .map_err(|error| Ended::Failed(format!("the result is {error}")))?;
    let is_error = tool_result::is_error(&raw);
    if printer.json {
        output::bytes(raw.as_bytes())?;
    } else {
        print(&Object::read_or_empty(Some(&raw)), is_error)?;
    }
    if is_error { Err(Ended::Told) } else { Ok(()) }
}

fn readable(result: &Object) -> String {
    let blocks: Vec<RawJson> =
        result.get("content").and_then(|content| content.read().ok()).unwrap_or_default();
    let shown: Vec<String> = blocks.iter().map(block).collect();
    match result.get("structuredContent") {
        Some(structured) if shown.is_empty() => structured.as_str().to_owned(),
        _ => shown.join("\n"),
    }
}

/// One content block in words; what is no text is named, `--json` has it whole.
pub(crate) fn block(raw: &RawJson) -> String {
    let block = Object::read_or_empty(Some(raw));
    let text = |name: &str| block.get_str(name).unwrap_or_default();
    match text("type").as_str() {
        "text" => text("text"),
        kind @ ("image" | "audio") => {
            let size = block.get("data").map_or(0, RawJson::len);
            format!("[{kind} {}, {size} bytes in base64]", text("mimeType"))
        }
        "resource_link" => format!("[link {} {}]", text("name"), text("uri")),
        "resource" => {
            let resource = Object::read_or_empty(block.get("resource"));
            let uri = resource.get_str("uri").unwrap_or_default();
            resource.get_str("text").unwrap_or_else(|| format!("[resource {uri}]"))
        }
        _ => raw.as_str().to_owned(),
    }
}
