//! Requests of hosts as spans, where traces are sent (`otel.endpoint`).

use super::{Context, Request, perform};
use crate::actors::inside::ending::Ending;
use crate::protocol::model::trace_context::TraceContext;
use crate::protocol::otlp::SpanKind;
use crate::protocol::session::Outcome;

/// Answers one request, as a part of the trace that it names.
pub(super) async fn answer(context: &Context, mut request: Request) -> Outcome {
    let parent = TraceContext::of(&request.params);
    let method = request.method.as_str().to_owned();
    let target = request.params.member_str("name");
    // Many spans share these: a method and a tool, never a resource's address.
    let name = target.as_ref().map_or_else(|| method.clone(), |name| format!("{method} {name}"));
    let begun = context.inside.spans.begin(parent, SpanKind::Server, name, &request.params);
    let Some(mut span) = begun else { return perform(context, request).await };
    span.set("mcp.method.name", method);
    if let Some(name) = target {
        span.set("gen_ai.tool.name", name);
    }
    let caller = &request.caller;
    span.set("mcpx.host", &*caller.label);
    span.set("network.transport", if caller.source.via.word() == "stdio" { "pipe" } else { "tcp" });
    if let Some(id) = &caller.source.request {
        span.set("jsonrpc.request.id", id.as_raw().trim_matches('"'));
    }
    request.caller.source.span = span.context();
    let outcome = perform(context, request).await;
    span.end(Ending::of_outcome(&outcome, true));
    outcome
}
