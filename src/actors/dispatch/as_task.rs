//! Whether a call of a tool is waited for or becomes a task (T-01 to T-08), and how it does.
//!
//! **Bias.** A host with the tasks extension has most calls answered directly: what ends or asks within
//! `tasks.eager` never becomes a task, and a tool that says nothing of tasks becomes one only after
//! `tasks.after`, and only for a host that could not be asked anything meanwhile. A task costs its host
//! at least one more request, and hosts show what asks inline better than what waits in a task.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Context, Request};
use crate::actors::tasks::{Begin, Handover, NotBegun, Work};
use crate::actors::upstreams::{Answers, Reason};
use crate::protocol::jsonrpc::{Code, RawJson, RpcError};
use crate::protocol::model::tasks::{self, Support, asked_ttl, needs_extension};
use crate::protocol::model::tool_result;
use crate::protocol::revision::Era;
use crate::protocol::session::upstream::TaskWant;
use crate::protocol::session::{Outcome, TaskForm};
use crate::settings::Settings;
use crate::transport::clock;

/// How the sender of a request takes tasks.
#[derive(Debug, Clone)]
pub(crate) struct TaskSide {
    /// In which form.
    pub(crate) form: TaskForm,
    /// The session that its tasks belong to (T-13); none where it has none.
    pub(crate) session: Option<Arc<str>>,
}

/// Which tool is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tool<'a> {
    /// What it says of tasks.
    pub(super) support: Support,
    /// Its name for texts.
    pub(super) name: &'a str,
    /// It is called by `mcpx_call`, which itself may always be called as a task or not.
    pub(super) through_core: bool,
}

/// What a call is to become.
#[derive(Debug)]
pub(super) enum Plan {
    /// Its host waits for it.
    Inline,
    /// A task at once.
    AtOnce {
        /// How long its host wants it kept.
        ttl: Option<Duration>,
    },
    /// A task when this has passed, or when its server makes one.
    After(Option<Duration>),
    /// A handle for `mcpx_task` when this has passed.
    Handle(Duration),
}

impl Plan {
    /// What its server is told of tasks: asked for one where the host has them, else only where there
    /// is no other way; never for a modern host that calls a tool itself and has not declared them,
    /// whose server then says so in its own words.
    pub(super) fn want(
        &self,
        request: &Request,
        tool: Tool<'_>,
        settings: &Settings,
    ) -> Option<TaskWant> {
        let modern = matches!(request.caller.answers.present(), Answers::Inline { .. });
        if modern && request.tasks.form == TaskForm::Without && !tool.through_core {
            return None;
        }
        let asked = match self {
            Self::AtOnce { ttl } => *ttl,
            _ => None,
        };
        let ttl = asked.unwrap_or(settings.tasks.ttl).min(settings.tasks.max_ttl);
        let eager = match self {
            Self::AtOnce { .. } => true,
            // T-04: such a tool has a moment to end without one.
            Self::After(_) => tool.support != Support::Optional,
            Self::Inline | Self::Handle(_) => false,
        };
        Some(TaskWant { ttl, support: tool.support, eager })
    }
}

/// What a call is to become; an error is its answer, before anything runs.
pub(super) fn plan(
    request: &Request,
    tool: Tool<'_>,
    settings: &Settings,
) -> Result<Plan, RpcError> {
    match request.tasks.form {
        TaskForm::Core => match asked_ttl(&request.params) {
            Some(_) if tool.support == Support::Forbidden => Err(forbidden(tool.name)),
            Some(ttl) => Ok(Plan::AtOnce { ttl }),
            None => Ok(handle(request, tool, settings)),
        },
        // T-03: nothing has run.
        TaskForm::Without if tool.support == Support::Required && !tool.through_core => {
            Err(needs_extension(&format!("tool `{}`", tool.name)))
        }
        TaskForm::Without => Ok(handle(request, tool, settings)),
        TaskForm::Extension => Ok(match tool.support {
            Support::Forbidden => Plan::Inline,
            Support::Optional | Support::Required => Plan::After(Some(settings.tasks.eager)),
            Support::Unsaid => Plan::After(after(request, settings)),
        }),
    }
}

/// T-07.
fn after(request: &Request, settings: &Settings) -> Option<Duration> {
    let after = settings.tasks.after;
    (!can_answer(request) && after > Duration::ZERO).then_some(after)
}

/// Whether its sender can be asked anything.
fn can_answer(request: &Request) -> bool {
    let declared = request.caller.answers.declared();
    let kinds = ["elicitation", "sampling", "roots"];
    declared.is_some_and(|declared| kinds.iter().any(|kind| declared.member(kind).is_some()))
}

/// product.md 4: for hosts without tasks.
fn handle(request: &Request, tool: Tool<'_>, settings: &Settings) -> Plan {
    let after = settings.call.handle_after;
    let wanted = tool.through_core && after > Duration::ZERO;
    // A modern host is asked by its own call's answer, and by nothing after it.
    let modern = request.tasks.form == TaskForm::Without;
    if wanted && tool.support != Support::Forbidden && !(modern && can_answer(request)) {
        Plan::Handle(after)
    } else {
        Plan::Inline
    }
}

fn forbidden(tool: &str) -> RpcError {
    let text = format!(
        "tool `{tool}` cannot be called as a task (its `execution.taskSupport` is \"forbidden\"); call \
         it without `task`"
    );
    RpcError::new(Code::MethodNotFound, text)
}

/// The task that a call is to become, if it becomes one.
pub(super) fn begin(request: &Request, plan: &Plan, tool: &str, server: &str) -> Begin {
    let ttl = match plan {
        Plan::AtOnce { ttl } => *ttl,
        _ => None,
    };
    Begin {
        owner: request.tasks.session.as_deref().map(str::to_owned),
        tool: tool.to_owned(),
        server: server.to_owned(),
        host: request.caller.label.to_string(),
        ttl,
        project: request.caller.project.as_ref().map(|path| path.display().to_string()),
        legacy: request.caller.era == Era::Legacy,
    }
}

/// Makes `request` one of a call that may become a task. Its work is to be made of it after this.
pub(super) fn hand_over(request: &mut Request, plan: &Plan) -> Handover {
    let after = match plan {
        Plan::Inline | Plan::AtOnce { .. } => None,
        Plan::After(after) => *after,
        Plan::Handle(after) => Some(*after),
    };
    let deadline = after.and_then(|after| Instant::from_std(clock::now()).checked_add(after));
    let handover = Handover::new(request.caller.answers.clone(), deadline);
    request.caller.answers = Answers::Task(handover.clone());
    handover
}

/// How long a handle is kept back for its server's own task to be on record (T-18): a handle that a host
/// has is one that the next daemon can go on with.
fn patience(plan: &Plan, asked: Option<TaskWant>, settings: &Settings) -> Duration {
    match asked {
        // It makes one as soon as it is open, and cannot do otherwise.
        Some(asked) if asked.support == Support::Required => settings.upstream.handshake,
        // It makes one if it wants to.
        Some(asked) if asked.eager && matches!(plan, Plan::AtOnce { .. }) => settings.tasks.eager,
        _ => Duration::ZERO,
    }
}

/// Whether a server may have tasks of its own, as far as is known of it.
fn may_have_tasks(context: &Context, server: &str) -> bool {
    let snapshot = context.catalog.snapshot();
    let known = snapshot.servers.iter().find(|known| known.def.key == server);
    known.and_then(|known| known.capabilities.as_ref()).is_none_or(tasks::are_offered)
}

/// Runs `work` as `plan` says: to its outcome, or until it is a task, whose handle is the answer then.
/// `asked` is what its server is told of tasks.
///
/// A server that answers with a task of its own makes ours at once: T-04's window is for calls of which
/// nobody knows yet whether they take long. Waiting here for one that says it does would gain nothing
/// but a result in place of a handle, keep it off the record meanwhile (T-18), and put what it asks
/// inline although its server has it in a task, which hosts with the extension are to see as such
/// (suite: tasks-mrtr-input, whose task asks within the window).
pub(super) async fn run(
    context: &Context,
    plan: Plan,
    handover: Handover,
    begin: Begin,
    asked: Option<TaskWant>,
    mut work: Work,
) -> Outcome {
    if !matches!(plan, Plan::AtOnce { .. }) {
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = handover.due() => {}
        }
    }
    let waited = matches!(plan, Plan::Handle(_));
    let patience = if may_have_tasks(context, &begin.server) {
        patience(&plan, asked, &context.settings())
    } else {
        Duration::ZERO
    };
    match context.tasks.begin(begin, &handover, work).await {
        Ok(entry) => {
            if patience > Duration::ZERO {
                // Where it takes longer, the next daemon cannot go on with it, and says so.
                let _ = tokio::time::timeout(patience, entry.is_noted()).await;
            }
            Ok(if waited {
                as_handle(&entry.facts.what, &entry.facts.id)
            } else {
                entry.task(context.settings().tasks.poll).handle()
            })
        }
        // Whoever is prepared to wait does so.
        Err((_, Some(work))) if !matches!(plan, Plan::AtOnce { .. }) => work.await,
        Err((why, _)) => {
            let reason = match why {
                NotBegun::Full(_) => Reason::Busy,
                NotBegun::Unable => Reason::Unavailable,
            };
            Ok(tool_result::refused_result(reason.as_str(), &why.text()))
        }
    }
}

/// What a host without tasks is told in place of the result.
fn as_handle(what: &str, id: &str) -> RawJson {
    let text = format!(
        "{what} is still at work, and goes on without being waited for. Its handle is `{id}`: \
         mcpx_task with {{\"task\":\"{id}\"}} waits for its result; with \"action\":\"show\" it tells \
         how it stands, with \"action\":\"cancel\" it gives it up."
    );
    tool_result::text_result(&text, false)
}
