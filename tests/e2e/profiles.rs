//! Profiles (product.md 3; issue 6): what hosts see that come in by one, over the shim and over HTTP.

use serde_json::{Value, json};

use crate::setup::{self, call, names};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::raw_http::HttpHost;
use crate::support::schema::MODERN;

/// Two servers, of which the profile shows one.
fn two(more: &str) -> Daemon {
    let fakes = |daemon: &Daemon| {
        ["one", "two"].map(|name| daemon.fake(name).args("--tools echo,pid,add")).to_vec()
    };
    setup::start(fakes, more)
}

const ONE: &str = "\n[profiles.p]\nservers = [\"one\"]\n";

async fn shim(daemon: &Daemon, profile: &str, revision: &str) -> RawHost {
    let mut host = daemon.shim(&["--profile", profile]);
    setup::open(&mut host, revision).await;
    host
}

async fn over_http(daemon: &Daemon, profile: &str, revision: &str) -> HttpHost {
    let (url, token) = daemon.over_http().await;
    let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let mut host = HttpHost::at(address.parse().unwrap(), &format!("/mcp/{profile}"));
    host.headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    host.open(revision).await;
    host
}

/// What a host asks of a server, by every way that there is.
fn ways(namespace: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("mcpx_namespaces", json!({ "namespace": namespace })),
        ("mcpx_search", json!({ "query": "echo", "namespace": namespace })),
        ("mcpx_types", json!({ "namespace": namespace })),
        ("mcpx_call", json!({ "namespace": namespace, "tool": "echo", "arguments": {} })),
        (
            "mcpx_exec",
            json!({ "code": format!("return await tools.{namespace}.echo({{ text: 'x' }})") }),
        ),
        ("mcpx_status", json!({ "namespace": namespace })),
        ("mcpx_resources", json!({ "namespace": namespace })),
        ("mcpx_read", json!({ "uri": format!("mcpx://{namespace}/x://y") })),
    ]
}

/// A server that a profile does not show is, for its hosts, as one that there is not: in lists, and in
/// whatever is asked of it by name.
#[tokio::test]
async fn a_hidden_server_is_no_server() {
    let daemon = two(ONE);
    // Both are listed, so that nothing is hidden only because it is not known yet.
    let listed = daemon.http("GET", "/v1/tools", None).await.json();
    assert_eq!(listed["namespaces"].as_array().unwrap().len(), 2);
    for revision in ["2025-06-18", MODERN] {
        let mut host = shim(&daemon, "p", revision).await;
        let web = over_http(&daemon, "p", revision).await;
        for (tool, arguments) in [
            ("mcpx_namespaces", json!({})),
            ("mcpx_search", json!({ "query": "echo" })),
            ("mcpx_status", json!({})),
            ("mcpx_exec", json!({ "code": "return Object.keys(tools)" })),
        ] {
            for text in [
                text_of(&host.call(tool, arguments.clone()).await),
                text_of(&web.call(tool, arguments).await),
            ] {
                assert!(!text.contains("two"), "{revision} {tool}: {text}");
            }
        }
        for ((tool, hidden), (_, absent)) in ways("two").into_iter().zip(ways("nil")) {
            let other = text_of(&host.call(tool, absent).await);
            for text in [
                text_of(&host.call(tool, hidden.clone()).await),
                text_of(&web.call(tool, hidden).await),
            ] {
                assert_eq!(text.replace("two", "nil"), other, "{revision} {tool}");
            }
        }
        let answer = call(&mut host, "one", "echo", json!({ "text": "hi" })).await;
        assert_eq!(text_of(&answer), "hi");
    }
    // Everybody else sees both.
    let mut host = setup::host(&daemon, "2025-06-18").await;
    assert!(text_of(&host.call("mcpx_namespaces", json!({})).await).contains("two"));
}

/// Its own exposure, name limit and rules; over HTTP its own project.
#[tokio::test]
async fn a_profile_exposes_in_its_own_way() {
    let more = "\n[policy]\n\"one.add\" = \"deny\"\n[profiles.p]\nservers = [\"o*\"]\n\
                expose = \"passthrough\"\nname_limit = 24\nproject = \"PROJECT\"\n\
                policy = { \"one.echo\" = \"deny\", \"one.add\" = \"allow\" }\n\
                [profiles.all]\nexpose = \"both\"\n";
    let mut daemon = setup::prepare();
    let project = daemon.path("notes");
    let more = more.replace("PROJECT", project.to_str().unwrap());
    let fakes = ["one", "two"].map(|name| daemon.fake(name).args("--tools echo,pid,add"));
    daemon.write_config(&fakes, &setup::quick(&more));
    daemon.launch();
    let web = over_http(&daemon, "p", "2025-11-25").await;
    let mut host = daemon.shim(&["--profile", "p", "--project", project.to_str().unwrap()]);
    host.initialize("2025-11-25").await;
    for tools in [web.list_tools().await, host.list_tools().await] {
        assert_eq!(names(&tools), ["one_pid"]);
    }
    // One project, and so one process.
    let pid = text_of(&web.call("one_pid", json!({})).await);
    assert_eq!(pid, text_of(&host.call("one_pid", json!({})).await));
    let modern = over_http(&daemon, "p", MODERN).await;
    assert_eq!(pid, text_of(&modern.call("one_pid", json!({})).await));
    for hidden in ["one_echo", "one_add", "two_pid", "mcpx_call"] {
        let answer = web.call(hidden, json!({})).await;
        let absent = web.call("one_nil", json!({})).await;
        assert_eq!(answer["error"]["code"], absent["error"]["code"], "{hidden}: {answer}");
        assert_eq!(answer["result"]["isError"], absent["result"]["isError"], "{hidden}: {answer}");
    }
    let mut all = shim(&daemon, "all", "2025-06-18").await;
    let tools = all.list_tools().await;
    let names = names(&tools);
    assert!(names.contains(&"mcpx_call") && names.contains(&"two_echo"), "{names:?}");
    assert!(names.contains(&"one_echo") && !names.contains(&"one_add"), "{names:?}");
}

/// A session belongs to the profile that it was opened by.
#[tokio::test]
async fn a_session_is_found_by_its_own_profile_alone() {
    let daemon = two(&format!("{ONE}[profiles.q]\n"));
    let mine = over_http(&daemon, "p", "2025-06-18").await;
    let ping = mine.message(7, "ping", json!({}));
    for (path, status) in [("/mcp/p", 200), ("/mcp/p/", 200), ("/mcp/q", 404), ("/mcp", 404)] {
        assert_eq!(mine.post(&ping).path(path).send().await.status, status, "{path}");
        let stream = mine.get().path(path).send().await;
        assert_eq!(stream.status, status, "{path}");
    }
    assert_eq!(mine.delete().path("/mcp/q").send().await.status, 404);
    assert!(mine.delete().path("/mcp/p").send().await.status < 300);
}

/// Whoever wants a profile that there is not is told so, and which there are.
#[tokio::test]
async fn an_unknown_profile_is_refused_by_name() {
    let daemon = two(&format!("{ONE}[profiles.review]\n"));
    let mut host = daemon.shim(&["--profile", "reviw"]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "x", "version": "1" } } });
    host.send(&hello).await;
    let answer = host.expect_response(1).await;
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("no profile `reviw`: did you mean `review`?"), "{text}");
    let web = setup::http_stranger(&daemon).await;
    let mut refused = web.post(&hello).path("/mcp/reviw").send().await;
    assert_eq!(refused.status, 404);
    let text = refused.text().await;
    assert!(text.contains("did you mean `review`?"), "{text}");
}

/// A reload reaches the hosts of a profile: they are told where their own view is another, and nobody
/// else is; one whose profile is taken out sees nothing any more.
#[tokio::test]
async fn f38_a_reload_reaches_the_hosts_of_a_profile() {
    let pass = "expose.mode = \"passthrough\"";
    let daemon = two(&format!("{pass}{ONE}"));
    let mut host = shim(&daemon, "p", "2025-06-18").await;
    let mut everybody = setup::host(&daemon, "2025-06-18").await;
    assert_eq!(host.list_tools().await.len(), 3);
    assert_eq!(everybody.list_tools().await.len(), 6);
    let fakes = ["one", "two"].map(|name| daemon.fake(name).args("--tools echo,pid,add"));
    let reload = async |more: &str| {
        daemon.write_config(&fakes, &setup::quick(more));
        daemon.cli(&["reload"]).await.expect_code(0);
    };
    reload(&format!("{pass}\n[profiles.p]\nservers = [\"one\", \"two\"]\n")).await;
    host.expect_notification("notifications/tools/list_changed").await;
    assert_eq!(host.list_tools().await.len(), 6);
    reload(pass).await;
    host.expect_notification("notifications/tools/list_changed").await;
    assert_eq!(host.list_tools().await, Vec::<Value>::new());
    everybody.expect_silence(200).await;
}
