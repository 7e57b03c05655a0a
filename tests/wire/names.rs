//! Names towards hosts (F40, H-46) and odd schemas (F41).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::setup::{PASS, call, failed, find, host, names, start};
use crate::support::raw_host::text_of;

/// F40: `a` + `b_c` and `a_b` + `c` are two tools, each reaching its own server.
#[tokio::test]
async fn f40_names_that_meet() {
    let daemon = start(
        |daemon| {
            let tool = |name: &str| {
                json!({ "name": name, "inputSchema": { "type": "object" } }).to_string()
            };
            vec![
                daemon.fake("a").args("--tools none --tool").arg(tool("b_c")),
                daemon.fake("a_b").args("--tools none --tool").arg(tool("c")),
            ]
        },
        PASS,
    );
    let mut host = host(&daemon, "2025-06-18").await;
    let tools = host.list_tools().await;
    let found: BTreeSet<&str> = names(&tools).into_iter().collect();
    assert_eq!((tools.len(), found.len()), (2, 2), "{found:?}");
    let mut said = BTreeSet::new();
    for name in &found {
        said.insert(text_of(&host.call(name, json!({})).await));
    }
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().any(|text| text.starts_with("called b_c ")), "{said:?}");
    assert!(said.iter().any(|text| text.starts_with("called c ")), "{said:?}");
}

/// F40: marks, spaces, other scripts, length, the same name twice: distinct, short, stable, and the
/// upstream gets its own name back.
#[tokio::test]
async fn f40_odd_names() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--tools none --odd-names")], PASS);
    let mut host = host(&daemon, "2025-06-18").await;
    let tools = host.list_tools().await;
    let first: Vec<String> = names(&tools).into_iter().map(str::to_owned).collect();
    let distinct: BTreeSet<&String> = first.iter().collect();
    // Ten names, one of them twice: the first of the two is kept.
    assert_eq!((first.len(), distinct.len()), (9, 9), "{first:?}");
    let mut reached = BTreeSet::new();
    for name in &first {
        assert!(name.len() <= 64, "{name}");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'),
            "hosts take no other letters: {name}"
        );
        let text = text_of(&host.call(name, json!({})).await);
        reached.insert(text.split(" with ").next().unwrap().to_owned());
    }
    let long = "n".repeat(119);
    for own in ["get/item", "get.item", "get item", "ツール", "b_c", "c", "twice"] {
        assert!(reached.contains(&format!("called {own}")), "{own}: {reached:?}");
    }
    for last in ["1", "2"] {
        assert!(reached.contains(&format!("called {long}{last}")));
    }
    let twice = tools.iter().filter(|tool| tool["description"] == "The first of two.").count();
    assert_eq!(twice, 1);
    let mut again = crate::setup::host(&daemon, "2025-11-25").await;
    let second: Vec<String> =
        names(&again.list_tools().await).iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(first, second, "stable");
}

/// F40: names stay the same when the daemon starts anew.
#[tokio::test]
async fn f40_names_survive_a_restart() {
    let mut daemon = start(|daemon| vec![daemon.fake("up").args("--tools none --odd-names")], PASS);
    let before = host(&daemon, "2025-06-18").await.list_tools().await;
    daemon.restart();
    let after = host(&daemon, "2025-06-18").await.list_tools().await;
    assert_eq!(names(&before), names(&after));
}

/// F40, H-46: server names that are no namespaces become some, from the key and not from what the
/// server calls itself.
#[tokio::test]
async fn f40_h46_server_names() {
    let daemon = start(
        |daemon| {
            let fake = |name: &str, file: &str| {
                let mut fake = daemon.fake(file).args("--tools echo --name self-styled");
                name.clone_into(&mut fake.name);
                fake
            };
            vec![fake("Google Sheets", "g"), fake("pagerduty/pagerduty-mcp-server", "p")]
        },
        &format!("{PASS}\nexpose.name_limit = 48"),
    );
    let mut host = host(&daemon, "2025-06-18").await;
    let tools = host.list_tools().await;
    assert_eq!(tools.len(), 2);
    for name in names(&tools) {
        assert!(!name.contains("self") && name.len() <= 48, "{name}");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
            "{name}"
        );
        assert_eq!(text_of(&host.call(name, json!({ "text": "hi" })).await), "hi");
    }
}

crate::for_revisions! { all_real;
    /// F41, U-49: no tool is lost for its schema; what a host gets is valid.
    async fn f41_odd_schemas(revision) {
        let daemon = start(|daemon| vec![daemon.fake("up").args("--tools none --odd-schemas")], PASS);
        let mut host = host(&daemon, revision).await;
        let tools = host.list_tools().await;
        for name in [
            "schema_missing", "schema_null", "schema_empty", "schema_draft07", "ref_present",
            "ref_absent", "ref_recursive", "ref_deep", "ref_remote", "tuple_items",
            "description_null", "annotations_null",
        ] {
            let tool = find(&tools, &format!("up_{name}"));
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(!tool["description"].is_null() || tool.get("description").is_none(), "{tool}");
        }
        // Nothing is fetched, nothing resolved: the schema goes on as it is.
        let remote = find(&tools, "up_ref_remote");
        assert_eq!(remote["inputSchema"]["properties"]["a"]["$ref"], "https://evil.test/s.json");
        let draft = find(&tools, "up_schema_draft07");
        assert_eq!(draft["inputSchema"]["definitions"]["X"]["type"], "integer");
    }
}

/// F41: truly unusable ones are shown with the reason where a person or model looks.
#[tokio::test]
async fn f41_unusable_schemas_are_shown() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--tools none --odd-schemas")], "");
    let mut host = host(&daemon, "2025-06-18").await;
    let text = text_of(&host.call("mcpx_namespaces", json!({ "namespace": "up" })).await);
    for name in ["schema_true", "schema_string", "schema_missing", "ref_remote"] {
        assert!(text.contains(name), "{name} in {text}");
    }
    let answer = call(&mut host, "up", "schema_missing", json!({ "any": 1 })).await;
    assert!(!failed(&answer), "{answer}");
}

/// F39: a cursor that is none of ours.
#[tokio::test]
async fn f39_a_bad_cursor_of_a_host() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--tools echo")], PASS);
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let mut host = host(&daemon, revision).await;
        for cursor in [json!("rubbish"), json!("2"), json!(7), json!({})] {
            let answer = host.request("tools/list", json!({ "cursor": cursor })).await;
            assert_eq!(answer["error"]["code"], -32602, "{cursor} at {revision}: {answer}");
        }
        let answer = host.request("tools/list", Value::Null).await;
        assert!(answer["result"].get("nextCursor").is_none(), "{answer}");
    }
}
