//! The headers of a message over HTTP: revision, method and name, and how any text becomes a value.
//!
//! 2026-07-28 repeats parts of the body in headers, so that what stands between both sides can route
//! without reading it; whoever reads the body must then refuse a contradiction (Streamable HTTP page,
//! "Request Metadata"; U-20 to U-22, H-31). Older revisions have the first of these headers at most.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::protocol::jsonrpc::{Code, RawJson, RpcError};
use crate::protocol::revision::Revision;

/// The session of a legacy connection; the session's own business, never on a modern request.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The revision of a request.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of a modern message.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// What a modern request is about.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Where a broken stream is to go on (2025-03-26 to 2025-11-25).
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// What the name of every mirrored argument's header begins with.
pub const PARAM_PREFIX: &str = "mcp-param-";

const MARK_BEGIN: &str = "=?base64?";
const MARK_END: &str = "?=";

/// A header value that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    /// A byte beyond visible ASCII, space and tab.
    #[error("it holds characters that a header must not hold")]
    Characters,
    /// Between the markers stands no Base64.
    #[error("what stands between `=?base64?` and `?=` is not Base64")]
    Base64,
    /// What the Base64 means is no text.
    #[error("its Base64 does not hold UTF-8")]
    Utf8,
}

/// `text` as a header value: as it stands where it may, otherwise in Base64 between markers; so is
/// what would be taken for such a value, and what a reader would trim (U-22). Empty stays empty.
pub fn encode_value(text: &str) -> HeaderValue {
    let trimmed = text.trim_matches([' ', '\t']).len() == text.len();
    let marked = text.starts_with(MARK_BEGIN) && text.ends_with(MARK_END);
    let plain = trimmed && !marked && text.bytes().all(is_plain);
    let written = if plain {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::try_from(format!("{MARK_BEGIN}{}{MARK_END}", STANDARD.encode(text)))
    };
    // Always written: what is not plain stands in Base64, which is.
    written.unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The text that a header value stands for; surrounding blanks are none of it (RFC 9110 5.5).
pub fn decode_value(value: &HeaderValue) -> Result<String, BadValue> {
    let text = value.to_str().map_err(|_| BadValue::Characters)?;
    let text = text.trim_matches([' ', '\t']);
    let marked = text.strip_prefix(MARK_BEGIN).and_then(|rest| rest.strip_suffix(MARK_END));
    match marked {
        None => Ok(text.to_owned()),
        Some(inner) => {
            let bytes = STANDARD.decode(inner).map_err(|_| BadValue::Base64)?;
            String::from_utf8(bytes).map_err(|_| BadValue::Utf8)
        }
    }
}

/// Visible ASCII, space and tab (RFC 9110 5.5, without the bytes that only history allows).
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t')
}

/// The parameter that `Mcp-Name` repeats, and whether a server may miss it. The methods of tasks have
/// it by SEP-2663, which leaves a server free to serve a request without it (H-31, T-12).
fn named_by(method: &str) -> Option<(&'static str, bool)> {
    match method {
        "tools/call" | "prompts/get" => Some(("name", true)),
        "resources/read" => Some(("uri", true)),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some(("taskId", false)),
        _ => None,
    }
}

/// What a request's `Mcp-Name` says: the name, URI or task id that it is about (U-21); `None` where
/// its method has no such thing, or `params` lack it.
pub fn name_of(method: &str, params: &RawJson) -> Option<String> {
    let (key, _) = named_by(method)?;
    params.member_str(key)
}

/// The headers that a message to a server of `revision` carries beside those of its session (U-20,
/// U-21): nothing with `initialize`, which comes before anything is agreed, and nothing in revisions
/// older than the first of these headers. A response has no method: see [`response_headers`].
pub fn request_headers(revision: Revision, method: &str, params: Option<&RawJson>) -> HeaderMap {
    let mut headers = response_headers(revision);
    if method == "initialize" {
        headers.clear();
    }
    if revision.mirrors_in_headers() {
        headers.insert(METHOD, encode_value(method));
        if let Some(name) = params.and_then(|params| name_of(method, params)) {
            headers.insert(NAME, encode_value(&name));
        }
    }
    headers
}

/// The headers of a posted response, or of a GET or DELETE, in a session of `revision`.
pub fn response_headers(revision: Revision) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if revision.sends_version_header() {
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
    }
    headers
}

/// Refuses a host's request whose headers say something else than its body, or lack what they must
/// say (H-31): -32020. `revision` is the body's. Legacy revisions repeat nothing, so nothing of
/// theirs is refused.
pub fn check_request(
    headers: &HeaderMap,
    revision: Revision,
    method: &str,
    params: Option<&RawJson>,
) -> Result<(), RpcError> {
    if !revision.mirrors_in_headers() {
        return Ok(());
    }
    // The first two are never in Base64: only names and arguments may be.
    expect(headers, &PROTOCOL_VERSION, true, revision.as_str(), plain_value)?;
    expect(headers, &METHOD, true, method, plain_value)?;
    let Some((key, required)) = named_by(method) else { return Ok(()) };
    match params.and_then(|params| params.member_str(key)) {
        Some(name) => expect(headers, &NAME, required, &name, decode_value),
        // Its own handler says what is wrong with such parameters.
        None => Ok(()),
    }
}

fn plain_value(value: &HeaderValue) -> Result<String, BadValue> {
    let text = value.to_str().map_err(|_| BadValue::Characters)?;
    Ok(text.trim_matches([' ', '\t']).to_owned())
}

fn expect(
    headers: &HeaderMap,
    name: &HeaderName,
    required: bool,
    wanted: &str,
    read: fn(&HeaderValue) -> Result<String, BadValue>,
) -> Result<(), RpcError> {
    let shown = shown(name);
    match one(headers, name)? {
        None if required => Err(mismatch(format!(
            "the header {shown} is missing; it must repeat the body's {wanted:?}"
        ))),
        None => Ok(()),
        Some(value) => match read(value) {
            Ok(said) if said == wanted => Ok(()),
            Ok(said) => {
                Err(mismatch(format!("the header {shown} says {said:?}, the body {wanted:?}")))
            }
            Err(bad) => Err(mismatch(format!("the header {shown} cannot be read: {bad}"))),
        },
    }
}

/// The only value of `name`; two are refused, since two readers may then trust one each.
pub(super) fn one<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, RpcError> {
    let mut all = headers.get_all(name).iter();
    let first = all.next();
    if all.next().is_some() {
        let text = format!("the header {} stands there more than once", shown(name));
        return Err(mismatch(text));
    }
    Ok(first)
}

/// As the specification writes it.
fn shown(name: &HeaderName) -> &str {
    if *name == PROTOCOL_VERSION {
        "MCP-Protocol-Version"
    } else if *name == METHOD {
        "Mcp-Method"
    } else if *name == NAME {
        "Mcp-Name"
    } else {
        name.as_str()
    }
}

pub(super) fn mismatch(what: impl std::fmt::Display) -> RpcError {
    RpcError::new(Code::HeaderMismatch, format!("header mismatch: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    fn map(headers: &[(&str, &str)]) -> HeaderMap {
        let pairs = headers.iter().map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_bytes(value.as_bytes()).unwrap())
        });
        let mut all = HeaderMap::new();
        for (name, value) in pairs {
            all.append(name, value);
        }
        all
    }

    fn shown_headers(headers: &HeaderMap) -> Vec<(&str, &str)> {
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect()
    }

    /// U-22: the page's own examples.
    #[test]
    fn u22_the_examples_of_the_page() {
        let cases = [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
            ("a\tb c", "a\tb c"),
            ("\t", "=?base64?CQ==?="),
            ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
            ("file:///a%20b", "file:///a%20b"),
        ];
        for (text, value) in cases {
            let encoded = encode_value(text);
            assert_eq!(encoded, value, "{text:?}");
            assert_eq!(decode_value(&encoded).as_deref(), Ok(text));
        }
    }

    /// U-22: whatever text goes in comes out; a fixed walk through random code points, with those that
    /// matter more often.
    #[test]
    fn u22_every_text_comes_back() {
        const LIKELY: [&str; 12] =
            ["=?base64?", "?=", "=", "?", " ", "\t", "\r\n", "\0", "\u{7f}", "é", "a", "/"];
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..next() % 12 {
                let draw = next();
                match usize::try_from(draw % 24).unwrap() {
                    index if index < LIKELY.len() => text.push_str(LIKELY[index]),
                    _ => text.extend(char::from_u32(u32::try_from(draw >> 43).unwrap())),
                }
            }
            let value = encode_value(&text);
            assert!(value.as_bytes().iter().all(|byte| is_plain(*byte)), "{text:?}");
            assert_eq!(decode_value(&value).as_deref(), Ok(text.as_str()));
        }
    }

    #[test]
    fn u22_values_that_cannot_be_read() {
        let read = |bytes: &[u8]| decode_value(&HeaderValue::from_bytes(bytes).unwrap());
        assert_eq!(read(b"caf\xc3\xa9"), Err(BadValue::Characters));
        assert_eq!(read(b"=?base64?SGVsbG8?="), Err(BadValue::Base64), "no padding");
        assert_eq!(read(b"=?base64?SGVs!!!bG8=?="), Err(BadValue::Base64));
        assert_eq!(read(b"=?base64?/w==?="), Err(BadValue::Utf8));
        // Too short to be both markers.
        assert_eq!(read(b"=?base64?=").as_deref(), Ok("=?base64?="));
        assert_eq!(read(b"=?base64??=").as_deref(), Ok(""));
        assert_eq!(read(b"  spaced\t").as_deref(), Ok("spaced"));
    }

    /// U-20: none on `initialize`, none for revisions without the header, the negotiated one else.
    #[test]
    fn u20_the_version_header_of_legacy_revisions() {
        let sent = |revision, method| {
            let headers = request_headers(revision, method, Some(&raw(r#"{"name":"t"}"#)));
            shown_headers(&headers).iter().map(|(_, value)| (*value).to_owned()).collect::<Vec<_>>()
        };
        for revision in Revision::ALL.into_iter().filter(|revision| !revision.is_modern()) {
            assert!(sent(revision, "initialize").is_empty(), "{revision}");
        }
        for method in ["tools/call", "notifications/initialized"] {
            assert!(sent(Revision::V2024_11_05, method).is_empty());
            assert!(sent(Revision::V2025_03_26, method).is_empty());
            assert_eq!(sent(Revision::V2025_06_18, method), ["2025-06-18"]);
            assert_eq!(sent(Revision::V2025_11_25, method), ["2025-11-25"]);
        }
        assert_eq!(
            response_headers(Revision::V2025_06_18).get(PROTOCOL_VERSION).unwrap(),
            "2025-06-18"
        );
    }

    /// U-21: revision and method always, the name where there is one.
    #[test]
    fn u21_what_a_modern_request_repeats() {
        let cases = [
            ("tools/call", r#"{"name":"get_weather","arguments":{}}"#, Some("get_weather")),
            ("prompts/get", r#"{"name":"größe"}"#, Some("=?base64?Z3LDtsOfZQ==?=")),
            ("resources/read", r#"{"uri":"file:///a/b"}"#, Some("file:///a/b")),
            ("tasks/get", r#"{"taskId":"7"}"#, Some("7")),
            ("tasks/update", r#"{"taskId":"7"}"#, Some("7")),
            ("tasks/cancel", r#"{"taskId":"7"}"#, Some("7")),
            ("tools/list", r#"{"cursor":"c","name":"no"}"#, None),
            ("server/discover", "{}", None),
            ("tools/call", r#"{"name":7}"#, None),
        ];
        for (method, params, name) in cases {
            let headers = request_headers(Revision::V2026_07_28, method, Some(&raw(params)));
            assert_eq!(headers.get(PROTOCOL_VERSION).unwrap(), "2026-07-28");
            assert_eq!(headers.get(METHOD).unwrap(), method);
            assert_eq!(headers.get(NAME).map(|value| value.to_str().unwrap()), name, "{method}");
            assert!(!headers.contains_key(SESSION_ID));
            let checked =
                check_request(&headers, Revision::V2026_07_28, method, Some(&raw(params)));
            assert_eq!(checked, Ok(()), "what we send, we accept");
        }
    }

    /// H-31: contradictions, what is missing, what cannot be read, what stands there twice.
    #[test]
    fn h31_what_a_modern_server_refuses() {
        let version = ("mcp-protocol-version", "2026-07-28");
        let (method, name) = (("MCP-METHOD", "tools/call"), ("Mcp-Name", " foo "));
        let check = |headers: &[(&str, &str)]| {
            let params = raw(r#"{"name":"foo"}"#);
            let headers = map(headers);
            check_request(&headers, Revision::V2026_07_28, "tools/call", Some(&params))
        };
        assert_eq!(check(&[version, method, name]), Ok(()));
        assert_eq!(check(&[version, method, ("mcp-name", "=?base64?Zm9v?=")]), Ok(()));
        let refused: [(&[(&str, &str)], &str); 9] = [
            (&[method, name], "MCP-Protocol-Version is missing"),
            (&[version, name], "Mcp-Method is missing"),
            (&[version, method], "Mcp-Name is missing"),
            (&[("mcp-protocol-version", "2025-11-25"), method, name], "2025-11-25"),
            (&[version, ("mcp-method", "TOOLS/CALL"), name], "TOOLS/CALL"),
            (&[version, method, ("mcp-name", "bar")], r#"says "bar", the body "foo""#),
            (&[version, method, ("mcp-name", "=?base64?Zm9?=")], "not Base64"),
            (&[version, method, ("mcp-name", "f\u{f6}o")], "must not hold"),
            (&[version, method, name, ("mcp-name", "foo")], "more than once"),
        ];
        for (headers, why) in refused {
            let error = check(headers).unwrap_err();
            assert_eq!(error.code, -32020);
            assert!(error.message.contains(why), "{} lacks {why}", error.message);
        }
    }

    /// H-31, T-12: a task's id may be left out, and must not be contradicted.
    #[test]
    fn h31_task_methods_may_go_without_a_name() {
        let check = |name: Option<&str>| {
            let mut headers =
                map(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tasks/get")]);
            if let Some(name) = name {
                headers.insert(NAME, encode_value(name));
            }
            let params = raw(r#"{"taskId":"7"}"#);
            check_request(&headers, Revision::V2026_07_28, "tasks/get", Some(&params))
        };
        assert_eq!(check(None), Ok(()));
        assert_eq!(check(Some("7")), Ok(()));
        assert_eq!(check(Some("8")).unwrap_err().code, -32020);
    }

    /// A legacy request repeats nothing.
    #[test]
    fn h31_legacy_requests_are_not_compared() {
        let headers = map(&[("mcp-method", "tools/list")]);
        assert_eq!(check_request(&headers, Revision::V2025_11_25, "tools/call", None), Ok(()));
    }
}
