//! The tools that need more than a line.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::out::Out;
use crate::state::{Ask, Fake};
use crate::tools::{block, effect, text};

/// How long a tool waits for mcpx to answer a request.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

pub fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

pub fn add(fake: &Fake, ask: &Ask) {
    let whole = |name| ask.arg(name).as_i64();
    let sum = if let (Some(a), Some(b)) = (whole("a"), whole("b")) {
        json!(a + b)
    } else {
        let part = |name| ask.arg(name).as_f64().unwrap_or_default();
        json!(part("a") + part("b"))
    };
    let mut result = json!({ "content": [block(&sum.to_string())] });
    if ask.revision.as_str() >= "2025-06-18" {
        result["structuredContent"] = json!({ "sum": sum });
    }
    fake.result(ask, result);
}

/// A result with that many bytes of text, written without building it as a `Value`.
pub fn big(fake: &Fake, ask: &Ask) {
    let bytes = usize::try_from(ask.number("bytes", 1_000_000)).unwrap();
    let kind = if ask.modern() { r#""resultType":"complete","# } else { "" };
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{{kind}"content":[{{"type":"text","text":""#,
        ask.id
    );
    let mut line = Vec::with_capacity(bytes + head.len() + 8);
    line.extend_from_slice(head.as_bytes());
    line.resize(line.len() + bytes, b'x');
    line.extend_from_slice(br#""}]}}"#);
    fake.out.send_text(&line);
}

/// One block of every type that the revision has.
pub fn content(fake: &Fake, ask: &Ask) {
    fake.result(ask, json!({ "content": blocks(ask) }));
}

/// A block of every type that the revision has.
pub fn blocks(ask: &Ask) -> Vec<Value> {
    let revision = ask.revision.as_str();
    let mut blocks = vec![
        block("plain"),
        json!({ "type": "text", "text": "for you", "annotations":
            { "audience": ["user"], "priority": 0.5 } }),
        json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" }),
        json!({ "type": "resource", "resource":
            { "uri": "fake://text", "mimeType": "text/plain", "text": "inside" } }),
        json!({ "type": "resource", "resource":
            { "uri": "fake://blob", "mimeType": "application/octet-stream", "blob": "AAEC" } }),
    ];
    if revision >= "2025-03-26" {
        blocks.push(json!({ "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" }));
    }
    if revision >= "2025-06-18" {
        blocks.push(json!({ "type": "resource_link", "uri": "fake://link", "name": "link" }));
    }
    blocks
}

/// Results that are odd and are to be carried (F42); `shape` names the oddity.
pub fn structured(fake: &Fake, ask: &Ask) {
    let words = json!([block("words")]);
    let with = |value: Value| json!({ "content": words, "structuredContent": value });
    let result = match ask.text("shape").as_str() {
        "only" => json!({ "structuredContent": { "a": 1 } }),
        "array" => with(json!([1, { "b": 2 }])),
        "string" => with(json!("text")),
        "number" => with(json!(1.5)),
        "null" => with(Value::Null),
        "error" => {
            json!({ "content": words, "structuredContent": { "why": "no" }, "isError": true })
        }
        "hologram" => json!({ "content": [{ "type": "hologram", "depth": 3 }] }),
        "audience" => json!({ "content": [{ "type": "text", "text": "t",
            "annotations": { "audience": ["system"] } }] }),
        "cache" => json!({ "content": words, "cacheScope": "", "ttlMs": -1 }),
        "content_null" => json!({ "content": null }),
        "extra" => json!({ "content": words, "x-vendor": { "deep": [1] } }),
        "meta" => json!({ "content": words, "_meta": { "odd key/ñ": 1, "": 2 } }),
        "result_type" => json!({ "content": words, "resultType": "surprise" }),
        _ => with(json!({ "a": 1, "nested": { "b": [true, null] } })),
    };
    if ask.text("shape") == "no_result_type" {
        // Past `Fake::result`, which would add it.
        let result = json!({ "content": words });
        return fake.out.send(&json!({ "jsonrpc": "2.0", "id": ask.id, "result": result }));
    }
    fake.result(ask, result);
}

/// Works for `ms` in `steps` steps; tells progress if asked to; ends unanswered when cancelled.
pub fn slow(fake: &Fake, ask: &Ask) {
    let steps = ask.number("steps", 5).max(1);
    let step = Duration::from_millis(ask.number("ms", 500)) / u32::try_from(steps).unwrap();
    for number in 1..=steps {
        let mut left = step;
        while !left.is_zero() {
            let nap = left.min(Duration::from_millis(5));
            std::thread::sleep(nap);
            left -= nap;
            if fake.is_cancelled(ask) {
                return fake.out.ledger(&format!("stopped {}", ask.id));
            }
        }
        if let Some(token) = ask.token() {
            send_progress(fake, ask, token, json!(number), json!(steps));
        }
    }
    text(fake, ask, &format!("done in {steps} steps"));
}

fn send_progress(fake: &Fake, ask: &Ask, token: &Value, progress: Value, total: Value) {
    let mut params = json!({ "progressToken": token, "progress": progress, "total": total });
    if ask.revision.as_str() >= "2025-03-26" {
        params["message"] = json!(format!("step {progress}"));
    }
    fake.notify("notifications/progress", params);
}

/// Progress that is wrong (F37).
pub fn progress(fake: &Fake, ask: &Ask) {
    let token = ask.token().cloned().unwrap_or_else(|| json!("none-was-given"));
    let say = |progress: u64| send_progress(fake, ask, &token, json!(progress), json!(100));
    match ask.text("kind").as_str() {
        "made_up" => {
            for made_up in [json!("made-up"), json!(987_654), json!("0"), json!(0)] {
                send_progress(fake, ask, &made_up, json!(1), json!(2));
            }
        }
        "late" => {
            text(fake, ask, "done");
            for number in 1..=3 {
                pause(ask.number("ms", 10));
                say(number);
            }
            return;
        }
        "decreasing" => [5, 3, 7, 7, 1, 9].into_iter().for_each(say),
        _ => {
            let count = ask.number("count", 10_000);
            (1..=count).for_each(say);
            pause(ask.number("ms", 0));
        }
    }
    text(fake, ask, "done");
}

/// A side effect, then the end of the process in place of an answer, `times` times (F23).
pub fn ledger_die(fake: &Fake, ask: &Ask) {
    effect(fake, ask);
    let name = ask.params["name"].as_str().unwrap_or_default();
    let done = Out::ledger_count(&format!("effect {name} "));
    if done <= usize::try_from(ask.number("times", 1)).unwrap() {
        pause(ask.number("ms", 0));
        std::process::exit(1);
    }
    text(fake, ask, "done at last");
}

/// Bytes on standard output as they are, then an answer unless `silent`.
pub fn raw(fake: &Fake, ask: &Ask) {
    let mut bytes = ask.text("text").into_bytes();
    let hex = ask.text("hex");
    for pair in hex.as_bytes().chunks(2) {
        let pair = std::str::from_utf8(pair).unwrap();
        bytes.push(u8::from_str_radix(pair, 16).expect("hex digits"));
    }
    let chunk = usize::try_from(ask.number("chunk", u64::MAX)).unwrap().min(bytes.len().max(1));
    let pieces: Vec<&[u8]> = bytes.chunks(chunk).collect();
    fake.out.pieces(&pieces, Duration::from_micros(ask.number("us", 0)));
    if ask.arg("silent") != &json!(true) {
        text(fake, ask, "written");
    }
}

/// Two frames and a half in one write, the rest 200 ms later (F07). The third is the answer.
pub fn split(fake: &Fake, ask: &Ask) {
    let note = |text: &str| {
        let params = json!({ "level": "info", "data": text });
        let message =
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
        format!("{message}\n")
    };
    let mut result = json!({ "content": [block("世界😀")] });
    if ask.modern() {
        result["resultType"] = json!("complete");
    }
    let answer = json!({ "jsonrpc": "2.0", "id": ask.id, "result": result }).to_string();
    let all = format!("{}{}{answer}\n", note("one"), note("two")).into_bytes();
    // In the middle of the four bytes of the last character.
    let cut = all.windows(2).rposition(|two| two == [0xf0, 0x9f]).unwrap() + 2;
    fake.out.pieces(&[&all[..cut], &all[cut..]], Duration::from_millis(200));
}

/// A result with two bytes that are no UTF-8 (F09).
pub fn bad_utf8(fake: &Fake, ask: &Ask) {
    line_with(fake, ask, b"bad \xc7\xd1 bytes");
}

/// A lone surrogate and a proper pair, both as escapes (F10).
pub fn surrogate(fake: &Fake, ask: &Ask) {
    line_with(fake, ask, br"a\udcafb \ud83d\ude00");
}

fn line_with(fake: &Fake, ask: &Ask, inside: &[u8]) {
    let kind = if ask.modern() { r#""resultType":"complete","# } else { "" };
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{{kind}"content":[{{"type":"text","text":""#,
        ask.id
    );
    fake.out.send_text(&[head.as_bytes(), inside, br#""}]}}"#].concat());
}

/// What the process was given (F34).
pub fn about(fake: &Fake, ask: &Ask, what: &str) {
    let answer = match what {
        "cwd" => std::env::current_dir().unwrap().display().to_string(),
        "pid" => std::process::id().to_string(),
        "args" => json!(fake.args.all).to_string(),
        _ if ask.arg("name").is_string() => {
            std::env::var(ask.text("name")).unwrap_or_else(|_| "(not set)".to_owned())
        }
        _ => {
            let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
            let all: serde_json::Map<String, Value> = std::env::vars_os()
                .map(|(key, value)| (text(key), Value::from(text(value))))
                .collect();
            Value::Object(all).to_string()
        }
    };
    text(fake, ask, &answer);
}

/// Asks mcpx something and returns its answer as text.
pub fn request(fake: &Fake, ask: &Ask) {
    let answer = fake.ask(&ask.text("method"), ask.arg("params").clone());
    match answer.recv_timeout(ANSWER_LIMIT) {
        Ok(answer) => text(fake, ask, &answer.to_string()),
        Err(_) => text(fake, ask, "no answer"),
    }
}

/// Says something `count` times, `ms` apart, then answers.
pub fn notify(fake: &Fake, ask: &Ask) {
    for _ in 0..ask.number("count", 1) {
        fake.notify(&ask.text("method"), ask.arg("params").clone());
        pause(ask.number("ms", 0));
    }
    text(fake, ask, "notified");
}

/// Adds and removes tools, then says `notify` times (1) that the list changed.
pub fn set_tools(fake: &Arc<Fake>, ask: &Ask) {
    let names = |key: &str| {
        let list = ask.arg(key).as_array().cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let (add, remove) = (names("add"), names("remove"));
    let listens = {
        let mut state = fake.state.lock().unwrap();
        state.tools.retain(|tool| !remove.iter().any(|name| tool["name"] == **name));
        state.tools.extend(add.iter().map(|name| crate::lists::plain(name)));
        state.listens.clone()
    };
    for _ in 0..ask.number("notify", 1) {
        if ask.modern() {
            for id in &listens {
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
                fake.notify("notifications/tools/list_changed", json!({ "_meta": meta }));
            }
        } else {
            fake.notify("notifications/tools/list_changed", Value::Null);
        }
        pause(ask.number("ms", 0));
    }
    text(fake, ask, "changed");
}
