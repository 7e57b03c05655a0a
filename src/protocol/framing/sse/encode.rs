//! Events to bytes.

use core::fmt::Display;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

/// The fields of an event beside its data. All may be absent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a> {
    /// What a reader gives back as `Last-Event-ID`; no line ends, no NUL.
    pub id: Option<&'a str>,
    /// How long a reader is to wait before it comes back.
    pub retry: Option<Duration>,
    /// The event's name; without it readers call it `message`.
    pub name: Option<&'a str>,
}

/// Room for the names and ends of all fields but the data.
const AROUND: usize = 64;

/// One event. `data` is JSON, or nothing: a line end in it can only stand between tokens and becomes a
/// space, so that the event is one line whoever wrote the JSON.
pub fn event(fields: Fields<'_>, data: &[u8]) -> Bytes {
    let beside = fields.id.map_or(0, str::len) + fields.name.map_or(0, str::len);
    let mut text = BytesMut::with_capacity(AROUND + beside + data.len());
    if let Some(id) = fields.id {
        field(&mut text, "id", id);
    }
    if let Some(retry) = fields.retry {
        field(&mut text, "retry", retry.as_millis());
    }
    if let Some(name) = fields.name {
        field(&mut text, "event", name);
    }
    text.put_slice(b"data: ");
    for piece in data.split_inclusive(|byte| is_line_end(*byte)) {
        match piece.split_last() {
            Some((end, line)) if is_line_end(*end) => {
                text.put_slice(line);
                text.put_u8(b' ');
            }
            _ => text.put_slice(piece),
        }
    }
    text.put_slice(b"\n\n");
    text.freeze()
}

/// What keeps a quiet stream alive: a comment, which readers skip (H-36).
pub const COMMENT: &[u8] = b":\n\n";

fn is_line_end(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

fn field(text: &mut BytesMut, name: &str, value: impl Display) {
    use core::fmt::Write as _;
    // Into memory, which takes everything.
    let _ = writeln!(text, "{name}: {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_only_the_fields_it_was_given() {
        assert_eq!(event(Fields::default(), b"{\"a\":1}"), "data: {\"a\":1}\n\n");
        let fields = Fields {
            id: Some("s7-12"),
            retry: Some(Duration::from_millis(1500)),
            name: Some("message"),
        };
        assert_eq!(event(fields, b"[]"), "id: s7-12\nretry: 1500\nevent: message\ndata: []\n\n");
    }

    #[test]
    fn a_priming_event_has_an_id_and_no_data() {
        let fields = Fields { id: Some("0"), ..Fields::default() };
        assert_eq!(event(fields, b""), "id: 0\ndata: \n\n");
    }

    #[test]
    fn line_ends_between_tokens_become_spaces() {
        let pretty = b"{\r\n  \"a\": \"x\\ny\",\n\"b\": 1\r}\n";
        assert_eq!(
            event(Fields::default(), pretty),
            "data: {    \"a\": \"x\\ny\", \"b\": 1 } \n\n"
        );
    }
}
