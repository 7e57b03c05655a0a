//! What goes on inside, from outside: metrics, events, the audit, traces, the supervision tree
//! (issue 6, item 6; O-01 to O-03).

use serde_json::{Value, json};

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

/// The records of `mcpx audit` with these words.
async fn audit(daemon: &Daemon, words: &[&str]) -> Vec<Value> {
    let words: Vec<&str> = ["audit", "--json"].iter().chain(words).copied().collect();
    let answer = daemon.cli(&words).await.expect_code(0).json();
    assert_eq!((&answer["enabled"], &answer["dropped"]), (&json!(true), &json!(0)), "{answer}");
    answer["records"].as_array().unwrap().clone()
}

/// O-03: every call can be attributed to who made it, whichever way it came; without arguments.
#[tokio::test]
async fn o03_every_call_is_recorded() {
    let mut daemon = setup::start(|daemon| vec![daemon.fake("up").args("--offers")], "");
    let mut host = setup::host(&daemon, "2025-11-25").await;
    setup::call(&mut host, "up", "echo", json!({ "text": "private words" })).await;
    setup::call(&mut host, "up", "fail", json!({ "text": "why" })).await;
    let code = "return await tools.up.echo({ text: 'from a script' })";
    host.call("mcpx_exec", json!({ "code": code })).await;
    daemon.cli(&["call", "up", "rpc_error"]).await.expect_code(1);
    daemon.cli(&["read", "mcpx://up/fake://rich"]).await.expect_code(0);
    daemon.cli(&["prompt", "up", "greet", "name=x"]).await.expect_code(0);
    let records = audit(&daemon, &[]).await;
    let said = |record: &Value| {
        let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
        let way =
            format!("{}{}", text("via"), if record["script"] == true { "+script" } else { "" });
        [way, text("kind"), text("name"), text("outcome")].join(" ")
    };
    let all: Vec<String> = records.iter().map(said).collect();
    assert_eq!(
        all,
        [
            "stdio tool echo ok",
            "stdio tool fail tool_error",
            "stdio+script tool echo ok",
            "control tool rpc_error error",
            "control resource fake://rich ok",
            "control prompt greet ok",
        ]
    );
    let user = std::process::Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8(user).unwrap();
    for record in &records {
        assert_eq!(record["user"], user.trim(), "the kernel says whose connection it is: {record}");
    }
    for record in records.iter().take(3) {
        assert!(record["session"].is_u64() && record["request"].is_number(), "{record}");
        assert!(record["project"].as_str().unwrap().ends_with("/project"), "{record}");
        assert_eq!(record["host"], records[0]["host"]);
        assert!(record["ms"].as_f64().unwrap() > 0.0, "{record}");
    }
    let folder = daemon.path("state/audit");
    let file = std::fs::read_to_string(folder.join("audit.jsonl")).unwrap();
    assert!(!file.contains("private words"), "arguments are recorded only where that is asked for");
    assert_eq!(mode(&folder.join("audit.jsonl")), 0o600);
    // Filters, and what an earlier daemon has recorded.
    assert_eq!(audit(&daemon, &["--outcome", "tool_error"]).await.len(), 1);
    assert_eq!(audit(&daemon, &["--server", "up", "--since", "1h", "--limit", "2"]).await.len(), 2);
    daemon.cli(&["audit", "--since", "yesterday"]).await.expect_code(2);
    drop(host);
    daemon.restart();
    assert_eq!(audit(&daemon, &[]).await.len(), 6);
    let table = daemon.cli(&["audit"]).await.expect_code(0).stdout;
    assert!(table.contains("tool_error") && table.contains("(script)"), "{table}");
}

/// Over HTTP it is whoever has the token, of either era; where anybody may come in, nobody is named.
#[tokio::test]
async fn o03_whose_connection_it_was_over_http() {
    for (more, user) in [("", json!("bearer")), ("http.open = true", json!(null))] {
        let daemon = setup::start(|daemon| vec![daemon.fake("up")], more);
        for revision in ["2025-11-25", "2026-07-28"] {
            let host = setup::http_host(&daemon, revision).await;
            let wanted = json!({ "namespace": "up", "tool": "echo", "arguments": { "text": "x" } });
            host.call("mcpx_call", wanted).await;
        }
        let records = audit(&daemon, &[]).await;
        assert_eq!(records.len(), 2);
        for record in records {
            assert_eq!((&record["via"], &record["user"]), (&json!("http"), &user), "{record}");
        }
    }
}

fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Arguments where they are asked for, without what looks secret; nothing where calls are not recorded.
#[tokio::test]
async fn o03_arguments_and_nothing_by_settings() {
    let daemon = daemon("audit.arguments = true");
    daemon.cli(&["call", "up", "echo", "{\"text\":\"x\",\"api_key\":\"hush\"}"]).await;
    let records = audit(&daemon, &[]).await;
    assert_eq!(records[0]["arguments"], json!({ "text": "x", "api_key": "***" }), "{records:?}");
    daemon.cli(&["settings", "set", "audit.enabled=false"]).await.expect_code(0);
    daemon.cli(&["call", "up", "echo", "text=y"]).await.expect_code(0);
    let text = daemon.cli(&["audit"]).await.expect_code(0).stdout;
    assert!(text.contains("audit.enabled"), "{text}");
    assert_eq!(text.matches(" ok ").count(), 1, "{text}");
}

/// An error of mcpx's own leads to its record.
#[tokio::test]
async fn o03_errors_bear_the_id_of_their_record() {
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], "call.idle_timeout = \"300ms\"");
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let failed = daemon.cli(&["call", "up", "die"]).await.expect_code(1);
    let id = failed.stderr.split("mcpx audit --id ").nth(1).unwrap_or_else(|| panic!("{failed:?}"));
    let id = id.split('`').next().unwrap();
    let found = audit(&daemon, &["--id", id]).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["outcome"], "outcome_unknown");
    // One that never came to its server, too.
    daemon.cli(&["call", "up", "no_such_tool"]).await.expect_code(1);
    let found = audit(&daemon, &["--outcome", "unavailable"]).await;
    assert_eq!((&found[0]["name"], &found[0]["server"]), (&json!("no_such_tool"), &json!("up")));
    let mut host = setup::host(&daemon, "2025-11-25").await;
    let told = setup::call(&mut host, "up", "hang", json!({})).await;
    let id = told["result"]["_meta"]["dev.mcpx/audit"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(audit(&daemon, &["--id", id]).await[0]["outcome"], "timeout");
}

/// What a command that follows prints first, of what `wanted` takes.
async fn first_line(daemon: &Daemon, words: &[&str], wanted: &str) -> String {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let mut command = tokio::process::Command::from(daemon.command(words));
    command.stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the stream goes on");
            if line.contains(wanted) {
                return line;
            }
        }
    };
    tokio::time::timeout(crate::SOON, found).await.unwrap_or_else(|_| panic!("no {wanted} came"))
}

/// Who follows hears of what comes; a filter leaves the rest out.
#[tokio::test]
async fn events_and_audit_are_followed() {
    let daemon = daemon("audit.flush = \"0s\"");
    let calls = async {
        loop {
            daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
        }
    };
    let heard = async {
        first_line(&daemon, &["audit", "-f", "--server", "up"], " echo ok ").await;
        first_line(&daemon, &["trace", "up", "-f"], "tools/call").await;
        first_line(&daemon, &["events", "-f", "--kind", "server"], "server.started").await;
    };
    tokio::select! {
        () = calls => {}
        () = heard => {}
    }
    let words = ["events", "--json", "--server", "up", "--kind", "server"];
    let events = daemon.cli(&words).await.expect_code(0).json();
    let events = events["events"].as_array().unwrap();
    assert!(!events.is_empty());
    for event in events {
        assert_eq!(event["server"], "up", "{event}");
        assert!(event["kind"].as_str().unwrap().starts_with("server."), "{event}");
    }
    daemon.cli(&["events", "--server", "no_such"]).await.expect_code(1);
}

/// The last frames, from the first time on that somebody asks; what is secret is masked.
#[tokio::test]
async fn trace_shows_frames_without_secrets() {
    let daemon = setup::start(
        |daemon| {
            vec![daemon.fake("up").line(
                "auth = { type = \"env\", name = \"SOME_TOKEN\", value = \"hunter22secret\" }",
            )]
        },
        "",
    );
    daemon.cli(&["call", "up", "echo", "text=before"]).await.expect_code(0);
    let nothing = daemon.cli(&["trace", "up"]).await.expect_code(0).stdout;
    assert!(nothing.contains("kept from now on"), "{nothing}");
    let words = ["call", "up", "echo", "{\"text\":\"say hunter22secret\",\"password\":\"pw\"}"];
    daemon.cli(&words).await;
    let answer = daemon.cli(&["trace", "up", "--json"]).await.expect_code(0).json();
    let frames = answer["frames"].as_array().unwrap();
    let shown: Vec<_> = frames.iter().map(|one| (&one["way"], &one["method"])).collect();
    assert_eq!(shown, [(&json!("to"), &json!("tools/call")), (&json!("from"), &json!(null))]);
    assert_eq!(frames[0]["id"], frames[1]["id"], "{answer}");
    let text = frames[0]["text"].as_str().unwrap();
    assert!(text.contains(r#""text":"say ***","password":"***""#), "{text}");
    let all = daemon.cli(&["trace", "up"]).await.expect_code(0).stdout;
    assert!(all.contains('→') && all.contains('←') && !all.contains("hunter22"), "{all}");
    assert!(!all.contains("before"), "{all}");
    daemon.cli(&["trace", "no_such"]).await.expect_code(1);
}

/// Where it is asked for, frames are kept from the start: the handshake is there.
#[tokio::test]
async fn trace_can_be_kept_always() {
    let daemon = daemon("trace.keep = true\ntrace.frames = 200");
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let answer = daemon.cli(&["trace", "up", "--json"]).await.expect_code(0).json();
    let first = &answer["frames"][0];
    assert_eq!((&first["method"], &first["way"]), (&json!("server/discover"), &json!("to")));
}

/// The actors as they are, with the restarts of a server and their reasons.
#[tokio::test]
async fn ps_tree_shows_the_supervision_tree() {
    let daemon = daemon("");
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    daemon.cli(&["call", "up", "die"]).await.expect_code(1);
    daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    let host = setup::host(&daemon, "2025-11-25").await;
    let answer = daemon.cli(&["ps", "--tree", "--json"]).await.expect_code(0).json();
    let below = |node: &Value, kind: &str| -> Vec<Value> {
        let all = node["children"].as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|child| child["kind"] == kind).collect()
    };
    let root = &answer["root"];
    assert_eq!(root["kind"], "Root");
    for part in ["EraCache", "Catalog", "Audit", "Metrics", "Broker", "Tasks", "Exec", "Hosts"] {
        assert_eq!(below(root, part).len(), 1, "{part} in {answer}");
    }
    let pools = below(&below(root, "Upstreams")[0], "Pool");
    let up = pools.iter().find(|pool| pool["name"] == "up").unwrap();
    assert_eq!((&up["state"], &up["restarts"]), (&json!("ready"), &json!(1)), "{up}");
    let why = up["history"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("crashed: "), "{why}");
    assert_eq!(below(up, "Instance").len(), 1);
    assert_eq!(below(&below(root, "Hosts")[0], "Host").len(), 1);
    let table = daemon.cli(&["ps", "--tree"]).await.expect_code(0).stdout;
    assert!(table.contains("├─ Upstreams") && table.contains("Instance"), "{table}");
    assert!(table.contains("crashed: ") && table.contains("restarts within"), "{table}");
    drop(host);
}

/// A collector that takes everything; the bodies that came.
async fn collector() -> (String, std::sync::Arc<std::sync::Mutex<Vec<Vec<u8>>>>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let bodies = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = std::sync::Arc::clone(&bodies);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut all, mut piece) = (Vec::new(), [0; 4096]);
            loop {
                let count = stream.read(&mut piece).await.unwrap_or(0);
                all.extend_from_slice(&piece[..count]);
                let end = all.windows(4).position(|four| four == b"\r\n\r\n");
                if let Some(end) = end {
                    let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
                    assert!(head.starts_with("post /v1/traces"), "{head}");
                    assert!(head.contains("application/x-protobuf"), "{head}");
                    let length = head.split("content-length: ").nth(1).unwrap();
                    let length: usize = length.lines().next().unwrap().parse().unwrap();
                    if all.len() >= end + 4 + length {
                        kept.lock().unwrap().push(all.clone());
                        break;
                    }
                }
                if count == 0 {
                    break;
                }
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(answer).await;
        }
    });
    (address, bodies)
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The trace context of a host's request goes through to its server, with mcpx's spans in between.
#[tokio::test]
async fn traces_go_through_with_our_spans_in_between() {
    let (address, bodies) = collector().await;
    let mut daemon = setup::prepare();
    let secret = daemon.path("home/otel-token");
    std::fs::write(&secret, "hush-hush\n").unwrap();
    let headers = format!("authorization=Bearer ${{file:{}}}, x-scope=a=b", secret.display());
    let more = format!(
        "otel.endpoint = \"{address}\"\notel.interval = \"50ms\"\notel.headers = \"{headers}\""
    );
    daemon.write_config(&[daemon.fake("up")], &setup::quick(&more));
    daemon.launch();
    let mut host = setup::host(&daemon, "2025-11-25").await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let meta = json!({
        "traceparent": format!("00-{trace}-00f067aa0ba902b7-01"),
        "tracestate": "vendor=1",
    });
    let wanted = json!({
        "name": "mcpx_call",
        "arguments": { "namespace": "up", "tool": "echo", "arguments": { "text": "x" } },
        "_meta": meta,
    });
    host.request("tools/call", wanted).await;
    let heard = daemon.fake("up").transcript().with_method("tools/call");
    let meta = &heard.last().unwrap()["params"]["_meta"];
    let parent = meta["traceparent"].as_str().unwrap();
    assert!(parent.starts_with(&format!("00-{trace}-")) && parent.ends_with("-01"), "{parent}");
    assert!(!parent.contains("00f067aa0ba902b7"), "ours is in between: {parent}");
    assert_eq!(meta["tracestate"], "vendor=1");
    let parts: [&[u8]; 6] = [
        b"tools/call mcpx_call",
        b"tools/call echo",
        &[0x4b, 0xf9, 0x2f, 0x35],
        b"vendor=1",
        b"authorization: Bearer hush-hush\r\n",
        b"x-scope: a=b\r\n",
    ];
    crate::eventually!(crate::SOON, {
        let all = bodies.lock().unwrap().concat();
        parts.iter().all(|part| has(&all, part))
    });
    // Nobody is shown what is sent.
    let shown = daemon.cli(&["settings", "--json"]).await.expect_code(0).stdout;
    assert!(shown.contains("otel.headers") && !shown.contains("x-scope"), "{shown}");
    let refused = daemon.cli(&["settings", "set", "otel.headers=hush-hush"]).await.expect_code(4);
    assert!(refused.stderr.contains("`otel.headers`: header 1 is not written"), "{refused:?}");
    assert!(!refused.stderr.contains("hush-hush"), "{refused:?}");
    daemon.cli(&["reload"]).await.expect_code(0);
    // One that its host does not record goes through as it came.
    let parent = format!("00-{trace}-00f067aa0ba902b7-00");
    let wanted = json!({
        "name": "mcpx_call",
        "arguments": { "namespace": "up", "tool": "echo", "arguments": { "text": "y" } },
        "_meta": { "traceparent": parent },
    });
    host.request("tools/call", wanted).await;
    let heard = daemon.fake("up").transcript().with_method("tools/call");
    assert_eq!(heard.last().unwrap()["params"]["_meta"]["traceparent"], parent.as_str());
    // The audit knows the trace; a script's calls are parts of it.
    let records = audit(&daemon, &[]).await;
    assert_eq!(records[0]["trace"], trace);
    let text = metrics(&daemon).await;
    assert_eq!(sample(&text, r#"mcpx_spans_total{fate="dropped"}"#).to_string(), "0");
}

/// A collector that is not there costs traces, and is said once.
#[tokio::test]
async fn a_collector_that_is_not_there_holds_nothing_up() {
    let more = "otel.endpoint = \"http://127.0.0.1:9\"\notel.interval = \"10ms\"";
    let daemon = daemon(more);
    for _ in 0..3 {
        daemon.cli(&["call", "up", "echo", "text=x"]).await.expect_code(0);
    }
    crate::eventually!(crate::SOON, {
        sample(&metrics(&daemon).await, r#"mcpx_spans_total{fate="dropped"}"#) >= 3.0
    });
    let events = daemon.cli(&["events"]).await.expect_code(0).stdout;
    assert_eq!(events.matches("traces are lost (setting otel.endpoint)").count(), 1, "{events}");
}

/// Every command that a page of documentation shows runs; those that follow are ended after a moment.
#[tokio::test]
async fn documented_commands_run() {
    let mut daemon = setup::prepare();
    daemon.write_config(&[], &setup::quick("audit.flush = \"0s\""));
    daemon.launch();
    daemon.cli(&["call", "demo", "echo", "text=x"]).await.expect_code(0);
    let page = include_str!("../../docs/operations.md");
    let configuration = include_str!("../../docs/configuration.md");
    let pages = [page, configuration, include_str!("../../docs/eras.md")];
    let lines = pages.iter().flat_map(|page| page.lines());
    let commands: Vec<&str> = lines.filter_map(|line| line.strip_prefix("$ mcpx ")).collect();
    assert!(commands.len() >= 30, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        if words.contains(&"-f") {
            let mut child = tokio::process::Command::from(daemon.command(&words));
            child.stdout(std::process::Stdio::null()).kill_on_drop(true);
            let moment = std::time::Duration::from_millis(100);
            let ended = tokio::time::timeout(moment, child.spawn().unwrap().wait()).await;
            assert!(ended.is_err(), "{command} goes on: {ended:?}");
        } else {
            daemon.cli(&words).await.expect_code(0);
        }
    }
    // And every metric is explained.
    let text = metrics(&daemon).await;
    for family in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
        assert!(page.contains(&format!("`{family}`")), "{family} is not in docs/operations.md");
    }
}

/// What happens is told: the kinds that no other test waits for.
#[tokio::test]
async fn every_kind_of_event_is_told() {
    let mut daemon = setup::start(
        |daemon| vec![daemon.fake("up"), daemon.fake("noisy").args("--exit 1")],
        "tasks.eager = \"1ms\"\nexec.max_running = 4",
    );
    let mut host = setup::host(&daemon, "2025-11-25").await;
    host.call("mcpx_exec", json!({ "code": "return await tools.up.echo({ text: 'x' })" })).await;
    drop(host);
    daemon.cli(&["settings", "set", "search.results=7"]).await.expect_code(0);
    let good = std::fs::read_to_string(daemon.config_path()).unwrap();
    std::fs::write(daemon.config_path(), "no = [such").unwrap();
    daemon.cli(&["reload"]).await.expect_code(4);
    std::fs::write(daemon.config_path(), good).unwrap();
    daemon.cli(&["settings", "set", "metrics.listen=192.0.2.1:1"]).await.expect_code(0);
    let wanted = [
        "daemon.ready",
        "daemon.listening",
        "daemon.reloaded",
        "daemon.reload_failed",
        "daemon.warning",
        "settings.changed",
        "host.opened",
        "host.closed",
        "exec.ended",
        "server.started",
    ];
    let mut kinds: Vec<String>;
    crate::eventually!(
        crate::SOON,
        {
            let told = daemon.cli(&["events", "--json"]).await.expect_code(0).json();
            let told = told["events"].as_array().unwrap().clone();
            kinds = told.iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect();
            wanted.iter().all(|kind| kinds.iter().any(|told| told == kind))
        },
        "{kinds:?}"
    );
    let ended = daemon.cli(&["events", "--kind", "exec.ended"]).await.expect_code(0).stdout;
    assert!(ended.contains("made 1 call and returned a value"), "{ended}");
    daemon.stop();
    assert!(daemon.output().contains("daemon.stopping"), "{}", daemon.output());
}

/// The findings of `mcpx doctor` on one subject.
fn findings(answer: &Value, subject: &str) -> Vec<Value> {
    let all = answer["findings"].as_array().unwrap().iter();
    all.filter(|finding| finding["subject"] == subject).cloned().collect()
}

/// The doctor names the step at which a server fails, with its time; and what it runs on.
#[tokio::test]
async fn doctor_names_the_limiting_step() {
    let more = "process.spawn_timeout = \"400ms\"\nmetrics.listen = \"192.0.2.1:1\"";
    let daemon = setup::start(
        |daemon| {
            let mut quiet = daemon.fake("quiet").arg("100");
            quiet.exe = "sleep".into();
            vec![daemon.fake("up"), quiet, daemon.fake("lists").args("--list-error -32603")]
        },
        more,
    );
    let answer = daemon.cli(&["doctor", "--json"]).await.expect_code(1).json();
    let up = &findings(&answer, "server up")[0];
    assert_eq!(up["severity"], "ok", "{up}");
    assert!(up["took_ms"].is_u64() && up["step"].is_string(), "{up}");
    let text = up["text"].as_str().unwrap();
    assert!(text.contains("tools") && text.contains("2025-11-25 (legacy, by probe)"), "{text}");
    let quiet = &findings(&answer, "server quiet")[0];
    assert_eq!((&quiet["severity"], &quiet["step"]), (&json!("error"), &json!("start")), "{quiet}");
    assert!(quiet["took_ms"].as_u64().unwrap() >= 400, "{quiet}");
    assert_eq!(findings(&answer, "server lists")[0]["step"], "list", "{answer}");
    assert_eq!(findings(&answer, "program sleep")[0]["severity"], "ok", "{answer}");
    assert!(findings(&answer, "PATH")[0]["text"].as_str().unwrap().contains("/bin"), "{answer}");
    assert_eq!(findings(&answer, "metrics")[0]["severity"], "error", "{answer}");
    assert_eq!(findings(&answer, "versions")[0]["severity"], "ok", "{answer}");
    for subject in ["disk", "state folder", "runtime folder", "configuration"] {
        assert_eq!(findings(&answer, subject)[0]["severity"], "ok", "{subject} in {answer}");
    }
}

/// Without a daemon the doctor looks at what it can see by itself.
#[tokio::test]
async fn doctor_works_without_a_daemon() {
    let daemon = setup::prepare();
    let mut gone = daemon.fake("gone");
    gone.exe = "no-such-program-anywhere".into();
    daemon.write_config(&[gone], &setup::quick("shim.autostart = false"));
    let units = daemon.path("home/systemd/user");
    std::fs::create_dir_all(&units).unwrap();
    let unit = "[Service]\nExecStart=/no/such/mcpx daemon\n";
    std::fs::write(units.join("mcpx.service"), unit).unwrap();
    let answer = daemon.cli(&["doctor", "--json"]).await.expect_code(1).json();
    for (subject, severity) in [
        ("daemon", "warning"),
        ("server gone", "error"),
        ("unit", "error"),
        ("hosts over HTTP", "ok"),
        ("configuration", "ok"),
    ] {
        let found = findings(&answer, subject);
        assert!(found.iter().any(|one| one["severity"] == severity), "{subject} in {answer}");
    }
    for finding in answer["findings"].as_array().unwrap() {
        let sound = finding["severity"] == "ok";
        assert_eq!(finding["mend"].is_string(), !sound, "each has its mend: {finding}");
    }
}

/// What becomes of tasks, and what is refused, is told as well.
#[tokio::test]
async fn tasks_and_refusals_are_told() {
    let more = format!("{}\nhost.max_connections = 1\nexec.start_timeout = \"1ms\"", setup::PASS);
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], &more);
    let mut host = daemon.shim(&[]);
    host.capabilities = json!({ "elicitation": {} });
    setup::open(&mut host, "2025-11-25").await;
    for (tool, arguments) in [
        ("up_echo", json!({ "text": "x" })),
        ("up_rpc_error", json!({})),
        ("up_ask_form", json!({ "id": "x" })),
        ("up_hang", json!({})),
    ] {
        let params = json!({ "name": tool, "arguments": arguments, "task": {} });
        let made = host.request("tools/call", params).await;
        let id = made["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{made}"));
        if tool == "up_hang" {
            daemon.cli(&["tasks", "cancel", id]).await.expect_code(0);
        }
    }
    let echo = &audit(&daemon, &["--outcome", "ok"]).await[0];
    assert_eq!((&echo["name"], &echo["named"]), (&json!("echo"), &json!("up_echo")), "{echo}");
    let _second = daemon.shim(&[]);
    let script = daemon.path("project/script.ts");
    std::fs::write(&script, "return 1").unwrap();
    daemon.cli(&["exec", "script.ts"]).await.expect_code(1);
    let wanted = [
        "task.created",
        "task.completed",
        "task.failed",
        "task.input_required",
        "task.cancelled",
        "host.warning",
        "exec.not_started",
    ];
    let mut kinds: Vec<String>;
    crate::eventually!(
        crate::SOON,
        {
            let told = daemon.cli(&["events", "--json"]).await.expect_code(0).json();
            let told = told["events"].as_array().unwrap().clone();
            kinds = told.iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect();
            wanted.iter().all(|kind| kinds.iter().any(|told| told == kind))
        },
        "{kinds:?}"
    );
}
