//! The listen streams of this connection.

use std::sync::Arc;
use std::time::Instant;

use ractor::ActorRef;
use tokio::sync::OwnedSemaphorePermit;

use super::{HostState, Wire};
use crate::actors::dispatch;
use crate::actors::listen::{Known, ListenArgs, ListenMsg, Way, Word};
use crate::actors::upstreams::Caller;
use crate::protocol::session::CallKey;
use crate::protocol::session::host::ListenWant;

/// A stream; it ends when this falls.
#[derive(Debug)]
pub(super) struct ListenGuard(ActorRef<ListenMsg>);

impl Drop for ListenGuard {
    fn drop(&mut self) {
        self.0.stop(None);
    }
}

impl HostState {
    /// The host opens a stream.
    pub(super) fn open_stream(&mut self, now: Instant, want: ListenWant) {
        let (key, listens) = (want.key, &self.context.listens);
        let place = listens.place(self.context.settings().listen.most);
        let opened = place.and_then(|place| listens.open(place, self.listen_args(want)));
        match opened {
            Ok(actor) => {
                self.listens.insert(key, ListenGuard(actor));
            }
            Err(error) => self.session.refuse_listen(now, key, error),
        }
    }

    fn listen_args(&self, want: ListenWant) -> ListenArgs {
        let view = dispatch::visible_views(&self.context);
        let mut changed = view.not_as_given(&self.listed);
        let seen_before = self.missed.iter().filter(|kind| self.listed.last(**kind).is_none());
        changed.extend(seen_before.copied());
        // It asks for nothing that could be answered by a question.
        let caller = Caller { era: want.peer.revision.era(), ..self.caller.clone() };
        let known = Known { view, listed: Arc::clone(&self.listed), changed };
        let (way, context) = (Way::Host(self.me.clone()), Arc::clone(&self.context));
        ListenArgs { caller, want, known, way, context }
    }

    /// A stream says something.
    pub(super) fn streamed(
        &mut self,
        key: CallKey,
        word: Word,
        credit: Option<OwnedSemaphorePermit>,
    ) {
        if matches!(word, Word::Ended(_)) {
            self.listens.remove(&key);
        }
        word.tell(&mut self.session, key);
        if let (Wire::Link(link), Some(credit)) = (&mut self.wire, credit) {
            link.withhold(credit);
        }
    }
}
