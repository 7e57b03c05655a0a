//! Arguments that a tool marks with `x-mcp-header`: mcpx as the server compares them (H-31; 2026-07-28
//! Streamable HTTP page, "Server Behavior for Custom Headers").

use serde_json::{Value, json};

use crate::setup::{PASS, http_host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_http::HttpHost;
use crate::support::schema::MODERN;

/// The tool `up_sql`, whose region and count are repeated.
fn marked() -> Daemon {
    let tool = json!({ "name": "sql", "inputSchema": { "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "options": { "type": "object", "properties": {
            "count": { "type": "integer", "x-mcp-header": "Count" },
        } },
    } } });
    let tool = tool.to_string();
    start(
        |daemon| vec![daemon.fake("up").arg("--tool").arg(&tool).line("scope = \"global\"")],
        PASS,
    )
}

/// Calls with these headers; the status and the answer.
async fn call(host: &HttpHost, arguments: Value, headers: &[(&str, &str)]) -> (u16, Value) {
    let id = host.take_id();
    let params = json!({ "name": "up_sql", "arguments": arguments });
    let message = host.message(id, "tools/call", params);
    let mut send = host.post(&message);
    for (name, value) in headers {
        send = send.also(name, value);
    }
    let mut response = send.send().await;
    (response.status, response.answer(id).await)
}

#[tokio::test]
async fn h31_marked_arguments_are_compared() {
    let daemon = marked();
    let host = http_host(&daemon, MODERN).await;
    let tools = host.list_tools().await;
    let sql = tools.iter().find(|tool| tool["name"] == "up_sql").unwrap();
    assert_eq!(sql["inputSchema"]["properties"]["region"]["x-mcp-header"], "Region");

    let both = || json!({ "region": "Zürich", "options": { "count": 42 } });
    let region = ("mcp-param-region", "=?base64?WsO8cmljaA==?=");
    let fine: [(Value, &[(&str, &str)]); 4] = [
        (both(), &[region, ("Mcp-Param-Count", "42.0")]),
        (json!({ "region": null }), &[]),
        (json!({}), &[("mcp-param-unknown", "x")]),
        (json!({ "region": "" }), &[("MCP-PARAM-REGION", "")]),
    ];
    for (arguments, headers) in fine {
        let (status, answer) = call(&host, arguments, headers).await;
        assert_eq!(status, 200, "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
    }
    let refused: [(Value, &[(&str, &str)]); 6] = [
        (both(), &[("mcp-param-count", "42")]),
        (both(), &[region, ("mcp-param-count", "43")]),
        (both(), &[("mcp-param-region", "Zurich"), ("mcp-param-count", "42")]),
        (both(), &[("mcp-param-region", "=?base64?WsO8cmljaA?="), ("mcp-param-count", "42")]),
        (both(), &[region, region, ("mcp-param-count", "42")]),
        (json!({}), &[region]),
    ];
    for (arguments, headers) in refused {
        let (status, answer) = call(&host, arguments, headers).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32020)), "{answer}");
    }
    assert_eq!(daemon.fake("up").transcript().with_method("tools/call").len(), 4);
}

/// Neither stdio nor an older revision knows such headers.
#[tokio::test]
async fn h31_nobody_else_is_asked_for_headers() {
    let daemon = marked();
    let arguments = || json!({ "region": "eu" });
    let host = http_host(&daemon, "2025-11-25").await;
    assert!(host.call("up_sql", arguments()).await["result"].is_object());
    let mut shim = crate::setup::host(&daemon, MODERN).await;
    assert!(shim.call("up_sql", arguments()).await["result"].is_object());
}
