//! A message: what a frame says once it is parsed.

use std::borrow::Cow;
use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

use super::{Id, RawJson, RpcError};

/// A method name. Known ones are static, so that comparing and cloning them costs nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Method(Cow<'static, str>);

/// Method names that some part of mcpx mentions.
const KNOWN: &[&str] = &[
    "initialize",
    "notifications/initialized",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "tasks/list",
    "tasks/result",
    "elicitation/create",
    "sampling/createMessage",
    "roots/list",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
];

impl Method {
    /// A method by name.
    pub fn new(name: &str) -> Self {
        match KNOWN.iter().find(|known| **known == name) {
            Some(known) => Self(Cow::Borrowed(known)),
            None => Self(Cow::Owned(name.to_owned())),
        }
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
    put_member(out, b"method", RawJson::write(method.as_str()).as_bytes());
    if let Some(params) = params {
        put_member(out, b"params", params.as_bytes());
    }
}

impl Request {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Bytes {
        let mut out = start(self.params.as_ref().map_or(0, RawJson::len));
        put_member(&mut out, b"id", self.id.as_raw().as_bytes());
        put_method(&mut out, &self.method, self.params.as_ref());
        out.put_u8(b'}');
        one_line(out.freeze())
    }
}

impl Notification {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Bytes {
        let mut out = start(self.params.as_ref().map_or(0, RawJson::len));
        put_method(&mut out, &self.method, self.params.as_ref());
        out.put_u8(b'}');
        one_line(out.freeze())
    }
}

impl Response {
    /// The frame, on one line, without a line end.
    pub fn to_frame(&self) -> Bytes {
        let mut out = start(self.outcome.as_ref().map_or(0, RawJson::len));
        put_member(&mut out, b"id", self.id.as_ref().map_or("null", Id::as_raw).as_bytes());
        match &self.outcome {
            Ok(result) => put_member(&mut out, b"result", result.as_bytes()),
            Err(error) => put_member(&mut out, b"error", RawJson::write(error).as_bytes()),
        }
        out.put_u8(b'}');
        one_line(out.freeze())
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

/// Payloads that came over HTTP may hold line ends between tokens, which would break a line
/// protocol. Inside strings JSON has none, so a blank in their place changes nothing.
fn one_line(frame: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &frame).is_none() {
        return frame;
    }
    let mut bytes = BytesMut::from(frame);
    for byte in bytes.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    bytes.freeze()
}
