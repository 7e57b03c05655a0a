//! One op with its typed parameters, whichever way it was asked for: HTTP, MCP tool or command.

mod inside;
mod scripts;

use serde_json::{Map, Value as Json, json};

use super::ops::{Op, OpName, Param, ParamKind, Place};
use super::route::{self, HttpParts};
use super::types::{
    AnswerRequest, ApiError, AuditRequest, CallRequest, EventsRequest, ExecRequest, FailureCode,
    PromptRequest, ScriptRunRequest, SearchRequest, TraceRequest, TypesRequest, WhoAnswers,
};
use crate::protocol::jsonrpc::{Object, RawJson};

/// An op to be executed.
#[derive(Debug, Clone, PartialEq)]
pub enum OpCall {
    /// See [`OpName::Status`].
    Status {
        /// Only this server.
        server: Option<String>,
    },
    /// See [`OpName::Restart`].
    Restart {
        /// Key or namespace.
        server: String,
    },
    /// See [`OpName::Stop`].
    Stop {
        /// Key or namespace.
        server: String,
    },
    /// See [`OpName::Start`].
    Start {
        /// Key or namespace.
        server: String,
    },
    /// See [`OpName::Reload`].
    Reload,
    /// See [`OpName::Tools`].
    Tools {
        /// Only this one.
        namespace: Option<String>,
        /// The project folder for which servers are started.
        project: Option<String>,
    },
    /// See [`OpName::Search`].
    Search(SearchRequest),
    /// See [`OpName::Types`].
    Types(TypesRequest),
    /// See [`OpName::Resources`].
    Resources {
        /// Only this one.
        namespace: Option<String>,
        /// The project folder for which servers are started.
        project: Option<String>,
    },
    /// See [`OpName::Read`].
    Read {
        /// The address.
        uri: String,
        /// The project folder on whose behalf it is read.
        project: Option<String>,
    },
    /// See [`OpName::Prompts`].
    Prompts {
        /// Only this one.
        namespace: Option<String>,
        /// The project folder for which servers are started.
        project: Option<String>,
    },
    /// See [`OpName::Prompt`].
    Prompt(PromptRequest),
    /// See [`OpName::Call`].
    Call(CallRequest),
    /// See [`OpName::Ask`].
    Ask(CallRequest),
    /// See [`OpName::Exec`].
    Exec(ExecRequest),
    /// See [`OpName::ElicitList`].
    Questions {
        /// As a stream that goes on.
        follow: bool,
    },
    /// See [`OpName::ElicitShow`].
    Question {
        /// Its id.
        id: String,
    },
    /// See [`OpName::ElicitAnswer`].
    Answer(AnswerRequest),
    /// See [`OpName::ElicitDecline`].
    Decline {
        /// Its id.
        id: String,
    },
    /// See [`OpName::ElicitCancel`].
    Cancel {
        /// Its id.
        id: String,
    },
    /// See [`OpName::Scripts`].
    Scripts,
    /// See [`OpName::Script`].
    Script {
        /// Its name.
        name: String,
    },
    /// See [`OpName::ScriptRun`].
    ScriptRun(ScriptRunRequest),
    /// See [`OpName::ScriptSave`].
    ScriptSave {
        /// Its name.
        name: String,
        /// Its source.
        code: String,
    },
    /// See [`OpName::ScriptRemove`].
    ScriptRemove {
        /// Its name.
        name: String,
    },
    /// See [`OpName::Tasks`].
    Tasks,
    /// See [`OpName::Task`].
    Task {
        /// Its id, or its beginning.
        task: String,
    },
    /// See [`OpName::TaskCancel`].
    TaskCancel {
        /// Its id, or its beginning.
        task: String,
    },
    /// See [`OpName::Logs`].
    Logs {
        /// Only this server.
        server: Option<String>,
        /// Lines of each instance.
        lines: Option<usize>,
        /// As a stream that goes on.
        follow: bool,
    },
    /// See [`OpName::Events`].
    Events(EventsRequest),
    /// See [`OpName::Audit`].
    Audit(AuditRequest),
    /// See [`OpName::Trace`].
    Trace(TraceRequest),
    /// See [`OpName::Tree`].
    Tree,
    /// See [`OpName::SettingsGet`].
    SettingsGet {
        /// Only this setting or section.
        key: Option<String>,
    },
    /// See [`OpName::SettingsSet`].
    SettingsSet {
        /// To be read by [`crate::settings::parse::read_changes`].
        changes: Map<String, Json>,
    },
    /// See [`OpName::Config`].
    Config,
    /// See [`OpName::Protocol`].
    Protocol,
    /// See [`OpName::Http`].
    Http,
    /// See [`OpName::Health`].
    Health,
    /// See [`OpName::Doctor`].
    Doctor {
        /// Only this server.
        server: Option<String>,
    },
    /// See [`OpName::Version`].
    Version,
    /// See [`OpName::Shutdown`].
    Shutdown,
}

/// The parameters that ask for a stream of events; an MCP tool does not take them.
pub(super) const STREAMING: [&str; 3] = ["follow", "progress", "questions"];

/// Parameters as JSON, by name.
type Given = Vec<(&'static str, RawJson)>;

impl OpCall {
    /// The project folder on whose behalf it is, where it says one.
    pub fn project(&self) -> Option<&str> {
        match self {
            Self::Tools { project, .. }
            | Self::Resources { project, .. }
            | Self::Read { project, .. }
            | Self::Prompts { project, .. } => project.as_deref(),
            Self::Search(wanted) => wanted.project.as_deref(),
            Self::Types(wanted) => wanted.project.as_deref(),
            Self::Prompt(wanted) => wanted.project.as_deref(),
            Self::Call(wanted) | Self::Ask(wanted) => wanted.project.as_deref(),
            Self::Exec(ExecRequest { run, .. }) | Self::ScriptRun(ScriptRunRequest { run, .. }) => {
                run.project.as_deref()
            }
            _ => None,
        }
    }

    /// Which op it is.
    pub const fn name(&self) -> OpName {
        match self {
            Self::Status { .. } => OpName::Status,
            Self::Restart { .. } => OpName::Restart,
            Self::Stop { .. } => OpName::Stop,
            Self::Start { .. } => OpName::Start,
            Self::Reload => OpName::Reload,
            Self::Tools { .. } => OpName::Tools,
            Self::Search(_) => OpName::Search,
            Self::Types(_) => OpName::Types,
            Self::Resources { .. } => OpName::Resources,
            Self::Read { .. } => OpName::Read,
            Self::Prompts { .. } => OpName::Prompts,
            Self::Prompt(_) => OpName::Prompt,
            Self::Call(_) => OpName::Call,
            Self::Ask(_) => OpName::Ask,
            Self::Exec(_) => OpName::Exec,
            Self::Questions { .. } => OpName::ElicitList,
            Self::Question { .. } => OpName::ElicitShow,
            Self::Answer(_) => OpName::ElicitAnswer,
            Self::Decline { .. } => OpName::ElicitDecline,
            Self::Cancel { .. } => OpName::ElicitCancel,
            Self::Scripts => OpName::Scripts,
            Self::Script { .. } => OpName::Script,
            Self::ScriptRun(_) => OpName::ScriptRun,
            Self::ScriptSave { .. } => OpName::ScriptSave,
            Self::ScriptRemove { .. } => OpName::ScriptRemove,
            Self::Tasks => OpName::Tasks,
            Self::Task { .. } => OpName::Task,
            Self::TaskCancel { .. } => OpName::TaskCancel,
            Self::Logs { .. } => OpName::Logs,
            Self::Events(_) => OpName::Events,
            Self::Audit(_) => OpName::Audit,
            Self::Trace(_) => OpName::Trace,
            Self::Tree => OpName::Tree,
            Self::SettingsGet { .. } => OpName::SettingsGet,
            Self::SettingsSet { .. } => OpName::SettingsSet,
            Self::Config => OpName::Config,
            Self::Protocol => OpName::Protocol,
            Self::Http => OpName::Http,
            Self::Health => OpName::Health,
            Self::Doctor { .. } => OpName::Doctor,
            Self::Version => OpName::Version,
            Self::Shutdown => OpName::Shutdown,
        }
    }

    /// Whether it is answered by a stream of events rather than by one answer.
    pub const fn streams(&self) -> bool {
        match self {
            Self::Logs { follow, .. }
            | Self::Questions { follow }
            | Self::Events(EventsRequest { follow, .. })
            | Self::Audit(AuditRequest { follow, .. })
            | Self::Trace(TraceRequest { follow, .. }) => *follow,
            Self::Call(call) | Self::Ask(call) => call.progress || call.questions.is_some(),
            Self::Exec(ExecRequest { run, .. }) | Self::ScriptRun(ScriptRunRequest { run, .. }) => {
                run.streams()
            }
            _ => false,
        }
    }

    /// From the pieces of an HTTP request.
    pub(super) fn of_http(
        op: &'static Op,
        path: &[(&str, String)],
        query: &[(String, String)],
        body: &[u8],
    ) -> Result<Self, ApiError> {
        let mut given = Given::new();
        for (name, text) in path.iter().map(|(name, text)| (*name, text)) {
            take_text(op, Place::Path, name, text, &mut given)?;
        }
        for (name, text) in query {
            take_text(op, Place::Query, name, text, &mut given)?;
        }
        if !body.trim_ascii().is_empty() {
            let body = RawJson::parse(body.to_vec().into())
                .map_err(|_| bad("the body is not JSON".to_owned()))?;
            take_members(op, &[Place::Body], &body, &mut given)?;
        }
        Self::build(op, &given)
    }

    /// From the arguments of the op's MCP tool.
    pub fn of_arguments(op: &'static Op, arguments: &RawJson) -> Result<Self, ApiError> {
        let mut given = Given::new();
        take_members(op, &[Place::Path, Place::Query, Place::Body], arguments, &mut given)?;
        // A tool's answer is one answer; what may stream elsewhere does not here.
        given.retain(|(name, _)| !STREAMING.contains(name));
        if op.name == OpName::Events {
            given.push(("follow", RawJson::write(&false)));
        }
        Self::build(op, &given)
    }

    fn build(op: &'static Op, given: &Given) -> Result<Self, ApiError> {
        for param in op.params.iter().filter(|param| param.required) {
            if !given.iter().any(|(name, _)| *name == param.name) {
                return Err(bad(format!("`{}` is missing; {}", param.name, param.doc)));
            }
        }
        let values = Values(given);
        Ok(match op.name {
            OpName::Status => Self::Status { server: values.text("server") },
            OpName::Restart => Self::Restart { server: values.needed("server") },
            OpName::Stop => Self::Stop { server: values.needed("server") },
            OpName::Start => Self::Start { server: values.needed("server") },
            OpName::Reload => Self::Reload,
            OpName::Tools => {
                Self::Tools { namespace: values.text("namespace"), project: values.text("project") }
            }
            OpName::Search => Self::Search(SearchRequest {
                query: values.needed("query"),
                namespace: values.text("namespace"),
                limit: values.read("limit"),
                project: values.text("project"),
            }),
            OpName::Types => Self::Types(TypesRequest {
                namespace: values.text("namespace"),
                tools: values.read("tools").unwrap_or_default(),
                all: values.read("all").unwrap_or(false),
                project: values.text("project"),
            }),
            OpName::Resources => Self::Resources {
                namespace: values.text("namespace"),
                project: values.text("project"),
            },
            OpName::Read => {
                Self::Read { uri: values.needed("uri"), project: values.text("project") }
            }
            OpName::Prompts => Self::Prompts {
                namespace: values.text("namespace"),
                project: values.text("project"),
            },
            OpName::Prompt => Self::Prompt(PromptRequest {
                namespace: values.needed("namespace"),
                prompt: values.needed("prompt"),
                arguments: values.raw("arguments").cloned(),
                project: values.text("project"),
            }),
            OpName::Call => Self::Call(values.call()?),
            OpName::Ask => Self::Ask(values.call()?),
            OpName::Exec => Self::Exec(ExecRequest::read(&values)?),
            OpName::ElicitList => {
                Self::Questions { follow: values.read("follow").unwrap_or(false) }
            }
            OpName::ElicitShow => Self::Question { id: values.needed("id") },
            OpName::ElicitAnswer => Self::Answer(AnswerRequest {
                id: values.needed("id"),
                content: values.raw("content").cloned(),
                value: values.read("value"),
            }),
            OpName::ElicitDecline => Self::Decline { id: values.needed("id") },
            OpName::ElicitCancel => Self::Cancel { id: values.needed("id") },
            OpName::Scripts => Self::Scripts,
            OpName::Script => Self::Script { name: values.needed("name") },
            OpName::ScriptRun => Self::ScriptRun(ScriptRunRequest::read(&values)?),
            OpName::ScriptSave => {
                Self::ScriptSave { name: values.needed("name"), code: values.needed("code") }
            }
            OpName::ScriptRemove => Self::ScriptRemove { name: values.needed("name") },
            OpName::Tasks => Self::Tasks,
            OpName::Task => Self::Task { task: values.needed("task") },
            OpName::TaskCancel => Self::TaskCancel { task: values.needed("task") },
            OpName::Logs => Self::Logs {
                server: values.text("server"),
                lines: values.read("lines"),
                follow: values.read("follow").unwrap_or(false),
            },
            OpName::Events => Self::Events(EventsRequest::read(&values)),
            OpName::Audit => Self::Audit(AuditRequest::read(&values)),
            OpName::Trace => Self::Trace(TraceRequest::read(&values)),
            OpName::Tree => Self::Tree,
            OpName::SettingsGet => Self::SettingsGet { key: values.text("key") },
            OpName::SettingsSet => {
                Self::SettingsSet { changes: values.read("settings").unwrap_or_default() }
            }
            OpName::Config => Self::Config,
            OpName::Protocol => Self::Protocol,
            OpName::Http => Self::Http,
            OpName::Health => Self::Health,
            OpName::Doctor => Self::Doctor { server: values.text("server") },
            OpName::Version => Self::Version,
            OpName::Shutdown => Self::Shutdown,
        })
    }

    /// The HTTP request that asks for it.
    pub fn to_http(&self) -> HttpParts {
        route::compose(self.name().row(), &self.given())
    }

    fn given(&self) -> Given {
        let mut given = Given::new();
        let mut put = |name: &'static str, value: Option<RawJson>| {
            given.extend(value.map(|value| (name, value)));
        };
        let text = |text: &Option<String>| text.as_ref().map(RawJson::write);
        let id = |text: &String| Some(RawJson::write(text));
        match self {
            Self::Status { server } | Self::Doctor { server } => put("server", text(server)),
            Self::Restart { server: it }
            | Self::Stop { server: it }
            | Self::Start { server: it } => {
                put("server", id(it));
            }
            Self::Tools { namespace, project }
            | Self::Resources { namespace, project }
            | Self::Prompts { namespace, project } => {
                put("namespace", text(namespace));
                put("project", text(project));
            }
            Self::Read { uri, project } => {
                put("uri", Some(RawJson::write(uri)));
                put("project", text(project));
            }
            Self::Search(wanted) => {
                put("query", Some(RawJson::write(&wanted.query)));
                put("namespace", text(&wanted.namespace));
                put("limit", wanted.limit.as_ref().map(RawJson::write));
                put("project", text(&wanted.project));
            }
            Self::Types(wanted) => {
                put("namespace", text(&wanted.namespace));
                put("tools", (!wanted.tools.is_empty()).then(|| RawJson::write(&wanted.tools)));
                put("all", wanted.all.then(|| RawJson::write(&true)));
                put("project", text(&wanted.project));
            }
            Self::Prompt(wanted) => {
                put("namespace", Some(RawJson::write(&wanted.namespace)));
                put("prompt", Some(RawJson::write(&wanted.prompt)));
                put("arguments", wanted.arguments.clone());
                put("project", text(&wanted.project));
            }
            Self::Call(call) | Self::Ask(call) => {
                put("namespace", Some(RawJson::write(&call.namespace)));
                put("tool", Some(RawJson::write(&call.tool)));
                put("arguments", call.arguments.clone());
                put("project", text(&call.project));
                put("progress", call.progress.then(|| RawJson::write(&true)));
                put("questions", call.questions.map(|who| RawJson::write(who.as_str())));
            }
            Self::Exec(exec) => given = exec.given(),
            Self::Question { id: it } | Self::Decline { id: it } | Self::Cancel { id: it } => {
                put("id", id(it));
            }
            Self::Answer(answer) => {
                put("id", Some(RawJson::write(&answer.id)));
                put("content", answer.content.clone());
                put("value", text(&answer.value));
            }
            Self::Script { name } | Self::ScriptRemove { name } => put("name", id(name)),
            Self::ScriptRun(run) => given = run.given(),
            Self::ScriptSave { name, code } => {
                put("name", Some(RawJson::write(name)));
                put("code", Some(RawJson::write(code)));
            }
            Self::Task { task } | Self::TaskCancel { task } => put("task", id(task)),
            Self::Logs { server, lines, follow } => {
                put("server", text(server));
                put("lines", lines.as_ref().map(RawJson::write));
                put("follow", Some(RawJson::write(follow)));
            }
            Self::Questions { follow } => put("follow", Some(RawJson::write(follow))),
            Self::Events(wanted) => given = wanted.given(),
            Self::Audit(wanted) => given = wanted.given(),
            Self::Trace(wanted) => given = wanted.given(),
            Self::SettingsGet { key } => put("key", text(key)),
            Self::SettingsSet { changes } => put("settings", Some(RawJson::write(changes))),
            Self::Reload
            | Self::Tree
            | Self::Scripts
            | Self::Tasks
            | Self::Config
            | Self::Protocol
            | Self::Http
            | Self::Health
            | Self::Version
            | Self::Shutdown => {}
        }
        given
    }
}

/// Reads checked parameters.
struct Values<'a>(&'a Given);

impl Values<'_> {
    fn raw(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(given, _)| *given == name).map(|(_, value)| value)
    }

    fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.raw(name)?.read().ok()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.read(name).filter(|text: &String| !text.is_empty())
    }

    /// A required text: [`OpCall::build`] has made sure of it.
    fn needed(&self, name: &str) -> String {
        self.read(name).unwrap_or_default()
    }

    fn call(&self) -> Result<CallRequest, ApiError> {
        Ok(CallRequest {
            namespace: self.needed("namespace"),
            tool: self.needed("tool"),
            arguments: self.raw("arguments").cloned(),
            project: self.text("project"),
            progress: self.read("progress").unwrap_or(false),
            questions: self.questions()?,
        })
    }

    fn questions(&self) -> Result<Option<WhoAnswers>, ApiError> {
        let Some(word) = self.text("questions") else { return Ok(None) };
        let who = WhoAnswers::of_word(&word);
        let wrong = || bad(format!("`questions` is `here` or `elsewhere`, not {word:?}"));
        who.ok_or_else(wrong).map(Some)
    }
}

fn bad(text: String) -> ApiError {
    ApiError::new(FailureCode::BadRequest, text)
}

fn param_of(op: &'static Op, places: &[Place], name: &str) -> Result<&'static Param, ApiError> {
    let here = |param: &&Param| places.contains(&param.place);
    op.params.iter().filter(here).find(|param| param.name == name).ok_or_else(|| {
        let names: Vec<_> = op.params.iter().filter(here).map(|param| param.name).collect();
        let hint = if names.is_empty() {
            "none is taken".to_owned()
        } else {
            crate::settings::mistake::hint(name, names)
        };
        bad(format!("unknown parameter `{name}` of {}; {hint}", op.id))
    })
}

fn take_text(
    op: &'static Op,
    place: Place,
    name: &str,
    text: &str,
    given: &mut Given,
) -> Result<(), ApiError> {
    let param = param_of(op, &[place], name)?;
    let value = match param.kind {
        ParamKind::Text => RawJson::write(text),
        ParamKind::Switch => match text {
            // A name without a value is a switch that is on.
            "" | "true" | "1" => RawJson::write(&true),
            "false" | "0" => RawJson::write(&false),
            _ => return Err(bad(format!("`{name}` is true or false, not {text:?}"))),
        },
        ParamKind::Count => {
            let count: u64 = text
                .parse()
                .map_err(|_| bad(format!("`{name}` is a whole number, not {text:?}")))?;
            RawJson::write(&count)
        }
        ParamKind::Object | ParamKind::Any | ParamKind::Texts => {
            return Err(bad(format!("`{name}` belongs into the body")));
        }
    };
    put(param, value, given)
}

fn take_members(
    op: &'static Op,
    places: &[Place],
    object: &RawJson,
    given: &mut Given,
) -> Result<(), ApiError> {
    let members = Object::read(object).map_err(|_| bad("an object is expected".to_owned()))?;
    for (name, value) in members.iter() {
        let param = param_of(op, places, name)?;
        let fits = match param.kind {
            ParamKind::Text => value.read::<String>().is_ok(),
            ParamKind::Switch => value.read::<bool>().is_ok(),
            ParamKind::Count => value.read::<u64>().is_ok(),
            ParamKind::Object => value.is_object(),
            ParamKind::Any => true,
            ParamKind::Texts => value.read::<Vec<String>>().is_ok(),
        };
        // Where anything fits, `null` is a value.
        if value.is_null() && !param.required && param.kind != ParamKind::Any {
            continue;
        }
        if !fits {
            return Err(bad(format!("`{name}` is {}", kind_phrase(param.kind))));
        }
        put(param, value.clone(), given)?;
    }
    Ok(())
}

fn put(param: &'static Param, value: RawJson, given: &mut Given) -> Result<(), ApiError> {
    if given.iter().any(|(name, _)| *name == param.name) {
        return Err(bad(format!("`{}` is given twice", param.name)));
    }
    given.push((param.name, value));
    Ok(())
}

const fn kind_phrase(kind: ParamKind) -> &'static str {
    match kind {
        ParamKind::Text => "text",
        ParamKind::Switch => "true or false",
        ParamKind::Count => "a whole number from 0",
        ParamKind::Object => "an object",
        ParamKind::Any => "JSON",
        ParamKind::Texts => "a list of texts",
    }
}

/// The JSON schema of a parameter.
pub fn param_schema(param: &Param) -> Json {
    let mut schema = match param.kind {
        ParamKind::Text => json!({"type": "string"}),
        ParamKind::Switch => json!({"type": "boolean"}),
        ParamKind::Count => json!({"type": "integer", "minimum": 0}),
        ParamKind::Object => json!({"type": "object"}),
        ParamKind::Any => json!({}),
        ParamKind::Texts => json!({"type": "array", "items": {"type": "string"}}),
    };
    if let Some(members) = schema.as_object_mut() {
        members.insert("description".to_owned(), param.doc.into());
    }
    schema
}

/// The input schema of an op's MCP tool; the closed empty object where it takes nothing (H-52).
pub fn input_schema(op: &Op) -> Json {
    let taken = |param: &&Param| !STREAMING.contains(&param.name);
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    let properties: Map<String, Json> = op
        .params
        .iter()
        .filter(taken)
        .map(|param| (param.name.to_owned(), param_schema(param)))
        .collect();
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), properties.into());
    }
    let required: Vec<_> =
        op.params.iter().filter(taken).filter(|param| param.required).map(|p| p.name).collect();
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    schema.into()
}

#[cfg(test)]
mod tests;
