//! Strangers over TCP, byte by byte.

use std::net::SocketAddr;
use std::time::Instant;

use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::transport::clock;

/// A listener on a port of its own.
struct Door {
    address: SocketAddr,
    told: mpsc::Receiver<&'static str>,
    _stop: watch::Sender<bool>,
}

fn strict() -> ListenLimits {
    let serve = ServeLimits {
        section: "http",
        head: Some(8192),
        write: Some(Duration::from_mins(1)),
        ..limits().serve
    };
    ListenLimits { serve, ..limits() }
}

async fn door(limits: ListenLimits) -> Door {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (slow, told) = mpsc::channel(1000);
    let (links, _) = mpsc::channel(1);
    let (stop, stopped) = watch::channel(false);
    spawn_named("listen", listen(listener, Arc::new(Routes { slow, links }), limits, stopped));
    Door { address, told, _stop: stop }
}

impl Door {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn sent(&self, bytes: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        stream
    }

    /// All that comes back until the end.
    async fn raw(&self, bytes: impl AsRef<[u8]>) -> String {
        rest(&mut self.sent(bytes).await).await
    }

    /// Another host's call.
    async fn works(&self) {
        let answer = self.raw("GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

fn since(before: Instant) -> Duration {
    clock::now() - before
}

/// What comes until it holds `end`.
async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut answer = String::new();
    while !answer.contains(end) {
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes).await.unwrap();
        assert_ne!(count, 0, "{answer}");
        answer.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    answer
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_of_events_gives_signs_of_life() {
    let mut door = door(strict()).await;
    let mut stream = door.sent("GET /events HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let head = until(&mut stream, "data: 1\n\n").await.to_ascii_lowercase();
    for header in [
        "content-type: text/event-stream",
        "cache-control: no-store, no-transform",
        "x-accel-buffering: no",
        "transfer-encoding: chunked",
    ] {
        assert!(head.contains(&format!("\r\n{header}\r\n")), "{header} in {head}");
    }
    let before = clock::now();
    assert_eq!(until(&mut stream, "\n\n\r\n").await, "3\r\n:\n\n\r\n");
    assert_eq!(until(&mut stream, "\n\n\r\n").await, "3\r\n:\n\n\r\n");
    assert_eq!(since(before).as_secs(), 30);
    drop(stream);
    assert_eq!(door.told.recv().await, Some("ended"), "noticed without anything being sent");
    assert!(since(before).as_secs() < 45);
}

/// F27: whatever the handler is at.
#[tokio::test(start_paused = true)]
async fn a_peer_that_goes_away_is_noticed_at_once() {
    let mut door = door(strict()).await;
    let before = clock::now();
    let body = "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
    let stream = door.sent(body).await;
    assert_eq!(door.told.recv().await, Some("begun"));
    drop(stream);
    assert_eq!(door.told.recv().await, Some("given up"));
    assert_eq!(since(before), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_given_up_and_holds_up_nobody() {
    let door = door(strict()).await;
    let mut slow = door.sent("GET /big HTTP/1.1\r\nHost: x\r\n\r\n").await;
    door.works().await;
    slow.readable().await.unwrap();
    // Time passes only while nothing moves: the buffers are full by then.
    tokio::time::sleep(Duration::from_secs(61)).await;
    door.works().await;
    let mut bytes = Vec::new();
    let ended = slow.read_to_end(&mut bytes).await;
    assert!(bytes.len() < BIG, "{} bytes, {ended:?}", bytes.len());
}

#[tokio::test]
async fn a_head_beyond_the_limit_is_told_so() {
    let door = door(strict()).await;
    let head =
        |value: usize| format!("GET /echo HTTP/1.1\r\nHost: x\r\nX: {}\r\n", "y".repeat(value));
    let answer = door.raw(head(10_000) + "\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let answer = door.raw(head(200_000)).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let answer = door.raw(head(8000) + "Connection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let many = "X: y\r\n".repeat(200);
    let answer = door.raw(format!("GET /echo HTTP/1.1\r\nHost: x\r\n{many}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    for rubbish in ["\u{16}\u{3}\u{1} TLS it would be", "GET /echo HTTP/9.9\r\n\r\n"] {
        let answer = door.raw(rubbish.to_owned() + "\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
}

/// The refusal arrives although the peer only reads when it has written everything.
#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_and_the_refusal_arrives() {
    let door = door(strict()).await;
    let length = 100 << 20;
    let head = format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    let chunked = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let secret = format!("POST /secret HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    let piece = vec![b'x'; 1 << 20];
    for (head, chunk, status) in
        [(head.as_str(), "", "413"), (chunked, "100000\r\n", "413"), (&secret, "", "401")]
    {
        let mut stream = door.sent(head).await;
        for _ in 0..100 {
            stream.write_all(chunk.as_bytes()).await.unwrap();
            stream.write_all(&piece).await.unwrap();
            stream.write_all(if chunk.is_empty() { b"" } else { b"\r\n" }).await.unwrap();
        }
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
        if status == "413" {
            assert!(answer.contains("1000 bytes (setting http.max_body)"), "{answer}");
        }
    }
}

#[tokio::test]
async fn a_body_is_asked_for_only_where_it_is_wanted() {
    let door = door(strict()).await;
    let head = |path: &str, length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    let mut stream = door.sent(head("/echo", 3)).await;
    assert_eq!(until(&mut stream, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"abc").await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("POST  abc"), "{answer}");
    assert!(door.raw(head("/echo", 99_999)).await.starts_with("HTTP/1.1 413 "));
    assert!(door.raw(head("/secret", 3)).await.starts_with("HTTP/1.1 401 "));
}

#[tokio::test(start_paused = true)]
async fn what_comes_too_slowly_is_told_so_and_holds_up_nobody() {
    let door = door(strict()).await;
    let heads = [
        "GET /echo HTTP/1.1\r\nX-A: b\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ];
    for head in heads {
        let mut stream = door.sent(head).await;
        door.works().await;
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("(setting http.header_timeout)"), "{answer}");
    }
    // An idle connection, after an answer too, is closed without a word.
    let mut stream = door.sent("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let answer = rest(&mut stream).await;
    assert!(answer.ends_with("GET  "), "{answer}");
}

/// One byte at a time is as late as none.
#[tokio::test(start_paused = true)]
async fn a_head_that_trickles_in_is_too_slow() {
    let door = door(strict()).await;
    let mut stream = door.connect().await;
    let before = clock::now();
    for byte in b"GET /echo HTTP/1.1\r\nHost: x\r\nX: and so on for a while" {
        if stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(since(before) < Duration::from_secs(20));
}

#[tokio::test]
async fn a_flood_of_connections_is_told_so() {
    let mut door = door(strict()).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(door.sent("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await);
        assert_eq!(door.told.recv().await, Some("begun"));
    }
    for _ in 0..20 {
        let answer = door.raw("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("(setting http.max_connections)"), "{answer}");
    }
    held.pop();
    assert_eq!(door.told.recv().await, Some("given up"));
    let free = "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    while door.raw(free).await.starts_with("HTTP/1.1 503 ") {}
}

#[tokio::test]
async fn requests_sent_together_are_answered_in_order() {
    let door = door(strict()).await;
    let first = "POST /echo?1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab";
    let second = "GET /echo?2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answer = door.raw(format!("{first}{second}")).await;
    let (one, two) = (answer.find("POST 1 ab").unwrap(), answer.find("GET 2 ").unwrap());
    assert!(one < two && answer.matches("HTTP/1.1 200 OK").count() == 2, "{answer}");
}

#[tokio::test]
async fn a_target_with_a_host_overrides_the_header() {
    let door = door(strict()).await;
    let answer = door
        .raw("GET http://evil.example/echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    assert!(answer.contains("x-host: evil.example\r\n"), "{answer}");
}
