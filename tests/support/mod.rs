//! What all tests stand on. It shares no code with `src/`: a mistake there must not repeat here.
//!
//! A test binary takes it in by `#[path = "../support/mod.rs"] mod support;` at its root, and
//! lifts the ban-list of `clippy.toml` there once.

#![allow(dead_code, unused_macros, reason = "each test binary uses its own part")]
#![allow(unreachable_pub, reason = "a binary has no outside; `pub` marks what tests may use")]
#![allow(clippy::missing_panics_doc, reason = "test support fails by panicking")]

pub mod daemon;
pub mod eventually;
pub mod fake;
pub mod golden;
pub mod http;
pub mod lenient;
pub mod procs;
pub mod raw_host;
pub mod schema;
