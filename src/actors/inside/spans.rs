//! Traces: a span for each request of a host and each call of an upstream, sent to a collector by OTLP
//! over HTTP where `otel.endpoint` names one.
//!
//! A span that is over is gathered with others for `otel.interval` and sent with them
//! (`inside/batch.rs`); what the collector does not take is dropped and counted: traces are no reason to
//! hold anything up. Without an endpoint nothing is done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use ractor::{ActorCell, SpawnErr};
use tokio::sync::{mpsc, watch};

use super::batch::{BatcherHandle, Limits, Sink};
use super::ending::Ending;
use crate::actors::events::EventsHandle;
use crate::actors::instance::spec::{Surroundings, expanded};
use crate::actors::settings::Current;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::trace_context::TraceContext;
use crate::protocol::otlp::{self, Span, SpanKind};
use crate::settings::Settings;
use crate::settings::typed::{OtelHeader, OtelSettings};
use crate::transport::clock;
use crate::transport::http::auth;
use crate::transport::http::client::{
    ClientLimits, ClientSpec, Exchange, ExchangeEnd, ExchangeEvent, ExchangeTo, HttpClient, Net,
};
use crate::transport::http::mask::Mask;

/// Where a collector takes traces, behind its address.
const PATH: &str = "/v1/traces";

/// Who sends spans to the collector.
#[derive(Debug)]
struct Sender {
    on: AtomicBool,
    net: Net,
    around: Arc<dyn Surroundings>,
    version: &'static str,
    /// Of the collector that was sent to last.
    client: Mutex<Option<Reached>>,
}

/// A client, and the settings that it was made of.
#[derive(Debug, Clone)]
struct Reached {
    endpoint: Option<Arc<str>>,
    headers: Arc<[OtelHeader]>,
    client: HttpClient,
}

/// How others begin and end spans. Cheap to clone; outlives the actor's incarnations.
#[derive(Debug, Clone)]
pub struct SpansHandle(BatcherHandle<Sender>);

/// A span that is not over. Where it falls, its work was given up.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    spans: SpansHandle,
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
        self.spans.0.leave(span);
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
        around: Arc<dyn Surroundings>,
        events: EventsHandle,
        version: &'static str,
    ) -> Self {
        let on = AtomicBool::new(false);
        let sender = Sender { on, net, around, version, client: Mutex::default() };
        Self(BatcherHandle::new(sender, settings, events))
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.0.answers(limit).await
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub(crate) async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        self.0.start(parent).await
    }

    /// Whether traces are sent.
    pub fn is_on(&self) -> bool {
        self.0.sink().on.load(Ordering::Relaxed)
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
        Some(OpenSpan { spans: self.clone(), span: Some(span) })
    }

    /// Spans that a collector took, and spans that were dropped.
    pub fn counts(&self) -> (u64, u64) {
        (self.0.done(), self.0.dropped())
    }

    /// Resolves when what waits was sent or dropped, or `limit` has passed.
    pub async fn flush(&self, limit: Duration) {
        if self.is_on() {
            self.0.flush(limit).await;
        }
    }
}

impl Sink for Sender {
    type Item = Span;

    fn limits(&self, settings: &Settings) -> Limits {
        let OtelSettings { queue, batch, interval, .. } = settings.inside.otel;
        Limits { queue, batch, interval }
    }

    fn changed(&self, settings: &Settings) {
        self.on.store(settings.inside.otel.endpoint.is_some(), Ordering::Relaxed);
    }

    /// Within `otel.timeout`. A client that fails is made anew: its headers may have been renewed.
    async fn deal(&self, batch: Vec<Span>, settings: Arc<Settings>) -> Result<(), String> {
        let limit = settings.inside.otel.timeout;
        let sent = tokio::time::timeout(limit, self.send(&batch, &settings)).await;
        let sent = sent
            .unwrap_or_else(|_| Err(format!("no answer within {limit:?} (setting otel.timeout)")));
        if sent.is_err() {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        sent
    }

    fn complaint(why: &str) -> String {
        format!("traces are lost (setting otel.endpoint): {why}")
    }
}

impl Sender {
    async fn send(&self, batch: &[Span], settings: &Settings) -> Result<(), String> {
        let client = self.client(settings).await?;
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("application/x-protobuf");
        headers.insert(header::CONTENT_TYPE, kind);
        let body = Bytes::from(otlp::request(self.version, batch));
        let exchange = Exchange { tag: 0, method: Method::POST, headers, body };
        let (events, mut heard) = mpsc::channel(1);
        // What is in the answer is of no interest.
        let to = ExchangeTo { take: Arc::new(|_| None), events };
        let _guard = client.start(exchange, to);
        while let Some((_, event)) = heard.recv().await {
            match event {
                ExchangeEvent::Head { .. } => return Ok(()),
                ExchangeEvent::Frame(_) | ExchangeEvent::Mark { .. } => {}
                ExchangeEvent::Ended(end) => return ended(end),
            }
        }
        Err("the exchange broke off".to_owned())
    }

    /// A client of the collector that is configured.
    async fn client(&self, settings: &Settings) -> Result<HttpClient, String> {
        let OtelSettings { endpoint, headers, .. } = &settings.inside.otel;
        let known = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known
            && (&known.endpoint, &known.headers) == (endpoint, headers)
        {
            return Ok(known.client);
        }
        let client = HttpClient::new(self.spec(settings).await?);
        let client = client.map_err(|error| error.to_string())?;
        let (endpoint, headers) = (endpoint.clone(), Arc::clone(headers));
        let reached = Reached { endpoint, headers, client: client.clone() };
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(reached);
        Ok(client)
    }

    async fn spec(&self, settings: &Settings) -> Result<ClientSpec, String> {
        let otel = &settings.inside.otel;
        let endpoint = otel.endpoint.as_deref().unwrap_or_default();
        let whole = if endpoint.ends_with(PATH) {
            endpoint.to_owned()
        } else {
            format!("{}{PATH}", endpoint.trim_end_matches('/'))
        };
        let url: Uri = whole.parse().map_err(|error| format!("{whole}: {error}"))?;
        let mut headers = HeaderMap::new();
        for OtelHeader { name, value } in otel.headers.iter() {
            let value = expanded(&*self.around, "otel.headers", value.written()).await;
            let value = value.map_err(|error| error.text)?;
            let known: HeaderName = name.parse().map_err(|_| format!("no header {name:?}"))?;
            auth::header(&mut headers, known, &value)
                .map_err(|error| format!("otel.headers, {name}: {error}"))?;
        }
        Ok(ClientSpec {
            mask: Mask::new("", &headers, &url),
            url,
            query: None,
            headers,
            limits: ClientLimits::of(settings),
            net: self.net.clone(),
        })
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
