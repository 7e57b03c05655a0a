//! Settings: layers, origins, changes at run time that last (D-06, D-16, U-06).

use serde_json::{Value, json};

use crate::setup;
use crate::support::daemon::Daemon;

async fn setting(daemon: &Daemon, key: &str) -> Value {
    let answer = daemon.cli(&["settings", "get", key, "--json"]).await.expect_code(0).json();
    answer["settings"][0].clone()
}

/// D-06, D-16: what is set at run time wins, takes effect at once, and survives the daemon.
#[tokio::test]
async fn d06_set_at_run_time_and_kept() {
    let mut daemon = setup::start(|daemon| vec![daemon.fake("up")], "call.idle_timeout = \"5s\"");
    assert_eq!(setting(&daemon, "call.idle_timeout").await["value"], "5s");
    let origin = setting(&daemon, "call.idle_timeout").await["origin"].clone();
    assert!(origin.as_str().unwrap().contains("config.toml"), "{origin}");
    assert_eq!(setting(&daemon, "call.total_timeout").await["origin"], "default");
    daemon.cli(&["settings", "set", "call.idle_timeout=300ms"]).await.expect_code(0);
    let output = daemon.cli(&["call", "up", "hang"]).await.expect_code(1);
    assert!(format!("{output:?}").contains("call.idle_timeout"), "at once: {output:?}");
    daemon.restart();
    assert_eq!(setting(&daemon, "call.idle_timeout").await["value"], "300ms");
    assert_eq!(setting(&daemon, "call.idle_timeout").await["origin"], "set at run time");
    // Nothing after the sign forgets it; the file holds again.
    daemon.cli(&["settings", "set", "call.idle_timeout="]).await.expect_code(0);
    assert_eq!(setting(&daemon, "call.idle_timeout").await["value"], "5s");
    daemon.restart();
    assert_eq!(setting(&daemon, "call.idle_timeout").await["value"], "5s");
}

/// D-16: environment over file, flag over environment; the aliases of the seeds are read.
#[tokio::test]
async fn d16_environment_and_flags() {
    let mut daemon = setup::prepare();
    let fakes = [daemon.fake("up").args("--tools echo")];
    daemon.write_config(
        &fakes,
        "upstream.eraCache = false\npool.in_flight = 7\ncall.resend_limit = 1",
    );
    daemon.set_env("MCPX_POOL_IN_FLIGHT", "8");
    daemon.set_env("MCPX_UPSTREAM_PROTOCOL", "legacy");
    daemon.launch();
    assert_eq!(setting(&daemon, "upstream.era_cache").await["value"], false);
    let in_flight = setting(&daemon, "pool.in_flight").await;
    assert_eq!(in_flight["value"], 8);
    assert!(in_flight["origin"].as_str().unwrap().contains("MCPX_POOL_IN_FLIGHT"), "{in_flight}");
    assert_eq!(setting(&daemon, "upstream.protocol").await["value"], "prefer-initialize");
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    assert_eq!(daemon.fake("up").transcript().methods()[0], "initialize");
}

/// U-06: a value that is none is refused with the list, wherever it is given.
#[tokio::test]
async fn u06_refused_wherever_it_is_given() {
    let accepted =
        ["prefer-discover", "prefer-initialize", "force-discover", "force-initialize", "follow"];
    let says = |text: &str| {
        for word in accepted {
            assert!(text.contains(word), "{word} in {text}");
        }
    };
    let mut daemon = setup::prepare();
    daemon.write_config(&[], "upstream.protocol = \"auto\"");
    says(&daemon.cli(&["config", "check"]).await.expect_code(4).stderr);
    says(&daemon.cli(&["daemon"]).await.expect_code(4).stderr);
    daemon.write_config(&[daemon.fake("up").line("protocol = \"newest\"")], "");
    says(&daemon.cli(&["config", "check"]).await.expect_code(4).stderr);
    daemon.write_config(&[], "");
    says(&daemon.cli(&["daemon", "--upstream-protocol", "auto"]).await.expect_code(4).stderr);
    daemon.launch();
    let body = json!({ "settings": { "upstream.protocol": "auto" } });
    let answer = daemon.http("PUT", "/v1/settings", Some(&body)).await;
    assert_eq!(answer.status, 422);
    says(&String::from_utf8_lossy(&answer.body));
    says(&daemon.cli(&["settings", "set", "upstream.protocol=auto"]).await.expect_code(4).stderr);
    daemon.stop();
    daemon.set_env("MCPX_UPSTREAM_PROTOCOL", "auto");
    says(&daemon.cli(&["config", "check"]).await.expect_code(4).stderr);
}

/// A change with one mistake changes nothing.
#[tokio::test]
async fn a_change_is_whole_or_nothing() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], "");
    let body = json!({ "settings": { "pool.in_flight": 9, "pool.queue": -1 } });
    assert_eq!(daemon.http("PUT", "/v1/settings", Some(&body)).await.status, 422);
    assert_ne!(setting(&daemon, "pool.in_flight").await["value"], 9);
    let body = json!({ "settings": { "pool.in_flight": 9, "daemon.workers": 2 } });
    let answer = daemon.http("PUT", "/v1/settings", Some(&body)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["after_restart"], json!(["daemon.workers"]), "says what waits");
}

/// Nearest names for a setting that is none.
#[tokio::test]
async fn nearest_names() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], "");
    let output = daemon.cli(&["settings", "get", "call.idle_timeot"]).await;
    assert_ne!(output.code, 0);
    assert!(output.stderr.contains("call.idle_timeout"), "{output:?}");
}
