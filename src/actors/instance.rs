//! One upstream instance: its process and link, or its exchanges over HTTP; its session.
//!
//! Children: none; tasks: the start, the reader and the keeper of its process (which outlives it).
//! Ends with its link, by its pool's word, or by a crash of its own; its calls in flight are then
//! told at once. Temporary: whether there is another is the pool's decision. Never waits in
//! `handle`, never decides what a frame means.

pub mod client;
pub mod connect;
mod http;
pub mod keeper;
mod noise;
mod questions;
mod reader;
mod remote;
mod sink;
pub mod spec;
mod state;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::OwnedSemaphorePermit;

use self::connect::{Connect, Reached};
use self::keeper::Alive;
pub use self::sink::{CallNews, NewsQueue, Sink, Told};
use self::spec::{NotStarted, Surroundings};
use self::state::InstanceState;
use super::broker::BrokerHandle;
use super::catalog::CatalogHandle;
use super::era_cache::EraCacheHandle;
use super::events::EventsHandle;
use super::inside::meter::Meters;
use super::inside::trace::Traces;
use super::pool::PoolMsg;
use super::pool::directory::{Lease, RouteKey, Routes};
use super::subs::Subs;
use crate::protocol::era_record::EraRecord;
use crate::protocol::jsonrpc::{Notification, RawJson};
use crate::protocol::model::questions::Reply;
use crate::protocol::session::upstream::{Call, ExchangeNews, ListKind};
use crate::settings::{ServerDef, Settings};
use crate::transport::clock;
use crate::transport::http::client::{HttpClient, Net};
use crate::transport::http::legacy_sse::LegacySse;
use crate::transport::link::Link;
use crate::transport::stdio::child::ExitReport;

/// Which instance; numbers are given once in a daemon's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub u64);

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What every instance of the daemon shares.
#[derive(Debug, Clone)]
pub struct Shop {
    /// Makes connections.
    pub connect: Arc<dyn Connect>,
    /// Where variables, commands and folders are looked up.
    pub around: Arc<dyn Surroundings>,
    /// Our identity towards upstreams, newest shape.
    pub info: RawJson,
    /// Lifecycle events.
    pub events: EventsHandle,
    /// Remembered eras.
    pub eras: EraCacheHandle,
    /// Where lists go.
    pub catalog: CatalogHandle,
    /// Who listens to what.
    pub subs: Subs,
    /// Where questions go that belong to no call; set once, for the broker heeds settings, whose
    /// keeper knows the upstreams. While there is none, nobody can be asked.
    pub broker: Arc<OnceLock<BrokerHandle>>,
    /// Processes that are not surely gone, and HTTP sessions that are being ended.
    pub alive: Alive,
    /// Roots of trust and proxies.
    pub net: Net,
    /// What is counted of each server.
    pub meters: Meters,
    /// Frames that somebody looks at.
    pub traces: Traces,
}

/// What an instance is made from.
#[derive(Debug)]
pub struct InstanceArgs {
    /// Its number.
    pub id: InstanceId,
    /// Its server.
    pub def: Arc<ServerDef>,
    /// Whom it serves.
    pub key: RouteKey,
    /// The project folder of the caller for whom it was started.
    pub project: Option<Arc<Path>>,
    /// What to open it with, where it is not the era cache that knows (F25 f).
    pub remembered: Option<EraRecord>,
    /// The lists to read once it is open.
    pub read_lists: Vec<ListKind>,
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// Where it admits calls.
    pub routes: Arc<Routes>,
    /// What it shares with all others.
    pub shop: Shop,
    /// To whom it reports.
    pub pool: ActorRef<PoolMsg>,
}

/// How an instance is reached, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// `stdio`, `http` or `http+sse`.
    pub transport: &'static str,
    /// The address of a remote server, without what may be secret.
    pub url: Option<String>,
}

/// How an instance ended.
#[derive(Debug, Clone)]
pub struct End {
    /// What the pool makes of it.
    pub kind: EndKind,
    /// One sentence without a full stop.
    pub text: String,
    /// The last lines of its stderr.
    pub stderr: Vec<String>,
}

/// What the pool makes of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// It was told to.
    Wanted,
    /// It never became usable.
    StartFailed {
        /// What trying again is worth, and for whom.
        fault: Fault,
    },
    /// It must be started again at once, without the probe (F25 f).
    RestartLegacy,
    /// It was usable and is no more.
    Died {
        /// It exited by itself with status 0 while nothing was asked of it.
        cleanly: bool,
    },
}

/// What a failed start says of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It may succeed.
    Passing,
    /// It is pointless without a change for callers of the same scope key: their folder is not there.
    Keys,
    /// It is pointless without a change for everybody: there is no such program.
    Everybodys,
}

/// What is said to a question. It may be secret, and is not shown.
pub struct Said(pub Reply);

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_ok() { "Said(a result)" } else { "Said(an error)" })
    }
}

/// What an instance hears.
#[derive(Debug)]
pub enum InstanceMsg {
    /// A caller with a permit makes a call.
    Call {
        /// The call.
        call: Call<Sink>,
    },
    /// A caller gave up.
    Cancel {
        /// The call's request id.
        id: u64,
    },
    /// A question of the upstream is answered.
    Reply {
        /// Which.
        number: u64,
        /// With what.
        said: Said,
    },
    /// The start task is through.
    Started {
        /// The connection, or why there is none.
        outcome: Result<Box<Reached>, NotStarted>,
    },
    /// The reader has a frame that answers no call.
    FrameRead {
        /// It.
        frame: Bytes,
        /// The reader's credit; given back when the frame has been handled.
        credit: OwnedSemaphorePermit,
    },
    /// Something came of an exchange over HTTP.
    ExchangeNews {
        /// Which.
        tag: u64,
        /// What.
        news: ExchangeNews,
        /// The relay's credit; given back when it has been handled.
        credit: OwnedSemaphorePermit,
    },
    /// The event stream of HTTP+SSE is open, or will not be.
    SseOpened {
        /// What reached it.
        client: HttpClient,
        /// Its link and what tells its end, or why there is none.
        outcome: Result<Box<(Link, LegacySse)>, String>,
    },
    /// The event stream of HTTP+SSE is at its end.
    SseEnded {
        /// Why.
        why: String,
    },
    /// The farewell to an HTTP session is over.
    SessionGone,
    /// The reader threw a frame away.
    FrameTooLarge {
        /// Its first bytes.
        head: Bytes,
        /// Its size.
        bytes: usize,
        /// The reader's credit.
        credit: OwnedSemaphorePermit,
    },
    /// The reader is at the end.
    LinkClosed {
        /// Why.
        why: String,
    },
    /// The writer has ended.
    WriterEnded {
        /// Why.
        why: String,
    },
    /// From the keeper: the leader exited; its pipe may live on.
    LeaderExited {
        /// How.
        report: ExitReport,
    },
    /// From the keeper: no process is left.
    ProcessGone {
        /// How it ended.
        report: ExitReport,
    },
    /// The session's deadline passed.
    DeadlineDue,
    /// A host's notification for the server.
    Note {
        /// It.
        note: Notification,
        /// A permit, as for a call, until it is handed on.
        lease: Lease,
    },
    /// Somebody misses an item in a list that is not whole: read it again, unless that has just been
    /// done. Answered when the catalog has been told.
    ReadList {
        /// Which list.
        kind: ListKind,
        /// Where the answer goes.
        reply: RpcReplyPort<()>,
    },
    /// From the subscriptions: other resources are wanted.
    Watch,
    /// A new process has been silent for `process.spawn_timeout`.
    SilenceDue,
    /// From the pool: admit no more calls, and end when those in flight are through or `limit` is.
    Stop {
        /// One phrase for texts.
        why: &'static str,
        /// How long calls in flight may go on.
        limit: Duration,
    },
    /// From the pool: stop, if nobody has come meanwhile.
    StopIfIdle,
    /// The last caller of an instance that is leaving has gone.
    Drained,
    /// The limit of a `Stop` passed.
    DrainDue,
}

/// The actor.
#[derive(Debug)]
pub struct Instance;

impl Actor for Instance {
    type Msg = InstanceMsg;
    type State = InstanceState;
    type Arguments = InstanceArgs;

    async fn pre_start(
        &self,
        me: ActorRef<InstanceMsg>,
        args: InstanceArgs,
    ) -> Result<InstanceState, ActorProcessingErr> {
        Ok(InstanceState::start(me, args))
    }

    async fn handle(
        &self,
        _me: ActorRef<InstanceMsg>,
        message: InstanceMsg,
        state: &mut InstanceState,
    ) -> Result<(), ActorProcessingErr> {
        let now = clock::now();
        match message {
            InstanceMsg::Call { call } => state.call(now, call),
            InstanceMsg::Cancel { id } => state.with_session(|session| {
                session.cancel(now, id, "the caller gave up");
            }),
            InstanceMsg::Reply { number, said: Said(reply) } => state.reply(now, number, reply),
            InstanceMsg::Note { note, lease } => {
                state.with_session(|session| session.notify(note));
                drop(lease);
            }
            InstanceMsg::Started { outcome } => state.started(now, outcome),
            InstanceMsg::ReadList { kind, reply } => state.read_again(now, kind, reply),
            InstanceMsg::Watch => {
                state.watch(now);
                state.with_session(|_| ());
            }
            InstanceMsg::SilenceDue => state.silence_due(),
            InstanceMsg::FrameRead { frame, credit } => {
                state.heard = true;
                state.with_session(|session| session.handle_frame(now, &frame));
                drop(credit);
            }
            InstanceMsg::FrameTooLarge { head, bytes, credit } => {
                let limit = state.args.settings.link.max_frame;
                state.with_session(|session| session.handle_too_large(now, &head, bytes, limit));
                drop(credit);
            }
            InstanceMsg::ExchangeNews { tag, news, credit } => {
                state.exchange_news(now, tag, news);
                drop(credit);
            }
            InstanceMsg::SseOpened { client, outcome } => state.sse_opened(now, client, outcome),
            InstanceMsg::SseEnded { why } => state.sse_ended(why),
            InstanceMsg::SessionGone => state.gone(None),
            InstanceMsg::LinkClosed { why } => state.link_closed(why),
            InstanceMsg::WriterEnded { why } => state.writer_ended(&why),
            InstanceMsg::LeaderExited { report } => state.leader_exited(now, report),
            InstanceMsg::ProcessGone { report } => state.gone(Some(&report)),
            InstanceMsg::DeadlineDue => state.deadline_due(now),
            InstanceMsg::Stop { why, limit } => state.stop(now, EndKind::Wanted, why, limit),
            InstanceMsg::StopIfIdle => state.stop_if_idle(now),
            InstanceMsg::Drained | InstanceMsg::DrainDue => state.drained(),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<InstanceMsg>,
        _event: SupervisionEvent,
        _state: &mut InstanceState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children.
        Ok(())
    }
}
