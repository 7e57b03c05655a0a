//! A message: what a frame says once it is parsed.

use std::borrow::Cow;
use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

use super::raw::put_text;
use super::{Id, RawJson, RpcError};
use crate::protocol::framing::line::blank_line_ends;

/// A method name. Known ones are static, so that comparing and cloning them costs nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Method(Cow<'static, str>);

macro_rules! known_methods {
    ($($name:literal)*) => {
        /// The static text of a method name that some part of mcpx mentions.
        fn known(name: &str) -> Option<&'static str> {
            match name { $($name => Some($name),)* _ => None }
        }
    };
}

known_methods! {
    "initialize"
    "notifications/initialized"
    "server/discover"
    "ping"
    "tools/list"
    "tools/call"
    "resources/list"
    "resources/templates/list"
    "resources/read"
    "resources/subscribe"
    "resources/unsubscribe"
    "prompts/list"
    "prompts/get"
    "completion/complete"
    "logging/setLevel"
    "subscriptions/listen"
    "tasks/get"
    "tasks/update"
    "tasks/cancel"
    "tasks/list"
    "tasks/result"
    "elicitation/create"
    "sampling/createMessage"
    "roots/list"
    "notifications/cancelled"
    "notifications/progress"
    "notifications/message"
    "notifications/tools/list_changed"
    "notifications/prompts/list_changed"
    "notifications/resources/list_changed"
    "notifications/resources/updated"
    "notifications/roots/list_changed"
}

impl Method {
    /// A method by name.
    pub fn new(name: &str) -> Self {
        known(name).map_or_else(|| Self(Cow::Owned(name.to_owned())), Self::known)
    }

    /// A method known when this program was written.
    pub const fn known(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A call that wants an answer.
#[derive(Debug, Clone)]
pub struct Request {
    /// As the caller wrote it.
    pub id: Id,
    /// What is asked.
    pub method: Method,
    /// Parameters as they came; `None` where the member is missing.
    pub params: Option<RawJson>,
}

/// A message that wants none.
#[derive(Debug, Clone)]
pub struct Notification {
    /// What is told.
    pub method: Method,
    /// Parameters as they came.
    pub params: Option<RawJson>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// The request's id; `None` where the peer could not read one (`"id":null`).
    pub id: Option<Id>,
    /// Result as it came, or the error.
    pub outcome: Result<RawJson, RpcError>,
}

/// One message.
#[derive(Debug, Clone)]
pub enum Message {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// Is one.
    Response(Response),
}

const HEAD: &[u8] = br#"{"jsonrpc":"2.0""#;

fn start(payload: usize) -> BytesMut {
    // Room for the fixed members, a method and an id of usual length.
    let mut out = BytesMut::with_capacity(payload + 128);
    out.extend_from_slice(HEAD);
    out
}

fn put_member(out: &mut BytesMut, name: &[u8], value: &[u8]) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name);
    out.extend_from_slice(b"\":");
    out.extend_from_slice(value);
}

fn put_method(out: &mut BytesMut, method: &Method, params: Option<&RawJson>) {
    out.extend_from_slice(b",\"method\":");
    put_text(out, method.as_str());
    if let Some(params) = params {
        put_member(out, b"params", params.as_bytes());
    }
}

fn put_error(out: &mut BytesMut, error: &RpcError) {
    put_member(out, b"error", b"{\"code\":");
    out.extend_from_slice(error.code.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":");
    put_text(out, &error.message);
    if let Some(data) = &error.data {
        put_member(out, b"data", data.as_bytes());
    }
    out.put_u8(b'}');
}

impl Request {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Bytes {
        let mut out = start(self.params.as_ref().map_or(0, RawJson::len));
        put_member(&mut out, b"id", self.id.as_raw().as_bytes());
        put_method(&mut out, &self.method, self.params.as_ref());
        finish(out)
    }
}

impl Notification {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Bytes {
        let mut out = start(self.params.as_ref().map_or(0, RawJson::len));
        put_method(&mut out, &self.method, self.params.as_ref());
        finish(out)
    }
}

impl Response {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Bytes {
        let mut out = start(self.outcome.as_ref().map_or(0, RawJson::len));
        put_member(&mut out, b"id", self.id.as_ref().map_or("null", Id::as_raw).as_bytes());
        match &self.outcome {
            Ok(result) => put_member(&mut out, b"result", result.as_bytes()),
            Err(error) => put_error(&mut out, error),
        }
        finish(out)
    }

    /// An error whose request could not be told, without an `id` member: since 2025-11-25 the
    /// schema has the id of an error optional, and never null.
    pub fn to_frame_without_id(error: &RpcError) -> Bytes {
        let mut out = start(0);
        put_error(&mut out, error);
        finish(out)
    }
}

impl Message {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Bytes {
        match self {
            Self::Request(request) => request.to_frame(),
            Self::Notification(notification) => notification.to_frame(),
            Self::Response(response) => response.to_frame(),
        }
    }
}

/// Closes the object. Payloads that came over HTTP may hold line ends between tokens, which would
/// break a line protocol.
fn finish(mut out: BytesMut) -> Bytes {
    out.put_u8(b'}');
    blank_line_ends(&mut out);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::jsonrpc::Code;

    fn raw(text: &'static str) -> RawJson {
        RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap()
    }

    /// F02: escapes stay, line ends between tokens become blanks.
    #[test]
    fn f02_frames_have_one_line() {
        let outcome = Ok(raw("{\r\n\"text\" :\n\"a\\r\\n\"}"));
        let frame = Response { id: Some(Id::number(1)), outcome }.to_frame();
        assert_eq!(frame, r#"{"jsonrpc":"2.0","id":1,"result":{  "text" : "a\r\n"}}"#.as_bytes());
    }

    #[test]
    fn errors_are_written_with_their_data() {
        let error = RpcError::new(Code::InvalidParams, "a \"b\"").with_data(raw(r#"{"x":1e2}"#));
        let frame = Response { id: Some(Id::text("q")), outcome: Err(error.clone()) }.to_frame();
        let expected = r#"{"jsonrpc":"2.0","id":"q","error":{"code":-32602,"message":"a \"b\"","data":{"x":1e2}}}"#;
        assert_eq!(frame, expected.as_bytes());
        let frame = Response::to_frame_without_id(&error);
        assert!(frame.starts_with(br#"{"jsonrpc":"2.0","error":"#));
    }

    #[test]
    fn methods_compare_by_name() {
        assert_eq!(Method::new("tools/call"), Method::known("tools/call"));
        assert_eq!(Method::new("x/\"y\"").as_str(), "x/\"y\"");
        let notification = Notification { method: Method::new("x/\"y\""), params: None };
        assert_eq!(notification.to_frame(), br#"{"jsonrpc":"2.0","method":"x/\"y\""}"#.as_slice());
    }
}
