//! Turns the specification's schemas into strict ones: a key that a revision does not name fails.
//!
//! The published schemas leave nearly every object open, so a field of a later revision passes
//! unseen. Here each object that names properties is closed, except where a type is meant to be
//! open (`_meta`, JSON Schemas, arguments, extension points). What the files leave out or get
//! wrong is repaired, each with its reason at the place.

use serde_json::{Map, Value, json};

/// Keys whose value belongs to somebody else; what is in it is not checked for unknown keys.
const OPEN_KEYS: [&str; 10] = [
    "_meta",
    "inputSchema",
    "outputSchema",
    "structuredContent",
    "arguments",
    "experimental",
    "extensions",
    "metadata",
    "input",
    "data",
];

/// Definitions that stay open as a whole: `_meta` objects, free JSON, and a task's payload, whose
/// shape is that of the request the task was made from.
fn is_open_definition(name: &str) -> bool {
    name.ends_with("MetaObject")
        || matches!(name, "JSONObject" | "JSONArray" | "JSONValue" | "GetTaskPayloadResult")
}

/// The definitions of one revision, closed. `modern` is true for revisions without a handshake.
pub(super) fn definitions(mut defs: Map<String, Value>, modern: bool) -> Map<String, Value> {
    let original = defs.clone();
    for (name, def) in &mut defs {
        if name == "JSONValue" {
            // The generator lost null and fractions ("string, integer, boolean").
            *def = json!(true);
            continue;
        }
        merge_all_of(def, &original);
        if !modern && (name.ends_with("Request") || name.ends_with("Notification")) {
            complete_message(name, def, &original);
        }
        if modern && name.ends_with("Result") {
            fix_result_type(name, def);
        }
        if !is_open_definition(name) {
            close(def);
        }
    }
    defs
}

/// Closes one node and what is under it.
fn close(node: &mut Value) {
    let Some(object) = node.as_object_mut() else { return };
    widen_numbers(object);
    let names_properties = object.get("properties").is_some_and(Value::is_object);
    let free = object.get("additionalProperties").is_none_or(|more| more == &json!({}));
    if names_properties && free {
        object.insert("additionalProperties".into(), json!(false));
    }
    for (key, child) in object.iter_mut() {
        match key.as_str() {
            "properties" => {
                let children = child.as_object_mut().into_iter().flatten();
                for (name, child) in children {
                    if !OPEN_KEYS.contains(&name.as_str()) {
                        close(child);
                    }
                }
            }
            "items" | "additionalProperties" => close(child),
            "anyOf" | "oneOf" => child.as_array_mut().into_iter().flatten().for_each(close),
            _ => {}
        }
    }
}

/// `number` came out of the generator as `integer` inside unions; an elicited 1.5 is legal.
fn widen_numbers(object: &mut Map<String, Value>) {
    if object.get("type") == Some(&json!(["string", "integer", "boolean"])) {
        object.insert("type".into(), json!(["string", "number", "boolean"]));
    }
}

/// Replaces `allOf` by one object with everybody's properties, so that it can be closed.
fn merge_all_of(node: &mut Value, defs: &Map<String, Value>) {
    match node {
        Value::Object(object) => {
            for child in object.values_mut() {
                merge_all_of(child, defs);
            }
            let Some(Value::Array(parts)) = object.remove("allOf") else { return };
            let mut properties = Map::new();
            let mut required = Vec::new();
            for part in &parts {
                let part = resolve(part, defs);
                for (key, value) in part["properties"].as_object().into_iter().flatten() {
                    properties.insert(key.clone(), value.clone());
                }
                required.extend(part["required"].as_array().into_iter().flatten().cloned());
            }
            object.insert("type".into(), json!("object"));
            object.insert("properties".into(), Value::Object(properties));
            required.sort_by_key(ToString::to_string);
            required.dedup();
            object.insert("required".into(), Value::Array(required));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| merge_all_of(item, defs)),
        _ => {}
    }
}

/// Follows a local reference one step.
pub(super) fn resolve<'a>(node: &'a Value, defs: &'a Map<String, Value>) -> &'a Value {
    node["$ref"]
        .as_str()
        .and_then(|pointer| pointer.rsplit('/').next())
        .and_then(|name| defs.get(name))
        .unwrap_or(node)
}

/// Up to 2025-06-18 a request's definition is only `method` and `params`: the envelope, and the
/// `_meta` that `JSONRPCRequest` and `JSONRPCNotification` allow in any params, are added.
fn complete_message(name: &str, def: &mut Value, defs: &Map<String, Value>) {
    if !def["properties"]["method"]["const"].is_string() {
        return;
    }
    let request = name.ends_with("Request");
    let base = if request { "JSONRPCRequest" } else { "JSONRPCNotification" };
    let meta = defs[base]["properties"]["params"]["properties"]["_meta"].clone();
    // `pointer_mut`, not an index: a mutable index puts a null where there is nothing.
    let params = def.pointer_mut("/properties/params/properties");
    if let Some(params) = params.and_then(Value::as_object_mut)
        && !meta.is_null()
    {
        params.entry("_meta").or_insert(meta);
    }
    let Some(properties) = def.pointer_mut("/properties").and_then(Value::as_object_mut) else {
        return;
    };
    properties.insert("jsonrpc".into(), json!({ "const": "2.0" }));
    if request {
        properties.insert("id".into(), json!({ "type": ["string", "integer"] }));
    }
    let Some(required) = def.pointer_mut("/required").and_then(Value::as_array_mut) else {
        return;
    };
    required.push(json!("jsonrpc"));
    if request {
        required.push(json!("id"));
    }
    required.sort_by_key(ToString::to_string);
    required.dedup();
}

/// The files say `resultType: string`; the text says which word belongs to which result.
/// (2026-07-28, "Results": `complete`, or `input_required` with the questions beside it.)
fn fix_result_type(name: &str, def: &mut Value) {
    let Some(kind) = def.pointer_mut("/properties/resultType") else { return };
    *kind = match name {
        "InputRequiredResult" => json!({ "const": "input_required" }),
        "CreateTaskResult" => json!({ "const": "task" }),
        "Result" => json!({ "enum": ["complete", "input_required"] }),
        _ => json!({ "const": "complete" }),
    };
}
