//! One call, from finding a route to its outcome. Runs in the caller's task; no actor waits here.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::oneshot;

use super::directory::{Lane, Lease, Route, RouteKey, ScopeKey, Server};
use super::ongoing::{AskedCall, Called, Ongoing};
use super::upstream_task::UpstreamTask;
use super::{PoolHandle, RouteAnswer};
use crate::actors::broker::BrokerHandle;
use crate::actors::instance::{InstanceMsg, Sink, Told};
use crate::actors::support::ask::ask;
use crate::actors::support::progress::ProgressSender;
use crate::actors::upstreams::{CallWant, Caller, Reason, Refused, Shared};
use crate::protocol::jsonrpc::{Notification, RawJson, RpcError};
use crate::protocol::model::extensions;
use crate::protocol::model::questions::with_elicitation;
use crate::protocol::model::tasks::{self, Support};
use crate::protocol::revision::Era;
use crate::protocol::session::pending::CallLimits;
use crate::protocol::session::upstream::{Call, ListKind, TaskWant};
use crate::protocol::session::{Answer, Limit};
use crate::settings::Settings;
use crate::settings::typed::PoolSettings;

/// See [`crate::actors::upstreams::UpstreamsHandle::call`].
pub async fn call(shared: &Arc<Shared>, want: &mut CallWant) -> Result<Called, Refused> {
    let settings = shared.settings();
    let mut unwritten = 0;
    let mut repeated = false;
    // One number for all tries of this call, so that call scope means one call.
    let mut number = None;
    loop {
        let server = shared.server(&want.server)?;
        let key = key_of(&server, &want.caller, &settings, || {
            *number.get_or_insert_with(|| shared.next_number())
        });
        let mut scope = CallScope::of(&server, &key);
        let leased = match server.routes.find(&key).and_then(Leased::now) {
            Some(leased) => Some(leased),
            // Boxed: waiting is rare, and a call's task need not have room for it.
            None => Box::pin(find_route(&server, &key, want, &settings.pool)).await?,
        };
        let answer = match leased {
            Some(leased) => {
                let limits = CallLimits { idle: settings.call.idle, total: settings.call.total };
                match send(leased, &mut scope, &server, want, limits, shared).await {
                    Called::Done(answer) => answer,
                    // A server that has asked has begun: it is not called again for this.
                    open @ Called::Open(_) => return Ok(open),
                }
            }
            // The server was replaced meanwhile: the directory knows the new generation.
            None => Answer::Lost { written: false, why: "it was replaced".to_owned() },
        };

        match answer {
            Answer::Lost { written: false, .. } if shared.is_stopping() => {
                return Err(Refused::stopping());
            }
            Answer::Lost { written: false, .. } if unwritten < settings.call.resend_limit => {
                unwritten += 1;
            }
            Answer::Lost { written: true, .. } if want.repeatable && !repeated => repeated = true,
            // It can serve the call only as a task, and has done nothing yet (SEP-2663).
            Answer::Error(error) if is_for_tasks(want, &error) => {
                let required = |task| TaskWant { support: Support::Required, ..task };
                want.task = want.task.map(required);
            }
            other => return Ok(Called::Done(other)),
        }
    }
}

/// Which instances may serve a call of `caller`.
fn key_of(
    server: &Server,
    caller: &Caller,
    settings: &Settings,
    number: impl FnOnce() -> u64,
) -> RouteKey {
    let scope = ScopeKey::of(server.def.scope, caller, number);
    let lane = if server.def.follows(settings.upstream.protocol) {
        server.routes.lane(caller.era)
    } else {
        Lane::Shared
    };
    RouteKey { scope, lane }
}

/// Whether a call was refused that has not been asked for as a task, and may be.
fn is_for_tasks(want: &CallWant, error: &RpcError) -> bool {
    let unasked = |task: TaskWant| !task.eager && task.support != Support::Required;
    want.task.is_some_and(unasked) && tasks::is_needed(error)
}

/// A request id and the permit to use it.
#[derive(Debug)]
pub(super) struct Leased {
    id: u64,
    lease: Lease,
    route: Arc<Route>,
}

impl Leased {
    fn now(route: Arc<Route>) -> Option<Self> {
        Some(Self::with(route.try_lease()?, route))
    }

    fn with(lease: Lease, route: Arc<Route>) -> Self {
        Self { id: route.pending.take_id(), lease, route }
    }

    /// For one more request of what runs at `place`.
    pub(super) fn again(place: &Place) -> Self {
        Self::with(place.route.join(), Arc::clone(&place.route))
    }
}

/// Where the task of a call lives: its instance, kept as long.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) server: Arc<Server>,
    pub(super) route: Arc<Route>,
    _kept: Lease,
}

impl Place {
    fn new(server: &Arc<Server>, route: Arc<Route>) -> Self {
        Self { server: Arc::clone(server), _kept: route.join(), route }
    }

    /// The same once more.
    pub(super) fn again(&self) -> Self {
        Self::new(&self.server, Arc::clone(&self.route))
    }

    /// Whether any connection to its server is as good as its own: where nothing is remembered of one.
    pub(super) fn is_anywhere(&self) -> bool {
        self.server.def.is_remote() && self.route.era == Era::Modern
    }

    /// Finds one for a task of an earlier life of mcpx.
    pub(super) async fn find(
        shared: &Arc<Shared>,
        caller: &Caller,
        server: &Arc<str>,
    ) -> Result<(Self, Option<CallScope>), Refused> {
        let server = shared.server(server)?;
        let key = key_of(&server, caller, &shared.settings(), || shared.next_number());
        let awake = wake_for(shared, &server, caller, key).await?;
        let route = server.routes.find(&awake.key).ok_or_else(|| {
            Refused::unavailable(format!("server `{}` ended again at once", server.def.key))
        })?;
        Ok((Self::new(&server, route), awake.scope))
    }
}

/// What a caller was waiting for when its time was up.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Start,
    Permit,
    /// A permit of an instance that has one call at a time.
    Turn,
}

/// Waits for a route and a permit within `pool.queue` and `pool.queue_timeout`. `None` where the
/// server has been replaced.
async fn find_route(
    server: &Server,
    key: &RouteKey,
    want: &CallWant,
    pool: &PoolSettings,
) -> Result<Option<Leased>, Refused> {
    let name = &server.def.key;
    let Some(_place) = server.routes.queue(key.lane, pool.queue) else {
        let limit = Limit::count("pool.queue", pool.queue);
        return Err(Refused {
            reason: Reason::Busy,
            text: format!(
                "server `{name}` is busy: {} callers wait for it already, as many as the setting \
                 pool.queue admits; try again later, or raise pool.queue or the server's `max`",
                limit.value,
            ),
            limit: Some(limit),
        });
    };
    let mut stage = Stage::Start;
    let found = wait_for_route(server, key, want, pool, &mut stage);
    match tokio::time::timeout(pool.queue_timeout, found).await {
        Ok(found) => found,
        Err(_) => Err(too_late(name, stage, pool)),
    }
}

fn too_late(name: &str, stage: Stage, pool: &PoolSettings) -> Refused {
    let limit = Limit::time("pool.queue_timeout", pool.queue_timeout);
    let text = match stage {
        Stage::Start => format!(
            "server `{name}` did not become ready within {} (setting pool.queue_timeout); \
             `mcpx status {name}` shows what it is doing",
            limit.value,
        ),
        Stage::Turn => format!(
            "server `{name}` was busy for {} (setting pool.queue_timeout): it asks questions without \
             saying to which call they belong, so its calls are made one after the other, and the one \
             before this waits for an answer or works; raise the server's `max`, or give it `scope = \
             \"session\"`, which is an instance for each host",
            limit.value,
        ),
        Stage::Permit => format!(
            "server `{name}` was busy for {} (setting pool.queue_timeout): each of its instances \
             had {} calls in flight (setting pool.in_flight); raise the server's `max` or try again",
            limit.value, pool.in_flight,
        ),
    };
    Refused { reason: Reason::Timeout, text, limit: Some(limit) }
}

async fn wait_for_route(
    server: &Server,
    key: &RouteKey,
    want: &CallWant,
    pool: &PoolSettings,
    stage: &mut Stage,
) -> Result<Option<Leased>, Refused> {
    let mut crowd_told = false;
    loop {
        // Listened to before looking, so that no route added in between is missed.
        let added = server.routes.added();
        let Some(route) = server.routes.find(key) else {
            *stage = Stage::Start;
            match server.pool.get_route(key, &want.caller, pool.queue_timeout).await {
                RouteAnswer::Ready => continue,
                RouteAnswer::Moved => return Ok(None),
                RouteAnswer::Refused(refused) => return Err(refused),
                RouteAnswer::Late => return Err(too_late(&server.def.key, *stage, pool)),
            }
        };
        *stage = if route.is_serial() { Stage::Turn } else { Stage::Permit };
        if let Some(leased) = Leased::now(Arc::clone(&route)) {
            return Ok(Some(leased));
        }
        if !crowd_told && server.def.max > 1 {
            crowd_told = true;
            server.pool.crowded(key, &want.caller);
        }
        tokio::select! {
            lease = route.lease() => if let Some(lease) = lease {
                return Ok(Some(Leased::with(lease, route)));
            },
            // One more is there and there is still no room: another one may be wanted.
            () = added => crowd_told = false,
        }
    }
}

/// Hands the call to the instance and waits for its outcome, or until its server asks or makes a task
/// of it.
pub(super) async fn send(
    leased: Leased,
    scope: &mut Option<CallScope>,
    server: &Arc<Server>,
    want: &CallWant,
    limits: CallLimits,
    shared: &Arc<Shared>,
) -> Called {
    let Leased { id, lease, route } = leased;
    let (reply, outcome) = oneshot::channel();
    let heard = want.progress.clone().map(|notes| (notes, Arc::clone(&server.def)));
    let call = call_of(shared, &server.def.key, id, want, limits, Sink::new(reply, heard));
    let mut guard = InFlight { id, actor: lease.actor().clone(), done: false };
    // A dead instance gives the call back, and its sink says that it was not written.
    let _ = guard.actor.cast(InstanceMsg::Call { call });
    let answer = match outcome.await {
        Ok(Told::Done(answer)) => answer,
        Ok(Told::Asks(news)) => {
            let asked = AskedCall::new(news, guard, lease, scope.take());
            return Called::Open(Box::new(Ongoing::Asked(asked)));
        }
        Err(_) => Answer::Lost {
            written: true,
            why: "the part of mcpx that held the call ended".to_owned(),
        },
    };
    guard.done();
    if let (Answer::Task(handle), Some(task), "tools/call") =
        (&answer, want.task, want.method.as_str())
    {
        let place = Place::new(server, route);
        return match UpstreamTask::new(shared, want, task, place, scope.take(), handle) {
            Ok(task) => Called::Open(Box::new(Ongoing::Task(Box::new(task)))),
            Err(why) => Called::Done(Answer::Invalid(why)),
        };
    }
    drop(lease);
    Called::Done(answer)
}

/// See [`crate::actors::upstreams::UpstreamsHandle::note`].
pub fn note(shared: &Shared, caller: &Caller, server: &str, note: Notification) {
    let Ok(server) = shared.server(server) else { return };
    // In call scope there is nothing that could run for it.
    let key = key_of(&server, caller, &shared.settings(), || 0);
    let route = server.routes.find(&key);
    if let Some(lease) = route.and_then(|route| route.try_lease()) {
        let actor = lease.actor().clone();
        // Who has just ended hears nothing more.
        let _ = actor.cast(InstanceMsg::Note { note, lease });
    }
}

/// Asks something to whose answer nobody listens.
pub(super) fn tell(shared: &Shared, place: &Place, want: &CallWant, limits: CallLimits) {
    let Leased { id, lease, .. } = Leased::again(place);
    let (reply, _) = oneshot::channel();
    let call = call_of(shared, &place.server.def.key, id, want, limits, Sink::new(reply, None));
    // With a dead instance there is nobody to tell.
    let _ = lease.actor().cast(InstanceMsg::Call { call });
}

fn call_of(
    shared: &Shared,
    server: &str,
    id: u64,
    want: &CallWant,
    limits: CallLimits,
    sink: Sink,
) -> Call<Sink> {
    Call {
        id,
        method: want.method.clone(),
        params: want.params.clone(),
        wants_progress: want.progress.as_ref().is_some_and(ProgressSender::wants_progress),
        log: want.progress.as_ref().and_then(ProgressSender::log_want),
        host: want.caller.host.map(|host| host.0),
        declared: declared_to(shared, server, &want.caller),
        task: want.task,
        limits,
        sink,
    }
}

/// What the server is told of its host, where anything is: what that can be asked in the course of the
/// call (U-35), any elicitation while the broker keeps what is asked (U-36), and its extensions where
/// the server is exposed alone.
fn declared_to(shared: &Shared, server: &str, caller: &Caller) -> Option<RawJson> {
    let cut;
    let declared = match caller.answers.declared() {
        Some(declared) if extensions::any(declared) => {
            let alone = shared.settings().is_alone(server);
            cut = if alone {
                extensions::for_server(declared)
            } else {
                extensions::without(declared)
            };
            Some(&cut)
        }
        declared => declared,
    };
    if shared.shop().broker.get().is_some_and(BrokerHandle::keeps) {
        return Some(with_elicitation(declared));
    }
    declared.cloned()
}

/// Cancels the call if its caller's future falls before the outcome (F36).
#[derive(Debug)]
pub(super) struct InFlight {
    id: u64,
    actor: ActorRef<InstanceMsg>,
    done: bool,
}

impl InFlight {
    /// The instance.
    pub(super) const fn actor(&self) -> &ActorRef<InstanceMsg> {
        &self.actor
    }

    /// The outcome is there.
    pub(super) const fn done(&mut self) {
        self.done = true;
    }

    /// The outcome of a call that was asked is there. What is still open was put to it for another of
    /// its host's calls, perhaps, and has nobody left to answer it: the instance does.
    pub(super) fn over(&mut self) {
        self.done();
        // With a dead instance nothing is open.
        let _ = self.actor.cast(InstanceMsg::Cancel { id: self.id });
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.done {
            // With a dead instance the call is gone already.
            let _ = self.actor.cast(InstanceMsg::Cancel { id: self.id });
        }
    }
}

/// Ends the instance of a call scope when the call is over, however it is over.
#[derive(Debug)]
pub struct CallScope {
    pool: PoolHandle,
    call: u64,
}

impl CallScope {
    fn of(server: &Server, key: &RouteKey) -> Option<Self> {
        let ScopeKey::Call(call) = key.scope else { return None };
        Some(Self { pool: server.pool.clone(), call })
    }
}

impl Drop for CallScope {
    fn drop(&mut self) {
        self.pool.call_ended(self.call);
    }
}

/// A server that runs for a caller. In call scope it does so as long as this is held.
#[derive(Debug)]
pub struct Awake {
    /// Whose instance it is.
    pub key: RouteKey,
    scope: Option<CallScope>,
}

/// Starts `server` for `caller` if it is not running, and waits until it is usable or refused: for
/// reading its lists, not for a call, and so in the server's own session whoever asks (P-18).
pub async fn wake(shared: &Shared, server: &Server, caller: &Caller) -> Result<Awake, Refused> {
    let scope = ScopeKey::of(server.def.scope, caller, || shared.next_number());
    wake_for(shared, server, caller, RouteKey { scope, lane: Lane::Shared }).await
}

async fn wake_for(
    shared: &Shared,
    server: &Server,
    caller: &Caller,
    key: RouteKey,
) -> Result<Awake, Refused> {
    let awake = Awake { scope: CallScope::of(server, &key), key };
    if server.routes.find(&awake.key).is_some() {
        return Ok(awake);
    }
    let pool = shared.settings().pool;
    match server.pool.get_route(&awake.key, caller, pool.queue_timeout).await {
        RouteAnswer::Ready | RouteAnswer::Moved => Ok(awake),
        RouteAnswer::Refused(refused) => Err(refused),
        RouteAnswer::Late => Err(too_late(&server.def.key, Stage::Start, &pool)),
    }
}

/// Has the instance of `awake` read a list again, and waits until it has; not where it has just
/// done so.
pub async fn read_again(server: &Server, awake: &Awake, kind: ListKind, limit: Duration) {
    if let Some(route) = server.routes.find(&awake.key) {
        // One that goes, or takes too long, leaves the list as it was.
        let _ = ask(route.actor(), limit, |reply| InstanceMsg::ReadList { kind, reply }).await;
    }
}
