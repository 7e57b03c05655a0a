//! The connections of a scripted server.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::reply::{Exchange, Step};
use super::{Request, Said, Shared};

/// Accepts until it is dropped; its connections fall with it.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let _ = stream.set_nodelay(true);
        let number = shared.note(|state| {
            state.connections += 1;
            state.connections - 1
        });
        let connection = Connection {
            number,
            stream,
            buffer: Vec::new(),
            closed: false,
            shared: Arc::clone(&shared),
        };
        connections.spawn(connection.run());
    }
}

/// The connection goes no further.
struct Gone;

struct Connection {
    number: usize,
    stream: TcpStream,
    /// Read and not used yet.
    buffer: Vec<u8>,
    closed: bool,
    shared: Arc<Shared>,
}

impl Connection {
    async fn run(mut self) {
        while self.exchange().await.is_ok() {}
        let number = self.number;
        drop(self.stream);
        self.shared.note(|state| state.gone.push(number));
    }

    /// One request and its reply.
    async fn exchange(&mut self) -> Result<(), Gone> {
        let mut request = self.read_request().await?;
        request.number = self.shared.note(|state| {
            let number = state.requests.len();
            state.requests.push(Request { number, ..request.clone() });
            if !request.body.is_empty() {
                let bytes = request.body.clone();
                state.frames.push(Said { from_mcpx: true, bytes, request: number });
            }
            number
        });
        let reply = (self.shared.script)(&request);
        if !reply.hand_over {
            for step in reply.into_steps() {
                self.take(request.number, step).await?;
            }
            return Ok(());
        }
        let (steps, mut queue) = mpsc::unbounded_channel();
        let number = request.number;
        let _ = self.shared.handed.send(Exchange { request, steps });
        loop {
            let step = tokio::select! {
                biased;
                step = queue.recv() => step,
                () = gone(&mut self.stream, &mut self.buffer) => return Err(Gone),
            };
            let Some(step) = step else { return Ok(()) };
            self.take(number, step).await?;
        }
    }

    async fn take(&mut self, request: usize, step: Step) -> Result<(), Gone> {
        match step {
            Step::Write(bytes) => self.write(&bytes).await,
            Step::Chunk(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend_from_slice(&bytes);
                chunk.extend_from_slice(b"\r\n");
                self.write(&chunk).await
            }
            Step::Said(bytes) => {
                let said = Said { from_mcpx: false, bytes, request };
                self.shared.note(|state| state.frames.push(said));
                Ok(())
            }
            Step::Opened(session) => {
                self.shared.note(|state| state.opened.push((request, session)));
                Ok(())
            }
            Step::Wait(gate) => {
                tokio::select! {
                    biased;
                    () = gate.passed() => Ok(()),
                    () = gone(&mut self.stream, &mut self.buffer) => Err(Gone),
                }
            }
            Step::UntilGone => {
                gone(&mut self.stream, &mut self.buffer).await;
                Err(Gone)
            }
            Step::Close => {
                // What the peer sent meanwhile is read, or closing would be a reset.
                let _ = self.stream.shutdown().await;
                gone(&mut self.stream, &mut self.buffer).await;
                Err(Gone)
            }
            Step::Reset => {
                let _ = self.stream.set_zero_linger();
                Err(Gone)
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.stream.write_all(bytes).await.map_err(|_| Gone)
    }

    async fn read_request(&mut self) -> Result<Request, Gone> {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            self.fill().await?;
        };
        let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
        let mut lines = head[..end].split(|byte| *byte == b'\n');
        let first = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
        let mut words = first.split_whitespace();
        let mut request = Request {
            number: 0,
            connection: self.number,
            verb: words.next().unwrap_or_default().to_owned(),
            target: words.next().unwrap_or_default().to_owned(),
            headers: lines.filter_map(header).collect(),
            body: Vec::new(),
        };
        let chunked =
            request.header("transfer-encoding").is_some_and(|how| how.contains("chunked"));
        let length = request.header("content-length").and_then(|length| length.parse().ok());
        request.body = if chunked {
            self.read_chunks().await?
        } else {
            self.read_exact(length.unwrap_or(0)).await?
        };
        Ok(request)
    }

    async fn read_chunks(&mut self) -> Result<Vec<u8>, Gone> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = find(&self.buffer, b"\r\n") {
                    break end;
                }
                self.fill().await?;
            };
            let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
            let size = String::from_utf8_lossy(&line);
            let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
            let size = size.map_err(|_| Gone)?;
            body.extend(self.read_exact(size).await?);
            self.read_exact(2).await?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    async fn read_exact(&mut self, count: usize) -> Result<Vec<u8>, Gone> {
        while self.buffer.len() < count {
            self.fill().await?;
        }
        Ok(self.buffer.drain(..count).collect())
    }

    async fn fill(&mut self) -> Result<(), Gone> {
        let more = !self.closed && read_some(&mut self.stream, &mut self.buffer).await;
        self.closed = !more;
        if more { Ok(()) } else { Err(Gone) }
    }
}

fn header(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = String::from_utf8_lossy(&line[..colon]).into_owned();
    Some((name, line[colon + 1..].trim_ascii().to_vec()))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Reads some bytes; false at the end.
async fn read_some(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> bool {
    let mut chunk = vec![0; 64 * 1024];
    let count = stream.read(&mut chunk).await.unwrap_or(0);
    buffer.extend_from_slice(&chunk[..count]);
    count > 0
}

/// Until the peer has closed or reset; what it says before is kept.
async fn gone(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
    while read_some(stream, buffer).await {}
}
