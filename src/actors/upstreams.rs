//! Supervisor of the pools: one for each configured server.
//!
//! Children: a [`super::pool`] for each server. A pool that crashes is started again; its instances
//! have ended with it. Applies configuration differences: only servers that changed are replaced.
//! Never on the path of a call: callers go through [`UpstreamsHandle::call`], which finds a route
//! in the directory and asks a pool only where there is none.

mod answers;
mod lists;
mod source;
mod subscribe;
mod supervisor;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ractor::{Actor, ActorCell, RpcReplyPort, SpawnErr};
use tokio::sync::{oneshot, watch};

pub use self::answers::Answers;
use self::lists::{list_again, list_all, list_one};
pub use self::source::{Source, Via, Who};
use self::supervisor::{Upstreams, UpstreamsMsg};
use super::broker::BrokerHandle;
use super::inside::meter::Meters;
use super::inside::trace::Traces;
use super::instance::Shop;
use super::instance::spec::Surroundings;
use super::pool::directory::{Directory, ScopeKey, Server};
use super::pool::ongoing::{Called, Ongoing};
use super::pool::rounds::Rounds;
pub use super::pool::status::{InstanceStatus, PoolStatus, ProtocolStatus};
use super::pool::upstream_task::UpstreamTask;
use super::pool::{InstanceLog, PoolMsg, caller};
use super::subs::{ListenerId, Said, Subs};
use super::support::ask::AskError;
use super::support::progress::ProgressSender;
use super::support::slot::Slot;
use super::support::task;
use crate::protocol::jsonrpc::{Method, Notification, RawJson, RpcError};
use crate::protocol::revision::Era;
use crate::protocol::session::upstream::{ListKind, TaskWant};
use crate::protocol::session::{Answer, Limit};
use crate::settings::Settings;
use crate::transport::http::client::Net;

/// A host connection, for scope keys, labels and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u64);

/// On whose behalf something is called; decides the scope key.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The host session; `None` for the command line, `/v1` and mcpx itself.
    pub host: Option<HostId>,
    /// The project folder; the key of project scope and the base of a relative `cwd`.
    pub project: Option<Arc<Path>>,
    /// What the host calls itself, for logs (H-16, O-03).
    pub label: Arc<str>,
    /// How this caller reached mcpx; decides the lane of a server that follows (U-19). Modern for
    /// everything that is no host's request: the command line, `/v1`, mcpx itself (P-18).
    pub era: Era,
    /// Whom this request's upstream may ask.
    pub answers: Answers,
    /// How it came; decides nothing.
    pub source: Source,
}

/// One call on an upstream, in newest shape.
#[derive(Debug, Clone)]
pub struct CallWant {
    /// The server, by its configuration key.
    pub server: Arc<str>,
    /// On whose behalf.
    pub caller: Caller,
    /// What is asked.
    pub method: Method,
    /// Newest-shape parameters without envelope and progress token.
    pub params: RawJson,
    /// Where progress goes, where it is wanted.
    pub progress: Option<ProgressSender>,
    /// Marked read-only or idempotent: may be sent once more although it was written (F23, U-56).
    pub repeatable: bool,
    /// That it may be answered by a task (U-57).
    pub task: Option<TaskWant>,
}

/// Why a call was never made; nothing reached an upstream.
#[derive(Debug, Clone)]
pub struct Refused {
    /// Its kind, as product.md 7 names it.
    pub reason: Reason,
    /// What happened, the last stderr lines where they help, and what to run.
    pub text: String,
    /// The limit that refused, where one did.
    pub limit: Option<Limit>,
}

impl Refused {
    /// Nothing runs that could be asked.
    pub(super) fn unavailable(text: impl Into<String>) -> Self {
        Self { reason: Reason::Unavailable, text: text.into(), limit: None }
    }

    /// The daemon goes, and the call was not sent.
    pub(super) fn stopping() -> Self {
        Self::unavailable(
            "the mcpx daemon is stopping, so the call was not sent; nothing has happened, it is \
             safe to try again once the daemon runs again (`mcpx daemon` starts it)",
        )
    }
}

/// `_meta["dev.mcpx/reason"]` and `data.reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A queue or in-flight limit.
    Busy,
    /// A time limit.
    Timeout,
    /// Parked, stopped, failing to start, not configured.
    Unavailable,
    /// It may have reached the upstream and no answer came.
    OutcomeUnknown,
    /// Somebody had to agree, and nobody did.
    NotConfirmed,
}

impl Reason {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::NotConfirmed => "not_confirmed",
        }
    }
}

/// What the supervisor, its pools and their callers share. Outlives each of them.
#[derive(Debug)]
pub struct Shared {
    directory: Directory,
    settings: watch::Sender<Arc<Settings>>,
    shop: Shop,
    numbers: AtomicU64,
    /// The daemon stops: no call is admitted any more.
    stopping: AtomicBool,
    supervisor: Slot<UpstreamsMsg>,
}

impl Shared {
    /// The settings in force.
    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// What all instances share.
    pub(super) const fn shop(&self) -> &Shop {
        &self.shop
    }

    /// A number that no instance and no call of this daemon has had.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// The server of this configuration key.
    pub(super) fn server(&self, key: &str) -> Result<Arc<Server>, Refused> {
        if self.is_stopping() {
            return Err(Refused::stopping());
        }
        self.directory.get(key).ok_or_else(|| {
            Refused::unavailable(format!(
                "no server `{key}` is configured; `mcpx ps` lists the servers",
            ))
        })
    }

    /// Whether the daemon stops.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

/// How others reach the upstreams. Cheap to clone; outlives the supervisor's incarnations.
#[derive(Debug, Clone)]
pub struct UpstreamsHandle {
    shared: Arc<Shared>,
}

impl UpstreamsHandle {
    /// The upstreams of `settings`; nothing runs before [`Self::start`].
    pub fn new(settings: Arc<Settings>, shop: Shop) -> Self {
        let shared = Shared {
            directory: Directory::default(),
            settings: watch::Sender::new(settings),
            shop,
            numbers: AtomicU64::new(1),
            stopping: AtomicBool::new(false),
            supervisor: Slot::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Whether the actor answers within `limit`.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        self.shared.supervisor.ask(limit, |reply| UpstreamsMsg::Ping { reply }).await.is_ok()
    }

    /// Starts an incarnation of the supervisor as a child of `parent`.
    pub async fn start(&self, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
        let args = Arc::clone(&self.shared);
        let (actor, _) = Upstreams::spawn_linked(None, Upstreams, args, parent).await?;
        self.show_servers().await.map_err(|error| SpawnErr::StartupFailed(error.into()))?;
        Ok(actor.get_cell())
    }

    /// Makes one call and waits for its one outcome, or until its upstream wants something first.
    /// Dropping the future, or what is not over, cancels the call: the permit is freed and the
    /// upstream told (F36).
    ///
    /// A call whose connection ended before any byte of it was written is sent again on another
    /// instance, at most `call.resend_limit` times; one that was written is not, unless `repeatable`
    /// (then once, U-56).
    pub async fn call(&self, want: CallWant) -> Result<Called, Refused> {
        let mut want = want;
        self.call_with(&mut want).await
    }

    /// The same for a call that may have to be made again: `want` is kept for that.
    pub(crate) async fn call_with(&self, want: &mut CallWant) -> Result<Called, Refused> {
        caller::call(&self.shared, want).await
    }

    /// What goes on when `want` was answered with this `input_required` result; an error says what is
    /// wrong with that.
    pub(crate) fn rounds(&self, want: CallWant, result: &RawJson) -> Result<Ongoing, String> {
        Ok(Ongoing::Rounds(Box::new(Rounds::new(&self.shared, want, result)?)))
    }

    /// The same of a call that was refused with `error` until these questions are agreed to.
    pub(crate) fn rounds_unless(
        &self,
        want: CallWant,
        asking: &RawJson,
        error: RpcError,
    ) -> Result<Ongoing, String> {
        let rounds = Rounds::new(&self.shared, want, asking)?.unless_agreed(error);
        Ok(Ongoing::Rounds(Box::new(rounds)))
    }

    /// The same for a caller who can be asked nothing.
    pub async fn call_unattended(&self, want: CallWant) -> Result<Answer, Refused> {
        match self.call(want).await? {
            Called::Done(answer) => Ok(answer),
            open @ Called::Open(_) => Box::pin(open.unattended()).await,
        }
    }

    /// Passes a notification of a host on to a server, where that runs for it and is not too busy.
    pub fn note(&self, caller: &Caller, server: &str, note: Notification) {
        caller::note(&self.shared, caller, server, note);
    }

    /// Where questions go from now on that belong to no call.
    pub fn use_broker(&self, broker: BrokerHandle) {
        // There is one in a daemon's life.
        let _ = self.shared.shop.broker.set(broker);
    }

    /// The settings in force.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.shared.settings()
    }

    /// Whether this server is reached by an address, and so outlives the daemon.
    pub(crate) fn is_remote(&self, server: &str) -> bool {
        self.shared.directory.get(server).is_some_and(|server| server.def.is_remote())
    }

    /// Goes on with a task that `server` made for `caller` in an earlier life of mcpx; where it does not
    /// know it any more, the first that is heard of it is that. Starts the server if it is not running.
    pub async fn resume_task(
        &self,
        caller: Caller,
        server: &Arc<str>,
        id: String,
    ) -> Result<Ongoing, Refused> {
        let task = UpstreamTask::resume(&self.shared, caller, server, id).await?;
        Ok(Ongoing::Task(Box::new(task)))
    }

    /// What is counted of each server.
    pub fn meters(&self) -> &Meters {
        &self.shared.shop.meters
    }

    /// Where variables, commands and folders are looked up.
    pub(crate) fn around(&self) -> &dyn Surroundings {
        &*self.shared.shop.around
    }

    /// Roots of trust and proxies.
    pub(crate) fn net(&self) -> &Net {
        &self.shared.shop.net
    }

    /// Frames to and from each server.
    pub fn traces(&self) -> &Traces {
        &self.shared.shop.traces
    }

    /// Who listens to what.
    pub fn subs(&self) -> &Subs {
        &self.shared.shop.subs
    }

    /// Subscribes a host or stream of the caller's to a resource of a server, which it knows as
    /// `shown`, and waits until the server, started where that is needed, has agreed or refused.
    /// Dropping the future takes it back.
    pub async fn subscribe(
        &self,
        listener: Option<ListenerId>,
        caller: &Caller,
        server: &str,
        uri: &str,
        shown: &str,
    ) -> Result<Said, Refused> {
        subscribe::subscribe(&self.shared, listener, caller, server, uri, shown).await
    }

    /// Puts other settings in force. Only servers whose definition differs are replaced: calls in
    /// flight on the old generation go on for at most `host.drain`, new ones go to the new one.
    pub async fn apply(&self, settings: Arc<Settings>) -> Result<(), AskError> {
        let limit = settings.daemon.ask;
        self.shared.settings.send_replace(settings);
        self.shared.supervisor.ask(limit, |reply| UpstreamsMsg::Apply { reply }).await?;
        self.show_servers().await
    }

    /// Brings the catalog in line with the settings. After the pools, so that what is shown can be
    /// called.
    async fn show_servers(&self) -> Result<(), AskError> {
        let settings = self.shared.settings();
        let servers = settings.servers.clone();
        self.shared.shop.catalog.configure(servers, settings.daemon.ask).await
    }

    /// Every server, by key. One whose pool does not answer is left out.
    pub async fn status(&self) -> Vec<PoolStatus> {
        let limit = self.ask_limit();
        let mut all = Vec::new();
        for server in self.shared.directory.all() {
            all.extend(server.pool.status(limit).await);
        }
        all
    }

    /// One of them, by key.
    pub async fn status_of(&self, key: &str) -> Option<PoolStatus> {
        let server = self.shared.directory.get(key)?;
        server.pool.status(self.ask_limit()).await.ok()
    }

    /// How every server is spoken to (D-05).
    pub async fn protocol(&self) -> Vec<ProtocolStatus> {
        let limit = self.ask_limit();
        let mut all = Vec::new();
        for server in self.shared.directory.all() {
            all.extend(server.pool.protocol(limit).await);
        }
        all
    }

    /// The stderr of a server's instances, that of the one that ended last included.
    pub async fn logs(&self, key: &str) -> Result<Vec<InstanceLog>, Refused> {
        let server = self.shared.server(key)?;
        server.pool.logs(self.ask_limit()).await.map_err(|error| gone(key, error))
    }

    /// Ends what runs of a server and starts it again; leaves any rest (P-14).
    pub async fn restart_server(&self, key: &str) -> Result<(), Refused> {
        self.operate(key, self.ask_limit(), |reply| PoolMsg::Restart { reply }).await
    }

    /// Ends what runs of a server and lets it rest until it is started. Resolves when nothing runs.
    pub async fn stop_server(&self, key: &str) -> Result<(), Refused> {
        let limit = self.shared.settings().daemon.stop;
        self.operate(key, limit, |reply| PoolMsg::Stop { reply }).await
    }

    /// Lets a server leave its rest.
    pub async fn start_server(&self, key: &str) -> Result<(), Refused> {
        self.operate(key, self.ask_limit(), |reply| PoolMsg::Start { reply }).await
    }

    /// Starts these servers for `caller` and waits until each has been listed or has failed, or
    /// `expose.list_wait` has passed; what is under way then goes on (F48).
    pub async fn list_all(&self, caller: &Caller, kind: ListKind, never: Vec<Arc<str>>) {
        let settings = self.shared.settings();
        if never.is_empty() {
            return;
        }
        let (done, listed) = oneshot::channel();
        let listing = list_all(Arc::clone(&self.shared), caller.clone(), kind, never);
        // A task of its own: it goes on when the caller has waited long enough.
        task::spawn(async move {
            listing.await;
            // The caller may have gone on.
            let _ = done.send(());
        });
        let _ = tokio::time::timeout(settings.expose.list_wait, listed).await;
    }

    /// Starts a server whose list was never read, for `caller`, and waits until it has been.
    pub async fn list_now(
        &self,
        caller: &Caller,
        key: &str,
        kind: ListKind,
    ) -> Result<(), Refused> {
        list_one(&self.shared, caller, key, kind).await
    }

    /// The same, but waits for at most `expose.list_wait`; whether it is listed. What is under way goes
    /// on.
    pub async fn list_soon(
        &self,
        caller: &Caller,
        key: &str,
        kind: ListKind,
    ) -> Result<bool, Refused> {
        let limit = self.shared.settings().expose.list_wait;
        let (shared, caller, key) = (Arc::clone(&self.shared), caller.clone(), key.to_owned());
        let server = shared.server(&key)?;
        let scope = ScopeKey::of(server.def.scope, &caller, || 0);
        let listing = async move { list_one(&shared, &caller, &key, kind).await };
        let listed = if matches!(scope, ScopeKey::Call(_)) {
            // What it starts would end with it: a task of its own goes on.
            let (done, listed) = oneshot::channel();
            task::spawn(async move {
                // The caller may have gone on.
                let _ = done.send(listing.await);
            });
            tokio::time::timeout(limit, listed).await.ok().and_then(Result::ok)
        } else {
            tokio::time::timeout(limit, listing).await.ok()
        };
        listed.map_or(Ok(false), |listed| listed.map(|()| true))
    }

    /// Something is missing in a list that is not whole: has it read again, unless that has just been
    /// done (`upstream.relist_interval`), and waits for it.
    pub async fn list_again(
        &self,
        caller: &Caller,
        key: &str,
        kind: ListKind,
    ) -> Result<(), Refused> {
        list_again(&self.shared, caller, key, kind).await
    }

    /// A host session ended: what it alone used is stopped.
    pub fn session_ended(&self, host: HostId) {
        self.shared.shop.subs.host_left(host);
        for server in self.shared.directory.all() {
            server.pool.session_ended(host);
        }
    }

    /// No call is admitted any more.
    pub fn close(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
    }

    /// Ends all instances, in parallel, and waits until no process is left or `limit` has passed;
    /// how many are left. No call is admitted any more.
    pub async fn stop_all(&self, limit: Duration) -> usize {
        self.close();
        self.shared.supervisor.cast(UpstreamsMsg::StopAll);
        let alive = self.shared.shop.alive.clone();
        let gone = async {
            // Asked behind `StopAll`, so that nothing is started any more once it is answered.
            let asked = self.shared.supervisor.ask(limit, |reply| UpstreamsMsg::GetIdle { reply });
            let _ = asked.await;
            alive.none().await;
        };
        let _ = tokio::time::timeout(limit, gone).await;
        alive.count()
    }

    async fn operate(
        &self,
        key: &str,
        limit: Duration,
        word: impl FnOnce(RpcReplyPort<()>) -> PoolMsg,
    ) -> Result<(), Refused> {
        let server = self.shared.server(key)?;
        server.pool.operate(limit, word).await.map_err(|error| gone(key, error))
    }

    fn ask_limit(&self) -> Duration {
        self.shared.settings().daemon.ask
    }
}

fn gone(key: &str, error: AskError) -> Refused {
    Refused::unavailable(format!("server `{key}`: {error}; try again"))
}
