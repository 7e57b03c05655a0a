//! What a handshake has agreed: all that a session is between its requests, so that another daemon can
//! go on with it (F47).

use std::sync::Arc;

use super::{Handshake, HostEvent, HostOutput, HostSession};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::revision::Revision;
use crate::protocol::session::{LogLevel, Peer};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The revision that is spoken.
    pub revision: Revision,
    /// What the host declared, as it came.
    pub capabilities: RawJson,
    /// `clientInfo` as it came.
    pub info: Option<RawJson>,
    /// `notifications/initialized` has come.
    pub initialized: bool,
    /// What `logging/setLevel` said.
    pub log_level: Option<LogLevel>,
}

impl HostSession {
    /// What was agreed; none before a handshake.
    pub fn agreement(&self) -> Option<Agreed> {
        let Handshake { peer, initialized, .. } = self.handshake.as_ref()?;
        Some(Agreed {
            revision: peer.revision,
            capabilities: peer.capabilities.clone(),
            info: peer.info.clone(),
            initialized: *initialized,
            log_level: self.log_level,
        })
    }

    /// Goes on with what an earlier session of this host has agreed, as if it had just been said.
    pub fn resume(&mut self, agreed: Agreed) {
        let Agreed { revision, capabilities, info, initialized, log_level } = agreed;
        let peer = Peer { revision, capabilities, info };
        self.introduce(&peer);
        let answers = peer.declared_on();
        self.handshake = Some(Handshake { peer: Arc::new(peer), answers, initialized });
        self.log_level = log_level;
    }

    /// Something was agreed.
    pub(super) fn agreed_anew(&mut self) {
        self.outputs.push_back(HostOutput::Event(HostEvent::Agreed));
    }
}
