//! The `OpenAPI` description of the control API, made from the table of ops.
//!
//! The schemas of answers are read off one filled-in answer of each type, which also stands in the
//! description as its example; so they cannot name a member that the types do not have.

use serde_json::{Map, Value as Json, json};

use super::ops::{OPS, Op, Place, Verb};
use super::request::STREAMING;
use super::request::param_schema;
use super::route;
use super::samples;

/// The whole description. `version` is the daemon's.
pub fn describe(version: &str) -> Json {
    let mut paths = Map::new();
    for op in OPS {
        let path = paths.entry(op.route).or_insert_with(|| json!({}));
        if let Some(verbs) = path.as_object_mut() {
            verbs.insert(op.verb.as_str().to_ascii_lowercase(), operation(op));
        }
    }
    paths.insert(route::ATTACH.to_owned(), attach());
    paths.insert(route::OPENAPI.to_owned(), own_description());
    let mut schemas: Map<String, Json> = samples::answers()
        .into_iter()
        .map(|(name, sample)| {
            let mut schema = schema_of(&sample);
            if let Some(members) = schema.as_object_mut() {
                members.insert("example".to_owned(), sample);
            }
            (name.to_owned(), schema)
        })
        .collect();
    for carried in samples::CARRIED {
        let schema = json!({"type": "object", "description": "The result as the server sent it."});
        schemas.insert(carried.to_owned(), schema);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "mcpx control API",
            "version": version,
            "description": "HTTP/1.1 on mcpx's control socket.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

fn operation(op: &Op) -> Json {
    let parameters: Vec<Json> = op
        .params
        .iter()
        .filter(|param| param.place != Place::Body)
        .map(|param| {
            json!({
                "name": param.name,
                "in": if param.place == Place::Path { "path" } else { "query" },
                "required": param.required,
                "description": param.doc,
                "schema": param_schema(param),
            })
        })
        .collect();
    let mut operation = json!({
        "operationId": op.id,
        "summary": op.title,
        "description": op.summary,
        "responses": {
            "200": {"description": "Done.", "content": content(op)},
            "default": {
                "description": "It failed; the body says why and what to do.",
                "content": {"application/json": {"schema": reference("ApiError")}},
            },
        },
    });
    if let Some(members) = operation.as_object_mut() {
        if !parameters.is_empty() {
            members.insert("parameters".to_owned(), parameters.into());
        }
        if op.verb != Verb::Get
            && let Some(body) = body(op)
        {
            members.insert("requestBody".to_owned(), body);
        }
    }
    operation
}

fn reference(name: &str) -> Json {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn content(op: &Op) -> Json {
    let mut content = json!({"application/json": {"schema": reference(op.answer)}});
    let streams = op.params.iter().any(|param| STREAMING.contains(&param.name));
    if streams && let Some(kinds) = content.as_object_mut() {
        kinds.insert("text/event-stream".to_owned(), json!({"schema": {"type": "string"}}));
    }
    content
}

fn body(op: &Op) -> Option<Json> {
    let in_body = || op.params.iter().filter(|param| param.place == Place::Body);
    let properties: Map<String, Json> =
        in_body().map(|param| (param.name.to_owned(), param_schema(param))).collect();
    let required: Vec<_> =
        in_body().filter(|param| param.required).map(|param| param.name).collect();
    (!properties.is_empty()).then(|| {
        json!({
            "required": !required.is_empty(),
            "content": {"application/json": {"schema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            }}},
        })
    })
}

fn attach() -> Json {
    json!({"get": {
        "operationId": "attach",
        "summary": "Attach a shim",
        "description": format!(
            "Upgrades the connection (Upgrade: {}) to a stream of newline-delimited frames.",
            route::ATTACH_PROTOCOL
        ),
        "responses": {"101": {"description": "The stream begins."}},
    }})
}

fn own_description() -> Json {
    json!({"get": {
        "operationId": "openapi",
        "summary": "This description",
        "responses": {"200": {
            "description": "Done.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }},
    }})
}

/// The schema that a filled-in answer shows.
fn schema_of(sample: &Json) -> Json {
    match sample {
        Json::Null => json!({}),
        Json::Bool(_) => json!({"type": "boolean"}),
        Json::Number(number) if number.is_f64() => json!({"type": "number"}),
        Json::Number(_) => json!({"type": "integer"}),
        Json::String(_) => json!({"type": "string"}),
        Json::Array(items) => {
            let items = items.first().map_or_else(|| json!({}), schema_of);
            json!({"type": "array", "items": items})
        }
        Json::Object(members) => {
            let properties: Map<String, Json> =
                members.iter().map(|(name, value)| (name.clone(), schema_of(value))).collect();
            json!({"type": "object", "properties": properties})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_is_described_and_every_reference_leads_somewhere() {
        let whole = describe("0.0.0");
        for op in OPS {
            let operation = &whole["paths"][op.route][op.verb.as_str().to_ascii_lowercase()];
            assert_eq!(operation["operationId"], op.id);
        }
        let text = whole.to_string();
        for piece in text.split("#/components/schemas/").skip(1) {
            let name = piece.split('"').next().unwrap();
            assert!(whole["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
