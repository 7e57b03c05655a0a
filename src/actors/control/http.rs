//! The control socket: `/v1` to ops and back, and the attach of shims.

use std::path::PathBuf;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::super::dispatch::Context;
use super::super::hosts::Attached;
use super::{ATTACH_VERSION, execute, streams};
use crate::control::types::FailureCode;
use crate::control::{ApiError, openapi, route};
use crate::protocol::jsonrpc::RawJson;
use crate::transport::http::{Answering, HttpBody, HttpHandler, HttpIn, HttpOut};

/// The version of the attach stream that the shim speaks.
pub const VERSION_HEADER: &str = "mcpx-attach-version";
/// The host's project folder, percent-encoded.
pub const PROJECT_HEADER: &str = "mcpx-project";
/// The tool list that the host saw last.
pub const VIEW_HEADER: &str = "mcpx-view";

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
            Ok(json(StatusCode::OK, RawJson::write(&openapi::describe(context.identity.version))))
        }
        path => {
            let verb = request.method.as_str();
            let query = request.query.as_deref();
            let call = route::resolve(verb, path, query, &request.body)?;
            if let Some(stream) = streams::open(context, &call) {
                return Ok(event_stream(HttpBody::Stream(stream?)));
            }
            execute(context, call).await.map(|answer| json(StatusCode::OK, answer))
        }
    }
}

fn json(status: StatusCode, body: RawJson) -> HttpOut {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    HttpOut { status, headers, body: HttpBody::Full(body.bytes()) }
}

fn event_stream(body: HttpBody) -> HttpOut {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    HttpOut { status: StatusCode::OK, headers, body }
}

fn failure(error: &ApiError) -> HttpOut {
    let status = StatusCode::from_u16(error.error.code.status());
    json(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), RawJson::write(error))
}

/// Admits a shim: 101, then its connection is a host's.
fn attach(context: &Arc<Context>, request: &HttpIn) -> Result<HttpOut, ApiError> {
    let text = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
    if text(header::UPGRADE.as_str()) != Some(route::ATTACH_PROTOCOL) {
        let text = format!("{} is for `Upgrade: {}`", route::ATTACH, route::ATTACH_PROTOCOL);
        return Err(ApiError::new(FailureCode::BadRequest, text));
    }
    let version = text(VERSION_HEADER).and_then(|version| version.parse::<u32>().ok());
    if !version.is_some_and(served) {
        let text = format!(
            "this daemon serves version {ATTACH_VERSION} of the attach stream and the one before; \
             the shim speaks {}",
            text(VERSION_HEADER).unwrap_or("none")
        );
        return Err(ApiError::new(FailureCode::BadRequest, text)
            .with_hint("start the host again, so that it launches the new `mcpx serve`"));
    }
    if context.root.is_ending() {
        return Err(ApiError::new(FailureCode::Draining, "the daemon is about to end"));
    }
    let project = text(PROJECT_HEADER).and_then(|path| route::decode(path, false).ok());
    let project = project.filter(|path| !path.is_empty()).map(|path| Arc::from(PathBuf::from(path)));
    let seen_view = text(VIEW_HEADER).map(str::to_owned);
    let hosts = context.hosts.clone();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(route::ATTACH_PROTOCOL));
    headers.insert(
        HeaderName::from_static(VERSION_HEADER),
        HeaderValue::from(u64::from(ATTACH_VERSION)),
    );
    let body = HttpBody::Upgrade(Box::new(move |link| {
        hosts.attach(Attached { link, project, seen_view });
    }));
    Ok(HttpOut { status: StatusCode::SWITCHING_PROTOCOLS, headers, body })
}

/// The current version and the one before: old shims outlive upgrades.
const fn served(version: u32) -> bool {
    version <= ATTACH_VERSION && version + 1 >= ATTACH_VERSION
}
