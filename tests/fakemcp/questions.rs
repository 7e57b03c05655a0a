//! What the fake asks of the other side: elicitations, samplings, roots, in the way of the
//! revision in use.
//!
//! At a handshake revision a question is a request of the fake's own, sent while the call runs; at
//! 2026-07-28 it is an `input_required` result with a `requestState` that must come back once, as it
//! is, with the same request. Whatever was answered is in the result: the text of its first block
//! (or prompt message, or resource) is a JSON object of key → reply (`{"error": …}` for an error).
//!
//! Tools (all arguments optional; `id` goes into the message, so that a test can tell whose
//! question it sees; `force` asks although nothing was declared; `stateless` (2026-07-28) leaves
//! `requestState` out):
//! - `ask_form {schema, message}`, `ask_url {url, complete}` (`complete`: says afterwards that it
//!   was), `ask_sample {tools, context, image}`, `ask_roots`;
//! - `ask_many {kinds}`: at once, keys `q0`, `q1` … (two forms); `ask_rounds {n, kinds}`: one after
//!   the other, keys `q0`… again;
//! - `ask_url_required`: -32042 at 2025-11-25 until the same question was put before; an ordinary
//!   url question at 2026-07-28.
//!
//! With `--questions` also the prompt `ask_prompt` and the resource `fake://ask` (one form each).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::state::{Ask, Fake};
use crate::tools::block;

/// How long a question waits for its answer.
const ANSWER_LIMIT: Duration = Duration::from_mins(2);
/// How often a call that waits looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(5);

/// The tools.
pub const TOOLS: [&str; 7] = [
    "ask_form",
    "ask_url",
    "ask_sample",
    "ask_roots",
    "ask_many",
    "ask_rounds",
    "ask_url_required",
];

/// One question as the revision in use spells it.
#[derive(Debug, Clone)]
struct Question {
    key: String,
    method: &'static str,
    params: Value,
}

/// A `requestState` that was given out, and what it stands for.
#[derive(Debug)]
pub struct Issued {
    round: usize,
    answers: Map<String, Value>,
    /// The request that it belongs to, without what may differ.
    request: Value,
}

/// States that were given out and did not come back yet.
pub type States = BTreeMap<String, Issued>;

/// Takes a call of one of [`TOOLS`].
pub fn call(fake: &Arc<Fake>, ask: &Ask) {
    let name = ask.params["name"].as_str().unwrap_or_default();
    if name == "ask_url_required" && ask.revision == "2025-11-25" {
        return url_required(fake, ask);
    }
    let kinds = |default: &[&str]| -> Vec<String> {
        let given = ask.arg("kinds").as_array().cloned().unwrap_or_default();
        if given.is_empty() {
            return default.iter().map(|kind| (*kind).to_owned()).collect();
        }
        given.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let rounds = match name {
        "ask_many" => vec![several(ask, &kinds(&["form", "form"]))],
        "ask_rounds" => {
            let kinds = kinds(&["form"]);
            let count = usize::try_from(ask.number("n", 2)).unwrap();
            let round = |at: usize| {
                let mut question = question(ask, &kinds[at % kinds.len()]);
                question.key = format!("q{at}");
                vec![question]
            };
            (0..count).map(round).collect()
        }
        "ask_url_required" => vec![vec![question(ask, "url")]],
        name => vec![vec![question(ask, name.trim_start_matches("ask_"))]],
    };
    run(fake, ask, &rounds, |fake, ask, answers| fake.result(ask, told(ask, &answers)));
}

/// A tool result that repeats the answers, with what else a result may hold (E-16).
fn told(ask: &Ask, answers: &Value) -> Value {
    let mut result = json!({ "content": [
        block(&answers.to_string()),
        { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
    ] });
    if ask.revision.as_str() >= "2025-06-18" {
        result["structuredContent"] = json!({ "answers": answers });
    }
    result
}

/// `prompts/get` of `ask_prompt`.
pub fn prompt(fake: &Arc<Fake>, ask: &Ask) {
    run(fake, ask, &[vec![question(ask, "form")]], |fake, ask, answers| {
        let content = block(&answers.to_string());
        fake.result(ask, json!({ "messages": [{ "role": "user", "content": content }] }));
    });
}

/// `resources/read` of `fake://ask`.
pub fn resource(fake: &Arc<Fake>, ask: &Ask) {
    run(fake, ask, &[vec![question(ask, "form")]], |fake, ask, answers| {
        let uri = ask.params["uri"].clone();
        let mut result = json!({ "contents": [{ "uri": uri, "text": answers.to_string() }] });
        crate::offers::hints(ask, &mut result);
        fake.result(ask, result);
    });
}

/// Asks one form, whatever the request is, and lets `done` answer with the reply.
pub fn one_form(fake: &Arc<Fake>, ask: &Ask, done: impl FnOnce(&Fake, &Ask, Value)) {
    run(fake, ask, &[vec![question(ask, "form")]], |fake, ask, mut answers| {
        done(fake, ask, answers["form"].take());
    });
}

/// Runs what waits for answers on a thread of its own: this one reads them.
pub fn later(fake: &Arc<Fake>, ask: &Ask, what: fn(&Arc<Fake>, &Ask)) {
    let (fake, ask) = (Arc::clone(fake), ask.clone());
    crate::http::spawn(move || what(&fake, &ask));
}

fn several(ask: &Ask, kinds: &[String]) -> Vec<Question> {
    let numbered = |(at, kind): (usize, &String)| {
        let mut question = question(ask, kind);
        question.key = format!("q{at}");
        question
    };
    kinds.iter().enumerate().map(numbered).collect()
}

/// A question of this kind as the revision of the call spells it; its key is its kind.
fn question(ask: &Ask, kind: &str) -> Question {
    let id = ask.text("id");
    let mark = |text: &str| if id.is_empty() { text.to_owned() } else { format!("{text} [{id}]") };
    let (method, params) = match kind {
        "form" => ("elicitation/create", form(ask, &mark("Who are you?"))),
        "url" => ("elicitation/create", url(ask, &mark("Please sign in."))),
        "roots" => ("roots/list", Value::Null),
        _ => ("sampling/createMessage", sampling(ask, &mark("Say something."))),
    };
    Question { key: kind.to_owned(), method, params }
}

/// The form that the arguments describe.
pub fn form(ask: &Ask, message: &str) -> Value {
    let schema = if ask.arg("schema").is_object() {
        ask.arg("schema").clone()
    } else {
        json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string", "title": "Name" },
            "age": { "type": "integer", "minimum": 0 },
        } })
    };
    let message = ask.arg("message").as_str().unwrap_or(message);
    let mut params = json!({ "message": message, "requestedSchema": schema });
    if ask.revision.as_str() >= "2025-11-25" {
        params["mode"] = json!("form");
    }
    params
}

fn url(ask: &Ask, message: &str) -> Value {
    let url = ask.arg("url").as_str().unwrap_or("https://login.test/a?b=1");
    let mut params = json!({ "mode": "url", "message": message, "url": url });
    if !ask.modern() {
        params["elicitationId"] = json!(elicitation_id(ask));
    }
    params
}

fn elicitation_id(ask: &Ask) -> String {
    format!("elicitation-{}", ask.text("id"))
}

fn sampling(ask: &Ask, text: &str) -> Value {
    let mut params = json!({
        "messages": [{ "role": "user", "content": block(text) }],
        "maxTokens": 100,
        "systemPrompt": "Be brief.",
        "temperature": 0.5,
        "stopSequences": ["."],
        "modelPreferences": { "hints": [{ "name": "small" }], "speedPriority": 1 },
    });
    if ask.arg("tools") == &json!(true) {
        params["tools"] = json!([{ "name": "clock", "description": "Tells the time.",
            "inputSchema": { "type": "object" } }]);
        params["toolChoice"] = json!({ "mode": "auto" });
    }
    if ask.arg("context") == &json!(true) {
        params["includeContext"] = json!("thisServer");
    }
    if ask.arg("image") == &json!(true) {
        let image = json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" });
        params["messages"][0]["content"] = image;
    }
    params
}

/// The capability that a question needs, as nested names; `None` where the revision has no such
/// question.
fn needs(ask: &Ask, question: &Question) -> Option<Vec<&'static str>> {
    let since = |first: &str| ask.revision.as_str() >= first;
    match question.method {
        "roots/list" => Some(vec!["roots"]),
        "elicitation/create" if question.params["mode"] == "url" => {
            since("2025-11-25").then(|| vec!["elicitation", "url"])
        }
        "elicitation/create" => since("2025-06-18").then(|| vec!["elicitation"]),
        _ if question.params["tools"].is_array() => {
            since("2025-11-25").then(|| vec!["sampling", "tools"])
        }
        _ => Some(vec!["sampling"]),
    }
}

fn declares(fake: &Fake, ask: &Ask, path: &[&str]) -> bool {
    let declared = if ask.modern() {
        ask.params["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
    } else {
        fake.state.lock().unwrap().client.clone()
    };
    let found = path.iter().try_fold(&declared, |at, name| at.get(name)).is_some();
    // A form needs no mode of its own, unless modes are named and it is not among them.
    let elicitation = &declared["elicitation"];
    let forms = elicitation.get("form").is_some() || elicitation.get("url").is_none();
    found && (path != ["elicitation"] || forms)
}

/// Whether it may ask this; otherwise the call is answered here.
fn may_ask(fake: &Fake, ask: &Ask, question: &Question) -> bool {
    let Some(path) = needs(ask, question) else {
        refuse(fake, ask, &format!("{} has no such question", ask.revision));
        return false;
    };
    if ask.arg("force") == &json!(true) || declares(fake, ask, &path) {
        return true;
    }
    let name = path.join(".");
    if ask.modern() {
        let mut needed = json!({});
        for step in path.iter().rev() {
            needed = json!({ *step: needed });
        }
        let data = json!({ "requiredCapabilities": needed });
        fake.error(ask, -32021, &format!("{name} is needed"), data);
    } else {
        refuse(fake, ask, &format!("{name} was not declared"));
    }
    false
}

/// That it cannot ask, in the way of the method.
fn refuse(fake: &Fake, ask: &Ask, why: &str) {
    if ask.method == "tools/call" {
        fake.result(ask, json!({ "content": [block(why)], "isError": true }));
    } else {
        fake.error(ask, -32603, why, Value::Null);
    }
}

/// Asks round after round, then lets `done` answer with what was said.
fn run(
    fake: &Arc<Fake>,
    ask: &Ask,
    rounds: &[Vec<Question>],
    done: impl FnOnce(&Fake, &Ask, Value),
) {
    for question in rounds.iter().flatten() {
        if !may_ask(fake, ask, question) {
            return;
        }
    }
    let answers =
        if ask.modern() { by_results(fake, ask, rounds) } else { by_requests(fake, ask, rounds) };
    if let Some(answers) = answers {
        done(fake, ask, Value::Object(answers));
    }
}

// ---- handshake revisions ----

fn by_requests(fake: &Fake, ask: &Ask, rounds: &[Vec<Question>]) -> Option<Map<String, Value>> {
    let mut answers = Map::new();
    for round in rounds {
        answers.extend(put(fake, ask, round, |fake| fake.is_cancelled(ask))?);
        for question in round.iter().filter(|one| one.params["mode"] == "url") {
            if ask.arg("complete") == &json!(true) && answers[&question.key]["action"] == "accept" {
                let id = &question.params["elicitationId"];
                fake.notify("notifications/elicitation/complete", json!({ "elicitationId": id }));
            }
        }
    }
    Some(answers)
}

/// Puts questions as requests, all at once, and waits for all answers; `None` once `stopped`, after
/// withdrawing what is open.
fn put(
    fake: &Fake,
    ask: &Ask,
    round: &[Question],
    stopped: impl Fn(&Fake) -> bool,
) -> Option<Map<String, Value>> {
    let open: Vec<(String, Value, Receiver<Value>)> = round
        .iter()
        .map(|question| {
            let (id, answer) = fake.ask_with_id(question.method, question.params.clone());
            (question.key.clone(), id, answer)
        })
        .collect();
    let mut answers = Map::new();
    let deadline = Instant::now() + ANSWER_LIMIT;
    for (key, _, answer) in &open {
        let answer = loop {
            match answer.recv_timeout(LOOK) {
                Ok(answer) => break answer,
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline && !stopped(fake) => {}
                Err(_) => {
                    for (_, id, _) in open.iter().filter(|(key, ..)| !answers.contains_key(key)) {
                        let params = json!({ "requestId": id, "reason": "no longer wanted" });
                        fake.notify("notifications/cancelled", params);
                    }
                    fake.out.ledger(&format!("stopped {}", ask.id));
                    return None;
                }
            }
        };
        answers.insert(key.clone(), reply(&answer));
    }
    Some(answers)
}

fn reply(answer: &Value) -> Value {
    answer.get("result").cloned().unwrap_or_else(|| json!({ "error": answer["error"] }))
}

/// One form as a request that belongs to a task (2025-11-25); its reply, or `None` once stopped.
pub fn put_form(
    fake: &Fake,
    ask: &Ask,
    task: &str,
    stopped: impl Fn(&Fake) -> bool,
) -> Option<Value> {
    let mut question = question(ask, "form");
    question.params["_meta"] =
        json!({ "io.modelcontextprotocol/related-task": { "taskId": task } });
    put(fake, ask, &[question], stopped)?.remove("form")
}

/// One form as an entry of `inputRequests`.
pub fn input_form(ask: &Ask) -> Value {
    as_input(&question(ask, "form"))
}

// ---- 2026-07-28 ----

fn as_input(question: &Question) -> Value {
    let mut input = json!({ "method": question.method });
    if !question.params.is_null() {
        input["params"] = question.params.clone();
    }
    input
}

/// The request without what differs from one attempt to the next.
fn salient(ask: &Ask) -> Value {
    let mut params = ask.params.clone();
    if let Some(params) = params.as_object_mut() {
        for key in ["_meta", "inputResponses", "requestState"] {
            params.remove(key);
        }
    }
    json!([ask.method, params])
}

fn by_results(fake: &Fake, ask: &Ask, rounds: &[Vec<Question>]) -> Option<Map<String, Value>> {
    let stateless = ask.arg("stateless") == &json!(true);
    let (mut round, mut answers) = (0, Map::new());
    let mut known = stateless;
    if let Some(state) = ask.params.get("requestState") {
        let issued = fake.state.lock().unwrap().states.remove(state.as_str().unwrap_or_default());
        match issued {
            Some(issued) if issued.request == salient(ask) => {
                (round, answers, known) = (issued.round, issued.answers, true);
            }
            Some(_) => {
                fake.error(ask, -32602, "requestState of another request", Value::Null);
                return None;
            }
            None => {
                fake.error(ask, -32602, "unknown requestState", Value::Null);
                return None;
            }
        }
    }
    // Answers to what was never asked count for nothing.
    if known && let Some(came) = ask.params["inputResponses"].as_object() {
        for question in &rounds[round] {
            if let Some(reply) = came.get(&question.key) {
                answers.insert(question.key.clone(), reply.clone());
            }
        }
    }
    let missing = |round: usize, answers: &Map<String, Value>| -> Map<String, Value> {
        let open = rounds[round].iter().filter(|question| !answers.contains_key(&question.key));
        open.map(|question| (question.key.clone(), as_input(question))).collect()
    };
    let mut open = missing(round, &answers);
    while open.is_empty() {
        round += 1;
        if round == rounds.len() {
            return Some(answers);
        }
        open = missing(round, &answers);
    }
    let mut result = json!({ "resultType": "input_required", "inputRequests": open });
    if !stateless {
        let mut state = fake.state.lock().unwrap();
        state.next_id += 1;
        // Text that only survives where it is carried as it is.
        let text = format!("state {} \u{e9}\u{1}\"\\/+= {{}}", state.next_id);
        state.states.insert(text.clone(), Issued { round, answers, request: salient(ask) });
        result["requestState"] = json!(text);
    }
    fake.result(ask, result);
    None
}

// ---- -32042 ----

/// Refuses the first call with what is to be done in a browser; the next one is let through.
fn url_required(fake: &Fake, ask: &Ask) {
    let question = question(ask, "url");
    let id = elicitation_id(ask);
    if fake.state.lock().unwrap().visited.contains(&id) {
        return fake.result(ask, told(ask, &json!({ "url": { "action": "accept" } })));
    }
    if !may_ask(fake, ask, &question) {
        return;
    }
    fake.state.lock().unwrap().visited.insert(id.clone());
    let data = json!({ "elicitations": [question.params] });
    fake.error(ask, -32042, "This needs a sign-in first.", data);
    if ask.arg("complete") == &json!(true) {
        fake.notify("notifications/elicitation/complete", json!({ "elicitationId": id }));
    }
}
