//! Executes ops: for the command line and `/v1`, for op tools, for other actors.
//!
//! Functions run by the request's own task, not an actor: an op has no state of its own, it asks the
//! actors that have. [`http`] puts them behind the control socket.

mod calls;
mod config;
mod doctor;
mod exec;
pub mod http;
mod inside;
mod offers;
mod questions;
mod scripts;
mod servers;
mod sse;
mod streams;
mod tasks;

use std::path::PathBuf;
use std::time::Instant;

use self::exec::Wanted;
use super::broker::Said;
use super::dispatch::Context;
use super::hosts::door::Door;
use super::root::End;
use super::support::ask::AskError;
use super::upstreams::{Reason, Refused};
use crate::control::types::{
    FailureCode, HealthAnswer, HttpAnswer, ShutdownAnswer, StatusAnswer, VersionAnswer,
};
use crate::control::{ApiError, OpCall, attach};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::revision::Revision;

/// Who this daemon is.
#[derive(Debug)]
pub struct Identity {
    /// This program's version.
    pub version: &'static str,
    /// When it started.
    pub started: Instant,
    /// Its control socket.
    pub socket: PathBuf,
    /// Its state folder.
    pub state: PathBuf,
    /// What it calls itself towards hosts and upstreams, newest shape.
    pub info: RawJson,
    /// Its capabilities towards hosts, newest shape.
    pub capabilities: RawJson,
}

/// Executes one op that has one answer.
pub async fn execute(context: &Context, call: OpCall) -> Result<RawJson, ApiError> {
    match call {
        OpCall::Status { server } => {
            servers::status(context, server.as_deref()).await.map(|answer| RawJson::write(&answer))
        }
        OpCall::Restart { server } => servers::restart(context, &server).await,
        OpCall::Stop { server } => servers::stop(context, &server).await,
        OpCall::Start { server } => servers::start(context, &server).await,
        OpCall::Reload => config::reload(context).await,
        OpCall::Tools { namespace, project } => {
            calls::tools(context, namespace.as_deref(), project.as_deref()).await
        }
        OpCall::Search(wanted) => offers::search(context, wanted).await,
        OpCall::Types(wanted) => calls::types(context, wanted).await,
        OpCall::Resources { namespace, project } => {
            offers::resources(context, namespace.as_deref(), project.as_deref()).await
        }
        OpCall::Read { uri, project } => offers::read(context, &uri, project.as_deref()).await,
        OpCall::Prompts { namespace, project } => {
            offers::prompts(context, namespace.as_deref(), project.as_deref()).await
        }
        OpCall::Prompt(wanted) => offers::prompt(context, wanted).await,
        OpCall::Call(wanted) => calls::call(context, wanted, None).await,
        OpCall::Exec(wanted) => exec::run(context, Wanted::Given(wanted), None, None).await,
        OpCall::Ask(wanted) => calls::ask(context, wanted, None).await,
        OpCall::Questions { .. } => Ok(questions::list(context).await),
        OpCall::Question { id } => questions::show(context, &id),
        OpCall::Answer(answer) => questions::accept(context, answer),
        OpCall::Decline { id } => questions::say(context, &id, &Said::Decline),
        OpCall::Cancel { id } => questions::say(context, &id, &Said::Cancel),
        OpCall::Scripts => scripts::list(context).await,
        OpCall::Script { name } => scripts::show(context, &name).await,
        OpCall::ScriptRun(wanted) => exec::run(context, Wanted::Saved(wanted), None, None).await,
        OpCall::ScriptSave { name, code } => scripts::save(context, &name, &code).await,
        OpCall::ScriptRemove { name } => scripts::remove(context, &name).await,
        OpCall::Tasks => Ok(tasks::list(context)),
        OpCall::Task { task } => tasks::get(context, &task).await,
        OpCall::TaskCancel { task } => tasks::cancel(context, &task).await,
        OpCall::Logs { server, lines, .. } => {
            servers::logs(context, server.as_deref(), lines).await
        }
        OpCall::Events(wanted) => streams::events_so_far(context, &wanted),
        OpCall::Audit(wanted) => inside::audit(context, wanted).await,
        OpCall::Trace(wanted) => inside::trace(context, &wanted),
        OpCall::Tree => inside::tree(context).await,
        OpCall::SettingsGet { key } => config::settings(context, key.as_deref()),
        OpCall::SettingsSet { changes } => config::change(context, &changes).await,
        OpCall::Config => Ok(config::show(context)),
        OpCall::Protocol => Ok(servers::protocol(context).await),
        OpCall::Http => Ok(http_side(context).await),
        OpCall::Health => Ok(health(context).await),
        OpCall::Doctor { server } => doctor::examine(context, server.as_deref()).await,
        OpCall::Version => Ok(version(context)),
        OpCall::Shutdown => Ok(shutdown(context)),
    }
}

fn version(context: &Context) -> RawJson {
    RawJson::write(&VersionAnswer {
        version: context.identity.version.to_owned(),
        revisions: Revision::ALL.map(|revision| revision.as_str().to_owned()).to_vec(),
        attach: attach::VERSION,
    })
}

/// For our own user: with the token.
async fn http_side(context: &Context) -> RawJson {
    let door = context.door.settled(context.settings().daemon.ask).await;
    let url = door.url();
    let (problem, open, token) = match door {
        Door::Opening => (Some("it is still being opened".to_owned()), false, None),
        Door::Shut => (None, false, None),
        Door::Open { token, open, .. } => (None, open, token),
        Door::Stuck { why } => (Some(why), false, None),
    };
    RawJson::write(&HttpAnswer {
        url,
        problem,
        open,
        token: token.as_ref().map(|token| token.text().to_owned()),
        token_from: token.map(|token| token.from.to_string()),
    })
}

async fn health(context: &Context) -> RawJson {
    let draining = context.root.is_ending();
    let troubled = context.upstreams.status().await.into_iter();
    let troubled = troubled.filter(|server| matches!(server.state, "backoff" | "parked"));
    RawJson::write(&HealthAnswer {
        ready: !draining,
        draining,
        troubled: troubled.map(|server| server.server).collect(),
        configuration: context.settings.current().problems.clone(),
    })
}

fn shutdown(context: &Context) -> RawJson {
    context.root.end(End::Asked("mcpx stop --daemon"));
    RawJson::write(&ShutdownAnswer { pid: std::process::id() })
}

/// A refusal of the upstreams, for the API.
fn refused(refused: Refused) -> ApiError {
    let code = match refused.reason {
        Reason::Busy => FailureCode::Busy,
        Reason::Timeout => FailureCode::Timeout,
        Reason::Unavailable | Reason::NotConfirmed => FailureCode::Unavailable,
        Reason::OutcomeUnknown => FailureCode::OutcomeUnknown,
    };
    ApiError::new(code, refused.text).with_reason(refused.reason.as_str())
}

fn not_asked(error: AskError) -> ApiError {
    ApiError::new(FailureCode::Internal, error.to_string()).with_hint("try again")
}

/// The answer of `GET /v1/status`, for the doctor too.
type Status = StatusAnswer;
