//! `tools/list`: what is in it and how its pages go wrong (F38 to F41).

use std::sync::Arc;

use serde_json::{Value, json};

use crate::args::Args;
use crate::state::{Ask, Fake};
use crate::tasks;
use crate::tools;

/// The definitions that it starts with.
pub fn initial(args: &Args) -> Vec<Value> {
    let mut list = match args.get("tools") {
        None => tools::definitions(|_| true),
        Some(names) => {
            let names: Vec<&str> = names.split(',').collect();
            tools::definitions(|name| names.contains(&name))
        }
    };
    for text in args.all_of("tool") {
        list.push(serde_json::from_str(text).expect("--tool JSON"));
    }
    list.extend(crate::offers::tools(args));
    list.extend(tasks::definitions(args));
    for number in 1..=args.number("tool-count").unwrap_or(0) {
        list.push(plain(&format!("t{number:04}")));
    }
    if args.flag("odd-names") {
        list.extend(odd_names());
    }
    if args.flag("odd-schemas") {
        list.extend(odd_schemas());
    }
    list
}

/// A tool that takes anything.
pub fn plain(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("The tool {name}."),
        "inputSchema": { "type": "object", "properties": {} },
    })
}

/// Names as they are met (F40): marks, spaces, other scripts, length, the same name twice.
fn odd_names() -> Vec<Value> {
    let long = "n".repeat(119);
    let mut list: Vec<Value> =
        ["get/item", "get.item", "get item", "ツール", "b_c", "c"].into_iter().map(plain).collect();
    list.push(plain(&format!("{long}1")));
    list.push(plain(&format!("{long}2")));
    let mut first = plain("twice");
    first["description"] = json!("The first of two.");
    list.push(first);
    list.push(plain("twice"));
    list
}

/// Schemas as they are met (F41). The name says what is odd.
fn odd_schemas() -> Vec<Value> {
    let with = |name: &str, schema: Value| json!({ "name": name, "description": name, "inputSchema": schema });
    let object = |more: Value| {
        let mut schema = json!({ "type": "object" });
        for (key, value) in more.as_object().into_iter().flatten() {
            schema[key] = value.clone();
        }
        schema
    };
    vec![
        json!({ "name": "schema_missing", "description": "schema_missing" }),
        with("schema_null", Value::Null),
        with("schema_true", json!(true)),
        with("schema_string", json!({ "type": "string" })),
        with("schema_empty", json!({})),
        with(
            "schema_draft07",
            object(json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": { "a": { "$ref": "#/definitions/X" } },
            "definitions": { "X": { "type": "integer" } } })),
        ),
        with(
            "ref_present",
            object(json!({
            "properties": { "a": { "$ref": "#/$defs/X" } }, "$defs": { "X": { "type": "string" } } })),
        ),
        with("ref_absent", object(json!({ "properties": { "a": { "$ref": "#/$defs/Nowhere" } } }))),
        with(
            "ref_recursive",
            object(json!({
            "properties": { "tree": { "$ref": "#/$defs/Node" } },
            "$defs": { "Node": { "type": "object", "properties": {
                "next": { "$ref": "#/$defs/Node" } } } } })),
        ),
        with(
            "ref_deep",
            object(json!({
            "properties": { "a": { "anyOf": [{ "type": "null" }, { "type": "object",
                "properties": { "n": { "type": "number" } } }] },
                "b": { "$ref": "#/properties/a/anyOf/1/properties/n" } } })),
        ),
        with(
            "ref_remote",
            object(json!({
            "properties": { "a": { "$ref": "https://evil.test/s.json" } } })),
        ),
        with(
            "tuple_items",
            object(json!({
            "properties": { "a": { "type": "array", "items": [{ "type": "string" }, {}] } } })),
        ),
        json!({ "name": "description_null", "description": null, "inputSchema": object(json!({})) }),
        json!({ "name": "annotations_null", "annotations": null, "inputSchema": object(json!({})) }),
    ]
}

/// Answers `tools/list`.
pub fn list(fake: &Arc<Fake>, ask: Ask) {
    if fake.args.flag("list-silent") {
        return;
    }
    let delay = fake.args.number("list-delay").unwrap_or(0);
    fake.later(delay, move |fake| {
        if let Some(code) = fake.args.number("list-error") {
            return fake.error(&ask, code, "the list is refused", Value::Null);
        }
        let tools: Vec<Value> = match fake.args.get("tool-file") {
            None => fake.state.lock().unwrap().tools.clone(),
            Some(path) => {
                let text = std::fs::read(path).expect("--tool-file PATH");
                serde_json::from_slice(&text).expect("a JSON array in the tool file")
            }
        };
        let tools = spelled(tools, &ask.revision);
        let spec = fake.args.get("pages").unwrap_or("all");
        let (mode, size) = spec.split_once(':').unwrap_or((spec, "2"));
        page(fake, &ask, &tools, mode, size.parse().expect("--pages MODE:SIZE"));
    });
}

/// Annotations came with 2025-03-26, `execution` is in 2025-11-25 alone. Definitions from the command
/// line stay as they are.
fn spelled(mut tools: Vec<Value>, revision: &str) -> Vec<Value> {
    for tool in &mut tools {
        let name = tool["name"].as_str().unwrap_or_default().to_owned();
        let Some(members) = tool.as_object_mut() else { continue };
        if tools::is_built_in(&name) && revision == "2024-11-05" {
            members.remove("annotations");
        }
        if tasks::TOOLS.contains(&&*name) && revision != "2025-11-25" {
            members.remove("execution");
        }
    }
    tools
}

fn page(fake: &Fake, ask: &Ask, tools: &[Value], mode: &str, size: usize) {
    let cursor = ask.params.get("cursor").and_then(Value::as_str);
    let count = {
        let mut state = fake.state.lock().unwrap();
        state.pages += 1;
        state.pages
    };
    let half = &tools[..size.min(tools.len())];
    let rest = &tools[half.len()..];
    let (items, next) = match (mode, cursor) {
        ("plain", _) => {
            let start: usize = cursor.map_or(Ok(0), str::parse).unwrap_or(usize::MAX);
            if start >= tools.len() && cursor.is_some() {
                return fake.error(ask, -32602, "no such cursor", Value::Null);
            }
            let end = tools.len().min(start + size);
            let next = (end < tools.len()).then(|| json!(end.to_string()));
            (tools[start..end].to_vec(), next)
        }
        ("empty" | "duplicates" | "error" | "silent", None) => {
            let next = if mode == "empty" { "" } else { "second" };
            (half.to_vec(), Some(json!(next)))
        }
        ("empty", Some(_)) => (rest.to_vec(), None),
        ("duplicates", Some(_)) => ([&half[half.len() - 1..], rest].concat(), None),
        ("error", Some(_)) => return fake.error(ask, -32602, "no such cursor", Value::Null),
        ("silent", Some(_)) => return,
        // The whole list, and "" to say that this was all: read as a cursor it starts over.
        ("empty-end", _) => (tools.to_vec(), Some(json!(""))),
        ("null", _) => (tools.to_vec(), Some(Value::Null)),
        ("same", None) => (half.to_vec(), Some(json!("same"))),
        ("same", Some(_)) => (rest.to_vec(), Some(json!("same"))),
        ("cycle", None) => (half.to_vec(), Some(json!("A"))),
        ("cycle", Some("A")) => (rest.to_vec(), Some(json!("B"))),
        ("cycle", Some(_)) => (vec![plain("from_b")], Some(json!("A"))),
        ("endless", _) => {
            (vec![plain(&format!("endless_{count}"))], Some(json!(count.to_string())))
        }
        _ => (tools.to_vec(), None),
    };
    let mut result = json!({ "tools": items });
    if let Some(next) = next {
        result["nextCursor"] = next;
    }
    if ask.modern() {
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("public");
    }
    fake.result(ask, result);
}
