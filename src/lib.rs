//! mcpx: one supervised daemon in front of all of a person's MCP servers.
//!
//! Words used everywhere, with one meaning each:
//!
//! - **host**: the program that connects to mcpx. **upstream**: a server that mcpx fronts.
//! - **revision**: one of the five dates of the specification. **era**: legacy (`initialize`) or
//!   modern (per-request `_meta`); derived from the revision, never stored beside it.
//! - **frame**: the bytes of one JSON-RPC message or batch. **message**: its parsed form.
//!   **link**: a live two-way pair of bounded frame queues to one peer.
//! - **edge**: the one module where revision decides spelling. **lift**: wire to newest shape.
//!   **downgrade**: newest shape to a revision's wire.
//! - **pool**: one upstream's instances. **scope key** and **lane**: who shares an instance.
//!   **route**: an instance that a caller may use now. **permit**: the right to have one more
//!   call in flight on it.
//! - **question**: an elicitation, sampling or roots request put to someone. **broker**: who holds
//!   open questions. **op**: one control operation. **catalog**: the merged, sorted view of what
//!   all upstreams offer.
//!
//! Layers, and the only direction in which they may know each other (`tests/tidy.rs` checks it):
//!
//! ```text
//! bin -> actors -> transport, script -> control, settings -> protocol
//! ```
//!
//! Read in that order from the right: `protocol` is pure, `settings` says what can be configured,
//! `control` what can be operated, `transport` moves bytes, `script` is code mode, `actors` hold state
//! and supervision.

#[cfg(test)]
pub(crate) mod pages;

pub mod protocol;

pub mod settings;

pub mod control;

pub mod transport;

pub mod script;

pub mod actors;
