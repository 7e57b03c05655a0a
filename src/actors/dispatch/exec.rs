//! Scripts: `mcpx_exec`, saved scripts and `mcpx exec` run them by this.
//!
//! A run is a call like one on an upstream: it may become a task, a modern host's questions park it, and
//! whoever gives it up ends its calls and its process. What its calls need beside their arguments is in an
//! [`Errand`].

mod calls;
mod drive;
mod notes;
mod report;
mod tool;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use self::drive::Run;
use self::notes::Notes;
pub(super) use self::tool::answer;
use super::as_task::{self, Plan};
use super::outside::{self, Origin};
use super::{Context, Listed, OWN, Repeats, Request, Subject, Told, rounds};
use crate::actors::artifacts::Stored;
use crate::actors::exec::{Deadline, Running, ScriptLine};
use crate::actors::support::progress::ProgressSender;
use crate::actors::upstreams::{Answers, CallWant, Caller, Source};
use crate::protocol::jsonrpc::{Method, RawJson};
use crate::protocol::model::tasks::Support;
use crate::protocol::session::Outcome;
use crate::script::wire;
use crate::transport::clock;

/// A script to be run.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// TypeScript or JavaScript.
    pub(crate) source: String,
    /// The value of `input`; none is `undefined`.
    pub(crate) input: Option<RawJson>,
    /// Shorter than `exec.timeout`.
    pub(crate) timeout: Option<Duration>,
    /// Of a saved script, for texts.
    pub(crate) name: Option<String>,
    /// Who hears what it tells `console`, as it comes.
    pub(crate) console: Option<mpsc::Sender<wire::Log>>,
}

/// What the calls of one run have in common.
struct Errand {
    context: Context,
    caller: Caller,
    notes: Notes,
    repeats: Arc<Repeats>,
    listed: Arc<Listed>,
    /// The session that the run's artifacts are made for.
    session: Option<Arc<str>>,
    /// The script, where texts name it.
    maker: String,
    files: Files,
}

/// What a run has written.
#[derive(Default)]
struct Files(Mutex<Vec<Stored>>);

impl Files {
    fn all(&self) -> MutexGuard<'_, Vec<Stored>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a script for a host, in the course of its `request` of `tools/call`: to a result of a tool, to an
/// `input_required` result where the script's calls ask a modern host, or to the handle of a task. The
/// answers that a modern host brings back are taken from the request.
pub(crate) async fn run(context: &Context, mut request: Request, script: Script) -> Outcome {
    let name = request.params.member_str("name").unwrap_or_default();
    let called = as_task::Tool { support: Support::Optional, name: &name, through_core: true };
    let plan = as_task::plan(&request, called, &context.settings())?;
    if matches!(plan, Plan::Inline) {
        return for_host(context, request, &name, script).await;
    }
    let begin = as_task::begin(&request, &plan, &name, OWN);
    let handover = as_task::hand_over(&mut request, &plan);
    let own = context.clone();
    let work = Box::pin(async move { for_host(&own, request, &name, script).await });
    Box::pin(as_task::run(context, plan, handover, begin, None, work)).await
}

async fn for_host(context: &Context, request: Request, name: &str, script: Script) -> Outcome {
    let Request { params, caller, tasks, progress, repeats, listed, .. } = request;
    let owner = tasks.session.as_deref().map(str::to_owned);
    let saved = script.name.clone();
    let rest = Rest { repeats, listed, session: tasks.session };
    let ran = see_through(context, name, params, caller, progress, rest, script).await;
    let outcome = ran.unwrap_or_else(|told| Ok(told.as_tool_result()));
    let origin = || Origin {
        maker: maker(saved.as_deref()),
        name: saved.unwrap_or_else(|| "script".to_owned()),
        owner,
    };
    outside::within(context, outcome, origin).await
}

/// Runs a script for a person, who is asked as `caller` says; the result of a tool.
pub(crate) async fn run_for(
    context: &Context,
    caller: Caller,
    progress: Option<ProgressSender>,
    script: Script,
) -> Result<RawJson, Told> {
    let repeats = Arc::new(Repeats::new(context.settings().call.repeat_memory));
    let rest = Rest { repeats, listed: Arc::default(), session: None };
    let params = RawJson::empty_object();
    let ran = see_through(context, "exec", params, caller, progress, rest, script).await?;
    // Only a modern host's request ends in anything but a result.
    Ok(ran.unwrap_or_else(|error| {
        crate::protocol::model::tool_result::text_result(&error.message, true)
    }))
}

/// See [`Errand`].
struct Rest {
    repeats: Arc<Repeats>,
    listed: Arc<Listed>,
    session: Option<Arc<str>>,
}

async fn see_through(
    context: &Context,
    name: &str,
    params: RawJson,
    caller: Caller,
    progress: Option<ProgressSender>,
    rest: Rest,
    script: Script,
) -> Result<Outcome, Told> {
    let want = CallWant {
        server: Arc::from(OWN),
        caller,
        method: Method::known("tools/call"),
        params,
        progress,
        repeatable: false,
        task: None,
    };
    let subject = Subject { kind: "tool", name, server: OWN };
    rounds::script(context, subject, want, |want| begin(context, want, rest, script)).await
}

/// Makes a run of a script, which begins when it is polled.
fn begin(context: &Context, want: &CallWant, rest: Rest, script: Script) -> Running {
    let settings = context.settings();
    let longest = settings.exec.timeout;
    let limit = script.timeout.map_or(longest, |wanted| wanted.min(longest));
    let deadline = Deadline::new(clock::now(), limit);
    Running::new(settings.elicit.max_open, deadline.clone(), |line| {
        let Rest { repeats, listed, session } = rest;
        let answers = answers(&want.caller.answers, line);
        let caller = Caller {
            answers,
            source: Source { script: true, ..want.caller.source.clone() },
            ..want.caller.clone()
        };
        let notes = Notes::new(want.progress.clone(), &settings.call);
        let context = context.clone();
        let maker = maker(script.name.as_deref());
        let files = Files::default();
        let errand = Errand { context, caller, notes, repeats, listed, session, maker, files };
        Box::pin(Run::new(Arc::new(errand), script, limit).into_result(deadline))
    })
}

/// A script, where texts name it.
fn maker(saved: Option<&str>) -> String {
    saved.map_or_else(|| "a script".to_owned(), |name| format!("script `{name}`"))
}

/// Whom the calls of a run may ask, where its request may ask `answers`.
fn answers(answers: &Answers, line: ScriptLine) -> Answers {
    match answers {
        Answers::Inline { declared } => Answers::Script { line, declared: declared.clone() },
        // By the run, which knows whether it is a task by now.
        Answers::Task(handover) => match handover.before().declared().cloned() {
            Some(declared) => Answers::Script { line, declared },
            None => Answers::Nobody,
        },
        other => other.clone(),
    }
}
