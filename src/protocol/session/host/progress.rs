//! Progress of one call towards its host: the host's own token, and no flood (F37).

use std::time::{Duration, Instant};

use crate::protocol::jsonrpc::RawJson;

/// What may be said of one call, and when.
#[derive(Debug)]
pub(super) struct Throttle {
    token: RawJson,
    /// The greatest value that was taken.
    value: Option<f64>,
    /// From when on the next notification may go out.
    free_at: Option<Instant>,
    /// The last one that came too early.
    held: Option<RawJson>,
}

/// What becomes of a notification.
#[derive(Debug, PartialEq)]
pub(super) enum Passage {
    /// It goes out.
    Now,
    /// It waits; one that waited before it is dropped.
    Held,
    /// Its value is none, or no greater than the last one: the pages of all revisions say that the
    /// value must increase with each notification.
    Dropped,
}

impl Throttle {
    pub(super) fn new(token: RawJson) -> Self {
        Self { token, value: None, free_at: None, held: None }
    }

    /// The host's token.
    pub(super) fn token(&self) -> &RawJson {
        &self.token
    }

    /// Takes what the upstream says.
    pub(super) fn offer(&mut self, now: Instant, gap: Duration, params: &RawJson) -> Passage {
        let value = params.member("progress").and_then(|value| value.read::<f64>().ok());
        let Some(value) = value.filter(|value| self.value.is_none_or(|last| *value > last)) else {
            return Passage::Dropped;
        };
        self.value = Some(value);
        if self.free_at.is_some_and(|free_at| now < free_at) {
            self.held = Some(params.clone());
            return Passage::Held;
        }
        self.free_at = Some(now + gap);
        self.held = None;
        Passage::Now
    }

    /// What waited long enough.
    pub(super) fn take_due(&mut self, now: Instant, gap: Duration) -> Option<RawJson> {
        if self.deadline().is_none_or(|due| now < due) {
            return None;
        }
        self.free_at = Some(now + gap);
        self.held.take()
    }

    /// What still waits when the call ends: it goes out before the answer, so that the host has
    /// seen the last value.
    pub(super) fn into_rest(self) -> (RawJson, Option<RawJson>) {
        (self.token, self.held)
    }

    /// When something that waits is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.held.as_ref().and(self.free_at)
    }
}
