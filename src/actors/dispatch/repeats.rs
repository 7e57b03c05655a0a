//! Remembers a host's failing calls, so that the third identical one is told apart (F43).

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::tool_result;

/// From this many identical failures on, the caller is told that repeating does not help (F43).
const SAID_FROM: u32 = 3;

/// The last failing calls of one host, by digest.
#[derive(Debug)]
pub(crate) struct Repeats {
    most: usize,
    recent: Mutex<VecDeque<(u64, u32)>>,
}

impl Repeats {
    /// Remembers at most `most` different calls (`call.repeat_memory`).
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, recent: Mutex::new(VecDeque::new()) }
    }

    /// Notes how a call went; returns how often in a row it has failed now, 0 where it did not.
    fn note(&self, server: &str, tool: &str, arguments: &[u8], failed: bool) -> u32 {
        // Arguments can be long; nothing is looked up where nothing is remembered.
        let idle = || self.recent.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if !failed && idle() {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        (server, tool, arguments).hash(&mut hasher);
        let digest = hasher.finish();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.iter().position(|(known, _)| *known == digest);
        let times = known.and_then(|at| recent.remove(at)).map_or(0, |(_, times)| times);
        if !failed {
            return 0;
        }
        recent.push_back((digest, times + 1));
        while recent.len() > self.most {
            recent.pop_front();
        }
        times + 1
    }

    /// The result of a call of `tool`, with words where the same call has failed before.
    pub(crate) fn told(
        &self,
        server: &str,
        tool: &str,
        arguments: &[u8],
        result: RawJson,
    ) -> RawJson {
        let failed = tool_result::is_error(&result);
        match self.words(server, tool, arguments, failed) {
            Some(words) => tool_result::append_text(&result, &words),
            None => result,
        }
    }

    /// The words alone.
    pub(crate) fn words(
        &self,
        server: &str,
        tool: &str,
        arguments: &[u8],
        failed: bool,
    ) -> Option<String> {
        let times = self.note(server, tool, arguments, failed);
        (times >= SAID_FROM).then(|| {
            format!(
                "This same call has failed {times} times in a row with the same arguments. Change the \
                 arguments or try another tool."
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f43_identical_failures_are_counted_until_one_succeeds() {
        let repeats = Repeats::new(2);
        assert_eq!(repeats.note("s", "t", b"{}", true), 1);
        assert_eq!(repeats.note("s", "t", b"{}", true), 2);
        assert_eq!(repeats.note("s", "t", b"{\"a\":1}", true), 1);
        assert_eq!(repeats.note("s", "t", b"{}", true), 3);
        assert_eq!(repeats.note("s", "t", b"{}", false), 0);
        assert_eq!(repeats.note("s", "t", b"{}", true), 1);
    }
}
