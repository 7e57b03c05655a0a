//! Every JSON-RPC error code that mcpx sends or understands, once.

use serde::{Deserialize, Serialize};

use super::RawJson;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $status:literal;)*) => {
        /// A code from the table; [`Code::number`] is its place on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// All of them, for the sweep of O-08.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The number on the wire.
            pub const fn number(self) -> i64 {
                match self { $(Self::$name => $number,)* }
            }

            /// The HTTP status that carries it towards a modern host (H-12).
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// The code with this number, if it is one of ours.
            pub const fn from_number(number: i64) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }
        }
    };
}

codes! {
    /// The bytes are not JSON.
    ParseError = -32700, 400;
    /// JSON, but no message the revision allows.
    InvalidRequest = -32600, 400;
    /// No such method (for this peer).
    MethodNotFound = -32601, 404;
    /// The method's parameters are missing or wrong.
    InvalidParams = -32602, 400;
    /// mcpx or an upstream could not do it; `data.reason` says why.
    InternalError = -32603, 200;
    /// 2026-07-28: headers contradict the body. HTTP only (H-31).
    HeaderMismatch = -32020, 400;
    /// 2026-07-28: the request lacks a capability that its answer needs; `data` names it.
    MissingCapability = -32021, 400;
    /// 2026-07-28: the revision is not served; `data.supported` lists those that are (H-11).
    UnsupportedRevision = -32022, 400;
    /// Legacy revisions only: no such resource.
    ResourceNotFound = -32002, 200;
}

/// Codes that only the specification may give a meaning to (2026-07-28 base page).
pub const RESERVED_CODES: std::ops::RangeInclusive<i64> = -32099..=-32020;

/// 2025-11-25 only: a URL elicitation has to come first. mcpx never sends it of its own accord, and
/// passes it only where it has a meaning.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// An error response's body, ours or a peer's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcError {
    /// The number; a peer's may be any.
    pub code: i64,
    /// For people and models: what failed, why, what to do.
    #[serde(default)]
    pub message: String,
    /// Anything more, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
    /// It is a peer's, and mcpx only passes it on.
    #[serde(skip)]
    pub relayed: bool,
}

impl RpcError {
    /// An error of ours without data.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: code.number(), message: message.into(), data: None, relayed: false }
    }

    /// Reads what a peer sent as an error. Whatever it is, it ends the call: what does not fit the
    /// schema is carried as text, under the code for internal errors where it has no usable one.
    pub fn read(raw: &RawJson) -> Self {
        let Ok(members) = super::Object::read(raw) else {
            let message = raw.text().unwrap_or_else(|| raw.as_str().to_owned());
            return Self { relayed: true, ..Self::new(Code::InternalError, message) };
        };
        let code = members.get("code").and_then(whole_number);
        let message = members
            .get("message")
            .map(|message| message.text().unwrap_or_else(|| message.as_str().to_owned()));
        Self {
            code: code.unwrap_or(Code::InternalError.number()),
            message: message.unwrap_or_default(),
            data: members.get("data").cloned(),
            relayed: true,
        }
    }

    /// The HTTP status that carries it to a modern host (H-12): the status speaks of what mcpx
    /// refuses. What an upstream refuses is an answer like any other, but for the two refusals that
    /// have their status whoever makes them (2026-07-28 Streamable HTTP page, "Protocol Version
    /// Header", and "Missing Required Client Capability" of the base page).
    pub const fn http_status(&self) -> u16 {
        match Code::from_number(self.code) {
            Some(code @ (Code::MethodNotFound | Code::MissingCapability)) => code.http_status(),
            Some(code) if !self.relayed => code.http_status(),
            _ => 200,
        }
    }

    /// The same with data.
    #[must_use]
    pub fn with_data(mut self, data: RawJson) -> Self {
        self.data = Some(data);
        self
    }
}

/// An integer by value, also where it is written with a fraction of zero.
fn whole_number(raw: &RawJson) -> Option<i64> {
    let exact = raw.read::<i64>().ok();
    exact.or_else(|| {
        let value = raw.read::<f64>().ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "checked to be small and whole")]
        let whole = (value.fract() == 0.0 && value.abs() < 1e15).then_some(value as i64);
        whole
    })
}
