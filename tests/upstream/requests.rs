//! What upstreams ask of mcpx, and ids on both ways (F11, F13, U-32, U-34, U-44 to U-46).

use std::time::Duration;

use serde_json::{Value, json};

use crate::front;
use crate::support::raw_host::text_of;

/// U-46, U-44: pings are answered, with the server's own ids.
#[tokio::test]
async fn u46_pings_are_answered() {
    let (_daemon, fake, mut host) = front("--ping 20", "").await;
    host.list_tools().await;
    crate::eventually!(Duration::from_secs(5), fake.ledger("answer").len() >= 3);
    for line in fake.ledger("answer") {
        let answer: Value = serde_json::from_str(line.splitn(3, ' ').nth(2).unwrap()).unwrap();
        assert_eq!(answer["result"], json!({}), "{line}");
        assert!(answer["id"].as_str().unwrap().starts_with("fake-"));
    }
    fake.transcript().check_frames();
}

/// U-44: ids of every kind come back as they were.
#[tokio::test]
async fn u44_ids_of_a_server_come_back_as_written() {
    let (_daemon, fake, mut host) = front("", "").await;
    let lines = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}\n\
                 {\"jsonrpc\":\"2.0\",\"id\":\"0\",\"method\":\"ping\"}\n\
                 {\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"ping\"}\n";
    assert_eq!(text_of(&host.call("up_raw", json!({ "text": lines })).await), "written");
    let answered = |id: &str| {
        let lines: Vec<String> = fake.transcript().seen_lines().map(str::to_owned).collect();
        lines.iter().any(|line| line.contains(&format!("\"id\":{id}")) && line.contains("result"))
    };
    for id in ["0", "\"0\"", "9007199254740993"] {
        crate::eventually!(Duration::from_secs(5), answered(id), "id {id}");
    }
}

/// Requests that mcpx does not serve are refused, not left open; so is what nobody declared.
#[tokio::test]
async fn u36_other_requests_are_refused() {
    let (_daemon, fake, mut host) = front("", "").await;
    for method in ["no/such", "sampling/createMessage", "elicitation/create"] {
        let wanted = json!({ "method": method, "params": {} });
        let answer = text_of(&host.call("up_request", wanted).await);
        let answer: Value =
            serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{method}: {answer}"));
        assert!(answer["error"]["code"].is_i64() || answer.get("result").is_some(), "{answer}");
    }
    fake.transcript().check_frames();
}

/// F13: an upstream that echoes numbers as strings.
#[tokio::test]
async fn f13_ids_come_back_as_strings() {
    let (_daemon, fake, mut host) = front("--string-ids", "").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
    let ids = fake
        .transcript()
        .seen()
        .into_iter()
        .filter_map(|sent| sent["id"].as_i64())
        .collect::<Vec<_>>();
    assert!(!ids.is_empty() && ids.iter().all(|id| *id > 0), "plain integers above 0: {ids:?}");
}

/// F11, U-45: arrays of a 2025-03-26 upstream are taken apart.
#[tokio::test]
async fn f11_u45_arrays_are_taken_apart() {
    let (_daemon, _, mut host) = front("--supports 2025-03-26 --batch", "").await;
    for text in ["one", "two"] {
        assert_eq!(text_of(&host.call("up_echo", json!({ "text": text })).await), text);
    }
}

/// U-34: how roots are declared, by era; U-32: nothing of the other era is sent to a modern server.
#[tokio::test]
async fn u32_u34_what_is_declared_and_sent() {
    let (_daemon, fake, mut host) = front("", "").await;
    host.list_tools().await;
    let declared = &fake.transcript().with_method("initialize")[0]["params"]["capabilities"];
    if let Some(roots) = declared.get("roots") {
        assert_eq!(*roots, json!({ "listChanged": false }));
    }
    let (_daemon, fake, mut host) = front("--era modern", "").await;
    host.call("up_echo", json!({ "text": "x" })).await;
    for sent in fake.transcript().seen() {
        let method = sent["method"].as_str().unwrap_or_default();
        assert!(!["ping", "logging/setLevel", "initialize"].contains(&method), "{sent}");
        if sent.get("id").is_some() && sent.get("method").is_some() {
            let meta = &sent["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{sent}");
            assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object(), "{sent}");
        }
    }
}

/// Messages nobody asked for and answers to nothing harm nothing.
#[tokio::test]
async fn f05_answers_to_nothing() {
    let (_daemon, fake, mut host) = front("", "").await;
    let lines = "{\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}\n\
                 {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"?\"}}\n\
                 {\"jsonrpc\":\"2.0\",\"method\":\"notifications/what\"}\n";
    assert_eq!(text_of(&host.call("up_raw", json!({ "text": lines })).await), "written");
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": "x" })).await), "x");
    assert_eq!(fake.starts(), 1);
    assert!(!fake.transcript().methods().iter().any(|name| name == "(answer)"));
}
