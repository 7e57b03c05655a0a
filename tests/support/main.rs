//! The tests of the test support itself: the strict validator, the raw host, and `fakemcp`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "bans are for the product")]

#[path = "mod.rs"]
mod support;

mod fakemcp_tests;
mod schema_tests;
mod self_tests;
