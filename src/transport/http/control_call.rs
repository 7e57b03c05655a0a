//! Requests to the control socket, for the command line and the shim.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::body;
use crate::transport::link::{Link, LinkLimits};
use crate::transport::socket::widen;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallFailed {
    /// Nobody listens on the socket.
    #[error("no daemon listens on {}", .0.display())]
    NoDaemon(PathBuf),
    /// The socket is there, but not for us.
    #[error("{} cannot be used: {source}", path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A header value that is no plain ASCII: the caller has to encode it.
    #[error("the value of the header {0} cannot be sent as it is")]
    BadHeader(String),
    /// The connection broke, or what came is no HTTP.
    #[error("the daemon's answer broke off: {0}")]
    Broken(String),
    /// The attach was answered, but not with an upgrade.
    #[error("the daemon refused the connection: {status} {text}")]
    NotUpgraded {
        /// Its status.
        status: u16,
        /// Its words.
        text: String,
    },
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// An answer whose body comes in chunks.
#[derive(Debug)]
pub struct Stream {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: Incoming,
}

impl Stream {
    /// The next chunk; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallFailed> {
        loop {
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| CallFailed::Broken(error.to_string()))?;
            if let Ok(chunk) = frame.into_data() {
                return Ok(Some(chunk));
            }
        }
    }

    /// The rest as one, at most `limit` bytes.
    pub async fn read(self, limit: usize) -> Result<Answer, CallFailed> {
        let body = body::read(self.body, limit).await;
        let body = body.map_err(|error| CallFailed::Broken(error.to_string()))?;
        Ok(Answer { status: self.status, headers: self.headers, body })
    }
}

async fn connect(socket: &Path) -> Result<UnixStream, CallFailed> {
    UnixStream::connect(socket).await.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            CallFailed::NoDaemon(socket.to_owned())
        }
        _ => CallFailed::Refused { path: socket.to_owned(), source },
    })
}

/// Sends one request; the answer's body is still to be read. `accept` is the `Accept` header.
pub async fn send(
    socket: &Path,
    method: Method,
    path: &str,
    accept: &str,
    body: Option<Bytes>,
) -> Result<Stream, CallFailed> {
    let stream = connect(socket).await?;
    let broken = |error: &dyn std::fmt::Display| CallFailed::Broken(error.to_string());
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    crate::transport::task::spawn_named("control-call", async move {
        // Its failure is seen by whoever waits for the answer.
        let _ = connection.await;
    });
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "mcpx")
        .header(header::ACCEPT, accept);
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let request =
        request.body(Full::new(body.unwrap_or_default())).map_err(|error| broken(&error))?;
    let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
    let (parts, body) = response.into_parts();
    Ok(Stream { status: parts.status, headers: parts.headers, body })
}

/// The protocol name of the attach stream in the `Upgrade` header.
pub const ATTACH_PROTOCOL: &str = "mcpx-attach";

/// Longest head of the daemon's answer to an attach, in bytes. Ours is far below it; whatever sends
/// more is no daemon.
const HEAD_LIMIT: usize = 16 * 1024;

/// Most headers of that head.
const HEADER_COUNT: usize = 32;

/// Attaches to the daemon: one HTTP upgrade written and read by hand, because the shim that uses it
/// must start fast and stay small.
pub async fn attach(
    socket: &Path,
    path: &str,
    headers: &[(&str, String)],
    limits: LinkLimits,
) -> Result<Link, CallFailed> {
    let mut stream = connect(socket).await?;
    let broken = |error: io::Error| CallFailed::Broken(error.to_string());
    let mut head = format!(
        "GET {path} HTTP/1.1\r\nHost: mcpx\r\nConnection: Upgrade\r\nUpgrade: {ATTACH_PROTOCOL}\r\n"
    );
    for (name, value) in headers {
        if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(CallFailed::BadHeader((*name).to_owned()));
        }
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await.map_err(broken)?;

    let mut read = Vec::new();
    let (status, length, end) = loop {
        if let Some(parsed) = parse_head(&read)? {
            break parsed;
        }
        if read.len() >= HEAD_LIMIT {
            return Err(CallFailed::Broken("its head is too long".to_owned()));
        }
        if stream.read_buf(&mut read).await.map_err(broken)? == 0 {
            return Err(CallFailed::Broken("it closed the connection".to_owned()));
        }
    };
    let rest = read.split_off(end);
    if status != StatusCode::SWITCHING_PROTOCOLS.as_u16() {
        let text = refusal(stream, rest, length).await;
        return Err(CallFailed::NotUpgraded { status, text });
    }
    widen(&stream);
    let (reader, writer) = stream.into_split();
    Ok(Link::with_head(&rest, reader, writer, limits))
}

/// Status, content length and the head's own length, once the head is whole.
fn parse_head(read: &[u8]) -> Result<Option<(u16, usize, usize)>, CallFailed> {
    let mut headers = [httparse::EMPTY_HEADER; HEADER_COUNT];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(read).map_err(|error| CallFailed::Broken(error.to_string()))?;
    let httparse::Status::Complete(end) = parsed else { return Ok(None) };
    let length = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok())
        .unwrap_or(0);
    Ok(Some((response.code.unwrap_or_default(), length, end)))
}

/// The words of a refusal; as much of them as came.
async fn refusal(stream: UnixStream, mut text: Vec<u8>, length: usize) -> String {
    let missing = length.min(HEAD_LIMIT).saturating_sub(text.len()) as u64;
    // What cannot be read is left out: the status says enough.
    let _ = stream.take(missing).read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).trim().to_owned()
}
