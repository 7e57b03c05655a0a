//! Metrics over TCP, where `metrics.listen` names an address.
//!
//! The actor owns the listener, which follows the settings, and nothing else: what is served is put
//! together by [`super::exposition`] when it is asked for. No children; one task. Permanent: where the
//! listener fails, the actor does, and the root starts it again. An address that cannot be had is said
//! and tried again when the settings change.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr, SupervisionEvent};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::exposition;
use crate::actors::dispatch::Context;
use crate::actors::events::Event;
use crate::actors::support::task::{TaskGuard, spawn_guarded};
use crate::protocol::http_rules::origin::{Acceptance, Refused};
use crate::settings::Settings;
use crate::settings::typed::MetricsSettings;
use crate::transport::http::listen::{ListenLimits, listen};
use crate::transport::http::serve::ServeLimits;
use crate::transport::http::{Answering, HttpBody, HttpHandler, HttpIn, HttpOut};
use crate::transport::link::LinkLimits;

/// Where metrics are served.
pub const PATH: &str = "/metrics";

/// How metrics over TCP stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Window {
    /// Nothing listens, as configured.
    #[default]
    Shut,
    /// Served here.
    Open(SocketAddr),
    /// Nothing listens, and not as configured.
    Stuck(String),
}

/// Shows how metrics over TCP stand. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct MetricsHandle(Arc<watch::Sender<Window>>);

impl MetricsHandle {
    /// Now.
    pub fn window(&self) -> Window {
        self.0.borrow().clone()
    }

    /// Starts an incarnation of the actor as a child of `parent`.
    pub(crate) async fn start(
        &self,
        parent: ActorCell,
        context: Arc<Context>,
    ) -> Result<ActorCell, SpawnErr> {
        let (actor, _) = Metrics::spawn_linked(None, Metrics, context, parent).await?;
        Ok(actor.get_cell())
    }

    fn show(&self, window: Window) {
        self.0.send_replace(window);
    }
}

/// What the actor hears.
#[derive(Debug)]
pub(crate) enum MetricsMsg {
    /// From its task: the listener is of no more use.
    ListenerFailed {
        /// Why.
        why: String,
    },
}

/// The actor.
#[derive(Debug)]
struct Metrics;

impl Actor for Metrics {
    type Msg = MetricsMsg;
    type State = TaskGuard;
    type Arguments = Arc<Context>;

    async fn pre_start(
        &self,
        me: ActorRef<MetricsMsg>,
        context: Arc<Context>,
    ) -> Result<TaskGuard, ActorProcessingErr> {
        Ok(spawn_guarded(async move {
            if let Err(why) = keep(&context).await {
                // With a dead actor there is nobody to be told.
                let _ = me.cast(MetricsMsg::ListenerFailed { why });
            }
        }))
    }

    async fn handle(
        &self,
        _me: ActorRef<MetricsMsg>,
        message: MetricsMsg,
        _state: &mut TaskGuard,
    ) -> Result<(), ActorProcessingErr> {
        let MetricsMsg::ListenerFailed { why } = message;
        Err(why.into())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<MetricsMsg>,
        _event: SupervisionEvent,
        _state: &mut TaskGuard,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}

/// Serves as configured, until the settings are gone; an error is a listener that failed.
async fn keep(context: &Arc<Context>) -> Result<(), String> {
    let mut changes = context.settings.watch();
    let handle = &context.inside.metrics;
    loop {
        let settings = Arc::clone(&changes.borrow_and_update().loaded.settings);
        let wanted = settings.inside.metrics.clone();
        // Falls when something else is wanted, and the listener with it.
        let (_open, closed) = watch::channel(false);
        let mut serving = match open(&wanted).await {
            Ok(None) => {
                handle.show(Window::Shut);
                None
            }
            Ok(Some((listener, address))) => {
                handle.show(Window::Open(address));
                let text = format!("metrics are served at http://{address}{PATH}, without a token");
                context.events.emit(Event::new("daemon.listening", text));
                let window = Served {
                    context: Arc::clone(context),
                    acceptance: Acceptance {
                        listen: address,
                        hosts: wanted.allowed_hosts.clone(),
                        origins: Vec::new(),
                    },
                };
                Some(Box::pin(listen(listener, Arc::new(window), limits(&settings), closed)))
            }
            Err(why) => {
                let text = format!("metrics are not served over TCP: {why}");
                context.events.emit(Event::new("daemon.warning", text));
                handle.show(Window::Stuck(why));
                None
            }
        };
        loop {
            tokio::select! {
                known = changes.changed() => if known.is_err() { return Ok(()) },
                ended = served(&mut serving) => {
                    return Err(match ended {
                        Ok(()) => "the listener for metrics ended".to_owned(),
                        Err(error) => format!("the listener for metrics failed: {error}"),
                    });
                }
            }
            if changes.borrow().loaded.settings.inside.metrics != wanted {
                break;
            }
        }
    }
}

/// Never, where nothing is served.
async fn served<F>(serving: &mut Option<F>) -> io::Result<()>
where
    F: Future<Output = io::Result<()>> + Unpin,
{
    match serving {
        Some(serving) => serving.await,
        None => std::future::pending().await,
    }
}

async fn open(wanted: &MetricsSettings) -> Result<Option<(TcpListener, SocketAddr)>, String> {
    let Some(listen) = wanted.listen else { return Ok(None) };
    let failed = |error: io::Error| {
        let taken = error.kind() == io::ErrorKind::AddrInUse;
        let mend = if taken { "; another program has it" } else { "" };
        format!("{listen} cannot be listened on (setting metrics.listen): {error}{mend}")
    };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Some((listener, address)))
}

fn limits(settings: &Settings) -> ListenLimits {
    let (http, daemon) = (&settings.http, &settings.daemon);
    ListenLimits {
        connections: settings.inside.metrics.max_connections,
        serve: ServeLimits {
            section: "metrics",
            head: Some(http.max_header_bytes),
            // Nothing is sent here.
            body: 0,
            bodies: 0,
            patience: http.header_timeout,
            write: Some(http.write_timeout),
            linger: http.linger,
            link: LinkLimits {
                max_frame: settings.link.max_frame,
                write_queue: settings.link.write_queue,
                write_queue_bytes: settings.link.write_queue_bytes,
            },
        },
        accept_pause: daemon.accept_pause,
        close_grace: daemon.close_grace,
    }
}

/// Answers over TCP: `GET /metrics` under a name that is ours, and nothing else.
struct Served {
    context: Arc<Context>,
    acceptance: Acceptance,
}

impl HttpHandler for Served {
    fn turn_away(&self, head: &Parts) -> Option<HttpOut> {
        if let Err(refused) = self.acceptance.check(&head.headers) {
            let status = match refused {
                Refused::HostCount => StatusCode::BAD_REQUEST,
                Refused::Host(_) | Refused::Origin(_) => StatusCode::FORBIDDEN,
            };
            let text = refused.to_string().replace("http.allowed_hosts", "metrics.allowed_hosts");
            return Some(plain(status, text));
        }
        if head.uri.path() != PATH {
            return Some(plain(StatusCode::NOT_FOUND, format!("only {PATH} is served here")));
        }
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        (!reads).then(|| plain(StatusCode::METHOD_NOT_ALLOWED, format!("{PATH} takes GET")))
    }

    fn handle(&self, _request: HttpIn) -> Answering {
        let context = Arc::clone(&self.context);
        Box::pin(async move { answer(&context).await })
    }
}

/// What is answered to who asks for metrics.
pub(crate) async fn answer(context: &Context) -> HttpOut {
    let text = exposition::text(context).await;
    typed(StatusCode::OK, exposition::CONTENT_TYPE, text)
}

fn plain(status: StatusCode, text: String) -> HttpOut {
    typed(status, "text/plain; charset=utf-8", text + "\n")
}

fn typed(status: StatusCode, kind: &'static str, text: String) -> HttpOut {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    HttpOut { status, headers, body: HttpBody::Full(Bytes::from(text).into()) }
}
