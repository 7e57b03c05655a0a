//! What the root has started, and what has failed: the history behind `mcpx ps --tree`.
//!
//! Written by the root alone, when a part starts or fails; read by whoever asks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ractor::ActorCell;

use crate::transport::clock;

/// Failures that are remembered.
const FAILURES: usize = 64;

/// See the module. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Chronicle(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    root: Option<ActorCell>,
    parts: Vec<Part>,
    failures: VecDeque<Failure>,
}

/// A permanent part.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its name: that of its type.
    pub name: &'static str,
    /// Its present incarnation.
    pub cell: ActorCell,
    /// When that was started, in milliseconds since 1970.
    pub since_ms: u64,
    /// How often it was started again.
    pub restarts: u32,
}

/// A permanent part failed and was started again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub part: &'static str,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Why.
    pub why: String,
}

impl Chronicle {
    /// The root begins; its children follow.
    pub fn root(&self, cell: ActorCell) {
        self.book().root = Some(cell);
    }

    /// A part was started, or started again.
    pub fn started(&self, name: &'static str, cell: ActorCell) {
        let (mut book, since_ms) = (self.book(), now_ms());
        match book.parts.iter_mut().find(|part| part.name == name) {
            Some(part) => {
                let restarts = part.restarts + 1;
                *part = Part { name, cell, since_ms, restarts };
            }
            None => book.parts.push(Part { name, cell, since_ms, restarts: 0 }),
        }
    }

    /// A part failed.
    pub fn failed(&self, part: &'static str, why: &str) {
        let mut book = self.book();
        if book.failures.len() >= FAILURES {
            book.failures.pop_front();
        }
        book.failures.push_back(Failure { part, at_ms: now_ms(), why: why.to_owned() });
    }

    /// The root, once it runs.
    pub fn top(&self) -> Option<ActorCell> {
        self.book().root.clone()
    }

    /// The parts, in the order of their start.
    pub fn parts(&self) -> Vec<Part> {
        self.book().parts.clone()
    }

    /// The last failures, oldest first.
    pub fn failures(&self) -> Vec<Failure> {
        self.book().failures.iter().cloned().collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing panics inside the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wall-clock time in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    u64::try_from(clock::wall().as_millis()).unwrap_or(u64::MAX)
}
