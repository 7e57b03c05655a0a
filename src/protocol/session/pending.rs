//! The calls in flight on one upstream connection, shared between its session and its reader.
//!
//! The reader hands every frame to [`Pending::resolve`] first; an answer or a progress notification
//! for a call in flight completes its caller right there, without a turn of the actor. What it does
//! not know is given back, for [`super::upstream::UpstreamSession::handle_frame`].

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Answer;
use crate::protocol::jsonrpc::RawJson;

/// Where the news of one call go. Implemented by the actors' layer; must never block.
pub trait CallSink: Send + 'static {
    /// Progress parameters as the upstream sent them.
    fn progress(&mut self, params: RawJson);
    /// The one outcome.
    fn done(self, answer: Answer);
}

/// The two limits on one call. Activity (progress, or any message tagged for it) moves the first.
#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    /// Longest silence (`call.idle_timeout`).
    pub idle: Duration,
    /// Longest time in all (`call.total_timeout`).
    pub total: Duration,
}

/// What became of a frame.
#[derive(Debug)]
pub enum Resolved {
    /// A call's answer or progress; delivered.
    Taken,
    /// Something for the session: the frame as it came.
    Other(Bytes),
}

/// See the module.
#[derive(Debug)]
pub struct Pending<S> {
    _sink: std::marker::PhantomData<fn(S)>,
}

impl<S: CallSink> Pending<S> {
    /// Nothing in flight.
    pub fn new() -> Self {
        todo!()
    }

    /// Takes the next request id (plain integers from 1, F13). The caller takes it before it asks
    /// for the call, so that it can cancel by it at any time.
    pub fn take_id(&self) -> u64 {
        todo!()
    }

    /// Delivers a frame to the call it answers or reports on.
    pub fn resolve(&self, _now: Instant, _frame: Bytes) -> Resolved {
        todo!()
    }

    /// Calls in flight.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When something was last heard or asked here; for idle stop and wedge detection (P-13).
    pub fn last_activity(&self) -> Option<Instant> {
        todo!()
    }
}

impl<S: CallSink> Default for Pending<S> {
    fn default() -> Self {
        Self::new()
    }
}
