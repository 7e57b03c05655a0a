//! Tasks in both spellings: newest shape is the extension of 2026-07-28 (SEP-2663), where a task is
//! flat and holds its result; the core of 2025-11-25 (basic/utilities/tasks) has it under `task`, with
//! other names, and its result apart. Revisions without tasks of their own are spelled for as
//! 2025-11-25: whoever asks there for a task has read that page (T-01).

use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::tasks::{Task, is_task, millis};
use crate::protocol::model::tool_result;
use crate::protocol::revision::Revision;
use crate::protocol::task_fsm::Status;

/// Newest name, and that of 2025-11-25.
const NAMES: [(&str, &str); 2] = [("ttlMs", "ttl"), ("pollIntervalMs", "pollInterval")];

/// What comes with a status in newest shape, and has no place in a task of 2025-11-25.
const DETAILS: [&str; 3] = ["inputRequests", "result", "error"];

/// Reads a task that an upstream of `revision` gave on `tasks/get`, `tasks/cancel`, in a list or in a
/// notification. An error says what is wrong with it.
pub fn lift_task(revision: Revision, raw: &RawJson) -> Result<Task, String> {
    if revision.is_modern() {
        return Task::read(raw);
    }
    let Ok(mut object) = Object::read(raw) else {
        return Err("a task must be an object".to_owned());
    };
    for detail in DETAILS {
        // Vendors' own members of these names mean something else.
        object.remove(detail);
    }
    let mut task = Task::read(&object.write())?;
    task.ttl_ms = object.get("ttl").and_then(millis);
    task.poll_ms = object.get("pollInterval").and_then(millis);
    Ok(task)
}

/// Reads the task that an upstream of `revision` answered a call with: flat, or under `task`. `None`
/// where the result is none.
pub fn lift_created(revision: Revision, result: &RawJson) -> Option<Result<Task, String>> {
    if revision.is_modern() {
        return is_task(result).then(|| Task::read(result));
    }
    let task = result.member("task").filter(RawJson::is_object)?;
    Some(lift_task(revision, &task))
}

/// A result of a method of tasks, or of a call that became one, for a host of `revision`; `None` where
/// it is no such thing.
pub(super) fn downgrade(revision: Revision, method: &str, result: &RawJson) -> Option<RawJson> {
    match method {
        // T-11: the newest form answers with nothing.
        "tasks/cancel" | "tasks/update" if revision.is_modern() => Some(RawJson::empty_object()),
        _ if revision.is_modern() => None,
        "tasks/get" | "tasks/cancel" => core_task(result),
        "tasks/list" => {
            let mut list = Object::read(result).ok()?;
            let tasks = list.get("tasks")?.elements()?;
            let tasks: Vec<RawJson> =
                tasks.iter().map(|task| core_task(task).unwrap_or_else(|| task.clone())).collect();
            list.set("tasks", RawJson::array(&tasks));
            Some(list.write())
        }
        _ => None,
    }
}

/// The parameters of `notifications/tasks/status` for a host of `revision`; `None` where it has no such
/// notification.
pub fn status(revision: Revision, task: &RawJson) -> Option<RawJson> {
    (revision == Revision::V2025_11_25).then(|| core_task(task))?
}

/// A call's result that is a task, opened: as 2025-11-25 has it.
pub(super) fn core_created(mut task: Object) -> RawJson {
    let meta = task.remove("_meta");
    let mut created = Object::new();
    created.set("task", core_task(&task.write()).unwrap_or_else(RawJson::empty_object));
    if let Some(meta) = meta {
        created.set("_meta", meta);
    }
    created.write()
}

/// T-10: what a tool says is wrong is a failed task there, and a completed one in newest shape.
fn core_task(raw: &RawJson) -> Option<RawJson> {
    let mut object = Object::read(raw).ok()?;
    let failed = object.get("result").is_some_and(tool_result::is_error);
    if failed && object.get_str("status").as_deref() == Some(Status::Completed.as_str()) {
        object.set("status", RawJson::write(Status::Failed.as_str()));
    }
    let mut core = Object::new();
    for (name, value) in object.iter() {
        if name == "resultType" || DETAILS.contains(&name) {
            continue;
        }
        let renamed = NAMES.iter().find(|(newest, _)| *newest == name);
        match renamed {
            Some((_, old)) => core.set(*old, value.clone()),
            None => core.set(name.to_owned(), value.clone()),
        }
    }
    core.set_default("ttl", RawJson::null());
    Some(core.write())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    const CORE: &str = r#"{"taskId":"x","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":60000,"pollInterval":5000}"#;
    const NEWEST: &str = r#"{"taskId":"x","status":"working","createdAt":"c","lastUpdatedAt":"u","ttlMs":60000,"pollIntervalMs":5000}"#;

    #[test]
    fn both_forms_of_an_upstream_are_one() {
        let old = lift_task(Revision::V2025_11_25, &raw(CORE)).unwrap();
        assert_eq!(old.write().as_str(), NEWEST);
        assert_eq!(lift_task(Revision::NEWEST, &raw(NEWEST)).unwrap(), old);
        let created = raw(&format!(r#"{{"task":{CORE}}}"#));
        assert_eq!(lift_created(Revision::V2025_11_25, &created).unwrap().unwrap(), old);
        assert!(lift_created(Revision::V2025_11_25, &raw(r#"{"content":[]}"#)).is_none());
        let flat = raw(&NEWEST.replacen('{', r#"{"resultType":"task","#, 1));
        assert_eq!(lift_created(Revision::NEWEST, &flat).unwrap().unwrap(), old);
        assert!(lift_created(Revision::NEWEST, &created).is_none());
    }

    #[test]
    fn t10_a_tool_error_is_failed_in_the_old_form() {
        let spelled = |text: &str| {
            downgrade(Revision::V2025_11_25, "tasks/get", &raw(text)).unwrap().as_str().to_owned()
        };
        assert_eq!(spelled(NEWEST), CORE);
        let done = NEWEST.replace("working", "completed");
        let with = |result: &str| done.replacen('}', &format!(r#","result":{result}}}"#), 1);
        assert_eq!(spelled(&with(r#"{"content":[]}"#)), CORE.replace("working", "completed"));
        assert_eq!(spelled(&with(r#"{"isError":true}"#)), CORE.replace("working", "failed"));
    }

    #[test]
    fn t10_a_status_is_told_as_its_revision_has_it() {
        let failed = NEWEST.replace("working", "completed");
        let failed = failed.replacen('}', r#","result":{"isError":true}}"#, 1);
        let told = status(Revision::V2025_11_25, &raw(&failed)).unwrap();
        assert_eq!(told.as_str(), CORE.replace("working", "failed"));
        for other in [Revision::V2025_06_18, Revision::NEWEST] {
            assert!(status(other, &raw(NEWEST)).is_none());
        }
    }

    #[test]
    fn t11_newest_answers_are_empty() {
        for method in ["tasks/cancel", "tasks/update"] {
            let spelled = downgrade(Revision::NEWEST, method, &raw(NEWEST)).unwrap();
            assert_eq!(spelled.as_str(), "{}");
        }
        assert!(downgrade(Revision::NEWEST, "tasks/get", &raw(NEWEST)).is_none());
        let cancelled = downgrade(Revision::V2025_11_25, "tasks/cancel", &raw(NEWEST)).unwrap();
        assert_eq!(cancelled.as_str(), CORE);
    }

    #[test]
    fn t01_lists_and_creations_of_the_old_form() {
        let list = raw(&format!(r#"{{"tasks":[{NEWEST}],"nextCursor":"n"}}"#));
        let spelled = downgrade(Revision::V2025_11_25, "tasks/list", &list).unwrap();
        assert_eq!(spelled.as_str(), format!(r#"{{"tasks":[{CORE}],"nextCursor":"n"}}"#));
        let handle = Object::read(&Task::read(&raw(NEWEST)).unwrap().handle()).unwrap();
        assert_eq!(core_created(handle).as_str(), format!(r#"{{"task":{CORE}}}"#));
    }
}
