//! The questions that are open, by number.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::Held;
use crate::protocol::model::questions::Reply;

/// See the module.
#[derive(Default)]
pub(super) struct Table {
    open: BTreeMap<u64, Entry>,
    last: u64,
}

struct Entry {
    _held: Held,
    _reply: oneshot::Sender<Reply>,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn open(&mut self, held: Held, reply: oneshot::Sender<Reply>) -> u64 {
        self.last += 1;
        self.open.insert(self.last, Entry { _held: held, _reply: reply });
        self.last
    }

    pub(super) fn withdraw(&mut self, id: u64) {
        self.open.remove(&id);
    }
}
