//! Whose requests are answered: the `Host` and `Origin` headers against DNS rebinding.
//!
//! A web page whose name is made to resolve to this machine reaches a listener on loopback with that
//! name in `Host`; a page of any site reaches it with its site in `Origin`. Neither can be forged by
//! a page, so both are checked on every request, whatever the revision: 2025-03-26 to 2026-07-28
//! want `Origin` validated (transports, security), and `Host` is what shows rebinding where a
//! browser sends no `Origin`.
//!
//! Bias: a page from this machine itself (any port of localhost) passes, because that is where the
//! browser hosts run that people use with local servers; the token still stands between it and us.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, header};

/// A host and where given its port, as `Host` has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    host: HostName,
    port: Option<u16>,
}

/// A host in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HostName {
    /// Lower case, without the dot at its end.
    Name(String),
    Address(IpAddr),
}

impl Authority {
    /// Reads `name`, `name:port`, `[v6]:port`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            let address = IpAddr::V6(address.parse::<Ipv6Addr>().ok()?).to_canonical();
            let port = if port.is_empty() { None } else { Some(port.strip_prefix(':')?) };
            (HostName::Address(address), port)
        } else {
            let (host, port) = text.split_once(':').unwrap_or((text, ""));
            (HostName::parse(host)?, Some(port))
        };
        let port = match port {
            None | Some("") => None,
            // Not `+80`, which the number parser would take.
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some(Self { host, port })
    }

    fn is_loopback(&self) -> bool {
        match &self.host {
            HostName::Name(name) => name == "localhost",
            HostName::Address(address) => address.is_loopback(),
        }
    }

    /// Whether `self`, from the settings, means `asked`: without a port it means every port.
    fn means(&self, asked: &Self) -> bool {
        self.host == asked.host && (self.port.is_none() || self.port == asked.port)
    }
}

impl HostName {
    fn parse(text: &str) -> Option<Self> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = name.parse::<core::net::Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let labels = name.split('.').all(|label| !label.is_empty() && label.bytes().all(plain));
        labels.then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostName::Name(name) => f.write_str(name)?,
            HostName::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            HostName::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// A web origin, as `Origin` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    authority: Authority,
}

impl Origin {
    /// Reads `scheme://host[:port]`. What is no such thing (`null`, a path) is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let known = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
        if scheme.is_empty() || !scheme.bytes().all(known) {
            return None;
        }
        let mut authority = Authority::parse(rest.strip_suffix('/').unwrap_or(rest))?;
        let usual = match scheme.as_str() {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        // Browsers leave the usual port out; people write it.
        authority.port = authority.port.filter(|port| Some(*port) != usual);
        Some(Self { scheme, authority })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

/// Why a request is not answered. The texts name the setting that would change it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no `Host`, or more than one: no HTTP/1.1 request (RFC 9112, 3.2).
    #[error("a request has exactly one Host header")]
    HostCount,
    /// `Host` names somebody else.
    #[error(
        "mcpx does not answer for the host {0:?}; if it is meant to, add it to the setting \
         http.allowed_hosts"
    )]
    Host(String),
    /// `Origin` names a foreign site, or none that can be told.
    #[error(
        "pages from {0:?} may not speak to mcpx; if they are meant to, add that origin to the \
         setting http.allowed_origins"
    )]
    Origin(String),
}

/// Longest part of a refused header that is shown again, in characters.
const SHOWN: usize = 100;

/// Who is answered on one listener.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// The address listened on.
    pub listen: SocketAddr,
    /// Further hosts (`http.allowed_hosts`).
    pub hosts: Vec<Authority>,
    /// Further origins (`http.allowed_origins`).
    pub origins: Vec<Origin>,
}

impl Acceptance {
    /// Whether a request with these headers may be answered.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let host = single(headers, &header::HOST)?.ok_or(Refused::HostCount)?;
        let asked = Authority::parse(&host).filter(|asked| self.is_ours(asked));
        let asked = asked.ok_or_else(|| Refused::Host(shown(&host)))?;
        let mut origins = headers.get_all(header::ORIGIN).iter();
        origins.try_for_each(|origin| {
            let text = String::from_utf8_lossy(origin.as_bytes());
            let origin = Origin::parse(&text).filter(|origin| self.may_ask(origin, &asked));
            origin.map(drop).ok_or_else(|| Refused::Origin(shown(&text)))
        })
    }

    /// Whether a host is this listener. An address that was typed as such is nobody's name, so a
    /// listener on all addresses answers for every one of them.
    fn is_ours(&self, asked: &Authority) -> bool {
        let listen = self.listen.ip().to_canonical();
        let by_address = match asked.host {
            HostName::Address(address) => listen.is_unspecified() || listen == address,
            HostName::Name(_) => false,
        };
        let allowed = || self.hosts.iter().any(|host| host.means(asked));
        asked.is_loopback() || by_address || allowed()
    }

    /// Whether a page of `origin` may ask for `asked`, which is ours.
    fn may_ask(&self, origin: &Origin, asked: &Authority) -> bool {
        let web = matches!(origin.scheme.as_str(), "http" | "https");
        let own = web && (origin.authority.is_loopback() || origin.authority == *asked);
        own || self.origins.contains(origin)
    }
}

fn single(headers: &HeaderMap, name: &header::HeaderName) -> Result<Option<String>, Refused> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    if values.next().is_some() { Err(Refused::HostCount) } else { Ok(first) }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn acceptance(listen: &str) -> Acceptance {
        Acceptance {
            listen: listen.parse().unwrap(),
            hosts: ["mcp.example.org", "box:8080"]
                .map(|host| Authority::parse(host).unwrap())
                .into(),
            origins: ["https://app.example.org", "vscode-webview://abc"]
                .map(|origin| Origin::parse(origin).unwrap())
                .into(),
        }
    }

    fn check(listen: &str, host: &str, origin: Option<&str>) -> Result<(), Refused> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        acceptance(listen).check(&headers)
    }

    #[test]
    fn loopback_and_what_is_allowed_is_our_host() {
        for host in [
            "localhost",
            "localhost:7332",
            "LocalHost.:9",
            "localhost:",
            "127.0.0.1:7332",
            "127.8.0.1",
            "[::1]:7332",
            "[::1]",
            "[::ffff:127.0.0.1]:7332",
            "mcp.example.org",
            "MCP.Example.org.:99",
            "box:8080",
        ] {
            assert_eq!(check("127.0.0.1:7332", host, None), Ok(()), "{host}");
        }
    }

    #[test]
    fn every_other_host_is_refused_by_name() {
        for host in [
            "evil.example",
            "evil.example:7332",
            "localhost.evil.example",
            "evil.localhost",
            "box",
            "box:80",
            "192.168.0.7:7332",
            "0.0.0.0:7332",
            "2130706433",
            "127.1",
            "0x7f.0.0.1",
            "[fe80::1%25lo]:7332",
            "[::1",
            "[::1]7332",
            "[127.0.0.1]",
            "::1",
            "localhost:+80",
            "localhost:99999",
            "localhost:7332:7332",
            "user@localhost",
            "localhost/..",
            "local host",
            "localhost..",
            "",
        ] {
            let refused = check("127.0.0.1:7332", host, None).unwrap_err();
            assert_eq!(refused, Refused::Host(host.to_owned()));
            assert!(refused.to_string().contains("http.allowed_hosts"));
        }
    }

    #[test]
    fn the_listened_address_is_our_host() {
        assert_eq!(check("192.168.0.7:7332", "192.168.0.7:7332", None), Ok(()));
        assert!(check("192.168.0.7:7332", "192.168.0.8:7332", None).is_err());
        assert_eq!(check("0.0.0.0:7332", "192.168.0.8:7332", None), Ok(()));
        assert_eq!(check("[::]:7332", "[fe80::1]:7332", None), Ok(()));
        assert!(check("0.0.0.0:7332", "evil.example:7332", None).is_err());
    }

    #[test]
    fn a_request_has_one_host() {
        let mut headers = HeaderMap::new();
        let acceptance = acceptance("127.0.0.1:7332");
        assert_eq!(acceptance.check(&headers), Err(Refused::HostCount));
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        headers.append(header::HOST, HeaderValue::from_static("evil.example"));
        assert_eq!(acceptance.check(&headers), Err(Refused::HostCount));
    }

    #[test]
    fn origins_of_this_machine_of_the_same_site_and_allowed_ones_pass() {
        for (host, origin) in [
            ("localhost:7332", "http://localhost:6274"),
            ("localhost:7332", "http://127.0.0.1:3000"),
            ("127.0.0.1:7332", "https://[::1]:8443"),
            ("mcp.example.org", "https://mcp.example.org"),
            ("mcp.example.org:8443", "https://mcp.example.org:8443"),
            ("localhost", "https://app.example.org"),
            ("localhost", "https://APP.example.org:443"),
            ("localhost", "vscode-webview://abc"),
        ] {
            assert_eq!(check("127.0.0.1:7332", host, Some(origin)), Ok(()), "{origin}");
        }
    }

    #[test]
    fn every_other_origin_is_refused_by_name() {
        for origin in [
            "http://evil.example",
            "http://localhost.evil.example",
            "http://app.example.org",
            "https://app.example.org:8443",
            "https://mcp.example.org",
            "null",
            "",
            "file://",
            "chrome-extension://localhost",
            "http://",
            "http://localhost/path",
            "http://localhost http://evil.example",
        ] {
            let refused = check("127.0.0.1:7332", "localhost:7332", Some(origin)).unwrap_err();
            assert_eq!(refused, Refused::Origin(origin.to_owned()));
            assert!(refused.to_string().contains("http.allowed_origins"));
        }
        let long = check("127.0.0.1:7332", &"x".repeat(5000), None).unwrap_err();
        assert!(long.to_string().len() < 300);
    }

    #[test]
    fn of_two_origins_both_count() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        headers.append(header::ORIGIN, HeaderValue::from_static("http://localhost"));
        headers.append(header::ORIGIN, HeaderValue::from_static("http://evil.example"));
        assert!(acceptance("127.0.0.1:7332").check(&headers).is_err());
    }
}
