//! One host in front of one upstream, whatever carries their bytes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::setup;
use crate::support::asking;
use crate::support::daemon::Daemon;
use crate::support::fake::{Fake, FakeServer};
use crate::support::raw_host::RawHost;
use crate::support::raw_http::{HttpHost, Response};
use crate::support::schema::MODERN;

/// One side's revision and transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The revision.
    pub revision: &'static str,
    /// HTTP, or else stdio.
    pub http: bool,
}

impl Peer {
    /// True without a handshake.
    pub fn modern(self) -> bool {
        self.revision == MODERN
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.revision, if self.http { "http" } else { "stdio" })
    }
}

/// A daemon in front of one fake named `up`.
#[derive(Debug)]
pub struct Upstream {
    pub peer: Peer,
    pub daemon: Daemon,
    pub fake: Fake,
    count: AtomicU32,
    _server: Option<FakeServer>,
}

impl Upstream {
    /// Starts both.
    pub fn start(peer: Peer) -> Self {
        let mut daemon = setup::prepare();
        let era = match peer.revision {
            MODERN => "--era modern".to_owned(),
            revision => format!("--supports {revision}"),
        };
        let mut fake = daemon.fake("up").args(&era).args("--offers --questions --tasks");
        let mut server = None;
        if peer.http {
            // The first revision's own HTTP.
            if peer.revision == "2024-11-05" {
                fake = fake.args("--http-sse");
            }
            let (serving, process) = fake.serve();
            (fake, server) = (serving, Some(process));
        }
        let more =
            format!("{}\nhost.progress_interval = \"0s\"\ntasks.eager = \"50ms\"", setup::PASS);
        daemon.write_config(std::slice::from_ref(&fake), &setup::quick(&more));
        daemon.launch();
        Self { peer, daemon, fake, count: AtomicU32::new(0), _server: server }
    }

    /// A new session of the upstream.
    async fn fresh(&self) {
        self.daemon.cli(&["restart", "up"]).await.expect_code(0);
    }

    /// A number that no other cell of this upstream has.
    pub fn number(&self) -> u32 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// Checks every frame that mcpx sent to it.
    pub fn check(&self) {
        let sessionless = self.peer.http && self.peer.revision == MODERN;
        let count = self.fake.transcript().check_frames_with(|log| {
            if sessionless {
                log.of_many_connections();
            }
        });
        assert!(count > 0, "nothing was sent to {}", self.peer);
    }
}

enum Talk {
    Stdio(Box<RawHost>),
    Http(HttpHost),
}

/// A host in front of an upstream, open.
pub struct Cell {
    pub host: Peer,
    pub upstream: Arc<Upstream>,
    talk: Talk,
    /// Over HTTP: the session's own stream, or that of `subscriptions/listen`.
    stream: Option<Response>,
    /// Over stdio: the id of a `subscriptions/listen`.
    listening: Option<i64>,
}

/// Answers whatever is asked; the mark in a message's brackets is the name in a form.
pub fn answer(question: &Value) -> Value {
    let params = &question["params"];
    let message = params["message"].as_str().unwrap_or_default();
    let name = message.split(['[', ']']).nth(1).unwrap_or("Ada");
    match question["method"].as_str() {
        Some("elicitation/create") if params["mode"] == "url" => json!({ "action": "accept" }),
        Some("elicitation/create") => asking::accept(json!({ "name": name })),
        Some("roots/list") => json!({ "roots": [{ "uri": "file:///work", "name": "work" }] }),
        Some("sampling/createMessage") if params["tools"].is_array() => {
            let call = json!({ "type": "tool_use", "id": "u1", "name": "clock", "input": {} });
            json!({ "role": "assistant", "model": "m", "content": call, "stopReason": "toolUse" })
        }
        Some("sampling/createMessage") => {
            let text = json!({ "type": "text", "text": "four" });
            json!({ "role": "assistant", "model": "m", "content": text, "stopReason": "endTurn" })
        }
        _ => Value::Null,
    }
}

/// All that a host of this revision can be asked.
fn capabilities(revision: &str) -> Value {
    match revision {
        "2024-11-05" | "2025-03-26" => json!({ "roots": {}, "sampling": {} }),
        "2025-06-18" => json!({ "roots": {}, "sampling": {}, "elicitation": {} }),
        _ => json!({ "roots": {}, "sampling": { "tools": {} },
            "elicitation": { "form": {}, "url": {} } }),
    }
}

impl Cell {
    /// Opens the host.
    pub async fn open(upstream: &Arc<Upstream>, host: Peer) -> Self {
        let daemon = &upstream.daemon;
        let declared = capabilities(host.revision);
        let mut stream = None;
        let talk = if host.http {
            let mut http = setup::http_stranger(daemon).await;
            http.capabilities = declared;
            http.open(host.revision).await;
            http.answer_with(answer);
            if !host.modern() {
                stream = Some(http.get().send().await);
            }
            Talk::Http(http)
        } else {
            let mut stdio = daemon.shim(&[]);
            stdio.capabilities = declared;
            setup::open(&mut stdio, host.revision).await;
            stdio.answer_with(answer);
            Talk::Stdio(Box::new(stdio))
        };
        // Now that there is a host: a session with a handshake is told once what can be asked (U-36).
        upstream.fresh().await;
        let upstream = Arc::clone(upstream);
        Self { host, upstream, talk, stream, listening: None }
    }

    /// Ends the host's session: one that is left behind limits what the upstream is told that it may
    /// ask of the hosts after it (U-36).
    pub async fn close(self) {
        if let Talk::Http(host) = &self.talk
            && !self.host.modern()
        {
            host.delete().send().await;
        }
    }

    /// Adds to what modern requests declare.
    pub fn declare_tasks(&mut self, on: bool) {
        let capabilities = match &mut self.talk {
            Talk::Stdio(host) => &mut host.capabilities,
            Talk::Http(host) => &mut host.capabilities,
        };
        capabilities.as_object_mut().unwrap().remove("extensions");
        if on {
            capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        }
    }

    /// A request and its whole answer; what is asked meanwhile is answered.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        match &mut self.talk {
            Talk::Stdio(host) => host.request(method, params).await,
            Talk::Http(host) => host.request(method, params).await,
        }
    }

    /// Calls a tool of the upstream.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = asking::call_params(&format!("up_{tool}"), arguments, Value::Null);
        self.request("tools/call", params).await
    }

    /// The questions so far.
    pub fn asked(&self) -> Vec<Value> {
        match &self.talk {
            Talk::Stdio(host) => host.answers.asked.clone(),
            Talk::Http(host) => host.asked(),
        }
    }

    /// Messages with this method that came while something else was waited for, taken out.
    pub fn heard(&mut self, method: &str) -> Vec<Value> {
        let all: Vec<Value> = match &mut self.talk {
            Talk::Stdio(host) => host.inbox.drain(..).collect(),
            Talk::Http(host) => host.inbox(),
        };
        all.into_iter().filter(|message| message["method"] == method).collect()
    }

    /// Begins to hear of changes, as the era does it: `filter` is what 2026-07-28 asks for.
    pub async fn listen(&mut self, filter: Value) {
        if !self.host.modern() {
            return;
        }
        let params = json!({ "notifications": filter });
        let acknowledged = "notifications/subscriptions/acknowledged";
        let agreed = match &mut self.talk {
            Talk::Stdio(host) => {
                let id = host.take_id();
                host.start(id, "subscriptions/listen", host.dress(params)).await;
                self.listening = Some(id);
                host.expect_notification(acknowledged).await
            }
            Talk::Http(host) => {
                let mut stream = host.start(host.take_id(), "subscriptions/listen", params).await;
                let agreed = stream.expect_notification(acknowledged).await;
                self.stream = Some(stream);
                agreed
            }
        };
        assert_eq!(agreed["params"]["notifications"], filter);
    }

    /// The next notification with this method on what [`Self::listen`] opened.
    pub async fn hear(&mut self, method: &str) -> Value {
        match &mut self.talk {
            Talk::Stdio(host) => host.expect_notification(method).await,
            Talk::Http(_) => self.stream.as_mut().unwrap().expect_notification(method).await,
        }
    }

    /// Stops hearing of changes.
    pub async fn stop_listening(&mut self) {
        if let (Talk::Stdio(host), Some(id)) = (&mut self.talk, self.listening.take()) {
            host.cancel(id).await;
        }
        if self.host.modern() {
            self.stream = None;
        }
    }

    /// A call with a progress token: the progress that came before its answer, and the answer.
    pub async fn call_with_progress(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> (Vec<Value>, Value) {
        let token = format!("token-{}", self.upstream.number());
        let params = asking::call_params(&format!("up_{tool}"), arguments, json!(token));
        self.heard("");
        let answer = self.request("tools/call", params).await;
        let mut told = self.heard("notifications/progress");
        told.retain(|note| note["params"]["progressToken"] == *token);
        (told, answer)
    }

    /// Begins a call, waits until it has told progress, and gives it up as the era does it.
    pub async fn give_up(&mut self, tool: &str, arguments: Value) {
        let token = format!("token-{}", self.upstream.number());
        let tool = format!("up_{tool}");
        match &mut self.talk {
            Talk::Stdio(host) => {
                let id = host.take_id();
                host.start_call_with_progress(id, &tool, arguments, token).await;
                host.expect_notification("notifications/progress").await;
                host.cancel(id).await;
                host.gather(Duration::from_millis(30)).await;
                let late = host.inbox.iter().any(|message| asking::is_answer(message, &json!(id)));
                assert!(!late, "a cancelled call was answered");
                host.inbox.clear();
            }
            Talk::Http(host) => {
                let id = host.take_id();
                let mut stream = host.start_call_with_progress(id, &tool, arguments, token).await;
                stream.expect_notification("notifications/progress").await;
                if self.host.modern() {
                    drop(stream);
                } else {
                    host.cancel(id).await;
                    // Progress may be on its way; an answer is not.
                    while let Some(frame) = stream.next_frame().await {
                        assert!(!asking::is_answer(&frame, &json!(id)), "answered: {frame}");
                    }
                }
            }
        }
    }
}
