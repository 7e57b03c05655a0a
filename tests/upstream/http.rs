//! A daemon in front of a scripted HTTP upstream named `up`.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::setup;
use crate::support::daemon::Daemon;
use crate::support::raw_host::RawHost;
use crate::support::scripted_http::{Reply, Request, ScriptedHttp};

/// The revisions that have a handshake.
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A daemon in front of `server`, its tools passed through, and a host of 2025-11-25. `more` holds
/// settings, then members of the server's table after a line `---`.
pub(crate) async fn front(server: &ScriptedHttp, more: &str) -> (Daemon, RawHost) {
    let (settings, members) = more.split_once("---").unwrap_or((more, ""));
    let url = server.url("/mcp");
    let more = format!("{}\n{settings}\n\n[servers.up]\nurl = \"{url}\"\n{members}", setup::PASS);
    let daemon = setup::start(|_| Vec::new(), &more);
    let host = setup::host(&daemon, "2025-11-25").await;
    (daemon, host)
}

/// The methods of all requests so far; the verb of those without a body.
pub(crate) fn names(server: &ScriptedHttp) -> Vec<String> {
    let name = |request: &Request| match request.method() {
        Some(method) => method.to_owned(),
        None if request.verb == "POST" => "answer".to_owned(),
        None => request.verb.clone(),
    };
    server.requests().iter().map(name).collect()
}

/// How many requests bear this name.
pub(crate) fn count(server: &ScriptedHttp, name: &str) -> usize {
    names(server).iter().filter(|known| *known == name).count()
}

/// A result that says `text`.
pub(crate) fn said(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

/// The same in an answer to `request`.
pub(crate) fn answer(request: &Request, text: &str) -> Value {
    let mut result = said(text);
    if let Some(result) = result.as_object_mut()
        && request.header("mcp-method").is_none()
    {
        result.remove("resultType");
    }
    json!({ "jsonrpc": "2.0", "id": request.id(), "result": result })
}

/// A progress note for the call in `request`.
pub(crate) fn progress(request: &Request, progress: u64) -> Value {
    let token = request.json()["params"]["_meta"]["progressToken"].clone();
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": { "progressToken": token, "progress": progress },
    })
}

/// What a server says that lists its tools and nothing else.
pub(crate) fn error(request: &Request, code: i64, message: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": request.id(),
        "error": { "code": code, "message": message },
    })
}

/// A refusal with a JSON body.
pub(crate) fn refusal(status: u16, body: &Value) -> Reply {
    Reply::json_status(status, body)
}

/// Ends a server, and waits until nobody listens there any more; its address.
pub(crate) async fn end(server: ScriptedHttp) -> SocketAddr {
    let addr = server.addr();
    drop(server);
    while TcpStream::connect(addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    addr
}
