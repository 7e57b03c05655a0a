//! Searches for tools.

use super::Values;

/// How much is looked for, and how much is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchSettings {
    /// `search.results`: tools that are given where no number is asked for.
    pub results: usize,
    /// `search.max_results`: most that may be asked for.
    pub max_results: usize,
    /// `search.signature`: bytes of one signature.
    pub signature: usize,
    /// `search.words`: words of a query that count.
    pub words: usize,
}

impl Values<'_> {
    pub(super) fn search(&self) -> SearchSettings {
        SearchSettings {
            results: self.count("search.results"),
            max_results: self.count("search.max_results"),
            signature: self.count("search.signature"),
            words: self.count("search.words"),
        }
    }
}
