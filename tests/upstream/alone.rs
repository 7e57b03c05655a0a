//! A server that is exposed alone (`prefix = ""`, product.md 3): what mcpx does not know of its protocol
//! is passed on both ways, and for several servers it is not.

use serde_json::{Value, json};

use crate::http::{error, refusal};
use crate::setup;
use crate::support::daemon::Daemon;
use crate::support::schema::MODERN;
use crate::support::scripted_http::{Reply, Request, ScriptedHttp, answers};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SKILLS: &str = "io.modelcontextprotocol/skills";

/// A modern server with an extension of its own.
fn skilled(request: &Request) -> Reply {
    match request.method() {
        Some("server/discover") => Reply::result(
            request,
            json!({
                "resultType": "complete",
                "supportedVersions": [MODERN],
                "capabilities": {
                    "tools": {},
                    "extensions": { SKILLS: { "directoryRead": true, "n": 100 } },
                },
                "ttlMs": 0,
                "cacheScope": "private",
            }),
        ),
        Some("skills/list") => Reply::result(
            request,
            json!({ "resultType": "complete", "skills": [{ "x": 1 }], "ttlMs": 5, "cacheScope": "public" }),
        ),
        Some("vendor.test/refuse") => {
            let mut body = error(request, -31_077, "not today");
            body["error"]["data"] = json!({ "why": [1, 2] });
            refusal(400, &body)
        }
        _ => answers::modern(request),
    }
}

fn alone(server: &ScriptedHttp, more: &str) -> Daemon {
    let url = server.url("/mcp");
    let conf = format!("{}\n\n[servers.up]\nurl = \"{url}\"\nprefix = \"\"\n{more}", setup::PASS);
    setup::start(|_| Vec::new(), &conf)
}

/// Unknown methods go to the server as they came, and so do its answers and its errors.
#[tokio::test]
async fn unknown_methods_pass_both_ways() {
    let server = ScriptedHttp::start(skilled).await;
    let daemon = alone(&server, "");
    let mut host = setup::http_host(&daemon, MODERN).await;
    host.capabilities =
        json!({ "extensions": { SKILLS: { "a": 1 }, "io.modelcontextprotocol/tasks": {} } });
    host.frames(|log| {
        log.allow_method("skills/list").allow_method("vendor.test/refuse");
    });
    let answer = host.request("skills/list", json!({ "cursor": "c", "n": 7 })).await;
    let mut result = answer["result"].clone();
    result.as_object_mut().unwrap().remove("_meta");
    let sent = json!({ "resultType": "complete", "skills": [{ "x": 1 }], "ttlMs": 5, "cacheScope": "public" });
    assert_eq!(result, sent, "{answer}");
    let call = server.with_method("skills/list").pop().unwrap();
    assert_eq!(call.json()["params"]["cursor"], "c");
    assert_eq!(call.json()["params"]["n"], 7);
    // What the host declares is declared on; tasks are mcpx's own business.
    let declared = call.json()["params"]["_meta"][CAPABILITIES]["extensions"].clone();
    assert_eq!(declared, json!({ SKILLS: { "a": 1 } }));

    let refused = host.request("vendor.test/refuse", json!({})).await;
    assert_eq!(refused["error"]["code"], -31_077, "{refused}");
    assert_eq!(refused["error"]["data"], json!({ "why": [1, 2] }));
}

/// The extensions of the server stand in both openings, beside what mcpx offers itself.
#[tokio::test]
async fn extensions_are_declared() {
    let server = ScriptedHttp::start(skilled).await;
    let daemon = alone(&server, "");
    let host = setup::http_host(&daemon, MODERN).await;
    // Known once the server has been reached.
    host.request("tools/list", json!({})).await;
    let discover = || host.request("server/discover", json!({}));
    crate::eventually!(
        std::time::Duration::from_secs(5),
        discover().await["result"]["capabilities"]["extensions"].get(SKILLS).is_some()
    );
    let discovered = discover().await;
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!(
        capabilities["extensions"][SKILLS],
        json!({ "directoryRead": true, "n": 100 }),
        "{discovered}"
    );
    assert!(capabilities["tools"].is_object() && capabilities["resources"].is_object());
}

/// A legacy host has its unknown methods passed on, too.
#[tokio::test]
async fn a_legacy_host_reaches_an_unknown_method() {
    let server = ScriptedHttp::start(skilled).await;
    let daemon = alone(&server, "");
    let mut host = setup::host(&daemon, "2025-11-25").await;
    host.frames.allow_method("skills/list");
    let answer = host.request("skills/list", json!({})).await;
    assert_eq!(answer["result"]["skills"], json!([{ "x": 1 }]), "{answer}");
    assert!(answer["result"].get("resultType").is_none());
}

/// Notifications of no revision reach the server; those of the protocol do not by this way.
#[tokio::test]
async fn unknown_notifications_reach_the_server() {
    let server = ScriptedHttp::start(skilled).await;
    let daemon = alone(&server, "");
    let mut host = setup::host(&daemon, "2025-11-25").await;
    host.request("tools/list", json!({})).await;
    host.notify("notifications/vendor.test/told", json!({ "n": 1 })).await;
    let told = || server.with_method("notifications/vendor.test/told");
    crate::eventually!(std::time::Duration::from_secs(5), !told().is_empty());
    assert_eq!(told()[0].json()["params"], json!({ "n": 1 }));
    host.notify("notifications/roots/list_changed", json!({})).await;
    host.request("tools/list", json!({})).await;
    assert!(server.with_method("notifications/roots/list_changed").is_empty());
}

/// With a second server nobody could say which is meant: nothing is passed on, nothing declared.
#[tokio::test]
async fn several_servers_pass_nothing_on() {
    let server = ScriptedHttp::start(skilled).await;
    let url = server.url("/mcp");
    let daemon = alone(&server, &format!("[servers.two]\nurl = \"{url}\""));
    let mut host = setup::http_host(&daemon, MODERN).await;
    host.capabilities = json!({ "extensions": { SKILLS: {} } });
    host.request("tools/list", json!({})).await;
    let answer = host.request("skills/list", json!({})).await;
    assert_eq!(answer["error"]["code"], -32_601, "{answer}");
    assert!(server.with_method("skills/list").is_empty());
    let discovered: Value = host.request("server/discover", json!({})).await;
    assert!(discovered["result"]["capabilities"]["extensions"].get(SKILLS).is_none());
    host.call("up_echo", json!({})).await;
    let call = server.with_method("tools/call").pop().unwrap();
    assert!(call.json()["params"]["_meta"][CAPABILITIES].get("extensions").is_none());
}
