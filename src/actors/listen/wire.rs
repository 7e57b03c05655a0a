//! The way from a stream to its host.

use std::sync::Arc;

use bytes::Bytes;
use ractor::ActorRef;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::ListenMsg;
use crate::actors::host::HostMsg;
use crate::actors::support::task::{TaskGuard, spawn_guarded};
use crate::protocol::session::CallKey;
use crate::protocol::session::host::{HostOutput, HostSession, ListenNote};
use crate::protocol::session::listen::ListenFilter;
use crate::protocol::session::resume::say_plainly;
use crate::transport::clock;

/// How a stream reaches its host.
#[derive(Debug)]
pub(crate) enum Way {
    /// By the actor of its connection, whose session spells it.
    Host(ActorRef<HostMsg>),
    /// By the events that answer its POST.
    Http { session: Box<HostSession>, events: mpsc::Sender<Bytes> },
}

/// What a stream says.
#[derive(Debug)]
pub(crate) enum Word {
    /// Its acknowledgement.
    Agreed(ListenFilter),
    /// Something that has happened.
    Note(ListenNote),
    /// It ends.
    Ended(&'static str),
}

impl Word {
    /// Has a session say it.
    pub(crate) fn tell(self, session: &mut HostSession, key: CallKey) {
        let now = clock::now();
        match self {
            Self::Agreed(filter) => session.agree(now, key, filter),
            Self::Note(note) => session.listen_note(now, key, note),
            Self::Ended(reason) => session.end_listen(now, key, reason),
        }
    }
}

/// Events that are said without looking for room: the acknowledgement or what ends the stream.
const KEPT: usize = 2;

/// How many events must find room for one that may be said, for a queue of `queue` events.
pub(crate) const fn closing_room(queue: usize) -> usize {
    queue + KEPT
}

/// One message of a stream waits in its host's mailbox at most.
const AT_ONCE: usize = 1;

pub(super) struct Wire {
    key: CallKey,
    way: Way,
    /// Of a host's actor: what it has not handled yet, or its host does not take.
    credits: Arc<Semaphore>,
    credit: Option<OwnedSemaphorePermit>,
    waiting: Option<TaskGuard>,
    /// The host has closed it or was told of its end, or need not be told.
    ended: bool,
}

impl Wire {
    pub(super) fn new(way: Way, key: CallKey) -> Self {
        let credits = Arc::new(Semaphore::new(AT_ONCE));
        Self { key, way, credits, credit: None, waiting: None, ended: false }
    }

    /// Tells the actor when the host has closed the stream, where that shows here.
    pub(super) fn watch(&self, me: &ActorRef<ListenMsg>) -> Option<TaskGuard> {
        let Way::Http { events, .. } = &self.way else { return None };
        let (events, me) = (events.clone(), me.clone());
        Some(spawn_guarded(async move {
            events.closed().await;
            let _ = me.cast(ListenMsg::HostGone);
        }))
    }

    /// Whether one more note can be said. If not, a task waits until it can.
    pub(super) fn has_room(&mut self, me: &ActorRef<ListenMsg>) -> bool {
        let room = match &self.way {
            Way::Host(_) => {
                if self.credit.is_none() {
                    self.credit = Arc::clone(&self.credits).try_acquire_owned().ok();
                }
                self.credit.is_some()
            }
            Way::Http { events, .. } => events.capacity() > KEPT,
        };
        if !room && self.waiting.is_none() {
            self.waiting = Some(spawn_guarded(self.wait(me.clone())));
        }
        room
    }

    fn wait(&self, me: ActorRef<ListenMsg>) -> impl Future<Output = ()> + Send + 'static {
        let credits = Arc::clone(&self.credits);
        let events = match &self.way {
            Way::Http { events, .. } => Some(events.clone()),
            Way::Host(_) => None,
        };
        async move {
            match events {
                // Only looked for: what is reserved is given back at once.
                Some(events) => drop(events.reserve_many(KEPT + 1).await.map(drop)),
                None => drop(credits.acquire().await.map(drop)),
            }
            let _ = me.cast(ListenMsg::RoomAgain);
        }
    }

    pub(super) fn room_again(&mut self) {
        self.waiting = None;
    }

    /// Whether the host takes what it is told.
    pub(super) fn flows(&self) -> bool {
        self.waiting.is_none()
    }

    pub(super) fn say(&mut self, word: Word) {
        if self.ended {
            return;
        }
        self.ended = matches!(word, Word::Ended(_));
        match &mut self.way {
            Way::Host(host) => {
                let credit = match &word {
                    Word::Note(_) => self.credit.take(),
                    Word::Agreed(_) | Word::Ended(_) => None,
                };
                // One that has just left has closed its streams.
                let _ = host.cast(HostMsg::Streamed { key: self.key, word, credit });
            }
            Way::Http { session, events } => {
                word.tell(session, self.key);
                while let Some(output) = session.poll_output() {
                    // Nothing else comes of what a stream says.
                    if let HostOutput::Send { frame, .. } = output {
                        // There is room, or the host is gone, which is noticed by itself.
                        let _ = events.try_send(say_plainly(&frame.to_bytes()));
                    }
                }
            }
        }
    }

    /// The daemon stops. A host over HTTP has to know; others have a shim, which opens the stream
    /// again with the next daemon, so that they need not.
    pub(super) fn drain(&mut self) {
        match self.way {
            Way::Http { .. } => self.say(Word::Ended("the mcpx daemon stops")),
            Way::Host(_) => self.ended = true,
        }
    }
}

impl Drop for Wire {
    /// Also where the actor fails or is killed. A host that has closed the stream knows nothing of it
    /// any more, and ignores this.
    fn drop(&mut self) {
        self.say(Word::Ended("this part of mcpx failed; open the stream anew"));
    }
}
