//! mcpx as the host of upstreams: a scripted one over stdio, in every revision and with every bad
//! habit, behind the real daemon.
//!
//! What mcpx sent is read from the fake's log and checked strictly against the revision in use.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the ban-list is for the product")]
#![allow(clippy::too_many_lines, reason = "a conversation reads best in one piece")]

#[path = "../support/setup.rs"]
mod setup;
#[path = "../support/mod.rs"]
mod support;

mod alone;
mod calls;
mod era_cache;
mod framing;
mod http;
mod http_calls;
mod http_marks;
mod http_mcpx;
mod http_probe;
mod http_remote;
mod http_sse;
mod identity;
mod limits;
mod listen;
mod pages;
mod probe;
mod questions;
mod requests;
mod sizes;
mod versions;

use support::daemon::Daemon;
use support::fake::Fake;
use support::raw_host::RawHost;

/// A daemon in front of one fake named `up`, its tools passed through, and a host of 2025-11-25.
async fn front(args: &str, more: &str) -> (Daemon, Fake, RawHost) {
    front_with(|fake| fake.args(args), more).await
}

/// As [`front`], with the fake made by a function.
async fn front_with(make: impl Fn(Fake) -> Fake, more: &str) -> (Daemon, Fake, RawHost) {
    let more = format!("{}\n{more}", setup::PASS);
    let daemon = setup::start(|daemon| vec![make(daemon.fake("up"))], &more);
    let host = setup::host(&daemon, "2025-11-25").await;
    let fake = daemon.fake("up");
    (daemon, fake, host)
}
