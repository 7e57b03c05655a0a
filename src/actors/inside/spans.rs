//! Traces: a span for each request of a host and each call of an upstream, sent to a collector by OTLP
//! over HTTP where `otel.endpoint` names one.
//!
//! A span that is over waits in a bounded queue; the actor is woken by the first one of a batch, gathers
//! for `otel.interval` and has a task send the batch. What finds the queue full, and a batch that the
//! collector does not take, are dropped and counted: traces are no reason to hold anything up. Permanent;
//! no children. Without an endpoint nothing is done.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri, header};
use ractor::{
    Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent,
};
use tokio::sync::{mpsc, watch};

use super::ending::Ending;
use crate::actors::events::{Event, EventsHandle};
use crate::actors::settings::Current;
use crate::actors::support::slot::Slot;
use crate::actors::support::task::{self, TaskGuard, spawn_guarded};
use crate::actors::support::timer::Timer;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::trace_context::TraceContext;
use crate::protocol::otlp::{self, Span, SpanKind};
use crate::settings::Settings;
use crate::transport::clock;
use crate::transport::http::client::{
    ClientLimits, ClientSpec, Exchange, ExchangeEnd, ExchangeEvent, ExchangeTo, HttpClient, Net,
};
use crate::transport::http::mask::Mask;

/// Where a collector takes traces, behind its address.
const PATH: &str = "/v1/traces";

#[derive(Debug)]
struct Shared {
    on: AtomicBool,
    waiting: Mutex<Vec<Span>>,
    sent: AtomicU64,
    dropped: AtomicU64,
    settings: watch::Receiver<Arc<Current>>,
    net: Net,
    events: EventsHandle,
    version: &'static str,
    actor: Slot<SpansMsg>,
}

/// How others begin and end spans. Cheap to clone; outlives the actor's incarnations.
#[derive(Debug, Clone)]
pub struct SpansHandle(Arc<Shared>);

/// A span that is not over. Where it falls, its work was given up.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    shared: Arc<Shared>,
    span: Option<Span>,
}

impl OpenSpan {
    /// What its parts are parts of.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.span.as_ref().map(|span| span.context)
    }

    /// Something more is known.
    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<String>) {
        if let Some(span) = &mut self.span {
            span.attributes.push((key, value.into()));
        }
    }

    /// It is over.
    pub(crate) fn end(mut self, ending: Ending) {
        self.close(ending);
    }

    fn close(&mut self, ending: Ending) {
        let Some(mut span) = self.span.take() else { return };
        span.end = clock::wall().max(span.start);
        if ending.is_failure() {
            span.attributes.push(("error.type", ending.word().to_owned()));
            span.failed = Some(ending.word().to_owned());
        }
        self.shared.queue(span);
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        self.close(Ending::Cancelled);
    }
}

impl SpansHandle {
    /// Nothing is sent before a collector is named.
    pub fn new(
        settings: watch::Receiver<Arc<Current>>,
        net: Net,
        events: EventsHandle,
        version: &'static str,
    ) -> Self {
        let on = settings.borrow().loaded.settings.inside.otel.endpoint.is_some();
        Self(Arc::new(Shared {
            on: AtomicBool::new(on),
            waiting: Mutex::default(),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            settings,
            net,
            events,
            version,
            actor: Slot::default(),
        }))
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.0.actor.ask(limit, |reply| SpansMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub(crate) async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        let (actor, _) = Spans::spawn_linked(None, Spans, Arc::clone(&self.0), parent).await?;
        Ok(actor.get_cell())
    }

    /// Whether traces are sent.
    pub fn is_on(&self) -> bool {
        self.0.on.load(Ordering::Relaxed)
    }

    /// Begins a span, as a part of `parent`; none where traces are not sent, or whoever began this one
    /// does not record it.
    pub(crate) fn begin(
        &self,
        parent: Option<TraceContext>,
        kind: SpanKind,
        name: String,
        params: &RawJson,
    ) -> Option<OpenSpan> {
        let sampled = parent.is_none_or(|parent| parent.flags & TraceContext::SAMPLED != 0);
        if !self.is_on() || !sampled {
            return None;
        }
        let trace = parent.map_or_else(clock::random, |parent| parent.trace);
        let context = TraceContext {
            trace,
            span: clock::random(),
            flags: parent.map_or(TraceContext::SAMPLED, |parent| parent.flags),
        };
        let state = params.member("_meta").and_then(|meta| meta.member_str("tracestate"));
        let start = clock::wall();
        let span = Span {
            context,
            parent: parent.map(|parent| parent.span),
            state,
            name,
            kind,
            start,
            end: start,
            attributes: Vec::new(),
            failed: None,
        };
        Some(OpenSpan { shared: Arc::clone(&self.0), span: Some(span) })
    }

    /// Spans that a collector took, and spans that were dropped.
    pub fn counts(&self) -> (u64, u64) {
        (self.0.sent.load(Ordering::Relaxed), self.0.dropped.load(Ordering::Relaxed))
    }

    /// Resolves when what waits was sent or dropped, or `limit` has passed.
    pub async fn flush(&self, limit: Duration) {
        if self.is_on() {
            // A part that is started anew right now has nothing more to say.
            let _ = self.0.actor.ask(limit, |reply| SpansMsg::Flush { reply }).await;
        }
    }
}

impl Shared {
    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow().loaded.settings)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Span>> {
        // Nothing panics inside the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self, span: Span) {
        let most = self.settings.borrow().loaded.settings.inside.otel.queue;
        let mut waiting = self.waiting();
        if waiting.len() >= most {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let first = waiting.is_empty();
        waiting.push(span);
        drop(waiting);
        if first {
            self.actor.cast(SpansMsg::Waiting);
        }
    }

    /// A client of the collector that is configured.
    fn client(&self) -> Result<HttpClient, String> {
        let settings = self.settings();
        let endpoint = settings.inside.otel.endpoint.as_deref().unwrap_or_default();
        let whole = if endpoint.ends_with(PATH) {
            endpoint.to_owned()
        } else {
            format!("{}{PATH}", endpoint.trim_end_matches('/'))
        };
        let url: Uri = whole.parse().map_err(|error| format!("{whole}: {error}"))?;
        let spec = ClientSpec {
            url,
            query: None,
            headers: HeaderMap::new(),
            mask: Mask::default(),
            limits: ClientLimits::of(&settings),
            net: self.net.clone(),
        };
        HttpClient::new(spec).map_err(|error| error.to_string())
    }

    /// Sends a batch within `otel.timeout`.
    async fn send(&self, client: Result<HttpClient, String>, batch: &[Span]) -> Result<(), String> {
        let client = client?;
        let limit = self.settings().inside.otel.timeout;
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("application/x-protobuf");
        headers.insert(header::CONTENT_TYPE, kind);
        let body = Bytes::from(otlp::request(self.version, batch));
        let exchange = Exchange { tag: 0, method: Method::POST, headers, body };
        let (events, mut heard) = mpsc::channel(1);
        // What is in the answer is of no interest.
        let to = ExchangeTo { take: Arc::new(|_| None), events };
        let _guard = client.start(exchange, to);
        let answered = async {
            while let Some((_, event)) = heard.recv().await {
                match event {
                    ExchangeEvent::Head { .. } => return Ok(()),
                    ExchangeEvent::Frame(_) | ExchangeEvent::Mark { .. } => {}
                    ExchangeEvent::Ended(end) => return ended(end),
                }
            }
            Err("the exchange broke off".to_owned())
        };
        tokio::time::timeout(limit, answered)
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {limit:?} (setting otel.timeout)")))
    }
}

fn ended(end: ExchangeEnd) -> Result<(), String> {
    match end {
        ExchangeEnd::Whole | ExchangeEnd::Unreadable { .. } | ExchangeEnd::TooLarge { .. } => {
            Ok(())
        }
        ExchangeEnd::Refused { status, .. } => Err(format!("it answered {status}")),
        ExchangeEnd::Elsewhere { why } | ExchangeEnd::Failed { why, .. } => Err(why),
    }
}

/// What the actor hears.
#[derive(Debug)]
enum SpansMsg {
    /// A span is the first of a batch.
    Waiting,
    /// The timer: the batch is to be sent.
    Due,
    /// From its task: the collector took so many spans, or why not.
    Sent { outcome: Result<(), String>, count: usize },
    /// The settings are others.
    Changed,
    /// Somebody wants what waits to be sent.
    Flush { reply: RpcReplyPort<()> },
    /// Root: whether it answers.
    Ping { reply: RpcReplyPort<()> },
}

/// The actor.
#[derive(Debug)]
struct Spans;

#[derive(Debug)]
struct SpansState {
    me: ActorRef<SpansMsg>,
    shared: Arc<Shared>,
    /// Of the collector that was configured last.
    client: Option<(Option<Arc<str>>, HttpClient)>,
    timer: Timer,
    sending: bool,
    /// The last batch was not taken, which was said.
    failing: bool,
    flushes: Vec<RpcReplyPort<()>>,
    _following: TaskGuard,
}

impl Actor for Spans {
    type Msg = SpansMsg;
    type State = SpansState;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        me: ActorRef<SpansMsg>,
        shared: Arc<Shared>,
    ) -> Result<SpansState, ActorProcessingErr> {
        shared.actor.set(me.clone());
        let (mut settings, told) = (shared.settings.clone(), me.clone());
        let following = spawn_guarded(async move {
            while settings.changed().await.is_ok() && told.cast(SpansMsg::Changed).is_ok() {}
        });
        let mut state = SpansState {
            me,
            shared,
            client: None,
            timer: Timer::new(),
            sending: false,
            failing: false,
            flushes: Vec::new(),
            _following: following,
        };
        // An incarnation before this one may have left something.
        state.gather();
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<SpansMsg>,
        message: SpansMsg,
        state: &mut SpansState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SpansMsg::Waiting => state.gather(),
            SpansMsg::Due => {
                state.timer.fired();
                state.send();
            }
            SpansMsg::Sent { outcome, count } => state.sent(outcome, count),
            SpansMsg::Changed => {
                let on = state.shared.settings().inside.otel.endpoint.is_some();
                state.shared.on.store(on, Ordering::Relaxed);
            }
            SpansMsg::Ping { reply } => {
                // Who asked may have given up.
                let _ = reply.send(());
            }
            SpansMsg::Flush { reply } => {
                state.flushes.push(reply);
                state.send();
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<SpansMsg>,
        _event: SupervisionEvent,
        _state: &mut SpansState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}

impl SpansState {
    /// Something waits, perhaps: it is sent when more has had time to come.
    fn gather(&mut self) {
        if !self.sending && !self.shared.waiting().is_empty() {
            let due = clock::now().checked_add(self.shared.settings().inside.otel.interval);
            self.timer.set(&self.me, due, SpansMsg::Due);
        }
    }

    fn send(&mut self) {
        if self.sending {
            return;
        }
        let batch: Vec<Span> = {
            let mut waiting = self.shared.waiting();
            let count = waiting.len().min(self.shared.settings().inside.otel.batch);
            waiting.drain(..count).collect()
        };
        if batch.is_empty() {
            for reply in self.flushes.drain(..) {
                // Whoever asked may have given up.
                let _ = reply.send(());
            }
            return;
        }
        self.sending = true;
        let (shared, me, client) = (Arc::clone(&self.shared), self.me.clone(), self.client());
        task::spawn(async move {
            let count = batch.len();
            let outcome = shared.send(client, &batch).await;
            let _ = me.cast(SpansMsg::Sent { outcome, count });
        });
    }

    fn client(&mut self) -> Result<HttpClient, String> {
        let wanted = self.shared.settings().inside.otel.endpoint.clone();
        if let Some((endpoint, client)) = &self.client
            && *endpoint == wanted
        {
            return Ok(client.clone());
        }
        let client = self.shared.client()?;
        self.client = Some((wanted, client.clone()));
        Ok(client)
    }

    fn sent(&mut self, outcome: Result<(), String>, count: usize) {
        self.sending = false;
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        match outcome {
            Ok(()) => {
                self.failing = false;
                self.shared.sent.fetch_add(count, Ordering::Relaxed);
            }
            Err(why) => {
                self.shared.dropped.fetch_add(count, Ordering::Relaxed);
                if !std::mem::replace(&mut self.failing, true) {
                    let text = format!("traces are lost (setting otel.endpoint): {why}");
                    self.shared.events.emit(Event::new("daemon.warning", text));
                }
            }
        }
        let more = self.shared.waiting().len();
        if !self.flushes.is_empty() || more >= self.shared.settings().inside.otel.batch {
            self.send();
        } else {
            self.gather();
        }
    }
}
