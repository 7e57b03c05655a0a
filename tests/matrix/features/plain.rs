//! Calls and what belongs to them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cell::Cell;
use crate::eventually;
use crate::rules::{Expect, Reason};
use crate::support::raw_host::text_of;

const SOON: Duration = Duration::from_secs(10);

pub async fn call(cell: &mut Cell, _: Expect) {
    let answer = cell.call("echo", json!({ "text": "世界 \u{1}\"" })).await;
    assert_eq!(text_of(&answer), "世界 \u{1}\"", "{answer}");
    let refused = cell.call("rpc_error", json!({ "code": 1234, "message": "no" })).await;
    assert_eq!(refused["error"]["code"], 1234, "{refused}");
}

pub async fn structured(cell: &mut Cell, expect: Expect) {
    let answer = cell.call("add", json!({ "a": 1, "b": 2 })).await;
    let (text, wanted) = match expect {
        Expect::Works => ("3", json!({ "sum": 3 })),
        Expect::Not(Reason::StructuredHost) => ("3\n{\"sum\":3}", Value::Null),
        Expect::Not(_) => ("3", Value::Null),
    };
    assert_eq!(text_of(&answer), text, "{answer}");
    assert_eq!(answer["result"]["structuredContent"], wanted, "{answer}");
}

pub async fn is_error(cell: &mut Cell, _: Expect) {
    let answer = cell.call("fail", json!({ "text": "broken" })).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(text_of(&answer), "broken");
}

pub async fn progress(cell: &mut Cell, _: Expect) {
    let work = json!({ "ms": 60, "steps": 3 });
    let (told, answer) = cell.call_with_progress("slow", work).await;
    assert_eq!(text_of(&answer), "done in 3 steps", "{answer}");
    let steps: Vec<&Value> = told.iter().map(|note| &note["params"]["progress"]).collect();
    assert_eq!(steps, [1, 2, 3], "{told:?}");
}

/// From the level on that the session or the request asks for, and none below it.
pub async fn log(cell: &mut Cell, _: Expect) {
    const LOG: &str = "notifications/message";
    if !cell.host.modern() {
        let set = cell.request("logging/setLevel", json!({ "level": "warning" })).await;
        assert_eq!(set["result"], json!({}), "{set}");
    }
    cell.heard(LOG);
    for (level, wanted) in [("info", 0), ("error", 1)] {
        let said = json!({ "method": LOG, "params": { "level": level, "data": { "why": 1 } } });
        let mut params = json!({ "name": "up_notify", "arguments": said });
        if cell.host.modern() {
            params["_meta"] = json!({ "io.modelcontextprotocol/logLevel": "warning" });
        }
        cell.request("tools/call", params).await;
        let heard = cell.heard(LOG);
        assert_eq!(heard.len(), wanted, "{level}: {heard:?}");
        if let Some(note) = heard.first() {
            assert_eq!(
                note["params"],
                json!({ "level": level, "logger": "up", "data": { "why": 1 } })
            );
        }
    }
    if !cell.host.modern() {
        cell.request("logging/setLevel", json!({ "level": "emergency" })).await;
    }
}

pub async fn cancel(cell: &mut Cell, _: Expect) {
    let stopped = |cell: &Cell| cell.upstream.fake.ledger("stopped ").len();
    let before = stopped(cell);
    cell.give_up("slow", json!({ "ms": 60_000, "steps": 3000 })).await;
    eventually!(SOON, stopped(cell) == before + 1);
}

pub async fn ping(cell: &mut Cell, expect: Expect) {
    let answer = cell.request("ping", Value::Null).await;
    if expect == Expect::Works {
        assert_eq!(answer["result"], json!({}), "{answer}");
    } else {
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}
