//! A host at the end of a link: the shim's stream, in both directions.

use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::HostMsg;
use crate::actors::support::task::{TaskGuard, spawn_guarded};
use crate::protocol::jsonrpc::Frame;
use crate::transport::LinkWriter;
use crate::transport::link::{Link, LinkEvent, LinkReader, LinkSender};

/// The two halves of the link, as its actor holds them.
pub(super) struct LinkWire {
    sender: Option<LinkSender>,
    /// The host's side is at its end; leave as soon as nothing is open.
    pub(super) at_end: bool,
    waiting_for_room: Option<TaskGuard>,
    /// Credits of frames that were handled; given back while what the host gets has room.
    withheld: Vec<OwnedSemaphorePermit>,
    _reader: TaskGuard,
    _writer: TaskGuard,
}

impl LinkWire {
    /// Starts to read and to write.
    pub(super) fn new(me: &ActorRef<HostMsg>, link: Link, credits: usize) -> Self {
        let Link { reader, sender, writer } = link;
        Self {
            sender: Some(sender),
            at_end: false,
            waiting_for_room: None,
            withheld: Vec::new(),
            _reader: spawn_guarded(read(me.clone(), reader, credits)),
            _writer: spawn_guarded(write(me.clone(), writer)),
        }
    }

    /// Whether a frame can be queued. If not, a task waits for room: a host that does not read
    /// stops being read, and costs no more than its queue.
    pub(super) fn has_room(&mut self, me: &ActorRef<HostMsg>) -> bool {
        let Some(sender) = &self.sender else { return true };
        if sender.has_room() {
            return true;
        }
        if self.waiting_for_room.is_none() {
            let (sender, me) = (sender.clone(), me.clone());
            self.waiting_for_room = Some(spawn_guarded(async move {
                sender.room().await;
                let _ = me.cast(HostMsg::RoomAgain);
            }));
        }
        false
    }

    /// Whether the host takes what it is sent.
    pub(super) fn flows(&self) -> bool {
        self.waiting_for_room.is_none()
    }

    pub(super) fn room_again(&mut self) {
        self.waiting_for_room = None;
    }

    /// A frame was handled; whoever sent it may send another once the host takes what it is sent.
    pub(super) fn withhold(&mut self, credit: OwnedSemaphorePermit) {
        self.withheld.push(credit);
    }

    pub(super) fn send(&self, line: impl Into<Frame>) {
        // A closed writer reports itself; a full queue was excluded by `has_room`.
        if let Some(sender) = &self.sender {
            let _ = sender.try_send(line);
        }
    }

    /// Everything that could be sent was: gives credits back, and leaves where nothing is left.
    pub(super) fn settle(&mut self, in_flight: usize) {
        if self.flows() {
            self.withheld.clear();
            if self.at_end && in_flight == 0 {
                // The writer writes what waits, then ends, and with it this actor.
                self.sender = None;
            }
        }
    }
}

async fn read(me: ActorRef<HostMsg>, mut reader: LinkReader, credits: usize) {
    let credits = Arc::new(Semaphore::new(credits));
    loop {
        let event = reader.next().await;
        let Ok(credit) = Arc::clone(&credits).acquire_owned().await else { return };
        let (message, last) = match event {
            LinkEvent::Frame(frame) => (HostMsg::Frame { frame, credit }, false),
            LinkEvent::TooLarge { bytes, .. } => (HostMsg::TooLarge { bytes }, false),
            LinkEvent::Closed { why } => (HostMsg::Closed { why }, true),
        };
        if me.cast(message).is_err() || last {
            return;
        }
    }
}

async fn write(me: ActorRef<HostMsg>, writer: LinkWriter) {
    let why = writer.run().await;
    let _ = me.cast(HostMsg::WriterEnded { why });
}
