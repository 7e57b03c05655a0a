//! Which list a host was given last, so that it is told of a change only where there is one (F38).

use std::sync::{Arc, Mutex, PoisonError};

/// The digest of the list that one host was given last; empty before its first.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    digest: Mutex<Option<Arc<str>>>,
}

impl Listed {
    /// A list is on its way to the host.
    pub(crate) fn note(&self, digest: Arc<str>) {
        *self.digest.lock().unwrap_or_else(PoisonError::into_inner) = Some(digest);
    }

    /// The list that the host was given last.
    pub(crate) fn last(&self) -> Option<Arc<str>> {
        self.digest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the host has this list already.
    pub(crate) fn is(&self, digest: &str) -> bool {
        let last = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_deref() == Some(digest)
    }
}
