//! `/mcp`: hosts over Streamable HTTP.
//!
//! Answers what the listener admitted. Not written yet: every request is told so.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::dispatch::Context;
use crate::transport::http::{Answering, HttpBody, HttpHandler, HttpIn, HttpOut};

/// Answers `/mcp` and `/mcp/{profile}`.
#[derive(Debug)]
pub struct McpEndpoint {
    _context: Arc<Context>,
}

impl McpEndpoint {
    /// Answers with these handles.
    pub const fn new(context: Arc<Context>) -> Self {
        Self { _context: context }
    }
}

impl HttpHandler for McpEndpoint {
    fn handle(&self, _request: HttpIn) -> Answering {
        Box::pin(async {
            let mut headers = HeaderMap::new();
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            headers.insert(header::CONTENT_TYPE, plain);
            let body = HttpBody::Full(Bytes::from_static(b"hosts over HTTP are not served yet\n"));
            HttpOut { status: StatusCode::NOT_IMPLEMENTED, headers, body }
        })
    }
}
