//! What hosts of bytes have in common, whatever carries their bytes: how messages of each era look,
//! which message is waited for, and how questions are answered.

use serde_json::{Map, Value, json};

use super::schema::MODERN;

/// Answers a question: given its `method` and `params` (and `id` or `key`), says the result. An object
/// with the one member `error` is an error; null leaves the question to the test.
pub type Answerer = Box<dyn FnMut(&Value) -> Value + Send>;

/// The questions that a host met, and who answers them.
#[derive(Default)]
pub struct Answers {
    by: Option<Answerer>,
    /// Everything that was asked so far, answered or not.
    pub asked: Vec<Value>,
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Answers").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Answers {
    /// Questions are answered by this from here on.
    pub fn set(&mut self, by: impl FnMut(&Value) -> Value + Send + 'static) {
        self.by = Some(Box::new(by));
    }

    /// The answer to a message, if it is a request that is to be answered.
    pub fn answer(&mut self, message: &Value) -> Option<Value> {
        if !is_request(message) {
            return None;
        }
        let id = message["id"].clone();
        Some(match self.say(message)? {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        })
    }

    fn say(&mut self, question: &Value) -> Option<Result<Value, Value>> {
        let by = self.by.as_mut()?;
        self.asked.push(question.clone());
        let said = by(question);
        match said.as_object().map(Map::len) {
            None => None,
            Some(1) if said["error"]["code"].is_number() => Some(Err(said["error"].clone())),
            _ => Some(Ok(said)),
        }
    }

    /// The parameters of the next attempt after an `input_required` answer, where every question in it
    /// is answered; `None` for any other answer.
    pub fn retry(&mut self, params: &Value, answer: &Value) -> Option<Value> {
        let result = &answer["result"];
        if self.by.is_none() || result["resultType"] != "input_required" {
            return None;
        }
        let mut responses = Map::new();
        for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
            let mut question = question.clone();
            question["key"] = json!(key);
            responses.insert(key.clone(), self.say(&question)?.ok()?);
        }
        Some(with_responses(params, result, Value::Object(responses)))
    }
}

/// The parameters of a request that is made again with answers, and with the state that came.
pub fn with_responses(params: &Value, result: &Value, responses: Value) -> Value {
    let mut params = if params.is_object() { params.clone() } else { json!({}) };
    let members = params.as_object_mut().unwrap();
    members.insert("inputResponses".to_owned(), responses);
    members.remove("requestState");
    if let Some(state) = result.get("requestState") {
        members.insert("requestState".to_owned(), state.clone());
    }
    params
}

/// An answer to a form: accepted, with this content.
pub fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// A request with the parameters of an era; none where they are null and need not be there.
pub fn request(id: Value, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    if !params.is_null() {
        message["params"] = params;
    }
    message
}

/// A notification.
pub fn notification(method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if !params.is_null() {
        message["params"] = params;
    }
    message
}

/// The parameters of `initialize`.
pub fn opening(name: &str, revision: &str, capabilities: &Value) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": { "name": name, "version": "1" },
    })
}

/// Params with the `_meta` that every 2026-07-28 request carries; keys in `_meta` stay.
pub fn modern_params(params: Value, capabilities: &Value) -> Value {
    let mut params = if params.is_object() { params } else { json!({}) };
    for (key, value) in [
        ("protocolVersion", json!(MODERN)),
        ("clientInfo", json!({ "name": "raw-host", "version": "1" })),
        ("clientCapabilities", capabilities.clone()),
    ] {
        let key = format!("io.modelcontextprotocol/{key}");
        if params["_meta"].get(&key).is_none() {
            params["_meta"][key] = value;
        }
    }
    params
}

/// The parameters of a `tools/call`; a progress token where it is not null.
pub fn call_params(tool: &str, arguments: Value, token: Value) -> Value {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if !token.is_null() {
        params["_meta"] = json!({ "progressToken": token });
    }
    params
}

/// Adds one page of tools; the parameters for the next one, if there is one.
pub fn take_page(tools: &mut Vec<Value>, answer: &Value) -> Option<Value> {
    let page = answer["result"]["tools"].as_array();
    tools.extend(page.unwrap_or_else(|| panic!("no tools: {answer}")).iter().cloned());
    let cursor = answer["result"]["nextCursor"].as_str()?;
    Some(json!({ "cursor": cursor }))
}

/// An answer to the request with this id; `1` and `"1"` are different ids.
pub fn is_answer(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message["id"] == *id
}

/// Any request.
pub fn is_request(message: &Value) -> bool {
    message["method"].is_string() && message.get("id").is_some()
}

/// A request with this method.
pub fn is_request_of(message: &Value, method: &str) -> bool {
    is_request(message) && message["method"] == method
}

/// A notification with this method.
pub fn is_notification_of(message: &Value, method: &str) -> bool {
    message["method"] == method && message.get("id").is_none()
}
