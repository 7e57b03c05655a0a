//! Remote servers as they are configured: headers, credentials, ways, and what is told when there is
//! no answer (A-01, A-02, A-05, F21).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::http::{count, error, front, names};
use crate::setup;
use crate::support::raw_host::text_of;
use crate::support::scripted_http::{Reply, ScriptedHttp, answers};

/// A01, A02: each kind of credential is where it belongs, on every request.
#[tokio::test]
async fn a01_credentials_go_with_every_request() {
    let token = "${cmd:printf hush}";
    for (auth, header, value, target) in [
        (format!("type = \"bearer\", token = \"{token}\""), "authorization", "Bearer hush", "/mcp"),
        (
            format!("type = \"basic\", username = \"me\", password = \"{token}\""),
            "authorization",
            "Basic bWU6aHVzaA==",
            "/mcp",
        ),
        (
            format!("type = \"header\", name = \"X-Key\", value = \"{token}\""),
            "x-key",
            "hush",
            "/mcp",
        ),
        (
            format!("type = \"query\", name = \"key\", value = \"{token}\""),
            "x-tenant",
            "acme",
            "/mcp?key=hush",
        ),
    ] {
        let server = ScriptedHttp::start(|request| answers::legacy(request, "2025-11-25")).await;
        let more = format!("---\nheaders = {{ X-Tenant = \"acme\" }}\nauth = {{ {auth} }}\n");
        let (mut daemon, mut host) = front(&server, &more).await;
        let answer = host.call("up_echo", json!({ "text": "hi" })).await;
        assert_eq!(text_of(&answer), "hi", "{auth}: {answer}\n{}", server.story());
        daemon.stop();
        server.nth_verb("DELETE", 1).await;
        assert!(names(&server).len() >= 6, "{:?}", names(&server));
        for request in server.requests() {
            assert_eq!(request.header(header).as_deref(), Some(value), "{auth}");
            assert_eq!(request.header("x-tenant").as_deref(), Some("acme"));
            assert_eq!(request.target, target);
            assert_eq!(request.all(header).len(), 1);
        }
    }
}

/// A05: nothing goes to another origin, and the text names both.
#[tokio::test]
async fn a05_a_redirect_to_another_origin_is_told() {
    let other = ScriptedHttp::start(answers::modern).await;
    let elsewhere = other.url("/mcp");
    let location = elsewhere.clone();
    let server =
        ScriptedHttp::start(move |_| Reply::status(307).header("Location", &location)).await;
    let (mut daemon, mut host) = front(&server, "expose.mode = \"core\"").await;
    let answer = setup::call(&mut host, "up", "echo", json!({ "text": "x" })).await;
    let said = text_of(&answer);
    assert!(said.contains(&format!("http://{} redirects (307)", server.addr())), "{said}");
    assert!(said.contains(&format!("write url = \"{elsewhere}\"")), "{said}");
    assert_eq!(other.connections(), 0);
    daemon.stop();
}

/// A05: a call that is led elsewhere was answered: it fails once, and neither the connection nor
/// the server is given up for it.
#[tokio::test]
async fn a05_a_redirected_call_costs_nobody_else() {
    let server = ScriptedHttp::start(|request| {
        if request.method() == Some("tools/call")
            && request.json()["params"]["arguments"]["text"] == "away"
        {
            return Reply::status(307).header("Location", "http://elsewhere.invalid/mcp");
        }
        answers::legacy(request, "2025-11-25")
    })
    .await;
    let (mut daemon, mut host) = front(&server, "").await;
    for times in 1..=3 {
        let answer = host.call("up_echo", json!({ "text": "away" })).await;
        let said = answer.to_string();
        assert!(said.contains(&format!("http://{} redirects (307)", server.addr())), "{said}");
        assert!(said.contains("http://elsewhere.invalid"), "{said}");
        assert_eq!(count(&server, "tools/call"), times);
    }
    let answer = host.call("up_echo", json!({ "text": "here" })).await;
    assert_eq!(text_of(&answer), "here", "{answer}");
    assert_eq!(count(&server, "initialize"), 1);
    daemon.stop();
}

/// P-14: a server that was parked while it was away is tried by a later call, without an operator.
#[tokio::test]
async fn p14_a_call_wakes_a_parked_remote_server() {
    let away = Arc::new(AtomicBool::new(true));
    let is_away = Arc::clone(&away);
    let server = ScriptedHttp::start(move |request| {
        if is_away.load(Ordering::Relaxed) {
            return Reply::status(503);
        }
        answers::legacy(request, "2025-11-25")
    })
    .await;
    let settings = "expose.mode = \"core\"\npool.park_after = 1";
    let (mut daemon, mut host) = front(&server, settings).await;
    let answer = setup::call(&mut host, "up", "echo", json!({ "text": "x" })).await;
    assert!(text_of(&answer).contains("is parked"), "{answer}");
    assert!(text_of(&answer).contains("a later call"), "{answer}");
    away.store(false, Ordering::Relaxed);
    crate::eventually!(std::time::Duration::from_secs(5), {
        let answer = setup::call(&mut host, "up", "echo", json!({ "text": "back" })).await;
        text_of(&answer) == "back"
    });
    daemon.stop();
}

/// F21: a login page is named by its title.
#[tokio::test]
async fn f21_a_login_page_is_told() {
    let page = "<html><head><title>Sign in to Acme</title></head></html>";
    let server = ScriptedHttp::start(move |_| Reply::text(200, "text/html", page)).await;
    let (mut daemon, mut host) = front(&server, "expose.mode = \"core\"").await;
    let answer = setup::call(&mut host, "up", "echo", json!({ "text": "x" })).await;
    let said = text_of(&answer);
    assert!(said.contains("a web page titled \"Sign in to Acme\""), "{said}");
    daemon.stop();
}

/// A server that quotes what it was sent, in a refusal or in an error of the protocol: nothing of it
/// is told to the host or kept anywhere.
#[tokio::test]
async fn a_credential_that_a_server_quotes_is_masked() {
    const SECRET: &str = "zeitgeist";
    let members = format!("---\nauth = {{ type = \"bearer\", token = \"{SECRET}\" }}\n");
    for status in [403, 500, 200] {
        let server = ScriptedHttp::start(move |request| {
            let words = request.header("authorization").unwrap_or_default();
            if status == 200 {
                Reply::json(&error(request, -32602, &format!("no: {words}")))
            } else {
                Reply::text(status, "text/plain", &format!("no: {words}"))
            }
        });
        let server = server.await;
        let more = format!("expose.mode = \"core\"\n{members}");
        let (mut daemon, mut host) = front(&server, &more).await;
        let answer = setup::call(&mut host, "up", "echo", json!({ "text": "x" })).await;
        let mut said = vec![answer.to_string()];
        for words in [&["ps"][..], &["status", "--json"], &["events", "--json"], &["logs", "up"]] {
            said.push(daemon.cli(words).await.stdout);
        }
        daemon.stop();
        said.push(daemon.output());
        for (place, said) in said.iter().enumerate() {
            assert!(!said.contains(SECRET), "{status}, {place}: {said}");
        }
        assert!(said[0].contains("no: ***"), "{status}: {}", said[0]);
    }
}

/// A proxy from the settings is told the whole address; the name is its business.
#[tokio::test]
async fn a_proxy_from_the_settings_is_used() {
    let proxy = ScriptedHttp::start(answers::modern).await;
    let more = format!(
        "{}\nproxy.http = \"{}\"\n\n[servers.up]\nurl = \"http://docs.invalid/mcp\"\n",
        setup::PASS,
        proxy.url("")
    );
    let mut daemon = setup::start(|_| Vec::new(), &more);
    let mut host = setup::host(&daemon, "2025-11-25").await;
    let answer = host.call("up_echo", json!({ "text": "hi" })).await;
    assert_eq!(text_of(&answer), "hi", "{answer}\n{}", proxy.story());
    let called = proxy.nth("tools/call", 1).await;
    assert_eq!(called.target, "http://docs.invalid/mcp");
    assert_eq!(called.header("host").as_deref(), Some("docs.invalid"));
    daemon.stop();
}

/// A server whose certificate a CA of one's own has signed is trusted by `tls.extra_ca`.
#[tokio::test]
async fn a_ca_from_the_settings_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let server = ScriptedHttp::start(answers::modern).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let behind = server.addr();
    let acceptor = acceptor(&ca);
    let terminating = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut on = TcpStream::connect(behind).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut on).await;
            });
        }
    });
    let configured = |extra: &str| {
        let table = format!("\n\n[servers.up]\nurl = \"https://{address}/mcp\"\n");
        format!("expose.mode = \"core\"\n{extra}{table}")
    };
    for (extra, expected) in [
        (format!("tls.extra_ca = [\"{}\"]", ca.display()), "hi"),
        (String::new(), "name that CA's file in tls.extra_ca"),
    ] {
        let mut daemon = setup::start(|_| Vec::new(), &configured(&extra));
        let mut host = setup::host(&daemon, "2025-11-25").await;
        let answer = setup::call(&mut host, "up", "echo", json!({ "text": "hi" })).await;
        assert!(text_of(&answer).contains(expected), "{answer}");
        daemon.stop();
    }
    terminating.abort();
}

fn acceptor(ca_file: &std::path::Path) -> TlsAcceptor {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(ca_file, ca.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &ca).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}
