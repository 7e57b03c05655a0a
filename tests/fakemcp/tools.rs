//! The built-in tools: definitions, and `tools/call` up to the tool.
//!
//! Arguments, where a tool has any (all optional):
//! `echo {text}` · `add {a, b}` · `fail {text}` (isError) · `rpc_error {code, message, data}` ·
//! `params` (the request line as it came) · `result {of}` (that, as its result) · `big {bytes}` (F08) · `content` (a block of every
//! type of the revision) · `structured {shape}` (see `calls.rs`, F42) · `slow {ms, steps}`
//! (progress, heeds cancellation) · `sleep {ms}` (neither) · `hang` (never answers) ·
//! `progress {kind}` = `made_up`, late, decreasing, flood (`count`, `ms`) (F37) · `ledger {text}` ·
//! `ledger_die`, `ledger_die_ro` (readOnlyHint), `ledger_die_idem` (idempotentHint) `{times, ms}`:
//! a ledger line, then the end of the process for the first `times` calls (1) (F23) ·
//! `die {ms, code}` · `raw {text | hex, chunk, us}`: bytes on standard output, then an answer ·
//! `split` (three frames in two writes, F07) · `bad_utf8` (F09) · `surrogate` (F10) · `env {name}`
//! `cwd` `pid` `args` (F34) · `stderr {bytes, kind}` (F32) · `request {method, params}`: asks mcpx
//! and returns the answer · `notify {method, params, count, ms}` · `set_tools {add, remove,
//! notify, ms}` (F38) · `ask_form`, `ask_url`, `ask_sample`, `ask_roots`, `ask_many`, `ask_rounds`,
//! `ask_url_required` (see `questions.rs`) · `task_work`, `task_required` (see `tasks.rs`) · `spawn {setsid, pipe, ignore_term}` (F30) · `stop_self` (SIGSTOP, F31).

use std::sync::Arc;

use serde_json::{Value, json};

use crate::calls;
use crate::questions;
use crate::state::{Ask, Fake};

const NAMES: [&str; 32] = [
    "echo",
    "add",
    "fail",
    "rpc_error",
    "params",
    "result",
    "big",
    "content",
    "structured",
    "slow",
    "sleep",
    "hang",
    "progress",
    "ledger",
    "ledger_die",
    "ledger_die_ro",
    "ledger_die_idem",
    "die",
    "raw",
    "split",
    "bad_utf8",
    "surrogate",
    "env",
    "cwd",
    "pid",
    "args",
    "stderr",
    "request",
    "notify",
    "set_tools",
    "spawn",
    "stop_self",
];

/// The definitions of the built-in tools that are wanted.
pub fn definitions(wanted: impl Fn(&str) -> bool) -> Vec<Value> {
    let all = NAMES.into_iter().chain(questions::TOOLS);
    all.filter(|name| wanted(name)).map(definition).collect()
}

/// True for the name of a built-in tool.
pub fn is_built_in(name: &str) -> bool {
    NAMES.contains(&name) || questions::TOOLS.contains(&name)
}

fn definition(name: &str) -> Value {
    let properties = match name {
        "echo" | "fail" | "ledger" => json!({ "text": { "type": "string" } }),
        "add" => json!({ "a": { "type": "number" }, "b": { "type": "number" } }),
        "slow" => json!({ "ms": { "type": "integer" }, "steps": { "type": "integer" } }),
        _ => json!({}),
    };
    let mut schema = json!({ "type": "object", "properties": properties });
    if name == "add" {
        schema["required"] = json!(["a", "b"]);
    }
    let mut tool = json!({
        "name": name,
        "description": format!("The fake's tool {name}."),
        "inputSchema": schema,
    });
    match name {
        "echo" | "add" | "env" | "cwd" | "pid" | "ledger_die_ro" => {
            tool["annotations"] = json!({ "readOnlyHint": true });
        }
        "ledger_die_idem" => {
            tool["annotations"] = json!({ "readOnlyHint": false, "idempotentHint": true });
        }
        "die" => tool["annotations"] = json!({ "readOnlyHint": false, "destructiveHint": true }),
        _ => {}
    }
    tool
}

/// Takes a call; each runs on a thread of its own unless the script says `--serial`.
pub fn call(fake: &Arc<Fake>, ask: Ask) {
    let calls = {
        let mut state = fake.state.lock().unwrap();
        state.calls += 1;
        state.calls
    };
    if fake.args.number("die-after-calls").is_some_and(|limit: u64| calls > limit) {
        std::process::exit(1);
    }
    if fake.args.flag("serial") {
        return run(fake, &ask);
    }
    let fake = Arc::clone(fake);
    crate::http::spawn(move || run(&fake, &ask));
}

fn run(fake: &Arc<Fake>, ask: &Ask) {
    let name = ask.params["name"].as_str().unwrap_or_default();
    match name {
        "echo" => text(fake, ask, &ask.text("text")),
        "add" => calls::add(fake, ask),
        "fail" => {
            let content = json!([block(&ask.text("text"))]);
            fake.result(ask, json!({ "content": content, "isError": true }));
        }
        "rpc_error" => {
            let code = ask.arg("code").as_i64().unwrap_or(-32603);
            fake.error(ask, code, &ask.text("message"), ask.arg("data").clone());
        }
        "params" => text(fake, ask, String::from_utf8_lossy(&ask.raw).trim_end()),
        "result" => fake.result(ask, ask.arg("of").clone()),
        "big" => calls::big(fake, ask),
        "content" => calls::content(fake, ask),
        "structured" => calls::structured(fake, ask),
        "slow" => calls::slow(fake, ask),
        "sleep" => {
            calls::pause(ask.number("ms", 100));
            text(fake, ask, "slept");
        }
        "hang" => {}
        "progress" => calls::progress(fake, ask),
        "ledger" => {
            effect(fake, ask);
            text(fake, ask, "noted");
        }
        "ledger_die" | "ledger_die_ro" | "ledger_die_idem" => calls::ledger_die(fake, ask),
        "die" => {
            effect(fake, ask);
            calls::pause(ask.number("ms", 0));
            std::process::exit(i32::try_from(ask.number("code", 1)).unwrap_or(1));
        }
        "raw" => calls::raw(fake, ask),
        "split" => calls::split(fake, ask),
        "bad_utf8" => calls::bad_utf8(fake, ask),
        "surrogate" => calls::surrogate(fake, ask),
        "env" | "cwd" | "pid" | "args" => calls::about(fake, ask, name),
        "stderr" => {
            let bytes = usize::try_from(ask.number("bytes", 1000)).unwrap();
            crate::process::flood(bytes, &ask.text("kind"));
            text(fake, ask, "written");
        }
        "request" => calls::request(fake, ask),
        "notify" => calls::notify(fake, ask),
        "set_tools" => calls::set_tools(fake, ask),
        "links" => crate::offers::links(fake, ask),
        "set_offers" => crate::offers::set(fake, ask),
        "touch" => crate::offers::touch(fake, ask),
        "end_listens" => crate::offers::end_listens(fake, ask),
        "spawn" => {
            let flag = |name| ask.arg(name) == &json!(true);
            let pid =
                crate::process::spawn_sleeper(flag("setsid"), flag("pipe"), flag("ignore_term"));
            fake.out.ledger(&format!("spawned {pid}"));
            text(fake, ask, &pid.to_string());
        }
        "stop_self" => {
            crate::process::stop_self();
            text(fake, ask, "continued");
        }
        name if questions::TOOLS.contains(&name) => questions::call(fake, ask),
        name if crate::tasks::TOOLS.contains(&name) && fake.args.flag("tasks") => {
            crate::tasks::call(fake, ask);
        }
        other => text(fake, ask, &format!("called {other} with {}", ask.params["arguments"])),
    }
}

/// A text block.
pub fn block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Answers with one text block.
pub fn text(fake: &Fake, ask: &Ask, text: &str) {
    fake.result(ask, json!({ "content": [block(text)] }));
}

/// Notes a side effect in the ledger.
pub fn effect(fake: &Fake, ask: &Ask) {
    let name = ask.params["name"].as_str().unwrap_or_default();
    fake.out.ledger(&format!("effect {name} {} {}", std::process::id(), ask.text("text")));
}
