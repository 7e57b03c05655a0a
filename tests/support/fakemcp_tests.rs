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
