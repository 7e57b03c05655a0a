//! One HTTP/1.1 request on a Unix socket, by hand.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(15);

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header block.
    pub head: String,
    /// The body, put together.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Panics
    /// Where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| {
            panic!("no JSON ({why}): {} {}", self.status, String::from_utf8_lossy(&self.body))
        })
    }
}

/// Sends one request and reads the whole answer.
pub async fn request(socket: &Path, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let exchange = async {
        let mut stream = UnixStream::connect(socket)
            .await
            .unwrap_or_else(|why| panic!("no daemon at {}: {why}", socket.display()));
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: mcpx\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        bytes
    };
    let bytes = timeout(LIMIT, exchange)
        .await
        .unwrap_or_else(|_| panic!("{method} {path}: no answer within {LIMIT:?}"));
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("no header block");
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok());
    let rest = &bytes[end + 4..];
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunk(rest) } else { rest.to_vec() };
    Answer { status: status.expect("no status"), head, body }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
        let Ok(size @ 1..) = size else { break };
        rest = &rest[end + 2..];
        let size = size.min(rest.len());
        body.extend_from_slice(&rest[..size]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    body
}
