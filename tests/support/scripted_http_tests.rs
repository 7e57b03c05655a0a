//! The scripted upstream, against plain TCP clients.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::scripted_http::{Gate, Reply, ScriptedHttp, answers};

async fn dial(server: &ScriptedHttp) -> TcpStream {
    TcpStream::connect(server.addr()).await.unwrap()
}

fn post(more: &str, body: &str) -> String {
    format!(
        "POST /mcp?x=1 HTTP/1.1\r\nHost: a\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads until these bytes are there.
async fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    while !text.contains(end) {
        let mut chunk = [0; 1024];
        let count = stream.read(&mut chunk).await.unwrap();
        assert!(count > 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
    }
    text
}

#[tokio::test]
async fn requests_are_written_down_as_they_came() {
    let server = ScriptedHttp::steps(vec![Reply::status(202), Reply::text(404, "a/b", "no")]).await;
    let mut stream = dial(&server).await;
    stream.write_all(post("X-Odd:  v \r\nx-odd: w\r\n", "{\"id\":7}").as_bytes()).await.unwrap();
    assert_eq!(
        read_to(&mut stream, "\r\n\r\n").await,
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
    );
    let chunked = "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    stream.write_all(chunked.as_bytes()).await.unwrap();
    assert!(read_to(&mut stream, "no").await.starts_with("HTTP/1.1 404 Not Found\r\n"));
    let seen = server.requests();
    assert_eq!(
        (seen[0].target.as_str(), seen[0].id(), seen[0].connection),
        ("/mcp?x=1", json!(7), 0)
    );
    assert_eq!(seen[0].all("X-ODD"), ["v", "w"]);
    assert_eq!((seen[1].body.as_slice(), seen[1].connection), (&b"abc"[..], 0));
    assert_eq!((server.connections(), server.open_connections()), (1, 1));
    drop(stream);
    server.wait_gone(&seen[0]).await;
    assert_eq!(server.open_connections(), 0);
}

#[tokio::test]
async fn streams_wait_where_they_are_told_and_break_where_they_are_told() {
    let gate = Gate::new();
    let reply = Reply::sse().chunk(": hi\n\n").wait(&gate).event_in_pieces(&json!(1), &[3]).cut();
    let server = ScriptedHttp::steps(vec![reply]).await;
    let mut stream = dial(&server).await;
    stream.write_all(post("", "{}").as_bytes()).await.unwrap();
    let head = read_to(&mut stream, ": hi\n\n\r\n").await;
    assert!(head.contains("\r\nContent-Type: text/event-stream\r\n"), "{head}");
    gate.open();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "3\r\ndat\r\n6\r\na: 1\n\n\r\n");
}

#[tokio::test]
async fn a_request_is_handed_over() {
    let server = ScriptedHttp::start(|_| Reply::hand_over()).await;
    let mut stream = dial(&server).await;
    stream.write_all(post("", "{\"id\":1}").as_bytes()).await.unwrap();
    let exchange = server.taken().await;
    exchange.reply(Reply::sse());
    exchange.event(&json!({ "a": 1 }));
    let text = read_to(&mut stream, "\n\n\r\n").await;
    assert!(text.ends_with("\r\n\r\n1e\r\nevent: message\ndata: {\"a\":1}\n\n\r\n"), "{text}");
    drop(stream);
    exchange.gone().await;
}

#[tokio::test]
async fn frames_are_checked_by_session_and_revision() {
    let server = ScriptedHttp::start(|request| answers::legacy(request, "2025-06-18")).await;
    let mut stream = dial(&server).await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "n", "version": "1" } } });
    // The same id twice is right in two sessions and wrong in one.
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
    for message in [
        post("", &hello.to_string()),
        post("Mcp-Session-Id: session-1\r\n", &ping),
        post("Mcp-Session-Id: session-2\r\n", &ping),
    ] {
        stream.write_all(message.as_bytes()).await.unwrap();
        read_to(&mut stream, "}}").await;
    }
    assert_eq!(server.check_frames(), 3);
    stream.write_all(post("Mcp-Session-Id: session-1\r\n", &ping).as_bytes()).await.unwrap();
    read_to(&mut stream, "}}").await;
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.check_frames()));
    assert!(again.is_err(), "an id was used twice in one session");
}

#[tokio::test]
async fn silence_and_resets() {
    let server = ScriptedHttp::steps(vec![Reply::never(), Reply::raw("HTTP/1.1 2").reset()]).await;
    let mut stream = dial(&server).await;
    stream.write_all(post("", "{}").as_bytes()).await.unwrap();
    let first = server.nth_verb("POST", 1).await;
    drop(stream);
    server.wait_gone(&first).await;
    let mut stream = dial(&server).await;
    stream.write_all(post("", "{}").as_bytes()).await.unwrap();
    let mut rest = Vec::new();
    let why = stream.read_to_end(&mut rest).await.unwrap_err();
    assert_eq!(why.kind(), std::io::ErrorKind::ConnectionReset);
}
