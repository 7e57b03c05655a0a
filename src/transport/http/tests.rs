use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};

use super::control_call::{self, ATTACH_PROTOCOL, CallFailed};
use super::listen::{ListenLimits, listen};
use super::serve::ServeLimits;
use super::{Answering, HttpBody, HttpHandler, HttpIn, HttpOut};
use crate::transport::link::{Link, LinkEvent, LinkLimits};
use crate::transport::socket;
use crate::transport::task::spawn_named;

mod tcp;

const LINK: LinkLimits =
    LinkLimits { max_frame: 1 << 20, write_queue: 8, write_queue_bytes: 1 << 20 };

fn limits() -> ListenLimits {
    ListenLimits {
        connections: 3,
        serve: ServeLimits {
            section: "control",
            head: None,
            body: 1000,
            bodies: 1500,
            patience: Duration::from_secs(10),
            write: None,
            linger: Duration::from_secs(1),
            link: LINK,
        },
        accept_pause: Duration::from_millis(1),
        close_grace: Duration::from_secs(10),
    }
}

/// What the tests ask of a daemon.
struct Routes {
    /// Told when a `/slow` was begun, and again when it was given up.
    slow: mpsc::Sender<&'static str>,
    /// Gets the links of `/attach`.
    links: mpsc::Sender<Link>,
}

/// An answer that fits into no socket's buffers.
const BIG: usize = 64 << 20;

struct GivenUp(mpsc::Sender<&'static str>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        let _ = self.0.try_send("given up");
    }
}

impl HttpHandler for Routes {
    fn turn_away(&self, head: &http::request::Parts) -> Option<HttpOut> {
        (head.uri.path() == "/secret").then(|| HttpOut {
            status: StatusCode::UNAUTHORIZED,
            headers: HeaderMap::new(),
            body: HttpBody::Full(Bytes::from_static(b"not you").into()),
        })
    }

    fn handle(&self, request: HttpIn) -> Answering {
        let (slow, links) = (self.slow.clone(), self.links.clone());
        Box::pin(async move {
            let mut headers = HeaderMap::new();
            let (status, body) = match request.path.as_str() {
                "/echo" => {
                    let query = request.query.unwrap_or_default();
                    if let Some(host) = request.headers.get(header::HOST) {
                        headers.insert("x-host", host.clone());
                    }
                    let text =
                        [request.method.as_str().as_bytes(), query.as_bytes(), &request.body];
                    (StatusCode::OK, HttpBody::Full(Bytes::from(text.join(&b' ')).into()))
                }
                "/stream" => {
                    let (sender, chunks) = mpsc::channel(1);
                    spawn_named("producer", async move {
                        for n in 0.. {
                            let chunk = Bytes::from(format!("data: {n}\n\n"));
                            if sender.send(chunk).await.is_err() {
                                break;
                            }
                            slow.send("sent").await.unwrap();
                        }
                        slow.send("ended").await.unwrap();
                    });
                    (StatusCode::OK, HttpBody::Stream(chunks))
                }
                "/events" => {
                    let (sender, chunks) = mpsc::channel(1);
                    spawn_named("producer", async move {
                        sender.send(Bytes::from_static(b"data: 1\n\n")).await.unwrap();
                        sender.closed().await;
                        slow.send("ended").await.unwrap();
                    });
                    let keep_alive = Duration::from_secs(15);
                    (StatusCode::OK, HttpBody::Events { chunks, keep_alive })
                }
                "/big" => (StatusCode::OK, HttpBody::Full(Bytes::from(vec![b'x'; BIG]).into())),
                "/slow" => {
                    slow.send("begun").await.unwrap();
                    let _given_up = GivenUp(slow);
                    std::future::pending().await
                }
                "/attach" => {
                    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
                    headers.insert(header::UPGRADE, HeaderValue::from_static(ATTACH_PROTOCOL));
                    let hand_on = Box::new(move |link| links.try_send(link).unwrap());
                    (StatusCode::SWITCHING_PROTOCOLS, HttpBody::Upgrade(hand_on))
                }
                _ => (
                    StatusCode::NOT_FOUND,
                    HttpBody::Full(Bytes::from_static(b"no such route").into()),
                ),
            };
            HttpOut { status, headers, body }
        })
    }
}

/// A listener on a socket of its own.
struct Daemon {
    _folder: tempfile::TempDir,
    socket: PathBuf,
    slow: mpsc::Receiver<&'static str>,
    links: mpsc::Receiver<Link>,
    stop: watch::Sender<bool>,
    listening: tokio::task::JoinHandle<std::io::Result<()>>,
}

fn daemon(limits: ListenLimits) -> Daemon {
    let folder = tempfile::tempdir().unwrap();
    let lock = socket::lock(folder.path()).unwrap();
    let listener = lock.bind().unwrap();
    let (slow_in, slow) = mpsc::channel(1000);
    let (links_in, links) = mpsc::channel(10);
    let (stop, stopped) = watch::channel(false);
    let handler = Arc::new(Routes { slow: slow_in, links: links_in });
    let socket = socket::path(folder.path());
    let listening = listen(listener, handler, limits, stopped);
    let listening = spawn_named("listen", listening);
    Daemon { _folder: folder, socket, slow, links, stop, listening }
}

impl Daemon {
    async fn get(&self, path: &str) -> (u16, String) {
        self.send(Method::GET, path, None).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<Bytes>) -> (u16, String) {
        let stream = control_call::send(&self.socket, method, path, "*/*", body).await.unwrap();
        let answer = stream.read(10_000).await.unwrap();
        (answer.status.as_u16(), String::from_utf8(answer.body.to_vec()).unwrap())
    }

    /// Bytes as they are; all that comes back until the end.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(&self.socket).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

#[tokio::test]
async fn a_request_and_its_body_go_through() {
    let daemon = daemon(limits());
    let body = Some(Bytes::from_static(b"{\"a\":1}"));
    let answer = daemon.send(Method::POST, "/echo?x=%20y", body).await;
    assert_eq!(answer, (200, "POST x=%20y {\"a\":1}".to_owned()));
    assert_eq!(daemon.get("/nothing").await.0, 404);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_in_words() {
    let daemon = daemon(limits());
    let body = Some(Bytes::from(vec![b'x'; 1001]));
    let (status, text) = daemon.send(Method::POST, "/echo", body).await;
    assert_eq!(
        (status, text.as_str()),
        (413, "the body is longer than 1000 bytes (setting control.max_body)\n")
    );
}

#[tokio::test]
async fn a_body_that_says_it_is_too_long_is_not_waited_for() {
    let daemon = daemon(limits());
    let answer = daemon.raw(b"POST /echo HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

/// Unfinished bodies cost what the budget says, together.
#[tokio::test]
async fn bodies_share_a_budget_and_give_it_back() {
    let mut daemon = daemon(limits());
    let head = "POST /slow HTTP/1.1\r\nContent-Length: 900\r\n\r\n";
    let whole = format!("{head}{}", "x".repeat(900));
    let mut first = UnixStream::connect(&daemon.socket).await.unwrap();
    first.write_all(whole.as_bytes()).await.unwrap();
    assert_eq!(daemon.slow.recv().await, Some("begun"));
    let answer = daemon.raw(whole.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("1500 bytes (setting control.body_budget)"), "{answer}");
    assert_eq!(daemon.send(Method::POST, "/echo", Some("small".into())).await.0, 200);
    drop(first);
    assert_eq!(daemon.slow.recv().await, Some("given up"));
    let mut again = UnixStream::connect(&daemon.socket).await.unwrap();
    again.write_all(whole.as_bytes()).await.unwrap();
    assert_eq!(daemon.slow.recv().await, Some("begun"));
}

#[tokio::test(start_paused = true)]
async fn a_head_or_a_body_that_does_not_come_is_not_waited_for() {
    let daemon = daemon(limits());
    assert_eq!(daemon.raw(b"").await, "", "nothing was begun");
    let answer = daemon.raw(b"GET /echo HT").await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("(setting control.header_timeout)"), "{answer}");
    let answer = daemon.raw(b"POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc").await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn an_event_stream_is_held_up_by_a_slow_reader_and_ends_with_it() {
    let mut daemon = daemon(limits());
    let mut stream =
        control_call::send(&daemon.socket, Method::GET, "/stream", "text/event-stream", None)
            .await
            .unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "data: 0\n\n");
    // The reader stops: what fits into buffers is sent, then nothing more.
    let mut sent = 0;
    while tokio::time::timeout(Duration::from_millis(300), daemon.slow.recv()).await.is_ok() {
        sent += 1;
        assert!(sent < 200_000, "no back-pressure");
    }
    drop(stream);
    while daemon.slow.recv().await != Some("ended") {}
}

#[tokio::test]
async fn a_caller_that_goes_away_ends_its_request() {
    let mut daemon = daemon(limits());
    let socket = daemon.socket.clone();
    let call = spawn_named("call", async move {
        control_call::send(&socket, Method::GET, "/slow", "*/*", None).await.map(drop)
    });
    assert_eq!(daemon.slow.recv().await, Some("begun"));
    call.abort();
    assert_eq!(daemon.slow.recv().await, Some("given up"));
}

#[tokio::test]
async fn an_attached_connection_becomes_a_link_with_nothing_lost() {
    let mut daemon = daemon(limits());
    let headers = [("mcpx-attach-version", "1".to_owned())];
    let attached = control_call::attach(&daemon.socket, "/attach", &headers, LINK).await.unwrap();
    let there = daemon.links.recv().await.unwrap();
    let writers = [attached.writer, there.writer].map(|writer| spawn_named("w", writer.run()));
    for (mut to, from) in [(attached.reader, there.sender), (there.reader, attached.sender)] {
        from.send(Bytes::from_static(b"{\"id\":1}")).await.unwrap();
        match to.next().await {
            LinkEvent::Frame(frame) => assert_eq!(frame, "{\"id\":1}"),
            other => panic!("{other:?}"),
        }
        drop(from);
    }
    for writer in writers {
        assert_eq!(writer.await.unwrap(), "closed");
    }
}

#[tokio::test]
async fn frames_sent_together_with_the_upgrade_are_not_lost() {
    let mut daemon = daemon(limits());
    let mut stream = UnixStream::connect(&daemon.socket).await.unwrap();
    let head = format!(
        "GET /attach HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: {ATTACH_PROTOCOL}\r\n\r\n"
    );
    stream.write_all(format!("{head}{{\"id\":1}}\n{{\"id\"").as_bytes()).await.unwrap();
    let mut link = daemon.links.recv().await.unwrap();
    stream.write_all(b":2}\n").await.unwrap();
    for text in ["{\"id\":1}", "{\"id\":2}"] {
        match link.reader.next().await {
            LinkEvent::Frame(frame) => assert_eq!(frame, text),
            other => panic!("{other:?}"),
        }
    }
    drop(stream);
    assert!(matches!(link.reader.next().await, LinkEvent::Closed { .. }));
}

#[tokio::test]
async fn an_attach_that_is_refused_says_why() {
    let daemon = daemon(limits());
    let refused = control_call::attach(&daemon.socket, "/nothing", &[], LINK).await.unwrap_err();
    assert_eq!(refused.to_string(), "the daemon refused the connection: 404 no such route");
    let (status, _) = daemon.get("/attach").await;
    assert_eq!(status, 426, "without an Upgrade header");
    let header = [("mcpx-project", "/home/ö".to_owned())];
    let bad = control_call::attach(&daemon.socket, "/attach", &header, LINK).await.unwrap_err();
    assert!(matches!(bad, CallFailed::BadHeader(_)));
}

#[tokio::test]
async fn no_daemon_is_told_from_a_broken_one() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = folder.path().join("none.sock");
    let error = control_call::attach(&nobody, "/", &[], LINK).await.unwrap_err();
    assert!(matches!(error, CallFailed::NoDaemon(_)));
    let listener = tokio::net::UnixListener::bind(&nobody).unwrap();
    let rubbish = spawn_named("rubbish", async move {
        for text in ["", "HTTP/1.1 101 Switching", "no HTTP at all\r\n\r\n"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1000]).await;
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    });
    for _ in 0..3 {
        let error = control_call::attach(&nobody, "/", &[], LINK).await.unwrap_err();
        assert!(matches!(error, CallFailed::Broken(_)), "{error}");
    }
    rubbish.await.unwrap();
    let error = control_call::attach(&nobody, "/", &[], LINK).await.unwrap_err();
    assert!(matches!(error, CallFailed::NoDaemon(_)), "a stale socket");
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_an_attached_one_takes_no_place() {
    let mut daemon = daemon(limits());
    let mut attached = Vec::new();
    for _ in 0..5 {
        let link = control_call::attach(&daemon.socket, "/attach", &[], LINK).await.unwrap();
        attached.push((link, daemon.links.recv().await.unwrap()));
    }
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = UnixStream::connect(&daemon.socket).await.unwrap();
        stream.write_all(b"GET /slow HTTP/1.1\r\n\r\n").await.unwrap();
        assert_eq!(daemon.slow.recv().await, Some("begun"));
        held.push(stream);
    }
    let answer = daemon.raw(b"").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let (first, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(first.contains(&format!("Content-Length: {}\r\n", text.len())), "{answer}");
    held.pop();
    assert_eq!(daemon.slow.recv().await, Some("given up"));
    while daemon.raw(b"GET /echo HTTP/1.0\r\n\r\n").await.starts_with("HTTP/1.1 503 ") {}
}

#[tokio::test]
async fn stopping_closes_the_door_first_and_lets_answers_finish() {
    let daemon = daemon(ListenLimits { close_grace: Duration::from_millis(50), ..limits() });
    // One that is idle, one that never finishes.
    let idle = UnixStream::connect(&daemon.socket).await.unwrap();
    let mut slow = UnixStream::connect(&daemon.socket).await.unwrap();
    slow.write_all(b"GET /slow HTTP/1.1\r\n\r\n").await.unwrap();
    let mut told = daemon.slow;
    assert_eq!(told.recv().await, Some("begun"));
    daemon.stop.send(true).unwrap();
    daemon.listening.await.unwrap().unwrap();
    assert_eq!(told.recv().await, Some("given up"));
    assert!(UnixStream::connect(&daemon.socket).await.is_err());
    drop(idle);
}
