//! `resources/list`, `resources/templates/list` and `resources/read`, by revision and mode.

use serde_json::{Value, json};

use crate::setup::{PASS, call, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::RawHost;
use crate::support::schema::MODERN;

const README: &str = "file:///README.md";

/// An old and a new server that offer the same.
fn both_eras(more: &str) -> Daemon {
    start(
        |daemon| {
            vec![
                daemon.fake("old").args("--offers --name old"),
                daemon.fake("new").args("--offers --name new --era modern"),
            ]
        },
        more,
    )
}

async fn list(host: &mut RawHost, method: &str, key: &str) -> Vec<Value> {
    let answer = host.request(method, json!({})).await;
    let items = answer["result"][key].as_array();
    items.unwrap_or_else(|| panic!("no list: {answer}")).clone()
}

async fn resources(host: &mut RawHost) -> Vec<Value> {
    list(host, "resources/list", "resources").await
}

async fn read(host: &mut RawHost, uri: &str) -> Value {
    host.request("resources/read", json!({ "uri": uri })).await
}

fn uris(items: &[Value]) -> Vec<&str> {
    items.iter().filter_map(|item| item["uri"].as_str()).collect()
}

fn text(answer: &Value) -> &str {
    answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

fn not_found(revision: &str) -> i64 {
    if revision == MODERN { -32602 } else { -32002 }
}

crate::for_revisions! { all_real;
    /// H-04, H-61, H-21: of a resource each revision gets the members that it has, of servers of both
    /// eras, under addresses of mcpx.
    async fn h04_h61_members_of_a_resource(revision) {
        let vendor = r#"{"uri":"v:1","name":"v","x-vendor":{"kept":true},"title":null}"#;
        let fakes = |daemon: &Daemon| {
            let old = daemon.fake("old").args("--offers --resource").arg(vendor);
            vec![old, daemon.fake("new").args("--offers --era modern --resource").arg(vendor)]
        };
        let daemon = start(fakes, "");
        let mut host = host(&daemon, revision).await;
        // On purpose: what no revision defines is carried.
        host.frames.allow_key("x-vendor");
        let answer = host.request("resources/list", json!({})).await;
        // Own lists: list_changed tells, so nothing is to be kept.
        let hints = (&answer["result"]["ttlMs"], &answer["result"]["cacheScope"]);
        let none = (&Value::Null, &Value::Null);
        let own = (&json!(0), &json!("private"));
        assert_eq!(hints, if revision == MODERN { own } else { none });
        let all = answer["result"]["resources"].as_array().unwrap();
        assert_eq!(all.len(), 10, "{answer}");
        for up in ["old", "new"] {
            let address = format!("mcpx://{up}/v:1");
            let item = all.iter().find(|item| item["uri"] == *address).unwrap();
            assert_eq!(*item, json!({ "uri": address, "name": "v", "x-vendor": { "kept": true } }));
            let address = format!("mcpx://{up}/fake://rich");
            let item = all.iter().find(|item| item["uri"] == *address).unwrap();
            for (key, from) in [
                ("title", "2025-06-18"),
                ("_meta", "2025-06-18"),
                ("icons", "2025-11-25"),
                ("annotations", "2024-11-05"),
            ] {
                assert_eq!(item.get(key).is_some(), revision >= from, "{up}.{key}: {item}");
            }
            let dated = item["annotations"].get("lastModified").is_some();
            assert_eq!(dated, revision >= "2025-06-18", "{item}");
        }
    }

    /// R-02: templates are listed by `uriTemplate` and stay templates: what a host fills in is read at
    /// their server, as it was filled in.
    async fn r02_templates_can_be_filled_in(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        let all = list(&mut host, "resources/templates/list", "resourceTemplates").await;
        let templates: Vec<_> = all.iter().map(|item| item["uriTemplate"].as_str().unwrap()).collect();
        assert_eq!(templates, ["mcpx://new/db://{table}/{row}", "mcpx://old/db://{table}/{row}"]);
        for template in templates {
            let uri = template.replace("{table}", "a%2Fb").replace("{row}", "7");
            let answer = read(&mut host, &uri).await;
            assert_eq!(text(&answer), "row db://a%2Fb/7", "{answer}");
            assert_eq!(answer["result"]["contents"][0]["uri"], uri);
        }
    }

    /// R-01, R-03, R-04, U-28: contents under the address that was asked for; what is not there, in
    /// whatever way, by the host's code and with its address.
    async fn r03_reading_and_not_found(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        for up in ["old", "new"] {
            let uri = format!("mcpx://{up}/{README}");
            let answer = read(&mut host, &uri).await;
            assert_eq!(text(&answer), format!("{README} of {up}"));
            assert_eq!(answer["result"]["contents"][0]["uri"], uri);
            // Of several contents each has its own address.
            let many = read(&mut host, &format!("mcpx://{up}/fake://many")).await;
            assert_eq!(many["result"]["contents"][1]["uri"], uri, "{many}");
        }
        for uri in [
            "mcpx://old/fake://nothing",
            "mcpx://new/fake://nothing",
            "mcpx://nowhere/fake://x",
            "mcpx:///fake://x",
            "mcpx://old",
            README,
        ] {
            let answer = read(&mut host, uri).await;
            assert_eq!(answer["error"]["code"], not_found(revision), "{uri}: {answer}");
            assert_eq!(answer["error"]["data"]["uri"], uri, "{answer}");
        }
        // What a server says otherwise is its own word.
        let answer = read(&mut host, "mcpx://old/fake://broken").await;
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
        let answer = host.request("resources/read", json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }

    /// product.md 7: the hints of a resource are the upstream's, and where it has none, 0 and private.
    async fn h21_cache_hints_of_a_resource(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        for (up, ttl, scope) in [("new", 7, "public"), ("old", 0, "private")] {
            let answer = read(&mut host, &format!("mcpx://{up}/{README}")).await;
            let result = &answer["result"];
            if revision == MODERN {
                assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(ttl), &json!(scope)));
            } else {
                assert!(result.get("ttlMs").is_none() && result.get("cacheScope").is_none());
            }
            let meta = read(&mut host, &format!("mcpx://{up}/fake://rich")).await;
            let kept = meta["result"]["contents"][0].get("_meta").is_some();
            assert_eq!(kept, revision >= "2025-06-18", "{meta}");
        }
    }

    /// F46: an ambiguous URI is never picked; its error names both addresses, and both can be read.
    async fn f46_an_ambiguous_uri_is_refused_with_both_addresses(revision) {
        let daemon = both_eras(PASS);
        let mut host = host(&daemon, revision).await;
        let all = resources(&mut host).await;
        let all = uris(&all);
        assert!(all.iter().all(|uri| uri.starts_with("mcpx://")), "{all:?}");
        let answer = read(&mut host, README).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let said = answer["error"]["message"].as_str().unwrap();
        for up in ["old", "new"] {
            let uri = format!("mcpx://{up}/{README}");
            assert!(said.contains(&uri) && all.contains(&uri.as_str()), "{said}");
            assert_eq!(text(&read(&mut host, &uri).await), format!("{README} of {up}"));
        }
    }

    /// F46: links inside results are those of the list, in each mode.
    async fn f46_links_in_results_can_be_read(revision) {
        let fakes = |daemon: &Daemon| {
            vec![
                daemon.fake("core").args("--offers").line("expose = \"core\""),
                daemon.fake("pass").args("--offers").line("expose = \"both\""),
            ]
        };
        let daemon = start(fakes, "");
        let mut host = host(&daemon, revision).await;
        let all = resources(&mut host).await;
        for (answer, expected) in [
            (call(&mut host, "core", "links", json!({ "uri": README })).await, "mcpx://core/file:///README.md"),
            (host.call("pass_links", json!({ "uri": README })).await, README),
            (call(&mut host, "pass", "links", json!({ "uri": README })).await, README),
        ] {
            let result = &answer["result"];
            assert_eq!(result["content"][0]["resource"]["uri"], expected, "{answer}");
            assert_eq!(result["_meta"]["ui"]["resourceUri"], expected, "{answer}");
            let link = &result["content"][1];
            if revision >= "2025-06-18" {
                assert_eq!(link["uri"], expected, "{answer}");
            } else {
                assert!(link["text"].as_str().unwrap_or(expected).contains(expected), "{answer}");
            }
            assert!(uris(&all).contains(&expected), "{:?}", uris(&all));
            assert!(text(&read(&mut host, expected).await).starts_with(README));
        }
    }

    /// F46: five megabytes come through whole.
    async fn f46_a_large_blob(revision) {
        const SIZE: usize = 5 * 1024 * 1024;
        let daemon = start(
            |daemon| vec![daemon.fake("up").args(&format!("--offers --blob-size {SIZE}"))],
            "",
        );
        let mut host = host(&daemon, revision).await;
        let answer = read(&mut host, "mcpx://up/fake://blob").await;
        let blob = answer["result"]["contents"][0]["blob"].as_str().unwrap();
        assert_eq!(blob.len(), SIZE.div_ceil(3) * 4);
    }
}

/// F46: one server alone keeps its own URIs, and what it does not list is asked of it.
#[tokio::test]
async fn own_uris_where_nobody_else_could_be_meant() {
    let daemon = start(
        |daemon| {
            let plain = daemon.fake("plain").args("--tools echo");
            vec![daemon.fake("up").args("--offers --name up"), plain]
        },
        PASS,
    );
    let mut host = host(&daemon, "2025-11-25").await;
    let all = resources(&mut host).await;
    assert_eq!(uris(&all), ["fake://blob", "fake://many", "fake://rich", README]);
    for uri in [README, "mcpx://up/file:///README.md"] {
        let answer = read(&mut host, uri).await;
        assert_eq!(text(&answer), "file:///README.md of up");
        assert_eq!(answer["result"]["contents"][0]["uri"], uri);
    }
    let unlisted = read(&mut host, "fake://nothing").await;
    assert_eq!(unlisted["error"]["code"], -32002, "{unlisted}");
    // `plain` has said that it has no resources, so it was not asked for them.
    let asked = daemon.fake("plain").transcript();
    assert_eq!(asked.with_method("resources/list").len(), 0);
    let answer = read(&mut host, "mcpx://plain/x:1").await;
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    assert_eq!(daemon.fake("plain").transcript().with_method("resources/read").len(), 0);
}

/// U-28: -32602 of a legacy server may mean anything and is carried; -32002 of any means not found.
#[tokio::test]
async fn u28_codes_of_upstreams() {
    let daemon = start(
        |daemon| {
            vec![
                daemon.fake("old").args("--offers --missing -32602"),
                daemon.fake("new").args("--offers --era modern --missing -32002"),
            ]
        },
        "",
    );
    let mut host = host(&daemon, "2025-06-18").await;
    let old = read(&mut host, "mcpx://old/fake://nothing").await;
    assert_eq!(old["error"]["code"], -32602, "{old}");
    let new = read(&mut host, "mcpx://new/fake://nothing").await;
    assert_eq!(new["error"]["code"], -32002, "{new}");
}

/// F39: a cursor that mcpx never gave is refused, in each list.
#[tokio::test]
async fn f39_a_cursor_of_nobodys() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--offers")], "");
    let mut host = host(&daemon, "2025-11-25").await;
    for method in ["resources/list", "resources/templates/list", "prompts/list"] {
        let answer = host.request(method, json!({ "cursor": "x" })).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

/// F38: another list of resources, or of prompts, is told by its own notification, after it is there.
#[tokio::test]
async fn f38_changes_of_resources_and_prompts_are_told() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--offers")], "");
    let mut host = host(&daemon, "2025-06-18").await;
    resources(&mut host).await;
    call(&mut host, "up", "set_offers", json!({ "kind": "resources", "add": ["new:1"] })).await;
    host.expect_notification("notifications/resources/list_changed").await;
    assert!(uris(&resources(&mut host).await).contains(&"mcpx://up/new:1"));
    host.request("prompts/list", json!({})).await;
    call(&mut host, "up", "set_offers", json!({ "kind": "prompts", "add": ["fresh"] })).await;
    host.expect_notification("notifications/prompts/list_changed").await;
    call(&mut host, "up", "set_offers", json!({ "kind": "prompts", "notify": 9 })).await;
    host.expect_silence(300).await;
}

/// F48: a list waits for nobody for long, and a dead server is told of by its own reads only.
#[tokio::test]
async fn f48_one_fine_of_two() {
    let fakes = |daemon: &Daemon| {
        vec![
            daemon.fake("fine").args("--offers"),
            daemon.fake("crashes").args("--exit 1 --stderr-text out-of-cheese"),
        ]
    };
    let daemon = start(fakes, "expose.list_wait = \"1s\"");
    let mut host = host(&daemon, "2025-06-18").await;
    assert_eq!(resources(&mut host).await.len(), 4);
    let answer = read(&mut host, "mcpx://crashes/x:1").await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "unavailable", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("out-of-cheese"), "{answer}");
}
