//! The raw host over memory and sockets, HTTP by hand, golden files, lenient JSON.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;

use crate::support::raw_host::RawHost;
use crate::support::{golden, http, lenient, procs};

/// Answers each line with `lines`, verbatim.
async fn answer_line(stream: tokio::io::DuplexStream, lines: &str) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    stream.get_mut().write_all(lines.as_bytes()).await.unwrap();
    stream.read_to_end(&mut Vec::new()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ids_are_told_apart_and_batches_taken_apart() {
    let (mut host, theirs) = RawHost::duplex(1 << 16);
    host.frames.assume("2025-03-26");
    let peer = tokio::spawn(answer_line(
        theirs,
        "[{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n",
    ));
    host.send(&json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "id": "1", "method": "ping" },
    ]))
    .await;
    assert_eq!(host.expect_response(1).await["id"], 1);
    assert_eq!(host.expect_response("1").await["id"], "1");
    // Half a minute of silence costs nothing under a paused clock.
    host.expect_silence(30_000).await;
    host.close_input().await;
    peer.await.unwrap();
    host.expect_closed().await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "waited")]
async fn waiting_has_a_limit() {
    let (mut host, _theirs) = RawHost::duplex(1 << 16);
    host.request("ping", Value::Null).await;
}

#[tokio::test]
#[should_panic(expected = "not valid at 2025-11-25")]
async fn a_frame_that_is_not_valid_fails_the_test() {
    let schemas = crate::support::schema::SchemaSet::load();
    assert!(schemas.is_some(), "not valid at 2025-11-25: there are no schemas to say so");
    let (mut host, theirs) = RawHost::duplex(1 << 16);
    let bad = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\"}}\n";
    tokio::spawn(answer_line(theirs, bad));
    host.request("ping", Value::Null).await;
}

#[tokio::test]
async fn large_writes_do_not_block_a_peer_that_writes_first() {
    let (mut host, mut theirs) = RawHost::duplex(64);
    host.strict = false;
    let peer = tokio::spawn(async move {
        theirs.write_all(&b"{\"method\":\"x\"}\n".repeat(1000)).await.unwrap();
        let mut all = vec![0; 100_000];
        theirs.read_exact(&mut all).await.unwrap();
    });
    host.send_part(&vec![b' '; 100_000]).await;
    peer.await.unwrap();
    host.expect("the peer's frame", |message| message["method"] == "x").await;
}

#[tokio::test]
async fn attaching_is_an_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let daemon = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        let count = stream.read(&mut head).await.unwrap();
        let frame = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";
        let answer = format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n{frame}");
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&head[..count]).into_owned()
    });
    let mut host = RawHost::attach(&path, &[("Upgrade", "x"), ("Connection", "Upgrade")]).await;
    host.expect_notification("notifications/tools/list_changed").await;
    let head = daemon.await.unwrap();
    assert!(head.starts_with("GET /v1/attach HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nUpgrade: x\r\n"), "{head}");
}

#[tokio::test]
async fn chunked_answers_are_put_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await.unwrap();
        let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                      5\r\n{\"a\":\r\n2;x=y\r\n1}\r\n0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let answer = http::request(&path, "GET", "/v1/status", None).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "a": 1 })));
}

#[test]
fn lone_surrogates_read_as_replacement() {
    let read = |text: &str| lenient::parse(text.as_bytes()).unwrap();
    assert_eq!(read(r#""a\udcafb""#), "a\u{fffd}b");
    assert_eq!(read(r#""\ud83d\ude00 \ud83d""#), "😀 \u{fffd}");
    assert_eq!(read(r#""\\udcaf""#), r"\udcaf");
    assert!(lenient::parse(br#""\udc""#).is_err());
}

#[test]
fn golden_differences_name_the_line() {
    assert_eq!(golden::difference("a\nb\n", "a\nb\n"), None);
    let found = golden::difference("a\nb\n", "a\nc\n").unwrap();
    assert!(found.contains("line 2") && found.contains("golden: b"), "{found}");
    assert!(golden::difference("a\n", "a").unwrap().contains("line ends"));
}

#[test]
fn processes_are_seen() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = child.id();
    assert!(procs::descendants(std::process::id()).iter().any(|found| found.pid == pid));
    assert!(procs::alive(pid) && procs::open_files(pid) > 0 && procs::memory_kib(pid).is_some());
    child.kill().unwrap();
    let began = std::time::Instant::now();
    while procs::zombies(std::process::id()).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(5), "no zombie was seen");
        std::thread::yield_now();
    }
    child.wait().unwrap();
    assert!(!procs::alive(pid));
}
