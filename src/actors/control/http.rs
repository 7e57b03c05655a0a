//! The control socket: `/v1` to ops and back, and the attach of shims.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::super::dispatch::Context;
use super::super::events::Event;
use super::super::hosts::Attached;
use super::super::inside::metrics;
use super::super::support::task::spawn;
use super::{execute, streams};
use crate::control::attach::Attach;
use crate::control::types::FailureCode;
use crate::control::{ApiError, openapi, route};
use crate::protocol::jsonrpc::RawJson;
use crate::transport::http::{Answering, HttpBody, HttpHandler, HttpIn, HttpOut};

/// Answers requests on the control socket.
#[derive(Debug)]
pub struct ControlHttp {
    context: Arc<Context>,
}

impl ControlHttp {
    /// Answers with these handles.
    pub const fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

impl HttpHandler for ControlHttp {
    fn handle(&self, request: HttpIn) -> Answering {
        let context = Arc::clone(&self.context);
        Box::pin(async move {
            match answer(&context, request).await {
                Ok(out) => out,
                Err(error) => failure(&error),
            }
        })
    }
}

async fn answer(context: &Arc<Context>, request: HttpIn) -> Result<HttpOut, ApiError> {
    match request.path.as_str() {
        route::ATTACH => attach(context, &request),
        route::OPENAPI => {
            Ok(json(StatusCode::OK, &RawJson::write(&openapi::describe(context.identity.version))))
        }
        metrics::PATH if request.method == Method::GET => Ok(metrics::answer(context).await),
        path => {
            let verb = request.method.as_str();
            let query = request.query.as_deref();
            let call = route::resolve(verb, path, query, &request.body)?;
            let project = call.project().map(|folder| Arc::from(Path::new(folder)));
            let there = project.and_then(|project| context.seen_from(None, Some(project)));
            let there = there.map(Arc::new);
            let context = there.as_ref().unwrap_or(context);
            if let Some(stream) = streams::open(context, &call) {
                let keep_alive = context.settings().http.sse_keep_alive;
                let body = HttpBody::Events { chunks: stream?, keep_alive };
                return Ok(HttpOut { status: StatusCode::OK, headers: HeaderMap::new(), body });
            }
            execute(context, call).await.map(|answer| json(StatusCode::OK, &answer))
        }
    }
}

fn json(status: StatusCode, body: &RawJson) -> HttpOut {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    HttpOut { status, headers, body: HttpBody::Full(body.bytes()) }
}

fn failure(error: &ApiError) -> HttpOut {
    let status = StatusCode::from_u16(error.error.code.status());
    json(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &RawJson::write(error))
}

/// Admits a shim: 101, then its connection is a host's.
fn attach(own: &Arc<Context>, request: &HttpIn) -> Result<HttpOut, ApiError> {
    let text = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
    if text(header::UPGRADE.as_str()) != Some(route::ATTACH_PROTOCOL) {
        let text = format!("{} is for `Upgrade: {}`", route::ATTACH, route::ATTACH_PROTOCOL);
        return Err(ApiError::new(FailureCode::BadRequest, text));
    }
    let wanted = Attach::read(|name| text(name).map(str::to_owned))?;
    if own.root.is_ending() {
        return Err(ApiError::new(FailureCode::Draining, "the daemon is about to end"));
    }
    let project = wanted.project.filter(|path| !path.is_empty());
    let project: Option<Arc<Path>> = project.map(|path| Arc::from(PathBuf::from(path)));
    let hosts = own.hosts.clone();
    let profile = wanted.profile.as_deref();
    let context = own.seen_from(profile, project.clone());
    let context = Arc::new(context.ok_or_else(|| no_profile(own, profile.unwrap_or_default()))?);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(route::ATTACH_PROTOCOL));
    if let Some(folder) = &project {
        spawn(say_if_left_out(own.clone(), Arc::clone(folder)));
    }
    let body = HttpBody::Upgrade(Box::new(move |link| {
        let (seen_view, name) = (wanted.view, wanted.session);
        hosts.attach(Attached { link, project, seen_view, name, context });
    }));
    Ok(HttpOut { status: StatusCode::SWITCHING_PROTOCOLS, headers, body })
}

/// A host that works where a `.mcpx.toml` is left out gets none of its servers: somebody is to know why.
async fn say_if_left_out(context: Arc<Context>, project: Arc<Path>) {
    if let Some(text) = context.settings.remark_on(project).await {
        context.events.emit(Event::new("project.untrusted", text));
    }
}

fn no_profile(context: &Context, name: &str) -> ApiError {
    let text = context.settings.current().loaded.no_profile(name);
    ApiError::new(FailureCode::Refused, text)
}
