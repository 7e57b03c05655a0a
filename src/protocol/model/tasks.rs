//! Tasks in newest shape: the extension `io.modelcontextprotocol/tasks` of 2026-07-28 (SEP-2663).

use std::time::Duration;

use serde_json::json;

use crate::protocol::jsonrpc::skim::has_member;
use crate::protocol::jsonrpc::{Code, Object, RawJson, RpcError, scan};
use crate::protocol::model::questions::{RESPONSES, responses};
use crate::protocol::task_fsm::Status;

/// The extension's name in `extensions` of capabilities.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The `_meta` key by which a message of 2025-11-25 says which task it belongs to.
pub const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A task as its owner is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its name, given by whoever runs it.
    pub id: String,
    /// Where it stands.
    pub status: Status,
    /// A word on that, for people and models.
    pub message: Option<String>,
    /// When it was made, ISO 8601.
    pub created_at: String,
    /// When it last changed, ISO 8601.
    pub updated_at: String,
    /// How long it is kept from its creation, in milliseconds; `None` is for ever.
    pub ttl_ms: Option<u64>,
    /// How long to wait between two looks, in milliseconds.
    pub poll_ms: Option<u64>,
    /// What its status brings with it.
    pub detail: Detail,
}

/// What a status brings with it on `tasks/get` and in notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// Nothing; also of a handle, and of the form of 2025-11-25.
    Nothing,
    /// `inputRequests`: what is asked, by key.
    Asks(RawJson),
    /// `result`: what the call ended with.
    Result(RawJson),
    /// `error`: what it failed with.
    Error(RpcError),
}

impl Task {
    /// Reads a task, flat as `tasks/get` and the answer to a call have it; an error says what is
    /// wrong with it.
    pub fn read(raw: &RawJson) -> Result<Self, String> {
        let Ok(task) = Object::read(raw) else { return Err("a task must be an object".to_owned()) };
        let text = |key: &str| task.get_str(key);
        let id = text("taskId").filter(|id| !id.is_empty());
        let id = id.ok_or("a task needs a `taskId`")?;
        let word = text("status").unwrap_or_default();
        let status =
            Status::parse(&word).ok_or_else(|| format!("a task's `status` cannot be {word:?}"))?;
        let detail = match status {
            Status::InputRequired => task.get("inputRequests").cloned().map(Detail::Asks),
            Status::Completed => task.get("result").cloned().map(Detail::Result),
            Status::Failed => task.get("error").map(RpcError::read).map(Detail::Error),
            Status::Working | Status::Cancelled => None,
        };
        Ok(Self {
            id,
            status,
            message: text("statusMessage"),
            created_at: text("createdAt").unwrap_or_default(),
            updated_at: text("lastUpdatedAt").unwrap_or_default(),
            ttl_ms: task.get("ttlMs").and_then(millis),
            poll_ms: task.get("pollIntervalMs").and_then(millis),
            detail: detail.unwrap_or(Detail::Nothing),
        })
    }

    /// The answer to a call that became this task (T-09): flat, without what its status brings.
    pub fn handle(&self) -> RawJson {
        let mut task = Object::new();
        task.set("resultType", RawJson::write("task"));
        self.put(&mut task);
        task.write()
    }

    /// The whole of it: the answer to `tasks/get`, and the parameters of a notification.
    pub fn write(&self) -> RawJson {
        let mut task = Object::new();
        self.put(&mut task);
        match &self.detail {
            Detail::Nothing => {}
            Detail::Asks(questions) => task.set("inputRequests", questions.clone()),
            Detail::Result(result) => task.set("result", result.clone()),
            Detail::Error(error) => task.set("error", RawJson::write(error)),
        }
        task.write()
    }

    fn put(&self, task: &mut Object) {
        task.set("taskId", RawJson::write(&self.id));
        task.set("status", RawJson::write(self.status.as_str()));
        if let Some(message) = &self.message {
            task.set("statusMessage", RawJson::write(message));
        }
        task.set("createdAt", RawJson::write(&self.created_at));
        task.set("lastUpdatedAt", RawJson::write(&self.updated_at));
        task.set("ttlMs", RawJson::write(&self.ttl_ms));
        if let Some(poll) = self.poll_ms {
            task.set("pollIntervalMs", RawJson::write(&poll));
        }
    }
}

/// The capability of a server that has the core of tasks of 2025-11-25, for calls of tools.
pub fn core() -> RawJson {
    RawJson::write(&json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } }))
}

/// The parameters of a request about the task of this id.
pub fn named(id: &str) -> RawJson {
    named_object(id).write()
}

/// The parameters of `tasks/update`: answers by the keys of their questions.
pub fn update(id: &str, replies: &[(String, RawJson)]) -> RawJson {
    let mut params = named_object(id);
    params.set(RESPONSES, responses(replies));
    params.write()
}

fn named_object(id: &str) -> Object {
    let mut params = Object::new();
    params.set("taskId", RawJson::write(id));
    params
}

/// Milliseconds; fractions are cut, what is no number says nothing.
pub(crate) fn millis(raw: &RawJson) -> Option<u64> {
    let whole = raw.read::<u64>().ok();
    whole.or_else(|| {
        let value = raw.read::<f64>().ok().filter(|value| (0.0..1e15).contains(value))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        let whole = value as u64;
        Some(whole)
    })
}

/// That a call is asked for as a task (2025-11-25, "Creating Tasks"), and how long it is to be kept
/// where that is said. Large arguments are not walked through for it.
pub fn asked_ttl(params: &RawJson) -> Option<Option<Duration>> {
    memchr::memmem::find(params.as_bytes(), b"\"task\"")?;
    let task = params.member("task").filter(RawJson::is_object)?;
    Some(task.member("ttl").as_ref().and_then(millis).map(Duration::from_millis))
}

/// Whether a result is a task and no outcome yet.
pub fn is_task(result: &RawJson) -> bool {
    scan::member(result.as_bytes(), "resultType") == Some(br#""task""#)
}

/// Whether the sender of these capabilities has declared the extension.
pub fn declares(capabilities: &RawJson) -> bool {
    let named = has_member(capabilities.as_bytes(), |name, _| name == b"extensions");
    let extension = || capabilities.member("extensions")?.member(EXTENSION);
    named && extension().is_some_and(|settings| settings.is_object())
}

/// The refusal of what only a host with the extension can be given (T-03, T-15): names it in `data`.
pub fn needs_extension(what: &str) -> RpcError {
    let text = format!(
        "{what} needs the extension {EXTENSION}, which the request does not declare in its client \
         capabilities"
    );
    let data = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
    RpcError::new(Code::MissingCapability, text).with_data(RawJson::write(&data))
}

/// Whether an error is that refusal.
pub fn is_needed(error: &RpcError) -> bool {
    let needed = || error.data.as_ref()?.member("requiredCapabilities");
    error.code == Code::MissingCapability.number() && needed().is_some_and(|it| declares(&it))
}

/// What a tool says of tasks (`execution.taskSupport`, 2025-11-25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It says nothing.
    Unsaid,
    /// Never as a task.
    Forbidden,
    /// As a task or not.
    Optional,
    /// As a task only.
    Required,
}

impl Support {
    /// Of a tool's definition.
    pub fn of(tool: &RawJson) -> Self {
        let said = tool.member("execution").and_then(|told| told.member_str("taskSupport"));
        match said.as_deref() {
            Some("required") => Self::Required,
            Some("optional") => Self::Optional,
            Some("forbidden") => Self::Forbidden,
            _ => Self::Unsaid,
        }
    }
}

/// Marks a message as one of a task (2025-11-25, "Associating Task-Related Messages"); everything else
/// keeps its text.
#[must_use]
pub fn related(message: &RawJson, task: &str) -> RawJson {
    let Ok(mut object) = Object::read(message) else { return message.clone() };
    let mut meta = Object::read_or_empty(object.get("_meta"));
    meta.set(RELATED, RawJson::write(&json!({ "taskId": task })));
    object.set("_meta", meta.write());
    object.write()
}

/// A result without that mark: whoever gets it knows the task by another name, or as no task.
#[must_use]
pub fn unrelated(result: RawJson) -> RawJson {
    let Ok(mut object) = Object::read(&result) else { return result };
    let Some(Ok(mut meta)) = object.get("_meta").map(Object::read) else { return result };
    if meta.remove(RELATED).is_none() {
        return result;
    }
    if meta.is_empty() {
        object.remove("_meta");
    } else {
        object.set("_meta", meta.write());
    }
    object.write()
}

/// Whether a server that declared `capabilities` may work on calls as tasks, in either form.
pub fn are_offered(capabilities: &RawJson) -> bool {
    let extensions = capabilities.member("extensions");
    capabilities.member("tasks").is_some()
        || extensions.is_some_and(|extensions| extensions.member(EXTENSION).is_some())
}

/// A moment as tasks tell it: ISO 8601 in UTC, of milliseconds since 1970.
pub fn moment(millis: u64) -> String {
    const DAY: u64 = 86_400;
    let seconds = millis / 1_000;
    let (days, rest) = (seconds / DAY, seconds % DAY);
    // Civil date of a day number: years begin in March, so that the leap day is the last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        millis % 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn t09_a_handle_is_flat_and_without_details() {
        let text = r#"{"taskId":"x","status":"completed","statusMessage":"m","createdAt":"c","lastUpdatedAt":"u","ttlMs":null,"pollIntervalMs":500,"result":{"n":1e2}}"#;
        let task = Task::read(&raw(text)).unwrap();
        assert_eq!(task.write().as_str(), text);
        assert_eq!(
            task.handle().as_str(),
            r#"{"resultType":"task","taskId":"x","status":"completed","statusMessage":"m","createdAt":"c","lastUpdatedAt":"u","ttlMs":null,"pollIntervalMs":500}"#
        );
        assert!(is_task(&task.handle()) && !is_task(&task.write()));
    }

    #[test]
    fn what_is_no_task_says_why() {
        for (text, why) in [
            ("[]", "object"),
            (r#"{"status":"working"}"#, "taskId"),
            (r#"{"taskId":"","status":"working"}"#, "taskId"),
            (r#"{"taskId":"x","status":"done"}"#, "done"),
        ] {
            assert!(Task::read(&raw(text)).unwrap_err().contains(why), "{text}");
        }
        let failed = r#"{"taskId":"x","status":"failed","error":{"code":-32603,"message":"m"}}"#;
        let task = Task::read(&raw(failed)).unwrap();
        assert!(matches!(task.detail, Detail::Error(error) if error.message == "m"));
    }

    #[test]
    fn t03_the_extension_is_declared_by_an_object() {
        let declared = |text: &str| declares(&raw(text));
        assert!(declared(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#));
        for text in [
            "{}",
            r#"{"tasks":{}}"#,
            r#"{"extensions":{}}"#,
            r#"{"extensions":{"io.modelcontextprotocol/tasks":null}}"#,
        ] {
            assert!(!declared(text), "{text}");
        }
        let data = needs_extension("x").data.unwrap();
        assert_eq!(
            data.as_str(),
            r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#
        );
    }

    #[test]
    fn messages_name_their_task_and_keep_the_rest() {
        let marked = related(&raw(r#"{"n":1e2,"_meta":{"k":1}}"#), "x");
        assert_eq!(
            marked.as_str(),
            r#"{"n":1e2,"_meta":{"k":1,"io.modelcontextprotocol/related-task":{"taskId":"x"}}}"#
        );
    }

    #[test]
    fn moments_are_dates() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_785_283_200_123, "2026-07-29T00:00:00.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(moment(millis), text);
        }
    }
}
