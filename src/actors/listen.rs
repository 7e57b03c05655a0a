//! One stream of `subscriptions/listen` towards a host.
//!
//! Owns what the stream is to tell next, its place in the table of [`super::subs`], and the way to its
//! host (`wire`): over HTTP the stream of events that answers its POST, with a [`HostSession`] for
//! itself; otherwise the actor of its host's connection. Children: none; its tasks end with it. Ends
//! when the host closes it, with its host's connection, or with the daemon. Never restarted: a host
//! opens another one. Never waits for a host or a server: what a host has no room for waits here, each
//! thing once, so that a slow reader costs what it asked for and no more.
//!
//! [`HostSession`]: crate::protocol::session::host::HostSession

mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::task::JoinSet;

use self::wire::Wire;
pub(crate) use self::wire::{Way, Word, closing_room};
use super::dispatch::{self, Context, Listed, Views};
use super::events::Event;
use super::listens::Place;
use super::subs::{Hearing, ListenerId, News};
use super::support::task::{TaskGuard, spawn_guarded};
use super::upstreams::Caller;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::session::host::{ListenNote, ListenWant};
use crate::protocol::session::listen::ListenFilter;
use crate::protocol::session::upstream::ListKind;
use crate::protocol::task_fsm::Status;

/// What a stream starts with.
#[derive(Debug)]
pub(crate) struct ListenArgs {
    /// On whose behalf.
    pub(crate) caller: Caller,
    /// What the host asked for.
    pub(crate) want: ListenWant,
    /// What it knows of its lists.
    pub(crate) known: Known,
    /// The way to it.
    pub(crate) way: Way,
    pub(crate) context: Arc<Context>,
}

/// What a host knows of the lists that it sees (F38).
#[derive(Debug)]
pub(crate) struct Known {
    /// What it would see now.
    pub(crate) view: Views,
    /// Which lists it was given last.
    pub(crate) listed: Arc<Listed>,
    /// Lists that it has in another form than they have now: it is told at once.
    pub(crate) changed: Vec<ListKind>,
}

/// What a stream is told.
#[derive(Debug)]
pub(crate) enum ListenMsg {
    /// Its agreeing task: what it will tell of, and tasks that have a status worth telling already.
    Agreed { filter: ListenFilter, tasks: BTreeMap<String, RawJson> },
    /// The subscriptions: something has come that it asked for.
    NewsCame,
    /// The waiting task: its host takes more.
    RoomAgain,
    /// The watching task: its host has closed it, or is gone.
    HostGone,
    /// Listens: the daemon stops.
    Drain,
}

/// The actor; all of it is in its state.
#[derive(Debug)]
pub(crate) struct Listen;

pub(crate) struct ListenState {
    me: ActorRef<ListenMsg>,
    caller: Caller,
    context: Arc<Context>,
    known: Known,
    /// Asked for; once it is acknowledged, what was agreed.
    filter: ListenFilter,
    again: bool,
    acknowledged: bool,
    outbox: Outbox,
    wire: Wire,
    hearing: Hearing,
    _agreeing: TaskGuard,
    _watching: Option<TaskGuard>,
    _place: Place,
}

/// What the stream is to tell, each thing once.
#[derive(Debug, Default)]
struct Outbox {
    lists: BTreeSet<ListKind>,
    uris: BTreeSet<String>,
    tasks: BTreeMap<String, RawJson>,
}

impl Outbox {
    fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.uris.is_empty() && self.tasks.is_empty()
    }

    fn pop(&mut self) -> Option<ListenNote> {
        let list = self.lists.pop_first().map(ListenNote::Changed);
        let uri = || self.uris.pop_first().map(ListenNote::Updated);
        list.or_else(uri).or_else(|| {
            let (id, params) = self.tasks.pop_first()?;
            Some(ListenNote::Task { id, params })
        })
    }
}

impl Actor for Listen {
    type Msg = ListenMsg;
    type State = ListenState;
    type Arguments = (ListenArgs, Place);

    async fn pre_start(
        &self,
        me: ActorRef<ListenMsg>,
        (args, place): (ListenArgs, Place),
    ) -> Result<ListenState, ActorProcessingErr> {
        Ok(ListenState::new(me, args, place))
    }

    async fn handle(
        &self,
        me: ActorRef<ListenMsg>,
        message: ListenMsg,
        state: &mut ListenState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ListenMsg::Agreed { filter, tasks } => state.acknowledge(filter, tasks),
            ListenMsg::NewsCame => state.take(),
            ListenMsg::RoomAgain => state.wire.room_again(),
            ListenMsg::HostGone => {
                state.host_gone();
                me.stop(None);
                return Ok(());
            }
            ListenMsg::Drain => {
                state.wire.drain();
                me.stop(None);
                return Ok(());
            }
        }
        state.pump();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<ListenMsg>,
        _event: SupervisionEvent,
        _state: &mut ListenState,
    ) -> Result<(), ActorProcessingErr> {
        // It has no children; the default would stop it.
        Ok(())
    }
}

impl ListenState {
    fn new(me: ActorRef<ListenMsg>, args: ListenArgs, place: Place) -> Self {
        let ListenArgs { caller, want, known, way, context } = args;
        let ListenWant { key, filter, again, .. } = want;
        let tasks = filter.tasks.clone();
        let hearing = context.upstreams.subs().stream_came(
            &caller,
            context.profile().cloned(),
            me.clone(),
            tasks,
        );
        let asking = Asking {
            context: Arc::clone(&context),
            caller: caller.clone(),
            listener: hearing.id(),
        };
        let agreeing = spawn_guarded(asking.agree(filter.clone(), me.clone()));
        let wire = Wire::new(way, key);
        let watching = wire.watch(&me);
        Self {
            me,
            caller,
            context,
            known,
            filter,
            again,
            acknowledged: false,
            outbox: Outbox::default(),
            wire,
            hearing,
            _agreeing: agreeing,
            _watching: watching,
            _place: place,
        }
    }

    fn acknowledge(&mut self, filter: ListenFilter, tasks: BTreeMap<String, RawJson>) {
        self.wire.say(Word::Agreed(filter.clone()));
        self.filter = filter;
        self.acknowledged = true;
        for kind in std::mem::take(&mut self.known.changed) {
            self.changed(kind);
        }
        for (id, params) in tasks {
            // What has come meanwhile is newer.
            self.outbox.tasks.entry(id).or_insert(params);
        }
        if self.again {
            // What happened since the stream before broke, nobody knows.
            self.outbox.uris.extend(self.filter.uris.iter().cloned());
        }
    }

    fn changed(&mut self, kind: ListKind) {
        if self.filter.has(kind) {
            self.outbox.lists.insert(kind);
        }
    }

    /// F38: a list is told of where it is another one than the host was given last.
    fn take(&mut self) {
        let News { view, uris, tasks } = self.hearing.take();
        if let Some(view) = view {
            for kind in view.changed_since(&self.known.view) {
                if !self.known.listed.is(kind, view.of(kind)) {
                    self.changed(kind);
                }
            }
            self.known.view = view;
        }
        self.outbox.uris.extend(uris);
        self.outbox.tasks.extend(tasks);
    }

    /// Tells as much as the host takes.
    fn pump(&mut self) {
        while self.acknowledged && !self.outbox.is_empty() && self.wire.has_room(&self.me) {
            if let Some(note) = self.outbox.pop() {
                self.wire.say(Word::Note(note));
            }
        }
    }

    fn host_gone(&self) {
        if !self.wire.flows() {
            let text = "a host did not read its stream of subscriptions/listen; it was closed \
                        (setting http.write_timeout)";
            let event = Event::new("host.warning", text).of_host(self.caller.label.to_string());
            self.context.events.emit(event);
        }
    }
}

/// What it takes to find out what a stream will tell of.
struct Asking {
    context: Arc<Context>,
    caller: Caller,
    listener: ListenerId,
}

impl Asking {
    /// Finds out, and says so.
    async fn agree(self, asked: ListenFilter, me: ActorRef<ListenMsg>) {
        let uris = self.resources(&asked).await;
        let mut filter = ListenFilter { uris, tasks: BTreeSet::new(), ..asked.clone() };
        let mut tasks = BTreeMap::new();
        for id in &asked.tasks {
            // Tasks of hosts with a session are theirs alone, and theirs are told otherwise.
            let Some(entry) = self.context.tasks.find(id, None) else { continue };
            filter.tasks.insert(id.clone());
            // It may have got there before anybody could listen.
            if entry.status() != Status::Working {
                tasks.insert(id.clone(), self.context.tasks.whole(&entry).await.write());
            }
        }
        let _ = me.cast(ListenMsg::Agreed { filter, tasks });
    }

    /// Asks the servers of all resources at once. Those that have not agreed when
    /// `listen.ack_wait` has passed do not tell of theirs: a stream without an acknowledgement is of
    /// no use to its host.
    async fn resources(&self, asked: &ListenFilter) -> BTreeSet<String> {
        let Self { context, caller, listener } = self;
        let listener = *listener;
        let settings = context.settings();
        let mut asking = JoinSet::new();
        for uri in asked.uris.iter().take(settings.host.max_subscriptions).cloned() {
            let (context, caller) = (Arc::clone(context), caller.clone());
            asking.spawn(async move {
                let said = dispatch::subscribe(&context, Some(listener), &caller, &uri).await;
                let declined = said.inspect_err(|error| {
                    tracing::debug!(uri, error = error.message, "no updates on a listen stream");
                });
                declined.is_ok().then_some(uri)
            });
        }
        let mut agreed = BTreeSet::new();
        let gathering = async {
            while let Some(joined) = asking.join_next().await {
                agreed.extend(joined.ok().flatten());
            }
        };
        // What was said by then is what was said.
        let _ = tokio::time::timeout(settings.listen.ack_wait, gathering).await;
        drop(asking);
        for uri in asked.uris.difference(&agreed) {
            context.upstreams.subs().unsubscribe(listener, uri);
        }
        agreed
    }
}
