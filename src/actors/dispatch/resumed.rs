//! Tasks of the daemon before, whose servers still work on them.
//!
//! Only a server over HTTP outlives the daemon; it is asked after the task by its own id. What a task
//! asks from here on waits in the task, and its result is as its server sent it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::outcome::Told;
use super::rounds::{self, Subject};
use super::{Context, tools};
use crate::actors::tasks::{Facts, Handover, Resume, Work};
use crate::actors::upstreams::{Answers, CallWant, Caller, Source};
use crate::protocol::jsonrpc::{Method, RawJson};
use crate::protocol::revision::Era;
use crate::protocol::session::Outcome;

/// Goes on with them.
pub(crate) struct Resumer(pub(crate) Arc<Context>);

impl fmt::Debug for Resumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resumer")
    }
}

impl Resume for Resumer {
    fn work(&self, facts: &Facts, upstream: &str, handover: &Handover) -> Option<Work> {
        if !self.0.upstreams.is_remote(&facts.server) {
            return None;
        }
        let caller = Caller {
            host: None,
            project: facts.project.as_deref().map(|path| Arc::from(Path::new(path))),
            label: Arc::from(facts.host.as_str()),
            era: if facts.legacy { Era::Legacy } else { Era::Modern },
            answers: Answers::Task(handover.clone()),
            source: Source::default(),
        };
        let (context, tool) = (Arc::clone(&self.0), facts.tool.clone());
        let (server, upstream) = (Arc::from(facts.server.as_str()), upstream.to_owned());
        Some(Box::pin(async move {
            let answered = go_on(&context, caller, server, &tool, upstream).await;
            answered.unwrap_or_else(|told| Ok(told.as_tool_result()))
        }))
    }
}

async fn go_on(
    context: &Context,
    caller: Caller,
    server: Arc<str>,
    tool: &str,
    upstream: String,
) -> Result<Outcome, Told> {
    let ongoing = context.upstreams.resume_task(caller.clone(), &server, upstream).await?;
    let mut want = CallWant {
        server: Arc::clone(&server),
        caller,
        method: Method::known("tools/call"),
        params: RawJson::empty_object(),
        progress: None,
        repeatable: false,
        task: None,
    };
    let subject = Subject { kind: "tool", name: tool, server: &server };
    let outcome = rounds::go_on(context, subject, &mut want, ongoing).await?;
    Ok(outcome.map(|result| tools::with_addresses(context, &server, result)))
}
