//! What upstreams ask of hosts.

use serde_json::{Value, json};

use crate::cell::Cell;
use crate::rules::{Expect, Reason};

/// Key → reply, as the fake repeats it in its first block.
fn replies(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no replies: {answer}"))
}

/// Calls a tool that asks. Where that works: the replies. Else it is checked that it ended as the
/// reason says, and there are none.
async fn call(cell: &mut Cell, tool: &str, arguments: Value, expect: Expect) -> Option<Value> {
    let before = cell.asked().len();
    let answer = cell.call(tool, arguments).await;
    if expect == Expect::Works {
        assert!(cell.asked().len() > before, "nothing was asked: {answer}");
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        return Some(replies(&answer));
    }
    assert_eq!(cell.asked().len(), before, "{answer}");
    check_impossible(cell, expect, &answer);
    None
}

/// That a call ended as the reason says.
fn check_impossible(cell: &Cell, expect: Expect, answer: &Value) {
    let text = answer.to_string();
    let failed = answer["error"].is_object() || answer["result"]["isError"] == true;
    match expect {
        Expect::Not(Reason::FormUp | Reason::UrlUp | Reason::ToolsUp) => {
            assert!(failed && text.contains("has no such question"), "{answer}");
        }
        Expect::Not(Reason::FormHost | Reason::UrlHost) if cell.upstream.peer.modern() => {
            assert!(failed && text.contains("elicitation"), "{answer}");
        }
        Expect::Not(Reason::FormHost | Reason::UrlHost) => {
            assert!(text.contains(r#"\"action\":\"cancel\""#), "{answer}");
        }
        Expect::Not(Reason::ToolsHost) => {
            assert!(failed && text.contains("sampling"), "{answer}");
        }
        other => panic!("{other:?} is not about questions"),
    }
}

/// The whole answer keeps what is no text (E-16).
pub async fn form(cell: &mut Cell, expect: Expect) {
    let mark = format!("m{}", cell.upstream.number());
    let Some(replies) = call(cell, "ask_form", json!({ "id": mark }), expect).await else { return };
    assert_eq!(replies["form"], json!({ "action": "accept", "content": { "name": mark } }));
    let question = cell.asked().pop().unwrap();
    assert_eq!(question["params"]["message"], format!("Who are you? [{mark}]"));
    let properties = &question["params"]["requestedSchema"]["properties"];
    assert_eq!(properties["age"], json!({ "type": "integer", "minimum": 0 }));
    // And once more, with what is no text in the result.
    let answer = cell.call("ask_form", json!({})).await;
    assert_eq!(answer["result"]["content"][1]["type"], "image", "{answer}");
    assert_eq!(answer["result"]["structuredContent"]["answers"]["form"]["action"], "accept");
}

pub async fn url(cell: &mut Cell, expect: Expect) {
    let mark = format!("m{}", cell.upstream.number());
    let arguments = json!({ "id": mark, "complete": true });
    let Some(replies) = call(cell, "ask_url", arguments, expect).await else { return };
    assert_eq!(replies["url"], json!({ "action": "accept" }));
    let question = cell.asked().pop().unwrap();
    assert_eq!(question["params"]["url"], "https://login.test/a?b=1");
    // E-03: the id belongs to 2025-11-25 alone.
    let has_id = question["params"].get("elicitationId").is_some();
    assert_eq!(has_id, cell.host.revision == "2025-11-25", "{question}");
}

pub async fn sampling(cell: &mut Cell, expect: Expect) {
    let mark = format!("m{}", cell.upstream.number());
    let replies = call(cell, "ask_sample", json!({ "id": mark }), expect).await.unwrap();
    assert_eq!(replies["sample"]["content"], json!({ "type": "text", "text": "four" }));
    let question = cell.asked().pop().unwrap();
    let text = format!("Say something. [{mark}]");
    assert!(question["params"]["messages"].to_string().contains(&text), "{question}");
    assert_eq!(question["params"]["maxTokens"], 100);
}

pub async fn sampling_tools(cell: &mut Cell, expect: Expect) {
    let replies = call(cell, "ask_sample", json!({ "tools": true }), expect).await;
    let Some(replies) = replies else { return };
    let content = replies["sample"]["content"].to_string();
    assert!(content.contains(r#""tool_use""#) && content.contains("clock"), "{replies}");
    let question = cell.asked().pop().unwrap();
    assert_eq!(question["params"]["tools"][0]["name"], "clock");
}

pub async fn roots(cell: &mut Cell, expect: Expect) {
    let replies = call(cell, "ask_roots", json!({}), expect).await.unwrap();
    assert_eq!(replies["roots"]["roots"], json!([{ "uri": "file:///work", "name": "work" }]));
}

pub async fn two(cell: &mut Cell, expect: Expect) {
    let before = cell.asked().len();
    let Some(replies) = call(cell, "ask_many", json!({}), expect).await else { return };
    let accepted = json!({ "action": "accept", "content": { "name": "Ada" } });
    assert_eq!(replies, json!({ "q0": accepted, "q1": accepted }));
    assert_eq!(cell.asked().len(), before + 2);
}

pub async fn rounds(cell: &mut Cell, expect: Expect) {
    let before = cell.asked().len();
    let Some(replies) = call(cell, "ask_rounds", json!({ "n": 3 }), expect).await else { return };
    assert_eq!(replies.as_object().unwrap().len(), 3, "{replies}");
    assert_eq!(cell.asked().len(), before + 3);
}

/// A prompt or resource whose reading asks: what its text says, or that it ended as the reason says.
async fn read(cell: &mut Cell, method: &str, params: Value, expect: Expect) {
    let before = cell.asked().len();
    let answer = cell.request(method, params).await;
    let text = answer.to_string();
    if expect == Expect::Works {
        assert_eq!(cell.asked().len(), before + 1, "{answer}");
        assert!(answer["result"].is_object() && text.contains("Ada"), "{answer}");
    } else {
        assert_eq!(cell.asked().len(), before, "{answer}");
        check_impossible(cell, expect, &answer);
    }
}

pub async fn from_prompt(cell: &mut Cell, expect: Expect) {
    read(cell, "prompts/get", json!({ "name": "up_ask_prompt" }), expect).await;
}

pub async fn from_resource(cell: &mut Cell, expect: Expect) {
    let all = cell.request("resources/list", json!({})).await;
    let items = all["result"]["resources"].as_array().unwrap().iter();
    let mut uris = items.filter_map(|item| item["uri"].as_str());
    let uri = uris.find(|uri| uri.ends_with("fake://ask")).unwrap().to_owned();
    read(cell, "resources/read", json!({ "uri": uri }), expect).await;
}

/// At 2025-11-25 an upstream may refuse a call until a url was visited.
pub async fn url_required(cell: &mut Cell, expect: Expect) {
    let arguments = json!({ "id": format!("m{}", cell.upstream.number()) });
    let core = |revision: &str| revision == "2025-11-25";
    if expect != Expect::Works && !core(cell.upstream.peer.revision) {
        call(cell, "ask_url_required", arguments, expect).await;
        return;
    }
    let answer = cell.call("ask_url_required", arguments.clone()).await;
    if expect != Expect::Works {
        let failed = answer["error"].is_object() || answer["result"]["isError"] == true;
        assert!(failed && answer.to_string().contains("https://login.test/a?b=1"), "{answer}");
        return;
    }
    if core(cell.upstream.peer.revision) && core(cell.host.revision) {
        assert_eq!(answer["error"]["code"], -32042, "{answer}");
        let asked = &answer["error"]["data"]["elicitations"][0];
        assert_eq!(asked["url"], "https://login.test/a?b=1", "{answer}");
        let again = cell.call("ask_url_required", arguments).await;
        assert_eq!(replies(&again)["url"]["action"], "accept", "{again}");
        return;
    }
    // Every other pair asks the ordinary way, and the call then goes through.
    assert_eq!(replies(&answer)["url"]["action"], "accept", "{answer}");
    assert_eq!(cell.asked().pop().unwrap()["params"]["mode"], "url");
}
