//! Who listens to what: which hosts and streams there are, which resources each has subscribed to, and
//! which instance tells of them.
//!
//! A table under a short lock and no actor, like the events: an update goes from the instance that
//! heard it straight to the hosts that subscribed, one waiting for each subscription at most, and
//! cannot pile up in a mailbox in between. What a stream is to be told waits here, each thing once,
//! until its actor takes it. Nothing here waits, and nothing here is lost with an
//! instance: the one that comes after it asks what is wanted (P-12).
//!
//! Subscriptions are gathered by server and scope key, whatever the lane: of the instances there, the
//! oldest is the one that watches, so that an update comes once.

mod table;

#[cfg(test)]
pub(super) mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ractor::ActorRef;
use tokio::sync::oneshot;

use self::table::{Group, GroupKey, Listener, Table, Watcher};
use super::dispatch::Views;
use super::host::HostMsg;
use super::instance::{InstanceId, InstanceMsg};
use super::listen::ListenMsg;
use super::pool::directory::ScopeKey;
use super::upstreams::{Caller, HostId};
use crate::protocol::jsonrpc::{Method, Object, RawJson, RpcError};
use crate::protocol::model::logging::LogMessage;
use crate::protocol::session::Limit;
use crate::settings::ServerDef;

/// What a server said to a subscription.
pub type Said = Result<(), RpcError>;

/// A listen stream of a host, in this daemon's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u64);

/// Who is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenerId {
    /// A host with a handshake, on its connection.
    Host(HostId),
    /// One listen stream of a modern host.
    Stream(StreamId),
}

impl ListenerId {
    /// The connection of a caller, where it has one that can be told something.
    pub fn of(caller: &Caller) -> Option<Self> {
        caller.host.map(Self::Host)
    }
}

/// What a stream is to be told; each thing once.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// What hosts see now, where that may be something else.
    pub(crate) view: Option<Views>,
    /// Resources that have changed, as the host knows them.
    pub(crate) uris: BTreeSet<String>,
    /// The last status of each task that has another one.
    pub(crate) tasks: BTreeMap<String, RawJson>,
}

/// Why there is no subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotSubscribed {
    /// Who asks has no session that could be told anything, or the server runs for a call alone.
    Nowhere,
    /// The host has as many as it may.
    Full(Limit),
}

/// See the module. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Subs(Arc<Mutex<Table>>);

impl Subs {
    /// A host connection came, of the session `name`. It may have `log_queue` messages waiting that are
    /// about no request of its own: of logs, and of how its tasks stand. One that `keeps` what it has
    /// subscribed to is told when that changes.
    pub(crate) fn host_came(
        &self,
        caller: &Caller,
        name: &Arc<str>,
        line: ActorRef<HostMsg>,
        log_queue: usize,
        keeps: bool,
    ) {
        if let Some(id) = caller.host {
            let listener = Listener::host(caller.clone(), Arc::clone(name), line, log_queue, keeps);
            self.lock().listeners.insert(ListenerId::Host(id), listener);
        }
    }

    /// Its handshake said what it can be asked; none where it makes none, and each of its requests
    /// says so for itself.
    pub fn host_opened(&self, host: HostId, declared: Option<RawJson>) {
        self.lock().host_opened(host, declared);
    }

    /// What all hosts with a handshake declared that are served in this scope, as far as they can be
    /// asked by requests: `sampling` and `roots` (U-36). Both where there is no such host.
    pub fn declared(&self, def: &ServerDef, scope: &ScopeKey) -> Object {
        self.lock().declared(def, scope)
    }

    /// The host that is served in this scope, where it is the only one with a connection.
    pub(crate) fn only_host(&self, def: &ServerDef, scope: &ScopeKey) -> Option<ActorRef<HostMsg>> {
        self.lock().only_host(def, scope)
    }

    /// The roots of a host are others: the instances that serve it are told.
    pub fn roots_changed(&self, host: HostId) {
        self.lock().roots_changed(host);
    }

    /// The supervisor of hosts begins anew: those of an incarnation before it ended with it.
    pub(crate) fn no_hosts(&self) {
        let all: Vec<ListenerId> = self.lock().listeners.keys().copied().collect();
        for id in all {
            if let ListenerId::Host(host) = id {
                self.host_left(host);
            }
        }
    }

    /// A host connection ended, and with it what it subscribed to.
    pub fn host_left(&self, host: HostId) {
        self.lock().left(ListenerId::Host(host));
    }

    /// A listen stream of `caller` begins. From now on it is told of these tasks, and of lists.
    pub(crate) fn stream_came(
        &self,
        caller: &Caller,
        profile: Option<Arc<str>>,
        actor: ActorRef<ListenMsg>,
        tasks: BTreeSet<String>,
    ) -> Hearing {
        let mut table = self.lock();
        table.last_stream += 1;
        let id = ListenerId::Stream(StreamId(table.last_stream));
        table.listeners.insert(id, Listener::stream(caller.clone(), profile, actor, tasks));
        Hearing { subs: self.clone(), id }
    }

    /// What hosts see may be something else: to be looked at by every stream, as hosts of its profile in
    /// its project see it now.
    pub(crate) fn lists_changed(
        &self,
        view: impl Fn(Option<&Arc<str>>, Option<&Arc<Path>>) -> Option<Views>,
    ) {
        self.lock().lists_changed(view);
    }

    /// A caller that has a stream open, of this project where there is one.
    pub(crate) fn any_stream(&self, project: Option<&Arc<Path>>) -> Option<Caller> {
        self.lock().any_stream(project)
    }

    /// A listener, which is a host or stream of `caller`'s, subscribes to `uri` of a server, which it
    /// knows as `shown`. Resolves when the server has agreed or refused; who stops waiting is to
    /// [`Self::unsubscribe`].
    pub fn subscribe(
        &self,
        def: &ServerDef,
        listener: Option<ListenerId>,
        caller: &Caller,
        uri: &str,
        shown: &str,
        most: usize,
    ) -> Result<oneshot::Receiver<Said>, NotSubscribed> {
        let listener = listener.ok_or(NotSubscribed::Nowhere)?;
        let key = group_key(def, caller).ok_or(NotSubscribed::Nowhere)?;
        self.lock().subscribe(listener, key, uri, shown, most)
    }

    /// It is not to hear of this any more; one that it did not subscribe to is no mistake.
    pub fn unsubscribe(&self, listener: ListenerId, shown: &str) {
        self.lock().unsubscribe(listener, shown);
    }

    /// What a host has subscribed to, as it spells it.
    pub(crate) fn of_host(&self, host: HostId) -> BTreeSet<String> {
        self.lock().of(ListenerId::Host(host))
    }

    /// What happened to a resource that `listener` has subscribed to was not heard for a while: it is
    /// told of a change, because there may have been one.
    pub(crate) fn missed(&self, listener: ListenerId, shown: &str) {
        self.lock().missed(listener, shown);
    }

    /// The status of a task has changed: `params` are those of `notifications/tasks`, the whole task
    /// in newest shape. Goes to every host stream that asked for this task, and to the host whose
    /// session owns it.
    pub fn task_changed(&self, task: &str, owner: Option<&str>, params: &RawJson) {
        self.lock().task_changed(task, owner, params);
    }

    /// A generation of a server begins: its instances are none of those before, and its scope may be
    /// another.
    pub fn generation(&self, def: &ServerDef) {
        self.lock().generation(def);
    }

    /// One caller for each scope key in which somebody listens to resources of a server.
    pub fn listeners(&self, def: &ServerDef) -> Vec<Caller> {
        self.lock().listeners(def)
    }

    /// Whether somebody listens to resources of a server in this scope.
    pub fn is_watched(&self, def: &ServerDef, scope: &ScopeKey) -> bool {
        let key = (Arc::from(def.key.as_str()), scope.clone());
        self.lock().groups.get(&key).is_some_and(Group::is_watched)
    }

    /// An instance is open. `None` in call scope: it would not live to tell anything.
    pub fn instance_came(
        &self,
        def: &Arc<ServerDef>,
        scope: &ScopeKey,
        instance: InstanceId,
        actor: ActorRef<InstanceMsg>,
    ) -> Option<Watching> {
        if matches!(scope, ScopeKey::Call(_)) {
            return None;
        }
        let key: GroupKey = (Arc::from(def.key.as_str()), scope.clone());
        let mut table = self.lock();
        let group = table.groups.entry(key.clone()).or_default();
        group.watchers.push(Watcher { instance, actor, told: false, roots_changed: false });
        Some(Watching { subs: self.clone(), def: Arc::clone(def), key, instance })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics inside; the table is whole all the time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a caller's subscriptions of a server are gathered.
fn group_key(def: &ServerDef, caller: &Caller) -> Option<GroupKey> {
    match ScopeKey::of(def.scope, caller, || 0) {
        ScopeKey::Call(_) => None,
        scope => Some((Arc::from(def.key.as_str()), scope)),
    }
}

/// An instance's place among those that may be the one that watches; given up when it falls.
#[derive(Debug)]
pub struct Watching {
    subs: Subs,
    def: Arc<ServerDef>,
    key: GroupKey,
    instance: InstanceId,
}

impl Watching {
    /// The resources that it is to tell of; none where another instance does.
    pub fn wanted(&self) -> BTreeSet<String> {
        let mut table = self.subs.lock();
        let Some(group) = table.groups.get_mut(&self.key) else { return BTreeSet::new() };
        group.wanted(self.instance)
    }

    /// What the server said to one of them.
    pub fn said(&self, uri: &str, said: &Said) {
        self.subs.lock().said(&self.key, uri, said);
    }

    /// A resource has changed.
    pub fn updated(&self, uri: &str) {
        self.subs.lock().updated(&self.key, uri);
    }

    /// The server said something that is none of the protocol's: hosts that share the instance hear it,
    /// where it is exposed alone.
    pub fn foreign(&self, method: &Method, params: Option<&RawJson>) {
        self.subs.lock().foreign(&self.def, &self.key.1, method, params);
    }

    /// Whether roots of a host that it serves have changed since it was asked last.
    pub fn roots_changed(&self) -> bool {
        let mut table = self.subs.lock();
        let Some(group) = table.groups.get_mut(&self.key) else { return false };
        let mut watchers = group.watchers.iter_mut();
        let own = watchers.find(|watcher| watcher.instance == self.instance);
        own.is_some_and(|watcher| std::mem::take(&mut watcher.roots_changed))
    }

    /// What a person was sent to do at a url is done: hosts that share the instance may have sent
    /// them there, and who has not knows no such id.
    pub fn completed(&self, id: &RawJson) {
        self.subs.lock().completed(&self.def, &self.key.1, id);
    }

    /// The server logged something that is about no call: hosts that share the instance may hear it.
    pub fn logged(&self, message: &LogMessage) {
        let message = message.clone().named(&self.def.namespace);
        self.subs.lock().logged(&self.def, &self.key.1, &message);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.subs.lock().instance_left(&self.key, self.instance);
    }
}

/// A listen stream's place among those that are told; given up, with what it subscribed to, when it
/// falls.
#[derive(Debug)]
pub(crate) struct Hearing {
    subs: Subs,
    id: ListenerId,
}

impl Hearing {
    /// Whose it is.
    pub(crate) const fn id(&self) -> ListenerId {
        self.id
    }

    /// What has come since the last time.
    pub(crate) fn take(&self) -> News {
        self.subs.lock().take_news(self.id)
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.subs.lock().left(self.id);
    }
}
