//! Tests of HTTP+SSE.

use std::sync::Arc;

use tokio::sync::Notify;

use super::*;
use crate::transport::http::client::tests::{Do, Server, answer, client, server, unfinished};
use crate::transport::http::net::NetSpec;

const EVENTS: &str = "200 OK\r\nContent-Type: text/event-stream";
const LINK: LinkLimits = LinkLimits { max_frame: 1000, write_queue: 8, write_queue_bytes: 1 << 20 };

fn chunk(text: &str) -> Do {
    Do::Write(format!("{:x}\r\n{text}\r\n", text.len()))
}

async fn connected(server: &Server) -> Result<(Link, LegacySse), String> {
    let client = client(&server.url("/a/sse"), NetSpec::default());
    connect(&client, LINK).await.map_err(|error| error.to_string())
}

/// A stream that names its endpoint and goes on at a word.
fn stream(endpoint: &str, rest: &[&str]) -> (Vec<Do>, Arc<Notify>) {
    let word = Arc::new(Notify::new());
    let mut todo = unfinished(EVENTS, &[&format!("event: endpoint\ndata: {endpoint}\n\n")]);
    todo.push(Do::When(Arc::clone(&word)));
    todo.extend(rest.iter().map(|text| chunk(text)));
    (todo, word)
}

#[tokio::test]
async fn lines_become_posts_and_events_become_lines() {
    let (mut todo, word) = stream(
        "message?id=7",
        &["event: message\ndata: {\"id\":\ndata: 1}\n\n", ": ping\n\nevent: x\ndata: {}\n\n"],
    );
    todo.push(chunk("data: {\"id\":2}\n\n"));
    todo.push(Do::Write("0\r\n\r\n".to_owned()));
    let taken = |text| answer("202 Accepted", text);
    let mut server = server(vec![todo, taken("Accepted"), taken("")]).await;
    let (link, mut sse) = connected(&server).await.unwrap();
    let writing = spawn_named("writer", link.writer.run());
    let seen = server.next().await;
    assert!(seen.starts_with("GET /a/sse HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("accept: text/event-stream\r\n"), "{seen}");
    for line in ["{\"id\":1}", "{\"id\":2}"] {
        link.sender.send(Bytes::from_static(line.as_bytes())).await.unwrap();
        let seen = server.next().await;
        assert!(seen.starts_with("POST /a/message?id=7 HTTP/1.1\r\n"), "{seen}");
        assert!(seen.contains("authorization: Bearer hush\r\n") && seen.ends_with(line), "{seen}");
        assert_eq!(server.next().await, "closed");
    }
    word.notify_one();
    let mut reader = link.reader;
    for expected in ["{\"id\": 1}", "{\"id\":2}"] {
        match reader.next().await {
            LinkEvent::Frame(frame) => assert_eq!(frame, expected),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(reader.next().await, LinkEvent::Closed { .. }));
    let why = sse.ended().await;
    assert!(why.ends_with("/a/sse ended its event stream"), "{why}");
    drop(link.sender);
    writing.abort();
}

#[tokio::test]
async fn u41_the_endpoint_is_of_the_stream_s_origin() {
    let mut other = server(Vec::new()).await;
    for (endpoint, expected) in [
        (other.url("/m"), "another origin, http://127.0.0.1:"),
        ("//evil.example/m".to_owned(), "another origin, http://evil.example, "),
        ("http://".to_owned(), "\"http://\", which is no address"),
    ] {
        let (todo, _word) = stream(&endpoint, &[]);
        let error = connected(&server(vec![todo]).await).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert!(other.seen.try_recv().is_err());
}

#[tokio::test]
async fn what_is_no_stream_is_said() {
    let refused = answer("405 Method Not Allowed", "no GET here");
    let error = connected(&server(vec![refused]).await).await.unwrap_err();
    assert!(error.ends_with("/a/sse refused an event stream: 405 Method Not Allowed: no GET here"));
    let page = answer("200 OK\r\nContent-Type: text/html", "<title>Hi</title>");
    let error = connected(&server(vec![page]).await).await.unwrap_err();
    assert!(error.contains("a web page titled \"Hi\""), "{error}");
    let error = connected(&server(vec![answer(EVENTS, "data: {}\n\n")]).await).await.unwrap_err();
    assert!(error.ends_with("ended before it began"), "{error}");
    let error = connected(&server(vec![vec![Do::Read]]).await).await.unwrap_err();
    assert!(error.ends_with("closed the connection without an answer"), "{error}");
}

#[tokio::test]
async fn a_message_that_is_not_taken_ends_the_connection() {
    let (mut todo, _word) = stream("/m", &[]);
    todo.push(Do::UntilClosed);
    let lost = answer("404 Not Found", "no such session");
    let server = server(vec![todo, lost]).await;
    let (link, mut sse) = connected(&server).await.unwrap();
    let writing = spawn_named("writer", link.writer.run());
    link.sender.send(Bytes::from_static(b"{}")).await.unwrap();
    let why = sse.ended().await;
    assert!(why.ends_with("/m did not take a message: 404 Not Found: no such session"), "{why}");
    writing.abort();
}

/// A server that answers the POST of a call only when the call is through still hears what follows.
#[tokio::test]
async fn a_post_that_is_held_does_not_hold_the_next() {
    let (mut todo, word) = stream("/m", &[]);
    word.notify_one();
    todo.push(Do::UntilClosed);
    let held = vec![Do::Read, Do::UntilClosed];
    let mut server = server(vec![todo, held, answer("202 Accepted", "")]).await;
    let (link, sse) = connected(&server).await.unwrap();
    let writing = spawn_named("writer", link.writer.run());
    assert!(server.next().await.starts_with("GET "));
    for line in ["{\"id\":1}", "{\"id\":2}"] {
        link.sender.send(Bytes::from_static(line.as_bytes())).await.unwrap();
        assert!(server.next().await.ends_with(line));
    }
    assert_eq!(server.next().await, "closed");
    // Dropped, it closes the stream and what is held.
    drop(sse);
    assert_eq!(server.next().await, "closed");
    assert_eq!(server.next().await, "closed");
    writing.abort();
}
