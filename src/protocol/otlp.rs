//! Spans as a collector reads them: OTLP's `ExportTraceServiceRequest` in protobuf.
//!
//! Written by hand: of the whole of OTLP this is six messages, and the official crates bring a second HTTP
//! client, gRPC's code generator and a registry of their own. The format is frozen (OTLP 1.x: field
//! numbers never change), and a test has the official Python package read it (`tests/peers`).

use std::time::Duration;

use super::model::trace_context::TraceContext;

/// What a span is towards the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A request that is answered.
    Server,
    /// A request that is made.
    Client,
}

/// One span that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// It.
    pub context: TraceContext,
    /// The span that it is a part of.
    pub parent: Option<[u8; 8]>,
    /// `tracestate` as it came.
    pub state: Option<String>,
    /// What was done, in a few words that many spans share.
    pub name: String,
    /// Its kind.
    pub kind: SpanKind,
    /// Since 1970.
    pub start: Duration,
    /// Since 1970.
    pub end: Duration,
    /// What else is known.
    pub attributes: Vec<(&'static str, String)>,
    /// Why it failed, where it did.
    pub failed: Option<String>,
}

/// The body of a POST to `/v1/traces`.
pub fn request(version: &str, spans: &[Span]) -> Vec<u8> {
    let mut resource = Vec::new();
    for (key, value) in [("service.name", "mcpx"), ("service.version", version)] {
        bytes(&mut resource, 1, &attribute(key, value));
    }
    let mut scope = Vec::new();
    bytes(&mut scope, 1, b"mcpx");
    bytes(&mut scope, 2, version.as_bytes());
    let mut of_scope = Vec::new();
    bytes(&mut of_scope, 1, &scope);
    for span in spans {
        bytes(&mut of_scope, 2, &encoded(span));
    }
    let mut of_resource = Vec::new();
    bytes(&mut of_resource, 1, &resource);
    bytes(&mut of_resource, 2, &of_scope);
    let mut whole = Vec::new();
    bytes(&mut whole, 1, &of_resource);
    whole
}

fn encoded(span: &Span) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, 1, &span.context.trace);
    bytes(&mut out, 2, &span.context.span);
    if let Some(state) = &span.state {
        bytes(&mut out, 3, state.as_bytes());
    }
    if let Some(parent) = &span.parent {
        bytes(&mut out, 4, parent);
    }
    bytes(&mut out, 5, span.name.as_bytes());
    let kind = match span.kind {
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    };
    number(&mut out, 6, kind);
    fixed64(&mut out, 7, nanoseconds(span.start));
    fixed64(&mut out, 8, nanoseconds(span.end));
    for (key, value) in &span.attributes {
        bytes(&mut out, 9, &attribute(key, value));
    }
    if let Some(why) = &span.failed {
        const ERROR: u64 = 2;
        let mut status = Vec::new();
        bytes(&mut status, 2, why.as_bytes());
        number(&mut status, 3, ERROR);
        bytes(&mut out, 15, &status);
    }
    out
}

fn attribute(key: &str, value: &str) -> Vec<u8> {
    let (mut any, mut out) = (Vec::new(), Vec::new());
    bytes(&mut any, 1, value.as_bytes());
    bytes(&mut out, 1, key.as_bytes());
    bytes(&mut out, 2, &any);
    out
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A field of bytes, text or a message.
fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, u64::try_from(value.len()).unwrap_or(u64::MAX));
    out.extend_from_slice(value);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn fixed64(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    const MORE: u8 = 0x80;
    while value >= u64::from(MORE) {
        out.push(value.to_le_bytes()[0] | MORE);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_protobuf_has_them() {
        let of = |value| {
            let mut out = Vec::new();
            varint(&mut out, value);
            out
        };
        assert_eq!((of(0), of(127), of(128)), (vec![0], vec![127], vec![0x80, 1]));
        assert_eq!(of(300), [0xac, 2]);
        let mut out = Vec::new();
        fixed64(&mut out, 7, 1);
        assert_eq!(out, [7 << 3 | 1, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_span_has_its_fields_in_its_resource() {
        let context = TraceContext { trace: [7; 16], span: [8; 8], flags: 1 };
        let span = Span {
            context,
            parent: Some([9; 8]),
            state: None,
            name: "tools/call echo".to_owned(),
            kind: SpanKind::Client,
            start: Duration::from_secs(1),
            end: Duration::from_secs(2),
            attributes: vec![("mcp.method.name", "tools/call".to_owned())],
            failed: Some("timeout".to_owned()),
        };
        let whole = request("1.2", &[span]);
        // One message in one field, and nothing behind it.
        assert_eq!(whole[0], 1 << 3 | 2);
        for part in [&[7; 16][..], &[9; 8], b"tools/call echo", b"timeout", b"service.name", b"1.2"]
        {
            assert!(whole.windows(part.len()).any(|window| window == part), "{part:?}");
        }
    }
}
