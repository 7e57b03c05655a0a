//! Lists and how they change, resources, prompts, completions.

use serde_json::{Value, json};

use crate::cell::Cell;
use crate::rules::Expect;
use crate::support::raw_host::text_of;

async fn list(cell: &mut Cell, method: &str, key: &str) -> Vec<Value> {
    let answer = cell.request(method, json!({})).await;
    answer["result"][key].as_array().unwrap_or_else(|| panic!("no {key}: {answer}")).clone()
}

/// The address in a list that ends so.
async fn address(cell: &mut Cell, method: &str, key: &str, member: &str, end: &str) -> String {
    let all = list(cell, method, key).await;
    let mut addresses = all.iter().filter_map(|item| item[member].as_str());
    let found = addresses.find(|address| address.ends_with(end)).map(str::to_owned);
    found.unwrap_or_else(|| panic!("nothing ends in {end}: {all:?}"))
}

async fn readme(cell: &mut Cell) -> String {
    address(cell, "resources/list", "resources", "uri", "file:///README.md").await
}

pub async fn list_changed(cell: &mut Cell, _: Expect) {
    cell.listen(json!({ "toolsListChanged": true })).await;
    list(cell, "tools/list", "tools").await;
    let tool = format!("fresh_{}", cell.upstream.number());
    cell.call("set_tools", json!({ "add": [tool] })).await;
    let name = format!("up_{tool}");
    // One may still be on its way that is about the session before.
    for last in [false, true] {
        cell.hear("notifications/tools/list_changed").await;
        let tools = list(cell, "tools/list", "tools").await;
        if tools.iter().any(|known| known["name"] == *name) {
            break;
        }
        assert!(!last, "no {name}");
    }
    cell.stop_listening().await;
}

pub async fn resources(cell: &mut Cell, _: Expect) {
    let uri = readme(cell).await;
    let answer = cell.request("resources/read", json!({ "uri": uri })).await;
    let contents = &answer["result"]["contents"][0];
    assert_eq!(contents["text"], "file:///README.md of fakemcp", "{answer}");
    assert_eq!(contents["uri"], *uri);
}

pub async fn template(cell: &mut Cell, _: Expect) {
    let end = "db://{table}/{row}";
    let key = "resourceTemplates";
    let template = address(cell, "resources/templates/list", key, "uriTemplate", end).await;
    let uri = template.replace("{table}", "t").replace("{row}", "7");
    let answer = cell.request("resources/read", json!({ "uri": uri })).await;
    assert_eq!(answer["result"]["contents"][0]["text"], "row db://t/7", "{answer}");
}

pub async fn updates(cell: &mut Cell, _: Expect) {
    let uri = readme(cell).await;
    if cell.host.modern() {
        cell.listen(json!({ "resourceSubscriptions": [uri] })).await;
    } else {
        let answer = cell.request("resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    let told = text_of(&cell.call("touch", json!({ "uri": "file:///README.md" })).await);
    assert_eq!(told, "told");
    let update = cell.hear("notifications/resources/updated").await;
    assert_eq!(update["params"]["uri"], *uri, "{update}");
    if cell.host.modern() {
        cell.stop_listening().await;
    } else {
        let answer = cell.request("resources/unsubscribe", json!({ "uri": uri })).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
}

pub async fn prompts(cell: &mut Cell, _: Expect) {
    let all = list(cell, "prompts/list", "prompts").await;
    assert!(all.iter().any(|prompt| prompt["name"] == "up_greet"), "{all:?}");
    let params = json!({ "name": "up_greet", "arguments": { "name": "Bob" } });
    let answer = cell.request("prompts/get", params).await;
    let message = &answer["result"]["messages"][0];
    assert_eq!(message["content"]["text"], "Hello, Bob!", "{answer}");
    assert_eq!(message["role"], "user");
}

pub async fn completion(cell: &mut Cell, _: Expect) {
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "up_greet" },
        "argument": { "name": "name", "value": "Bo" },
    });
    let answer = cell.request("completion/complete", params).await;
    assert_eq!(answer["result"]["completion"]["values"], json!(["Bo-one", "Bo-two"]), "{answer}");
}
