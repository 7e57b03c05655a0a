//! What hosts see.

use std::time::Duration;

use super::Values;
use crate::settings::servers::ExposeMode;

/// What hosts see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExposeSettings {
    /// `expose.mode`.
    pub mode: ExposeMode,
    /// `expose.ops`.
    pub ops: bool,
    /// `expose.name_limit` (64).
    pub name_limit: usize,
    /// `expose.list_wait` (2 s).
    pub list_wait: Duration,
    /// `expose.page`: items on one page of `mcpx_namespaces` and `mcpx_resources`.
    pub page: usize,
    /// `expose.read_limit`: bytes of a resource that `mcpx_read` gives at once (64 KiB).
    pub read_limit: usize,
}

impl ExposeSettings {
    pub(super) fn of(values: &Values<'_>) -> Self {
        Self {
            mode: values.word("expose.mode", ExposeMode::of_word),
            ops: values.switch("expose.ops"),
            name_limit: values.count("expose.name_limit"),
            list_wait: values.time("expose.list_wait"),
            page: values.count("expose.page"),
            read_limit: values.count("expose.read_limit"),
        }
    }
}
