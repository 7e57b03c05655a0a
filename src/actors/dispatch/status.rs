//! `mcpx_status`: what a model needs to know of the servers' health.

use std::fmt::Write as _;

use super::Context;
use super::arguments::{object_of, only_known};
use super::call_tool::no_namespace;
use crate::actors::upstreams::PoolStatus;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::tool_result;

pub(super) async fn answer(context: &Context, arguments: Option<&RawJson>) -> RawJson {
    match text(context, arguments).await {
        Ok(text) => tool_result::text_result(&text, false),
        Err(text) => tool_result::text_result(&text, true),
    }
}

async fn text(context: &Context, arguments: Option<&RawJson>) -> Result<String, String> {
    let given = object_of(arguments)?;
    only_known("mcpx_status", &given, &["namespace"])?;
    let snapshot = context.catalog.snapshot();
    let mut servers = context.upstreams.status().await;
    servers.retain(|server| snapshot.by_key(&server.server).is_some());
    match given.get_str("namespace").filter(|name| !name.is_empty()) {
        None => {
            let mut text = servers.iter().fold(String::new(), |mut text, server| {
                let _ = writeln!(text, "{}", one_line(server));
                text
            });
            if let Some(project) = context.settings.project()
                && let Some(remark) = context.settings.remark_on(project).await
            {
                let _ = writeln!(text, "{remark}");
            }
            Ok(text)
        }
        Some(wanted) => {
            let found = servers.iter().find(|server| server.namespace == wanted);
            let server = found.ok_or_else(|| {
                no_namespace(&wanted, servers.iter().map(|server| server.namespace.as_str()))
            })?;
            Ok(in_full(server))
        }
    }
}

fn one_line(server: &PoolStatus) -> String {
    match &server.reason {
        Some(reason) => format!("{}: {} ({reason})", server.namespace, server.state),
        None => format!("{}: {}", server.namespace, server.state),
    }
}

fn in_full(server: &PoolStatus) -> String {
    let mut text = one_line(server);
    for instance in &server.instances {
        let _ = write!(
            text,
            "\ninstance {}: {}, {} calls in flight, up {} s",
            instance.id,
            instance.state,
            instance.in_flight,
            instance.uptime_ms / 1000
        );
    }
    if !server.stderr.is_empty() {
        let _ = write!(text, "\nlast error output:\n{}", server.stderr.join("\n"));
    }
    text
}
