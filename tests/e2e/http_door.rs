//! Who may come in over HTTP, where, and with what (product.md 5; H-30; the specification's DNS
//! rebinding rules).

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::raw_http::{HttpHost, Response};
use crate::{SOON, eventually, setup};

/// The error in a refusal: JSON-RPC, and for no request in particular.
async fn refusal(mut response: Response) -> String {
    let body: Value = serde_json::from_slice(&response.body().await).unwrap();
    assert_eq!(body["jsonrpc"], "2.0", "{body}");
    assert_eq!((body.get("id"), &body["error"]["code"]), (None, &json!(-32600)), "{body}");
    body["error"]["message"].as_str().unwrap().to_owned()
}

fn health(host: &HttpHost) -> crate::support::raw_http::Send<'_> {
    host.plain("GET", b"").path("/healthz")
}

#[tokio::test]
async fn host_and_origin_are_checked_before_all_else() {
    let more = "http.allowed_hosts = [\"mcp.example.org\"]\n\
                http.allowed_origins = [\"https://app.example.org\"]";
    let daemon = setup::start(|_| vec![], more);
    let host = setup::http_stranger(&daemon).await;
    for (name, origin, status) in [
        (None, None, 200),
        (Some("localhost:9"), None, 200),
        (Some("mcp.example.org"), None, 200),
        (Some("mcp.example.org"), Some("https://mcp.example.org"), 200),
        (None, Some("http://localhost:6274"), 200),
        (None, Some("https://app.example.org"), 200),
        (Some("evil.example"), None, 403),
        (Some("evil.example"), Some("http://evil.example"), 403),
        (None, Some("http://evil.example"), 403),
        (None, Some("null"), 403),
    ] {
        let mut ask = health(&host);
        if let Some(name) = name {
            ask = ask.header("Host", name);
        }
        if let Some(origin) = origin {
            ask = ask.header("Origin", origin);
        }
        let response = ask.send().await;
        let what = format!("{name:?} {origin:?}");
        assert_eq!(response.status, status, "{what}");
        let shared = response.header("access-control-allow-origin").map(str::to_owned);
        assert_eq!(shared.as_deref(), origin.filter(|_| status == 200), "{what}");
        if status == 403 {
            let setting = if name.is_some() { "allowed_hosts" } else { "allowed_origins" };
            assert!(refusal(response).await.contains(setting), "{what}");
        }
    }
    let none = host.bytes(b"GET /healthz HTTP/1.1\r\n\r\n").await;
    assert_eq!(none.status, 400);
    assert!(refusal(none).await.contains("exactly one Host"));
}

/// A page that may ask is told so; any other learns nothing.
#[tokio::test]
async fn a_page_of_this_machine_may_ask_first() {
    let daemon = setup::start(|_| vec![], "");
    let host = setup::http_stranger(&daemon).await;
    let ask = |origin| {
        host.plain("OPTIONS", b"")
            .without("authorization")
            .header("Origin", origin)
            .header("Access-Control-Request-Method", "POST")
            .header("Access-Control-Request-Headers", "authorization,mcp-param-city")
    };
    let yes = ask("http://localhost:6274").send().await;
    assert_eq!(yes.status, 204);
    for (header, value) in [
        ("access-control-allow-origin", "http://localhost:6274"),
        ("access-control-allow-headers", "authorization,mcp-param-city"),
        ("vary", "Origin"),
    ] {
        assert_eq!(yes.header(header), Some(value));
    }
    assert!(yes.header("access-control-allow-methods").unwrap().contains("DELETE"));
    assert!(yes.header("access-control-expose-headers").unwrap().contains("Mcp-Session-Id"));
    let no = ask("http://evil.example").send().await;
    assert_eq!(no.status, 403);
    assert!(no.headers.iter().all(|(name, _)| !name.starts_with("access-control")));
    // The refusal of a token can be read by the page, too.
    let locked = host.get().without("authorization").header("Origin", "http://localhost:1");
    let locked = locked.send().await;
    assert_eq!(locked.status, 401);
    assert_eq!(locked.header("access-control-allow-origin"), Some("http://localhost:1"));
}

#[tokio::test]
async fn without_the_token_nothing_is_served_but_health() {
    let daemon = setup::start(|_| vec![], "");
    let host = setup::http_stranger(&daemon).await;
    let (_, token) = daemon.over_http().await;
    for (path, header, status) in [
        ("/healthz", None, 200),
        ("/mcp", None, 401),
        ("/mcp", Some("Bearer wrong".to_owned()), 401),
        ("/mcp", Some(format!("Basic {token}")), 401),
        ("/mcp", Some(format!("Bearer {token}x")), 401),
        ("/mcp/review", None, 401),
        ("/v1/status", Some(format!("Bearer {token}")), 404),
        ("/v1/status", None, 404),
        ("/v1/attach", Some(format!("Bearer {token}")), 404),
        ("/", None, 404),
        ("/mcpx", Some(format!("Bearer {token}")), 404),
        ("/.well-known/oauth-protected-resource", None, 404),
    ] {
        let mut ask = host.get().path(path).without("authorization");
        if let Some(header) = &header {
            ask = ask.header("Authorization", header);
        }
        let response = ask.send().await;
        assert_eq!(response.status, status, "{path} {header:?}");
        if status == 401 {
            let challenge = response.header("www-authenticate").unwrap();
            assert!(challenge.starts_with("Bearer realm=\"mcpx\""), "{challenge}");
            assert_eq!(challenge.contains("invalid_token"), header.is_some());
            assert!(refusal(response).await.contains("`mcpx status --http`"));
        }
    }
    let served = host.get().send().await;
    assert_ne!(served.status, 401, "with the token it is the endpoint's");
    // The token is nobody's but ours, and is the one that is shown.
    let file = daemon.path("state/keys/http-token");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), token);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let shown = daemon.cli(&["status", "--http"]).await.expect_code(0).stdout;
    assert!(shown.contains(&token) && shown.contains("/mcp"), "{shown}");
    let page = daemon.cli(&["status"]).await.expect_code(0).stdout;
    assert!(page.contains("/mcp") && !page.contains(&token), "{page}");
    assert!(!daemon.output().contains(&token), "never in the log");
}

#[tokio::test]
async fn the_token_outlives_the_daemon() {
    let mut daemon = setup::start(|_| vec![], "");
    let (_, before) = daemon.over_http().await;
    daemon.restart();
    assert_eq!(daemon.over_http().await.1, before);
}

#[tokio::test]
async fn a_token_of_ones_own_opens_the_control_api_and_is_never_shown() {
    let mut daemon = setup::prepare();
    std::fs::write(daemon.path("home/token"), "hunter-of-tokens\n").unwrap();
    let reference = format!("${{file:{}}}", daemon.path("home/token").display());
    daemon.write_config(
        &[],
        &setup::quick(&format!("http.token = \"{reference}\"\nhttp.open = true")),
    );
    daemon.launch();
    let host = setup::http_stranger(&daemon).await;
    assert_eq!(host.headers[0].1, "Bearer hunter-of-tokens");
    assert_eq!(host.plain("GET", b"").path("/v1/version").send().await.status, 200);
    let bare = host.plain("GET", b"").without("authorization");
    assert_eq!(bare.path("/v1/version").send().await.status, 401, "open is for hosts");
    assert_ne!(host.get().without("authorization").send().await.status, 401);
    let settings = daemon.cli(&["settings", "get", "http.token", "--json"]).await;
    assert!(settings.stdout.contains(&reference), "{}", settings.stdout);
    // A literal one is masked wherever settings are shown.
    daemon.cli(&["settings", "set", "http.token=in-clear-text"]).await.expect_code(0);
    eventually!(SOON, daemon.over_http().await.1 == "in-clear-text");
    for words in [&["settings"][..], &["settings", "--json"], &["config", "show"]] {
        let shown = daemon.cli(words).await.expect_code(0).stdout;
        assert!(shown.contains("***") && !shown.contains("in-clear-text"), "{shown}");
    }
    daemon.restart();
    assert_eq!(daemon.over_http().await.1, "in-clear-text", "kept, though masked");
}

#[tokio::test]
async fn a_door_that_everybody_could_open_is_refused() {
    let mut daemon = setup::prepare();
    daemon.set_env("MCPX_HTTP_LISTEN", "");
    let more = "http.listen = \"0.0.0.0:0\"\nhttp.open = true";
    daemon.write_config(&[], more);
    let refused = daemon.cli(&["daemon"]).await.expect_code(4).stderr;
    assert!(refused.contains("config.toml:2:6: `http.open` needs a loopback address"), "{refused}");
    daemon.write_config(&[], "http.listen = \"[::1]:0\"\nhttp.open = true");
    daemon.cli(&["config", "check"]).await.expect_code(0);
    daemon.write_config(&[], "http.listen = \"localhost\"");
    let refused = daemon.cli(&["config", "check"]).await.expect_code(4).stderr;
    assert!(refused.contains("\"localhost\" is not an address and port"), "{refused}");
}

/// A port that is taken keeps nobody from working, and is said where people look.
#[tokio::test]
async fn a_port_that_is_taken_is_said_and_tried_again() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut daemon = setup::prepare();
    daemon.set_env("MCPX_HTTP_LISTEN", &address);
    daemon.write_config(&[daemon.fake("up")], &setup::quick(""));
    daemon.launch();
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let why = format!("{address} cannot be listened on (setting http.listen)");
    for words in [&["status"][..], &["status", "--http"], &["events"]] {
        let shown = daemon.cli(words).await.expect_code(0).stdout;
        assert!(shown.contains(&why), "{shown}");
    }
    let found = daemon.cli(&["doctor"]).await.expect_code(1);
    let told = format!("{}{}", found.stdout, found.stderr);
    assert!(told.contains(&why) && told.contains("set http.listen"), "{told}");
    drop(taken);
    daemon.cli(&["reload"]).await.expect_code(0);
    eventually!(SOON, daemon.over_http().await.0 == format!("http://{address}/mcp"));
    assert_eq!(health(&setup::http_stranger(&daemon).await).send().await.status, 200);
    daemon.cli(&["doctor"]).await.expect_code(0);
}

/// `http.listen` and the rest of the door's rules are obeyed at once.
#[tokio::test]
async fn the_door_moves_and_closes_while_the_daemon_runs() {
    let daemon = setup::start(|_| vec![], "");
    let before = setup::http_stranger(&daemon).await;
    set(&daemon, "http.open=true").await;
    eventually!(SOON, before.get().without("authorization").send().await.status != 401);
    set(&daemon, "http.listen=[::1]:0").await;
    eventually!(SOON, daemon.over_http().await.0.starts_with("http://[::1]:"));
    assert_eq!(health(&setup::http_stranger(&daemon).await).send().await.status, 200);
    set(&daemon, "http.listen=off").await;
    eventually!(SOON, daemon.over_http().await.0.is_empty());
    let shown = daemon.cli(&["status", "--http"]).await.expect_code(0).stdout;
    assert!(shown.contains("not served: the setting http.listen is empty"), "{shown}");
    daemon.cli(&["doctor"]).await.expect_code(0);
}

async fn set(daemon: &Daemon, setting: &str) {
    daemon.cli(&["settings", "set", setting]).await.expect_code(0);
}
