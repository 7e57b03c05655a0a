//! What an ordinary MCP server answers, so that a script need only say what is special about its
//! own.

use serde_json::{Value, json};

use super::super::schema::MODERN;
use super::{Reply, Request};

/// The session id that [`legacy`] gives out.
pub const SESSION: &str = "session-1";

/// A tool that every ordinary answer lists.
pub fn echo_tool() -> Value {
    json!({
        "name": "echo",
        "description": "Gives back its text",
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
    })
}

/// A handshake server of this revision with a session: JSON answers, 202 for notifications and
/// answers, 405 for GET, 200 for DELETE; one tool `echo`.
pub fn legacy(request: &Request, revision: &str) -> Reply {
    match (request.verb.as_str(), request.method()) {
        ("GET", _) => Reply::status(405).header("Allow", "POST, DELETE"),
        ("DELETE", _) => Reply::status(200),
        (_, Some("initialize")) => Reply::result(
            request,
            json!({
                "protocolVersion": revision,
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "scripted", "version": "1" },
            }),
        )
        .header("Mcp-Session-Id", SESSION),
        (_, Some("server/discover")) => not_found(request, 400),
        _ => common(request, json!({})),
    }
}

/// A 2026-07-28 server: JSON answers, no sessions, 405 for GET and DELETE; one tool `echo`.
pub fn modern(request: &Request) -> Reply {
    if request.verb != "POST" {
        return Reply::status(405).header("Allow", "POST");
    }
    let marks = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
    match request.method() {
        Some("server/discover") => {
            let mut result = marks;
            result["supportedVersions"] = json!([MODERN]);
            result["capabilities"] = json!({ "tools": { "listChanged": true } });
            result["_meta"] = json!({
                "io.modelcontextprotocol/serverInfo": { "name": "scripted", "version": "1" },
            });
            Reply::result(request, result)
        }
        Some("initialize" | "ping") => not_found(request, 404),
        Some("tools/call") => common(request, json!({ "resultType": "complete" })),
        _ => common(request, marks),
    }
}

/// -32601 under an HTTP status.
pub fn not_found(request: &Request, status: u16) -> Reply {
    let method = request.method().unwrap_or_default();
    let error = json!({ "code": -32601, "message": format!("Method not found: {method}") });
    Reply::json_status(status, &json!({ "jsonrpc": "2.0", "id": request.id(), "error": error }))
}

fn common(request: &Request, marks: Value) -> Reply {
    let with = |mut result: Value| {
        for (key, value) in marks.as_object().into_iter().flatten() {
            result[key] = value.clone();
        }
        Reply::result(request, result)
    };
    match request.method() {
        // A notification, or an answer to a request of the server's.
        Some(_) | None if request.id().is_null() || request.method().is_none() => {
            Reply::status(202)
        }
        Some("ping") => with(json!({})),
        Some("tools/list") => with(json!({ "tools": [echo_tool()] })),
        Some("tools/call") => {
            let text = request.json()["params"]["arguments"]["text"].clone();
            let text = text.as_str().unwrap_or_default();
            with(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        _ => not_found(request, 200),
    }
}
