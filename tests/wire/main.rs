//! mcpx as the server: real hosts' bytes through the real shim and daemon, a fake upstream behind.
//!
//! One file an area; one test a requirement, named by its id in `checklist.md` or its field case.
//! Every frame that mcpx sends is checked strictly against its revision by the host that reads it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the ban-list is for the product")]
#![allow(clippy::too_many_lines, reason = "a conversation reads best in one piece")]

#[path = "../support/setup.rs"]
mod setup;
#[path = "../support/mod.rs"]
mod support;

mod answers;
mod arguments;
mod batches;
mod cancel;
mod discover;
mod errors;
mod exec;
mod exposure;
mod http_modern;
mod http_param_headers;
mod http_restart;
mod http_resume;
mod http_sessions;
mod http_status;
mod ids;
mod large_results;
mod lifecycle;
mod list_changed;
mod listen;
mod logging;
mod names;
mod ping;
mod progress;
mod prompts;
mod questions;
mod read_tool;
mod resources;
mod results;
mod rounds;
mod rounds_parked;
mod scripts;
mod search;
mod subscriptions;
mod tasks_core;
mod tasks_extension;
mod tasks_http;
mod tools;
mod types_tool;
mod urls_required;
mod versioning;
