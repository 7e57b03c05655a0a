//! `mcpx demo-server` by itself, in every revision; each frame of it is checked against the strict
//! schema of its revision.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::raw_host::{RawHost, text_of};

const MODERN: &str = "2026-07-28";

/// A host of the revision, past its opening, whose user can be asked.
async fn open(revision: &str) -> RawHost {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpx"));
    command.arg("demo-server");
    let mut host = RawHost::spawn(command);
    if revision == MODERN {
        host.capabilities = json!({"elicitation": {"form": {}}});
        host.use_modern();
        let answer = host.request("server/discover", json!({})).await;
        assert_eq!(answer["result"]["resultType"], "complete");
        assert!(answer["result"]["supportedVersions"].as_array().unwrap().len() == 5);
    } else {
        // `elicitation` is there since 2025-06-18; an older host cannot declare it.
        if asks(revision) {
            host.capabilities = json!({"elicitation": {}});
        }
        let result = host.initialize(revision).await;
        assert_eq!(result["protocolVersion"], revision);
        assert_eq!(result["serverInfo"]["name"], "mcpx-demo");
    }
    host
}

fn asks(revision: &str) -> bool {
    !matches!(revision, "2024-11-05" | "2025-03-26")
}

/// Closes the host's side; the demonstration leaves at once and without complaint.
async fn close(mut host: RawHost) {
    host.close_input().await;
    assert!(host.wait_exit().await.success());
}

crate::for_revisions! { all_real;
    /// What there is: five tools, a resource, a prompt.
    async fn what_there_is(revision) {
        let mut host = open(revision).await;
        let tools = host.list_tools().await;
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["echo", "add", "slow", "ask", "fail"]);
        let structured = asks(revision);
        assert_eq!(tools[1].get("outputSchema").is_some(), structured);
        let listed = host.request("resources/list", json!({})).await;
        let uri = listed["result"]["resources"][0]["uri"].clone();
        let read = host.request("resources/read", json!({"uri": uri})).await;
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains("built into mcpx"), "{text}");
        let missing = host.request("resources/read", json!({"uri": "demo://no"})).await;
        let code = if revision == MODERN { -32602 } else { -32002 };
        assert_eq!(missing["error"]["code"], code);
        let templates = host.request("resources/templates/list", json!({})).await;
        assert_eq!(templates["result"]["resourceTemplates"], json!([]));
        let prompts = host.request("prompts/list", json!({})).await;
        assert_eq!(prompts["result"]["prompts"][0]["name"], "greet");
        let asked = json!({"name": "greet", "arguments": {"name": "Ada"}});
        let prompt = host.request("prompts/get", asked).await;
        let text = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.contains("Ada"));
        let bare = host.request("prompts/get", json!({"name": "greet"})).await;
        assert_eq!(bare["error"]["code"], -32602);
        let unknown = host.request("no/such", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601);
        if revision != MODERN {
            assert_eq!(host.request("ping", Value::Null).await["result"], json!({}));
        }
        close(host).await;
    }

    /// What answers at once, and what fails.
    async fn quick_tools(revision) {
        let mut host = open(revision).await;
        let echoed = host.call("echo", json!({"text": "hé\n"})).await;
        assert_eq!(text_of(&echoed), "hé\n");
        let sum = host.call("add", json!({"a": 2, "b": 40})).await;
        // Where structured content cannot be shown, a text copy of it follows.
        assert_eq!(sum["result"]["content"][0]["text"], "42");
        let structured = &sum["result"]["structuredContent"];
        assert_eq!(*structured, if asks(revision) { json!({"sum": 42}) } else { Value::Null });
        let sum = host.call("add", json!({"a": 0.5, "b": 1})).await;
        assert_eq!(sum["result"]["content"][0]["text"], "1.5");
        for (tool, arguments, said) in [
            ("fail", json!({"message": "no luck"}), "no luck"),
            ("add", json!({"a": "x"}), "arguments of add are wrong"),
            ("echo", json!({}), "missing field `text`"),
            ("slow", json!({"seconds": -1}), "seconds are 0 to"),
        ] {
            let failed = host.call(tool, arguments).await;
            assert_eq!(failed["result"]["isError"], true, "{failed}");
            assert!(text_of(&failed).contains(said), "{failed}");
        }
        let unknown = host.call("nosuch", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32602);
        close(host).await;
    }

    /// Progress at each step, under the host's token; a cancelled call is never answered.
    async fn slow_reports_and_can_be_cancelled(revision) {
        let mut host = open(revision).await;
        let id = host.take_id();
        let arguments = json!({"seconds": 0.06, "steps": 3});
        host.start_call_with_progress(id, "slow", arguments, json!("token")).await;
        for step in 1..=3 {
            let note = host.expect_notification("notifications/progress").await;
            let params = &note["params"];
            assert_eq!((&params["progress"], &params["total"]), (&json!(step), &json!(3)));
            assert_eq!(params["progressToken"], "token");
            assert_eq!(params.get("message").is_some(), revision != "2024-11-05");
        }
        let done = host.expect_response(id).await;
        assert!(text_of(&done).contains("3 steps"));

        let id = host.take_id();
        host.start_call(id, "slow", json!({"seconds": 0.3})).await;
        host.cancel(id).await;
        let echoed = host.call("echo", json!({"text": "after"})).await;
        assert_eq!(text_of(&echoed), "after");
        host.expect_no_response(id, 600).await;
        close(host).await;
    }

    /// The question reaches the user as each revision has it, and the answer comes back.
    async fn ask_elicits(revision) {
        let mut host = open(revision).await;
        let question = json!({"question": "Tea?"});
        if !asks(revision) {
            let refused = host.call("ask", question).await;
            assert!(text_of(&refused).contains("elicitation"), "{refused}");
        } else if revision == MODERN {
            let asked = host.call("ask", question.clone()).await;
            let result = &asked["result"];
            assert_eq!(result["resultType"], "input_required");
            let (key, request) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
            assert_eq!(request["params"]["message"], "Tea?");
            let answers = json!({key: {"action": "accept", "content": {"answer": "Yes"}}});
            let again = |state: &Value| {
                json!({
                    "name": "ask", "arguments": question,
                    "inputResponses": answers, "requestState": state,
                })
            };
            let done = host.request("tools/call", again(&result["requestState"])).await;
            assert_eq!(text_of(&done), "the answer is: Yes");
            let forged = host.request("tools/call", again(&json!("other"))).await;
            assert_eq!(forged["error"]["code"], -32602);
            host.capabilities = json!({});
            let refused = host.call("ask", json!({})).await;
            assert_eq!(refused["error"]["code"], -32021);
        } else {
            for (answer, said) in [
                (json!({"action": "accept", "content": {"answer": "Yes"}}), "the answer is: Yes"),
                (json!({"action": "decline"}), "declined"),
                (json!({"action": "cancel"}), "dismissed"),
            ] {
                let id = host.take_id();
                host.start_call(id, "ask", question.clone()).await;
                let asked = host.expect_request("elicitation/create").await;
                assert_eq!(asked["params"]["message"], "Tea?");
                host.answer(&asked, answer).await;
                let done = host.expect_response(id).await;
                assert!(text_of(&done).contains(said), "{done}");
            }
            // A call that is cancelled takes its question along.
            let id = host.take_id();
            host.start_call(id, "ask", question).await;
            let asked = host.expect_request("elicitation/create").await;
            host.cancel(id).await;
            let note = host.expect_notification("notifications/cancelled").await;
            assert_eq!(note["params"]["requestId"], asked["id"]);
        }
        close(host).await;
    }
}

/// What is slow ends with its host.
#[tokio::test]
async fn leaves_promptly_with_a_call_in_flight() {
    let mut host = open("2025-06-18").await;
    let id = host.take_id();
    host.start_call(id, "slow", json!({"seconds": 60})).await;
    let echoed = host.call("echo", json!({"text": "x"})).await;
    assert_eq!(text_of(&echoed), "x");
    host.limit = Duration::from_secs(5);
    close(host).await;
}
