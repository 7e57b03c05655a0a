//! HTTP requests to ops and back: paths, queries, percent signs. Pure.

use super::ops::{OPS, Op, Place, Verb};
use super::request::OpCall;
use super::types::{ApiError, FailureCode};
use crate::protocol::jsonrpc::{Object, RawJson};

/// Where the description of the API stands.
pub const OPENAPI: &str = "/v1/openapi.json";

/// Where a shim attaches: `GET` with an upgrade to [`ATTACH_PROTOCOL`].
pub const ATTACH: &str = "/v1/attach";

/// The `Upgrade` token of an attach.
pub const ATTACH_PROTOCOL: &str = "mcpx-attach";

/// A request as its pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpParts {
    /// The method.
    pub verb: Verb,
    /// The path, percent-encoded.
    pub path: String,
    /// The query without its question mark, percent-encoded; empty where there is none.
    pub query: String,
    /// The body; empty where there is none.
    pub body: Vec<u8>,
}

impl HttpParts {
    /// The query, where there is one.
    pub fn query(&self) -> Option<&str> {
        (!self.query.is_empty()).then_some(self.query.as_str())
    }

    /// Path and query together.
    pub fn target(&self) -> String {
        match self.query() {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }
}

/// The op that a request asks for.
pub fn resolve(
    verb: &str,
    path: &str,
    query: Option<&str>,
    body: &[u8],
) -> Result<OpCall, ApiError> {
    let mut other_verbs: Vec<&str> = Vec::new();
    for op in OPS {
        let Some(params) = match_path(op.route, path) else { continue };
        if op.verb.as_str() != verb {
            other_verbs.push(op.verb.as_str());
            continue;
        }
        let params: Result<Vec<_>, _> = params
            .into_iter()
            .map(|(name, text)| decode(text, false).map(|text| (name, text)))
            .collect();
        return OpCall::of_http(op, &params?, &parse_query(query)?, body);
    }
    if other_verbs.is_empty() {
        let routes = OPS.iter().map(|op| op.route);
        let hint = crate::settings::mistake::nearest(path, routes)
            .map_or_else(|| format!("{OPENAPI} lists them"), |route| format!("is it {route}?"));
        Err(ApiError::new(FailureCode::NotFound, format!("there is no route {path}"))
            .with_hint(hint))
    } else {
        let text = format!("{path} is for {}, not for {verb}", other_verbs.join(" and "));
        Err(ApiError::new(FailureCode::MethodNotAllowed, text))
    }
}

/// The request that asks for an op with these parameters.
pub(super) fn compose(op: &'static Op, given: &[(&'static str, RawJson)]) -> HttpParts {
    let mut path = op.route.to_owned();
    let mut query = String::new();
    let mut body = Object::new();
    for (name, value) in given {
        let Some(param) = op.params.iter().find(|param| param.name == *name) else { continue };
        let text = || value.read::<String>().unwrap_or_else(|_| value.as_str().to_owned());
        match param.place {
            Place::Path => path = path.replace(&format!("{{{name}}}"), &encode(&text())),
            Place::Query => {
                let joint = if query.is_empty() { "" } else { "&" };
                query = format!("{query}{joint}{name}={}", encode(&text()));
            }
            Place::Body => body.set(*name, value.clone()),
        }
    }
    let has_body = op.params.iter().any(|param| param.place == Place::Body);
    let body = if has_body { body.write().as_bytes().to_vec() } else { Vec::new() };
    HttpParts { verb: op.verb, path, query, body }
}

/// The path's parameters, where it is one of this route.
fn match_path<'a>(route: &'static str, path: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
    let mut params = Vec::new();
    let mut segments = path.split('/');
    for wanted in route.split('/') {
        let segment = segments.next()?;
        match wanted.strip_prefix('{').and_then(|wanted| wanted.strip_suffix('}')) {
            Some(name) if !segment.is_empty() => params.push((name, segment)),
            _ if wanted == segment => {}
            _ => return None,
        }
    }
    segments.next().is_none().then_some(params)
}

fn parse_query(query: Option<&str>) -> Result<Vec<(String, String)>, ApiError> {
    query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name, true)?, decode(value, true)?))
        })
        .collect()
}

/// Percent signs to characters; in a query, `+` to a space.
pub fn decode(text: &str, query: bool) -> Result<String, ApiError> {
    let wrong = || ApiError::new(FailureCode::BadRequest, format!("{text:?} is badly encoded"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit().ok_or_else(wrong)?, digit().ok_or_else(wrong)?);
                u8::try_from(high * 16 + low).map_err(|_| wrong())?
            }
            b'+' if query => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// Everything but unreserved characters to percent signs.
pub fn encode(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().map_or('0', char::from);
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.extend(['%', digit(byte >> 4), digit(byte & 0x0f)]);
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::types::EventsRequest;

    #[test]
    fn unknown_routes_and_methods_are_told_apart() {
        let error = resolve("GET", "/v1/statu", None, b"").unwrap_err().error;
        assert_eq!(error.code, FailureCode::NotFound);
        assert_eq!(error.hint.as_deref(), Some("is it /v1/status?"));
        let error = resolve("DELETE", "/v1/settings", None, b"").unwrap_err().error;
        assert_eq!(error.code, FailureCode::MethodNotAllowed);
        assert_eq!(error.message, "/v1/settings is for GET and PUT, not for DELETE");
        assert!(resolve("POST", "/v1/servers//restart", None, b"").is_err());
        assert!(resolve("POST", "/v1/servers/a/b/restart", None, b"").is_err());
    }

    #[test]
    fn percent_signs_go_both_ways() {
        for text in ["a b", "ü%/?#&=+", "", "plain-._~"] {
            assert_eq!(decode(&encode(text), false), Ok(text.to_owned()));
            assert_eq!(decode(&encode(text), true), Ok(text.to_owned()));
        }
        for wrong in ["%", "%4", "%zz", "%ff"] {
            assert!(decode(wrong, false).is_err(), "{wrong}");
        }
        assert_eq!(decode("a+b", true).unwrap(), "a b");
    }

    #[test]
    fn events_follow_unless_told_otherwise() {
        assert_eq!(
            resolve("GET", "/v1/events", None, b""),
            Ok(OpCall::Events(EventsRequest { follow: true, ..EventsRequest::default() }))
        );
        let once = resolve("GET", "/v1/events", Some("follow=false"), b"");
        assert_eq!(once, Ok(OpCall::Events(EventsRequest::default())));
    }
}
