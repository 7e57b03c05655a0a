//! The tests of the test support itself: the strict validator, the raw host, and `fakemcp`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, clippy::needless_pass_by_value, reason = "as in support")]

#[path = "mod.rs"]
mod support;

mod daemon_tests;
mod fakemcp_tests;
mod raw_http_tests;
mod schema_tests;
mod scripted_http_tests;
mod self_tests;
