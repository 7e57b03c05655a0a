//! Asking mcpx over HTTP and waiting for what it says.

use serde_json::{Value, json};

use super::super::asking::{self, modern_params};
use super::{HttpHost, Response};

impl HttpHost {
    /// The handshake, to its end; returns the result of `initialize`.
    pub async fn initialize(&mut self, revision: &str) -> Value {
        let answer = self.initialize_only(revision).await;
        assert!(answer["result"].is_object(), "initialize failed: {answer}");
        self.notify("notifications/initialized", Value::Null).await;
        answer["result"].clone()
    }

    /// Only the `initialize` request and its answer; a session id in it is kept.
    pub async fn initialize_only(&mut self, revision: &str) -> Value {
        let id = self.take_id();
        let params = asking::opening("raw-http", revision, &self.capabilities);
        let message = asking::request(json!(id), "initialize", params);
        let mut response = self.post(&message).send().await;
        let session = response.header("mcp-session-id").map(str::to_owned);
        let answer = response.answer(id).await;
        self.session = session;
        self.era = answer["result"]["protocolVersion"].as_str().map(str::to_owned);
        answer
    }

    /// The opening of this revision: the handshake, or nothing.
    pub async fn open(&mut self, revision: &str) {
        if revision == super::MODERN {
            self.use_modern();
        } else {
            assert_eq!(self.initialize(revision).await["protocolVersion"], revision);
        }
    }

    /// A request as a message, in the era that the host is in.
    pub fn message(&self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        asking::request(id.into(), method, self.dress(params))
    }

    /// Params as the era wants them: with the modern `_meta`, or as they are.
    pub fn dress(&self, params: Value) -> Value {
        if self.is_modern() { modern_params(params, &self.capabilities) } else { params }
    }

    /// One request; its answer is still to be read.
    pub async fn start(&self, id: impl Into<Value>, method: &str, params: Value) -> Response {
        self.post(&self.message(id, method, params)).send().await
    }

    /// Requests of mcpx's on the stream of [`Self::request`] are answered by this, and so are the
    /// questions in `input_required` answers, after which the request is made again.
    pub fn answer_with(&self, by: impl FnMut(&Value) -> Value + Send + 'static) {
        self.talk.answers.lock().unwrap().set(by);
    }

    /// What was asked so far, answered or not.
    pub fn asked(&self) -> Vec<Value> {
        self.talk.answers.lock().unwrap().asked.clone()
    }

    /// One request and its whole answer; what comes before it on the stream goes to the inbox.
    pub async fn request(&self, method: &str, params: Value) -> Value {
        let mut params = params;
        loop {
            let id = self.take_id();
            let mut response = self.start(id, method, params.clone()).await;
            let answer = self.finish(&mut response, id).await;
            let again = self.talk.answers.lock().unwrap().retry(&params, &answer);
            match again {
                Some(again) => params = again,
                None => return answer,
            }
        }
    }

    /// The answer to a request; requests of mcpx's that come before it are answered, see
    /// [`Self::answer_with`].
    pub async fn finish(&self, response: &mut Response, id: impl Into<Value>) -> Value {
        let id = id.into();
        let what = format!("an answer to id {id}");
        loop {
            let wanted =
                |message: &Value| asking::is_answer(message, &id) || asking::is_request(message);
            let message = response.expect(&what, wanted).await;
            if asking::is_answer(&message, &id) {
                return message;
            }
            let answer = self.talk.answers.lock().unwrap().answer(&message);
            match answer {
                Some(answer) => self.post(&answer).send().await.expect_accepted().await,
                None => self.talk.inbox.lock().unwrap().push_back(message),
            }
        }
    }

    /// Calls a tool, returns the whole answer.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", asking::call_params(tool, arguments, Value::Null)).await
    }

    /// Begins a `tools/call` whose answer is still to be read.
    pub async fn start_call(&self, id: impl Into<Value>, tool: &str, arguments: Value) -> Response {
        self.start(id, "tools/call", asking::call_params(tool, arguments, Value::Null)).await
    }

    /// As [`Self::start_call`], with a progress token.
    pub async fn start_call_with_progress(
        &self,
        id: impl Into<Value>,
        tool: &str,
        arguments: Value,
        token: impl Into<Value>,
    ) -> Response {
        self.start(id, "tools/call", asking::call_params(tool, arguments, token.into())).await
    }

    /// The tools of all pages.
    pub async fn list_tools(&self) -> Vec<Value> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let answer = self.request("tools/list", params).await;
            match asking::take_page(&mut tools, &answer) {
                Some(next) => params = next,
                None => return tools,
            }
        }
    }

    /// Sends a notification, which is taken with 202 and no body.
    pub async fn notify(&self, method: &str, params: Value) {
        let message = asking::notification(method, self.dress(params));
        self.post(&message).send().await.expect_accepted().await;
    }

    /// Cancels a request of this host's, as the handshake revisions do.
    pub async fn cancel(&self, id: impl Into<Value>) {
        self.notify("notifications/cancelled", json!({ "requestId": id.into() })).await;
    }

    /// Answers a request of mcpx's with a result.
    pub async fn answer(&self, request: &Value, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.post(&message).send().await.expect_accepted().await;
    }

    /// What was read while waiting for something else, oldest first; they are taken out.
    pub fn inbox(&self) -> Vec<Value> {
        self.talk.inbox.lock().unwrap().drain(..).collect()
    }
}

impl Response {
    /// 202 without a body: what notifications and answers get.
    pub async fn expect_accepted(mut self) {
        let body = self.text().await;
        assert_eq!((self.status, body.as_str()), (202, ""), "{}", self.talk.story());
    }

    /// The answer to a request; what comes before it goes to the host's inbox.
    pub async fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        let what = format!("an answer to id {id}");
        self.expect(&what, |message| asking::is_answer(message, &id)).await
    }

    /// The next notification with this method.
    pub async fn expect_notification(&mut self, method: &str) -> Value {
        self.expect(method, |message| asking::is_notification_of(message, method)).await
    }

    /// The next request of mcpx's with this method.
    pub async fn expect_request(&mut self, method: &str) -> Value {
        self.expect(method, |message| asking::is_request_of(message, method)).await
    }

    /// The first message for which `wanted` holds; those before it go to the host's inbox.
    pub async fn expect(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        while let Some(frame) = self.next_frame().await {
            let messages = match frame {
                Value::Array(batch) => batch,
                one => vec![one],
            };
            let mut found = None;
            for message in messages {
                if found.is_none() && wanted(&message) {
                    found = Some(message);
                } else {
                    self.talk.inbox.lock().unwrap().push_back(message);
                }
            }
            if let Some(found) = found {
                return found;
            }
        }
        let ended = if self.broke_off() { "broke off" } else { "ended" };
        panic!("the answer ({}) {ended}; waited for {what}\n{}", self.status, self.talk.story());
    }
}
