//! Streams of `subscriptions/listen` towards hosts.

use std::time::Duration;

use super::Values;

/// How many there may be, and how they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenSettings {
    /// `listen.max_per_host`: on one connection.
    pub per_host: usize,
    /// `listen.max`: of all hosts.
    pub most: usize,
    /// `listen.ack_wait`: for servers to agree to tell of resources.
    pub ack_wait: Duration,
}

impl Values<'_> {
    pub(super) fn listen(&self) -> ListenSettings {
        ListenSettings {
            per_host: self.count("listen.max_per_host"),
            most: self.count("listen.max"),
            ack_wait: self.time("listen.ack_wait"),
        }
    }
}
