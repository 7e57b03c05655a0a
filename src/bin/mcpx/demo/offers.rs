//! What the demonstration offers, in newest shape: tools, a resource, a prompt.

use std::time::Duration;

use mcpx::protocol::edge::methods::{Direction, Standing, standing};
use mcpx::protocol::jsonrpc::{Code, Method, RawJson, RpcError};
use mcpx::protocol::model::questions::Question;
use mcpx::protocol::session::{HostRequest, Outcome, Peer};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// For models and people.
pub(super) const INSTRUCTIONS: &str = "The server that is built into mcpx, to try things out: echo \
    and add answer at once, slow reports progress and can be cancelled, ask puts a question to the \
    user, fail fails.";

/// The one resource.
const ABOUT: &str = "demo://about";
/// What it says.
const ABOUT_TEXT: &str = "This is the demonstration that is built into mcpx. It is shown while no \
    server is configured; `mcpx config path` says where yours go.\n";
/// The lists never change: an hour is as good as for ever.
const LIST_TTL_MS: u64 = 3_600_000;
/// Longest slow call, in seconds.
const SLOWEST: f64 = 600.0;
/// Most steps of one.
const MOST_STEPS: u32 = 1000;
/// The key of the question within `inputRequests`.
const QUESTION: &str = "answer";

/// How a call goes on.
#[derive(Debug)]
pub(super) enum Begun {
    /// It is through.
    Done(RawJson),
    /// It takes its time.
    Slow(Slow),
    /// A question to the host comes first.
    Ask(Question),
}

/// A slow call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slow {
    /// How many steps.
    pub(super) steps: u32,
    /// The time of each.
    pub(super) pause: Duration,
}

impl Slow {
    /// Progress after a step.
    pub(super) fn progress(self, done: u32) -> RawJson {
        let message = format!("step {done} of {}", self.steps);
        RawJson::write(&json!({"progress": done, "total": self.steps, "message": message}))
    }

    /// The result.
    pub(super) fn result(self) -> RawJson {
        let took = self.pause * self.steps;
        text(&format!("done after {} steps in {took:?}", self.steps), false)
    }
}

/// Who we are.
pub(super) fn info() -> RawJson {
    RawJson::write(&json!({
        "name": "mcpx-demo",
        "title": "mcpx demonstration",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "The server that is built into mcpx, to try things out",
    }))
}

/// What we can do.
pub(super) fn capabilities() -> RawJson {
    RawJson::write(&json!({"tools": {}, "resources": {}, "prompts": {}}))
}

/// Answers everything but calls.
pub(super) fn answer(request: &HostRequest) -> Outcome {
    match request.method.as_str() {
        "tools/list" => Ok(list("tools", tools())),
        "resources/list" => Ok(list("resources", resources())),
        "resources/templates/list" => Ok(list("resourceTemplates", json!([]))),
        "resources/read" => read(&request.params),
        "prompts/list" => Ok(list("prompts", prompts())),
        "prompts/get" => greet(&request.params),
        method => {
            let text = format!("the demonstration has no method {method}");
            Err(RpcError::new(Code::MethodNotFound, text))
        }
    }
}

fn list(key: &str, items: Value) -> RawJson {
    let mut result = Map::new();
    result.insert(key.to_owned(), items);
    result.insert("ttlMs".to_owned(), LIST_TTL_MS.into());
    result.insert("cacheScope".to_owned(), "public".into());
    RawJson::write(&result)
}

fn tools() -> Value {
    let only_reads = json!({"readOnlyHint": true, "openWorldHint": false});
    json!([
        {
            "name": "echo",
            "title": "Echo",
            "description": "Gives a text back as it came.",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string", "description": "Any text"}},
                "required": ["text"],
            },
            "annotations": only_reads,
        },
        {
            "name": "add",
            "title": "Add",
            "description": "Adds two numbers; the sum comes as text and as structured content.",
            "inputSchema": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
            "outputSchema": {
                "type": "object",
                "properties": {"sum": {"type": "number"}},
                "required": ["sum"],
            },
            "annotations": only_reads,
        },
        {
            "name": "slow",
            "title": "Take some time",
            "description": "Takes some seconds, reports progress at each step, and can be cancelled.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "seconds": {
                        "type": "number", "minimum": 0, "maximum": SLOWEST,
                        "description": "How long in all; 3 where it is left out",
                    },
                    "steps": {
                        "type": "integer", "minimum": 1, "maximum": MOST_STEPS,
                        "description": "In how many steps; 10 where it is left out",
                    },
                },
            },
            "annotations": only_reads,
        },
        {
            "name": "ask",
            "title": "Ask the user",
            "description": "Puts a question to the user (an elicitation) and gives the answer back.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "question": {
                        "type": "string",
                        "description": "What to ask; a greeting where it is left out",
                    },
                },
            },
            "annotations": only_reads,
        },
        {
            "name": "fail",
            "title": "Fail",
            "description": "Fails, as a tool does that could not do its work.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "message": {"type": "string", "description": "What it fails with"},
                },
            },
            "annotations": only_reads,
        },
    ])
}

fn resources() -> Value {
    json!([{
        "uri": ABOUT,
        "name": "about",
        "title": "About this demonstration",
        "description": "What this server is and how it goes away",
        "mimeType": "text/plain",
        "size": ABOUT_TEXT.len(),
    }])
}

fn prompts() -> Value {
    json!([{
        "name": "greet",
        "title": "Greet somebody",
        "description": "Asks for a friendly greeting",
        "arguments": [
            {"name": "name", "title": "Name", "description": "Who is greeted", "required": true},
        ],
    }])
}

fn read(params: &RawJson) -> Outcome {
    let uri = params.member_str("uri").unwrap_or_default();
    if uri != ABOUT {
        let error = RpcError::new(Code::ResourceNotFound, format!("there is no resource {uri:?}"));
        return Err(error.with_data(RawJson::write(&json!({"uri": uri}))));
    }
    Ok(RawJson::write(&json!({
        "contents": [{"uri": ABOUT, "mimeType": "text/plain", "text": ABOUT_TEXT}],
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "public",
    })))
}

fn greet(params: &RawJson) -> Outcome {
    let wrong = |text: String| Err(RpcError::new(Code::InvalidParams, text));
    let prompt = params.member_str("name").unwrap_or_default();
    if prompt != "greet" {
        return wrong(format!("there is no prompt {prompt:?}; the only one is `greet`"));
    }
    let name = params.member("arguments").and_then(|given| given.member_str("name"));
    let Some(name) = name else { return wrong("the argument `name` is missing".to_owned()) };
    Ok(RawJson::write(&json!({
        "description": "A greeting",
        "messages": [{
            "role": "user",
            "content": {"type": "text", "text": format!("Please greet {name} warmly.")},
        }],
    })))
}

fn text(text: &str, is_error: bool) -> RawJson {
    let mut result = json!({"content": [{"type": "text", "text": text}]});
    if is_error && let Some(members) = result.as_object_mut() {
        members.insert("isError".to_owned(), true.into());
    }
    RawJson::write(&result)
}

/// Begins a call. Wrong arguments are for the model to mend: a result with `isError`.
pub(super) fn call(request: &HostRequest) -> Result<Begun, RpcError> {
    let name = request.params.member_str("name").unwrap_or_default();
    let arguments = request.params.member("arguments").unwrap_or_else(RawJson::empty_object);
    let begun = match name.as_str() {
        "echo" => echo(&arguments),
        "add" => add(&arguments),
        "slow" => slow(&arguments),
        "ask" => return ask(request, &arguments),
        "fail" => fail(&arguments),
        _ => {
            let text =
                format!("there is no tool {name:?}; there are echo, add, slow, ask and fail");
            return Err(RpcError::new(Code::InvalidParams, text));
        }
    };
    Ok(begun.unwrap_or_else(|error| wrong(&name, &error)))
}

fn wrong(tool: &str, error: &serde_json::Error) -> Begun {
    Begun::Done(text(&format!("the arguments of {tool} are wrong: {error}"), true))
}

type Tried = Result<Begun, serde_json::Error>;

fn echo(arguments: &RawJson) -> Tried {
    #[derive(Deserialize)]
    struct Echo {
        text: String,
    }
    Ok(Begun::Done(text(&arguments.read::<Echo>()?.text, false)))
}

fn add(arguments: &RawJson) -> Tried {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Whole(i64),
        Real(f64),
    }
    #[derive(Deserialize)]
    struct Add {
        a: Number,
        b: Number,
    }
    #[expect(clippy::cast_precision_loss, reason = "what a sum beyond whole numbers costs")]
    let real = |number: &Number| match number {
        Number::Whole(whole) => *whole as f64,
        Number::Real(real) => *real,
    };
    let Add { a, b } = arguments.read()?;
    let whole = match (&a, &b) {
        (Number::Whole(a), Number::Whole(b)) => a.checked_add(*b),
        _ => None,
    };
    let sum = whole.map_or_else(|| json!(real(&a) + real(&b)), |sum| json!(sum));
    Ok(Begun::Done(RawJson::write(&json!({
        "content": [{"type": "text", "text": sum.to_string()}],
        "structuredContent": {"sum": sum},
    }))))
}

fn slow(arguments: &RawJson) -> Tried {
    #[derive(Deserialize)]
    struct Given {
        #[serde(default = "three")]
        seconds: f64,
        #[serde(default = "ten")]
        steps: u32,
    }
    const fn three() -> f64 {
        3.0
    }
    const fn ten() -> u32 {
        10
    }
    let Given { seconds, steps } = arguments.read()?;
    if !(0.0..=SLOWEST).contains(&seconds) || !(1..=MOST_STEPS).contains(&steps) {
        let refusal = format!(
            "the arguments of slow are wrong: seconds are 0 to {SLOWEST}, steps 1 to {MOST_STEPS}"
        );
        return Ok(Begun::Done(text(&refusal, true)));
    }
    let pause = Duration::from_secs_f64(seconds) / steps;
    Ok(Begun::Slow(Slow { steps, pause }))
}

fn fail(arguments: &RawJson) -> Tried {
    #[derive(Deserialize)]
    struct Fail {
        #[serde(default = "as_asked")]
        message: String,
    }
    fn as_asked() -> String {
        "this tool fails, as it was asked to".to_owned()
    }
    Ok(Begun::Done(text(&arguments.read::<Fail>()?.message, true)))
}

/// A legacy host that can be asked is asked by a request; a modern one by `input_required`, after
/// which it sends the call again with the answer (2026-07-28, multi round-trip requests).
fn ask(request: &HostRequest, arguments: &RawJson) -> Result<Begun, RpcError> {
    #[derive(Deserialize)]
    struct Ask {
        #[serde(default = "usual")]
        question: String,
    }
    fn usual() -> String {
        "Hello! How are you today?".to_owned()
    }
    let question = match arguments.read::<Ask>() {
        Ok(ask) => ask.question,
        Err(error) => return Ok(wrong("ask", &error)),
    };
    let (peer, params) = (&request.peer, &request.params);
    let elicitation = json!({
        "message": question,
        "requestedSchema": {
            "type": "object",
            "properties": {QUESTION: {"type": "string", "title": "Your answer"}},
            "required": [QUESTION],
        },
    });
    if !peer.revision.is_modern() {
        if !can_be_asked(peer) {
            let refusal = "the host did not declare the capability `elicitation`, so that nobody \
                           can be asked";
            return Ok(Begun::Done(text(refusal, true)));
        }
        let (method, params) = (Method::known("elicitation/create"), RawJson::write(&elicitation));
        return Ok(Begun::Ask(Question { method, params }));
    }
    let state = state_of(&question);
    if let Some(answers) = params.member("inputResponses") {
        if params.member_str("requestState").as_deref() != Some(state.as_str()) {
            let text = "`requestState` is not the one that came with this question";
            return Err(RpcError::new(Code::InvalidParams, text));
        }
        return Ok(Begun::Done(answered(answers.member(QUESTION).as_ref())));
    }
    if !can_be_asked(peer) {
        let text = "the tool `ask` needs the capability `elicitation`";
        let data = RawJson::write(&json!({"requiredCapabilities": {"elicitation": {}}}));
        return Err(RpcError::new(Code::MissingCapability, text).with_data(data));
    }
    Ok(Begun::Done(RawJson::write(&json!({
        "resultType": "input_required",
        "inputRequests": {QUESTION: {"method": "elicitation/create", "params": elicitation}},
        "requestState": state,
    }))))
}

/// Whether forms can be put before this host's user. A capability that names no mode means forms.
fn can_be_asked(peer: &Peer) -> bool {
    let known = standing(peer.revision, "elicitation/create", Direction::ToClient);
    let declared = peer.capabilities.member("elicitation").filter(RawJson::is_object);
    let forms = declared
        .is_some_and(|modes| modes.member("form").is_some() || modes.member("url").is_none());
    forms && (peer.revision.is_modern() || known == Standing::Known)
}

/// Ties the answer to its question without keeping anything.
fn state_of(question: &str) -> String {
    let digest = Sha256::digest(question.as_bytes());
    let head = digest.first_chunk().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(head))
}

/// The result of a question, by what the host said to it; `None` is a refusal to answer at all.
pub(super) fn answered(result: Option<&RawJson>) -> RawJson {
    let Some(result) = result else {
        return text("the host could not put the question to its user", true);
    };
    let content = result.member("content");
    let answer = content.and_then(|content| content.member_str(QUESTION));
    match (result.member_str("action").as_deref(), answer) {
        (Some("accept"), Some(answer)) => text(&format!("the answer is: {answer}"), false),
        (Some("accept"), None) => text("the question was accepted, but not answered", true),
        (Some("decline"), _) => text("the user declined to answer", false),
        _ => text("the user dismissed the question", false),
    }
}
