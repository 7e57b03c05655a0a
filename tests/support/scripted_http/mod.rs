//! An upstream over HTTP, made of bytes: a TCP server that answers as a script says.
//!
//! It parses requests leniently, writes each one down, and answers with a [`Reply`]: a list of
//! steps that are exact bytes, chunks of an event stream, gates that a test opens, and ways to
//! break off. No hyper, nothing of `src/`, no sleeps. A request can also be handed over to the
//! test ([`Reply::hand_over`], [`ScriptedHttp::taken`]), which then answers it piece by piece.
//!
//! ```ignore
//! let server = ScriptedHttp::start(|request| match request.method() {
//!     Some("tools/call") => Reply::hand_over(),
//!     _ => answers::legacy(request, "2025-06-18"),
//! }).await;
//! let call = server.taken().await;
//! call.reply(Reply::sse().event(&json!({ … })).end());
//! ```

pub mod answers;
mod reply;
mod serve;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::lenient;
use super::schema::{Facing, FrameLog};

#[allow(unused_imports, reason = "each test binary uses its own part")]
pub use reply::{Exchange, Gate, Reply};

/// How long a test waits for the peer before it fails.
const LIMIT: Duration = Duration::from_secs(15);

/// One request, as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its place among all requests of this server, from 0.
    pub number: usize,
    /// The connection that it came on, from 0.
    pub connection: usize,
    /// `GET`, `POST`, `DELETE`.
    pub verb: String,
    /// Path and query as written.
    pub target: String,
    /// The header lines as written, in order: name and value bytes.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, put together.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of a header, whatever its case; of the first where there are several.
    pub fn header(&self, name: &str) -> Option<String> {
        self.all(name).into_iter().next()
    }

    /// All values of a header.
    pub fn all(&self, name: &str) -> Vec<String> {
        let same = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        same.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
    }

    /// The body as JSON; null where it is none.
    pub fn json(&self) -> Value {
        lenient::parse(&self.body).unwrap_or_default()
    }

    /// The JSON-RPC method in the body; none for an answer, a batch, a GET.
    pub fn method(&self) -> Option<&'static str> {
        // Leaked so that a script can match on it beside the request; these are tests.
        self.json()["method"].as_str().map(|method| &*method.to_owned().leak())
    }

    /// The JSON-RPC id in the body.
    pub fn id(&self) -> Value {
        self.json()["id"].clone()
    }

    /// `Mcp-Session-Id`, as sent.
    pub fn session(&self) -> Option<String> {
        self.header("mcp-session-id")
    }
}

/// A frame of a conversation, for the strict check afterwards.
#[derive(Debug, Clone)]
struct Said {
    from_mcpx: bool,
    bytes: Vec<u8>,
    /// The request that it is or answers.
    request: usize,
}

/// What the server has seen so far.
#[derive(Debug, Default)]
struct State {
    requests: Vec<Request>,
    frames: Vec<Said>,
    /// `Mcp-Session-Id` of the reply to a request.
    opened: Vec<(usize, String)>,
    /// Connections that the peer has closed or reset, or that the script has.
    gone: Vec<usize>,
    connections: usize,
}

/// What connections share.
struct Shared {
    state: Mutex<State>,
    version: watch::Sender<u64>,
    script: Box<dyn Fn(&Request) -> Reply + Send + Sync>,
    handed: mpsc::UnboundedSender<Exchange>,
}

impl Shared {
    fn note<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let outcome = change(&mut self.state.lock().unwrap());
        self.version.send_modify(|version| *version += 1);
        outcome
    }
}

/// The server. It ends, with all its connections, when it is dropped.
pub struct ScriptedHttp {
    addr: SocketAddr,
    shared: Arc<Shared>,
    handed: tokio::sync::Mutex<mpsc::UnboundedReceiver<Exchange>>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for ScriptedHttp {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ScriptedHttp").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Drop for ScriptedHttp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ScriptedHttp {
    /// Listens on a free loopback port; `script` answers each request.
    pub async fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), script).await
    }

    /// As [`Self::start`], at an address: a server that comes back where it was.
    pub async fn start_at(
        addr: SocketAddr,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(addr).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (handed, queue) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            version: watch::channel(0).0,
            script: Box::new(script),
            handed,
        });
        let task = tokio::spawn(serve::accept(listener, Arc::clone(&shared)));
        Self { addr, shared, handed: tokio::sync::Mutex::new(queue), task }
    }

    /// Answers the first request with the first reply and so on; what comes later gets a 500.
    pub async fn steps(replies: Vec<Reply>) -> Self {
        let queue = Mutex::new(replies.into_iter());
        Self::start(move |_| {
            let next = queue.lock().unwrap().next();
            next.unwrap_or_else(|| Reply::text(500, "text/plain", "the script is at its end"))
        })
        .await
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of a path on it: `server.url("/mcp")`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state.lock().unwrap().requests.clone()
    }

    /// The requests with this JSON-RPC method so far.
    pub fn with_method(&self, method: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.method() == Some(method)).collect()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.shared.state.lock().unwrap().connections
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        let state = self.shared.state.lock().unwrap();
        state.connections - state.gone.len()
    }

    /// The next request whose reply was [`Reply::hand_over`].
    pub async fn taken(&self) -> Exchange {
        let mut queue = self.handed.lock().await;
        match timeout(LIMIT, queue.recv()).await {
            Ok(exchange) => exchange.unwrap(),
            Err(_) => panic!("no request was handed over\n{}", self.story()),
        }
    }

    /// Waits until `find` finds something in the requests.
    pub async fn until<T>(&self, what: &str, find: impl Fn(&[Request]) -> Option<T>) -> T {
        self.wait(what, |state| find(&state.requests)).await
    }

    /// Waits for the `nth` (from 1) request with this JSON-RPC method.
    pub async fn nth(&self, method: &str, nth: usize) -> Request {
        self.until(&format!("{method} number {nth}"), |all| {
            all.iter().filter(|one| one.method() == Some(method)).nth(nth - 1).cloned()
        })
        .await
    }

    /// Waits for the `nth` (from 1) request with this HTTP verb.
    pub async fn nth_verb(&self, verb: &str, nth: usize) -> Request {
        self.until(&format!("{verb} number {nth}"), |all| {
            all.iter().filter(|one| one.verb == verb).nth(nth - 1).cloned()
        })
        .await
    }

    /// Waits until the connection that a request came on is closed.
    pub async fn wait_gone(&self, request: &Request) {
        let what = format!("the end of connection {}", request.connection);
        self.wait(&what, |state| state.gone.contains(&request.connection).then_some(())).await;
    }

    async fn wait<T>(&self, what: &str, find: impl Fn(&State) -> Option<T>) -> T {
        let mut version = self.shared.version.subscribe();
        let search = async {
            loop {
                version.borrow_and_update();
                if let Some(found) = find(&self.shared.state.lock().unwrap()) {
                    return found;
                }
                let _ = version.changed().await;
            }
        };
        match timeout(LIMIT, search).await {
            Ok(found) => found,
            Err(_) => panic!("waited {LIMIT:?} for {what}\n{}", self.story()),
        }
    }

    /// Checks every frame that mcpx sent against its revision; returns how many there were.
    ///
    /// A conversation is an HTTP session; without sessions one begins at each `initialize` and
    /// `server/discover`. Answers written as raw bytes are not followed: where such a one opened
    /// the conversation, use [`Self::check_frames_with`] and `FrameLog::assume`.
    ///
    /// # Panics
    /// On the first frame that is not valid in its revision.
    pub fn check_frames(&self) -> usize {
        self.check_frames_with(|_| {})
    }

    /// As [`Self::check_frames`]; `prepare` may allow foreign keys or assume a revision.
    pub fn check_frames_with(&self, prepare: impl Fn(&mut FrameLog)) -> usize {
        let state = self.shared.state.lock().unwrap();
        let mut begun = 0;
        let mut logs: Vec<(String, FrameLog)> = Vec::new();
        let mut places: Vec<String> = Vec::new();
        for request in &state.requests {
            let opened = state.opened.iter().find(|(number, _)| *number == request.number);
            let session = opened.map(|(_, id)| id.clone()).or_else(|| request.session());
            if matches!(request.method(), Some("initialize" | "server/discover")) {
                begun += 1;
            }
            places.push(session.unwrap_or_else(|| format!("conversation {begun}")));
        }
        let mut count = 0;
        for said in &state.frames {
            let place = &places[said.request];
            if !logs.iter().any(|(name, _)| name == place) {
                let mut log = FrameLog::new(Facing::Upstream);
                prepare(&mut log);
                logs.push((place.clone(), log));
            }
            let (_, log) = logs.iter_mut().find(|(name, _)| name == place).unwrap();
            if said.from_mcpx {
                count += 1;
                log.outgoing(&said.bytes).unwrap_or_else(|why| panic!("{why}"));
            } else {
                log.incoming(&said.bytes);
            }
        }
        count
    }

    /// The requests so far, shortened, for messages.
    pub fn story(&self) -> String {
        let mut text = String::from("--- requests so far ---\n");
        for request in self.requests() {
            let body = String::from_utf8_lossy(&request.body[..request.body.len().min(300)]);
            let Request { connection, verb, target, .. } = &request;
            text.push_str(&format!("#{connection} {verb} {target} {body}\n"));
        }
        text
    }
}
