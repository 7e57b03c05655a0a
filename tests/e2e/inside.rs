//! What goes on inside, from outside: metrics, events, the audit, traces, the supervision tree
//! (issue 6, item 6; O-01 to O-03).

use serde_json::json;

use crate::setup;
use crate::support::daemon::Daemon;
use crate::support::raw_http::HttpHost;

fn daemon(more: &str) -> Daemon {
    setup::start(|daemon| vec![daemon.fake("up"), daemon.fake("other").args("--tools add")], more)
}

/// The metrics as the control socket has them.
async fn metrics(daemon: &Daemon) -> String {
    let answer = daemon.http("GET", "/metrics", None).await;
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body).unwrap()
}

/// The value of one sample.
fn sample(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no sample {name} in\n{text}")).parse().unwrap()
}

/// Tool errors, errors of the protocol and refusals are told apart; each call counts once.
#[tokio::test]
async fn metrics_count_calls_by_outcome() {
    let daemon = daemon("");
    for (code, words) in [
        (0, vec!["call", "up", "echo", "text=x"]),
        (0, vec!["call", "up", "echo", "text=y"]),
        (1, vec!["call", "up", "fail", "text=why"]),
        (1, vec!["call", "up", "rpc_error"]),
    ] {
        daemon.cli(&words).await.expect_code(code);
    }
    let mut host = setup::host(&daemon, "2025-11-25").await;
    setup::call(&mut host, "up", "echo", json!({ "text": "z" })).await;
    let text = metrics(&daemon).await;
    for (name, value) in [
        (r#"mcpx_calls_total{server="up",outcome="ok"}"#, 3.0),
        (r#"mcpx_calls_total{server="up",outcome="tool_error"}"#, 1.0),
        (r#"mcpx_calls_total{server="up",outcome="error"}"#, 1.0),
        (r#"mcpx_calls_total{server="up",outcome="timeout"}"#, 0.0),
        (r#"mcpx_call_duration_seconds_count{server="up"}"#, 5.0),
        (r#"mcpx_call_duration_seconds_bucket{server="up",le="+Inf"}"#, 5.0),
        (r#"mcpx_server_up{server="up"}"#, 1.0),
        (r#"mcpx_server_up{server="other"}"#, 0.0),
        (r#"mcpx_server_starts_total{server="up"}"#, 1.0),
        (r#"mcpx_server_in_flight{server="up"}"#, 0.0),
        (r#"mcpx_hosts{transport="stdio"}"#, 1.0),
        (r#"mcpx_actors{kind="Pool"}"#, 2.0),
        (r#"mcpx_actors{kind="Instance"}"#, 1.0),
        (r#"mcpx_actors{kind="Root"}"#, 1.0),
    ] {
        assert_eq!(sample(&text, name).to_string(), value.to_string(), "{name}\n{text}");
    }
    assert!(sample(&text, "process_resident_memory_bytes") > 1e6, "{text}");
    assert!(sample(&text, "process_open_fds") > 5.0, "{text}");
    assert!(sample(&text, r#"mcpx_call_duration_seconds_sum{server="up"}"#) > 0.0, "{text}");
}

/// A server that crashes is counted with the reason, and the call that it took with it.
#[tokio::test]
async fn metrics_count_restarts_by_reason() {
    let daemon = daemon("");
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    daemon.cli(&["call", "up", "die"]).await.expect_code(1);
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    daemon.cli(&["restart", "up"]).await.expect_code(0);
    let text = metrics(&daemon).await;
    for reason in ["crashed", "operator"] {
        let name = format!(r#"mcpx_server_restarts_total{{server="up",reason="{reason}"}}"#);
        assert_eq!(sample(&text, &name).to_string(), "1", "{text}");
    }
    let lost = sample(&text, r#"mcpx_calls_total{server="up",outcome="outcome_unknown"}"#);
    assert_eq!(lost.to_string(), "1", "{text}");
}

/// Over TCP only where it is asked for, under a name of this machine, and nothing but metrics.
#[tokio::test]
async fn metrics_over_tcp() {
    let daemon = daemon("metrics.listen = \"127.0.0.1:0\"");
    let events = daemon.cli(&["events"]).await.expect_code(0).stdout;
    let address = events
        .lines()
        .find_map(|line| line.split_once("metrics are served at http://")?.1.split_once('/'))
        .unwrap_or_else(|| panic!("{events}"))
        .0;
    let host = HttpHost::at(address.parse().unwrap(), "/metrics");
    for (method, path, name, status) in [
        ("GET", "/metrics", None, 200),
        ("GET", "/metrics", Some("evil.example"), 403),
        ("GET", "/v1/status", None, 404),
        ("POST", "/metrics", None, 405),
    ] {
        let mut ask = host.plain(method, b"").path(path).without("authorization");
        if let Some(name) = name {
            ask = ask.header("Host", name);
        }
        let mut response = ask.send().await;
        assert_eq!(response.status, status, "{method} {path} {name:?}");
        let body = String::from_utf8(response.body().await).unwrap();
        match status {
            200 => {
                let kind = response.header("content-type").unwrap();
                assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
                assert!(body.contains("# TYPE mcpx_calls_total counter"), "{body}");
            }
            403 => assert!(body.contains("metrics.allowed_hosts"), "{body}"),
            _ => {}
        }
    }
    // Off by default, and off again at run time.
    daemon.cli(&["settings", "set", "metrics.listen=off"]).await.expect_code(0);
    crate::eventually!(crate::SOON, tokio::net::TcpStream::connect(address).await.is_err());
}
