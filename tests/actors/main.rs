//! The upstream half as a whole: supervisor, pools, instances, catalog and caches, against real
//! `fakemcp` processes where processes matter, and against memory links under a paused clock where
//! time does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the ban-list is for the product")]
#![allow(clippy::needless_pass_by_value, reason = "short calls matter more than a copy")]
#![allow(clippy::unchecked_time_subtraction, reason = "a wrong order is a failed test")]
#![allow(unreachable_pub, reason = "a binary has no outside")]

#[path = "../support/mod.rs"]
mod support;

mod asker;
mod calls;
mod catalog;
mod faults;
mod host_tasks;
mod lanes;
mod lists;
mod memory;
mod offers;
mod pools;
mod processes;
mod questions;
mod stage;
mod tasks;
mod timing;
