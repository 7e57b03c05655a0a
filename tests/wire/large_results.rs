//! Results that are too long for an answer: stored, and read in parts (product.md 4; C-14, C-15).

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::setup::{self, PASS, failed, host, start};
use crate::support::daemon::Daemon;
use crate::support::raw_host::{RawHost, text_of};

const SMALL: &str = "call.result_limit = \"4KiB\"\ncall.result_head = \"256B\"";

fn one(more: &str) -> Daemon {
    start(|daemon| vec![daemon.fake("up")], more)
}

async fn call(host: &mut RawHost, tool: &str, arguments: Value) -> Value {
    let arguments = json!({ "namespace": "up", "tool": tool, "arguments": arguments });
    host.call("mcpx_call", arguments).await
}

async fn read(host: &mut RawHost, uri: &str, more: Value) -> Value {
    let mut arguments = more;
    arguments["uri"] = json!(uri);
    host.call("mcpx_read", arguments).await
}

fn content(answer: &Value) -> &Vec<Value> {
    answer["result"]["content"].as_array().unwrap_or_else(|| panic!("no content: {answer}"))
}

fn texts(answer: &Value) -> Vec<&str> {
    content(answer).iter().filter_map(|block| block["text"].as_str()).collect()
}

/// The first address of a stored part that a text names.
fn address(answer: &Value) -> String {
    let text = texts(answer).join("\n");
    let at = text.find("mcpx://artifacts/").unwrap_or_else(|| panic!("no address: {answer}"));
    text[at..].chars().take_while(|c| !c.is_whitespace() && *c != '"').collect()
}

fn lines(count: usize) -> String {
    let mut text = String::new();
    for number in 1..=count {
        let _ = writeln!(text, "line {number} ä");
    }
    text
}

crate::for_revisions! { all_real;
    /// The beginning, the size and the address, in text and as a link where the revision has links; the
    /// whole by parts, and by `resources/read`.
    async fn a_long_text_is_stored_and_read(revision) {
        let daemon = one(SMALL);
        let mut host = host(&daemon, revision).await;
        let whole = lines(1000);
        let answer = call(&mut host, "echo", json!({ "text": whole })).await;
        assert!(!failed(&answer));
        let given = texts(&answer);
        assert!(given[0].starts_with("line 1 ä\nline 2 ä\n") && given[0].len() <= 256, "{answer}");
        let shown = given[0].lines().count();
        let size = format!("{} bytes, 1000 lines", whole.len());
        for words in [&size, "call.result_limit", "7d", &format!("\"lines\":\"{}-", shown + 1)] {
            assert!(given[1].contains(words), "{words}: {}", given[1]);
        }
        let uri = address(&answer);
        let link = &content(&answer)[2];
        if link["type"] == "resource_link" {
            assert_eq!(
                (&link["uri"], &link["mimeType"], &link["size"]),
                (&json!(uri), &json!("text/plain"), &json!(whole.len()))
            );
        } else {
            assert!(link["text"].as_str().unwrap().contains(&uri), "{link}");
        }
        let part = read(&mut host, &uri, json!({ "lines": "500-501" })).await;
        assert_eq!(texts(&part), ["line 500 ä\nline 501 ä\n", "[Lines 500 to 501 of 1000.]"]);
        let part = read(&mut host, &uri, json!({ "pattern": "^line 99\\d ä$" })).await;
        assert_eq!(texts(&part)[0].lines().count(), 10, "{part}");
        let part = read(&mut host, &uri, json!({ "bytes": "0-7" })).await;
        assert_eq!(texts(&part)[0], "line 1 ä", "a character is where it begins");
        let read = host.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["result"]["contents"][0]["text"], json!(whole), "{}", read["error"]);
        assert_eq!(read["result"]["contents"][0]["uri"], json!(uri));
    }
}

/// `isError`, `_meta` and what is short stay; structured content keeps its numbers and has lines.
#[tokio::test]
async fn the_rest_of_a_result_stays() {
    let daemon = one(SMALL);
    let mut host = host(&daemon, "2025-11-25").await;
    let rows: Vec<Value> = (0..500).map(|row| json!({ "row": row, "n": 1.5 })).collect();
    let of = json!({
        "content": [
            { "type": "text", "text": "500 rows" },
            { "type": "image", "data": "AAEC".repeat(2000), "mimeType": "image/png" },
        ],
        "structuredContent": { "rows": rows },
        "isError": true,
        "_meta": { "up/k": 1 },
    });
    let answer = call(&mut host, "result", json!({ "of": of })).await;
    let result = &answer["result"];
    assert_eq!((&result["isError"], &result["_meta"]["up/k"]), (&json!(true), &json!(1)));
    assert!(result.get("structuredContent").is_none(), "{answer}");
    assert_eq!(content(&answer)[0]["text"], "500 rows");
    assert_eq!(content(&answer)[1]["type"], "image", "pictures stay");
    assert!(texts(&answer)[1].starts_with("{\n  \"rows\": [\n"), "{answer}");
    let uri = address(&answer);
    let part = read(&mut host, &uri, json!({ "pattern": "\"row\": 499" })).await;
    assert!(texts(&part)[0].contains("\"row\": 499"), "{part}");
}

/// What has a type of its own keeps it, and is read as what it is.
#[tokio::test]
async fn files_in_a_result_keep_their_types() {
    let daemon =
        one(&format!("{SMALL}\nexpose.read_limit = \"1KiB\"\ncall.media_limit = \"8KiB\""));
    let mut host = host(&daemon, "2025-11-25").await;
    let of = json!({ "content": [
        { "type": "resource", "resource": { "uri": "file:///a.bin", "mimeType": "application/x-odd",
            "blob": "AAEC".repeat(2000) } },
        { "type": "image", "data": "AAEC".repeat(3000), "mimeType": "image/png" },
    ] });
    let answer = call(&mut host, "result", json!({ "of": of })).await;
    let links: Vec<_> =
        content(&answer).iter().filter(|block| block["type"] == "resource_link").collect();
    let told: Vec<_> =
        links.iter().map(|link| (&link["name"], &link["mimeType"], &link["size"])).collect();
    let expected = [
        (&json!("file:///a.bin"), &json!("application/x-odd"), &json!(6000)),
        (&json!("result-2.png"), &json!("image/png"), &json!(9000)),
    ];
    assert_eq!(told, expected, "{answer}");
    let uri = links[0]["uri"].as_str().unwrap();
    let part = read(&mut host, uri, json!({ "bytes": "1-2" })).await;
    let resource = &content(&part)[0]["resource"];
    assert_eq!(
        (&resource["blob"], &resource["mimeType"]),
        (&json!("AQI="), &json!("application/x-odd"))
    );
    for more in [json!({}), json!({ "lines": "1-2" })] {
        let refused = read(&mut host, uri, more).await;
        assert!(failed(&refused) && text_of(&refused).contains("binary"), "{refused}");
    }
    let read = host.request("resources/read", json!({ "uri": uri })).await;
    assert_eq!(read["result"]["contents"][0]["blob"], json!("AAEC".repeat(2000)));
}

/// A picture that was too long for an answer is shown by `mcpx_read` where its limit admits it.
#[tokio::test]
async fn a_stored_picture_is_shown() {
    let more = "expose.read_limit = \"1KiB\"\ncall.media_limit = \"8KiB\"";
    let daemon = one(&format!("{SMALL}\n{more}"));
    let mut host = host(&daemon, "2025-11-25").await;
    let of = json!({ "content": [
        { "type": "image", "data": "AAEC".repeat(3000), "mimeType": "image/png" },
    ] });
    let answer = call(&mut host, "result", json!({ "of": of })).await;
    let uri = address(&answer);
    let refused = read(&mut host, &uri, json!({})).await;
    assert!(failed(&refused), "{refused}");
    let set = json!({ "settings": { "call.media_limit": "16KiB" } });
    assert_eq!(daemon.http("PUT", "/v1/settings", Some(&set)).await.status, 200);
    let shown = read(&mut host, &uri, json!({})).await;
    assert_eq!(
        (&content(&shown)[0]["type"], &content(&shown)[0]["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
}

/// Short ones pass as they are; so does everything where the limit is 0, where a result is longer than
/// can be kept, and under the tools' own names.
#[tokio::test]
async fn what_is_not_stored() {
    let text = lines(1000);
    let short = "x".repeat(3000);
    for more in
        ["call.result_limit = 0", "call.result_limit = \"4KiB\"\nartifacts.max_size = \"8KiB\""]
    {
        let daemon = one(more);
        let mut host = host(&daemon, "2025-06-18").await;
        assert_eq!(
            text_of(&call(&mut host, "echo", json!({ "text": text })).await),
            text,
            "{more}"
        );
    }
    let daemon = one(&format!("{SMALL}\nexpose.mode = \"both\""));
    let mut host = host(&daemon, "2025-06-18").await;
    assert_eq!(text_of(&call(&mut host, "echo", json!({ "text": short })).await), short);
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": text })).await), text);
    let passing = one(&format!("{SMALL}\n{PASS}"));
    let mut host = setup::host(&passing, "2025-06-18").await;
    assert_eq!(text_of(&host.call("up_echo", json!({ "text": text })).await), text);
}

/// What is not kept any more is said to be so, by every way of reading.
#[tokio::test]
async fn what_is_gone_is_said_to_be() {
    let daemon = one(&format!("{SMALL}\nartifacts.max = 1"));
    let mut host = host(&daemon, "2025-11-25").await;
    let first = address(&call(&mut host, "echo", json!({ "text": lines(1000) })).await);
    let second = address(&call(&mut host, "echo", json!({ "text": lines(2000) })).await);
    assert_ne!(first, second);
    let gone = read(&mut host, &first, json!({})).await;
    assert!(failed(&gone) && text_of(&gone).contains("artifacts.keep"), "{gone}");
    let gone = host.request("resources/read", json!({ "uri": first })).await;
    assert_eq!(gone["error"]["data"]["uri"], json!(first), "{gone}");
    assert!(!failed(&read(&mut host, &second, json!({})).await));
    let listed = host.call("mcpx_resources", json!({ "namespace": "artifacts" })).await;
    assert!(text_of(&listed).contains(&second) && !text_of(&listed).contains(&first), "{listed}");
    let all = host.call("mcpx_resources", json!({})).await;
    assert!(text_of(&all).contains("\"artifacts\""), "{all}");
}
