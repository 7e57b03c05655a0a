//! The ways to a server: TLS, proxies, and no way at all.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::*;

const JSON: &str = "200 OK\r\nContent-Type: application/json";
/// A name that nobody has, so that only a proxy can lead there.
const NAME: &str = "docs.invalid";

/// A CA in a file of its own, and a server's side of TLS that it vouches for.
fn authority(folder: &Path, protocols: &[&str]) -> (std::path::PathBuf, TlsAcceptor) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let file = folder.join("ca.pem");
    #[expect(clippy::disallowed_methods, reason = "a test writes its own input")]
    std::fs::write(&file, ca.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned(), NAME.to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &ca).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    (file, TlsAcceptor::from(Arc::new(config)))
}

/// A server behind TLS, for one connection.
async fn secured(acceptor: TlsAcceptor, todo: Vec<Do>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, seen) = mpsc::channel(100);
    let running = spawn_named("server", async move {
        let (stream, _) = listener.accept().await.unwrap();
        match acceptor.accept(stream).await {
            Ok(stream) => act(stream, todo, tell).await,
            Err(error) => tell.send(error.to_string()).await.unwrap(),
        }
    });
    Server { address, seen, _running: Aborted(running) }
}

fn trusting(file: &Path) -> NetSpec {
    NetSpec { extra_ca: vec![file.to_owned()], ..NetSpec::default() }
}

#[tokio::test]
async fn a_server_is_trusted_by_a_ca_of_one_s_own() {
    let folder = tempfile::tempdir().unwrap();
    let (file, acceptor) = authority(folder.path(), &["http/1.1"]);
    let mut server = secured(acceptor.clone(), answer(JSON, "{}")).await;
    let url = format!("https://{}/mcp", server.address);
    assert_eq!(all(&client(&url, trusting(&file)), post()).await, ["frame {}", "whole"]);
    assert!(server.next().await.starts_with("POST /mcp HTTP/1.1\r\n"));

    let mut server = secured(acceptor, answer(JSON, "{}")).await;
    let url = format!("https://{}/mcp", server.address);
    let said = all(&client(&url, NetSpec::default()), post()).await;
    assert!(said[0].starts_with(&format!("failed sent=false https://{}", server.address)));
    assert!(said[0].ends_with("name that CA's file in tls.extra_ca"), "{said:?}");
    assert!(!server.next().await.starts_with("POST"));
}

#[tokio::test]
async fn http_2_is_spoken_where_it_is_offered() {
    let folder = tempfile::tempdir().unwrap();
    let (file, acceptor) = authority(folder.path(), &["h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap());
    let running = spawn_named("server", async move {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = acceptor.accept(stream).await.unwrap();
        let answer = |request: http::Request<hyper::body::Incoming>| async move {
            let version = format!("{:?}", request.version());
            let body = Full::new(Bytes::from(format!("[\"{version}\"]")));
            Ok::<_, std::convert::Infallible>(http::Response::new(body))
        };
        let io = hyper_util::rt::TokioIo::new(stream);
        let service = hyper::service::service_fn(answer);
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        server.serve_connection(io, service).await.unwrap();
    });
    let client = client(&url, trusting(&file));
    // One connection: the listener takes no second one.
    for _ in 0..2 {
        assert_eq!(all(&client, post()).await, ["frame [\"HTTP/2.0\"]", "whole"]);
    }
    running.abort();
}

#[tokio::test]
async fn plain_http_where_tls_is_expected_is_said() {
    let server = server(vec![vec![
        Do::Write("HTTP/1.1 400 Bad Request\r\n\r\n".to_owned()),
        Do::UntilClosed,
    ]])
    .await;
    let url = format!("https://{}/", server.address);
    let said = all(&client(&url, NetSpec::default()), post()).await;
    assert!(said[0].ends_with("does it speak https at all, or is it http?"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_not_waited_for_without_end() {
    let server = server(vec![vec![Do::UntilClosed]]).await;
    let url = format!("https://{}/", server.address);
    let client = client(&url, NetSpec::default());
    // Reads the roots now: the clock stands still only while nothing else is waited for.
    client.spec().net.tls().await.unwrap();
    let said = all(&client, post()).await;
    assert!(said[0].starts_with("failed sent=false no connection to https://127"), "{said:?}");
    assert!(said[0].ends_with("within 10s (setting upstream.connect_timeout)"), "{said:?}");
}

#[tokio::test]
async fn a_name_that_nobody_has_is_said() {
    let said = all(&client(&format!("http://{NAME}/"), NetSpec::default()), post()).await;
    assert!(said[0].starts_with("failed sent=false http://docs.invalid cannot be reached: "));
}

#[tokio::test]
async fn a_proxy_is_told_the_whole_address() {
    let mut proxy = server(vec![answer(JSON, "{}")]).await;
    let http_proxy = format!("http://me:pw@{}", proxy.address);
    let net = NetSpec { http_proxy, ..NetSpec::default() };
    let client = client(&format!("http://{NAME}/mcp"), net);
    assert_eq!(all(&client, post()).await, ["frame {}", "whole"]);
    let seen = proxy.next().await;
    assert!(seen.starts_with("POST http://docs.invalid/mcp HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("\r\nproxy-authorization: Basic bWU6cHc=\r\n"), "{seen}");
    assert!(!format!("{client:?}").contains("pw"));
}

#[tokio::test]
async fn a_proxy_passes_tls_on_and_sees_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (file, acceptor) = authority(folder.path(), &["http/1.1"]);
    let mut behind = secured(acceptor, answer(JSON, "{}")).await;
    let address = behind.address;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let https_proxy = listener.local_addr().unwrap().to_string();
    let (tell, mut asked) = mpsc::channel(1);
    let proxy = spawn_named("proxy", async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tell.send(request(&mut stream).await).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 Go on\r\n\r\n").await.unwrap();
        let mut on = TcpStream::connect(address).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut on).await;
    });
    let net = NetSpec { https_proxy, ..trusting(&file) };
    let client = client(&format!("https://{NAME}/mcp"), net);
    assert_eq!(all(&client, post()).await, ["frame {}", "whole"]);
    let asked = asked.recv().await.unwrap();
    assert!(asked.starts_with("CONNECT docs.invalid:443 HTTP/1.1\r\n"), "{asked}");
    assert!(!asked.contains("hush"), "{asked}");
    let seen = behind.next().await;
    assert!(seen.starts_with("POST /mcp HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("authorization: Bearer hush"), "{seen}");
    proxy.abort();
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named() {
    for (status, expected) in
        [("407 Who", "proxy authorization required"), ("403 No", "unsuccessful")]
    {
        let proxy = server(vec![answer(status, "")]).await;
        let https_proxy = format!("http://{}", proxy.address);
        let net = NetSpec { https_proxy, ..NetSpec::default() };
        let said = all(&client(&format!("https://{NAME}/"), net), post()).await;
        let begin = format!(
            "failed sent=false https://docs.invalid through the proxy http://{}: ",
            proxy.address
        );
        assert!(said[0].starts_with(&begin), "{said:?}");
        assert!(said[0].contains(expected), "{said:?}");
    }
    let net = NetSpec { https_proxy: "socks4://127.0.0.1:1".to_owned(), ..NetSpec::default() };
    let said = all(&client(&format!("https://{NAME}/"), net), post()).await;
    assert!(said[0].contains("a proxy of the kind socks4 is not supported"), "{said:?}");
}
