//! `tools/list` and `tools/call` by revision: what is spelled how, for upstreams of both eras.

use serde_json::{Value, json};

use crate::setup::{PASS, call, find, host, names, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::text_of;
use crate::support::schema::MODERN;

/// A tool with every member that some revision has, and one that none has.
fn rich() -> String {
    json!({
        "name": "rich",
        "title": "A rich tool",
        "description": "Has everything.",
        "inputSchema": { "type": "object", "properties": { "a": { "const": 1.50 } },
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": { "X": true } },
        "outputSchema": { "type": "object", "properties": { "sum": { "type": "number" } } },
        "annotations": { "title": "Annotated", "readOnlyHint": true, "openWorldHint": false },
        "icons": [{ "src": "https://icons.test/i.png", "mimeType": "image/png", "sizes": ["48x48"] }],
        "execution": { "taskSupport": "optional" },
        "_meta": { "vendor.test/key": [1, 2] },
        "x-vendor": { "kept": true },
    })
    .to_string()
}

fn both_eras(more: &str) -> Daemon {
    start(
        |daemon| {
            vec![
                daemon.fake("old").arg("--tool").arg(rich()),
                daemon.fake("new").args("--era modern").arg("--tool").arg(rich()),
            ]
        },
        &format!("{PASS}\n{more}"),
    )
}

crate::for_revisions! { all_real;
    /// H-04, H-58, H-62, U-48: of a tool each revision gets the members that it has, no others, and
    /// nobody's own members are lost.
    async fn h04_h58_h62_members_of_a_tool(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        // On purpose: what no revision defines is carried.
        host.frames.allow_key("x-vendor");
        let tools = host.list_tools().await;
        for name in ["old_rich", "new_rich"] {
            let tool = find(&tools, name);
            for (key, from, to) in [
                ("annotations", "2025-03-26", MODERN),
                ("title", "2025-06-18", MODERN),
                ("outputSchema", "2025-06-18", MODERN),
                ("_meta", "2025-06-18", MODERN),
                ("icons", "2025-11-25", MODERN),
                ("execution", "2025-11-25", "2025-11-25"),
                ("x-vendor", "2024-11-05", MODERN),
            ] {
                // A modern upstream's own `execution` is a member that its revision lacks.
                if name == "new_rich" && key == "execution" {
                    continue;
                }
                let wanted = (from..=to).contains(&revision);
                assert_eq!(tool.get(key).is_some(), wanted, "{name}.{key} at {revision}: {tool}");
            }
            assert_eq!(tool["description"], "Has everything.");
            assert_eq!(tool["inputSchema"]["$defs"], json!({ "X": true }));
        }
    }

    /// H-60: every content block, as far as the revision has it; the rest becomes text.
    async fn h60_content_blocks(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        for tool in ["old_content", "new_content"] {
            let answer = host.call(tool, json!({})).await;
            let blocks = answer["result"]["content"].as_array().unwrap();
            assert_eq!(blocks.len(), 7, "{answer}");
            let kinds: Vec<&str> = blocks.iter().filter_map(|block| block["type"].as_str()).collect();
            let audio = if revision >= "2025-03-26" { "audio" } else { "text" };
            let link = if revision >= "2025-06-18" { "resource_link" } else { "text" };
            assert_eq!(kinds, ["text", "text", "image", "resource", "resource", audio, link]);
            assert_eq!(blocks[2]["data"], "iVBORw0KGgo=");
            assert_eq!(blocks[3]["resource"]["text"], "inside");
            assert_eq!(blocks[4]["resource"]["blob"], "AAEC");
            if audio == "text" {
                assert!(blocks[5]["text"].as_str().unwrap().contains("audio"), "{answer}");
            }
            if link == "text" {
                assert!(blocks[6]["text"].as_str().unwrap().contains("fake://link"), "{answer}");
            }
        }
    }

    /// H-54: structured content below 2025-06-18 becomes text; from there on it is kept.
    async fn h54_structured_content(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        for up in ["old", "new"] {
            let answer = host.call(&format!("{up}_structured"), json!({ "shape": "object" })).await;
            let kept = answer["result"].get("structuredContent");
            assert_eq!(kept.is_some(), revision >= "2025-06-18", "{answer}");
            match kept {
                Some(kept) => assert_eq!(*kept, json!({ "a": 1, "nested": { "b": [true, null] } })),
                None => assert!(text_of(&answer).contains("nested"), "{answer}"),
            }
            assert!(text_of(&answer).starts_with("words"), "{answer}");
        }
    }

    /// H-53, F42: a structured value that is no object reaches every host: kept, wrapped or as text.
    async fn h53_structured_values_that_are_no_objects(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        for (shape, value) in [
            ("array", json!([1, { "b": 2 }])),
            ("string", json!("text")),
            ("number", json!(1.5)),
            ("null", Value::Null),
        ] {
            let answer = host.call("new_structured", json!({ "shape": shape })).await;
            let kept = answer["result"].get("structuredContent");
            if revision == MODERN {
                assert_eq!(kept, Some(&value), "{answer}");
                continue;
            }
            // A schema of these revisions takes objects only: the frame check sees to that.
            let told = text_of(&answer).replace(' ', "");
            let wrapped = kept.map(Value::to_string).unwrap_or_default();
            let text = value.to_string();
            assert!(told.contains(&text) || wrapped.contains(&text), "{shape}: {answer}");
        }
    }

    /// H-56: `isError` of an upstream stays, by its own name and through `mcpx_call`.
    async fn h56_is_error_stays(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        for up in ["old", "new"] {
            let answer = host.call(&format!("{up}_fail"), json!({ "text": "why" })).await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert_eq!(text_of(&answer), "why");
        }
    }

    /// The upstream gets its own tool name and the arguments, in its own era.
    async fn h58_the_upstream_gets_its_own_name(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        for up in ["old", "new"] {
            let answer = host.call(&format!("{up}_add"), json!({ "a": 2, "b": 3 })).await;
            assert_eq!(answer["result"]["content"][0]["text"], "5", "{answer}");
            let transcript = daemon.fake(up).transcript();
            assert_eq!(transcript.with_method("tools/call")[0]["params"]["name"], "add");
            assert!(transcript.check_frames() > 2);
        }
    }
}

/// H-43, P-11: own tools first and as written, contributed ones by name; the same every time.
#[tokio::test]
async fn h43_the_order_is_stable() {
    let daemon = start(
        |daemon| {
            vec![
                daemon.fake("zeta").args("--tools sleep,echo,add"),
                daemon.fake("alpha").args("--tools slow,env"),
            ]
        },
        "expose.mode = \"both\"",
    );
    let wanted = [
        "mcpx_namespaces",
        "mcpx_search",
        "mcpx_types",
        "mcpx_call",
        "mcpx_exec",
        "mcpx_read",
        "mcpx_resources",
        "mcpx_scripts",
        "mcpx_task",
        "mcpx_status",
        "alpha_env",
        "alpha_slow",
        "zeta_add",
        "zeta_echo",
        "zeta_sleep",
    ];
    for revision in ["2024-11-05", MODERN] {
        let mut host = host(&daemon, revision).await;
        for _ in 0..2 {
            assert_eq!(names(&host.list_tools().await), wanted);
        }
    }
}

/// product.md 1.5, U-59: arguments pass as text: number text, key order, duplicate white space.
#[tokio::test]
async fn u59_arguments_pass_as_text() {
    let daemon = start(|daemon| vec![daemon.fake("up")], "expose.mode = \"both\"");
    let arguments =
        r#"{"z":1e2,"a":-0,"big":123456789012345678901234567890,"f":1.50,"e":"é","s":"\u00e9\/"}"#;
    let mut host = host(&daemon, "2025-11-25").await;
    let wrapped = format!(r#"{{"namespace":"up","tool":"params","arguments":{arguments}}}"#);
    for (id, name, arguments) in [(70, "up_params", arguments), (71, "mcpx_call", &wrapped)] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
        );
        host.send_raw(format!("{line}\n").as_bytes()).await;
        let answer = host.expect_response(id).await;
        let inner = r#""arguments":{"z":1e2,"a":-0,"big":123456789012345678901234567890,"f":1.50,"e":"é","s":"\u00e9\/"}"#;
        assert!(text_of(&answer).contains(inner), "{name}: {answer}");
    }
}

/// `_meta` of a host's own goes along; mcpx's token and envelope are not the host's.
#[tokio::test]
async fn u48_meta_of_a_call_goes_along() {
    let daemon = start(|daemon| vec![daemon.fake("up")], PASS);
    let mut host = host(&daemon, "2025-11-25").await;
    let params = json!({ "name": "up_params", "arguments": {},
        "_meta": { "vendor.test/trace": "abc", "progressToken": "mine" } });
    let answer = host.request("tools/call", params).await;
    let sent: Value = serde_json::from_str(&text_of(&answer)).unwrap();
    assert_eq!(sent["params"]["_meta"]["vendor.test/trace"], "abc");
    assert_ne!(sent["params"]["_meta"]["progressToken"], "mine");
}

/// The same through `mcpx_call`, from a modern host to a legacy upstream.
#[tokio::test]
async fn u48_meta_through_mcpx_call_without_the_envelope() {
    let daemon = start(|daemon| vec![daemon.fake("up")], "");
    let mut host = host(&daemon, MODERN).await;
    let sent = call(&mut host, "up", "params", json!({})).await;
    let sent: Value = serde_json::from_str(&text_of(&sent)).unwrap();
    assert!(!sent["params"].to_string().contains("io.modelcontextprotocol"), "{sent}");
}
