//! Frame to message. Every way in which a peer can get it wrong is a variant.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

use super::scan;
use super::skim::Members;
use super::{BadId, Code, Id, Message, Method, Notification, RawJson, Request, Response, RpcError};

/// What a frame held.
#[derive(Debug)]
pub enum Incoming {
    /// One message.
    One(Message),
    /// An array; each element is parsed by itself (H-28, U-45). Never empty.
    Batch(Vec<Result<Message, Malformed>>),
}

/// Why a frame, or an element of a batch, is no message.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// Not JSON.
    #[error("not JSON")]
    NotJson(#[source] serde_json::Error),
    /// JSON, but neither an object nor an array.
    #[error("not a JSON-RPC message")]
    NotAMessage,
    /// `[]`.
    #[error("an empty batch")]
    EmptyBatch,
    /// An object with none of the members that make a message, or with a member of a wrong kind.
    #[error("an object that is neither request, notification nor response")]
    NoKind {
        /// Its id, where one can be read.
        id: Option<Id>,
    },
    /// A request whose id is none (H-29).
    #[error(transparent)]
    Id(#[from] BadId),
    /// A request with a member that stands twice: which one is meant cannot be known.
    #[error("a member of the request stands twice")]
    Twice {
        /// Its id, the first one where there are two.
        id: Option<Id>,
        /// Which member.
        #[source]
        source: serde_json::Error,
    },
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("the member `jsonrpc` must be \"2.0\"")]
    Version {
        /// Its id, where one can be read.
        id: Option<Id>,
    },
}

impl Malformed {
    /// What its sender is told.
    pub fn error(&self) -> RpcError {
        let code = match self {
            Self::NotJson(_) => Code::ParseError,
            _ => Code::InvalidRequest,
        };
        let cause = std::error::Error::source(self).map(|source| format!(": {source}"));
        RpcError::new(code, format!("{self}{}", cause.unwrap_or_default()))
    }

    /// The id that an answer to `frame` goes by, where one can be read.
    pub fn id_in(&self, frame: &[u8]) -> Option<Id> {
        match self {
            Self::NotJson(_) => salvage_id(frame),
            _ => self.id().cloned(),
        }
    }

    /// The id to answer to, where one was readable.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Self::NoKind { id } | Self::Version { id } | Self::Twice { id, .. } => id.as_ref(),
            _ => None,
        }
    }
}

/// Present-but-null differs from absent (`crates.md` 2, trap a).
fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(d).map(Some)
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Parses one frame. A byte order mark and white space around the value are taken silently (F03),
/// bytes that are no UTF-8 are replaced by U+FFFD (F09); see [`parse_noting`] to hear of those.
pub fn parse(frame: &Bytes) -> Result<Incoming, Malformed> {
    parse_noting(frame).0
}

/// [`parse`], and whether bytes had to be replaced, so that the caller can warn once per peer.
///
/// The repair stands here and not in the line decoder because the JSON parser checks the encoding
/// anyway: a frame that is right, which is nearly every one, is not looked at twice.
pub fn parse_noting(frame: &Bytes) -> (Result<Incoming, Malformed>, bool) {
    let outcome = parse_strict(frame);
    if !matches!(outcome, Err(Malformed::NotJson(_))) || std::str::from_utf8(frame).is_ok() {
        return (outcome, false);
    }
    let repaired = Bytes::from(String::from_utf8_lossy(frame).into_owned());
    (parse_strict(&repaired), true)
}

/// Reads the id of a frame that is no JSON as a whole, because it is broken further on.
pub fn salvage_id(frame: &[u8]) -> Option<Id> {
    let text = trim(frame);
    id_among(text, &mut Members::new(text))
}

/// Reads the id of a frame whose middle was left out, as
/// [`crate::protocol::framing::line::Line::TooLarge`] has it. It stands among the first members or,
/// as some SDKs write it, among the last.
pub fn salvage_cut_id(kept: &[u8]) -> Option<Id> {
    let text = trim(kept);
    if text.first() != Some(&b'{') {
        return None;
    }
    salvage_id(text).or_else(|| {
        // Read from an `"id"` to the end: only at the outermost level does the object close there.
        memchr::memmem::rfind_iter(text, b"\"id\"").take(TAIL_TRIES).find_map(|at| {
            let tail = text.get(at..)?;
            let mut walk = Members::inside(tail);
            let id = id_among(tail, &mut walk)?;
            walk.by_ref().for_each(drop);
            walk.rest()?.trim_ascii().is_empty().then_some(id)
        })
    })
}

/// How many places that look like an id are tried from the end: what stands further in front is
/// some payload's.
const TAIL_TRIES: usize = 8;

fn id_among(text: &[u8], members: &mut Members<'_>) -> Option<Id> {
    let found = members.find(|member| text.get(member.key.0..member.key.1) == Some(b"\"id\""))?;
    let raw = std::str::from_utf8(text.get(found.value.0..found.value.1)?).ok()?;
    serde_json::from_str::<&RawValue>(raw).ok()?;
    Id::from_raw(raw).ok()
}

fn parse_strict(frame: &Bytes) -> Result<Incoming, Malformed> {
    let text = frame.slice_ref(trim(frame));
    match text.first() {
        Some(b'{') => object(&text).map(Incoming::One),
        Some(b'[') => batch(&text),
        _ => match serde_json::from_slice::<&RawValue>(&text) {
            Ok(_) => Err(Malformed::NotAMessage),
            Err(error) => Err(Malformed::NotJson(error)),
        },
    }
}

fn trim(frame: &[u8]) -> &[u8] {
    const BOM: &[u8] = b"\xEF\xBB\xBF";
    frame.strip_prefix(BOM).unwrap_or(frame).trim_ascii()
}

fn batch(text: &Bytes) -> Result<Incoming, Malformed> {
    let elements: Vec<&RawValue> = serde_json::from_slice(text).map_err(Malformed::NotJson)?;
    if elements.is_empty() {
        return Err(Malformed::EmptyBatch);
    }
    let messages = elements
        .into_iter()
        .map(|element| {
            let part = text.slice_ref(element.get().as_bytes());
            if part.first() == Some(&b'{') { object(&part) } else { Err(Malformed::NotAMessage) }
        })
        .collect();
    Ok(Incoming::Batch(messages))
}

fn object(text: &Bytes) -> Result<Message, Malformed> {
    let envelope: Envelope<'_> = serde_json::from_slice(text).map_err(|error| {
        // A duplicate member is a data error, not a syntax error: JSON, but no message.
        match error.is_data() {
            true if scan::head(text).method.is_some() => {
                Malformed::Twice { id: salvage_id(text), source: error }
            }
            true => Malformed::NoKind { id: None },
            false => Malformed::NotJson(error),
        }
    })?;
    let id = envelope.id.map(|raw| Id::from_raw(raw.get()));
    if envelope.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return Err(Malformed::Version { id: id.and_then(Result::ok) });
    }
    let slice = |raw: &RawValue| RawJson::slice_of(text, raw);
    if let Some(raw) = envelope.method {
        let Ok(name) = serde_json::from_str::<std::borrow::Cow<'_, str>>(raw.get()) else {
            return Err(Malformed::NoKind { id: id.and_then(Result::ok) });
        };
        let method = Method::new(&name);
        let params = envelope.params.map(slice);
        return match id {
            Some(id) => Ok(Message::Request(Request { id: id?, method, params })),
            None => Ok(Message::Notification(Notification { method, params })),
        };
    }
    let outcome = match (envelope.result, envelope.error) {
        // Peers in the manner of JSON-RPC 1.0 write the member that does not apply as null.
        (Some(result), Some(error)) if error.get() == "null" => Ok(slice(result)),
        (_, Some(error)) => Err(RpcError::read(&slice(error))),
        (Some(result), None) => Ok(slice(result)),
        (None, None) => return Err(Malformed::NoKind { id: id.and_then(Result::ok) }),
    };
    match id {
        Some(Err(BadId::Null)) => Ok(Message::Response(Response { id: None, outcome })),
        Some(Ok(id)) => Ok(Message::Response(Response { id: Some(id), outcome })),
        // Not `BadId`, which is for requests: an answer, however bad, is never answered (F06).
        Some(Err(BadId::Kind)) | None => Err(Malformed::NoKind { id: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Message, Malformed> {
        match parse(&Bytes::copy_from_slice(text.as_bytes()))? {
            Incoming::One(message) => Ok(message),
            Incoming::Batch(_) => panic!("a batch"),
        }
    }

    #[test]
    fn payloads_keep_their_text() {
        let text = r#"{"jsonrpc":"2.0","id":1.0,"method":"x","params":{"n":1e2,"s":"a\udcafb"}}"#;
        let Message::Request(request) = one(text).unwrap() else { panic!("no request") };
        assert_eq!(request.id.as_raw(), "1.0");
        assert_eq!(request.params.as_ref().unwrap().as_str(), r#"{"n":1e2,"s":"a\udcafb"}"#);
        assert_eq!(request.to_frame().to_bytes(), text.as_bytes());
    }

    /// F05: JSON that is no message.
    #[test]
    fn f05_json_but_no_message() {
        for text in ["42", "\"ready\"", "null", "true"] {
            assert!(matches!(one(text), Err(Malformed::NotAMessage)), "{text}");
        }
        for text in [r#"{"level":"info","msg":"up"}"#, r#"{"type":"heartbeat"}"#] {
            assert!(matches!(one(text), Err(Malformed::Version { id: None })), "{text}");
        }
        assert!(matches!(one("[INFO] x"), Err(Malformed::NotJson(_))));
    }

    #[test]
    fn null_ids() {
        let text = r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#;
        assert!(matches!(one(text), Err(Malformed::Id(BadId::Null))));
        let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#;
        assert!(matches!(one(text), Ok(Message::Response(Response { id: None, .. }))));
    }

    /// F11: arrays are split; an empty one is named.
    #[test]
    fn f11_batches() {
        let text = Bytes::from_static(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},3]"#);
        let Ok(Incoming::Batch(parts)) = parse(&text) else { panic!("no batch") };
        assert!(parts[0].is_ok());
        assert!(matches!(parts[1], Err(Malformed::NotAMessage)));
        assert!(matches!(parse(&Bytes::from_static(b"[]")), Err(Malformed::EmptyBatch)));
    }

    /// F02, F03: a mark at the start and line ends between tokens.
    #[test]
    fn f03_mark_and_white_space() {
        let text = "\u{feff}{\"jsonrpc\":\"2.0\",\r\"id\":1,\"result\":{}}\r";
        assert!(matches!(one(text), Ok(Message::Response(_))));
    }

    /// F09: bad bytes inside a result are replaced and the answer arrives; noise stays noise.
    #[test]
    fn f09_invalid_utf8() {
        let mut line =
            br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":""#.to_vec();
        line.extend_from_slice(b"\xC7\xD1 ok\"}]}}");
        let (outcome, replaced) = parse_noting(&Bytes::from(line));
        assert!(replaced);
        let Ok(Incoming::One(Message::Response(response))) = outcome else { panic!("no response") };
        assert_eq!(response.id.unwrap().as_raw(), "7");
        assert!(response.outcome.unwrap().as_str().contains("\u{fffd}\u{fffd} ok"));
        assert!(matches!(parse(&Bytes::from_static(b"\xff start")), Err(Malformed::NotJson(_))));
        let clean = Bytes::from_static("{\"jsonrpc\":\"2.0\",\"method\":\"é\"}".as_bytes());
        assert!(!parse_noting(&clean).1);
    }

    /// F10: an error whose text cannot be held by Rust still answers its call.
    #[test]
    fn f10_errors_are_read_whatever_they_hold() {
        for (error, code) in [
            (r#"{"code":-32000,"message":"a\udcafb"}"#, -32000),
            (r#"{"code":-32000.0,"message":"x"}"#, -32000),
            (r#"{"code":"E_FAIL","message":null}"#, -32603),
            (r#""just text""#, -32603),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
            let Message::Response(response) = one(&text).unwrap() else { panic!("no response") };
            assert_eq!(response.outcome.unwrap_err().code, code, "{text}");
        }
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#;
        assert!(matches!(one(text), Ok(Message::Response(Response { outcome: Ok(_), .. }))));
    }

    /// F14: ids that are none make an invalid request, never a notification.
    #[test]
    fn f14_bad_ids() {
        for id in ["null", "1.5", "true", "{}", "[1]"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert!(matches!(one(&text), Err(Malformed::Id(_))), "{id}");
        }
    }

    /// Silence would leave whoever asked waiting; but an answer is never answered (F06).
    #[test]
    fn members_that_stand_twice() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":42,"method":"ping","method":"tools/list"}"#, Some("42")),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, Some("1")),
            (r#"{"jsonrpc":"2.0","method":"x","method":"y"}"#, None),
        ] {
            let Err(error @ Malformed::Twice { .. }) = one(text) else { panic!("{text}") };
            assert_eq!(error.id().map(Id::as_raw), id, "{text}");
        }
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#;
        assert!(matches!(one(answer), Err(Malformed::NoKind { id: None })));
    }

    #[test]
    fn ids_of_broken_frames() {
        let salvaged = |text: &str| salvage_id(text.as_bytes()).map(|id| id.as_raw().to_owned());
        assert_eq!(salvaged(r#"{"jsonrpc":"2.0","id":"a1","params":{"#).as_deref(), Some("\"a1\""));
        assert_eq!(salvaged("\u{feff}{\"id\":3,,}").as_deref(), Some("3"));
        for text in ["", "[", r#"{"params":{"id":4}"#, r#"{"id":nope,"x":1}"#, "{\"id\":3x}"] {
            assert_eq!(salvaged(text), None, "{text}");
        }
    }

    /// F08: both orders of members that are in use.
    #[test]
    fn f08_ids_of_cut_frames() {
        let salvaged =
            |text: &str| salvage_cut_id(text.as_bytes()).map(|id| id.as_raw().to_owned());
        let cut = r#"{"method":"x","params":{"a":"xxxx...xxxx"}"#;
        assert_eq!(salvaged(&format!(r#"{cut},"jsonrpc":"2.0","id":5}}"#)).as_deref(), Some("5"));
        assert_eq!(
            salvaged(&format!(r#"{cut},"id":"7","jsonrpc":"2.0"}} "#)).as_deref(),
            Some("\"7\"")
        );
        let first = r#"{"jsonrpc":"2.0","id":1,"params":{"a":"xx...xx","id":5}}"#;
        assert_eq!(salvaged(first).as_deref(), Some("1"));
        for none in [
            r#"{"jsonrpc":"2.0","params":{"a":"xx...xx","id":5}}"#,
            r#"{"jsonrpc":"2.0","params":{"a":"xx...xx\"id\":5}"#,
            r#"[{"params":{"a":"xx...xx"},"id":5}"#,
            "",
        ] {
            assert_eq!(salvaged(none), None, "{none}");
        }
    }
}
