//! `mcpx_resources` and `mcpx_read`: resources for models (product.md 4).

use serde_json::{Value, json};

use crate::setup::{PASS, failed, host, reason, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};

fn one(more: &str) -> Daemon {
    start(|daemon| vec![daemon.fake("up").args("--offers --name up")], more)
}

async fn read(host: &mut RawHost, arguments: Value) -> Value {
    host.call("mcpx_read", arguments).await
}

crate::for_revisions! { all_real;
    /// Listed, read whole, by lines, bytes and pattern; what it gives fits every revision.
    async fn a_resource_is_found_and_read(revision) {
        let daemon = one("");
        let mut host = host(&daemon, revision).await;
        let listed = text_of(&host.call("mcpx_resources", json!({})).await).to_owned();
        assert!(listed.contains("mcpx://up/fake://rich | A rich resource | All. | text/plain | 3 bytes"), "{listed}");
        assert!(listed.contains("template mcpx://up/db://{table}/{row} | row | A row."), "{listed}");
        let uri = "mcpx://up/fake://rich";
        for (more, expected) in [
            (json!({}), vec!["one\ntwo\nthree\n"]),
            (json!({ "lines": "2-2" }), vec!["two\n", "[Lines 2 to 2 of 3.]"]),
            (json!({ "bytes": "4-6" }), vec!["two", "[Bytes 4 to 6 of 14.]"]),
            (json!({ "pattern": "^t" }), vec!["2: two\n3: three\n"]),
        ] {
            let mut arguments = more.clone();
            arguments["uri"] = json!(uri);
            let answer = read(&mut host, arguments).await;
            let blocks = answer["result"]["content"].as_array().unwrap();
            let texts: Vec<_> = blocks.iter().map(|block| block["text"].as_str().unwrap()).collect();
            assert_eq!(texts, expected, "{more}: {answer}");
        }
        let blob = read(&mut host, json!({ "uri": "mcpx://up/fake://blob" })).await;
        let resource = &blob["result"]["content"][0]["resource"];
        assert_eq!((&resource["uri"], &resource["blob"]), (&json!("mcpx://up/fake://blob"), &json!("AAEC")));
        let filled = read(&mut host, json!({ "uri": "mcpx://up/db://t/1" })).await;
        assert_eq!(text_of(&filled), "row db://t/1");
    }
}

/// Words narrow the list, a namespace does, and both.
#[tokio::test]
async fn lists_are_searched_and_paged() {
    let fakes = |daemon: &Daemon| {
        vec![daemon.fake("a").args("--offers"), daemon.fake("b").args("--offers")]
    };
    let daemon = start(fakes, "expose.page = 3");
    let mut host = host(&daemon, "2025-11-25").await;
    for (arguments, count) in [
        (json!({ "query": "RICH text" }), 2),
        (json!({ "query": "rich", "namespace": "b" }), 1),
        (json!({ "namespace": "a", "page": 2 }), 2),
    ] {
        let answer = host.call("mcpx_resources", arguments.clone()).await;
        let lines = text_of(&answer).lines().filter(|line| line.contains("mcpx://")).count();
        assert_eq!(lines, count, "{arguments}: {answer}");
    }
    for arguments in [json!({ "page": 9 }), json!({ "namespace": "no" }), json!({ "bogus": 1 })] {
        assert!(failed(&host.call("mcpx_resources", arguments).await));
    }
    let none = host.call("mcpx_resources", json!({ "query": "zebra" })).await;
    assert!(text_of(&none).contains("No such resource"), "{none}");
}

/// Large ones are given in part, and the answer says how to go on.
#[tokio::test]
async fn large_resources_are_given_in_parts() {
    let daemon = start(
        |daemon| vec![daemon.fake("up").args("--offers --blob-size 100000")],
        "expose.read_limit = \"1KiB\"",
    );
    let mut host = host(&daemon, "2025-06-18").await;
    let uri = "mcpx://up/fake://blob";
    let whole = read(&mut host, json!({ "uri": uri })).await;
    assert!(text_of(&whole).contains("expose.read_limit"), "{whole}");
    let part = read(&mut host, json!({ "uri": uri, "bytes": "1-2" })).await;
    assert_eq!(part["result"]["content"][0]["resource"]["blob"], "AQI=", "{part}");
}

/// Mistakes are told in words; a dead server's with its reason.
#[tokio::test]
async fn what_cannot_be_read() {
    let daemon = start(
        |daemon| vec![daemon.fake("up").args("--offers"), daemon.fake("dead").args("--exit 1")],
        "",
    );
    let mut host = host(&daemon, "2025-06-18").await;
    for (arguments, words) in [
        (json!({}), "needs a `uri`"),
        (json!({ "uri": "file:///README.md" }), "mcpx://<namespace>/"),
        (json!({ "uri": "mcpx://up/fake://nothing" }), "mcpx_resources"),
        (json!({ "uri": "mcpx://no/x:1" }), "no namespace `no`"),
        (json!({ "uri": "mcpx://up/fake://rich", "lines": "b" }), "`lines` is a range"),
        (json!({ "uri": "mcpx://up/fake://rich", "pattern": "(" }), "regular expression"),
    ] {
        let answer = read(&mut host, arguments.clone()).await;
        assert!(failed(&answer) && text_of(&answer).contains(words), "{arguments}: {answer}");
    }
    let dead = read(&mut host, json!({ "uri": "mcpx://dead/x:1" })).await;
    assert_eq!(reason(&dead), "unavailable", "{dead}");
}

/// In pass-through mode hosts read by themselves.
#[tokio::test]
async fn not_listed_where_everything_passes() {
    let daemon = one(PASS);
    let mut host = host(&daemon, "2025-06-18").await;
    let answer = read(&mut host, json!({ "uri": "fake://rich" })).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}
