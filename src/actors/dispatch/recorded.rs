//! One call of a tool, resource or prompt as it is remembered: counted, however it ends.

use std::sync::Arc;
use std::time::Instant;

use super::outcome::Told;
use super::Context;
use crate::actors::inside::ending::Ending;
use crate::actors::upstreams::CallWant;
use crate::protocol::session::Outcome;
use crate::transport::clock;

/// A call under way. Where it falls before its end, its caller has given it up.
#[derive(Debug)]
pub(super) struct Recording<'a> {
    context: &'a Context,
    server: Arc<str>,
    begun: Instant,
    over: bool,
}

impl<'a> Recording<'a> {
    /// It begins.
    pub(super) fn begin(context: &'a Context, want: &CallWant) -> Self {
        Self { context, server: Arc::clone(&want.server), begun: clock::now(), over: false }
    }

    /// It is over; what its caller is told.
    pub(super) fn end(mut self, outcome: Result<Outcome, Told>) -> Result<Outcome, Told> {
        self.over = true;
        self.note(Ending::of(&outcome));
        outcome
    }

    fn note(&self, ending: Ending) {
        let took = clock::now().saturating_duration_since(self.begun);
        self.context.upstreams.meters().of(&self.server).ended(ending, took);
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.note(Ending::Cancelled);
        }
    }
}
