//! The fake over HTTP (`--http ADDRESS`): Streamable HTTP, or with `--http-sse` the HTTP+SSE of
//! 2024-11-05. Blocking, a thread a connection, one request a connection.
//!
//! The first line on standard output is `listening on ADDRESS`; the endpoint is `/mcp`. It ends at the
//! end of its standard input. Each `initialize` makes a session, which is a fake of its own; tasks
//! belong to all of them. What a call says before its answer goes out on the answer's stream, what
//! belongs to a `subscriptions/listen` on that one, everything else on the session's GET stream,
//! where it is kept until there is one. An answer that comes alone is a JSON body.
//!
//! It is strict about what 2026-07-28 and the sessions want: `MCP-Protocol-Version`, `Mcp-Method`
//! and `Mcp-Name` must say what the body says (-32020), a session must be known (404) and named (400).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::args::Args;
use crate::lenient;
use crate::out::Out;
use crate::state::{Fake, MODERN};
use crate::tasks::Tasks;

const NAME: &str = "io.modelcontextprotocol/protocolVersion";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

thread_local! {
    /// The request that this thread works for.
    static ROUTE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// Starts a thread that works for the same request.
pub fn spawn(what: impl FnOnce() + Send + 'static) {
    let route = ROUTE.with_borrow(Clone::clone);
    std::thread::spawn(move || {
        ROUTE.set(route);
        what();
    });
}

/// A request: its id as JSON text, and a number of our own, because callers of a modern server know
/// nothing of each other's ids.
type Place = (String, u32);

/// What goes to an open answer: a message, and whether it is the last.
type Part = (String, bool);

/// Where the lines of one session's fake go.
#[derive(Debug, Default)]
pub struct Lines {
    /// Open answers by their request.
    open: Mutex<BTreeMap<Place, Sender<Part>>>,
    /// The GET stream, if there is one, and what waits for it.
    stream: Mutex<(Option<Sender<String>>, Vec<String>)>,
    /// HTTP+SSE: everything goes to the stream.
    one_stream: bool,
}

impl Lines {
    /// Takes one line of the fake's to where it belongs.
    pub fn deliver(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        let Ok(message) = lenient::parse(line) else { return };
        if message["method"].is_null() && !self.one_stream {
            let mut open = self.open.lock().unwrap();
            let place = Self::place(&open, &message["id"].to_string());
            if let Some(open) = place.and_then(|place| open.remove(&place)) {
                let _ = open.send((text, true));
            }
            return;
        }
        let listen = &message["params"]["_meta"][SUBSCRIPTION];
        let route = if listen.is_null() {
            ROUTE.with_borrow(Clone::clone)
        } else {
            Self::place(&self.open.lock().unwrap(), &listen.to_string())
        };
        if let Some(route) = route
            && let Some(open) = self.open.lock().unwrap().get(&route)
        {
            let _ = open.send((text, false));
            return;
        }
        let mut stream = self.stream.lock().unwrap();
        match &stream.0 {
            Some(open) if open.send(text.clone()).is_ok() => {}
            _ => stream.1.push(text),
        }
    }

    /// The open request of this id: the one that this thread works for, or else the first.
    fn place(open: &BTreeMap<Place, Sender<Part>>, id: &str) -> Option<Place> {
        let own = ROUTE.with_borrow(Clone::clone);
        let own = own.filter(|place| place.0 == id && open.contains_key(place));
        own.or_else(|| open.keys().find(|place| place.0 == id).cloned())
    }

    fn open_stream(&self) -> Receiver<String> {
        let (sender, receiver) = channel();
        let mut stream = self.stream.lock().unwrap();
        for text in stream.1.drain(..) {
            let _ = sender.send(text);
        }
        stream.0 = Some(sender);
        receiver
    }
}

#[derive(Debug)]
struct Session {
    fake: Arc<Fake>,
    lines: Arc<Lines>,
}

#[derive(Debug)]
struct Server {
    args: Args,
    tasks: Arc<Tasks>,
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
    count: Mutex<u32>,
    modern: Arc<Session>,
}

/// Serves until standard input ends.
pub fn serve(args: &Args) {
    let listener = TcpListener::bind(args.get("http").unwrap()).expect("--http ADDRESS");
    let mut out = std::io::stdout();
    writeln!(out, "listening on {}", listener.local_addr().unwrap()).unwrap();
    out.flush().unwrap();
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let tasks = Arc::default();
    let modern = Arc::new(session(args, &tasks, "modern"));
    let server = Server {
        args: args.clone(),
        tasks,
        sessions: Mutex::default(),
        count: Mutex::default(),
        modern,
    };
    let server = Arc::new(server);
    for stream in listener.incoming().flatten() {
        let server = Arc::clone(&server);
        std::thread::spawn(move || {
            let _ = server.take(&stream);
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

fn session(args: &Args, tasks: &Arc<Tasks>, name: &str) -> Session {
    let one_stream = args.flag("http-sse");
    let lines = Arc::new(Lines { one_stream, ..Lines::default() });
    let out = Out::to_lines(args, Arc::clone(&lines), name);
    let fake = Arc::new(Fake::with_out(args.clone(), out, Arc::clone(tasks)));
    Session { fake, lines }
}

/// A request: verb, target, headers (names in lower case), body.
struct Request {
    verb: String,
    target: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn read(stream: &TcpStream) -> std::io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (verb, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |text| text.parse().unwrap_or(0));
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request { verb, target, headers, body })
}

impl Server {
    fn take(&self, stream: &TcpStream) -> std::io::Result<()> {
        let request = read(stream)?;
        if self.args.flag("http-sse") {
            return self.take_old(stream, &request);
        }
        match request.verb.as_str() {
            "POST" => self.post(stream, &request),
            "GET" => match self.named(&request) {
                Ok(session) => {
                    head(stream, 200, "text/event-stream", None)?;
                    events(stream, &session.lines.open_stream())
                }
                Err(404) => head(stream, 404, "", None),
                Err(_) => head(stream, 405, "", None),
            },
            "DELETE" => {
                let known = request
                    .headers
                    .get("mcp-session-id")
                    .and_then(|id| self.sessions.lock().unwrap().remove(id));
                head(stream, if known.is_some() { 200 } else { 404 }, "", None)
            }
            _ => head(stream, 405, "", None),
        }
    }

    fn named(&self, request: &Request) -> Result<Arc<Session>, u16> {
        let id = request.headers.get("mcp-session-id").ok_or(400_u16)?;
        self.sessions.lock().unwrap().get(id).cloned().ok_or(404)
    }

    fn new_session(&self) -> (String, Arc<Session>) {
        let mut count = self.count.lock().unwrap();
        *count += 1;
        let id = format!("fake-session-{count}");
        let session = Arc::new(session(&self.args, &self.tasks, &id));
        self.sessions.lock().unwrap().insert(id.clone(), Arc::clone(&session));
        (id, session)
    }

    fn post(&self, stream: &TcpStream, request: &Request) -> std::io::Result<()> {
        let Ok(message) = lenient::parse(&request.body) else {
            return refuse(stream, 400, &Value::Null, -32700, "no JSON");
        };
        let method = message["method"].as_str().unwrap_or_default();
        let era = self.args.get("era").unwrap_or("legacy");
        let version = message["params"]["_meta"][NAME].as_str();
        let modern = era == "modern" || era == "dual" && version.is_some();
        let mut opened = None;
        let session = if modern || method == "server/discover" {
            if let Some(why) = mismatch(request, &message, method, version) {
                return refuse(stream, 400, &message["id"], -32020, &why);
            }
            Arc::clone(&self.modern)
        } else if method == "initialize" {
            let (id, session) = self.new_session();
            opened = Some(id);
            session
        } else {
            let session = match self.named(request) {
                Ok(session) => session,
                Err(status) => return head(stream, status, "", None),
            };
            let agreed = session.fake.state.lock().unwrap().revision.clone().unwrap_or_default();
            // The header came with 2025-06-18.
            if agreed.as_str() >= "2025-06-18"
                && request.headers.get("mcp-protocol-version") != Some(&agreed)
            {
                return refuse(stream, 400, &message["id"], -32600, "not the agreed version");
            }
            session
        };
        if method == "server/discover" {
            // A client that discovers begins anew, with ids of its own.
            let mut count = self.count.lock().unwrap();
            *count += 1;
            session.fake.out.rename(&format!("modern-{count}"));
        }
        let Some(id) = message.get("id").filter(|_| !method.is_empty()) else {
            session.fake.read_line(&request.body);
            return head(stream, 202, "", None);
        };
        answer(stream, &session, &request.body, &id.to_string(), modern, opened.as_deref())
    }

    /// HTTP+SSE: a stream that names where to post, and posts that are answered on it.
    fn take_old(&self, stream: &TcpStream, request: &Request) -> std::io::Result<()> {
        match (request.verb.as_str(), request.target.split_once("?session=")) {
            ("GET", None) if request.target == "/mcp" => {
                let (id, session) = self.new_session();
                head(stream, 200, "text/event-stream", None)?;
                let mut out = stream;
                write!(out, "event: endpoint\ndata: /messages?session={id}\n\n")?;
                events(stream, &session.lines.open_stream())
            }
            ("POST", Some(("/messages", id))) => {
                let session = self.sessions.lock().unwrap().get(id).cloned();
                let Some(session) = session else { return head(stream, 404, "", None) };
                head(stream, 202, "", None)?;
                session.fake.read_line(&request.body);
                Ok(())
            }
            _ => head(stream, 405, "", None),
        }
    }
}

/// What the headers of a modern request say otherwise than its body.
fn mismatch(
    request: &Request,
    message: &Value,
    method: &str,
    version: Option<&str>,
) -> Option<String> {
    let named = match method {
        "tools/call" | "prompts/get" => message["params"]["name"].as_str(),
        "resources/read" => message["params"]["uri"].as_str(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => message["params"]["taskId"].as_str(),
        _ => None,
    };
    let method = Some(method).filter(|method| !method.is_empty());
    let wanted = [("mcp-protocol-version", version), ("mcp-method", method), ("mcp-name", named)];
    wanted
        .into_iter()
        .find_map(|(name, wanted)| {
            let wanted = wanted?;
            let header = request.headers.get(name)?;
            let coded = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
            let said = coded.map_or_else(
                || header.clone(),
                |coded| {
                    let bytes = base64::engine::general_purpose::STANDARD.decode(coded);
                    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
                },
            );
            (said != wanted).then(|| format!("{name} is {said}, the body says {wanted}"))
        })
        .or_else(|| {
            let missing = ["mcp-protocol-version", "mcp-method"]
                .into_iter()
                .find(|name| !request.headers.contains_key(*name));
            missing.filter(|_| version == Some(MODERN)).map(|name| format!("{name} is missing"))
        })
}

/// Hands a request to the fake and writes what it says, to the end.
fn answer(
    stream: &TcpStream,
    session: &Session,
    body: &[u8],
    id: &str,
    modern: bool,
    opened: Option<&str>,
) -> std::io::Result<()> {
    static NUMBERS: AtomicU32 = AtomicU32::new(0);
    let (sender, parts) = channel();
    let place = (id.to_owned(), NUMBERS.fetch_add(1, Ordering::Relaxed));
    session.lines.open.lock().unwrap().insert(place.clone(), sender);
    ROUTE.set(Some(place.clone()));
    // The end of the connection cancels a request of 2026-07-28.
    if modern {
        session.fake.begins(id);
        let (watched, lines) = (stream.try_clone()?, Arc::clone(&session.lines));
        let fake = Arc::clone(&session.fake);
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut &watched, &mut std::io::sink());
            if lines.open.lock().unwrap().remove(&place).is_some() {
                fake.cancelled(&place.0);
            }
        });
    }
    session.fake.read_line(body);
    let Ok((first, last)) = parts.recv() else { return Ok(()) };
    if last {
        let status = if modern { status(&first) } else { 200 };
        head(stream, status, "application/json", opened.map(|id| (id, first.len())))
            .and_then(|()| (&mut &*stream).write_all(first.as_bytes()))?;
        return Ok(());
    }
    head(stream, 200, "text/event-stream", None)?;
    let mut part = Some((first, last));
    while let Some((text, last)) = part {
        write!(&mut &*stream, "event: message\ndata: {text}\n\n")?;
        part = if last { None } else { parts.recv().ok() };
    }
    Ok(())
}

/// The HTTP status of an error at 2026-07-28.
fn status(text: &str) -> u16 {
    let message = lenient::parse(text.as_bytes()).unwrap_or_default();
    match message["error"]["code"].as_i64() {
        Some(-32601) => 404,
        Some(-32022..=-32020) => 400,
        _ => 200,
    }
}

/// Writes a head; a body, if any, ends with the connection. `opened` is a session that begins here.
fn head(
    mut stream: &TcpStream,
    status: u16,
    kind: &str,
    opened: Option<(&str, usize)>,
) -> std::io::Result<()> {
    let mut text = format!("HTTP/1.1 {status} x\r\nConnection: close\r\n");
    if kind.is_empty() {
        text.push_str("Content-Length: 0\r\n");
    } else {
        text.push_str("Content-Type: ");
        text.push_str(kind);
        text.push_str("\r\n");
    }
    if let Some((id, length)) = opened {
        text.push_str("Mcp-Session-Id: ");
        text.push_str(id);
        text.push_str("\r\nContent-Length: ");
        text.push_str(&length.to_string());
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes())
}

fn refuse(
    stream: &TcpStream,
    status: u16,
    id: &Value,
    code: i64,
    why: &str,
) -> std::io::Result<()> {
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } });
    head(stream, status, "application/json", None)?;
    (&mut &*stream).write_all(error.to_string().as_bytes())
}

/// Writes what comes as events until the peer is gone.
fn events(mut stream: &TcpStream, lines: &Receiver<String>) -> std::io::Result<()> {
    while let Ok(text) = lines.recv() {
        write!(stream, "event: message\ndata: {text}\n\n")?;
    }
    Ok(())
}
