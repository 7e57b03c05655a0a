//! The way back to a legacy host while one of its requests is open: questions to it, answers from it.

use ractor::ActorRef;

use super::HostMsg;
use crate::protocol::session::CallKey;

/// One request of one host connection. Cheap to clone; outlives both.
#[derive(Debug, Clone)]
pub struct HostLine {
    #[expect(dead_code, reason = "nothing is asked yet")]
    host: ActorRef<HostMsg>,
    #[expect(dead_code, reason = "nothing is asked yet")]
    key: CallKey,
}

impl HostLine {
    pub(super) const fn new(host: ActorRef<HostMsg>, key: CallKey) -> Self {
        Self { host, key }
    }
}
