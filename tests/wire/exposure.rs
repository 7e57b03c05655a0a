//! What a host sees: core tools, modes, op tools, and lists that wait for nobody (F48).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::setup::{PASS, call, failed, find, host, names, reason, start};
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::raw_host::text_of;
use crate::support::schema::MODERN;

const CORE: [&str; 10] = [
    "mcpx_namespaces",
    "mcpx_search",
    "mcpx_types",
    "mcpx_call",
    "mcpx_exec",
    "mcpx_read",
    "mcpx_resources",
    "mcpx_scripts",
    "mcpx_task",
    "mcpx_status",
];

fn two(more: &str) -> Daemon {
    start(
        |daemon| {
            vec![
                daemon.fake("one").args("--tools echo,add"),
                daemon.fake("two").args("--tools echo").line("expose = \"passthrough\""),
            ]
        },
        more,
    )
}

/// H-59, H-44, H-48, H-49, H-52: the core tools, their names, titles, hints and schemas.
#[tokio::test]
async fn h59_h48_h49_the_core_tools() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--tools echo")], "");
    let mut host = host(&daemon, "2025-11-25").await;
    let tools = host.list_tools().await;
    assert_eq!(names(&tools), CORE);
    assert!(serde_json::to_string(&tools).unwrap().len() < 6 * 1024);
    for tool in &tools {
        assert!(tool["title"].is_string() && tool["name"].as_str().unwrap().len() <= 64);
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        let reads = tool["annotations"]["readOnlyHint"] == true;
        let acting = ["mcpx_call", "mcpx_exec", "mcpx_scripts", "mcpx_task"];
        let acts = acting.contains(&tool["name"].as_str().unwrap());
        assert_eq!(reads, !acts, "{tool}");
    }
    assert!(find(&tools, "mcpx_call").get("annotations").is_none());
    assert_eq!(find(&tools, "mcpx_status")["annotations"]["openWorldHint"], false);
}

/// product.md 3: the three modes, and a server's own.
#[tokio::test]
async fn exposure_modes() {
    for (more, wanted) in [
        ("", [CORE.as_slice(), &["two_echo"]].concat()),
        (PASS, vec!["one_add", "one_echo", "two_echo"]),
        (
            "expose.mode = \"both\"",
            [CORE.as_slice(), &["one_add", "one_echo", "two_echo"]].concat(),
        ),
    ] {
        let daemon = two(more);
        let mut host = host(&daemon, "2025-06-18").await;
        assert_eq!(names(&host.list_tools().await), wanted, "{more}");
        if more == PASS {
            let answer = call(&mut host, "one", "echo", json!({})).await;
            assert_eq!(answer["error"]["code"], -32602, "not listed, not there: {answer}");
        }
    }
}

/// product.md 3: one server alone with an empty prefix has bare names.
#[tokio::test]
async fn bare_names_of_one_server() {
    let daemon =
        start(|daemon| vec![daemon.fake("up").args("--tools echo").line("prefix = \"\"")], PASS);
    let mut host = host(&daemon, "2025-06-18").await;
    assert_eq!(names(&host.list_tools().await), ["echo"]);
    assert_eq!(text_of(&host.call("echo", json!({ "text": "bare" })).await), "bare");
}

/// H-50, H-51, H-59, D-10: op tools only behind the setting, with honest hints.
#[tokio::test]
async fn h50_h51_op_tools_behind_their_setting() {
    let daemon = two("expose.ops = true");
    let mut host = host(&daemon, "2025-11-25").await;
    let tools = host.list_tools().await;
    let own: Vec<&Value> = tools
        .iter()
        .filter(|tool| {
            let name = tool["name"].as_str().unwrap();
            name.starts_with("mcpx_") && !CORE.contains(&name)
        })
        .collect();
    assert!(own.len() > 3, "{:?}", names(&tools));
    let mut mutating = 0;
    for tool in own {
        assert!(tool["title"].is_string() && tool["name"].as_str().unwrap().len() <= 64, "{tool}");
        for hint in ["readOnlyHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{hint} of {tool}");
        }
        if tool["annotations"]["readOnlyHint"] == false {
            mutating += 1;
            assert!(tool["annotations"]["destructiveHint"].is_boolean(), "{tool}");
            assert!(tool["annotations"]["idempotentHint"].is_boolean(), "{tool}");
        }
        if tool["inputSchema"]["properties"].as_object().is_none_or(serde_json::Map::is_empty) {
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "H-52: {tool}");
        }
    }
    assert!(mutating > 0, "restart and stop change something");
    let settings = host.call("mcpx_settings_get", json!({})).await;
    assert!(!failed(&settings) && settings.to_string().contains("expose.ops"), "{settings}");
}

/// `mcpx_namespaces`: a line for each server; one server's tools with schemas, paged.
#[tokio::test]
async fn namespaces_makes_core_mode_usable() {
    let daemon = start(
        |daemon| {
            vec![
                daemon
                    .fake("up")
                    .args("--tools echo --tool-count 9")
                    .args("--instructions Careful!"),
                daemon.fake("other").args("--era modern --tools add"),
            ]
        },
        "expose.page = 4",
    );
    let mut host = host(&daemon, "2025-06-18").await;
    let all = text_of(&host.call("mcpx_namespaces", json!({})).await);
    assert!(all.lines().any(|line| line.starts_with("up")), "{all}");
    assert!(all.lines().any(|line| line.starts_with("other")), "{all}");
    let first = text_of(&host.call("mcpx_namespaces", json!({ "namespace": "up" })).await);
    assert!(first.contains("Careful!"), "its instructions: {first}");
    let page = |number: u64| json!({ "namespace": "up", "page": number });
    let third = text_of(&host.call("mcpx_namespaces", page(3)).await);
    let second = text_of(&host.call("mcpx_namespaces", page(2)).await);
    for name in ["echo", "t0001", "t0009"] {
        let times = [&first, &second, &third].iter().filter(|text| text.contains(name)).count();
        assert_eq!(times, 1, "{name}");
    }
    let echo = [&first, &second, &third].into_iter().find(|text| text.contains("echo")).unwrap();
    assert!(echo.contains("\"properties\"") && echo.contains("The fake's tool echo."), "{echo}");
    assert!(failed(&host.call("mcpx_namespaces", page(4)).await));
    assert!(failed(&host.call("mcpx_namespaces", json!({ "namespace": "no" })).await));
}

fn mixed(daemon: &Daemon) -> Vec<Fake> {
    let mut missing = daemon.fake("missing");
    missing.exe = "/no/such/program".into();
    vec![
        daemon.fake("fine").args("--tools echo"),
        missing,
        daemon.fake("crashes").args("--exit 1 --stderr-text out-of-cheese"),
        daemon.fake("mute").args("--initialize-silent --probe silent"),
        daemon.fake("slow").args("--tools echo --start-delay 20000"),
    ]
}

/// F48: one list waits for nobody for long, and the others are shown with their reasons.
#[tokio::test]
async fn f48_one_fine_of_five() {
    let daemon = start(mixed, &format!("{PASS}\nexpose.list_wait = \"600ms\""));
    let mut host = host(&daemon, "2025-06-18").await;
    let began = Instant::now();
    let tools = host.list_tools().await;
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
    assert_eq!(names(&tools), ["fine_echo"]);
    assert_eq!(text_of(&host.call("fine_echo", json!({ "text": "x" })).await), "x");
    let status = daemon.cli(&["status"]).await.expect_code(0).stdout;
    for (name, why) in [("missing", "/no/such/program"), ("crashes", "out-of-cheese")] {
        assert!(status.contains(name), "{status}");
        let own = daemon.cli(&["status", name]).await;
        assert!(format!("{}{}", own.stdout, own.stderr).contains(why), "{own:?}");
    }
}

crate::for_revisions! { all_real;
    /// Issue 2, 7: in core mode a list is there at once, whatever state the upstreams are in.
    async fn f48_core_lists_wait_for_nothing(revision) {
        let daemon = start(mixed, "");
        let mut host = host(&daemon, revision).await;
        // The first answer includes whatever a fresh connection costs.
        host.list_tools().await;
        let began = Instant::now();
        assert_eq!(names(&host.list_tools().await), CORE);
        // 50 ms is the promise; twice that, since other tests share the machine.
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    }
}

/// F48: a silent server's tools are not waited for until a host gives up: what is known is told, and
/// what it is doing.
#[tokio::test]
async fn f48_a_silent_namespace_is_told_in_time() {
    let daemon = start(mixed, "expose.list_wait = \"300ms\"");
    let mut host = host(&daemon, "2025-06-18").await;
    for name in ["mute", "slow"] {
        let began = Instant::now();
        let answer = host.call("mcpx_namespaces", json!({ "namespace": name })).await;
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        let text = text_of(&answer);
        assert!(text.contains("starting since") && text.contains("mcpx_status"), "{answer}");
    }
    let crashes = host.call("mcpx_namespaces", json!({ "namespace": "crashes" })).await;
    assert!(failed(&crashes) && text_of(&crashes).contains("out-of-cheese"), "{crashes}");
}

/// F48: a call on a dead server's listed tool says what is wrong with the server, never "unknown".
#[tokio::test]
async fn f48_a_dead_server_is_not_an_unknown_tool() {
    let daemon = start(
        |daemon| vec![daemon.fake("up").args("--tools echo,die --die-after-calls 0")],
        &format!("{PASS}\npool.park_after = 1"),
    );
    let mut host = host(&daemon, "2025-06-18").await;
    assert_eq!(names(&host.list_tools().await), ["up_die", "up_echo"]);
    // Every call ends the process; soon it is parked.
    for _ in 0..3 {
        let answer = host.call("up_echo", json!({})).await;
        assert!(failed(&answer), "{answer}");
        let why = reason(&answer);
        assert!(["outcome_unknown", "unavailable"].contains(&why), "{answer}");
        assert!(!text_of(&answer).to_lowercase().contains("unknown tool"), "{answer}");
    }
}

/// F48: nor is a server unknown that starts slowly or not at all: a call waits for it as for any
/// start, and says what is wrong with it.
#[tokio::test]
async fn f48_a_slow_server_has_its_tools_all_the_same() {
    let daemon = start(
        |daemon| {
            vec![
                daemon.fake("slow").args("--tools echo --start-delay 1500"),
                daemon.fake("crashes").args("--exit 1 --stderr-text out-of-cheese"),
            ]
        },
        &format!("{PASS}\nexpose.list_wait = \"100ms\""),
    );
    let mut host = host(&daemon, "2025-06-18").await;
    assert_eq!(names(&host.list_tools().await), Vec::<&str>::new());
    assert_eq!(text_of(&host.call("slow_echo", json!({ "text": "x" })).await), "x");
    let crashes = host.call("crashes_echo", json!({})).await;
    assert_eq!(reason(&crashes), "unavailable", "{crashes}");
    assert!(text_of(&crashes).contains("out-of-cheese"), "{crashes}");
    let unknown = host.call("slow_ehco", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown.to_string().contains("slow_echo"), "{unknown}");
}

/// F48, product.md 7: a server that cannot start: unavailable, with its last words and what to run.
#[tokio::test]
async fn f48_reasons_reach_the_caller() {
    let daemon = start(mixed, "upstream.handshake_timeout = \"500ms\"");
    let mut host = host(&daemon, MODERN).await;
    let crashes = call(&mut host, "crashes", "echo", json!({})).await;
    assert!(failed(&crashes) && text_of(&crashes).contains("out-of-cheese"), "{crashes}");
    let missing = call(&mut host, "missing", "echo", json!({})).await;
    assert!(failed(&missing) && text_of(&missing).contains("/no/such/program"), "{missing}");
    let mute = call(&mut host, "mute", "echo", json!({})).await;
    assert!(failed(&mute) && text_of(&mute).contains("upstream.handshake_timeout"), "{mute}");
}
