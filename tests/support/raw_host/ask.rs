//! Asking mcpx and waiting for what it says.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::super::asking;
use super::super::schema::MODERN;
use super::{RawHost, modern_params};

impl RawHost {
    /// Takes the next free id.
    pub fn take_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// The handshake, to its end; returns the result of `initialize`.
    pub async fn initialize(&mut self, revision: &str) -> Value {
        let answer = self.initialize_only(revision).await;
        assert!(answer["result"].is_object(), "initialize failed: {answer}");
        self.notify("notifications/initialized", Value::Null).await;
        answer["result"].clone()
    }

    /// Only the `initialize` request and its answer, whatever that is.
    pub async fn initialize_only(&mut self, revision: &str) -> Value {
        let id = self.take_id();
        let params = asking::opening("raw-host", revision, &self.capabilities);
        self.start(id, "initialize", params).await;
        let answer = self.expect_response(id).await;
        self.era = answer["result"]["protocolVersion"].as_str().map(str::to_owned);
        answer
    }

    /// Speaks 2026-07-28 from here on: requests carry their `_meta`, no handshake.
    pub fn use_modern(&mut self) {
        self.era = Some(MODERN.to_owned());
    }

    /// Params as the era wants them: with the modern `_meta`, or as they are.
    pub fn dress(&self, params: Value) -> Value {
        if self.era.as_deref() == Some(MODERN) {
            modern_params(params, &self.capabilities)
        } else {
            params
        }
    }

    /// Requests of mcpx's that come while something else is waited for are answered by this, and
    /// so are the questions in `input_required` answers to [`Self::request`], which is then made again.
    pub fn answer_with(&mut self, by: impl FnMut(&Value) -> Value + Send + 'static) {
        self.answers.set(by);
    }

    /// One request in the era that the host is in, and its whole answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let mut params = params;
        loop {
            let id = self.take_id();
            self.start(id, method, self.dress(params.clone())).await;
            let answer = self.expect_response(id).await;
            match self.answers.retry(&params, &answer) {
                Some(again) => params = again,
                None => return answer,
            }
        }
    }

    /// One modern request (with `_meta` for 2026-07-28) and its whole answer.
    pub async fn modern(&mut self, method: &str, params: Value) -> Value {
        let id = self.take_id();
        let params = modern_params(params, &self.capabilities);
        self.start(id, method, params).await;
        self.expect_response(id).await
    }

    /// Calls a tool, returns the whole answer.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", asking::call_params(tool, arguments, Value::Null)).await
    }

    /// The tools of all pages.
    pub async fn list_tools(&mut self) -> Vec<Value> {
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

    /// The answer to a request; `1` and `"1"` are different ids.
    pub async fn expect_response(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        let what = format!("an answer to id {id}");
        self.expect(&what, |message| asking::is_answer(message, &id)).await
    }

    /// A notification with this method.
    pub async fn expect_notification(&mut self, method: &str) -> Value {
        self.expect(method, |message| asking::is_notification_of(message, method)).await
    }

    /// A request of mcpx's with this method.
    pub async fn expect_request(&mut self, method: &str) -> Value {
        self.expect(method, |message| asking::is_request_of(message, method)).await
    }

    /// The first message, read already or to come, for which `wanted` holds.
    pub async fn expect(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.inbox.iter().position(&wanted) {
            return self.inbox.remove(index).unwrap();
        }
        let deadline = Instant::now() + self.limit;
        loop {
            match timeout_at(deadline, self.read_message()).await {
                Ok(Some(message)) if wanted(&message) => return message,
                Ok(Some(message)) => match self.answers.answer(&message) {
                    Some(answer) => self.send(&answer).await,
                    None => self.inbox.push_back(message),
                },
                Ok(None) => panic!("mcpx closed; waited for {what}\n{}", self.story()),
                Err(_) => panic!("waited {:?} for {what}\n{}", self.limit, self.story()),
            }
        }
    }

    /// Nothing is in the inbox and nothing comes for that long.
    pub async fn expect_silence(&mut self, millis: u64) {
        assert!(self.inbox.is_empty(), "not silent: {:?}\n{}", self.inbox, self.story());
        if let Ok(Some(message)) = timeout(Duration::from_millis(millis), self.read_message()).await
        {
            panic!("not silent: {message}\n{}", self.story());
        }
    }

    /// No answer to this id is there or comes for that long; other messages may.
    pub async fn expect_no_response(&mut self, id: impl Into<Value>, millis: u64) {
        let id = id.into();
        self.gather(Duration::from_millis(millis)).await;
        let answer = self.inbox.iter().find(|one| one.get("method").is_none() && one["id"] == id);
        assert!(answer.is_none(), "id {id} was answered: {answer:?}\n{}", self.story());
    }

    /// Reads into the inbox for that long.
    pub async fn gather(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while let Ok(Some(message)) = timeout_at(deadline, self.read_message()).await {
            self.inbox.push_back(message);
        }
    }

    /// mcpx closes its side; what comes before goes into the inbox.
    pub async fn expect_closed(&mut self) {
        let deadline = Instant::now() + self.limit;
        loop {
            match timeout_at(deadline, self.read_message()).await {
                Ok(None) => return,
                Ok(Some(message)) => self.inbox.push_back(message),
                Err(_) => panic!("mcpx is still open after {:?}\n{}", self.limit, self.story()),
            }
        }
    }

    /// mcpx stays open for that long; what comes goes into the inbox.
    pub async fn expect_open(&mut self, millis: u64) {
        self.gather(Duration::from_millis(millis)).await;
        assert!(!self.closed, "mcpx closed\n{}", self.story());
    }
}
