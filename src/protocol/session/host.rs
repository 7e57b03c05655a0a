//! One host connection, with mcpx as the server.
//!
//! Takes frames, answers what belongs to the lifecycle itself (`initialize`, `server/discover`,
//! `ping`, malformed and out-of-era messages, duplicate ids) and hands every other request up as an
//! event in newest shape. What comes back is spelled for the peer by [`crate::protocol::edge`].
//! Never knows tools, upstreams or sockets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{CallKey, HostRequest, Outcome};
use crate::protocol::Notice;
use crate::protocol::jsonrpc::{Method, RawJson};

/// What mcpx says of itself to hosts, and the limits of a host session.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Our identity in newest shape: name, title, version, description, icons, websiteUrl.
    pub info: RawJson,
    /// Server capabilities in newest shape; the edge takes out what a revision lacks (H-24).
    pub capabilities: RawJson,
    /// Instructions of both openings (H-22); under 1 KB.
    pub instructions: String,
    /// Requests of one host in flight at most; one more is refused as `busy` (`host.max_in_flight`).
    pub max_in_flight: usize,
    /// Least time between two progress notifications of one call to this host
    /// (`host.progress_interval`); in between the last one wins (F37).
    pub progress_interval: Duration,
    /// The transport is stdio or the shim: batches before the handshake count as 2025-03-26, a
    /// caller that declared nothing as 2024-11-05 (H-26, H-27).
    pub over_stdio: bool,
}

/// What the owner must do.
#[derive(Debug)]
pub enum HostOutput {
    /// Write this frame to the host.
    Send(Bytes),
    /// Act on this.
    Event(HostEvent),
    /// Log this.
    Notice(Notice),
}

/// What a host wants or did.
#[derive(Debug)]
pub enum HostEvent {
    /// A request; answer it with [`HostSession::finish`].
    Request(HostRequest),
    /// The host no longer wants this request's answer; `finish` for it is ignored from now on (F36).
    Cancelled {
        /// Which one.
        key: CallKey,
    },
    /// The handshake is complete, or the first modern request was seen; with the label of the host
    /// (`clientInfo` name and version) and the revision, for status pages.
    Opened {
        /// `name version` as the host says, or `unknown`.
        label: String,
        /// The revision spoken, as text, for status pages and logs.
        revision: String,
    },
    /// A notification that mcpx acts on above (`notifications/roots/list_changed`, …).
    Notification {
        /// Its method.
        method: Method,
        /// Lifted parameters.
        params: RawJson,
    },
}

/// See the module.
#[derive(Debug)]
pub struct HostSession {
    _config: Arc<HostConfig>,
}

impl HostSession {
    /// A fresh connection.
    pub fn new(config: Arc<HostConfig>) -> Self {
        Self { _config: config }
    }

    /// The host said something.
    pub fn handle_frame(&mut self, _now: Instant, _frame: &Bytes) {
        todo!()
    }

    /// The host sent a line beyond the link's limit; its bytes were thrown away.
    pub fn handle_too_large(&mut self, _now: Instant, _bytes: usize, _limit: usize) {
        todo!()
    }

    /// The link ended: every open request is reported as cancelled.
    pub fn handle_closed(&mut self, _now: Instant) {
        todo!()
    }

    /// A deadline passed (held-back progress is due).
    pub fn handle_timeout(&mut self, _now: Instant) {
        todo!()
    }

    /// The outcome of a request, in newest shape.
    pub fn finish(&mut self, _now: Instant, _key: CallKey, _outcome: Outcome) {
        todo!()
    }

    /// Progress of a request: `params` as the upstream sent them, whatever token they hold.
    pub fn progress(&mut self, _now: Instant, _key: CallKey, _params: &RawJson) {
        todo!()
    }

    /// This host's visible tool list changed (only said to an initialised legacy host; modern hosts
    /// hear it on a listen stream, which is another issue's).
    pub fn tools_changed(&mut self, _now: Instant) {
        todo!()
    }

    /// How many requests are open.
    pub fn in_flight(&self) -> usize {
        todo!()
    }

    /// What to do next; `None` when nothing is left.
    pub fn poll_output(&mut self) -> Option<HostOutput> {
        todo!()
    }

    /// When to call [`Self::handle_timeout`] at the latest.
    pub fn poll_deadline(&self) -> Option<Instant> {
        todo!()
    }
}
