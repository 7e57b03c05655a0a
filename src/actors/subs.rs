//! Who listens to what: which hosts there are, which resources each has subscribed to, and which
//! instance tells of them.
//!
//! A table under a short lock and no actor, like the events: an update goes from the instance that
//! heard it straight to the hosts that subscribed, one waiting for each subscription at most, and
//! cannot pile up in a mailbox in between. Nothing here waits, and nothing here is lost with an
//! instance: the one that comes after it asks what is wanted (P-12).
//!
//! Subscriptions are gathered by server and scope key, whatever the lane: of the instances there, the
//! oldest is the one that watches, so that an update comes once.

mod table;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ractor::ActorRef;
use tokio::sync::oneshot;

use self::table::{Group, GroupKey, Host, Table, Watcher};
use super::host::HostMsg;
use super::instance::{InstanceId, InstanceMsg};
use super::pool::directory::ScopeKey;
use super::upstreams::{Caller, HostId};
use crate::protocol::jsonrpc::{Method, RawJson, RpcError};
use crate::protocol::model::logging::LogMessage;
use crate::protocol::session::Limit;
use crate::settings::ServerDef;

/// What a server said to a subscription.
pub type Said = Result<(), RpcError>;

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
    /// A host connection came. It may have `log_queue` log messages waiting that are about no
    /// request of its own.
    pub(crate) fn host_came(&self, caller: &Caller, line: ActorRef<HostMsg>, log_queue: usize) {
        if let Some(id) = caller.host {
            self.lock().hosts.insert(id, Host::new(caller.clone(), line, log_queue));
        }
    }

    /// The supervisor of hosts begins anew: those of an incarnation before it ended with it.
    pub(crate) fn no_hosts(&self) {
        let hosts: Vec<HostId> = self.lock().hosts.keys().copied().collect();
        for host in hosts {
            self.host_left(host);
        }
    }

    /// A host connection ended, and with it what it subscribed to.
    pub fn host_left(&self, host: HostId) {
        let mut table = self.lock();
        let subs = table.hosts.get(&host).map(Host::shown).unwrap_or_default();
        for shown in subs {
            table.unsubscribe(host, &shown);
        }
        table.hosts.remove(&host);
    }

    /// The caller's host subscribes to `uri` of a server, which it knows as `shown`. Resolves
    /// when the server has agreed or refused; who stops waiting is to [`Self::unsubscribe`].
    pub fn subscribe(
        &self,
        def: &ServerDef,
        caller: &Caller,
        uri: &str,
        shown: &str,
        most: usize,
    ) -> Result<oneshot::Receiver<Said>, NotSubscribed> {
        let host = caller.host.ok_or(NotSubscribed::Nowhere)?;
        let key = group_key(def, caller).ok_or(NotSubscribed::Nowhere)?;
        self.lock().subscribe(host, key, uri, shown, most)
    }

    /// The host is not to hear of this any more; one that it did not subscribe to is no mistake.
    pub fn unsubscribe(&self, host: HostId, shown: &str) {
        self.lock().unsubscribe(host, shown);
    }

    /// The status of a task has changed: `params` are those of `notifications/tasks`, the whole task
    /// in newest shape. Goes to every host stream that asked for this task.
    pub fn task_changed(&self, task: &str, params: RawJson) {
        // No host stream can ask for tasks yet; the table of streams follows.
        drop((task, params));
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
        group.watchers.push(Watcher { instance, actor, told: false });
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
