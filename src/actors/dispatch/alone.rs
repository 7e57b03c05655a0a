//! What mcpx does not know, for a server that is exposed alone (product.md 3): its requests and
//! notifications go to that server as they came, and its answers come back so. With several servers
//! nobody could say which of them is meant.

use std::sync::Arc;

use super::rounds::{self, Subject};
use super::{Context, Request};
use crate::actors::upstreams::{CallWant, Caller};
use crate::protocol::jsonrpc::{Code, Method, Notification, RawJson, RpcError};
use crate::protocol::session::Outcome;

/// Answers a request of a method that mcpx does not have.
pub(super) async fn forward(context: &Context, request: Request) -> Outcome {
    let settings = context.settings();
    let Some(def) = settings.alone() else { return Err(unknown(&request.method)) };
    let server: Arc<str> = Arc::from(def.key.as_str());
    let method = request.method.clone();
    let subject = Subject { kind: "method", name: method.as_str(), server: &server };
    let want = CallWant {
        server: Arc::clone(&server),
        caller: request.caller,
        method: request.method,
        params: request.params,
        progress: request.progress,
        // What it does is not known.
        repeatable: false,
        task: None,
    };
    rounds::call(context, subject, None, want).await.unwrap_or_else(|told| Err(told.as_error()))
}

/// A notification of a host that mcpx itself has no use for. Reaches the server where it runs for this
/// host; starts nothing.
pub(crate) fn note(context: &Context, caller: &Caller, method: Method, params: RawJson) {
    let settings = context.settings();
    if let Some(def) = settings.alone() {
        let params = Some(params).filter(|params| params.as_str() != "{}");
        context.upstreams.note(caller, &def.key, Notification { method, params });
    }
}

fn unknown(method: &Method) -> RpcError {
    RpcError::new(Code::MethodNotFound, format!("mcpx has no method `{method}`"))
}
