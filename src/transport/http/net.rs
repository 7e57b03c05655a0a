//! What all connections of a daemon to remote servers have in common: roots of trust and proxies.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::OnceCell;

use crate::settings::typed::RemoteSettings;
use crate::transport::environment::Environment;

/// Where remote servers are reached through, and whom to trust.
#[derive(Clone, Default)]
pub struct NetSpec {
    /// Further roots of trust: PEM files (`tls.extra_ca`).
    pub extra_ca: Vec<PathBuf>,
    /// The proxy for `http:` addresses (`proxy.http`); empty: what the environment says; [`DIRECT`]:
    /// none.
    pub http_proxy: String,
    /// The same for `https:` addresses (`proxy.https`).
    pub https_proxy: String,
    /// Hosts that are reached without one (`proxy.no_proxy`); empty: what the environment says.
    pub no_proxy: String,
    /// Where variables are looked up; none are without it.
    pub environment: Option<Environment>,
}

/// The value of a proxy setting that turns proxies off, whatever the environment says.
pub const DIRECT: &str = "off";

/// Roots of trust and proxies; built once for a daemon, cheap to clone. Nothing is read before the
/// first connection that needs it.
#[derive(Clone)]
pub struct Net(Arc<Shared>);

struct Shared {
    spec: NetSpec,
    tls: OnceCell<Arc<ClientConfig>>,
    proxies: OnceCell<Matcher>,
}

/// Proxies may have passwords.
impl fmt::Debug for NetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetSpec").field("extra_ca", &self.extra_ca).finish_non_exhaustive()
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Net").field(&self.0.spec).finish()
    }
}

impl Net {
    /// From the settings.
    pub fn new(spec: NetSpec) -> Self {
        Self(Arc::new(Shared { spec, tls: OnceCell::new(), proxies: OnceCell::new() }))
    }

    /// How TLS is spoken: the system's roots and those of `tls.extra_ca`, HTTP/2 before HTTP/1.1.
    /// A failure is not remembered: whoever mends the file need not start the daemon again.
    pub(super) async fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        let load = async || {
            let extra = self.0.spec.extra_ca.clone();
            // Reads hundreds of files on some systems.
            let loaded = tokio::task::spawn_blocking(move || client_config(&extra)).await;
            loaded.map_err(|error| error.to_string())?.map(Arc::new)
        };
        self.0.tls.get_or_try_init(load).await.cloned()
    }

    /// The proxy on the way to `to`. None for this machine itself, as no proxy can reach it.
    pub(super) async fn proxy(&self, to: &Uri) -> Option<Intercept> {
        if is_this_machine(to.host()?) {
            return None;
        }
        self.0.proxies.get_or_init(|| self.0.spec.proxies()).await.intercept(to)
    }
}

/// Whether a proxy is told the whole address by the request itself, in place of a tunnel.
pub(super) fn is_forwarded(to: &Uri, proxy: &Intercept) -> bool {
    to.scheme_str() == Some("http") && proxy.uri().scheme_str() == Some("http")
}

impl NetSpec {
    /// What the settings say; variables are looked up in `environment`.
    pub fn of(settings: &RemoteSettings, environment: Environment) -> Self {
        Self {
            extra_ca: settings.extra_ca.clone(),
            http_proxy: settings.http_proxy.to_string(),
            https_proxy: settings.https_proxy.to_string(),
            no_proxy: settings.no_proxy.join(","),
            environment: Some(environment),
        }
    }

    async fn proxies(&self) -> Matcher {
        let http = self.value(&self.http_proxy, ["http_proxy", "HTTP_PROXY"]).await;
        let https = self.value(&self.https_proxy, ["https_proxy", "HTTPS_PROXY"]).await;
        let all = self.value("", ["all_proxy", "ALL_PROXY"]).await;
        let no = self.value(&self.no_proxy, ["no_proxy", "NO_PROXY"]).await;
        let chosen = |own: String| match own.as_str() {
            DIRECT => String::new(),
            "" => all.clone(),
            _ => own,
        };
        Matcher::builder().http(chosen(http)).https(chosen(https)).no(no).build()
    }

    async fn value(&self, configured: &str, names: [&str; 2]) -> String {
        let Some(environment) = self.environment.as_ref().filter(|_| configured.is_empty()) else {
            return configured.to_owned();
        };
        for name in names {
            let value = environment.variable(name).await.and_then(|value| value.into_string().ok());
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                return value;
            }
        }
        String::new()
    }
}

/// Whether a host is this machine, by its name or address alone.
pub fn is_this_machine(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    let named =
        host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    named || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn client_config(extra_ca: &[PathBuf]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    let (_, unusable) = roots.add_parsable_certificates(system.certs);
    if unusable > 0 || !system.errors.is_empty() {
        tracing::debug!(unusable, errors = ?system.errors, "some of the system's roots are unusable");
    }
    for file in extra_ca {
        add_file(&mut roots, file)
            .map_err(|why| format!("{} (setting tls.extra_ca): {why}", file.display()))?;
    }
    if roots.is_empty() {
        return Err("no root certificate was found on this machine; install its CA certificates \
                    or name a file in tls.extra_ca"
            .to_owned());
    }
    // Named, because a second provider in the graph would make the default one a panic.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn add_file(roots: &mut RootCertStore, file: &Path) -> Result<(), String> {
    let mut found = false;
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
        found = true;
    }
    if found { Ok(()) } else { Err("holds no certificate in PEM form".to_owned()) }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::time::Duration;

    use super::*;

    async fn proxy(spec: NetSpec, to: &str) -> Option<String> {
        let found = Net::new(spec).proxy(&to.parse().unwrap()).await?;
        Some(found.uri().to_string())
    }

    #[tokio::test]
    async fn proxies_come_from_settings_else_from_the_environment() {
        let own = [
            ("HTTP_PROXY", "http://env:1"),
            ("all_proxy", "socks5h://all:2"),
            ("NO_PROXY", "internal.example"),
        ];
        let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let nothing = Duration::ZERO;
        let (environment, capture) = Environment::new(own.into(), nothing, nothing);
        capture.await;
        let from_env = NetSpec { environment: Some(environment), ..NetSpec::default() };
        let set = NetSpec {
            http_proxy: "http://set:3".to_owned(),
            https_proxy: DIRECT.to_owned(),
            no_proxy: "x.example, 10.0.0.0/8".to_owned(),
            ..from_env.clone()
        };
        for (spec, to, expected) in [
            (&from_env, "http://a.example/", Some("http://env:1/")),
            (&from_env, "https://a.example/", Some("socks5h://all:2/")),
            (&from_env, "http://b.internal.example/", None),
            (&set, "http://b.internal.example/", Some("http://set:3/")),
            (&set, "https://a.example/", None),
            (&set, "http://x.example/", None),
            (&set, "http://10.1.2.3/", None),
            (&set, "http://localhost:8080/", None),
            (&set, "http://127.0.0.2/", None),
            (&set, "http://[::1]:9/", None),
        ] {
            assert_eq!(proxy(spec.clone(), to).await.as_deref(), expected, "{to}");
        }
        assert_eq!(proxy(NetSpec::default(), "http://a.example/").await, None);
    }

    #[tokio::test]
    async fn a_file_of_roots_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let net = Net::new(NetSpec { extra_ca: vec![file.clone()], ..NetSpec::default() });
        let why = net.tls().await.unwrap_err();
        assert!(why.contains("ca.pem (setting tls.extra_ca): "), "{why}");
        #[expect(clippy::disallowed_methods, reason = "a test writes its own input")]
        std::fs::write(&file, "nothing").unwrap();
        let why = net.tls().await.unwrap_err();
        assert!(why.contains("holds no certificate"), "{why}");
    }
}
