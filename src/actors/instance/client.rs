//! From a server's definition to a client of it: references, headers, credentials.

use http::HeaderMap;

use super::spec::{NotStarted, Surroundings, expanded};
use crate::settings::servers::{check_header, check_url};
use crate::settings::{AuthDef, ServerDef, Settings};
use crate::transport::http::auth::{self, NotSendable};
use crate::transport::http::client::{ClientLimits, ClientSpec, Net};
use crate::transport::http::mask::Mask;

/// The client of the remote server that `def` describes.
pub async fn prepare(
    around: &dyn Surroundings,
    net: &Net,
    def: &ServerDef,
    settings: &Settings,
) -> Result<ClientSpec, NotStarted> {
    let url = expanded(around, "url", def.url.as_deref().unwrap_or_default()).await?;
    let url = check_url(&url).map_err(|why| NotStarted::mistake(format!("its `url`: {why}")))?;
    let mut headers = HeaderMap::new();
    for (name, text) in &def.headers {
        let what = format!("headers.{name}");
        let value = expanded(around, &what, text).await?;
        let put = check_header(name).map(|name| auth::header(&mut headers, name, &value));
        put.and_then(|put| put.map_err(|error| error.to_string()))
            .map_err(|why| NotStarted::mistake(format!("its `{what}`: {why}")))?;
    }
    let (query, secret) = match &def.auth {
        Some(auth) => authorize(around, auth, &mut headers).await?,
        None => Default::default(),
    };
    let mask = Mask::new(&secret, &headers, &url);
    let limits = ClientLimits::of(settings);
    Ok(ClientSpec { url, query, headers, mask, limits, net: net.clone() })
}

/// Puts a credential into `headers`, or gives what belongs into the query; and the secret in it.
async fn authorize(
    around: &dyn Surroundings,
    auth: &AuthDef,
    headers: &mut HeaderMap,
) -> Result<(Option<String>, String), NotStarted> {
    let wrong = |error: NotSendable| NotStarted::mistake(format!("its `auth`: {error}"));
    match auth {
        AuthDef::Bearer { token } => {
            let token = expanded(around, "auth.token", token).await?;
            auth::bearer(headers, &token).map_err(wrong)?;
            Ok((None, token))
        }
        AuthDef::Basic { username, password } => {
            let username = expanded(around, "auth.username", username).await?;
            let password = expanded(around, "auth.password", password).await?;
            auth::basic(headers, &username, &password).map_err(wrong)?;
            Ok((None, password))
        }
        AuthDef::Header { name, value } => {
            let value = expanded(around, "auth.value", value).await?;
            let name = check_header(name).map_err(NotStarted::mistake)?;
            auth::header(headers, name, &value).map_err(wrong)?;
            Ok((None, value))
        }
        AuthDef::Query { name, value } => {
            let value = expanded(around, "auth.value", value).await?;
            Ok((Some(auth::query(name, &value)), value))
        }
        // For processes; refused where the configuration is read.
        AuthDef::Env { .. } => Ok(Default::default()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::*;
    use crate::actors::instance::spec::Looking;
    use crate::transport::http::net::NetSpec;

    /// Knows one variable.
    #[derive(Debug)]
    struct Token;

    impl Surroundings for Token {
        fn base(&self) -> Looking<'_, Vec<(OsString, OsString)>> {
            Box::pin(async { Vec::new() })
        }

        fn variable<'a>(&'a self, name: &'a str) -> Looking<'a, Option<OsString>> {
            Box::pin(async move { (name == "T").then(|| "hush".into()) })
        }

        fn command<'a>(&'a self, _text: &'a str) -> Looking<'a, Result<String, String>> {
            Box::pin(async { Err("exit status 1".to_owned()) })
        }

        fn home(&self) -> &Path {
            Path::new("/")
        }
    }

    async fn prepared(def: ServerDef) -> Result<ClientSpec, String> {
        let settings = Settings::defaults(Path::new("/bin/x")).unwrap().settings;
        let net = Net::new(NetSpec::default());
        prepare(&Token, &net, &def, &settings).await.map_err(|error| error.text)
    }

    fn def(url: &str, auth: Option<AuthDef>) -> ServerDef {
        let headers = [("X-Tenant".to_owned(), "${env:T}!".to_owned())];
        let url = Some(url.to_owned());
        ServerDef { url, auth, headers: headers.into(), ..ServerDef::demo(Path::new("/bin/x")) }
    }

    #[tokio::test]
    async fn a01_references_become_headers_and_a_query() {
        let token = "${T}".to_owned();
        let bearer = AuthDef::Bearer { token: token.clone() };
        let spec = prepared(def("https://a.example/mcp", Some(bearer))).await.unwrap();
        assert_eq!(spec.headers["authorization"], "Bearer hush");
        assert_eq!(spec.headers["x-tenant"], "hush!");
        assert_eq!(
            (spec.url.to_string().as_str(), spec.query.as_deref()),
            ("https://a.example/mcp", None)
        );
        assert!(!format!("{spec:?} {:?}", spec.headers).contains("hush"));
        let query = AuthDef::Query { name: "key".to_owned(), value: token };
        let spec = prepared(def("https://${T}.example/mcp?a=b", Some(query))).await.unwrap();
        assert_eq!(spec.url, "https://hush.example/mcp?a=b");
        assert_eq!(spec.query.as_deref(), Some("key=hush"));
    }

    #[tokio::test]
    async fn what_is_missing_or_unfit_is_named() {
        let wrong = |url, auth| async move { prepared(def(url, auth)).await.unwrap_err() };
        let said = wrong("https://${env:NOBODY}/", None).await;
        assert_eq!(said, "`url`: environment variable NOBODY is not set");
        let said = wrong("${T}", None).await;
        assert_eq!(said, "its `url`: is no address; write it like https://example.com/mcp");
        let token = AuthDef::Bearer { token: "${cmd:pass}".to_owned() };
        let said = wrong("https://a/", Some(token)).await;
        assert_eq!(said, "`auth.token`: command `pass`: exit status 1");
        let token = AuthDef::Bearer { token: "a\u{7}".to_owned() };
        let said = wrong("https://a/", Some(token)).await;
        assert_eq!(said, "its `auth`: the token is not one line of plain text");
    }
}
