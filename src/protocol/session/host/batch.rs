//! Answers to a JSON-RPC array are gathered into one array (H-28, F11).

use std::collections::HashMap;

use bytes::{BufMut, BytesMut};

use crate::protocol::jsonrpc::Frame;

/// One array that a host sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BatchKey(u64);

#[derive(Debug, Default)]
struct Batch {
    /// Elements that are not answered yet, and one while the array is being read.
    waiting: usize,
    answers: Vec<Frame>,
}

/// All arrays that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Batches {
    open: HashMap<BatchKey, Batch>,
    next: u64,
}

impl Batches {
    /// A new array; [`Self::settle`] it with nothing when all its elements were read.
    pub(super) fn start(&mut self) -> BatchKey {
        self.next += 1;
        let key = BatchKey(self.next);
        self.open.insert(key, Batch { waiting: 1, answers: Vec::new() });
        key
    }

    /// One more element wants an answer.
    pub(super) fn expect(&mut self, key: BatchKey) {
        if let Some(batch) = self.open.get_mut(&key) {
            batch.waiting += 1;
        }
    }

    /// One element is done, with or without an answer. Gives the whole answer with the last one,
    /// unless there is nothing to say.
    pub(super) fn settle(&mut self, key: BatchKey, answer: Option<Frame>) -> Option<Frame> {
        let batch = self.open.get_mut(&key)?;
        batch.answers.extend(answer);
        batch.waiting = batch.waiting.saturating_sub(1);
        if batch.waiting > 0 {
            return None;
        }
        let batch = self.open.remove(&key)?;
        (!batch.answers.is_empty()).then(|| join(&batch.answers))
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }
}

fn join(answers: &[Frame]) -> Frame {
    let size: usize = answers.iter().map(|answer| answer.len() + 1).sum();
    let mut out = BytesMut::with_capacity(size + 1);
    for (index, answer) in answers.iter().enumerate() {
        out.put_u8(if index == 0 { b'[' } else { b',' });
        answer.pieces().iter().for_each(|piece| out.extend_from_slice(piece));
    }
    out.put_u8(b']');
    out.freeze().into()
}
