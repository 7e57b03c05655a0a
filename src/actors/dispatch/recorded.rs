//! One call of a tool, resource or prompt as it is remembered: counted and recorded, however it ends.

use std::sync::Arc;
use std::time::Instant;

use super::Context;
use super::outcome::Told;
use super::rounds::Subject;
use crate::actors::inside::audit::Began;
use crate::actors::inside::ending::Ending;
use crate::actors::inside::spans::OpenSpan;
use crate::actors::upstreams::{Answers, CallWant, Caller};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::trace_context::TraceContext;
use crate::protocol::otlp::SpanKind;
use crate::protocol::session::Outcome;
use crate::transport::clock;

/// A call under way. Where it falls before its end, its caller has given it up.
#[derive(Debug)]
pub(super) struct Recording<'a> {
    context: &'a Context,
    subject: Subject<'a>,
    server: Arc<str>,
    begun: Instant,
    audit: Option<Began>,
    span: Option<OpenSpan>,
    /// Its host is asked by the answer.
    may_ask: bool,
    over: bool,
}

impl<'a> Recording<'a> {
    /// It begins. Where traces are sent, its span is put in between.
    pub(super) fn begin(context: &'a Context, subject: Subject<'a>, want: &mut CallWant) -> Self {
        let span = if context.inside.spans.is_on() { span(context, subject, want) } else { None };
        let audit = context.inside.audit.begin(&want.caller, &want.params);
        let server = Arc::clone(&want.server);
        let may_ask = matches!(want.caller.answers.present(), Answers::Inline { .. });
        let begun = clock::now();
        Self { context, subject, server, begun, audit, span, may_ask, over: false }
    }

    /// It is over; what its caller is told. An error of mcpx's own bears the id of the record.
    pub(super) fn end(mut self, outcome: Result<Outcome, Told>) -> Result<Outcome, Told> {
        self.over = true;
        let id = self.audit.as_ref().map(|began| began.id);
        self.note(Ending::of(&outcome, self.may_ask));
        outcome.map_err(|told| Told { audit: id, ..told })
    }

    fn note(&mut self, ending: Ending) {
        let took = clock::now().saturating_duration_since(self.begun);
        self.context.upstreams.meters().of(&self.server).ended(ending, took);
        if let Some(mut span) = self.span.take() {
            if let Some(began) = &self.audit {
                span.set("mcpx.audit.id", began.id.to_string());
            }
            span.end(ending);
        }
        if let Some(began) = self.audit.take() {
            let what = (self.subject.kind, self.subject.name);
            self.context.inside.audit.end(began, &self.server, what, (ending, took));
        }
    }
}

/// A call of a tool that never came to its server is counted and recorded all the same; what its caller is
/// told, with the id of the record.
pub(crate) fn turned_away(
    context: &Context,
    caller: &Caller,
    (server, tool): (&str, &str),
    since: Instant,
    told: Told,
) -> Told {
    let record = context.inside.audit.begin(caller, &RawJson::empty_object());
    let audit = record.as_ref().map(|record| record.id);
    let how = (Ending::of_reason(told.reason), clock::now().saturating_duration_since(since));
    context.upstreams.meters().of(server).ended(how.0, how.1);
    if let Some(record) = record {
        context.inside.audit.end(record, &Arc::from(server), ("tool", tool), how);
    }
    Told { audit, ..told }
}

/// The span of a call, and the call as a part of it.
fn span(context: &Context, subject: Subject<'_>, want: &mut CallWant) -> Option<OpenSpan> {
    let parent = want.caller.source.span.or_else(|| TraceContext::of(&want.params));
    let method = want.method.as_str();
    // Many spans share these: a method and a tool, never a resource's address.
    let name = match subject.kind {
        "resource" => method.to_owned(),
        _ => format!("{method} {}", subject.name),
    };
    let mut span = context.inside.spans.begin(parent, SpanKind::Client, name, &want.params)?;
    span.set("mcp.method.name", method);
    span.set("mcpx.server", subject.server);
    match subject.kind {
        "tool" => span.set("gen_ai.tool.name", subject.name),
        "prompt" => span.set("gen_ai.prompt.name", subject.name),
        "resource" => span.set("mcp.resource.uri", subject.name),
        _ => {}
    }
    if let Some(own) = span.context() {
        want.params = own.put_into(&want.params);
        want.caller.source.span = Some(own);
    }
    Some(span)
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.note(Ending::Cancelled);
        }
    }
}
