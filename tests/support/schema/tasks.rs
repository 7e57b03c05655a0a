//! The tasks extension of 2026-07-28 (`io.modelcontextprotocol/tasks`, SEP-2663) as definitions beside
//! those of the core schema, which does not have them. Written by hand from its page.

use serde_json::{Map, Value, json};

/// Adds the extension's messages to the definitions of its revision.
pub(super) fn add(defs: &mut Map<String, Value>) {
    for (name, method, more) in [
        ("GetTaskRequest", "tasks/get", None),
        ("CancelTaskRequest", "tasks/cancel", None),
        ("UpdateTaskRequest", "tasks/update", Some("inputResponses")),
    ] {
        let mut params = json!({
            "type": "object",
            "properties": {
                "_meta": { "$ref": "#/$defs/RequestMetaObject" },
                "taskId": { "type": "string" },
            },
            "required": ["_meta", "taskId"],
        });
        if let Some(more) = more {
            params["properties"][more] = json!({ "$ref": "#/$defs/InputResponses" });
            params["required"] = json!(["_meta", "taskId", more]);
        }
        let request = json!({
            "type": "object",
            "properties": {
                "jsonrpc": { "const": "2.0" },
                "id": { "$ref": "#/$defs/RequestId" },
                "method": { "const": method },
                "params": params,
            },
            "required": ["jsonrpc", "id", "method", "params"],
        });
        defs.insert(name.to_owned(), request);
        join(defs, "ClientRequest", name);
    }
    for name in ["UpdateTaskResultResponse", "CancelTaskResultResponse"] {
        defs.insert(name.to_owned(), response(&json!({ "$ref": "#/$defs/EmptyResult" })));
    }
    states(defs);
    if let Some(parts) = defs["CallToolResultResponse"]
        .pointer_mut("/properties/result/anyOf")
        .and_then(Value::as_array_mut)
    {
        parts.push(json!({ "$ref": "#/$defs/CreateTaskResult" }));
    }
    let filter = defs["SubscriptionFilter"].pointer_mut("/properties").unwrap();
    filter["taskIds"] = json!({ "type": "array", "items": { "type": "string" } });
}

/// What a task is in each state: the answer to `tasks/get`, and the notification.
fn states(defs: &mut Map<String, Value>) {
    let any = ["working", "input_required", "completed", "failed", "cancelled"];
    defs.insert("CreateTaskResult".to_owned(), task(&json!({ "enum": any }), true, None));
    let mut answers = Vec::new();
    let mut told = Vec::new();
    for (name, status, more) in [
        ("Working", "working", None),
        ("InputRequired", "input_required", Some(("inputRequests", "InputRequests"))),
        ("Completed", "completed", Some(("result", "JSONObject"))),
        ("Failed", "failed", Some(("error", "JSONObject"))),
        ("Cancelled", "cancelled", None),
    ] {
        let result = format!("{name}TaskResult");
        answers.push(json!({ "$ref": format!("#/$defs/{result}") }));
        defs.insert(result, task(&json!({ "const": status }), true, more));
        told.push(task(&json!({ "const": status }), false, more));
    }
    defs.insert("GetTaskResultResponse".to_owned(), response(&json!({ "anyOf": answers })));
    let notification = json!({
        "type": "object",
        "properties": {
            "jsonrpc": { "const": "2.0" },
            "method": { "const": "notifications/tasks" },
            "params": { "anyOf": told },
        },
        "required": ["jsonrpc", "method", "params"],
    });
    defs.insert("TaskStatusNotification".to_owned(), notification);
    join(defs, "ServerNotification", "TaskStatusNotification");
}

/// A task with a status; `more` is the member that comes with it, and its definition.
fn task(status: &Value, result: bool, more: Option<(&str, &str)>) -> Value {
    let meta = if result { "ResultMetaObject" } else { "NotificationMetaObject" };
    let mut required = vec!["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"];
    let mut task = json!({
        "type": "object",
        "properties": {
            "_meta": { "$ref": format!("#/$defs/{meta}") },
            "taskId": { "type": "string" },
            "status": status,
            "statusMessage": { "type": "string" },
            "createdAt": { "type": "string" },
            "lastUpdatedAt": { "type": "string" },
            "ttlMs": { "type": ["integer", "null"] },
            "pollIntervalMs": { "type": "integer" },
        },
    });
    if result {
        required.push("resultType");
        task["properties"]["resultType"] = json!({ "type": "string" });
    }
    if let Some((name, definition)) = more {
        required.push(name);
        task["properties"][name] = json!({ "$ref": format!("#/$defs/{definition}") });
    }
    task["required"] = json!(required);
    task
}

fn response(result: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "jsonrpc": { "const": "2.0" },
            "id": { "$ref": "#/$defs/RequestId" },
            "result": result,
        },
        "required": ["jsonrpc", "id", "result"],
    })
}

fn join(defs: &mut Map<String, Value>, union: &str, name: &str) {
    let parts = defs[union]["anyOf"].as_array_mut().unwrap_or_else(|| panic!("no union {union}"));
    parts.push(json!({ "$ref": format!("#/$defs/{name}") }));
}
