//! Which session over HTTP has which id. An id is a secret: whoever has it speaks as its host.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use ractor::ActorRef;

use super::HostMsg;
use crate::protocol::hex::hex;
use crate::transport::clock;

/// A session's id: visible ASCII that nobody guesses (Transports page, "Session Management"). Never
/// shown where it could end in a log.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(Arc<str>);

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(…)")
    }
}

impl std::borrow::Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Random bytes of an id: as many as a key has.
const ID_BYTES: usize = 32;

impl SessionId {
    /// A new one; `None` where the system has no randomness to give.
    pub(crate) fn draw() -> Option<Self> {
        let bytes = clock::random::<ID_BYTES>();
        if bytes == [0; ID_BYTES] {
            return None;
        }
        Some(Self(Arc::from(hex(&bytes))))
    }

    /// One that a request names.
    pub(crate) fn named(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// For its header.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// All sessions that can be found by their id. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Sessions {
    all: Arc<DashMap<SessionId, Known>>,
    /// Counts uses of all of them.
    uses: Arc<AtomicU64>,
}

struct Known {
    actor: ActorRef<HostMsg>,
    /// The profile that its host came in by.
    profile: Option<Arc<str>>,
    /// The number of its last use.
    used: Arc<AtomicU64>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sessions({})", self.all.len())
    }
}

impl Sessions {
    /// The session with this id, for a host that comes in by this profile.
    pub(crate) fn find(&self, id: &str, profile: Option<&Arc<str>>) -> Option<ActorRef<HostMsg>> {
        let found = self.all.get(id).filter(|found| found.profile.as_ref() == profile);
        found.map(|found| found.actor.clone())
    }

    /// The session that was used least recently.
    pub(crate) fn least_used(&self) -> Option<ActorRef<HostMsg>> {
        let least = self.all.iter().min_by_key(|known| known.used.load(Ordering::Relaxed));
        least.map(|known| known.actor.clone())
    }

    /// Lets a session be found until the entry falls.
    pub(crate) fn enter(
        &self,
        id: SessionId,
        profile: Option<Arc<str>>,
        actor: ActorRef<HostMsg>,
    ) -> Entry {
        let entry = Entry { sessions: self.clone(), id, used: Arc::default() };
        entry.touch();
        let known = Known { actor, profile, used: Arc::clone(&entry.used) };
        self.all.insert(entry.id.clone(), known);
        entry
    }
}

/// A session's place in the table.
pub(crate) struct Entry {
    sessions: Sessions,
    id: SessionId,
    used: Arc<AtomicU64>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entry(…)")
    }
}

impl Entry {
    /// The session is used now.
    pub(super) fn touch(&self) {
        let number = self.sessions.uses.fetch_add(1, Ordering::Relaxed);
        self.used.store(number, Ordering::Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.sessions.all.remove(&self.id);
    }
}
