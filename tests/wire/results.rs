//! Results are carried, not judged (F42, H-55, H-56).

use serde_json::{Value, json};

use crate::setup::{PASS, call, failed, host, start};
use crate::support::daemon::Daemon;
use crate::support::fake::Entry;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::schema::MODERN;

const INFO: &str = "io.modelcontextprotocol/serverInfo";

fn eras() -> Daemon {
    start(
        |daemon| vec![daemon.fake("old"), daemon.fake("new").args("--era modern")],
        "expose.mode = \"both\"",
    )
}

/// What the fake wrote as the result of this shape, without the modern envelope.
fn written(daemon: &Daemon, up: &str) -> Value {
    let transcript = daemon.fake(up).transcript();
    let mut answers = transcript.entries.iter().filter(|entry| !entry.from_mcpx).map(Entry::json);
    let result = answers.rfind(|answer| answer.get("result").is_some()).unwrap();
    plain(result["result"].clone())
}

/// A result without what belongs to the hop: type and identity.
fn plain(mut result: Value) -> Value {
    let members = result.as_object_mut().unwrap();
    members.remove("resultType");
    if let Some(meta) = members.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.remove(INFO);
        if meta.is_empty() {
            members.remove("_meta");
        }
    }
    result
}

async fn carried(host: &mut RawHost, daemon: &Daemon, up: &str, shapes: &[&str]) {
    // Shapes that are not valid on purpose: mcpx must carry them, so they are not judged here.
    host.strict = false;
    for shape in shapes {
        let answer = host.call(&format!("{up}_structured"), json!({ "shape": shape })).await;
        assert_eq!(plain(answer["result"].clone()), written(daemon, up), "{shape}");
    }
}

/// What any revision may carry.
const ODD: [&str; 8] =
    ["only", "error", "hologram", "audience", "cache", "content_null", "extra", "meta"];

/// F42: between peers of one era nothing is changed, whatever it is. (Structured values that are no
/// objects are what older revisions lack: H-53.)
#[tokio::test]
async fn f42_carried_unchanged_within_an_era() {
    let daemon = eras();
    let mut legacy = host(&daemon, "2025-11-25").await;
    carried(&mut legacy, &daemon, "old", &ODD).await;
    let mut modern = host(&daemon, MODERN).await;
    carried(&mut modern, &daemon, "new", &ODD).await;
    carried(&mut modern, &daemon, "new", &["array", "string", "number", "null"]).await;
}

/// F42, U-27: no `resultType` is complete; an unknown one of a modern upstream is an error.
#[tokio::test]
async fn f42_u27_result_types() {
    let daemon = eras();
    for revision in ["2025-11-25", MODERN] {
        let mut host = host(&daemon, revision).await;
        let answer = host.call("new_structured", json!({ "shape": "no_result_type" })).await;
        assert_eq!(text_of(&answer), "words");
        let answer = host.call("new_structured", json!({ "shape": "result_type" })).await;
        assert!(answer.get("error").is_some() || failed(&answer), "{answer}");
        assert!(answer.to_string().contains("surprise"), "the cause is named: {answer}");
    }
}

crate::for_revisions! { all_real;
    /// H-55, H-56: `mcpx_call` keeps blocks, structured value, `isError` and `_meta`, and adds a
    /// text copy where the upstream sent structured content alone.
    async fn h55_h56_mcpx_call_keeps_everything(revision) {
        let daemon = eras();
        let mut host = host(&daemon, revision).await;
        for up in ["old", "new"] {
            let content = call(&mut host, up, "content", json!({})).await;
            assert_eq!(content["result"]["content"].as_array().unwrap().len(), 7, "{content}");
            let error = call(&mut host, up, "structured", json!({ "shape": "error" })).await;
            assert_eq!(error["result"]["isError"], true, "{error}");
            assert!(error.to_string().contains("why"), "{error}");
            let fail = call(&mut host, up, "fail", json!({ "text": "reason" })).await;
            assert!(failed(&fail) && text_of(&fail).contains("reason"), "{fail}");
            let meta = call(&mut host, up, "structured", json!({ "shape": "meta" })).await;
            assert_eq!(meta["result"]["_meta"]["odd key/ñ"], 1, "{meta}");
            let only = call(&mut host, up, "structured", json!({ "shape": "only" })).await;
            assert!(text_of(&only).replace(' ', "").contains("{\"a\":1}"), "{only}");
            assert_eq!(only["result"].get("structuredContent").is_some(), revision >= "2025-06-18");
        }
    }
}

/// F10: a lone surrogate goes both ways, and the proper pair survives.
#[tokio::test]
async fn f10_lone_surrogates_both_ways() {
    let daemon = start(|daemon| vec![daemon.fake("up")], PASS);
    let mut host = host(&daemon, "2025-11-25").await;
    let line = br#"{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{"name":"up_params","arguments":{"text":"a\udcafb \ud83d\ude00"}}}"#;
    host.send_raw(&[line.as_slice(), b"\n"].concat()).await;
    let sent = text_of(&host.expect_response(70).await);
    assert!(
        sent.contains(r"a\udcafb") || sent.contains(r"a\ufffdb") || sent.contains("a\u{fffd}b"),
        "{sent}"
    );
    assert!(sent.contains(r"\ud83d\ude00") || sent.contains('😀'), "{sent}");
    let answer = host.call("up_surrogate", json!({})).await;
    assert_eq!(text_of(&answer), "a\u{fffd}b 😀");
}
