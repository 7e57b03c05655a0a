//! The last lines of a child's stderr, bounded in lines and bytes (F32).

use std::sync::{Arc, Mutex};

/// Limits of one ring.
#[derive(Debug, Clone, Copy)]
pub struct RingLimits {
    /// Lines kept (`process.stderr_lines`).
    pub lines: usize,
    /// Bytes kept of one line; the rest is cut (`process.stderr_line_bytes`).
    pub line_bytes: usize,
    /// Lines a second that go to the log; the rest is counted (`process.stderr_log_rate`).
    pub log_rate: u32,
}

/// A shared ring of stderr lines. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StderrRing {
    inner: Arc<Mutex<Vec<String>>>,
}

impl StderrRing {
    /// The last `count` lines, oldest first.
    pub fn tail(&self, count: usize) -> Vec<String> {
        let lines = self.inner.lock().map(|lines| lines.clone()).unwrap_or_default();
        lines.into_iter().rev().take(count).rev().collect()
    }
}
