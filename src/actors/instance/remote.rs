//! The exchanges of an instance over HTTP: what its session asks for goes out, what comes of it goes
//! to the instance; answers to calls go straight to their callers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ractor::ActorRef;
use tokio::sync::{Semaphore, mpsc};

use super::keeper::{Alive, OneAlive};
use super::{InstanceMsg, Sink};
use crate::actors::inside::trace::{Tap, Way};
use crate::actors::support::task::{self, TaskGuard};
use crate::protocol::session::pending::{Pending, Resolved};
use crate::protocol::session::upstream::{self, ExchangeNews};
use crate::transport::clock;
use crate::transport::http::client::{
    Exchange, ExchangeEnd, ExchangeEvent, ExchangeGuard, ExchangeTo, HttpClient,
};

/// Exchanges under way. When it falls they end, their connections with them.
#[derive(Debug)]
pub(super) struct Remote {
    pub client: HttpClient,
    pending: Arc<Pending<Sink>>,
    tap: Tap,
    events: mpsc::Sender<(u64, ExchangeEvent)>,
    guards: HashMap<u64, ExchangeGuard>,
    _relay: TaskGuard,
}

impl Remote {
    /// `queue` events wait for the instance at most (`link.read_credits`), and as many in its
    /// mailbox; beyond that the server is made to wait.
    pub(super) fn new(
        client: HttpClient,
        pending: Arc<Pending<Sink>>,
        me: ActorRef<InstanceMsg>,
        tap: Tap,
        (queue, max_frame): (usize, usize),
    ) -> Self {
        let queue = queue.max(1);
        let (events, waiting) = mpsc::channel(queue);
        let relay = task::spawn_guarded(relay(waiting, me, queue, max_frame));
        Self { client, pending, tap, events, guards: HashMap::new(), _relay: relay }
    }

    pub(super) fn start(&mut self, exchange: upstream::Exchange) {
        let tag = exchange.tag;
        let (pending, about) = (Arc::clone(&self.pending), exchange.request);
        if !exchange.body.is_empty() {
            self.tap.pass(Way::To, || exchange.body.clone());
        }
        let tap = self.tap.clone();
        let take = move |frame: Bytes| {
            tap.pass(Way::From, || frame.clone());
            match pending.resolve_of(clock::now(), about, frame) {
                Resolved::Taken => None,
                Resolved::Other(frame) => Some(frame),
            }
        };
        let to = ExchangeTo { take: Arc::new(take), events: self.events.clone() };
        let guard = self.client.start(made(exchange), to);
        self.guards.insert(tag, guard);
    }

    /// It has ended, or is of no interest any more.
    pub(super) fn end(&mut self, tag: u64) {
        self.guards.remove(&tag);
    }
}

fn made(exchange: upstream::Exchange) -> Exchange {
    let upstream::Exchange { tag, method, headers, body, .. } = exchange;
    Exchange { tag, method, headers, body }
}

async fn relay(
    mut events: mpsc::Receiver<(u64, ExchangeEvent)>,
    me: ActorRef<InstanceMsg>,
    credits: usize,
    max_frame: usize,
) {
    let credits = Arc::new(Semaphore::new(credits));
    while let Some((tag, event)) = events.recv().await {
        // Never closed.
        let Ok(credit) = Arc::clone(&credits).acquire_owned().await else { return };
        let news = told(event, max_frame);
        if me.cast(InstanceMsg::ExchangeNews { tag, news, credit }).is_err() {
            return;
        }
    }
}

fn told(event: ExchangeEvent, max_frame: usize) -> ExchangeNews {
    match event {
        ExchangeEvent::Head { status, headers, stream } => {
            ExchangeNews::Head { status, headers, stream }
        }
        ExchangeEvent::Frame(frame) => ExchangeNews::Frame(frame),
        ExchangeEvent::Mark { id, retry, bears } => ExchangeNews::Mark { id, retry, bears },
        ExchangeEvent::Ended(end) => ExchangeNews::Ended(match end {
            ExchangeEnd::Whole => upstream::ExchangeEnd::Whole,
            ExchangeEnd::Refused { status, body, .. } => {
                upstream::ExchangeEnd::Refused { status, body }
            }
            ExchangeEnd::Unreadable { what } => upstream::ExchangeEnd::Unreadable { what },
            ExchangeEnd::TooLarge { bytes } => {
                upstream::ExchangeEnd::TooLarge { bytes, limit: max_frame }
            }
            ExchangeEnd::Elsewhere { why } => upstream::ExchangeEnd::Elsewhere { why },
            ExchangeEnd::Failed { sent, why } => upstream::ExchangeEnd::Failed { sent, why },
        }),
    }
}

/// Tells a server that its session is over, within `limit`, in a task that outlives the instance;
/// whatever the server says, the instance is told afterwards.
pub(super) fn take_leave(
    client: &HttpClient,
    exchange: Option<upstream::Exchange>,
    limit: Duration,
    alive: &Alive,
    instance: ActorRef<InstanceMsg>,
) {
    let one: OneAlive = alive.one();
    let client = client.clone();
    task::spawn(async move {
        if let Some(exchange) = exchange {
            let (events, mut ends) = mpsc::channel(1);
            let to = ExchangeTo { take: Arc::new(Some), events };
            let guard = client.start(made(exchange), to);
            let end = async {
                while let Some((_, event)) = ends.recv().await {
                    if matches!(event, ExchangeEvent::Head { .. } | ExchangeEvent::Ended(_)) {
                        return;
                    }
                }
            };
            // A server that is slow to take it will find out by itself.
            let _ = tokio::time::timeout(limit, end).await;
            drop(guard);
        }
        drop(one);
        // What a dead instance is told is of no interest to anybody.
        let _ = instance.cast(InstanceMsg::SessionGone);
    });
}
