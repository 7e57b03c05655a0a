//! A message: what a frame says once it is parsed.

use std::borrow::Cow;
use std::fmt;

use bytes::{BufMut, BytesMut};

use super::frame::{APART, Frame, Writer};
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

/// What stands before a payload, and room for the fixed members, a method and an id of usual length.
fn start(payload: Option<&RawJson>) -> Writer {
    let payload = payload.map_or(0, RawJson::len);
    let mut out = Writer::with_capacity(128 + if payload < APART { payload } else { 0 });
    out.open.extend_from_slice(HEAD);
    out
}

fn put_name(out: &mut Writer, name: &[u8]) {
    out.open.extend_from_slice(b",\"");
    out.open.extend_from_slice(name);
    out.open.extend_from_slice(b"\":");
}

fn put_member(out: &mut Writer, name: &[u8], value: &RawJson) {
    put_name(out, name);
    // Payloads that came over HTTP may hold line ends between tokens, which would break a line protocol.
    for piece in value.pieces() {
        let from = out.open.len();
        if piece.len() < APART {
            out.put(piece);
            blank_line_ends(out.open.get_mut(from..).unwrap_or_default());
        } else if memchr::memchr2(b'\n', b'\r', piece).is_none() {
            out.put(piece);
        } else {
            // It is somebody else's memory.
            let mut line = BytesMut::from(&piece[..]);
            blank_line_ends(&mut line);
            out.put(&line.freeze());
        }
    }
}

fn put_id(out: &mut Writer, id: Option<&Id>) {
    put_name(out, b"id");
    out.open.extend_from_slice(id.map_or("null", Id::as_raw).as_bytes());
}

fn put_method(out: &mut Writer, method: &Method, params: Option<&RawJson>) {
    out.open.extend_from_slice(b",\"method\":");
    put_text(&mut out.open, method.as_str());
    if let Some(params) = params {
        put_member(out, b"params", params);
    }
}

fn put_error(out: &mut Writer, error: &RpcError) {
    out.open.extend_from_slice(b",\"error\":{\"code\":");
    out.open.extend_from_slice(error.code.to_string().as_bytes());
    out.open.extend_from_slice(b",\"message\":");
    put_text(&mut out.open, &error.message);
    if let Some(data) = &error.data {
        put_member(out, b"data", data);
    }
    out.open.put_u8(b'}');
}

impl Request {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Frame {
        let mut out = start(self.params.as_ref());
        put_id(&mut out, Some(&self.id));
        put_method(&mut out, &self.method, self.params.as_ref());
        finish(out)
    }
}

impl Notification {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Frame {
        let mut out = start(self.params.as_ref());
        put_method(&mut out, &self.method, self.params.as_ref());
        finish(out)
    }
}

impl Response {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Frame {
        let mut out = start(self.outcome.as_ref().ok());
        put_id(&mut out, self.id.as_ref());
        match &self.outcome {
            Ok(result) => put_member(&mut out, b"result", result),
            Err(error) => put_error(&mut out, error),
        }
        finish(out)
    }

    /// An error whose request could not be told, without an `id` member: since 2025-11-25 the
    /// schema has the id of an error optional, and never null.
    pub fn to_frame_without_id(error: &RpcError) -> Frame {
        let mut out = start(None);
        put_error(&mut out, error);
        finish(out)
    }
}

impl Message {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Frame {
        match self {
            Self::Request(request) => request.to_frame(),
            Self::Notification(notification) => notification.to_frame(),
            Self::Response(response) => response.to_frame(),
        }
    }
}

/// Closes the object.
fn finish(mut out: Writer) -> Frame {
    out.open.put_u8(b'}');
    out.finish()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::protocol::jsonrpc::{Code, Object};

    fn raw(text: &'static str) -> RawJson {
        RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap()
    }

    /// F02: escapes stay, line ends between tokens become blanks.
    #[test]
    fn f02_frames_have_one_line() {
        let outcome = Ok(raw("{\r\n\"text\" :\n\"a\\r\\n\"}"));
        let frame = Response { id: Some(Id::number(1)), outcome }.to_frame().to_bytes();
        assert_eq!(frame, r#"{"jsonrpc":"2.0","id":1,"result":{  "text" : "a\r\n"}}"#.as_bytes());
    }

    /// What is long passes as it came, in the memory that it came in, whatever is set beside it.
    #[test]
    fn a_long_payload_is_not_copied() {
        let long = format!("\"{}\"", "x".repeat(APART));
        let given = RawJson::parse(Bytes::from(format!("{{\"a\":1,\"long\":{long}}}"))).unwrap();
        let mut params = Object::read(&given).unwrap();
        params.set("b", raw("[\n2]"));
        let params = params.write();
        let method = Method::known("tools/call");
        let frame = Request { id: Id::number(1), method, params: Some(params.clone()) }.to_frame();
        let [_, piece, _] = frame.pieces() else { panic!("{frame:?}") };
        let text = given.as_bytes().as_ptr_range();
        assert!(text.contains(&piece.as_ptr()), "it was copied");
        let expected = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"a\":1,\"long\":{long},\"b\":[ 2]}}}}"
        );
        assert_eq!(frame.to_bytes(), expected);
        assert_eq!(params.member("b").unwrap().as_str(), "[\n2]");
        assert_eq!(params.len(), params.as_str().len());
        // With line ends in it, it is one line and somebody else's memory is left alone.
        let spread = RawJson::parse(Bytes::from(format!("[\r\n{long}]"))).unwrap();
        let frame = Response { id: None, outcome: Ok(spread.clone()) }.to_frame().to_bytes();
        assert!(!frame.contains(&b'\n') && !frame.contains(&b'\r'));
        assert!(spread.as_str().starts_with("[\r\n"));
    }

    #[test]
    fn errors_are_written_with_their_data() {
        let error = RpcError::new(Code::InvalidParams, "a \"b\"").with_data(raw(r#"{"x":1e2}"#));
        let frame = Response { id: Some(Id::text("q")), outcome: Err(error.clone()) };
        let frame = frame.to_frame().to_bytes();
        let expected = r#"{"jsonrpc":"2.0","id":"q","error":{"code":-32602,"message":"a \"b\"","data":{"x":1e2}}}"#;
        assert_eq!(frame, expected.as_bytes());
        let frame = Response::to_frame_without_id(&error).to_bytes();
        assert!(frame.starts_with(br#"{"jsonrpc":"2.0","error":"#));
    }

    #[test]
    fn methods_compare_by_name() {
        assert_eq!(Method::new("tools/call"), Method::known("tools/call"));
        assert_eq!(Method::new("x/\"y\"").as_str(), "x/\"y\"");
        let notification = Notification { method: Method::new("x/\"y\""), params: None };
        assert_eq!(
            notification.to_frame().to_bytes(),
            br#"{"jsonrpc":"2.0","method":"x/\"y\""}"#.as_slice()
        );
    }
}
