//! Addresses: origins, and what a reference in an answer means (RFC 3986, 5.2).

use http::Uri;

/// Scheme, host and port of an address: where credentials may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of an absolute address of HTTP.
    pub fn of(uri: &Uri) -> Option<Self> {
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let usual = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let host = uri.host()?.trim_end_matches('.').to_ascii_lowercase();
        Some(Self { scheme, host, port: uri.port_u16().unwrap_or(usual) })
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        match (self.scheme.as_str(), self.port) {
            ("http", 80) | ("https", 443) => Ok(()),
            (_, port) => write!(f, ":{port}"),
        }
    }
}

/// An address without its query, which may hold a credential: as texts and logs show it.
pub fn shown(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let query = if uri.query().is_some() { "?…" } else { "" };
    format!("{scheme}://{authority}{}{query}", uri.path())
}

/// What `reference` means in an answer from `base`; `None` where it is no address of HTTP.
pub fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.trim();
    let reference = reference.split_once('#').map_or(reference, |(before, _)| before);
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let colon = reference.find(':').unwrap_or(reference.len());
    let absolute = colon < reference.find(['/', '?']).unwrap_or(reference.len());
    let text = if absolute {
        reference.to_owned()
    } else if reference.starts_with("//") {
        format!("{scheme}:{reference}")
    } else {
        let (path, query) = match reference.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (reference, None),
        };
        let whole = if path.starts_with('/') {
            path.to_owned()
        } else if path.is_empty() {
            base.path().to_owned()
        } else {
            let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{path}")
        };
        let query = query.or_else(|| base.query().filter(|_| reference.is_empty()));
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{scheme}://{authority}{}{query}", without_dots(&whole))
    };
    text.parse().ok().filter(|uri| Origin::of(uri).is_some())
}

/// The address with one more `name=value` in its query.
pub fn with_query(uri: &Uri, pair: &str) -> Option<Uri> {
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let before = uri.query().map(|query| format!("{query}&")).unwrap_or_default();
    format!("{scheme}://{authority}{}?{before}{pair}", uri.path()).parse().ok()
}

/// A path with its `.` and `..` segments worked in.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn references_are_resolved() {
        let base = uri("https://h.example:8443/a/b?x=1");
        for (reference, expected) in [
            ("/m?s=1", "https://h.example:8443/m?s=1"),
            ("m", "https://h.example:8443/a/m"),
            ("m?to=http://x/", "https://h.example:8443/a/m?to=http://x/"),
            ("?y=2", "https://h.example:8443/a/b?y=2"),
            ("", "https://h.example:8443/a/b?x=1"),
            ("../m", "https://h.example:8443/m"),
            ("../../../m/./n/..", "https://h.example:8443/m/"),
            ("/m#part", "https://h.example:8443/m"),
            ("//other/m", "https://other/m"),
            ("http://other:1/m", "http://other:1/m"),
            ("HTTPS://other", "https://other/"),
        ] {
            assert_eq!(resolve(&base, reference), Some(uri(expected)), "{reference}");
        }
        for wrong in ["http://", "a b", "mailto:x"] {
            assert_eq!(resolve(&base, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn origins_are_compared_whole() {
        let origin = |text| Origin::of(&uri(text)).unwrap();
        assert_eq!(origin("http://A.example/x"), origin("http://a.example:80/y?z"));
        assert_eq!(origin("https://a.example."), origin("https://a.example:443"));
        for (a, b) in [
            ("http://a.example", "https://a.example"),
            ("http://a.example", "http://a.example:8080"),
            ("http://a.example", "http://b.example"),
            ("http://a.example", "http://a.example.evil"),
        ] {
            assert_ne!(origin(a), origin(b));
        }
        assert_eq!(origin("http://[::1]:80/").to_string(), "http://[::1]");
        assert_eq!(origin("https://a:8443/").to_string(), "https://a:8443");
    }

    #[test]
    fn a_query_grows() {
        for (before, after) in [("http://a/b", "http://a/b?k=v"), ("http://a?x", "http://a/?x&k=v")]
        {
            assert_eq!(with_query(&uri(before), "k=v"), Some(uri(after)));
        }
    }

    #[test]
    fn a_query_is_not_shown() {
        assert_eq!(shown(&uri("https://a/b?key=hush")), "https://a/b?…");
    }
}
