//! One operation, one answer: command, `/v1` route and MCP op tool (D-03 to D-07, D-10, D-20, H-56).

use serde_json::{Value, json};

use crate::setup;
use crate::support::daemon::Daemon;
use crate::support::raw_host::text_of;

fn daemon() -> Daemon {
    setup::start(|daemon| vec![daemon.fake("up").args("--offers")], "expose.ops = true")
}

/// What differs from one moment to the next.
fn steady(mut value: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(members) => {
                for key in ["uptime_ms", "memory", "at", "seq", "hosts", "in_flight"] {
                    members.remove(key);
                }
                members.values_mut().for_each(walk);
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut value);
    value
}

/// D-10: the same answer three ways.
#[tokio::test]
async fn d10_command_route_and_tool_agree() {
    let daemon = daemon();
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let mut host = setup::host(&daemon, "2025-11-25").await;
    for (command, route, tool) in [
        (vec!["status", "--json"], "/v1/status", "mcpx_status"),
        (vec!["settings", "get", "--json"], "/v1/settings", "mcpx_settings_get"),
        (vec!["config", "show", "--json"], "/v1/config", "mcpx_config"),
        (vec!["protocol", "--json"], "/v1/protocol", "mcpx_protocol"),
        (vec!["health", "--json"], "/v1/health", "mcpx_health"),
        (vec!["tools", "--json"], "/v1/tools", "mcpx_tools"),
        (vec!["prompts", "--json"], "/v1/prompts", "mcpx_prompts"),
        (vec!["resources", "--json"], "/v1/resources", "mcpx_resources"),
    ] {
        let printed = steady(daemon.cli(&command).await.expect_code(0).json());
        let answer = daemon.http("GET", route, None).await;
        assert_eq!(answer.status, 200, "{route}");
        assert_eq!(printed, steady(answer.json()), "{route}");
        // The core tools of these names are for models; there is no second of them.
        if !["mcpx_status", "mcpx_resources"].contains(&tool) {
            let told = host.call(tool, json!({})).await;
            let structured = told["result"].get("structuredContent").cloned();
            let told = structured.unwrap_or_else(|| serde_json::from_str(&text_of(&told)).unwrap());
            assert_eq!(printed, steady(told), "{tool}");
        }
    }
}

/// D-10: and what is asked with a body.
#[tokio::test]
async fn d10_read_and_prompt_agree() {
    let daemon = daemon();
    let uri = "mcpx://up/fake://rich";
    let printed = daemon.cli(&["read", uri, "--json"]).await.expect_code(0).json();
    let answer = daemon.http("POST", "/v1/read", Some(&json!({ "uri": uri }))).await;
    assert_eq!(answer.json(), printed);
    let words = ["prompt", "up", "greet", "name=x", "--json"];
    let printed = daemon.cli(&words).await.expect_code(0).json();
    let asked = json!({ "namespace": "up", "prompt": "greet", "arguments": { "name": "x" } });
    let answer = daemon.http("POST", "/v1/prompt", Some(&asked)).await;
    assert_eq!(answer.json(), printed);
    let mut host = setup::host(&daemon, "2025-11-25").await;
    let told = host.call("mcpx_prompt", asked).await;
    assert_eq!(serde_json::from_str::<Value>(&text_of(&told)).unwrap(), printed);
}

/// D-03, D-04, H-56: a failing tool is a result that says so, on every way.
#[tokio::test]
async fn d03_d04_h56_call_and_ask() {
    let daemon = daemon();
    let body =
        |tool: &str| json!({ "namespace": "up", "tool": tool, "arguments": { "text": "t" } });
    let good = daemon.http("POST", "/v1/call", Some(&body("echo"))).await;
    assert_eq!((good.status, &good.json()["content"][0]["text"]), (200, &json!("t")));
    let bad = daemon.http("POST", "/v1/call", Some(&body("fail"))).await;
    assert_eq!((bad.status, &bad.json()["isError"]), (200, &json!(true)));
    for (tool, failed) in [("echo", false), ("fail", true)] {
        let asked = daemon.http("POST", "/v1/ask", Some(&body(tool))).await.json();
        assert_eq!(asked["failed"], failed, "{asked}");
        assert_eq!(asked["result"]["content"][0]["text"], "t", "{asked}");
    }
}

/// D-20: failures are typed, with a status, a message, a hint.
#[tokio::test]
async fn d20_failures_are_typed() {
    let daemon = daemon();
    for (method, path, body, status, code) in [
        ("GET", "/v1/no/such", None, 404, "not_found"),
        ("POST", "/v1/status", Some(json!({})), 405, "method_not_allowed"),
        ("POST", "/v1/call", Some(json!({ "namespace": "up" })), 400, "bad_request"),
        ("POST", "/v1/call", Some(json!([1])), 400, "bad_request"),
        ("POST", "/v1/call", Some(json!({ "namespace": "no", "tool": "x" })), 404, "not_found"),
        ("POST", "/v1/call", Some(json!({ "namespace": "up", "tool": "no" })), 404, "not_found"),
        ("POST", "/v1/servers/no/restart", Some(json!({})), 404, "not_found"),
        (
            "PUT",
            "/v1/settings",
            Some(json!({ "settings": { "call.idle_timeout": "soon" } })),
            422,
            "refused",
        ),
        ("PUT", "/v1/settings", Some(json!({ "settings": { "no.such": 1 } })), 422, "refused"),
    ] {
        let answer = daemon.http(method, path, body.as_ref()).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, status, "{method} {path}: {text}");
        assert_eq!(answer.json()["error"]["code"], code, "{method} {path}");
        assert!(!answer.json()["error"]["message"].as_str().unwrap().is_empty());
    }
}

/// The description of the API names every route that is served, and no other.
#[tokio::test]
async fn openapi_describes_the_routes() {
    let daemon = daemon();
    let answer = daemon.http("GET", "/v1/openapi.json", None).await;
    assert_eq!(answer.status, 200);
    let described = answer.json();
    assert!(described["openapi"].as_str().unwrap().starts_with("3."), "{described}");
    let paths = described["paths"].as_object().unwrap();
    for route in ["/v1/call", "/v1/ask", "/v1/protocol", "/v1/settings", "/v1/status", "/v1/events"]
    {
        assert!(paths.contains_key(route), "{route}");
    }
    for (path, verbs) in paths {
        if verbs.get("get").is_some() && !path.contains('{') && !path.contains("attach") {
            let query = match path.as_str() {
                "/v1/events" => "?follow=false",
                "/v1/search" => "?query=echo",
                _ => "",
            };
            let answer = daemon.http("GET", &format!("{path}{query}"), None).await;
            assert_eq!(answer.status, 200, "{path}");
        }
    }
}

/// D-05: how each server is spoken to, and how that became known.
#[tokio::test]
async fn d05_protocol() {
    let mut daemon = setup::start(
        |daemon| {
            vec![
                daemon.fake("old").args("--tools echo --supports 2025-06-18"),
                daemon.fake("new").args("--tools echo --era modern"),
                daemon.fake("forced").args("--tools echo").line("protocol = \"Legacy\""),
            ]
        },
        "",
    );
    let view = |answer: &Value, key: &str| {
        let servers = answer["servers"].as_array().unwrap();
        servers.iter().find(|one| one["server"] == key).unwrap().clone()
    };
    for round in ["probe", "cache"] {
        for key in ["old", "new", "forced"] {
            daemon.cli(&["call", key, "echo", "text=x"]).await.expect_code(0);
        }
        let answer = daemon.http("GET", "/v1/protocol", None).await.json();
        let (old, new, forced) =
            (view(&answer, "old"), view(&answer, "new"), view(&answer, "forced"));
        assert_eq!(old["preference"], "prefer-discover");
        assert_eq!((&old["era"], &old["revision"]), (&json!("legacy"), &json!("2025-06-18")));
        assert_eq!(old["era_source"], round, "{answer}");
        assert_eq!((&new["era"], &new["revision"]), (&json!("modern"), &json!("2026-07-28")));
        assert_eq!(
            forced["preference"], "prefer-initialize",
            "old names are shown canonical (U-05)"
        );
        assert!(old["cached"].is_object(), "{answer}");
        daemon.restart();
    }
}
