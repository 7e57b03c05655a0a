//! The methods of tasks as hosts call them, in both forms: the core of 2025-11-25 and the extension of
//! 2026-07-28 (SEP-2663). Each looks at the table of tasks or waits there; none asks an upstream.

use std::sync::Arc;

use super::{Context, Request};
use crate::actors::tasks::Entry;
use crate::actors::upstreams::Answers;
use crate::protocol::edge::questions::modern_reply;
use crate::protocol::jsonrpc::{Code, Object, RawJson, RpcError};
use crate::protocol::model::answers;
use crate::protocol::model::questions::{Question, can_answer, read_responses};
use crate::protocol::model::tasks::{needs_extension, related};
use crate::protocol::session::{Outcome, TaskForm};
use crate::protocol::task_fsm::Machine;

/// `tasks/get`: how a task stands, with its questions, its result or its error (T-06, T-10).
pub(super) async fn get(context: &Context, request: &Request) -> Outcome {
    let entry = find(context, request)?;
    Ok(context.tasks.whole(&entry).await.write())
}

/// `tasks/update`: answers by the keys of their questions; keys that do not wait are ignored (T-06).
pub(super) async fn update(context: &Context, request: &Request) -> Outcome {
    if request.tasks.form == TaskForm::Core {
        let text = "mcpx has no method `tasks/update` for this revision: `tasks/result` asks";
        return Err(RpcError::new(Code::MethodNotFound, text));
    }
    let entry = find(context, request)?;
    let replies = {
        let (watch, said) = (entry.watch(), read_responses(&request.params));
        let machine = watch.borrow();
        // What is no answer is as good as none: the question stays.
        let fits = |(key, answer): (String, RawJson)| {
            let open = machine.open().iter().find(|open| open.key == key)?;
            Some((key, Ok(modern_reply(&open.question, answer).ok()?)))
        };
        said.into_iter().filter_map(fits).collect()
    };
    context.tasks.answer(&entry, replies).await;
    Ok(RawJson::empty_object())
}

/// `tasks/cancel`: gives the call behind a task up (T-11). The core refuses it for a task that has
/// ended (2025-11-25 tasks page, "Task Cancellation"), the extension does not.
pub(super) async fn cancel(context: &Context, request: &Request) -> Outcome {
    let entry = find(context, request)?;
    let cancelled = context.tasks.cancel(&entry).await;
    if !cancelled && request.tasks.form == TaskForm::Core {
        let status = entry.status().as_str();
        let text = format!("the task cannot be cancelled: it has ended already, as `{status}`");
        return Err(RpcError::new(Code::InvalidParams, text));
    }
    Ok(entry.task(context.settings().tasks.poll).write())
}

/// `tasks/list`: the tasks of this session and no others (T-13), oldest first, by pages.
pub(super) fn list(context: &Context, request: &Request) -> Outcome {
    let settings = context.settings();
    let session = request.tasks.session.as_deref();
    let after = match request.params.member("cursor").filter(|cursor| !cursor.is_null()) {
        None => None,
        Some(cursor) => Some(place(&cursor).ok_or_else(bad_cursor)?),
    };
    let mine = context
        .tasks
        .all()
        .into_iter()
        .filter(|entry| entry.facts.owner.is_some() && entry.facts.owner.as_deref() == session);
    let mut rest = mine.skip_while(|entry| {
        let (created, id) = (entry.facts.created_ms, entry.facts.id.as_str());
        after.as_ref().is_some_and(|(at, last)| (created, id) <= (*at, last.as_str()))
    });
    let page: Vec<_> = rest.by_ref().take(settings.tasks.page).collect();
    let tasks: Vec<_> = page.iter().map(|entry| entry.task(settings.tasks.poll).write()).collect();
    let mut result = Object::new();
    result.set("tasks", RawJson::array(&tasks));
    if let (Some(last), Some(_)) = (page.last(), rest.next()) {
        let cursor = format!("{}.{}", last.facts.created_ms, last.facts.id);
        result.set("nextCursor", RawJson::write(&cursor));
    }
    Ok(result.write())
}

/// Where a page begins: after the task of this time and id, which may be gone by now.
fn place(cursor: &RawJson) -> Option<(u64, String)> {
    let text = cursor.text()?;
    let (created, id) = text.split_once('.')?;
    Some((created.parse().ok()?, id.to_owned()))
}

fn bad_cursor() -> RpcError {
    let text = "`cursor` is none that tasks/list has given; begin without one";
    RpcError::new(Code::InvalidParams, text)
}

/// `tasks/result`: waits until a task has ended, puts its questions to the host meanwhile, and answers
/// as its call would have been answered (2025-11-25 tasks page, "Result Retrieval").
pub(super) async fn result(context: &Context, request: &Request) -> Outcome {
    let entry = find(context, request)?;
    wait(context, &entry, &request.caller.answers).await;
    let id = &entry.facts.id;
    match context.tasks.outcome(&entry).await {
        Some(outcome) => outcome.map(|result| related(&result, id)),
        None => Err(answers::refused("cancelled", "the task was cancelled, so it has no result")),
    }
}

/// Waits until a task has ended; what it asks meanwhile goes to the host that waits, if that can be
/// asked.
pub(super) async fn wait(context: &Context, entry: &Arc<Entry>, answers: &Answers) {
    let mut watch = entry.watch();
    let mut turn = entry.take_turn();
    loop {
        let (ended, open) = {
            let machine = watch.borrow_and_update();
            let open = machine.open().first().cloned();
            (machine.status().is_terminal(), open)
        };
        if ended {
            return;
        }
        match (answers, open) {
            (Answers::Line { line, declared }, Some(open))
                if turn.is_mine() && can_answer(declared, &open.question) =>
            {
                let question = Question {
                    params: related(&open.question.params, &entry.facts.id),
                    ..open.question.clone()
                };
                let mut settled = entry.watch();
                let gone = |machine: &Machine| machine.open().iter().all(|it| it.key != open.key);
                let settled = async { drop(settled.wait_for(gone).await) };
                let said = tokio::select! {
                    reply = line.put(&question) => Some(reply),
                    () = settled => None,
                    () = turn.is_over() => None,
                };
                if let Some(reply) = said {
                    context.tasks.answer(entry, vec![(open.key, reply)]).await;
                }
            }
            _ => {
                if watch.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The task that a request names, if it is the asker's (T-13).
fn find(context: &Context, request: &Request) -> Result<Arc<Entry>, RpcError> {
    let method = request.method.as_str();
    // SEP-2663: who has not declared the extension may not ask of tasks.
    if request.tasks.form == TaskForm::Without {
        return Err(needs_extension(&format!("`{method}`")));
    }
    let id = request.params.member_str("taskId").ok_or_else(|| {
        RpcError::new(Code::InvalidParams, format!("`{method}` needs a `taskId`, a string"))
    })?;
    let found = context.tasks.find(&id, request.tasks.session.as_deref());
    found.ok_or_else(|| {
        let text = format!(
            "there is no task {id:.40?} for this host: it was never made, belongs to another session, \
             or was kept for its time and is forgotten"
        );
        RpcError::new(Code::InvalidParams, text)
    })
}
