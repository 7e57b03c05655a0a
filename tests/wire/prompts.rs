//! `prompts/list`, `prompts/get` and `completion/complete`, by revision and mode.

use serde_json::{Value, json};

use crate::setup::{PASS, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::RawHost;
use crate::support::schema::MODERN;

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

async fn prompts(host: &mut RawHost) -> Vec<Value> {
    let answer = host.request("prompts/list", json!({})).await;
    let items = answer["result"]["prompts"].as_array();
    items.unwrap_or_else(|| panic!("no list: {answer}")).clone()
}

fn names(items: &[Value]) -> Vec<&str> {
    items.iter().filter_map(|item| item["name"].as_str()).collect()
}

async fn get(host: &mut RawHost, name: &str, arguments: Value) -> Value {
    host.request("prompts/get", json!({ "name": name, "arguments": arguments })).await
}

crate::for_revisions! { all_real;
    /// R-07, R-08, H-61: prompts under `<ns>_<name>`, with the members that the revision has.
    async fn r07_r08_members_of_a_prompt(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        let all = prompts(&mut host).await;
        let expected =
            ["new_greet", "new_link", "new_media", "old_greet", "old_link", "old_media"];
        assert_eq!(names(&all), expected);
        for item in all.iter().filter(|item| item["name"].as_str().unwrap().ends_with("_greet")) {
            for (key, from) in [("title", "2025-06-18"), ("_meta", "2025-06-18"), ("icons", "2025-11-25")] {
                assert_eq!(item.get(key).is_some(), revision >= from, "{key}: {item}");
            }
            let argument = &item["arguments"][0];
            assert_eq!(argument["required"], true);
            assert_eq!(argument.get("title").is_some(), revision >= "2025-06-18", "{item}");
        }
    }

    /// A prompt is filled in by its server; H-60: its messages hold what the revision can.
    async fn h60_messages_of_a_prompt(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        for up in ["old", "new"] {
            let answer = get(&mut host, &format!("{up}_greet"), json!({ "name": "you" })).await;
            let messages = answer["result"]["messages"].as_array().unwrap();
            assert_eq!(messages[0]["content"]["text"], "Hello, you!", "{answer}");
            let meta = messages[0]["content"].get("_meta").is_some();
            assert!(!meta || revision >= "2025-06-18", "{answer}");

            let answer = get(&mut host, &format!("{up}_media"), json!({})).await;
            let messages = answer["result"]["messages"].as_array().unwrap();
            let kinds: Vec<_> =
                messages.iter().map(|message| message["content"]["type"].as_str().unwrap()).collect();
            let audio = if revision >= "2025-03-26" { "audio" } else { "text" };
            let link = if revision >= "2025-06-18" { "resource_link" } else { "text" };
            assert_eq!(kinds, ["text", "text", "image", "resource", "resource", audio, link]);

            // F46: what it embeds has the address of the list.
            let answer = get(&mut host, &format!("{up}_link"), json!({})).await;
            let uri = &answer["result"]["messages"][0]["content"]["resource"]["uri"];
            assert_eq!(*uri, format!("mcpx://{up}/file:///README.md"), "{answer}");
        }
    }

    /// Errors: the upstream's own, and of names that there are not.
    async fn prompts_that_cannot_be_had(revision) {
        let daemon = both_eras("");
        let mut host = host(&daemon, revision).await;
        let answer = get(&mut host, "old_greet", json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("greet needs"), "{answer}");
        let answer = get(&mut host, "old_greeet", json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("old_greet"), "{answer}");
        let answer = host.request("prompts/get", json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }

    /// R-10: completion of a prompt's argument and of a template's variable, each at its server by the
    /// server's own name for it. H-24: 2024-11-05 has the method and no capability for it.
    async fn r10_completion(revision) {
        let daemon = both_eras("");
        let mut host = daemon.shim(&[]);
        let declared = if revision == MODERN {
            host.use_modern();
            host.request("server/discover", json!({})).await["result"]["capabilities"].clone()
        } else {
            host.initialize(revision).await["capabilities"].clone()
        };
        assert_eq!(declared.get("completions").is_some(), revision >= "2025-03-26", "{declared}");
        prompts(&mut host).await;
        for up in ["old", "new"] {
            for (reference, own) in [
                (json!({ "type": "ref/prompt", "name": format!("{up}_greet") }), "greet"),
                (
                    json!({ "type": "ref/resource", "uri": format!("mcpx://{up}/db://{{table}}/{{row}}") }),
                    "\"db://{table}/{row}\"",
                ),
            ] {
                let wanted = json!({ "ref": reference, "argument": { "name": "name", "value": "a" } });
                let answer = host.request("completion/complete", wanted).await;
                let values = &answer["result"]["completion"]["values"];
                assert_eq!(*values, json!(["a-one", "a-two"]), "{answer}");
                let asked = daemon.fake(up).ledger("complete").join("\n");
                assert!(asked.contains(own), "{asked}");
            }
        }
    }
}

/// product.md 3: one server alone with an empty prefix has its own names.
#[tokio::test]
async fn bare_names_of_one_server() {
    let daemon =
        start(|daemon| vec![daemon.fake("up").args("--offers").line("prefix = \"\"")], PASS);
    let mut host = host(&daemon, "2025-06-18").await;
    assert_eq!(names(&prompts(&mut host).await), ["greet", "link", "media"]);
    let answer = get(&mut host, "greet", json!({ "name": "x" })).await;
    assert_eq!(answer["result"]["messages"][0]["content"]["text"], "Hello, x!", "{answer}");
}

/// F48: a host knows names from earlier days: the server is started for it.
#[tokio::test]
async fn f48_a_prompt_that_was_never_listed() {
    let daemon = start(|daemon| vec![daemon.fake("up").args("--offers")], "");
    let mut host = host(&daemon, "2025-06-18").await;
    let answer = get(&mut host, "up_greet", json!({ "name": "x" })).await;
    assert_eq!(answer["result"]["messages"][0]["content"]["text"], "Hello, x!", "{answer}");
}

/// A server that completes nothing suggests nothing, and is not asked.
#[tokio::test]
async fn r10_nothing_to_complete() {
    let declared = r#"{"prompts":{}}"#;
    let daemon =
        start(|daemon| vec![daemon.fake("up").args("--offers --capabilities").arg(declared)], "");
    let mut host = host(&daemon, "2025-06-18").await;
    prompts(&mut host).await;
    let reference = json!({ "type": "ref/prompt", "name": "up_greet" });
    let wanted = json!({ "ref": reference, "argument": { "name": "name", "value": "a" } });
    let answer = host.request("completion/complete", wanted).await;
    assert_eq!(answer["result"]["completion"]["values"], json!([]), "{answer}");
    assert_eq!(daemon.fake("up").transcript().with_method("completion/complete").len(), 0);
}
