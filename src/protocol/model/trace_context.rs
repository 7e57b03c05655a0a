//! The trace context of a request: `traceparent` in `_meta` (2026-07-28, base page; W3C Trace Context).
//!
//! mcpx passes `traceparent`, `tracestate` and `baggage` on as they came, and puts itself in between only
//! where it sends traces.

use std::fmt;

use crate::protocol::hex::hex;
use crate::protocol::jsonrpc::{Object, RawJson};

/// The key in `_meta`.
const TRACEPARENT: &str = "traceparent";

/// Whose part a piece of work is: a span of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: [u8; 16],
    /// The span.
    pub span: [u8; 8],
    /// `sampled` and what else a version may say.
    pub flags: u8,
}

impl TraceContext {
    /// The flag that says that the trace is recorded.
    pub const SAMPLED: u8 = 1;

    /// Reads `00-<trace>-<span>-<flags>`, and as much of a later version (W3C, "Versioning").
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        let [version] = bytes::<1>(version)?;
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace, span, [flags]) = (bytes(trace)?, bytes(span)?, bytes::<1>(flags)?);
        (trace != [0; 16] && span != [0; 8]).then_some(Self { trace, span, flags })
    }

    /// That of a request's parameters.
    pub fn of(params: &RawJson) -> Option<Self> {
        Self::parse(&params.member("_meta")?.member_str(TRACEPARENT)?)
    }

    /// The parameters as a part of this one. Everything else keeps its text.
    #[must_use]
    pub fn put_into(self, params: &RawJson) -> RawJson {
        let mut object = Object::read_or_empty(Some(params));
        let mut meta = Object::read_or_empty(object.get("_meta"));
        meta.set(TRACEPARENT, RawJson::write(&self.to_string()));
        object.set("_meta", meta.write());
        object.write()
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", hex(&self.trace), hex(&self.span), self.flags)
    }
}

/// Small hexadecimal digits, exactly as many as `N` bytes have.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != N * 2 || !text.bytes().all(plain) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_and_written() {
        let context = TraceContext::parse(GIVEN).unwrap();
        assert_eq!(context.to_string(), GIVEN);
        assert_eq!(context.flags & TraceContext::SAMPLED, 1);
        assert!(
            TraceContext::parse(&GIVEN.replace("00-4b", "cc-4b").replace("-01", "-01-x")).is_some()
        );
        for wrong in [
            "",
            "00-0-0-0",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn it_is_put_in_between_and_the_rest_stays() {
        let text = format!(
            r#"{{"name":"t","_meta":{{"a":1.0,"traceparent":"{GIVEN}","tracestate":"x=y"}}}}"#
        );
        let params = RawJson::parse(text.into()).unwrap();
        let mut context = TraceContext::of(&params).unwrap();
        context.span = [1; 8];
        assert_eq!(
            context.put_into(&params).as_str(),
            r#"{"name":"t","_meta":{"a":1.0,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-0101010101010101-01","tracestate":"x=y"}}"#
        );
        let bare = context.put_into(&RawJson::empty_object());
        assert_eq!(TraceContext::of(&bare), Some(context));
    }
}
