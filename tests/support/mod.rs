//! What all tests stand on. It shares no code with `src/`: a mistake there must not repeat here.
//!
//! A test binary takes it in by `#[path = "../support/mod.rs"] mod support;` at its root. The
//! lints that are for the product are lifted here, so that the binary need not.

#![allow(dead_code, unused_macros, reason = "each test binary uses its own part")]
#![allow(unreachable_pub, reason = "a binary has no outside; `pub` marks what tests may use")]
#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::match_wild_err_arm,
    reason = "test support fails by panicking"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the ban-list is for the product; tests start processes and wait for them"
)]
#![allow(
    clippy::needless_pass_by_value,
    clippy::format_push_string,
    reason = "short calls in tests matter more than a copy"
)]

pub mod asking;
pub mod daemon;
pub mod eventually;
pub mod fake;
pub mod golden;
pub mod http;
pub mod lenient;
pub mod procs;
pub mod raw_host;
pub mod raw_http;
pub mod revisions;
pub mod schema;
pub mod scripted_http;
