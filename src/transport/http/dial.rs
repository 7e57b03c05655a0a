//! Connections to remote servers: name, TCP, proxy and TLS, within one limit; each failure in words
//! that a person can act on.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::address::Origin;
use super::net::{Net, is_forwarded};
use crate::settings::value::duration_text;

/// Makes connections for the pool of a client.
#[derive(Debug, Clone)]
pub(super) struct Dial {
    pub(super) net: Net,
    /// For the whole way (`upstream.connect_timeout`).
    pub(super) limit: Duration,
    /// After so much silence the system asks whether the peer is still there
    /// (`upstream.tcp_keepalive`).
    pub(super) keepalive: Duration,
}

/// Why there is no connection, as a sentence without a full stop.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct DialFailed(String);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

type Boxed = Box<dyn Stream>;

type Dialling<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl Dial {
    async fn connect(&self, to: &Uri) -> Result<Wire, DialFailed> {
        let proxy = self.net.proxy(to).await;
        let way = tokio::time::timeout(self.limit, self.way(to, proxy.as_ref()));
        way.await.unwrap_or_else(|_| {
            let through = proxy.map(|proxy| format!(" through the proxy {}", named(proxy.uri())));
            Err(DialFailed(format!(
                "no connection to {}{} within {} (setting upstream.connect_timeout)",
                named(to),
                through.unwrap_or_default(),
                duration_text(self.limit),
            )))
        })
    }

    async fn way(&self, to: &Uri, proxy: Option<&Intercept>) -> Result<Wire, DialFailed> {
        let https = to.scheme_str() == Some("https");
        let Some(proxy) = proxy else {
            let stream = self.tcp(to).await?;
            return if https { self.secured(stream, to).await } else { Ok(Wire::plain(stream)) };
        };
        if is_forwarded(to, proxy) {
            let stream = self.tcp(proxy.uri()).await?;
            return Ok(Wire { forwarded: true, ..Wire::plain(stream) });
        }
        let stream = self.through(to, proxy).await.map_err(|why| {
            DialFailed(format!("{} through the proxy {}: {why}", named(to), named(proxy.uri())))
        })?;
        if https { self.secured(stream, to).await } else { Ok(Wire::plain(stream)) }
    }

    async fn tcp(&self, to: &Uri) -> Result<Boxed, DialFailed> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_keepalive(Some(self.keepalive));
        connector.set_keepalive_interval(Some(self.keepalive));
        let stream = connector.call(to.clone()).await.map_err(|error| {
            DialFailed(format!("{} cannot be reached: {}", named(to), root(&error)))
        })?;
        Ok(Box::new(stream.into_inner()))
    }

    /// A connection to `to` that a proxy passes on byte by byte.
    async fn through(&self, to: &Uri, proxy: &Intercept) -> Result<Boxed, String> {
        let proxy_uri = proxy.uri().clone();
        let to_proxy = ToProxy(self.clone());
        let stream = match proxy_uri.scheme_str() {
            Some("http" | "https") => {
                let mut tunnel = Tunnel::new(proxy_uri, to_proxy);
                if let Some(auth) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(auth.clone());
                }
                // It takes 443 for granted.
                let to = with_port(to).ok_or("has no host")?;
                tunnel.call(to).await.map_err(|error| root(&error))?
            }
            Some(scheme @ ("socks5" | "socks5h")) => {
                let local = scheme == "socks5";
                let mut socks = SocksV5::new(proxy_uri, to_proxy).local_dns(local);
                if let Some((user, password)) = proxy.raw_auth() {
                    socks = socks.with_auth(user.to_owned(), password.to_owned());
                }
                socks.call(to.clone()).await.map_err(|error| root(&error))?
            }
            other => {
                let scheme = other.unwrap_or_default();
                return Err(format!(
                    "a proxy of the kind {scheme} is not supported; http, https, socks5 and \
                     socks5h are"
                ));
            }
        };
        Ok(stream.into_inner())
    }

    async fn secured(&self, stream: Boxed, to: &Uri) -> Result<Wire, DialFailed> {
        let config = self.net.tls().await.map_err(DialFailed)?;
        let (stream, h2) = handshake(stream, to, config).await?;
        Ok(Wire { h2, ..Wire::plain(stream) })
    }
}

/// Speaks TLS; says whether HTTP/2 was agreed.
async fn handshake(
    stream: Boxed,
    to: &Uri,
    config: Arc<ClientConfig>,
) -> Result<(Boxed, bool), DialFailed> {
    let host = to.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let name = ServerName::try_from(host)
        .map_err(|error| DialFailed(format!("{}: {error}", named(to))))?;
    let secured = TlsConnector::from(config).connect(name, stream).await;
    let secured = secured.map_err(|error| DialFailed(tls_failure(to, &error)))?;
    let h2 = secured.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((Box::new(secured), h2))
}

fn tls_failure(to: &Uri, error: &io::Error) -> String {
    use rustls::{CertificateError, Error};
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let hint = match inner {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "; if its certificate comes from a CA of your own, name that CA's file in tls.extra_ca"
        }
        Some(Error::InvalidMessage(_)) => "; does it speak https at all, or is it http?",
        _ => "",
    };
    format!("{} cannot be spoken to over TLS: {error}{hint}", named(to))
}

fn named(uri: &Uri) -> String {
    match Origin::of(uri) {
        Some(origin) => origin.to_string(),
        // A proxy of another kind.
        None => format!(
            "{}://{}",
            uri.scheme_str().unwrap_or_default(),
            uri.authority().map_or("", |authority| authority.as_str())
        ),
    }
}

fn with_port(to: &Uri) -> Option<Uri> {
    let (scheme, host) = (to.scheme_str()?, to.host()?);
    let usual = if scheme == "https" { 443 } else { 80 };
    let port = to.port_u16().unwrap_or(usual);
    format!("{scheme}://{host}:{port}/").parse().ok()
}

/// The cause at the bottom, which names what happened.
pub(super) fn root(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

impl Service<Uri> for Dial {
    type Response = Wire;
    type Error = DialFailed;
    type Future = Dialling<Wire, DialFailed>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), DialFailed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let dial = self.clone();
        Box::pin(async move { dial.connect(&to).await })
    }
}

/// Connects to a proxy itself, for what then talks to it.
#[derive(Debug, Clone)]
struct ToProxy(Dial);

impl Service<Uri> for ToProxy {
    type Response = TokioIo<Boxed>;
    type Error = DialFailed;
    type Future = Dialling<TokioIo<Boxed>, DialFailed>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), DialFailed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, proxy: Uri) -> Self::Future {
        let dial = self.0.clone();
        Box::pin(async move {
            let mut stream = dial.tcp(&proxy).await?;
            if proxy.scheme_str() == Some("https") {
                let config = dial.net.tls().await.map_err(DialFailed)?;
                let mut config = ClientConfig::clone(&config);
                // CONNECT is spoken in HTTP/1.1.
                config.alpn_protocols = vec![b"http/1.1".to_vec()];
                (stream, _) = handshake(stream, &proxy, Arc::new(config)).await?;
            }
            Ok(TokioIo::new(stream))
        })
    }
}

/// A connection as hyper takes it.
pub(super) struct Wire {
    io: TokioIo<Boxed>,
    h2: bool,
    /// To a proxy that reads requests itself.
    forwarded: bool,
}

impl Wire {
    fn plain(stream: Boxed) -> Self {
        Self { io: TokioIo::new(stream), h2: false, forwarded: false }
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.forwarded);
        if self.h2 { connected.negotiated_h2() } else { connected }
    }
}

impl rt::Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl rt::Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
