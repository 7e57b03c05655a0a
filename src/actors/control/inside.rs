//! Ops on what goes on inside: the audit, traces of frames, the supervision tree.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use super::super::dispatch::Context;
use super::super::inside::trace::{Frame, Way};
use super::super::inside::tree::{self, Node};
use super::servers::find;
use super::sse::EventSender;
use crate::control::ApiError;
use crate::control::types::{
    ActorView, AuditAnswer, AuditRecord, AuditRequest, EventsRequest, FailureCode, FrameView,
    Missed, RestartView, TraceAnswer, TraceRequest, TreeAnswer, stream as names,
};
use crate::protocol::jsonrpc::RawJson;
use crate::settings::value::parse_duration;
use crate::transport::clock;

/// The events that are wanted, with the server by its key.
pub(super) fn events_wanted(
    context: &Context,
    wanted: &EventsRequest,
) -> Result<EventsRequest, ApiError> {
    Ok(EventsRequest { server: key_of(context, wanted.server.as_deref())?, ..wanted.clone() })
}

/// The key of a server that a person names; what is no server may have been one.
fn key_of(context: &Context, name: Option<&str>) -> Result<Option<String>, ApiError> {
    name.map(|name| find(context, name).map(|def| def.key.clone())).transpose()
}

/// Which records are wanted.
struct Choice {
    after_ms: u64,
    server: Option<String>,
    outcome: Option<String>,
    id: Option<String>,
}

impl Choice {
    fn of(context: &Context, wanted: &AuditRequest) -> Result<Self, ApiError> {
        let before = |text: &String| {
            parse_duration(text)
                .map_err(|why| ApiError::new(FailureCode::BadRequest, format!("`since`: {why}")))
        };
        let since = wanted.since.as_ref().map(before).transpose()?;
        let after = since.map_or(Duration::ZERO, |since| clock::wall().saturating_sub(since));
        // Records outlive the configuration: a server that is none any more is looked for as it is named.
        let server = wanted
            .server
            .as_ref()
            .map(|name| find(context, name).map_or_else(|_| name.clone(), |def| def.key.clone()));
        Ok(Self {
            after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
            server,
            outcome: wanted.outcome.clone(),
            id: wanted.id.clone(),
        })
    }

    fn takes(&self, record: &AuditRecord) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|it| it == text);
        record.at >= self.after_ms
            && is(&self.server, &record.server)
            && is(&self.outcome, &record.outcome)
            && is(&self.id, &record.id)
    }
}

/// How many records are shown.
fn most(context: &Context, wanted: &AuditRequest) -> usize {
    match wanted.limit.unwrap_or(context.settings().cli.log_lines) {
        0 => usize::MAX,
        limit => limit,
    }
}

pub(super) async fn audit(context: &Context, wanted: AuditRequest) -> Result<RawJson, ApiError> {
    let (choice, most) = (Choice::of(context, &wanted)?, most(context, &wanted));
    let read = context.inside.audit.read(most, move |record| choice.takes(record)).await;
    let records = read.map_err(|why| {
        let text = format!("the audit cannot be read: {why}");
        ApiError::new(FailureCode::Internal, text).with_hint("see to that folder's permissions")
    })?;
    let handle = &context.inside.audit;
    let (enabled, dropped) = (handle.is_on(), handle.dropped());
    Ok(RawJson::write(&AuditAnswer { enabled, dropped, records }))
}

/// The last records, and those that come.
pub(super) async fn follow_audit(
    context: Arc<Context>,
    wanted: AuditRequest,
    sender: EventSender,
) -> Result<(), ApiError> {
    let choice = Choice::of(&context, &wanted)?;
    // Before what is there is read: none may fall between the two. One may be told twice.
    let mut feed = context.inside.audit.follow();
    let again = Choice::of(&context, &wanted)?;
    let read =
        context.inside.audit.read(most(&context, &wanted), move |one| again.takes(one)).await;
    let mut last = String::new();
    for record in read.unwrap_or_default() {
        last.clone_from(&record.id);
        if !sender.send(names::CALL, &record).await {
            return Ok(());
        }
    }
    let mut told = last.is_empty();
    loop {
        let next = tokio::select! {
            next = feed.recv() => next,
            () = sender.closed() => return Ok(()),
        };
        let sent = match next {
            // In the feed since before the reading, and read.
            Ok(record) if !told && number_of(&record.id) <= number_of(&last) => true,
            Ok(record) => {
                told = true;
                !choice.takes(&record) || sender.send(names::CALL, &*record).await
            }
            Err(RecvError::Lagged(missed)) => sender.send(names::MISSED, &Missed { missed }).await,
            Err(RecvError::Closed) => return Ok(()),
        };
        if !sent {
            return Ok(());
        }
    }
}

fn number_of(id: &str) -> u64 {
    id.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

pub(super) fn trace(context: &Context, wanted: &TraceRequest) -> Result<RawJson, ApiError> {
    let def = find(context, &wanted.server)?;
    let limits = context.settings().inside.trace;
    let (frames, kept) = context.upstreams.traces().of(&def.key).look(limits, wanted.frames);
    let frames = frames.iter().map(frame_view).collect();
    Ok(RawJson::write(&TraceAnswer { server: def.key.clone(), kept, frames }))
}

/// The last frames, and those that come.
pub(super) async fn follow_trace(
    context: Arc<Context>,
    wanted: TraceRequest,
    sender: EventSender,
) -> Result<(), ApiError> {
    let def = find(&context, &wanted.server)?;
    let limits = context.settings().inside.trace;
    let trace = context.upstreams.traces().of(&def.key);
    let (mut frames, mut reader) = trace.follow(limits, wanted.frames);
    let mut next: Option<u64> = None;
    loop {
        for frame in frames {
            // Those that made room for others before they were read.
            let missed = next.map_or(0, |next| frame.seq.saturating_sub(next));
            if missed > 0 && !sender.send(names::MISSED, &Missed { missed }).await {
                return Ok(());
            }
            next = Some(frame.seq + 1);
            if !sender.send(names::FRAME, &frame_view(&frame)).await {
                return Ok(());
            }
        }
        frames = tokio::select! {
            frames = reader.next() => frames,
            () = sender.closed() => return Ok(()),
        };
    }
}

fn frame_view(frame: &Frame) -> FrameView {
    let (text, cut) = frame.text();
    FrameView {
        seq: frame.seq,
        at: frame.at_ms,
        instance: frame.instance,
        way: match frame.way {
            Way::To => "to".to_owned(),
            Way::From => "from".to_owned(),
        },
        method: frame.method(),
        id: frame.id(),
        bytes: frame.bytes,
        text,
        cut,
    }
}

pub(super) async fn tree(context: &Context) -> Result<RawJson, ApiError> {
    let root = tree::grow(context).await;
    let root =
        root.ok_or_else(|| ApiError::new(FailureCode::Internal, "the daemon is starting"))?;
    let (daemon, now) = (context.settings().daemon, now_ms());
    let window_ms = u64::try_from(daemon.restart_window.as_millis()).unwrap_or(u64::MAX);
    let failures = context.inside.chronicle.failures();
    let recent = failures.iter().filter(|one| now.saturating_sub(one.at_ms) <= window_ms).count();
    let intensity = daemon.restart_intensity;
    Ok(RawJson::write(&TreeAnswer { root: actor_view(root, now), intensity, window_ms, recent }))
}

fn actor_view(node: Node, now: u64) -> ActorView {
    let restart = |(at, why): (u64, String)| RestartView { ago_ms: now.saturating_sub(at), why };
    ActorView {
        kind: node.kind.to_owned(),
        actor: node.actor,
        name: node.name,
        state: node.state,
        since_ms: node.since_ms.map(|since| now.saturating_sub(since)),
        restarts: node.restarts,
        history: node.history.into_iter().map(restart).collect(),
        children: node.children.into_iter().map(|child| actor_view(child, now)).collect(),
    }
}

fn now_ms() -> u64 {
    u64::try_from(clock::wall().as_millis()).unwrap_or(u64::MAX)
}
