//! One call, from finding a route to its outcome. Runs in the caller's task; no actor waits here.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::oneshot;

use super::directory::{Lane, Lease, Route, RouteKey, ScopeKey, Server};
use super::ongoing::{AskedCall, Called, Ongoing};
use super::{PoolHandle, RouteAnswer};
use crate::actors::broker::BrokerHandle;
use crate::actors::instance::{InstanceMsg, Sink, Told};
use crate::actors::support::ask::ask;
use crate::actors::support::progress::ProgressSender;
use crate::actors::upstreams::{CallWant, Caller, Reason, Refused, Shared};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions::with_elicitation;
use crate::protocol::session::pending::CallLimits;
use crate::protocol::session::upstream::{Call, ListKind};
use crate::protocol::session::{Answer, Limit};
use crate::settings::Settings;
use crate::settings::typed::PoolSettings;

/// See [`crate::actors::upstreams::UpstreamsHandle::call`].
pub async fn call(shared: &Shared, want: CallWant) -> Result<Called, Refused> {
    let settings = shared.settings();
    let mut unwritten = 0;
    let mut repeated = false;
    // One number for all tries of this call, so that call scope means one call.
    let mut number = None;
    loop {
        let server = shared.server(&want.server)?;
        let scope_key = ScopeKey::of(server.def.scope, &want.caller, || {
            *number.get_or_insert_with(|| shared.next_number())
        });
        let lane = if server.def.follows(settings.upstream.protocol) {
            server.routes.lane(want.caller.era)
        } else {
            Lane::Shared
        };
        let key = RouteKey { scope: scope_key, lane };
        let mut scope = CallScope::of(&server, &key);
        let leased = match server.routes.find(&key).and_then(|route| leased_now(&route)) {
            Some(leased) => Some(leased),
            // Boxed: waiting is rare, and a call's task need not have room for it.
            None => Box::pin(find_route(&server, &key, &want, &settings.pool)).await?,
        };
        let answer = match leased {
            Some(leased) => match send(shared, leased, &mut scope, &server, &want, &settings).await
            {
                Called::Done(answer) => answer,
                // A server that has asked has begun: it is not called again for this.
                open @ Called::Open(_) => return Ok(open),
            },
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
            other => return Ok(Called::Done(other)),
        }
    }
}

/// A request id and the permit to use it.
type Leased = (u64, Lease);

fn leased_now(route: &Route) -> Option<Leased> {
    let lease = route.try_lease()?;
    Some((route.pending.take_id(), lease))
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
        if let Some(leased) = leased_now(&route) {
            return Ok(Some(leased));
        }
        if !crowd_told && server.def.max > 1 {
            crowd_told = true;
            server.pool.crowded(key, &want.caller);
        }
        tokio::select! {
            lease = route.lease() => if let Some(lease) = lease {
                return Ok(Some((route.pending.take_id(), lease)));
            },
            // One more is there and there is still no room: another one may be wanted.
            () = added => crowd_told = false,
        }
    }
}

/// Hands the call to the instance and waits for its outcome, or until its server asks.
async fn send(
    shared: &Shared,
    (id, lease): Leased,
    scope: &mut Option<CallScope>,
    server: &Server,
    want: &CallWant,
    settings: &Settings,
) -> Called {
    let (reply, outcome) = oneshot::channel();
    let heard = want.progress.clone().map(|notes| (notes, Arc::clone(&server.def)));
    let call = Call {
        id,
        method: want.method.clone(),
        params: want.params.clone(),
        wants_progress: want.progress.as_ref().is_some_and(ProgressSender::wants_progress),
        log: want.progress.as_ref().and_then(ProgressSender::log_want),
        host: want.caller.host.map(|host| host.0),
        declared: can_be_asked(shared, &want.caller),
        task: want.task,
        limits: CallLimits { idle: settings.call.idle, total: settings.call.total },
        sink: Sink::new(reply, heard),
    };
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
    drop(lease);
    Called::Done(answer)
}

/// What can be asked in the course of a call, where anything can: what its host declared (U-35), and
/// any elicitation while somebody answers at the broker (U-36).
fn can_be_asked(shared: &Shared, caller: &Caller) -> Option<RawJson> {
    let declared = caller.answers.declared();
    if shared.shop().broker.get().is_some_and(BrokerHandle::listens) {
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
    _scope: Option<CallScope>,
}

/// Starts `server` for `caller` if it is not running, and waits until it is usable or refused: for
/// reading its lists, not for a call, and so in the server's own session whoever asks (P-18).
pub async fn wake(shared: &Shared, server: &Server, caller: &Caller) -> Result<Awake, Refused> {
    let scope = ScopeKey::of(server.def.scope, caller, || shared.next_number());
    let key = RouteKey { scope, lane: Lane::Shared };
    let awake = Awake { _scope: CallScope::of(server, &key), key };
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
