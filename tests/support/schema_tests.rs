//! Known-good and known-bad frames of each revision.

use serde_json::{Value, json};

use crate::support::schema::{Facing, FrameLog, MODERN, REVISIONS, SchemaSet, Speaker};

fn check(revision: &str, speaker: Speaker, frame: &Value, answers: Option<&str>) -> Option<String> {
    // Without schemas there is nothing to test; `load` says so.
    let schemas = SchemaSet::load()?;
    schemas.check(revision, speaker, frame.to_string().as_bytes(), answers).err()
}

fn good(revision: &str, speaker: Speaker, frame: &Value, answers: Option<&str>) {
    assert_eq!(check(revision, speaker, frame, answers), None);
}

fn bad(revision: &str, speaker: Speaker, frame: &Value, answers: Option<&str>, word: &str) {
    if SchemaSet::load().is_some() {
        let why = check(revision, speaker, frame, answers);
        let why = why.unwrap_or_else(|| panic!("passed at {revision}: {frame}"));
        assert!(why.contains(word), "another reason than {word:?}: {why}");
    }
}

fn result(result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": result })
}

fn tools(revision: &str, tool: Value) -> Value {
    let mut page = json!({ "tools": [tool] });
    if revision == MODERN {
        page["resultType"] = json!("complete");
        page["ttlMs"] = json!(0);
        page["cacheScope"] = json!("private");
    }
    result(page)
}

fn tool(more: Value) -> Value {
    let mut tool = json!({
        "name": "t",
        "inputSchema": { "type": "object", "properties": { "a": {} }, "additionalProperties": false },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        tool[key] = value.clone();
    }
    tool
}

/// From which revision on a member of a tool is known (and until which).
#[test]
fn tool_members_by_revision() {
    let icons = json!([{ "src": "https://a.test/i.png" }]);
    let cases = [
        ("description", json!("d"), 0, 4),
        ("annotations", json!({ "readOnlyHint": true }), 1, 4),
        ("title", json!("T"), 2, 4),
        ("outputSchema", json!({ "type": "object" }), 2, 4),
        ("_meta", json!({ "anything": { "goes": 1 } }), 2, 4),
        ("icons", icons, 3, 4),
        ("execution", json!({ "taskSupport": "optional" }), 3, 3),
        ("x-vendor", json!(1), 9, 9),
    ];
    for (key, value, first, last) in cases {
        for (index, revision) in REVISIONS.into_iter().enumerate() {
            let frame = tools(revision, tool(json!({ key: value })));
            if (first..=last).contains(&index) {
                good(revision, Speaker::Upstream, &frame, Some("tools/list"));
            } else {
                bad(revision, Speaker::Upstream, &frame, Some("tools/list"), key);
            }
        }
    }
}

#[test]
fn result_type_is_modern_only() {
    for revision in REVISIONS {
        let bare = result(json!({ "content": [{ "type": "text", "text": "x" }] }));
        let typed = result(json!({
            "content": [{ "type": "text", "text": "x" }], "resultType": "complete",
        }));
        let (right, wrong) = if revision == MODERN { (typed, bare) } else { (bare, typed) };
        good(revision, Speaker::Upstream, &right, Some("tools/call"));
        bad(revision, Speaker::Upstream, &wrong, Some("tools/call"), "resultType");
    }
    let question = result(json!({
        "resultType": "input_required",
        "inputRequests": { "q": { "method": "elicitation/create", "params": {
            "message": "m", "requestedSchema": { "type": "object", "properties": {} } } } },
    }));
    good(MODERN, Speaker::Upstream, &question, Some("tools/call"));
    let odd = result(json!({ "content": [], "resultType": "done" }));
    bad(MODERN, Speaker::Upstream, &odd, Some("tools/call"), "done");
}

#[test]
fn content_types_by_revision() {
    let link = json!({ "type": "resource_link", "uri": "a://b", "name": "n" });
    let audio = json!({ "type": "audio", "data": "", "mimeType": "audio/wav" });
    for (block, first) in [(link, 2), (audio, 1), (json!({ "type": "hologram" }), 9)] {
        for (index, revision) in REVISIONS.into_iter().enumerate() {
            let mut body = json!({ "content": [block] });
            if revision == MODERN {
                body["resultType"] = json!("complete");
            }
            if index >= first {
                good(revision, Speaker::Upstream, &result(body), Some("tools/call"));
            } else {
                bad(revision, Speaker::Upstream, &result(body), Some("tools/call"), "content/0");
            }
        }
    }
}

#[test]
fn empty_results_are_empty() {
    for revision in &REVISIONS[..4] {
        good(revision, Speaker::Upstream, &result(json!({})), Some("ping"));
        let full = result(json!({ "ok": true }));
        bad(revision, Speaker::Upstream, &full, Some("ping"), "ok");
    }
    // There is no ping at 2026-07-28.
    bad(MODERN, Speaker::Upstream, &result(json!({})), Some("ping"), "ping");
}

#[test]
fn methods_by_side_and_revision() {
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for revision in &REVISIONS[..4] {
        good(revision, Speaker::Host, &ping, None);
        good(revision, Speaker::Upstream, &ping, None);
    }
    bad(MODERN, Speaker::Host, &ping, None, "ping");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    bad("2025-06-18", Speaker::Upstream, &list, None, "tools/list");
    good("2025-06-18", Speaker::Host, &list, None);
    bad(MODERN, Speaker::Host, &list, None, "params");
    let elicit = json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {
        "message": "m", "requestedSchema": { "type": "object", "properties": {} } } });
    bad("2025-03-26", Speaker::Upstream, &elicit, None, "elicitation");
    good("2025-06-18", Speaker::Upstream, &elicit, None);
    bad(MODERN, Speaker::Upstream, &elicit, None, "elicitation");
}

#[test]
fn requests_are_closed_but_for_meta_and_arguments() {
    let call = |params: Value| json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params });
    for revision in &REVISIONS[..4] {
        let full = call(json!({
            "name": "t", "arguments": { "any": [1.5, null] }, "_meta": { "progressToken": 0, "x": 1 },
        }));
        good(revision, Speaker::Host, &full, None);
        let more = call(json!({ "name": "t", "extra": 1 }));
        bad(revision, Speaker::Host, &more, None, "extra");
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    good(MODERN, Speaker::Host, &call(json!({ "name": "t", "_meta": meta })), None);
    bad(MODERN, Speaker::Host, &call(json!({ "name": "t" })), None, "_meta");
    let mut extra = call(json!({ "name": "t" }));
    extra["trace"] = json!(1);
    bad("2025-11-25", Speaker::Host, &extra, None, "trace");
}

#[test]
fn progress_message_came_with_2025_03_26() {
    let frame = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {
        "progressToken": 1, "progress": 0.5, "message": "half" } });
    bad("2024-11-05", Speaker::Upstream, &frame, None, "message");
    for revision in &REVISIONS[1..] {
        good(revision, Speaker::Upstream, &frame, None);
    }
}

#[test]
fn capabilities_by_revision() {
    let hello = |revision: &str, capabilities: Value| {
        result(json!({ "protocolVersion": revision, "capabilities": capabilities,
            "serverInfo": { "name": "n", "version": "1" } }))
    };
    let tasks = json!({ "tasks": { "list": {} } });
    for revision in &REVISIONS[..4] {
        let open = json!({ "tools": { "listChanged": true }, "experimental": { "x": { "y": 1 } } });
        good(revision, Speaker::Upstream, &hello(revision, open), Some("initialize"));
        let frame = hello(revision, tasks.clone());
        if *revision == "2025-11-25" {
            good(revision, Speaker::Upstream, &frame, Some("initialize"));
        } else {
            bad(revision, Speaker::Upstream, &frame, Some("initialize"), "tasks");
        }
    }
}

#[test]
fn error_codes_by_era() {
    let error = |code: i64, data: Value| json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": "m", "data": data } });
    let versions = error(-32022, json!({ "supported": [MODERN], "requested": "x" }));
    good(MODERN, Speaker::Upstream, &versions, None);
    bad(MODERN, Speaker::Upstream, &error(-32022, json!({})), None, "supported");
    for revision in &REVISIONS[..4] {
        bad(revision, Speaker::Upstream, &versions, None, "-32022");
        good(revision, Speaker::Upstream, &error(-32002, json!({ "uri": "a://b" })), None);
        good(revision, Speaker::Upstream, &error(-32602, json!(1)), None);
    }
    bad(MODERN, Speaker::Upstream, &error(-32002, json!({})), None, "-32002");
    good(MODERN, Speaker::Upstream, &error(-32602, json!({ "uri": "a://b" })), None);
}

#[test]
fn keys_that_stand_twice_fail() {
    let Some(schemas) = SchemaSet::load() else { return };
    let frame = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"content":[]}}"#;
    let why = schemas.check("2025-06-18", Speaker::Upstream, frame, Some("tools/call"));
    assert!(why.unwrap_err().contains("/result/content"));
}

// ---- conversations ----

fn say(log: &mut FrameLog, frame: &Value) {
    log.outgoing(frame.to_string().as_bytes()).unwrap_or_else(|why| panic!("{why}"));
}

fn refuse(log: &mut FrameLog, frame: &Value, word: &str) {
    let why = log.outgoing(frame.to_string().as_bytes()).expect_err("this must not pass");
    assert!(why.contains(word), "another reason than {word:?}: {why}");
}

fn hear(log: &mut FrameLog, frame: &Value) {
    log.incoming(frame.to_string().as_bytes());
}

fn agreed(revision: &str) -> FrameLog {
    let mut log = FrameLog::new(Facing::Host);
    hear(
        &mut log,
        &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } } }),
    );
    say(
        &mut log,
        &json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": revision,
        "capabilities": {}, "serverInfo": { "name": "n", "version": "1" } } }),
    );
    assert_eq!(log.agreed(), Some(revision));
    log
}

#[test]
fn an_answer_answers_something_once() {
    let mut log = agreed("2025-06-18");
    let ping = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    hear(&mut log, &ping(json!(1)));
    hear(&mut log, &ping(json!("1")));
    say(&mut log, &result(json!({})));
    refuse(&mut log, &result(json!({})), "no open request");
    say(&mut log, &json!({ "jsonrpc": "2.0", "id": "1", "result": {} }));
    assert_eq!(log.owed(), 0);
}

#[test]
fn progress_needs_an_open_token() {
    let mut log = agreed("2025-06-18");
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": "abc", "progress": 1 } });
    refuse(&mut log, &progress, "abc");
    hear(
        &mut log,
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "t", "_meta": { "progressToken": "abc" } } }),
    );
    say(&mut log, &progress);
    say(&mut log, &result(json!({ "content": [] })));
    refuse(&mut log, &progress, "abc");
}

#[test]
fn batches_go_out_at_one_revision() {
    for revision in &REVISIONS[..4] {
        let mut log = agreed(revision);
        hear(&mut log, &json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]));
        let batch = json!([result(json!({}))]);
        if *revision == "2025-03-26" {
            say(&mut log, &batch);
            refuse(&mut log, &json!([]), "empty");
        } else {
            refuse(&mut log, &batch, "batch");
        }
    }
}

#[test]
fn eras_mix_on_one_connection() {
    let mut log = agreed("2025-03-26");
    hear(
        &mut log,
        &json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {} } } }),
    );
    hear(&mut log, &json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/list" }));
    say(&mut log, &json!({ "jsonrpc": "2.0", "id": 6, "result": { "tools": [] } }));
    say(
        &mut log,
        &json!({ "jsonrpc": "2.0", "id": 5, "result": { "tools": [],
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private" } }),
    );
}

#[test]
fn foreign_keys_pass_when_named() {
    let mut log = agreed("2024-11-05");
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "result":
        { "content": [{ "type": "hologram" }], "x-vendor": 1 } });
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "t" } });
    if SchemaSet::load().is_some() {
        hear(&mut log, &call);
        refuse(&mut log, &frame, "x-vendor");
    }
    log.allow_key("x-vendor").allow_at("/result/content/0");
    hear(&mut log, &call);
    say(&mut log, &frame);
}

#[test]
fn towards_an_upstream_the_probe_is_modern_and_the_rest_is_agreed() {
    let mut log = FrameLog::new(Facing::Upstream);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {} });
    let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover",
        "params": { "_meta": meta } });
    say(&mut log, &discover);
    refuse(&mut log, &discover, "used before");
    hear(
        &mut log,
        &json!({ "jsonrpc": "2.0", "id": 1,
        "error": { "code": -32601, "message": "m" } }),
    );
    say(
        &mut log,
        &json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "n", "version": "1" } } }),
    );
    hear(
        &mut log,
        &json!({ "jsonrpc": "2.0", "id": 2, "result": { "protocolVersion": "2024-11-05",
        "capabilities": {}, "serverInfo": { "name": "n", "version": "1" } } }),
    );
    say(&mut log, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let list =
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": { "_meta": meta } });
    // A modern `_meta` after a handshake is checked as what it says it is.
    say(&mut log, &list);
    let ping = json!({ "jsonrpc": "2.0", "id": 4, "method": "ping", "params": { "x": 1 } });
    if SchemaSet::load().is_some() {
        refuse(&mut log, &ping, "2024-11-05");
    }
}
