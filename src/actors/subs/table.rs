//! The table itself. Every method is short and waits for nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::{Semaphore, oneshot};

use super::{ListenerId, News, NotSubscribed, Said, group_key};
use crate::actors::dispatch::Views;
use crate::actors::host::HostMsg;
use crate::actors::instance::{InstanceId, InstanceMsg};
use crate::actors::listen::ListenMsg;
use crate::actors::pool::directory::ScopeKey;
use crate::actors::upstreams::{Caller, HostId};
use crate::protocol::jsonrpc::{Method, Object, RawJson};
use crate::protocol::model::logging::LogMessage;
use crate::protocol::model::questions;
use crate::protocol::session::Limit;
use crate::protocol::session::host::HostNote;
use crate::settings::ServerDef;

/// A server, by its configuration key, and who shares its instances.
pub(super) type GroupKey = (Arc<str>, ScopeKey);

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) listeners: HashMap<ListenerId, Listener>,
    pub(super) last_stream: u64,
    pub(super) groups: HashMap<GroupKey, Group>,
}

/// Somebody who can be told something.
#[derive(Debug)]
pub(super) struct Listener {
    caller: Caller,
    line: Line,
    subs: Vec<Sub>,
}

/// How it is told.
#[derive(Debug)]
enum Line {
    /// Message by message.
    Host {
        actor: ActorRef<HostMsg>,
        logs: Arc<Semaphore>,
        /// The session that its tasks belong to.
        name: Arc<str>,
        /// What it can be asked, where its handshake said so.
        declared: Option<RawJson>,
        /// It keeps what it has subscribed to.
        keeps: bool,
    },
    /// It is told that there is something, and takes it.
    Stream(Stream),
}

#[derive(Debug)]
struct Stream {
    actor: ActorRef<ListenMsg>,
    /// Its host's profile.
    profile: Option<Arc<str>>,
    /// Those that it asked for.
    tasks: BTreeSet<String>,
    news: News,
    /// It has been told to look, and has not looked yet.
    told: bool,
}

/// One subscription of a listener.
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
    /// Roots of a host that it serves have changed since it looked.
    pub(super) roots_changed: bool,
}

/// One resource.
#[derive(Debug, Default)]
struct Watch {
    /// The server tells of it.
    agreed: bool,
    /// One before it did: what happened in between is not known.
    lapsed: bool,
    hosts: BTreeSet<ListenerId>,
    waiting: Vec<(ListenerId, String, oneshot::Sender<Said>)>,
}

impl Listener {
    pub(super) fn host(
        caller: Caller,
        name: Arc<str>,
        actor: ActorRef<HostMsg>,
        log_queue: usize,
        keeps: bool,
    ) -> Self {
        let logs = Arc::new(Semaphore::new(log_queue));
        let line = Line::Host { actor, logs, name, declared: None, keeps };
        Self { caller, line, subs: Vec::new() }
    }

    pub(super) fn stream(
        caller: Caller,
        profile: Option<Arc<str>>,
        actor: ActorRef<ListenMsg>,
        tasks: BTreeSet<String>,
    ) -> Self {
        let stream = Stream { actor, profile, tasks, news: News::default(), told: false };
        Self { caller, line: Line::Stream(stream), subs: Vec::new() }
    }

    fn as_stream(&mut self) -> Option<&mut Stream> {
        match &mut self.line {
            Line::Stream(stream) => Some(stream),
            Line::Host { .. } => None,
        }
    }

    /// Its host keeps what it has subscribed to.
    fn subs_changed(&self) {
        if let Line::Host { actor, keeps: true, .. } = &self.line {
            // One that has just left needs no telling.
            let _ = actor.cast(HostMsg::Subscribed { again: None });
        }
    }

    /// A resource of a group has changed.
    fn updated(&mut self, key: &GroupKey, watched: &str) {
        for sub in self.subs.iter().filter(|sub| sub.group == *key && sub.uri == watched) {
            match &mut self.line {
                Line::Host { actor, .. } => {
                    tell(actor, HostNote::ResourceUpdated { uri: sub.shown.clone() }, &sub.news);
                }
                Line::Stream(stream) => {
                    stream.news.uris.insert(sub.shown.clone());
                    stream.wake();
                }
            }
        }
    }
}

/// Unless as many wait as may.
fn tell(host: &ActorRef<HostMsg>, note: HostNote, waiting: &Arc<Semaphore>) {
    if let Ok(credit) = Arc::clone(waiting).try_acquire_owned() {
        // One that has just left needs no telling.
        let _ = host.cast(HostMsg::Note { note, credit });
    }
}

impl Stream {
    fn wake(&mut self) {
        if !std::mem::replace(&mut self.told, true) {
            // One that has just ended needs no telling.
            let _ = self.actor.cast(ListenMsg::NewsCame);
        }
    }
}

impl Watcher {
    /// One word to look waits at a time.
    fn look(&mut self) {
        if !std::mem::replace(&mut self.told, true) {
            // One that has just ended tells by its place in the list.
            let _ = self.actor.cast(InstanceMsg::Watch);
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
        if let Some(first) = self.watchers.first_mut() {
            first.look();
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
        id: ListenerId,
        key: GroupKey,
        uri: &str,
        shown: &str,
        most: usize,
    ) -> Result<oneshot::Receiver<Said>, NotSubscribed> {
        let host = self.listeners.get_mut(&id).ok_or(NotSubscribed::Nowhere)?;
        let is_same = |sub: &Sub| sub.group == key && sub.uri == uri && sub.shown == shown;
        if !host.subs.iter().any(is_same) {
            if host.subs.len() >= most {
                return Err(NotSubscribed::Full(Limit::count("host.max_subscriptions", most)));
            }
            let (group, news) = (key.clone(), Arc::new(Semaphore::new(1)));
            host.subs.push(Sub { group, uri: uri.to_owned(), shown: shown.to_owned(), news });
            host.subs_changed();
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

    pub(super) fn of(&self, id: ListenerId) -> BTreeSet<String> {
        let listener = self.listeners.get(&id);
        listener.into_iter().flat_map(|it| &it.subs).map(|sub| sub.shown.clone()).collect()
    }

    pub(super) fn missed(&mut self, id: ListenerId, shown: &str) {
        let Some(listener) = self.listeners.get(&id) else { return };
        let Line::Host { actor, .. } = &listener.line else { return };
        for sub in listener.subs.iter().filter(|sub| sub.shown == shown) {
            tell(actor, HostNote::ResourceUpdated { uri: sub.shown.clone() }, &sub.news);
        }
    }

    /// A listener goes, and with it what it subscribed to.
    pub(super) fn left(&mut self, id: ListenerId) {
        let subs = self.listeners.get(&id).map(|listener| &listener.subs);
        let shown = subs.into_iter().flatten().map(|sub| sub.shown.clone());
        for shown in shown.collect::<Vec<_>>() {
            self.unsubscribe(id, &shown);
        }
        self.listeners.remove(&id);
    }

    pub(super) fn unsubscribe(&mut self, id: ListenerId, shown: &str) {
        let Some(host) = self.listeners.get_mut(&id) else { return };
        let mut gone = Vec::new();
        host.subs.retain(|sub| {
            let goes = sub.shown == shown;
            if goes {
                gone.push((sub.group.clone(), sub.uri.clone()));
            }
            !goes
        });
        let still = |sub: &Sub, key: &GroupKey, uri: &str| sub.group == *key && sub.uri == uri;
        if !gone.is_empty() {
            host.subs_changed();
        }
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

    pub(super) fn updated(&mut self, key: &GroupKey, uri: &str) {
        let Some(group) = self.groups.get(key) else { return };
        let Some(watched) = group.watched_by(uri) else { return };
        for id in group.watches.get(watched).into_iter().flat_map(|watch| &watch.hosts) {
            if let Some(listener) = self.listeners.get_mut(id) {
                listener.updated(key, watched);
            }
        }
    }

    pub(super) fn lists_changed(
        &mut self,
        view: impl Fn(Option<&Arc<str>>, Option<&Arc<Path>>) -> Option<Views>,
    ) {
        for listener in self.listeners.values_mut() {
            let Line::Stream(stream) = &mut listener.line else { continue };
            let project = listener.caller.project.as_ref();
            if let Some(view) = view(stream.profile.as_ref(), project) {
                stream.news.view = Some(view);
                stream.wake();
            }
        }
    }

    pub(super) fn task_changed(&mut self, task: &str, owner: Option<&str>, params: &RawJson) {
        for listener in self.listeners.values_mut() {
            match &mut listener.line {
                Line::Host { actor, logs, name, .. } if owner == Some(&**name) => {
                    tell(actor, HostNote::Task { task: params.clone() }, logs);
                }
                Line::Stream(stream) if stream.tasks.contains(task) => {
                    // The last one says everything.
                    stream.news.tasks.insert(task.to_owned(), params.clone());
                    stream.wake();
                }
                Line::Host { .. } | Line::Stream(_) => {}
            }
        }
    }

    pub(super) fn take_news(&mut self, id: ListenerId) -> News {
        let listener = self.listeners.get_mut(&id);
        let Some(stream) = listener.and_then(Listener::as_stream) else { return News::default() };
        stream.told = false;
        std::mem::take(&mut stream.news)
    }

    pub(super) fn any_stream(&self, project: Option<&Arc<Path>>) -> Option<Caller> {
        let there = |of: &Listener| project.is_none() || of.caller.project.as_ref() == project;
        let streams = self
            .listeners
            .iter()
            .filter(|(id, of)| matches!(id, ListenerId::Stream(_)) && there(of));
        let (_, oldest) = streams.min_by_key(|(id, _)| **id)?;
        Some(oldest.caller.clone())
    }

    /// H-42: to hosts that would be served by the same instance, and to nobody else.
    pub(super) fn logged(&self, def: &ServerDef, scope: &ScopeKey, message: &LogMessage) {
        for listener in self.listeners.values() {
            let Line::Host { actor, logs, .. } = &listener.line else { continue };
            if ScopeKey::of(def.scope, &listener.caller, || 0) == *scope {
                let LogMessage { level, params } = message.clone();
                tell(actor, HostNote::Log { level, params, about: None }, logs);
            }
        }
    }

    /// U-36: what every host with a handshake that is served in this scope can be asked.
    pub(super) fn declared(&self, def: &ServerDef, scope: &ScopeKey) -> Object {
        let here = |it: &&Listener| ScopeKey::of(def.scope, &it.caller, || 0) == *scope;
        let declared = |it: &'_ Listener| match &it.line {
            Line::Host { declared, .. } => declared.clone(),
            Line::Stream(_) => None,
        };
        let all: Vec<RawJson> = self.listeners.values().filter(here).filter_map(declared).collect();
        questions::declared_by_all(&all)
    }

    pub(super) fn only_host(&self, def: &ServerDef, scope: &ScopeKey) -> Option<ActorRef<HostMsg>> {
        let mut hosts = self.listeners.values().filter_map(|listener| {
            let here = ScopeKey::of(def.scope, &listener.caller, || 0) == *scope;
            match &listener.line {
                Line::Host { actor, .. } if here => Some(actor),
                Line::Host { .. } | Line::Stream(_) => None,
            }
        });
        let first = hosts.next()?;
        hosts.next().is_none().then(|| first.clone())
    }

    pub(super) fn host_opened(&mut self, host: HostId, said: Option<RawJson>) {
        let listener = self.listeners.get_mut(&ListenerId::Host(host));
        if let Some(Listener { line: Line::Host { declared, .. }, .. }) = listener {
            *declared = said;
        }
    }

    pub(super) fn roots_changed(&mut self, host: HostId) {
        let Some(host) = self.listeners.get(&ListenerId::Host(host)) else { return };
        let Caller { host: id, project, .. } = &host.caller;
        for ((_, scope), group) in &mut self.groups {
            let serves = match scope {
                ScopeKey::Global => true,
                ScopeKey::Project(folder) => project.as_ref() == Some(folder),
                ScopeKey::NoProject => project.is_none(),
                ScopeKey::Session(session) => *id == Some(*session),
                ScopeKey::Call(_) => false,
            };
            if serves {
                for watcher in &mut group.watchers {
                    watcher.roots_changed = true;
                    watcher.look();
                }
            }
        }
    }

    pub(super) fn completed(&self, def: &ServerDef, scope: &ScopeKey, id: &RawJson) {
        for listener in self.listeners.values() {
            let Line::Host { actor, logs, declared: Some(_), .. } = &listener.line else {
                continue;
            };
            if ScopeKey::of(def.scope, &listener.caller, || 0) == *scope {
                tell(actor, HostNote::Completed { id: id.clone() }, logs);
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
        for listener in self.listeners.values() {
            let Line::Host { actor, logs, .. } = &listener.line else { continue };
            if ScopeKey::of(def.scope, &listener.caller, || 0) == *scope {
                let (method, params) = (method.clone(), params.cloned());
                let note = HostNote::Foreign { server: Arc::clone(&server), method, params };
                tell(actor, note, logs);
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
        for (id, host) in &mut self.listeners {
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
            self.listeners.get(id).map(|host| host.caller.clone())
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
