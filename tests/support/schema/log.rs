//! Follows one conversation and checks every frame that mcpx sends in it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::super::lenient;
use super::{MODERN, NEWEST_LEGACY, REVISIONS, SchemaSet, Speaker, duplicates};

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Which side of mcpx the conversation is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facing {
    /// mcpx is the upstream of a host.
    Host,
    /// mcpx is the host of an upstream.
    Upstream,
}

/// A request that is still open.
#[derive(Debug, Clone)]
struct Open {
    id: Value,
    method: String,
    revision: String,
    token: Option<Value>,
    /// The request declares the tasks extension.
    tasks: bool,
}

/// One conversation. Feed it every frame in order: [`FrameLog::outgoing`] what mcpx sends (it is
/// checked), [`FrameLog::incoming`] what the peer sends (it is only noted).
///
/// The revision is found out as a peer would: `_meta` of a modern request, else what `initialize`
/// agreed. Beside the schema it checks that an answer answers something, once; that a request id
/// is not used twice; that progress carries a token of an open request; that batches go out at
/// 2025-03-26 alone; that no object has a key twice; and that a task goes to nobody who did not
/// declare the extension.
#[derive(Debug, Clone)]
pub struct FrameLog {
    schemas: Option<Arc<SchemaSet>>,
    facing: Facing,
    agreed: Option<String>,
    from_peer: VecDeque<Open>,
    from_mcpx: VecDeque<Open>,
    own_ids: BTreeSet<String>,
    modern_seen: bool,
    foreign_keys: BTreeSet<String>,
    foreign_pointers: BTreeSet<String>,
    foreign_methods: BTreeSet<String>,
    duplicates_allowed: bool,
    many_connections: bool,
}

impl FrameLog {
    /// An empty conversation; the checks are off where there are no schemas.
    pub fn new(facing: Facing) -> Self {
        Self {
            schemas: SchemaSet::load(),
            facing,
            agreed: None,
            from_peer: VecDeque::new(),
            from_mcpx: VecDeque::new(),
            own_ids: BTreeSet::new(),
            modern_seen: false,
            foreign_keys: BTreeSet::new(),
            foreign_pointers: BTreeSet::new(),
            foreign_methods: BTreeSet::new(),
            duplicates_allowed: false,
            many_connections: false,
        }
    }

    /// The revision that a handshake agreed on so far.
    pub fn agreed(&self) -> Option<&str> {
        self.agreed.as_deref()
    }

    /// Says that the handshake took place unseen: frames are in this revision from here on.
    pub fn assume(&mut self, revision: &str) {
        self.agreed = Some(revision.to_owned());
    }

    /// Lets a key pass anywhere: a test put it into a payload on purpose.
    pub fn allow_key(&mut self, key: &str) -> &mut Self {
        self.foreign_keys.insert(key.to_owned());
        self
    }

    /// Leaves out what a JSON pointer names (`/result/content/0`), in whatever frame has it.
    pub fn allow_at(&mut self, pointer: &str) -> &mut Self {
        self.foreign_pointers.insert(pointer.to_owned());
        self
    }

    /// Lets a method pass that no schema has.
    pub fn allow_method(&mut self, method: &str) -> &mut Self {
        self.foreign_methods.insert(method.to_owned());
        self
    }

    /// The frames are those of several connections: over HTTP a modern server cannot tell them apart,
    /// and each counts its requests from 1.
    pub fn of_many_connections(&mut self) -> &mut Self {
        self.many_connections = true;
        self
    }

    /// Lets keys stand twice in one object: an upstream sent them so, and they are carried.
    pub fn allow_duplicate_keys(&mut self) -> &mut Self {
        self.duplicates_allowed = true;
        self
    }

    /// How many of mcpx's requests have no answer yet.
    pub fn unanswered(&self) -> usize {
        self.from_mcpx.len()
    }

    /// How many of the peer's requests mcpx has not answered yet.
    pub fn owed(&self) -> usize {
        self.from_peer.len()
    }

    /// Notes a frame of the peer's. Rubbish is allowed: it is what some tests send.
    pub fn incoming(&mut self, frame: &[u8]) {
        let Ok(value) = lenient::parse(trim(frame)) else { return };
        match value {
            Value::Array(messages) => messages.iter().for_each(|one| self.note_incoming(one)),
            one => self.note_incoming(&one),
        }
    }

    /// Checks a frame of mcpx's.
    pub fn outgoing(&mut self, frame: &[u8]) -> Result<(), String> {
        let frame = trim(frame);
        let shown = || {
            let text = String::from_utf8_lossy(frame);
            text.chars().take(600).collect::<String>()
        };
        // A CR between tokens is white space that may be carried (F02); one at the end is not.
        if frame.contains(&b'\n') || frame.ends_with(b"\r") {
            return Err(format!("a frame does not end in one bare LF: {}", shown()));
        }
        let mended = lenient::without_lone_surrogates(frame);
        let value: Value = serde_json::from_slice(&mended)
            .map_err(|error| format!("no JSON ({error}): {}", shown()))?;
        if !self.duplicates_allowed
            && let Some(path) = duplicates::first(&mended)
        {
            return Err(format!("the key {path} is there twice: {}", shown()));
        }
        let outcome = match value {
            Value::Array(messages) => self.check_batch(&messages),
            one => self.check_outgoing(&one),
        };
        outcome.map_err(|why| format!("{why}\n  frame from mcpx: {}", shown()))
    }

    fn check_batch(&mut self, messages: &[Value]) -> Result<(), String> {
        if self.agreed.as_deref() != Some("2025-03-26") {
            return Err(format!("a batch, but the revision is {:?}", self.agreed));
        }
        if messages.is_empty() {
            return Err("an empty batch".to_owned());
        }
        messages.iter().try_for_each(|one| self.check_outgoing(one))
    }

    fn note_incoming(&mut self, message: &Value) {
        let id = message.get("id").cloned();
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => {
                let revision = self.revision_of_request(message, method, Facing::Host);
                self.from_peer.push_back(open(id, method, revision, message));
            }
            (None, Some(id)) => {
                let answered = take(&mut self.from_mcpx, &id, false);
                // A string where a number was sent is matched as mcpx matches it (F13).
                let answered = answered.or_else(|| {
                    let number: Value = serde_json::from_str(id.as_str()?).ok()?;
                    take(&mut self.from_mcpx, &number, false)
                });
                if let Some(answered) = answered {
                    self.learn(&answered, message, Facing::Upstream);
                }
            }
            _ => {}
        }
    }

    fn check_outgoing(&mut self, message: &Value) -> Result<(), String> {
        let Some(method) = message["method"].as_str() else {
            return self.check_answer(message);
        };
        let id = message.get("id").cloned();
        let revision = match &id {
            Some(_) => self.revision_of_request(message, method, Facing::Upstream),
            None => self.revision_of_notification(message),
        };
        if method == "notifications/progress" {
            let token = &message["params"]["progressToken"];
            if !self.from_peer.iter().any(|open| open.token.as_ref() == Some(token)) {
                return Err(format!("progress for {token}, which no open request carries"));
            }
        }
        if let Some(id) = id {
            if !self.own_ids.insert(id.to_string()) && !self.many_connections {
                return Err(format!("the request id {id} was used before"));
            }
            self.from_mcpx.push_back(open(id, method, revision.clone(), message));
        }
        self.check(&revision, message, None)
    }

    fn check_answer(&mut self, message: &Value) -> Result<(), String> {
        let is_error = message.get("error").is_some();
        let code = message["error"]["code"].as_i64();
        let id = message.get("id").filter(|id| !id.is_null());
        let asked = id.and_then(|id| take(&mut self.from_peer, id, is_error));
        let Some(asked) = asked else {
            // What could not be read as a request may still be answered with an error.
            if matches!(code, Some(-32700 | -32600)) {
                let revision = self.current();
                return self.check(&revision, message, None);
            }
            return Err(format!("an answer to {id:?}, which is no open request"));
        };
        if message["result"]["resultType"] == "task" && !asked.tasks {
            return Err("a task, but the request did not declare the extension (T-02)".to_owned());
        }
        self.learn(&asked, message, Facing::Host);
        let revision = match message["result"]["protocolVersion"].as_str() {
            Some(offered) if asked.method == "initialize" => known(offered)
                .filter(|offered| *offered != MODERN)
                .ok_or_else(|| format!("initialize was answered with {offered}"))?,
            _ => &asked.revision,
        };
        self.check(revision, message, Some(&asked.method))
    }

    /// After an answer to `initialize` or `server/discover`: what revision is spoken now.
    fn learn(&mut self, asked: &Open, answer: &Value, facing: Facing) {
        if facing != self.facing || answer.get("result").is_none() {
            return;
        }
        if asked.method == "initialize"
            && let Some(revision) = answer["result"]["protocolVersion"].as_str()
        {
            self.agreed = Some(revision.to_owned());
        }
        self.modern_seen |= asked.revision == MODERN;
    }

    /// A request by `from` (the host side asks, so `Facing::Host` means: by the peer of mcpx).
    fn revision_of_request(&self, message: &Value, method: &str, from: Facing) -> String {
        let by_host = from == self.facing;
        if by_host {
            if let Some(revision) = message["params"]["_meta"][VERSION_KEY].as_str() {
                return known(revision).unwrap_or(MODERN).to_owned();
            }
            match method {
                "initialize" => {
                    let asked = message["params"]["protocolVersion"].as_str();
                    let asked = asked.and_then(known).filter(|revision| *revision != MODERN);
                    return asked.unwrap_or(NEWEST_LEGACY).to_owned();
                }
                "server/discover" | "subscriptions/listen" => return MODERN.to_owned(),
                _ => {}
            }
        }
        self.current()
    }

    fn revision_of_notification(&self, message: &Value) -> String {
        let params = &message["params"];
        if params["_meta"][SUBSCRIPTION_KEY] != Value::Null {
            return MODERN.to_owned();
        }
        let token = params.get("progressToken");
        let by_token =
            self.from_peer.iter().find(|open| token.is_some() && open.token.as_ref() == token);
        let cancelled = params.get("requestId");
        let by_id = self.from_mcpx.iter().find(|open| cancelled == Some(&open.id));
        by_token.or(by_id).map_or_else(|| self.current(), |open| open.revision.clone())
    }

    fn current(&self) -> String {
        let fallback = if self.modern_seen { MODERN } else { NEWEST_LEGACY };
        self.agreed.clone().unwrap_or_else(|| fallback.to_owned())
    }

    fn check(&self, revision: &str, message: &Value, answers: Option<&str>) -> Result<(), String> {
        let Some(schemas) = &self.schemas else { return Ok(()) };
        let speaker = match self.facing {
            Facing::Host => Speaker::Upstream,
            Facing::Upstream => Speaker::Host,
        };
        if message["method"].as_str().is_some_and(|name| self.foreign_methods.contains(name)) {
            return Ok(());
        }
        let mut message = message.clone();
        for pointer in &self.foreign_pointers {
            remove_at(&mut message, pointer);
        }
        remove_keys(&mut message, &self.foreign_keys);
        let foreign = answers.filter(|method| !self.foreign_methods.contains(*method));
        schemas
            .check_value(revision, speaker, &message, foreign)
            .map_err(|why| format!("not valid at {revision}: {why}"))
    }
}

fn open(id: Value, method: &str, revision: String, message: &Value) -> Open {
    let token = message["params"]["_meta"].get("progressToken").cloned();
    let declared = &message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    let tasks = declared["extensions"]["io.modelcontextprotocol/tasks"].is_object();
    Open { id, method: method.to_owned(), revision, token, tasks }
}

/// Takes the open request with this id: the oldest for a result, the newest for an error, since
/// a second request with an id in flight is the one that is refused.
fn take(open: &mut VecDeque<Open>, id: &Value, newest: bool) -> Option<Open> {
    let matches = |one: &Open| one.id == *id;
    let index = if newest { open.iter().rposition(matches) } else { open.iter().position(matches) };
    open.remove(index?)
}

fn known(revision: &str) -> Option<&'static str> {
    REVISIONS.into_iter().find(|known| *known == revision)
}

fn trim(frame: &[u8]) -> &[u8] {
    let frame = frame.strip_suffix(b"\n").unwrap_or(frame);
    frame.strip_prefix(b"\xef\xbb\xbf").unwrap_or(frame)
}

fn remove_at(message: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    match message.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(last);
        }
        Some(Value::Array(items)) => {
            let index = last.parse().ok().filter(|index: &usize| *index < items.len());
            if let Some(index) = index {
                items.remove(index);
            }
        }
        _ => {}
    }
}

fn remove_keys(value: &mut Value, keys: &BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            members.retain(|key, _| !keys.contains(key));
            members.values_mut().for_each(|child| remove_keys(child, keys));
        }
        Value::Array(items) => items.iter_mut().for_each(|child| remove_keys(child, keys)),
        _ => {}
    }
}
