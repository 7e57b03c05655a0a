//! Configured credentials onto requests.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// What stands in a query as it is (RFC 3986, 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A secret that cannot be sent; says which and never what it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {0} is not one line of plain text")]
pub struct NotSendable(&'static str);

/// `Authorization: Bearer …`.
pub fn bearer(headers: &mut HeaderMap, token: &str) -> Result<(), NotSendable> {
    put(headers, AUTHORIZATION, &format!("Bearer {}", token.trim()), "token")
}

/// `Authorization: Basic …` (RFC 7617, in UTF-8).
pub fn basic(headers: &mut HeaderMap, username: &str, password: &str) -> Result<(), NotSendable> {
    if username.contains(':') {
        return Err(NotSendable("user name, which has a colon,"));
    }
    let encoded = BASE64_STANDARD.encode(format!("{username}:{password}"));
    put(headers, AUTHORIZATION, &format!("Basic {encoded}"), "password")
}

/// A header of the server's own.
pub fn header(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), NotSendable> {
    put(headers, name, value, "value")
}

/// `name=value` for a query.
pub fn query(name: &str, value: &str) -> String {
    format!("{}={}", encoded(name), encoded(value))
}

/// As a text stands in a query.
pub(super) fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, UNRESERVED)
}

fn put(
    headers: &mut HeaderMap,
    name: HeaderName,
    value: &str,
    what: &'static str,
) -> Result<(), NotSendable> {
    let mut value = HeaderValue::from_str(value).map_err(|_| NotSendable(what))?;
    // Kept out of logs, and out of HTTP/2's table of headers.
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a01_each_kind_in_its_place() {
        let mut headers = HeaderMap::new();
        bearer(&mut headers, "abc\n").unwrap();
        assert_eq!(headers[AUTHORIZATION], "Bearer abc");
        basic(&mut headers, "Aladdin", "open sesame").unwrap();
        assert_eq!(headers[AUTHORIZATION], "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        header(&mut headers, HeaderName::from_static("x-key"), "k").unwrap();
        assert_eq!(headers["x-key"], "k");
        assert!(headers.values().all(HeaderValue::is_sensitive));
        assert!(!format!("{headers:?}").contains("QWx"));
        assert_eq!(query("api key", "a/b&c=ü~"), "api%20key=a%2Fb%26c%3D%C3%BC~");
    }

    #[test]
    fn what_cannot_be_sent_is_not_quoted() {
        let mut headers = HeaderMap::new();
        let error = bearer(&mut headers, "hu\nsh").unwrap_err();
        assert_eq!(error.to_string(), "the token is not one line of plain text");
        assert!(basic(&mut headers, "a:b", "c").is_err());
        assert!(headers.is_empty());
    }
}
