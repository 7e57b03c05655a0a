//! Secrets out of a server's words: some quote in an error what they were sent, and errors are kept
//! in logs and shown in status.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Uri};

use super::auth::encoded;
use crate::settings::value::MASK;

/// Bytes of a credential that is looked for. A shorter one would be found everywhere.
const CREDENTIAL: usize = 4;

/// The same of other values, which may be words of the protocol itself (`true`, `json`) and no secrets.
const OTHER: usize = 6;

/// The secrets that one server is sent.
#[derive(Clone, Default)]
pub struct Mask(Arc<[String]>);

impl Mask {
    /// Looks for `credential`, and for what may be one: every value of `headers` and of the query of
    /// `url`.
    pub fn new(credential: &str, headers: &HeaderMap, url: &Uri) -> Self {
        let headers = headers.values().filter_map(|value| value.to_str().ok()).flat_map(|value| {
            // Also without `Bearer` or `Basic`.
            [Some(value), value.split_once(' ').map(|(_, after)| after)]
        });
        let query = url.query().unwrap_or_default().split('&');
        let query = query.map(|pair| pair.split_once('=').map(|(_, value)| value));
        let others = headers.chain(query).flatten().map(|text| (text, OTHER));
        let secrets = others
            .chain([(credential, CREDENTIAL)])
            .map(|(text, least)| (text.trim(), least))
            .filter(|(text, least)| text.len() >= *least);
        Self::sorted(secrets.flat_map(|(text, _)| spellings(text)).collect())
    }

    /// Looks for these values alone.
    pub fn of(secrets: impl IntoIterator<Item = String>) -> Self {
        let long = |text: &String| text.len() >= OTHER;
        let secrets = secrets.into_iter().map(|text| text.trim().to_owned()).filter(long);
        Self::sorted(secrets.flat_map(|text| spellings(&text)).collect())
    }

    /// Whatever holds another one goes first.
    fn sorted(mut spellings: Vec<String>) -> Self {
        spellings.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        spellings.dedup();
        Self(spellings.into())
    }

    /// Bytes of the longest one.
    pub fn longest(&self) -> usize {
        self.0.first().map_or(0, String::len)
    }

    /// The text without secrets.
    pub fn text(&self, said: impl Into<String>) -> String {
        self.0.iter().fold(said.into(), |said, secret| {
            if said.contains(secret) { said.replace(secret, MASK) } else { said }
        })
    }

    /// The same of a body. One of JSON stays one.
    pub fn body(&self, said: &Bytes) -> Bytes {
        let text = String::from_utf8_lossy(said);
        let masked = self.text(&*text);
        if masked == text { said.clone() } else { masked.into() }
    }
}

/// As it is sent, as it stands in JSON, with escaped slashes or not, and as it stands in a query.
fn spellings(secret: &str) -> [String; 4] {
    let json = serde_json::Value::from(secret).to_string();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(secret);
    [secret.to_owned(), json.to_owned(), json.replace('/', "\\/"), encoded(secret).to_string()]
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mask")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::http::auth;

    fn mask(credential: &str, headers: &HeaderMap) -> Mask {
        Mask::new(credential, headers, &"https://a.example/mcp?v=2&key=in-query".parse().unwrap())
    }

    #[test]
    fn every_spelling_of_a_secret_is_found() {
        let mut headers = HeaderMap::new();
        auth::basic(&mut headers, "me", "a/\"b").unwrap();
        let mask = mask("a/\"b\n", &headers);
        for said in [
            "a/\"b",
            r#"a/\"b"#,
            r#"a\/\"b"#,
            "a%2F%22b",
            "Basic bWU6YS8iYg==",
            "bWU6YS8iYg==",
            r"in-query",
        ] {
            assert_eq!(mask.text(format!("<{said}> {said}.")), "<***> ***.", "{said}");
        }
        assert_eq!(format!("{mask:?}"), "Mask");
    }

    #[test]
    fn words_of_the_protocol_are_none() {
        let values = [("x-format", "json"), ("x-readonly", "true"), ("x-token", "Bearer hidden")];
        let headers = values.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let mask = mask("abc", &headers.into_iter().collect());
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","a":true,"b":"abc","c":"hidden"}"#);
        assert_eq!(mask.body(&body), r#"{"jsonrpc":"2.0","a":true,"b":"abc","c":"***"}"#);
        let other = Bytes::from_static(b"\xff");
        assert_eq!(mask.body(&other), other);
    }
}
