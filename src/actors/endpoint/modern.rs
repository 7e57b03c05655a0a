//! A request of the modern era: whole in itself, answered by the task that serves its connection.
//!
//! 2026-07-28 Streamable HTTP page. Nothing is stored between two requests (H-15). A request is answered
//! with JSON where its answer is all there is to say, otherwise with a stream of events that ends with
//! it. A host that goes away cancels what it asked for: its work falls, and the upstream is told (F27).
//!
//! `subscriptions/listen` is answered by a stream that is an actor of its own ([`crate::actors::listen`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::sync::mpsc;

use super::answer;
use crate::actors::dispatch::{self, Context, Listed, Repeats, TaskSide};
use crate::actors::events::Event;
use crate::actors::listen::{Known, ListenArgs, Way, closing_room};
use crate::actors::support::progress::{self, CallNote, ProgressReceiver, Wants};
use crate::actors::support::task::spawn;
use crate::actors::upstreams::{Answers, Caller, Source, Via};
use crate::protocol::http_rules::post::Accepts;
use crate::protocol::jsonrpc::{
    Code, Frame, Incoming, Message, Notification, RawJson, Request, RpcError,
};
use crate::protocol::revision::Era;
use crate::protocol::session::host::{HostEvent, HostOutput, HostSession, ListenWant, PostId};
use crate::protocol::session::resume::say_plainly;
use crate::protocol::session::{CallKey, HostRequest, Outcome, Peer};
use crate::transport::clock;
use crate::transport::http::HttpOut;

/// The only POST of its session.
const POST: PostId = PostId(1);

/// Answers one modern request.
pub(super) async fn answer(
    context: &Arc<Context>,
    headers: HeaderMap,
    request: Request,
    accepts: Accepts,
) -> HttpOut {
    let Some(face) = context.hosts.face(context) else { return answer::ending() };
    let mut session = HostSession::new(face);
    session.handle_post(clock::now(), POST, Incoming::One(Message::Request(request)), true);
    let mut said = Said::default();
    let asked = said.take(context, &mut session);
    let asked = match asked {
        None => return said.whole(accepts),
        Some(Asked::Stream(want)) => return listen(context, session, want, said, accepts),
        Some(Asked::Request(asked)) => asked,
    };
    let settings = context.settings();
    let mut running = Running::new(context, session, asked, headers, &said.label);
    let patience = tokio::time::sleep(settings.sessions.stream_after);
    let mut patience = std::pin::pin!(patience);
    loop {
        let said = tokio::select! {
            biased;
            said = running.next() => said,
            () = &mut patience, if accepts.events => Said::default(),
        };
        match said.done {
            true if said.frames.len() == 1 || !accepts.events => return said.whole(accepts),
            // Nobody hears what comes before the answer.
            false if !accepts.events => {}
            _ => {
                let (sender, receiver) = mpsc::channel(settings.sessions.stream_queue + 1);
                spawn(async move { running.stream(said, sender).await });
                return answer::events(receiver, settings.http.sse_keep_alive);
            }
        }
    }
}

/// What a host asks for.
enum Asked {
    Request(HostRequest),
    Stream(ListenWant),
}

/// The answer is the open stream; it ends when the host closes it.
fn listen(
    context: &Arc<Context>,
    mut session: HostSession,
    want: ListenWant,
    mut said: Said,
    accepts: Accepts,
) -> HttpOut {
    if !accepts.events {
        return answer::not_acceptable("text/event-stream");
    }
    let settings = context.settings();
    let place = match context.listens.place(settings.listen.most) {
        Ok(place) => place,
        Err(error) => {
            session.refuse_listen(clock::now(), want.key, error);
            said.take(context, &mut session);
            return said.whole(accepts);
        }
    };
    let (events, receiver) = mpsc::channel(closing_room(settings.sessions.stream_queue));
    let caller = modern_caller(context, &want.peer, &said.label, over_http(context));
    let known = Known {
        view: dispatch::visible_views(context),
        listed: Arc::default(),
        changed: Vec::new(),
    };
    let way = Way::Http { session: Box::new(session), events };
    let args = ListenArgs { caller, want, known, way, context: Arc::clone(context) };
    match context.listens.open(place, args) {
        Ok(_) => answer::events(receiver, settings.http.sse_keep_alive),
        Err(_) => answer::ending(),
    }
}

fn modern_caller(context: &Context, peer: &Peer, label: &str, source: Source) -> Caller {
    Caller {
        // There is no session to share an instance with: its scope is the call.
        host: None,
        project: context.settings.project(),
        label: Arc::from(label),
        era: peer.revision.era(),
        answers: Answers::Inline { declared: peer.declared_on() },
        source,
    }
}

fn over_http(context: &Context) -> Source {
    Source { who: context.who_over_http(), ..Source::new(Via::Http) }
}

/// What a session says at one time.
#[derive(Default)]
struct Said {
    frames: Vec<Frame>,
    /// Of the last one.
    status: u16,
    /// The answer is among them, or there will be none.
    done: bool,
    /// What the host calls itself.
    label: String,
}

impl Said {
    /// Takes everything that the session has to say; a request that it hands up is given back.
    fn take(&mut self, context: &Context, session: &mut HostSession) -> Option<Asked> {
        let mut asked = None;
        while let Some(output) = session.poll_output() {
            match output {
                HostOutput::Send { frame, status, .. } => {
                    self.frames.push(frame);
                    self.status = status;
                }
                HostOutput::PostDone(_) => self.done = true,
                HostOutput::Event(HostEvent::Request(request)) => {
                    asked = Some(Asked::Request(request));
                }
                HostOutput::Event(HostEvent::Listen(want)) => asked = Some(Asked::Stream(want)),
                HostOutput::Event(HostEvent::Opened { label, .. }) => self.label = label,
                // A modern host is asked nothing but by the answer to its own request.
                HostOutput::Event(
                    HostEvent::Cancelled { .. }
                    | HostEvent::Answered(_)
                    | HostEvent::Agreed
                    | HostEvent::Foreign { .. }
                    | HostEvent::Notification { .. },
                ) => {}
                HostOutput::Notice(notice) => {
                    context.events.emit(Event::from_notice(notice).of_host(self.label.clone()));
                }
            }
        }
        asked
    }

    /// The answer alone.
    fn whole(mut self, accepts: Accepts) -> HttpOut {
        let Some(frame) = self.frames.pop() else { return answer::accepted() };
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        if accepts.json || status != StatusCode::OK {
            answer::json(status, frame)
        } else {
            answer::one_event(say_plainly(&frame.to_bytes()))
        }
    }
}

/// A notification, which is about no request.
pub(super) fn note(context: &Context, note: Notification) {
    let Notification { method, params } = note;
    let caller = Caller {
        host: None,
        project: context.settings.project(),
        label: Arc::from("a host over HTTP"),
        era: Era::Modern,
        answers: Answers::Nobody,
        source: over_http(context),
    };
    let params = params.unwrap_or_else(RawJson::empty_object);
    dispatch::alone_note(context, &caller, method, params);
}

type Work = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A request at work.
struct Running {
    context: Arc<Context>,
    session: HostSession,
    key: CallKey,
    work: Work,
    notes: Option<ProgressReceiver>,
}

impl Running {
    fn new(
        context: &Arc<Context>,
        session: HostSession,
        asked: HostRequest,
        headers: HeaderMap,
        label: &str,
    ) -> Self {
        let settings = context.settings();
        let wants = Wants::of(&asked, None, &settings.call);
        let (progress, notes) = wants.map(progress::channel).unzip();
        let caller = modern_caller(
            context,
            &asked.peer,
            label,
            Source { request: Some(asked.id.clone()), ..over_http(context) },
        );
        let request = dispatch::Request {
            method: asked.method,
            params: asked.params,
            caller,
            // No session: who knows a task's id may have it.
            tasks: TaskSide { form: asked.peer.task_form(), session: None },
            progress,
            repeats: Arc::new(Repeats::new(settings.call.repeat_memory)),
            listed: Arc::<Listed>::default(),
            headers: Some(headers),
        };
        let work = {
            let context = Arc::clone(context);
            Box::pin(async move { dispatch::answer(&context, request).await })
        };
        Self { context: Arc::clone(context), session, key: asked.key, work, notes }
    }

    /// The next thing to say. Cancel-safe: what was heard stays with the session.
    async fn next(&mut self) -> Said {
        loop {
            let deadline = self.session.poll_deadline();
            let heard = {
                let (work, notes) = (&mut self.work, &self.notes);
                tokio::select! {
                    biased;
                    outcome = finished(work) => Heard::Outcome(outcome),
                    note = next_note(notes.as_ref()) => Heard::Note(note),
                    () = until(deadline) => Heard::Deadline,
                }
            };
            let now = clock::now();
            match heard {
                Heard::Outcome(outcome) => {
                    while let Some(note) = self.notes.as_ref().and_then(ProgressReceiver::try_next)
                    {
                        note.tell(&mut self.session, now, self.key);
                    }
                    self.session.finish(now, self.key, outcome);
                }
                Heard::Note(note) => note.tell(&mut self.session, now, self.key),
                Heard::Deadline => self.session.handle_timeout(now),
            }
            let mut said = Said::default();
            said.take(&self.context, &mut self.session);
            if said.done || !said.frames.is_empty() {
                return said;
            }
        }
    }

    /// Says the rest as events. Ends at once when the host goes away, and the work with it.
    async fn stream(mut self, mut said: Said, events: mpsc::Sender<Bytes>) {
        loop {
            let last = if said.done { said.frames.pop() } else { None };
            for frame in said.frames {
                // The last place is for the answer; a host that does not read loses the rest.
                if events.capacity() > 1 {
                    let _ = events.try_send(say_plainly(&frame.to_bytes()));
                }
            }
            if said.done {
                if let Some(frame) = last {
                    // A host that has gone gets none.
                    let _ = events.send(say_plainly(&frame.to_bytes())).await;
                }
                return;
            }
            said = tokio::select! {
                biased;
                () = events.closed() => return,
                said = self.next() => said,
            };
        }
    }
}

enum Heard {
    Outcome(Outcome),
    Note(CallNote),
    Deadline,
}

/// The outcome of the work, also where it panics: its connection serves others.
async fn finished(work: &mut Work) -> Outcome {
    std::future::poll_fn(|waker| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(waker)));
        polled.unwrap_or_else(|_| {
            let text = "mcpx failed while it worked on this request; its log has more";
            Poll::Ready(Err(RpcError::new(Code::InternalError, text)))
        })
    })
    .await
}

async fn next_note(notes: Option<&ProgressReceiver>) -> CallNote {
    match notes {
        Some(notes) => notes.next().await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
