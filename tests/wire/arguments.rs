//! Arguments as models write them (F43, H-63).

use serde_json::{Value, json};

use crate::setup::{call, failed, host, reason, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::text_of;

fn one() -> Daemon {
    start(
        |daemon| {
            let own = json!({ "name": "enveloped", "description": "d", "inputSchema": {
                "type": "object", "properties": { "name": {}, "arguments": {} } } });
            vec![
                daemon.fake("up").arg("--tool").arg(own.to_string()).arg("--tool").arg(
                    json!({ "name": "get_sites", "description": "d",
                        "inputSchema": { "type": "object" } })
                    .to_string(),
                ),
            ]
        },
        "",
    )
}

/// F43: an object as JSON text, nothing, null, and the envelope repeated are understood.
#[tokio::test]
async fn f43_arguments_in_every_dress() {
    let daemon = one();
    let mut host = host(&daemon, "2025-06-18").await;
    for arguments in [
        json!({ "text": "x" }),
        json!("{\"text\":\"x\"}"),
        json!({ "name": "echo", "arguments": { "text": "x" } }),
        json!({ "tool": "echo", "arguments": { "text": "x" } }),
    ] {
        let answer = call(&mut host, "up", "echo", arguments.clone()).await;
        assert_eq!(text_of(&answer), "x", "{arguments}");
    }
    for arguments in [json!({}), json!(""), Value::Null] {
        let answer = call(&mut host, "up", "echo", arguments.clone()).await;
        assert!(!failed(&answer) && text_of(&answer).is_empty(), "{arguments}: {answer}");
    }
    let missing = host.call("mcpx_call", json!({ "namespace": "up", "tool": "echo" })).await;
    assert!(!failed(&missing), "{missing}");
}

/// F43: the envelope is kept where the tool has such properties.
#[tokio::test]
async fn f43_an_envelope_that_is_meant() {
    let daemon = one();
    let mut host = host(&daemon, "2025-06-18").await;
    let arguments = json!({ "name": "n", "arguments": { "text": "x" } });
    let answer = call(&mut host, "up", "enveloped", arguments).await;
    let (_, sent) =
        text_of(&answer).split_once(" with ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&sent).unwrap()["name"], "n");
}

/// F43: unknown tools and namespaces name what is near.
#[tokio::test]
async fn f43_unknown_names_get_the_nearest() {
    let daemon = one();
    let mut host = host(&daemon, "2025-06-18").await;
    let answer = call(&mut host, "up", "list_sites", json!({})).await;
    assert!(failed(&answer) && text_of(&answer).contains("get_sites"), "{answer}");
    assert_eq!(reason(&answer), "unavailable", "{answer}");
    let answer = call(&mut host, "upp", "echo", json!({})).await;
    assert!(failed(&answer) && text_of(&answer).contains("up"), "{answer}");
    assert_eq!(reason(&answer), "unavailable", "{answer}");
    // Nothing is near: all that there is.
    for tool in ["mcpx_status", "mcpx_namespaces"] {
        let answer = host.call(tool, json!({ "namespace": "zzz" })).await;
        assert!(failed(&answer) && text_of(&answer).contains("Namespaces: up."), "{answer}");
        let answer = host.call(tool, json!({ "namespace": "up", "bogus": 1 })).await;
        assert!(failed(&answer) && text_of(&answer).contains("`bogus`"), "{answer}");
    }
}

/// F43, H-63: bad arguments: the upstream's words and the schema; malformed calls of our own tool
/// say what it takes; the third identical failure says so.
#[tokio::test]
async fn f43_h63_bad_arguments() {
    let daemon = one();
    let mut host = host(&daemon, "2025-06-18").await;
    let bad = json!({ "code": -32602, "message": "b must be a number" });
    for time in 1..=3 {
        let answer = call(&mut host, "up", "rpc_error", bad.clone()).await;
        assert!(failed(&answer), "{answer}");
        let text = text_of(&answer);
        assert!(
            text.contains("b must be a number") && text.contains("\"type\":\"object\""),
            "{text}"
        );
        assert_eq!(text.contains("3 times"), time == 3, "time {time}: {text}");
    }
    for arguments in [json!([1]), json!("not json"), json!(5)] {
        let answer = call(&mut host, "up", "add", arguments.clone()).await;
        assert!(failed(&answer), "{arguments}: {answer}");
        assert!(text_of(&answer).contains("\"required\""), "{arguments}: {answer}");
    }
    for arguments in
        [json!({}), json!({ "tool": "echo" }), json!({ "namespace": 5, "tool": "echo" })]
    {
        let answer = host.call("mcpx_call", arguments.clone()).await;
        assert!(failed(&answer), "{arguments}: {answer}");
        assert!(text_of(&answer).contains("namespace"), "{answer}");
    }
}
