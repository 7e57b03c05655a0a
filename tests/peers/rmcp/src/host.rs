//! A host on the official Rust SDK.
//!
//!     rmcp-host EXPECTATION.json legacy|auto COMMAND ARGUMENT…
//!
//! It checks what node/driver.mjs checks, from the same expectation file (expect.mjs tells its
//! format).

mod pattern;

use std::collections::HashSet;
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, ErrorData, Implementation,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ServerResult,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestHandle, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError};
use serde_json::{Value, json};

use pattern::{Outcome, fits, misfit, string, text_of};

type Notes = Arc<Mutex<Vec<(f64, Option<f64>)>>>;

/// What the SDK calls when the upstream says something unasked.
struct Handler {
    notes: Notes,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(Default::default(), Implementation::new("rmcp-peer-host", "1.0.0"))
    }

    async fn on_progress(
        &self,
        note: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Ok(mut notes) = self.notes.lock() {
            notes.push((note.progress, note.total));
        }
    }
}

/// The answer of a call: a result, or the upstream's own JSON-RPC error.
type Answer = Result<Value, ErrorData>;

struct Host {
    link: RunningService<RoleClient, Handler>,
    notes: Notes,
    expect: Value,
    failed: usize,
}

impl Host {
    fn namespace(&self) -> Option<&str> {
        self.expect["core"].as_str()
    }

    fn report(&mut self, check: &str, outcome: Outcome<String>) {
        match outcome {
            Ok(note) if note.is_empty() => println!("ok {check}"),
            Ok(note) => println!("ok {check} ({note})"),
            Err(why) => {
                self.failed += 1;
                println!("FAIL {check}: {why}");
            }
        }
    }

    /// Sends a call: the tool itself, or in core mode the same through mcpx_call.
    async fn start(&self, tool: &str, arguments: &Value) -> Outcome<RequestHandle<RoleClient>> {
        match self.namespace() {
            None => self.start_raw(tool, arguments).await,
            Some(namespace) => {
                let inner = json!({ "namespace": namespace, "tool": tool, "arguments": arguments });
                self.start_raw("mcpx_call", &inner).await
            }
        }
    }

    async fn start_raw(&self, tool: &str, arguments: &Value) -> Outcome<RequestHandle<RoleClient>> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = arguments.as_object().cloned();
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.link.send_cancellable_request(request, PeerRequestOptions::no_options());
        sent.await.map_err(|e| e.to_string())
    }

    async fn answer(&self, handle: RequestHandle<RoleClient>) -> Outcome<Answer> {
        match handle.await_response().await {
            Ok(ServerResult::CallToolResult(result)) => {
                Ok(Ok(serde_json::to_value(result).map_err(|e| e.to_string())?))
            }
            Ok(other) => Err(format!("not a tool result: {other:?}")),
            Err(ServiceError::McpError(error)) => Ok(Err(error)),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn call(&self, tool: &str, arguments: &Value) -> Outcome<Answer> {
        let handle = self.start(tool, arguments).await?;
        self.answer(handle).await
    }

    async fn result(&self, tool: &str, arguments: &Value) -> Outcome<Value> {
        self.call(tool, arguments).await?.map_err(|e| format!("code {}: {}", e.code.0, e.message))
    }

    async fn one(&self, one: &Value) -> Outcome<String> {
        let result = self.result(&string(&one["tool"]), &one["arguments"]).await?;
        fits(&one["result"], &result).map(|()| String::new())
    }

    async fn run(&mut self) {
        let expect = self.expect.clone();
        if self.namespace().is_none() {
            let outcome = self.list().await;
            self.report("list", outcome);
        } else {
            self.core().await;
        }
        let calls = expect["calls"].as_array().cloned().unwrap_or_default();
        for one in &calls {
            let outcome = self.one(one).await;
            self.report(&string(&one["check"]), outcome);
        }
        let outcome = self.progress(&expect["progress"]).await;
        self.report("progress", outcome);
        if expect.get("error").is_some() {
            let outcome = self.error(&expect["error"]).await;
            self.report("protocol error", outcome);
        }
        let outcome = self.unknown(&string(&expect["unknown"])).await;
        self.report("unknown tool", outcome);
        let outcome = self.cancel(&expect["cancel"]).await;
        self.report("cancel", outcome);
        if let Some(first) = calls.first() {
            let outcome = self.one(first).await;
            self.report(&format!("{} afterwards", string(&first["check"])), outcome);
        }
    }

    async fn list_all(&self) -> Outcome<(Vec<Value>, usize)> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for pages in 1..=100 {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.link.list_tools(Some(params)).await.map_err(|e| e.to_string())?;
            for tool in page.tools {
                tools.push(serde_json::to_value(tool).map_err(|e| e.to_string())?);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok((tools, pages));
            }
        }
        Err("the list does not end".to_owned())
    }

    async fn list(&self) -> Outcome<String> {
        let (tools, pages) = self.list_all().await?;
        let names: Vec<String> = tools.iter().map(|tool| string(&tool["name"])).collect();
        let set: HashSet<&String> = names.iter().collect();
        if set.len() != names.len() {
            return Err(format!("a name twice in {names:?}"));
        }
        let expected = &self.expect["tools"];
        let wanted: Vec<String> =
            expected["names"].as_array().into_iter().flatten().map(string).collect();
        if let Some(missing) = wanted.iter().find(|name| !set.contains(name)) {
            return Err(format!("not listed: {missing}; listed: {names:?}"));
        }
        let extra = names.iter().find(|name| !wanted.contains(name));
        if let (Some(true), Some(extra)) = (expected["exact"].as_bool(), extra) {
            return Err(format!("listed as well: {extra}"));
        }
        for (name, definition) in expected["definitions"].as_object().into_iter().flatten() {
            let tool = tools.iter().find(|tool| tool["name"] == **name);
            misfit(definition, tool.unwrap_or(&Value::Null), name)?;
        }
        let at_least = self.expect["pages"].as_u64().unwrap_or(1) as usize;
        if pages < at_least {
            return Err(format!("{pages} pages, {at_least} expected"));
        }
        Ok(format!("{} tools, {pages} pages", names.len()))
    }

    async fn progress(&self, wanted: &Value) -> Outcome<String> {
        self.notes.lock().map_err(|e| e.to_string())?.clear();
        let result = self.result(&string(&wanted["tool"]), &wanted["arguments"]).await?;
        fits(&wanted["result"], &result)?;
        let steps = wanted["steps"].as_u64().unwrap_or_default() as usize;
        let mut notes = Vec::new();
        // The SDK handles each note in a task of its own, which may end after the call.
        for _ in 0..20 {
            notes = self.notes.lock().map_err(|e| e.to_string())?.clone();
            if notes.len() >= steps {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        if notes.len() != steps {
            return Err(format!("{} notes in place of {steps}: {notes:?}", notes.len()));
        }
        if notes.windows(2).any(|pair| matches!(pair, [a, b] if b.0 <= a.0)) {
            return Err(format!("out of order: {notes:?}"));
        }
        match notes.last() {
            Some((at, total)) if Some(*at) == *total => Ok(String::new()),
            last => Err(format!("ended at {last:?}")),
        }
    }

    async fn error(&self, wanted: &Value) -> Outcome<String> {
        let pattern = &wanted["error"];
        let answer = self.call(&string(&wanted["tool"]), &wanted["arguments"]).await?;
        match (answer, self.namespace()) {
            (Err(error), None) => {
                let error = serde_json::to_value(error).map_err(|e| e.to_string())?;
                misfit(pattern, &error, "error")?;
            }
            // Behind mcpx_call the upstream's error is told to the model, in the upstream's words.
            (Ok(result), Some(_)) if result["isError"] == true => {
                misfit(&pattern["message"], &json!(text_of(&result)), "text")?;
            }
            (answer, _) => return Err(format!("not as expected: {answer:?}")),
        }
        Ok(String::new())
    }

    async fn unknown(&self, name: &str) -> Outcome<String> {
        match self.call(name, &json!({})).await? {
            Ok(result) => {
                fits(&json!({ "isError": true }), &result)?;
                misfit(&json!({ "$has": name }), &json!(text_of(&result)), "text")?;
            }
            Err(error) => {
                let error = serde_json::to_value(error).map_err(|e| e.to_string())?;
                let pattern = json!({ "code": -32602, "message": { "$has": name } });
                misfit(&pattern, &error, "error")?;
            }
        }
        Ok(String::new())
    }

    /// The upstream hears of it where it can tell. The SDK gives the call up by itself.
    async fn cancel(&self, wanted: &Value) -> Outcome<String> {
        let started = Instant::now();
        let mut handle = self.start(&string(&wanted["tool"]), &wanted["arguments"]).await?;
        let early = tokio::time::timeout(Duration::from_millis(300), &mut handle.rx).await;
        if let Ok(answer) = early {
            return Err(format!("answered before it was cancelled: {answer:?}"));
        }
        let reason = Some("the person changed their mind".to_owned());
        handle.cancel(reason).await.map_err(|e| e.to_string())?;
        if started.elapsed() > Duration::from_millis(2800) {
            return Err(format!("only ended after {:?}", started.elapsed()));
        }
        let seen = &wanted["seen"];
        if seen.is_null() {
            return Ok("the upstream cannot tell whether it heard".to_owned());
        }
        for _ in 0..50 {
            let result = self.result(&string(&seen["tool"]), &seen["arguments"]).await?;
            if text_of(&result) == string(&seen["text"]) {
                return Ok(String::new());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("the upstream never heard of it".to_owned())
    }

    /// In core mode: the own tools work, and calls go through mcpx_call.
    async fn core(&mut self) {
        let namespace = self.namespace().unwrap_or_default().to_owned();
        let outcome = self.core_list().await;
        self.report("core list", outcome);
        let one = json!({ "namespace": namespace });
        let tool = string(&self.expect["calls"][0]["tool"]);
        for (check, own, arguments, word) in [
            ("mcpx_namespaces", "mcpx_namespaces", json!({}), &namespace),
            ("mcpx_namespaces of one", "mcpx_namespaces", one, &tool),
            ("mcpx_status", "mcpx_status", json!({}), &namespace),
        ] {
            let outcome = self.tells(own, &arguments, word).await;
            self.report(check, outcome);
        }
    }

    async fn core_list(&self) -> Outcome<String> {
        let (tools, _) = self.list_all().await?;
        let names: Vec<String> = tools.iter().map(|tool| string(&tool["name"])).collect();
        for own in ["mcpx_namespaces", "mcpx_call", "mcpx_status"] {
            if !names.iter().any(|name| name == own) {
                return Err(format!("not listed: {own}"));
            }
        }
        match names.iter().find(|name| !name.starts_with("mcpx_")) {
            Some(foreign) => Err(format!("not mcpx's own: {foreign}")),
            None => Ok(names.join(" ")),
        }
    }

    async fn tells(&self, own: &str, arguments: &Value, word: &str) -> Outcome<String> {
        let handle = self.start_raw(own, arguments).await?;
        let answer = self.answer(handle).await?;
        let result = answer.map_err(|e| format!("code {}: {}", e.code.0, e.message))?;
        fits(&json!({}), &result)?;
        misfit(&json!({ "$has": word }), &json!(text_of(&result)), "text")?;
        Ok(String::new())
    }
}

async fn connect(mut args: std::env::Args) -> Outcome<Host> {
    let usage = "usage: rmcp-host EXPECTATION.json legacy|auto COMMAND ARGUMENT…";
    let file = args.nth(1).ok_or(usage)?;
    let mode = args.next().ok_or(usage)?;
    let program = args.next().ok_or(usage)?;
    let expect = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let expect = serde_json::from_str(&expect).map_err(|e| e.to_string())?;
    let lifecycle = if mode == "auto" {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        ClientLifecycleMode::Auto { preferred_versions, legacy_version: None }
    } else {
        ClientLifecycleMode::Initialize
    };
    let mut command = tokio::process::Command::new(program);
    command.args(args).stderr(Stdio::inherit());
    let child = TokioChildProcess::new(command).map_err(|e| e.to_string())?;
    let notes = Notes::default();
    let handler = Handler { notes: Arc::clone(&notes) };
    let link = handler.serve_with_lifecycle(child, lifecycle).await.map_err(|e| e.to_string())?;
    Ok(Host { link, notes, expect, failed: 0 })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut host = match connect(std::env::args()).await {
        Ok(host) => host,
        Err(why) => {
            println!("FAIL connect: {why}");
            return ExitCode::FAILURE;
        }
    };
    let peer = host.link.peer_info();
    let (version, name) = peer.as_ref().map_or_else(
        || ("no version".to_owned(), "no name".to_owned()),
        |info| {
            let name = info.server_info.as_ref().map_or("no name", |who| &who.name);
            (info.protocol_version.to_string(), name.to_owned())
        },
    );
    host.report("connect", Ok(format!("{version}, {name}")));
    host.run().await;
    let failed = host.failed;
    match host.link.cancel().await {
        Ok(_) => println!("ok close"),
        Err(why) => println!("FAIL close: {why}"),
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
