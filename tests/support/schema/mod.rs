//! Strict check of frames against the specification's JSON schemas, one a revision.
//!
//! The schemas lie in `../shared/spec/schema` (`MCPX_SPEC_SCHEMA` names another folder) and are
//! never committed. Where there is no folder, [`SchemaSet::load`] is `None` and says so in one
//! line on standard error; with `MCPX_REQUIRE_SPEC_SCHEMA=1` it panics instead.
//!
//! [`SchemaSet::check`] looks at one frame; [`FrameLog`] follows a conversation, finds out which
//! revision each frame is in and which request an answer belongs to, and is what tests use.

mod duplicates;
mod log;
mod strict;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

pub use log::{Facing, FrameLog};

/// The revisions that mcpx speaks, oldest first. Written here anew on purpose: the tests share no
/// code with `src/`.
pub const REVISIONS: [&str; 5] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// The newest revision with a handshake.
pub const NEWEST_LEGACY: &str = "2025-11-25";
/// The newest revision.
pub const MODERN: &str = "2026-07-28";

/// Who says a frame: a host may not say everything that an upstream may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Speaker {
    /// The side that asks for tools: a host, or mcpx towards an upstream.
    Host,
    /// The side that has tools: an upstream, or mcpx towards a host.
    Upstream,
}

/// The schemas of all revisions, made strict.
#[derive(Debug)]
pub struct SchemaSet {
    revisions: BTreeMap<&'static str, Revision>,
    /// Error codes that some revision defines with a meaning of its own.
    special_codes: BTreeSet<i64>,
}

impl SchemaSet {
    /// The set, loaded once a process; `None` where there is no folder of schemas.
    ///
    /// # Panics
    /// With `MCPX_REQUIRE_SPEC_SCHEMA=1` and no folder, or on a file that cannot be read.
    pub fn load() -> Option<Arc<Self>> {
        static SET: OnceLock<Option<Arc<SchemaSet>>> = OnceLock::new();
        SET.get_or_init(|| {
            let folder = folder();
            if folder.join(format!("{MODERN}.json")).is_file() {
                return Some(Arc::new(Self::read(&folder)));
            }
            assert!(
                std::env::var_os("MCPX_REQUIRE_SPEC_SCHEMA").is_none_or(|want| want != "1"),
                "no schemas in {}: set MCPX_SPEC_SCHEMA to the folder that holds {MODERN}.json, \
                 or unset MCPX_REQUIRE_SPEC_SCHEMA",
                folder.display()
            );
            // Not eprintln: the test harness would keep that to itself.
            let line = format!(
                "note: strict frame checks are off (no schemas in {}; MCPX_SPEC_SCHEMA names a \
                 folder)\n",
                folder.display()
            );
            let _ = std::io::stderr().write_all(line.as_bytes());
            None
        })
        .clone()
    }

    /// Reads a folder that holds `<revision>.json` for every revision.
    ///
    /// # Panics
    /// On a file that is missing or is no schema.
    pub fn read(folder: &Path) -> Self {
        let revisions: BTreeMap<_, _> = REVISIONS
            .into_iter()
            .map(|name| (name, Revision::read(name, &folder.join(format!("{name}.json")))))
            .collect();
        let special_codes = revisions.values().flat_map(|r| r.errors.keys().copied()).collect();
        Self { revisions, special_codes }
    }

    /// Checks one message as `speaker` says it at `revision`. `answers` is the method of the
    /// request that a response answers; without it a result is only checked as a result.
    pub fn check(
        &self,
        revision: &str,
        speaker: Speaker,
        frame: &[u8],
        answers: Option<&str>,
    ) -> Result<(), String> {
        if let Some(path) = duplicates::first(frame) {
            return Err(complaint(revision, frame, &format!("the key {path} is there twice")));
        }
        let value: Value = serde_json::from_slice(frame)
            .map_err(|error| complaint(revision, frame, &format!("no JSON: {error}")))?;
        self.check_value(revision, speaker, &value, answers)
            .map_err(|why| complaint(revision, frame, &why))
    }

    /// As [`Self::check`], for a message that is parsed already. The error is the reason alone.
    pub fn check_value(
        &self,
        revision: &str,
        speaker: Speaker,
        message: &Value,
        answers: Option<&str>,
    ) -> Result<(), String> {
        let rules = self
            .revisions
            .get(revision)
            .ok_or_else(|| format!("no schema for the revision {revision}"))?;
        if message["method"].is_string() {
            return rules.check_method(speaker, message);
        }
        if message.get("error").is_some() {
            return self.check_error(rules, message);
        }
        rules.check_result(message, answers)
    }

    fn check_error(&self, rules: &Revision, message: &Value) -> Result<(), String> {
        let code = message["error"]["code"].as_i64().unwrap_or_default();
        if let Some(name) = rules.errors.get(&code) {
            return rules.validate(name, message);
        }
        // -32002 is in no schema; its page (resources) has it in the legacy revisions alone.
        let foreign = self.special_codes.contains(&code) || (code == -32002 && rules.modern);
        if foreign && code > -32600 {
            return Err(format!("error code {code} is not one of this revision"));
        }
        let mut message = message.clone();
        // JSON-RPC wants `id: null` where the request's id cannot be known; the older schemas
        // have no words for it, and 2025-11-25 leaves the member out.
        if rules.errors_need_id
            && message.get("id") == Some(&Value::Null)
            && matches!(code, -32700 | -32600)
        {
            message["id"] = json!("unknown");
        }
        rules.validate(rules.error, &message)
    }
}

fn folder() -> PathBuf {
    std::env::var_os("MCPX_SPEC_SCHEMA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/spec/schema"),
        PathBuf::from,
    )
}

fn complaint(revision: &str, frame: &[u8], why: &str) -> String {
    let text = String::from_utf8_lossy(frame);
    let shown: String = text.chars().take(600).collect();
    let more = if shown.len() < text.len() { " …" } else { "" };
    format!("not valid at {revision}: {why}\n  frame: {shown}{more}")
}

/// One revision's strict definitions and the tables drawn from them.
#[derive(Debug)]
struct Revision {
    modern: bool,
    schema: Value,
    defs_key: &'static str,
    defs: Map<String, Value>,
    /// (speaker, method) → definition of the request or notification.
    messages: BTreeMap<(Speaker, String), String>,
    /// Method → definition of the request, whoever says it.
    requests: BTreeMap<String, String>,
    /// Code → definition of the error response.
    errors: BTreeMap<i64, String>,
    error: &'static str,
    errors_need_id: bool,
    validators: Mutex<BTreeMap<String, Arc<Validator>>>,
}

impl Revision {
    fn read(name: &str, path: &Path) -> Self {
        let text = std::fs::read(path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let file: Value = serde_json::from_slice(&text)
            .unwrap_or_else(|error| panic!("no JSON in {}: {error}", path.display()));
        let defs_key = if file["$defs"].is_object() { "$defs" } else { "definitions" };
        let modern = name == MODERN;
        let mut defs = file[defs_key].as_object().cloned().unwrap_or_default();
        if modern {
            tasks::add(&mut defs);
        }
        let defs = strict::definitions(defs, modern);
        let error = ["JSONRPCErrorResponse", "JSONRPCError"]
            .into_iter()
            .find(|name| defs.contains_key(*name))
            .unwrap_or_else(|| panic!("no error response in {}", path.display()));
        let errors_need_id =
            defs[error]["required"].as_array().is_some_and(|all| all.contains(&json!("id")));
        let (messages, requests) = messages(&defs);
        let errors = defs
            .iter()
            .filter_map(|(name, def)| {
                let error = &def["properties"]["error"]["properties"]["code"]["const"];
                Some((error.as_i64()?, name.clone()))
            })
            .collect();
        Self {
            modern,
            schema: file["$schema"].clone(),
            defs_key,
            defs,
            messages,
            requests,
            errors,
            error,
            errors_need_id,
            validators: Mutex::default(),
        }
    }

    fn check_method(&self, speaker: Speaker, message: &Value) -> Result<(), String> {
        let method = message["method"].as_str().unwrap_or_default();
        let name = self
            .messages
            .get(&(speaker, method.to_owned()))
            .ok_or_else(|| format!("`{method}` is nothing that this side says at this revision"))?;
        let notification = method.starts_with("notifications/");
        if notification && message.get("id").is_some() {
            return Err("a notification has an id".to_owned());
        }
        self.validate(name, message)
    }

    fn check_result(&self, message: &Value, answers: Option<&str>) -> Result<(), String> {
        let result = message.get("result").ok_or("neither method, result nor error")?;
        for key in message.as_object().into_iter().flat_map(Map::keys) {
            if !matches!(key.as_str(), "jsonrpc" | "id" | "result") {
                return Err(format!("a response has no member `{key}`"));
            }
        }
        if message["jsonrpc"] != "2.0" {
            return Err("`jsonrpc` is not \"2.0\"".to_owned());
        }
        if !(message["id"].is_string() || message["id"].is_number()) {
            return Err("a result needs an id that is a string or a number".to_owned());
        }
        let Some(method) = answers else {
            if self.modern && !result["resultType"].is_string() {
                return Err("a result needs `resultType`".to_owned());
            }
            return if result.is_object() { Ok(()) } else { Err("result: no object".to_owned()) };
        };
        let definitions = self.results(method)?;
        let mut reasons = Vec::new();
        for name in definitions {
            match self.validate(&name, result) {
                Ok(()) => return Ok(()),
                Err(why) => reasons.push(format!("as {name}: {why}")),
            }
        }
        Err(reasons.join("; "))
    }

    /// The definitions of which one must hold for a result of `method`.
    fn results(&self, method: &str) -> Result<Vec<String>, String> {
        let request = self
            .requests
            .get(method)
            .ok_or_else(|| format!("`{method}` has no result at this revision"))?;
        let stem = request.trim_end_matches("Request");
        if let Some(response) = self.defs.get(&format!("{stem}ResultResponse")) {
            let result = &response["properties"]["result"];
            let parts = result["anyOf"].as_array().cloned();
            let parts = parts.unwrap_or_else(|| vec![result.clone()]);
            let names = parts.iter().filter_map(|part| part["$ref"].as_str());
            return Ok(names.filter_map(|n| n.rsplit('/').next()).map(str::to_owned).collect());
        }
        let own = format!("{stem}Result");
        let mut names =
            vec![if self.defs.contains_key(&own) { own } else { "EmptyResult".to_owned() }];
        // A task-augmented request is answered with the task (2025-11-25, "Tasks").
        if matches!(stem, "CallTool" | "CreateMessage" | "Elicit")
            && self.defs.contains_key("CreateTaskResult")
        {
            names.push("CreateTaskResult".to_owned());
        }
        Ok(names)
    }

    fn validate(&self, definition: &str, value: &Value) -> Result<(), String> {
        let validator = self.validator(definition);
        let mut errors = validator.iter_errors(value).map(|error| {
            let text: String = error.to_string().chars().take(300).collect();
            format!("{}: {text}", error.instance_path())
        });
        let first: Vec<String> = errors.by_ref().take(4).collect();
        if first.is_empty() { Ok(()) } else { Err(first.join("; ")) }
    }

    fn validator(&self, definition: &str) -> Arc<Validator> {
        let mut cache = self.validators.lock().unwrap();
        let built = cache.entry(definition.to_owned()).or_insert_with(|| {
            let mut root = Map::new();
            root.insert("$schema".into(), self.schema.clone());
            root.insert("$ref".into(), json!(format!("#/{}/{definition}", self.defs_key)));
            root.insert(self.defs_key.into(), Value::Object(self.defs.clone()));
            // Formats are off: URIs of upstreams are carried, not judged (F42).
            let built = jsonschema::options()
                .should_validate_formats(false)
                .build(&Value::Object(root))
                .unwrap_or_else(|error| panic!("schema {definition}: {error}"));
            Arc::new(built)
        });
        Arc::clone(built)
    }
}

type Messages = (BTreeMap<(Speaker, String), String>, BTreeMap<String, String>);

/// Who may say which method, from the unions `ClientRequest`, `ServerNotification` and so on.
fn messages(defs: &Map<String, Value>) -> Messages {
    let mut messages = BTreeMap::new();
    let mut requests = BTreeMap::new();
    let unions = [
        ("ClientRequest", Speaker::Host, true),
        ("ClientNotification", Speaker::Host, false),
        ("ServerRequest", Speaker::Upstream, true),
        ("ServerNotification", Speaker::Upstream, false),
    ];
    for (union, speaker, request) in unions {
        let Some(def) = defs.get(union) else { continue };
        // A union of one is written out in place.
        let alone = [json!({ "$ref": format!("#/{union}") })];
        let parts = def["anyOf"].as_array().map_or(&alone[..], Vec::as_slice);
        for part in parts {
            let method = &strict::resolve(part, defs)["properties"]["method"]["const"];
            let name = part["$ref"].as_str().and_then(|text| text.rsplit('/').next());
            if let (Some(method), Some(name)) = (method.as_str(), name) {
                messages.insert((speaker, method.to_owned()), name.to_owned());
                if request {
                    requests.insert(method.to_owned(), name.to_owned());
                }
            }
        }
    }
    (messages, requests)
}
