//! The table itself. Every method is short and waits for nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::{Semaphore, oneshot};

use super::{NotSubscribed, Said, group_key};
use crate::actors::host::HostMsg;
use crate::actors::instance::{InstanceId, InstanceMsg};
use crate::actors::pool::directory::ScopeKey;
use crate::actors::upstreams::{Caller, HostId};
use crate::protocol::jsonrpc::{Method, RawJson};
use crate::protocol::model::logging::LogMessage;
use crate::protocol::session::Limit;
use crate::protocol::session::host::HostNote;
use crate::settings::ServerDef;

/// A server, by its configuration key, and who shares its instances.
pub(super) type GroupKey = (Arc<str>, ScopeKey);

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) hosts: HashMap<HostId, Host>,
    pub(super) groups: HashMap<GroupKey, Group>,
}

/// A host connection that can be told something.
#[derive(Debug)]
pub(super) struct Host {
    caller: Caller,
    line: ActorRef<HostMsg>,
    logs: Arc<Semaphore>,
    subs: Vec<Sub>,
}

/// One subscription of a host.
#[derive(Debug)]
struct Sub {
    group: GroupKey,
    uri: String,
    shown: String,
    /// One update waits at most: whoever reads the resource after it sees all changes before.
    news: Arc<Semaphore>,
}

/// What is wanted of a server in one scope, and who can tell of it.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The first is the one that does.
    pub(super) watchers: Vec<Watcher>,
    watches: BTreeMap<String, Watch>,
}

#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) instance: InstanceId,
    pub(super) actor: ActorRef<InstanceMsg>,
    /// It has been told to look, and has not looked yet.
    pub(super) told: bool,
}

/// One resource.
#[derive(Debug, Default)]
struct Watch {
    /// The server tells of it.
    agreed: bool,
    /// One before it did: what happened in between is not known.
    lapsed: bool,
    hosts: BTreeSet<HostId>,
    waiting: Vec<(HostId, String, oneshot::Sender<Said>)>,
}

impl Host {
    pub(super) fn new(caller: Caller, line: ActorRef<HostMsg>, log_queue: usize) -> Self {
        Self { caller, line, logs: Arc::new(Semaphore::new(log_queue)), subs: Vec::new() }
    }

    /// What it subscribed to, as it knows it.
    pub(super) fn shown(&self) -> Vec<String> {
        self.subs.iter().map(|sub| sub.shown.clone()).collect()
    }

    /// Unless as many wait as may.
    fn tell(&self, note: HostNote, waiting: &Arc<Semaphore>) {
        if let Ok(credit) = Arc::clone(waiting).try_acquire_owned() {
            // One that has just left needs no telling.
            let _ = self.line.cast(HostMsg::Note { note, credit });
        }
    }
}

impl Group {
    pub(super) fn is_watched(&self) -> bool {
        !self.watches.is_empty()
    }

    /// What `instance` is to tell of.
    pub(super) fn wanted(&mut self, instance: InstanceId) -> BTreeSet<String> {
        let mut wanted = BTreeSet::new();
        for (at, watcher) in self.watchers.iter_mut().enumerate() {
            if watcher.instance == instance {
                watcher.told = false;
                if at == 0 {
                    wanted.extend(self.watches.keys().cloned());
                }
            }
        }
        wanted
    }

    /// Something else is wanted.
    fn changed(&mut self) {
        if let Some(first) = self.watchers.first_mut()
            && !std::mem::replace(&mut first.told, true)
        {
            // One that has just ended tells by its place in the list.
            let _ = first.actor.cast(InstanceMsg::Watch);
        }
    }

    /// The resource that an update is about: itself, or the nearest one that it lies below (resources
    /// page of all revisions: it may be a part of the one subscribed to).
    fn watched_by(&self, uri: &str) -> Option<&String> {
        let below = |watched: &str| {
            let rest = uri.strip_prefix(watched);
            rest.is_some_and(|rest| {
                watched.ends_with('/') || rest.is_empty() || rest.starts_with(['/', '#', '?'])
            })
        };
        self.watches.keys().filter(|watched| below(watched)).max_by_key(|watched| watched.len())
    }
}

impl Table {
    pub(super) fn subscribe(
        &mut self,
        id: HostId,
        key: GroupKey,
        uri: &str,
        shown: &str,
        most: usize,
    ) -> Result<oneshot::Receiver<Said>, NotSubscribed> {
        let host = self.hosts.get_mut(&id).ok_or(NotSubscribed::Nowhere)?;
        let is_same = |sub: &Sub| sub.group == key && sub.uri == uri && sub.shown == shown;
        if !host.subs.iter().any(is_same) {
            if host.subs.len() >= most {
                return Err(NotSubscribed::Full(Limit::count("host.max_subscriptions", most)));
            }
            let (group, news) = (key.clone(), Arc::new(Semaphore::new(1)));
            host.subs.push(Sub { group, uri: uri.to_owned(), shown: shown.to_owned(), news });
        }
        let group = self.groups.entry(key).or_default();
        let new = !group.watches.contains_key(uri);
        let watch = group.watches.entry(uri.to_owned()).or_default();
        watch.hosts.insert(id);
        let (reply, said) = oneshot::channel();
        if watch.agreed {
            // Whoever asked may have given up.
            let _ = reply.send(Ok(()));
        } else {
            watch.waiting.push((id, shown.to_owned(), reply));
        }
        if new {
            group.changed();
        }
        Ok(said)
    }

    pub(super) fn unsubscribe(&mut self, id: HostId, shown: &str) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        let mut gone = Vec::new();
        host.subs.retain(|sub| {
            let goes = sub.shown == shown;
            if goes {
                gone.push((sub.group.clone(), sub.uri.clone()));
            }
            !goes
        });
        let still = |sub: &Sub, key: &GroupKey, uri: &str| sub.group == *key && sub.uri == uri;
        gone.retain(|(key, uri)| !host.subs.iter().any(|sub| still(sub, key, uri)));
        for (key, uri) in gone {
            let Some(group) = self.groups.get_mut(&key) else { continue };
            let Some(watch) = group.watches.get_mut(&uri) else { continue };
            watch.hosts.remove(&id);
            watch.waiting.retain(|(host, ..)| *host != id);
            if watch.hosts.is_empty() {
                group.watches.remove(&uri);
                group.changed();
            }
            self.sweep(&key);
        }
    }

    pub(super) fn said(&mut self, key: &GroupKey, uri: &str, said: &Said) {
        let Some(group) = self.groups.get_mut(key) else { return };
        // Nobody wants it any more.
        let Some(watch) = group.watches.get_mut(uri) else { return };
        watch.agreed = said.is_ok();
        let lapsed = said.is_ok() && std::mem::take(&mut watch.lapsed);
        let waiting = std::mem::take(&mut watch.waiting);
        for (host, shown, reply) in waiting {
            if said.is_err() {
                self.unsubscribe(host, &shown);
            }
            // Whoever asked may have given up.
            let _ = reply.send(said.clone());
        }
        if lapsed {
            self.updated(key, uri);
        }
    }

    pub(super) fn updated(&self, key: &GroupKey, uri: &str) {
        let Some(group) = self.groups.get(key) else { return };
        let Some(watched) = group.watched_by(uri) else { return };
        let hosts = group.watches.get(watched).into_iter().flat_map(|watch| &watch.hosts);
        for host in hosts.filter_map(|id| self.hosts.get(id)) {
            for sub in host.subs.iter().filter(|sub| sub.group == *key && sub.uri == *watched) {
                host.tell(HostNote::ResourceUpdated { uri: sub.shown.clone() }, &sub.news);
            }
        }
    }

    /// H-42: to hosts that would be served by the same instance, and to nobody else.
    pub(super) fn logged(&self, def: &ServerDef, scope: &ScopeKey, message: &LogMessage) {
        for host in self.hosts.values() {
            if ScopeKey::of(def.scope, &host.caller, || 0) == *scope {
                let LogMessage { level, params } = message.clone();
                host.tell(HostNote::Log { level, params, about: None }, &host.logs);
            }
        }
    }

    /// As for log messages.
    pub(super) fn foreign(
        &self,
        def: &ServerDef,
        scope: &ScopeKey,
        method: &Method,
        params: Option<&RawJson>,
    ) {
        let server: Arc<str> = def.key.as_str().into();
        for host in self.hosts.values() {
            if ScopeKey::of(def.scope, &host.caller, || 0) == *scope {
                let (method, params) = (method.clone(), params.cloned());
                let note = HostNote::Foreign { server: Arc::clone(&server), method, params };
                host.tell(note, &host.logs);
            }
        }
    }

    pub(super) fn generation(&mut self, def: &ServerDef) {
        let mut before: HashMap<GroupKey, Group> = HashMap::new();
        self.groups.retain(|key, group| {
            let same = *key.0 == *def.key;
            if same {
                before.insert(key.clone(), std::mem::take(group));
            }
            !same
        });
        for (id, host) in &mut self.hosts {
            for sub in host.subs.iter_mut().filter(|sub| *sub.group.0 == *def.key) {
                // In call scope nothing lives long enough to tell: it stays where nobody comes.
                let Some(key) = group_key(def, &host.caller) else { continue };
                let old = std::mem::replace(&mut sub.group, key.clone());
                let group = self.groups.entry(key).or_default();
                let watch = group.watches.entry(sub.uri.clone()).or_default();
                watch.hosts.insert(*id);
                let old = before.get_mut(&old).and_then(|group| group.watches.get_mut(&sub.uri));
                if let Some(old) = old {
                    watch.lapsed |= old.agreed || old.lapsed;
                    watch.waiting.append(&mut old.waiting);
                }
            }
        }
    }

    pub(super) fn listeners(&self, def: &ServerDef) -> Vec<Caller> {
        let groups =
            self.groups.iter().filter(|(key, group)| *key.0 == *def.key && group.is_watched());
        let any = |(_, group): (_, &Group)| {
            let id = group.watches.values().find_map(|watch| watch.hosts.first())?;
            self.hosts.get(id).map(|host| host.caller.clone())
        };
        groups.filter_map(any).collect()
    }

    pub(super) fn instance_left(&mut self, key: &GroupKey, instance: InstanceId) {
        let Some(group) = self.groups.get_mut(key) else { return };
        let first = group.watchers.first().is_some_and(|first| first.instance == instance);
        group.watchers.retain(|watcher| watcher.instance != instance);
        if first {
            for watch in group.watches.values_mut() {
                watch.lapsed |= std::mem::take(&mut watch.agreed);
            }
            group.changed();
        }
        self.sweep(key);
    }

    /// Forgets what nobody wants and nobody tells of.
    fn sweep(&mut self, key: &GroupKey) {
        let empty = |group: &Group| group.watches.is_empty() && group.watchers.is_empty();
        if self.groups.get(key).is_some_and(empty) {
            self.groups.remove(key);
        }
    }
}
