//! Tasks (`--tasks`), in both forms: the core ones of 2025-11-25 and the extension
//! `io.modelcontextprotocol/tasks` of 2026-07-28. Other revisions have none; there the tools run
//! to their end.
//!
//! Tools: `task_work` (`taskSupport` optional) and `task_required` (required), with arguments
//! `ms` (20: how long the work takes), `ask` (true: needs a form to be answered half-way), `text`,
//! `fail` (true: an `isError` result), `error` (a code: a JSON-RPC error), `quiet` (true: no status
//! notifications), `inline` (true, 2026-07-28: no task although there may be one), `never` (true: works
//! until cancelled), `id` (goes into the question). The result's first block is `done TEXT`, or `done
//! TEXT with REPLY` where it asked. `--poll-interval MS` (20) is what a task suggests.
//!
//! Tasks outlive connections, not the process. The ledger gets `task ID STATUS` for each change.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::args::Args;
use crate::questions;
use crate::state::{Ask, Fake};
use crate::tools::block;

/// The tools.
pub const TOOLS: [&str; 2] = ["task_work", "task_required"];

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";
/// How often work looks whether it was cancelled.
const STEP: Duration = Duration::from_millis(5);
/// The one question that a task has.
const KEY: &str = "task-form";

/// The tasks of a process.
#[derive(Debug, Default)]
pub struct Tasks {
    table: Mutex<BTreeMap<String, Task>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Task {
    status: &'static str,
    created: String,
    updated: String,
    ttl: Value,
    /// A result, or an error.
    outcome: Option<Result<Value, Value>>,
    /// The request that made it.
    ask: Ask,
    /// A legacy question is being put by some `tasks/result`.
    putting: bool,
    reply: Option<Value>,
}

impl Task {
    fn over(&self) -> bool {
        matches!(self.status, "completed" | "failed" | "cancelled")
    }
}

/// The definitions of the tools.
pub fn definitions(args: &Args) -> Vec<Value> {
    if !args.flag("tasks") {
        return Vec::new();
    }
    TOOLS
        .map(|name| {
            let mut tool = crate::lists::plain(name);
            let support = if name == "task_work" { "optional" } else { "required" };
            tool["execution"] = json!({ "taskSupport": support });
            tool
        })
        .to_vec()
}

/// What a server declares at this revision.
pub fn declare(args: &Args, revision: &str, capabilities: &mut Value) {
    if !args.flag("tasks") {
        return;
    }
    match revision {
        "2025-11-25" => {
            capabilities["tasks"] =
                json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        }
        crate::state::MODERN => capabilities["extensions"] = json!({ EXTENSION: {} }),
        _ => {}
    }
}

/// Takes a call of one of [`TOOLS`].
pub fn call(fake: &Arc<Fake>, ask: &Ask) {
    let required = ask.params["name"] == "task_required";
    let core = ask.revision == "2025-11-25";
    let declared = &ask.params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    let extension = ask.modern() && declared["extensions"][EXTENSION].is_object();
    let inline = ask.arg("inline") == &json!(true);
    if core && ask.params.get("task").is_some() || extension && (required || !inline) {
        create(fake, ask);
    } else if core && required {
        fake.error(ask, -32601, "this tool runs as a task only", Value::Null);
    } else if ask.modern() && required {
        let data = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
        fake.error(ask, -32021, "tasks are needed", data);
    } else {
        run(fake, ask);
    }
}

/// The work without a task: a question that it has is put as any other.
fn run(fake: &Arc<Fake>, ask: &Ask) {
    std::thread::sleep(Duration::from_millis(ask.number("ms", 20)));
    if ask.arg("ask") == &json!(true) {
        return questions::one_form(fake, ask, |fake, ask, reply| {
            answer(fake, ask, &outcome(ask, Some(reply)));
        });
    }
    answer(fake, ask, &outcome(ask, None));
}

fn answer(fake: &Fake, ask: &Ask, outcome: &Result<Value, Value>) {
    match outcome {
        Ok(result) => fake.result(ask, result.clone()),
        Err(error) => {
            let message = error["message"].as_str().unwrap_or_default();
            fake.error(ask, error["code"].as_i64().unwrap_or(-32603), message, Value::Null);
        }
    }
}

fn outcome(ask: &Ask, reply: Option<Value>) -> Result<Value, Value> {
    if let Some(code) = ask.arg("error").as_i64() {
        return Err(json!({ "code": code, "message": "the work failed" }));
    }
    let with = reply.map(|reply| format!(" with {reply}")).unwrap_or_default();
    let text = format!("done {}{with}", ask.text("text"));
    let mut result = json!({ "content": [block(&text)] });
    if ask.arg("fail") == &json!(true) {
        result["isError"] = json!(true);
    }
    if ask.modern() {
        result["resultType"] = json!("complete");
    }
    Ok(result)
}

fn create(fake: &Arc<Fake>, ask: &Ask) {
    let now = now();
    let ttl = ask.params["task"].get("ttl").cloned().unwrap_or_else(|| json!(60_000));
    let task = Task {
        status: "working",
        created: now.clone(),
        updated: now,
        ttl,
        outcome: None,
        ask: ask.clone(),
        putting: false,
        reply: None,
    };
    let mut table = fake.tasks.table.lock().unwrap();
    let id = format!("task-{}-{}", std::process::id(), table.len() + 1);
    let mut shown = show(fake, &id, &task, ask.modern(), false);
    table.insert(id.clone(), task);
    drop(table);
    fake.out.ledger(&format!("task {id} working"));
    if ask.modern() {
        shown["resultType"] = json!("task");
        fake.result(ask, shown);
    } else {
        fake.result(ask, json!({ "task": shown }));
    }
    let fake = Arc::clone(fake);
    std::thread::spawn(move || work(&fake, &id));
}

/// A task as the revision spells it; `whole` adds what belongs to its status at 2026-07-28.
fn show(fake: &Fake, id: &str, task: &Task, modern: bool, whole: bool) -> Value {
    let interval: u64 = fake.args.number("poll-interval").unwrap_or(20);
    let (ttl, poll) = if modern { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
    let mut shown = json!({
        "taskId": id, "status": task.status,
        "createdAt": task.created, "lastUpdatedAt": task.updated,
        ttl: task.ttl, poll: interval,
    });
    if modern && whole {
        match (task.status, &task.outcome) {
            ("input_required", _) => {
                shown["inputRequests"] = json!({ KEY: questions::input_form(&task.ask) });
            }
            ("completed", Some(Ok(result))) => shown["result"] = result.clone(),
            ("failed", Some(Err(error))) => shown["error"] = error.clone(),
            _ => {}
        }
    }
    shown
}

/// Changes a task that is not over, and tells of it.
fn change(fake: &Fake, id: &str, status: &'static str, outcome: Option<Result<Value, Value>>) {
    let mut table = fake.tasks.table.lock().unwrap();
    let task = table.get_mut(id).unwrap();
    if task.over() || task.status == status {
        return;
    }
    task.status = status;
    task.updated = now();
    task.outcome = outcome;
    let modern = task.ask.modern();
    let quiet = task.ask.arg("quiet") == &json!(true);
    let shown = show(fake, id, task, modern, true);
    drop(table);
    fake.tasks.changed.notify_all();
    fake.out.ledger(&format!("task {id} {status}"));
    if quiet {
        return;
    }
    if !modern {
        return fake.notify("notifications/tasks/status", shown);
    }
    let listens: Vec<Value> = {
        let state = fake.state.lock().unwrap();
        let wants = |listen: &&Value| {
            let ids = state.filters.get(&listen.to_string()).map(|filter| &filter["taskIds"]);
            ids.and_then(Value::as_array).is_some_and(|ids| ids.iter().any(|one| one == id))
        };
        state.listens.iter().filter(wants).cloned().collect()
    };
    for listen in listens {
        let mut shown = shown.clone();
        shown["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": listen });
        fake.notify("notifications/tasks", shown);
    }
}

/// What a task does, on a thread of its own.
fn work(fake: &Fake, id: &str) {
    let look = || {
        let table = fake.tasks.table.lock().unwrap();
        let task = &table[id];
        (task.over(), task.reply.clone())
    };
    let ask = fake.tasks.table.lock().unwrap()[id].ask.clone();
    let never = ask.arg("never") == &json!(true);
    let mut left = Duration::from_millis(ask.number("ms", 20));
    while !left.is_zero() || never {
        std::thread::sleep(STEP);
        left = left.saturating_sub(STEP);
        if look().0 {
            return;
        }
    }
    let mut reply = None;
    if ask.arg("ask") == &json!(true) {
        change(fake, id, "input_required", None);
        reply = loop {
            let (over, reply) = look();
            if over {
                return;
            }
            if reply.is_some() {
                break reply;
            }
            std::thread::sleep(STEP);
        };
        change(fake, id, "working", None);
    }
    let outcome = outcome(&ask, reply);
    let failed = match &outcome {
        Ok(result) => result["isError"] == true && !ask.modern(),
        Err(_) => true,
    };
    change(fake, id, if failed { "failed" } else { "completed" }, Some(outcome));
}

/// Takes a request, if it is one about tasks; whether it was.
pub fn take(fake: &Arc<Fake>, ask: &Ask) -> bool {
    if !fake.args.flag("tasks") || !matches!(ask.revision.as_str(), "2025-11-25" | "2026-07-28") {
        return false;
    }
    let id = ask.params["taskId"].as_str().unwrap_or_default().to_owned();
    let known = fake.tasks.table.lock().unwrap().contains_key(&id);
    match ask.method.as_str() {
        "tasks/list" if !ask.modern() => {
            let table = fake.tasks.table.lock().unwrap();
            let all = table.iter().map(|(id, task)| show(fake, id, task, false, false));
            fake.result(ask, json!({ "tasks": all.collect::<Vec<_>>() }));
        }
        "tasks/get" | "tasks/cancel" | "tasks/result" | "tasks/update" if !known => {
            fake.error(ask, -32602, &format!("no such task: {id}"), Value::Null);
        }
        "tasks/get" => {
            let shown = show(fake, &id, &fake.tasks.table.lock().unwrap()[&id], ask.modern(), true);
            fake.result(ask, shown);
        }
        "tasks/cancel" => {
            let over = fake.tasks.table.lock().unwrap()[&id].over();
            if over && !ask.modern() {
                fake.error(ask, -32602, "the task is over", Value::Null);
                return true;
            }
            change(fake, &id, "cancelled", None);
            let result = if ask.modern() {
                json!({})
            } else {
                show(fake, &id, &fake.tasks.table.lock().unwrap()[&id], false, false)
            };
            fake.result(ask, result);
        }
        "tasks/update" if ask.modern() => {
            let mut table = fake.tasks.table.lock().unwrap();
            let task = table.get_mut(&id).unwrap();
            if let Some(reply) = ask.params["inputResponses"].get(KEY)
                && task.status == "input_required"
            {
                task.reply = Some(reply.clone());
            }
            drop(table);
            fake.result(ask, json!({}));
        }
        "tasks/result" if !ask.modern() => {
            questions::later(fake, ask, |fake, ask| {
                result(fake, ask, ask.params["taskId"].as_str().unwrap_or_default());
            });
        }
        _ => return false,
    }
    true
}

/// `tasks/result`: puts the task's question, if it has one, and answers once it is over.
fn result(fake: &Arc<Fake>, ask: &Ask, id: &str) {
    let mut table = fake.tasks.table.lock().unwrap();
    loop {
        let task = table.get_mut(id).unwrap();
        if task.over() {
            break;
        }
        if task.status == "input_required" && !task.putting && task.reply.is_none() {
            task.putting = true;
            let made_by = task.ask.clone();
            drop(table);
            let over =
                |fake: &Fake| fake.is_cancelled(ask) || fake.tasks.table.lock().unwrap()[id].over();
            let reply = questions::put_form(fake, &made_by, id, over);
            table = fake.tasks.table.lock().unwrap();
            let task = table.get_mut(id).unwrap();
            task.putting = false;
            task.reply = reply;
        } else {
            table = fake.tasks.changed.wait_timeout(table, STEP).unwrap().0;
        }
        if fake.is_cancelled(ask) {
            return;
        }
    }
    let task = &table[id];
    let Some(mut outcome) = task.outcome.clone() else {
        return fake.error(ask, -32603, &format!("the task is {}", task.status), Value::Null);
    };
    if let Ok(result) = &mut outcome {
        result["_meta"] = json!({ RELATED: { "taskId": id } });
    }
    answer(fake, ask, &outcome);
}

/// Now, as ISO 8601 in UTC.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 0000-03-01, in eras of 400 years.
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}
