//! What the fake knows, and the way of a line into it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::Args;
use crate::offers::Offers;
use crate::out::Out;
use crate::questions::States;
use crate::tasks::Tasks;
use crate::{era, http, lenient, lists, offers, tasks, tools};

/// The newest revision, without a handshake.
pub const MODERN: &str = "2026-07-28";

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Ask {
    pub id: Value,
    pub method: String,
    pub params: Value,
    /// The revision in use for this request.
    pub revision: String,
    /// The whole line.
    pub raw: Vec<u8>,
}

impl Ask {
    pub fn modern(&self) -> bool {
        self.revision == MODERN
    }

    /// The progress token, if there is one.
    pub fn token(&self) -> Option<&Value> {
        self.params["_meta"].get("progressToken")
    }

    /// One of a tool's arguments.
    pub fn arg(&self, name: &str) -> &Value {
        &self.params["arguments"][name]
    }

    /// One of a tool's arguments, as a number.
    pub fn number(&self, name: &str, default: u64) -> u64 {
        self.arg(name).as_u64().unwrap_or(default)
    }

    /// One of a tool's arguments, as text.
    pub fn text(&self, name: &str) -> String {
        match self.arg(name) {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }
}

/// What changes while it runs.
#[derive(Debug, Default)]
pub struct State {
    /// What `initialize` agreed.
    pub revision: Option<String>,
    pub ready: bool,
    pub calls: u64,
    /// Ids (as JSON text) that were cancelled.
    pub cancelled: BTreeSet<String>,
    /// Our own requests that wait for an answer.
    pub waiting: BTreeMap<String, Sender<Value>>,
    pub next_id: u64,
    pub tools: Vec<Value>,
    pub offers: Offers,
    /// Pages listed so far.
    pub pages: u64,
    /// Open `subscriptions/listen` streams: their ids.
    pub listens: Vec<Value>,
    /// What such a stream asked for, by its id as JSON text.
    pub filters: BTreeMap<String, Value>,
    /// A probe that is answered later.
    pub held_probe: Option<Ask>,
    /// What `initialize` declared.
    pub client: Value,
    /// States of questions that are open (2026-07-28).
    pub states: States,
    /// URLs that were asked for by an error: their ids.
    pub visited: BTreeSet<String>,
}

/// The fake upstream.
#[derive(Debug)]
pub struct Fake {
    pub args: Args,
    pub out: Out,
    pub state: Mutex<State>,
    pub tasks: Arc<Tasks>,
}

impl Fake {
    pub fn new(args: Args) -> Self {
        let out = Out::new(&args);
        Self::with_out(args, out, Arc::default())
    }

    /// One of several conversations of a process, which share its tasks.
    pub fn with_out(args: Args, out: Out, tasks: Arc<Tasks>) -> Self {
        let (tools, offers) = (lists::initial(&args), Offers::initial(&args));
        let state = State { tools, offers, ..State::default() };
        Self { args, out, state: Mutex::new(state), tasks }
    }

    /// Takes one line from mcpx.
    pub fn read_line(self: &Arc<Self>, line: &[u8]) {
        self.out.note("in", line);
        if self.args.flag("log-per-line") {
            self.out.raw(b"[debug] read a line\n");
        }
        let Ok(message) = lenient::parse(line) else { return };
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                let ask = Ask {
                    id: id.clone(),
                    method: method.to_owned(),
                    revision: self.revision_of(&message),
                    params: message["params"].clone(),
                    raw: line.to_vec(),
                };
                self.take_request(ask);
            }
            (Some(method), None) => self.take_notification(method, &message["params"]),
            (None, _) => self.take_answer(&message),
        }
    }

    fn revision_of(&self, message: &Value) -> String {
        let era = self.args.get("era").unwrap_or("legacy");
        let meta = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        if era == "modern" || (era == "dual" && meta.is_string()) {
            return MODERN.to_owned();
        }
        let agreed = self.state.lock().unwrap().revision.clone();
        agreed.unwrap_or_else(|| era::supported(&self.args)[0].clone())
    }

    fn take_request(self: &Arc<Self>, ask: Ask) {
        if self.args.get("die-on") == Some(ask.method.as_str()) {
            std::process::exit(1);
        }
        if let Some(refusal) = era::refusal(self, &ask) {
            return self.error(&ask, refusal.0, &refusal.1, refusal.2);
        }
        match (ask.method.as_str(), ask.modern()) {
            ("initialize", _) => era::initialize(self, ask),
            ("server/discover", true) => era::discover(self, ask),
            ("subscriptions/listen", true) => era::listen(self, &ask),
            ("ping" | "logging/setLevel", false) => self.result(&ask, json!({})),
            ("tools/list", _) => lists::list(self, ask),
            ("tools/call", _) => tools::call(self, ask),
            _ if offers::take(self, &ask) || tasks::take(self, &ask) => {}
            _ => era::unknown(self, ask),
        }
    }

    fn take_notification(self: &Arc<Self>, method: &str, params: &Value) {
        match method {
            "notifications/initialized" => {
                self.out.ledger("initialized");
                era::ready(self);
            }
            "notifications/cancelled" => {
                self.cancelled(&params["requestId"].to_string());
            }
            _ => {}
        }
    }

    /// A request is no longer wanted: its id as JSON text.
    pub fn cancelled(&self, id: &str) {
        self.out.ledger(&format!("cancelled {id}"));
        let mut state = self.state.lock().unwrap();
        state.listens.retain(|open| *open.to_string() != *id);
        state.cancelled.insert(id.to_owned());
    }

    fn take_answer(&self, message: &Value) {
        let id = message["id"].to_string();
        self.out.ledger(&format!("answer {id} {message}"));
        if let Some(waiting) = self.state.lock().unwrap().waiting.remove(&id) {
            let _ = waiting.send(message.clone());
        }
    }

    /// Answers with a result, dressed for the revision of the request.
    pub fn result(&self, ask: &Ask, mut result: Value) {
        if ask.modern() {
            if result.get("resultType").is_none() {
                result["resultType"] = json!("complete");
            }
            if result["_meta"].is_null() {
                result["_meta"] = json!({});
            }
            if result["_meta"].is_object() {
                result["_meta"]["io.modelcontextprotocol/serverInfo"] = era::info(&self.args);
            }
        }
        self.out.send(&json!({ "jsonrpc": "2.0", "id": ask.id, "result": result }));
    }

    /// Answers with an error; no `data` where it is null.
    pub fn error(&self, ask: &Ask, code: i64, message: &str, data: Value) {
        let mut error = json!({ "code": code, "message": message });
        if !data.is_null() {
            error["data"] = data;
        }
        self.out.send(&json!({ "jsonrpc": "2.0", "id": ask.id, "error": error }));
    }

    /// Says something that wants no answer.
    pub fn notify(&self, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        self.out.send(&message);
    }

    /// Asks mcpx something; the channel gets the answer.
    pub fn ask(&self, method: &str, params: Value) -> std::sync::mpsc::Receiver<Value> {
        self.ask_with_id(method, params).1
    }

    /// As [`Self::ask`], with the id of the request.
    pub fn ask_with_id(
        &self,
        method: &str,
        params: Value,
    ) -> (Value, std::sync::mpsc::Receiver<Value>) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut state = self.state.lock().unwrap();
        state.next_id += 1;
        let id = Value::from(format!("fake-{}", state.next_id));
        state.waiting.insert(id.to_string(), sender);
        drop(state);
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        self.out.send(&message);
        (id, receiver)
    }

    /// A request with this id begins. Another one may have had it: callers of a modern server over HTTP
    /// know nothing of each other's ids.
    pub fn begins(&self, id: &str) {
        self.state.lock().unwrap().cancelled.remove(id);
    }

    /// True once this request was cancelled.
    pub fn is_cancelled(&self, ask: &Ask) -> bool {
        self.state.lock().unwrap().cancelled.contains(&ask.id.to_string())
    }

    /// Does something later, on a thread of its own.
    pub fn later(self: &Arc<Self>, millis: u64, what: impl FnOnce(&Arc<Self>) + Send + 'static) {
        if millis == 0 {
            return what(self);
        }
        let fake = Arc::clone(self);
        http::spawn(move || {
            std::thread::sleep(Duration::from_millis(millis));
            what(&fake);
        });
    }
}
