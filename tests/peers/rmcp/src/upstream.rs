//! An upstream written with the official Rust SDK: serves the catalog file it is given.
//!
//!     rmcp-upstream CATALOG.json         over stdio
//!     rmcp-upstream CATALOG.json PORT    over Streamable HTTP, at any path
//!
//! The tools and their canned results are in the catalog, so this file holds only the four that do
//! something.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode,
    Implementation, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ResultType,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How long a call waits for its cancellation.
const LONG: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone)]
struct Upstream {
    catalog: Value,
    cancelled: Arc<Mutex<HashSet<String>>>,
}

impl ServerHandler for Upstream {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("rmcp-peer", "1.0.0"))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let start: usize = match request.and_then(|r| r.cursor) {
            Some(cursor) => cursor.parse().map_err(|_| bad(format!("no cursor {cursor}")))?,
            None => 0,
        };
        let tools = self.catalog["tools"].as_array().cloned().unwrap_or_default();
        let size = self.catalog["pageSize"].as_u64().unwrap_or(1) as usize;
        let page = tools
            .iter()
            .skip(start)
            .take(size)
            .map(|tool| serde_json::from_value(tool["definition"].clone()))
            .collect::<Result<Vec<Tool>, _>>()
            .map_err(|e| bad(e.to_string()))?;
        let mut result = ListToolsResult::with_all_items(page);
        let end = start + size;
        result.next_cursor = (end < tools.len()).then(|| end.to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tools = self.catalog["tools"].as_array().cloned().unwrap_or_default();
        let tool = tools.iter().find(|tool| tool["definition"]["name"] == *request.name);
        let Some(tool) = tool else {
            return Err(bad(format!("no tool named {}", request.name)));
        };
        if let Some(error) = tool.get("error") {
            let code = ErrorCode(error["code"].as_i64().unwrap_or_default() as i32);
            let message = error["message"].as_str().unwrap_or_default().to_owned();
            return Err(ErrorData::new(code, message, error.get("data").cloned()));
        }
        if let Some(result) = tool.get("result") {
            let mut result: CallToolResult =
                serde_json::from_value(result.clone()).map_err(|e| bad(e.to_string()))?;
            // The SDK takes this away again for a host of an older revision.
            result.result_type = Some(ResultType::COMPLETE);
            return Ok(result.into());
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        Ok(self.act(tool["does"].as_str().unwrap_or_default(), &arguments, context).await?.into())
    }
}

impl Upstream {
    async fn act(
        &self,
        what: &str,
        arguments: &Value,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let tag = arguments["tag"].as_str().unwrap_or_default().to_owned();
        match what {
            "echo" => {
                let mut result = says("echoed");
                result.structured_content = Some(json!({ "arguments": arguments }));
                Ok(result)
            }
            "counts" => count(arguments["steps"].as_u64().unwrap_or_default(), &context).await,
            "waits" => tokio::select! {
                () = context.ct.cancelled() => {
                    self.cancelled.lock().map_err(|e| bad(e.to_string()))?.insert(tag);
                    Err(bad("cancelled".to_owned()))
                }
                () = tokio::time::sleep(LONG) => Ok(says("nobody cancelled this")),
            },
            "was_cancelled" => {
                let seen = self.cancelled.lock().map_err(|e| bad(e.to_string()))?.contains(&tag);
                Ok(says(if seen { "yes" } else { "no" }))
            }
            other => Err(bad(format!("the catalog asks for {other}, which is not written"))),
        }
    }
}

async fn count(
    steps: u64,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    for step in 1..=steps {
        if let Some(token) = context.meta.get_progress_token() {
            let note = ProgressNotificationParam::new(token, step as f64)
                .with_total(steps as f64)
                .with_message(format!("step {step}"));
            let sent = context.peer.notify_progress(note).await;
            sent.map_err(|e| bad(e.to_string()))?;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(says(&format!("counted to {steps}")))
}

fn says(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn bad(why: String) -> ErrorData {
    ErrorData::invalid_params(why, None)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: rmcp-upstream CATALOG.json [PORT]")?;
    let catalog: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let upstream = Upstream { catalog, cancelled: Arc::default() };
    match args.next() {
        None => {
            upstream.serve((tokio::io::stdin(), tokio::io::stdout())).await?.waiting().await?;
        }
        Some(port) => listen(upstream, port.parse()?).await?,
    }
    Ok(())
}

async fn listen(upstream: Upstream, port: u16) -> Result<(), Failure> {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(
        move || Ok(upstream.clone()),
        sessions,
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                eprintln!("connection: {error}");
            }
        });
    }
}
