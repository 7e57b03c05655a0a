use super::*;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn map(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name: http::HeaderName = name.parse().unwrap();
        headers.append(name, http::HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn posted(headers: &[(&str, &str)], body: &str) -> Result<Posted, (u16, String)> {
    read(&map(headers), &Bytes::copy_from_slice(body.as_bytes())).0.map_err(|refusal| {
        (refusal.status.as_u16(), String::from_utf8(refusal.body.to_bytes().to_vec()).unwrap())
    })
}

#[track_caller]
fn refused(headers: &[(&str, &str)], body: &str, status: u16, code: i64, id: &str) {
    let (said, text) = posted(headers, body).expect_err(body);
    let raw = RawJson::parse(Bytes::from(text.clone())).unwrap();
    let written = raw.member("error").and_then(|error| error.member("code"));
    assert_eq!((said, written.unwrap().as_str()), (status, code.to_string().as_str()), "{text}");
    let found = raw.member("id").map(|id| id.as_str().to_owned()).unwrap_or_default();
    assert_eq!(found, id, "{text}");
}

fn request(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{{params}}}}}"#)
}

const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
const METHOD: (&str, &str) = ("mcp-method", "tools/list");

/// H-02: by the message, not by the connection.
#[test]
fn h02_each_post_says_what_it_is() {
    let whole = request(META);
    assert!(matches!(posted(&[VERSION, METHOD], &whole), Ok(Posted::Modern(_))));
    let plain = request("");
    for header in [None, Some("2025-03-26"), Some("2025-11-25")] {
        let headers: Vec<_> =
            header.map(|text| ("mcp-protocol-version", text)).into_iter().collect();
        assert!(matches!(posted(&headers, &plain), Ok(Posted::Legacy(_))), "{header:?}");
    }
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
    for header in ["2025-11-25", "2026-07-28", "2099-01-01"] {
        let headers = [("mcp-protocol-version", header)];
        assert!(matches!(posted(&headers, hello), Ok(Posted::Opening(_))), "{header}");
    }
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#;
    assert!(matches!(posted(&[VERSION], note), Ok(Posted::ModernNote(_))));
    assert!(matches!(posted(&[], note), Ok(Posted::Legacy(_))));
    assert!(matches!(posted(&[], &format!("[{plain}]")), Ok(Posted::Legacy(_))));
}

/// H-11 to H-13, H-31: what a modern request is refused for, with its id.
#[test]
fn h12_h31_modern_refusals() {
    let whole = request(META);
    refused(&[METHOD], &whole, 400, -32020, "7");
    refused(&[VERSION], &whole, 400, -32020, "7");
    refused(&[VERSION, ("mcp-method", "TOOLS/LIST")], &whole, 400, -32020, "7");
    refused(&[("mcp-protocol-version", "2025-11-25"), METHOD], &whole, 400, -32020, "7");
    refused(&[VERSION, VERSION, METHOD], &whole, 400, -32020, "7");
    let future = request(&META.replace("2026-07-28", "2099-01-01"));
    refused(&[("mcp-protocol-version", "2099-01-01"), METHOD], &future, 400, -32022, "7");
    refused(&[VERSION, METHOD], &future, 400, -32020, "7");
    // The header promises an envelope.
    refused(&[VERSION, METHOD], &request(""), 400, -32602, "7");
    let half = r#""_meta":{"io.modelcontextprotocol/clientCapabilities":{}}"#;
    refused(&[VERSION, METHOD], &request(half), 400, -32602, "7");
    let other = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    refused(&[VERSION, METHOD], &request(other), 400, -32602, "7");
    let level = META.replace("{}}", r#"{},"io.modelcontextprotocol/logLevel":"loud"}"#);
    refused(&[VERSION, METHOD], &request(&level), 400, -32602, "7");
    refused(&[VERSION], &format!("[{whole}]"), 400, -32600, "");
    refused(&[], &format!("[{whole}]"), 400, -32600, "");
    refused(&[VERSION], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 400, -32600, "");
}

/// product.md 8: a body that is no message is 400, with the id where one can be read.
#[test]
fn f11_f14_bodies_that_are_no_messages() {
    refused(&[], "hello", 400, -32700, "null");
    refused(&[], "", 400, -32700, "null");
    refused(&[], "42", 400, -32600, "null");
    refused(&[], "[]", 400, -32600, "null");
    refused(&[("mcp-protocol-version", "2025-11-25")], "[]", 400, -32600, "");
    refused(&[], r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, -32600, "null");
    refused(&[], r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, 400, -32600, "3");
    refused(&[("mcp-protocol-version", "1999-01-01")], &request(""), 400, -32600, "7");
}

/// The header against what a session agreed on.
#[test]
fn h32_the_header_of_a_session() {
    let check = |header: &[(&str, &str)], agreed| Said::of(&map(header)).check_legacy(agreed);
    let agreed = Revision::parse("2025-06-18");
    assert_eq!(check(&[], agreed), Ok(()));
    assert_eq!(check(&[("mcp-protocol-version", " 2025-06-18 ")], agreed), Ok(()));
    assert_eq!(check(&[("mcp-protocol-version", "2025-06-18")], None), Ok(()));
    for text in ["2025-11-25", "2026-07-28", "1999-01-01", ""] {
        let error = check(&[("mcp-protocol-version", text)], agreed).expect_err(text);
        assert_eq!(error.code, -32600, "{}", error.message);
    }
    let batch = parse_noting(&Bytes::from_static(b"[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]")).0;
    let batch = batch.unwrap();
    assert!(check_batch(Revision::HEADERLESS, &batch).is_ok());
    assert_eq!(check_batch(Revision::NEWEST_LEGACY, &batch).unwrap_err().status, 400);
}

#[test]
fn f21_what_a_host_takes_and_sends() {
    let accepts = |values: &[&str]| {
        let pairs: Vec<_> = values.iter().map(|value| ("accept", *value)).collect();
        let Accepts { json, events, .. } = Accepts::of(&map(&pairs));
        (json, events)
    };
    assert_eq!(accepts(&[]), (true, true));
    assert_eq!(accepts(&["application/json, text/event-stream"]), (true, true));
    assert_eq!(accepts(&["application/json", "Text/Event-Stream;charset=utf-8"]), (true, true));
    assert_eq!(accepts(&["*/*;q=0.1"]), (true, true));
    assert_eq!(accepts(&["application/*"]), (true, false));
    assert_eq!(accepts(&["text/event-stream, application/json;q=0"]), (false, true));
    assert_eq!(accepts(&["text/html"]), (false, false));
    let first = |value: &str| Accepts::of(&map(&[("accept", value)])).events_first;
    assert!(first("text/event-stream, application/json") && first("text/event-stream"));
    assert!(first("application/json;q=0.5, text/event-stream") && first("text/event-stream, */*"));
    assert!(!first("application/json, text/event-stream") && !first("*/*") && !first("text/*"));
    assert!(!first("text/event-stream;q=0.5, application/json"));
    let json = |value: &str| is_json(&map(&[("content-type", value)]));
    for value in ["application/json; charset=utf-8", "Application/JSON", "", "application/x+json"] {
        assert!(json(value), "{value}");
    }
    assert!(is_json(&HeaderMap::new()));
    assert!(!json("text/plain") && !json("multipart/form-data; boundary=x"));
}
