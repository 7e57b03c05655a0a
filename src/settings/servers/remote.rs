//! What a server table says about a remote server: its address, transport, headers and credentials
//!
//!
//! Values stay as written here. Their references are replaced when a connection is made, so that a
//! secret lives in memory only as long as its connection, and a renewed one is found.

use std::collections::BTreeMap;
use std::fmt;

use http::{HeaderName, HeaderValue, Uri, header};

use super::TableReading;
use crate::settings::mistake::hint;
use crate::settings::references;
use crate::settings::tree::{Entry, Node, Raw};
use crate::settings::value::{Choice, choose};

/// How a remote server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteTransport {
    /// Streamable HTTP, and nothing else.
    Http,
    /// HTTP+SSE of 2024-11-05 at once, without asking for anything newer.
    Sse,
}

/// The words of `transport`; the other spellings are those of hosts' configurations.
const TRANSPORTS: &[Choice] = &[
    Choice { word: "http", also: &["streamable-http", "streamable_http", "streamableHttp"] },
    Choice { word: "sse", also: &["http+sse"] },
];

impl RemoteTransport {
    /// As configured.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// A credential, references unexpanded.
#[derive(Clone, PartialEq, Eq)]
pub enum AuthDef {
    /// `Authorization: Bearer …`.
    Bearer {
        /// The token.
        token: String,
    },
    /// `Authorization: Basic …`.
    Basic {
        /// The name.
        username: String,
        /// The password.
        password: String,
    },
    /// A header of the server's own.
    Header {
        /// The header's name.
        name: String,
        /// Its value.
        value: String,
    },
    /// A variable in the environment of a server with a `command`.
    Env {
        /// The variable's name.
        name: String,
        /// Its value.
        value: String,
    },
    /// A parameter of the URL, which others write into their logs.
    Query {
        /// The parameter's name.
        name: String,
        /// Its value.
        value: String,
    },
}

impl AuthDef {
    /// Its kind as configured.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Bearer { .. } => "bearer",
            Self::Basic { .. } => "basic",
            Self::Header { .. } => "header",
            Self::Env { .. } => "env",
            Self::Query { .. } => "query",
        }
    }

    /// Its members beside `type`, as configured, and whether each is a secret.
    pub fn members(&self) -> [Option<(&'static str, &str, bool)>; 2] {
        match self {
            Self::Bearer { token } => [Some(("token", token, true)), None],
            Self::Basic { username, password } => {
                [Some(("username", username, false)), Some(("password", password, true))]
            }
            Self::Header { name, value }
            | Self::Env { name, value }
            | Self::Query { name, value } => {
                [Some(("name", name, false)), Some(("value", value, true))]
            }
        }
    }
}

/// Names the kind only: values may be secrets that were written in clear.
impl fmt::Debug for AuthDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthDef({})", self.kind())
    }
}

/// The members of each kind of credential.
const AUTH_KINDS: [(&str, &[&str]); 5] = [
    ("bearer", &["token"]),
    ("basic", &["username", "password"]),
    ("header", &["name", "value"]),
    ("env", &["name", "value"]),
    ("query", &["name", "value"]),
];

/// What other programs call it, and what to write here.
pub(super) const FOREIGN_KEYS: [(&str, &str); 4] = [
    ("type", "a server is what its `command` or `url` makes it; `transport` may be http or sse"),
    ("httpUrl", "write `url`, with `transport = \"http\"` if nothing else is to be tried"),
    ("serverUrl", "write `url`"),
    ("bearer_token_env_var", "write auth = { type = \"bearer\", token = \"${env:NAME}\" }"),
];

/// Headers that belong to HTTP or to the protocol and not to a configuration.
const OWN_HEADERS: [&str; 13] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "keep-alive",
    "last-event-id",
    "te",
    "transfer-encoding",
    "upgrade",
    "expect",
    "host",
];

/// What the protocol's own headers begin with.
const PROTOCOL_HEADERS: &str = "mcp-";

/// An address without references: http or https, with a host and without credentials.
pub fn check_url(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.trim().parse().map_err(|error| format!("{error}"))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(other) => return Err(format!("`{other}:` is neither http: nor https:")),
        None => return Err("is no address; write it like https://example.com/mcp".to_owned()),
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return Err(
            "has a user name in it; write auth = { type = \"basic\", username = …, password = … }"
                .to_owned(),
        );
    }
    if uri.host().unwrap_or_default().is_empty() {
        return Err("names no host".to_owned());
    }
    Ok(uri)
}

/// The name of a header that may be configured.
pub fn check_header(name: &str) -> Result<HeaderName, String> {
    let known: HeaderName = name.parse().map_err(|_| format!("{name:?} is no name of a header"))?;
    if OWN_HEADERS.contains(&known.as_str()) || known.as_str().starts_with(PROTOCOL_HEADERS) {
        return Err(format!("the header {name} is set by mcpx itself"));
    }
    Ok(known)
}

impl TableReading<'_> {
    /// `url`. What can be said of one with references is said when they are replaced.
    pub(super) fn url(&mut self, node: &Node) -> Option<String> {
        let text = self.text(node, "url")?;
        let checked = if references::references(&text).is_empty() {
            references::plain(&text).and_then(|plain| check_url(&plain)).map(|_| ())
        } else if text.starts_with('$') || text.starts_with("http") {
            Ok(())
        } else {
            Err("begins with neither http:// nor https://".to_owned())
        };
        self.kept(node, "url", Some(checked)).map(|()| text)
    }

    /// `transport`.
    pub(super) fn transport(&mut self, node: &Node) -> Option<RemoteTransport> {
        let word = self.text(node, "transport")?;
        let chosen = self.kept(node, "transport", Some(choose(TRANSPORTS, &word)))?;
        [RemoteTransport::Http, RemoteTransport::Sse]
            .into_iter()
            .find(|known| known.as_str() == chosen)
    }

    /// `headers`.
    pub(super) fn headers(&mut self, node: &Node) -> BTreeMap<String, String> {
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        let Raw::Table(entries) = &node.raw else {
            let found = node.raw.name();
            self.wrong(node.at, format!("`headers` is a table of texts, found {found}"));
            return headers;
        };
        for entry in entries {
            let twice = headers.keys().any(|known| known.eq_ignore_ascii_case(&entry.key));
            if twice {
                self.wrong(entry.at, format!("the header {} is given twice", entry.key));
            } else if let Err(why) = check_header(&entry.key) {
                self.wrong(entry.at, format!("`headers`: {why}"));
            } else if let Some(text) = self.header_value(entry) {
                headers.insert(entry.key.clone(), text);
            }
        }
        headers
    }

    fn header_value(&mut self, entry: &Entry) -> Option<String> {
        let name = format!("headers.{}", entry.key);
        let text = self.text(&entry.node, &name)?;
        let fits = HeaderValue::from_str(&text).map(|_| ());
        let fits = fits.map_err(|_| "a header's value is one line of plain text".to_owned());
        self.kept(&entry.node, &name, Some(fits)).map(|()| text)
    }

    /// `auth`.
    pub(super) fn auth(&mut self, node: &Node) -> Option<AuthDef> {
        const EXAMPLE: &str = "write it like { type = \"bearer\", token = \"${env:TOKEN}\" }";
        let Raw::Table(entries) = &node.raw else {
            self.wrong(node.at, format!("`auth` is a table, found {}; {EXAMPLE}", node.raw.name()));
            return None;
        };
        let Some(of) = entries.iter().find(|entry| entry.key == "type") else {
            self.wrong(node.at, format!("`auth` has no `type`; {EXAMPLE}"));
            return None;
        };
        let kind = self.text(&of.node, "auth.type")?;
        let Some((_, names)) = AUTH_KINDS.iter().find(|(name, _)| *name == kind) else {
            let text = if kind == "oauth" {
                "`auth.type`: oauth is not supported by this version; take a token from elsewhere \
                 and write it as { type = \"bearer\", token = \"${cmd:…}\" }"
                    .to_owned()
            } else {
                let known = AUTH_KINDS.iter().map(|(name, _)| *name);
                format!("`auth.type`: {kind:?} is not known; {}", hint(&kind, known))
            };
            self.wrong(of.node.at, text);
            return None;
        };
        let mut values = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.key != "type") {
            if names.contains(&entry.key.as_str()) {
                if let Some(text) = self.text(&entry.node, &format!("auth.{}", entry.key)) {
                    values.insert(entry.key.as_str(), text);
                }
            } else {
                let known = hint(&entry.key, names.iter().copied());
                self.wrong(
                    entry.at,
                    format!("`auth.{}` is not known to {kind}; {known}", entry.key),
                );
            }
        }
        if let Some(missing) = names.iter().find(|name| entries.iter().all(|e| e.key != **name)) {
            self.wrong(node.at, format!("`auth` of type {kind} has no `{missing}`"));
        }
        let [first, second] =
            [names.first(), names.get(1)].map(|name| name.and_then(|name| values.remove(name)));
        self.checked_auth(node, &kind, first?, second)
    }

    fn checked_auth(
        &mut self,
        node: &Node,
        kind: &str,
        first: String,
        second: Option<String>,
    ) -> Option<AuthDef> {
        let auth = match (kind, second) {
            ("bearer", None) => AuthDef::Bearer { token: first },
            ("basic", Some(password)) => AuthDef::Basic { username: first, password },
            ("header", Some(value)) => AuthDef::Header { name: first, value },
            ("env", Some(value)) => AuthDef::Env { name: first, value },
            ("query", Some(value)) => AuthDef::Query { name: first, value },
            _ => return None,
        };
        let fits = match &auth {
            AuthDef::Header { name, .. } => check_header(name).map(|_| ()),
            AuthDef::Env { name, .. } if name.is_empty() || name.contains(['=', '\0']) => {
                Err(format!("{name:?} is no name of a variable"))
            }
            AuthDef::Query { name, .. } if name.is_empty() => Err("`name` is empty".to_owned()),
            // RFC 7617: the name ends at the first colon.
            AuthDef::Basic { username, .. }
                if username.contains(':') && !username.contains('$') =>
            {
                Err("a user name has no colon".to_owned())
            }
            _ => Ok(()),
        };
        self.kept(node, "auth", Some(fits)).map(|()| auth)
    }

    /// What belongs to a program only, or to an address only.
    pub(super) fn one_kind(&mut self, seen: &[&str]) {
        let has = |name: &str| seen.contains(&name);
        let kind = self.draft.def.auth.as_ref().map(AuthDef::kind);
        match (has("command"), has("url")) {
            (true, true) => self.wrong(
                self.at,
                "has both `command` and `url`; a server is either a program or an address",
            ),
            (false, false) => self.wrong(
                self.at,
                "has no `command` and no `url`; for example command = [\"npx\", \"-y\", \"…\"] or \
                 url = \"https://…/mcp\"",
            ),
            (true, false) => {
                for name in ["transport", "headers"].into_iter().filter(|name| has(name)) {
                    self.wrong(self.at, format!("`{name}` belongs to a `url`, not to a `command`"));
                }
                if kind.is_some_and(|kind| kind != "env") {
                    let text =
                        "with a `command`, `auth` is of type env: a variable for its process";
                    self.wrong(self.at, text);
                }
            }
            (false, true) => {
                for name in ["args", "env", "cwd"].into_iter().filter(|name| has(name)) {
                    self.wrong(self.at, format!("`{name}` belongs to a `command`, not to a `url`"));
                }
                if kind == Some("env") {
                    let text = "`auth` of type env belongs to a `command`; a remote server has no \
                                process of ours";
                    self.wrong(self.at, text);
                }
                self.twice_authorized();
            }
        }
    }

    fn twice_authorized(&mut self) {
        let def = &self.draft.def;
        let by_auth = match &def.auth {
            Some(AuthDef::Bearer { .. } | AuthDef::Basic { .. }) => header::AUTHORIZATION.as_str(),
            Some(AuthDef::Header { name, .. }) => name,
            _ => return,
        };
        if def.headers.keys().any(|name| name.eq_ignore_ascii_case(by_auth)) {
            let text = format!("the header {by_auth} is given by both `headers` and `auth`");
            self.wrong(self.at, text);
        }
    }
}
