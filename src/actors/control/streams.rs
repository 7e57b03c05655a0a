//! Ops that answer with a stream: events, logs that are followed, calls with progress.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::super::broker::{Listening, News};
use super::super::dispatch::Context;
use super::super::events::Event;
use super::super::support::progress::{self, CallNote, ProgressSender, Wants};
use super::super::support::task;
use super::exec::{self, Wanted};
use super::sse::{self, EventSender};
use super::{calls, inside, servers};
use crate::control::types::{
    ConsoleLine, EventView, EventsAnswer, EventsRequest, LogLine, Missed, QuestionClosed,
    RunRequest, WhoAnswers, stream as names,
};
use crate::control::{ApiError, OpCall};
use crate::protocol::jsonrpc::RawJson;
use crate::script::wire;
use crate::transport::stdio::ring::StderrRing;

/// The stream that an op wants to be answered with; `None` where it wants one answer.
pub(super) fn open(
    context: &Arc<Context>,
    call: &OpCall,
) -> Option<Result<mpsc::Receiver<Bytes>, ApiError>> {
    if !call.streams() {
        return None;
    }
    let (sender, receiver) = sse::channel();
    let context = Arc::clone(context);
    match call.clone() {
        OpCall::Events(wanted) => match inside::events_wanted(&context, &wanted) {
            Ok(wanted) => {
                task::spawn(events(context, wanted, sender));
            }
            Err(error) => return Some(Err(error)),
        },
        OpCall::Audit(wanted) => {
            let told = sender.clone();
            task::spawn(async move {
                told_error(&told, inside::follow_audit(context, wanted, sender).await).await;
            });
        }
        OpCall::Trace(wanted) => {
            if let Err(error) = servers::find(&context, &wanted.server) {
                return Some(Err(error));
            }
            let told = sender.clone();
            task::spawn(async move {
                told_error(&told, inside::follow_trace(context, wanted, sender).await).await;
            });
        }
        OpCall::Questions { .. } => {
            task::spawn(questions(context.broker.listen(), sender));
        }
        OpCall::Logs { server, lines, .. } => {
            if let Some(name) = &server
                && let Err(error) = servers::find(&context, name)
            {
                return Some(Err(error));
            }
            task::spawn(logs(context, server, lines, sender));
        }
        OpCall::Call(wanted) => {
            let told = Told { progress: wanted.progress, questions: wanted.questions };
            task::spawn(with_progress(context, told, sender, None, async |context, notes| {
                calls::call(context, wanted, notes).await
            }));
        }
        OpCall::Ask(wanted) => {
            let told = Told { progress: wanted.progress, questions: wanted.questions };
            task::spawn(with_progress(context, told, sender, None, async |context, notes| {
                calls::ask(context, wanted, notes).await
            }));
        }
        OpCall::Exec(wanted) => script(context, Wanted::Given(wanted), sender),
        OpCall::ScriptRun(wanted) => script(context, Wanted::Saved(wanted), sender),
        _ => return None,
    }
    Some(Ok(receiver))
}

/// Runs a script, whose console is heard.
fn script(context: Arc<Context>, wanted: Wanted, sender: EventSender) {
    let RunRequest { progress, questions, .. } = *wanted.run();
    let told = Told { progress, questions };
    let (console, heard) = console(&context);
    let run = async move |context: &Context, notes| {
        exec::run(context, wanted, notes, Some(console)).await
    };
    task::spawn(with_progress(context, told, sender, Some(heard), run));
}

fn view(event: &Event) -> EventView {
    EventView {
        seq: event.seq,
        at: event.at,
        kind: event.kind.to_owned(),
        server: event.server.clone(),
        instance: event.instance.clone(),
        host: event.host.clone(),
        text: event.text.clone(),
    }
}

/// The kept events, for those who do not follow.
pub(super) fn events_so_far(
    context: &Context,
    wanted: &EventsRequest,
) -> Result<RawJson, ApiError> {
    let wanted = inside::events_wanted(context, wanted)?;
    let (kept, _) = context.events.listen(0);
    let kept = kept.iter().filter(|event| wanted.wants(event.kind, event.server.as_deref()));
    Ok(RawJson::write(&EventsAnswer { events: kept.map(|event| view(event)).collect() }))
}

/// A stream that could not begin says why.
async fn told_error(sender: &EventSender, outcome: Result<(), ApiError>) {
    if let Err(error) = outcome {
        sender.send(names::ERROR, &error).await;
    }
}

async fn events(context: Arc<Context>, wanted: EventsRequest, sender: EventSender) {
    // Who follows events sees questions as they are asked (product.md 8).
    let _listening = context.broker.listen();
    let (kept, mut feed) = context.events.listen(0);
    let wants = |event: &Event| wanted.wants(event.kind, event.server.as_deref());
    for event in kept.into_iter().filter(|event| wants(event)) {
        if !sender.send(names::EVENT, &view(&event)).await {
            return;
        }
    }
    loop {
        let next = tokio::select! {
            next = feed.recv() => next,
            () = sender.closed() => return,
        };
        let sent = match next {
            Ok(event) => !wants(&event) || sender.send(names::EVENT, &view(&event)).await,
            Err(RecvError::Lagged(missed)) => {
                context.events.missed(missed);
                sender.send(names::MISSED, &Missed { missed }).await
            }
            Err(RecvError::Closed) => return,
        };
        if !sent {
            return;
        }
    }
}

/// Those that are open, and each as it comes and goes.
async fn questions(mut listening: Listening, sender: EventSender) {
    loop {
        let news = tokio::select! {
            news = listening.next() => news,
            () = sender.closed() => return,
        };
        if !tell_news(&sender, news).await {
            return;
        }
    }
}

/// Whether the reader is still there.
async fn tell_news(sender: &EventSender, news: News) -> bool {
    match news {
        News::Question(view) => sender.send(names::QUESTION, &view).await,
        News::Closed(id) => sender.send(names::CLOSED, &QuestionClosed { id }).await,
    }
}

/// Follows the rings of all instances, and of those that start meanwhile.
async fn logs(
    context: Arc<Context>,
    server: Option<String>,
    lines: Option<usize>,
    sender: EventSender,
) {
    let (_, mut feed) = context.events.listen(u64::MAX);
    let mut following = HashSet::new();
    let mut followers = JoinSet::new();
    let tail = lines.unwrap_or(context.settings().cli.log_lines);
    loop {
        for (key, instance, ring) in rings(&context, server.as_deref()).await {
            if following.insert((key.clone(), instance)) {
                followers.spawn(follow(key, instance, ring, tail, sender.clone()));
            }
        }
        // Another instance announces itself by an event; nothing is polled.
        loop {
            tokio::select! {
                () = sender.closed() => return,
                event = feed.recv() => match event {
                    Ok(event) if event.kind.starts_with("server.") => break,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

async fn rings(context: &Context, server: Option<&str>) -> Vec<(String, u64, StderrRing)> {
    let settings = context.settings.everywhere();
    let mut rings = Vec::new();
    for def in &settings.servers {
        let wanted = server.is_none_or(|name| def.key == name || def.namespace == name);
        if wanted && let Ok(logs) = context.upstreams.logs(&def.key).await {
            rings.extend(logs.into_iter().map(|log| (def.key.clone(), log.instance, log.ring)));
        }
    }
    rings
}

async fn follow(server: String, instance: u64, ring: StderrRing, tail: usize, sender: EventSender) {
    let mut lines = ring.since(ring.before_last(tail));
    loop {
        let missed = lines.missed;
        if missed > 0 && !sender.send(names::MISSED, &Missed { missed }).await {
            return;
        }
        for text in lines.lines {
            let line = LogLine { server: server.clone(), instance, text };
            if !sender.send(names::LINE, &line).await {
                return;
            }
        }
        if lines.ended {
            return;
        }
        tokio::select! {
            () = ring.changed(lines.next) => {}
            () = sender.closed() => return,
        }
        lines = ring.since(lines.next);
    }
}

/// What the reader of a stream is to be told before the result.
struct Told {
    progress: bool,
    questions: Option<WhoAnswers>,
}

/// What a script tells `console`; its size has a limit in the script's run (`exec.log_limit`).
type Console = Option<mpsc::Receiver<wire::Log>>;

/// Each line costs the run some bytes of its limit: there is room for as many as it admits.
fn console(context: &Context) -> (mpsc::Sender<wire::Log>, mpsc::Receiver<wire::Log>) {
    mpsc::channel(context.settings().exec.log_limit.max(1))
}

/// Progress, questions and console first, in order, then the result or the error. A reader that goes away
/// cancels the call.
async fn with_progress<F>(
    context: Arc<Context>,
    told: Told,
    sender: EventSender,
    mut console: Console,
    call: F,
) where
    F: AsyncFnOnce(&Context, Option<ProgressSender>) -> Result<RawJson, ApiError>,
{
    let (notes_in, notes) =
        progress::channel(Wants::progress(context.settings().call.progress_queue));
    let (context, mut listening) = match told.questions {
        None => (context, None),
        Some(who) => {
            let (broker, listening) = context.broker.for_call(who);
            let context = Context { broker, ..(*context).clone() };
            (Arc::new(context), Some(listening))
        }
    };
    // Only who wants to hear of it makes a server report it.
    let notes_in = told.progress.then_some(notes_in);
    let mut answer = Box::pin(call(&context, notes_in));
    let answered = loop {
        tokio::select! {
            biased;
            log = next_log(&mut console) => {
                if !tell_log(&sender, log).await {
                    return;
                }
            }
            answered = &mut answer => break answered,
            () = sender.closed() => return,
            note = notes.next() => {
                if !tell(&sender, note).await {
                    return;
                }
            }
            news = next_of(&mut listening) => {
                if !tell_news(&sender, news).await {
                    return;
                }
            }
        }
    };
    while let Some(log) = console.as_mut().and_then(|console| console.try_recv().ok()) {
        if !tell_log(&sender, log).await {
            return;
        }
    }
    while let Some(note) = notes.try_next() {
        if !tell(&sender, note).await {
            return;
        }
    }
    match answered {
        Ok(result) => sender.send(names::RESULT, &result).await,
        Err(error) => sender.send(names::ERROR, &error).await,
    };
}

/// Never, where there is none any more.
async fn next_log(console: &mut Console) -> wire::Log {
    if let Some(receiver) = console
        && let Some(log) = receiver.recv().await
    {
        return log;
    }
    *console = None;
    std::future::pending().await
}

/// Whether the reader is still there.
async fn tell_log(sender: &EventSender, log: wire::Log) -> bool {
    let wire::Log { level, text } = log;
    sender.send(names::CONSOLE, &ConsoleLine { level, text }).await
}

/// Never, where nobody is to be told.
async fn next_of(listening: &mut Option<Listening>) -> News {
    match listening {
        Some(listening) => listening.next().await,
        None => std::future::pending().await,
    }
}

/// Whether the reader is still there.
async fn tell(sender: &EventSender, note: CallNote) -> bool {
    match note {
        CallNote::Progress(params) => sender.send(names::PROGRESS, &params).await,
        // Not asked for here.
        CallNote::Log(_) => true,
    }
}
