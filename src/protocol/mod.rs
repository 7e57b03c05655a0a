//! MCP and JSON-RPC as formats and pure rules.
//!
//! Nothing here does IO, reads a clock, draws a random number, logs or is `async`: time and chance
//! are arguments, warnings are returned as [`Notice`] values. Only [`edge`], [`revision`] and the
//! handshake in [`session`] name a concrete revision.

pub mod hex;
pub mod otlp;
pub mod redact;
pub mod revision;

pub mod jsonrpc;

pub mod framing;

pub mod model;

pub mod mrtr;

pub mod edge;

pub mod http_rules;

pub mod session;

pub mod task_fsm;

pub mod era_record;

pub mod naming;

pub mod uri;

mod notice;
pub use notice::Notice;
