//! `fakemcp` under a raw host: without bad habits it is a valid upstream in every revision, and
//! its bad habits are what they say. The raw host and the readers of its notes are tested on it.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::eventually;
use crate::support::fake::{Fake, MARK_KEY, Transcript};
use crate::support::procs;
use crate::support::raw_host::{RawHost, modern_params, text_of};
use crate::support::raw_http::HttpHost;
use crate::support::schema::{MODERN, REVISIONS};

/// A fakemcp with its notes in a folder of its own.
struct Bench {
    folder: TempDir,
    args: Vec<String>,
}

impl Bench {
    fn new(args: &str) -> Self {
        let args = args.split_whitespace().map(str::to_owned).collect();
        Self { folder: tempfile::tempdir().unwrap(), args }
    }

    fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    fn start(&self) -> RawHost {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fakemcp"));
        command.args(&self.args);
        command.env("FAKEMCP_LOG", self.log()).env("FAKEMCP_LEDGER", self.ledger());
        command.env(MARK_KEY, self.mark());
        RawHost::spawn(command)
    }

    fn mark(&self) -> String {
        self.folder.path().display().to_string()
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    fn ledger_lines(&self, kind: &str) -> usize {
        let text = std::fs::read_to_string(self.ledger()).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(kind)).count()
    }
}

async fn exercise(host: &mut RawHost) {
    let tools = host.list_tools().await;
    assert!(tools.len() > 20, "{tools:?}");
    let echo = host.call("echo", json!({ "text": "世界😀" })).await;
    assert_eq!(text_of(&echo), "世界😀");
    assert_eq!(text_of(&host.call("add", json!({ "a": 1, "b": 2 })).await), "3");
    let content = host.call("content", json!({})).await;
    assert!(content["result"]["content"].as_array().unwrap().len() >= 5, "{content}");
    assert_eq!(host.call("fail", json!({ "text": "x" })).await["result"]["isError"], true);
    let refused = host.call("rpc_error", json!({ "code": -32602, "message": "m" })).await;
    assert_eq!(refused["error"]["code"], -32602);
    host.start_call_with_progress(70, "slow", json!({ "ms": 20, "steps": 2 }), "tok").await;
    for step in 1..=2 {
        let progress = host.expect_notification("notifications/progress").await;
        assert_eq!(progress["params"]["progressToken"], "tok");
        assert_eq!(progress["params"]["progress"], step);
    }
    assert_eq!(text_of(&host.expect_response(70).await), "done in 2 steps");
    host.start_call(71, "slow", json!({ "ms": 60_000 })).await;
    host.cancel(71).await;
    host.expect_no_response(71, 50).await;
}

#[tokio::test]
async fn a_good_upstream_in_every_revision() {
    for revision in REVISIONS {
        let bench = match revision {
            MODERN => Bench::new("--era modern"),
            _ => Bench::new("--supports").arg(revision),
        };
        let mut host = bench.start();
        if revision == MODERN {
            host.use_modern();
            let answer = host.modern("server/discover", Value::Null).await;
            assert_eq!(answer["result"]["supportedVersions"], json!([MODERN]));
        } else {
            // Whatever is asked for, it has one revision only.
            assert_eq!(host.initialize("2099-01-01").await["protocolVersion"], revision);
        }
        exercise(&mut host).await;
        host.close_input().await;
        assert!(host.wait_exit().await.success());
        eventually!(Duration::from_secs(2), bench.ledger_lines("eof") == 1);
        assert_eq!(bench.ledger_lines("stopped 71"), 1, "the cancelled call ended");
        let transcript = Transcript::read(&bench.log());
        assert!(transcript.check_frames() > 8, "{transcript:?}");
        let methods = transcript.methods();
        let first = if revision == MODERN { "server/discover" } else { "initialize" };
        assert_eq!(methods.first().map(String::as_str), Some(first));
    }
}

#[tokio::test]
async fn a_dual_one_speaks_both_on_one_connection() {
    let mut host = Bench::new("--era dual").start();
    host.initialize("2025-03-26").await;
    assert!(host.request("tools/list", Value::Null).await["result"]["resultType"].is_null());
    assert_eq!(host.modern("tools/list", Value::Null).await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn probes_are_answered_as_the_script_says() {
    for code in [-32601, -32602, -32000] {
        let mut host = Bench::new(&format!("--probe {code}")).start();
        let answer = host.modern("server/discover", Value::Null).await;
        assert_eq!(answer["error"]["code"], code);
        host.initialize("2025-11-25").await;
    }
    let mut host = Bench::new("--probe silent").start();
    host.start(50, "server/discover", modern_params(Value::Null, &json!({}))).await;
    host.expect_silence(50).await;
    host.initialize("2025-11-25").await;

    let mut host = Bench::new("--probe late-after").start();
    host.start(50, "server/discover", modern_params(Value::Null, &json!({}))).await;
    host.expect_silence(50).await;
    host.initialize("2025-11-25").await;
    assert_eq!(host.expect_response(50).await["error"]["code"], -32601);

    let mut host = Bench::new("--probe exit").start();
    host.start(50, "server/discover", modern_params(Value::Null, &json!({}))).await;
    host.expect_closed().await;
    assert_eq!(host.wait_exit().await.code(), Some(1));

    let mut host = Bench::new("--era modern").start();
    host.strict = false;
    let refused = host.initialize_only("2025-06-18").await;
    assert_eq!(refused["error"]["code"], -32022);
}

#[tokio::test]
async fn pages_go_wrong_as_the_script_says() {
    for (mode, count) in [("plain", 5), ("empty", 5), ("duplicates", 6)] {
        let args = format!("--tools none --tool-count 5 --pages {mode}:2");
        let mut host = Bench::new(&args).start();
        host.initialize("2025-11-25").await;
        assert_eq!(host.list_tools().await.len(), count, "{mode}");
    }
    let mut host = Bench::new("--tools none --tool-count 3 --pages cycle:1").start();
    host.initialize("2025-11-25").await;
    let mut cursors = Vec::new();
    let mut params = json!({});
    for _ in 0..4 {
        let answer = host.request("tools/list", params).await;
        let cursor = answer["result"]["nextCursor"].clone();
        params = json!({ "cursor": cursor });
        cursors.push(cursor);
    }
    assert_eq!(json!(cursors), json!(["A", "B", "A", "B"]));
}

#[tokio::test]
async fn noise_is_written_as_the_script_says() {
    let bench =
        Bench::new("--bom --crlf --blank-lines --json-noise --noise").arg("[INFO] x {\"id\":1}");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fakemcp"));
    command.args(&bench.args).stdin(std::process::Stdio::piped());
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18" } });
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, format!("{hello}\n").as_bytes()).unwrap();
    drop(stdin);
    let bytes = child.wait_with_output().unwrap().stdout;
    assert!(bytes.starts_with(b"\xef\xbb\xbf"), "a BOM first");
    assert!(bytes.ends_with(b"}\r\n"), "CRLF last");
    let text = String::from_utf8(bytes).unwrap();
    for piece in ["\n \n\r\n", "[INFO] x {\"id\":1}\n", "\n42\n", "{\"type\":\"heartbeat\"}\n"] {
        assert!(text.contains(piece), "{piece:?} in {text:?}");
    }
}

#[tokio::test]
async fn frames_in_pieces_come_whole() {
    let mut host = Bench::new("--chunk 1 --chunk-us 20").start();
    host.initialize("2025-06-18").await;
    assert_eq!(text_of(&host.call("echo", json!({ "text": "世界😀" })).await), "世界😀");
    assert_eq!(text_of(&host.call("split", json!({})).await), "世界😀");
    assert_eq!(host.inbox.len(), 2, "two notifications came before it");
}

#[tokio::test]
async fn surrogates_and_big_results_are_read() {
    let mut host = Bench::new("").start();
    host.initialize("2025-06-18").await;
    assert_eq!(text_of(&host.call("surrogate", json!({})).await), "a\u{fffd}b 😀");
    assert!(String::from_utf8_lossy(host.last_read().unwrap()).contains(r"a\udcafb"));
    let big = host.call("big", json!({ "bytes": 10_000_000 })).await;
    assert_eq!(text_of(&big).len(), 10_000_000);
}

#[tokio::test]
async fn requests_to_the_host_are_answered() {
    let mut host = Bench::new("--ping 10").start();
    host.initialize("2025-06-18").await;
    let ping = host.expect_request("ping").await;
    host.answer(&ping, json!({})).await;
    host.start_call(60, "request", json!({ "method": "roots/list" })).await;
    let roots = host.expect_request("roots/list").await;
    host.answer(&roots, json!({ "roots": [] })).await;
    assert!(text_of(&host.expect_response(60).await).contains("roots"));
}

#[tokio::test]
async fn it_dies_after_its_side_effect_as_often_as_told() {
    let bench = Bench::new("");
    let mut host = bench.start();
    host.initialize("2025-06-18").await;
    host.start_call(60, "ledger_die", json!({ "text": "once" })).await;
    host.expect_closed().await;
    let mut host = bench.start();
    host.initialize("2025-06-18").await;
    assert_eq!(text_of(&host.call("ledger_die", json!({})).await), "done at last");
    assert_eq!((bench.ledger_lines("start "), bench.ledger_lines("effect ledger_die ")), (2, 2));
}

#[tokio::test]
async fn processes_are_found_by_their_mark() {
    let bench = Bench::new("--wrapper --grandchild --grandchild-setsid --ignore-term --ignore-eof");
    let mut host = bench.start();
    host.initialize("2025-06-18").await;
    assert!(host.wait_exit().await.success(), "the wrapper ends at once");
    let found = || procs::marked(MARK_KEY, &bench.mark());
    assert_eq!(found().len(), 3, "{:?}", found());
    host.close_input().await;
    for process in found() {
        procs::signal(process.pid, Signal::SIGTERM);
    }
    host.expect_open(50).await;
    assert_eq!(found().len(), 3, "they ignore SIGTERM and end of input");
    for process in found() {
        procs::signal(process.pid, Signal::SIGKILL);
    }
    eventually!(Duration::from_secs(2), found().is_empty());
}

#[tokio::test]
async fn a_misspelt_option_ends_it() {
    let mut host = Bench::new("--crfl").start();
    assert_eq!(host.wait_exit().await.code(), Some(2));
}

#[test]
fn a_table_in_the_configuration_is_toml() {
    let folder = tempfile::tempdir().unwrap();
    let exe = PathBuf::from("/bin/fake mcp");
    let fake = Fake::new("a b", &exe, folder.path(), "m").args("--era modern").arg("x \"y\"");
    let text = fake.line("scope = \"global\"").toml();
    let table: toml::Table = text.parse().unwrap_or_else(|why| panic!("{why}\n{text}"));
    let server = &table["servers"]["a b"];
    assert_eq!(server["command"][3].as_str(), Some("x \"y\""));
    assert_eq!(server["scope"].as_str(), Some("global"));
    assert_eq!(server["env"][MARK_KEY].as_str(), Some("m"));
}

/// The form is answered with the name in its message's brackets, everything else as it may be.
fn answers(question: &Value) -> Value {
    let message = question["params"]["message"].as_str().unwrap_or_default();
    let name = message.split(['[', ']']).nth(1).unwrap_or("Ada");
    match question["method"].as_str() {
        Some("elicitation/create") if question["params"]["mode"] == "url" => {
            json!({ "action": "accept" })
        }
        Some("elicitation/create") => json!({ "action": "accept", "content": { "name": name } }),
        Some("roots/list") => json!({ "roots": [{ "uri": "file:///w", "name": "w" }] }),
        Some("sampling/createMessage") => json!({ "role": "assistant", "model": "m",
            "content": { "type": "text", "text": "hi" }, "stopReason": "endTurn" }),
        _ => Value::Null,
    }
}

/// A fake of this revision with all that it can ask, and a host that can answer all of it.
async fn asking(revision: &str) -> (Bench, RawHost) {
    let modern = revision == MODERN;
    let era = if modern { "--era modern".to_owned() } else { format!("--supports {revision}") };
    let bench = Bench::new(&format!("{era} --questions --tasks"));
    let mut host = bench.start();
    host.capabilities = match revision {
        "2024-11-05" | "2025-03-26" => json!({ "roots": {}, "sampling": {} }),
        "2025-06-18" => json!({ "roots": {}, "sampling": {}, "elicitation": {} }),
        _ => json!({ "roots": {}, "sampling": { "tools": {} },
            "elicitation": { "form": {}, "url": {} } }),
    };
    if modern {
        host.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        host.use_modern();
    } else {
        host.initialize(revision).await;
    }
    host.answer_with(answers);
    (bench, host)
}

#[tokio::test]
async fn questions_are_asked_in_the_way_of_each_revision() {
    let said = |answer: &Value| -> Value {
        serde_json::from_str(&text_of(answer)).unwrap_or_else(|_| json!(answer))
    };
    for revision in REVISIONS {
        let (bench, mut host) = asking(revision).await;
        let roots = host.call("ask_roots", json!({})).await;
        assert_eq!(said(&roots)["roots"]["roots"][0]["uri"], "file:///w", "{revision}");
        let sample = host.call("ask_sample", json!({})).await;
        assert_eq!(said(&sample)["sample"]["content"]["text"], "hi", "{revision}");
        let form = host.call("ask_form", json!({ "id": "Bob" })).await;
        if revision < "2025-06-18" {
            assert_eq!(form["result"]["isError"], true, "{form}");
            continue;
        }
        assert_eq!(said(&form)["form"]["content"]["name"], "Bob", "{revision}");
        assert_eq!(form["result"]["structuredContent"]["answers"], said(&form));
        let many = said(&host.call("ask_many", json!({ "kinds": ["form", "roots"] })).await);
        assert_eq!(many["q0"]["content"]["name"], "Ada");
        assert_eq!(many["q1"]["roots"][0]["name"], "w");
        let rounds = said(&host.call("ask_rounds", json!({ "n": 3 })).await);
        assert_eq!(rounds.as_object().unwrap().len(), 3, "{rounds}");
        let prompt = host.request("prompts/get", json!({ "name": "ask_prompt" })).await;
        assert!(prompt.to_string().contains("Ada"), "{prompt}");
        let read = host.request("resources/read", json!({ "uri": "fake://ask" })).await;
        assert!(read.to_string().contains("Ada"), "{read}");
        if revision >= "2025-11-25" {
            let url = host.call("ask_url", json!({})).await;
            assert_eq!(said(&url)["url"]["action"], "accept", "{revision}");
            let tools = host.call("ask_sample", json!({ "tools": true })).await;
            assert_eq!(said(&tools)["sample"]["model"], "m");
        }
        if revision == "2025-11-25" {
            let first = host.call("ask_url_required", json!({ "complete": true })).await;
            assert_eq!(first["error"]["code"], -32042);
            host.expect_notification("notifications/elicitation/complete").await;
            let again = host.call("ask_url_required", json!({})).await;
            assert_eq!(said(&again)["url"]["action"], "accept");
        }
        host.capabilities = json!({});
        if revision == MODERN {
            let refused = host.call("ask_form", json!({})).await;
            let needed = &refused["error"]["data"]["requiredCapabilities"];
            assert_eq!(
                (&refused["error"]["code"], needed),
                (&json!(-32021), &json!({ "elicitation": {} }))
            );
        }
        assert!(Transcript::read(&bench.log()).check_frames() > 8);
    }
}

#[tokio::test]
async fn a_state_must_come_back_as_it_was_given() {
    let (_bench, mut host) = asking(MODERN).await;
    host.answers = crate::support::asking::Answers::default();
    let params = json!({ "name": "ask_form", "arguments": {} });
    let asked = host.request("tools/call", params.clone()).await;
    let with = |name: &str, state: Value| {
        let mut params = params.clone();
        params["arguments"]["message"] = json!(name);
        params["inputResponses"] =
            json!({ "form": answers(&json!({ "method": "elicitation/create" })) });
        params["requestState"] = state;
        params
    };
    let state = asked["result"]["requestState"].clone();
    let other = host.request("tools/call", with("another", state)).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let made_up = host.request("tools/call", with("x", json!("made up"))).await;
    assert_eq!(made_up["error"]["code"], -32602, "{made_up}");
    // Answers without a question are no answers.
    let mut unasked = params.clone();
    unasked["inputResponses"] = json!({ "form": { "action": "cancel" } });
    let asked = host.request("tools/call", unasked).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn tasks_run_in_both_forms() {
    for revision in ["2025-11-25", MODERN] {
        let modern = revision == MODERN;
        let (bench, mut host) = asking(revision).await;
        let mut params = json!({ "name": "task_required",
            "arguments": { "ask": true, "text": "it", "id": "Eve" } });
        if !modern {
            params["task"] = json!({ "ttl": 9000 });
        }
        let made = host.request("tools/call", params.clone()).await;
        let task = if modern { &made["result"] } else { &made["result"]["task"] };
        assert_eq!(task["status"], "working", "{made}");
        let id = json!({ "taskId": task["taskId"] });
        let state = loop {
            let state = host.request("tasks/get", id.clone()).await["result"].clone();
            if state["status"] != "working" {
                break state;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        assert_eq!(state["status"], "input_required", "{state}");
        let result = if modern {
            let (key, question) =
                state["inputRequests"].as_object().unwrap().iter().next().unwrap();
            let mut update = id.clone();
            update["inputResponses"] = json!({ key: answers(question) });
            host.request("tasks/update", update).await;
            loop {
                let state = host.request("tasks/get", id.clone()).await["result"].clone();
                if state["status"] == "completed" {
                    break json!({ "result": state["result"] });
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        } else {
            host.request("tasks/result", id.clone()).await
        };
        let text = text_of(&result);
        assert!(text.starts_with("done it with") && text.contains("Eve"), "{text}");
        let statuses = ["working", "input_required", "working", "completed"];
        assert_eq!(bench.ledger_lines("task "), statuses.len());
        // And one that is cancelled.
        params["arguments"] = json!({ "never": true });
        let made = host.request("tools/call", params).await;
        let task = if modern { &made["result"] } else { &made["result"]["task"] };
        let id = json!({ "taskId": task["taskId"] });
        host.request("tasks/cancel", id.clone()).await;
        let state = host.request("tasks/get", id).await;
        assert_eq!(state["result"]["status"], "cancelled", "{state}");
    }
}

/// Questions, progress and cancellation over HTTP: on the stream of the call that they belong to.
#[tokio::test]
async fn the_same_over_http() {
    for revision in &REVISIONS[1..] {
        let folder = tempfile::tempdir().unwrap();
        let exe = PathBuf::from(env!("CARGO_BIN_EXE_fakemcp"));
        let era = if *revision == MODERN {
            "--era modern".to_owned()
        } else {
            format!("--supports {revision}")
        };
        let (fake, _server) = Fake::new("up", &exe, folder.path(), "m").args(&era).serve();
        let addr = fake.url().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        let mut host = HttpHost::at(addr.parse().unwrap(), "/mcp");
        host.capabilities = json!({ "roots": {}, "sampling": {} });
        host.open(revision).await;
        host.answer_with(answers);
        assert_eq!(text_of(&host.call("add", json!({ "a": 1, "b": 2 })).await), "3");
        let roots = text_of(&host.call("ask_roots", json!({})).await);
        assert!(roots.contains("file:///w"), "{roots}");
        let work = json!({ "ms": 30, "steps": 2 });
        let mut stream = host.start_call_with_progress(70, "slow", work, "tok").await;
        stream.expect_notification("notifications/progress").await;
        assert_eq!(text_of(&stream.answer(70).await), "done in 2 steps");
        let stream = host.start_call_with_progress(
            71,
            "slow",
            json!({ "ms": 60_000, "steps": 1000 }),
            "tok2",
        );
        let mut stream = stream.await;
        stream.expect_notification("notifications/progress").await;
        if *revision == MODERN {
            drop(stream);
        } else {
            host.cancel(71).await;
        }
        eventually!(Duration::from_secs(5), fake.ledger("stopped ").len() == 1);
        assert!(fake.transcript().check_frames() > 4);
    }
}
