//! Tests of the client against servers that speak raw bytes.

mod answers;
mod redirects;
mod ways;

use std::net::SocketAddr;

use http::header::{AUTHORIZATION, HeaderValue};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::transport::http::net::NetSpec;

/// What a server does on a connection.
pub(in crate::transport::http) enum Do {
    /// Reads one request, with its body.
    Read,
    /// Writes.
    Write(String),
    /// Waits for a word of the test.
    When(Arc<Notify>),
    /// Waits for the other side to close.
    UntilClosed,
}

/// An answer with a length, after its request.
pub(in crate::transport::http) fn answer(head: &str, body: &str) -> Vec<Do> {
    let length = body.len();
    let text = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}");
    vec![Do::Read, Do::Write(text)]
}

/// An answer in chunks, each written by itself.
pub(in crate::transport::http) fn chunked(head: &str, chunks: &[&str]) -> Vec<Do> {
    let mut all = unfinished(head, chunks);
    all.push(Do::Write("0\r\n\r\n".to_owned()));
    all
}

/// The same without its end.
pub(in crate::transport::http) fn unfinished(head: &str, chunks: &[&str]) -> Vec<Do> {
    let mut all = vec![Do::Read];
    let head = format!("HTTP/1.1 {head}\r\nTransfer-Encoding: chunked\r\n\r\n");
    all.push(Do::Write(head));
    for chunk in chunks {
        all.push(Do::Write(format!("{:x}\r\n{chunk}\r\n", chunk.len())));
    }
    all
}

/// A server: each connection gets the next list of what to do, and is closed at its end.
pub(in crate::transport::http) struct Server {
    pub(in crate::transport::http) address: SocketAddr,
    /// What it read, and `closed` for each connection that it is through with.
    pub(in crate::transport::http) seen: mpsc::Receiver<String>,
    _running: Aborted,
}

struct Aborted(JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(in crate::transport::http) async fn server(connections: Vec<Vec<Do>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, seen) = mpsc::channel(100);
    let running = spawn_named("server", async move {
        for todo in connections {
            let (stream, _) = listener.accept().await.unwrap();
            spawn_named("connection", act(stream, todo, tell.clone()));
        }
        std::future::pending::<()>().await;
    });
    Server { address, seen, _running: Aborted(running) }
}

async fn act<S>(mut stream: S, todo: Vec<Do>, tell: mpsc::Sender<String>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for step in todo {
        match step {
            Do::Read => tell.send(request(&mut stream).await).await.unwrap(),
            Do::Write(text) => {
                stream.write_all(text.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
            }
            Do::When(word) => word.notified().await,
            Do::UntilClosed => while stream.read(&mut [0; 1000]).await.is_ok_and(|n| n > 0) {},
        }
    }
    let _ = stream.shutdown().await;
    drop(stream);
    let _ = tell.send("closed".to_owned()).await;
}

/// One request, head and body.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(text).unwrap();
    let length = head
        .to_ascii_lowercase()
        .split_once("content-length: ")
        .map_or(0, |(_, rest)| rest.split_once("\r\n").unwrap().0.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    head + &String::from_utf8(body).unwrap()
}

impl Server {
    pub(in crate::transport::http) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next request, or `closed`.
    pub(in crate::transport::http) async fn next(&mut self) -> String {
        self.seen.recv().await.unwrap()
    }

    fn client(&self) -> HttpClient {
        client(&self.url("/mcp"), NetSpec::default())
    }
}

pub(in crate::transport::http) const LIMITS: ClientLimits = ClientLimits {
    connect: Duration::from_secs(10),
    redirects: 2,
    error_body: 100,
    max_frame: 1000,
    idle: Duration::from_secs(10),
    idle_connections: 4,
    keepalive: Duration::from_secs(10),
    post_wait: Duration::from_millis(100),
};

/// A client with a credential.
pub(in crate::transport::http) fn client(url: &str, net: NetSpec) -> HttpClient {
    let mut token = HeaderValue::from_static("Bearer hush");
    token.set_sensitive(true);
    let url = url.parse().unwrap();
    let headers = [(AUTHORIZATION, token)].into_iter().collect();
    HttpClient::new(ClientSpec {
        mask: Mask::new("hush", &headers, &url),
        url,
        query: None,
        headers,
        limits: LIMITS,
        net: Net::new(net),
    })
    .unwrap()
}

fn post() -> Exchange {
    let body = Bytes::from_static(b"{\"id\":1}");
    Exchange { tag: 7, method: Method::POST, headers: HeaderMap::new(), body }
}

fn get() -> Exchange {
    Exchange { method: Method::GET, body: Bytes::new(), ..post() }
}

/// An exchange under way.
struct Running {
    guard: ExchangeGuard,
    events: mpsc::Receiver<(u64, ExchangeEvent)>,
}

/// Takes nothing.
fn start(client: &HttpClient, exchange: Exchange) -> Running {
    let (sender, events) = mpsc::channel(1);
    let guard = client.start(exchange, ExchangeTo { take: Arc::new(Some), events: sender });
    Running { guard, events }
}

impl Running {
    /// The next event in words.
    async fn next(&mut self) -> String {
        let (tag, event) = self.events.recv().await.expect("no end was told");
        assert_eq!(tag, 7);
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        match event {
            ExchangeEvent::Head { status, stream, .. } => format!("head {status} {stream}"),
            ExchangeEvent::Frame(frame) => format!("frame {}", text(&frame)),
            ExchangeEvent::Mark { id, retry, .. } => format!("mark {id:?} {retry:?}"),
            ExchangeEvent::Ended(end) => match end {
                ExchangeEnd::Whole => "whole".to_owned(),
                ExchangeEnd::Refused { status, body, .. } => {
                    format!("refused {} {}", status.as_u16(), text(&body))
                }
                ExchangeEnd::Unreadable { what } => format!("unreadable {what}"),
                ExchangeEnd::TooLarge { bytes } => format!("too large {bytes}"),
                ExchangeEnd::Elsewhere { why } => format!("elsewhere {why}"),
                ExchangeEnd::Failed { sent, why } => format!("failed sent={sent} {why}"),
            },
        }
    }
}

/// All that comes of an exchange, but for the head of a plain 200.
async fn all(client: &HttpClient, exchange: Exchange) -> Vec<String> {
    let mut running = start(client, exchange);
    let mut seen = Vec::new();
    loop {
        let event = running.next().await;
        let ended = ["whole", "refused", "unreadable", "too large", "elsewhere", "failed"];
        let last = ended.iter().any(|end| event.starts_with(end));
        if !event.starts_with("head 200") {
            seen.push(event);
        }
        if last {
            assert!(running.events.recv().await.is_none(), "more after the end");
            return seen;
        }
    }
}
