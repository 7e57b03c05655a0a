//! What a POST holds, and what is refused before any session hears of it.
//!
//! One endpoint serves both eras (H-02). A request with the modern envelope is whole in itself; an
//! `initialize` without one opens a session; anything else is for the session that its header names.
//! A body that is refused as a whole has a status that says so and a JSON-RPC error (H-12, product.md
//! 8).

use std::cmp::Ordering;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::headers::{PROTOCOL_VERSION, check_request, mismatch};
use crate::protocol::edge;
use crate::protocol::jsonrpc::{
    Code, Frame, Id, Incoming, Malformed, Message, Notification, RawJson, Request, Response,
    RpcError, parse_noting,
};
use crate::protocol::revision::Revision;

/// What a POST holds.
#[derive(Debug)]
pub enum Posted {
    /// A request of the modern era, checked against its headers.
    Modern(Request),
    /// A notification of the modern era: that era defines none over HTTP (2026-07-28 Streamable HTTP page,
    /// the note in "Sending Messages"), so it is of use to nobody but a server that is exposed alone.
    ModernNote(Notification),
    /// An `initialize` of the legacy era.
    Opening(Request),
    /// Anything else of that era.
    Legacy(Incoming),
}

/// An answer that is made before any session hears of the request.
#[derive(Debug)]
pub struct Refusal {
    /// Its status.
    pub status: StatusCode,
    /// A JSON-RPC error response.
    pub body: Frame,
}

impl Refusal {
    /// `error` with a status of its own, to the request with this id where there is one. `revision`
    /// decides how an error without an id is written.
    pub fn new(status: StatusCode, revision: Revision, id: Option<Id>, error: &RpcError) -> Self {
        let body = if id.is_none() && revision.leaves_out_unread_ids() {
            Response::to_frame_without_id(error)
        } else {
            Response { id, outcome: Err(error.clone()) }.to_frame()
        };
        Self { status, body }
    }

    /// No session is opened beyond `http.max_sessions` (H-10; product.md 7).
    pub fn too_many_sessions(revision: Revision, id: Option<Id>, most: usize) -> Self {
        let data = serde_json::json!({
            "reason": "busy", "setting": "http.max_sessions", "value": most.to_string(),
        });
        let text = format!(
            "busy: {most} sessions over HTTP are open, which is the limit (setting \
             http.max_sessions); end one, or try again later"
        );
        let error = RpcError::new(Code::InternalError, text).with_data(RawJson::write(&data));
        Self::new(StatusCode::SERVICE_UNAVAILABLE, revision, id, &error)
    }

    fn modern(id: Option<Id>, error: &RpcError) -> Self {
        let status = StatusCode::from_u16(error.http_status());
        Self::new(status.unwrap_or(StatusCode::BAD_REQUEST), Revision::NEWEST, id, error)
    }

    fn bad(said: &Said, id: Option<Id>, error: &RpcError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, said.or_headerless(), id, error)
    }
}

/// What the header `MCP-Protocol-Version` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It is not there.
    Nothing,
    /// A revision that mcpx speaks.
    Revision(Revision),
    /// Something else.
    Unknown(String),
}

impl Said {
    /// Reads the header.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut all = headers.get_all(PROTOCOL_VERSION).iter();
        let Some(first) = all.next() else { return Self::Nothing };
        let text = String::from_utf8_lossy(first.as_bytes());
        let text = text.trim_matches([' ', '\t']);
        match Revision::parse(text) {
            Some(revision) if all.next().is_none() => Self::Revision(revision),
            _ => Self::Unknown(text.to_owned()),
        }
    }

    /// The revision it names; without it, or with one that is none, the one of H-27.
    pub fn or_headerless(&self) -> Revision {
        match self {
            Self::Revision(revision) => *revision,
            Self::Nothing | Self::Unknown(_) => Revision::HEADERLESS,
        }
    }

    /// Whether the header is of the modern era.
    pub fn is_modern(&self) -> bool {
        matches!(self, Self::Revision(revision) if revision.is_modern())
    }

    /// What a legacy request may say: nothing, or a revision of that era; within a session the one
    /// that was agreed (Transports pages since 2025-06-18, "Protocol Version Header").
    pub fn check_legacy(&self, agreed: Option<Revision>) -> Result<(), RpcError> {
        let text = match (self, agreed) {
            (Self::Nothing, _) => return Ok(()),
            (Self::Revision(said), Some(agreed)) if *said == agreed => return Ok(()),
            (Self::Revision(said), None) if !said.is_modern() => return Ok(()),
            (Self::Revision(said), Some(agreed)) => format!(
                "the header MCP-Protocol-Version says {said}, but this session agreed on {agreed}"
            ),
            (Self::Revision(said), None) => {
                format!("a message of protocol revision {said} carries its own `_meta`")
            }
            (Self::Unknown(text), _) => format!(
                "the header MCP-Protocol-Version says {text:?}, which is not served; served are {}",
                edge::supported().join(", ")
            ),
        };
        Err(RpcError::new(Code::InvalidRequest, text))
    }
}

/// Reads a POST's body in the light of its headers; and whether bad bytes in its text were replaced
/// (F09).
pub fn read(headers: &HeaderMap, body: &Bytes) -> (Result<Posted, Refusal>, bool) {
    let (incoming, mended) = parse_noting(body);
    (sort(headers, body, incoming), mended)
}

fn sort(
    headers: &HeaderMap,
    body: &Bytes,
    incoming: Result<Incoming, Malformed>,
) -> Result<Posted, Refusal> {
    let said = Said::of(headers);
    let incoming = incoming
        .map_err(|malformed| Refusal::bad(&said, malformed.id_in(body), &malformed.error()))?;
    match incoming {
        Incoming::One(Message::Request(request)) => read_request(headers, &said, request),
        Incoming::One(Message::Notification(notification)) => read_note(&said, notification),
        Incoming::One(Message::Response(response)) => {
            if said.is_modern() {
                let text = "a host of this protocol revision sends no responses";
                return Err(Refusal::modern(None, &RpcError::new(Code::InvalidRequest, text)));
            }
            legacy(&said, None, Incoming::One(Message::Response(response)))
        }
        Incoming::Batch(parts) => {
            if said.is_modern() || parts.iter().any(is_modern) {
                let revision = Revision::NEWEST;
                let text = format!("protocol revision {revision} has no batches; send one by one");
                return Err(Refusal::modern(None, &RpcError::new(Code::InvalidRequest, text)));
            }
            legacy(&said, None, Incoming::Batch(parts))
        }
    }
}

fn read_request(headers: &HeaderMap, said: &Said, request: Request) -> Result<Posted, Refusal> {
    let (envelope, params) = (edge::read_envelope(request.params.as_ref()), &request.params);
    let refused = |error: &RpcError| Refusal::modern(Some(request.id.clone()), error);
    // Compared first: what else an envelope of another revision lacks is not ours to say.
    if let Some(written) = edge::envelope_revision(params.as_ref()) {
        check_version(said, &written).map_err(|error| refused(&error))?;
    }
    match envelope {
        Err(error) => Err(refused(&error)),
        Ok(Some(envelope)) => {
            let method = request.method.as_str();
            check_request(headers, envelope.revision, method, params.as_ref())
                .map_err(|error| refused(&error))?;
            Ok(Posted::Modern(request))
        }
        // H-05, H-08: whatever else it says, it asks for a handshake and gets one.
        Ok(None) if request.method.as_str() == "initialize" => Ok(Posted::Opening(request)),
        Ok(None) if said.is_modern() => Err(refused(&edge::lacks_envelope())),
        Ok(None) => {
            let id = request.id.clone();
            legacy(said, Some(id), Incoming::One(Message::Request(request)))
        }
    }
}

fn read_note(said: &Said, notification: Notification) -> Result<Posted, Refusal> {
    match edge::read_envelope(notification.params.as_ref()) {
        Err(error) => Err(Refusal::modern(None, &error)),
        Ok(envelope) if envelope.is_some() || said.is_modern() => {
            let Notification { method, params } = notification;
            let lifted = edge::lift_params(params.as_ref()).ok();
            let params = lifted.map(|lifted| lifted.params);
            Ok(Posted::ModernNote(Notification { method, params }))
        }
        Ok(_) => legacy(said, None, Incoming::One(Message::Notification(notification))),
    }
}

/// In no session as yet: which one it is for decides whether its header is right.
fn legacy(said: &Said, id: Option<Id>, incoming: Incoming) -> Result<Posted, Refusal> {
    match said {
        Said::Unknown(_) => match said.check_legacy(None) {
            Err(error) => Err(Refusal::bad(said, id, &error)),
            Ok(()) => Ok(Posted::Legacy(incoming)),
        },
        Said::Nothing | Said::Revision(_) => Ok(Posted::Legacy(incoming)),
    }
}

/// The header must repeat the envelope, whatever revision that names.
fn check_version(said: &Said, written: &str) -> Result<(), RpcError> {
    let header = match said {
        Said::Nothing => {
            return Err(mismatch(format!(
                "the header MCP-Protocol-Version is missing; it must repeat the body's {written:?}"
            )));
        }
        Said::Revision(revision) => revision.as_str(),
        Said::Unknown(text) => text,
    };
    if header == written {
        return Ok(());
    }
    let text = format!("the header MCP-Protocol-Version says {header:?}, the body {written:?}");
    Err(mismatch(text))
}

fn is_modern(part: &Result<Message, Malformed>) -> bool {
    let Ok(Message::Request(Request { params, .. })) = part else { return false };
    !matches!(edge::read_envelope(params.as_ref()), Ok(None))
}

/// An array in a session, or of a host, whose revision has none (F11).
pub fn check_batch(revision: Revision, incoming: &Incoming) -> Result<(), Refusal> {
    if revision.allows_batches() || matches!(incoming, Incoming::One(_)) {
        return Ok(());
    }
    let text = format!("protocol revision {revision} has no batches; send one by one");
    let error = RpcError::new(Code::InvalidRequest, text);
    Err(Refusal::new(StatusCode::BAD_REQUEST, revision, None, &error))
}

/// The id of the one request in a POST, for errors about it.
pub fn id_of(incoming: &Incoming) -> Option<Id> {
    match incoming {
        Incoming::One(Message::Request(request)) => Some(request.id.clone()),
        Incoming::One(_) | Incoming::Batch(_) => None,
    }
}

/// Whether anything in a POST wants an answer.
pub fn asks(incoming: &Incoming) -> bool {
    let is_request = |message: &Message| matches!(message, Message::Request(_));
    match incoming {
        Incoming::One(message) => is_request(message),
        Incoming::Batch(parts) => parts.iter().flatten().any(is_request),
    }
}

/// Which kinds of answer a host takes, by its `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// `application/json`.
    pub json: bool,
    /// `text/event-stream`.
    pub events: bool,
    /// It would rather have events: it names them with a greater weight than JSON, or before it. All
    /// hosts have to name both; JSON first is the usual order, and says nothing.
    pub events_first: bool,
}

impl Accepts {
    /// Reads all `Accept` headers; without one, or with one that cannot be read, everything is taken.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut found = Self { json: false, events: false, events_first: false };
        // Where each kind is named, and with which weight.
        let (mut json_named, mut events_named) = (None, None);
        let values = headers.get_all(http::header::ACCEPT).iter();
        let ranges = values.flat_map(|value| value.to_str().unwrap_or("*/*").split(','));
        let mut count = 0;
        for range in ranges {
            count += 1;
            let (range, weight) = media_range(range);
            let is = |name: &str| weight > 0.0 && range.eq_ignore_ascii_case(name);
            if is("application/json") {
                json_named = Some((weight, count));
            }
            if is("text/event-stream") {
                events_named = Some((weight, count));
            }
            found.json |= is("application/json") || is("application/*") || is("*/*");
            found.events |= is("text/event-stream") || is("text/*") || is("*/*");
        }
        if count == 0 {
            return Self { json: true, events: true, events_first: false };
        }
        found.events_first = match (events_named, json_named) {
            (Some((events, at)), Some((json, json_at))) => match events.total_cmp(&json) {
                Ordering::Greater => true,
                Ordering::Equal => at < json_at,
                Ordering::Less => false,
            },
            (named, _) => named.is_some(),
        };
        found
    }
}

/// A media range without its parameters, and its weight.
fn media_range(range: &str) -> (&str, f32) {
    let mut parts = range.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (name, weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0))
}

/// Whether a body of this kind is read: JSON by any of its names, with any parameters (F21); no name
/// at all too, since the body says what it is.
pub fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(http::header::CONTENT_TYPE) else { return true };
    let Ok(text) = value.to_str() else { return false };
    let (name, _) = media_range(text);
    let name = name.to_ascii_lowercase();
    name.is_empty() || name == "application/json" || name.ends_with("+json") || {
        matches!(name.as_str(), "text/json" | "application/json-rpc" | "application/jsonrequest")
    }
}

#[cfg(test)]
mod tests;
